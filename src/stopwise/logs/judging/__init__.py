"""From counts to a verdict: what is certain, what is not knowable, what to be warned of."""
