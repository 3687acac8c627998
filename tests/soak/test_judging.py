"""The judges of the soak see what they are there for."""

import pytest

from tests.controlplane import objects
from tests.soak import ledger, measures, streams


def _pod(name: str, *, node: str = "", cpu: str = "400m", stream: str = "shared") -> ledger.Object:
    pod = objects.pod(name, labels={"soak/stream": stream}, cpu=cpu, spec={"nodeName": node} if node else {})
    pod["metadata"]["namespace"] = "default"
    return pod


def _book(*, cpu: str = "1") -> ledger.Ledger:
    book = ledger.Ledger()
    node = objects.node("n1", cpu=cpu)
    node["status"]["allocatable"] = node["status"]["capacity"]
    book.node({"type": "ADDED", "object": node})
    return book


def test_a_binding_beyond_what_the_node_has_is_an_overcommit() -> None:
    """The third pod of 400m does not fit on one CPU; that it was bound is noted, with all who are there."""
    book = _book()
    for number, stream in enumerate(("shared", "shared-kube", "shared")):
        book.pod({"type": "MODIFIED", "object": _pod(f"p{number}", node="n1", stream=stream)}, 1.0)

    assert [("n1", "default/p2", ("cpu",), frozenset({"shared", "shared-kube"}))] == [
        (each.node, each.pod, each.short, each.others) for each in book.overcommits
    ]


def test_pods_that_are_over_or_gone_hold_nothing() -> None:
    """Room that was given back may be given again."""
    book = _book()
    for name in ("p0", "p1"):
        book.pod({"type": "ADDED", "object": _pod(name, node="n1")}, 1.0)
    book.pod({"type": "DELETED", "object": _pod("p0", node="n1")}, 2.0)
    over = _pod("p1", node="n1")
    over["status"] = {"phase": "Succeeded"}
    book.pod({"type": "MODIFIED", "object": over}, 2.0)
    book.pod({"type": "ADDED", "object": _pod("p2", node="n1", cpu="900m")}, 3.0)

    assert ([], 900) == (book.overcommits, book.held("n1").cpu)


def test_a_pod_that_changes_its_node_is_noted() -> None:
    """Nobody moves a pod: two bindings of one were carried out."""
    book = _book()
    book.pod({"type": "ADDED", "object": _pod("p0", node="n1")}, 1.0)
    book.pod({"type": "MODIFIED", "object": _pod("p0", node="n2")}, 2.0)

    assert ["default/p0: from n1 to n2"] == book.moved


def test_a_race_explains_the_over_commit_it_was_and_no_other() -> None:
    """By node, moment and pod, and only with what others did there meanwhile."""
    found = ledger.Overcommit("n1", "default/p2", "shared-kube", 7.0, ("cpu",), frozenset({"shared", "shared-kube"}))
    race = {
        "kind": "overcommitted",
        "node": "n1",
        "time": 107.5,
        "pod": "default/p1",
        "detail": "default/p2 of default-scheduler was bound there, and cpu is not enough for all",
        "by": [{"what": "default-scheduler bound default/p2"}],
    }

    assert ledger.explains(race, found, wall_s=107.0)
    changes: tuple[ledger.Object, ...] = (
        {"kind": "moved"},
        {"node": "n2"},
        {"time": 90.0},
        {"by": []},
        {"detail": "default/p9 of default-scheduler was bound there", "by": [{"what": "the node was cordoned"}]},
    )
    for wrong in changes:
        assert not ledger.explains({**race, **wrong}, found, wall_s=107.0), wrong


def test_a_leak_is_a_slope_and_noise_is_none() -> None:
    """Two megabytes in ten minutes show through noise of half a megabyte; noise alone has no slope to speak of."""
    noise = [(5.0 * step, 1e8 + 5e5 * (-1) ** step) for step in range(200)]
    leak = [(at, size + at * 2e6 / 600) for at, size in noise]

    assert 0.1 > abs(measures.trend(noise).mb_per_10_min)
    assert 2.0 == pytest.approx(measures.trend(leak).mb_per_10_min, abs=0.1)


def test_only_a_pod_that_fits_all_the_time_starves() -> None:
    """A look at which it does not fit begins the waiting anew."""
    starving = measures.Starving(patience_s=5.0)
    for now in range(10):
        starving.look(float(now), {"always"} | ({"sometimes"} if now % 4 else set()))

    assert ["always"] == list(starving.found)


def test_the_groups_share_the_nodes_without_overlap() -> None:
    """No node is in two groups, and every stream has one."""
    groups = streams.groups(500)
    names = [name for group in groups.values() for name in group]

    assert len(names) == len(set(names)) == 500
    assert {stream.group for stream in streams.STREAMS} == set(groups)
