"""The OpenAI-compatible front.

`chat` conducts: `asking` turns a request into a decision, `exchange` calls the stages and hands
what came in to the recorder, `plain` and `streamed` answer the client; `decisions` and `models`
(with embeddings) are the smaller paths.
"""
