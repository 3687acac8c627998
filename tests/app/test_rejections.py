"""A kubelet that turns a pod of ours away is believed for a while: counted, told, and its node looks worse."""

import typing

import pytest

from graphsched.app import rejections
from graphsched.app.settings import SharedSettings
from graphsched.explain import telling, why
from tests import builders
from tests.app import live
from tests.fakes import storage, virtual

N1, N2 = builders.make_node("n1").cpu("8"), builders.make_node("n2").cpu("4")
WEB = builders.make_pod("web").cpu("1")
GET = ".*/pods/web"


def ends(it: live.Scheduler, name: str, **status: object) -> None:
    """Its kubelet says how the pod is."""
    it.server.storage.patch(storage.Key(storage.PODS, "default", name), {"status": status}, strategic=False)


async def turned_away(it: live.Scheduler, reason: str = "OutOfcpu") -> None:
    """A pod of ours is bound to n1, and the kubelet there does not take it."""
    it.pod(WEB)
    await it.bound("web")
    await it.quiet()
    assert "n1" == it.where("web")
    ends(it, "web", phase="Failed", reason=reason, message="Node didn't have enough resource: cpu")
    await it.quiet()


def counted(it: live.Scheduler) -> list[str]:
    """What the metrics say of rejections, apart from those that never were."""
    text = it.parts.meters.render().decode()
    lines = (line for line in text.splitlines() if line.startswith("graphsched_rejections_total{"))
    return [line.partition("{")[2] for line in lines if not line.endswith(" 0.0")]


@virtual.timed
async def test_a_node_that_turned_a_pod_away_is_avoided_for_a_while() -> None:
    """The next pod goes elsewhere; decision and explanation say so; after some half-lives all is as before."""
    async with live.scheduler(N1, N2) as it:
        await turned_away(it)
        it.pod(builders.make_pod("next").cpu("1"))
        await it.bound("next")

        assert "n2" == it.where("next")
        assert ['reason="cpu"} 1.0'] == counted(it)
        (race,) = it.parts.races.newest(5)
        assert ("rejected", "n1") == (race.kind.value, race.node)
        assert "OutOfcpu: Node didn't have enough resource: cpu" == race.detail

        explanation = typing.cast("why.Explanation", await it.program.sights.explain("default/next"))
        (avoided,) = explanation.avoided
        assert ("n1", "OutOfcpu") == (avoided.node, avoided.reason)
        assert 190 <= avoided.points <= 200
        assert any(line.startswith("  Avoided for a while: n1, whose kubelet") for line in telling.lines(explanation))

        await it.quiet(60.0 * 8)
        it.pod(builders.make_pod("later").cpu("1"))
        await it.bound("later")
        assert "n1" == it.where("later")
        later = typing.cast("why.Explanation", await it.program.sights.explain("default/later"))
        assert () == later.avoided


@virtual.timed
async def test_the_penalty_refuses_nothing() -> None:
    """Where only that node fits, that is where the pod goes."""
    async with live.scheduler(N1) as it:
        await turned_away(it)
        it.pod(builders.make_pod("next").cpu("1"))
        await it.bound("next")

        assert "n1" == it.where("next")


@virtual.timed
async def test_without_a_penalty_it_is_counted_all_the_same() -> None:
    """Placement is then as if nothing had been learned."""
    async with live.scheduler(N1, N2, shared=SharedSettings(rejection_penalty=0)) as it:
        await turned_away(it)
        it.pod(builders.make_pod("next").cpu("1"))
        await it.bound("next")

        assert ("n1", ['reason="cpu"} 1.0']) == (it.where("next"), counted(it))


@virtual.timed
async def test_a_pod_that_ran_or_was_deleted_is_not_asked_about() -> None:
    """Reads are for pods that ended before they began, one each; whatever else a pod ended by is no rejection."""
    async with live.scheduler(N1, N2) as it:
        for name in ("ran", "gone", "fine"):
            it.pod(builders.make_pod(name).cpu("1"))
        await it.bound("ran", "gone", "fine")
        ends(it, "ran", phase="Running", startTime="2025-01-01T00:00:00Z")
        await it.quiet()
        ends(it, "ran", phase="Failed", reason="Evicted")
        it.delete("gone")
        ends(it, "fine", phase="Failed", reason="SysctlForbidden")
        await it.quiet()

        assert [] == it.server.asked("GET", ".*/pods/ran")
        assert 1 == len(it.server.asked("GET", ".*/pods/fine"))
        assert [] == counted(it)


@virtual.timed
async def test_a_read_that_fails_is_said_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing depends on it."""
    async with live.scheduler(N1, N2) as it:
        it.server.faults.refuse("GET", GET, 403)
        await turned_away(it)

        assert [] == counted(it)
        assert ["why default/web ended is not known"] == [
            record.getMessage().partition(":")[0] for record in caplog.records if "is not known" in record.getMessage()
        ]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("OutOfcpu", "cpu"),
        ("OutOfnvidia.com/gpu", "extended"),
        ("TopologyAffinityError", "topology"),
        ("UnexpectedAdmissionError", "admission"),
        ("NodeAffinity", "node"),
        ("SysctlForbidden", ""),
        ("Error", ""),
    ],
)
def test_reasons_have_a_class_where_another_node_might_do(reason: str, kind: str) -> None:
    """The label of the metric is one of few, whatever resource is called what."""
    assert kind == rejections.class_of(reason)
