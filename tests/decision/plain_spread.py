"""Topology spread, the obvious way: count the pods of every domain, then compare.

Comes in: a cluster, a pod, a node or the nodes that passed. Goes out: a refusal, or the scores.
"""

from __future__ import annotations

import math

from graphsched.base.values import pods
from tests.decision.plain_cluster import Cluster, Machine
from tests.decision.plain_rules import UAU, Refusal, U, selector_holds, untolerated, wanted

HOSTNAME = "kubernetes.io/hostname"
Pool = tuple[str, str] | None
"""Label of the only nodes that are candidates, where there is one."""


def filtered(cluster: Cluster, pod: pods.Pod, machine: Machine, pool: Pool) -> Refusal | None:
    """The first hard constraint that the node breaks, counting on nodes of the pool."""
    hard = [each for each in pod.spec.spread if each.hard]
    for constraint in hard:
        domain = machine.label(constraint.topology_key)
        if domain is None:
            return UAU, ("node(s) didn't match pod topology spread constraints (missing required label)",)
        counts: dict[str, int] = {}
        for other in cluster.machines.values():
            if _keyed(other, hard) and _included(pod, other, constraint, pool):
                here = other.label(constraint.topology_key) or ""
                counts[here] = counts.get(here, 0) + _alike(pod, other, constraint)
        least = 0 if len(counts) < constraint.min_domains else min(counts.values())
        itself = int(selector_holds(constraint.selector, pod.labels))
        if counts.get(domain, 0) + itself - least > constraint.max_skew:
            return U, ("node(s) didn't match pod topology spread constraints",)
    return None


def scored(cluster: Cluster, pod: pods.Pod, passed: list[Machine], pool: Pool) -> dict[str, int] | None:
    """Node → 0 to 100; None where the plugin skips."""
    soft = [each for each in pod.spec.spread if not each.hard]
    if not soft:
        return None
    ranked = [each for each in passed if _keyed(each, soft)]
    raw: dict[str, int] = {}
    for machine in ranked:
        total = 0.0
        for constraint in soft:
            key = constraint.topology_key
            shown = len(ranked) if key == HOSTNAME else len({each.label(key) for each in ranked})
            near = [
                other
                for other in cluster.machines.values()
                if other.label(key) == machine.label(key)
                and _keyed(other, soft)
                and _included(pod, other, constraint, pool)
            ]
            if key == HOSTNAME:
                near = [machine]
            count = sum(_alike(pod, other, constraint) for other in near)
            total += float(count) * math.log(float(shown + 2)) + float(constraint.max_skew - 1)
        raw[machine.node.name] = math.floor(total + 0.5)
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    found = {each.node.name: 0 for each in passed}
    for name, value in raw.items():
        found[name] = 100 * (most + least - value) // most if most else 100
    return found


def _keyed(machine: Machine, constraints: list[pods.SpreadConstraint]) -> bool:
    return all(machine.label(each.topology_key) is not None for each in constraints)


def _included(pod: pods.Pod, machine: Machine, constraint: pods.SpreadConstraint, pool: Pool) -> bool:
    if constraint.honor_affinity and pool is not None and machine.label(pool[0]) != pool[1]:
        return False
    if constraint.honor_affinity and not wanted(pod.spec, machine):
        return False
    return not (constraint.honor_taints and untolerated(pod.spec.tolerations, machine))


def _alike(pod: pods.Pod, machine: Machine, constraint: pods.SpreadConstraint) -> int:
    """How many pods of the node count; of those only nominated to it also the ones that otherwise would not."""
    everybody = constraint.selector is not None and not constraint.selector.requirements
    return sum(
        other.namespace == pod.namespace
        and selector_holds(constraint.selector, other.labels)
        and (other.key in machine.promised or not (other.deleting or everybody))
        for other, _ in machine.pods
    )
