"""The audit finds what is wrong, all of it and nothing else, and mends it; churn does not fool it.

Simulated: the whole scheduler in virtual time beside a fake API server. Damage is done behind the store's and the
queue's backs, since no event is known that would do it; a restored backup is real as far as a fake server can have one.
"""

import asyncio
import logging
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from graphsched.app import auditing, findings
from graphsched.app.settings import AuditSettings
from graphsched.base.values import keys, nodes, pods
from graphsched.graph import delta
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

SILENT = AuditSettings(every_seconds=0)
Damage = Callable[[live.Scheduler], dict[findings.Kind, int]]


def node(number: int) -> builders.NodeBuilder:
    """A node with something of everything that is derived."""
    made = builders.make_node(f"n{number}").cpu("8").memory("8Gi").zone("a").image(1 << 20, f"app:{number}")
    return made.taint("edge", "yes", "PreferNoSchedule")


NODES = tuple(node(number) for number in range(4))
PODS = tuple(builders.make_pod(f"p{number}").cpu("1").label("app", "web") for number in range(8))
HUGE = builders.make_pod("huge").cpu("64")


async def audited(it: live.Scheduler) -> findings.Report:
    """The report of an audit made now."""
    return await it.program.auditor.once("test")


def vertex(it: live.Scheduler, key: str) -> delta.Vertex:
    """What the graph holds."""
    found = it.parts.store.vertex(keys.VertexKey(key))
    assert found is not None
    return found


def forget(it: live.Scheduler, key: str) -> None:
    """Take an object out of the graph behind everybody's back, as an event that was never sent would have."""
    it.program.loop.intake.correct(delta.Patch().remove(keys.VertexKey(key)), virtual.now())


def plant(it: live.Scheduler, *planted: delta.Vertex) -> None:
    """Put objects into the graph that no watch has told of."""
    patch = delta.Patch(vertices={one.key: one for one in planted})
    it.program.loop.intake.correct(patch, virtual.now())


async def settled(it: live.Scheduler) -> None:
    """Everybody who can be bound is, and `huge` waits."""
    await it.bound(*(f"p{number}" for number in range(len(PODS))))
    await it.until(lambda: bool(it.message("huge")))
    await it.quiet()


@virtual.timed
async def test_a_sound_scheduler_is_audited_without_a_difference() -> None:
    """Everything is compared: nodes, pods and the rest."""
    async with live.scheduler(*NODES, pods=(*PODS, HUGE), audit=SILENT) as it:
        await settled(it)

        report = await audited(it)

        assert (findings.Result.CLEAN, {}, "clean") == (report.result, report.counts, report.summary)
        assert len(NODES) + len(PODS) + 1 <= report.objects


# Each does one damage and says what an audit must find.


def missing_node(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A node that the graph does not have."""
    forget(it, "node/n0")
    return {findings.Kind.MISSING: 1}


def missing_pod(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A bound pod that the graph does not have."""
    forget(it, "pod/default/p3")
    return {findings.Kind.MISSING: 1}


def stale_node(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A node that is cordoned in the graph and nowhere else."""
    found = vertex(it, "node/n1")
    assert isinstance(found, nodes.Node)
    plant(it, nodes.Node(found.name, found.uid, unschedulable=True, allocatable=found.allocatable))
    return {findings.Kind.STALE: 1}


def stale_pod(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A bound pod that is on another node in the graph."""
    found = vertex(it, "pod/default/p4")
    assert isinstance(found, pods.Pod)
    other = "n0" if found.node != "n0" else "n1"
    plant(it, pods.Pod(found.key, found.uid, found.spec, found.held, found.labels, other))
    return {findings.Kind.STALE: 1}


def extra_objects(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A pod and a node that are in the graph and nowhere else."""
    plant(it, builders.make_pod("ghost").cpu("1").node("n0").build(), builders.make_node("gone").cpu("9").build())
    return {findings.Kind.EXTRA: 2}


def wrong_usage(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A column that says less than the pods of the node hold."""
    store = it.parts.store
    store.columns.requested[nodes.CPU][store.columns.rows["n2"]] -= 500
    return {findings.Kind.DERIVED: 1}


def wrong_cordon(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A node that is cordoned in its attributes only."""
    store = it.parts.store
    store.attributes.unschedulable[store.columns.rows["n3"]] = True
    return {findings.Kind.DERIVED: 1}


def wrong_ports(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A host port that nobody holds."""
    store = it.parts.store
    store.ports.count(store.columns.rows["n1"], (pods.HostPort("TCP", "0.0.0.0", 80),), sign=1)  # noqa: S104
    return {findings.Kind.DERIVED: 1}


def lost_pod(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A pod that waits, and is not in the queue."""
    it.parts.backlog.remove(HUGE.build().key, virtual.now())
    return {findings.Kind.LOST: 1}


def queued_ghost(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A pod in the queue that never was."""
    it.parts.backlog.add(builders.make_pod("nobody").gate("closed").scheduler(live.NAME).build(), virtual.now())
    return {findings.Kind.QUEUE: 1}


def stale_entry(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A pod in the queue as it was before."""
    entry = it.parts.backlog.get(HUGE.build().key)
    assert entry is not None
    entry.pod = builders.make_pod("huge").cpu("63").uid(entry.pod.uid).scheduler(live.NAME).build()
    return {findings.Kind.QUEUE: 1}


def promise_that_was_kept(it: live.Scheduler) -> dict[findings.Kind, int]:
    """A promise to a pod that is bound long since."""
    found = vertex(it, "pod/default/p5")
    assert isinstance(found, pods.Pod)
    it.parts.promises.make(found, "n0", ())
    return {findings.Kind.PROMISE: 1}


def promise_of_a_node_to_a_waiting_pod(it: live.Scheduler) -> dict[findings.Kind, int]:
    """What an undone binding leaves behind."""
    found = vertex(it, "pod/default/huge")
    assert isinstance(found, pods.Pod)
    it.parts.backlog.remove(found.key, virtual.now())
    it.parts.promises.make(found, "n0", ())
    return {findings.Kind.PROMISE: 1}


DAMAGES: tuple[Damage, ...] = (
    missing_node,
    missing_pod,
    stale_node,
    stale_pod,
    extra_objects,
    wrong_usage,
    wrong_cordon,
    wrong_ports,
    lost_pod,
    queued_ghost,
    stale_entry,
    promise_that_was_kept,
    promise_of_a_node_to_a_waiting_pod,
)


async def damage_is_found(*damages: Damage) -> None:
    """Do it, audit, and see that it was found, each once, and that the next audit is clean."""
    async with live.scheduler(*NODES, pods=(*PODS, HUGE), audit=SILENT) as it:
        await settled(it)
        due: dict[findings.Kind, int] = {}
        for damage in damages:
            for kind, count in damage(it).items():
                due[kind] = due.get(kind, 0) + count

        report = await audited(it)
        assert (findings.Result.MENDED, due) == (report.result, report.counts), report.differences
        for kind in findings.Kind:
            value = it.parts.meters.registry.get_sample_value(
                "graphsched_audit_differences_total", {"kind": kind.value}
            )
            assert due.get(kind, 0) == value

        again = await audited(it)
        assert {} == again.counts, again.differences
        it.require_sound()
        await it.quiet()
        assert 0 == len(it.parts.promises)
        assert it.pool("huge") is not None
        assert len(PODS) == it.bindings()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damage_is_found_once_and_mended(damage: Damage) -> None:
    """Whatever it is, by its kind, and nothing else; what the API server has is not touched."""
    virtual.timed(damage_is_found)(damage)


@hypothesis_settings(max_examples=15, deadline=None)
@given(damages=st.lists(st.sampled_from(DAMAGES), unique=True, min_size=2, max_size=6))
def test_any_damages_together_are_found_exactly_and_mended(damages: list[Damage]) -> None:
    """None hides another, and mending one does no new damage."""
    if lost_pod in damages and {stale_entry, promise_of_a_node_to_a_waiting_pod} & set(damages):
        damages.remove(lost_pod)
    if {stale_entry, promise_of_a_node_to_a_waiting_pod} <= set(damages):
        damages.remove(stale_entry)
    virtual.timed(damage_is_found)(*damages)


@virtual.timed
async def test_thousands_of_changes_during_an_audit_are_no_difference() -> None:
    """Pods and nodes come, change and go while they are listed; the watch and the list never agree for long."""
    async with live.scheduler(*NODES, audit=SILENT) as it:
        rng, changes = random.Random(3), 0
        busy = asyncio.Event()

        async def churn() -> None:
            nonlocal changes
            while not busy.is_set():
                name = f"c{rng.randrange(60)}"
                key = storage.Key(storage.PODS, "default", name)
                there = any(pod["metadata"]["name"] == name for pod in it.server.storage.items(storage.PODS))
                match rng.randrange(4):
                    case 0 if there:
                        it.delete(name)
                    case 1 if there:
                        change = {"metadata": {"labels": {"turn": str(changes)}}}
                        it.server.storage.patch(key, change, strategic=False)
                    case 2:
                        marked = {"metadata": {"labels": {"turn": str(changes)}}}
                        node_key = storage.Key(apiserver.NODES, "", f"n{rng.randrange(4)}")
                        it.server.storage.patch(node_key, marked, strategic=False)
                    case _ if not there:
                        it.pod(builders.make_pod(name).cpu("100m"))
                changes += 1
                await asyncio.sleep(0.002)

        churning = asyncio.create_task(churn())
        await it.quiet(0.5)
        before = changes
        while changes - before < 2000:
            report = await audited(it)
            assert {} == report.counts, report.differences
            assert not report.problem
        busy.set()
        await churning


@virtual.timed
async def test_a_watch_that_lags_is_no_difference() -> None:
    """What it has not told for half a minute it tells in the end, before the audit makes up its mind."""
    async with live.scheduler(*NODES, pods=(PODS[0],), audit=SILENT) as it:
        await it.bound("p0")
        await it.quiet()
        watch = await it.server.watching(storage.PODS)
        watch.live = False
        it.pod(builders.make_pod("late").cpu("1"))
        it.delete("p0")

        async def speak() -> None:
            await asyncio.sleep(30.0)
            watch.live = True
            watch.wake()

        speaking = asyncio.create_task(speak())
        report = await audited(it)
        await speaking

        assert {} == report.counts, report.differences
        assert report.seconds >= 30.0
        await it.bound("late")


@virtual.timed
async def test_what_a_watch_never_tells_is_found() -> None:
    """It is open, bookmarks come, and an event is missing: a created pod, a deleted one, a changed node."""
    async with live.scheduler(*NODES, pods=(PODS[0],), audit=SILENT) as it:
        await it.bound("p0")
        await it.quiet()
        for path in (storage.PODS, apiserver.NODES):
            watch = await it.server.watching(path)
            watch.live = False
            it.pod(builders.make_pod("unheard-of").cpu("1")) if path == storage.PODS else None
            if path == storage.PODS:
                it.delete("p0")
            else:
                it.mark("n0", cordoned=True)
            watch._sent = it.server.storage.version
            watch.live = True

        report = await audited(it)

        assert {findings.Kind.MISSING: 1, findings.Kind.EXTRA: 1, findings.Kind.STALE: 1} == report.counts
        await it.bound("unheard-of")
        assert {} == (await audited(it)).counts


@virtual.timed
async def test_a_binding_that_a_backup_has_undone_is_made_again() -> None:
    """Nobody tells: no version is earlier than what was seen. Without an audit the promise would be kept for ever."""
    async with live.scheduler(NODES[0], audit=SILENT) as it:
        it.server.faults.delay("POST", live.BINDING, 1.0)
        it.pod(PODS[0])
        saved = it.server.storage.backup()
        await it.until(lambda: it.bindings("p0") == 1)
        (await it.server.watching(storage.PODS)).live = False
        await it.bound("p0")
        await it.quiet()
        assert 1 == len(it.parts.promises)
        it.server.restore(saved)
        for each in list(it.server.watches):
            each.cut()

        await it.bound("p0")
        await it.quiet()

        assert 2 == it.bindings("p0")
        assert 0 == len(it.parts.promises)
        assert virtual.now() < auditing.BACK_S[1] + 15.0
        last = it.program.auditor.last
        assert last is not None
        assert {findings.Kind.PROMISE: 1} == last.counts


@pytest.mark.parametrize("since", [0, 3, 40])
@virtual.timed
async def test_after_a_backup_everything_is_as_the_older_database_says(since: int) -> None:
    """Bindings, creations, deletions and a cordon never happened, however many changes have come since."""
    async with live.scheduler(*NODES, pods=PODS[:4], audit=SILENT) as it:
        await it.bound("p0", "p1", "p2", "p3")
        await it.quiet()
        it.server.faults.delay("POST", live.BINDING, 0.5, times=2)
        it.pod(PODS[4])
        it.pod(PODS[5])
        await it.until(lambda: it.bindings("p5") == 1)
        saved = it.server.storage.backup()
        await it.bound("p4", "p5")
        it.pod(PODS[6])
        await it.bound("p6")
        it.delete("p0")
        it.mark("n3", cordoned=True)
        await it.quiet()

        await it.server.stop()
        it.server.restore(saved)
        for number in range(since):
            it.server.create("/api/v1/namespaces", {"metadata": {"name": f"x{number}"}})
        await it.server.start()
        await it.bound("p4", "p5")
        await it.quiet(2 * auditing.BACK_S[1])

        assert {} == (await audited(it)).counts
        assert 0 == len(it.parts.promises)
        assert 0 == len(it.parts.backlog)
        assert it.parts.store.pod(PODS[6].build().key) is None
        assert it.parts.store.placement(PODS[0].build().key) is not None
        found = it.parts.store.node("n3")
        assert found is not None
        assert not found.unschedulable
        it.require_sound()


@virtual.timed
async def test_a_lister_without_rights_does_not_keep_others_from_being_audited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The audit is not finished, says why, and has mended what it could."""
    async with live.scheduler(*NODES, pods=PODS, audit=SILENT) as it:
        await it.bound("p7")
        await it.quiet()
        it.server.faults.refuse("GET", "/api/v1/services", 403, reason="Forbidden", message="may not list services")
        missing_pod(it)

        with caplog.at_level(logging.INFO):
            report = await audited(it)

        assert (findings.Result.FAILED, {findings.Kind.MISSING: 1}) == (report.result, report.counts)
        assert "services" in report.problem
        assert "may not list services" in report.summary
    assert any("audit (test)" in record.message and record.levelno == logging.INFO for record in caplog.records)


async def next_audit(it: live.Scheduler) -> tuple[float, findings.Report]:
    """Wait for the next audit; in how many seconds it came, and what it found."""
    began, before = virtual.now(), it.program.auditor.last
    while (last := it.program.auditor.last) is None or last is before:  # noqa: ASYNC110  nothing tells
        await asyncio.sleep(1.0)
    return virtual.now() - began, last


@virtual.timed
async def test_audits_come_by_themselves_and_sooner_after_a_difference() -> None:
    """Ten minutes apart, give or take one; a minute after one that found something."""
    async with live.scheduler(*NODES, pods=PODS) as it:
        audits = [await next_audit(it)]
        wrong_usage(it)
        audits += [await next_audit(it), await next_audit(it)]

        assert ["clean", "1 derived, mended", "clean"] == [report.summary for _, report in audits]
        bounds = [600.0, 600.0, auditing.AGAIN_S]
        assert all(0.88 * due <= after_s <= 1.12 * due for due, (after_s, _) in zip(bounds, audits, strict=True))


@virtual.timed
async def test_a_difference_does_not_put_off_an_audit_that_is_due_sooner() -> None:
    """The API server goes back while an audit finds something: the next one comes in seconds, not in a minute."""
    async with live.scheduler(*NODES, pods=PODS, audit=SILENT) as it:
        await it.bound("p7")
        wrong_usage(it)
        it.program.auditor.ask()
        await it.quiet(0.001)
        it.program.auditor.doubt("went back")
        audits = [await next_audit(it), await next_audit(it)]

        assert ["1 derived, mended", "clean"] == [report.summary for _, report in audits]
        assert "the API server went back" == audits[1][1].reason
        assert audits[1][0] <= auditing.WENT_BACK_S[1] + 1.0


@virtual.timed
async def test_an_api_server_that_was_away_gives_cause_for_an_audit() -> None:
    """It may be another one; but a flapping connection gives no cause for one after another."""
    async with live.scheduler(*NODES, pods=PODS, audit=SILENT) as it:
        await it.bound("p7")
        audits = 0
        for _ in range(6):
            before = it.program.auditor.last
            await it.server.stop()
            await it.quiet(15.0)
            await it.server.start()
            await it.quiet(15.0)
            audits += it.program.auditor.last is not before
        await it.quiet(120.0)

        assert it.program.auditor.last is not None
        assert "the API server is back" == it.program.auditor.last.reason
        assert 1 <= audits <= 2


def test_a_difference_is_logged_with_its_object_and_field_and_not_without_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An operator sees what was wrong; a thousand wrong objects do not fill the disk."""

    @virtual.timed
    async def body() -> None:
        many = tuple(builders.make_pod(f"w{number}").cpu("64") for number in range(auditing.LOGGED_MAX + 20))
        async with live.scheduler(*NODES, pods=many, audit=SILENT) as it:
            await it.until(lambda: bool(it.message(many[-1].build().name)))
            stale_node(it)
            for each in many:
                it.parts.backlog.remove(each.build().key, virtual.now())
            await audited(it)

    body()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert auditing.LOGGED_MAX + 1 == len(told)
    assert any("node/n1 labels is" in line and "unschedulable is True, should be False" in line for line in told)
    assert "audit: 21 more differences were mended" == told[-1]
