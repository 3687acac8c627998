"""Puts the queue in order by a plugin that walks the dependencies of the pods that wait.

Comes in: what happens to pods and groups, from `intake`. Goes out: a rank for each pod that depends on others or is
depended on, to the backlog. Within one priority a pod of a smaller rank goes first, pods without a rank last among
them; a higher priority always wins. Wired only where `queue.order` names a plugin: otherwise the queue is
kube-scheduler's and nothing here exists.

The order is made anew before a decision when the dependencies have changed, at most once in `EVERY_S`, and less often
where the queue is so long that this would take more than a `SHARE` of the loop. A plugin that fails or takes too long
has no say: the queue keeps the order that it had, the failure is counted and logged, and the plugin is asked again
after a pause that doubles.
"""

from __future__ import annotations

import logging
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

from graphsched.app import backlog, dependencies, extensions, settings
from graphsched.base.kit import clock as clocks
from graphsched.base.values import groups, keys, nodes, pods
from graphsched.decision import walking
from graphsched.explain import why

_log = logging.getLogger(__name__)

EVERY_S = 0.1
SHARE = 0.1
"""Of the loop's time, for sorting, walking and ranking together."""
PAUSE_S, PAUSE_S_MAX = 1.0, 300.0
OFFLINE_S = 10.0
"""Nobody waits for a loop where there is no cluster."""
CUT_FACTOR = 2.0
"""A plugin is cut off after so many times its budget: one that looks at its context ends by itself before."""


class Observer(typing.Protocol):
    """Is told what became of each walk."""

    def walked(self, result: str) -> None:
        """In the words of `walking.Verdict`."""
        ...


class Ordering:
    """Keeps the order."""

    def __init__(
        self,
        plugin: walking.GraphWalk,
        queue: backlog.Backlog,
        *,
        budget_s: float,
        clock: clocks.Clock,
        observer: Observer,
    ) -> None:
        self._plugin = plugin
        self._queue = queue
        self._budget_s = budget_s
        self._clock = clock
        self._observer = observer
        self._dependencies = dependencies.Dependencies()
        self._version = 0
        self._due = float("-inf")
        self._failures = 0
        self._cycle: tuple[keys.VertexKey, ...] = ()

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """Nodes have no part in it."""

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        if after is not None and after.key in self._queue:
            self._dependencies.enter(after)
        elif (sample := after or before) is not None:
            self._dependencies.leave(sample.key)

    def group(self, before: groups.Group | None, after: groups.Group | None) -> None:
        """A group came, changed or went."""
        self._dependencies.set_group(before, after)

    def arrange(self, now: float) -> None:
        """Make the order anew, if there is cause to and it is time."""
        if self._version != self._dependencies.version and now >= self._due:
            self._arrange(now)

    def _arrange(self, now: float) -> None:
        began = self._clock.monotonic()
        self._order(now)
        self._due = max(self._due, now + (self._clock.monotonic() - began) / SHARE)

    def _order(self, now: float) -> None:
        self._version, self._due = self._dependencies.version, now + EVERY_S
        waiting = [entry.pod for entry in sorted(self._queue.entries(), key=lambda entry: entry.order)]
        graph = self._dependencies.graph()
        end = self._clock.monotonic() + self._budget_s
        answer = asked(
            self._plugin,
            graph,
            waiting,
            cut_s=CUT_FACTOR * self._budget_s,
            expired=lambda: self._clock.monotonic() >= end,
        )
        self._observer.walked(answer.verdict.value)
        if answer.verdict is not walking.Verdict.DONE:
            self._failures += 1
            pause = min(PAUSE_S * 2.0 ** min(self._failures - 1, 60), PAUSE_S_MAX)
            self._due, self._version = now + pause, -1
            _log.warning(
                'the plugin "%s" has no say in the order of the queue for %g s: %s',
                self._plugin.name,
                pause,
                answer.why,
            )
            return
        self._failures = 0
        self._queue.rank({key: place for place, key in enumerate(answer.keys)}, otherwise=len(graph))
        self._tell_of_cycles(graph, answer)

    def told(self, key: keys.VertexKey) -> why.Order | None:
        """The place of a pod in the order of which the next decision is made; None for one that is not there."""
        if not self._failures and self._version != self._dependencies.version:
            # Nobody was decided on since the dependencies changed, or it was too soon to make the order anew.
            self._arrange(self._clock.monotonic())
        self.arrange(self._clock.monotonic())
        places = sorted((entry.order, entry.pod.key) for entry in self._queue.entries())
        for place, (_, other) in enumerate(places, 1):
            if other == key:
                after = tuple(each.partition("/")[2] for each in self._dependencies.before(key))
                return why.Order(self._plugin.name, place, len(places), after)
        return None

    def _tell_of_cycles(self, graph: walking.Graph, answer: walking.Answer) -> None:
        cycle = graph.cycle(walking.Context()) if len(answer.keys) < len(graph) else ()
        if cycle and cycle != self._cycle:
            way = " → ".join((*cycle, cycle[0]))
            _log.warning("pods depend on each other in a circle, so none of it goes before the rest: %s", way)
        self._cycle = cycle


def asked(
    plugin: walking.GraphWalk,
    graph: walking.Graph,
    waiting: Sequence[pods.Pod],
    *,
    cut_s: float,
    expired: Callable[[], bool],
) -> walking.Answer:
    """What the plugin says of pods that wait, given in the queue's order."""
    if not len(graph):
        return walking.Answer(walking.Verdict.DONE)
    start = [pod.key for pod in waiting if pod.key in graph]
    ctx = walking.Context(expired=expired, priorities={pod.key: pod.priority for pod in waiting if pod.priority})
    return extensions.call(plugin, graph, start, ctx, cut_s=cut_s)


def in_order(
    plugin: walking.GraphWalk, known: Iterable[groups.Group], waiting: Sequence[pods.Pod], *, budget_s: float
) -> list[pods.Pod]:
    """The pods as the live queue would hand them out that is ordered by this plugin; they come in the queue's order.

    A plugin that fails leaves them as they are, and is named in the log.
    """
    tied = dependencies.Dependencies()
    for group in known:
        tied.set_group(None, group)
    for pod in waiting:
        tied.enter(pod)
    clock = clocks.RealClock()
    end = clock.monotonic() + budget_s
    graph = tied.graph()
    answer = asked(plugin, graph, waiting, cut_s=CUT_FACTOR * budget_s, expired=lambda: clock.monotonic() >= end)
    if answer.verdict is not walking.Verdict.DONE:
        _log.warning('the plugin "%s" has no say in the order: %s', plugin.name, answer.why)
        return list(waiting)
    ranks: Mapping[keys.VertexKey, int] = {key: place for place, key in enumerate(answer.keys)}
    return sorted(waiting, key=lambda pod: (-pod.priority, ranks.get(pod.key, len(graph))))


def wired(
    options: settings.QueueSettings, queue: backlog.Backlog, observer: Observer, *, clock: clocks.Clock
) -> tuple[Ordering, ...]:
    """What orders the queue by these settings; nothing where it is kube-scheduler's order, or the plugin was refused.

    Raises:
        InputError: Nobody offers the plugin.
    """
    plugin = _chosen(options)
    if plugin is None:
        return ()
    return (Ordering(plugin, queue, budget_s=options.order_budget_seconds, clock=clock, observer=observer),)


def arranging(order: tuple[Ordering, ...]) -> Callable[[float], None]:
    """What the loop calls before it decides."""

    def arrange(now: float) -> None:
        for each in order:
            each.arrange(now)

    return arrange


def offline(config: str) -> Callable[[Iterable[groups.Group], list[pods.Pod]], list[pods.Pod]]:
    """How the live scheduler with this configuration file would order pods that all wait at once.

    Raises:
        InputError: The file is not what it should be, or nobody offers the plugin it names.
    """
    options = settings.load(config).queue
    plugin = _chosen(options)
    if plugin is None:
        return lambda _, waiting: waiting
    return lambda known, waiting: in_order(plugin, known, waiting, budget_s=OFFLINE_S)


def _chosen(options: settings.QueueSettings) -> walking.GraphWalk | None:
    if not options.order:
        return None
    found = extensions.load(options.order, place=("settings", "queue.order"))
    if isinstance(found, extensions.Refused):
        _log.error("%s; the queue keeps its own order", found)
        return None
    return found
