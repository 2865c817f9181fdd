"""JSON with a seal: the SHA-256 of everything else in it, so that a flipped bit does not pass for another value."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from linocut.errors import InputError

SEAL = "sha256"


def sealed(content: Mapping[str, Any]) -> bytes:
    """The content as indented JSON with its seal; anything JSON cannot hold, NaN among it, is refused."""
    try:
        return (json.dumps({**content, SEAL: _digest(content)}, indent=1, allow_nan=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"this holds something JSON cannot: {error}") from error


def unsealed(text: bytes, source: str) -> dict[str, Any]:
    """The content of sealed JSON without its seal; `source` names the file in complaints."""
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or SEAL not in content:
            raise InputError(f"{source} has no seal: wanted an object that linocut wrote")
        seal = content.pop(SEAL)
        agrees = seal == _digest(content)  # refuses NaN, which Python's reader takes for JSON
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not JSON: {error}") from error
    if not agrees:
        raise InputError(f"{source} does not agree with its own SHA-256: it is damaged, or was edited")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(plain.encode()).hexdigest()
