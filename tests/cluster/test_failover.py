"""Two `graphsched run` on a real API server: the leader dies, stands still, or is cut off, and the standby goes on.

Simulated: nothing. Looked at: the API server's own audit log, which tells who bound what and when it heard of it. Each
replica is a user of its own there.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
import pathlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import relay, scheduling
from tests.controlplane import api, binaries, cluster as clusters, objects

pytestmark = pytest.mark.cluster

LEASE_S, RENEW_S, RETRY_S = 4, 3, 1
TAKEN_S_MAX = 6.0
"""The standby binds so soon after the lease has run out."""
PODS = 80
"""Before the blow, and as many after it."""
FEW = 5
NODES = 10

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch]
    resources:
      - {group: "", resources: [pods/binding, pods/status]}
      - {group: events.k8s.io, resources: [events]}
      - {group: coordination.k8s.io, resources: [leases]}
  - level: None
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """One call as the API server saw it."""

    who: str
    what: str
    name: str
    status: int
    heard: dt.datetime


class World:
    """The control plane and its audit log."""

    def __init__(self, cluster: clusters.Cluster, log: pathlib.Path) -> None:
        self.cluster = cluster
        self._log = log

    def writes(self, what: str = "") -> list[Write]:
        """All calls so far, or those of one resource, in the order in which they ended."""
        found = []
        for line in self._log.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            target = entry["objectRef"]
            resource = "/".join(filter(None, (target["resource"], target.get("subresource", ""))))
            heard = dt.datetime.fromisoformat(entry["requestReceivedTimestamp"])
            code = entry["responseStatus"].get("code", 0)
            found.append(Write(entry["user"]["username"], resource, target.get("name", ""), code, heard))
        return [write for write in found if what in {"", write.what}]

    def lease(self, name: str) -> dict[str, Any]:
        """The spec of a lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"
        found: dict[str, Any] = self.cluster.call("GET", path)["spec"]
        return found


@pytest.fixture(scope="module")
def world(programs: binaries.Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One control plane for all stories: each has a scheduler's name, and with it a lease and pods, of its own."""
    folder = tmp_path_factory.mktemp("audit")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(POLICY, encoding="utf-8")
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    with clusters.Cluster(clusters.Options(apiserver_flags=flags), programs=programs, logs=folder / "logs") as cluster:
        for number in range(NODES):
            cluster.call("POST", scheduling.NODES, objects.node(f"n{number}", cpu="64", pods="200"))
        yield World(cluster, log)


class Story:
    """Two replicas of a scheduler of this name: `one`, which leads first, and `two`."""

    def __init__(self, world: World, name: str, one: scheduling.Scheduler, two: scheduling.Scheduler) -> None:
        self.world, self.name, self.one, self.two = world, name, one, two
        self._made = 0
        self.events_before = len(world.writes("events"))

    def user(self, replica: str) -> str:
        """Who a replica is to the API server."""
        return f"{self.name}-{replica}"

    def create(self, count: int) -> list[str]:
        """Create pods; returns their names. Some are being bound by then, and others wait."""
        names = [f"{self.name}-{number}" for number in range(self._made, self._made + count)]
        self._made += count
        asyncio.run(self._create(names))
        return names

    async def _create(self, names: list[str]) -> None:
        async with api.Api(self.world.cluster) as client:
            await client.create_many(
                scheduling.PODS, [objects.pod(name, scheduler=self.name, cpu="10m") for name in names]
            )

    def wait_bound(self, names: list[str]) -> None:
        """Wait until all of these are bound."""
        scheduling.wait(
            "all are bound",
            lambda: all(scheduling.places(self.world.cluster)[name] for name in names),
            watched=(self.two.process,),
        )

    def stances(self) -> list[str]:
        """What each replica says of itself."""
        return [stance(each) for each in (self.one, self.two)]

    def require_taken_in_time(self, renewed: dt.datetime) -> dt.datetime:
        """The standby bound soon after the lease had run out, and not before; returns when it took the lease."""
        expiry = renewed + dt.timedelta(seconds=LEASE_S)
        acquired = dt.datetime.fromisoformat(self.world.lease(self.name)["acquireTime"])
        first = min(write.heard for write in self.world.writes("pods/binding") if write.who == self.user("two"))
        assert expiry <= acquired <= first
        assert (first - expiry).total_seconds() <= TAKEN_S_MAX
        return acquired

    def require_each_once(self, names: list[str]) -> None:
        """Every pod was bound by exactly one call; the log can not tell the end of calls of the killed (504)."""
        writes = self.world.writes("pods/binding")
        bound = Counter(write.name for write in writes if write.status == 201)
        cut_off = {write.name for write in writes if write.status == 504}
        places = scheduling.places(self.world.cluster)
        assert dict.fromkeys(names, 1) == {
            name: 1 if name in cut_off and not bound[name] and places[name] else bound[name] for name in names
        }

    def writes_of_one_after(self, moment: dt.datetime, *resources: str) -> list[Write]:
        """What `one` wrote, or tried to, after this moment."""
        return [
            write
            for write in self.world.writes()
            if write.who == self.user("one") and write.heard > moment and write.what in resources
        ]


def stance(replica: scheduling.Scheduler) -> str:
    """Leader or standby, as its health page has it."""
    for line in replica.read("/healthz?verbose").splitlines():
        if line.startswith("[+]leader-election ok: "):
            return line.partition("ok: ")[2]
    return ""


@contextlib.contextmanager
def story(world: World, folder: pathlib.Path, name: str, *, through: int = 0) -> Iterator[Story]:
    """Two replicas at work, `one` of them the leader and, where a port is given, connected through it."""
    with contextlib.ExitStack() as stack:
        replicas = []
        for replica in ("one", "two"):
            access = world.cluster.kubeconfig_for(f"{name}-{replica}", groups=("system:masters",))
            if through and replica == "one":
                document = json.loads(access.read_text())
                document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{through}"
                access.write_text(json.dumps(document))
            times = {"leaseSeconds": LEASE_S, "renewSeconds": RENEW_S, "retrySeconds": RETRY_S}
            config = json.dumps({"schedulerName": name, "leaderElection": {**times, "identity": replica}})
            running = stack.enter_context(
                scheduling.scheduler(world.cluster, folder / replica, kubeconfig=access, config=config, elect=True)
            )
            replicas.append(running)
            if replica == "one":
                scheduling.wait("one leads", lambda: stance(replicas[0]) == "leader, one")
        told = Story(world, name, *replicas)
        scheduling.wait("two stands by", lambda: told.stances() == ["leader, one", "standby of one"])
        yield told


def test_a_leader_that_is_killed_is_replaced(world: World, tmp_path: pathlib.Path) -> None:
    """By -9, with bindings under way: the standby binds the rest, each pod once, as soon as the lease has run out."""
    with story(world, tmp_path, "killed") as it:
        names = it.create(PODS)
        it.one.process.kill()
        renewed = dt.datetime.fromisoformat(world.lease(it.name)["renewTime"])
        names += it.create(PODS)
        it.wait_bound(names)

        it.require_taken_in_time(renewed)
        it.require_each_once(names)
        assert 1 == world.lease(it.name)["leaseTransitions"]


def test_a_leader_that_stood_still_past_its_lease_writes_nothing_any_more(world: World, tmp_path: pathlib.Path) -> None:
    """Stopped by a signal and continued after its time: no binding, no condition, no event of it comes after that."""
    with story(world, tmp_path, "stopped") as it:
        names = it.create(PODS)
        it.wait_bound(names)
        # The last look before a write and the write itself are not one: nothing of the kind is under way here.
        scheduling.wait("all events are written", lambda: len(world.writes("events")) >= it.events_before + PODS)
        it.one.process.pause()
        renewed = dt.datetime.fromisoformat(world.lease(it.name)["renewTime"])
        # Both see these, and the first would have decided them long before the other has the lease.
        names += it.create(PODS)
        scheduling.wait("two leads", lambda: stance(it.two) == "leader, two")
        it.one.process.resume()
        it.wait_bound(names)
        scheduling.wait("one stands by", lambda: it.stances() == ["standby of two", "leader, two"])
        late = it.create(FEW)
        it.wait_bound(late)

        it.require_taken_in_time(renewed)
        assert [] == it.writes_of_one_after(renewed, "pods/binding", "pods/status", "events")
        it.require_each_once(names + late)
        assert "standing by" in it.one.process.log.read_text()


def test_a_leader_that_is_cut_off_stops_by_itself_and_stands_by_when_it_is_back(
    world: World, tmp_path: pathlib.Path
) -> None:
    """It can not be told: its term ends by its own clock. What was on its way all the time harms nobody."""
    port = int(world.cluster.server.rpartition(":")[2])
    with relay.Relay(port) as wire, story(world, tmp_path, "cut", through=wire.port) as it:
        names = it.create(PODS)
        wire.cut()
        names += it.create(PODS)
        scheduling.wait("one does not lead", lambda: stance(it.one) == "standby, nobody leads")
        renewed = dt.datetime.fromisoformat(world.lease(it.name)["renewTime"])
        it.wait_bound(names)
        assert ["standby, nobody leads", "leader, two"] == it.stances()
        acquired = it.require_taken_in_time(renewed)

        wire.mend()
        scheduling.wait("one stands by", lambda: it.stances() == ["standby of two", "leader, two"])
        late = it.create(FEW)
        it.wait_bound(late)
        it.require_each_once(names + late)
        assert not [write for write in it.writes_of_one_after(acquired, "pods/binding") if write.status == 201]
        assert 0 == it.one.metric('scheduler_cache_size{type="assumed_pods"}')
