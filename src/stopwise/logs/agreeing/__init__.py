"""A promise of agreement: the last stage's answers on nearly all items, for less cost."""
