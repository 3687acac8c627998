"""Many voyages at once on one API server.

Comes in: a control plane, (fault, call, seed) triples. Goes out: a `Result` for each. Invariants: no more than so many
at a time; one that fails or hangs does not hold up the others.
"""

import asyncio
import contextlib
import dataclasses
import time
import traceback
import typing
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence

import aiohttp

from tests.controlplane import api, cluster as clusters, crds
from tests.faults import calls, customs, meanwhile, table, voyage, witness as witnesses, worlds

Answer = typing.TypeVar("Answer")

AT_ONCE = 12
VOYAGE_S = 240.0


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """How a voyage ended.

    Attributes:
        fault: Its row.
        call: Its column.
        seed: Its seed.
        failure: What is broken, empty when nothing is.
        seconds: How long it took.
    """

    fault: table.Fault
    call: str
    seed: int
    failure: str
    seconds: float

    @property
    def command(self) -> str:
        """What repeats it."""
        return f"python -m tests.faults --only '{self.fault.name}/{self.call}' --seed {self.seed}"


async def play(
    cluster: clusters.Cluster, wanted: Sequence[tuple[table.Fault, str, int]], at_once: int = AT_ONCE
) -> list[Result]:
    """Play them all; the slow ones are begun first."""
    places, results = asyncio.Semaphore(at_once), list[Result]()
    async with ground(cluster) as shared:

        async def one(fault: table.Fault, call: str, seed: int) -> None:
            async with places:
                results.append(await _play(shared, fault, call, seed))

        async with asyncio.TaskGroup() as group:
            for each in sorted(wanted, key=_slow_first):
                group.create_task(one(*each))
    return results


@contextlib.asynccontextmanager
async def ground(cluster: clusters.Cluster) -> AsyncIterator[worlds.Shared]:
    """What worlds stand on, witness included."""
    connector = api.Connector(limit=0)
    unlimited = aiohttp.ClientTimeout(total=None)
    async with (
        api.Api(cluster) as client,
        aiohttp.ClientSession(connector=connector, timeout=unlimited, auto_decompress=False) as session,
    ):
        witness = witnesses.Witness()
        watching = asyncio.create_task(witness.run(client))
        try:
            yield worlds.Shared(cluster, client, session, witness)
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
    await connector.abandon()


def on(cluster: clusters.Cluster, body: Callable[[worlds.Shared], Coroutine[object, object, Answer]]) -> Answer:
    """Run a test's body on the ground of this cluster."""

    async def run_it() -> Answer:
        async with ground(cluster) as shared:
            return await body(shared)

    with asyncio.Runner() as runner:
        return runner.run(run_it())


def run(
    cluster: clusters.Cluster, wanted: Sequence[tuple[table.Fault, str, int]], at_once: int = AT_ONCE
) -> list[Result]:
    """`play`, on an event loop of its own, with the custom resources of the table installed."""
    with crds.installed(cluster, *customs.DEFINITIONS), asyncio.Runner() as runner:
        return runner.run(play(cluster, wanted, at_once))


async def _play(shared: worlds.Shared, fault: table.Fault, call: str, seed: int) -> Result:
    began, failure = time.monotonic(), ""
    try:
        async with asyncio.timeout(VOYAGE_S):
            if call == table.BETWEEN:
                await meanwhile.Meanwhile(shared, fault, seed).play()
            else:
                await voyage.Voyage(shared, fault, call, seed).play()
    except Exception as error:  # noqa: BLE001  whatever it was, the other voyages go on
        told = traceback.format_exception(error)
        failure = f"{error}\n{''.join(told[-12:])}" if isinstance(error, AssertionError) else "".join(told)
    return Result(fault, call, seed, failure, time.monotonic() - began)


def _slow_first(each: tuple[table.Fault, str, int]) -> bool:
    """Each time it waits for ten seconds or more until it gives a call up."""
    fault, call, _ = each
    return not (fault.name == "silent" and call in {calls.STATUS, calls.EVENT, calls.POLICY_STATUS})


def shown(results: Iterable[Result]) -> str:
    """The table of what held, and every failure."""
    by_cell: dict[tuple[str, str], list[Result]] = {}
    for each in results:
        by_cell.setdefault((each.fault.name, each.call), []).append(each)
    width = max(len(call) for call in table.CALLS)
    lines = [" " * 10 + " ".join(f"{call:>{width}}" for call in table.CALLS)]
    for fault in table.FAULTS:
        cells = []
        for call in table.CALLS:
            found = by_cell.get((fault.name, call), [])
            held = sum(not each.failure for each in found)
            cells.append(f"{f'{held}/{len(found)}' if found else '–':>{width}}")
        lines.append(f"{fault.name:<10}" + " ".join(cells))
    for deed in table.DEEDS:
        found = by_cell.get((deed.name, table.BETWEEN), [])
        held = sum(not each.failure for each in found)
        lines.append(f"{deed.name:<16}{f'{held}/{len(found)}' if found else '–':>7}")
    lines += [f"\n{each.command}\n{each.failure}" for each in results if each.failure]
    return "\n".join(lines)
