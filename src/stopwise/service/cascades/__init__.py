"""One cascade while it runs.

`running` conducts: `drawing` decides the depth, or `items` after each stage whether to go on,
`counting` compares and counts what came in, `reported_rounds` reads rounds of the API, `recorder`
writes behind, `holding` lets answers wait where that is late, `spending` knows what was spent
today, `evidence_stores` says where evidence is kept, `verdicts` and `auditing` what it means.
`forms` is what they hand to each other.
"""
