"""Ids, quantities, status, errors and the value structs of nodes and pods: no I/O, no clock, imported by everyone."""
