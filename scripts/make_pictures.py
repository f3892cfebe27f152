"""Write the pictures of README and docs: Stopwise draws all of them from its own examples.

Run it after a change of what is drawn: `make pictures`, and look at what changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

import stopwise as sw
from stopwise.logs.reporting import plots
from stopwise.storage import write_whole

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"


def example_analysis() -> sw.Analysis:
    """The log that comes with Stopwise."""
    return sw.analyze(sw.example_log(), **sw.example_settings())


def digits_frontier() -> str:
    """The drawing that the code of the per-item tutorial makes."""
    page = (DOCS / "per-item-tutorial.md").read_text(encoding="utf-8")
    code = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    names: dict[str, Any] = {}
    exec("\n".join(code[:3]), names)
    picture: str = names["picture"]
    return picture


def gallery_learner() -> sw.Learner:
    """The learner that the first code of the engineers' gallery leaves behind."""
    page = (DOCS / "gallery" / "engineer.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    learner: sw.Learner = names["learner"]
    return learner


def regret_curves() -> Axes:
    """Four policies on an instance of the paper."""
    problem = sw.paper.problem("pima", 3)
    axes = None
    for policy in ("uss-ucb", "uss-ts", "uss-ts-jump", "uss-voi"):
        result = sw.simulate(problem, policy, horizon=10_000, replications=500, seed=1)
        axes = result.plot(axes)
    assert axes is not None
    axes.set_title("PIMA instance 3 of the paper: lower is better", fontsize="medium")
    return axes


def alone(svg: str) -> str:
    """A drawing of a report as a file of its own: its name space, a font and a white ground."""
    start, inside = svg.split(">", 1)
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    name_space = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"'
    return f"{start} {name_space}>{ground}{inside}\n"


def save(axes: Axes, name: str) -> None:
    """Write axes as SVG, without the date and with no more digits than the eye sees."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None})


def main() -> None:
    """Draw everything."""
    mpl.use("agg")
    # Text stays text and ids stay the same, so that a picture changes only if its content does.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "stopwise", "font.size": 10})
    PICTURES.mkdir(exist_ok=True)
    analysis = example_analysis()
    write_whole(PICTURES / "verdict.svg", alone(plots.strip(analysis)))
    write_whole(PICTURES / "ladder.svg", alone(plots.ladder(analysis.verdict, 1)))
    write_whole(PICTURES / "per-item.svg", alone(digits_frontier()))
    save(analysis.plot(), "stages")
    save(gallery_learner().report().plot(), "live")
    save(regret_curves(), "regret")


if __name__ == "__main__":
    main()
