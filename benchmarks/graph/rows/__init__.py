"""One module a row, found by its being here; `frame.Row` says what it holds."""
