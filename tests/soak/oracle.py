"""Which of the pods that wait would kube-scheduler's own plugins place now?

Comes in: the ledger. Goes out: UIDs of pods that fit somewhere. The pods are tried in the order of their waiting, each
after those before it, on the nodes of their own group alone: the node selectors say so, and it keeps requests small.
"""

from __future__ import annotations

from typing import Any

from tests.oracle import program
from tests.soak import ledger, streams

Object = dict[str, Any]

ASKED_MAX = 10
_SPEC = (
    "nodeName",
    "nodeSelector",
    "affinity",
    "topologySpreadConstraints",
    "tolerations",
    "schedulerName",
    "priority",
)


def request(book: ledger.Ledger, stream: streams.Stream, waiting: list[Object], *, headroom: float) -> Object:
    """The question about these pods; `headroom` is the share of each node that they may not have."""
    names = [name for name, node in book.nodes.items() if node["metadata"]["labels"].get("soak") == stream.group]
    there = [book.pods[bound.name] for name in names for bound in book.on(name)]
    asked = waiting[:ASKED_MAX]
    return {
        "objects": [*(_node(book.nodes[name], headroom) for name in names), *map(_pod, there), *map(_pod, asked)],
        "pods": [_name(pod) for pod in asked],
        "normalized": True,
    }


def fitting(oracle: program.Oracle, question: Object) -> set[str]:
    """`namespace/name` of those it places.

    Raises:
        program.OracleError: The question is not understood.
    """
    answer = oracle.ask(question)
    if "error" in answer:
        raise program.OracleError(str(answer["error"]))
    return {result["pod"] for result in answer["results"] if result["outcome"] == "scheduled"}


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _node(node: Object, headroom: float) -> Object:
    offered = ledger.offered_by(node)
    left = {
        "cpu": f"{int(offered.cpu * (1 - headroom))}m",
        "memory": str(int(offered.memory * (1 - headroom))),
        "pods": str(int(offered.pods * (1 - headroom))),
    }
    metadata = {"name": node["metadata"]["name"], "labels": node["metadata"].get("labels", {})}
    spec = {name: node["spec"][name] for name in ("taints", "unschedulable") if name in node.get("spec", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {"allocatable": left, "capacity": left},
    }


def _pod(pod: Object) -> Object:
    metadata = {
        name: pod["metadata"][name]
        for name in ("name", "namespace", "uid", "labels", "deletionTimestamp")
        if name in pod["metadata"]
    }
    spec = {name: pod["spec"][name] for name in _SPEC if name in pod["spec"]}
    spec["containers"] = [
        {name: each[name] for name in ("name", "image", "resources")} for each in pod["spec"]["containers"]
    ]
    gates = [gate for gate in pod["spec"].get("schedulingGates", []) if gate["name"] != streams.GATE]
    if gates:
        spec["schedulingGates"] = gates
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": pod.get("status", {}).get("phase", "Pending")},
    }
