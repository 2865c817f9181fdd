"""Pictures and data sets: decoding, official layouts, downloads with checksums."""
