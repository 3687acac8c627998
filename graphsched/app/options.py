"""Options that several commands share, and how their help shows examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from graphsched.app import terminal

Call = Callable[[], int]
"""What a command returns: `cli.execute` makes the call, outside the parser."""


def examples(*lines: str) -> str:
    """An epilog that the parser does not fill into a paragraph."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


OutputOption = Annotated[terminal.Output, typer.Option("--output", "-o", help="How to write the result.")]
Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATHS",
        help="Manifests, folders, kubectl dumps, snapshots, captured graphs, openb CSV files; - for standard input.",
        show_default=False,
    ),
]
KubeconfigOption = Annotated[
    str,
    typer.Option(
        "--kubeconfig", help="Default: $KUBECONFIG, the pod's service account, ~/.kube/config.", show_default=False
    ),
]
ContextOption = Annotated[str, typer.Option("--context", help="Context of the kubeconfig.", show_default=False)]
ConfigOption = Annotated[
    str,
    typer.Option("--config", metavar="FILE", help="Settings, see docs/configuration.md.", show_default=False),
]
ServerOption = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        help="That scheduler's address. Default: http://127.0.0.1:10260.",
        show_default=False,
    ),
]
TokenFileOption = Annotated[
    str,
    typer.Option("--token-file", metavar="FILE", help="A bearer token for that scheduler.", show_default=False),
]
CaFileOption = Annotated[
    str,
    typer.Option("--ca-file", metavar="FILE", help="Certificates to trust it by, in PEM format.", show_default=False),
]
InsecureOption = Annotated[bool, typer.Option("--insecure-skip-tls-verify", help="Take any certificate of it.")]
