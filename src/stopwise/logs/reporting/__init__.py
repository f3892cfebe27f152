"""A verdict in words, as JSON, and as a page with plots."""
