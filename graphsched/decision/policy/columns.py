"""One rule, compiled, with what its part about nodes says of every node.

The column is brought up to date for nodes that changed and no others. Labels are asked in vectors; networks and
expressions node by node, of nodes whose labels match, since for those alone their answer counts.
"""

from __future__ import annotations

import functools
import ipaddress
import typing
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphsched.base.values import policies
from graphsched.decision.constraints import check
from graphsched.decision.policy import answers, expressions
from graphsched.graph import view

Rows = npt.NDArray[np.intp]
Network = tuple[int, int, int]
"""IP version, the bits of an address that do not count, and the others."""


class Column:
    """A rule and its answers.

    Attributes:
        rule: The rule.
        problem: Why it is left out; empty for one that is in force.
        answers: Of its part about nodes, one a row.
        stale: Bool a row: the answer is out of date.
        failure: The last time that an expression of it could not be evaluated, in words; empty for never.
    """

    def __init__(self, rule: policies.Rule) -> None:
        self.rule = rule
        self.problem = ""
        self.failure = ""
        self.answers: answers.Answers = np.zeros(0, np.int8)
        self.stale: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._pod = self._compiled(expressions.POD, rule.match.pod_when)
        self._node = self._compiled(expressions.NODE, rule.match.node_when)
        self._networks = [_network(text) for text in rule.match.cidrs]
        self.slow = self._node is not None or bool(self._networks)
        """Whether nodes are asked one by one."""

    def _compiled(self, variable: str, text: str) -> expressions.Expression | None:
        if not text:
            return None
        found = expressions.compiled(variable, text)
        if isinstance(found, expressions.Broken):
            self.problem = self.problem or f"when.{variable}: {found.problem}"
            return None
        return found

    def of_pod(self, subject: check.Subject) -> int:
        """What its part about pods says of this one."""
        match = self.rule.match
        if match.namespaces and subject.namespace not in match.namespaces:
            return answers.NO
        if match.pods is not None and not match.pods.matches(subject.labels):
            return answers.NO
        if self._pod is None:
            return answers.YES
        answer, failure = self._pod.ask(expressions.prepared(expressions.POD, expressions.facts_of_pod(subject)))
        if failure:
            self.failure = f"when.pod: {failure}"
        return answer

    def resize(self, capacity: int) -> None:
        """Follow the node columns; new rows are stale."""
        missing = capacity - len(self.answers)
        if missing > 0:
            self.answers = np.concatenate([self.answers, np.zeros(missing, np.int8)])
            self.stale = np.concatenate([self.stale, np.ones(missing, np.bool_)])

    def update(self, graph: view.View, rows: Rows, prepared: dict[int, typing.Any]) -> None:
        """Answer anew for these rows. `prepared` keeps what was made of a row's node, for the next column."""
        match = self.rule.match
        found = graph.columns.live[rows].astype(np.int8)
        if match.nodes is not None:
            found &= graph.attributes.all_hold(match.nodes.requirements, rows)
        before = self._node is not None and self._node.exhausting
        if self.slow:
            for place in np.flatnonzero(found).tolist():
                found[place] = self._ask(graph, int(rows[place]), prepared)
        self.answers[rows] = found
        self.stale[rows] = False
        if self._node is not None and self._node.exhausting and not before:
            # Whether a node was asked before it got too much must not matter.
            self.stale[:] = True

    def _ask(self, graph: view.View, row: int, prepared: dict[int, typing.Any]) -> int:
        node = graph.node(graph.columns.names[row])
        if node is None:
            return answers.NO
        if self._networks and not _within(node.addresses, self._networks):
            return answers.NO
        if self._node is None:
            return answers.YES
        asked = prepared.get(row)
        if asked is None:
            asked = prepared[row] = expressions.prepared(expressions.NODE, expressions.facts_of_node(node))
        answer, failure = self._node.ask(asked)
        if failure:
            self.failure = f"when.node: {failure} (node {node.name})"
        return answer


def _network(text: str) -> Network:
    network = ipaddress.ip_network(text)
    free = network.max_prefixlen - network.prefixlen
    return network.version, free, int(network.network_address) >> free


@functools.lru_cache(maxsize=1 << 16)
def _address(text: str) -> tuple[int, int]:
    """IP version and number of an address; version 0 for what is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return 0, 0
    return address.version, int(address)


def _within(addresses: Sequence[str], networks: Sequence[Network]) -> bool:
    for text in addresses:
        version, number = _address(text)
        if any(version == kind and number >> free == prefix for kind, free, prefix in networks):
            return True
    return False
