"""The bytes of an encoded patch as named arrays, and back: all that the codec knows of FlatBuffers.

A buffer of `schemas/delta_graph.fbs` is a table of vectors of fixed-size rows, each of which numpy maps without
copying; walking them element by element through the generated code costs a thousand times as much. The Python runtime
of FlatBuffers has no verifier, and follows whatever offsets it reads, so `read` checks every offset and length itself
before it maps anything.

Comes in: arrays, from `packing`; untrusted bytes, from `codec`. Goes out: bytes; arrays, to `unpacking`. Invariant:
`read` returns arrays that lie within the buffer, or a sentence, and never raises. What the rows mean is not known here.
"""

from __future__ import annotations

import struct
import typing
from collections.abc import Callable

import flatbuffers
import numpy as np
import numpy.typing as npt

from graphsched.graph.generated import DeltaGraph, StreamRow

IDENTIFIER = b"GSDG"
_U32, _I32, _I64, _F64 = "<u4", "<i4", "<i8", "<f8"


def _dtype(**columns: str) -> np.dtype[np.void]:
    return np.dtype(list(columns.items()))


def _texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, _U32)


STREAM = _dtype(epoch=_I64, sequence=_I64, **_texts("source", "reserved"))
LABEL = _dtype(**_texts("key", "value"))
AMOUNT = _dtype(amount=_I64, **_texts("name", "reserved"))
TAINT = _dtype(**_texts("key", "value", "effect"))
IMAGE = _dtype(size=_I64, **_texts("names", "reserved"))
NODE = _dtype(
    **_texts("name", "uid", "labels", "taints", "allocatable", "images", "features", "gpu_model", "gpus", "flags")
)
POD = _dtype(
    held_cpu=_I64,
    held_memory=_I64,
    created=_F64,
    started=_F64,
    **_texts("key", "uid", "spec", "labels", "held", "node", "nominated", "scheduler", "gates", "devices"),
    priority=_I32,
    flags=_U32,
)
NAMESPACE = _dtype(**_texts("name", "labels"))
PRIORITY_CLASS = _dtype(name=_U32, value=_I32, flags=_U32)
LINK = _dtype(latency_ms=_F64, bandwidth_mbps=_F64, health=_F64, **_texts("source", "target"))
SELECTION = _dtype(**_texts("key", "selector"))
OWNER = _dtype(**_texts("pod", "owner"))
RECORD = _dtype(**_texts("key", "value"))
CONTAINS = _dtype(**_texts("source", "target", "by"))
SOURCED_LINK = _dtype(
    latency_ms=_F64,
    bandwidth_mbps=_F64,
    health=_F64,
    at=_F64,
    cost=_I64,
    **_texts("source", "target", "by", "reserved"),
)
ADDRESS = _dtype(**_texts("node", "addresses"))
BUDGET = _dtype(**_texts("node", "value"))
RUNS = _dtype(**_texts("source", "target", "uid", "devices"))
CUT = _dtype(**_texts("source", "target", "kind"))
NUMBER = np.dtype(_U32)
BYTE = np.dtype(np.uint8)

STREAM_SLOT = 0
"""Id of the only field that is no vector."""

VECTORS: dict[str, tuple[int, np.dtype[np.generic]]] = {
    "text": (1, BYTE),
    "text_ends": (2, NUMBER),
    "labels": (3, LABEL),
    "label_ends": (4, NUMBER),
    "amounts": (5, AMOUNT),
    "amount_ends": (6, NUMBER),
    "taints": (7, TAINT),
    "taint_ends": (8, NUMBER),
    "images": (9, IMAGE),
    "image_ends": (10, NUMBER),
    "names": (11, NUMBER),
    "name_ends": (12, NUMBER),
    "devices": (13, NUMBER),
    "device_ends": (14, NUMBER),
    "specs": (15, NUMBER),
    "removed": (16, NUMBER),
    "cut": (17, CUT),
    "nodes": (18, NODE),
    "pods": (19, POD),
    "namespaces": (20, NAMESPACE),
    "priority_classes": (21, PRIORITY_CLASS),
    "links": (22, LINK),
    "runs": (23, RUNS),
    "selections": (24, SELECTION),
    "owners": (25, OWNER),
    "records": (26, RECORD),
    "contains": (27, CONTAINS),
    "sourced_links": (28, SOURCED_LINK),
    "addresses": (29, ADDRESS),
    "budgets": (30, BUDGET),
}
"""Name → field id in the schema and row type."""

_FIELDS = 1 + len(VECTORS)

_ADD: dict[str, Callable[[flatbuffers.Builder, int], None]] = {
    "text": DeltaGraph.DeltaGraphAddText,
    "text_ends": DeltaGraph.DeltaGraphAddTextEnds,
    "labels": DeltaGraph.DeltaGraphAddLabels,
    "label_ends": DeltaGraph.DeltaGraphAddLabelEnds,
    "amounts": DeltaGraph.DeltaGraphAddAmounts,
    "amount_ends": DeltaGraph.DeltaGraphAddAmountEnds,
    "taints": DeltaGraph.DeltaGraphAddTaints,
    "taint_ends": DeltaGraph.DeltaGraphAddTaintEnds,
    "images": DeltaGraph.DeltaGraphAddImages,
    "image_ends": DeltaGraph.DeltaGraphAddImageEnds,
    "names": DeltaGraph.DeltaGraphAddNames,
    "name_ends": DeltaGraph.DeltaGraphAddNameEnds,
    "devices": DeltaGraph.DeltaGraphAddDevices,
    "device_ends": DeltaGraph.DeltaGraphAddDeviceEnds,
    "specs": DeltaGraph.DeltaGraphAddSpecs,
    "removed": DeltaGraph.DeltaGraphAddRemoved,
    "cut": DeltaGraph.DeltaGraphAddCut,
    "nodes": DeltaGraph.DeltaGraphAddNodes,
    "pods": DeltaGraph.DeltaGraphAddPods,
    "namespaces": DeltaGraph.DeltaGraphAddNamespaces,
    "priority_classes": DeltaGraph.DeltaGraphAddPriorityClasses,
    "links": DeltaGraph.DeltaGraphAddLinks,
    "runs": DeltaGraph.DeltaGraphAddRuns,
    "selections": DeltaGraph.DeltaGraphAddSelections,
    "owners": DeltaGraph.DeltaGraphAddOwners,
    "records": DeltaGraph.DeltaGraphAddRecords,
    "contains": DeltaGraph.DeltaGraphAddContains,
    "sourced_links": DeltaGraph.DeltaGraphAddSourcedLinks,
    "addresses": DeltaGraph.DeltaGraphAddAddresses,
    "budgets": DeltaGraph.DeltaGraphAddBudgets,
}


class Tables(typing.NamedTuple):
    """The content of one buffer: `stream` has one row or none, `rows` an array for each name in `VECTORS`."""

    stream: npt.NDArray[np.void]
    rows: dict[str, npt.NDArray[typing.Any]]


def write(tables: Tables) -> bytes:
    """The buffer that holds these arrays; empty ones are left out."""
    content = {name: rows for name, rows in tables.rows.items() if len(rows)}
    builder = flatbuffers.Builder(sum(rows.nbytes + 32 for rows in content.values()) + 512)
    offsets = {name: write_vector(builder, content[name]) for name in VECTORS if name in content}
    DeltaGraph.DeltaGraphStart(builder)
    for name, offset in offsets.items():
        _ADD[name](builder, offset)
    for row in tables.stream.tolist():
        DeltaGraph.DeltaGraphAddStream(builder, StreamRow.CreateStreamRow(builder, *row))
    builder.Finish(DeltaGraph.DeltaGraphEnd(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def write_vector(builder: flatbuffers.Builder, rows: npt.NDArray[typing.Any]) -> int:
    """Lay out a vector of these rows as one block; returns its offset."""
    data = rows.tobytes()
    # Rows with a 64-bit column are aligned to 8 bytes, as the compiler's own code aligns them.
    builder.StartVector(rows.itemsize, len(rows), 8 if rows.itemsize % 8 == 0 and _is_wide(rows.dtype) else 4)
    builder.head = builder.head - len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())


def _is_wide(dtype: np.dtype[typing.Any]) -> bool:
    return dtype.itemsize == 8 if dtype.names is None else any(dtype[name].itemsize == 8 for name in dtype.names)


def read(buffer: bytes | memoryview, *, rows_max: int) -> Tables | str:
    """The arrays in a buffer, mapped read-only, or what is wrong with it.

    Args:
        buffer: Any bytes.
        rows_max: No vector may have more rows; the bytes of `text` are no rows.
    """
    size = len(buffer)
    slots = root_slots(buffer, IDENTIFIER, _FIELDS)
    if isinstance(slots, str):
        return slots
    stream: npt.NDArray[np.void] = np.zeros(0, STREAM)
    if slots.get(STREAM_SLOT):
        if slots[STREAM_SLOT] + STREAM.itemsize > size:
            return "the stream lies outside the buffer"
        stream = np.frombuffer(buffer, STREAM, 1, slots[STREAM_SLOT])
    rows: dict[str, npt.NDArray[typing.Any]] = {}
    for name, (slot, dtype) in VECTORS.items():
        vector = mapped(buffer, slots.get(slot), dtype, size if name == "text" else rows_max)
        if isinstance(vector, str):
            return f"{name}: {vector}"
        rows[name] = vector
    return Tables(stream, rows)


def root_slots(buffer: bytes | memoryview, identifier: bytes, fields: int) -> dict[int, int] | str:
    """Where in the buffer each present field of the root table is, by field id; or what is wrong with it.

    Args:
        buffer: Any bytes.
        identifier: What the buffer has to be.
        fields: How many fields its table may have.
    """
    size = len(buffer)
    if size < 8 or buffer[4:8] != identifier:
        return f"the buffer is no {identifier.decode()}"
    (root,) = struct.unpack_from("<I", buffer, 0)
    if root < 8 or root + 4 > size:
        return "the root table lies outside the buffer"
    (back,) = struct.unpack_from("<i", buffer, root)
    table = root - back
    if table < 8 or table + 4 > size:
        return "the field table lies outside the buffer"
    table_size, root_size = struct.unpack_from("<HH", buffer, table)
    if table_size < 4 or table_size % 2 or table + table_size > size or root_size < 4 or root + root_size > size:
        return "the field table does not fit the buffer"
    offsets = struct.unpack_from(f"<{(table_size - 4) // 2}H", buffer, table + 4)
    if any(offsets[fields:]):
        return "it has fields that this version does not know"
    if any(offset and not 4 <= offset <= root_size - 4 for offset in offsets):
        return "a field lies outside its table"
    return {slot: root + offset for slot, offset in enumerate(offsets) if offset}


def mapped(
    buffer: bytes | memoryview, at: int | None, dtype: np.dtype[typing.Any], rows_max: int
) -> npt.NDArray[typing.Any] | str:
    """The rows of the vector that the field at this place names, mapped; none for a field that is not there."""
    if at is None:
        return np.zeros(0, dtype)
    (forward,) = struct.unpack_from("<I", buffer, at)
    start = at + forward
    if start + 4 > len(buffer):
        return "the vector lies outside the buffer"
    (count,) = struct.unpack_from("<I", buffer, start)
    if count > rows_max:
        return f"{count} rows are more than the {rows_max} allowed"
    if start + 4 + count * dtype.itemsize > len(buffer):
        return f"{count} rows do not fit the buffer"
    return np.frombuffer(buffer, dtype, count, start + 4)
