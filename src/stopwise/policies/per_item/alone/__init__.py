"""The per-item rule for stages that can be called alone: start anywhere, jump over stages.

Read in this order: `paths` (which stages were called so far, and the situation after them),
`working_back` (what to do after every path), `applying` (items sent along a rule), `rule` (it and
its file), `full_runs` (how often all stages are called to learn).
"""
