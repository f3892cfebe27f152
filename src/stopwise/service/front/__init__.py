"""The OpenAI-compatible front.

`chat` conducts: `asking` turns a request into a decision, `exchange` calls the stages and hands
what came in to the recorder, `answering` finds the answer (of the stage drawn, of one in its place,
or per item), `plain` and `streamed` send it; `decisions` and `models` (with embeddings) are the
smaller paths.
"""
