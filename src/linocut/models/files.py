"""`linocut.files` under the name that older code asks for."""

from linocut.files import write_whole

__all__ = ["write_whole"]
