"""How honest a robustness number is: a ledger of attacks on examples, and findings drawn from it.

sample     which examples, in which order, in which fixed batches
suites     ordered lists of entries (an attack, its ball, and what its rows are for)
judge      runs a list over a ledger; the one loop
ledger     rows on disk: appended, resumed, merged        rows, header, lock, shards are its parts
record     what the rows say: accuracies and intervals
findings   fifteen checks, each a pure function of the record
verify     replays the kept images against the model
"""
