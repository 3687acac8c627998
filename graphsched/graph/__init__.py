"""
What is: the cluster as one layered graph, changed through `store.apply(patch)` alone.

Comes in: patches. Goes out: views that a decision may read. Pure: no await, no clock, no logger, no client; from
`base` only `base.values`. Identity is a key, never an index that rustworkx may recycle.
"""
