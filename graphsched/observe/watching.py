"""The metrics of the watches of the API server: what they deliver, and how they fail.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others. A `Watches` is
what the sources know as their observer.
"""

from __future__ import annotations

from graphsched.observe import series


class Watches:
    """Counts events, lists and failures; `resource` is a plural name."""

    def __init__(self, counter: series.Counter, gauge: series.Gauge) -> None:
        """Declare them by these functions."""
        self._watch_events = series.Family(
            counter(
                "graphsched_watch_events_total",
                "Events read from watches of the API server, by resource and type (ADDED, MODIFIED, DELETED, "
                "BOOKMARK, ERROR).",
                "resource",
                "type",
            ),
            2,
        )
        self._relists = series.Family(
            counter(
                "graphsched_watch_relists_total",
                "Times a resource was listed in full, by reason: start, expired (the server forgot our position), "
                "refused (it would not go on from there), silent (it said nothing from there), went back (its database "
                "is an older one), resync (the graph or an audit asked for it) or refresh (this replica leads now).",
                "resource",
                "reason",
            ),
            2,
        )
        self._watch_failures = series.Family(
            counter(
                "graphsched_watch_failures_total",
                "Lists and watches that ended by an error and were tried again, by resource.",
                "resource",
            ),
            1,
        )
        self._invalid = series.Family(
            counter(
                "graphsched_watch_invalid_objects_total",
                "Objects that could not be understood; the last good version of each is kept.",
                "resource",
            ),
            1,
        )
        self._waived = series.Family(
            gauge(
                "graphsched_watch_waived",
                "Whether (1) the right to follow a resource is missing and decisions are made without it, by resource: "
                "as if there were no such objects.",
                "resource",
            ),
            1,
        )
        self._absent = series.Family(
            gauge(
                "graphsched_watch_absent",
                "Whether (1) the API server knows no such resource, by resource: the custom resources that describe a "
                "network, while nobody has installed them; they are looked for again every few minutes.",
                "resource",
            ),
            1,
        )
        self._event_age = series.Family(
            gauge(
                "graphsched_watch_last_event_age_seconds",
                "Seconds since a resource's watch last delivered anything, bookmarks included (they come about once a "
                "minute).",
                "resource",
            ),
            1,
        )

    def expect(self, resource: str) -> None:
        """A resource will be followed: its failures read zero from now on."""
        self._watch_failures[resource,].inc(0)
        self._invalid[resource,].inc(0)
        self._waived[resource,].set(0)

    def watch_event(self, resource: str, kind: str, count: int = 1) -> None:
        """A watch delivered `count` events of one type."""
        self._watch_events[resource, kind].inc(count)

    def relist(self, resource: str, reason: str) -> None:
        """A resource is listed in full."""
        self._relists[resource, reason].inc()

    def watch_failure(self, resource: str) -> None:
        """A list or a watch ended by an error."""
        self._watch_failures[resource,].inc()

    def invalid(self, resource: str, count: int = 1) -> None:
        """Objects could not be understood."""
        self._invalid[resource,].inc(count)

    def waived(self, resource: str, *, waived: bool) -> None:
        """Whether decisions are made without the resource."""
        self._waived[resource,].set(float(waived))

    def absent(self, resource: str, *, absent: bool) -> None:
        """Whether the API server knows no such resource."""
        self._absent[resource,].set(float(absent))

    def set_event_age(self, resource: str, seconds: float) -> None:
        """Seconds since the watch of `resource` last delivered anything."""
        self._event_age[resource,].set(seconds)
