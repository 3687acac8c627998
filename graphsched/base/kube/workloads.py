"""Workloads in a manifest, as the pods their controllers would make.

Without a cluster there is no controller, so a Deployment, ReplicaSet, ReplicationController, StatefulSet or Job comes
in and its pods go out, numbered from 0: `web-0`, `web-1`. Random suffixes would make every run of a simulation another
one. `defaults` and `pods` then treat them as any other pod.
"""

from __future__ import annotations

import msgspec

from graphsched.base.kube import complaints, wire
from graphsched.base.values import errors, selections

REPLICAS_MAX = 200_000
"""Of one workload; more is a slip of the keyboard, and would fill the memory before anybody saw it."""


class Template(wire.Body, frozen=True, gc=False):
    """The pod that a workload repeats."""

    metadata: wire.Metadata = wire.Metadata()
    spec: wire.PodSpec = wire.PodSpec()


class WorkloadSpec(wire.Body, frozen=True, gc=False):
    """spec of a workload; each kind uses some of the fields."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool = False
    template: Template = Template()
    volume_claim_templates: list[wire.Bookmark] | None = None


class Workload(wire.Body, frozen=True, gc=False):
    """A workload."""

    metadata: wire.Metadata = wire.Metadata()
    spec: WorkloadSpec = WorkloadSpec()

    @property
    def managed(self) -> bool:
        """Whether its pods are somebody's: it comes from a cluster, or another workload owns it."""
        return bool(self.metadata.uid) or any(owner.controller for owner in self.metadata.owner_references or ())


CODECS = {
    kind: wire.Codec(kind, Workload)
    for kind in ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "Job")
}


def replica_set_name(deployment: str) -> str:
    """Name of the ReplicaSet that a Deployment's pods are made to belong to. No manifest can have one of this name."""
    return f"{deployment}."


def expand(kind: str, body: Workload) -> list[wire.Pod]:
    """The pods of a workload of this kind, in order.

    Raises:
        InputError: The number of replicas is out of range.
    """
    count = _count(kind, body)
    labels = body.spec.template.metadata.labels or {}
    if kind == "Job":
        labels = {**labels, "job-name": body.metadata.name, "batch.kubernetes.io/job-name": body.metadata.name}
    return [_pod(kind, body, labels, index) for index in range(count)]


def _count(kind: str, body: Workload) -> int:
    spec = body.spec
    if spec.suspend:
        return 0
    field, given = ("parallelism", spec.parallelism) if kind == "Job" else ("replicas", spec.replicas)
    count = 1 if given is None else given
    if not 0 <= count <= REPLICAS_MAX:
        title = complaints.title(kind, {"metadata": msgspec.to_builtins(body.metadata)})
        problem = f"{count} is out of range"
        raise errors.InputError(title, f"spec.{field}", problem=problem, remedy=f"use 0 to {REPLICAS_MAX}")
    return count if spec.completions is None else min(count, spec.completions)


def _pod(kind: str, body: Workload, labels: dict[str, str], index: int) -> wire.Pod:
    name = f"{body.metadata.name}-{index}"
    spec = body.spec.template.spec
    if kind == "StatefulSet":
        pod_index = {"apps.kubernetes.io/pod-index": str(index), "statefulset.kubernetes.io/pod-name": name}
        labels = {**labels, **pod_index}
        claims = [
            wire.Volume(
                name=claim.metadata.name,
                persistent_volume_claim=wire.ClaimSource(f"{claim.metadata.name}-{name}"),
            )
            for claim in body.spec.volume_claim_templates or ()
        ]
        if claims:
            claimed = {claim.name for claim in claims}
            others = [volume for volume in spec.volumes or () if volume.name not in claimed]
            spec = msgspec.structs.replace(spec, volumes=[*others, *claims])
    elif kind == "Job" and body.spec.completion_mode == "Indexed":
        labels = {**labels, "batch.kubernetes.io/job-completion-index": str(index)}
    metadata = wire.Metadata(
        name=name, namespace=body.metadata.namespace, labels=labels, owner_references=_owners(kind, body.metadata.name)
    )
    return wire.Pod(metadata=metadata, spec=spec)


def _owners(kind: str, name: str) -> list[wire.Owner] | None:
    """The controller of a workload's pods, where it is of a kind whose selector spreads them."""
    if kind == "Deployment":
        kind, name = selections.REPLICA_SET, replica_set_name(name)
    api_version = selections.API_VERSIONS.get(kind)
    return None if api_version is None else [wire.Owner(api_version, kind, name, controller=True)]
