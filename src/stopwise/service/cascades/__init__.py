"""One cascade while it runs.

`running` conducts: `drawing` decides the depth, `counting` compares what came in and tells the
learner, `told` reads rounds of the API, `recorder` writes behind, `spending` knows what
was spent today, `evidence_stores` says where evidence is kept. `forms` is what they hand to each
other.
"""
