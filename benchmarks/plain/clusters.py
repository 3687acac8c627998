"""A cluster as one would hold it without a graph: nodes with running sums, pods with their terms, both in lists."""

from __future__ import annotations

import dataclasses

Labels = dict[str, str]


@dataclasses.dataclass(slots=True)
class Term:
    """A pod (anti-)affinity term: pods with all of these labels, in the domains of this node label."""

    key: str
    match: Labels
    weight: int = 0

    def selects(self, labels: Labels) -> bool:
        """Whether it means a pod with these labels."""
        return self.match.items() <= labels.items()


@dataclasses.dataclass(slots=True)
class Spread:
    """A hard topology spread constraint."""

    key: str
    match: Labels
    max_skew: int


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """A node and what its pods hold of it: milli-CPU, bytes."""

    name: str
    labels: Labels
    cpu: int
    memory: int
    pods_max: int
    used_cpu: int = 0
    used_memory: int = 0
    pods: int = 0


@dataclasses.dataclass(slots=True, eq=False)
class Pod:
    """A pod; `node` is where it runs."""

    name: str
    labels: Labels
    cpu: int
    memory: int
    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    spread: tuple[Spread, ...] = ()
    node: Node | None = None

    def matches(self, match: Labels) -> bool:
        """Whether it has all of these labels."""
        return match.items() <= self.labels.items()


@dataclasses.dataclass(slots=True)
class Cluster:
    """Nodes in the order of their names, the values of their labels, and the pods that run."""

    nodes: list[Node]
    domains: dict[str, set[str]]
    running: list[Pod] = dataclasses.field(default_factory=list)

    def place(self, pod: Pod, node: Node) -> None:
        """Let the pod run on the node."""
        pod.node = node
        node.used_cpu += pod.cpu
        node.used_memory += pod.memory
        node.pods += 1
        self.running.append(pod)
