"""
The two schedulers that every case is shown to, side by side on one control plane.

Comes in: a running control plane and feature gates. Goes out: processes that have read the cluster. Each serves the
pods that name it, so that they do not get in each other's way.
"""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Iterator

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, processes

KUBE, OURS = "kube-scheduler", "graphsched"
BOTH = (KUBE, OURS)

START_S = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A scheduler: the `schedulerName` it serves, and its process."""

    name: str
    process: processes.Process


@contextlib.contextmanager
def kube_scheduler(
    cluster: clusters.Cluster, *, gates: str = "", name: str = "default-scheduler", server: str = ""
) -> Iterator[Running]:
    """kube-scheduler with its defaults, serving `name`; at `server` where it must not speak to the API directly."""
    port = processes.free_ports(1)[0]
    binary, config, *flags = cluster.scheduler_command(port=port)
    path = pathlib.Path(str(config).removeprefix("--config="))
    settings = json.loads(path.read_text())
    settings["profiles"] = [{"schedulerName": name}]
    if server:
        settings["clientConnection"]["kubeconfig"] = str(kubeconfig(cluster, server))
    path.write_text(json.dumps(settings))
    command = [binary, config, *flags, *([f"--feature-gates={gates}"] if gates else [])]
    process = processes.Process(KUBE, command, log=cluster.logs / f"kube-scheduler-{port}.log")
    try:
        processes.wait_until(
            lambda: clusters._ready_over_tls(port), what="kube-scheduler is ready", timeout_s=START_S, watched=[process]
        )
        yield Running(name, process)
    finally:
        process.kill()


@contextlib.contextmanager
def graphsched(
    cluster: clusters.Cluster, *, name: str = scheduling.NAME, server: str = ""
) -> Iterator[scheduling.Scheduler]:
    """`graphsched run` with its defaults, serving `name`; at `server` where it must not speak to the API directly."""
    access = kubeconfig(cluster, server) if server else cluster.kubeconfig
    config = json.dumps({"schedulerName": name})
    log = cluster.logs / f"graphsched-{name}.log"
    with scheduling.scheduler(cluster, log, kubeconfig=access, config=config) as running:
        yield running


@contextlib.contextmanager
def either(which: str, cluster: clusters.Cluster, *, name: str, server: str = "") -> Iterator[Running]:
    """The scheduler that is called `which`, serving `name`."""
    if which == KUBE:
        with kube_scheduler(cluster, name=name, server=server) as kube:
            yield kube
    else:
        with graphsched(cluster, name=name, server=server) as ours:
            yield Running(name, ours.process)


def kubeconfig(cluster: clusters.Cluster, server: str) -> pathlib.Path:
    """A kubeconfig file for a server that asks nobody who he is."""
    path = cluster.folder / f"open-{server.rpartition(':')[2]}.kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "open", "cluster": {"server": server}}],
        "users": [{"name": "open", "user": {}}],
        "contexts": [{"name": "open", "context": {"cluster": "open", "user": "open"}}],
        "current-context": "open",
    }
    path.write_text(json.dumps(document))
    return path
