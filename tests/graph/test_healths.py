"""The health of links: what lowers it, what restores it, and which patches tell the graph."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import keys, relations
from graphsched.graph import delta, healths, store

EDGE = keys.EdgeID(keys.node_key("a"), keys.node_key("b"), keys.EdgeKind.LINK)
OTHER = keys.EdgeID(keys.node_key("b"), keys.node_key("a"), keys.EdgeKind.LINK)
NOW = 1_000.0

measured = st.one_of(st.none(), st.floats(0, 100))
observations = st.builds(
    healths.Observation,
    at=st.floats(0, NOW),
    errors_per_s=measured,
    loss=st.one_of(st.none(), st.floats(-1, 2)),
    latency_ms=st.one_of(st.none(), st.floats()),
    health=st.one_of(st.none(), st.floats()),
)


def seen(*told: healths.Observation, stated_ms: float | None = 1.0) -> healths.Ledger:
    """A ledger that was told this of `EDGE`, all of it now."""
    ledger = healths.Ledger()
    for each in told:
        ledger.observed(EDGE, each, NOW, stated_ms=stated_ms)
    return ledger


def graph(link: relations.Link) -> store.Store:
    """A graph with that link."""
    made = store.Store()
    made.apply(delta.Patch().set_edge(EDGE, link))
    return made


def told(ledger: healths.Ledger, there: store.Store, now: float) -> relations.Link | None:
    """Apply what is due; the link if it was patched."""
    patch = ledger.due(there.edge, now)
    assert isinstance(there.apply(patch), delta.Applied)
    found = patch.edges.get(EDGE)
    assert found is None or isinstance(found, relations.Link)
    return found


# ── laws ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(observations, max_size=8), st.floats(0, 1e6))
def test_health_is_above_0_and_at_most_1(series: list[healths.Observation], later: float) -> None:
    """Whatever was observed, be it nonsense, and whenever it is asked."""
    assert 0 < seen(*series).health(EDGE, NOW + later) <= 1


@given(st.lists(observations, min_size=1, max_size=6), observations)
def test_one_more_observation_never_heals(series: list[healths.Observation], more: healths.Observation) -> None:
    """A good measurement after bad ones included: only time restores."""
    assert seen(*series, more).health(EDGE, NOW) <= seen(*series).health(EDGE, NOW) + 1e-12


@given(st.floats(0, 50), st.floats(0, 50), st.sampled_from(["errors_per_s", "loss", "latency_ms"]))
def test_more_damage_means_no_more_health(first: float, second: float, field: str) -> None:
    """For errors, loss and latency alike."""
    worse, better = (
        seen(healths.Observation(NOW, **{field: value})).health(EDGE, NOW)
        for value in (max(first, second), min(first, second))
    )

    assert worse <= better


@given(st.lists(observations, max_size=6), st.floats(0, 1e3), st.floats(0, 1e3))
def test_time_never_lowers_health(series: list[healths.Observation], one: float, other: float) -> None:
    """And in the end it is 1 again."""
    ledger = seen(*series)

    assert ledger.health(EDGE, NOW + min(one, other)) <= ledger.health(EDGE, NOW + max(one, other))
    assert ledger.health(EDGE, NOW + 1e5) == 1


@given(st.data(), st.lists(observations.map(lambda each: msgspec.structs.replace(each, at=NOW)), max_size=6))
def test_the_order_of_simultaneous_observations_means_nothing(
    data: st.DataObject, series: list[healths.Observation]
) -> None:
    """With a latency that is stated, and with none."""
    shuffled = data.draw(st.permutations(series))
    for stated in (1.0, None):
        first, second = seen(*series, stated_ms=stated), seen(*shuffled, stated_ms=stated)
        for ledger in (first, second):
            ledger.observed(EDGE, healths.Observation(NOW + 1, latency_ms=80.0), NOW + 1, stated_ms=stated)

        assert first.health(EDGE, NOW + 5) == second.health(EDGE, NOW + 5)


@given(st.lists(observations.filter(lambda each: each.at > 0), max_size=6))
def test_with_a_stated_latency_the_order_of_any_observations_means_nothing(series: list[healths.Observation]) -> None:
    """A late one counts for what is left of it."""
    assert seen(*series).health(EDGE, NOW) == pytest.approx(seen(*reversed(series)).health(EDGE, NOW), rel=1e-9)


@given(st.lists(observations, max_size=6))
def test_telling_everything_twice_changes_nothing(series: list[healths.Observation]) -> None:
    """A list after a watch tells it again."""
    dated = [msgspec.structs.replace(each, at=each.at or NOW) for each in series]

    assert seen(*dated, *dated).health(EDGE, NOW) == seen(*dated).health(EDGE, NOW)


@given(st.lists(st.tuples(observations, st.floats(0, 100)), max_size=8))
def test_the_graph_is_never_far_from_the_ledger(series: list[tuple[healths.Observation, float]]) -> None:
    """After each call of `due` the link's health is within a step of the ledger's; once recovered, it is 1."""
    ledger, there, now = healths.Ledger(), graph(relations.Link(latency_ms=1.0)), NOW
    for each, pause in series:
        now += pause
        ledger.observed(EDGE, msgspec.structs.replace(each, at=now), now, stated_ms=1.0)
        told(ledger, there, now + 1)
        link = there.edge(EDGE)
        assert isinstance(link, relations.Link)
        assert 1 / healths.STEP < link.health / ledger.health(EDGE, now + 1) < healths.STEP
    told(ledger, there, now + 1e5)
    link = there.edge(EDGE)

    assert isinstance(link, relations.Link)
    assert link.health == 1
    assert not ledger.recovering


@given(st.floats(0.02, 1), st.floats(0.001, 1), st.integers(1, 40))
def test_a_recovery_ends_in_the_graph_at_the_health_that_is_stated(stated: float, loss: float, pause: int) -> None:
    """Exactly, however small the last step is: nothing would be told of the link any more."""
    ledger, there = healths.Ledger(), store.Store()
    there.apply(ledger.imprint(delta.Patch().set_edge(EDGE, relations.Link(latency_ms=1.0, health=stated)), NOW))
    ledger.observed(EDGE, healths.Observation(NOW, loss=loss), NOW, stated_ms=1.0)
    now = NOW
    while ledger.fresh or ledger.recovering:
        told(ledger, there, now)
        now += pause
    link = there.edge(EDGE)

    assert isinstance(link, relations.Link)
    assert link.health == stated


# ── what each observation is worth ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("observation", "health"),
    [
        (healths.Observation(NOW, errors_per_s=0.0, loss=0.0, latency_ms=1.0, health=1.0), 1.0),
        (healths.Observation(NOW, errors_per_s=1.0), 0.5),
        (healths.Observation(NOW, loss=0.01), 0.5),
        (healths.Observation(NOW, latency_ms=4.0), 0.25),
        (healths.Observation(NOW, latency_ms=0.1), 1.0),
        (healths.Observation(NOW, health=0.3), 0.3),
        (healths.Observation(NOW, errors_per_s=1.0, loss=0.01), 0.25),
        (healths.Observation(NOW, health=-3.0), 0.01),
        (healths.Observation(NOW, errors_per_s=1e9, loss=1.0), 0.01),
    ],
)
def test_the_formula(observation: healths.Observation, health: float) -> None:
    """As documented: halving points, products over kinds, and the floor."""
    assert seen(observation).health(EDGE, NOW) == pytest.approx(health)


def test_half_of_the_damage_is_gone_after_a_half_life() -> None:
    """Each kind has one of its own."""
    assert seen(healths.Observation(NOW, errors_per_s=1.0)).health(EDGE, NOW + 60) == pytest.approx(0.75)
    assert seen(healths.Observation(NOW, latency_ms=2.0)).health(EDGE, NOW + 30) == pytest.approx(0.75)


def test_without_a_stated_latency_a_running_mean_is_the_measure() -> None:
    """The first measurement is no excess; a sudden rise is; the graph has the mean as the link's latency."""
    ledger, there = healths.Ledger(), graph(relations.Link())
    for second in range(20):
        ledger.observed(EDGE, healths.Observation(NOW + second, latency_ms=2.0), NOW + second)
    assert ledger.health(EDGE, NOW + 20) == 1
    first = told(ledger, there, NOW + 20)
    ledger.observed(EDGE, healths.Observation(NOW + 21, latency_ms=20.0), NOW + 21)
    second_link = told(ledger, there, NOW + 21)

    assert first is not None
    assert first.latency_ms == pytest.approx(2.0)
    assert second_link is not None
    assert second_link.health == pytest.approx(0.1)


def test_a_moment_to_come_counts_as_now() -> None:
    """A prober's clock that is ahead must not keep a link ill for longer."""
    ledger = seen(healths.Observation(NOW + 1e6, errors_per_s=1.0))

    assert ledger.health(EDGE, NOW + 60) == pytest.approx(0.75)


def test_an_observation_without_a_time_counts_once() -> None:
    """Lists tell it again and again; when it changes it is news."""
    ledger = seen(healths.Observation(health=0.5))
    ledger.observed(EDGE, healths.Observation(health=0.5), NOW + 120, stated_ms=1.0)
    assert ledger.health(EDGE, NOW + 120) == pytest.approx(0.75)
    ledger.observed(EDGE, healths.Observation(health=0.25), NOW + 120, stated_ms=1.0)

    assert ledger.health(EDGE, NOW + 120) == pytest.approx(0.25)


# ── what the graph is told ─────────────────────────────────────────────────────────────────────────────────────────


def test_damage_reaches_the_graph_at_once_and_recovery_in_steps() -> None:
    """A patch for what was observed, then one whenever the change can be seen, then none."""
    ledger, there = seen(healths.Observation(NOW, loss=1.0)), graph(relations.Link(latency_ms=1.0))
    first = told(ledger, there, NOW)
    patches = [second for second in range(1, 1200) if told(ledger, there, NOW + second) is not None]

    assert first is not None
    assert first.health == pytest.approx(0.01)
    assert first.at == NOW
    assert 20 < len(patches) < 100
    assert there.edge(EDGE) == relations.Link(latency_ms=1.0, health=1.0, at=NOW)
    assert not len(ledger)


def test_what_a_source_states_again_keeps_its_health() -> None:
    """Down and up again: the damage is not of the statement."""
    ledger = seen(healths.Observation(NOW, errors_per_s=1.0))
    patch = delta.Patch(stream=delta.Stream("watch/links", 1, 1)).set_edge(EDGE, relations.Link(latency_ms=3.0))

    imprinted = ledger.imprint(patch, NOW + 60)

    assert imprinted.edges == {EDGE: relations.Link(latency_ms=3.0, health=0.75, at=NOW)}
    assert imprinted.stream == patch.stream
    assert patch.edges[EDGE] == relations.Link(latency_ms=3.0)


def test_a_link_that_is_down_is_that_and_its_damage_fades_beneath() -> None:
    """Up again it has the health that time has left it, though it was looked at meanwhile."""
    ledger, up = seen(healths.Observation(NOW, errors_per_s=1.0)), relations.Link(latency_ms=3.0)
    down, there = msgspec.structs.replace(up, health=relations.DOWN), store.Store()

    for second in (0.0, 1.0):
        there.apply(ledger.imprint(delta.Patch().set_edge(EDGE, down), NOW + second))
        assert there.edge(EDGE) == msgspec.structs.replace(down, at=NOW)
        assert ledger.health(EDGE, NOW + second) == relations.DOWN
    assert told(ledger, there, NOW + 30) is None
    ledger.observed(EDGE, healths.Observation(NOW + 31, errors_per_s=0.1), NOW + 31, stated_ms=3.0)
    assert told(ledger, there, NOW + 31) == msgspec.structs.replace(down, at=NOW + 31)

    there.apply(ledger.imprint(delta.Patch().set_edge(EDGE, up), NOW + 60))

    assert there.edge(EDGE) == relations.Link(latency_ms=3.0, health=0.75, at=NOW + 31)


def test_a_link_that_was_down_and_never_hurt_is_as_before() -> None:
    """Even one that says when it was measured, as a graph's own link does."""
    ledger = healths.Ledger()
    for down in (relations.Link(health=relations.DOWN), relations.Link(health=relations.DOWN, at=NOW)):
        assert ledger.link(EDGE, down, NOW) == down
        assert ledger.link(EDGE, relations.Link(1.0), NOW + 1) == relations.Link(1.0)


def test_a_link_that_nobody_states_is_patched_when_somebody_does() -> None:
    """Until then it is no edge of the graph."""
    ledger, there = seen(healths.Observation(NOW, errors_per_s=1.0)), store.Store()

    assert not len(ledger.due(there.edge, NOW))
    there.apply(ledger.imprint(delta.Patch().set_edge(EDGE, relations.Link(latency_ms=1.0)), NOW))

    assert there.edge(EDGE) == relations.Link(latency_ms=1.0, health=0.5, at=NOW)


def test_a_health_that_is_stated_without_a_time_does_not_heal() -> None:
    """It ends when the source states another; a health with a time is an observation."""
    ledger = healths.Ledger()
    degraded = (
        delta.Patch().set_edge(EDGE, relations.Link(health=0.5)).set_edge(OTHER, relations.Link(health=0.5, at=NOW))
    )
    ledger.imprint(degraded, NOW)

    assert ledger.health(EDGE, NOW + 120) == 0.5
    assert ledger.health(OTHER, NOW + 120) == pytest.approx(0.75)
    ledger.imprint(delta.Patch().set_edge(EDGE, relations.Link()), NOW + 120)
    assert ledger.health(EDGE, NOW + 120) == 1


def test_patches_without_links_pass_untouched() -> None:
    """The very object: most patches are of pods."""
    patch = delta.Patch().remove(keys.pod_key("default", "a"))

    assert seen(healths.Observation(NOW, loss=0.5)).imprint(patch, NOW) is patch


def test_a_measurement_that_changes_nothing_is_told_only_now_and_then() -> None:
    """The age of a healthy link is refreshed twice a minute at most."""
    ledger, there = healths.Ledger(), graph(relations.Link(latency_ms=1.0, at=NOW))
    patched = []
    for second in range(1, 91):
        ledger.observed(EDGE, healths.Observation(NOW + second, latency_ms=1.0), NOW + second, stated_ms=1.0)
        if told(ledger, there, NOW + second) is not None:
            patched.append(second)

    assert patched == [30, 60, 90]


def test_the_work_of_one_call_is_bounded_and_nobody_is_left_out() -> None:
    """What was observed comes first, then whoever has waited longest."""
    edges = [keys.EdgeID(keys.node_key(f"a{n}"), keys.node_key("b"), keys.EdgeKind.LINK) for n in range(25)]
    ledger, there = healths.Ledger(), store.Store()
    for edge in edges:
        there.apply(delta.Patch().set_edge(edge, relations.Link()))
        ledger.observed(edge, healths.Observation(NOW, loss=1.0), NOW)
    sizes = []
    while ledger.fresh:
        patch = ledger.due(there.edge, NOW, rows_max=10)
        there.apply(patch)
        sizes.append(len(patch))
    assert sizes == [10, 10, 5]
    later = [set(ledger.due(there.edge, NOW + 60, rows_max=10).edges) for _ in range(2)]

    assert [len(each) for each in later] == [10, 10]
    assert later[0].isdisjoint(later[1])


def test_no_more_links_are_kept_than_there_is_room_for() -> None:
    """The one observed longest ago makes room."""
    ledger = healths.Ledger(links_max=2)
    for number in range(3):
        edge = keys.EdgeID(keys.node_key(f"a{number}"), keys.node_key("b"), keys.EdgeKind.LINK)
        ledger.observed(edge, healths.Observation(NOW, loss=1.0), NOW)

    assert len(ledger) == ledger.recovering == 2


def test_a_picture_shows_links_at_the_moment_of_the_newest_observation() -> None:
    """Older damage has faded by then; what nobody observed stays as it is."""
    third = keys.EdgeID(keys.node_key("c"), keys.node_key("a"), keys.EdgeKind.LINK)
    patch = delta.Patch(
        edges={
            EDGE: relations.Link(seen=relations.Observation(NOW - 60, loss=0.01)),
            OTHER: relations.Link(latency_ms=1.0, seen=relations.Observation(NOW, latency_ms=2.0)),
            third: relations.Link(health=0.4, at=3.0),
        }
    )

    assert healths.pictured(patch).edges == {
        EDGE: relations.Link(health=0.75, at=NOW - 60),
        OTHER: relations.Link(latency_ms=1.0, health=0.5, at=NOW),
        third: patch.edges[third],
    }


def test_what_a_source_has_seen_goes_to_the_ledger_and_not_into_the_graph() -> None:
    """The graph refuses an observation; imprinted, the patch has its effect instead."""
    patch = delta.Patch().set_edge(EDGE, relations.Link(latency_ms=1.0, seen=relations.Observation(NOW, loss=0.01)))

    assert isinstance(store.Store().apply(patch), delta.Refused)
    imprinted = healths.Ledger().imprint(patch, NOW)
    assert imprinted.edges == {EDGE: relations.Link(latency_ms=1.0, health=0.5, at=NOW)}
    assert isinstance(store.Store().apply(imprinted), delta.Applied)
