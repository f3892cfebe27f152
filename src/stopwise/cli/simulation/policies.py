"""`stopwise policies`: which policies there are."""

from __future__ import annotations

from typing import Any

from stopwise.cli.shared.run_options import AsJsonOption


def command(
    as_json: AsJsonOption = False,
) -> None:
    """List the policies, their settings and what they do.

    Settings follow the name: **uss-ucb:alpha=0.51**. Installed packages add policies through the
    entry point group *stopwise.policies*.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from stopwise.checks import StopwiseError
    from stopwise.cli.shared.output import print_json
    from stopwise.policies.registry import policy_class, policy_names, policy_settings

    rows: list[dict[str, Any]] = []
    for name in policy_names():
        try:
            policy = policy_class(name)
            settings = policy_settings(policy)
            summary = (policy.__doc__ or "").strip().split("\n")[0]
        except StopwiseError as error:  # a broken package must not hide the other policies
            settings, summary = {}, str(error)
        rows.append({"name": name, "settings": settings, "summary": summary})
    if as_json:
        print_json(rows)
        return
    table = Table("name", "settings", "what it does", box=None, pad_edge=False)
    for row in rows:
        settings_text = ", ".join(f"{key}={value}" for key, value in row["settings"].items())
        table.add_row(*(escape(text) for text in (row["name"], settings_text, row["summary"])))
    Console().print(table)
