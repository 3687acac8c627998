"""The annotations that scheduling reads, and no other: an object carries kilobytes of them, which are skipped.

`wire` decodes them with the rest of the metadata; whoever knows what one means reads its text.
"""

from __future__ import annotations

import msgspec

PREFIX = "graphsched.io/"
"""Every one of our own begins so."""


def _ours(name: str) -> str | None:
    return msgspec.field(default=None, name=PREFIX + name)


class Annotations(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """metadata.annotations of any object.

    Attributes:
        cpu_quota: Of a node: the most CPU that pods may ask for together before we place no more there.
        memory_limit_mb: Of a node: the same of memory, in MiB.
        reserved: Of a node: what is kept for whom, as JSON.
        iops: Of a node: I/O operations a second it can do. Of a pod: those it asks for.
        near, peers, max_latency_ms, min_bandwidth_mbps, depends_on: Of a pod: what it asks of the graph, see `demands`.
    """

    cpu_quota: str | None = _ours("cpu-quota")
    memory_limit_mb: str | None = _ours("memory-limit-mb")
    reserved: str | None = _ours("reserved")
    iops: str | None = _ours("iops")
    near: str | None = _ours("near")
    peers: str | None = _ours("peers")
    max_latency_ms: str | None = _ours("max-latency-ms")
    min_bandwidth_mbps: str | None = _ours("min-bandwidth-mbps")
    depends_on: str | None = _ours("depends-on")


NONE = Annotations()
