"""The custom resources of a world: objects that describe its network, and rules about its pods.

Comes in: the name of a world. Goes out: where such objects are and what they say, and what the graph has to hold of
them. The network joins two nodes of the world; the rule keeps every pod off one of them, so that a rule that was lost
shows in where the pods are.
"""

import enum
import json
from typing import Any

from graphsched.base.kube import policies
from graphsched.base.values import keys, relations
from graphsched.graph import store as stores
from graphsched.sources import custom, surveys
from tests.controlplane import api, crds
from tests.faults import calls, witness as witnesses

DEFINITIONS = (crds.NETWORK_LINKS, crds.HYPER_NODES, crds.GRAPH_POLICIES)
_BY_NAME = {each["spec"]["names"]["plural"]: each for each in DEFINITIONS}
_RESOURCES = {each.name: each for each in custom.ALL if each.name in calls.CUSTOMS}


class Beside(enum.Enum):
    """What the scheduler of a world follows beside what every scheduler does."""

    NOTHING = ()
    NETWORK = calls.CUSTOMS
    POLICIES = (calls.POLICIES,)


def path(resource: str) -> str:
    """Of the collection."""
    return crds.path_of(_BY_NAME[resource])


def denied(world: str) -> str:
    """The node that no pod of the world may go to."""
    return f"{world}-n0"


def body(resource: str, world: str) -> dict[str, Any]:
    """The object of this kind, without its metadata."""
    ends = [f"{world}-n{number}" for number in range(2)]
    specs: dict[str, dict[str, Any]] = {
        "networklinks": {"endpoints": [{"node": end} for end in ends], "latencyMs": 0.5},
        "hypernodes": {
            "tier": 1,
            "members": [{"type": "Node", "selector": {"exactMatch": {"name": end}}} for end in ends],
        },
        calls.POLICIES: {
            "rules": [
                {
                    "name": "keep-off",
                    "action": "deny",
                    "match": {"nodes": {"matchLabels": {"kubernetes.io/hostname": denied(world)}}},
                }
            ]
        },
    }
    definition = _BY_NAME[resource]["spec"]
    version = f"{definition['group']}/{definition['versions'][0]['name']}"
    return {"apiVersion": version, "kind": definition["names"]["kind"], "spec": specs[resource]}


def change(resource: str, number: int) -> dict[str, Any]:
    """A patch after which the object says something else in the graph, each number something of its own."""
    specs: dict[str, dict[str, Any]] = {
        "networklinks": {"latencyMs": float(number)},
        "hypernodes": {"tier": 1 + number},
        calls.POLICIES: {"priority": number},
    }
    return {"spec": specs[resource]}


async def due(client: api.Api, world: str, beside: Beside) -> dict[surveys.Row, Any]:
    """What the graph has to hold of these objects, by a fresh list of them."""
    selector = f"{witnesses.LABEL}={world}"
    if beside is Beside.POLICIES:
        items, _ = await client.list(path(calls.POLICIES), labelSelector=selector)
        return {rule.key: rule for item in items for rule in policies.read(policies.POLICY.convert(item)).rules}
    if beside is Beside.NETWORK:
        described = []
        for resource in calls.CUSTOMS:
            items, _ = await client.list(path(resource), labelSelector=selector)
            read: Any = _RESOURCES[resource]
            described += [read.convert(read.decode(json.dumps(item).encode())) for item in items]
        nodes, _ = await client.list("/api/v1/nodes", labelSelector=selector)
        labelled = ((each["metadata"]["name"], tuple(sorted(each["metadata"]["labels"].items()))) for each in nodes)
        return dict(surveys.whole(described, labelled))
    return {}


def wrong_edges(store: stores.Store, wanted: dict[surveys.Row, Any]) -> list[str]:
    """What the graph has otherwise, of the edges that are described."""
    have = {
        edge: value
        for kind in (keys.EdgeKind.CONTAINS, keys.EdgeKind.LINK)
        for edge in store.edge_ids(kind)
        if isinstance(value := store.edge(edge), relations.Contains | relations.Link) and surveys.is_described(value.by)
    }
    due_edges = {edge: value for edge, value in wanted.items() if isinstance(edge, keys.EdgeID)}
    return [
        f"{edge} is {have.get(edge)} and not {due_edges.get(edge)}"
        for edge in have.keys() | due_edges.keys()
        if have.get(edge) != due_edges.get(edge)
    ]
