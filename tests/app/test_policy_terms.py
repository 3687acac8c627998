"""Two replicas and GraphPolicies: who takes over goes by the rules and statuses there are, not by what it remembers."""

import pytest

from graphsched.app import operator, policing
from graphsched.base.kube import policies as kube_policies
from tests import builders
from tests.app import live
from tests.app.test_two_replicas import LEASE, Door, election
from tests.fakes import apiserver, storage, virtual

POLICIES = kube_policies.PATH
BROKEN: storage.Object = {"name": "typo", "action": "deny", "match": {"when": {"node": "nod.x"}}}
STOP: storage.Object = {"name": "all", "action": "deny"}


def policy(name: str, *rules: storage.Object, generation: int = 1) -> storage.Object:
    """A GraphPolicy."""
    return {"metadata": {"name": name, "generation": generation}, "spec": {"rules": list(rules)}}


def ready(server: apiserver.FakeApiServer, name: str) -> tuple[str, str, int]:
    """Status, reason and generation of the condition `Ready`."""
    found = server.storage.get(storage.Key(POLICIES, "", name)).get("status", {}).get("conditions", [])
    (condition,) = [each for each in found if each["type"] == "Ready"] or [{}]
    return condition.get("status", ""), condition.get("reason", ""), condition.get("observedGeneration", 0)


@pytest.fixture
def no_kopf(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lives in a thread and in real time; what it would have told is what the replicas do not know here."""
    monkeypatch.setattr(operator.Operator, "start", lambda _: None)


@pytest.mark.usefixtures("no_kopf")
@virtual.timed
async def test_a_new_leader_goes_by_what_was_written_while_nobody_led() -> None:
    """A rule that came holds for its first decision; statuses are those of the newest states, and soon."""
    async with apiserver.FakeApiServer() as first, Door(first) as second:
        for server in (first, second):
            server.install(POLICIES)
        first.create(POLICIES, policy("old", BROKEN))
        async with (
            live.scheduler(builders.make_node("n1").cpu("4"), server=first, leader_election=election("one")) as one,
            live.scheduler(server=second, leader_election=election("two")) as two,
        ):
            await one.until(lambda: ready(first, "old") == ("False", "RulesBroken", 1))
            assert [] == second.asked("PATCH", ".*/status")
            await first.stop()
            mended = policy("old", {**BROKEN, "match": {"namespaces": ["nowhere"]}}, generation=2)
            key = storage.Key(POLICIES, "", "old")
            first.storage.patch(key, {"metadata": {"generation": 2}, "spec": mended["spec"]}, strategic=False)
            first.create(POLICIES, policy("new", STOP))
            two.pod(builders.make_pod("web").cpu("1"))
            began = virtual.now()
            await two.until(lambda: two.message("web") != "")
            await two.until(lambda: ready(second, "old")[0] == "True" and ready(second, "new")[0] == "True")

            assert "0/1 nodes are available: 1 node(s) were denied by policy new rule all." == two.message("web")
            assert 0 == two.bindings()
            assert ("True", "RulesInForce", 2) == ready(second, "old")
            # Long before they would have been listed anyway.
            assert virtual.now() - began <= 4.0 + 1.2 + 3.0
            taken = next(each for each in second.asked("PUT", LEASE) if each.body["spec"]["holderIdentity"] == "two")
            (listed, *_) = [each for each in second.asked("GET", POLICIES) if each.at_s >= taken.at_s]
            assert listed.at_s <= second.asked("PATCH", ".*/status")[0].at_s


@pytest.mark.usefixtures("no_kopf")
@virtual.timed
async def test_nothing_is_decided_or_written_in_a_term_before_its_list() -> None:
    """The rules that a new leader remembers may be old: it waits, and says nothing of them."""
    async with apiserver.FakeApiServer() as first, Door(first) as second:
        for server in (first, second):
            server.install(POLICIES)
        first.create(POLICIES, policy("old", BROKEN))
        async with (
            live.scheduler(builders.make_node("n1").cpu("4"), server=first, leader_election=election("one")),
            live.scheduler(server=second, leader_election=election("two")) as two,
        ):
            assert two.program.policing is not None
            assert two.program.policing.feed.known["old"].body.status is None
            two.server.faults.refuse("GET", POLICIES, 500, reason="InternalError", times=5)
            await first.stop()
            first.create(POLICIES, policy("new", BROKEN))
            two.pod(builders.make_pod("web").cpu("1"))
            await two.bound("web")
            await two.until(lambda: ready(second, "new")[0] == "False")

            fifth = second.asked("GET", POLICIES)[5]
            (bound,) = second.asked("POST", ".*/web/binding")
            assert fifth.at_s < bound.at_s
            assert fifth.at_s < second.asked("PATCH", ".*/status")[0].at_s


@pytest.mark.usefixtures("no_kopf")
@virtual.timed
async def test_a_status_that_nobody_shows_is_not_written_every_second() -> None:
    """It is waited for, and taken for lost after ten seconds; one that says something else is written at once."""
    async with apiserver.FakeApiServer() as server:
        server.install(POLICIES)
        server.create(POLICIES, policy("old", BROKEN))
        async with live.scheduler(builders.make_node("n1").cpu("4"), server=server) as it:
            await it.until(lambda: ready(server, "old") == ("False", "RulesBroken", 1))
            await it.quiet(2.5 * policing.AGAIN_S)

            assert 3 == len(server.asked("PATCH", ".*/status"))
