"""The graph as people look at it: a map of some layers, found by name, told as a tree, DOT, JSON or a picture."""
