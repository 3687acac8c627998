"""Why many pods are pending, in a few lines.

Two hundred messages that differ in their numbers have a handful of causes. Pods that no check can tell apart share one
evaluation, made on the cluster as it is now; each gets the short form of what `why` says at length.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphsched.base.values import keys, pods
from graphsched.decision import cycle, names, trace
from graphsched.explain import groups, why, wording
from graphsched.graph import view

EVALUATIONS_MAX = 400
"""Distinct kinds of pods that are evaluated; the others are told as that."""

FITS = "none any more: it would fit now"
_MANY = "not evaluated: too many different pods"


def of_pods(graph: view.View, decider: cycle.Decider, waiting: Iterable[str]) -> list[tuple[str, list[str]]]:
    """(cause, names of the pods it keeps pending), the commonest cause first.

    Args:
        graph: The cluster as it is now.
        decider: Decides for the profile in question.
        waiting: `namespace/name` of pods that found no node.
    """
    known: dict[object, str] = {}
    found: dict[str, list[str]] = {}
    for name in waiting:
        pod = graph.pod(keys.VertexKey(f"{keys.Kind.POD.value}/{name}"))
        if pod is None:
            continue
        kind = pod.spec, pod.namespace, pod.labels, pod.priority
        cause = known.get(kind)
        if cause is None:
            cause = known[kind] = of(graph, pod, decider) if len(known) < EVALUATIONS_MAX else _MANY
        found.setdefault(cause, []).append(name)
    return sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0]))


def of(graph: view.View, pod: pods.Pod, decider: cycle.Decider) -> str:
    """The cause that keeps one pod pending, without numbers that would tell it from its like."""
    evaluation = decider.evaluate(graph, pod)
    if evaluation.best:
        return FITS
    if evaluation.prefilter is not None:
        return " and ".join(evaluation.prefilter.reasons)
    if not evaluation.verdicts:
        return "there are no nodes"
    found = groups.refused(graph, pod, evaluation, decider.settings)
    near = [name for group in found if group.room for name in group.nodes]
    if near:
        return _room(graph, pod, evaluation, near)
    if any(group.plugin in {names.NODE_RESOURCES_FIT, names.GPU_DEVICES} for group in found):
        return "it asks for more than any suitable node has"
    plugins = {group.plugin for group in found}
    if names.POD_TOPOLOGY_SPREAD in plugins:
        return "every suitable domain is too far ahead (topology spread)"
    if names.INTER_POD_AFFINITY in plugins:
        return "no suitable node has the right company (pod affinity)"
    if len(found) <= 2:
        return f"every node is {wording.either([group.label for group in found])}"
    return "no node accepts it (taints, selectors, cordons)"


def _room(graph: view.View, pod: pods.Pod, evaluation: trace.Evaluation, near: list[str]) -> str:
    stranded = why.stranded(graph, pod, evaluation, near)
    if stranded:
        short = sorted({name for refusal in stranded for name in why.short(refusal)})
        return f"GPUs are free only where {wording.either(short)} is not"
    short = sorted({name for near_name in near for name in why.short(evaluation.verdicts[near_name].status)})
    if "GPUs" in short:
        gpu = pod.spec.gpu
        return f"no {'node' if gpu is None or gpu.count > 1 else 'GPU'} has enough free {_wanted(pod)}"
    return f"suitable nodes are short of {wording.either(short)}"


def _wanted(pod: pods.Pod) -> str:
    gpu = pod.spec.gpu
    if gpu is None:
        return "room"
    if gpu.milli < 1000:
        return "thousandths"
    return "devices" if gpu.count > 1 else "room (a whole one is asked for)"
