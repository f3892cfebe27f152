"""Commands that read a prediction log."""
