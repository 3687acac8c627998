"""What a watch and lists tell of GraphPolicies, in any order, ends in the rules there are."""

import typing

import pytest

from graphsched.base.values import keys
from graphsched.graph import delta, store
from graphsched.sources import inbox as inboxes, policies

pytestmark = pytest.mark.asyncio


def manifest(name: str, version: int, *rules: str, uid: str = "u") -> dict[str, typing.Any]:
    """A policy that denies, with rules of these names."""
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"rules": [{"name": each, "action": "deny"} for each in rules]}}


class World:
    """A feed and the graph that takes in what it sends."""

    def __init__(self) -> None:
        self.inbox = inboxes.Inbox()
        self.feed = policies.Feed(self.inbox)
        self.graph = store.Store()
        self.patches = 0

    def rules(self) -> list[str]:
        """`policy/rule` of every rule in the graph, after all that was sent."""
        for patch in self.inbox.drain():
            self.patches += 1
            assert patch.stream is not None
            if patch.stream.sequence == 1:
                self.graph.streams.open(patch.stream.source, patch.stream.epoch)
            assert isinstance(self.graph.apply(patch), delta.Applied)
        return [f"{rule.policy}/{rule.name}" for rule in self.graph.rules.all()]


async def test_events_change_the_rules_and_only_what_differs_is_sent() -> None:
    """Added, changed, deleted; a state that brings nothing new sends nothing."""
    world = World()
    await world.feed.told("ADDED", manifest("a", 1, "x", "y"))
    assert ["a/x", "a/y"] == world.rules()
    await world.feed.told("MODIFIED", manifest("a", 2, "x", "y"))
    assert 1 == world.patches
    await world.feed.told("MODIFIED", manifest("a", 3, "x"))
    assert ["a/x"] == world.rules()
    await world.feed.told("DELETED", manifest("a", 4, "x"))

    assert [] == world.rules()
    assert {} == world.feed.known


async def test_a_list_removes_what_went_unseen_and_brings_what_came() -> None:
    """Deleted and made while nobody watched."""
    world = World()
    await world.feed.told("ADDED", manifest("a", 1, "x"))
    await world.feed.listed([manifest("b", 5, "z")], "6")

    assert ["b/z"] == world.rules()


async def test_no_older_state_replaces_a_newer_one() -> None:
    """A list from before an event neither undoes a change, nor removes what is new, nor brings back what is gone."""
    world = World()
    await world.feed.told("ADDED", manifest("changed", 9, "new"))
    await world.feed.told("ADDED", manifest("fresh", 10, "new"))
    await world.feed.told("ADDED", manifest("gone", 3, "old"))
    await world.feed.told("DELETED", manifest("gone", 11, "old"))
    await world.feed.listed([manifest("changed", 4, "old"), manifest("gone", 3, "old")], "8")
    await world.feed.told("MODIFIED", manifest("changed", 5, "old"))

    assert ["changed/new", "fresh/new"] == world.rules()


async def test_a_deletion_of_an_earlier_object_does_not_remove_its_successor() -> None:
    """Of the same name and another uid."""
    world = World()
    await world.feed.told("ADDED", manifest("a", 5, "x", uid="second"))
    await world.feed.told("DELETED", manifest("a", 4, "x", uid="first"))

    assert ["a/x"] == world.rules()


async def test_what_can_not_be_read_keeps_its_rules() -> None:
    """And is still counted as there when a list shows it."""
    world = World()
    await world.feed.told("ADDED", manifest("a", 1, "x"))
    broken = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "2"}, "spec": {"rules": "none"}}
    await world.feed.told("MODIFIED", broken)
    await world.feed.listed([broken], "3")

    assert ["a/x"] == world.rules()


async def test_after_a_gap_everything_is_sent_again_in_a_new_epoch() -> None:
    """Also removals of what went meanwhile."""
    world = World()
    await world.feed.told("ADDED", manifest("a", 1, "x"))
    await world.feed.told("ADDED", manifest("b", 2, "y"))
    world.inbox.drain()
    world.graph.apply(delta.Patch(removed={keys.rule_key("a", 0)}))
    world.feed.resync("gap", epoch=1)
    world.feed.resync("gap", epoch=1)
    await world.feed.listed([manifest("a", 1, "x")], "3")

    assert ["a/x"] == world.rules()
    assert {} == {name: None for name in world.feed.known if name != "a"}


async def test_without_a_definition_there_are_no_rules() -> None:
    """All are taken away."""
    world = World()
    await world.feed.told(None, manifest("a", 1, "x"))
    await world.feed.empty()

    assert [] == world.rules()
