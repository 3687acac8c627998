"""
What of a pod's placement may still be changed, as the API server's validation has it.

Comes in: a pod before and after an update. Goes out: the refusal it meets, if any. Only the fields that decide where a
pod may run are looked at: scheduling gates, node selector, required node affinity.

Invariant: the contract suite holds these rules to the real server's.
"""

from typing import Any

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
_IMMUTABLE = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"


def problem(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Why the update of a pod is invalid; empty where it is not."""
    old, new = before["spec"], after["spec"]
    gates = [gate["name"] for gate in old.get("schedulingGates") or ()]
    for gate in new.get("schedulingGates") or ():
        if gate["name"] not in gates:
            return f"spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate '{gate}'"
    selects = [spec.get("nodeSelector") or {} for spec in (old, new)]
    demands = [_terms(spec) for spec in (old, new)]
    if not gates:
        return "" if selects[0] == selects[1] and demands[0] == demands[1] else _IMMUTABLE
    if not selects[0].items() <= selects[1].items():
        return "spec.nodeSelector: Invalid value: only additions to spec.nodeSelector are allowed (no mutations)"
    if not demands[0]:
        return ""
    if len(demands[0]) != len(demands[1]):
        return f"{_TERMS}: Invalid value: no additions/deletions to non-empty NodeSelectorTerms list are allowed"
    for number, (was, becomes) in enumerate(zip(*demands, strict=True)):
        if not _grown(was, becomes):
            return f"{_TERMS}[{number}]: Invalid value: only additions are allowed (no mutations or deletions)"
    return ""


def _terms(spec: dict[str, Any]) -> list[dict[str, Any]]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []


def _grown(was: dict[str, Any], becomes: dict[str, Any]) -> bool:
    """Whether a term kept all that it had, in its place; one that had nothing stays so."""
    fields = ("matchExpressions", "matchFields")
    if not any(was.get(field) for field in fields):
        return not any(becomes.get(field) for field in fields)
    return all((becomes.get(field) or [])[: len(was.get(field) or [])] == (was.get(field) or []) for field in fields)
