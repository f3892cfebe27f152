"""For the site: pages that are made when it is built, so that they are never out of date.

- `reference/commands.md`: every command with every option, read from the command line itself.
- `reference/names.md`: every public name, with the first line of its documentation.
- a page for every notebook in `docs/notebooks`, run when the site is built.
"""

from __future__ import annotations

import base64
import html
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DOCS = Path(__file__).parent
ROOMS = ("policies", "logs", "live", "estimating", "paper", "theory", "simulation", "bench")
"""The rooms whose names are public, beside those of `stopwise` itself."""
IMPORTED = ("service.client",)
"""Rooms that the front door does not load: they are imported by their own name."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the made pages to those that were written."""
    made = {"reference/commands.md": commands_page(), "reference/names.md": names_page()}
    for path in sorted((DOCS / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebook_page(path)
        files.remove(files.src_uris[f"notebooks/{path.name}"])
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def commands_page() -> str:
    """Every command: what it does, how it is called, all arguments and options."""
    from stopwise.cli import build_app

    app: Any = typer.main.get_command(build_app())
    parts = [
        "# Commands",
        "All that `stopwise --help` and `stopwise COMMAND --help` say, in one place. A command that"
        " refuses what it was given says so in one line on standard error and ends with status 2;"
        " an interrupted one ends with 130.",
        "| command | |\n|---|---|\n"
        + "\n".join(
            f"| [`stopwise {name}`](#{name}) | {_first_line(command.help)} |"
            for name, command in app.commands.items()
        ),
    ]
    for name, command in app.commands.items():
        arguments = [_names(each)[0] for each in command.params if _is_argument(each)]
        usage = " ".join(["stopwise", name, *arguments, "[OPTIONS]"])
        parts += [f"## {name}", f"```console\n$ {usage}\n```", inspect.cleandoc(command.help)]
        rows = [_option_row(each) for each in command.params]
        parts.append("| option | meaning | usual |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _is_argument(option: Any) -> bool:
    return not option.opts[0].startswith("-")


def _names(option: Any) -> list[str]:
    if _is_argument(option):
        return [option.metavar or option.name.upper()]
    return [*option.opts, *option.secondary_opts]


def _option_row(option: Any) -> str:
    usual = option.default
    if option.required:
        shown = "must be given"
    else:
        plain = isinstance(usual, (str, int, float)) and not isinstance(usual, bool)
        shown = f"`{usual}`" if plain else ""
    text = (option.help or "").replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in _names(option))} | {text} | {shown} |"


def names_page() -> str:
    """Every public name of the package and of its rooms, with its first line."""
    parts = [
        "# Every public name",
        "`import stopwise as sw` is enough: each name that begins with `sw` loads when it is first"
        " used. The others are imported by the name that is shown.",
    ]
    pages = pages_by_name()
    for package in packages():
        own = package.removeprefix("stopwise.") in IMPORTED
        title = (package if own else package.replace("stopwise", "sw", 1)) + "."
        module = importlib.import_module(package)
        rows = []
        for name in sorted(public_names(package), key=str.lower):
            value = getattr(module, name)
            plain = isinstance(value, (str, int, float, type(None)))
            line = "" if plain else _first_line(inspect.getdoc(value))
            page = pages.get(identity(package, name, value))
            shown = f"[`{title}{name}`]({page})" if page else f"`{title}{name}`"
            rows.append(f"| {shown} | {line} |")
        parts += [f"## {package}", "| name | |\n|---|---|\n" + "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def packages() -> list[str]:
    """All packages whose names are public."""
    return ["stopwise", *(f"stopwise.{room}" for room in (*ROOMS, *IMPORTED))]


def public_names(package: str) -> list[str]:
    """The names that a package offers: its `__all__`, or what it defines without an underscore."""
    module = importlib.import_module(package)
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and value.__module__ == package
    ]


def documented(folder: Path = DOCS / "reference") -> dict[str, str]:
    """Every object that a written reference page shows, and the page."""
    return {
        name: page.name
        for page in sorted(folder.glob("*.md"))
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }


def pages_by_name() -> dict[object, str]:
    """Every documented object, by its identity, and the page."""
    pages: dict[object, str] = {}
    for name, page in documented().items():
        package, _, last = name.rpartition(".")
        try:
            value = getattr(importlib.import_module(package), last)
        except (ImportError, AttributeError):
            continue
        if inspect.ismodule(value):  # a page of a whole module shows all its public names
            for each in public_names(name):
                pages[identity(name, each, getattr(value, each))] = page
        pages[identity(package, last, value)] = page
    return pages


def identity(package: str, name: str, value: Any) -> object:
    """What is the same for one object under all its names."""
    own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return own if all(own) else getattr(value, "__name__", f"{package}.{name}")


def _first_line(text: str | None) -> str:
    line = inspect.cleandoc(text or "").split("\n\n")[0].replace("\n", " ")
    return line.replace("|", "\\|")


def notebook_page(path: Path) -> str:
    """A notebook, run from top to bottom, as a page; a cell that fails stops the build."""
    notebook = run_notebook(path)
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown for output in cell.outputs if (shown := _output(output))]
    parts.append(f"*This page is the notebook `{path.name}`, run when the site was built.*")
    return "\n\n".join(parts) + "\n"


def run_notebook(path: Path) -> Any:
    """The notebook with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(path.parent))
    return notebook


def _output(output: Any) -> str:
    """One output in the richest form that a page can show."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```" if output.name == "stdout" else ""
    data = output.get("data", {})
    if "text/html" in data:
        # No blank lines: they would end the block of HTML.
        return '<div class="output">' + re.sub(r"\n\s*\n", "\n", data["text/html"]) + "</div>"
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            text = data[kind]
            if kind == "image/svg+xml":
                text = base64.b64encode(text.encode()).decode()
            return f'<img alt="plot" src="data:{kind};base64,{text.strip()}">'
    return f"<pre>{html.escape(data['text/plain'])}</pre>" if "text/plain" in data else ""
