"""The policy layer: rules about pods and nodes, compiled once and asked in vectors."""
