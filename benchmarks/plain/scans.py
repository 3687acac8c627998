"""A decision by one scan of the pods and one of the nodes: how kube-scheduler goes about affinity, in plain Python.

The scan of pods counts, by domain, who is company for the newcomer and whose company it is; then every node is filtered
and scored in a loop. The scores are kube-scheduler's: least allocated, balanced, and preferred affinity.
"""

from __future__ import annotations

import collections
import typing

from benchmarks.plain.clusters import Cluster, Node, Pod

_Domain = tuple[str, str]
"""Node label and value."""
_MAX = 100
_AFFINITY_WEIGHT = 2
_HARD_WEIGHT = 1


class _Company(typing.NamedTuple):
    """What a scan of the pods found, by domain.

    Attributes:
        friends: Pods that the newcomer's required affinity selects.
        foes: Pods that keep the newcomer out, or that it avoids.
        pulls: Points that preferences are worth, the newcomer's and those of running pods.
    """

    friends: collections.Counter[_Domain]
    foes: collections.Counter[_Domain]
    pulls: collections.Counter[_Domain]


def decide(cluster: Cluster, pod: Pod) -> Node | None:
    """The node with the greatest total, the first by name of several; None where none is feasible."""
    company = _scan(cluster, pod)
    first = not company.friends and all(term.selects(pod.labels) for term in pod.affinity)
    passed: list[tuple[Node, int]] = []
    for node in cluster.nodes:
        if (
            node.pods >= node.pods_max
            or node.used_cpu + pod.cpu > node.cpu
            or node.used_memory + pod.memory > node.memory
        ):
            continue
        domains = node.labels.items()
        if company.foes and not company.foes.keys().isdisjoint(domains):
            continue
        if not all(_has_company(node, term.key, company.friends, first=first) for term in pod.affinity):
            continue
        passed.append((node, sum(company.pulls[domain] for domain in domains) if company.pulls else 0))
    if not passed:
        return None
    least, most = min(pull for _, pull in passed), max(pull for _, pull in passed)
    best, greatest = None, -1
    for node, pull in passed:
        near = int(float(_MAX) * ((pull - least) / float(most - least))) if most > least else 0
        total = _room(node, pod) + _balance(node, pod) + near * _AFFINITY_WEIGHT
        if total > greatest:
            best, greatest = node, total
    return best


def _scan(cluster: Cluster, pod: Pod) -> _Company:
    company = _Company(collections.Counter(), collections.Counter(), collections.Counter())
    for other in cluster.running:
        if other.node is None:
            continue
        place = other.node.labels
        for term in pod.affinity:
            if term.key in place and term.selects(other.labels):
                company.friends[term.key, place[term.key]] += 1
        for term in pod.anti_affinity:
            if term.key in place and term.selects(other.labels):
                company.foes[term.key, place[term.key]] += 1
        for term in pod.preferred:
            if term.key in place and term.selects(other.labels):
                company.pulls[term.key, place[term.key]] += term.weight
        for term in other.anti_affinity:
            if term.key in place and term.selects(pod.labels):
                company.foes[term.key, place[term.key]] += 1
        for term in other.preferred:
            if term.key in place and term.selects(pod.labels):
                company.pulls[term.key, place[term.key]] += term.weight
        for term in other.affinity:
            if term.key in place and term.selects(pod.labels):
                company.pulls[term.key, place[term.key]] += _HARD_WEIGHT
    return company


def _has_company(node: Node, key: str, friends: collections.Counter[_Domain], *, first: bool) -> bool:
    return key in node.labels and (first or (key, node.labels[key]) in friends)


def _room(node: Node, pod: Pod) -> int:
    """The least allocated score."""
    cpu = (node.cpu - node.used_cpu - pod.cpu) * _MAX // node.cpu
    memory = (node.memory - node.used_memory - pod.memory) * _MAX // node.memory
    return (cpu + memory) // 2


def _balance(node: Node, pod: Pod) -> int:
    """The balanced allocation score: 50, and half of what the pod changes."""
    before = _evenness(node.used_cpu / node.cpu, node.used_memory / node.memory)
    after = _evenness((node.used_cpu + pod.cpu) / node.cpu, (node.used_memory + pod.memory) / node.memory)
    return _MAX // 2 + (_MAX // 2 + after - before) // 2


def _evenness(first: float, second: float) -> int:
    return int((1.0 - abs((min(first, 1.0) - min(second, 1.0)) / 2)) * _MAX)
