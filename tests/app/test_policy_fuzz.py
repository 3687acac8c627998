"""GraphPolicies as nobody should write them: none stops scheduling, each shows in its status."""

import asyncio
import json
import pathlib
import typing

import hypothesis
import hypothesis.strategies as some
import jsonschema
import pytest
import yaml

from graphsched.app import standing
from graphsched.base.values import pods
from graphsched.decision import cycle
from graphsched.decision.policy import books
from graphsched.graph import delta, store as stores
from graphsched.sources import inbox as inboxes, policies as feeds
from tests import builders

CRD = pathlib.Path(__file__).parents[2] / "charts/graphsched/crds/graphpolicies.yaml"
SCHEMA = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
GOOD = {"name": "good", "action": "deny", "match": {"pods": {"matchLabels": {"app": "good"}}}}
TENS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


def nested(depth: int) -> typing.Any:
    """A mapping in a mapping, so many times."""
    found: typing.Any = {}
    for _ in range(depth):
        found = {"matchLabels": found}
    return found


def expression(text: str, variable: str = "node") -> dict[str, typing.Any]:
    """A rule with this expression."""
    return {"name": "one", "action": "allow", "match": {"when": {variable: text}}}


def bomb(depth: int) -> str:
    """Lists in lists, each ten times as large as the one inside it."""
    text = "true"
    for number in range(depth):
        text = f"{TENS}.map(v{number}, {text})"
    return f"size({text}) > 0"


EXPRESSIONS = [
    "(" * 2000 + "true" + ")" * 2000,
    "!" * 4095 + "a",
    "a" * 5000,
    "node" + ".x" * 2000,
    "[" * 2000,
    "'" + "x" * 4000,
    "true || " * 500 + "true",
    "9223372036854775807 + 1 > 0",
    "1 / 0 == 1",
    "node.metadata.name.matches('(a+)+$')",
    "node.metadata.name.matches('[')",
    "node.metadata.name + node.metadata.name == 3",
    "\x00",
    "\ud800",
    "'\U0001f480' == node.metadata.name",
    "node",
    "[node].all(x, [node].all(x, x == node))",
    bomb(5),
    bomb(9),
    " ",
    "// nothing",
    "dyn(node)",
    "has(node)",
    "node.metadata.labels[?'x'].orValue(1) == 'a'",
]

HOSTILE: list[typing.Any] = [
    *({"rules": [expression(text)]} for text in EXPRESSIONS),
    *({"rules": [expression(text, "pod")]} for text in EXPRESSIONS[:3]),
    {"rules": [{"name": "one", "action": "deny", "match": {"pods": nested(3000)}}]},
    {"rules": [{"name": "one", "action": "deny", "match": {"pods": {"matchLabels": {"k" * 9999: "v"}}}}]},
    {
        "rules": [
            {"name": "one", "action": "deny", "match": {"pods": {"matchLabels": dict.fromkeys("abc", "v" * 9999)}}}
        ]
    },
    {"rules": [{"name": "one", "action": "deny", "match": {"cidrs": ["::/0"] * 5000}}]},
    {"rules": [{"name": "one", "action": "deny", "match": {"namespaces": ["\n"] * 5000}}]},
    {"rules": [{"name": f"r{number}", "action": "deny"} for number in range(3000)]},
    {"rules": [{"name": "same", "action": "allow"}] * 64},
    {
        "rules": [
            {"name": text, "action": "deny"} for text in ("", " ", "a b", "a: b", "\n", "x" * 10_000, "ä", "\ud800")
        ]
    },
    {"rules": [{"name": "one", "action": "weight", "weight": 10**30}]},
    {"rules": [{"name": "one", "action": "weight", "weight": -101}], "priority": 2**40},
    {"rules": [{"name": "one", "action": "require", "require": {"to": {"node": "n1"}, "maxHops": 2**70}}]},
    {"rules": [{"name": "one", "action": "require", "require": {"to": {"node": "n1"}, "maxLatencyMs": float("nan")}}]},
    {
        "rules": [
            {"name": "one", "action": "require", "require": {"to": {"node": "n1"}, "minBandwidthMbps": float("inf")}}
        ]
    },
    {"rules": [{"name": "one", "action": "require", "require": {"to": {"node": "a\nb" * 999}, "maxHops": 1}}]},
    {
        "rules": [
            {
                "name": "one",
                "action": "require",
                "require": {"to": {"domain": {"label": "=", "value": "/"}}, "maxHops": 1},
            }
        ]
    },
    {"rules": [{"name": "one", "action": "\ud800"}]},
    {"rules": {"0": {}}},
    {"rules": [7]},
    {"rules": "all", "priority": []},
    [],
    "spec",
    7,
    None,
    {},
]


class World:
    """A feed and the graph that takes in what it sends."""

    def __init__(self) -> None:
        self.inbox = inboxes.Inbox()
        self.feed = feeds.Feed(self.inbox)
        self.graph = stores.Store()
        patch = delta.Patch()
        for name in ("n1", "n2"):
            patch.set_vertex(builders.make_node(name).build())
        self.graph.apply(patch)

    def tell(self, *manifests: typing.Any) -> None:
        """What a list shows."""
        asyncio.run(self._tell(manifests))

    async def _tell(self, manifests: tuple[typing.Any, ...]) -> None:
        listing = asyncio.create_task(self.feed.listed(manifests, "1"))
        while not listing.done():
            await asyncio.sleep(0)
            self.absorb()
        await listing
        self.absorb()

    def absorb(self) -> None:
        """Take in what was sent."""
        for patch in self.inbox.drain():
            assert patch.stream is not None
            if patch.stream.sequence == 1:
                self.graph.streams.open(patch.stream.source, patch.stream.epoch)
            assert isinstance(self.graph.apply(patch), delta.Applied)

    def status(self, name: str) -> standing.Status:
        """The status of a policy, which the API server would take."""
        book, known = books.of(self.graph.view()), self.feed.known[name]
        book.refresh(self.graph.view())
        found = standing.status(known, book, standing.by_policy(book).get(name, {}), moment="2026-01-01T00:00:00Z")
        jsonschema.validate(json.loads(json.dumps(found)), SCHEMA)
        assert json.dumps(found).isascii()
        json.dumps(found, ensure_ascii=False).encode()
        assert len({rule["name"] for rule in found["rules"]}) == len(found["rules"])
        assert standing.differs(known.body.status, found)
        assert all(standing.complaints(known.body.status, found))
        return found

    def decided(self, pod: pods.Pod) -> str:
        """Where a pod would go."""
        return cycle.Decider().decide(self.graph.view(), pod).node


def manifest(name: str, spec: typing.Any, **more: typing.Any) -> dict[str, typing.Any]:
    """A GraphPolicy, or what is sent as one."""
    metadata = {"name": name, "uid": name, "resourceVersion": "1", "generation": 1}
    return {"apiVersion": "graphsched.io/v1alpha1", "kind": "GraphPolicy", "metadata": metadata, "spec": spec, **more}


def good(app: str) -> pods.Pod:
    """A pod that the good rule is about, or not."""
    return builders.make_pod("web").label("app", app).build()


@pytest.mark.parametrize("spec", HOSTILE, ids=range(len(HOSTILE)))
def test_no_policy_stops_scheduling_and_each_shows_in_its_status(spec: typing.Any) -> None:
    """What is wrong with it is in its conditions or those of its rules; a good one beside it is in force."""
    it = World()
    it.tell(manifest("hostile", spec), manifest("fine", {"rules": [GOOD]}))
    it.decided(good("other"))
    found = it.status("hostile")

    assert "" == it.decided(good("good"))
    assert "True" == next(each["status"] for each in it.status("fine")["conditions"] if each["type"] == "Ready")
    (ready,) = [each for each in found["conditions"] if each["type"] == "Ready"]
    states = {rule["state"] for rule in found["rules"]}
    assert (ready["status"], ready["reason"]) in {
        ("False", "Unreadable"): {("False", "Unreadable")},
    }.get((ready["status"], ready["reason"]), set()) or (
        (ready["status"] == "False") == (standing.BROKEN in states)
        and (ready["reason"] == "RulesFailing") == (standing.FAILING in states and standing.BROKEN not in states)
    )


anything = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**70), 2**70) | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    ("spec",),
    ("spec", "priority"),
    ("spec", "rules"),
    *(
        ("spec", "rules", 0, *rest)
        for rest in (
            ("name",),
            ("priority",),
            ("action",),
            ("weight",),
            ("match",),
            ("match", "pods"),
            ("match", "pods", "matchLabels"),
            ("match", "nodes"),
            ("match", "cidrs"),
            ("match", "when"),
            ("match", "when", "node"),
            ("require",),
            ("require", "to"),
            ("require", "to", "node"),
            ("require", "maxHops"),
            ("require", "maxLatencyMs"),
            ("require", "sameDomain"),
        )
    ),
    ("metadata", "generation"),
    ("metadata", "labels"),
    ("status",),
    ("status", "conditions"),
    ("status", "rules"),
]


def whole() -> dict[str, typing.Any]:
    """A policy with every part."""
    rule = {
        "name": "one",
        "priority": 1,
        "action": "require",
        "match": {"pods": {"matchLabels": {"a": "b"}}, "nodes": {}, "cidrs": ["10.0.0.0/8"], "when": {"node": "true"}},
        "require": {"to": {"node": "n1"}, "maxHops": 1, "maxLatencyMs": 1.0, "sameDomain": "zone"},
    }
    status = {"observedGeneration": 1, "conditions": [{"type": "Ready"}], "rules": [{"name": "one"}]}
    return manifest("hostile", {"priority": 1, "rules": [rule]}, status=status)


@hypothesis.given(some.lists(some.tuples(some.sampled_from(FIELDS), anything), min_size=1, max_size=3))
@hypothesis.settings(max_examples=150, deadline=None)
def test_whatever_stands_in_a_field_no_policy_stops_scheduling(
    changes: list[tuple[tuple[str | int, ...], typing.Any]],
) -> None:
    """Any value in any field: a status that the API server takes comes out, and a good policy beside it holds."""
    body = whole()
    for path, value in changes:
        place: typing.Any = body
        for step in path[:-1]:
            if not isinstance(place, dict | list) or (isinstance(place, list) and not place):
                break
            place = (
                place[step]
                if isinstance(place, list) and isinstance(step, int)
                else place.get(step)
                if isinstance(place, dict)
                else None
            )
        if isinstance(place, dict):
            place[path[-1]] = value
    it = World()
    it.tell(body, manifest("fine", {"rules": [GOOD]}))
    it.decided(good("other"))

    if "hostile" in it.feed.known:
        book = books.of(it.graph.view())
        held = standing.by_policy(book).get("hostile", {})
        found = standing.status(it.feed.known["hostile"], book, held, moment="2026-01-01T00:00:00Z")
        standing.differs(it.feed.known["hostile"].body.status, found)
        standing.complaints(it.feed.known["hostile"].body.status, found)
        jsonschema.validate(found, SCHEMA)
    assert "" == it.decided(good("good"))


def test_hundreds_of_policies_with_all_their_rules_are_in_force() -> None:
    """Thousands of rules; each policy has its status, and pods are decided on."""
    it = World()
    rules = [{**expression("node.metadata.name == 'n1'"), "name": f"r{number}"} for number in range(64)]
    it.tell(*(manifest(f"p{number}", {"rules": rules}) for number in range(50)), manifest("fine", {"rules": [GOOD]}))
    book = books.of(it.graph.view())
    book.refresh(it.graph.view())

    assert 64 * 50 + 1 == len(book.columns)
    assert "n1" == it.decided(good("other"))
    assert "" == it.decided(good("good"))
    assert {"rules": 64, "broken": 0} == it.status("p49")["counts"]


@pytest.mark.parametrize("name", ["", " ", "A", "a/b", "a\nb", "x" * 300, "\ud800", 7, None, {}])
def test_what_has_no_name_is_left_out_and_nothing_else_is(name: typing.Any) -> None:
    """No API server has such an object, and no status could be written to it."""
    it = World()
    hostile = manifest("x", {"rules": [{"name": "all", "action": "deny"}]})
    hostile["metadata"]["name"] = name
    it.tell(hostile, hostile, 7, [], None, manifest("fine", {"rules": [GOOD]}))

    assert {"fine"} == set(it.feed.known)
    assert "n1" == it.decided(good("other"))
