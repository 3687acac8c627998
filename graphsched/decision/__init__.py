"""
What should be: `decide(view, pod, ctx) -> Decision`, a pure function of its arguments.

Comes in: a view of one generation, a pod, and a context with time, seed and budgets. Goes out: a value that holds the
choice, or the refusal with its reasons. `app` hands it to `action`. A refusal is a value, never an exception.
"""
