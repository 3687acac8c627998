"""When each alert fires and when it does not, as series that promtool plays.

Comes in: nothing. Goes out: `CASES`, two or more for every alert of the rules file.
"""

import dataclasses
from collections.abc import Mapping

A = 'job="graphsched", instance="a"'
INFO = f"graphsched_build_info{{{A}}}"
WEB = {"job": "graphsched", "instance": "a"}
JOB = {"job": "graphsched"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One history.

    Attributes:
        alert: Which alert is looked at.
        what: What happens in it.
        series: Series → values in promtool's notation, one a minute.
        minute: When it is looked at.
        fires: Labels of the alert that fires then, apart from its severity; None when it does not fire.
        says: Its description then.
    """

    alert: str
    what: str
    series: Mapping[str, str]
    minute: int = 60
    fires: Mapping[str, str] | None = None
    says: str = ""


def _buckets(name: str, labels: str, fast: str, slow: str, *, bounds: tuple[str, str]) -> dict[str, str]:
    """A histogram in two buckets: `fast` of the observations are below the first bound, all are below the second."""
    return {
        f'{name}_bucket{{{labels}, le="{bounds[0]}"}}': fast,
        f'{name}_bucket{{{labels}, le="{bounds[1]}"}}': slow,
        f'{name}_bucket{{{labels}, le="+Inf"}}': slow,
    }


def _sli(labels: str, fast: str) -> dict[str, str]:
    return _buckets(
        "scheduler_pod_scheduling_sli_duration_seconds",
        f'{labels}, attempts="1"',
        fast,
        "0+100x60",
        bounds=("5.12", "20.48"),
    )


def _lag(fast: str) -> dict[str, str]:
    return _buckets("graphsched_loop_lag_seconds", A, fast, "0+100x60", bounds=("0.064", "0.256"))


def _binds(bad: str, outcome: str = "refused") -> dict[str, str]:
    return {
        f'graphsched_bind_total{{{A}, outcome="bound"}}': "0+90x60",
        f'graphsched_bind_total{{{A}, outcome="{outcome}"}}': bad,
    }


def _election(first: str, second: str) -> dict[str, str]:
    """Two replicas, `a` and `b`, and whether they lead."""
    return {
        INFO: "1x60",
        INFO.replace('"a"', '"b"'): "1x60",
        f'leader_election_master_status{{{A}, name="ours"}}': first,
        'leader_election_master_status{job="graphsched", instance="b", name="ours"}': second,
    }


_QUEUE = f'scheduler_pending_pods{{{A}, queue="active"}}'
_DECIDED = f"graphsched_decision_duration_seconds_count{{{A}}}"
_OTHER = 'job="kube-scheduler", instance="k"'

CASES = (
    Case(
        alert="GraphschedAbsent",
        what="it stops being scraped",
        series={INFO: "1x30 stale"},
        fires={},
        says="Prometheus scrapes no graphsched. If none runs, pods that name it as their scheduler stay pending.",
    ),
    Case(alert="GraphschedAbsent", what="it is scraped", series={INFO: "1x60"}),
    Case(alert="GraphschedAbsent", what="it was away for three minutes", series={INFO: "1x30 _x3 1x30"}, minute=34),
    Case(
        alert="GraphschedReplicaDown",
        what="a replica stops answering",
        series={f"up{{{A}}}": "1x30 0x30", INFO: "1x30 stale"},
        fires=WEB,
        says="a has not answered a scrape for 5 minutes; it did within the last 6 hours.",
    ),
    Case(
        alert="GraphschedReplicaDown",
        what="something else stops answering",
        series={f"up{{{_OTHER}}}": "1x30 0x30", f"up{{{A}}}": "1x60", INFO: "1x60"},
    ),
    Case(
        alert="GraphschedRestarting",
        what="it starts every eight minutes",
        series={INFO: "1x60", f"process_start_time_seconds{{{A}}}": "1x40 2x7 3x7 4x7"},
        fires=WEB,
        says="a has started 3 times within 30 minutes.",
    ),
    Case(
        alert="GraphschedRestarting",
        what="it is restarted once, and something else all the time",
        series={
            INFO: "1x60",
            f"process_start_time_seconds{{{A}}}": "1x40 2x20",
            f"process_start_time_seconds{{{_OTHER}}}": "1+1x60",
        },
    ),
    Case(
        alert="GraphschedVersionSkew",
        what="a rollout stops half-way",
        series={
            'graphsched_build_info{job="graphsched", instance="a", version="0.1.0"}': "1x90",
            'graphsched_build_info{job="graphsched", instance="b", version="0.2.0"}': "1x90",
        },
        minute=90,
        fires=JOB,
        says="2 versions run in job graphsched: a rollout or a rollback has not ended.",
    ),
    Case(
        alert="GraphschedVersionSkew",
        what="a rollout takes half an hour",
        series={
            'graphsched_build_info{job="graphsched", instance="a", version="0.1.0"}': "1x30 stale",
            'graphsched_build_info{job="graphsched", instance="b", version="0.2.0"}': "1x90",
        },
        minute=29,
    ),
    Case(alert="GraphschedVersionSkew", what="one version runs", series={INFO: "1x90"}, minute=90),
    Case(
        alert="GraphschedNoLeader",
        what="both replicas stand by",
        series=_election("0x60", "0x60"),
        fires={**JOB, "name": "ours"},
        says="No replica of job graphsched holds the lease ours, so that nothing is decided.",
    ),
    Case(alert="GraphschedNoLeader", what="one leads", series=_election("1x60", "0x60")),
    Case(
        alert="GraphschedNoLeader",
        what="no kube-scheduler leads",
        series={
            **_election("1x60", "0x60"),
            f'leader_election_master_status{{{_OTHER}, name="kube-scheduler"}}': "0x60",
        },
    ),
    Case(
        alert="GraphschedTwoLeaders",
        what="both lead",
        series=_election("1x60", "1x60"),
        fires={**JOB, "name": "ours"},
        says="2 replicas of job graphsched say that they hold the lease ours.",
    ),
    Case(alert="GraphschedTwoLeaders", what="one takes over", series=_election("1x30 0x30", "0x30 1x30")),
    Case(
        alert="GraphschedLeaderChanges",
        what="the lease is lost every quarter of an hour",
        series={f'graphsched_leader_changes_total{{{A}, change="lost"}}': "0x14 1x14 2x14 3x14 4x14"},
        fires=JOB,
        says="Replicas of job graphsched that led could not renew the lease in time, several times within an hour.",
    ),
    Case(
        alert="GraphschedLeaderChanges",
        what="it is lost once",
        series={
            f'graphsched_leader_changes_total{{{A}, change="lost"}}': "0x30 1x30",
            f'graphsched_leader_changes_total{{{A}, change="gained"}}': "0+1x60",
        },
    ),
    Case(
        alert="GraphschedLeaseFails",
        what="every attempt fails",
        series={f"graphsched_lease_failures_total{{{A}}}": "0+25x60"},
        fires=WEB,
        says="a fails to read, take or renew the lease; the log has the API server's words.",
    ),
    Case(
        alert="GraphschedLeaseFails",
        what="the API server was restarted",
        series={f"graphsched_lease_failures_total{{{A}}}": "0x30 8x30"},
        minute=35,
    ),
    Case(
        alert="GraphschedNoDecisions",
        what="a standby waits with its queue",
        series={_QUEUE: "7x60", _DECIDED: "5x60", **_election("0x60", "1x60")},
    ),
    Case(
        alert="GraphschedBacklogGrows",
        what="that of a standby grows",
        series={_QUEUE: "0+10x60", **_election("0x60", "1x60")},
    ),
    Case(
        alert="GraphschedOvercommit",
        what="it happens once",
        series={f'graphsched_conflicts_total{{{A}, kind="overcommitted"}}': "0x30 1x30"},
        fires=JOB,
        says="A pod of job graphsched and one of another scheduler were bound to a node that has not enough for both.",
    ),
    Case(
        alert="GraphschedOvercommit",
        what="nodes move before bindings",
        series={
            f'graphsched_conflicts_total{{{A}, kind="overcommitted"}}': "0x60",
            f'graphsched_conflicts_total{{{A}, kind="moved"}}': "0+1x60",
        },
    ),
    Case(
        alert="GraphschedPodsRejected",
        what="ten pods are turned away",
        series={f'graphsched_rejections_total{{{A}, reason="cpu"}}': "0x40 10x20"},
        fires={**JOB, "reason": "cpu"},
        says="Kubelets turned away several pods that job graphsched placed within 30 minutes (cpu).",
    ),
    Case(
        alert="GraphschedPodsRejected",
        what="one is",
        series={f'graphsched_rejections_total{{{A}, reason="cpu"}}': "0x40 1x20"},
    ),
    Case(
        alert="GraphschedNodesCutOff",
        what="one node is for a while",
        series={f"graphsched_nodes_cut_off{{{A}}}": "1x60"},
        fires=JOB,
        says="1 nodes have no link left that is any good, says job graphsched; pods are kept away from them.",
    ),
    Case(
        alert="GraphschedNodesCutOff",
        what="one is for three minutes",
        series={f"graphsched_nodes_cut_off{{{A}}}": "0x20 1x3 0x30"},
    ),
    Case(
        alert="GraphschedPoolLeaks",
        what="two nodes lack the taint",
        series={f'graphsched_pool_leaks{{{A}, kind="open_nodes"}}': "2x60"},
        fires={**JOB, "kind": "open_nodes"},
        says="2 open_nodes in the pool of job graphsched: races are possible there.",
    ),
    Case(
        alert="GraphschedPoolLeaks",
        what="none does",
        series={f'graphsched_pool_leaks{{{A}, kind="open_nodes"}}': "0x60"},
    ),
    Case(
        alert="GraphschedAdviceIgnored",
        what="a pod stays unbound",
        series={f"graphsched_advice_given_up{{{A}}}": "0x30 1x30"},
        fires=JOB,
        says="1 pods that job graphsched tied to a node were not bound there, and their room was given back.",
    ),
    Case(alert="GraphschedAdviceIgnored", what="none does", series={f"graphsched_advice_given_up{{{A}}}": "0x60"}),
    Case(
        alert="GraphschedAuditFails",
        what="no audit ends",
        series={f'graphsched_audits_total{{{A}, result="failed"}}': "0x9 1x9 2x9 3x9 4x9 5x9 6"},
        fires={**WEB, "result": "failed"},
        says="Audits of a fail: fresh lists could not be had to compare the graph with.",
    ),
    Case(
        alert="GraphschedAuditFails",
        what="one did not",
        series={f'graphsched_audits_total{{{A}, result="failed"}}': "0x30 1x30"},
    ),
    Case(
        alert="GraphschedNoDecisions",
        what="pods wait and nothing is decided",
        series={_QUEUE: "7x60", _DECIDED: "5x60"},
        fires={**WEB, "queue": "active"},
        says="7 pods are next in line at a, which has decided nothing for 5 minutes.",
    ),
    Case(alert="GraphschedNoDecisions", what="they are decided on", series={_QUEUE: "7x60", _DECIDED: "5+1x60"}),
    Case(alert="GraphschedNoDecisions", what="nothing waits", series={_QUEUE: "0x60", _DECIDED: "5x60"}),
    Case(
        alert="GraphschedBacklogGrows",
        what="ten more wait every minute",
        series={INFO: "1x60", _QUEUE: "0+10x60"},
        fires={**WEB, "queue": "active"},
        says="600 pods are next in line at a, and there have been more and more for 15 minutes.",
    ),
    Case(alert="GraphschedBacklogGrows", what="a heap shrinks", series={INFO: "1x60", _QUEUE: "900-10x60"}),
    Case(
        alert="GraphschedBacklogGrows",
        what="the queue of kube-scheduler grows",
        series={INFO: "1x60", f'scheduler_pending_pods{{{_OTHER}, queue="active"}}': "0+10x60"},
    ),
    Case(
        alert="GraphschedPodsWaitLong",
        what="a tenth of the pods waits for more than five seconds",
        series={INFO: "1x60", **_sli(A, "0+90x60")},
        fires=JOB,
        says=(
            "One in a hundred pods of job graphsched that were placed at the first attempt waited for more than 19 s: "
            "the scheduler or the API server is slow, not the cluster full."
        ),
    ),
    Case(alert="GraphschedPodsWaitLong", what="none does", series={INFO: "1x60", **_sli(A, "0+100x60")}),
    Case(
        alert="GraphschedPodsWaitLong",
        what="pods of kube-scheduler do",
        series={INFO: "1x60", **_sli(A, "0+100x60"), **_sli(_OTHER, "0+10x60")},
    ),
    Case(
        alert="GraphschedBindErrors",
        what="a tenth is refused",
        series=_binds("0+10x60"),
        fires=JOB,
        says="10% of the bindings of job graphsched were refused or failed.",
    ),
    Case(
        alert="GraphschedBindErrors",
        what="none gets an answer",
        series={f'graphsched_bind_total{{{A}, outcome="failed"}}': "0+1x60"},
        fires=JOB,
        says="100% of the bindings of job graphsched were refused or failed.",
    ),
    Case(alert="GraphschedBindErrors", what="one in a hundred is refused", series=_binds("0+1x60")),
    Case(alert="GraphschedBindErrors", what="pods vanish before they are bound", series=_binds("0+10x60", "gone")),
    Case(
        alert="GraphschedConflicts",
        what="one in fifty comes too late",
        series={**_binds("0+10x60", "conflict"), f"graphsched_conflicts_total{{{A}}}": "0+2x60"},
        fires=JOB,
        says="2% of the bindings of job graphsched came too late.",
    ),
    Case(
        alert="GraphschedConflicts",
        what="one in a thousand does",
        series={**_binds("0+10x60", "conflict"), f"graphsched_conflicts_total{{{A}}}": "0+0.1x60"},
    ),
    Case(
        alert="GraphschedPodsUntold",
        what="conditions fail",
        series={
            f'graphsched_conditions_total{{{A}, outcome="failed"}}': "0+60x60",
            f'graphsched_events_total{{{A}, outcome="failed"}}': "0x60",
        },
        fires=JOB,
        says=(
            "1.0 conditions and events a second of job graphsched do not reach the API server. Autoscalers add no "
            "nodes for pods without a condition."
        ),
    ),
    Case(
        alert="GraphschedPodsUntold",
        what="all are written",
        series={
            f'graphsched_conditions_total{{{A}, outcome="failed"}}': "0x60",
            f'graphsched_events_total{{{A}, outcome="failed"}}': "3x60",
            f'graphsched_events_total{{{A}, outcome="written"}}': "0+60x60",
        },
    ),
    Case(
        alert="GraphschedWatchSilent",
        what="nothing is heard of pods",
        series={f'graphsched_watch_last_event_age_seconds{{{A}, resource="pods"}}': "0+60x10"},
        minute=8,
        fires={**WEB, "resource": "pods"},
        says=(
            "a has heard nothing of pods for 480 s; a word comes every minute as a rule. It decides on an old picture, "
            "and after 300 s it is not ready any more."
        ),
    ),
    Case(
        alert="GraphschedWatchSilent",
        what="a bookmark comes every minute",
        series={f'graphsched_watch_last_event_age_seconds{{{A}, resource="pods"}}': "50x60"},
    ),
    Case(
        alert="GraphschedWatchFails",
        what="a list fails every ten seconds",
        series={f'graphsched_watch_failures_total{{{A}, resource="nodes"}}': "0+6x60"},
        fires={**WEB, "resource": "nodes"},
        says="Lists and watches of nodes at a end by errors; the log has them.",
    ),
    Case(
        alert="GraphschedWatchFails",
        what="the API server was restarted",
        series={f'graphsched_watch_failures_total{{{A}, resource="nodes"}}': "0x30 5x30"},
        minute=35,
    ),
    Case(
        alert="GraphschedObjectsUnreadable",
        what="a node has a label of a kind nobody knows",
        series={f'graphsched_watch_invalid_objects_total{{{A}, resource="nodes"}}': "0x50 1x10"},
        fires={**WEB, "resource": "nodes"},
        says="a skipped nodes that it can not read and goes by what it knew of them.",
    ),
    Case(
        alert="GraphschedObjectsUnreadable",
        what="that was an hour ago",
        series={f'graphsched_watch_invalid_objects_total{{{A}, resource="nodes"}}': "0 1x60"},
    ),
    Case(
        alert="GraphschedChangesRefused",
        what="a source is refused again and again",
        series={f'graphsched_graph_patches_total{{{A}, source="watch/pods", outcome="refused"}}': "0+1x60"},
        fires={**WEB, "source": "watch/pods"},
        says="a refused changes from watch/pods several times within 15 minutes; the log says why.",
    ),
    Case(
        alert="GraphschedChangesRefused",
        what="it is refused once, and applied all the time",
        series={
            f'graphsched_graph_patches_total{{{A}, source="watch/pods", outcome="refused"}}': "0x50 1x10",
            f'graphsched_graph_patches_total{{{A}, source="watch/pods", outcome="applied"}}': "0+100x60",
        },
    ),
    Case(
        alert="GraphschedFollowersRefuse",
        what="answers are damaged on the way again and again",
        series={f'graphsched_feed_refused_total{{{A}, reason="corrupted"}}': "0+1x60"},
        fires={**WEB, "reason": "corrupted"},
        says="Followers of a refused its answers several times within 15 minutes (corrupted).",
    ),
    Case(
        alert="GraphschedFollowersRefuse",
        what="one answer is cut off when its connection is",
        series={f'graphsched_feed_refused_total{{{A}, reason="truncated"}}': "0x50 1x10"},
    ),
    Case(
        alert="GraphschedInboxFull",
        what="watches wait all the time",
        series={f"graphsched_inbox_overflow_waits_total{{{A}}}": "0+2x60"},
        fires=WEB,
        says="Watches of a have had to wait for the loop for 10 minutes.",
    ),
    Case(
        alert="GraphschedInboxFull",
        what="they waited at the start",
        series={f"graphsched_inbox_overflow_waits_total{{{A}}}": "0 9x60"},
    ),
    Case(
        alert="GraphschedAuditDifferences",
        what="an audit finds one",
        series={f'graphsched_audit_differences_total{{{A}, kind="stale"}}': "0x30 1x30"},
        fires={**WEB, "kind": "stale"},
        says=(
            "a found differences (stale), mended them, and has them in its log. Unless the API server was restored "
            "from a backup this is a bug of graphsched."
        ),
    ),
    Case(
        alert="GraphschedAuditDifferences",
        what="audits find nothing",
        series={f'graphsched_audit_differences_total{{{A}, kind="stale"}}': "0x60"},
    ),
    Case(
        alert="GraphschedLoopLag",
        what="a tenth of the timers fires more than 64 ms late",
        series=_lag("0+90x60"),
        fires=WEB,
        says="Timers of a fire 236.8ms late, where 50 ms is the most it should be.",
    ),
    Case(alert="GraphschedLoopLag", what="none does", series=_lag("0+100x60")),
)
