"""`graphsched evaluate`: what would be decided for these pods on this snapshot, node by node, plugin by plugin.

One JSON object a line comes in, one goes out, in the same order, flushed before the next is read, so that a caller may
hold the pipe open. The fields are a stable interface, described in docs/cli.md; `requests` holds what a request asks,
`verdicts` how an evaluation is written down. Pods of one request are tried in turn, each seeing where the earlier ones
went.

Invariant: every line is answered, whatever it holds; no request leaves anything behind for the next.
"""

from __future__ import annotations

import typing

import msgspec

from graphsched.app import profiles, verdicts
from graphsched.base.values import errors, keys, pods, relations
from graphsched.decision import cycle
from graphsched.graph import delta, store
from graphsched.sources import manifests, state

LINE_BYTES_MAX = 256 << 20
"""Of one request, as for one file."""

_FIELDS = frozenset({"id", "objects", "pod", "pods", "preempt", "featureGates", "config", "normalized"})
_GATES_ON = frozenset(
    {
        "SchedulerQueueingHints",
        "SchedulerPopFromBackoffQ",
        "SchedulerAsyncPreemption",
        "OpportunisticBatching",
        "NominatedNodeNameForExpectation",
        "ClearingNominatedNodeNameAfterBinding",
        "NodeDeclaredFeatures",
        "PodLevelResources",
        "InPlacePodVerticalScaling",
        "InPlacePodLevelResourcesVerticalScaling",
        "DynamicResourceAllocation",
        "MatchLabelKeysInPodTopologySpread",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "MatchLabelKeysInPodAffinity",
        "NodeInclusionPolicyInPodTopologySpread",
        "MutableCSINodeAllocatableCount",
    },
)
"""Gates that are on unless said otherwise; all others are off. Only a gate set the other way is worth a warning."""


Value = typing.TypeVar("Value")


class _Refused(errors.InputError):
    """A request that can not be answered as a whole."""


def serve(requests: typing.BinaryIO, answers: typing.BinaryIO) -> int:
    """Answer until the input ends."""
    while line := requests.readline(LINE_BYTES_MAX + 1):
        if len(line) > LINE_BYTES_MAX and not line.endswith(b"\n"):
            _skip_line(requests)
            reply: dict[str, object] = _failed(None, f"a request is longer than {LINE_BYTES_MAX >> 20} MiB")
        else:
            reply = answer(line)
        answers.write(msgspec.json.encode(reply) + b"\n")
        answers.flush()
    return 0


def _skip_line(requests: typing.BinaryIO) -> None:
    while (rest := requests.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def _failed(identity: object, text: str, results: list[verdicts.Result] | None = None) -> dict[str, object]:
    return {"id": identity, "results": results or [], "warnings": [], "error": text}


def answer(line: bytes) -> dict[str, object]:
    """The answer to one line."""
    identity: object = None
    try:
        request = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        # Copied as text, so that it comes back as it was, whatever it is; the decoder has not looked at its bytes.
        copied = bytes(request.pop("id", b"null"))
        copied.decode()
        identity = msgspec.Raw(copied)
        return {"id": identity, **_Request(request).answer()}
    except errors.InputError as error:
        return _failed(identity, str(error))
    except UnicodeDecodeError as error:
        return _failed(identity, f"not a JSON object: byte 0x{error.object[error.start]:02x} is not UTF-8")
    except msgspec.DecodeError as error:
        return _failed(identity, f"not a JSON object: {error}")
    except RecursionError:
        return _failed(identity, "the request is nested too deeply")
    except Exception as error:  # noqa: BLE001  a failure is an answer and never ends the process
        return _failed(identity, f"bug: {type(error).__name__}: {error}")


class _Request:
    """One request: its snapshot, and the pods that are tried on it."""

    def __init__(self, fields: dict[str, msgspec.Raw]) -> None:
        self.warnings: list[str] = []
        for name in sorted(set(fields) - _FIELDS):
            self.warnings.append(f"{name}: unknown field, ignored")
        normalized = _field(fields, "normalized", bool) or False
        self._collector = manifests.Collector(normalized=normalized, checked=False, expanded=False)
        objects = _field(fields, "objects", list[typing.Any]) or []
        for index, manifest in enumerate(objects):
            self._collector.add(manifest, place=f"objects[{index}]")
        pod = _field(fields, "pod", dict[str, typing.Any])
        self._entries: list[tuple[str, object]] = [] if pod is None else [("pod", pod)]
        for index, entry in enumerate(_field(fields, "pods", list[typing.Any]) or []):
            self._entries.append((f"pods[{index}]", entry))
        if not self._entries:
            raise _Refused("pod", problem="is missing", remedy="name the pod to schedule, or several in pods")
        self._config = _field(fields, "config", dict[str, typing.Any])
        self._warn(
            preempt=_field(fields, "preempt", bool) or False,
            gates=_field(fields, "featureGates", dict[str, bool]) or {},
        )

    def _warn(self, *, preempt: bool, gates: dict[str, bool]) -> None:
        if preempt:
            self.warnings.append("preempt: preemption is not supported yet, PostFilter was not run")
        for gate, value in sorted(gates.items()):
            if value is not (gate in _GATES_ON):
                self.warnings.append(f"featureGates: {gate}={str(value).lower()} is not supported, ignored")

    def answer(self) -> dict[str, object]:
        """Try the pods in turn."""
        cluster = self._collector.state(unknown_nodes=True)
        known = {pod.full_name: pod for pod in cluster.pods}
        tried = [(place, self._pod(entry, place)) for place, entry in self._entries]
        asked = tried[0][1]
        first = known.get(asked) if isinstance(asked, str) else asked
        name = "default-scheduler" if first is None else first.scheduler
        settings = profiles.from_configuration(self._config or {}, scheduler_name=name)
        trial = _Trial(cluster, cycle.Decider(settings))
        results: list[verdicts.Result] = []
        for place, pod in tried:
            found = known.get(pod) if isinstance(pod, str) else pod
            if found is None:
                raise _Refused(
                    place, problem=f'there is no pod "{pod}"', remedy="write namespace/name of one of this request"
                )
            known[found.full_name] = found
            results.append(trial.run(found))
        return {"results": results, "warnings": self.warnings}

    def _pod(self, entry: object, place: str) -> pods.Pod | str:
        """A pod to place, or the name of one that is known when its turn comes."""
        if isinstance(entry, str):
            return entry
        if not isinstance(entry, dict):
            raise _Refused(
                place, problem="is neither a pod nor the name of one", remedy='write a pod, or "namespace/name"'
            )
        return self._collector.incoming(entry, place=place)


class _Trial:
    """The snapshot as a graph, changed by what the pods tried so far did."""

    def __init__(self, cluster: state.ClusterState, decider: cycle.Decider) -> None:
        self._decider = decider
        self._graph = store.Store(sick_below=decider.settings.sick_below)
        patch = state.to_patch(cluster)
        for pod in cluster.pending:
            # Nominations come from the active queue, which pods of others and gated pods are not in.
            if pod.scheduler != decider.settings.scheduler_name or pod.gates:
                patch.vertices.pop(pod.key)
        self._apply(patch)

    def run(self, pod: pods.Pod) -> verdicts.Result:
        """Try one pod; if it finds a node it is assumed there."""
        if self._graph.placement(pod.key) is not None:
            return {"pod": pod.full_name, "outcome": "placed"}
        if pod.deleting:
            return {"pod": pod.full_name, "outcome": "deleting"}
        if pod.gates:
            return verdicts.gated(pod)
        evaluation = self._decider.evaluate(self._graph.view(), pod)
        result = verdicts.of(pod, evaluation, self._decider.settings)
        # A pod that names its node passes the queue by, where nominations count.
        waiting = msgspec.structs.replace(pod, nominated="") if pod.spec.node_name else pod
        patch = delta.Patch().set_vertex(waiting)
        selected = result.get("selected")
        if isinstance(selected, str):
            edge = keys.EdgeID(pod.key, keys.node_key(selected), keys.EdgeKind.RUNS)
            devices: tuple[int, ...] = ()
            if pod.spec.gpu is not None:
                row = self._graph.columns.rows[selected]
                devices = self._graph.devices.choose(row, pod.spec.gpu)
            patch.set_edge(edge, relations.Runs(pod.uid, devices))
        self._apply(patch)
        return result

    def _apply(self, patch: delta.Patch) -> None:
        applied = self._graph.apply(patch)
        if isinstance(applied, delta.Refused):
            raise _Refused(problem=applied.detail, remedy="correct the objects")


def _field(fields: dict[str, msgspec.Raw], name: str, kind: type[Value]) -> Value | None:
    """One field of a request; None where it is absent or null."""
    raw = fields.get(name)
    if raw is None or bytes(raw) == b"null":
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _Refused(name, problem=str(error)) from error
