"""
One case played from start to end before one scheduler.

Comes in: an arena, a case, who is to decide. Goes out: problems, one line each; none where the case holds.

Invariant: a pod is created when the one before it was decided on; members of one group are created together, as none
of them can be decided on alone.
"""

import signal
from collections.abc import Iterable, Mapping

from tests.cases.runner import arena as arenas, cases, kubelet, polling, resources, verdicts
from tests.controlplane import api

DECIDED_S = 5.0
LATER_S = 30.0


async def problems(
    arena: arenas.Arena,
    case: cases.Case,
    *,
    scheduler: str,
    expect: Mapping[str, cases.Expectation] | None = None,
) -> list[str]:
    """Play the case; what differs from `expect`, by default the case's own expectations."""
    expect = case.expect if expect is None else expect
    found: list[str] = []
    async with api.Api(arena.cluster) as client:
        await arena.fill(client, case, scheduler=scheduler)
        async with kubelet.running(client):
            for together in _groups(case.pending):
                for pod in together:
                    await _create(arena, client, pod, scheduler=scheduler)
                for pod in together:
                    name = pod["metadata"]["name"]
                    patient = len(together) > 1 or bool(expect[name].victims)
                    seen = await _decided(client, pod, expect[name], patient=patient)
                    found.extend(f"{name}: {text}" for text in verdicts.problems(seen, expect[name]))
            for pod in case.pending:
                name = pod["metadata"]["name"]
                if (later := expect[name].later) is not None:
                    found.extend(f"{name}, later: {text}" for text in await _later(client, pod, later))
            found.extend(await _evictions(client, case, expect))
    arena.require_alive()
    return found


def _groups(pods: Iterable[cases.Object]) -> list[list[cases.Object]]:
    """The pods in order; neighbours that belong to one group are together."""
    found: list[list[cases.Object]] = []
    last = ""
    for pod in pods:
        group: str = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
        if group and group == last:
            found[-1].append(pod)
        else:
            found.append([pod])
        last = group
    return found


async def _create(arena: arenas.Arena, client: api.Api, pod: cases.Object, *, scheduler: str) -> None:
    running = arena.schedulers[scheduler]
    pod = {**pod, "spec": {**pod["spec"], "schedulerName": running.name}}
    if "status" not in pod:
        await arena.create(client, pod)
        return
    # The status is written in a second request, and must not be missed by a decision made in between.
    running.process.send_signal(signal.SIGSTOP)
    try:
        await arena.create(client, pod)
    finally:
        running.process.send_signal(signal.SIGCONT)


async def _decided(client: api.Api, pod: cases.Object, expected: cases.Expectation, *, patient: bool) -> cases.Object:
    """The pod after the decision, or as it is when there was none in time."""
    return await polling.until(
        lambda: client.get(resources.path(pod)),
        lambda now: verdicts.decided(now, expected, patient=patient),
        timeout_s=DECIDED_S,
    )


async def _later(client: api.Api, pod: cases.Object, expected: cases.Expectation) -> list[str]:
    seen = await polling.until(
        lambda: client.get(resources.path(pod)), lambda now: bool(verdicts.node(now)), timeout_s=LATER_S
    )
    return verdicts.problems(seen, expected)


async def _evictions(client: api.Api, case: cases.Case, expect: Mapping[str, cases.Expectation]) -> list[str]:
    """Who must go goes, and nobody else."""
    pods, _ = await client.list("/api/v1/pods")
    victims = sorted(name for each in expect.values() for name in each.victims or ())
    gone = verdicts.evicted(case, pods)
    return [] if gone == victims else [f"evicted must be {victims}, are {gone}"]
