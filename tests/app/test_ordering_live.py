"""The live scheduler orders its queue by dependencies where settings ask for it, and only there."""

import pytest

from graphsched.app import settings
from graphsched.base.values import groups, labels
from graphsched.explain import telling, why
from graphsched.graph import delta
from tests import builders
from tests.app import live
from tests.fakes import virtual

DB = groups.Workload("db", labels.selector([labels.Requirement("app", labels.Operator.IN, ("db",))]))
WEB = groups.Workload(
    "web", labels.selector([labels.Requirement("app", labels.Operator.IN, ("web",))]), (groups.Dependency("db"),)
)


@pytest.mark.parametrize(("order", "placed"), [("", "web"), ("criticalPath", "db")])
@virtual.timed
async def test_the_only_free_place_goes_to_whom_others_wait_for(order: str, placed: str) -> None:
    """The pod that came first waits for the one that came last; without the setting age alone counts."""
    async with live.scheduler(queue=settings.QueueSettings(order=order)) as running:
        loop = running.program.loop
        loop.intake.correct(delta.Patch().set_vertex(groups.Group("default", "shop", (WEB, DB))), 0.0)
        for name in ("web", "alone", "db"):
            running.pod(builders.make_pod(name).label("app", name).cpu("1"))
        await running.quiet()
        told = await running.program.sights.explain("default/web")
        assert isinstance(told, why.Explanation)
        assert told.waiting is not None
        if order:
            place = told.waiting.order
            assert why.Order("criticalPath", 2, 3, ("default/db",)) == place
            line = "  In the queue: 2 of 3 in the order of criticalPath, after default/db, which it depends on."
            assert line in telling.text(told).splitlines()
        else:
            assert told.waiting.order is None
            assert "In the queue" not in telling.text(told)
        running.node(builders.make_node("n1").cpu("1"))
        await running.bound(placed)
        await running.quiet()

        assert "n1" == running.where(placed)
