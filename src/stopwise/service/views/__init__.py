"""What each page shows, as plain objects: read from the learner and the store, never drawn here.

Every function takes the `Service` and blocks (call it in a thread); every object is a frozen
dataclass of texts and numbers, so that pages and tests need nothing else.

| file | page |
|---|---|
| `cascades` | 1 all cascades: one sentence each, mode, spend today |
| `cascade` | 2 one cascade: shares over time, pairs against thresholds, law of the depth |
| `savings` | 3 savings against `run_to`, net of comparison calls, with an interval |
| `disagreements` | 4 answers side by side |
| `labels` | 5 what to label next, and how many more until settled |
| `health` | 6 drift, failures, missing comparisons |
| `modes` | 7 the mode, what would change, who changed it when |
| `keys` | 8 keys, settings, epochs |
"""
