"""One client against a running service: `python client_checks.py CLIENT URL`.

Run by `clients.py` in the environment of the clients; imports nothing of Stopwise. Prints a line
of JSON for each check: what was checked, and what went wrong if anything did.

What the model behind the service does is said in the question: see `clients.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

MODEL = "support"
TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Find a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


class Place(BaseModel):
    """What structured output is read into."""

    city: str


def need(held: bool, what: object) -> None:
    if not held:
        raise AssertionError(str(what))


def fails(call: Callable[[], object], *kinds: type[BaseException]) -> None:
    """The call must raise one of these."""
    try:
        found = call()
    except kinds:
        return
    raise AssertionError(f"no error but {found!r}")


def page_program(url: str, first: str) -> dict[str, Any]:
    """Run the program of the how-to page that begins with this line; its names."""
    text = (Path(__file__).parents[1] / "docs" / "service" / "how-to.md").read_text("utf-8")
    found = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
             if block.startswith(first)]  # fmt: skip
    need(len(found) == 1, f"{len(found)} programs on the page begin with {first}")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(found[0].replace("http://127.0.0.1:8600/v1", url), names)
    return names


def asked(text: str) -> Any:
    return [{"role": "user", "content": text}]


def openai_checks(url: str) -> dict[str, Callable[[], object]]:
    import openai

    client = openai.OpenAI(base_url=url, api_key="any", max_retries=0)
    create = client.chat.completions.create

    def plain() -> None:
        answer = create(model=MODEL, messages=asked("plain"))
        need(answer.choices[0].message.content == "three plain words", answer)
        need(answer.usage is not None and answer.usage.total_tokens == 120, answer.usage)

        async def awaited() -> Any:
            async with openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as other:
                return await other.chat.completions.create(model=MODEL, messages=asked("plain"))

        answer = asyncio.run(awaited())
        need(answer.choices[0].message.content == "three plain words", answer)

    def streamed() -> None:
        chunks = list(create(model=MODEL, messages=asked("plain"), stream=True))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        need(text == "three plain words", text)
        need(all(chunk.usage is None for chunk in chunks), "usage was not asked for")

    def usage() -> None:
        options: Any = {"include_usage": True}
        asking = asked("plain")
        chunks = list(create(model=MODEL, messages=asking, stream=True, stream_options=options))
        need(chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 120, chunks[-1])

    def tools() -> None:
        given: Any = [TOOL]
        answer = create(model=MODEL, messages=asked("tools"), tools=given)
        call: Any = next(iter(answer.choices[0].message.tool_calls or ()), None)
        need(call is not None and call.function.arguments == '{"city": "Rome"}', answer)
        chunks = list(create(model=MODEL, messages=asked("tools"), tools=given, stream=True))
        parts = [p for c in chunks for o in c.choices for p in o.delta.tool_calls or ()]
        text = "".join(p.function.arguments or "" for p in parts if p.function)
        need(text == '{"city": "Rome"}', chunks)
        need(chunks[-1].choices[0].finish_reason == "tool_calls", chunks[-1])

    def schema() -> None:
        answer = client.chat.completions.parse(
            model=MODEL, messages=asked("json"), response_format=Place
        )
        need(answer.choices[0].message.parsed == Place(city="Rome"), answer)

    def two() -> None:
        need(len(create(model=MODEL, messages=asked("plain"), n=2).choices) == 2, "n = 2")

    def errors() -> None:
        fails(lambda: create(model="nobody", messages=asked("x")), openai.NotFoundError)
        fails(lambda: create(model=MODEL, messages=asked("status 400")), openai.BadRequestError)
        fails(lambda: create(model=MODEL, messages=asked("status 429")), openai.RateLimitError)
        fails(lambda: create(model=MODEL, messages=asked("status 500")), openai.InternalServerError)

        def streams(text: str) -> object:
            return list(create(model=MODEL, messages=asked(text), stream=True))

        fails(lambda: streams("status 400"), openai.BadRequestError)
        fails(lambda: streams("status 500"), openai.InternalServerError)
        # A stream that breaks off is no short answer.
        fails(lambda: streams("break off"), openai.APIError)

    def timeouts() -> None:
        quick = client.with_options(timeout=0.3).chat.completions.create
        fails(lambda: quick(model=MODEL, messages=asked("slow")), openai.APITimeoutError)
        fails(
            lambda: list(quick(model=MODEL, messages=asked("slow"), stream=True)),
            openai.APITimeoutError,
        )

    return {
        "plain": plain, "streamed": streamed, "usage": usage, "tools": tools,
        "JSON schema": schema, "n = 2": two, "errors": errors, "timeouts": timeouts,
    }  # fmt: skip


def langchain_checks(url: str) -> dict[str, Callable[[], object]]:
    import openai
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    def model(**more: Any) -> Any:
        return ChatOpenAI(base_url=url, api_key="any", model=MODEL, max_retries=0, **more)

    chat = model()

    def plain() -> None:
        need(chat.invoke("plain").content == "three plain words", "invoke")
        found = asyncio.run(chat.ainvoke("plain"))
        need(found.content == "three plain words", "ainvoke")
        shown = page_program(url, "from langchain_openai")["model"]
        need(shown.invoke("plain").content == "three plain words", "the program of the page")

    def streamed() -> None:
        text = "".join(chunk.content for chunk in chat.stream("plain"))
        need(text == "three plain words", text)

    def usage() -> None:
        found = chat.invoke("plain").usage_metadata
        need(found["total_tokens"] == 120, found)
        last = None
        for chunk in model(stream_usage=True).stream("plain"):
            last = chunk.usage_metadata or last
        need(last is not None and last["total_tokens"] == 120, last)

    def tools() -> None:
        found = chat.bind_tools([TOOL]).invoke("tools").tool_calls
        need(found[0]["name"] == "find" and found[0]["args"] == {"city": "Rome"}, found)
        whole: Any = None
        for chunk in chat.bind_tools([TOOL]).stream("tools"):
            whole = chunk if whole is None else whole + chunk
        need(whole.tool_calls[0]["args"] == {"city": "Rome"}, whole)

    def schema() -> None:
        found = chat.with_structured_output(Place).invoke("json")
        need(found == Place(city="Rome"), found)

    def two() -> None:
        found = model(n=2).generate([[HumanMessage("plain")]])
        need(len(found.generations[0]) == 2, found)

    def errors() -> None:
        fails(lambda: chat.invoke("status 400"), openai.BadRequestError)
        fails(lambda: chat.invoke("status 429"), openai.RateLimitError)
        fails(lambda: chat.invoke("status 500"), openai.InternalServerError)
        fails(lambda: list(chat.stream("status 500")), openai.InternalServerError)
        fails(lambda: list(chat.stream("break off")), openai.APIError)

    def timeouts() -> None:
        fails(lambda: model(timeout=0.3).invoke("slow"), openai.APITimeoutError)

    return {
        "plain": plain, "streamed": streamed, "usage": usage, "tools": tools,
        "JSON schema": schema, "n = 2": two, "errors": errors, "timeouts": timeouts,
    }  # fmt: skip


def litellm_checks(url: str) -> dict[str, Callable[[], object]]:
    import litellm

    def ask(text: str, **more: Any) -> Any:
        name = more.pop("model", MODEL)
        return litellm.completion(
            model=f"openai/{name}", api_base=url, api_key="any", messages=asked(text),
            num_retries=0, max_retries=0, **more,
        )  # fmt: skip

    def plain() -> None:
        need(ask("plain").choices[0].message.content == "three plain words", "plain")

    def streamed() -> None:
        chunks = list(ask("plain", stream=True))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        need(text == "three plain words", text)

    def usage() -> None:
        need(ask("plain").usage.total_tokens == 120, "plain")
        chunks = list(ask("plain", stream=True, stream_options={"include_usage": True}))
        found = [c.usage.total_tokens for c in chunks if getattr(c, "usage", None)]
        need(found[-1:] == [120], found)

    def tools() -> None:
        found = ask("tools", tools=[TOOL]).choices[0].message.tool_calls[0].function
        need((found.name, json.loads(found.arguments)) == ("find", {"city": "Rome"}), found)
        chunks = list(ask("tools", tools=[TOOL], stream=True))
        parts = [p for c in chunks for o in c.choices for p in o.delta.tool_calls or ()]
        text = "".join(p.function.arguments or "" for p in parts)
        need(json.loads(text) == {"city": "Rome"}, text)

    def schema() -> None:
        found = ask("json", response_format=Place).choices[0].message.content
        need(json.loads(found) == {"city": "Rome"}, found)

    def two() -> None:
        need(len(ask("plain", n=2).choices) == 2, "n = 2")

    def errors() -> None:
        fails(lambda: ask("x", model="nobody"), litellm.NotFoundError)
        fails(lambda: ask("status 400"), litellm.BadRequestError)
        fails(lambda: ask("status 429"), litellm.RateLimitError)
        # A 502: what is behind the service failed.
        fails(lambda: ask("status 500"), litellm.BadGatewayError, litellm.APIError,
              litellm.InternalServerError)  # fmt: skip
        fails(lambda: list(ask("break off", stream=True)), Exception)

    def timeouts() -> None:
        fails(lambda: ask("slow", timeout=0.3), litellm.Timeout)

    return {
        "plain": plain, "streamed": streamed, "usage": usage, "tools": tools,
        "JSON schema": schema, "n = 2": two, "errors": errors, "timeouts": timeouts,
    }  # fmt: skip


def instructor_checks(url: str) -> dict[str, Callable[[], object]]:
    import instructor
    import openai
    from instructor.core.exceptions import InstructorRetryException

    def client(mode: Any, **more: Any) -> Any:
        plain = openai.OpenAI(base_url=url, api_key="any", max_retries=0, **more)
        return instructor.from_openai(plain, mode=mode)

    def ask(text: str, mode: Any, **more: Any) -> Any:
        made = client(mode, **more)
        return made.chat.completions.create(
            model=MODEL, messages=asked(text), response_model=Place, max_retries=0
        )

    def plain() -> None:
        # Without a model to read it into, instructor gives what the client gives.
        made = client(instructor.Mode.TOOLS)
        found = made.chat.completions.create(
            model=MODEL, messages=asked("plain"), response_model=None
        )
        need(found.choices[0].message.content == "three plain words", found)

    def two() -> None:
        # It reads the first choice alone, so both are looked at where it does not read.
        made = client(instructor.Mode.TOOLS)
        found = made.chat.completions.create(
            model=MODEL, messages=asked("plain"), response_model=None, n=2
        )
        need(len(found.choices) == 2, found)
        read, raw = made.chat.completions.create_with_completion(
            model=MODEL, messages=asked("any tool"), response_model=Place, n=2
        )
        need(read.city == "Rome" and len(raw.choices) == 2, raw)

    def tools() -> None:
        need(ask("any tool", instructor.Mode.TOOLS).city == "Rome", "tools")
        need(page_program(url, "import instructor")["place"].city == "Rome", "of the page")

    def schema() -> None:
        need(ask("json", instructor.Mode.JSON_SCHEMA).city == "Rome", "schema")

    def usage() -> None:
        made = client(instructor.Mode.TOOLS)
        found, raw = made.chat.completions.create_with_completion(
            model=MODEL, messages=asked("any tool"), response_model=Place
        )
        need(found.city == "Rome" and raw.usage.total_tokens == 120, raw.usage)

    def streamed() -> None:
        made = client(instructor.Mode.TOOLS)
        parts = list(
            made.chat.completions.create_partial(
                model=MODEL, messages=asked("any tool"), response_model=Place
            )
        )
        need(parts[-1].city == "Rome", parts)

    def errors() -> None:
        kinds = (openai.APIStatusError, InstructorRetryException)
        for status in (400, 429, 500):
            fails(lambda: ask(f"status {status}", instructor.Mode.TOOLS), *kinds)  # noqa: B023

    def timeouts() -> None:
        kinds = (openai.APITimeoutError, InstructorRetryException)
        fails(lambda: ask("slow", instructor.Mode.TOOLS, timeout=0.3), *kinds)

    return {
        "plain": plain, "streamed": streamed, "usage": usage, "tools": tools,
        "JSON schema": schema, "n = 2": two, "errors": errors, "timeouts": timeouts,
    }  # fmt: skip


CLIENTS = {
    "openai": openai_checks,
    "langchain-openai": langchain_checks,
    "litellm": litellm_checks,
    "instructor": instructor_checks,
}


def main() -> None:
    name, url = sys.argv[1:]
    for what, check in CLIENTS[name](url).items():
        wrong = ""
        try:
            check()
        except Exception as error:  # noqa: BLE001  # whatever a client raises is reported
            wrong = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps({"what": what, "wrong": wrong[:300]}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
