"""Views: they show one generation, and what-if on them equals doing it."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import strategies as st

from graphsched.base.values import errors, keys, nodes, pods
from graphsched.graph import delta, store, view
from tests.decision import clusters

READINGS: dict[str, Callable[[view.View], object]] = {
    "columns": lambda graph: graph.columns,
    "attributes": lambda graph: graph.attributes,
    "ports": lambda graph: graph.ports,
    "images": lambda graph: graph.images,
    "devices": lambda graph: graph.devices,
    "topology": lambda graph: graph.topology,
    "matchers": lambda graph: graph.matchers,
    "nominated": lambda graph: graph.nominated,
    "a node": lambda graph: graph.node("n1"),
    "a pod": lambda graph: graph.pod(keys.pod_key("default", "web")),
    "pods on a node": lambda graph: graph.on_node("n1"),
    "an overlay": lambda graph: graph.with_changes(),
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_view_raises_once_the_store_has_moved_on(reading: str) -> None:
    """Every way to read it, and an overlay made of it as well."""
    graph = store.Store()
    before = graph.view()
    twin = before.with_changes()
    READINGS[reading](before)
    READINGS[reading](twin)

    graph.apply(delta.Patch().set_vertex(nodes.Node("n1")))

    with pytest.raises(errors.StaleViewError, match="view of generation 0 read at generation 1"):
        READINGS[reading](before)
    with pytest.raises(errors.StaleViewError):
        READINGS[reading](twin)
    READINGS[reading](graph.view())


def test_a_refused_patch_leaves_views_fresh() -> None:
    """Nothing has changed, so nothing is stale."""
    graph = store.Store()
    before = graph.view()

    assert isinstance(graph.apply(delta.Patch().set_vertex(nodes.Node(""))), delta.Refused)

    before.check()


def numbers(graph: view.View) -> dict[str, object]:
    """All that an overlay keeps in step, by node name, zeros left out."""
    columns = graph.columns
    return {
        name: (
            {resource: int(column[row]) for resource, column in columns.requested.items() if column[row]},
            (int(columns.scored_cpu[row]), int(columns.scored_memory[row]), int(columns.pods[row])),
            graph.ports.held(row),
            graph.devices.free[:, row].tolist(),
        )
        for name, row in columns.rows.items()
    }


@st.composite
def changes(draw: st.DrawFn) -> tuple[store.Store, list[keys.VertexKey], list[tuple[pods.Pod, str]]]:
    """A store, pods of it that are taken off, and pods that are put on nodes of it."""
    graph = draw(clusters.stores())
    every = sorted(pod.key for pod in graph.all_pods())
    removed = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    names = st.sampled_from((*clusters.NODE_NAMES, "gone"))
    added = draw(st.lists(st.tuples(clusters.pod_values(), names), max_size=3, unique_by=lambda entry: entry[0].name))
    fresh = [
        (pods.Pod(keys.pod_key("fresh", pod.name), spec=pod.spec, held=pod.held, labels=pod.labels), node)
        for pod, node in added
    ]
    return graph, removed, fresh


@hypothesis.given(changes())
def test_what_if_equals_doing_it(
    case: tuple[store.Store, list[keys.VertexKey], list[tuple[pods.Pod, str]]],
) -> None:
    """The overlay holds the numbers that applying the same changes leads to, and the store those it had."""
    graph, removed, added = case
    untouched = numbers(graph.view())

    twin = graph.view().with_changes(removed=removed, added=added)

    supposed = numbers(twin)
    assert untouched == numbers(graph.view())
    # One patch a pod: the devices that it is given depend on those before it.
    gone = delta.Patch(removed=set(removed))
    assert isinstance(graph.apply(gone), delta.Applied)
    for pod, node in added:
        row = graph.columns.rows.get(node)
        devices = graph.devices.choose(row, pod.spec.gpu) if row is not None and pod.spec.gpu is not None else ()
        bound = pods.Pod(pod.key, spec=pod.spec, held=pod.held, labels=pod.labels, node=node, devices=devices)
        assert isinstance(graph.apply(delta.Patch().set_vertex(bound)), delta.Applied)
    assert numbers(graph.view()) == supposed
    assert [] == graph.audit()
