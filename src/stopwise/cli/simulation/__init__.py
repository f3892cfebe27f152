"""Commands that simulate: problems, policies, grids, the paper."""
