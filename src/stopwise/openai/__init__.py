"""The wire format of OpenAI-compatible servers, and nothing else: no sockets, no learning.

| file | question |
|---|---|
| `bodies` | What does a request say, and what is sent to a stage in its place? |
| `completions` | What did a stage answer, in a form that can be compared? |
| `streams` | How is a stream cut into chunks, and put together to one answer? |
| `comparators` | When do two answers agree? |
| `decisions` | How is a question with finite answers put to a model, and its answer read? |
| `logprobs` | How sure is a model of its answer, by the chances of its tokens? |
| `conversations` | Which conversation does a request belong to? |
| `errors` | How is an error said in the protocol's own form? |
"""
