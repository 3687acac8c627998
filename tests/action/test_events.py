"""Events have the form that Kubernetes takes, do not repeat themselves, and stay within limits."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from graphsched.action import events, happenings, outlet
from graphsched.base.values import keys, pods
from tests.fakes import apiserver, storage, virtual

WEB = pods.Pod(keys.pod_key("shop", "web-0"), "u1")


@contextlib.asynccontextmanager
async def running(*, length_max: int = 100) -> AsyncIterator[tuple[apiserver.FakeApiServer, events.Events, list[str]]]:
    """A server and a recorder at work."""
    ends: list[str] = []
    async with apiserver.FakeApiServer() as server, server.client() as client:
        recorder = events.Events(
            client,
            controller="graph-scheduler",
            instance="graph-scheduler-host-1",
            rate=outlet.Rate(per_second=100.0, burst=100),
            length_max=length_max,
            clock=virtual.LoopClock(),
            rng=random.Random(1),
            on_end=ends.append,
        )
        task = asyncio.create_task(recorder.run())
        yield server, recorder, ends
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def written(server: apiserver.FakeApiServer) -> list[Any]:
    """The events as users see them, oldest first."""
    return sorted(server.storage.items(apiserver.EVENTS), key=lambda event: str(event["eventTime"]))


@virtual.timed
async def test_a_placed_pod_gets_the_usual_event() -> None:
    """All fields that events.k8s.io/v1 asks for, and kube-scheduler's words."""
    async with running() as (server, recorder, ends):
        recorder.scheduled(WEB, "n1")
        await recorder.flush(deadline_s=9.0)
        (event,) = written(server)
        metadata = event.pop("metadata")

        assert {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "eventTime": "2027-01-15T08:00:00.000000Z",
            "reportingController": "graph-scheduler",
            "reportingInstance": "graph-scheduler-host-1",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u1"},
            "note": "Successfully assigned shop/web-0 to n1",
        } == event
        assert ("shop", True) == (metadata["namespace"], metadata["name"].startswith("web-0."))
        assert ["written"] == ends


@virtual.timed
async def test_the_same_refusal_grows_a_series() -> None:
    """A hundred equal refusals cost one event and a patch whenever their number has doubled."""
    async with running() as (server, recorder, ends):
        for _ in range(100):
            recorder.failed(WEB, "0/1 nodes are available: 1 Insufficient cpu.")
            await asyncio.sleep(1.0)
        await recorder.flush(deadline_s=9.0)
        (event,) = written(server)

        assert ("Warning", "FailedScheduling", "Scheduling") == (event["type"], event["reason"], event["action"])
        assert {"count": 64, "lastObservedTime": "2027-01-15T08:01:03.000000Z"} == event["series"]
        assert 6 == len(server.asked("PATCH"))
        assert (7, 93) == (ends.count("written"), ends.count("merged"))


@virtual.timed
async def test_new_words_are_a_new_event_after_a_while() -> None:
    """A count that changes every second is left to the condition."""
    async with running() as (server, recorder, _):
        for number in range(60):
            recorder.failed(WEB, f"0/1 nodes are available: {number} Insufficient cpu.")
            await asyncio.sleep(1.0)
        await recorder.flush(deadline_s=9.0)

        assert [0, 31] == [int(event["note"].split()[4]) for event in written(server)]


@virtual.timed
async def test_a_series_ends_when_nothing_came_for_long() -> None:
    """Later it is told anew."""
    async with running() as (server, recorder, _):
        recorder.failed(WEB, "a")
        await asyncio.sleep(events.SERIES_S + 1.0)
        recorder.failed(WEB, "a")
        await recorder.flush(deadline_s=9.0)

        assert 2 == len(written(server))


@virtual.timed
async def test_a_series_stays_in_sight_for_as_long_as_it_grows() -> None:
    """The API server forgets an event after an hour in which nothing was written to it."""
    async with running() as (server, recorder, _):
        for _ in range(100):
            recorder.failed(WEB, "a")
            await asyncio.sleep(300.0)
        told = [request.at_s for request in server.asked("PATCH")]

        assert 1 == len(written(server))
        assert max(later - sooner for sooner, later in itertools.pairwise(told)) < 3600.0


@virtual.timed
async def test_a_series_whose_event_is_gone_begins_anew() -> None:
    """Somebody deleted the event, or the API server did."""
    async with running() as (server, recorder, ends):
        recorder.failed(WEB, "a")
        await recorder.flush(deadline_s=9.0)
        (event,) = written(server)
        server.storage.delete(storage.Key(apiserver.EVENTS, "shop", event["metadata"]["name"]))
        for _ in range(2):
            recorder.failed(WEB, "a")
            await recorder.flush(deadline_s=9.0)

        assert ["written", "moot", "written"] == ends
        assert ["a"] == [event["note"] for event in written(server)]


@virtual.timed
async def test_what_does_not_fit_is_dropped_and_counted() -> None:
    """A storm ends at the queue's bound."""
    async with running(length_max=3) as (server, recorder, ends):
        for number in range(5):
            recorder.scheduled(pods.Pod(keys.pod_key("shop", f"web-{number}"), "u"), "n1")
        await recorder.flush(deadline_s=9.0)

        assert 3 == len(written(server))
        assert 2 == ends.count("dropped")


@hypothesis.given(st.text(max_size=2000))
def test_a_note_keeps_within_the_limit_in_bytes(note: str) -> None:
    """Short ones are left alone, long ones are cut between characters and say so."""
    cut = happenings.cut(note)

    assert len(cut.encode()) <= 1024
    if len(note.encode()) <= 1024:
        assert note == cut
    else:
        assert cut.endswith(" ...")
        assert note.startswith(cut[:-4])
        assert len(cut.encode()) > 1024 - 4


@pytest.mark.parametrize("pod", ["web", "a" * 253, "a" * 235 + ".-" + "b" * 16])
def test_an_event_has_a_valid_name(pod: str) -> None:
    """However long the pod's name is, the event's is one."""
    name = happenings.event_name(pod, "0123456789abcdef01")

    assert len(name) <= 253
    assert name.endswith(".0123456789abcdef01")
    assert name[: -len(".0123456789abcdef01")][-1].isalnum()
