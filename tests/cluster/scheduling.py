"""`graphsched run` as its users start it, on a real control plane, and what a test wants to see of both.

Comes in: a running control plane. Goes out: the process, its port, and the truth about pods as the API server has it.
Invariant: nobody but the API server is asked where a pod is.
"""

import contextlib
import http.client
import json
import pathlib
import ssl
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.controlplane import cluster as clusters, objects, processes

NAME = "graph-scheduler"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

START_S = 30.0


class Scheduler:
    """A running `graphsched run`."""

    def __init__(self, process: processes.Process, port: int, scheme: str) -> None:
        self.process = process
        self.port = port
        self.scheme = scheme

    def ask(self, path: str, *, token: str = "") -> tuple[int, str]:
        """Status and body of one of its pages; a certificate is not checked, as by Prometheus' `insecureSkipVerify`."""
        connection: http.client.HTTPConnection
        if self.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10.0, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10.0)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def read(self, path: str) -> str:
        """The body of one of its pages, whatever the status."""
        return self.ask(path)[1]

    def metric(self, name: str) -> float:
        """The value of a series, spelled as it is scraped; 0 where it does not exist yet."""
        for line in self.read("/metrics").splitlines():
            if line.rpartition(" ")[0] == name:
                return float(line.rpartition(" ")[2])
        return 0.0

    def ready(self) -> bool:
        """Whether it says that it is."""
        try:
            return self.read("/readyz") == "ok"
        except (OSError, http.client.HTTPException):
            return False


@contextlib.contextmanager
def scheduler(
    cluster: clusters.Cluster,
    log: pathlib.Path,
    *,
    kubeconfig: pathlib.Path | None = None,
    config: str = "{}",
    scheme: str = "http",
    elect: bool = False,
) -> Iterator[Scheduler]:
    """A scheduler that has read the cluster, and listens as `scheme` says; killed if the test has not ended it.

    It takes part in an election if asked to: the next one would have to wait for the lease of one that was killed.
    """
    port = processes.free_ports(1)[0]
    settings = log.with_suffix(".yaml")
    settings.write_text(config, encoding="utf-8")
    process = processes.Process(
        "graphsched",
        [
            *(sys.executable, "-m", "graphsched", "run", "--config", settings),
            *("--kubeconfig", kubeconfig or cluster.kubeconfig, "--port", str(port)),
            "--leader-elect" if elect else "--no-leader-elect",
        ],
        log=log,
    )
    running = Scheduler(process, port, scheme)
    try:
        processes.wait_until(running.ready, what="graphsched is ready", timeout_s=START_S, watched=[process])
        yield running
    finally:
        process.kill()


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> objects.Object:
    """A pod of ours."""
    return objects.pod(name, scheduler=NAME, cpu=cpu, spec=spec)


def listed(cluster: clusters.Cluster, path: str) -> list[objects.Object]:
    """The objects of a collection."""
    items: list[objects.Object] = cluster.call("GET", path)["items"]
    return items


def places(cluster: clusters.Cluster) -> dict[str, str]:
    """Pod → node, empty for none."""
    return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in listed(cluster, PODS)}


def condition(cluster: clusters.Cluster, name: str) -> tuple[str, str]:
    """Reason and message of the pod's PodScheduled condition."""
    for each in cluster.call("GET", f"{PODS}/{name}").get("status", {}).get("conditions", []):
        if each["type"] == "PodScheduled":
            return each.get("reason", ""), each.get("message", "")
    return "", ""


def notes(cluster: clusters.Cluster, name: str) -> list[str]:
    """The texts of the events about a pod."""
    return [item["note"] for item in listed(cluster, EVENTS) if item["regarding"]["name"] == name]


def held_milli(cluster: clusters.Cluster) -> Counter[str]:
    """Node → milli-CPU requested by the pods on it."""
    held: Counter[str] = Counter()
    for item in listed(cluster, PODS):
        for container in item["spec"]["containers"]:
            text = container["resources"]["requests"]["cpu"]
            held[item["spec"].get("nodeName", "")] += int(text[:-1]) if text.endswith("m") else 1000 * int(text)
    return held


def wait(what: str, happened: Any, *, timeout_s: float = 30.0, watched: tuple[processes.Process, ...] = ()) -> None:
    """Wait until the cluster shows something."""
    processes.wait_until(happened, what=what, timeout_s=timeout_s, watched=watched)


def decoded(text: str) -> Any:
    """JSON as Python has it."""
    return json.loads(text)
