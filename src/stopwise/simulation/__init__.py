"""Simulation: streams of outputs, engines that run policies on them, and what came of it.

`run.simulate` conducts. `engines` chooses between `reference` (round by round, any policy) and
`fast` (compiled, in `kernels/`), `parallel` spreads replications over workers, `results` sums them
up; `sweep` runs grids of simulations, `replay_engine` runs policies over the rows of a log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwise.lazy import lazy_names

if TYPE_CHECKING:
    from stopwise.simulation.contextual import ContextualProblem, ContextualRun, simulate_contextual
    from stopwise.simulation.results import CurvePoint, Regret, Simulation
    from stopwise.simulation.run import simulate
    from stopwise.simulation.sweep import SweepResult, run_sweep
    from stopwise.simulation.sweep_grid import Sweep, read_sweep

_WHERE = {
    "ContextualProblem": "stopwise.simulation.contextual",
    "ContextualRun": "stopwise.simulation.contextual",
    "CurvePoint": "stopwise.simulation.results",
    "Regret": "stopwise.simulation.results",
    "Simulation": "stopwise.simulation.results",
    "Sweep": "stopwise.simulation.sweep_grid",
    "SweepResult": "stopwise.simulation.sweep",
    "read_sweep": "stopwise.simulation.sweep_grid",
    "run_sweep": "stopwise.simulation.sweep",
    "simulate": "stopwise.simulation.run",
    "simulate_contextual": "stopwise.simulation.contextual",
}

__all__ = [
    "ContextualProblem",
    "ContextualRun",
    "CurvePoint",
    "Regret",
    "Simulation",
    "Sweep",
    "SweepResult",
    "read_sweep",
    "run_sweep",
    "simulate",
    "simulate_contextual",
]

if not TYPE_CHECKING:  # a checker that saw it would take any name for a known one
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
