"""The Lease of coordination.k8s.io/v1: a record in the API server that names who may act, and for how long.

Reads come out as `Lease`; writes go in with what was read, so that each carries the uid and the resourceVersion it
follows: of several writers that saw the same record one succeeds, the others get a `ConflictError`. What a lease means
is decided by `app.leadership`.

Invariants: labels, annotations and owners that others put on the lease survive a write; the times in it are texts for
people and are never compared with a clock.
"""

from __future__ import annotations

import datetime as dt
import typing

import msgspec

from graphsched.base.kube import client as clients, wire
from graphsched.base.values import errors

API = "coordination.k8s.io/v1"


class Spec(wire.Body, frozen=True, gc=False):
    """Who holds the lease. Two of them are equal unless somebody renewed, took, or released it in between.

    Attributes:
        holder_identity: Empty when nobody holds it.
        lease_duration_seconds: For how long others must leave it alone after they saw it change; 0 when not said.
        acquire_time: When the holder took it, by the holder's clock.
        renew_time: When it last said so.
        lease_transitions: How often the holder has changed.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(wire.Body, frozen=True):
    """The object.

    Attributes:
        metadata: All of it, as it came.
        spec: Who holds it.
    """

    metadata: dict[str, typing.Any] = msgspec.field(default_factory=dict)
    spec: Spec = Spec()


class _Body(msgspec.Struct, frozen=True):
    metadata: dict[str, typing.Any]
    spec: Spec
    apiVersion: str = API  # noqa: N815  the API's spelling
    kind: str = "Lease"


_codec = wire.Codec("Lease", Lease)
_encode = msgspec.json.Encoder().encode


class Registry(typing.Protocol):
    """Where one lease is kept. Every method raises `ClusterError`, or `InputError` for an answer that is no lease."""

    async def get(self, *, deadline_s: float) -> Lease:
        """The lease as it is; raises `NotFoundError` when there is none."""
        ...

    async def create(self, spec: Spec, *, deadline_s: float) -> Lease:
        """The lease, made; raises `ConflictError` when there is one."""
        ...

    async def update(self, lease: Lease, spec: Spec, *, deadline_s: float) -> Lease:
        """The lease with another spec; raises `ConflictError` when it is not as it was read any more."""
        ...


class APIRegistry:
    """One lease at the API server. Needs the verbs get, create and update."""

    def __init__(self, client: clients.Client, *, namespace: str, name: str) -> None:
        self._client = client
        self._name = name
        self._collection = f"/apis/{API}/namespaces/{namespace}/leases"

    async def get(self, *, deadline_s: float) -> Lease:
        """See `Registry`."""
        return _codec.decode(await self._client.get(f"{self._collection}/{self._name}", deadline_s=deadline_s))

    async def create(self, spec: Spec, *, deadline_s: float) -> Lease:
        """See `Registry`."""
        body = _encode(_Body({"name": self._name}, spec))
        return _codec.decode(await self._client.post(self._collection, body, deadline_s=deadline_s))

    async def update(self, lease: Lease, spec: Spec, *, deadline_s: float) -> Lease:
        """See `Registry`."""
        if not lease.metadata.get("resourceVersion") or not lease.metadata.get("uid"):
            raise errors.InputError(
                f'Lease "{self._name}"', problem="it has no uid and resourceVersion", remedy="read it first"
            )
        metadata = {name: value for name, value in lease.metadata.items() if name != "managedFields"}
        body = _encode(_Body(metadata, spec))
        return _codec.decode(await self._client.put(f"{self._collection}/{self._name}", body, deadline_s=deadline_s))


def moment(wall: float) -> str:
    """Seconds since the epoch as the API's MicroTime."""
    return dt.datetime.fromtimestamp(wall, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
