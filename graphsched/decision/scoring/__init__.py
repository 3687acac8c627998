"""One module per kind of score, and their weighted sum."""
