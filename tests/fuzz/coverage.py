"""What a run has met: how often each plugin refused, with which reason, and how often its scores told nodes apart.

The oracle's answers come in, a table goes out. Rows that must not be empty are listed here; `zeros` names those that
are.
"""

from __future__ import annotations

from collections import Counter

from tests.fuzz import scenarios
from tests.fuzz.wishes import Json

Row = tuple[str, str]

_FILTERS: tuple[Row, ...] = (
    ("SchedulingGates", "waiting for scheduling gates"),
    ("NodeUnschedulable", "node(s) were unschedulable"),
    ("NodeName", "node(s) didn't match the requested node name"),
    ("TaintToleration", "node(s) had untolerated taint(s)"),
    ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
    ("NodeAffinity", "pod affinity terms conflict"),
    ("", "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
    ("NodePorts", "node(s) didn't have free ports for the requested pod ports"),
    ("NodeResourcesFit", "Too many pods"),
    ("NodeResourcesFit", "Insufficient cpu"),
    ("NodeResourcesFit", "Insufficient memory"),
    ("NodeResourcesFit", "Insufficient ephemeral-storage"),
    ("NodeResourcesFit", "Insufficient example.com/gpu"),
    ("NodeResourcesFit", "Insufficient hugepages-2Mi"),
    ("NodeDeclaredFeatures", "node(s) didn't match Pod's required features"),
)
_SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
_OUTCOMES = ("scheduled", "unschedulable", "gated", "deleting", "placed", "by nomination")
_SPREAD: tuple[Row, ...] = (
    ("PodTopologySpread", "node(s) didn't match pod topology spread constraints"),
    ("PodTopologySpread", "node(s) didn't match pod topology spread constraints (missing required label)"),
)
_AFFINITY: tuple[Row, ...] = (
    ("InterPodAffinity", "node(s) didn't match pod affinity rules"),
    ("InterPodAffinity", "node(s) didn't match pod anti-affinity rules"),
    ("InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules"),
)
_OF_EXTRA: dict[str, tuple[tuple[Row, ...], str]] = {
    scenarios.SPREAD: (_SPREAD, "PodTopologySpread"),
    scenarios.AFFINITY: (_AFFINITY, "InterPodAffinity"),
    scenarios.OWNERS: ((), "PodTopologySpread"),
}


class Coverage:
    """Counts over the answers seen."""

    def __init__(self, extras: frozenset[str] = frozenset()) -> None:
        self.refusals: Counter[Row] = Counter(dict.fromkeys(_FILTERS, 0))
        self.scores: Counter[str] = Counter(dict.fromkeys(_SCORES, 0))
        self.outcomes: Counter[str] = Counter(dict.fromkeys(_OUTCOMES, 0))
        for extra in extras:
            rows, plugin = _OF_EXTRA[extra]
            self.refusals.update(dict.fromkeys(rows, 0))
            self.scores[plugin] += 0

    def add(self, answer: Json) -> None:
        """Count one answer of the oracle."""
        for result in answer["results"]:
            self.outcomes[result["outcome"]] += 1
            self.outcomes["by nomination"] += bool(result.get("byNomination"))
            if "gated" in result:
                self._refused(result["gated"])
            nodes = result.get("nodes") or {}
            scored: dict[str, set[int]] = {}
            for node in nodes.values():
                if node["status"] != "Success":
                    self._refused(node)
                for plugin, score in (node.get("scores") or {}).items():
                    scored.setdefault(plugin, set()).add(score)
            self.scores.update(plugin for plugin, values in scored.items() if len(values) > 1)

    def _refused(self, refusal: Json) -> None:
        for reason in refusal.get("reasons") or ():
            self.refusals[refusal.get("plugin", ""), reason.partition(": [")[0]] += 1

    def zeros(self) -> list[str]:
        """The rows that nothing was met for."""
        rows = [f"{plugin}: {reason}" for (plugin, reason), count in self.refusals.items() if not count]
        rows += [f"score {plugin}" for plugin, count in self.scores.items() if not count]
        return rows + [f"outcome {outcome}" for outcome, count in self.outcomes.items() if not count]

    def table(self) -> str:
        """All of it, for people."""
        lines = ["refusals (pod × node)"]
        for (plugin, reason), count in sorted(self.refusals.items()):
            lines.append(f"  {count:9,}  {plugin or '(PreFilter)':30} {reason}")
        lines.append("scores that told feasible nodes apart (pods)")
        lines += [f"  {count:9,}  {plugin}" for plugin, count in sorted(self.scores.items())]
        lines.append("outcomes (pods)")
        lines += [f"  {count:9,}  {outcome}" for outcome, count in sorted(self.outcomes.items())]
        return "\n".join(lines)
