"""
What advice relies on an API server to do with pods that a scheduling gate holds, and the fake to do alike.

Each test states one fact and runs on both.
"""

from typing import Any

import msgspec
import pytest

from graphsched.base.kube import client as clients
from graphsched.base.values import errors
from tests.contract import targets
from tests.controlplane import objects

IN_DEFAULT = "/api/v1/namespaces/default/pods"
GATE = {"name": "graphsched.io/advise"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LINUX = {"key": "os", "operator": "In", "values": ["linux"]}


def pin(node: str) -> dict[str, Any]:
    """The requirement that names a node."""
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required node affinity."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


async def create(client: clients.Client, **spec: Any) -> dict[str, Any]:
    """Create the pod `web`, gated unless told otherwise."""
    body = objects.pod("web", spec={"schedulingGates": [GATE], **spec})
    made: dict[str, Any] = msgspec.json.decode(await client.post(IN_DEFAULT, body))
    return made


async def change(client: clients.Client, **body: Any) -> dict[str, Any]:
    """Merge into the pod."""
    changed: dict[str, Any] = msgspec.json.decode(await client.patch(f"{IN_DEFAULT}/web", body, kind="merge"))
    return changed


def test_one_patch_ties_a_pod_to_a_node_and_lets_it_go(target: targets.Target) -> None:
    """The terms that were there gain the node's name; what else the affinity says stays."""

    async def body(client: clients.Client) -> None:
        apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]}}
        made = await create(client, affinity={**affinity({"matchExpressions": [LINUX]}), **apart})
        metadata = {name: made["metadata"][name] for name in ("uid", "resourceVersion")}

        tied = affinity({"matchExpressions": [LINUX], "matchFields": [pin("n1")]})
        changed = await change(client, metadata=metadata, spec={"schedulingGates": None, "affinity": tied})

        assert "schedulingGates" not in changed["spec"]
        assert tied["nodeAffinity"] == changed["spec"]["affinity"]["nodeAffinity"]
        assert "podAntiAffinity" in changed["spec"]["affinity"]

    target.run(body)


def test_a_gated_pod_without_affinity_may_be_given_one(target: targets.Target) -> None:
    """It need not have asked for any."""

    async def body(client: clients.Client) -> None:
        await create(client)
        changed = await change(
            client, spec={"schedulingGates": None, "affinity": affinity({"matchFields": [pin("n1")]})}
        )

        assert affinity({"matchFields": [pin("n1")]}) == changed["spec"]["affinity"]

    target.run(body)


def test_a_patch_for_an_older_version_is_a_conflict(target: targets.Target) -> None:
    """Somebody changed the pod between reading and patching: nothing is done."""

    async def body(client: clients.Client) -> None:
        made = await create(client)
        await change(client, metadata={"labels": {"changed": "yes"}})

        with pytest.raises(errors.ConflictError):
            await change(
                client,
                metadata={"resourceVersion": made["metadata"]["resourceVersion"]},
                spec={"schedulingGates": None},
            )

        found = msgspec.json.decode(await client.get(f"{IN_DEFAULT}/web"))
        assert [GATE] == found["spec"]["schedulingGates"]

    target.run(body)


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ([{"matchFields": [pin("n1")]}], "only additions are allowed"),
        ([{"matchExpressions": [LINUX]}, {"matchFields": [pin("n1")]}], "no additions/deletions"),
    ],
)
def test_terms_of_a_gated_pod_only_gain(target: targets.Target, terms: list[dict[str, Any]], told: str) -> None:
    """No requirement goes, and no term comes."""

    async def body(client: clients.Client) -> None:
        await create(client, affinity=affinity({"matchExpressions": [LINUX]}))

        with pytest.raises(errors.ClusterError, match=told) as caught:
            await change(client, spec={"affinity": affinity(*terms)})

        assert 422 == caught.value.status

    target.run(body)


def test_a_term_without_requirements_stays_without(target: targets.Target) -> None:
    """It matches nothing, and must not begin to match."""

    async def body(client: clients.Client) -> None:
        await create(client, affinity=affinity({}, {"matchExpressions": [LINUX]}))

        with pytest.raises(errors.ClusterError, match="only additions are allowed"):
            await change(
                client,
                spec={
                    "affinity": affinity({"matchFields": [pin("n1")]}, {"matchExpressions": [LINUX]}),
                },
            )
        changed = await change(
            client,
            spec={"affinity": affinity({}, {"matchExpressions": [LINUX], "matchFields": [pin("n1")]})},
        )

        assert {} == changed["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]

    target.run(body)


def test_what_a_free_pod_asks_for_can_not_be_changed(target: targets.Target) -> None:
    """Once the gate is gone, a pod is tied for good, and no gate comes back."""

    async def body(client: clients.Client) -> None:
        await create(client)
        tied = affinity({"matchFields": [pin("n1")]})
        await change(client, spec={"schedulingGates": None, "affinity": tied})

        for spec in (
            {"affinity": None},
            {"affinity": affinity({"matchFields": [pin("n2")]})},
            {"nodeSelector": {"os": "linux"}},
            {"schedulingGates": [GATE]},
        ):
            with pytest.raises(errors.ClusterError, match="Forbidden") as caught:
                await change(client, spec=spec)
            assert 422 == caught.value.status

    target.run(body)
