"""The selector by which a pod is spread by default: joined from what selects it and what keeps it."""

from __future__ import annotations

from graphsched.base.values import labels, selections
from graphsched.graph import delta, store

WEB = labels.from_mapping({"app": "web", "tier": "x"})


def requirement(key: str, *values: str) -> labels.Requirement:
    """The label is one of these values."""
    return labels.Requirement(key, labels.Operator.IN, values)


def chosen(*requirements: labels.Requirement) -> labels.Selector:
    """All of these hold."""
    return labels.selector(requirements)


def graph_of(*found: selections.Selection) -> store.Store:
    """A graph of these objects and nothing else."""
    graph = store.Store()
    graph.apply(delta.Patch(vertices={each.key: each for each in found}))
    assert not graph.audit()
    return graph


def service(name: str, **pairs: str) -> selections.Selection:
    """A Service."""
    return selections.Selection("Service", "default", name, chosen(*(requirement(*pair) for pair in pairs.items())))


def test_nothing_selects_where_nothing_is() -> None:
    """No service, and an owner nobody has described."""
    assert store.Store().selections.of("default", WEB, "selection/ReplicaSet/default/web") is None


def test_services_that_select_the_pod_are_merged() -> None:
    """Others, those of other namespaces, and those that name no label play no part."""
    other = selections.Selection("Service", "team", "far", chosen(requirement("tier", "x")))
    found = graph_of(service("a", app="web"), service("b", tier="x"), service("c", app="db"), service("d"), other)

    assert chosen(requirement("app", "web"), requirement("tier", "x")) == found.selections.of("default", WEB, "")
    assert chosen(requirement("tier", "x")) == found.selections.of("team", WEB, "")
    assert found.selections.of("gone", WEB, "") is None


def test_labels_of_a_replication_controller_win_over_those_of_services() -> None:
    """They are merged as labels, of which each key has one value; the requirements of others are added instead."""
    for kind, expected in (
        ("ReplicationController", chosen(requirement("app", "db"))),
        ("ReplicaSet", chosen(requirement("app", "web"), requirement("app", "db"))),
        ("StatefulSet", chosen(requirement("app", "web"), requirement("app", "db"))),
    ):
        owner = selections.Selection(kind, "default", "web", chosen(requirement("app", "db")))
        found = graph_of(service("a", app="web"), owner)

        assert expected == found.selections.of("default", WEB, owner.key)


def test_an_answer_follows_every_change() -> None:
    """What was answered before is forgotten when an object comes, changes or goes."""
    graph = store.Store()
    owner = selections.Selection("ReplicaSet", "default", "web", chosen(requirement("app", "web")))
    answers = []
    for patch in (
        delta.Patch().set_vertex(owner),
        delta.Patch().set_vertex(service("a", tier="x")),
        delta.Patch().set_vertex(selections.Selection("ReplicaSet", "default", "web")),
        delta.Patch().remove(service("a").key),
    ):
        graph.apply(patch)
        answers.append(graph.selections.of("default", WEB, owner.key))

    assert [
        chosen(requirement("app", "web")),
        chosen(requirement("app", "web"), requirement("tier", "x")),
        chosen(requirement("tier", "x")),
        None,
    ] == answers


def test_what_selects_nothing_by_name_is_refused() -> None:
    """A kind that selects no pods, and an owner of such a kind, never enter the graph."""
    refused = store.Store().apply(delta.Patch().set_vertex(selections.Selection("ConfigMap", "default", "a")))

    assert isinstance(refused, delta.Refused)
    assert "selects no pods" in refused.detail
