"""
graphsched: a secondary scheduler for Kubernetes that decides on a graph.

The data goes one way round, and only `action` changes the world::

    sources --patches--> graph --view--> decision --Decision--> action --API calls--> cluster
       ^                   ^                                       |
       +---- the world     +------- outcome, as a patch -----------+     explain, observe: look on

- `sources` turns each feed (watches, traces, manifests) into graph patches.
- `graph` is what is: pure, one writer, `store.apply(patch)` the only door.
- `decision` is what should be: pure; time, seed and budgets come in as arguments, a refusal is a value.
- `action` changes the world; its outcomes come back as patches.
- `explain` and `observe` read finished values and never steer.
- `app` wires the parts to programs; `base` holds the values and the thin shells round foreign code.

The layering is a contract that `make check` runs: app / sources|action|explain|observe / decision / graph / base.
"""

from importlib import metadata

__version__ = metadata.version("graphsched")
