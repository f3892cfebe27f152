"""Small pieces of HTML for the report: escaping, tables, figures, and the page around them."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { --ink: #1d2329; --soft: #5b6670; --line: #dfe3e7; --wash: #f6f7f9; --good: #00664a;
  --bad: #9c3d00; --accent: #0060a0; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; line-height: 1.55;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
p, ul, ol { max-width: 46rem; margin: .5rem 0; }
li { margin: .25rem 0; }
.lead { color: var(--soft); font-size: 1.05rem; margin-bottom: 1.2rem; }
nav { font-size: .92rem; color: var(--soft); margin: 1rem 0 0; }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 2px; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums;
  min-width: 60%; }
caption { text-align: left; color: var(--soft); padding: 0 0 .4rem; font-size: .875rem; }
th, td { padding: .3rem .65rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { white-space: normal; font-weight: 600; color: var(--soft); background: var(--wash);
  vertical-align: bottom; }
th.text, td.text { text-align: left; }
td.wide { white-space: normal; min-width: 16rem; }
tr:hover td { background: var(--wash); }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0 .5rem; }
figure img { width: 100%; height: auto; display: block; }
figure.narrow img { max-width: 44rem; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 46rem; margin-top: .3rem; }
.doubt { border-left: 3px solid #d08700; background: #fdf8ee; padding: .6rem 1rem; margin: .8rem 0;
  max-width: 46rem; }
code, pre { font: .875em ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { background: var(--wash); padding: .8rem 1rem; overflow-x: auto; border-radius: 4px; }
.formula { font-family: Georgia, "DejaVu Serif", serif; font-style: italic; }
@media print { main { max-width: none; padding: 0; } tr:hover td { background: none; } }
"""


class Raw(str):
    """Text that is HTML already and must not be escaped again."""


def html(value: object) -> str:
    """Escape a value unless it is `Raw`.

    >>> html("a < b"), html(Raw("<b>a</b>"))
    ('a &lt; b', '<b>a</b>')
    """
    return str(value) if isinstance(value, Raw) else escape(str(value), quote=True)


def mark(good: bool, text: str) -> Raw:
    """Coloured text with a sign, so that colour is never all that tells them apart.

    >>> mark(True, "agrees")
    '<span class="good">✓ agrees</span>'
    """
    sign, kind = ("✓", "good") if good else ("✗", "bad")
    return Raw(f'<span class="{kind}">{sign} {escape(text)}</span>')


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, text: Iterable[int] = (0,),
    wide: Iterable[int] = (), caption: str = "",
) -> str:  # fmt: skip
    """A table; the columns with these numbers hold text and are set to the left."""
    left, broad = set(text), set(wide)

    def classes(at: int) -> str:
        names = [name for name, chosen in (("text", left), ("wide", broad)) if at in chosen]
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(f"<th{classes(at)}>{html(name)}</th>" for at, name in enumerate(columns))
    body = "\n".join(
        "<tr>" + "".join(f"<td{classes(at)}>{html(cell)}</td>" for at, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )  # fmt: skip
    title = f"<caption>{html(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def image(svg: bytes, alt: str, caption: str, *, narrow: bool = False) -> str:
    """A figure with its picture inside the page."""
    data = base64.b64encode(svg).decode()
    kind = ' class="narrow"' if narrow else ""
    return (
        f'<figure{kind}><img alt="{html(alt)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{html(caption)}</figcaption></figure>"
    )


def show_regret(value: float) -> str:
    """A regret, with a digit after the point where that says something.

    >>> show_regret(123.44), show_regret(12345.6), show_regret(math.inf)
    ('123.4', '12,346', '∞')
    """
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def show_margin(value: float) -> str:
    """A margin with its sign; infinite where no arm is beyond the optimal one.

    >>> show_margin(0.01), show_margin(math.inf)
    ('+0.0100', '∞')
    """
    return "∞" if math.isinf(value) else f"{value:+.4f}"


def sign(flag: bool) -> str:
    """A tick or a cross.

    >>> sign(True)
    '✓'
    """
    return "✓" if flag else "✗"


def whole_page(title: str, body: str) -> str:
    """The page: nothing in it is loaded from elsewhere."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
