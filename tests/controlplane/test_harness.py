"""
The control plane that other tests stand on does what they rely on.

Real: every process. Left out: containers; kwok answers for the kubelets.
"""

import asyncio

import pytest

from tests.controlplane import api, binaries, cluster as clusters, fixtures, objects

pytestmark = pytest.mark.cluster

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


def test_the_apiserver_says_the_version_that_is_pinned(cluster: clusters.Cluster) -> None:
    """The programs are those of the pinned module, and know it."""
    assert binaries.kubernetes_version() == cluster.call("GET", "/version")["gitVersion"]


@pytest.mark.asyncio
async def test_kwok_makes_a_node_ready_and_runs_a_bound_pod(cluster: clusters.Cluster) -> None:
    """A node without conditions becomes Ready, and a pod that is bound to it becomes Running."""
    async with api.Api(cluster) as client:
        await client.create(NODES, objects.node("n1", ready=False))
        await client.wait_for(NODES, lambda seen: any(map(_is_ready, seen.values())), what="n1 is Ready")
        await client.create(PODS, objects.pod("p1", scheduler="by-hand"))
        await client.bind("p1", "n1")

        running = await client.wait_phase("p1", "Running")

    assert running["spec"]["nodeName"] == "n1"


@pytest.mark.asyncio
async def test_the_shared_cluster_is_empty_at_the_start_of_a_test(cluster: clusters.Cluster) -> None:
    """Whatever ran before, a test finds no nodes and no pods."""
    async with api.Api(cluster) as client:
        found = [*(await client.list(NODES))[0], *(await client.list(PODS))[0]]

    assert found == []


@pytest.mark.asyncio
async def test_a_long_list_comes_whole_and_a_watch_goes_on_from_it(cluster: clusters.Cluster) -> None:
    """Pages are joined, and the watch starts right after the list."""
    async with api.Api(cluster) as client:
        names = {f"/n{number}" for number in range(620)}
        await client.create_many(NODES, (objects.node(name[1:]) for name in names))
        items, since = await client.list(NODES)
        await client.create(NODES, objects.node("one-more"))
        async with asyncio.timeout(20):
            async for event in client.watch(NODES, since=since, fieldSelector="metadata.name=one-more"):
                if event["type"] == "ADDED":
                    break

    assert {api.key_of(item) for item in items} == names


def test_rbac_holds_back_a_user_without_rights(cluster: clusters.Cluster) -> None:
    """A kubeconfig for a user names that user, who may do nothing by default."""
    review = {"spec": {"user": "nobody", "resourceAttributes": {"verb": "list", "resource": "pods"}}}
    answer = cluster.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)

    assert answer["status"]["allowed"] is False
    assert "client-certificate-data" in cluster.kubeconfig_for("nobody").read_text()


def test_a_service_account_gets_a_token(cluster: clusters.Cluster) -> None:
    """The API server signs tokens for service accounts, and knows its own."""
    token = cluster.service_account_token("default", "somebody", expiration_s=600)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = cluster.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)

    assert answer["status"]["user"]["username"] == "system:serviceaccount:default:somebody"


@pytest.mark.asyncio
async def test_kube_scheduler_binds_a_pod_and_leaves_other_schedulers_pods_alone(
    new_cluster: fixtures.NewCluster,
) -> None:
    """With kube-scheduler on, its pods are bound; a pod of another scheduler stays."""
    running = new_cluster(clusters.Options(scheduler=True, authorization="RBAC"))
    async with api.Api(running) as client:
        await client.create(NODES, objects.node("n1"))
        await client.create(PODS, objects.pod("other", scheduler="by-hand"))
        await client.create(PODS, objects.pod("mine"))

        assert await client.wait_bound(1) == {"mine": "n1"}


@pytest.mark.asyncio
async def test_a_deployment_becomes_running_pods(new_cluster: fixtures.NewCluster) -> None:
    """With the controllers, kube-scheduler and kwok on, a Deployment's pods run."""
    running = new_cluster(clusters.Options(scheduler=True, controller_manager=True, kwok=True))
    container = {"name": "web", "image": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    async with api.Api(running) as client:
        await client.create(NODES, objects.node("n1", ready=False))
        await client.create("/apis/apps/v1/namespaces/default/deployments", deployment)

        await client.wait_for(
            PODS,
            lambda seen: [pod["status"]["phase"] for pod in seen.values()] == ["Running"] * 2,
            what="two pods run",
        )


@pytest.mark.asyncio
async def test_an_apiserver_killed_and_restarted_keeps_address_and_data(new_cluster: fixtures.NewCluster) -> None:
    """After SIGKILL and a restart the same clients find the same objects at the same address."""
    running = new_cluster(clusters.Options())
    async with api.Api(running) as client:
        await client.create(NODES, objects.node("n1"))
        before, first = running.server, running.process("apiserver").pid
        running.kill_apiserver()
        with pytest.raises(OSError, match="refused"):
            running.call("GET", "/readyz")
        running.start_apiserver()

        kept = await client.get(f"{NODES}/n1")

    assert (before, "n1") == (running.server, kept["metadata"]["name"])
    assert first != running.process("apiserver").pid


def test_a_rollback_brings_back_what_was_and_its_versions(new_cluster: fixtures.NewCluster) -> None:
    """What was written since never happened, and versions count from the older one again."""
    running = new_cluster(clusters.Options())
    running.call("POST", NODES, objects.node("n1"))
    kept = running.call("GET", f"{NODES}/n1")
    saved = running.save()
    # An API server that starts writes some dozen versions itself.
    for number in range(2, 300):
        running.call("POST", NODES, objects.node(f"n{number}"))
    latest = int(running.call("GET", NODES)["metadata"]["resourceVersion"])

    running.rollback(saved)

    assert {"n1": kept["metadata"]["uid"]} == {
        item["metadata"]["name"]: item["metadata"]["uid"] for item in running.call("GET", NODES)["items"]
    }
    assert int(running.call("POST", NODES, objects.node("n2"))["metadata"]["resourceVersion"]) < latest


def _is_ready(node: api.Object) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
