"""The control plane's database is rolled back under a running scheduler, and SIGUSR2 shows what it believes.

Simulated: nothing; a real etcd goes back to an older copy of its data, a real API server starts on it. Looked at: the
API server's own record, and the scheduler's dump.
"""

import json
import pathlib
import signal
from typing import Any

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, fixtures, objects

pytestmark = pytest.mark.cluster

NODES, BEFORE, AFTER = 10, 40, 40
NODE_MILLI, POD_MILLI = 1000, 100
DIFFERENCES = "graphsched_audit_differences_total"


def _settings(dumps: pathlib.Path) -> str:
    return json.dumps({"audit": {"everySeconds": 0, "dumpDirectory": str(dumps)}})


def _dump(running: scheduling.Scheduler, dumps: pathlib.Path, number: int) -> Any:
    """Ask for a dump and wait until there are so many; return the newest."""
    running.process.send_signal(signal.SIGUSR2)
    scheduling.wait(
        f"dump {number} is written",
        lambda: len(list(dumps.glob("*.json"))) == number,
        timeout_s=120.0,
        watched=(running.process,),
    )
    return json.loads(max(dumps.glob("*.json")).read_text())


def _bound(cluster: clusters.Cluster, count: int) -> bool:
    placed = scheduling.places(cluster)
    return len(placed) == count and all(placed.values())


def test_sigusr2_audits_a_live_process_and_dumps_its_queue(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """All is well, one pod waits and is in the dump with what refused it; the process goes on, twice."""
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="1"))
    cluster.call("POST", scheduling.PODS, scheduling.pod("web"))
    cluster.call("POST", scheduling.PODS, scheduling.pod("huge", cpu="64"))
    with scheduling.scheduler(cluster, tmp_path / "log", config=_settings(dumps)) as running:
        scheduling.wait("web is bound", lambda: bool(scheduling.places(cluster)["web"]))
        scheduling.wait("huge waits", lambda: bool(scheduling.condition(cluster, "huge")[0]))
        for number in (1, 2):
            dump = _dump(running, dumps, number)

            assert ("SIGUSR2", "clean", {}) == tuple(dump["audit"][field] for field in ("reason", "result", "counts"))
            (waiting,) = dump["queue"]["pods"]
            assert ("default/huge", ["NodeResourcesFit"]) == (waiting["pod"], waiting["refused_by"])
            assert {"node": 1, "pod": 2} == {kind: dump["graph"][kind] for kind in ("node", "pod")}
        assert "clean" in running.read("/readyz?verbose")
        assert 2.0 == running.metric('graphsched_audits_total{result="clean"}')
        assert 0 == running.process.stop(timeout_s=30.0)


@pytest.mark.timeout(300)
def test_bindings_that_a_rollback_has_undone_are_made_again(
    new_cluster: fixtures.NewCluster, tmp_path: pathlib.Path
) -> None:
    """Pods that wait again are bound, once each, those created since are gone, no promise is kept, all is clean."""
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    cluster = new_cluster(clusters.Options())
    for number in range(NODES):
        cluster.call("POST", scheduling.NODES, objects.node(f"n{number}", cpu=f"{NODE_MILLI}m", pods="10"))
    for number in range(BEFORE):
        cluster.call("POST", scheduling.PODS, scheduling.pod(f"p{number}", cpu=f"{POD_MILLI}m"))
    saved = cluster.save()
    with scheduling.scheduler(cluster, tmp_path / "log", config=_settings(dumps)) as running:
        scheduling.wait("all are bound", lambda: _bound(cluster, BEFORE), watched=(running.process,))
        for number in range(BEFORE, BEFORE + AFTER):
            cluster.call("POST", scheduling.PODS, scheduling.pod(f"p{number}", cpu=f"{POD_MILLI}m"))
        scheduling.wait("those created since are bound", lambda: _bound(cluster, BEFORE + AFTER))

        cluster.rollback(saved)

        scheduling.wait(
            "those that wait again are bound",
            lambda: _bound(cluster, BEFORE),
            timeout_s=90.0,
            watched=(running.process,),
        )
        scheduling.wait("nothing is assumed", lambda: running.metric('scheduler_cache_size{type="assumed_pods"}') == 0)
        dump = _dump(running, dumps, 1)

        # What the audits after the absence have found is mended; this one finds nothing.
        assert ("clean", {}) == (dump["audit"]["result"], dump["audit"]["counts"])
        assert ([], []) == (dump["promises"], dump["queue"]["pods"])
        assert (NODES, BEFORE) == (dump["graph"]["node"], dump["graph"]["pod"])
        assert max(scheduling.held_milli(cluster).values()) <= NODE_MILLI
        assert 2 * BEFORE + AFTER == running.metric('graphsched_bind_total{outcome="bound"}')
        assert 0 == running.metric(f'{DIFFERENCES}{{kind="derived"}}')
        assert "Traceback" not in running.process.tail(10_000)
        assert 0 == running.process.stop(timeout_s=30.0)
