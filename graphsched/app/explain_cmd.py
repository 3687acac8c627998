"""`graphsched explain`: why a pod is pending, or why it is where it is.

With paths, the cluster in those files is the world, as it is or after its pending pods were placed; without, a running
scheduler is asked at its debug endpoint. Either way an `Explanation` comes back, and is written as sentences, JSON or
YAML.
"""

from __future__ import annotations

import urllib.parse

import msgspec

from graphsched.app import asking, offline, simulation, terminal
from graphsched.base.kit import clock
from graphsched.base.values import errors, keys
from graphsched.decision import context as contexts
from graphsched.explain import telling, why

_TIMEOUT_S = 10.0
_ANSWER_BYTES_MAX = 64 << 20


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for; see the command's help."""

    pod: str
    paths: tuple[str, ...] = ()
    server: asking.Server = asking.Server()
    output: terminal.Output = terminal.Output.TABLE
    verbose: bool = False
    simulate: bool = False
    config: str = ""


def command(options: Options) -> int:
    """Explain; returns 0 when the pod runs or fits, 1 when it does not.

    Raises:
        InputError: The input is not usable, or the pod is not in it.
        ClusterError: The running scheduler can not be asked.
    """
    found = _from_files(options) if options.paths else _from_server(options)
    if options.output is terminal.Output.TABLE:
        terminal.line(telling.text(found, verbose=options.verbose))
    else:
        terminal.data(found, options.output)
    return 0 if found.state in {"runs", "fits"} else 1


def _from_files(options: Options) -> why.Explanation:
    cluster = offline.load(options.paths, unknown_nodes=True, config=options.config)
    pod, decider = offline.find_pod(cluster, options.pod), offline.decider(options.config)
    if options.simulate:
        with terminal.progress("deciding", len(cluster.pending)) as advance:
            graph = simulation.run(cluster, decider=decider, advance=advance).graph
    else:
        graph = offline.graph_of(cluster, sick_below=decider.settings.sick_below)
    # What is known of a link is as old as it is by now, be the capture of last week.
    return why.explain(graph.view(), pod, decider, context=contexts.Context(now=clock.RealClock().wall()))


def _from_server(options: Options) -> why.Explanation:
    name = options.pod if "/" in options.pod else f"{keys.DEFAULT_NAMESPACE}/{options.pod}"
    body = asking.get(
        options.server,
        f"/debug/explain?{urllib.parse.urlencode({'pod': name}, errors='replace')}",
        timeout_s=_TIMEOUT_S,
        bytes_max=_ANSWER_BYTES_MAX,
        instead="name files to explain from, or use --server",
    )
    try:
        return msgspec.json.decode(body, type=why.Explanation)
    except msgspec.DecodeError as error:
        raise errors.ClusterError(
            f"{options.server.url}: not an answer of graphsched of this version ({error})"
        ) from error
