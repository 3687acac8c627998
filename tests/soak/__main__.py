"""`make soak`: a cluster in motion for twenty minutes, one graphsched a mode, a real kube-scheduler beside them.

Three groups of nodes, each more than 90 % full: one that a graphsched in mode shared and kube-scheduler fill together,
one of a graphsched in mode exclusive, one where kube-scheduler binds what a graphsched in mode advise has chosen. Pods
come and go, nodes are drained, deleted and come back. What must hold is judged from outside: by an account of the API
server's events, by kube-scheduler's plugins, by the kernel's count of memory. Exit code 1 if something did not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import sys
import time
import urllib.request
from typing import Any

from tests.cluster import scheduling
from tests.controlplane import api, binaries, cluster as clusters
from tests.oracle import program
from tests.soak import churn, ledger, measures, oracle as oracles, streams, watching

HEADROOM = 0.05
"""As large a share of a node as the largest pod: two pods that race for it fit both."""
PATIENCE_S = 11.0
"""The longest backoff of a pod that found no node, and a second."""
SAMPLE_S = 2.0
WARM_UP = 0.35
"""This share of the time comes before what is judged of memory: caches fill, and the tables of pods grow once more when
some 6,000 have come and gone, which is after five and a half minutes (0.54 MB each; seen in the processes' maps)."""
AUDITS_ASKED = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""At these shares of the time an audit is asked for. It reads the whole cluster, so what it works with is part of what
a process takes. After five of them the next fifteen took nothing more (seen with one every 25 s), so the periodic ones,
two of which are in the time that is judged, show whether something is kept."""
CONFLICT_SHARE_MAX = 0.001
SLOPE_MB_MAX = 1.0
FILL_MIN = 0.90

CONFIGS: dict[str, dict[str, Any]] = {
    "shared": {
        "schedulerName": "graph-shared",
        "mode": "shared",
        "shared": {"headroomPercent": round(100 * HEADROOM)},
    },
    "exclusive": {
        "schedulerName": "graph-exclusive",
        "mode": "exclusive",
        "exclusive": {"nodeLabel": streams.POOL["key"], "value": streams.POOL["value"]},
    },
    "advise": {"schedulerName": "graph-advise", "mode": "advise", "advise": {"gate": streams.GATE}},
}


@dataclasses.dataclass(slots=True)
class Notes:
    """What was noted on the way."""

    memory: dict[str, list[tuple[float, float]]] = dataclasses.field(default_factory=dict)
    fill: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    races: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    starving: dict[str, measures.Starving] = dataclasses.field(default_factory=dict)
    asked: int = 0
    unready: list[str] = dataclasses.field(default_factory=list)


def main(arguments: list[str]) -> int:
    """Run the soak and print what it showed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--haste", type=float, default=1.0, help="multiplies how fast pods come and go")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("out/soak"))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    controlplane = clusters.Options(kwok=True, scheduler=True, controller_manager=True)
    with contextlib.ExitStack() as stack:
        judge = stack.enter_context(program.Oracle(binaries.ensure_oracle()))
        cluster = stack.enter_context(clusters.Cluster(controlplane, logs=options.output / "logs"))
        running = {
            mode: stack.enter_context(
                scheduling.scheduler(cluster, cluster.logs / f"graphsched-{mode}.log", config=json.dumps(config))
            )
            for mode, config in CONFIGS.items()
        }
        report, notes = asyncio.run(_soak(cluster, running, judge, options))
    (options.output / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    (options.output / "memory.json").write_text(json.dumps(notes.memory) + "\n")
    sys.stdout.write(_text(report))
    return 1 if report["faults"] else 0


async def _soak(
    cluster: clusters.Cluster,
    running: dict[str, scheduling.Scheduler],
    judge: program.Oracle,
    options: argparse.Namespace,
) -> tuple[dict[str, Any], Notes]:
    book, notes = ledger.Ledger(), Notes()
    # The account has connections of its own: it must not wait for the load.
    async with api.Api(cluster) as client, api.Api(cluster) as watcher, asyncio.TaskGroup() as group:
        motion = churn.Churn(client, book, nodes=options.nodes, seed=options.seed, haste=options.haste)
        await motion.populate()
        works = [
            group.create_task(watching.nodes(watcher, book)),
            group.create_task(watching.pods(watcher, book)),
            *(group.create_task(motion.stream(stream)) for stream in streams.STREAMS),
        ]
        await _filled(book, options.nodes)
        _say(f"filled with {len(book.pods):,} pods; {options.minutes:g} minutes begin, and what comes before them")
        began = time.monotonic()
        works.append(group.create_task(motion.nodes()))
        works.append(group.create_task(_audits(running, 60 * options.minutes)))
        end = began + 60 * options.minutes * (1 + WARM_UP)
        while (now := time.monotonic()) < end:
            await _look(now - began, book, running, judge, notes, options.nodes)
            cluster.require_alive()
            for each in running.values():
                each.process.require_alive()
            await asyncio.sleep(max(0.0, now + SAMPLE_S - time.monotonic()))
        for work in works:
            work.cancel()
    return _report(book, motion, notes, options), notes


async def _audits(running: dict[str, scheduling.Scheduler], seconds: float) -> None:
    before = 0.0
    for share in AUDITS_ASKED:
        await asyncio.sleep((share - before) * seconds)
        before = share
        for each in running.values():
            os.kill(each.process.pid, signal.SIGUSR2)


async def _filled(book: ledger.Ledger, nodes: int) -> None:
    said = time.monotonic()
    async with asyncio.timeout(900):
        while True:
            fill = {name: book.fill(names) for name, names in streams.groups(nodes).items()}
            if all(share > FILL_MIN for share in fill.values()):
                return
            if time.monotonic() - said > 15:
                said = time.monotonic()
                _say("filling: " + ", ".join(f"{name} {share:.0%}" for name, share in fill.items()))
            await asyncio.sleep(1.0)


async def _look(
    at_s: float,
    book: ledger.Ledger,
    running: dict[str, scheduling.Scheduler],
    judge: program.Oracle,
    notes: Notes,
    nodes: int,
) -> None:
    for name, names in streams.groups(nodes).items():
        notes.fill.setdefault(name, []).append(book.fill(names))
    for mode, each in running.items():
        notes.memory.setdefault(mode, []).append((at_s, _rss(each.process.pid)))
        if not await asyncio.to_thread(each.ready):
            notes.unready.append(f"{mode} at {at_s:.0f} s")
        await _hungry(at_s, book, mode, judge, notes)
    for race in await asyncio.to_thread(_races, running["shared"]):
        notes.races[f"{race['pod']} {race['kind']} {race['found']}"] = race


async def _hungry(at_s: float, book: ledger.Ledger, mode: str, judge: program.Oracle, notes: Notes) -> None:
    """Note which pods of a mode wait and would be placed by kube-scheduler."""
    stream = next(each for each in streams.STREAMS if each.name == mode)
    starving = notes.starving.setdefault(mode, measures.Starving(patience_s=PATIENCE_S))
    waiting = [
        pod
        for pod in book.pods.values()
        if ledger.whose(pod) == mode and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
    ]
    waiting.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
    if not waiting:
        starving.look(at_s, set())
        return
    question = oracles.request(book, stream, waiting, headroom=HEADROOM if mode == "shared" else 0.0)
    notes.asked += 1
    fitting = await asyncio.to_thread(oracles.fitting, judge, question)
    still = {
        name for name in fitting if not book.pods.get(name, {"spec": {"nodeName": "gone"}})["spec"].get("nodeName")
    }
    starving.look(at_s, still)


def _rss(pid: int) -> float:
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return float(int(pages) * os.sysconf("SC_PAGE_SIZE"))


def _races(running: scheduling.Scheduler) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/debug/conflicts?limit=1000", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def _report(book: ledger.Ledger, motion: churn.Churn, notes: Notes, options: argparse.Namespace) -> dict[str, Any]:
    mine = {stream.name: stream for stream in streams.STREAMS}
    by_group: dict[str, list[ledger.Overcommit]] = {name: [] for name in streams.GROUPS}
    for each in book.overcommits:
        by_group[mine[each.scheduler].group].append(each)
    unexplained = [each for each in by_group["shared"] if not _explaining(each, notes)]
    trends = {
        mode: measures.trend([sample for sample in samples if sample[0] >= WARM_UP * 60 * options.minutes])
        for mode, samples in notes.memory.items()
    }
    share = len(by_group["shared"]) / max(1, book.bindings["shared"])
    faults = [f"moved: {each}" for each in book.moved]
    faults += [f"over-commit in {name}: {each}" for name in ("exclusive", "advise") for each in by_group.get(name, ())]
    faults += [f"no race is recorded for {each}" for each in unexplained]
    if share > CONFLICT_SHARE_MAX:
        faults.append(f"over-commits in shared are {share:.2%} of the bindings")
    faults += [
        f"memory of {mode} grows by {each.mb_per_10_min:.2f} MB in 10 minutes (± {each.error * 600 / measures.MB:.2f})"
        for mode, each in trends.items()
        if each.mb_per_10_min > SLOPE_MB_MAX
    ]
    faults += [
        f"{mode}: {pod} fitted for {seconds:.0f} s and was not placed"
        for mode, each in notes.starving.items()
        for pod, seconds in each.found.items()
    ]
    faults += [f"not ready: {each}" for each in notes.unready]
    lowest = {name: sum(shares) / len(shares) for name, shares in notes.fill.items()}
    faults += [f"{name} was {full:.1%} full on average" for name, full in lowest.items() if full < FILL_MIN]
    return {
        "minutes": options.minutes,
        "nodes": options.nodes,
        "seed": options.seed,
        "pods": len(book.pods),
        "bindings": dict(book.bindings),
        "fill": lowest,
        "churn": dict(motion.done),
        "overcommits": {name: len(found) for name, found in by_group.items()},
        "conflicts in shared": _kinds(notes),
        "over-commits in shared": [_told(each, notes) for each in by_group.get("shared", ())],
        "memory": {
            mode: {
                "mean MB": each.mean / measures.MB,
                "MB per 10 min": each.mb_per_10_min,
                "standard error": each.error * 600 / measures.MB,
            }
            for mode, each in trends.items()
        },
        "longest wait of a pod that fitted": {mode: each.longest_s for mode, each in notes.starving.items()},
        "oracle asked": notes.asked,
        "faults": faults,
    }


def _told(each: ledger.Overcommit, notes: Notes) -> str:
    """An over-commit, and the race that explains it."""
    races = _explaining(each, notes) or [race for race in notes.races.values() if race["node"] == each.node]
    by = [f"{change['what']} ({change['seen'] - race['time']:+.3f} s)" for race in races for change in race["by"]]
    by += [
        f"{race['kind']} at {race['time'] - time.time() + time.monotonic():.1f} s: {race['detail']} "
        f"(generations {race['decided']} to {race['found']}, nothing seen between)"
        for race in races
        if not race["by"]
    ]
    return f"{each.at_s:.1f} s: {each.pod} of {each.scheduler} to {each.node}, {', '.join(each.short)}: {'; '.join(by)}"


def _explaining(each: ledger.Overcommit, notes: Notes) -> list[dict[str, Any]]:
    wall_s = each.at_s + time.time() - time.monotonic()
    return [race for race in notes.races.values() if ledger.explains(race, each, wall_s=wall_s)]


def _kinds(notes: Notes) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for race in notes.races.values():
        kinds[race["kind"]] = kinds.get(race["kind"], 0) + 1
    return kinds


def _text(report: dict[str, Any]) -> str:
    lines = []
    for name, value in report.items():
        if isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {key:32} {_shown(each)}" for key, each in value.items()]
        elif isinstance(value, list):
            lines.append(f"{name}: {len(value) or 'none'}")
            lines += [f"  {each}" for each in value[:50]]
        else:
            lines.append(f"{name}: {_shown(value)}")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(each)}" for key, each in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def _say(line: str) -> None:
    sys.stderr.write(f"soak: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
