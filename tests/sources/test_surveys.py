"""What is described, put together: rows follow from what is said, whatever happened before."""

import typing

import pytest
from hypothesis import given, settings, strategies as st

from graphsched.base.values import descriptions, keys, labels, places, relations
from graphsched.graph import delta, store as stores
from graphsched.sources import surveys
from tests import builders

ZONE = "topology.kubernetes.io/zone"
ROOM = "example.com/room"
NAMES = ("n1", "n2", "n3")
HYPER = "place/hypernode/"


def contains(source: str, target: str) -> keys.EdgeID:
    """The edge by which one vertex holds another."""
    return keys.EdgeID(keys.VertexKey(source), keys.VertexKey(target), keys.EdgeKind.CONTAINS)


def link(source: str, target: str) -> keys.EdgeID:
    """The edge by which one vertex reaches another."""
    return keys.EdgeID(keys.VertexKey(source), keys.VertexKey(target), keys.EdgeKind.LINK)


def named(**values: str) -> labels.Labels:
    """Labels of a node: its zone, its room."""
    known = {"zone": ZONE, "room": ROOM}
    return labels.from_mapping({known[name]: value for name, value in values.items() if value})


def hyper(
    name: str, *members: str, pattern: str = "", within: str = "", mentioned: bool = True
) -> descriptions.Description:
    """A place that holds these nodes or places, and whatever matches: nodes, or other such places with `within`."""
    place = places.Place(f"hypernode/{name}", kind="hypernode")
    return descriptions.Description(
        f"hypernode/{name}",
        places=(place,),
        mentioned=tuple(
            places.Place(each.removeprefix("place/"), kind="hypernode") for each in members if each.startswith("place/")
        ),
        ties=tuple(
            descriptions.Tie(place.key, keys.VertexKey(each), relations.Contains(f"hypernode/{name}"))
            for each in members
            if each != place.key
        ),
        memberships=(
            *((descriptions.Membership(place.key, pattern=pattern),) if pattern else ()),
            *((descriptions.Membership(place.key, HYPER, pattern=within),) if within else ()),
        ),
    )


def between(name: str, source: descriptions.End, target: descriptions.End, cost: int = 1) -> descriptions.Description:
    """A link."""
    by = f"networklink/{name}"
    ends = [end for end in (source, target) if isinstance(end, str) and end.startswith("place/")]
    return descriptions.Description(
        by,
        mentioned=tuple(places.Place(keys.name_of(end)) for end in ends),
        ties=(descriptions.Tie(source, target, relations.Link(by=by, cost=cost)),),
    )


def rooms(name: str, *levels: str) -> descriptions.Description:
    """Levels of labels."""
    return descriptions.Description(f"kueue/{name}", levels=levels)


class World:
    """A survey, and a graph that is told what it says, as the live program does it."""

    def __init__(self) -> None:
        self.survey = surveys.Survey()
        self.store = stores.Store()
        self.objects: dict[keys.VertexKey, descriptions.Description] = {}
        self.nodes: dict[str, labels.Labels] = {}

    def describe(self, description: descriptions.Description) -> None:
        """An object comes or changes."""
        self.objects[description.key] = description
        self.survey.describe(description)

    def forget(self, key: keys.VertexKey) -> None:
        """An object goes."""
        self.objects.pop(key, None)
        self.survey.forget(key)

    def node(self, name: str, node_labels: labels.Labels | None) -> None:
        """A node comes, changes or goes, first in the graph, and then the survey hears of it."""
        key = keys.node_key(name)
        if node_labels is None:
            self.nodes.pop(name, None)
            self.apply(delta.Patch().remove(key))
        else:
            self.nodes[name] = node_labels
            built = builders.make_node(name)
            for label, value in node_labels:
                built = built.label(label, value)
            self.apply(delta.Patch().set_vertex(built.build()))
        self.survey.set_node(name, node_labels)

    def apply(self, patch: delta.Patch) -> None:
        """Change the graph."""
        assert isinstance(self.store.apply(patch), delta.Applied)

    def flush(self, budget: int = 1 << 20) -> None:
        """Send what has changed; with a small budget not everything has been looked at."""
        self.survey.work(budget)
        patch = delta.Patch()
        self.survey.flush(patch)
        for part in delta.split(patch, rows_max=3):
            self.apply(part)

    def rest(self) -> None:
        """Send everything."""
        while not self.survey.settled:
            self.flush()

    def held(self) -> dict[surveys.Row, typing.Any]:
        """What the graph holds beside nodes."""
        vertices, edges = self.store.content()
        rows: dict[surveys.Row, typing.Any] = {}
        rows.update({key: vertex for key, vertex in vertices.items() if not key.startswith("node/")})
        rows.update(edges.items())
        return rows

    @property
    def due(self) -> dict[surveys.Row, surveys.Value]:
        """What a fresh start would come to."""
        return surveys.whole(self.objects.values(), self.nodes.items())


def world(*described: descriptions.Description, **nodes: labels.Labels) -> World:
    """These nodes and objects, at rest."""
    made = World()
    for name, node_labels in nodes.items():
        made.node(name, node_labels)
    for description in described:
        made.describe(description)
    made.rest()
    return made


ends = st.sampled_from(
    [
        *(keys.node_key(name) for name in NAMES),
        *(keys.VertexKey(HYPER + name) for name in "ab"),
        descriptions.Domain(ZONE, "z1"),
        descriptions.Domain(ROOM, "r1"),
        keys.domain_key(ZONE, "z2"),
    ]
)
described = st.one_of(
    st.builds(
        hyper,
        st.sampled_from("ab"),
        st.sampled_from(["node/n1", "node/n2", "place/hypernode/a", "place/hypernode/b"]),
        pattern=st.sampled_from(["", "n[12]", "^n3$"]),
        within=st.sampled_from(["", "a", "."]),
    ),
    st.builds(between, st.sampled_from("xy"), ends, ends, st.integers(0, 2)),
    st.builds(
        lambda name, levels: rooms(name, *levels),
        st.sampled_from("kl"),
        st.sampled_from([(ZONE, ROOM), (ROOM,), (ROOM, ZONE)]),
    ),
)
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("describe"), described),
        st.tuples(st.just("forget"), described),
        st.tuples(
            st.just("node"),
            st.tuples(
                st.sampled_from(NAMES),
                st.none()
                | st.builds(named, zone=st.sampled_from(["", "z1", "z2"]), room=st.sampled_from(["", "r1", "r2"])),
            ),
        ),
        st.tuples(st.just("flush"), st.integers(0, 3)),
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(happenings)
def test_any_history_ends_where_a_fresh_start_would(history: list[tuple[str, typing.Any]]) -> None:
    """Graph, survey and a survey of what is there now agree, whatever came and went in which order and pieces."""
    made = World()
    for what, value in history:
        match what:
            case "describe":
                made.describe(value)
            case "forget":
                made.forget(value.key)
            case "node":
                made.node(*value)
            case "flush":
                made.flush(value)
    made.rest()

    assert made.due == made.survey.rows
    assert made.due == made.held()
    assert [] == made.store.audit()


@settings(max_examples=100)
@given(st.lists(described, max_size=4), happenings)
def test_a_graph_that_lost_everything_is_told_everything(
    first: list[descriptions.Description], history: list[tuple[str, typing.Any]]
) -> None:
    """After `refresh` a flush holds all that there is."""
    made = world(*first, n1=named(zone="z1", room="r1"))
    for what, value in history:
        if what == "describe":
            made.describe(value)
    made.rest()
    made.survey.refresh()
    patch = delta.Patch()
    made.survey.flush(patch)

    rows: dict[surveys.Row, typing.Any] = dict(patch.vertices.items())
    rows.update(patch.edges.items())
    assert made.due == rows


def test_a_place_that_two_objects_name_stays_until_both_are_gone() -> None:
    """Deleting one of two links leaves the switch that both end at."""
    switch = keys.place_key("rail-0")
    made = world(
        between("a", keys.node_key("n1"), switch),
        between("b", keys.node_key("n2"), switch),
        n1=named(),
        n2=named(),
    )
    made.forget(keys.VertexKey("networklink/a"))
    made.rest()
    assert {switch, link("node/n2", switch)} == set(made.held())

    made.forget(keys.VertexKey("networklink/b"))
    made.rest()
    assert {} == made.held()


def test_who_describes_a_place_counts_before_who_mentions_it() -> None:
    """A link to a HyperNode does not make it less of one, whichever came first."""
    mention = between("a", keys.node_key("n1"), keys.VertexKey(HYPER + "a"))
    for order in ((mention, hyper("a")), (hyper("a"), mention)):
        place = world(*order).held()[keys.VertexKey(HYPER + "a")]
        assert "hypernode" == place.kind


def test_members_by_pattern_come_and_go_with_the_nodes() -> None:
    """A node that joins later is a member, one that leaves is none any more, and comes back as one."""
    made = world(hyper("a", pattern="^gpu-"), **{"gpu-1": named(), "cpu-1": named()})
    inside = contains(HYPER + "a", "node/gpu-1"), contains(HYPER + "a", "node/gpu-2")
    assert {HYPER + "a", inside[0]} == set(made.held())

    made.node("gpu-2", named())
    made.rest()
    assert {HYPER + "a", *inside} == set(made.held())

    made.node("gpu-1", None)
    made.rest()
    assert {HYPER + "a", inside[1]} == set(made.held())

    made.node("gpu-1", named())
    made.rest()
    assert {HYPER + "a", *inside} == set(made.held())


def test_a_node_that_is_replaced_between_two_looks_keeps_its_edges() -> None:
    """It took its edges along when it went, although the survey was busy elsewhere."""
    made = world(between("a", keys.node_key("n1"), keys.node_key("n2")), n1=named(), n2=named())
    made.node("n1", None)
    made.node("n1", named())
    assert {} == made.held()

    made.rest()
    assert {link("node/n1", "node/n2")} == set(made.held())


def test_ends_that_a_label_names_are_found_where_the_nodes_say_they_are() -> None:
    """Zone z1 of two regions is two zones, and each of them is an end."""
    region = "topology.kubernetes.io/region"
    east, west = (labels.from_mapping({region: name, ZONE: "z1"}) for name in ("east", "west"))
    made = world(
        between("a", descriptions.Domain(ZONE, "z1"), descriptions.Domain(ZONE, "z2")),
        n1=east,
        n2=west,
        n3=named(zone="z2"),
    )
    goal = f"domain/{ZONE}=z2"
    assert {link(f"domain/{ZONE}={name}/z1", goal) for name in ("east", "west")} == set(made.held())

    made.node("n2", None)
    made.rest()
    assert {link(f"domain/{ZONE}=east/z1", goal)} == set(made.held())


def test_levels_hang_under_domains_the_graph_knows_by_itself() -> None:
    """A room is in the zone of its nodes, and holds them; rooms of one name in two zones are two rooms."""
    made = world(rooms("k", ZONE, ROOM), n1=named(zone="z1", room="r1"), n2=named(zone="z2", room="r1"))

    assert {
        f"place/{ROOM}=z1/r1",
        f"place/{ROOM}=z2/r1",
        contains(f"domain/{ZONE}=z1", f"place/{ROOM}=z1/r1"),
        contains(f"domain/{ZONE}=z2", f"place/{ROOM}=z2/r1"),
        contains(f"place/{ROOM}=z1/r1", "node/n1"),
        contains(f"place/{ROOM}=z2/r1", "node/n2"),
    } == set(made.held())


def test_a_link_may_end_at_a_level_that_another_object_defines() -> None:
    """Rooms are places of a Topology, and a link names them by label and value."""
    made = world(
        between("a", descriptions.Domain(ROOM, "r1"), keys.node_key("n2")),
        rooms("k", ROOM),
        n1=named(room="r1"),
        n2=named(),
    )
    assert link(f"place/{ROOM}=r1", "node/n2") in made.held()

    made.forget(keys.VertexKey("kueue/k"))
    made.rest()
    assert {} == made.held()


@pytest.mark.parametrize("budget", [1, 7, 100])
def test_what_asks_for_every_node_is_looked_at_in_pieces(budget: int) -> None:
    """No call looks at more pairs than it was given, give or take one piece, and the end is the same."""
    made = World()
    for number in range(500):
        made.survey.set_node(f"n{number}", named())
    made.survey.describe(hyper("a", pattern="[05]$"))
    looks = 0
    while made.survey.work(budget):
        looks += 1
    made.flush()

    assert 500 // (budget + surveys._PIECE) <= looks
    assert 100 == len([row for row in made.survey.rows if not isinstance(row, str)])
