"""Simulation: streams of outputs, engines that run policies on them, and what came of it."""
