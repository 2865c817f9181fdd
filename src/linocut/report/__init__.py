"""From ledgers to one page and three tables; no model runs here.

sources    ledgers found, read and checked            identity   which model, which row of the paper
accuracy   clean, as published, worst case            verdict    what it comes down to, in sentences
sections   what each part of the page shows           charts     inline SVG
page       the HTML                                   tables     Markdown, LaTeX, CSV
"""

from linocut.report.writing import require_jinja, write

__all__ = ["require_jinja", "write"]
