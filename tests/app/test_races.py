"""Who raced with whom is remembered for two minutes: longer than any call takes, and no longer than that."""

import pytest

from graphsched.app import races
from graphsched.decision import trace
from graphsched.graph import delta, store as stores
from graphsched.observe import metrics
from tests import builders

NODE = builders.make_node("n1").cpu("4")
OURS = builders.make_pod("ours").cpu("3").scheduler("graph-scheduler").node("n1").build()
THEIRS = builders.make_pod("theirs").cpu("3").node("n1").build()


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self.now


@pytest.mark.parametrize(("later_s", "found"), [(races.KEPT_S - 1, [races.Kind.OVERCOMMITTED]), (races.KEPT_S + 1, [])])
def test_a_decision_of_long_ago_takes_part_in_no_race(later_s: float, found: list[races.Kind]) -> None:
    """Ours was there, and others came on top: that is their doing, unless it was decided at the same time."""
    clock, store = Hand(), stores.Store()
    noted = races.Races(store, metrics.Metrics(profile="p", version="0"), scheduler="graph-scheduler", clock=clock)
    store.apply(delta.Patch().set_vertex(NODE.build()).set_vertex(OURS))
    noted.decided(trace.Decision(OURS.key, OURS.uid, 1, "n1"))
    clock.now = later_s
    noted.decided(trace.Decision(builders.make_pod("other").build().key, "other", 2, "n1"))
    store.apply(delta.Patch().set_vertex(THEIRS))
    noted.pod(None, THEIRS)

    assert found == [race.kind for race in noted.newest(10)]


@pytest.mark.parametrize(("later_s", "told"), [(races.KEPT_S - 1, 4), (races.KEPT_S + 1, 2)])
def test_changes_of_long_ago_are_forgotten(later_s: float, told: int) -> None:
    """A record names what others did since the decision, as far back as that is kept; a cordon is a taint as well."""
    clock, store = Hand(), stores.Store()
    noted = races.Races(store, metrics.Metrics(profile="p", version="0"), scheduler="graph-scheduler", clock=clock)
    before, after = NODE.build(), NODE.cordoned().build()
    store.apply(delta.Patch().set_vertex(before))
    store.apply(delta.Patch().set_vertex(after))
    noted.node(before, after)
    clock.now = later_s
    noted.decided(trace.Decision(OURS.key, OURS.uid, 1, "n1"))
    noted.node(after, before)
    noted.rejected(OURS, "OutOfcpu")

    assert told == len(noted.newest(1)[0].by)


def test_pods_that_came_in_one_patch_are_one_conflict_that_names_them_all() -> None:
    """A patch is applied whole: the first pod that is told of is one too many already, though not the one to blame."""
    clock, store, meters = Hand(), stores.Store(), metrics.Metrics(profile="p", version="0")
    noted = races.Races(store, meters, scheduler="graph-scheduler", clock=clock)
    store.apply(delta.Patch().set_vertex(NODE.build()))
    noted.decided(trace.Decision(OURS.key, OURS.uid, store.generation, "n1"))
    store.apply(delta.Patch().set_vertex(OURS).set_vertex(THEIRS))
    noted.pod(None, OURS)
    noted.pod(None, THEIRS)

    (race,) = noted.newest(10)
    assert ["default-scheduler bound default/theirs"] == [change.what for change in race.by]
    both = "default/ours of graph-scheduler and default/theirs of default-scheduler"
    assert race.detail == f"{both} were bound there, and cpu is not enough for all"
    assert 'graphsched_conflicts_total{kind="overcommitted"} 1.0' in meters.render().decode()
    more = builders.make_pod("more").cpu("3").node("n1").build()
    store.apply(delta.Patch().set_vertex(more))
    noted.pod(None, more)
    newest, *_ = noted.newest(10)
    assert newest.detail.startswith("default/more of default-scheduler was bound there"), "another conflict"
    assert 2 == len(noted.newest(10))


def test_a_record_of_very_many_pods_names_some_and_says_how_many_more() -> None:
    """What is kept has a bound."""
    store = stores.Store()
    meters = metrics.Metrics(profile="p", version="0")
    noted = races.Races(store, meters, scheduler="graph-scheduler", clock=Hand())
    store.apply(delta.Patch().set_vertex(NODE.build()))
    noted.decided(trace.Decision(OURS.key, OURS.uid, store.generation, "n1"))
    theirs = [builders.make_pod(f"p{number}").cpu("1").node("n1").build() for number in range(races.NAMED_MAX + 2)]
    patch = delta.Patch().set_vertex(OURS)
    for each in theirs:
        patch.set_vertex(each)
    store.apply(patch)
    for each in (OURS, *theirs):
        noted.pod(None, each)

    (race,) = noted.newest(10)
    assert f"p{races.NAMED_MAX - 2} of default-scheduler and 3 more were bound there" in race.detail
