"""From evidence to a depth: random numbers, budgets, the draw itself."""
