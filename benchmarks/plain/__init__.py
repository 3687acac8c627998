"""The plain ways: what one would write without the graph, in the best idiom of the language, with equal answers."""
