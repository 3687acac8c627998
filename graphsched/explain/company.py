"""What is in the way where other pods are: whose company is missing, avoided or avoiding, and which domain is ahead.

The checks say that a node is refused; here the term, the domain and the pods behind it are looked up on the same view,
once for all nodes. `groups` asks for words, `remedies` for the skew that would do.
"""

from __future__ import annotations

import functools
import typing

import numpy as np

from graphsched.base.values import labels, nodes, pods
from graphsched.decision import classes, profile, trace
from graphsched.decision.constraints import check, domains, neighbours, spread
from graphsched.explain import wording
from graphsched.graph import matchers, scopes, view

_HOSTNAME = "kubernetes.io/hostname"


class Ahead(typing.NamedTuple):
    """A hard spread constraint that a node breaks; `by` is how far its domain would be ahead of the emptiest."""

    constraint: pods.SpreadConstraint
    by: int


class Company:
    """Answers about one pod on one view."""

    def __init__(self, graph: view.View, pod: pods.Pod, settings: profile.Profile) -> None:
        self._graph = graph
        self._pod = pod
        self._settings = settings

    @functools.cached_property
    def _subject(self) -> check.Subject:
        return classes.whole_subject(self._graph, self._pod, self._settings)

    @property
    def constraints(self) -> tuple[pods.SpreadConstraint, ...]:
        """By which the pod is spread: its own, or else those of the profile, with the selector that is its."""
        return self._subject.spread

    # ── topology spread ────────────────────────────────────────────────────────────────────────────────────────────

    def spread(self, node: nodes.Node) -> str:
        """Which constraint refuses the node, in words that follow "it is"."""
        missing = self.unlabelled(node)
        if missing:
            return f"without label {missing}, by which it is spread{self._whose}"
        ahead = self.ahead(node)
        if ahead is None:
            return "too far ahead (topology spread)"
        limit = f"maxSkew {ahead.constraint.max_skew}{self._whose}"
        key = ahead.constraint.topology_key
        where = "a host" if key == _HOSTNAME else f"{_domain(node, key)},"
        return f"{where} which would be {ahead.by} ahead ({limit})"

    @property
    def _whose(self) -> str:
        """Who spreads the pod, where it is not the pod itself: nothing in its manifest is to be found then."""
        return "" if self._pod.spec.spread else " by default"

    def unlabelled(self, node: nodes.Node) -> str:
        """The first key of a hard constraint that the node lacks; empty where a domain is ahead before that."""
        have = dict(node.labels)
        for constraint, ahead in self._ahead:
            if constraint.topology_key not in have:
                return constraint.topology_key
            if self._skew(node, ahead) > constraint.max_skew:
                return ""
        return ""

    def ahead(self, node: nodes.Node) -> Ahead | None:
        """The first hard constraint whose domain would be too far ahead with the pod on the node."""
        for constraint, ahead in self._ahead:
            skew = self._skew(node, ahead)
            if constraint.topology_key in dict(node.labels) and skew > constraint.max_skew:
                return Ahead(constraint, skew)
        return None

    def _skew(self, node: nodes.Node, ahead: trace.Scores) -> int:
        return int(ahead[self._graph.columns.rows[node.name]])

    @functools.cached_property
    def _ahead(self) -> list[tuple[pods.SpreadConstraint, trace.Scores]]:
        """Each hard constraint with, a row, how far its domain would be ahead."""
        graph, subject = self._graph, self._subject
        hard = [constraint for constraint in subject.spread if constraint.hard]
        keyed = spread.all_keyed(graph, hard)
        found = []
        for constraint in hard:
            places = domains.of(graph, constraint.topology_key)
            counted = keyed & spread.included(graph, subject, constraint)
            sums = places.sums(spread.alike(graph, subject, constraint), counted)
            known = places.present(counted)
            least = 0 if np.count_nonzero(known) < constraint.min_domains else int(sums[known].min())
            itself = int(constraint.selector is not None and constraint.selector.matches(subject.labels))
            found.append((constraint, places.spread(sums) + (itself - least)))
        return found

    # ── affinity ───────────────────────────────────────────────────────────────────────────────────────────────────

    def affinity(self, node: nodes.Node, reasons: tuple[str, ...]) -> str:
        """Which term refuses the node, in words that follow "it is"."""
        spec = self._pod.spec
        if neighbours.InterPodAffinity.reason_affinity in reasons:
            return self._lonely(node, spec.pod_affinity)
        if neighbours.InterPodAffinity.reason_anti_affinity in reasons:
            for term in spec.pod_anti_affinity:
                if self._near(term.topology_key, (term,), node):
                    return f"{_domain(node, term.topology_key)}, where {_meant(term)} are that it avoids"
            return "near pods that it avoids"
        return self._closed(node)

    def _lonely(self, node: nodes.Node, terms: tuple[pods.PodTerm, ...]) -> str:
        have = dict(node.labels)
        for term in terms:
            if term.topology_key not in have:
                return f"without label {term.topology_key}, by which its affinity goes"
        wanted = wording.both(list(dict.fromkeys(_meant(term) for term in terms)))
        key = next((term.topology_key for term in terms if not self._near(term.topology_key, terms, node)), "")
        return f"not near {wanted} (same {_short(key)})" if key else f"not near {wanted}"

    def _closed(self, node: nodes.Node) -> str:
        row = self._graph.columns.rows[node.name]
        for (key, domain), owners in sorted(self._keepers.items()):
            if int(domains.of(self._graph, key).ids[row]) == domain:
                others = f" and {len(owners) - 1} more" if len(owners) > 1 else ""
                return f"kept by the anti-affinity of {owners[0]}{others} (same {_short(key)})"
        return "kept by the anti-affinity of pods there"

    def _near(self, key: str, terms: tuple[pods.PodTerm, ...], node: nodes.Node) -> bool:
        """Whether a pod that all the terms mean is in the node's domain of the key."""
        counts = self._graph.crowd.counts(matchers.Matcher(tuple(scopes.of_incoming(term) for term in terms)))
        places = domains.of(self._graph, key)
        row = self._graph.columns.rows[node.name]
        return bool(places.inside[row]) and bool(places.sums(counts)[places.ids[row]])

    @functools.cached_property
    def _keepers(self) -> dict[tuple[str, int], list[str]]:
        """Topology key and number of the domain → who is there and wants no pod like this near, sorted by name."""
        pod, found = self._pod, dict[tuple[str, int], list[str]]()
        namespace_labels = self._graph.matchers.namespace_labels(pod.namespace)
        for name, row in self._graph.columns.rows.items():
            for placement in self._graph.on_node(name).values():
                for term in placement.pod.spec.pod_anti_affinity:
                    domain = int(domains.of(self._graph, term.topology_key).ids[row])
                    scope = scopes.of_term(term)
                    if domain >= 0 and scope.selects(
                        pod.labels, namespace=pod.namespace, namespace_labels=namespace_labels
                    ):
                        found.setdefault((term.topology_key, domain), []).append(placement.pod.full_name)
        return {at: sorted(set(names)) for at, names in found.items()}


def _domain(node: nodes.Node, key: str) -> str:
    """The node's domain; of hosts there are too many to name each."""
    return "a host" if key == _HOSTNAME else f"in {_short(key)} {dict(node.labels).get(key, '')}"


def _short(key: str) -> str:
    return "host" if key == _HOSTNAME else key.rpartition("/")[2]


def _meant(term: pods.PodTerm) -> str:
    """Which pods a term means."""
    selector: labels.Selector | None = term.selector
    return "no pods at all" if selector is None else f"{wording.selector(selector)} pods".lstrip()
