"""Write the pictures of README and docs: Stopwise draws all of them from its own examples.

Run it after a change of what is drawn: `make pictures`, and look at what changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

import stopwise as sw
from stopwise.logs.reporting import plots
from stopwise.storage import write_whole

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
ERROR_RATES = {"rule": 0.30, "small model": 0.06, "large model": 0.04}
COSTS = {"rule": 0, "small model": 1, "large model": 5}


def example_analysis() -> sw.Analysis:
    """The log that comes with Stopwise."""
    return sw.analyze(sw.example_log(), **sw.example_settings())


def tutorial_cascade() -> sw.Cascade:
    """The three simulated stages of the tutorial after 2,000 messages."""

    def noisy(name: str) -> Callable[[Any], str]:
        def call(message: Any) -> str:
            number, truth = message
            wrong = random.Random(f"{name} {number}").random() < ERROR_RATES[name]
            return {"spam": "ham", "ham": "spam"}[truth] if wrong else truth

        return call

    stages = [sw.Stage(name, noisy(name), cost=COSTS[name]) for name in ERROR_RATES]
    cascade = sw.Cascade(stages, mistake_cost=40, seed=1)
    truths = random.Random(0)
    for number in range(2000):
        cascade.answer((number, truths.choice(["spam", "ham"])))
    return cascade


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
    save(analysis.plot(), "stages")
    save(tutorial_cascade().learner.report().plot(), "live")
    save(regret_curves(), "regret")


if __name__ == "__main__":
    main()
