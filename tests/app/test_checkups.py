"""A scheduler that logs for developers finds a count that went wrong, tells of it and mends it; others never look.

Nothing is substituted but the clock and the API server; counts are corrupted behind the index's back, since no event
is known that would do it.
"""

import logging
import random

import pytest

from graphsched.app import checkups
from graphsched.app.settings import LogSettings
from graphsched.base.values import keys, labels
from graphsched.graph import matchers, scopes
from graphsched.observe import metrics
from tests import builders
from tests.app import live
from tests.fakes import virtual

N1 = builders.make_node("n1").cpu("4").label("zone", "a")
PAIR = (
    builders.make_pod("db").label("app", "db").cpu("1"),
    builders.make_pod("web").near("zone", {"matchLabels": {"app": "db"}}).cpu("1"),
)
METRIC = "graphsched_audit_differences_total"


def equals(key: str, value: str) -> labels.Selector:
    """The selector `key=value`."""
    return labels.selector([labels.Requirement(key, labels.Operator.IN, (value,))])


def differences(meters: metrics.Metrics) -> float:
    """What the metric says."""
    value = meters.registry.get_sample_value(METRIC, {"kind": "terms"})
    assert value is not None
    return value


async def corrupted(it: live.Scheduler) -> None:
    """Have a pod placed beside another, and then a pod counted that does not exist."""
    for pod in PAIR:
        it.pod(pod)
        await it.bound(pod.build().name)
    await it.quiet(20.0)
    assert 0 == differences(it.parts.meters)
    index = it.parts.store.matchers
    (number,) = (each for each in index.numbers() if index.total(each))
    index._live[number].tally.add(0, 1)


@virtual.timed
async def find_and_mend(caplog: pytest.LogCaptureFixture) -> None:
    """Corrupt a count, wait, and see that it was found."""
    async with live.scheduler(N1, log=LogSettings(level="debug")) as it:
        await corrupted(it)
        await it.quiet(60.0)

        assert 1 == differences(it.parts.meters)
        it.require_sound()
    (told,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert told.getMessage() == (
        "the count of pods app=db in namespaces default was wrong and is mended: "
        "it counts 2 pods, there are 1; rows that are wrong: 1; on row 0 it counts 2, there are 1"
    )


def test_a_wrong_count_is_told_counted_and_mended(caplog: pytest.LogCaptureFixture) -> None:
    """Within a minute of idleness, once, with the matcher in words."""
    find_and_mend(caplog)


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_nothing_is_audited_at_other_levels(level: str) -> None:
    """The wrong count stays and nobody says so."""

    @virtual.timed
    async def body() -> None:
        async with live.scheduler(N1, log=LogSettings(level=level)) as it:  # type: ignore[arg-type]
            await corrupted(it)
            await it.quiet(60.0)

            assert 0 == differences(it.parts.meters)
            assert it.parts.store.audit()

    body()


@virtual.timed
async def test_a_busy_loop_has_no_time_for_audits() -> None:
    """Whoever is called at rest sees neither a pod in line nor a patch that waits, though one turn is not enough."""
    many = tuple(builders.make_pod(f"p{number}").cpu("8").scheduler(live.NAME) for number in range(600))
    async with live.scheduler(N1, pods=many, started=False) as it:
        seen: list[tuple[bool, int]] = []
        it.program.loop._at_rest = lambda _: seen.append((it.parts.backlog.ready, len(it.parts.inbox)))
        await it.until(lambda: bool(it.message("p599")))
        await it.quiet(20.0)

        assert {(False, 0)} == set(seen)


class Patient:
    """An index with matchers to examine, and the one who examines them."""

    def __init__(self, count: int) -> None:
        self.index = matchers.MatcherIndex()
        self.index.resize(2)
        self.index.place(keys.pod_key("default", "a"), matchers.Placed("default", (("app", "0"),), 0))
        for number in range(count):
            self.index.acquire(matchers.Matcher((scopes.Scope(equals("app", str(number)), ("default",)),)))
        self.meters = metrics.Metrics(profile="graph-scheduler", version="0")
        self.checkup = checkups.Checkup(self.index, self.meters, rng=random.Random(1))

    def corrupt(self) -> None:
        """Make every count wrong."""
        for number in self.index.numbers():
            self.index._live[number].tally.add(1, 1)


def test_audits_are_seconds_apart() -> None:
    """However often the loop has nothing to do, a second look waits until it is due."""
    patient = Patient(1)
    seen = []
    for now in (0.0, 0.1, checkups.EVERY_S - 0.1, checkups.EVERY_S, checkups.EVERY_S + 0.1):
        patient.corrupt()
        patient.checkup.look(now)
        seen.append(differences(patient.meters))

    assert [1, 1, 1, 2, 2] == seen


def test_one_matcher_is_audited_at_a_time_and_all_have_their_turn() -> None:
    """Lots are drawn: after one look one count is right, after many all are."""
    patient = Patient(8)
    patient.corrupt()
    patient.checkup.look(0.0)
    assert 7 == len(list(patient.index.audit()))

    for turn in range(1, 100):
        patient.checkup.look(turn * checkups.EVERY_S)

    assert [] == list(patient.index.audit())
    assert 8 == differences(patient.meters)


def test_without_matchers_there_is_nothing_to_do() -> None:
    """A cluster whose pods ask for no company is never audited, and the first matcher need not wait."""
    patient = Patient(0)
    patient.checkup.look(0.0)
    patient.index.acquire(matchers.Matcher((scopes.Scope(equals("app", "0"), ("default",)),)))
    patient.corrupt()
    patient.checkup.look(0.1)

    assert 1 == differences(patient.meters)


@pytest.mark.parametrize(
    ("matcher", "words"),
    [
        (matchers.Matcher(()), "no pods"),
        (
            matchers.Matcher((scopes.Scope(equals("app", "web"), ("a", "b")),), matchers.Rule.SPREAD),
            "pods app=web in namespaces a and b, terminating ones left out",
        ),
        (
            matchers.Matcher(
                (
                    scopes.Scope(labels.Selector(), ("a",), equals("team", "x")),
                    scopes.Scope(equals("app", "web"), (), labels.Selector()),
                )
            ),
            "pods with any labels in namespaces a or namespaces labelled team=x and app=web in any namespace",
        ),
        (matchers.Matcher((scopes.Scope(equals("app", "web")),)), "pods app=web in no namespace"),
    ],
)
def test_a_matcher_is_told_in_words(matcher: matchers.Matcher, words: str) -> None:
    """An operator reads selectors as kubectl writes them, never a number of ours."""
    assert words == checkups.in_words(matcher)
