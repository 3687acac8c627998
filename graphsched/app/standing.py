"""How the rules of a policy stand, as its status says it.

A policy as it was last seen and the book of compiled rules come in; the status that the object should have goes out,
and what is wrong with which rule, for an event. Times of transitions are kept where nothing has moved.
"""

from __future__ import annotations

import typing

import numpy as np

from graphsched.base.kube import policies as kube_policies
from graphsched.base.values import keys
from graphsched.decision.policy import answers, books, columns
from graphsched.sources import policies as feeds

READY, BROKEN, FAILING = "Ready", "Broken", "Failing"
MESSAGE_MAX = 1000

Status = dict[str, typing.Any]


def status(known: feeds.Known, book: books.Book, *, moment: str) -> Status:
    """The status of the policy; `moment` is now, as the API writes it."""
    body, read = known.body, known.read
    held = {column.rule.name: column for column in book.columns if column.rule.policy == read.name}
    numbers = {rule.name: rule.number for rule in read.rules}
    rules: list[Status] = []
    for name in read.names:
        key = keys.rule_key(read.name, numbers.get(name, -1))
        problem = read.problems.get(name) or book.broken.get(key, "")
        column = held.get(name)
        if problem:
            rules.append({"name": name, "state": BROKEN, "message": f"left out: {problem}"[:MESSAGE_MAX]})
        elif column is not None and column.failure:
            message = f"denies where it can not be evaluated, the last time: {column.failure}"
            rules.append({"name": name, "state": FAILING, "message": message[:MESSAGE_MAX], **_matched(column)})
        else:
            rules.append({"name": name, "state": READY, **({} if column is None else _matched(column))})
    broken = [rule["name"] for rule in rules if rule["state"] == BROKEN]
    failing = [rule["name"] for rule in rules if rule["state"] == FAILING]
    generation = body.metadata.generation
    ready = ("False", "RulesBroken", f"left out: {', '.join(broken)}") if broken else ("True", "RulesInForce", "")
    if failing and not broken:
        ready = ("True", "RulesFailing", f"in force, and denying where it fails: {', '.join(failing)}")
    shown = ("True", "RulesBroken", f"left out: {', '.join(broken)}") if broken else ("False", "RulesInForce", "")
    before = (body.status or {}).get("conditions") or []
    return {
        "observedGeneration": generation,
        "counts": {"rules": len(rules), "broken": len(broken)},
        "conditions": [
            _condition(kind, told, before, generation=generation, moment=moment)
            for kind, told in ((READY, ready), (BROKEN, shown))
        ],
        "rules": rules,
    }


def differs(have: Status | None, wanted: Status) -> bool:
    """Whether the status says something else, how many nodes match aside: that moves with every node that joins."""
    return have is None or _plain(have) != _plain(wanted)


def complaints(have: Status | None, wanted: Status) -> list[str]:
    """What is wrong with rules that the status has not said yet."""
    if have is not None and have.get("observedGeneration") == wanted["observedGeneration"]:
        told = {(rule.get("name"), rule.get("state")) for rule in have.get("rules") or []}
    else:
        told = set()
    return [
        f"rule {rule['name']}: {rule['message']}"
        for rule in wanted["rules"]
        if rule["state"] != READY and (rule["name"], rule["state"]) not in told
    ]


def _matched(column: columns.Column) -> Status:
    return {"nodes": int(np.count_nonzero(column.answers == answers.YES))}


def _condition(kind: str, told: tuple[str, str, str], held: list[Status], *, generation: int, moment: str) -> Status:
    value, reason, message = told
    before = next((each for each in held if each.get("type") == kind and each.get("status") == value), {})
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message[:MESSAGE_MAX],
        "observedGeneration": generation,
        "lastTransitionTime": before.get("lastTransitionTime") or moment,
    }


def _plain(body: Status) -> Status:
    conditions = [
        {field: value for field, value in each.items() if field != "lastTransitionTime"}
        for each in body.get("conditions") or []
    ]
    rules = [{field: value for field, value in each.items() if field != "nodes"} for each in body.get("rules") or []]
    return {**body, "conditions": conditions, "rules": rules}


def path(name: str) -> str:
    """Where the status is written."""
    return f"{kube_policies.PATH}/{name}/status"
