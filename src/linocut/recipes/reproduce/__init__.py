"""The paper's tables from data to page: a plan of steps that can be stopped anywhere and gone on with.

tables.py says which rows, scales.py how large, plan.py in what order; runner.py does what the stamps say is left.
"""
