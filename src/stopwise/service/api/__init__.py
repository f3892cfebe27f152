"""The API for stages that are not language models, and for programs that read what was learned.

`bodies` reads what is sent, `rounds` begins, observes, ends and abandons, `reading` tells evidence,
report, verdict and explanation, `changing` sets modes and takes labels, `log` exports rounds for
`stopwise analyze`, `openapi` describes it all, `routes` lists it.
"""
