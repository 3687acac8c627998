"""
The composition root: the loop, the queue and the programs.

Comes in: settings and the command line. It wires sources, graph, decision and action together, and hands the text that
`explain` made to `action`. Every strategy is chosen here, once; nothing below asks which one is on.
"""
