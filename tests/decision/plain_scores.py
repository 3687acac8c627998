"""Scores the obvious way, in Go's arithmetic: integers whose division truncates, doubles where kube-scheduler has them.

Comes in: a pod and the nodes that passed. Goes out: plugin → node → weighted score.
"""

from __future__ import annotations

import fractions
import math
from collections.abc import Iterable, Iterator

from graphsched.base.values import nodes, pods
from graphsched.decision import profile
from tests.decision import plain_company, plain_spread
from tests.decision.plain_cluster import Cluster, Machine
from tests.decision.plain_rules import term_holds, tolerated

MIB = 1 << 20


def divided(numerator: int, denominator: int) -> int:
    """Go's integer division: it truncates towards zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def scores(
    cluster: Cluster, pod: pods.Pod, passed: list[Machine], settings: profile.Profile
) -> dict[str, dict[str, int]]:
    """Plugin → node → weighted score, for the nodes that passed and the plugins that do not skip."""
    spec = pod.spec
    preferred = (*spec.preferred, *settings.added_preferred)
    by_plugin: dict[str, dict[str, int]] = {}
    by_plugin["TaintToleration"] = normalised(
        {each.node.name: untolerated(spec, each.node) for each in passed}, reverse=True
    )
    if preferred:
        by_plugin["NodeAffinity"] = normalised(
            {each.node.name: preference(preferred, each) for each in passed}, reverse=False
        )
    by_plugin["NodeResourcesFit"] = {each.node.name: least_allocated(spec, each, settings) for each in passed}
    if any(dict(spec.demand.amounts).get(name, 0) for name in settings.balance):
        by_plugin["NodeResourcesBalancedAllocation"] = {
            each.node.name: balanced_allocation(spec, each, settings) for each in passed
        }
    if settings.headroom:
        by_plugin["GraphHeadroom"] = {each.node.name: out_of_the_way(spec, each, settings.headroom) for each in passed}
    by_plugin["ImageLocality"] = {each.node.name: image_locality(cluster, spec, each) for each in passed}
    company = {
        "InterPodAffinity": plain_company.scored(cluster, pod, passed, settings),
        "PodTopologySpread": plain_spread.scored(cluster, pod, passed, settings.pool),
    }
    by_plugin |= {plugin: values for plugin, values in company.items() if values is not None}
    return {
        plugin: {name: value * settings.weights[plugin] for name, value in found.items()}
        for plugin, found in by_plugin.items()
        if settings.weights.get(plugin, 0)
    }


def normalised(raw: dict[str, int], *, reverse: bool) -> dict[str, int]:
    """Scaled so that the greatest becomes 100, or 0 when reversed."""
    greatest = max(raw.values(), default=0)
    if greatest == 0:
        return dict.fromkeys(raw, 100 if reverse else 0)
    scaled = {name: divided(100 * value, greatest) for name, value in raw.items()}
    return {name: 100 - value for name, value in scaled.items()} if reverse else scaled


def untolerated(spec: pods.Spec, node: nodes.Node) -> int:
    """PreferNoSchedule taints that no toleration for that effect, or for any, covers."""
    fitting = [each for each in spec.tolerations if each.effect in {"", "PreferNoSchedule"}]
    return sum(taint.effect == "PreferNoSchedule" and not tolerated(fitting, taint) for taint in node.taints)


def preference(preferred: Iterable[pods.PreferredNodeTerm], machine: Machine) -> int:
    """Sum of the weights of the terms that hold."""
    return sum(each.weight for each in preferred if term_holds(each.term, machine))


def native(name: str) -> bool:
    """Whether a resource is scored also for pods that do not request it."""
    return name in {"cpu", "memory", "ephemeral-storage"}


def least_allocated(spec: pods.Spec, machine: Machine, settings: profile.Profile) -> int:
    """Weighted mean of the shares left, in per cent."""
    total = weights = 0
    for name, weight in settings.allocation:
        if name == "cpu":
            added, held = spec.demand.scored_cpu, sum(pod.held.scored_cpu for pod, _ in machine.pods)
        elif name == "memory":
            added, held = spec.demand.scored_memory, sum(pod.held.scored_memory for pod, _ in machine.pods)
        else:
            added, held = dict(spec.demand.amounts).get(name, 0), machine.requested(name)
        offered = machine.allocatable(name)
        if offered == 0 or (added == 0 and not native(name)):
            continue
        used = held + added
        total += (0 if used > offered else divided((offered - used) * 100, offered)) * weight
        weights += weight
    return divided(total, weights) if weights else 0


def balanced_allocation(spec: pods.Spec, machine: Machine, settings: profile.Profile) -> int:
    """How much more evenly the resources are used with the pod than without: 75 where nothing changes."""
    before, after, offered = [], [], []
    for name in settings.balance:
        added = dict(spec.demand.amounts).get(name, 0)
        if machine.allocatable(name) == 0 or (added == 0 and not native(name)):
            continue
        before.append(machine.requested(name))
        after.append(machine.requested(name) + added)
        offered.append(machine.allocatable(name))
    return 50 + divided(50 + evenness(after, offered) - evenness(before, offered), 2)


def out_of_the_way(spec: pods.Spec, machine: Machine, percent: int) -> int:
    """The fuller the better among nodes that keep less than four times the headroom; 100 for all others."""
    least = 100
    for name, amount in (("pods", 1), *spec.demand.amounts):
        if amount and name in {"pods", "cpu", "memory", "ephemeral-storage"}:
            offered = machine.allocatable(name)
            least_kept = math.floor(fractions.Fraction(offered * percent, 100))
            held = len(machine.pods) if name == "pods" else machine.requested(name)
            if least_kept:
                least = min(least, 100 * (offered - held - amount - least_kept) // (3 * least_kept))
    return 100 if least >= 100 else 100 - least


def evenness(used: list[int], offered: list[int]) -> int:
    """100 less the standard deviation of the used shares, in per cent."""
    shares = [min(have / most, 1.0) for have, most in zip(used, offered, strict=True)]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = squares = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * 100.0)


def image_locality(cluster: Cluster, spec: pods.Spec, machine: Machine) -> int:
    """Bytes of the pod's images the node holds, each scaled by how many nodes hold it."""
    total = 0
    for name in (*spec.images, *spec.image_volumes):
        holders = [each for each in cluster.machines.values() if name in dict(images_of(each.node))]
        if machine in holders:
            size = dict(images_of(holders[0].node))[name]
            total += int(float(size) * (float(len(holders)) / float(len(cluster.machines))))
    least, most = 23 * MIB, 1000 * MIB * spec.image_containers
    if most <= least:
        return 0
    return divided(100 * (min(max(total, least), most) - least), most - least)


def images_of(node: nodes.Node) -> Iterator[tuple[str, int]]:
    """Every name on the node with its size; the first size counts where a name is listed twice, so it comes last."""
    for image in reversed(node.images):
        for name in image.names:
            yield name, image.size
