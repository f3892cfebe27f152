"""Compiled inner loops of the fast engine. Everything here is numba; nothing here is a new rule.

Each rule that stands here a second time is tied to its policy by tests over random evidence.
"""

from __future__ import annotations

from stopwise.simulation.kernels.cache import forget_stale_code

forget_stale_code()
