"""A reproduction made small enough for a repository, so that a stranger can verify and repeat it.

finished.py says what of it is done, catalogue.py what was published before, wording.py tells paths without the
machine they were on, parcels.py packs a work, provenance.py says where each number comes from, pages.py writes
overview and reports; publication.py goes through it all. joining.py puts results of several folders together.
"""
