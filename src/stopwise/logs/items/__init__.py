"""Item by item: what a rule that decides per item would have made of a log.

`analyze_items` conducts: `held_out` scores the rule on rows that it has not seen, `why` puts it
into words, `frontier` shows cost against changed answers. `fitting` makes the rule that is kept.
"""
