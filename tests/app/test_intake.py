"""What the graph can not hold costs only itself: the rest of its list is taken, and no source is asked in vain."""

import logging

import pytest

from graphsched.app import intake
from graphsched.app.settings import AuditSettings
from graphsched.graph import delta
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

N1 = builders.make_node("n1").cpu("2")
HUGE = "64Pi"
WEB = builders.make_pod("web").cpu("1")
OFF = AuditSettings(every_seconds=0)
"""What is counted here are the lists of the watch."""


def lists(it: live.Scheduler) -> int:
    """How often the nodes were listed."""
    return len([each for each in it.server.asked("GET", "/api/v1/nodes") if each.query.get("limit") == "500"])


def refused(it: live.Scheduler, source: str) -> bool:
    """Whether a patch of this source is counted as refused."""
    metric = f'graphsched_graph_patches_total{{outcome="refused",source="{source}"}} 1.0'
    return metric in it.parts.meters.render().decode()


@virtual.timed
async def test_a_node_beyond_all_bounds_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    """Its list is taken once, the pod goes to the other node of the same list."""
    with caplog.at_level(logging.WARNING, logger=intake.__name__):
        async with live.scheduler(N1, builders.make_node("n2").memory(HUGE), pods=(WEB,), audit=OFF) as it:
            await it.bound("web")
            await it.quiet(600.0)

            assert ("n1", 1) == (it.where("web"), lists(it))
            assert refused(it, "watch/nodes")
            it.require_sound()
    (record,) = caplog.records
    assert "watch/nodes: left out, the graph can not hold it: node/n2: amount" in record.getMessage()


@virtual.timed
async def test_an_object_that_goes_beyond_all_bounds_keeps_its_last_good_state() -> None:
    """And follows again as soon as it is mended."""
    async with live.scheduler(N1, audit=OFF) as it:
        key = storage.Key(apiserver.NODES, "", "n1")
        it.server.storage.patch(key, {"status": {"allocatable": {"memory": HUGE, "cpu": "1"}}}, strategic=False)
        await it.quiet()
        kept = it.parts.store.node("n1")
        it.server.storage.patch(key, {"status": {"allocatable": {"memory": "1Gi", "cpu": "1"}}}, strategic=False)
        await it.quiet()
        mended = it.parts.store.node("n1")

        assert kept is not None
        assert mended is not None
        assert (2000, 1000) == (dict(kept.allocatable)["cpu"], dict(mended.allocatable)["cpu"])
        assert (1, True) == (lists(it), refused(it, "watch/nodes"))


@virtual.timed
async def test_of_many_bad_rows_some_are_named_and_the_rest_counted(caplog: pytest.LogCaptureFixture) -> None:
    """A source that sends nothing else does not fill the disk."""
    nodes = [builders.make_node(f"n{number}").memory(HUGE) for number in range(intake.BAD_ROWS_LOGGED + 3)]
    with caplog.at_level(logging.WARNING, logger=intake.__name__):
        async with live.scheduler(*nodes):
            pass

    assert intake.BAD_ROWS_LOGGED + 1 == len(caplog.records)
    assert "watch/nodes: 3 more were left out" == caplog.records[-1].getMessage()


@virtual.timed
async def test_a_gap_is_mended_by_one_list_and_what_is_left_of_before_asks_for_none() -> None:
    """Patches of the old list that come late are refused as well: they are no reason to begin anew."""
    async with live.scheduler(N1, audit=OFF) as it:
        await it.parts.inbox.put(delta.Patch(stream=delta.Stream("watch/nodes", epoch=1, sequence=99)))
        await it.quiet(5.0)
        assert 2 == lists(it)

        await it.parts.inbox.put(delta.Patch(stream=delta.Stream("watch/nodes", epoch=1, sequence=100)))
        await it.quiet(300.0)

        assert 2 == lists(it)
        it.pod(WEB)
        await it.bound("web")


@virtual.timed
async def test_the_owner_of_a_pod_beyond_all_bounds_is_told_by_an_event() -> None:
    """Once, however often it is sent; others' pods are none of our business."""
    async with live.scheduler(N1, pods=(builders.make_pod("web").memory(HUGE),)) as it:
        it.server.create(storage.PODS, builders.make_pod("foreign").memory(HUGE).scheduler("other").manifest())
        for number in range(3):
            key = storage.Key(storage.PODS, "default", "web")
            it.server.storage.patch(key, {"metadata": {"labels": {"turn": str(number)}}}, strategic=False)
            await it.quiet()

        (event,) = it.server.storage.items(apiserver.EVENTS)
        assert ("web", "FailedScheduling", "Warning") == (event["regarding"]["name"], event["reason"], event["type"])
        assert "amount 72057594037927936 of memory is out of range" in event["note"]
