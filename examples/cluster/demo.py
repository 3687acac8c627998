"""The main job, live: a real control plane on loopback, `graphsched run` beside it, a Deployment that asks for it.

Comes in: nothing; etcd, kube-apiserver, kube-controller-manager and kwok's fake kubelets are built once, which takes
minutes, and start in seconds. Goes out: what a user would see at every step. Everything ends with this program.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from tests.controlplane import cluster as clusters, processes

SCHEDULER = "graph-scheduler"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
GRAPHSCHED = [sys.executable, "-m", "graphsched"]
SHOWN_METRICS = (
    "scheduler_schedule_attempts_total",
    "scheduler_pending_pods",
    "graphsched_bind_total",
    "graphsched_class_cache_hits_total",
    "graphsched_graph_vertices",
)


def main() -> int:
    """Run the demo; returns 0."""
    heading("A real control plane")
    print("  etcd, kube-apiserver, kube-controller-manager, kwok (the first run builds them: some minutes)", flush=True)
    begun = time.monotonic()
    with (
        clusters.Cluster(clusters.Options(kwok=True, controller_manager=True)) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        for number in range(1, 7):
            cluster.call("POST", "/api/v1/nodes", node(f"node-{number}", zone=f"zone-{'ab'[number % 2]}"))
        wait("the nodes are ready", lambda: ready_nodes(cluster) == 6)
        print(
            f"  up in {time.monotonic() - begun:.1f} s at {cluster.server}, 6 nodes of 4 CPUs, node-6 is for databases"
        )

        heading("The scheduler")
        with scheduler(cluster, pathlib.Path(folder)) as port:
            print(
                f"  graphsched run --kubeconfig … --port {port}     ready, metrics at http://127.0.0.1:{port}/metrics"
            )
            deployed(cluster)
            explained(cluster, port)
            woken(cluster)
            measured(port)
    what_next()
    return 0


def deployed(cluster: clusters.Cluster) -> None:
    """A Deployment whose pods ask for us."""
    heading("A Deployment with schedulerName: graph-scheduler")
    begun = time.monotonic()
    cluster.call("POST", DEPLOYMENTS, deployment("web", replicas=8, cpu="2"))
    wait("its pods run", lambda: phases(cluster, "web").count("Running") == 8)
    print(f"  8 pods of 2 CPUs run after {time.monotonic() - begun:.1f} s")
    for pod in named(cluster, "web"):
        print(f"    {pod['metadata']['name']:<24} {pod['status']['phase']:<8} {pod['spec']['nodeName']}")


def explained(cluster: clusters.Cluster, port: int) -> None:
    """Why here, why not at all."""
    heading("Why is it there?")
    explain(named(cluster, "web")[0]["metadata"]["name"], port)
    heading("And one that does not fit")
    cluster.call("POST", DEPLOYMENTS, deployment("big", replicas=1, cpu="3"))
    wait("it is refused", lambda: bool(message(cluster, "big")))
    print(f"  its PodScheduled condition says: {message(cluster, 'big')}\n")
    explain(named(cluster, "big")[0]["metadata"]["name"], port)


def woken(cluster: clusters.Cluster) -> None:
    """What makes room wakes it."""
    heading("Make room: scale web from 8 to 4")
    cluster.call("PUT", f"{DEPLOYMENTS}/web", deployment("web", replicas=4, cpu="2"))
    begun = time.monotonic()
    wait("it runs", lambda: phases(cluster, "big") == ["Running"])
    where = named(cluster, "big")[0]["spec"]["nodeName"]
    print(f"  {named(cluster, 'big')[0]['metadata']['name']} runs on {where}, {time.monotonic() - begun:.1f} s later")


def measured(port: int) -> None:
    """What an operator watches."""
    heading("Metrics, named as kube-scheduler's where they mean the same")
    for line in read(port, "/metrics").splitlines():
        if line.startswith(SHOWN_METRICS) and not line.endswith(" 0.0"):
            print(f"  {line}")


def what_next() -> None:
    """Close with commands that work as they are."""
    heading("What next")
    print(
        """\
  your own cluster     .venv/bin/graphsched run --kubeconfig ~/.kube/config
  what if, offline     .venv/bin/graphsched snapshot -o cluster.json; .venv/bin/graphsched simulate cluster.json
  install in cluster   charts/graphsched
  beside kube-scheduler, measured    make bench-live""",
        flush=True,
    )


# ------------------------------------------------------------------------------------------------ the scheduler


@contextlib.contextmanager
def scheduler(cluster: clusters.Cluster, folder: pathlib.Path) -> Iterator[int]:
    """`graphsched run` on the cluster, ready; gives its port and ends it as Kubernetes would."""
    port = processes.free_ports(1)[0]
    command = [*GRAPHSCHED, "run", "--kubeconfig", str(cluster.kubeconfig), "--port", str(port)]
    process = processes.Process("graphsched", command, log=folder / "graphsched.log")
    try:
        wait("graphsched is ready", lambda: is_ready(port), watched=(process,))
        yield port
        heading("SIGTERM")
        print(f"  in-flight bindings end, exit code {process.stop()}")
    finally:
        process.kill()


def is_ready(port: int) -> bool:
    """Whether it says so."""
    try:
        return read(port, "/readyz") == "ok"
    except OSError:
        return False


def read(port: int, path: str) -> str:
    """One of its pages."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        text: bytes = answer.read()
    return text.decode()


def explain(pod: str, port: int) -> None:
    """What `graphsched explain` says, asked of the running scheduler."""
    command = [*GRAPHSCHED, "explain", pod, "--server", f"http://127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    print("\n".join(f"  {line}" for line in (done.stdout or done.stderr).splitlines()))


# -------------------------------------------------------------------------------------------------- the cluster


def node(name: str, *, zone: str) -> dict[str, Any]:
    """A node of 4 CPUs; the last one is tainted for databases."""
    taints = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}] if name.endswith("6") else []
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}},
        "spec": {"taints": taints},
        "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
    }


def deployment(name: str, *, replicas: int, cpu: str) -> dict[str, Any]:
    """A Deployment whose pods this scheduler places."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"schedulerName": SCHEDULER, "containers": [container]},
            },
        },
    }


def named(cluster: clusters.Cluster, app: str) -> list[dict[str, Any]]:
    """The pods of a Deployment, sorted by name."""
    items: list[dict[str, Any]] = cluster.call("GET", f"{PODS}?labelSelector=app%3D{app}")["items"]
    return sorted(items, key=lambda item: str(item["metadata"]["name"]))


def phases(cluster: clusters.Cluster, app: str) -> list[str]:
    """The phases of its pods."""
    return [item["status"].get("phase", "") for item in named(cluster, app)]


def message(cluster: clusters.Cluster, app: str) -> str:
    """What the PodScheduled condition of its first pod says."""
    for item in named(cluster, app):
        for condition in item["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition.get("message", ""))
    return ""


def ready_nodes(cluster: clusters.Cluster) -> int:
    """Nodes that are ready and that a controller has freed of the taint new nodes carry."""
    count = 0
    for item in cluster.call("GET", "/api/v1/nodes")["items"]:
        waits = any("not-ready" in taint["key"] for taint in item["spec"].get("taints", ()))
        ready = any(
            each["type"] == "Ready" and each["status"] == "True" for each in item["status"].get("conditions", ())
        )
        count += ready and not waits
    return count


def wait(what: str, happened: Callable[[], bool], *, watched: tuple[processes.Process, ...] = ()) -> None:
    """Wait until it has happened."""
    processes.wait_until(happened, what=what, timeout_s=60, watched=watched)


def heading(text: str) -> None:
    """A line that stands out, in bold where that is possible."""
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (processes.DeadlineError, processes.ProcessDiedError, json.JSONDecodeError) as error:
        sys.exit(f"cluster-demo: {error}")
