"""
The objects of a fake API server: what etcd and the registries do, as far as a scheduler can tell.

Comes in: collections by their path, objects as dicts. Goes out: objects, and a history that watches read. A refusal
is a `Refusal` with the status and the words that the real server uses; the contract suite holds both to the same
answers.

Invariants: every change has a version of its own, one greater than the last; a stored object is never changed in place,
so that a watch may send it later; uids are counted, so that every run has the same.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tests.fakes import updates

Object = dict[str, Any]

CREATED_AT = "2027-01-15T08:00:00Z"
PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
_PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Refusal(Exception):  # noqa: N818  a status, not an error of the test
    """An answer other than success."""

    def __init__(self, status: int, reason: str, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def body(self) -> Object:
        """The Status object that says so."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.status,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """Where an object is: the collection's path without a namespace, the namespace (may be empty), the name."""

    collection: str
    namespace: str
    name: str

    @property
    def resource(self) -> str:
        """The plural name, as messages have it."""
        return self.collection.rpartition("/")[2]


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history; `before` is None for a creation, `after` for a deletion."""

    version: int
    key: Key
    before: Object | None
    after: Object | None


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A backup: what there was, and at which version."""

    version: int
    objects: dict[Key, Object]


class Storage:
    """All objects of one cluster."""

    def __init__(self) -> None:
        #: The version of the last change.
        self.version = 1000
        #: A watch or a page from before this version is refused as expired.
        self.compacted = self.version
        self.history: list[Change] = []
        #: Called after every change.
        self.on_change: Callable[[], None] = lambda: None
        self._objects: dict[Key, Object] = {}
        self._made = 0

    def backup(self) -> "Storage":
        """Return a database as this one is now, without its history, to go on with later."""
        copied = Storage()
        copied.version = copied.compacted = self.version
        copied._objects, copied._made = dict(self._objects), self._made
        return copied

    # ------------------------------------------------------------------------------ reading

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def get(self, key: Key) -> Object:
        """Return the object. Raises a `Refusal` (404) when there is none."""
        found = self._objects.get(key)
        if found is None:
            raise Refusal(404, "NotFound", f'{key.resource} "{key.name}" not found')
        return found

    def items(self, collection: str, namespace: str = "") -> list[Object]:
        """Return the objects of a collection, sorted by namespace and name; of all namespaces where none is named."""
        found = [
            (key.namespace, key.name, item)
            for key, item in self._objects.items()
            if key.collection == collection and namespace in {"", key.namespace}
        ]
        return [item for _, _, item in sorted(found, key=lambda entry: entry[:2])]

    def changes(self, after: int) -> Iterator[Change]:
        """Yield the changes after a version, oldest first."""
        first = self.history[0].version if self.history else self.version + 1
        yield from self.history[max(0, after + 1 - first) :]

    # ------------------------------------------------------------------------------ writing

    def create(self, collection: str, body: Object, *, namespace: str = "") -> Object:
        """Add an object, with the fields that the server fills in."""
        made = _copy(body)
        metadata = made.setdefault("metadata", {})
        self._made += 1
        if "name" not in metadata and "generateName" in metadata:
            metadata["name"] = f"{metadata['generateName']}{self._made:05x}"
        if not metadata.get("name"):
            raise Refusal(422, "Invalid", "metadata.name: Required value: name or generateName is required")
        namespace = namespace or metadata.get("namespace", "")
        if namespace:
            metadata["namespace"] = namespace
        key = Key(collection, namespace, metadata["name"])
        if key in self._objects:
            raise Refusal(409, "AlreadyExists", f'{key.resource} "{key.name}" already exists')
        metadata["uid"] = f"00000000-0000-4000-8000-{self._made:012x}"
        metadata["creationTimestamp"] = CREATED_AT
        if collection == PODS:
            self._default_pod(made)
        elif collection == NODES and "capacity" in made.get("status", {}):
            made["status"].setdefault("allocatable", made["status"]["capacity"])
        return self._store(key, made)

    def replace(self, key: Key, body: Object) -> Object:
        """Put another object in its place; a version in it must be the present one."""
        before = self.get(key)
        _require_same(key, before, body.get("metadata", {}))
        kept = {name: before["metadata"][name] for name in ("uid", "creationTimestamp")}
        return self._store(key, {**_copy(body), "metadata": {**body["metadata"], **kept}})

    def patch(self, key: Key, body: Object, *, strategic: bool, part: str = "") -> Object:
        """Merge `body` into the object, only into its field `part` where one is named."""
        before = self.get(key)
        _require_same(key, before, body.get("metadata", {}))
        wanted = {part: body.get(part, {})} if part else body
        merged = _merged(before, wanted, strategic=strategic)
        if key.collection == PODS and (problem := updates.problem(before, merged)):
            raise Refusal(422, "Invalid", f'Pod "{key.name}" is invalid: {problem}')
        return self._store(key, merged)

    def delete(self, key: Key, options: Object | None = None) -> Object:
        """Remove the object; a bound pod with a grace period is only marked, as a kubelet has to end it first."""
        before = self.get(key)
        options = options or {}
        wanted = (options.get("preconditions") or {}).get("uid", before["metadata"]["uid"])
        if wanted != before["metadata"]["uid"]:
            told = f"the UID in the precondition ({wanted}) does not match the UID in record"
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on {key.resource} "{key.name}": {told}')
        grace = options.get("gracePeriodSeconds")
        if grace is None:
            grace = before.get("spec", {}).get("terminationGracePeriodSeconds", 30)
        if key.collection == PODS and before["spec"].get("nodeName"):
            marked = _copy(before)
            marked["metadata"]["deletionTimestamp"] = CREATED_AT
            before = self._store(key, marked)
            if grace > 0:
                return before
        del self._objects[key]
        self.version += 1
        last: Object = _copy(before)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._record(Change(self.version, key, last, None))
        return last

    def bind(self, key: Key, binding: Object) -> None:
        """Assign a pod to a node. The node need not exist: the real server does not look either."""
        node = binding.get("target", {}).get("name")
        if not node:
            # The real server's own words, which it gives no better status.
            raise Refusal(500, "", "target.name: Required value")
        pod = self.get(key)
        _require_same(key, pod, binding.get("metadata", {}), resource="pods/binding")
        problem = ""
        if pod["metadata"].get("deletionTimestamp"):
            problem = f"pod {key.name} is being deleted, cannot be assigned to a host"
        elif pod["spec"].get("nodeName"):
            problem = f"pod {key.name} is already assigned to node {pod['spec']['nodeName']!r}"
        elif pod["spec"].get("schedulingGates"):
            problem = f"pod {key.name} has non-empty .spec.schedulingGates"
        if problem:
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{key.name}": {problem}')
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED_AT}
        change = {"spec": {"nodeName": node}, "status": {"conditions": [condition]}}
        self._store(key, _merged(pod, change, strategic=True))

    def compact(self) -> None:
        """Forget the history up to now: older watches and lists have expired."""
        self.compacted = self.version
        self.history.clear()

    def snapshot(self) -> Snapshot:
        """A backup of what there is now."""
        return Snapshot(self.version, dict(self._objects))

    def restore(self, snapshot: Snapshot) -> None:
        """Be as it was then. Versions go on from there, a second time; uids are by chance and never repeat."""
        self.version = snapshot.version
        self._objects = dict(snapshot.objects)
        self.compact()

    # ------------------------------------------------------------------------------ details

    def _default_pod(self, pod: Object) -> None:
        spec = pod.setdefault("spec", {})
        spec.setdefault("schedulerName", "default-scheduler")
        spec.setdefault("terminationGracePeriodSeconds", 30)
        if "priority" not in spec:
            named = Key(_PRIORITY_CLASSES, "", spec.get("priorityClassName", ""))
            spec["priority"] = self._objects.get(named, {}).get("value", 0)
        pod.setdefault("status", {}).setdefault("phase", "Pending")

    def _store(self, key: Key, item: Object) -> Object:
        before = self._objects.get(key)
        item.setdefault("metadata", {})["name"] = key.name
        if before is not None:
            item["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
            if item == before:
                # A change that changes nothing has no version of its own.
                return before
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        self._objects[key] = item
        self._record(Change(self.version, key, before, item))
        return item

    def _record(self, change: Change) -> None:
        self.history.append(change)
        self.on_change()


def _copy(value: Any) -> Any:
    """A copy of a value of JSON, through and through."""
    if isinstance(value, dict):
        return {name: _copy(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(each) for each in value]
    return value


def _require_same(key: Key, before: Object, wanted: Object, *, resource: str = "") -> None:
    """Refuse when `wanted` names another uid or version than the object has."""
    for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        have = before["metadata"][field]
        if wanted.get(field) not in {None, "", have}:
            told = f"Precondition failed: {title} in precondition: {wanted[field]}, {title} in object meta: {have}"
            name = resource or key.resource
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on {name} "{key.name}": {told}')


def _merged(before: Object, change: Object, *, strategic: bool) -> Object:
    """Merge as RFC 7386 says; strategically, lists of conditions are merged by their type."""
    merged: Object = _copy(before)
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = _merged(merged[name], value, strategic=strategic)
        elif strategic and name == "conditions":
            merged[name] = _merged_conditions(merged.get(name) or [], value)
        else:
            merged[name] = _copy(value)
    return merged


def _merged_conditions(before: list[Object], change: list[Object]) -> list[Object]:
    merged = {condition["type"]: dict(condition) for condition in before}
    for condition in change:
        merged.setdefault(condition["type"], {}).update(condition)
    return list(merged.values())
