"""What must hold after every fault, whatever it was: asked of the API server, not of the scheduler's own memory.

Comes in: a world at rest. Goes out: nothing, or an `AssertionError` that says what is broken. The graph is looked at
last, against a fresh list.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from graphsched.base.values import keys
from graphsched.sources import resources
from tests.faults import calls, customs, witness as witnesses, worlds

WITHIN_S = 20.0
_FINISHED = ("Succeeded", "Failed")


def require_all_bound(world: worlds.World) -> None:
    """No pod is lost: every pod that fits has a node."""
    waiting = [name for name, pod in world.seen.items() if name not in world.giants and not node_of(pod)]
    assert [] == waiting, f"{world.name}: never bound: {waiting}"


def require_bound_once(world: worlds.World) -> None:
    """No pod was ever seen on two nodes, and of no pod two bindings worked."""
    for pod in world.seen.values():
        nodes = world.shared.witness.nodes[pod["metadata"]["uid"]]
        assert len(nodes) <= 1, f"{world.name}: {pod['metadata']['name']} was on {nodes}"
    worked = Counter(done.uid for done in world.proxy.made(calls.BIND) if 200 <= done.status < 300)
    assert max(worked.values(), default=0) <= 1, f"{world.name}: bound twice: {worked.most_common(1)}"


def require_rules_kept(world: worlds.World) -> None:
    """No pod was ever seen on the node that the policy denies."""
    denied = customs.denied(world.name)
    for pod in world.seen.values():
        nodes = world.shared.witness.nodes[pod["metadata"]["uid"]]
        assert denied not in nodes, f"{world.name}: {pod['metadata']['name']} was on {denied}, against the rule"


async def require_told(world: worlds.World, *, within_s: float = WITHIN_S) -> None:
    """The status of the policy comes to speak of its present state, and says that all of it is in force."""
    end = asyncio.get_running_loop().time() + within_s
    while True:
        policy = await world.shared.client.get(world.path(calls.POLICIES, world.name))
        status = policy.get("status", {})
        if status.get("observedGeneration") == policy["metadata"]["generation"]:
            break
        assert asyncio.get_running_loop().time() < end, f"{world.name}: the status of the policy is old: {status}"
        await asyncio.sleep(0.1)
    assert {"rules": 1, "broken": 0} == status["counts"]


async def require_room(world: worlds.World) -> None:
    """No node holds more than it has."""
    nodes, _ = await world.shared.client.list(worlds.NODES, labelSelector=f"{witnesses.LABEL}={world.name}")
    has = {node["metadata"]["name"]: _milli(node["status"]["allocatable"]["cpu"]) for node in nodes}
    holds: Counter[str] = Counter()
    for pod in world.seen.values():
        if pod.get("status", {}).get("phase") not in _FINISHED:
            holds[node_of(pod)] += sum(
                _milli(each["resources"]["requests"]["cpu"]) for each in pod["spec"]["containers"]
            )
    for node, held in holds.items():
        # A node that is gone has no room to over-commit.
        assert not node or held <= has.get(node, held), f"{world.name}: {node} holds {held}m of {has[node]}m"


async def require_true_graph(
    world: worlds.World, kinds: Collection[str] = frozenset(), *, within_s: float = WITHIN_S
) -> None:
    """The scheduler comes to rest, and then its graph is what a fresh list of these kinds (none named: of all) shows;
    its own audit finds nothing.
    """
    end = asyncio.get_running_loop().time() + within_s
    while True:
        if world.program.task.done():
            world.program.task.result()
        differences = await _differences(world, kinds) if world.program.idle else ["something is under way"]
        if world.program.idle and not differences:
            break
        assert asyncio.get_running_loop().time() < end, f"{world.name}: the graph differs: {differences}"
        await asyncio.sleep(0.1)
    assert [] == world.program.wired.parts.store.audit()


def require_bounded(world: worlds.World) -> None:
    """Nothing is kept of pods that are settled."""
    parts = world.program.wired.parts
    assert len(parts.backlog) <= len(world.giants), f"{world.name}: {len(parts.backlog)} pods are in the queue"
    assert len(parts.dispatcher) == len(parts.promises) == 0


async def _differences(world: worlds.World, kinds: Collection[str]) -> list[str]:
    store = world.program.wired.parts.store
    vertices, _ = store.content()
    looked_at = [resource for resource in resources.ALL if not kinds or resource.name in kinds]
    wanted: dict[Any, Any] = {}
    for resource in looked_at:
        convert: Any = resource.convert
        query = {"labelSelector": f"{witnesses.LABEL}={world.name}"}
        if resource.fields:
            query["fieldSelector"] = resource.fields
        items, _ = await world.shared.client.list(resource.path, **query)
        for item in items:
            body = resource.decode(json.dumps(item).encode())
            wanted[resource.key(body.metadata)] = convert(body)
    beside = await customs.due(world.shared.client, world.name, world.beside)
    wanted |= {key: value for key, value in beside.items() if isinstance(key, str)}
    wrong = customs.wrong_edges(store, beside) if world.beside is customs.Beside.NETWORK else []
    missing = [f"{key} is missing" for key in wanted.keys() - vertices.keys()]
    extra = [f"{key} is left over" for key in vertices.keys() - wanted.keys() if not kinds or _kind(key) in kinds]
    changed = [f"{key} is not as listed" for key in wanted.keys() & vertices.keys() if wanted[key] != vertices[key]]
    return [*missing, *extra, *changed, *wrong]


def _kind(key: keys.VertexKey) -> str:
    """The plural name of the resource that a vertex came from, where the table tells them apart."""
    kinds: dict[str, str] = {keys.Kind.NODE: "nodes", keys.Kind.POD: "pods"}
    return kinds.get(keys.kind_of(key), "")


def node_of(pod: witnesses.Object) -> str:
    """The node a pod is bound to, empty for none."""
    node: str = pod["spec"].get("nodeName", "")
    return node


def waits(pod: witnesses.Object) -> bool:
    """Whether the pod's condition says that it found no node."""
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each["reason"] == "Unschedulable"
        for each in pod.get("status", {}).get("conditions", [])
    )


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else 1000 * int(text)
