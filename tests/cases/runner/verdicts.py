"""
What a scheduler decided about a pod, read from the pod alone, and what is wrong with it.

Comes in: a pod as the API server has it, and the case's expectation. Goes out: whether there is a decision yet, and
problems in words. Pure: `play.py` does the waiting.
"""

import itertools
from collections.abc import Iterable

from tests.cases.runner import cases

_GATED, _REFUSED = "SchedulingGated", "Unschedulable"


def node(pod: cases.Object) -> str:
    """Where the pod is bound; empty for nowhere."""
    name: str = pod["spec"].get("nodeName", "")
    return name


def refusal(pod: cases.Object) -> tuple[str, str]:
    """Reason and message of the condition that says that it is not scheduled; empty without one."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("reason", ""), condition.get("message", "")
    return "", ""


def decided(pod: cases.Object, expected: cases.Expectation, *, patient: bool) -> bool:
    """
    Whether the scheduler has had its say.

    With `patient`, a refusal does not count for a pod that is to be bound: it is the first half of an eviction, or of
    a group that is not complete yet.
    """
    if node(pod):
        return True
    refused = bool(refusal(pod)[0])
    return refused and not (patient and bool(expected.targets))


def problems(pod: cases.Object, expected: cases.Expectation) -> list[str]:
    """What of the decision is not as expected; evictions are looked at elsewhere."""
    found: list[str] = []
    bound, (reason, message) = node(pod), refusal(pod)
    if expected.targets:
        if bound not in expected.targets:
            where = f"is on {bound}" if bound else f"is refused: {message}"
            found.append(f"must be on {' or '.join(expected.targets)}, {where}")
        return found
    if bound:
        found.append(f"must not be placed, is on {bound}")
        return found
    wanted = _GATED if expected.gated else _REFUSED
    if reason != wanted:
        found.append(f"the reason must be {wanted}, is {reason or 'missing'}")
    found.extend(f'"{text}" is missing in "{message}"' for text in expected.reasons if text not in message)
    if not message.startswith(expected.message):
        found.append(f'must start with "{expected.message}": "{message}"')
    nominated = pod.get("status", {}).get("nominatedNodeName", "")
    if expected.nominated and nominated != expected.nominated:
        found.append(f"must be nominated to {expected.nominated}, is to {nominated or 'none'}")
    return found


def leaving(pods: Iterable[cases.Object]) -> set[str]:
    """Names of the pods that are on their way out."""
    return {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}


def evicted(case: cases.Case, now: Iterable[cases.Object]) -> list[str]:
    """Names of the case's pods that are gone or leaving, those apart that were leaving from the start; sorted."""
    before = [item for item in case.objects if item["kind"] == "Pod"]
    present = list(now)
    staying = {pod["metadata"]["name"] for pod in present} - leaving(present)
    mine = {pod["metadata"]["name"] for pod in itertools.chain(before, case.pending)}
    return sorted(mine - leaving(before) - staying)
