"""The panels of the Grafana dashboard, in the order in which an operator reads them.

Is it working, do pods get their nodes, and only then why not. `dashboard` lays them out.
"""

import dataclasses

JOB = 'job=~"$job"'
SPAN = "[$__rate_interval]"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture.

    Attributes:
        title: What it answers.
        about: What to make of it, shown on request.
        queries: Legend → expression.
        unit: Of the values, in Grafana's words.
        stat: A number instead of a curve.
        warn: From this value on a number is coloured; None for never.
        full: Stacked, so that the whole is what is read first.
    """

    title: str
    about: str
    queries: dict[str, str]
    unit: str = "short"
    stat: bool = False
    warn: float | None = None
    full: bool = False


def rate(name: str, labels: str = "", *, by: str = "") -> str:
    """Growth a second of a counter, over all replicas."""
    chosen = f"{JOB}, {labels}" if labels else JOB
    over = f" by ({by})" if by else ""
    return f"sum{over} (rate({name}{{{chosen}}}{SPAN}))"


def quantile(share: float, name: str, *, by: str = "") -> str:
    """A quantile of a histogram, over all replicas."""
    over = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({over}) (rate({name}_bucket{{{JOB}}}{SPAN})))"


def quantiles(name: str) -> dict[str, str]:
    """The usual three."""
    return {f"p{share * 100:.0f}": quantile(share, name) for share in (0.5, 0.9, 0.99)}


def largest(name: str, *, by: str) -> str:
    """Each replica follows the whole cluster: the largest of what they say, not the sum."""
    return f"max by ({by}) ({name}{{{JOB}}})"


def deciding(name: str, labels: str = "") -> str:
    """A series of those that decide: a standby's queue holds what it would decide on."""
    chosen = f"{JOB}, {labels}" if labels else JOB
    return f"{name}{{{chosen}}} unless on (job, instance) leader_election_master_status{{{JOB}}} == 0"


_ACTIVE, _REFUSED = 'queue="active"', 'queue="unschedulable"'
_BAD = rate("graphsched_bind_total", 'outcome=~"refused|failed"')

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Is it working?",
        (
            Panel(
                title="Replicas",
                about="Processes that answer scrapes, and how many of them lead: one, where there is a lease.",
                queries={
                    "there": f"count(graphsched_build_info{{{JOB}}})",
                    "leading": f"sum(leader_election_master_status{{{JOB}}})",
                },
                stat=True,
            ),
            Panel(
                title="Next in line",
                about="Pods that could be decided on now. More than a few for long means that deciding is too slow.",
                queries={"": f"max({deciding('scheduler_pending_pods', _ACTIVE)})"},
                stat=True,
                warn=100,
            ),
            Panel(
                title="Without a node",
                about="Pods that no node fits. They wait for a change of the cluster.",
                queries={"": f"max({deciding('scheduler_pending_pods', _REFUSED)})"},
                stat=True,
            ),
            Panel(
                title="Bound a second",
                about="Pods that got their node.",
                queries={"": rate("graphsched_bind_total", 'outcome="bound"')},
                stat=True,
            ),
            Panel(
                title="Bindings that failed",
                about="Share of bindings that the API server refused or did not answer.",
                queries={"": _BAD + " / (" + rate("graphsched_bind_total") + " > 0)"},
                unit="percentunit",
                stat=True,
                warn=0.05,
            ),
            Panel(
                title="Silent for",
                about="The watch that has been silent for longest. A word comes every minute as a rule.",
                queries={"": f"max(graphsched_watch_last_event_age_seconds{{{JOB}}})"},
                unit="s",
                stat=True,
                warn=180,
            ),
            Panel(
                title="Audit differences",
                about="Anything but zero is a bug.",
                queries={"": f"sum(graphsched_audit_differences_total{{{JOB}}})"},
                stat=True,
                warn=1,
            ),
            Panel(
                title="Versions",
                about="More than one means that a rollout is under way, or stuck.",
                queries={"{{version}}": f"count by (version) (graphsched_build_info{{{JOB}}})"},
                stat=True,
            ),
        ),
    ),
    (
        "Do pods get their nodes?",
        (
            Panel(
                title="Pods that wait",
                about="By what they wait for: their turn, the end of a penalty, a change of the cluster, a gate.",
                queries={"{{queue}}": f"max by (queue) ({deciding('scheduler_pending_pods')})"},
                full=True,
            ),
            Panel(
                title="Attempts a second",
                about="By how they ended. Many that find no node beside few that do: the cluster is full.",
                queries={"{{result}}": rate("scheduler_schedule_attempts_total", by="result")},
            ),
            Panel(
                title="From the queue to the node",
                about="How long pods waited that were bound, all their attempts together.",
                queries=quantiles("scheduler_pod_scheduling_sli_duration_seconds"),
                unit="s",
            ),
            Panel(
                title="What refuses them",
                about="Pods without a node, by the check that refuses them; one pod may count several times.",
                queries={"{{plugin}}": f"max by (plugin) ({deciding('scheduler_unschedulable_pods')})"},
            ),
            Panel(
                title="Attempts a pod needed",
                about="Most need one. More means that the cluster changes under the decisions.",
                queries=quantiles("scheduler_pod_scheduling_attempts"),
            ),
            Panel(
                title="What puts pods into queues",
                about="Events a second, by what happened in the cluster.",
                queries={"{{queue}}: {{event}}": rate("scheduler_queue_incoming_pods_total", by="queue, event")},
            ),
        ),
    ),
    (
        "Bindings",
        (
            Panel(
                title="Bindings a second",
                about="By outcome. refused and failed belong to the API server, conflict and gone to others.",
                queries={"{{outcome}}": rate("graphsched_bind_total", by="outcome")},
                full=True,
            ),
            Panel(
                title="How long a binding takes",
                about="The API server and its webhooks, and waiting for a slot.",
                queries=quantiles("graphsched_bind_duration_seconds"),
                unit="s",
            ),
            Panel(
                title="Under way",
                about="Bindings without an answer, and decisions that the cluster has not confirmed yet.",
                queries={
                    "bindings": f"sum(graphsched_bind_inflight{{{JOB}}})",
                    "promises": f'sum(scheduler_cache_size{{{JOB}, type="assumed_pods"}})',
                },
            ),
            Panel(
                title="Conflicts with others",
                about="By kind; moved ones were seen in time. /debug/conflicts names who raced with whom.",
                queries={"{{kind}}": rate("graphsched_conflicts_total", by="kind")},
            ),
            Panel(
                title="Events",
                about="What kubectl describe shows; dropped ones hit the rate limit.",
                queries={"{{outcome}}": rate("graphsched_events_total", by="outcome")},
            ),
            Panel(
                title="Conditions",
                about="What autoscalers read. Failed ones mean that no nodes are added for those pods.",
                queries={"{{outcome}}": rate("graphsched_conditions_total", by="outcome")},
            ),
        ),
    ),
    (
        "Deciding",
        (
            Panel(
                title="How long a decision takes",
                about="Without queue and binding.",
                queries=quantiles("graphsched_decision_duration_seconds"),
                unit="s",
            ),
            Panel(
                title="How long a whole attempt takes",
                about="From leaving the queue to the end of the binding, by result.",
                queries={
                    "{{result}} p99": quantile(0.99, "scheduler_scheduling_attempt_duration_seconds", by="result")
                },
                unit="s",
            ),
            Panel(
                title="How late timers fire",
                about="What everything else had to wait for the loop; 50 ms is the most it should be.",
                queries=quantiles("graphsched_loop_lag_seconds"),
                unit="s",
            ),
            Panel(
                title="Checks and nodes looked at",
                about="Checks cover all nodes at once; nodes are those whose result was computed anew.",
                queries={
                    "checks": rate("graphsched_walk_predicate_calls_total"),
                    "nodes": rate("graphsched_class_cache_dirty_rows_total"),
                },
            ),
            Panel(
                title="Pod classes",
                about="Alike pods share one. Evictions mean that pods have little in common.",
                queries={
                    "hits": rate("graphsched_class_cache_hits_total"),
                    "rebuilds": rate("graphsched_class_cache_rebuilds_total"),
                    "evictions": rate("graphsched_class_cache_evictions_total"),
                },
            ),
            Panel(
                title="Classes held",
                about="At most as many as the cache may hold.",
                queries={"{{instance}}": largest("graphsched_class_cache_classes", by="instance")},
            ),
        ),
    ),
    (
        "Seeing the cluster",
        (
            Panel(
                title="Events read",
                about="From the watches of the API server, by resource.",
                queries={"{{resource}}": rate("graphsched_watch_events_total", by="resource")},
            ),
            Panel(
                title="Silence",
                about="Seconds since a watch last said anything.",
                queries={"{{resource}}": largest("graphsched_watch_last_event_age_seconds", by="resource")},
                unit="s",
            ),
            Panel(
                title="Failures and lists",
                about="Lists and watches that ended by an error, lists taken anew, and objects that can not be read.",
                queries={
                    "failed {{resource}}": rate("graphsched_watch_failures_total", by="resource"),
                    "listed {{resource}} ({{reason}})": rate("graphsched_watch_relists_total", by="resource, reason"),
                    "unreadable {{resource}}": rate("graphsched_watch_invalid_objects_total", by="resource"),
                },
            ),
            Panel(
                title="Changes offered to the graph",
                about="By outcome; refused ones make their source send everything again.",
                queries={"{{outcome}}": rate("graphsched_graph_patches_total", by="outcome")},
            ),
            Panel(
                title="Rows changed",
                about="Vertices and edges set or removed, by source, and the versions of the graph they make.",
                queries={
                    "{{source}}": rate("graphsched_graph_rows_total", by="source"),
                    "versions of {{instance}}": f"deriv(graphsched_graph_generation{{{JOB}}}{SPAN})",
                },
            ),
            Panel(
                title="Waiting to be read",
                about="Changes in the inbox, and how often a watch had to wait because it was full.",
                queries={
                    "rows {{instance}}": largest("graphsched_inbox_rows", by="instance"),
                    "waits a second": rate("graphsched_inbox_overflow_waits_total"),
                },
            ),
        ),
    ),
    (
        "Leading, auditing, and what modes add",
        (
            Panel(
                title="Who leads",
                about="1 for the replica that decides, 0 for those that stand by.",
                queries={"{{instance}}": largest("leader_election_master_status", by="instance")},
            ),
            Panel(
                title="Trouble with the lease",
                about="Changes of the leader, and attempts at the lease that failed.",
                queries={
                    "{{change}}": rate("graphsched_leader_changes_total", by="change"),
                    "failed": rate("graphsched_lease_failures_total"),
                },
            ),
            Panel(
                title="Audits",
                about="By result, and how long ago the last one was.",
                queries={
                    "{{result}}": f"sum by (result) (graphsched_audits_total{{{JOB}}})",
                    "seconds ago ({{instance}})": largest("graphsched_audit_age_seconds", by="instance"),
                },
            ),
            Panel(
                title="Differences that audits found",
                about="By kind. After a restored backup some are expected; otherwise each is a bug.",
                queries={"{{kind}}": f"sum by (kind) (graphsched_audit_differences_total{{{JOB}}})"},
            ),
            Panel(
                title="Turned away by kubelets",
                about="Pods that were placed and rejected, by reason.",
                queries={"{{reason}}": rate("graphsched_rejections_total", by="reason")},
            ),
            Panel(
                title="Turned away at the door",
                about="HTTP requests that were not answered, by reason.",
                queries={"{{reason}}": rate("graphsched_http_refused_total", by="reason")},
            ),
            Panel(
                title="Mode exclusive: leaks of the pool",
                about="Anything but zero means that races are possible.",
                queries={"{{kind}}": largest("graphsched_pool_leaks", by="kind")},
            ),
            Panel(
                title="Mode advise: what became of advice",
                about="Ended a second by outcome, and pods that are still tied to a node and not bound.",
                queries={
                    "{{outcome}}": rate("graphsched_advice_ended_total", by="outcome"),
                    "outstanding": f"max(graphsched_advice_outstanding{{{JOB}}})",
                    "given up": f"max(graphsched_advice_given_up{{{JOB}}})",
                    "oldest, s": f"max(graphsched_advice_oldest_age_seconds{{{JOB}}})",
                },
            ),
            Panel(
                title="Mode shadow: beside the other scheduler",
                about="Comparisons a second by result: same and equal agree, lower and what follows differ.",
                queries={
                    "{{result}}": rate("graphsched_shadow_comparisons_total", by="result"),
                    "not compared: {{reason}}": rate("graphsched_shadow_not_compared_total", by="reason"),
                    "waiting: {{result}}": largest("graphsched_shadow_waiting_pods", by="result"),
                },
            ),
        ),
    ),
    (
        "What the graph adds",
        (
            Panel(
                title="Health of links",
                about="Links by health: bad and failing ones are sick, look at what measures them.",
                queries={
                    "{{health}}": largest("graphsched_links", by="health"),
                    "health of the worst": f"min(graphsched_link_health_worst{{{JOB}}})",
                },
            ),
            Panel(
                title="Nodes cut off",
                about="All their links are sick. Pods are kept away, though Kubernetes may still call them ready.",
                queries={"{{instance}}": largest("graphsched_nodes_cut_off", by="instance")},
            ),
            Panel(
                title="Rules of policies",
                about="By state. Broken ones are left out, failing ones deny nodes: kubectl describe graphpolicy.",
                queries={"{{state}}": largest("graphsched_policy_rules", by="state")},
            ),
            Panel(
                title="Watermarks",
                about="Nodes above the high mark, and how often one rose to it or fell below the low one.",
                queries={
                    "above, {{resource}}": largest("graphsched_watermark_nodes", by="resource"),
                    "{{resource}} {{direction}} a second": rate(
                        "graphsched_watermark_crossings_total", by="resource, direction"
                    ),
                },
            ),
            Panel(
                title="Walks of plugins",
                about="By result. After failed and late ones the queue keeps the order it had.",
                queries={"{{result}}": rate("graphsched_plugin_walks_total", by="result")},
            ),
            Panel(
                title="Followers that refuse",
                about="Answers that copies of the graph did not apply, by reason; they stay as old as they are.",
                queries={"{{reason}}": rate("graphsched_feed_refused_total", by="reason")},
            ),
        ),
    ),
    (
        "The graph and the process",
        (
            Panel(
                title="Known of the cluster",
                about="Nodes and pods, bound and pending.",
                queries={"{{type}}": largest("scheduler_cache_size", by="type")},
            ),
            Panel(
                title="Vertices and edges",
                about="By kind.",
                queries={
                    "{{kind}}": largest("graphsched_graph_vertices", by="kind"),
                    "{{kind}} (edges)": largest("graphsched_graph_edges", by="kind"),
                },
            ),
            Panel(
                title="Memory",
                about="Resident. It grows with the cluster, not with time.",
                queries={"{{instance}}": f"process_resident_memory_bytes{{{JOB}}}"},
                unit="bytes",
            ),
            Panel(
                title="CPU",
                about="Cores in use.",
                queries={"{{instance}}": f"rate(process_cpu_seconds_total{{{JOB}}}{SPAN})"},
            ),
            Panel(
                title="Open files",
                about="Connections, mostly.",
                queries={"{{instance}}": f"process_open_fds{{{JOB}}}"},
            ),
            Panel(
                title="Up for",
                about="Since the process started.",
                queries={"{{instance}}": f"time() - process_start_time_seconds{{{JOB}}}"},
                unit="s",
            ),
        ),
    ),
)
