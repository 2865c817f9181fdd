"""Which images are for testing, where a data set's authors do not say."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

TEST_SHARE = 0.2


def held_out(identities: Sequence[str], groups: Sequence[int], *, seed: int = 0) -> list[bool]:
    """For each image, whether it is a test image: a fifth of every group, at least one of two.

    Images are ordered by the SHA-256 of seed and identity, so that the split is the same on every
    machine and with every version of every library, and does not move when another group grows.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    test = [False] * len(identities)
    for indices in members.values():
        indices.sort(key=lambda i: _digest(f"{seed}\n{identities[i]}"))
        share = min(max(1, round(TEST_SHARE * len(indices))), len(indices) - 1)
        for index in indices[:share]:
            test[index] = True
    return test


def _digest(text: str) -> bytes:
    # File names need not be UTF-8: Python hands over their odd bytes as surrogates, which go back as they came.
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()
