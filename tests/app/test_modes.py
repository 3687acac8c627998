"""Each mode does what docs/modes.md says of it."""

import pytest

from graphsched.app import settings
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

KEY, VALUE = "graphsched.io/pool", "graph-scheduler"
OUTSIDE = builders.make_node("a1").cpu("8")
OPEN = builders.make_node("p1").cpu("2").label(KEY, VALUE)
CLOSED = builders.make_node("p2").cpu("2").label(KEY, VALUE).taint(KEY, VALUE)
WEB = builders.make_pod("web").cpu("1").tolerate(KEY, VALUE, "NoSchedule")
THEIRS = builders.make_pod("theirs").cpu("1")


def leaks(it: live.Scheduler) -> list[str]:
    """What the metrics say of the pool."""
    text = it.parts.meters.render().decode()
    return [
        line.partition("{")[2]
        for line in text.splitlines()
        if line.startswith("graphsched_pool_leaks{") and not line.endswith(" 0.0")
    ]


def label(it: live.Scheduler, node: str, value: str | None) -> None:
    """Give the node the pool's label, or take it away."""
    key = storage.Key(apiserver.NODES, "", node)
    it.server.storage.patch(key, {"metadata": {"labels": {KEY: value}}}, strategic=False)


@virtual.timed
async def test_an_exclusive_pod_keeps_to_the_pool() -> None:
    """A better node outside is no candidate; without the toleration the pool's taint refuses as any other."""
    async with live.scheduler(OUTSIDE, CLOSED, mode="exclusive") as it:
        it.pod(WEB)
        it.pod(builders.make_pod("rude").cpu("1"))
        await it.bound("web")
        await it.until(lambda: it.message("rude") != "")

        assert "p2" == it.where("web")
        assert (
            "0/2 nodes are available: 1 node(s) had untolerated taint(s), "
            "1 node(s) were outside the pool graphsched.io/pool=graph-scheduler." == it.message("rude")
        )


@virtual.timed
async def test_a_node_joins_and_leaves_the_pool_with_its_label() -> None:
    """The label alone wakes the pod that waits; a node that lost it takes no more, and what runs there stays."""
    async with live.scheduler(OUTSIDE, mode="exclusive") as it:
        it.pod(WEB)
        await it.until(lambda: it.message("web") != "")
        label(it, "a1", VALUE)
        await it.bound("web")
        label(it, "a1", None)
        await it.quiet()
        it.pod(builders.make_pod("late").cpu("1"))
        await it.until(lambda: it.message("late") != "")

        assert ("a1", "") == (it.where("web"), it.where("late"))


@virtual.timed
async def test_others_are_counted_inside_and_outside_the_pool() -> None:
    """A guest takes its room of the pool; what it can not have is not given away."""
    guest = builders.make_pod("guest").cpu("2").node("p1")
    async with live.scheduler(OUTSIDE, OPEN, pods=(), mode="exclusive") as it:
        it.server.create(storage.PODS, guest.manifest())
        await it.quiet()
        it.pod(WEB)
        await it.until(lambda: it.message("web") != "")

        assert "Insufficient cpu" in it.message("web")


@virtual.timed
async def test_what_leaks_is_counted_and_told_once_a_node(caplog: pytest.LogCaptureFixture) -> None:
    """A node without the taint and a pod of others are leaks; a DaemonSet's pod and a static pod belong there."""
    at_home = {"key": "metadata.name", "operator": "In", "values": ["p1"]}
    async with live.scheduler(OUTSIDE, OPEN, CLOSED, mode="exclusive") as it:
        for pod in (
            THEIRS.node("p1"),
            builders.make_pod("agent").require_nodes(fields=(at_home,)).node("p1"),
            builders.make_pod("proxy-p1").node("p1"),
            builders.make_pod("elsewhere").node("a1"),
        ):
            it.server.create(storage.PODS, pod.manifest())
        it.pod(WEB)
        await it.bound("web")
        await it.quiet()

        assert ['kind="open_nodes"} 1.0', 'kind="guests"} 1.0'] == leaks(it)
        (told,) = [record.getMessage() for record in caplog.records if "pool" in record.getMessage()]
        assert (
            "p1 of the pool graphsched.io/pool=graph-scheduler has no taint that keeps other pods away; "
            "the taint graphsched.io/pool=graph-scheduler:NoSchedule closes it" == told
        )

        it.delete("theirs")
        taint = {"key": KEY, "value": VALUE, "effect": "NoSchedule"}
        key = storage.Key(apiserver.NODES, "", "p1")
        it.server.storage.patch(key, {"spec": {"taints": [taint]}}, strategic=False)
        await it.quiet()
        assert [] == leaks(it)

        label(it, "a1", VALUE)
        await it.quiet()
        assert ['kind="open_nodes"} 1.0', 'kind="guests"} 1.0'] == leaks(it)
        label(it, "a1", None)
        await it.quiet()
        assert [] == leaks(it)


@virtual.timed
async def test_headroom_stays_free_and_is_told() -> None:
    """With a tenth kept free, nine of ten CPUs are given; the pod that would need the rest is told of the headroom."""
    node = builders.make_node("n1").cpu("10")
    async with live.scheduler(node, shared=settings.SharedSettings(headroom_percent=10)) as it:
        it.pod(builders.make_pod("first").cpu("9"))
        await it.bound("first")
        it.pod(WEB)
        await it.until(lambda: it.message("web") != "")

        assert "0/1 nodes are available: 1 Insufficient cpu outside the headroom of 10%." == it.message("web")

        it.delete("first")
        await it.bound("web")
