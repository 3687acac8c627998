"""A cluster out of files, for every command that needs no API server.

Paths come in as the user gave them: manifests, folders, `kubectl get -o json` dumps, snapshots, graphs captured from a
running scheduler, openb CSV files, topology files of Slurm, or `-` for standard input. A `ClusterState` goes out, and
the graph made of it. `simulate`, `explain` and the demo start here.

Invariant: whatever is wrong with a file is an `InputError` naming it; nothing is read that was not named.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import pathlib
from collections import Counter
from collections.abc import Sequence

from graphsched.app import settings
from graphsched.base.values import errors, keys, pods, selections
from graphsched.decision import cycle
from graphsched.graph import delta, routes, store
from graphsched.sources import captures, documents, manifests, openb, reserving, slurm, state

NO_INPUT = errors.InputError(problem="no input", remedy="name manifests, a folder, a snapshot or openb CSV files")


def load(paths: Sequence[str], *, unknown_nodes: bool = False, config: str = "") -> state.ClusterState:
    """The cluster in these files.

    Args:
        paths: In order; captured graphs are told by their first bytes, openb and Slurm's files by their first line.
        unknown_nodes: Whether a pod may be bound to a node that is not in the input.
        config: A file of settings: of what it reserves on nodes; empty for none.

    Raises:
        InputError: There are no paths, or a file is not what it should be.
    """
    kept = settings.load(config).resources.kept
    if not paths:
        raise NO_INPUT
    graphs = [path for path in paths if captures.is_capture(path)]
    traces = [path for path in paths if path not in graphs and _is_trace(path)]
    fabrics = [path for path in paths if path not in graphs and path not in traces and slurm.is_slurm(path)]
    others = [path for path in paths if path not in graphs and path not in traces and path not in fabrics]
    found = [captures.read(path) for path in graphs]
    if fabrics:
        found.append(state.ClusterState(described=tuple(slurm.read(path) for path in fabrics)))
    if traces:
        found.append(openb.read(traces))
    if others:
        # A pod may be bound to a node of a captured graph, which knows of pods whose node is gone as well.
        found.append(manifests.read(others, unknown_nodes=unknown_nodes or bool(graphs)))
    cluster = functools.reduce(_joined, found)
    if kept:
        cluster = dataclasses.replace(cluster, nodes=tuple(reserving.on(node, kept) for node in cluster.nodes))
    return cluster


def _is_trace(path: str) -> bool:
    return path != documents.STDIN and pathlib.Path(path).is_file() and openb.is_openb(path)


def _joined(first: state.ClusterState, second: state.ClusterState) -> state.ClusterState:
    _require_apart("Node", [node.name for node in first.nodes], [node.name for node in second.nodes])
    _require_apart("Pod", [pod.full_name for pod in first.pods], [pod.full_name for pod in second.pods])
    _require_apart("GraphPolicy", [rule.policy for rule in first.rules], [rule.policy for rule in second.rules])
    for kind in sorted(selections.KINDS):
        _require_apart(kind, _selecting(first, kind), _selecting(second, kind))
    known = {namespace.name for namespace in first.namespaces}
    # A namespace that is merely used has no label but its name, and takes none from one that is known.
    more = [each for each in second.namespaces if each.name not in known or len(each.labels) > 1]
    return state.ClusterState(
        nodes=(*first.nodes, *second.nodes),
        pods=(*first.pods, *second.pods),
        namespaces=(*first.namespaces, *more),
        priority_classes=(*first.priority_classes, *second.priority_classes),
        selections=(*first.selections, *second.selections),
        rules=(*first.rules, *second.rules),
        described=(*first.described, *second.described),
        layers=(*first.layers, *second.layers),
        ignored=dict(sorted((Counter(first.ignored) + Counter(second.ignored)).items())),
        edges={**first.edges, **second.edges},
    )


def _selecting(cluster: state.ClusterState, kind: str) -> list[str]:
    return [f"{each.namespace}/{each.name}" for each in cluster.selections if each.kind == kind]


def _require_apart(kind: str, first: Sequence[str], second: Sequence[str]) -> None:
    known = set(first)
    twice = next((name for name in second if name in known), None)
    if twice is not None:
        raise errors.InputError(f'{kind} "{twice}"', problem="is in two files", remedy="remove or rename one")


def graph_of(cluster: state.ClusterState, *, sick_below: float = routes.SICK_BELOW) -> store.Store:
    """The graph that holds this cluster, in which links less healthy than `sick_below` are avoided.

    Raises:
        InputError: The graph refuses it.
    """
    graph = store.Store(sick_below=sick_below)
    applied = graph.apply(state.to_patch(cluster))
    if isinstance(applied, delta.Refused):
        raise errors.InputError(problem=applied.detail, remedy="correct the input")
    return graph


def decider(config: str) -> cycle.Decider:
    """What decides as the live scheduler with this configuration file would; the defaults for an empty path.

    Raises:
        InputError: The file is not what it should be.
    """
    return cycle.Decider(settings.load(config).decider)


def settle() -> None:
    """Tell the garbage collector that what was loaded stays until the program ends: it need not look at it again.

    For programs only: what is garbage by now stays, too.
    """
    gc.collect()
    gc.freeze()


def find_pod(cluster: state.ClusterState, name: str) -> pods.Pod:
    """The pod called `name` or `namespace/name`.

    Raises:
        InputError: There is none, or there are several of that name in different namespaces.
    """
    if "/" in name:
        found = [pod for pod in cluster.pods if pod.full_name == name]
    else:
        found = [pod for pod in cluster.pods if pod.name == name]
        if len(found) > 1:
            preferred = [pod for pod in found if pod.namespace == keys.DEFAULT_NAMESPACE]
            found = preferred or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise errors.InputError(f'Pod "{name}"', problem="is not in the input", remedy=_close_names(cluster, name))
    several = ", ".join(sorted(pod.full_name for pod in found)[:5])
    raise errors.InputError(f'Pod "{name}"', problem=f"could be {several}", remedy="name the namespace as well")


def _close_names(cluster: state.ClusterState, name: str) -> str:
    import difflib

    if not cluster.pods:
        return "it holds no pods at all"
    known = [pod.full_name for pod in cluster.pods[:20_000]]
    close = difflib.get_close_matches(
        name if "/" in name else f"{keys.DEFAULT_NAMESPACE}/{name}", known, n=1, cutoff=0.0
    )
    return f"it holds e.g. {close[0] if close else known[0]}"
