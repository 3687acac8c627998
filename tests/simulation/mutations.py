"""
Production code broken on purpose: does the simulation see it?

Comes in: the name of a breakage. Goes out: a context in which the scheduler is broken in this way. `python -m
tests.simulation --mutations` looks for the first seed that finds each; one that no seed finds is a hole in the
checkers, or in the world.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing
from collections.abc import Callable, Iterable
from unittest import mock

from graphsched.action import bind, conditions
from graphsched.app import backlog, intake, leadership, loop as loops, promises, rechecks, tidings
from graphsched.base.values import keys
from graphsched.sources import reflector
from tests.simulation import runs

Patch = typing.Any


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One way to be wrong.

    Attributes:
        name: Short.
        wrong: What the scheduler does now.
        patch: Makes it do so, as long as it is entered.
    """

    name: str
    wrong: str
    patch: Callable[[], contextlib.AbstractContextManager[object]]


async def _takes_silence_for_a_no(_client: object, order: bind.Order, **_: object) -> bind.Outcome:
    return bind.Outcome(order, bind.End.FAILED, detail="no answer")


def _does_nothing(*_: object, **__: object) -> None:
    """In place of a method that does something."""


async def _does_not_read(*_: object, **__: object) -> None:
    return None


def _promise_ends_with_the_answer() -> Patch:
    original = loops.Loop._done

    def done(self: loops.Loop, tried: rechecks.Try, outcome: bind.Outcome, now: float) -> None:
        self._parts.promises.end((tried.promise,))
        original(self, tried, outcome, now)

    return mock.patch.object(loops.Loop, "_done", done)


def _any_pod_of_the_name() -> Patch:
    def get(self: promises.Promises, key: keys.VertexKey, _uid: str) -> promises.Promise | None:
        return self._promises.get(key)

    return mock.patch.object(promises.Promises, "get", get)


def _binds_by_name() -> Patch:
    original = bind.body
    return mock.patch.object(bind, "body", lambda pod, node: original(pod, node).replace(pod.uid.encode(), b""))


def _forgets_deletions() -> Patch:
    original = reflector.Reflector._event

    def event(self: reflector.Reflector[typing.Any], patch: typing.Any, told: typing.Any) -> None:
        if told.type != "DELETED":
            original(self, patch, told)

    return mock.patch.object(reflector.Reflector, "_event", event)


def _misses_what_went_away_unseen() -> Patch:
    return mock.patch.object(reflector.Reflector, "_forget", lambda self, _patch, key: self._known.pop(key))


def _loses_failed_tries() -> Patch:
    return mock.patch.object(backlog.Backlog, "failed", new=_does_nothing)


def _wakes_nobody_for_room() -> Patch:
    return mock.patch.object(tidings.News, "left", new=_does_nothing)


def _conditions_overtake_bindings() -> Patch:
    def hold(self: conditions.Conditions, key: keys.VertexKey) -> None:
        self.forget(key)

    return mock.patch.object(conditions.Conditions, "hold", hold)


def _forgets_promises_on_nodes() -> Patch:
    return mock.patch.object(promises.Promises, "keep", new=_does_nothing)


def _keeps_bound_pods_in_the_queue() -> Patch:
    return mock.patch.object(intake.Intake, "_bound", new=_does_nothing)


def _leads_for_ever() -> Patch:
    original = leadership.Elector.left_s
    return mock.patch.object(
        leadership.Elector, "left_s", lambda self: original(self) if self.term == 0 else FOR_EVER_S
    )


FOR_EVER_S = 1e6

ALL = (
    Mutation(
        "lost-answer-is-no",
        "takes a lost answer for a refusal, and gives the room away",
        lambda: mock.patch.object(bind, "_look", _takes_silence_for_a_no),
    ),
    Mutation(
        "no-look",
        "repeats a binding without reading the pod first",
        lambda: mock.patch.object(bind, "_look", _does_not_read),
    ),
    Mutation("early-end", "ends a promise with the answer, before any watch has told", _promise_ends_with_the_answer),
    Mutation("promise-by-name", "takes a promise for that of the next pod of the name", _any_pod_of_the_name),
    Mutation("bind-by-name", "binds whatever pod has the name now", _binds_by_name),
    Mutation("deaf-to-deletions", "forgets what a watch says of deletions", _forgets_deletions),
    Mutation("ghosts", "does not remove what went away while nobody watched", _misses_what_went_away_unseen),
    Mutation("lost-tries", "does not queue a pod again whose binding failed", _loses_failed_tries),
    Mutation("no-wake", "wakes nobody when room becomes free", _wakes_nobody_for_room),
    Mutation("late-words", "binds while a condition is still under way", _conditions_overtake_bindings),
    Mutation("node-returns", "forgets promises on a node that is deleted and returns", _forgets_promises_on_nodes),
    Mutation("no-fence", "goes on after its lease has run out", _leads_for_ever),
    Mutation("deaf-to-bindings", "does not hear that a pod was bound", _keeps_bound_pods_in_the_queue),
)
"""All that should be seen."""

BY_NAME = {mutation.name: mutation for mutation in ALL}


def first_seed(name: str, seeds: Iterable[int]) -> tuple[int | None, str]:
    """The first of these seeds that sees the breakage, and what it says; None when none does."""
    with BY_NAME[name].patch():
        for seed in seeds:
            failures = runs.simulate(seed).failures
            if failures:
                return seed, failures[0]
    return None, ""
