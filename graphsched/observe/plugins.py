"""The metrics of plugins.

`metrics` makes them, with its own declaring function, so that they stand in its list like all others.
"""

from __future__ import annotations

from graphsched.observe import series

RESULTS = ("done", "failed", "late")


class Plugins:
    """Counts what became of the walks of plugins."""

    def __init__(self, counter: series.Counter) -> None:
        """Declare them by this function."""
        self._walks = series.Family(
            counter(
                "graphsched_plugin_walks_total",
                "Times that the plugin which orders the queue was asked, by result: done (its order holds), failed (it "
                "raised an error, or returned what it must not) or late (it overran its time, or was cut off). After "
                "failed and late the queue keeps the order it had, and the plugin is asked again after a pause.",
                "result",
            ),
            1,
            known=[(result,) for result in RESULTS],
        )

    def walked(self, result: str) -> None:
        """A plugin was asked, with one of the `RESULTS`."""
        self._walks[result,].inc()
