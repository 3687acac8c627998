"""`graphsched graph`: the graph itself, to look at.

Paths are read as by the other commands that need no API server, or a running scheduler is asked for its own graph. A
map of the layers that were asked for goes out as a tree, JSON, YAML, DOT or a picture; or numbers; or the way from one
vertex to another.
"""

from __future__ import annotations

import enum
import pathlib
from collections.abc import Mapping

import msgspec

from graphsched.app import asking, capturing, offline, settings, targets, terminal
from graphsched.base.kit import clock
from graphsched.base.values import errors, keys
from graphsched.explain import wording
from graphsched.explain.atlas import dot, figures, maps, naming, stats, survey, trees
from graphsched.explain.pictures import network
from graphsched.graph import store, watermarks
from graphsched.sources import captures

DEPTH = 2
"""How far a neighbourhood reaches unless somebody says."""
DEPTH_MAX = 100
_ROWS_MAX = 200


class Drawing(enum.StrEnum):
    """How a map is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    DOT = "dot"
    SVG = "svg"


_ENDINGS = {
    ".svg": Drawing.SVG,
    ".dot": Drawing.DOT,
    ".gv": Drawing.DOT,
    ".json": Drawing.JSON,
    ".yaml": Drawing.YAML,
    ".yml": Drawing.YAML,
}


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where the graph comes from: files, or a running scheduler; and by which settings it is looked at."""

    paths: tuple[str, ...] = ()
    config: str = ""
    from_scheduler: bool = False
    server: asking.Server = asking.Server(url="")


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """What `graphsched graph` was asked for; see its help."""

    source: Source
    layers: tuple[str, ...] = ()
    around: str = ""
    depth: int | None = None
    without: tuple[str, ...] = ()
    output: Drawing | None = None
    to: str = "-"


def load(source: Source) -> store.Store:
    """The graph.

    Raises:
        InputError: The input is not usable, or options do not go together.
        ClusterError: The running scheduler can not be asked.
    """
    asked = source.from_scheduler or bool(source.server.url)
    if not asked:
        for name, value in (
            ("--token-file", source.server.token_file),
            ("--ca-file", source.server.ca_file),
            ("--insecure-skip-tls-verify", source.server.insecure),
        ):
            if value:
                raise errors.InputError(name, problem="is of a scheduler", remedy="add --from-scheduler")
        if not source.paths:
            raise errors.InputError(
                problem="no input", remedy="name manifests, a folder or a snapshot, or add --from-scheduler"
            )
        if len(source.paths) == 1 and captures.is_capture(source.paths[0]):
            return _applied(captures.load(source.paths[0]), source.config)
        cluster = offline.load(source.paths, unknown_nodes=True, config=source.config)
        return offline.graph_of(cluster, sick_below=_sick_below(source.config))
    if source.paths:
        raise errors.InputError(source.paths[0], problem="is of no use with --from-scheduler", remedy="leave one out")
    _, capture = capturing.whole(source.server, instead="use --server, or name files")
    return _applied(capture, source.config)


def _sick_below(config: str) -> float:
    """From which health down links are avoided, by this file of settings."""
    return offline.decider(config).settings.sick_below


def _applied(capture: captures.Capture, config: str) -> store.Store:
    """The graph itself, with all that no manifest says: `captures` has looked through the patch already."""
    graph = store.Store(sick_below=_sick_below(config))
    graph.apply(capture.patch)
    return graph


# ── maps ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def export(options: Export) -> int:
    """Write a map; returns 0.

    Raises:
        InputError: The input is not usable, a vertex is not known, a picture would be too big, or the file can not be
            written.
        ClusterError: The running scheduler can not be asked.
    """
    output = _drawing(options)
    if options.depth is not None and not options.around:
        raise errors.InputError(
            "--depth", problem="is of a neighbourhood", remedy="add --around, e.g. --around node/n1"
        )
    marks = {name: each.marks for name, each in sorted(settings.load(options.source.config).watermarks.items())}
    shown = _chosen(load(options.source), options, marks)
    if output is Drawing.TABLE:
        _write_tree(shown)
        return 0
    match output:
        case Drawing.SVG:
            text = network.draw(shown)
        case Drawing.DOT:
            text = dot.text(shown)
        case _:
            text = terminal.encoded(shown, terminal.Output(output.value))
    with targets.whole(options.to) as write:
        write(text.encode())
    if options.to != "-":
        terminal.note(f"wrote {_counted(shown)} to {options.to}")
    return 0


def _drawing(options: Export) -> Drawing:
    """What to write: what was said, or what the file's name ends with."""
    ending = _ENDINGS.get(pathlib.PurePath(options.to).suffix.lower())
    output = options.output or ending
    if options.to == "-":
        return output or Drawing.TABLE
    if output is None or output is Drawing.TABLE:
        raise errors.InputError(
            "--to", options.to, problem="says not what to write", remedy="end it in .svg, .dot, .json or .yaml"
        )
    return output


def _chosen(graph: store.Store, options: Export, marks: Mapping[str, watermarks.Marks]) -> maps.Map:
    """The part of the graph that was asked for."""
    layers = [layer for layer in maps.Layer if layer.value in options.layers] or list(maps.Layer)
    shown = survey.survey(graph, layers, marks)
    if options.around:
        rules = {vertex.key: vertex.name for vertex in shown.vertices if vertex.kind == keys.Kind.RULE}
        around = naming.find(shown.by_key, options.around, rules)
        shown = shown.neighbourhood(around, DEPTH if options.depth is None else options.depth)
    kinds = {vertex.kind for vertex in shown.vertices}
    for kind in options.without:
        if kind not in kinds:
            raise errors.InputError(
                "--without",
                kind,
                problem="is the kind of no vertex here",
                remedy=f"there are {wording.both(sorted(kinds))}",
            )
    return shown.without(options.without) if options.without else shown


def _write_tree(shown: maps.Map) -> None:
    for line in trees.lines(shown):
        terminal.line(line)
    rows = trees.rows(shown)
    if rows:
        terminal.line()
        columns = [("from", "left"), ("edge", "left"), ("to", "left"), ("", "left")]
        terminal.table(columns, [[row.source, row.kind, row.target, row.words] for row in rows[:_ROWS_MAX]], indent=0)
        if len(rows) > _ROWS_MAX:
            terminal.line(f"… and {len(rows) - _ROWS_MAX:,} more (narrow with --around or --layer)")
    terminal.note(_counted(shown))


def _counted(shown: maps.Map) -> str:
    vertices = wording.count(len(shown.vertices), "vertex", "vertices")
    return f"{vertices} and {wording.count(len(shown.edges), 'edge')}"


# ── numbers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def statistics(source: Source, output: terminal.Output) -> int:
    """Write the graph in numbers; returns 0.

    Raises:
        InputError: The input is not usable.
        ClusterError: The running scheduler can not be asked.
    """
    found = stats.stats(load(source))
    if output is not terminal.Output.TABLE:
        terminal.data(found, output)
        return 0
    columns = [("", "left"), ("number", "right"), ("", "left")]
    terminal.table(columns, figures.rows(found, clock.RealClock().wall()), indent=0)
    return 0
