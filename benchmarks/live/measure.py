"""
One run: a fresh control plane, one scheduler, one workload, one `Result`.

Comes in: a scheduler and sizes. Goes out: numbers and faults, for `report.py`. As upstream's own benchmark does, the
nodes are there first, the scheduler is up and has read them (it has bound a probe), then the pods are created as fast
as the API server takes them; the clock runs from the first binding to the last.

Invariants: the load costs little beside what is measured (encoded before, one watch, decoded after); a run whose
outcome is wrong says so in `faults`; every wait has a deadline.
"""

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import pathlib
import time
from typing import Literal

import msgspec

from benchmarks.live import schedulers, verdict, workloads
from tests.controlplane import api, binaries, cluster as clusters, processes

_NODES = "/api/v1/nodes"
_PODS = "/api/v1/namespaces/default/pods"
_EVENTS = "/apis/events.k8s.io/v1/events"

#: Like upstream's: enough to keep the API server busy.
_CREATORS = 32
_READY_S = 120.0
#: Longer without any binding than the longest backoff means that nothing comes any more.
_STALLED_S = 60.0
#: After the last binding a scheduler still writes events and reads its own changes back.
_SETTLED_S_MAX = 30.0
_IDLE = 0.03


#: Whether the pods are created while the scheduler runs, as upstream measures, or wait for it as it starts.
Arrival = Literal["during", "before"]


class StalledError(Exception):
    """The scheduler stopped binding; the text says how far it came."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one run showed. CPU is that of the scheduler and all processes it started."""

    scheduler: str
    kind: str
    arrival: Arrival
    nodes: int
    pods: int
    #: From the start of the process until its first binding, of a probe or of a pod that waited.
    ready_s: float
    #: From the first binding to the last.
    window_s: float
    pods_per_s: float
    #: From just before the first pod is created (or from the start of the process) to the last binding.
    cpu_ms_per_pod: float
    #: The same until the scheduler is idle again, so that work put off is counted as well.
    cpu_ms_per_pod_settled: float
    rss_peak_mb: float
    #: From the first creation to the last, while measured.
    creation_s: float
    #: Events that the scheduler wrote, which cost the API server as much as a binding does.
    events: int
    apiserver_cpu_ms_per_pod: float
    load_cpu_ms_per_pod: float
    #: How much of the machine's CPU went to programs that have no part in this, from 0 to 1.
    others_share: float
    #: How often the load's own watch was begun: the API server ends those that it can not serve fast enough.
    watches: int
    exit_code: int
    faults: tuple[str, ...]


def run(
    scheduler: schedulers.Scheduler,
    *,
    kind: str,
    nodes: int,
    pods: int,
    arrival: Arrival,
    programs: binaries.Binaries,
    say: "Say",
) -> Result:
    """
    Measure once.

    Raises:
        processes.ProcessDiedError: the scheduler or a part of the control plane ended.
        processes.DeadlineError, StalledError: something did not come in time.
    """
    workload = workloads.make(kind, nodes=nodes, pods=pods, scheduler=scheduler.pods_call_it)
    with clusters.Cluster(clusters.Options(authorization="AlwaysAllow"), programs=programs) as cluster:
        return asyncio.run(_measure(cluster, scheduler, workload, say, arrival=arrival))


class Say:
    """Progress, one line each, on standard error."""

    def __init__(self, prefix: str, *, quiet: bool) -> None:
        """Every line starts with `prefix`; nothing is said if `quiet`."""
        self._prefix = prefix
        self._quiet = quiet

    def __call__(self, line: str) -> None:
        """Say one line."""
        if not self._quiet:
            os.write(2, f"{self._prefix}: {line}\n".encode())


async def _measure(
    cluster: clusters.Cluster,
    scheduler: schedulers.Scheduler,
    workload: workloads.Workload,
    say: Say,
    *,
    arrival: Arrival,
) -> Result:
    async with api.Api(cluster) as client:
        say(f"creating {len(workload.nodes):,} nodes")
        await client.create_many(_NODES, workload.nodes, concurrency=_CREATORS)
        if arrival == "before":
            say(f"creating {len(workload.pods):,} pods")
            await client.create_many(_PODS, workload.pods, concurrency=_CREATORS)
        _, since = await client.list(_PODS)
        process = schedulers.start(scheduler, cluster)
        started = time.perf_counter()
        try:
            if arrival == "during":
                since = await _probe(client, workload, process)
                say(f"ready after {time.perf_counter() - started:.1f} s; creating {len(workload.pods):,} pods")
            ready_s = time.perf_counter() - started
            window = await _window(cluster, client, workload, process, say, since=since, arrival=arrival)
            exit_code = process.stop(timeout_s=30)
        finally:
            process.kill()
        bindings, faults = verdict.bindings_of(window.events)
        pods, _ = await client.list(_PODS)
        nodes, _ = await client.list(_NODES)
        events, _ = await client.list(_EVENTS)
    kind = workloads.KINDS[workload.kind]
    pods_seen, nodes_seen = msgspec.convert(pods, list[verdict.Pod]), msgspec.convert(nodes, list[verdict.Node])
    faults += verdict.faults_of(pods=pods_seen, nodes=nodes_seen, bindings=bindings, expected=len(workload.pods))
    faults += verdict.misplaced(
        pods=pods_seen,
        nodes=nodes_seen,
        bindings=bindings,
        zone_label=workloads.ZONE,
        together=kind.together,
        max_skew=kind.max_skew,
    )
    count = len(workload.pods)
    first_s, last_s = (choose(one.seen_s for one in bindings) for choose in (min, max))
    window_s = last_s - first_s
    if arrival == "before":
        ready_s = first_s - started
    return Result(
        scheduler=scheduler.name,
        kind=workload.kind,
        arrival=arrival,
        nodes=len(workload.nodes),
        pods=count,
        ready_s=ready_s,
        window_s=window_s,
        pods_per_s=count / window_s,
        cpu_ms_per_pod=1000 * window.cpu_s / count,
        cpu_ms_per_pod_settled=1000 * window.cpu_settled_s / count,
        rss_peak_mb=window.rss_peak_bytes / 1e6,
        creation_s=window.creation_s,
        events=len(events),
        apiserver_cpu_ms_per_pod=1000 * window.apiserver_cpu_s / count,
        load_cpu_ms_per_pod=1000 * window.load_cpu_s / count,
        others_share=window.others_share,
        watches=window.watches,
        exit_code=exit_code,
        faults=tuple(faults),
    )


async def _probe(client: api.Api, workload: workloads.Workload, process: processes.Process) -> str:
    """Have one pod bound, so that the scheduler is known to have read the nodes; return what to watch from."""
    await client.create(_PODS, workload.probe)
    waiting = asyncio.create_task(client.wait_bound(1, timeout_s=_READY_S))
    while not waiting.done():
        process.require_alive()
        await asyncio.wait({waiting}, timeout=0.1)
    await waiting
    await client.delete(f"{_PODS}/probe")
    await client.wait_for(_PODS, lambda seen: not seen, what="the probe is gone")
    _, since = await client.list(_PODS)
    return since


@dataclasses.dataclass(slots=True)
class _Window:
    """What was noted while the clock ran, undecoded."""

    watches: int = 1
    events: list[tuple[float, bytes]] = dataclasses.field(default_factory=list)
    cpu_s: float = 0.0
    cpu_settled_s: float = 0.0
    rss_peak_bytes: int = 0
    apiserver_cpu_s: float = 0.0
    load_cpu_s: float = 0.0
    creation_s: float = 0.0
    others_share: float = 0.0


async def _window(
    cluster: clusters.Cluster,
    client: api.Api,
    workload: workloads.Workload,
    process: processes.Process,
    say: Say,
    *,
    since: str,
    arrival: Arrival,
) -> _Window:
    """Create the pods if they are not there yet, note each binding as it comes, and wait for the last."""
    window = _Window()
    expected = len(workload.pods)
    apiserver = cluster.process("apiserver")
    complete = asyncio.Event()
    watcher = asyncio.create_task(_note_bindings(client, since, expected, window, complete))
    # A collection of the load's own garbage would delay what it notes.
    gc.freeze()
    # Pods that wait for the scheduler are part of what it reads as it starts, so its whole cost counts.
    cpu_s = process.cpu_s() if arrival == "during" else 0.0
    apiserver_s, load_s = apiserver.cpu_s(), time.process_time()
    machine = _Machine.now(process, cluster)
    began = time.perf_counter()
    bodies = workload.pods if arrival == "during" else ()
    creating = asyncio.create_task(client.create_many(_PODS, bodies, concurrency=_CREATORS))
    creating.add_done_callback(lambda _: setattr(window, "creation_s", time.perf_counter() - began))
    await _until_complete(complete, window, tasks=(watcher, creating), process=process, expected=expected, say=say)
    window.cpu_s = process.cpu_s() - cpu_s
    window.apiserver_cpu_s = apiserver.cpu_s() - apiserver_s
    window.load_cpu_s = time.process_time() - load_s
    window.others_share = _Machine.now(process, cluster).others_share_since(machine)
    await creating
    await _idle(process)
    window.cpu_settled_s = process.cpu_s() - cpu_s
    window.rss_peak_bytes = process.rss_peak_bytes()
    watcher.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watcher
    return window


async def _note_bindings(
    client: api.Api,
    since: str,
    expected: int,
    window: _Window,
    complete: asyncio.Event,
) -> None:
    """
    Note each event of a bound pod with its time; decoding waits until the clock has stopped.

    The API server ends a watch whose buffer is full, which on a new server holds ten events. The next watch
    goes on from the last event, so the history has no gap; where the server can not go on from there, it sends
    an error event, which the verdict reports.
    """
    bound = 0
    while True:
        async for line in client.watch_lines(_PODS, since=since, fieldSelector="spec.nodeName!="):
            window.events.append((time.perf_counter(), line))
            # A pod enters this selection when it is bound; later changes of it are of another type.
            bound += line.startswith(b'{"type":"ADDED"')
            if bound == expected:
                complete.set()
        window.watches += 1
        if window.events:
            last = json.loads(window.events[-1][1])
            if last["type"] == "ERROR":
                raise StalledError(f"the API server can not go on with the watch: {last['object'].get('message')}")
            since = last["object"]["metadata"]["resourceVersion"]


async def _until_complete(
    complete: asyncio.Event,
    window: _Window,
    *,
    tasks: tuple[asyncio.Task[object], ...],
    process: processes.Process,
    expected: int,
    say: Say,
) -> None:
    """Wait for the last binding, and say now and then how far it is."""
    said_at, seen, progressed_at = time.perf_counter(), 0, time.perf_counter()
    while not complete.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(complete.wait(), timeout=0.5)
        process.require_alive()
        for task in tasks:
            if task.done():
                task.result()
        now = time.perf_counter()
        if len(window.events) > seen:
            seen, progressed_at = len(window.events), now
        if now - progressed_at > _STALLED_S:
            raise StalledError(f"no binding for {_STALLED_S:.0f} s after {seen} of {expected}; {process.tail(5)}")
        if now - said_at > 5:
            say(f"{seen:,} of {expected:,} bound")
            said_at = now


@dataclasses.dataclass(frozen=True, slots=True)
class _Machine:
    """CPU seconds used so far: by everybody, idle ones included, and by those that take part."""

    all_s: float
    busy_s: float
    ours_s: float

    @classmethod
    def now(cls, process: processes.Process, cluster: clusters.Cluster) -> "_Machine":
        """Read /proc."""
        first = pathlib.Path("/proc/stat").read_text().partition("\n")[0]
        # user, nice, system, idle, iowait, irq, softirq, steal; the guests' are part of user.
        ticks = [int(field) for field in first.split()[1:9]]
        per_s = os.sysconf("SC_CLK_TCK")
        ours = (process, cluster.process("apiserver"), cluster.process("etcd"))
        return cls(
            all_s=sum(ticks) / per_s,
            busy_s=(sum(ticks) - ticks[3] - ticks[4]) / per_s,
            ours_s=sum(one.cpu_s() for one in ours) + time.process_time(),
        )

    def others_share_since(self, before: "_Machine") -> float:
        """The share of all CPU time since `before` that others used."""
        others_s = (self.busy_s - before.busy_s) - (self.ours_s - before.ours_s)
        return max(0.0, others_s / max(self.all_s - before.all_s, 1e-9))


async def _idle(process: processes.Process) -> None:
    """Wait until the scheduler uses next to no CPU, for a bounded time."""
    deadline = time.perf_counter() + _SETTLED_S_MAX
    before = process.cpu_s()
    while time.perf_counter() < deadline:
        await asyncio.sleep(1)
        now = process.cpu_s()
        if now - before < _IDLE:
            return
        before = now
