"""Constraints node by node and pod by pod: the predicates as schedulers without an index have them.

Each predicate says of one node whether the pod may run there, and looks at the running pods to say so. The first that
refuses ends it, so the cheap ones come first.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.plain.clusters import Cluster, Node, Pod

Predicate = Callable[[Cluster, Pod, Node], bool]


def fits(cluster: Cluster, pod: Pod, node: Node) -> bool:  # noqa: ARG001  a predicate like the others
    """The node has room."""
    return (
        node.pods < node.pods_max
        and node.used_cpu + pod.cpu <= node.cpu
        and node.used_memory + pod.memory <= node.memory
    )


def spreads(cluster: Cluster, pod: Pod, node: Node) -> bool:
    """No domain would be further ahead of the emptiest than a constraint allows."""
    for constraint in pod.spread:
        here = node.labels.get(constraint.key)
        if here is None:
            return False
        counts = dict.fromkeys(cluster.domains[constraint.key], 0)
        for other in cluster.running:
            if other.node is not None and other.matches(constraint.match):
                counts[other.node.labels[constraint.key]] += 1
        itself = pod.matches(constraint.match)
        if counts[here] + itself - min(counts.values()) > constraint.max_skew:
            return False
    return True


def is_befriended(cluster: Cluster, pod: Pod, node: Node) -> bool:
    """The company it asks for is in the domain, or it is the first that wants its own."""
    for term in pod.affinity:
        here = node.labels.get(term.key)
        if here is None:
            return False
        anywhere = False
        for other in cluster.running:
            if other.node is not None and term.selects(other.labels):
                anywhere = True
                if other.node.labels.get(term.key) == here:
                    break
        else:
            # The first that wants its own company has to begin somewhere.
            if anywhere or not term.selects(pod.labels):
                return False
    return True


def is_apart(cluster: Cluster, pod: Pod, node: Node) -> bool:
    """The company it avoids is not in the domain."""
    for term in pod.anti_affinity:
        here = node.labels.get(term.key)
        if here is not None and any(
            other.node is not None and other.node.labels.get(term.key) == here and term.selects(other.labels)
            for other in cluster.running
        ):
            return False
    return True


def is_welcome(cluster: Cluster, pod: Pod, node: Node) -> bool:
    """Nobody in the domain avoids it."""
    for other in cluster.running:
        for term in other.anti_affinity:
            if (
                term.selects(pod.labels)
                and other.node is not None
                and term.key in node.labels
                and other.node.labels.get(term.key) == node.labels[term.key]
            ):
                return False
    return True


ALL: tuple[Predicate, ...] = (fits, is_apart, is_befriended, spreads, is_welcome)


def feasible(cluster: Cluster, pod: Pod, predicates: tuple[Predicate, ...] = ALL) -> list[Node]:
    """The nodes that every predicate lets pass, in the order of their names."""
    return [node for node in cluster.nodes if all(predicate(cluster, pod, node) for predicate in predicates)]
