"""Settling with few labels what is not knowable without any."""
