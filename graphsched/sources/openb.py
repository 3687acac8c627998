"""The openb trace (nodes and pods of a GPU-sharing cluster) as a cluster.

CSV files come in, of nodes, of pods or of both kinds, a `state.ClusterState` goes out: nodes with shareable GPUs, and
every pod pending in the order of its file, as the published experiments replay them. Phases and times of the original
run do not steer anything; the time of creation is kept.

What the trace does not know: it bounds no node's number of pods, so a node takes `PODS_PER_NODE`; it names no images,
labels or schedulers. A node carries its hostname and its GPU model as labels, for topology and selectors.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence

from graphsched.base.values import errors, keys, nodes, pods
from graphsched.sources import documents, state, yamls

NAMESPACE = "openb"
PODS_PER_NODE = 1000
"""So many that it never decides: the trace bounds CPU, memory and GPUs only, and its pods ask for 1 CPU and more, while
its largest node has 128."""
MODEL_LABEL = "openb/gpu-model"
HOSTNAME_LABEL = "kubernetes.io/hostname"
MILLI_PER_GPU = 1000
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MIB = 1 << 20
_NUMBER_MAX = 1 << 40
"""Above any milli-CPU, MiB or second of a real node; keeps bytes within 64 bits."""


class _Row:
    """One line of a file, split at commas."""

    def __init__(self, place: str, line: int, header: dict[str, int], text: str) -> None:
        self._place = place
        self._line = line
        self._header = header
        self._cells = text.split(",")
        if len(self._cells) != len(header):
            raise errors.InputError(
                f"{place}:{line}",
                problem=f"has {len(self._cells)} columns, not {len(header)}",
                remedy="keep as many as the header has",
            )

    def text(self, column: str) -> str:
        """The cell of a column, empty where the file has no such column."""
        index = self._header.get(column)
        return "" if index is None else self._cells[index].strip()

    def number(self, column: str, *, most: int = _NUMBER_MAX) -> int:
        """The cell as an integer from 0 to `most`."""
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) <= most):
            shown = f'"{yamls.shortened(text)}" is not a whole number from 0 to {most}'
            raise self.mistake(column, shown, "correct the cell")
        return int(text)

    def mistake(self, column: str, problem: str, remedy: str) -> errors.InputError:
        """The error of a cell, with the column it begins in, counted from 1."""
        index = self._header.get(column, 0)
        at = sum(len(cell) + 1 for cell in self._cells[:index]) + 1
        return errors.InputError(f"{self._place}:{self._line}:{at}", column, problem=problem, remedy=remedy)


class _Reader:
    """Collects nodes and pods of several files; every name once."""

    def __init__(self) -> None:
        self.nodes: dict[str, nodes.Node] = {}
        self.pods: dict[str, pods.Pod] = {}
        self._first: dict[tuple[str, str], str] = {}
        self._specs: dict[tuple[object, ...], pods.Spec] = {}

    def node(self, row: _Row, place: str) -> None:
        """Take a row of a node file."""
        name = self._claim(row, "sn", place)
        model = row.text("model")
        gpus = row.number("gpu", most=64)
        if gpus and not model:
            raise row.mistake("model", "is missing though the node has GPUs", "name the GPU model")
        labels = [(HOSTNAME_LABEL, name), (MODEL_LABEL, model)]
        self.nodes[name] = nodes.Node(
            name=name,
            labels=tuple(labels if gpus else labels[:1]),
            allocatable=(
                (nodes.CPU, row.number("cpu_milli")),
                (nodes.MEMORY, row.number("memory_mib") * _MIB),
                (nodes.PODS, PODS_PER_NODE),
            ),
            gpu_model=model if gpus else "",
            gpus=gpus,
        )

    def pod(self, row: _Row, place: str) -> None:
        """Take a row of a pod file."""
        name = self._claim(row, "name", place)
        cpu, memory = row.number("cpu_milli"), row.number("memory_mib") * _MIB
        gpu = _gpu(row)
        identity = (cpu, memory, gpu)
        spec = self._specs.get(identity)
        if spec is None:
            amounts = tuple(
                (resource, amount) for resource, amount in ((nodes.CPU, cpu), (nodes.MEMORY, memory)) if amount
            )
            # A trace says 0 where it means 0, so the score's default requests do not apply.
            demand = pods.Demand(amounts=amounts, scored_cpu=cpu, scored_memory=memory)
            spec = self._specs[identity] = pods.Spec(demand=demand, gpu=gpu)
        created = row.number("creation_time") if row.text("creation_time") else 0
        self.pods[name] = pods.Pod(
            key=keys.pod_key(NAMESPACE, name),
            spec=spec,
            held=spec.demand,
            created=float(created),
        )

    def _claim(self, row: _Row, column: str, place: str) -> str:
        name = row.text(column)
        if not name or "/" in name:
            raise row.mistake(column, f'"{yamls.shortened(name)}" is not a name', "name the row, without a slash")
        first = self._first.setdefault((column, name), place)
        if first is not place:
            raise row.mistake(column, f'"{name}" is there twice, first at {first}', "remove or rename one")
        return name


def _gpu(row: _Row) -> pods.GpuDemand | None:
    """The shareable GPUs of a pod."""
    count = row.number("num_gpu", most=64)
    milli = row.number("gpu_milli", most=MILLI_PER_GPU)
    if not count:
        if milli:
            raise row.mistake("gpu_milli", f"is {milli} though num_gpu is 0", "set one of them right")
        return None
    if not milli:
        raise row.mistake("gpu_milli", f"is 0 though num_gpu is {count}", "set one of them right")
    if count > 1 and milli < MILLI_PER_GPU:
        raise row.mistake("gpu_milli", f"is {milli} of each of {count} GPUs", "a part is of one GPU only")
    models = sorted({model for model in row.text("gpu_spec").split("|") if model})
    return pods.GpuDemand(count, milli, tuple(models))


def is_openb(path: str) -> bool:
    """Whether the file begins with the header of one of the trace's files.

    Raises:
        InputError: The file can not be read.
    """
    line = documents.first_line(path)
    columns = tuple(cell.strip() for cell in line.split(","))
    return columns[: len(_NODE_COLUMNS)] == _NODE_COLUMNS or columns[: len(_POD_COLUMNS)] == _POD_COLUMNS


def read(paths: Sequence[str]) -> state.ClusterState:
    """The cluster in these node and pod files, told apart by their headers.

    Raises:
        InputError: A file or a cell is not what it should be; the place is `file:line:column`.
    """
    reader = _Reader()
    for path in paths:
        _read_file(reader, path)
    used = (nodes.Namespace(NAMESPACE, (("kubernetes.io/metadata.name", NAMESPACE),)),) if reader.pods else ()
    return state.ClusterState(nodes=tuple(reader.nodes.values()), pods=tuple(reader.pods.values()), namespaces=used)


def _read_file(reader: _Reader, path: str) -> None:
    lines = documents.text_of(path).splitlines()
    if not lines or not lines[0].strip():
        raise errors.InputError(path, problem="is empty", remedy="its first line names the columns")
    columns = [cell.strip() for cell in lines[0].split(",")]
    header = {column: index for index, column in enumerate(columns)}
    if len(header) != len(columns):
        raise errors.InputError(f"{path}:1", problem="names a column twice", remedy="remove one")
    take = _taker(reader, path, header)
    rows = 0
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            take(_Row(path, number, header, line), f"{path}:{number}")
            rows += 1
    if not rows:
        raise errors.InputError(path, problem="has a header and no rows", remedy="give the whole file")


def _taker(reader: _Reader, path: str, header: dict[str, int]) -> Callable[[_Row, str], None]:
    kinds: tuple[tuple[tuple[str, ...], Callable[[_Row, str], None]], ...] = (
        (_NODE_COLUMNS, reader.node),
        (_POD_COLUMNS, reader.pod),
    )
    for columns, take in kinds:
        if columns[0] in header:
            missing = [column for column in columns if column not in header]
            if missing:
                raise errors.InputError(f"{path}:1", problem=f"lacks the column {missing[0]}", remedy=_HEADERS)
            return take
    raise errors.InputError(f"{path}:1", problem="is no header of a node or pod file", remedy=_HEADERS)


_HEADERS: typing.Final = f"a node file has {','.join(_NODE_COLUMNS)}; a pod file {','.join(_POD_COLUMNS)}"
