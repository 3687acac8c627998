"""
The schedulers that are measured: what their pods name them, and how each is started beside a control plane.

Comes in: a running control plane. Goes out: a started process for `measure.py` to watch. Each starts as its users would
start it, with the same rights; kube-scheduler's client-side limit is raised, or it would be all that is measured.
"""

import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence

from benchmarks.live import bare
from tests.controlplane import cluster as clusters, processes

#: The user that both act as; the benchmark's API server authorises everybody.
_USER = "system:kube-scheduler"

GRAPHSCHED = pathlib.Path(__file__).parents[2] / ".venv" / "bin" / "graphsched"

Command = list[str | os.PathLike[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Scheduler:
    """One scheduler to measure."""

    name: str
    #: The `schedulerName` of its pods.
    pods_call_it: str
    command: Callable[[clusters.Cluster], Command]


def _kube_scheduler(cluster: clusters.Cluster) -> Command:
    return cluster.scheduler_command(port=processes.free_ports(1)[0], user=_USER)


def _graphsched(cluster: clusters.Cluster, program: Sequence[str | os.PathLike[str]] = (GRAPHSCHED,)) -> Command:
    # As kube-scheduler beside it: one of each runs, and none waits for the lease of the one before.
    return [*program, "run", "--no-leader-elect", "--port", "0", "--kubeconfig", cluster.kubeconfig_for(_USER)]


def _bare_binder(cluster: clusters.Cluster) -> Command:
    return [sys.executable, "-m", bare.__name__, "--kubeconfig", cluster.kubeconfig_for(_USER)]


#: By the name given to `--schedulers`. The first is what the others are compared with.
ALL = {
    "kube-scheduler": Scheduler("kube-scheduler", "default-scheduler", _kube_scheduler),
    "graphsched": Scheduler("graphsched", "graph-scheduler", _graphsched),
    "bare-binder": Scheduler("bare-binder", bare.SCHEDULER_NAME, _bare_binder),
}
#: What is measured where nothing is named.
USUAL = ("kube-scheduler", "graphsched")


def known(graphsched: Sequence[str] = ()) -> Mapping[str, Scheduler]:
    """`ALL`, with graphsched started by this command instead of the console script where one is given."""
    if not graphsched:
        return ALL

    def command(cluster: clusters.Cluster) -> Command:
        return _graphsched(cluster, graphsched)

    return {**ALL, "graphsched": dataclasses.replace(ALL["graphsched"], command=command)}


def start(scheduler: Scheduler, cluster: clusters.Cluster) -> processes.Process:
    """Start it; its log lies among the control plane's."""
    return processes.Process(
        scheduler.name,
        scheduler.command(cluster),
        log=cluster.logs / f"{scheduler.name}.log",
    )
