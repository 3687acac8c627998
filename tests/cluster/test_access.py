"""Who may read the metrics of `graphsched run`: what a real API server says of real tokens, on TLS.

Simulated: nothing. The scheduler runs as a service account with the rights of the documentation, as in a cluster.
"""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, objects, processes

pytestmark = pytest.mark.cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG = "http: {host: 127.0.0.1, auth: delegated, tls: {selfSigned: true}}\n"
LOOKS: list[dict[str, Any]] = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["services", "replicationcontrollers"], "verbs": ["list", "watch"]},
    {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets"], "verbs": ["list", "watch"]},
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
]


@contextlib.contextmanager
def bound(cluster: clusters.Cluster, account: str, *rules: dict[str, Any], role: str = "") -> Iterator[None]:
    """A service account of `default` with these rules, or with a role that is there already, for a while."""
    name = f"{account}-{role.replace(':', '-') or 'rules'}"
    if not role:
        cluster.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role or name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }
    cluster.call("POST", f"{RBAC}/clusterrolebindings", binding)
    try:
        yield
    finally:
        cluster.call("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        if not role:
            cluster.call("DELETE", f"{RBAC}/clusterroles/{name}")


def of_another_audience(cluster: clusters.Cluster, account: str) -> str:
    """A token that is meant for somebody else than the API server."""
    path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
    answer = cluster.call("POST", path, {"spec": {"audiences": ["vault"], "expirationSeconds": 600}})
    return str(answer["status"]["token"])


def test_the_api_server_says_who_reads_metrics(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """A scraper with the right reads metrics and nothing else; others get 401 or 403; probes get their answer."""
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="1"))
    ours, scraper, other = (
        cluster.service_account_token("default", name) for name in ("graphsched-access", "scraper", "other")
    )
    kubeconfig = cluster.kubeconfig_with_token("graphsched-access", ours)
    with contextlib.ExitStack() as stack:
        stack.enter_context(bound(cluster, "graphsched-access", *LOOKS))
        stack.enter_context(bound(cluster, "scraper", {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}))
        running = stack.enter_context(
            scheduling.scheduler(cluster, tmp_path / "log", kubeconfig=kubeconfig, config=CONFIG, scheme="https")
        )
        # Its own rights to ask are missing, and that is said to whoever asks and in the log.
        status, text = running.ask("/metrics", token=scraper)
        assert (503, True) == (status, "bind the ClusterRole system:auth-delegator" in text)
        assert "system:auth-delegator" in running.process.tail(50)

        stack.enter_context(bound(cluster, "graphsched-access", role="system:auth-delegator"))
        processes.wait_until(
            lambda: running.ask("/metrics", token=scraper)[0] == 200,
            what="the scraper is let in",
            timeout_s=20.0,
            watched=[running.process],
        )
        status, text = running.ask("/metrics", token=scraper)
        assert (200, True) == (status, 'scheduler_cache_size{type="nodes"} 1.0' in text)
        for path in ("/debug/graph", "/debug/decisions", "/configz", "/"):
            status, text = running.ask(path, token=scraper)
            assert 403 == status
            assert f"system:serviceaccount:default:scraper may not get {path}" in text
        for token, expected in (
            (other, 403),
            ("garbage", 401),
            (scraper[:-6] + "AAAAAA", 401),
            (of_another_audience(cluster, "scraper"), 401),
            ("", 401),
        ):
            assert expected == running.ask("/metrics", token=token)[0]
        assert [(200, "ok")] * 3 == [running.ask(path) for path in ("/healthz", "/readyz", "/livez")]
        log = running.process.log.read_text()
        assert not any(token in log or token.rpartition(".")[2] in log for token in (ours, scraper, other))
        assert 0 == running.process.stop(timeout_s=30.0)
