"""Stopwise as a service: cascades over HTTP, an OpenAI-compatible front, keys and pages.

Rooms, in the order in which a request meets them:

| room | question it answers |
|---|---|
| `config/` | What does the file say? Checked once; unknown names are refused. |
| `http/` | May this request come in? Size, time, key, scope, origin; id, log line, metrics. |
| `front/` | How is a chat completion answered? Depth first, the answering stage streamed at once. |
| `api/` | How do stages that are not language models take part? Rounds, evidence, labels, log. |
| `pages/` | What does a person see? |
| `cascades/` | What is one cascade while it runs? Its learner, mode, draws, budgets, counting. |
| `upstream/` | How is a stage called? |
| `database/` | What is kept: keys, rounds, items, labels, sums by the hour, the trail. |
| `example/` | What can be looked at without any model? |

Needs `stopwise[service]`; `import stopwise` never loads it.
"""
