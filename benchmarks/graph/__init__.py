"""The graph beside plain ways of doing the same, row by row; each row has a bar that it must reach."""
