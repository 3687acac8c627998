"""A right that is missing costs what it is for, and nothing else."""

import asyncio
import logging

import pytest

from tests import builders
from tests.app import live
from tests.fakes import virtual

SERVICES = "/api/v1/services"
WAIVED = 'graphsched_watch_waived{resource="services"}'


def waived(running: live.Scheduler) -> str:
    """The metric's line for services."""
    lines = running.parts.meters.render().decode().splitlines()
    return next(line for line in lines if line.startswith(WAIVED)).rpartition(" ")[2]


@virtual.timed
async def test_without_the_right_to_services_pods_are_placed_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    """They only say how pods are spread by default: it is said which right is missing, and asked for again."""
    caplog.set_level(logging.INFO)
    async with live.scheduler(builders.make_node("n1"), started=False) as running:
        message = 'User "x" cannot list resource "services" in API group ""'
        running.server.faults.refuse("GET", SERVICES, 403, reason="Forbidden", message=message, times=1_000_000)
        await running.start()
        running.pod(builders.make_pod("web"))
        await running.bound("web")

        assert "1.0" == waived(running)
        assert running.program.sights.health().report("readyz").ok
        told = [record.getMessage() for record in caplog.records if "services" in record.getMessage()]
        assert 1 == sum(message in text for text in told)
        assert 1 == sum("decisions are made without them" in text for text in told)

        running.server.faults.clear()
        await asyncio.sleep(30.0)
        assert "0.0" == waived(running)


@virtual.timed
async def test_a_right_taken_from_a_watch_and_given_back_ends_the_waiver_without_another_list() -> None:
    """The watch goes on where it was, so nothing is missing any more."""
    async with live.scheduler(builders.make_node("n1")) as running:
        watch = await running.server.watching(SERVICES)
        listed = len(running.server.asked("GET", SERVICES, limit="500"))
        running.server.faults.refuse("GET", SERVICES, 403, reason="Forbidden", times=3, query={"watch": "true"})
        watch.cut()
        await asyncio.sleep(2.0)
        assert "1.0" == waived(running)

        await running.server.watching(SERVICES, after=watch)
        await asyncio.sleep(0.1)

        assert "0.0" == waived(running)
        assert listed == len(running.server.asked("GET", SERVICES, limit="500"))


@virtual.timed
async def test_without_the_right_to_nodes_nothing_is_decided_and_readiness_says_which_right() -> None:
    """What decisions stand on is waited for."""
    async with live.scheduler(builders.make_node("n1"), started=False) as running:
        message = 'User "x" cannot list resource "nodes" in API group ""'
        running.server.faults.refuse("GET", "/api/v1/nodes", 403, reason="Forbidden", message=message, times=1_000_000)
        running.pod(builders.make_pod("web"))
        await asyncio.sleep(60.0)

        report = running.program.sights.health().report("readyz")
        assert message in report.text()
        assert 0 == running.bindings()

        running.server.faults.clear()
        await running.bound("web")
        assert running.program.sights.health().report("readyz").ok
