"""
A follower in another process and the feed of a running scheduler: whatever happens to the graph, the copy is the graph.

Server, connection and follower are real; the graph's history is random and small enough that things meet in it.
"""

from __future__ import annotations

import asyncio
import pathlib
import random
from collections.abc import Awaitable, Callable, Sequence

import aiohttp
import pytest

from graphsched.app import asking, feeding, following, snapshot
from graphsched.base.values import errors, keys, labels, nodes, places, pods, relations
from graphsched.explain import affinities
from graphsched.graph import codec, delta, edges, followers, patchlog, store as stores
from graphsched.observe import feeds, health, metrics, server
from graphsched.sources import captures
from tests.fakes import still

NODES = [f"n{number}" for number in range(6)]
EPOCH = 4711


def change(rng: random.Random, store: stores.Store) -> delta.Patch:
    """Something that happens to a small cluster: nodes, pods, switches and links come, change and go."""
    patch = delta.Patch()
    for _ in range(rng.randint(1, 4)):
        name, key = rng.choice(NODES), keys.pod_key("default", f"p{rng.randrange(8)}")
        match rng.randrange(6):
            case 0:
                zone = (("topology.kubernetes.io/zone", rng.choice("ab")),)
                patch.set_vertex(nodes.Node(name, labels=zone, allocatable=(("cpu", rng.randrange(9) * 1000),)))
            case 1:
                patch.remove(keys.node_key(name))
            case 2 | 3:
                owned: labels.Labels = (("app", rng.choice("xyz")),)
                patch.set_vertex(pods.Pod(key, str(rng.randrange(3)), labels=owned, node=rng.choice(["", *NODES])))
            case 4:
                place = places.Place(f"slurm/s{rng.randrange(2)}", tier=1)
                patch.set_vertex(place)
                edge = keys.EdgeID(place.key, keys.node_key(name), keys.EdgeKind.LINK)
                patch.set_edge(edge, relations.Link(rng.random(), None, 1.0, 5.0, "networklink/x"))
            case _:
                patch.remove(key)
    assert not isinstance(store.apply(patch), delta.Refused)
    return patch


class Behind:
    """What stands behind the address just now."""

    def __init__(self, now: feeds.Feed) -> None:
        self.now = now
        self.asked: asyncio.Queue[int] = asyncio.Queue()

    async def whole(self) -> feeds.Graph:
        """As it says."""
        return await self.now.whole()

    async def since(self, generation: int, epoch: int, *, wait_s: float, stopping: asyncio.Event) -> feeds.Graph | str:
        """As it says, and that it was asked is noted."""
        self.asked.put_nowait(generation)
        return await self.now.since(generation, epoch, wait_s=wait_s, stopping=stopping)


class Served:
    """A store, and a server that hands it out."""

    def __init__(self) -> None:
        self.store = stores.Store()
        self.meters = metrics.Metrics(profile="graph-scheduler", version="0")
        self.feed = Behind(feeding.Feed(self.store, epoch=EPOCH))

    def told(self, answer: str) -> int:
        """How often followers got this answer."""
        value = self.meters.registry.get_sample_value("graphsched_feed_answers_total", {"answer": answer})
        return int(value or 0)

    def counted(self, metric: str, **labels: str) -> float:
        """The value of a series."""
        return self.meters.registry.get_sample_value(f"graphsched_feed_{metric}_total", labels) or 0.0

    def run(self, use: Callable[[str], Awaitable[None]]) -> None:
        """Let `use` talk to the server at the address it is given."""
        asyncio.run(self._run(use))

    async def _run(self, use: Callable[[str], Awaitable[None]]) -> None:
        serving = server.Server(
            server.Sights(
                metrics=self.meters,
                health=health.Health([]),
                decisions=lambda _limit, _pod: [],
                conflicts=lambda _limit: [],
                explain=_nothing,
                graph=still.StillFeed().whole,
                feed=self.feed,
                affinity=feeding.AffinityFeed(self.store, epoch=EPOCH),
                queue=dict,
                config={},
            ),
            server.Door(),
        )
        self.stop = serving.stop
        await serving.start(host="127.0.0.1", port=0)
        try:
            await use(f"http://127.0.0.1:{serving.port}")
        finally:
            await serving.stop()


async def _nothing(_pod: str) -> object | None:
    return None


def follower_of(
    url: str, *, wait_s: int = 0, limits: codec.Limits = codec.DEFAULT_LIMITS
) -> following.Following[followers.Follower]:
    """A follower that asks there."""
    return following.Following(asking.Server(url=url), followers.Follower(limits=limits), wait_s=wait_s)


@pytest.mark.parametrize("seed", range(3))
def test_the_copy_is_the_graph_after_any_history_with_a_gap_in_it(seed: int) -> None:
    """Changes between questions are many, few or none; once they are more than the log holds."""
    served, rng = Served(), random.Random(seed)
    for _ in range(10):
        change(rng, served.store)

    async def use(url: str) -> None:
        follows = follower_of(url)
        assert await asyncio.to_thread(follows.step) is following.Step.BEGUN
        steps = []
        for number in range(25):
            missed = 0 if number == 5 else rng.randint(1, 4)
            if number == 12:
                served.store.log = patchlog.PatchLog(served.store.generation, patches_max=4)
                missed = 9
            for _ in range(missed):
                change(rng, served.store)
            steps.append(await asyncio.to_thread(follows.step))
            if steps[-1] is following.Step.LOST:
                steps.append(await asyncio.to_thread(follows.step))

            assert follows.copy.generation == served.store.generation
            assert follows.copy.store.content() == served.store.content()
        assert follows.copy.store.audit() == []
        assert steps[5] is following.Step.UNCHANGED
        assert (steps.count(following.Step.LOST), steps.count(following.Step.BEGUN)) == (1, 1)
        assert (follows.copy.resyncs, follows.copy.repeated) == (1, 0)
        assert not any(follows.copy.refused.values())

    served.run(use)
    assert (served.told("whole"), served.told("gap"), served.told("unchanged")) == (2, 1, 1)


def test_a_question_waits_for_news() -> None:
    """The answer comes when something happens, not when the time is over."""
    served = Served()

    async def use(url: str) -> None:
        follows = follower_of(url, wait_s=30)
        await asyncio.to_thread(follows.step)
        asked = asyncio.create_task(asyncio.to_thread(follows.step))
        await served.feed.asked.get()
        served.store.apply(delta.Patch().set_vertex(nodes.Node("n1")))

        assert await asked is following.Step.CHANGED
        assert follows.copy.store.node("n1") is not None

    served.run(use)


def test_a_scheduler_that_was_restarted_is_followed_from_the_start() -> None:
    """Its generations are small again and mean something else."""
    served = Served()
    served.store.apply(delta.Patch().set_vertex(nodes.Node("old")))

    async def use(url: str) -> None:
        follows = follower_of(url)
        await asyncio.to_thread(follows.step)
        served.store = stores.Store()
        served.store.apply(delta.Patch().set_vertex(nodes.Node("new")))
        served.feed.now = feeding.Feed(served.store, epoch=EPOCH + 1)

        assert await asyncio.to_thread(follows.step) is following.Step.LOST
        assert await asyncio.to_thread(follows.step) is following.Step.BEGUN
        assert follows.copy.store.content() == served.store.content()

    served.run(use)
    assert served.told("epoch") == 1


def test_an_answer_that_is_too_long_is_refused_and_counted() -> None:
    """Not read to its end, and the copy is what it was."""
    served = Served()
    for name in NODES:
        served.store.apply(delta.Patch().set_vertex(nodes.Node(name)))

    async def use(url: str) -> None:
        follows = follower_of(url, limits=codec.Limits(bytes_max=64))

        assert await asyncio.to_thread(follows.step) is following.Step.REFUSED
        assert follows.copy.refused[followers.Refusal.OVERSIZED] == 1
        assert follows.copy.store.content() == ({}, {})

    served.run(use)


class Damaged(still.StillFeed):
    """A graph that is cut off on its way, some times."""

    def __init__(self, good: feeds.Feed, *, times: int) -> None:
        self._good = good
        self._left = times

    async def whole(self) -> feeds.Graph:
        """The graph, or the beginning of it."""
        return self._cut(await self._good.whole())

    async def since(self, generation: int, epoch: int, *, wait_s: float, stopping: asyncio.Event) -> feeds.Graph | str:
        """What happened since, or the beginning of it."""
        found = await self._good.since(generation, epoch, wait_s=wait_s, stopping=stopping)
        return found if isinstance(found, str) else self._cut(found)

    def _cut(self, graph: feeds.Graph) -> feeds.Graph:
        self._left -= 1
        return graph if self._left < 0 else feeds.Graph(graph.generation, graph.data[:-1])


def test_the_scheduler_counts_what_its_followers_refuse() -> None:
    """They say so with their next question: of whole graphs, and of what happened since."""
    served = Served()
    served.store.apply(delta.Patch().set_vertex(nodes.Node("n1")))
    good = served.feed.now

    async def use(url: str) -> None:
        follows = follower_of(url)

        async def step() -> following.Step:
            return await asyncio.to_thread(follows.step)

        served.feed.now = Damaged(good, times=2)
        assert [following.Step.REFUSED] * 2 == [await step(), await step()]
        assert following.Step.BEGUN is await step()
        assert 2 == served.counted("refused", reason="truncated")
        assert 1 == served.counted("resyncs", reason="start"), "when nothing had been refused yet"
        assert 2 == served.counted("resyncs", reason="truncated")

        served.store.apply(delta.Patch().set_vertex(nodes.Node("n2")))
        served.feed.now = Damaged(good, times=1)
        assert [following.Step.REFUSED, following.Step.CHANGED] == [await step(), await step()]
        assert 3 == served.counted("refused", reason="truncated")
        assert following.Step.UNCHANGED is await step()
        assert 3 == served.counted("refused", reason="truncated"), "each is said once"
        assert 3 == follows.copy.refused[followers.Refusal.TRUNCATED]

        served.feed.now = feeding.Feed(served.store, epoch=EPOCH + 1)
        assert [following.Step.LOST, following.Step.BEGUN] == [await step(), await step()]
        assert 1 == served.counted("resyncs", reason="expired")
        assert 3 == sum(served.counted("refused", reason=each.value) for each in followers.Refusal)

    served.run(use)


def test_reasons_that_nobody_knows_are_one() -> None:
    """Whoever asks may write there what he likes."""
    served = Served()

    async def use(url: str) -> None:
        async with aiohttp.ClientSession(url) as session:
            for because in ("x", "y" * 300, "start"):
                async with session.get(f"/debug/graph?follow&because={because}") as answer:
                    assert answer.status == 200

    served.run(use)
    assert 2 == served.counted("resyncs", reason="other") == served.counted("refused", reason="other")
    assert 1 == served.counted("resyncs", reason="start")


def test_who_is_no_scheduler_is_not_followed() -> None:
    """A page that answers everything with a few bytes of its own."""
    served = Served()
    served.feed.now = still.StillFeed()

    async def use(url: str) -> None:
        follows = follower_of(url)

        assert await asyncio.to_thread(follows.step) is following.Step.REFUSED
        assert follows.copy.refused[followers.Refusal.TRUNCATED] == 1
        assert follows.problem.startswith("truncated: ")

    served.run(use)


def test_nobody_there_is_said() -> None:
    """As for every command that asks a scheduler."""
    with pytest.raises(errors.UnreachableError, match="start one"):
        follower_of("http://127.0.0.1:9").step()


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("after=0&epoch=4711", 410),
        ("after=9&epoch=4711", 410),
        ("after=1&epoch=1", 410),
        ("after=1&epoch=4711", 204),
        ("after=x&epoch=1", 400),
        ("after=1", 400),
        ("after=1&epoch=99999999999999999999999", 400),
        ("after=1&epoch=4711&wait=31", 400),
        ("after=1&epoch=4711&wait=-1", 400),
    ],
)
def test_each_question_has_its_answer(query: str, status: int) -> None:
    """Of a graph at generation 1 that nobody has followed so far."""
    served = Served()
    served.store.apply(delta.Patch().set_vertex(nodes.Node("n1")))

    async def use(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/debug/graph?{query}") as answer:
            assert answer.status == status

    served.run(use)


def test_so_many_followers_wait_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is told to come back; and none holds up the end of the program."""
    monkeypatch.setattr(feeds, "FOLLOWERS_MAX", 2)
    served = Served()
    path = f"/debug/graph?after=0&epoch={EPOCH}&wait=30"

    async def use(url: str) -> None:
        async with aiohttp.ClientSession(url) as session:

            async def status() -> int:
                async with session.get(path) as answer:
                    return answer.status

            waiting = [asyncio.create_task(status()) for _ in range(2)]
            for _ in waiting:
                await served.feed.asked.get()
            assert await status() == 503
            served.store.apply(delta.Patch().set_vertex(nodes.Node("n1")))
            assert await asyncio.gather(*waiting) == [200, 200]

    served.run(use)
    assert (served.told("busy"), served.told("changes")) == (1, 2)


def affinity_of(store: stores.Store) -> dict[tuple[str, str, int], float]:
    """The affinity graph made afresh, one edge at a time."""
    ledger = affinities.Affinities().refresh(store)
    return edges_of(ledger.table, ledger.names)


def edges_of(table: edges.Table, names: Sequence[str] | edges.Names) -> dict[tuple[str, str, int], float]:
    """The edges of a table by name."""
    ends = zip(edges.sources(table.ids).tolist(), edges.targets(table.ids).tolist(), strict=True)
    kinds = edges.kinds(table.ids).tolist()
    keyed = [(names[source], names[target], kind) for (source, target), kind in zip(ends, kinds, strict=True)]
    return dict(zip(keyed, table.weights.tolist(), strict=True))


def wish(rng: random.Random, store: stores.Store) -> None:
    """A pod with rules comes or goes, or a node changes."""
    zone = "topology.kubernetes.io/zone"
    picky = pods.Spec(selector=((zone, rng.choice("ab")),))
    likes = labels.Requirement(zone, labels.Operator.IN, (rng.choice("ab"),))
    fond = pods.Spec(preferred=(pods.PreferredNodeTerm(rng.choice([10, 90]), pods.NodeTerm((likes,))),))
    hardy = pods.Spec(tolerations=(pods.Toleration("gpu", "Exists"),))
    key, spec = keys.pod_key("default", f"w{rng.randrange(5)}"), rng.choice([picky, fond, hardy, pods.Spec()])
    taints = (nodes.Taint("gpu", "", "NoSchedule"),) if rng.random() < 0.5 else ()
    node = nodes.Node(rng.choice(NODES), labels=((zone, rng.choice("ab")),), taints=taints)
    patch = delta.Patch().set_vertex(pods.Pod(key, spec=spec))
    patch = rng.choice(
        [patch, delta.Patch().remove(key), delta.Patch().set_vertex(node), delta.Patch().remove(node.key)]
    )
    assert not isinstance(store.apply(patch), delta.Refused)


@pytest.mark.parametrize("seed", range(3))
def test_the_copy_of_the_affinity_graph_is_what_it_would_be_made_afresh(seed: int) -> None:
    """Whatever nodes and rules come, change and go between the questions."""
    served, rng = Served(), random.Random(seed)

    async def use(url: str) -> None:
        copy = followers.EdgeFollower(kinds=affinities.KINDS)
        follows = following.Following(asking.Server(url=url), copy, page=following.AFFINITY, wait_s=0)
        seen = set()
        for _ in range(40):
            for _ in range(rng.randint(0, 4)):
                wish(rng, served.store)
            seen.add(await asyncio.to_thread(follows.step))

            assert edges_of(copy.table, copy.names) == affinity_of(served.store)
        assert seen == {following.Step.BEGUN, following.Step.CHANGED, following.Step.UNCHANGED}
        assert copy.table.ids.size
        assert not any(copy.refused.values())

    served.run(use)


def test_a_file_is_kept_up_to_date(tmp_path: pathlib.Path) -> None:
    """`snapshot --follow` writes each generation whole, and ends in one line when the scheduler does."""
    served, path = Served(), tmp_path / "cluster.dg"
    served.store.apply(delta.Patch().set_vertex(nodes.Node("n1")))

    async def use(url: str) -> None:
        options = snapshot.Options(output=str(path), from_scheduler=True, follow=True, server=asking.Server(url=url))
        follows = asyncio.create_task(asyncio.to_thread(snapshot.command, options))
        await served.feed.asked.get()
        assert set(captured(path).vertices) == {"node/n1"}
        served.store.apply(delta.Patch().set_vertex(nodes.Node("n2")))
        await served.feed.asked.get()
        assert set(captured(path).vertices) == {"node/n1", "node/n2"}
        await served.stop()
        with pytest.raises(errors.ClusterError):
            await follows

    served.run(use)


def captured(path: pathlib.Path) -> delta.Patch:
    """The graph in the file."""
    found = captures.decode(path.read_bytes())
    assert isinstance(found, captures.Capture)
    return found.patch


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (snapshot.Options(follow=True, output="x"), "--follow: is of a scheduler"),
        (snapshot.Options(follow=True, from_scheduler=True, output="-"), "--follow: keeps a file up to date"),
    ],
)
def test_following_takes_a_scheduler_and_a_file(options: snapshot.Options, problem: str) -> None:
    """Said at once."""
    with pytest.raises(errors.InputError, match=problem):
        snapshot.command(options)


def logged(store: stores.Store) -> int | None:
    """Patches in the log; None where there is none."""
    return None if store.log is None else len(store.log)


def test_nothing_is_logged_before_somebody_follows() -> None:
    """A scheduler without followers pays for none."""
    store = stores.Store()
    store.apply(delta.Patch().set_vertex(nodes.Node("n1")))
    assert logged(store) is None

    asyncio.run(feeding.Feed(store, epoch=1).whole())
    store.apply(delta.Patch().set_vertex(nodes.Node("n2")))

    assert logged(store) == 1
