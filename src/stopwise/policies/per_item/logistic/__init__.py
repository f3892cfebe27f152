"""`per-item-logistic`: regressions in place of the table, for features of every kind.

Read in this order: `features` (columns of any kind as numbers), `columns` (all that is known after
a stage as a row of numbers), `model` (one regression), `rule`, `words`, `policy`.
"""
