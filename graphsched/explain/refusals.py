"""Why a pod found no node, in the words users of Kubernetes know.

Comes in: the `Diagnosis` that a decision left. Goes out: the text of the PodScheduled condition and of the
FailedScheduling event, letter for letter as kube-scheduler writes it, since alerts and people match on it.
"""

from __future__ import annotations

from graphsched.base.values import pods, status
from graphsched.decision import trace

NO_NODES = "no nodes available to schedule pods"


def text(diagnosis: trace.Diagnosis) -> str:
    """The failure message, without what preemption would add."""
    if not diagnosis.nodes:
        return NO_NODES
    head = f"0/{diagnosis.nodes} nodes are available:"
    if diagnosis.prefilter is not None and diagnosis.prefilter.code is status.Code.ERROR:
        return ", ".join(diagnosis.prefilter.reasons)
    if diagnosis.prefilter is not None:
        return f"{head} {', '.join(diagnosis.prefilter.reasons)}."
    # Sorted as texts, so "10 ..." comes before "2 ...".
    entries = sorted(f"{count} {reason}" for reason, count in diagnosis.reasons)
    return f"{head} {', '.join(entries)}." if entries else head


def deleting(pod: pods.Pod) -> str:
    """What is said of a pod that is being deleted before it found a node."""
    return f"skip schedule deleting pod: {pod.full_name}"
