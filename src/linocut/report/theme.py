"""The colours of the page in its two themes; the tests hold their contrast."""

# Each name: light, dark. Blue and orange are told apart by every kind of colour vision; text never relies on colour.
PALETTE = {
    "paper": ("#ffffff", "#14161a"),
    "sheet": ("#f6f5f1", "#1d2026"),
    "ink": ("#1b1b1d", "#ecebe7"),
    "quiet": ("#5c5d63", "#a7a9b1"),
    "rule": ("#d9d7d0", "#3a3e47"),
    "accent": ("#0b5cad", "#7db8f5"),
    "published": ("#b04a00", "#f3a35c"),
    "worst": ("#0b5cad", "#7db8f5"),
    "clean": ("#5c5d63", "#a7a9b1"),
    "ok": ("#1f6b3a", "#7fcf9b"),
    "warn": ("#855500", "#e8bd5a"),
    "fail": ("#b3261e", "#f59a92"),
}
TEXT = ("ink", "quiet", "accent", "published", "worst", "ok", "warn", "fail")  # used for letters, on both grounds
GROUNDS = ("paper", "sheet")


def rules(theme: int) -> str:
    """The palette of a theme (0 light, 1 dark) as CSS custom properties."""
    return " ".join(f"--{name}: {colors[theme]};" for name, colors in PALETTE.items())
