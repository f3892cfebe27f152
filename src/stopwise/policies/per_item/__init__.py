"""Rules that decide per item: after each stage, from the situation that the item is in."""
