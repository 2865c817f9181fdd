"""Pictures and data sets: decoding, official layouts, downloads with checksums. loading.py names every set."""

from linocut.data.dataset import Images
from linocut.data.loading import load

__all__ = ["Images", "load"]
