"""Every metric of the program, in one place.

Comes in: finished values, reported by the loop through the methods of `Metrics`. Goes out: the text that `/metrics`
serves, and `Metrics.declared`, from which docs/metrics.md is written. Where a number means what it means in
kube-scheduler it has kube-scheduler's name, labels and buckets, so existing dashboards and alerts keep working; what
only this program has is called `graphsched_*`.

Invariants: label values are closed or bounded sets, never the name of a pod, node or job; the hot path only touches
children that are held already (no `labels()` for each pod); what can be read when somebody asks (sizes, ages) is set
by refreshers at the scrape and costs nothing between scrapes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

import prometheus_client
from prometheus_client import registry as registries

from graphsched.observe import audits, election, following, layers, logs, modes, plugins, policies, series, watching

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Refresher = Callable[[], None]
"""Called before a scrape; reads sizes and ages and hands them to the setters of `Metrics`."""


class Result(enum.StrEnum):
    """How a scheduling attempt ended, in kube-scheduler's words."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


ATTEMPT_BUCKETS = series.exponential(0.001, 2, 15)
SLI_BUCKETS = series.exponential(0.01, 2, 20)
ATTEMPTS_BUCKETS = (1.0, 2.0, 4.0, 8.0, 16.0)
DECISION_BUCKETS = series.exponential(0.00002, 2, 16)
"""20 µs to 0.66 s: a decision from the class cache takes tens of microseconds, the loop's budget is 50 ms."""
BIND_BUCKETS = series.exponential(0.001, 2, 15)
LAG_BUCKETS = series.exponential(0.001, 2, 12)


class Metrics:
    """The metrics, and what the loop calls to report.

    Attributes:
        registry: Holds exactly these metrics and the process's own.
        declared: All metrics in order of declaration.
        election: Those of the election of a leader.
        profile: The scheduler name that `profile` labels carry.
        layers: Those of links and of how full nodes are.
        modes: Those of the modes that leave the binding to another scheduler.
        watches: Those about the watches of the API server.
        policies: Those of the policy layer.
        audits: Those about comparing the graph with the cluster.
        plugins: Those about plugins that order the queue.
        following: Those about others that copy the graph.
    """

    def __init__(self, *, profile: str, version: str) -> None:
        # Creation times double the size of a scrape and no dashboard of the ecosystem reads them.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registries.CollectorRegistry(auto_describe=True)
        self.declared: list[series.Declared] = []
        self.profile = profile
        self._refreshers: list[Refresher] = []
        self._declare_attempts()
        self._declare_queue()
        self._declare_graph()
        self._declare_decision()
        self._declare_actions()
        self.plugins = plugins.Plugins(self._counter)
        self._declare_neighbours()
        self.modes = modes.Modes(self._counter, self._gauge, self._histogram)
        self.layers = layers.Layers(self._counter, self._gauge)
        self.policies = policies.Policies(self._counter, self._gauge)
        self._declare_watches()
        self.election = election.Election(self._counter, self._gauge)
        self.following = following.Following(self._counter, self._gauge)
        self._declare_process(version)
        prometheus_client.ProcessCollector(registry=self.registry)

    # ------------------------------------------------------------------------------------------ declarations

    def _counter(self, name: str, text: str, *labels: str) -> prometheus_client.Counter:
        self.declared.append(series.Declared(name, "counter", labels, text))
        return prometheus_client.Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> prometheus_client.Gauge:
        self.declared.append(series.Declared(name, "gauge", labels, text))
        return prometheus_client.Gauge(name, text, labels, registry=self.registry)

    def _histogram(
        self,
        name: str,
        text: str,
        *labels: str,
        buckets: Sequence[float],
    ) -> prometheus_client.Histogram:
        self.declared.append(series.Declared(name, "histogram", labels, text))
        return prometheus_client.Histogram(name, text, labels, registry=self.registry, buckets=buckets)

    def _declare_attempts(self) -> None:
        attempts = self._counter(
            "scheduler_schedule_attempts_total",
            "Attempts to place a pod, by how they ended: scheduled, unschedulable (no node fits) or error (something "
            "went wrong inside or at the API server).",
            "result",
            "profile",
        )
        durations = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time from taking a pod from the queue to the end of the attempt, binding included where one was made.",
            "result",
            "profile",
            buckets=ATTEMPT_BUCKETS,
        )
        self._attempts = {
            result: (attempts.labels(result, self.profile), durations.labels(result, self.profile)) for result in Result
        }
        self._algorithm = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Time spent deciding where a pod goes, without the queue before and the binding after.",
            buckets=ATTEMPT_BUCKETS,
        )
        sli = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time a pod waited from entering the queue until it was bound, by the number of attempts it took (15+ "
            "from fifteen on). Time behind scheduling gates does not count.",
            "attempts",
            buckets=SLI_BUCKETS,
        )
        self._sli = [sli.labels(str(number) if number < 15 else "15+") for number in range(1, 16)]
        self._pod_attempts = self._histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts a pod needed until it was bound.",
            buckets=ATTEMPTS_BUCKETS,
        )

    def _declare_queue(self) -> None:
        pending = self._gauge(
            "scheduler_pending_pods",
            "Pods that wait for a node: active (next in line), backoff (waiting out a penalty), unschedulable (waiting "
            "for a change that may help) or gated (held by a scheduling gate).",
            "queue",
        )
        self._pending = {queue: pending.labels(queue) for queue in ("active", "backoff", "unschedulable", "gated")}
        self._incoming = series.Family(
            self._counter(
                "scheduler_queue_incoming_pods_total",
                "Pods put into a queue, by queue and by the event that put them there.",
                "queue",
                "event",
            ),
            2,
        )
        self._unschedulable = series.Family(
            self._gauge(
                "scheduler_unschedulable_pods",
                "Pods that found no node, by the check that refused them; one pod counts under every check that did.",
                "plugin",
                "profile",
            ),
            2,
        )

    def _declare_graph(self) -> None:
        cache = self._gauge(
            "scheduler_cache_size",
            "What the scheduler remembers of the cluster: nodes, pods (bound and pending) and assumed_pods (decided "
            "here, not yet confirmed by the cluster).",
            "type",
        )
        self._cache = {kind: cache.labels(kind) for kind in ("nodes", "pods", "assumed_pods")}
        self._patches = series.Family(
            self._counter(
                "graphsched_graph_patches_total",
                "Changes offered to the graph, by source and outcome: applied, repeated (seen before, no effect) or "
                "refused (out of order, so that its source is asked for everything again, or with objects that the "
                "graph can not hold; the log names them, and the rest is applied).",
                "source",
                "outcome",
            ),
            2,
        )
        self._rows = series.Family(
            self._counter(
                "graphsched_graph_rows_total",
                "Vertices and edges set or removed by the changes that were applied, by source.",
                "source",
            ),
            1,
        )
        self._generation = self._gauge(
            "graphsched_graph_generation",
            "Version of the graph: every change that had an effect adds one.",
        )
        self._vertices = series.Family(
            self._gauge(
                "graphsched_graph_vertices", "Vertices of the graph, by kind (node, pod, domain, ...).", "kind"
            ),
            1,
        )
        self._edges = series.Family(
            self._gauge("graphsched_graph_edges", "Edges of the graph, by kind (contains, link, runs, ...).", "kind"),
            1,
        )

    def _declare_decision(self) -> None:
        self._decision_seconds = self._histogram(
            "graphsched_decision_duration_seconds",
            "Time to decide one pod; the same as the algorithm duration, in buckets fine enough to see it.",
            buckets=DECISION_BUCKETS,
        )
        self.predicate_calls = series.Total(
            self._counter(
                "graphsched_walk_predicate_calls_total",
                "Checks evaluated by the walks through the constraint graph; each one covers all nodes at once.",
            )
        )
        self._classes = self._gauge(
            "graphsched_class_cache_classes",
            "Pod classes held: pods that are alike to the scheduler share one, with its results for every node.",
        )
        self.class_hits = series.Total(
            self._counter(
                "graphsched_class_cache_hits_total",
                "Decisions that found their pod class up to date, or had to mend only the nodes that had changed.",
            )
        )
        self.class_rebuilds = series.Total(
            self._counter(
                "graphsched_class_cache_rebuilds_total",
                "Times a class was computed for every node: on its first use, or when too much had changed to mend it.",
            )
        )
        self.class_dirty_rows = series.Total(
            self._counter(
                "graphsched_class_cache_dirty_rows_total",
                "Nodes whose result was computed, whether in a rebuild or because they had changed since the last use.",
            )
        )
        self.class_evictions = series.Total(
            self._counter(
                "graphsched_class_cache_evictions_total",
                "Classes dropped to keep the cache within its bound; many mean that pods have little in common.",
            )
        )

    def _declare_actions(self) -> None:
        self._binds = series.Family(
            self._counter(
                "graphsched_bind_total",
                "Decisions carried out, by outcome: bound, gone (the pod was deleted), conflict (it was bound or "
                "replaced meanwhile), refused (admission said no), failed (no answer, or an error), moved (not sent, "
                "as just before that no candidate took the pod any more), abandoned (this replica ceased to lead "
                "meanwhile), advised (mode advise: tied to its node for another scheduler) or noted (mode shadow: "
                "nothing was sent).",
                "outcome",
            ),
            1,
            known=_each("bound", "gone", "conflict", "refused", "failed", "moved"),
        )
        self._bind_seconds = self._histogram(
            "graphsched_bind_duration_seconds",
            "Time from handing a binding to the dispatcher until its outcome was known, waiting for a slot included.",
            buckets=BIND_BUCKETS,
        )
        self._binds_inflight = self._gauge(
            "graphsched_bind_inflight",
            "Bindings whose outcome is not known yet.",
        )
        self._events = series.Family(
            self._counter(
                "graphsched_events_total",
                "Kubernetes events about pods, by outcome: written, merged (added to an earlier one's series), dropped "
                "(rate limit or full queue) or failed (the API server did not take it).",
                "outcome",
            ),
            1,
            known=_each("written", "merged", "dropped", "failed"),
        )
        self._conditions = series.Family(
            self._counter(
                "graphsched_conditions_total",
                "PodScheduled conditions, by outcome: written, unchanged (already said so) or failed.",
                "outcome",
            ),
            1,
            known=_each("written", "unchanged", "failed"),
        )

    def _declare_watches(self) -> None:
        self.watches = watching.Watches(self._counter, self._gauge)
        self.audits = audits.Audits(self._counter, self._gauge)
        self._inbox_rows = self._gauge(
            "graphsched_inbox_rows",
            "Changes that wait to be applied to the graph.",
        )
        self.inbox_waits = series.Total(
            self._counter(
                "graphsched_inbox_overflow_waits_total",
                "Times a watch had to wait because the inbox was full: the loop is slower than the cluster's changes.",
            )
        )

    def _declare_neighbours(self) -> None:
        self._conflicts = series.Family(
            self._counter(
                "graphsched_conflicts_total",
                "Conflicts with other schedulers, by kind: moved (just before the binding the node no longer took the "
                "pod), bound (somebody else bound the pod first), changed (the pod was gated meanwhile), overcommitted "
                "(a pod of ours and one of others were bound to a node that has not enough for both) or rejected (the "
                "node's kubelet turned the pod away). /debug/conflicts tells who raced with whom.",
                "kind",
            ),
            1,
            known=_each("moved", "bound", "changed", "overcommitted", "rejected"),
        )
        self._rejections = series.Family(
            self._counter(
                "graphsched_rejections_total",
                "Pods of ours that a kubelet turned away, by what it was short of (cpu, memory, storage, pods, "
                "extended) or what else it objected to (admission, topology, node, ports, pressure). The node looks "
                "worse to decisions for a while.",
                "reason",
            ),
            1,
            known=_each(
                "cpu", "memory", "storage", "pods", "extended", "admission", "topology", "node", "ports", "pressure"
            ),
        )
        leaks = self._gauge(
            "graphsched_pool_leaks",
            "In mode exclusive, what makes the pool leak: open_nodes (nodes of the pool without its taint) and guests "
            "(pods of other schedulers there that belong to no DaemonSet). Anything but zero means races.",
            "kind",
        )
        self._leaks = {kind: leaks.labels(kind) for kind in ("open_nodes", "guests")}

    def _declare_process(self, version: str) -> None:
        self._loop_lag = self._histogram(
            "graphsched_loop_lag_seconds",
            "How late a timer of the main loop fired: the longest a pod or a health check had to wait for it.",
            buckets=LAG_BUCKETS,
        )
        refused = self._counter(
            "graphsched_http_refused_total",
            "HTTP requests turned away, by reason: unauthenticated (no bearer token that the API server takes), "
            "forbidden (its owner may not get the path), unchecked (the API server gave no answer), busy, or body.",
            "reason",
        )
        self.http_refused = series.Family(
            refused, 1, known=_each("unauthenticated", "forbidden", "unchecked", "busy", "body")
        )
        self._log_lines_lost = self._counter(
            "graphsched_log_lines_lost_total",
            "Log lines that could not be written, as where the disk is full.",
        )
        self._log_lines_told = logs.Handler.lost
        self._gauge(
            "graphsched_build_info",
            "Always 1; its labels tell which version runs.",
            "version",
        ).labels(version).set(1)

    # ------------------------------------------------------------------------------------------------ reports

    def expect(self, resource: str) -> None:
        """A resource will be followed: what may go wrong with it reads zero from now on."""
        self.watches.expect(resource)
        self._patches[f"watch/{resource}", "refused"].inc(0)

    def attempt(self, result: Result, seconds: float) -> None:
        """An attempt ended; `seconds` from the pod's leaving the queue."""
        count, duration = self._attempts[result]
        count.inc()
        duration.observe(seconds)

    def decision(self, seconds: float) -> None:
        """A decision was made in `seconds`."""
        self._algorithm.observe(seconds)
        self._decision_seconds.observe(seconds)

    def scheduled(self, *, attempts: int, waited_s: float) -> None:
        """A pod was bound after `attempts` (at least 1) and `waited_s` in the queue."""
        self._sli[min(attempts, 15) - 1].observe(waited_s)
        self._pod_attempts.observe(attempts)

    def queue_incoming(self, queue: str, event: str, count: int = 1) -> None:
        """`count` pods entered `queue` (active, backoff, unschedulable, gated) because of `event`."""
        self._incoming[queue, event].inc(count)

    def patch(self, source: str, outcome: str, rows: int = 0) -> None:
        """The graph was offered a patch; `outcome` is applied, repeated or refused."""
        self._patches[source, outcome].inc()
        if rows:
            self._rows[source,].inc(rows)

    def bind(self, outcome: str, seconds: float) -> None:
        """A binding's outcome is known, `seconds` after it was asked for."""
        self._binds[outcome,].inc()
        self._bind_seconds.observe(seconds)

    def conflict(self, kind: str) -> None:
        """Another scheduler and we were in each other's way."""
        self._conflicts[kind,].inc()

    def rejection(self, reason: str) -> None:
        """A kubelet turned a pod of ours away."""
        self._rejections[reason,].inc()

    def event(self, outcome: str, count: int = 1) -> None:
        """An event about a pod was written, merged, dropped, or failed."""
        self._events[outcome,].inc(count)

    def condition(self, outcome: str) -> None:
        """A PodScheduled condition was written, unchanged, or failed."""
        self._conditions[outcome,].inc()

    def loop_lag(self, seconds: float) -> None:
        """A timer of the main loop fired `seconds` late."""
        self._loop_lag.observe(seconds)

    # -------------------------------------------------------------------------------- set when somebody asks

    def refresh_with(self, refresher: Refresher) -> None:
        """Call `refresher` before every scrape; it calls the setters below."""
        self._refreshers.append(refresher)

    def set_pending(self, pods: Mapping[str, int]) -> None:
        """Pods by queue; a queue left out holds none."""
        for queue, gauge in self._pending.items():
            gauge.set(pods.get(queue, 0))

    def set_unschedulable(self, pods: Mapping[str, int]) -> None:
        """Pending pods by the plugin that refused them; a plugin left out refuses none any more."""
        for plugin, _ in self._unschedulable.values():
            if plugin not in pods:
                self._unschedulable[plugin, self.profile].set(0)
        for plugin, count in pods.items():
            self._unschedulable[plugin, self.profile].set(count)

    def set_cache(self, *, nodes: int, pods: int, assumed: int) -> None:
        """Sizes of what the graph holds."""
        self._cache["nodes"].set(nodes)
        self._cache["pods"].set(pods)
        self._cache["assumed_pods"].set(assumed)

    def set_graph(self, *, generation: int, vertices: Mapping[str, int], edges: Mapping[str, int]) -> None:
        """The graph's version, and its vertices and edges by kind."""
        self._generation.set(generation)
        for kind, count in vertices.items():
            self._vertices[kind,].set(count)
        for kind, count in edges.items():
            self._edges[kind,].set(count)

    def set_classes(self, count: int) -> None:
        """Number of pod classes held."""
        self._classes.set(count)

    def set_leaks(self, *, open_nodes: int, guests: int) -> None:
        """What makes the pool leak."""
        self._leaks["open_nodes"].set(open_nodes)
        self._leaks["guests"].set(guests)

    def set_inflight(self, count: int) -> None:
        """Bindings under way."""
        self._binds_inflight.set(count)

    def set_inbox(self, rows: int) -> None:
        """Rows that wait to be applied."""
        self._inbox_rows.set(rows)

    def render(self) -> bytes:
        """The text of a scrape, `CONTENT_TYPE`, freshly read."""
        for refresher in self._refreshers:
            refresher()
        lost = logs.Handler.lost
        self._log_lines_lost.inc(lost - self._log_lines_told)
        self._log_lines_told = lost
        return prometheus_client.generate_latest(self.registry)


def _each(*values: str) -> list[tuple[str, ...]]:
    """The values of a family's only label."""
    return [(value,) for value in values]
