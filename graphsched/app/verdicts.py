"""How an evaluation is written down for programs: the RESULT of the `evaluate` contract.

A `trace.Evaluation` comes in, a mapping of plain values goes out, fields in the order of the contract and absent where
it says absent. Nothing is decided here.
"""

from __future__ import annotations

from graphsched.base.values import pods, status
from graphsched.decision import names, profile, trace
from graphsched.explain import refusals

Result = dict[str, object]


def of(pod: pods.Pod, evaluation: trace.Evaluation, settings: profile.Profile) -> Result:
    """The result of a pod that was evaluated under this profile."""
    failed = evaluation.prefilter
    if failed is not None and failed.code is status.Code.ERROR:
        return {"pod": pod.full_name, "outcome": "error", "error": ", ".join(failed.reasons)}
    feasible = sorted(name for name, verdict in evaluation.verdicts.items() if verdict.status.ok)
    result: Result = {
        "pod": pod.full_name,
        "outcome": "scheduled" if feasible else "unschedulable",
        "nodes": {name: _node(verdict, settings) for name, verdict in sorted(evaluation.verdicts.items())},
        "feasible": feasible,
        "best": sorted(evaluation.best),
    }
    if feasible:
        nominated = pod.nominated in feasible
        result["selected"] = pod.nominated if nominated else min(evaluation.best)
        if nominated:
            result["byNomination"] = True
    if evaluation.prefilter is not None:
        result["preFilter"] = _refusal(evaluation.prefilter)
    if evaluation.diagnosis is not None:
        result["message"] = refusals.text(evaluation.diagnosis)
    return result


def gated(pod: pods.Pod) -> Result:
    """The result of a pod that scheduling gates hold back."""
    held = status.Status(
        status.Code.UNRESOLVABLE,
        (f"waiting for scheduling gates: [{' '.join(pod.gates)}]",),
        names.SCHEDULING_GATES,
    )
    return {"pod": pod.full_name, "outcome": "gated", "gated": _refusal(held)}


def _node(verdict: trace.Verdict, settings: profile.Profile) -> Result:
    if verdict.status.ok:
        scores = dict(verdict.scores)
        if settings.weights.get(names.DYNAMIC_RESOURCES):
            # It scores claims, which this version refuses; of a pod without any it says 0 instead of skipping.
            scores.setdefault(names.DYNAMIC_RESOURCES, 0)
        return {"status": verdict.status.code.title, "scores": dict(sorted(scores.items())), "total": verdict.total}
    return _refusal(verdict.status)


def _refusal(refused: status.Status) -> Result:
    found: Result = {"status": refused.code.title}
    if refused.by:
        found["plugin"] = refused.by
    return {**found, "reasons": sorted(refused.reasons)}
