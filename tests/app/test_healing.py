"""A running scheduler: what is observed of a link lowers its health in the graph, and time restores it."""

import typing

from graphsched.app.healing import LinkHealthSettings
from graphsched.base.values import keys, places, relations
from graphsched.explain import telling, why
from graphsched.graph import delta
from tests import builders
from tests.app import live
from tests.fakes import virtual

N1, N2 = builders.make_node("n1").cpu("8"), builders.make_node("n2").cpu("4")
EDGE = keys.EdgeID(keys.node_key("n1"), keys.place_key("leaf"), keys.EdgeKind.LINK)
SETTINGS = LinkHealthSettings(loss_half_life_seconds=10.0)


async def stated(
    it: live.Scheduler,
    sequence: int = 1,
    seen: relations.Observation | None = None,
    latency_ms: float = 0.2,
    health: float = 1.0,
) -> None:
    """A source says that there is such a link, and what it has seen of it."""
    stream = delta.Stream("test/links", 1, sequence)
    link = relations.Link(latency_ms=latency_ms, health=health, seen=seen)
    await it.parts.inbox.put(delta.Patch(stream=stream).set_vertex(places.Place("leaf")).set_edge(EDGE, link))
    await it.quiet(0.1)


def link(it: live.Scheduler) -> relations.Link:
    """The link as the graph has it."""
    found = it.parts.store.edge(EDGE)
    assert isinstance(found, relations.Link)
    return found


def numbers(it: live.Scheduler) -> dict[str, float]:
    """The metrics about links that are not 0."""
    lines = it.parts.meters.render().decode().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith(("graphsched_link", "graphsched_nodes_cut")))
    return {name.removeprefix("graphsched_"): float(value) for name, value in found.items() if float(value)}


@virtual.timed
async def test_damage_is_seen_at_once_and_heals_by_patches() -> None:
    """The node is avoided meanwhile, explanations say so with health and age, metrics count; then all is as before."""
    async with live.scheduler(N1, N2, link_health=SETTINGS) as it:
        await stated(it)
        assert relations.Link(latency_ms=0.2) == link(it)
        await stated(it, 2, relations.Observation(loss=1.0))

        assert link(it).health < 0.02
        assert {'links{health="failing"}': 1.0, "link_health_worst": link(it).health, "nodes_cut_off": 1.0} == numbers(
            it
        )
        it.pod(builders.make_pod("web").cpu("1"))
        await it.bound("web")
        assert "n2" == it.where("web")
        explanation = typing.cast("why.Explanation", await it.program.sights.explain("default/web"))
        (avoided,) = explanation.avoided
        assert "n1" == avoided.node
        assert 500 == avoided.points
        assert any("n1, whose best link has health 0." in line for line in telling.lines(explanation))

        generation = it.parts.store.generation
        await it.quiet(120.0)
        assert 1.0 == link(it).health
        assert it.parts.store.generation - generation < 100
        assert {'links{health="well"}': 1.0, "link_health_worst": 1.0} == numbers(it)
        it.require_sound()


@virtual.timed
async def test_a_node_whose_links_are_down_is_avoided_until_one_is_up() -> None:
    """Explanations say so and the metric counts it, whatever is sick; then all is as before."""
    for sick_below in (0.2, 0.0):
        async with live.scheduler(N1, N2, link_health=LinkHealthSettings(sick_below=sick_below)) as it:
            await stated(it)
            before = numbers(it)
            await stated(it, 2, health=relations.DOWN)

            assert {
                'links{health="failing"}': 1.0,
                "link_health_worst": relations.DOWN,
                "nodes_cut_off": 1.0,
            } == numbers(it)
            it.pod(builders.make_pod("web").cpu("1"))
            await it.bound("web")
            assert "n2" == it.where("web")
            explanation = typing.cast("why.Explanation", await it.program.sights.explain("default/web"))
            assert any(
                "n1, whose links are all down; it counts 500 less" in each for each in telling.lines(explanation)
            )

            await stated(it, 3)
            assert relations.Link(latency_ms=0.2) == link(it)
            assert before == numbers(it)
            it.pod(builders.make_pod("db").cpu("1"))
            await it.bound("db")
            assert "n1" == it.where("db")
            it.require_sound()


@virtual.timed
async def test_what_is_sick_is_a_setting() -> None:
    """A link that has lost half of its health is sick to one scheduler and well enough to another."""
    for sick_below, node in ((0.2, "n1"), (0.6, "n2")):
        settings = LinkHealthSettings(loss_half_life_seconds=10.0, sick_below=sick_below)
        async with live.scheduler(N1, N2, link_health=settings) as it:
            await stated(it, 1, relations.Observation(loss=0.01))
            it.pod(builders.make_pod("web").cpu("1"))
            await it.bound("web")

            assert node == it.where("web")
            assert (node == "n2") == ("nodes_cut_off" in numbers(it))


@virtual.timed
async def test_nothing_happens_while_nothing_recovers() -> None:
    """No patch, no turn of the loop each second."""
    async with live.scheduler(N1) as it:
        await stated(it)
        await stated(it, 2, relations.Observation(latency_ms=0.1))
        await it.quiet(3.0)
        generation, turned = it.parts.store.generation, it.program.loop.turned
        await it.quiet(5.0)

        assert generation == it.parts.store.generation
        assert turned == it.program.loop.turned


@virtual.timed
async def test_a_link_that_comes_back_has_the_health_it_had() -> None:
    """A source cut it and states it again: what was observed is not forgotten with it."""
    async with live.scheduler(N1, link_health=SETTINGS) as it:
        await stated(it)
        await stated(it, 2, relations.Observation(loss=0.01))
        await it.parts.inbox.put(delta.Patch(stream=delta.Stream("test/links", 1, 3)).cut_edge(EDGE))
        await it.quiet(0.1)
        assert it.parts.store.edge(EDGE) is None
        await stated(it, 4, latency_ms=0.4)

        assert 0.5 <= link(it).health < 0.6
        assert 0.4 == link(it).latency_ms
