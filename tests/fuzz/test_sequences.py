"""The engine that lived through it all says what a fresh one and kube-scheduler's own plugins say about where it is.

Event sequences come from a fixed seed. Also: the comparison sees an engine that has missed something.
"""

import typing
from collections.abc import Iterator

import msgspec
import pytest

from graphsched.app import promises
from graphsched.base.values import keys, nodes
from graphsched.graph import matchers, selections, store as stores
from tests.controlplane import binaries
from tests.fuzz import coverage, living, scenarios, sequences
from tests.oracle import program

SEED = 20261
SEQUENCES = 200
PART = 50


@pytest.fixture(scope="module")
def oracle() -> Iterator[program.Oracle]:
    """The oracle, built where it is missing."""
    with program.Oracle(binaries.ensure_oracle()) as running:
        yield running


def shown(lived: living.Lived) -> str:
    """What to look at, and what to replay."""
    lines = [str(difference) for difference in lived.differences]
    return "\n".join([*lines, msgspec.json.encode(lived.request).decode()])


@pytest.mark.cluster
@pytest.mark.parametrize("first", range(0, SEQUENCES, PART))
def test_an_engine_that_lived_through_it_says_what_a_fresh_one_and_the_oracle_say(
    oracle: program.Oracle, first: int
) -> None:
    """Also its decisions are its evaluations, and everything derived is what a store built afresh would hold."""
    for number in range(first, first + PART):
        lived = living.compare(oracle, sequences.sequence(SEED, number))
        assert not lived.invalid, lived.invalid
        assert not lived.differences, shown(lived)


@pytest.mark.cluster
def test_the_sequences_meet_every_reason_and_score_of_pods_among_pods(oracle: program.Oracle) -> None:
    """What pods have to do with each other is what events change most, so none of it may never come up."""
    met = coverage.Coverage(scenarios.ALL_EXTRAS)
    checks = 0
    for number in range(SEQUENCES):
        lived = living.compare(oracle, sequences.sequence(SEED, number))
        checks += len(lived.theirs)
        for theirs in lived.theirs:
            met.add(theirs)

    assert checks >= 2 * SEQUENCES
    assert [] == [row for row in met.zeros() if "PodTopologySpread" in row or "InterPodAffinity" in row]


def _deaf_to_labels(patch: pytest.MonkeyPatch) -> None:
    def alike(before: stores.Placement, after: stores.Placement) -> bool:
        return before.node == after.node and before.pod.held == after.pod.held and before.pod.spec == after.pod.spec

    patch.setattr(stores, "_counts_alike", alike)


def _deaf_to_namespaces(patch: pytest.MonkeyPatch) -> None:
    kept = matchers.MatcherIndex.set_namespace

    def first_only(index: matchers.MatcherIndex, name: str, labels: typing.Any) -> None:
        known: set[str] = index.__dict__.setdefault("known_once", set())
        if name not in known:
            known.add(name)
            kept(index, name, labels)

    patch.setattr(matchers.MatcherIndex, "set_namespace", first_only)


def _deaf_to_services(patch: pytest.MonkeyPatch) -> None:
    kept = selections.Selections.set

    def first_only(index: selections.Selections, key: keys.VertexKey, value: typing.Any) -> None:
        known: set[str] = index.__dict__.setdefault("known_once", set())
        if key not in known:
            known.add(key)
            kept(index, key, value)

    patch.setattr(selections.Selections, "set", first_only)


def _forgetting_promises(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promises.Promises, "keep", lambda _promises, _gone: None)


def _trusting_its_cache(patch: pytest.MonkeyPatch) -> None:
    kept = stores.Store._write_node

    def unsaid(store: stores.Store, before: nodes.Node | None, after: nodes.Node | None) -> None:
        row = -1 if before is None or after is None else store.columns.rows[after.name]
        marks = (int(store.columns.changed[row]), int(store.columns.reshaped[row]))
        kept(store, before, after)
        if row >= 0:
            store.columns.changed[row], store.columns.reshaped[row] = marks

    patch.setattr(stores.Store, "_write_node", unsaid)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "broken",
    [_deaf_to_labels, _deaf_to_namespaces, _deaf_to_services, _forgetting_promises, _trusting_its_cache],
)
def test_an_engine_that_misses_something_is_found_out(
    oracle: program.Oracle,
    monkeypatch: pytest.MonkeyPatch,
    broken: typing.Callable[[pytest.MonkeyPatch], None],
) -> None:
    """Within the sequences of every run: labels, selectors, promises on a node that went, a changed node."""
    broken(monkeypatch)

    assert any(living.compare(oracle, sequences.sequence(SEED, number)).differences for number in range(SEQUENCES))


def test_a_series_of_sequences_is_the_same_every_time() -> None:
    """A seed and a number name a sequence, wherever it is made."""
    assert sequences.sequence(3, 14) == sequences.sequence(3, 14)
    assert sequences.sequence(3, 14) != sequences.sequence(3, 15)


def test_a_sequence_holds_every_kind_of_event() -> None:
    """Of a few dozen, and each ends with a look."""
    made = [sequences.sequence(2, number) for number in range(40)]
    kinds = {event["do"] for sequence in made for event in sequence["events"]}
    paths = {tuple(event["path"]) for sequence in made for event in sequence["events"] if event["do"] == "change"}

    assert {"set", "change", "delete", "decide", "confirm", "forget", "check"} == kinds
    assert all(sequence["events"][-1] == {"do": "check"} for sequence in made)
    assert {("metadata", "labels"), ("spec", "unschedulable"), ("spec", "taints"), ("status", "allocatable")} <= paths
