"""One module per kind of constraint, and the walk that evaluates them in topological order."""
