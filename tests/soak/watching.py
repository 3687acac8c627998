"""Follows nodes and pods into the ledger, however often the API server ends the watch.

Invariant: what was missed while no watch was open is taken in from the next list, as events.
"""

from __future__ import annotations

import time
from typing import Any

from tests.controlplane import api, cluster as clusters
from tests.soak import churn, ledger

Object = dict[str, Any]

_GONE = 410


async def nodes(client: api.Api, book: ledger.Ledger) -> None:
    """Follow the nodes, for ever."""
    while True:
        items, since = await client.list(churn.NODES)
        names = {item["metadata"]["name"] for item in items}
        for name in set(book.nodes) - names:
            book.node({"type": "DELETED", "object": book.nodes[name]})
        for item in items:
            book.node({"type": "ADDED", "object": item})
        async for event in _events(client, churn.NODES, since):
            book.node(event)


async def pods(client: api.Api, book: ledger.Ledger) -> None:
    """Follow the pods, for ever."""
    while True:
        items, since = await client.list(churn.PODS)
        keys = {f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items}
        now = time.monotonic()
        for key in set(book.pods) - keys:
            book.pod({"type": "DELETED", "object": book.pods[key]}, now)
        for item in items:
            book.pod({"type": "ADDED", "object": item}, now)
        async for event in _events(client, churn.PODS, since):
            book.pod(event, time.monotonic())


async def _events(client: api.Api, path: str, since: str) -> Any:
    try:
        async for event in client.watch(path, since=since):
            if event["type"] == "ERROR":
                return
            if event["type"] != "BOOKMARK":
                yield event
    except clusters.RequestError as error:
        if error.status != _GONE:
            raise
