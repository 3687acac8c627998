"""Why pods of ours ended before they had begun: one read each.

Comes in: pods that were bound and have left the watch, which leaves out pods that have ended and tells no reason. Goes
out: findings, for the loop to fetch in its own time. A kubelet that turns a pod away says so in the pod's status and
nowhere else (`phase: Failed` and a reason such as `OutOfcpu`); the pod's controller soon deletes or replaces it.

It is good to know and nothing depends on it: each pod is read once, one after the other, and what does not fit into the
line is not asked about.
"""

from __future__ import annotations

import asyncio
import collections
import logging
import typing

import msgspec

from graphsched.action import calls
from graphsched.base.kube import wire
from graphsched.base.values import errors, pods

_log = logging.getLogger(__name__)

LENGTH_MAX = 256
"""Pods that wait to be read; more at a time means that a node, or the API server, has other troubles."""
DEADLINE_S = 10.0


class _Status(wire.Body, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""


class _Pod(wire.Body, frozen=True, gc=False):
    metadata: wire.Metadata = wire.Metadata()
    status: _Status = _Status()


_read = wire.Codec("Pod", _Pod)


class Finding(msgspec.Struct, frozen=True, gc=False):
    """How a pod ended.

    Attributes:
        pod: As it was last seen.
        reason: Of its status, e.g. `OutOfcpu`.
        message: Likewise.
    """

    pod: pods.Pod
    reason: str
    message: str


class Inquests:
    """Reads pods that have ended. `run` is an eternal task."""

    def __init__(self, client: calls.Client, *, ready: asyncio.Event) -> None:
        """Prepare; `ready` is set when there is something to fetch, and never cleared here."""
        self._client = client
        self._ready = ready
        self._waiting: collections.deque[pods.Pod] = collections.deque()
        self._more = asyncio.Event()
        self._findings: list[Finding] = []

    def ask(self, pod: pods.Pod) -> None:
        """The pod has left the watch, bound and not yet started."""
        if len(self._waiting) < LENGTH_MAX:
            self._waiting.append(pod)
            self._more.set()

    def fetch(self) -> list[Finding]:
        """What was found since the last call: pods that failed, each with the reason."""
        findings, self._findings = self._findings, []
        return findings

    async def run(self) -> typing.NoReturn:
        """Read until cancelled."""
        while True:
            while self._waiting:
                await self._look(self._waiting.popleft())
            self._more.clear()
            await self._more.wait()

    async def _look(self, pod: pods.Pod) -> None:
        try:
            found = _read.decode(await self._client.get(calls.pod_path(pod), deadline_s=DEADLINE_S))
        except errors.NotFoundError:
            return
        except (errors.ClusterError, errors.InputError) as error:
            _log.warning("why %s ended is not known: %s", pod.full_name, error)
            return
        if found.metadata.uid == pod.uid and found.status.phase == "Failed":
            self._findings.append(Finding(pod, found.status.reason, found.status.message))
            self._ready.set()
