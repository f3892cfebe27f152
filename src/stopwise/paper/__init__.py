"""The paper: its instances as data, its tables and figures, and the published points beside them.

Read in this order: `files` and `instances` (what is printed), `classifiers` and `environments`
(problems from it), `experiments` (the list of runs), `running` (run and keep), then `tables`,
`comparison`, `figures` and `report` (look), and `reproduce` (all of it).
"""
