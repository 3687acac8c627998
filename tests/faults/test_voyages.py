"""Every played cell of the fault table holds on the real API server, with two seeds (`make torture` plays twenty).

Simulated: what goes wrong, by a proxy between the scheduler and the API server. Looked at: the API server's own record
of the pods, the proxy's record of the calls, the scheduler's graph beside a fresh list.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.controlplane import cluster as clusters
from tests.faults import fleet, table

pytestmark = pytest.mark.cluster

SEEDS = 2

CELLS = [pytest.param(fault, call, id=f"{fault.name}-{call}") for fault, call in table.voyages()]

Outcome = Callable[[str, str], list[fleet.Result]]


@pytest.fixture(scope="module")
def outcome(arena: clusters.Cluster, request: pytest.FixtureRequest) -> Outcome:
    """How the voyages of a fault and a call ended; all that are asked for are played at once, the first time."""
    items: list[Any] = [item for item in request.session.items if item.path == request.path]
    asked = {(item.callspec.params["fault"].name, item.callspec.params["call"]) for item in items}
    wanted = [
        (fault, call, seed) for seed in range(SEEDS) for fault, call in table.voyages() if (fault.name, call) in asked
    ]
    results = fleet.run(arena, wanted)
    return lambda fault, call: [each for each in results if (each.fault.name, each.call) == (fault, call)]


@pytest.mark.parametrize(("fault", "call"), CELLS)
def test_no_pod_is_lost_or_bound_twice_whatever_goes_wrong(outcome: Outcome, fault: table.Fault, call: str) -> None:
    """In every phase the fault strikes, and afterwards all is well."""
    results = outcome(fault.name, call)

    assert SEEDS == len(results)
    failed = [f"{each.command}\n{each.failure}" for each in results if each.failure]
    assert not failed, "\n".join(failed)
