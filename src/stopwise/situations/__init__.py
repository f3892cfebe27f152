"""What is known of an item after a stage, how it is counted, and what follows from the counts.

Read in this order: `observations` (rows as they come), `binning` (fixed bins, part of the state),
`keys` (a situation as one number, from coarse to fine), `transitions` (the counters), `references`
(what an answer is held against), `risks` (counts carried back to the risk of every situation).
"""
