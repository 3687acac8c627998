"""From the store to a map: layer by layer, what there is and how it hangs together.

A store comes in, a `maps.Map` goes out. Nothing is decided here and nothing is guessed: a rule's edges lead to what its
label selectors match, and where other conditions narrow it further, its attributes say so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from graphsched.base.values import groups, keys, labels, nodes, places, pods, policies, relations, selections
from graphsched.explain import wording
from graphsched.explain.atlas import maps
from graphsched.graph import budgets, occupancy, store, watermarks

EVERY = tuple(maps.Layer)


def survey(
    graph: store.Store, layers: Collection[maps.Layer] = EVERY, marks: Mapping[str, watermarks.Marks] | None = None
) -> maps.Map:
    """The map of these layers; `marks` are the watermarks by resource, where anybody has set some."""
    draft = maps.Draft()
    makers: dict[maps.Layer, Callable[[store.Store, maps.Draft], None]] = {
        maps.Layer.PHYSICAL: _physical,
        maps.Layer.RESOURCES: functools.partial(_resources, marks=marks or {}),
        maps.Layer.POLICY: _policy,
        maps.Layer.WORKLOADS: _workloads,
    }
    chosen = [layer for layer in maps.Layer if layer in layers]
    for layer in chosen:
        makers[layer](graph, draft)
    return draft.map(chosen)


def title(key: str) -> str:
    """What people call the vertex of this key: `zone a`, `leaf-12`, `rule 2 of keep-out`; not unique."""
    kind, _, name = key.partition("/")
    if kind == keys.Kind.DOMAIN:
        label, _, path = name.partition("=")
        word = label.rpartition("/")[2].removeprefix("network-node-").replace("-", " ")
        return f"{word} {path.rpartition('/')[2].rpartition(':')[2]}"
    if kind == keys.Kind.RULE:
        policy, _, number = name.rpartition("/")
        return f"rule {number} of {policy}"
    return name.rpartition("/")[2]


# ── the physical layer ─────────────────────────────────────────────────────────────────────────────────────────────


def _physical(graph: store.Store, draft: maps.Draft) -> None:
    topology = graph.topology.graph
    for key in topology.nodes():
        _place(graph, draft, key)
    for source, target, payload in topology.weighted_edge_list():
        outer, inner = topology[source], topology[target]
        if isinstance(payload, relations.Link):
            draft.edge(outer, inner, maps.Relation.LINK, **_link(payload))
        else:
            by = payload.by if isinstance(payload, relations.Contains) else "labels"
            draft.edge(outer, inner, maps.Relation.CONTAINS, by=by)


def _link(link: relations.Link) -> dict[str, object]:
    return {
        "latency_ms": link.latency_ms,
        "bandwidth_mbps": link.bandwidth_mbps,
        "cost": link.cost,
        "health": link.health,
        "down": link.down or None,
        "measured": link.at or None,
        "by": link.by,
    }


def _place(graph: store.Store, draft: maps.Draft, key: keys.VertexKey) -> None:
    """A vertex of the physical layer: a node, a domain or a place."""
    vertex = graph.vertex(key)
    if isinstance(vertex, nodes.Node):
        draft.vertex(
            key,
            title(key),
            labels=dict(vertex.labels),
            taints=[_taint(taint) for taint in vertex.taints],
            cordoned=vertex.unschedulable or None,
        )
    elif isinstance(vertex, places.Place):
        draft.vertex(
            key,
            title(key),
            place=vertex.kind,
            tier=vertex.tier,
            labels=dict(vertex.labels),
            amounts=dict(vertex.amounts),
            available=dict(vertex.available),
        )
    else:
        label = keys.name_of(key).partition("=")[0]
        draft.vertex(key, title(key), label=label, nodes=len(graph.topology.members(key)))


def _taint(taint: nodes.Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


# ── the resource layer ─────────────────────────────────────────────────────────────────────────────────────────────


def _resources(graph: store.Store, draft: maps.Draft, *, marks: Mapping[str, watermarks.Marks]) -> None:
    columns, granted = graph.columns, graph.view().budgets
    filled = {resource: watermarks.filled(columns, granted, resource).percent for resource in sorted(marks)}
    for name, row in columns.rows.items():
        key = keys.node_key(name)
        node = graph.node(name)
        taken = _amounts(columns.requested, row)
        if columns.pods[row]:
            taken[nodes.PODS] = int(columns.pods[row])
        fullness = {resource: round(float(percent[row]), 1) for resource, percent in filled.items()}
        draft.vertex(
            key,
            title(key),
            capacity=_amounts(columns.installed, row),
            allocatable=_amounts(columns.allocatable, row),
            requested=taken,
            **({} if node is None else _granted(node.budget, granted.unused(name))),
            fullness=fullness,
            watermarks={resource: marks[resource].side(float(filled[resource][row])) for resource in fullness},
        )
        for index in range(node.gpus if node is not None else 0):
            device = f"device/{name}/gpu-{index}"
            used = occupancy.GPU_MILLI - int(graph.devices.free[index, row])
            draft.vertex(device, f"gpu-{index}", model=node.gpu_model if node is not None else "", used_milli=used)
            draft.edge(key, device, maps.Relation.CONTAINS, by="node")
    for key in graph.vertex_keys(f"{keys.Kind.PLACE}/"):
        place = graph.vertex(key)
        if isinstance(place, places.Place) and place.amounts:
            _place(graph, draft, key)
    for edge, tie in graph.topology.ties.items():
        if isinstance(tie, relations.Contains):
            draft.edge(edge.source, edge.target, maps.Relation.CONTAINS, by=tie.by)


def _amounts(table: Mapping[str, watermarks.Int64], row: int) -> dict[str, int]:
    """What the columns hold of a node, by resource in the order of the names, without zeros."""
    return {resource: int(table[resource][row]) for resource in sorted(table) if table[resource][row]}


def _granted(budget: nodes.Budget, left: budgets.Left) -> dict[str, object]:
    """The limits of a node: its ceilings, what it keeps for whom, and what is left of that."""
    return {
        "ceilings": dict(budget.ceilings),
        "reserved": {holder: dict(amounts) for holder, amounts in budget.reserved},
        "reserved_left": left,
    }


# ── the policy layer ───────────────────────────────────────────────────────────────────────────────────────────────


def _policy(graph: store.Store, draft: maps.Draft) -> None:
    for key in graph.vertex_keys(f"{keys.Kind.RULE}/"):
        rule = graph.vertex(key)
        if not isinstance(rule, policies.Rule):
            continue
        match = rule.match
        draft.vertex(
            key,
            rule.name or title(key),
            policy=rule.policy,
            action=rule.action.value,
            priority=rule.priority,
            weight=rule.weight or None,
            pods="all" if match.pods is None else wording.selector(match.pods) or "all",
            namespaces=list(match.namespaces),
            nodes="all" if match.nodes is None else wording.selector(match.nodes) or "all",
            cidrs=list(match.cidrs),
            pod_when=match.pod_when,
            node_when=match.node_when,
            path=_demanded(rule.path),
        )
        if match.nodes is not None:
            for name, node_labels in _labelled_nodes(graph):
                if match.nodes.matches(node_labels):
                    node = keys.node_key(name)
                    _place(graph, draft, node)
                    draft.edge(key, node, maps.Relation.SELECTS)
        if match.pods is not None or match.namespaces:
            for pod in graph.all_pods():
                inside = not match.namespaces or pod.namespace in match.namespaces
                if inside and (match.pods is None or match.pods.matches(pod.labels)):
                    _pod(graph, draft, pod)
                    draft.edge(key, pod.key, maps.Relation.SELECTS)
        goal = rule.path.to if rule.path is not None else keys.VertexKey("")
        if goal and (graph.vertex(goal) is not None or graph.topology.members(goal)):
            _place(graph, draft, goal)
            draft.edge(key, goal, maps.Relation.DEPENDS_ON)


def _demanded(path: policies.Path | None) -> dict[str, object]:
    if path is None:
        return {}
    told = {
        "to": path.to or None,
        "hops_max": path.hops_max,
        "latency_ms_max": path.latency_ms_max,
        "bandwidth_mbps_min": path.bandwidth_mbps_min,
        "same_domain": path.same_domain or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _labelled_nodes(graph: store.Store) -> Iterator[tuple[str, labels.Labels]]:
    for name in graph.columns.rows:
        node = graph.node(name)
        if node is not None:
            yield name, node.labels


# ── the workload layer ─────────────────────────────────────────────────────────────────────────────────────────────


def _workloads(graph: store.Store, draft: maps.Draft) -> None:
    by_namespace: dict[str, list[pods.Pod]] = {}
    for pod in graph.all_pods():
        _pod(graph, draft, pod)
        by_namespace.setdefault(pod.namespace, []).append(pod)
        placement = graph.placement(pod.key)
        if placement is None:
            continue
        node = keys.node_key(placement.node)
        if node not in draft and graph.node(placement.node) is not None:
            _place(graph, draft, node)
        promised = None if pod.node else True
        draft.edge(pod.key, node, maps.Relation.RUNS, promised=promised, devices=list(placement.devices))
    for each in graph.all_pods():
        if each.spec.graph is not None:
            _demand(graph, draft, each, each.spec.graph, by_namespace)
    for key in graph.vertex_keys(f"{keys.Kind.SELECTION}/"):
        selection = graph.vertex(key)
        if isinstance(selection, selections.Selection) and selection.selector is not None:
            chosen = wording.selector(selection.selector)
            draft.vertex(
                key, title(key), object=selection.kind, namespace=selection.namespace, selector=chosen or "all"
            )
            _select(draft, key, selection.selector, by_namespace.get(selection.namespace, ()))
    for key in graph.vertex_keys(f"{keys.Kind.GROUP}/"):
        group = graph.vertex(key)
        if isinstance(group, groups.Group):
            _group(draft, group, by_namespace.get(group.namespace, ()))


def _demand(
    graph: store.Store,
    draft: maps.Draft,
    pod: pods.Pod,
    demand: pods.GraphDemand,
    by_namespace: Mapping[str, Sequence[pods.Pod]],
) -> None:
    """Whom a pod calls, by Service or by selector, and what it asks to be near."""
    for goal in demand.near:
        if graph.vertex(goal) is not None or graph.topology.members(goal):
            _place(graph, draft, goal)
            draft.edge(pod.key, goal, maps.Relation.DEPENDS_ON)
    for peer in demand.peers:
        called = [keys.selection_key(selections.SERVICE, peer.namespace, peer.service)] if peer.service else []
        if peer.selector is not None:
            called += [
                other.key
                for other in by_namespace.get(peer.namespace, ())
                if other.key != pod.key and peer.selector.matches(other.labels)
            ]
        for other in called:
            draft.edge(
                pod.key,
                other,
                maps.Relation.CALLS,
                rate=peer.rate,
                latency_ms_max=peer.latency_ms_max,
                bandwidth_mbps_min=peer.bandwidth_mbps_min,
                cost_max=peer.cost_max,
            )


def _pod(graph: store.Store, draft: maps.Draft, pod: pods.Pod) -> None:
    placement = graph.placement(pod.key)
    draft.vertex(
        pod.key,
        pod.name,
        namespace=pod.namespace,
        labels=dict(pod.labels),
        node=placement.node if placement is not None else None,
        scheduler=pod.scheduler,
        priority=pod.priority or None,
        requests=dict(pod.held.amounts),
    )


def _select(draft: maps.Draft, key: str, selector: labels.Selector, within: Iterable[pods.Pod]) -> None:
    for pod in within:
        if selector.matches(pod.labels):
            draft.edge(key, pod.key, maps.Relation.SELECTS)


def _group(draft: maps.Draft, group: groups.Group, within: Iterable[pods.Pod]) -> None:
    """The hyperedge and its workloads: the group holds them, they select pods and depend on one another."""
    draft.vertex(group.key, group.name, namespace=group.namespace, order=group.order)
    known = {workload.name: f"workload/{group.namespace}/{group.name}/{workload.name}" for workload in group.workloads}
    for workload in group.workloads:
        key = known[workload.name]
        draft.vertex(
            key,
            workload.name,
            selector=None if workload.selector is None else wording.selector(workload.selector) or "all",
        )
        draft.edge(group.key, key, maps.Relation.CONTAINS, by="group")
        if workload.selector is not None:
            _select(draft, key, workload.selector, within)
        for each in workload.dependencies:
            if each.workload in known:
                draft.edge(
                    key,
                    known[each.workload],
                    maps.Relation.DEPENDS_ON,
                    rate=each.rate,
                    latency_ms_max=each.latency_ms_max,
                    bandwidth_mbps_min=each.bandwidth_mbps_min,
                    cost_max=each.cost_max,
                )
