"""What goes backward through the transform: its true gradient is zero almost everywhere (Paper: BPDA).

bpda      the identity through the codebook, the roundings and the clamp; the blur's exact transpose
identity  the identity through everything
soft      the Jacobian of the softmax-weighted palette at the blurred pixel, then the blur's transpose
none      zero, as it truly is: only to show what gradient masking looks like
"""

from linocut.errors import InputError
from linocut.transform.settings import is_finite

SURROGATES = ("bpda", "identity", "soft", "none")


def check_surrogate(name: str, softness: float) -> None:
    """Raise unless the name is a surrogate's and the softness a positive number."""
    if name not in SURROGATES:
        raise InputError(f"surrogate must be one of {', '.join(SURROGATES)}, got {name!r}")
    if not is_finite(softness) or softness <= 0:
        raise InputError(f"softness is a rate per level and must be finite and above 0, got {softness!r}")
