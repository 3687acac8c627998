"""The last decisions, kept for whoever asks.

The loop adds an entry for each decision and each outcome; the debug endpoint and `graphsched explain` read them. It is
a ring: memory is bounded, the oldest entry makes room, and the newest of a pod is found without a search.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from graphsched.base.values import keys
from graphsched.decision import trace

CAPACITY = 2000


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One decision.

    Attributes:
        number: Counts up by one with every entry since the start.
        pod: `namespace/name`.
        uid: Its UID.
        time: When, in seconds since the epoch.
        seconds: How long the decision took.
        generation: Of the graph.
        result: `placed` or `refused`.
        node: Chosen node; empty when refused.
        devices: Indices of the GPUs it got.
        score: Total of the chosen node.
        scores: Plugin → its part of the total; empty when scoring was skipped.
        feasible: Number of nodes that passed.
        runners_up: The next best nodes.
        avoided: Nodes that passed and looked worse because their kubelet turned pods away → points that cost them.
        nodes: Number of nodes known; 0 when placed.
        refusals: Reason → number of nodes, when refused.
        plugins: Who refused.
        message: The text written to the pod's condition, when refused.
        attempt: Which attempt on this pod it was.
    """

    number: int
    pod: str
    uid: str
    time: float
    seconds: float
    generation: int
    result: str
    node: str = ""
    devices: tuple[int, ...] = ()
    score: int = 0
    scores: dict[str, int] = {}
    feasible: int = 0
    runners_up: tuple[str, ...] = ()
    avoided: dict[str, int] = {}
    nodes: int = 0
    refusals: dict[str, int] = {}
    plugins: tuple[str, ...] = ()
    message: str = ""
    attempt: int = 1


class History:
    """The last `capacity` decisions."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._of_pod: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(
        self,
        decision: trace.Decision,
        *,
        time: float,
        seconds: float,
        message: str = "",
        attempt: int = 1,
    ) -> Entry:
        """Keep a decision; returns the entry."""
        self._count += 1
        diagnosis = decision.diagnosis
        refusals: dict[str, int] = {}
        if diagnosis is not None:
            whole = dict.fromkeys(diagnosis.prefilter.reasons, diagnosis.nodes) if diagnosis.prefilter else {}
            refusals = whole or dict(diagnosis.reasons)
        entry = Entry(
            number=self._count,
            pod=keys.name_of(decision.pod),
            uid=decision.uid,
            time=time,
            seconds=seconds,
            generation=decision.generation,
            result="placed" if decision.placed else "refused",
            node=decision.node,
            devices=decision.devices,
            score=decision.score,
            scores=dict(decision.scores),
            feasible=decision.feasible,
            runners_up=decision.runners_up,
            avoided=dict(decision.avoided),
            nodes=diagnosis.nodes if diagnosis is not None else 0,
            refusals=refusals,
            plugins=diagnosis.plugins if diagnosis is not None else (),
            message=message,
            attempt=attempt,
        )
        self._entries[entry.number] = entry
        self._of_pod[entry.pod] = entry.number
        if len(self._entries) > self._capacity:
            number, oldest = self._entries.popitem(last=False)
            if self._of_pod.get(oldest.pod) == number:
                del self._of_pod[oldest.pod]
        return entry

    def newest(self, limit: int, pod: str = "") -> list[Entry]:
        """At most `limit` entries, the newest first; of one pod (`namespace/name`) or of all."""
        found: list[Entry] = []
        if pod and pod not in self._of_pod:
            return found
        for entry in reversed(self._entries.values()):
            if len(found) >= limit:
                break
            if not pod or entry.pod == pod:
                found.append(entry)
        return found

    def last_of(self, pod: str) -> Entry | None:
        """The newest entry of a pod."""
        number = self._of_pod.get(pod)
        return None if number is None else self._entries[number]
