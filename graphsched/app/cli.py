"""The console script: options in, one of the programs runs, an exit code out.

Commands only parse: each returns the call to make, and `execute` makes it outside the parser, where every way to fail
is turned into one line on stderr and an exit code. What a program needs is imported when it is called, so `--help`
answers at once.

Exit codes: 0 done; 1 the answer is no; 2 wrong use, bad input, or a cluster that can not be reached; 70 a bug of this
program; 130 interrupted; 141 the reader of our output went away.
"""

from __future__ import annotations

import enum
import errno
import os
import pathlib
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, TextIO

import typer

from graphsched.app import graph_cli, terminal
from graphsched.app.options import (
    CaFileOption,
    Call,
    ConfigOption,
    ContextOption,
    InsecureOption,
    KubeconfigOption,
    OutputOption,
    Paths,
    ServerOption,
    TokenFileOption,
    examples,
)
from graphsched.base.values import errors

DONE, NO, WRONG, BUG, INTERRUPTED, NO_READER = 0, 1, 2, 70, 130, 141

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What writing to a file that is open may end with, through no fault of this program."""


class Order(enum.StrEnum):
    """The orders of `simulation.Order`, said here so that help needs no engine."""

    QUEUE = "queue"
    FILE = "file"


_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The parser's own error: its class is where the installed version of the library keeps it."""


app = typer.Typer(
    name="graphsched",
    help="A scheduler for Kubernetes that keeps the cluster as one layered graph and walks it to decide.",
    epilog=examples(
        "graphsched run --kubeconfig ~/.kube/config    schedule pods with schedulerName: graph-scheduler",
        "graphsched simulate cluster.json              what would happen, without a cluster",
        "graphsched explain web-0 cluster.json         why is it pending, why on this node",
        "graphsched snapshot --output cluster.json     capture a cluster to replay",
        "graphsched graph path n1 n2 cluster.json      how far is it, and over what",
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug of this program.")]


def _print_version(asked: bool) -> None:  # noqa: FBT001  the parser calls it so
    if asked:
        import graphsched

        terminal.line(f"graphsched {graphsched.__version__}")
        raise typer.Exit(DONE)


@app.callback()
def _root(
    context: typer.Context,
    *,
    debug: DebugOption = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    context.obj = debug and not version


@app.command(
    short_help="Run the scheduler.",
    epilog=examples(
        "graphsched run --kubeconfig ~/.kube/config",
        "graphsched run --config settings.yaml --log-format json",
        "graphsched run --port 0 --log-level debug",
    ),
)
def run(
    *,
    config: ConfigOption = "",
    scheduler_name: Annotated[
        str | None,
        typer.Option("--scheduler-name", help="Serve pods with this schedulerName. Default: graph-scheduler."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", metavar="shared|exclusive|advise|shadow", help="See docs/modes.md. Default: shared."),
    ] = None,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    host: Annotated[str | None, typer.Option("--host", help="Address of metrics and health.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Its port; 0 for any free one. Default: 10260.")] = None,
    leader_elect: Annotated[
        bool | None,
        typer.Option("--leader-elect/--no-leader-elect", help="Decide only with the lease. Default: leader-elect."),
    ] = None,
    log_format: Annotated[str | None, typer.Option("--log-format", metavar="text|json", help="Default: text.")] = None,
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", metavar="debug|info|warning|error", help="Default: info."),
    ] = None,
) -> Call:
    """Schedule the pods of a cluster that ask for this scheduler, until SIGTERM or Ctrl-C.

    Flags win over the file of --config, which wins over the defaults.
    """

    def call() -> int:
        from graphsched.app import run as program, settings

        flags = {
            "--scheduler-name": scheduler_name,
            "--mode": mode,
            "--kubeconfig": kubeconfig or None,
            "--context": context or None,
            "--host": host,
            "--port": port,
            "--leader-elect": leader_elect,
            "--log-format": log_format,
            "--log-level": log_level,
        }
        return program.main(settings.load(config, flags=flags))

    return call


@app.command(
    short_help="Place pending pods, given as files; no cluster is asked.",
    epilog=examples(
        "kubectl get nodes,pods -A -o json | graphsched simulate -",
        "graphsched simulate nodes.yaml deployment.yaml --output json",
        "graphsched simulate --nodes nodes.csv --pods pods.csv --report report.html",
    ),
)
def simulate(
    paths: Paths = None,
    *,
    nodes: Annotated[
        list[str] | None, typer.Option("--nodes", help="A file of nodes (openb CSV or manifests).")
    ] = None,
    pods: Annotated[list[str] | None, typer.Option("--pods", help="A file of pods (openb CSV or manifests).")] = None,
    output: OutputOption = terminal.Output.TABLE,
    order: Annotated[
        Order,
        typer.Option("--order", help="Of decision. queue: by priority, then age. file: as written."),
    ] = Order.QUEUE,
    config: ConfigOption = "",
    scheduler: Annotated[
        str,
        typer.Option("--scheduler", help="Place only pods with this schedulerName.", show_default=False),
    ] = "",
    report: Annotated[
        str,
        typer.Option("--report", metavar="FILE.html", help="Write an HTML report with pictures.", show_default=False),
    ] = "",
    show_all: Annotated[bool, typer.Option("--all", help="List every pending pod.")] = False,
    timings: Annotated[bool, typer.Option("--timings", help="Put timings into the JSON or YAML as well.")] = False,
) -> Call:
    """Place the pending pods of a cluster given as files; no API server is asked.

    Exits with 0 if every pod found a node and with 1 if some did not.
    """

    def call() -> int:
        from graphsched.app import simulate as program, simulation

        return program.command(
            program.Options(
                paths=(*(paths or ()), *(nodes or ()), *(pods or ())),
                output=output,
                order=simulation.Order(order.value),
                config=config,
                scheduler=scheduler,
                report=report,
                show_all=show_all,
                timings=timings,
            )
        )

    return call


@app.command(
    short_help="Answer requests on stdin, node by node: JSON lines in and out.",
    epilog=examples(
        'echo \'{"id": 1, "objects": [...], "pod": {...}}\' | graphsched evaluate',
    ),
)
def evaluate() -> Call:
    """Answer, node by node, what would be decided for the pods in requests on stdin: JSON lines in, JSON lines out.

    A stable interface for programs. Each answer is written before the next request is read; a request that fails is
    answered with an error and ends nothing. docs/cli.md describes the fields.
    """

    def call() -> int:
        from graphsched.app import evaluate as program

        return program.serve(sys.stdin.buffer, sys.stdout.buffer)

    return call


@app.command(
    short_help="Why a pod is pending, or why it is on its node.",
    epilog=examples(
        "graphsched explain web-7d9f-x2x4q cluster.json",
        "kubectl port-forward deploy/graphsched 10260 & graphsched explain default/web-7d9f-x2x4q",
    ),
)
def explain(
    pod: Annotated[str, typer.Argument(metavar="POD", help="Name, or namespace/name.")],
    paths: Paths = None,
    *,
    server: Annotated[
        str,
        typer.Option("--server", metavar="URL", help="A running scheduler's address, asked when no paths are given."),
    ] = "http://127.0.0.1:10260",
    token_file: TokenFileOption = "",
    ca_file: CaFileOption = "",
    insecure: InsecureOption = False,
    output: OutputOption = terminal.Output.TABLE,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name nodes for every reason.")] = False,
    simulate: Annotated[bool, typer.Option("--simulate", help="Place all pending pods of the files first.")] = False,
    config: ConfigOption = "",
) -> Call:
    """Why is a pod pending, why is it on this node: asked of files, or of a running scheduler.

    Exits with 0 if the pod runs or fits and with 1 if it does not.
    """

    def call() -> int:
        from graphsched.app import asking, explain_cmd

        return explain_cmd.command(
            explain_cmd.Options(
                pod=pod,
                paths=tuple(paths or ()),
                server=asking.Server(url=server, token_file=token_file, ca_file=ca_file, insecure=insecure),
                output=output,
                verbose=verbose,
                simulate=simulate,
                config=config,
            )
        )

    return call


@app.command(
    short_help="How another scheduler's choices compare with ours.",
    epilog=examples(
        "graphsched run --mode shadow & graphsched shadow",
        "graphsched shadow --at-least 99 && echo ready for the cut-over",
    ),
)
def shadow(
    *,
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="Address of a scheduler that runs in mode shadow.")
    ] = "http://127.0.0.1:10260",
    token_file: TokenFileOption = "",
    ca_file: CaFileOption = "",
    insecure: InsecureOption = False,
    output: OutputOption = terminal.Output.TABLE,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="How many of the worst disagreements to name.")
    ] = 10,
    at_least: Annotated[
        float, typer.Option("--at-least", metavar="PERCENT", help="How many pods must agree for exit code 0.")
    ] = 95.0,
) -> Call:
    """How the choices of another scheduler compare with ours, asked of a graphsched that runs in mode shadow.

    Exits with 0 if enough pods agree and none is placed where or though graphsched would not; with 1 otherwise.
    """

    def call() -> int:
        from graphsched.app import asking, shadow_cmd

        return shadow_cmd.command(
            shadow_cmd.Options(
                server=asking.Server(url=server, token_file=token_file, ca_file=ca_file, insecure=insecure),
                output=output,
                limit=limit,
                at_least=at_least,
            )
        )

    return call


@app.command(
    short_help="Capture a cluster into a file to replay.",
    epilog=examples(
        "graphsched snapshot --output cluster.json && graphsched simulate cluster.json",
        "graphsched snapshot --from-scheduler --output cluster.dg && graphsched explain web-0 cluster.dg",
    ),
)
def snapshot(
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - for stdout.")] = "-",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    from_scheduler: Annotated[
        bool,
        typer.Option("--from-scheduler", help="Ask a running scheduler for its graph, promises included."),
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep the file up to date with that graph until Ctrl-C.")
    ] = False,
    server: ServerOption = "",
    token_file: TokenFileOption = "",
    ca_file: CaFileOption = "",
    insecure: InsecureOption = False,
) -> Call:
    """Capture what a scheduler sees of a cluster into one file: JSON lines that simulate, explain and evaluate read.

    Environment values, arguments, annotations and managed fields are left out; Secrets are not read at all. With
    --from-scheduler, the file is a running scheduler's own graph, which simulate and explain read.
    """

    def call() -> int:
        from graphsched.app import asking, snapshot as program

        return program.command(
            program.Options(
                output=output,
                kubeconfig=kubeconfig,
                context=context,
                from_scheduler=from_scheduler,
                follow=follow,
                server=asking.Server(url=server, token_file=token_file, ca_file=ca_file, insecure=insecure),
            )
        )

    return call


app.add_typer(graph_cli.app, name="graph")


def execute(arguments: Sequence[str]) -> int:
    """Parse and do; returns the exit code. Nothing is raised, whatever happens."""
    debug = "--debug" in arguments
    try:
        call = app(list(arguments) or ["--help"], standalone_mode=False, prog_name="graphsched")
        code = call() if callable(call) else int(call or 0)
        sys.stdout.flush()
    except errors.GraphschedError as error:
        return _said(str(error), WRONG)
    except _UsageError as error:
        return _said(_usage(error), WRONG)
    except (KeyboardInterrupt, typer.Abort):
        return _said("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _leave_stdout()
        return NO_READER
    except Exception as error:  # noqa: BLE001  the last resort: a bug becomes one line and an exit code of its own
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None:
            _leave_stdout()
            return _said(f"stdout: can not be written: {os.strerror(error.errno).lower()} (write elsewhere)", WRONG)
        return _bug(error, debug=debug)
    return code


def _leave_stdout() -> None:
    _leave(sys.stdout)


def _leave(stream: TextIO) -> None:
    """What is still buffered can not be written either, and the interpreter would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _leave_what_is_full() -> None:
    """A line for people that can not be written is lost; it does not change how the program ends."""
    try:
        sys.stderr.flush()
    except OSError:
        _leave(sys.stderr)


def _bug(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{pathlib.Path(where.filename).name}:{where.lineno}"
    hint = "" if debug else "; please report it with what graphsched --debug ... prints"
    return _said(f"bug: {type(error).__name__}: {str(error)[:300]} ({place}){hint}", BUG)


def _usage(error: Exception) -> str:
    message = str(getattr(error, "message", "") or error)
    formatted = getattr(error, "format_message", None)
    if callable(formatted):
        message = str(formatted())
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "graphsched"
    # "Value error," is how the library that checks values begins what a check of a choice has to say.
    message = message.replace("Value error, ", "").rstrip(".")
    return f"{message} (see {command} --help)"


def _said(text: str, code: int) -> int:
    # What a file holds is quoted, and must neither break the line nor speak to the terminal.
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
    terminal.note(f"graphsched: {shown}")
    return code


def _open_streams() -> None:
    """A service may be started without standard streams; a file opened later must not take the place of one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The system gives the lowest number that is free: the one that is missing.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def main() -> None:
    """Entry point of the console script."""
    _open_streams()
    code = execute(sys.argv[1:])
    _leave_what_is_full()
    sys.exit(code)
