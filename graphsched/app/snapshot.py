"""`graphsched snapshot`: a cluster as one file that can be replayed.

The API server is read page by page; JSON lines go out, one object each, that `simulate`, `explain` and `evaluate` read
as they read manifests. The first line says what was captured and when, by which version. Or a running scheduler is
asked for its graph, which goes out as it came, once it is known to be whole: what was decided on, promises included.

Invariants: only what is listed below is written. What somebody may want to keep to themselves never reaches the file:
values of environment variables, commands and arguments, annotations, managed fields, references to secrets, messages of
conditions. Secrets and ConfigMaps are not even asked for. A graph has no place for any of that. And the file is for
whoever made it: nobody else may read it unless told so.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import re
import sys
import typing
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

import graphsched
from graphsched.app import asking, capturing, following, targets, terminal
from graphsched.base.kit import clock
from graphsched.base.kube import client as clients, config, credentials, lists, nodes
from graphsched.base.values import errors, keys
from graphsched.explain import wording
from graphsched.graph import codec, delta, followers
from graphsched.sources import custom

RESOURCES: tuple[tuple[str, str, str], ...] = (
    ("v1", "Node", "/api/v1/nodes"),
    ("v1", "Namespace", "/api/v1/namespaces"),
    ("scheduling.k8s.io/v1", "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ("node.k8s.io/v1", "RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses"),
    ("v1", "Service", "/api/v1/services"),
    ("v1", "ReplicationController", "/api/v1/replicationcontrollers"),
    ("apps/v1", "ReplicaSet", "/apis/apps/v1/replicasets"),
    ("apps/v1", "StatefulSet", "/apis/apps/v1/statefulsets"),
    ("v1", "Pod", "/api/v1/pods"),
)
"""What scheduling reads: (apiVersion, kind, path)."""
DESCRIBING: tuple[tuple[str, str, str], ...] = tuple(
    (path.removeprefix("/apis/").rpartition("/")[0], kind, path)
    for each, (_, kind) in zip(custom.ALL, custom.KINDS, strict=True)
    for path in (each.path, *each.others)
)
"""What describes the network, in every version of its API; only what is installed is there."""
SELECTING = frozenset({"Service", "ReplicationController", "ReplicaSet", "StatefulSet"})
"""Kinds that select pods; of their spec only the selector is kept."""
OPTIONAL = frozenset({"PriorityClass", "RuntimeClass", *SELECTING})
"""Kinds that are left out, with a note, where the right to list them is missing."""

_METADATA = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "labels",
        "creationTimestamp",
        "deletionTimestamp",
        "ownerReferences",
    },
)
_CONDITION = frozenset({"type", "status", "reason", "lastTransitionTime"})
"""Without the message, in which anybody who writes a status may quote anything."""
_ADDRESS = frozenset({"type", "address"})
_NODE_SPEC = frozenset({"taints", "unschedulable"})
_NODE_STATUS = frozenset({"allocatable", "capacity", "images", "declaredFeatures", "conditions", "addresses"})
_POD_SPEC = frozenset(
    {
        "containers",
        "initContainers",
        "resources",
        "overhead",
        "nodeName",
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "schedulerName",
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "schedulingGates",
        "runtimeClassName",
        "hostNetwork",
        "hostUsers",
        "volumes",
        "resourceClaims",
        "schedulingGroup",
        "restartPolicy",
    },
)
_CONTAINER = frozenset({"name", "image", "ports", "resources", "restartPolicy", "restartPolicyRules"})
_SECRETIVE = ("secret", "chap", "user", "keyring", "attributes", "metadata", "uri")
"""Parts of names of the fields of a volume's source that are left out, at any depth."""
_VOLUMES = frozenset(
    {
        "name",
        "persistentVolumeClaim",
        "ephemeral",
        "image",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cinder",
        "iscsi",
        "rbd",
        "vsphereVolume",
        "portworxVolume",
    },
)
"""Only volumes that may bear on placement keep their source."""
_POD_STATUS = frozenset(
    {
        "phase",
        "startTime",
        "nominatedNodeName",
        "conditions",
        "containerStatuses",
        "initContainerStatuses",
        "resources",
        "allocatedResources",
    },
)
_CONTAINER_STATUS = frozenset({"name", "resources", "allocatedResources"})
_CLASSES = {
    "PriorityClass": frozenset({"value", "globalDefault", "preemptionPolicy"}),
    "RuntimeClass": frozenset({"handler", "overhead", "scheduling"}),
}
"""What is kept beside the metadata of kinds whose fields are at the top."""

_DESCRIBING_FIELDS = frozenset({"spec", "zones", "topologyPolicies"})
_LINK_STATUS = frozenset({"health", "lossPercent", "errorsPerSecond", "latencyMs", "observedAt"})

_REFUSED_MAX = 3
"""So many answers in a row that are no graph are no accident."""

_Object = dict[str, typing.Any]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for; see the command's help."""

    output: str = "-"
    kubeconfig: str = ""
    context: str = ""
    from_scheduler: bool = False
    follow: bool = False
    server: asking.Server = asking.Server(url="")


def command(options: Options) -> int:
    """Capture; returns 0. With `follow` it does not return.

    Raises:
        InputError: No credentials, options that do not go together, or the file can not be written.
        ClusterError: The API server or the scheduler refused or went away; nothing was written.
    """
    _check(options)
    if options.follow:
        _follow(options)
    told = _from_scheduler(options) if options.from_scheduler else _from_cluster(options)
    terminal.note(f"captured {told} to {'stdout' if options.output == '-' else options.output}")
    return 0


def _check(options: Options) -> None:
    for name, value in (
        ("--server", options.server.url),
        ("--token-file", options.server.token_file),
        ("--ca-file", options.server.ca_file),
        ("--insecure-skip-tls-verify", options.server.insecure),
        ("--follow", options.follow),
    ):
        if value and not options.from_scheduler:
            raise errors.InputError(name, problem="is of a scheduler", remedy="add --from-scheduler, or leave it out")
    for name, value in (("--kubeconfig", options.kubeconfig), ("--context", options.context)):
        if options.from_scheduler and value:
            raise errors.InputError(name, problem="is of no use with --from-scheduler", remedy="leave it out")
    if options.from_scheduler and options.output == "-" and sys.stdout.isatty():
        raise errors.InputError("--output", problem="a graph is no text", remedy="name a file, e.g. cluster.dg")
    if options.follow and options.output == "-":
        raise errors.InputError("--follow", problem="keeps a file up to date", remedy="name it with --output")


def _follow(options: Options) -> typing.NoReturn:
    """Keep the file up to date with a running scheduler's graph, and say what becomes of it."""
    copy = followers.Follower()
    follows = following.Following(capturing.usual(options.server), copy)
    refused = 0
    while True:
        step = follows.step()
        refused = refused + 1 if step is following.Step.REFUSED else 0
        if refused == _REFUSED_MAX:
            raise errors.ClusterError(
                f"{capturing.usual(options.server).url}: not a graph that can be followed: {follows.problem}"
            )
        if step in {following.Step.BEGUN, following.Step.CHANGED}:
            vertices, edges = copy.store.content()
            whole = codec.encode(delta.Patch(vertices=vertices, edges=edges), base_generation=copy.generation)
            with targets.whole(options.output) as write:
                write(whole)
        if step is not following.Step.UNCHANGED:
            problem = f" ({follows.problem})" if follows.problem else ""
            terminal.note(f"{options.output}: {step} at generation {copy.generation:,}{problem}")


def _from_scheduler(options: Options) -> str:
    """Write a running scheduler's graph; returns what is in it."""
    data, found = capturing.whole(
        options.server, instead="use --server, or leave out --from-scheduler to ask the API server"
    )
    with targets.whole(options.output) as write:
        write(data)
    counts = Counter(map(keys.kind_of, found.patch.vertices)) + Counter(edge.kind for edge in found.patch.edges)
    parts = [
        wording.count(counts[keys.Kind.NODE], "node"),
        wording.count(counts[keys.Kind.POD], "pod"),
        wording.count(counts[keys.EdgeKind.RUNS], "promise"),
    ]
    return f"generation {found.generation:,} of the graph ({', '.join(parts)})"


def _from_cluster(options: Options) -> str:
    """Write the objects of a cluster; returns what was written."""
    request = config.find(kubeconfig=options.kubeconfig, context=options.context, environ=os.environ)
    counts: Counter[str] = Counter()
    with targets.whole(options.output) as write:

        def put(body: _Object) -> None:
            counts[body["kind"]] += 1
            write(msgspec.json.encode(body) + b"\n")

        asyncio.run(capture(lambda: config.load(request), put))
    always = [kind for _, kind, _ in RESOURCES]
    told = always + [kind for kind in dict.fromkeys(kind for _, kind, _ in DESCRIBING) if counts[kind]]
    return ", ".join(wording.count(counts[kind], _noun(kind), _noun(kind, plural=True)) for kind in told)


def _noun(kind: str, *, plural: bool = False) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
    if not plural:
        return words
    return words[:-1] + "ies" if words.endswith("y") else words + ("es" if words.endswith("s") else "s")


async def capture(
    load: Callable[[], Awaitable[credentials.Credentials]],
    put: Callable[[_Object], None],
) -> None:
    """Hand everything to `put`, first what describes the capture itself."""
    put(
        {
            "apiVersion": "graphsched.dev/v1",
            "kind": "Snapshot",
            "metadata": {"name": "snapshot"},
            "captured": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "by": f"graphsched {graphsched.__version__}",
        }
    )
    keeper = credentials.Keeper(load, clock=clock.RealClock())
    async with clients.Client(keeper, user_agent=f"graphsched/{graphsched.__version__}") as client:
        for api_version, kind, path in RESOURCES:
            try:
                async for page in lists.pages(client, path, {}):
                    for item in page.items or ():
                        body: _Object = msgspec.json.decode(item)
                        put(stripped({"apiVersion": api_version, "kind": kind, **body}))
            except errors.ForbiddenError as error:
                if kind not in OPTIONAL:
                    raise
                terminal.note(f"graphsched: {kind} objects are left out: {error}")
        await _describing(client, put)


async def _describing(client: clients.Client, put: Callable[[_Object], None]) -> None:
    """Hand over what describes the network, each kind in the first version that is there."""
    found: set[tuple[str, str]] = set()
    for api_version, kind, path in DESCRIBING:
        what = (api_version.partition("/")[0], kind)
        if what in found:
            continue
        try:
            async for page in lists.pages(client, path, {}):
                found.add(what)
                for item in page.items or ():
                    body: _Object = msgspec.json.decode(item)
                    put(stripped({"apiVersion": api_version, "kind": kind, **body}))
        except errors.ForbiddenError as error:
            found.add(what)
            terminal.note(f"graphsched: {kind} objects are left out: {error}")
        except errors.ClusterError as error:
            if not error.absent:
                raise


def stripped(body: _Object) -> _Object:
    """The object with nothing in it but what the module allows."""
    kind = body["kind"]
    kept: _Object = {"apiVersion": body["apiVersion"], "kind": kind, "metadata": _only(body.get("metadata"), _METADATA)}
    spec, status = body.get("spec") or {}, body.get("status") or {}
    match kind:
        case "Node":
            kept |= {"spec": _only(spec, _NODE_SPEC), "status": _status(_only(status, _NODE_STATUS))}
        case "Pod":
            kept |= {"spec": _pod_spec(_only(spec, _POD_SPEC)), "status": _status(_only(status, _POD_STATUS))}
        case _ if (body["apiVersion"].partition("/")[0], kind) in custom.KINDS:
            kept |= _only(body, _DESCRIBING_FIELDS)
            kept |= {"status": _only(status, _LINK_STATUS)} if kind == "NetworkLink" else {}
        case _ if kind in SELECTING:
            kept["spec"] = _only(spec, frozenset({"selector"}))
        case _:
            kept |= _only(body, _CLASSES.get(kind, frozenset()))
    return kept


def _pod_spec(spec: _Object) -> _Object:
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_only(container, _CONTAINER) for container in spec[field] or ()]
    if "volumes" in spec:
        spec["volumes"] = [_discreet(_only(volume, _VOLUMES)) for volume in spec["volumes"] or ()]
    return spec


def _discreet(source: typing.Any) -> typing.Any:
    """A volume's source without what may be secret in it."""
    if isinstance(source, list):
        return [_discreet(each) for each in source]
    if not isinstance(source, dict):
        return source
    return {
        key: _discreet(value) for key, value in source.items() if not any(part in key.lower() for part in _SECRETIVE)
    }


def _status(status: _Object) -> _Object:
    for field, fields in (
        ("conditions", _CONDITION),
        ("containerStatuses", _CONTAINER_STATUS),
        ("initContainerStatuses", _CONTAINER_STATUS),
    ):
        if field in status:
            status[field] = [_only(entry, fields) for entry in status[field] or ()]
    if "addresses" in status:
        status["addresses"] = [
            _only(entry, _ADDRESS) for entry in status["addresses"] or () if entry.get("type") in nodes.IP_TYPES
        ]
    return status


def _only(mapping: _Object | None, fields: frozenset[str]) -> _Object:
    return {key: value for key, value in (mapping or {}).items() if key in fields}
