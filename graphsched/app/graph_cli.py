"""The commands of `graphsched graph`: options in, a call of `graph_cmd` out."""

from __future__ import annotations

import enum
import functools
import typing
from typing import Annotated

import typer
import typer.core

from graphsched.app import terminal
from graphsched.app.options import (
    CaFileOption,
    Call,
    ConfigOption,
    InsecureOption,
    OutputOption,
    Paths,
    ServerOption,
    TokenFileOption,
    examples,
)

if typing.TYPE_CHECKING:
    from graphsched.app import graph_cmd


class Layer(enum.StrEnum):
    """The layers of `maps.Layer`, said here so that help needs no engine."""

    ALL = "all"
    PHYSICAL = "physical"
    RESOURCES = "resources"
    POLICY = "policy"
    WORKLOADS = "workloads"


class Drawing(enum.StrEnum):
    """The outputs of `graph_cmd.Drawing`, likewise."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    DOT = "dot"
    SVG = "svg"


class Metric(enum.StrEnum):
    """The metrics of `routes.Metric`, likewise."""

    HOPS = "hops"
    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    COST = "cost"


FromSchedulerOption = Annotated[
    bool, typer.Option("--from-scheduler", help="Ask a running scheduler for its own graph, instead of files.")
]
_EXPORT = "export"


class _Group(typer.core.TyperGroup):
    """`graphsched graph FILES` is `graphsched graph export FILES`: what everybody wants first has the shortest name."""

    def parse_args(self, ctx: typing.Any, args: list[str]) -> list[str]:
        """Put the command's name in where none is said; without anything, show what there is."""
        if not args:
            args = ["--help"]
        elif args[0] not in self.commands and args[0] not in {"-h", "--help"}:
            args = [_EXPORT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    short_help="Look at the graph: as a tree, a picture, DOT or JSON; ways and numbers.",
    epilog=examples(
        "graphsched graph cluster.json                                 a tree, on the terminal",
        "graphsched graph cluster.json --layer physical --to graph.svg   a picture",
        "graphsched graph path n1 n2 cluster.json                      how far, and over what",
        "graphsched graph stats --from-scheduler                       a running scheduler's graph in numbers",
    ),
    rich_markup_mode=None,
)


def _source(
    paths: list[str] | None,
    *,
    from_scheduler: bool,
    server: str,
    token_file: str,
    ca_file: str,
    insecure: bool,
    config: str,
) -> graph_cmd.Source:
    """Where the graph comes from, by the options that every command here has."""
    from graphsched.app import asking, graph_cmd

    return graph_cmd.Source(
        paths=tuple(paths or ()),
        config=config,
        from_scheduler=from_scheduler,
        server=asking.Server(url=server, token_file=token_file, ca_file=ca_file, insecure=insecure),
    )


@app.callback()
def _root() -> None:
    """Look at the graph: export it, find ways in it, count it. Without a command's name: export."""


@app.command(
    _EXPORT,
    short_help="The graph, or a part of it (the default).",
    epilog=examples(
        "graphsched graph cluster.json",
        "graphsched graph cluster.json --layer physical --to graph.svg",
        "graphsched graph cluster.json --around node/n1 --depth 2 --output dot | dot -Tpng > n1.png",
        "graphsched graph --from-scheduler --without pod --output json",
    ),
)
def export(
    paths: Paths = None,
    *,
    layer: Annotated[
        list[Layer] | None, typer.Option("--layer", help="Only this layer; may be repeated.", show_default="all")
    ] = None,
    around: Annotated[
        str,
        typer.Option(
            "--around", metavar="VERTEX", help="Only what is near this vertex, e.g. node/n1.", show_default=False
        ),
    ] = "",
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=0, max=100, help="How many edges near is.", show_default="2"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="KIND", help="Leave out vertices of this kind, e.g. pod; may be repeated."),
    ] = None,
    output: Annotated[
        Drawing | None, typer.Option("--output", "-o", help="How to write it.", show_default="table")
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="FILE", help="Write to a file; its ending says how. - for stdout.")
    ] = "-",
    config: ConfigOption = "",
    from_scheduler: FromSchedulerOption = False,
    server: ServerOption = "",
    token_file: TokenFileOption = "",
    ca_file: CaFileOption = "",
    insecure: InsecureOption = False,
) -> Call:
    """The graph, or the part of it that you ask for: as a tree, JSON, YAML, DOT, or a picture (SVG).

    From files, or from a running scheduler. docs/graph.md tells what the layers hold and what the JSON means.
    """
    source = functools.partial(
        _source,
        paths,
        from_scheduler=from_scheduler,
        server=server,
        token_file=token_file,
        ca_file=ca_file,
        insecure=insecure,
        config=config,
    )

    def call() -> int:
        from graphsched.app import graph_cmd

        return graph_cmd.export(
            graph_cmd.Export(
                source=source(),
                layers=tuple(each.value for each in layer or () if each is not Layer.ALL),
                around=around,
                depth=depth,
                without=tuple(without or ()),
                output=graph_cmd.Drawing(output.value) if output is not None else None,
                to=to,
            )
        )

    return call


@app.command(
    short_help="The graph in numbers.",
    epilog=examples(
        "graphsched graph stats cluster.json",
        "graphsched graph stats --from-scheduler --output json",
    ),
)
def stats(
    paths: Paths = None,
    *,
    output: OutputOption = terminal.Output.TABLE,
    config: ConfigOption = "",
    from_scheduler: FromSchedulerOption = False,
    server: ServerOption = "",
    token_file: TokenFileOption = "",
    ca_file: CaFileOption = "",
    insecure: InsecureOption = False,
) -> Call:
    """How many vertices and edges of which kind, how the physical layer hangs together, how its links fare.

    From files, or from a running scheduler.
    """
    source = functools.partial(
        _source,
        paths,
        from_scheduler=from_scheduler,
        server=server,
        token_file=token_file,
        ca_file=ca_file,
        insecure=insecure,
        config=config,
    )

    def call() -> int:
        from graphsched.app import graph_cmd

        return graph_cmd.statistics(source(), output)

    return call


@app.command(
    short_help="The way from one vertex to another.",
    epilog=examples(
        "graphsched graph path n1 n7 cluster.json",
        "graphsched graph path default/web-0 default/db-0 cluster.dg --metric latency",
        "graphsched graph path n1 zone=b --from-scheduler --metric bandwidth --output json",
    ),
)
def path(
    start: Annotated[str, typer.Argument(metavar="FROM", help="A vertex: n1, node/n1, default/web-0, zone=a …")],
    goal: Annotated[str, typer.Argument(metavar="TO", help="Another one; a pod stands for its node.")],
    paths: Paths = None,
    *,
    metric: Annotated[
        Metric, typer.Option("--metric", help="What makes a way the best: fewest edges, least time, widest, cheapest.")
    ] = Metric.HOPS,
    output: OutputOption = terminal.Output.TABLE,
    config: ConfigOption = "",
    from_scheduler: FromSchedulerOption = False,
    server: ServerOption = "",
    token_file: TokenFileOption = "",
    ca_file: CaFileOption = "",
    insecure: InsecureOption = False,
) -> Call:
    """The best way between two vertices: its hops, its latency, its narrowest link, and every leg of it.

    Exits with 0 if a way is known and with 1 if none is. From files, or from a running scheduler; give --config for
    hops as a scheduler with these settings counts them.
    """
    source = functools.partial(
        _source,
        paths,
        from_scheduler=from_scheduler,
        server=server,
        token_file=token_file,
        ca_file=ca_file,
        insecure=insecure,
        config=config,
    )

    def call() -> int:
        from graphsched.app import graph_path

        return graph_path.command(
            graph_path.Options(
                source=source(),
                start=start,
                goal=goal,
                metric=metric.value,
                output=output,
            )
        )

    return call
