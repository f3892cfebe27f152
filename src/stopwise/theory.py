"""KL, margins, the paper's bounds."""
