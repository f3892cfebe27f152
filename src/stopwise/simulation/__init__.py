"""Simulation: streams of outputs, engines that run policies on them, and what came of it.

`run.simulate` conducts. `engines` chooses between `reference` (round by round, any policy) and
`fast` (compiled, in `kernels/`), `parallel` spreads replications over workers, `results` sums them
up; `sweep` runs grids of simulations, `replay_engine` runs policies over the rows of a log.
"""
