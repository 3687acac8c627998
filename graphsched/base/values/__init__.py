"""
Values without I/O: ids, quantities, status, errors, and the structs of pods and nodes.

Comes in: what the border decoded, once. Goes out: frozen values that every layer may hold. Nothing here imports another
part of graphsched.
"""
