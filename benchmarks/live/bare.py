"""
The least that a scheduler must do: follow the pods, bind each somewhere, say so in an event. It decides nothing.

Comes in: a kubeconfig. Goes out: bindings, to the nodes in turn. Measured beside the schedulers it shows what the API
server and this machine leave to be won: no scheduler in Python that watches all pods and writes events does better.

`python -m benchmarks.live.bare --kubeconfig FILE` runs until it is ended.
"""

import argparse
import asyncio
import base64
import contextlib
import datetime as dt
import itertools
import json
import pathlib
import signal
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator

import aiohttp
import msgspec
import uvloop

SCHEDULER_NAME = "bare-binder"

_BINDERS = 16
_ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[_Pod]


_EVENT = msgspec.json.Decoder(_Event)
_LIST = msgspec.json.Decoder(_List)


async def run(kubeconfig: pathlib.Path) -> None:
    """Bind every pod that names this scheduler, until cancelled."""
    server, context = _read(kubeconfig)
    connector = aiohttp.TCPConnector(ssl=context, limit=_BINDERS + 8)
    async with aiohttp.ClientSession(server, connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:
        async with session.get("/api/v1/nodes") as answer:
            nodes = itertools.cycle([node.metadata.name for node in _LIST.decode(await answer.read()).items])
        waiting: asyncio.Queue[_Pod] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            for _ in range(_BINDERS):
                group.create_task(_bind_all(session, waiting, nodes))
            async for pod in _unbound(session):
                waiting.put_nowait(pod)


async def _unbound(session: aiohttp.ClientSession) -> AsyncIterator[_Pod]:
    """Each pod of this scheduler that is not bound, once."""
    path, seen = "/api/v1/pods", set[str]()
    async with session.get(path, params={"fieldSelector": _ACTIVE}) as answer:
        listed = _LIST.decode(await answer.read())
    since = listed.metadata.resource_version
    for pod in listed.items:
        if _is_ours(pod, seen):
            yield pod
    while True:
        query = {"fieldSelector": _ACTIVE, "watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true"}
        async with session.get(path, params=query) as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = _EVENT.decode(line)
                    since = event.object.metadata.resource_version
                    if event.type == "ADDED" and _is_ours(event.object, seen):
                        yield event.object


def _is_ours(pod: _Pod, seen: set[str]) -> bool:
    if pod.spec.node_name or pod.spec.scheduler_name != SCHEDULER_NAME or pod.metadata.uid in seen:
        return False
    seen.add(pod.metadata.uid)
    return True


async def _bind_all(session: aiohttp.ClientSession, waiting: asyncio.Queue[_Pod], nodes: Iterator[str]) -> None:
    while True:
        pod, node = await waiting.get(), next(nodes)
        name, namespace = pod.metadata.name, pod.metadata.namespace
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"metadata": {"name": name, "uid": pod.metadata.uid}, "target": target}
        await _post(session, f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)
        await _post(session, f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", _scheduled(pod, node))


async def _post(session: aiohttp.ClientSession, path: str, body: object) -> None:
    headers = {"Content-Type": "application/json"}
    async with session.post(path, data=msgspec.json.encode(body), headers=headers) as answer:
        await answer.read()


def _scheduled(pod: _Pod, node: str) -> object:
    name, namespace = pod.metadata.name, pod.metadata.namespace
    return {
        "metadata": {"name": f"{name}.{pod.metadata.uid[:8]}", "namespace": namespace},
        "eventTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": SCHEDULER_NAME,
        "reportingInstance": SCHEDULER_NAME,
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": name, "namespace": namespace, "uid": pod.metadata.uid},
        "note": f"Successfully assigned {namespace}/{name} to {node}",
    }


def _read(kubeconfig: pathlib.Path) -> tuple[str, ssl.SSLContext]:
    """The server and the client's identity, of a kubeconfig with embedded certificates written as JSON."""
    document = json.loads(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as pair:
        # The ssl module reads a client's identity from files only.
        pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return cluster["server"], context


async def _until_terminated(kubeconfig: pathlib.Path) -> None:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await run(kubeconfig)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.bare", description="Bind pods to nodes in turn.")
    parser.add_argument("--kubeconfig", type=pathlib.Path, required=True)
    uvloop.run(_until_terminated(parser.parse_args().kubeconfig))
