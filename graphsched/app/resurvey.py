"""The graph beside what is described of the network: an object that becomes many rows is checked in two steps.

`comparing` asks whether the survey knows what each object says; here it is asked whether the graph holds what all of it
comes to. Both together are what an audit asks of an object that is one vertex.

Invariant: nothing is judged while anything that was told is on its way; of a link the graph may know more than was
described: how it does, and when that was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from graphsched.app import comparing, findings
from graphsched.base.values import keys, relations
from graphsched.graph import audit, delta, store as stores
from graphsched.sources import inbox as inboxes, surveying, surveys

SLICE = 1000
"""Rows compared at a stretch, some milliseconds."""
_KINDS = (keys.Kind.PLACE, keys.Kind.GROUP)
"""Vertices that nobody but the survey makes."""


async def differences(
    store: stores.Store, inbox: inboxes.Inbox, surveyor: surveying.Surveyor
) -> list[tuple[findings.Difference, surveys.Row]]:
    """What the graph has wrong of what is described, row by row; nothing once there are news."""
    rows = surveyor.survey.rows
    flushes = surveyor.survey.flushes
    found: list[tuple[findings.Difference, surveys.Row]] = []
    described = [*rows.items()]
    held = [*_held(store)]
    for start in range(0, max(len(described), len(held)), SLICE):
        if len(inbox) or not surveyor.settled or surveyor.survey.flushes != flushes:
            return []
        for row, due in described[start : start + SLICE]:
            have = store.vertex(row) if isinstance(row, str) else store.edge(row)
            if not _alike(have, due):
                kind = findings.Kind.MISSING if have is None else findings.Kind.STALE
                found.append((findings.Difference(kind, _called(row), audit.fields(have, due)), row))
        for row in held[start : start + SLICE]:
            if row not in rows:
                told = findings.Difference(findings.Kind.EXTRA, _called(row), "is in the graph, and nobody says it")
                found.append((told, row))
        await asyncio.sleep(comparing.PAUSE_S)
    return found


def mend(surveyor: surveying.Surveyor, wrong: list[surveys.Row]) -> delta.Patch:
    """The patch after which the graph holds these rows as they are described."""
    rows = surveyor.survey.rows
    patch = delta.Patch()
    for row in wrong:
        surveys.put(patch, row, rows.get(row))
    return patch


def _held(store: stores.Store) -> Iterator[surveys.Row]:
    """What the graph holds of the kinds of rows that only the survey makes."""
    for kind in _KINDS:
        yield from store.vertex_keys(f"{kind.value}/")
    for edge_kind in (keys.EdgeKind.CONTAINS, keys.EdgeKind.LINK):
        for edge in store.edge_ids(edge_kind):
            value = store.edge(edge)
            if isinstance(value, relations.Contains | relations.Link) and surveys.is_described(value.by):
                yield edge


def _alike(have: msgspec.Struct | None, due: surveys.Value) -> bool:
    if isinstance(have, relations.Link) and isinstance(due, relations.Link):
        if have.down != due.down:
            # Health that time restores may differ for a while; whether there is a way at all may not.
            return False
        latency = due.latency_ms if due.latency_ms is None else have.latency_ms
        return msgspec.structs.replace(have, latency_ms=latency, health=due.health, at=due.at, seen=due.seen) == due
    return have == due


def _called(row: surveys.Row) -> str:
    return row if isinstance(row, str) else f"{row.source} → {row.target} ({row.kind})"
