"""One sequence of events, carried out on an engine that lives through it, and compared at every check.

A request of `sequences` comes in; differences go out, and the oracle's answers for whoever counts. Events reach the
store as the watches' do: decoded from JSON, as rows of patches in one stream. Decisions are made with one `Decider`,
whose classes stay cached, and become promises, which end as the live loop ends them. At a check the state is written
down as manifests, and three are asked about the same pods in turn: the engine that lived through it all, a fresh one,
and the oracle. The live engine also has to decide as it evaluates, and its derived state is audited in full.

Invariant: an event that has nothing to happen to (its object is gone, or was left out by the shrinker) does nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import typing

import msgspec

from graphsched.app import evaluate, profiles, promises, verdicts
from graphsched.base.kube import pods as kube_pods, wire
from graphsched.base.values import descriptions, errors, keys, pods, status
from graphsched.decision import cycle, trace
from graphsched.graph import delta, store as stores
from graphsched.sources import collection, resources
from tests.fuzz import comparing
from tests.fuzz.wishes import Json
from tests.oracle import program

_SOURCE = "watch/all"
_WATCHED: dict[str, collection.Resource[typing.Any]] = {
    "Node": resources.NODES,
    "Namespace": resources.NAMESPACES,
    "Pod": resources.PODS,
    "Service": resources.SERVICES,
    "ReplicationController": resources.REPLICATION_CONTROLLERS,
    "ReplicaSet": resources.REPLICA_SETS,
    "StatefulSet": resources.STATEFUL_SETS,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Lived:
    """A sequence with what the oracle said at its checks, and the differences of the first check that had any.

    `invalid` is the error of a request that the oracle did not take; nothing is promised then.
    """

    request: Json
    theirs: tuple[Json, ...]
    differences: tuple[comparing.Difference, ...]
    invalid: str = ""


def compare(oracle: program.Oracle, request: Json) -> Lived:
    """Carry a sequence out, up to the first difference."""
    engine = _Engine(request)
    answers: list[Json] = []
    try:
        for made in request["objects"]:
            engine.put(made)
        for number, event in enumerate(request["events"]):
            if event["do"] != "check":
                engine.happen(event)
                continue
            theirs = engine.check(oracle)
            if theirs is not None and theirs.get("error"):
                return Lived(request, tuple(answers), (), invalid=theirs["error"])
            if theirs is not None:
                answers.append(theirs)
            found = engine.found
            if found:
                where = [dataclasses.replace(each, path=f"events[{number}]: {each.path}") for each in found]
                return Lived(request, tuple(answers), tuple(where))
    except (errors.InputError, _RefusedError) as error:
        refused = comparing.Difference("events", "refused", str(error), None)
        return Lived(request, tuple(answers), (refused,))
    return Lived(request, tuple(answers), ())


class _RefusedError(Exception):
    """The store did not take a patch."""


class _Engine:
    """What a scheduler keeps while it runs, and the objects as the cluster has them.

    Attributes:
        found: Differences so far.
    """

    def __init__(self, request: Json) -> None:
        self._request = request
        settings = profiles.from_configuration(request.get("config") or {}, scheduler_name="default-scheduler")
        self._store = stores.Store()
        self._store.streams.open(_SOURCE, 1)
        self._sequence = 0
        self._promises = promises.Promises(self._store)
        self._decider = cycle.Decider(settings)
        self._objects: dict[keys.VertexKey, Json] = {}
        self._patch = delta.Patch()
        self.found: list[comparing.Difference] = []

    # ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, made: Json) -> None:
        """An object is there; rows gather in a patch until somebody has to see them."""
        if _ended(made):
            return
        if made["kind"] == "Pod" and f"namespace/{made['metadata'].get('namespace', 'default')}" not in self._objects:
            return
        vertex = _vertex(made)
        before = self._objects.get(vertex.key)
        if before is not None and before["metadata"].get("uid") != made["metadata"].get("uid"):
            self._patch.remove(vertex.key)
        self._objects[vertex.key] = copy.deepcopy(made)
        self._patch.set_vertex(vertex)

    def happen(self, event: Json) -> None:
        """Anything but a check."""
        key = event.get("of", "")
        if event["do"] == "set" and "object" in event:
            self.put(event["object"])
        elif key in self._objects:
            if event["do"] == "delete":
                self._delete(key)
            elif event["do"] == "change" and "path" in event:
                self._change(key, event["path"], event.get("to"))
            elif keys.kind_of(key) == keys.Kind.POD:
                self._flush()
                self._follow(event["do"], key)

    def _delete(self, key: keys.VertexKey) -> None:
        inhabited = any(other.startswith(f"pod/{keys.name_of(key)}/") for other in self._objects)
        if keys.kind_of(key) == keys.Kind.NAMESPACE and inhabited:
            return
        del self._objects[key]
        self._patch.remove(key)

    def _change(self, key: keys.VertexKey, path: list[str], to: object) -> None:
        made = self._objects[key]
        if path == ["spec", "nodeName"] and made["spec"].get("nodeName"):
            return
        after = copy.deepcopy(made)
        holder = after
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
        if to is None:
            holder.pop(path[-1], None)
        elif path:
            holder[path[-1]] = to
        if _ended(after):
            self._delete(key)
            return
        self._objects[key] = after
        self._patch.set_vertex(_vertex(after))

    def _follow(self, what: str, key: keys.VertexKey) -> None:
        """A decision, and what becomes of it."""
        pod = self._store.pod(key)
        assert pod is not None
        promise = self._promises.get(key, pod.uid)
        if what == "decide":
            ours = pod.scheduler == self._decider.settings.scheduler_name
            if ours and promise is None and not (pod.node or pod.deleting or pod.gates):
                self._try(pod)
        elif promise is None:
            return
        elif what == "confirm":
            self._change(key, ["spec", "nodeName"], promise.node)
        elif what == "forget":
            self._promises.end([promise])

    def _flush(self) -> None:
        """Apply what gathered, and end the promises that it ends, as the live loop does."""
        patch, self._patch = self._patch, delta.Patch()
        if not len(patch):
            return
        self._sequence += 1
        patch.stream = delta.Stream(_SOURCE, 1, self._sequence)
        over = [promise for key in (*patch.removed, *patch.vertices) if (promise := self._over(patch, key)) is not None]
        applied = self._store.apply(patch)
        if isinstance(applied, delta.Refused):
            raise _RefusedError(applied.detail)
        self._promises.keep({key for key in patch.removed if keys.kind_of(key) == keys.Kind.NODE})
        self._promises.end(over)

    def _over(self, patch: delta.Patch, key: keys.VertexKey) -> promises.Promise | None:
        before, after = self._store.pod(key), patch.vertices.get(key)
        promise = None if before is None else self._promises.get(key, before.uid)
        if promise is None or not isinstance(after, pods.Pod):
            return promise
        return promise if after.node or after.uid != promise.pod.uid else None

    # ── checks ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, oracle: program.Oracle) -> Json | None:
        """Ask all three; what the oracle says, if there was anything to ask."""
        self._flush()
        request = self._rendered()
        if not request["pods"]:
            return None
        mine = {"id": request["id"], "results": self._results(request["pods"])}
        ours: Json = msgspec.json.decode(msgspec.json.encode(mine))
        line = msgspec.json.encode(request)
        oracle.send(line)
        fresh: Json = msgspec.json.decode(msgspec.json.encode(evaluate.answer(line)))
        theirs = oracle.receive()
        if theirs.get("error"):
            return theirs
        for line_ in self._store.audit():
            self.found.append(comparing.Difference("audit", "audit", line_, None))
        for name, other in (("fresh", fresh), ("oracle", theirs)):
            for each in comparing.differences(ours, other):
                kind = f"{name}: {each.kind}"
                self.found.append(dataclasses.replace(each, path=f"{name}: {each.path}", kind=kind))
        return theirs

    def _rendered(self) -> Json:
        """The state as manifests: a pod that is promised a node counts as bound to it."""
        objects = []
        waiting = set()
        for key, made in self._objects.items():
            promise = self._promises.get(key, made["metadata"].get("uid", ""))
            if promise is not None:
                made = {**made, "spec": {**made["spec"], "nodeName": promise.node}}  # noqa: PLW2901
            elif made["kind"] == "Pod" and _asks(made):
                waiting.add(key)
            objects.append(made)
        tried = [each for each in self._request["pods"] if not isinstance(each, str) or each in waiting]
        named = [each.removeprefix("pod/") if isinstance(each, str) else each for each in tried]
        config = {"config": self._request["config"]} if self._request.get("config") else {}
        return {"id": self._request["id"], "normalized": True, **config, "objects": objects, "pods": named}

    def _results(self, tried: list[object]) -> list[verdicts.Result]:
        """The live engine's verdicts, each pod seeing where the earlier ones went; afterwards all is as it was."""
        results = []
        added = delta.Patch()
        seen: list[pods.Pod] = []
        for each in tried:
            if isinstance(each, str):
                known = self._store.pod(keys.VertexKey(f"pod/{each}"))
                assert known is not None
                pod = known
            else:
                pod = kube_pods.incoming(wire.POD.decode(msgspec.json.encode(each)))
                added.remove(pod.key)
            seen.append(pod)
            results.append(self._result(pod))
            if not isinstance(each, str):
                # A pod that names its node passes the queue by, where nominations count.
                waiting = msgspec.structs.replace(pod, nominated="") if pod.spec.node_name else pod
                self._store.apply(delta.Patch().set_vertex(waiting))
        self._promises.end([made for pod in seen if (made := self._promises.get(pod.key, pod.uid)) is not None])
        self._store.apply(added)
        return results

    def _result(self, pod: pods.Pod) -> verdicts.Result:
        if pod.deleting:
            return {"pod": pod.full_name, "outcome": "deleting"}
        if pod.gates:
            return verdicts.gated(pod)
        return verdicts.of(pod, self._try(pod), self._decider.settings)

    def _try(self, pod: pods.Pod) -> trace.Evaluation:
        """Decide, with what is cached, and promise. That must be what an evaluation anew says as well."""
        evaluation = self._decider.evaluate(self._store.view(), pod)
        decision = self._decider.decide(self._store.view(), pod)
        for field, said, due in _against(pod, decision, evaluation):
            if said != due:
                path = f"decision on {pod.full_name}: {field}"
                self.found.append(comparing.Difference(path, f"decision: {field}", said, due))
        if decision.node:
            self._promises.make(pod, decision.node, decision.devices)
        return evaluation


def _against(pod: pods.Pod, decision: trace.Decision, evaluation: trace.Evaluation) -> list[tuple[str, object, object]]:
    """Field, what the decision says, and what it should be by the evaluation."""
    feasible = [name for name, verdict in evaluation.verdicts.items() if verdict.status.ok]
    if not feasible:
        failed = evaluation.prefilter is not None and evaluation.prefilter.code is status.Code.ERROR
        due = decision.diagnosis if failed else evaluation.diagnosis
        return [("node", decision.node, ""), ("diagnosis", repr(decision.diagnosis), repr(due))]
    node = pod.nominated if pod.nominated in feasible else min(evaluation.best)
    unscored = len(feasible) == 1 or pod.nominated in feasible
    return [
        ("node", decision.node, node),
        ("feasible", decision.feasible, len(feasible)),
        ("score", decision.score, 0 if unscored else evaluation.verdicts[node].total),
    ]


def _vertex(made: Json) -> delta.Vertex:
    """As the watches decode it."""
    resource = _WATCHED[made["kind"]]
    vertex = resource.convert(resource.decode(msgspec.json.encode(made)))
    assert not isinstance(vertex, descriptions.Description)
    return vertex


def _ended(made: Json) -> bool:
    """Whether no watch would show it."""
    return made["kind"] == "Pod" and made.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def _asks(pod: Json) -> bool:
    """Whether it waits for this scheduler."""
    scheduler = pod["spec"].get("schedulerName") or "default-scheduler"
    return not pod["spec"].get("nodeName") and scheduler == "default-scheduler"
