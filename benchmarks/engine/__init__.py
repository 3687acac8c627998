"""How fast the engine decides, without an API server: the openb trace, and many equal pods on many nodes."""
