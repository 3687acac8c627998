"""Why a pod waits, written where users and autoscalers look: its PodScheduled condition.

Comes in: a pod that found no node and the text that `explain` made. Goes out: a patch of its status, if it says
anything new. When a node is found nothing is written: the API server sets the condition to True with the binding.

Invariants: no patch goes out for a pod whose binding does (the loop discards what waits, and a binding waits for what
is under way), as a late one would call a running pod unscheduled. A server may carry out a patch long after we gave up
waiting for its answer, so each also names the version of the pod that it was written for: a binding makes a new one,
and the late patch comes to nothing. Where the pod has changed otherwise it is read again. The UID is a precondition.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import random
from collections.abc import Callable

import msgspec

from graphsched.action import calls, outlet
from graphsched.base.kit import clock as clocks
from graphsched.base.kube import wire
from graphsched.base.values import errors, keys, pods

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

LENGTH_MAX = 50_000
"""Pods that may wait to be told; about 1 kB each."""
WORKERS = 4
DEADLINE_S = 10.0
READS_MAX = 3
"""So often a pod is read again that others change at the same time; then its condition is said with the next try."""


class _Assignment(wire.Body, frozen=True, gc=False):
    node_name: str = ""


class _Pod(wire.Body, frozen=True, gc=False):
    metadata: wire.Metadata = wire.Metadata()
    spec: _Assignment = _Assignment()


_read = wire.Codec("Pod", _Pod)


class Condition(msgspec.Struct, frozen=True, gc=False):
    """What is to be written.

    Attributes:
        pod: Whose.
        reason: `UNSCHEDULABLE` or `SCHEDULER_ERROR`.
        message: The full text.
        since: Since when the condition holds, seconds since the epoch.
    """

    pod: pods.Pod
    reason: str
    message: str
    since: float


class Conditions:
    """Writes conditions, each once."""

    def __init__(
        self,
        client: calls.Client,
        *,
        rate: outlet.Rate,
        clock: clocks.Clock,
        rng: random.Random,
        version: Callable[[keys.VertexKey, str], str],
        on_end: Callable[[str], None],
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            client: Makes the calls.
            rate: How fast.
            clock: Tells since when a condition holds.
            rng: For the jitter of retries.
            version: The resourceVersion of the pod of this key and UID as the watch last showed it; empty when it is
                not known, and the pod is read.
            on_end: Hears of `written`, `unchanged`, `moot`, `failed` and `dropped`.
        """
        self._client = client
        self._version = version
        self._clock = clock
        self._on_end = on_end
        self._said: dict[keys.VertexKey, Condition] = {}
        self._outlet = outlet.Outlet[keys.VertexKey, Condition](
            "conditions",
            self._send,
            rate=rate,
            length_max=LENGTH_MAX,
            workers=WORKERS,
            rng=rng,
            on_end=self._ended,
            # A pod may sleep for long, and nobody would say it again: a server that is away is waited for.
            tries_max=None,
        )

    def say(self, pod: pods.Pod, *, reason: str, message: str) -> None:
        """Write the condition unless that is what was said last."""
        last = self._said.get(pod.key)
        same = last is not None and last.pod.uid == pod.uid
        if same and last is not None and (last.reason, last.message) == (reason, message):
            self._on_end("unchanged")
            return
        since = last.since if same and last is not None else self._clock.wall()
        condition = self._said[pod.key] = Condition(pod, reason, message, since)
        self._outlet.put(pod.key, condition)

    def forget(self, key: keys.VertexKey) -> None:
        """The pod is gone or bound: say nothing more about it."""
        if self._said.pop(key, None) is not None:
            self._outlet.discard(key)

    def clear(self) -> None:
        """Say nothing of what waits, and take nothing for said: from now on somebody else speaks."""
        self._said.clear()
        self._outlet.clear()

    def hold(self, key: keys.VertexKey) -> asyncio.Future[None] | None:
        """The pod is about to be bound: say nothing more, and tell when what is under way is over."""
        self.forget(key)
        return self._outlet.sending(key)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._outlet.run()

    async def flush(self, *, deadline_s: float) -> int:
        """Write what waits, for so long at most; returns how many are left."""
        return await self._outlet.flush(deadline_s=deadline_s)

    async def _send(self, _key: keys.VertexKey, condition: Condition) -> None:
        pod = condition.pod
        version = self._version(pod.key, pod.uid) or await self._read(pod)
        for reads in range(READS_MAX + 1):
            try:
                await self._client.patch(
                    calls.pod_path(pod, "status"),
                    body(condition, version),
                    kind="strategic-merge",
                    deadline_s=DEADLINE_S,
                )
            except errors.ConflictError:
                if reads == READS_MAX:
                    raise
                version = await self._read(pod)
            else:
                return

    async def _read(self, pod: pods.Pod) -> str:
        """The pod's present version.

        Raises:
            ConflictError: It needs no condition: it is bound, or another pod has its name.
            ClusterError: It can not be read.
        """
        raw = await self._client.get(calls.pod_path(pod), deadline_s=DEADLINE_S)
        try:
            found = _read.decode(raw)
        except errors.InputError as error:
            raise errors.UnreachableError(f"GET {calls.pod_path(pod)}: {error}", reason="Garbled") from error
        if found.metadata.uid != pod.uid or found.spec.node_name:
            raise errors.ConflictError(f"{pod.full_name} waits no more", status=409, reason="Conflict")
        return found.metadata.resource_version

    def _ended(self, key: keys.VertexKey, condition: Condition, end: str) -> None:
        if end != "written" and self._said.get(key) is condition:
            # It is not there, so the next try must not take it for said.
            del self._said[key]
        self._on_end(end)


def body(condition: Condition, version: str) -> bytes:
    """The patch as JSON, for the pod at this resourceVersion and no other."""
    since = dt.datetime.fromtimestamp(condition.since, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {
        "type": "PodScheduled",
        "status": "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastProbeTime": None,
        "lastTransitionTime": since,
    }
    return msgspec.json.encode(
        {"metadata": {"uid": condition.pod.uid, "resourceVersion": version}, "status": {"conditions": [entry]}}
    )
