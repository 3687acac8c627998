"""
The world comes in: every module turns one feed into graph patches.

Comes in: watches, manifests, snapshots, traces. Goes out: patches, with the stream and sequence they belong to.
The graph store takes the next step. No module here knows what a decision is, and none changes the world.
"""
