"""Who exchanges data with whom: hyperedges over pods, from AppGroups, Services and what pods say themselves.

A group names workloads and which of them call which; a pod of one is a partner of the pods of every workload that it
calls or that calls it. Peers are named by one side; the other is drawn to it all the same. A `Partner` holds a matcher,
so that the term index counts its pods per node and no decision loops over pods.

`limiting` are the partners as they are said, for limits; `drawing` those that draw a pod, each placed pod in one at
most. Limits bind who states them, and the workloads of a group: what others demand of the way to a pod is no reason to
keep it from running.

Comes in: groups and calls, from `store`; a pod's peers, from its spec. Goes out: partners, to `decision`. Answers about
groups are remembered until one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from graphsched.base.values import groups, keys, labels, pods
from graphsched.graph import callers, matchers, scopes, selections

GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
ANSWERS_MAX = 4096
"""Answers remembered: one for each namespace and set of labels."""


class Partner(msgspec.Struct, frozen=True, gc=False):
    """Pods that a pod exchanges data with.

    Attributes:
        title: What people call them: `Service default/cache`, `workload db of shop`.
        matcher: Which placed pods they are.
        rate: Its weight among the pod's partners; positive.
        latency_ms_max: The longest way to one of them; None for any.
        bandwidth_mbps_min: The least bandwidth on the way; None for any.
        cost_max: The greatest cost of the way; None for any.
    """

    title: str
    matcher: matchers.Matcher
    rate: float = 1.0
    latency_ms_max: float | None = None
    bandwidth_mbps_min: float | None = None
    cost_max: float | None = None

    @property
    def limited(self) -> bool:
        """Whether some way to it is too far."""
        return not (self.latency_ms_max is None and self.bandwidth_mbps_min is None and self.cost_max is None)


class Groups:
    """The groups by namespace."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[keys.VertexKey, groups.Group]] = {}
        self._answers: dict[tuple[str, labels.Labels], tuple[Partner, ...]] = {}

    def __bool__(self) -> bool:
        """Whether there is any group."""
        return bool(self._groups)

    def set(self, key: keys.VertexKey, group: groups.Group | None) -> None:
        """The group of this key is this one; None when it is gone."""
        self._answers.clear()
        namespace = keys.name_of(key).partition("/")[0]
        there = self._groups.setdefault(namespace, {})
        if group is None:
            there.pop(key, None)
        else:
            there[key] = group
        if not there:
            del self._groups[namespace]

    def partners(self, namespace: str, pod_labels: labels.Labels) -> tuple[Partner, ...]:
        """The partners that such a pod has by its groups, in the order of the groups' names."""
        if namespace not in self._groups:
            return ()
        asked = namespace, pod_labels
        found = self._answers.get(asked)
        if found is None:
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            there = sorted(self._groups[namespace].items())
            found = self._answers[asked] = tuple(
                partner for _, group in there for partner in _partners_in(group, pod_labels)
            )
        return found


def limiting(
    known: Groups, selecting: selections.Selections, spec: pods.Spec, namespace: str, pod_labels: labels.Labels
) -> tuple[Partner, ...]:
    """All partners that a pod or its groups name, with the limits that its own spec sets for all of them."""
    found = known.partners(namespace, pod_labels)
    wanted = spec.graph
    if wanted is None:
        return found
    found = (*found, *(_of_peer(peer, selecting) for peer in wanted.peers))
    if wanted.latency_ms_max is None and wanted.bandwidth_mbps_min is None:
        return found
    return tuple(
        msgspec.structs.replace(
            partner,
            latency_ms_max=_least(partner.latency_ms_max, wanted.latency_ms_max),
            bandwidth_mbps_min=_most(partner.bandwidth_mbps_min, wanted.bandwidth_mbps_min),
        )
        for partner in found
    )


def drawing(
    known: Groups,
    calling: callers.Callers,
    selecting: selections.Selections,
    spec: pods.Spec,
    namespace: str,
    pod_labels: labels.Labels,
) -> tuple[Partner, ...]:
    """All partners of a pod, those included that name it, in the order in which they are said.

    What is said twice counts once: a placed pod belongs to the partner of the greatest rate, to the first of equals.
    """
    said = limiting(known, selecting, spec, namespace, pod_labels) if spec.graph is not None or known else ()
    said += tuple(map(_of_call, calling.about(namespace, pod_labels)))
    if len(said) < 2:
        return said
    found: dict[int, Partner] = {}
    taken: list[scopes.Scope] = []
    for number in sorted(range(len(said)), key=lambda each: -said[each].rate):
        partner = said[number]
        own = partner.matcher.scopes
        if not set(own) <= set(taken):
            without = tuple(each for each in taken if all(_may_meet(each, scope) for scope in own))
            matcher = matchers.Matcher(own, without=without)
            found[number] = msgspec.structs.replace(partner, matcher=matcher)
            taken += own
    return tuple(found[number] for number in sorted(found))


def _may_meet(one: scopes.Scope, other: scopes.Scope) -> bool:
    """Whether a pod may be in both, as far as can be told without looking at pods: two values of a label exclude it."""
    listed = one.namespace_selector is None and other.namespace_selector is None
    if one.selector is None or other.selector is None or (listed and not set(one.namespaces) & set(other.namespaces)):
        return False
    needed = {each.key: each.values for each in one.selector.requirements if each.operator is labels.Operator.IN}
    return all(
        each.key not in needed or not set(needed[each.key]).isdisjoint(each.values)
        for each in other.selector.requirements
        if each.operator is labels.Operator.IN
    )


def _of_call(call: callers.Call) -> Partner:
    """The partner that those are who make the call."""
    return Partner(f"pods that name {_whom(call)}", matchers.Matcher((call.makers,)), call.rate)


def _whom(peer: pods.Peer | callers.Call) -> str:
    if peer.selector is None:
        return f"Service {peer.namespace}/{peer.service}"
    return f"{_said(peer.selector)} in {peer.namespace}"


def _of_peer(peer: pods.Peer, selecting: selections.Selections) -> Partner:
    """The partner that a peer is; of a Service that is not there, or selects nothing, no pods."""
    chosen = selecting.service(peer.namespace, peer.service) if peer.selector is None else peer.selector
    matcher = matchers.Matcher((scopes.Scope(chosen, (peer.namespace,)),) if chosen is not None else ())
    return Partner(_whom(peer), matcher, peer.rate, peer.latency_ms_max, peer.bandwidth_mbps_min, peer.cost_max)


def _partners_in(group: groups.Group, pod_labels: labels.Labels) -> Iterator[Partner]:
    """Partners of a pod with these labels within the group: what its workload calls, then what calls that."""
    selectors = {workload.name: _members(group, workload) for workload in group.workloads}
    own = [workload for workload in group.workloads if selectors[workload.name].matches(pod_labels)]
    for workload in own:
        for dependency in workload.dependencies:
            if dependency.workload in selectors:
                yield _arm(group, dependency.workload, selectors[dependency.workload], dependency)
    mine = {workload.name for workload in own}
    for workload in group.workloads:
        for dependency in workload.dependencies:
            if dependency.workload in mine and workload.name not in mine:
                yield _arm(group, workload.name, selectors[workload.name], dependency)


def _arm(group: groups.Group, name: str, selector: labels.Selector, dependency: groups.Dependency) -> Partner:
    return Partner(
        f"workload {name} of {group.name}",
        matchers.Matcher((scopes.Scope(selector, (group.namespace,)),)),
        dependency.rate,
        dependency.latency_ms_max,
        dependency.bandwidth_mbps_min,
        None if dependency.cost_max is None else float(dependency.cost_max),
    )


def _members(group: groups.Group, workload: groups.Workload) -> labels.Selector:
    """Which pods belong to the workload: those it selects, or else those that its labels name."""
    if workload.selector is not None:
        return workload.selector
    return labels.selector(
        labels.Requirement(key, labels.Operator.IN, (value,))
        for key, value in ((GROUP_LABEL, group.name), (WORKLOAD_LABEL, workload.name))
    )


def _said(selector: labels.Selector) -> str:
    return "+".join(f"{each.key}={'|'.join(each.values)}" for each in selector.requirements)


def _least(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else min(one, other)


def _most(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else max(one, other)
