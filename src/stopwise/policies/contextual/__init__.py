"""Rules that know a context of the item before the first call, and fix the depth from it alone."""
