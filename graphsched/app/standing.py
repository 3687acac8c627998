"""How the rules of a policy stand, as its status says it.

A policy as it was last seen and the book of compiled rules come in; the status that the object should have goes out,
and what is wrong with which rule, for an event. Times of transitions are kept where nothing has moved.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

import numpy as np

from graphsched.base.kube import policies as kube_policies
from graphsched.base.values import keys
from graphsched.decision.policy import answers, books, columns
from graphsched.sources import policies as feeds

READY, BROKEN, FAILING = "Ready", "Broken", "Failing"
UNREADABLE = "Unreadable"
MESSAGE_MAX = 1000

Status = dict[str, typing.Any]
Verdict = tuple[str, str, str]
"""Status, reason and message of a condition."""
Held = dict[str, dict[str, columns.Column]]


def by_policy(book: books.Book) -> Held:
    """The rules in force, by the name of their policy and then their own."""
    found: Held = {}
    for column in book.columns:
        found.setdefault(column.rule.policy, {})[column.rule.name] = column
    return found


def status(known: feeds.Known, book: books.Book, held: Mapping[str, columns.Column], *, moment: str) -> Status:
    """The status that the policy should have.

    Args:
        known: The policy.
        book: The compiled rules.
        held: Those of this policy in force, by name.
        moment: Now, as the API writes it.
    """
    body, read = known.body, known.read
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
    generation = body.metadata.generation
    ready, shown = _verdicts(read, rules)
    before = _entries(body.status, "conditions")
    return {
        "observedGeneration": generation,
        "counts": {"rules": len(rules), "broken": sum(rule["state"] == BROKEN for rule in rules)},
        "conditions": [
            _condition(kind, told, before, generation=generation, moment=moment)
            for kind, told in ((READY, ready), (BROKEN, shown))
        ],
        "rules": rules,
    }


def _verdicts(read: kube_policies.Read, rules: list[Status]) -> tuple[Verdict, Verdict]:
    """What the conditions `Ready` and `Broken` say."""
    if read.unreadable:
        kept = "the rules it had stay in force" if read.rules else "it has no rule in force"
        message = f"{kept}: {read.unreadable}"
        return ("False", UNREADABLE, message), ("True", UNREADABLE, message)
    broken = [rule["name"] for rule in rules if rule["state"] == BROKEN]
    failing = [rule["name"] for rule in rules if rule["state"] == FAILING]
    if broken:
        message = f"left out: {', '.join(broken)}"
        return ("False", "RulesBroken", message), ("True", "RulesBroken", message)
    if failing:
        message = f"in force, and denying where it fails: {', '.join(failing)}"
        return ("True", "RulesFailing", message), ("False", "RulesInForce", "")
    return ("True", "RulesInForce", ""), ("False", "RulesInForce", "")


def differs(have: typing.Any, wanted: Status) -> bool:
    """Whether the status says something else, how many nodes match aside: that moves with every node that joins."""
    return not isinstance(have, dict) or _plain(have) != _plain(wanted)


def complaints(have: typing.Any, wanted: Status) -> list[str]:
    """What is wrong with the policy and its rules that the status has not said yet."""
    known = isinstance(have, dict) and have.get("observedGeneration") == wanted["observedGeneration"]
    told = {(rule.get("name"), rule.get("state")) for rule in _entries(have, "rules")} if known else set()
    said = {(each.get("type"), each.get("message")) for each in _entries(have, "conditions")} if known else set()
    unread = [
        f"it can not be read: {each['message']}"
        for each in wanted["conditions"]
        if each["type"] == BROKEN and each["reason"] == UNREADABLE and (BROKEN, each["message"]) not in said
    ]
    return unread + [
        f"rule {rule['name']}: {rule['message']}"
        for rule in wanted["rules"]
        if rule["state"] != READY and (rule["name"], rule["state"]) not in told
    ]


def _entries(status: typing.Any, field: str) -> list[Status]:
    """The entries of a list in a status, whatever somebody has made of it."""
    found = status.get(field) if isinstance(status, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _matched(column: columns.Column) -> Status:
    return {"nodes": int(np.count_nonzero(column.answers == answers.YES))}


def _condition(kind: str, told: Verdict, held: list[Status], *, generation: int, moment: str) -> Status:
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
    return {
        **body,
        "conditions": [_without(each, "lastTransitionTime") for each in _entries(body, "conditions")],
        "rules": [_without(each, "nodes") for each in _entries(body, "rules")],
    }


def _without(entry: Status, field: str) -> Status:
    return {name: value for name, value in entry.items() if name != field}


def path(name: str) -> str:
    """Where the status is written."""
    return f"{kube_policies.PATH}/{name}/status"
