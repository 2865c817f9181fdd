"""Pixels in, pixels out: the paper's transform. Start with reference.py."""
