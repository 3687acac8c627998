"""
The world is changed: each step returns an outcome, which goes back to the graph as a patch.

Comes in: decisions and the words that `explain` made of them. Goes out: API calls, and outcomes (assumed, bound,
forgotten). Two schedulers share the cluster, so every call is careful: bind by UID, read before retrying.
"""
