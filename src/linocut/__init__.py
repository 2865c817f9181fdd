"""Content-adaptive pixel discretisation, exact to the bit, and an honest test of image defences."""

from linocut.errors import InputError

__version__ = "0.1.0"

__all__ = ["InputError"]
