"""Affinity between pods, the obvious way: for every node and every pod on it, is this one meant?

Counts are kept per pair of topology key and value, as kube-scheduler keeps them. Comes in: a cluster, a pod, a node or
the nodes that passed. Goes out: a refusal, or the scores.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator

from graphsched.base.values import labels, pods
from graphsched.decision import profile
from tests.decision.plain_cluster import Cluster, Machine
from tests.decision.plain_rules import UAU, Refusal, U, selector_holds

Pairs = collections.Counter[tuple[str, str]]


def filtered(cluster: Cluster, pod: pods.Pod, machine: Machine) -> Refusal | None:
    """The newcomer's affinity, its anti-affinity, then the anti-affinity of those who are there."""
    own = pod.spec.pod_affinity
    avoided = pod.spec.pod_anti_affinity
    friends: Pairs = collections.Counter()
    foes: Pairs = collections.Counter()
    for other, where in _everybody(cluster):
        if own and all(_incoming_means(cluster, term, other) for term in own):
            _note(friends, (term.topology_key for term in own), where)
        _note(foes, (term.topology_key for term in avoided if _incoming_means(cluster, term, other)), where)
    keys = [term.topology_key for term in own]
    alone = not friends and all(_incoming_means(cluster, term, pod) for term in own)
    lonely = any(friends[key, machine.label(key) or ""] == 0 for key in keys)
    if any(machine.label(key) is None for key in keys) or (lonely and not alone):
        return UAU, ("node(s) didn't match pod affinity rules",)
    if any(foes[term.topology_key, machine.label(term.topology_key) or ""] for term in avoided):
        return U, ("node(s) didn't match pod anti-affinity rules",)
    hostile = _hostile(cluster, pod)
    if any(hostile[key, value] for key, value in machine.node.labels):
        return U, ("node(s) didn't satisfy existing pods anti-affinity rules",)
    return None


def matters(cluster: Cluster, pod: pods.Pod) -> bool:
    """Whether the filter runs at all."""
    return bool(pod.spec.pod_affinity or pod.spec.pod_anti_affinity or _hostile(cluster, pod))


def scored(cluster: Cluster, pod: pods.Pod, passed: list[Machine], settings: profile.Profile) -> dict[str, int] | None:
    """Node → 0 to 100; None where the plugin skips."""
    picky = bool(pod.spec.preferred_pod_affinity or pod.spec.preferred_pod_anti_affinity)
    if settings.ignore_existing_preferences and not picky:
        return None
    weights: dict[tuple[str, str], int] = {}
    for other, where in _everybody(cluster):
        for key, weight in _wishes(cluster, pod, other, settings.hard_affinity_weight):
            value = where.label(key)
            if value is not None:
                weights[key, value] = weights.get((key, value), 0) + weight
    if not weights:
        return None
    raw = {each.node.name: sum(weights.get(pair, 0) for pair in each.node.labels) for each in passed}
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    if most == least:
        return dict.fromkeys(raw, 0)
    return {name: int(100.0 * (float(value - least) / float(most - least))) for name, value in raw.items()}


def _wishes(cluster: Cluster, pod: pods.Pod, other: pods.Pod, hard_weight: int) -> Iterator[tuple[str, int]]:
    """Topology key and weight of all that draws the newcomer to the other pod or pushes it away."""
    for wish in pod.spec.preferred_pod_affinity:
        if _incoming_means(cluster, wish.term, other):
            yield wish.term.topology_key, wish.weight
    for wish in pod.spec.preferred_pod_anti_affinity:
        if _incoming_means(cluster, wish.term, other):
            yield wish.term.topology_key, -wish.weight
    for term in other.spec.pod_affinity:
        if hard_weight and _means(cluster, term, pod):
            yield term.topology_key, hard_weight
    for wish in other.spec.preferred_pod_affinity:
        if _means(cluster, wish.term, pod):
            yield wish.term.topology_key, wish.weight
    for wish in other.spec.preferred_pod_anti_affinity:
        if _means(cluster, wish.term, pod):
            yield wish.term.topology_key, -wish.weight


def _hostile(cluster: Cluster, pod: pods.Pod) -> Pairs:
    found: Pairs = collections.Counter()
    for owner, where in _everybody(cluster):
        terms = owner.spec.pod_anti_affinity
        _note(found, (term.topology_key for term in terms if _means(cluster, term, pod)), where)
    return found


def _everybody(cluster: Cluster) -> Iterator[tuple[pods.Pod, Machine]]:
    for machine in cluster.machines.values():
        for other, _ in machine.pods:
            yield other, machine


def _note(pairs: Pairs, keys: Iterable[str], where: Machine) -> None:
    for key in keys:
        value = where.label(key)
        if value is not None:
            pairs[key, value] += 1


def _means(cluster: Cluster, term: pods.PodTerm, pod: pods.Pod) -> bool:
    """Whether a term of somebody who is there is about the newcomer."""
    have = cluster.namespaces.get(pod.namespace, labels.NO_LABELS)
    near = pod.namespace in term.namespaces or selector_holds(term.namespace_selector, have)
    return near and selector_holds(term.selector, pod.labels)


def _incoming_means(cluster: Cluster, term: pods.PodTerm, other: pods.Pod) -> bool:
    """Whether a term of the newcomer is about the other pod.

    Its namespace selector was turned into names, and is then read once more against no labels at all.
    """
    chosen = {name for name, have in cluster.namespaces.items() if selector_holds(term.namespace_selector, have)}
    near = other.namespace in {*term.namespaces, *chosen} or selector_holds(term.namespace_selector, labels.NO_LABELS)
    return near and selector_holds(term.selector, other.labels)
