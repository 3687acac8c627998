"""
Every handed case on a real control plane, before kube-scheduler and before graphsched.

kube-scheduler's run keeps the expectation proven; graphsched's run proves graphsched. Cases that need what graphsched
does not do yet are listed in `runner/waiting.py`: there its run shows that it says so. Cases told in steps have modules
of their own.

Real: etcd, API server, both schedulers. Left out: controllers; `runner/kubelet.py` answers for the kubelets.
"""

import contextlib
import pathlib
from collections.abc import Callable, Iterator

import pytest

from tests.cases.runner import arena as arenas, cases, play, resources, schedulers, waiting
from tests.controlplane import binaries, cluster as clusters

pytestmark = pytest.mark.cluster

SNAPSHOTS = [case for case in cases.all_cases().values() if not case.steps]
GATED = cases.all_cases()["015-taint-numeric-operators"]


ArenaOf = Callable[[cases.Config], arenas.Arena]


@pytest.fixture(scope="module")
def arena_of(programs: binaries.Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArenaOf]:
    """A function that gives the arena with a configuration; one for all cases that share it."""
    opened: dict[str, arenas.Arena] = {}
    with contextlib.ExitStack() as stack:

        def give(config: cases.Config) -> arenas.Arena:
            if config.key not in opened:
                logs: pathlib.Path = tmp_path_factory.mktemp("cases")
                opened[config.key] = stack.enter_context(arenas.open_arena(config, programs=programs, logs=logs))
            return opened[config.key]

        yield give


@pytest.fixture
def arena(case: cases.Case, arena_of: ArenaOf) -> arenas.Arena:
    """The arena that the test's case is for."""
    return arena_of(case.config)


@pytest.mark.parametrize("case", SNAPSHOTS, ids=lambda case: case.name)
@pytest.mark.asyncio
async def test_a_case_holds_for_kube_scheduler(case: cases.Case, arena: arenas.Arena) -> None:
    """The expectation is what the released scheduler does."""
    problems = await play.problems(arena, case, scheduler=schedulers.KUBE)

    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("case", SNAPSHOTS, ids=lambda case: case.name)
@pytest.mark.asyncio
async def test_a_case_holds_for_graphsched(case: cases.Case, arena: arenas.Arena) -> None:
    """The expectation is met; where the case waits, its pods are refused in words that say why."""
    row = waiting.WAITING.get(case.name)
    expect = row.expect(case) if row else case.expect
    problems = await play.problems(arena, case, scheduler=schedulers.OURS, expect=expect)

    assert not problems, "\n".join(problems)


def test_numeric_tolerations_are_refused_by_the_api_server_with_its_default_gates(cluster: clusters.Cluster) -> None:
    """Without the gate of case 015 such a pod never reaches a scheduler."""
    for pod in GATED.pending:
        with pytest.raises(clusters.RequestError, match=r"spec\.tolerations\[0\]\.operator: Unsupported value"):
            cluster.call("POST", resources.collection(pod), pod)
