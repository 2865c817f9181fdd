"""What `linocut theory` says: each finding with how it was established and how many cases that covers."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import torch

from linocut.theory import theorem1, theorem2, theorem3
from linocut.theory.certificate import certify
from linocut.theory.definitions import WHITE, keeps_clusters_together, mnist_d, two_color_codebook
from linocut.theory.theorem1 import Counterexample

SMALL_IMAGES = ((5, 1, 4, 4), (8, 1, 3, 4), (9, 2, 3, 3), (13, 3, 3, 2))  # w, eps, black pixels, white pixels


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement, how it was established, its numbers, and where it ends: an image that shows it."""

    name: str
    holds: bool
    says: str
    how: str
    numbers: dict[str, int | float] = field(default_factory=dict)
    example: Counterexample | None = None

    def as_dict(self) -> dict[str, object]:
        """The finding as plain lists and numbers, for JSON."""
        shown = None
        if self.example:
            shown = {
                "image": self.example.image.tolist(),
                "delta": self.example.delta.tolist(),
                "eps": self.example.eps,
            }
        kept = {key: value for key, value in vars(self).items() if key != "example"}
        return {**kept, "example": shown}


def described(finding: Finding) -> str:
    """The finding in a few lines for a reader."""
    lines = [
        f"{finding.name}: {'holds' if finding.holds else 'DOES NOT HOLD'}",
        f"  {finding.says}",
        f"  how: {finding.how}",
    ]
    if finding.example:
        image, delta, eps = finding.example
        lines.append(f"  image {image.tolist()} + {delta.tolist()} (eps = {eps}): equal pixels part")
    return "\n".join(lines)


def first_theorem() -> list[Finding]:
    """Theorem 1, its limit, and its limit when values must stay within 0..255."""
    found = theorem1.decide()
    failures, tried = (sum(n) for n in zip(*(theorem1.brute_force(*case) for case in SMALL_IMAGES), strict=True))
    ws = np.arange(1, WHITE + 1)
    tight = found.tight_when_clipped
    last_tight = int(tight.max())
    inside = [theorem1.clipped_counterexample(int(w)) for w in ws]
    formula = [example.eps for example in inside]
    shown = all(
        not keeps_clusters_together(example.image, example.delta, two_color_codebook)
        and 0 <= (example.image + example.delta).min()
        and (example.image + example.delta).max() <= WHITE
        for example in inside
    )
    return [
        Finding(
            name="theorem 1",
            holds=found.failures == failures == 0,
            says=f"AC keeps clusters together for every w in 1..{WHITE} and every whole eps < w/4 "
            f"({found.pairs:,} pairs of w and eps), for images of any size.",
            how=f"by reduction to the extremes of the two clusters, all {found.extremes:,} of them; "
            f"and by brute force: {tried:,} perturbations of {len(SMALL_IMAGES)} small images, {failures} failures",
            numbers={"pairs": found.pairs, "extremes": found.extremes, "brute_force": tried},
        ),
        Finding(
            name="theorem 1, limit",
            holds=bool((found.first_failure == -(-ws // 4)).all()),
            says="It fails at the first whole eps >= w/4, for every w: eps < w/4 is needed, eps <= w/4 is not enough.",
            how=f"a failing image for each of the {len(ws)} values of w, each run through AC; shown: w = 8",
            numbers={"failing_images": len(ws)},
            example=theorem1.counterexample(8),
        ),
        Finding(
            name="theorem 1, inside 0..255",
            holds=shown and len(tight) == last_tight and found.first_failure_clipped.tolist() == formula,
            says=f"If perturbed values must stay within 0..255 the bound is tight exactly for w <= {last_tight}; "
            f"beyond, AC holds up to the first whole eps >= (2w - 255)/3, which is {formula[-1]} for w = {WHITE}.",
            how=f"exhaustively, {WHITE * (WHITE + 1) // 2:,} pairs of colours at every eps; a failing image "
            f"for each w; shown: w = {last_tight + 1}",
            numbers={"last_tight": last_tight, "first_failure_at_255": formula[-1]},
            example=inside[last_tight],
        ),
    ]


def second_theorem(random_codebooks: int = 2000) -> list[Finding]:
    """Theorem 2, and the exact set of codebooks and w where it fails."""
    found = theorem2.decide()
    dice = np.random.default_rng(0)
    verified = 0
    for _ in range(random_codebooks):
        C = dice.choice(WHITE + 1, size=dice.integers(2, WHITE + 2), replace=False).tolist()
        w = int(dice.integers(1, WHITE + 1))
        example = theorem2.failing_image(C, w)
        agrees = theorem2.escapes(C, w) if example is None else theorem2.is_verified(C, w, example)
        verified += int(agrees)
    m = (found.low + found.high) // 2
    ws = np.arange(1, WHITE + 1)
    formula = (m[:, None] >= WHITE + 1 - ws) & (m[:, None] <= ws - 2)
    largest_w = int(np.flatnonzero(found.escapes.any(axis=0))[0])
    black_and_white = found.first_escape(0, WHITE)
    assert black_and_white is not None
    return [
        Finding(
            name="theorem 2",
            holds=verified == random_codebooks and not found.escapes[:, :largest_w].any(),
            says=f"For every fixed codebook of two colours or more and every w <= {largest_w} some image of MNIST_G "
            "falls apart under one level.",
            how=f"by construction, for any codebook; all {len(found.low):,} two-colour codebooks exhaustively; "
            f"{verified:,} of {random_codebooks:,} random codebooks of 2 to {WHITE + 1} colours verified through FC; "
            "shown: {0, 255}, w = 128",
            numbers={"largest_w": largest_w, "codebooks": len(found.low), "random_codebooks": random_codebooks},
            example=theorem2.failing_image((0, WHITE), largest_w),
        ),
        Finding(
            name="theorem 2, limit",
            holds=bool((formula == found.escapes).all()),
            says=f"No image falls apart iff every border m between two runs has 256 - w <= m <= w - 2: "
            f"{int(found.escapes.sum()):,} of {found.escapes.size:,} pairs of a two-colour codebook and w; "
            f"{{0, 255}} escapes from w = {black_and_white} on. A codebook of one colour always escapes.",
            how="decided for every pair from FC itself, and equal to the formula on each",
            numbers={
                "escaping_pairs": int(found.escapes.sum()),
                "pairs": found.escapes.size,
                "black_and_white_from": black_and_white,
            },
        ),
    ]


def certificate_limit() -> Finding:
    """The radius below which black and white stay certain in an image that reaches both."""
    image = torch.tensor([[0, 0], [WHITE, WHITE]])
    just_below = certify(image, 85 - Fraction(1, 1024), "adaptive")
    at = certify(image, 85, "adaptive")
    return Finding(
        name="certificate, adaptive",
        holds=not just_below.undecided.any() and bool(at.undecided.any()),
        says="In an image that reaches 0 and 255 the adaptive codebook decides black and white "
        "for every real eps below 85 levels, and no further.",
        how="by interval of the midpoint, exact in 1024ths of a level; an attack at 85 is shown",
        numbers={"levels": 85},
        example=Counterexample(image.numpy(), np.array([[85, 85], [-85, 0]]), 85),
    )


def third_theorem(
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    *,
    epochs: int = 2,
    attacked: int = 100,
    random: int = 10_000,
    seed: int = 0,
) -> list[Finding]:
    """Theorem 3 on real digits: (images (N, H, W) in whole levels, labels) to train M on and to attack.

    Every test image meets the worst perturbations, the first `attacked` of them `random` random ones as well,
    each in colours of its own, at the largest whole eps < w/4 for three w.
    """
    M = theorem3.train_m(*train, epochs=epochs, seed=seed)
    images = mnist_d(test[0])
    right = theorem3.predictions(M, images == WHITE) == test[1]
    dice = np.random.default_rng(seed)
    broken = np.zeros(len(images), dtype=bool)
    tried = beyond = 0
    for w in (5, 64, WHITE):
        for index, image in enumerate(images):
            c1 = int(dice.integers(0, WHITE - w + 1))
            c2 = int(dice.integers(c1 + w, WHITE + 1))
            eps = theorem1.first_integer_not_below_a_quarter(w) - 1
            result = theorem3.attack(image, c1, c2, eps, random if index < attacked else 0, dice)
            broken[index] |= result.failures > 0
            tried += result.tried
            beyond += theorem3.attack(image, c1, c1 + w, eps + 1, 0, dice).failures > 0
    natural, robust = 100 * right.mean(), 100 * (right & ~broken).mean()
    return [
        Finding(
            name="theorem 3",
            holds=bool(natural == robust),
            says=f"M is right on {natural:.2f} % of MNIST_D; M after S after AC on {robust:.2f} % of attacked MNIST_G.",
            how=f"by sampling: {tried:,} perturbations of {len(images):,} images at w = 5, 64, 255 and the largest "
            f"eps < w/4, worst cases for each, {random:,} random ones for the first {min(attacked, len(images))}; "
            f"{int(broken.sum())} images came back changed",
            numbers={"natural": natural, "robust": robust, "tried": tried, "changed": int(broken.sum())},
        ),
        Finding(
            name="theorem 3, limit",
            holds=beyond == 3 * len(images),
            says=f"One level more and the same worst cases change {beyond:,} of {3 * len(images):,} images.",
            how="the same attack at the first whole eps >= w/4, colours exactly w apart",
            numbers={"changed": beyond},
        ),
    ]
