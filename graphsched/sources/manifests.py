"""Manifests, dumps and snapshots as a cluster.

Documents come in from `documents` (or as plain mappings, from whoever has them already), a `state.ClusterState` goes
out: objects as the API server would have made them, checked as it would have checked them, workloads expanded into
pods. Classes are collected first, since a pod may be written before the class it names.

Invariant: whatever is wrong, one `InputError` names file, object, field and remedy. Nothing is left out in silence:
what does not bear on scheduling is counted in `ClusterState.ignored`.
"""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Sequence

import msgspec

from graphsched.base.kube import (
    checks,
    complaints,
    defaults,
    networklinks,
    nodes as kube_nodes,
    pods as kube_pods,
    policies as kube_policies,
    selections as kube_selections,
    strictness,
    wire,
    workloads,
)
from graphsched.base.values import descriptions, errors, nodes, pods, policies, selections
from graphsched.decision.policy import columns
from graphsched.graph import admission
from graphsched.sources import custom, documents, kinds, state, yamls

PODS_MAX = 1_000_000
"""Pods that one input may hold, expanded workloads included."""
_READ = frozenset({"Node", "Pod", "Namespace", "PriorityClass", "RuntimeClass", "Service"})


def read(
    paths: Sequence[str],
    *,
    stdin: typing.BinaryIO | None = None,
    unknown_nodes: bool = False,
) -> state.ClusterState:
    """The cluster in these files, folders and `-` for standard input.

    Args:
        paths: In order; see `documents.read`.
        stdin: Read for `-`; the process's own where none is given.
        unknown_nodes: Whether a pod may be bound to a node that is not in the input.

    Raises:
        InputError: See the module.
    """
    collector = Collector()
    for document in documents.read(paths, stdin=stdin):
        collector.add(document.body, place=document.place)
    return collector.state(unknown_nodes=unknown_nodes)


class _Found(typing.NamedTuple):
    """A decoded pod and where it was written, outermost place first."""

    place: tuple[str, ...]
    body: wire.Pod


class Collector:
    """Takes manifests one by one and makes a cluster of them.

    Args:
        normalized: Objects are already as an API server returns them; nothing is defaulted.
        checked: Refuse what the API server would refuse; otherwise only what can not be understood is refused.
        expanded: Workloads become pods; otherwise their pods are there already, where there are any.
    """

    def __init__(self, *, normalized: bool = False, checked: bool = True, expanded: bool = True) -> None:
        self._normalized = normalized
        self._checked = checked
        self._expanded = expanded
        self._seen: dict[str, str] = {}
        self._nodes: list[nodes.Node] = []
        self._pods: list[_Found] = []
        self._namespaces: dict[str, nodes.Namespace] = {}
        self._priority_classes: dict[str, nodes.PriorityClass] = {}
        self._runtime_classes: dict[str, wire.RuntimeClass] = {}
        self._selections: dict[str, selections.Selection] = {}
        self._rules: list[policies.Rule] = []
        self._described: list[descriptions.Description] = []
        self._ignored: Counter[str] = Counter()

    def add(self, manifest: object, *, place: str) -> None:
        """Take an object, or a list of objects.

        Args:
            manifest: A mapping with `kind`.
            place: Where it was written, e.g. `cluster.yaml:12`.

        Raises:
            InputError: See the module.
        """
        if not isinstance(manifest, dict):
            problem = f"is {_SHAPES.get(type(manifest), 'a single value')}, not an object"
            raise errors.InputError(place, problem=problem, remedy="begin with apiVersion and kind")
        kind, api_version = manifest.get("kind"), manifest.get("apiVersion", "")
        if not isinstance(kind, str) or not kind:
            raise errors.InputError(place, "kind", problem="is missing", remedy="say e.g. kind: Pod")
        if not isinstance(api_version, str):
            raise errors.InputError(
                place, kind, "apiVersion", problem="is not a text", remedy="say e.g. apiVersion: v1"
            )
        if kind.endswith("List") and isinstance(manifest.get("items", []), list | None):
            self._add_list(manifest, kind, place)
            return
        problem = kinds.problem(api_version, kind)
        if problem:
            raise errors.InputError(place, problem=yamls.shortened(problem), remedy="correct apiVersion and kind")
        try:
            self._add_object(manifest, kind, kinds.group_of(api_version), place)
        except errors.InputError as error:
            raise error.within(place) from error

    def state(self, *, unknown_nodes: bool = False) -> state.ClusterState:
        """The cluster so far.

        Raises:
            InputError: A pod is not one the API server would accept, or is bound to an unknown node and
                `unknown_nodes` is not set.
        """
        known = {node.name for node in self._nodes}
        found: list[pods.Pod] = []
        ignored = Counter(self._ignored)
        for place, body in self._pods:
            try:
                pod = self._pod(body, kube_pods.pod)
            except errors.InputError as error:
                raise error.within(*place) from error
            if body.terminal:
                ignored[f"Pod ({body.status.phase})"] += 1
                continue
            if pod.node and pod.node not in known and not unknown_nodes:
                raise errors.InputError(
                    *place,
                    f'Pod "{pod.full_name}"',
                    "spec.nodeName",
                    problem=f'there is no Node "{pod.node}"',
                    remedy="add the node, or leave the field out",
                )
            found.append(pod)
        namespaces = dict(self._namespaces)
        for pod in found:
            if pod.namespace not in namespaces:
                namespaces[pod.namespace] = _namespace(pod.namespace)
        return state.ClusterState(
            nodes=tuple(self._nodes),
            pods=tuple(found),
            namespaces=tuple(namespaces.values()),
            priority_classes=tuple(self._priority_classes.values()),
            selections=tuple(self._selections.values()),
            rules=tuple(self._rules),
            described=tuple(self._described),
            ignored=dict(sorted(ignored.items())),
        )

    def incoming(self, manifest: object, *, place: str) -> pods.Pod:
        """A pod that is to be placed, under the classes collected so far; it does not become part of the cluster.

        Raises:
            InputError: See the module.
        """
        if isinstance(manifest, dict) and (manifest.get("kind") or "Pod") != "Pod":
            raise errors.InputError(place, "kind", problem="is not Pod", remedy="give a pod")
        try:
            return self._pod(wire.POD.convert(manifest), kube_pods.incoming)
        except errors.InputError as error:
            raise error.within(place) from error

    def _pod(self, body: wire.Pod, convert: typing.Callable[[wire.Pod], pods.Pod]) -> pods.Pod:
        if not self._normalized:
            body = defaults.pod(
                body,
                priority_classes=self._priority_classes,
                runtime_classes=self._runtime_classes,
            )
        if self._checked:
            checks.pod(body)
        pod = convert(body)
        _require_room(pod, kube_pods.title(body))
        return pod

    def _add_list(self, manifest: dict[str, object], kind: str, place: str) -> None:
        """`List` holds objects of any kind; `PodList` holds pods that need not say so."""
        items = manifest.get("items") or []
        for index, item in enumerate(items if isinstance(items, list) else []):
            if isinstance(item, dict) and kind != "List":
                common = {"kind": kind.removesuffix("List"), "apiVersion": manifest.get("apiVersion", "")}
                self.add({**common, **item}, place=f"{place}: items[{index}]")
            else:
                self.add(item, place=f"{place}: items[{index}]")

    def _add_object(self, manifest: dict[str, object], kind: str, group: str, place: str) -> None:
        if kind in workloads.CODECS and group in {"", "apps", "batch"}:
            self._add_workload(manifest, kind, place)
        elif kind == kube_policies.KIND and group in {"", kube_policies.GROUP}:
            self._add_policy(manifest, place)
        elif (group, kind) in custom.KINDS:
            self._describe(manifest, kind, group, place)
        elif kind not in _READ or group not in {"", "scheduling.k8s.io", "node.k8s.io"}:
            self._ignored[kind] += 1
        elif kind == "Pod":
            pod = wire.POD.convert(manifest)
            self._claim(kind, pod.metadata, place)
            self._add_pods([_Found((place,), pod)])
        elif kind == "Node":
            self._add_node(wire.NODE.convert(manifest), place)
        elif kind == "Namespace":
            namespace = wire.NAMESPACE.convert(manifest)
            self._claim(kind, namespace.metadata, place)
            value = kube_nodes.namespace(namespace if self._normalized else defaults.namespace(namespace))
            self._namespaces[value.name] = value
        elif kind == selections.SERVICE:
            service = kube_selections.SERVICE.convert(manifest)
            self._claim(kind, service.metadata, place)
            self._select(kube_selections.CONVERTERS[kind](service))
        elif kind == "PriorityClass":
            priority_class = wire.PRIORITY_CLASS.convert(manifest)
            self._claim(kind, priority_class.metadata, place)
            self._priority_classes[priority_class.metadata.name] = kube_nodes.priority_class(priority_class)
        else:
            runtime_class = wire.RUNTIME_CLASS.convert(manifest)
            self._claim(kind, runtime_class.metadata, place)
            self._runtime_classes[runtime_class.metadata.name] = runtime_class

    def _add_policy(self, manifest: dict[str, object], place: str) -> None:
        """What the API server and then the operator would say of it is said here, and as an error."""
        body = kube_policies.POLICY.convert(manifest)
        self._claim(kube_policies.KIND, body.metadata, place)
        title = complaints.title(kube_policies.KIND, manifest)
        unknown = strictness.unknown_field(manifest.get("spec"), kube_policies.Spec, "spec")
        if unknown is not None:
            raise unknown.within(title)
        rules = kube_policies.require(body).rules
        for rule in rules:
            field, _, problem = columns.Column(rule).problem.partition(": ")
            if problem:
                remedy = "correct the expression; docs/policies.md has what it may read"
                raise errors.InputError(title, f'rule "{rule.name}"', f"match.{field}", problem=problem, remedy=remedy)
        self._rules += rules

    def _describe(self, manifest: dict[str, object], kind: str, group: str, place: str) -> None:
        codec, describe = custom.KINDS[group, kind]
        body = codec.convert(manifest)
        if kind == networklinks.KIND:
            # Of kinds that others define there may be fields that nobody here reads; ours has none but these.
            unknown = strictness.unknown_field(manifest.get("spec"), networklinks.Spec, "spec")
            if unknown is not None:
                raise unknown.within(complaints.title(kind, manifest))
        # Kinds of two groups may be called the same.
        self._claim(f"{kind}.{group}", body.metadata, place)
        self._described.append(describe(body))

    def _add_node(self, body: wire.Node, place: str) -> None:
        self._claim("Node", body.metadata, place)
        if not self._normalized:
            body = defaults.node(body)
        if self._checked:
            checks.node(body)
        node = kube_nodes.node(body)
        _require_room(node, f'Node "{node.name}"')
        self._nodes.append(node)

    def _add_workload(self, manifest: dict[str, object], kind: str, place: str) -> None:
        body = workloads.CODECS[kind].convert(manifest)
        self._claim(kind, body.metadata, place)
        if kind in kube_selections.CODECS:
            chosen = kube_selections.CODECS[kind].convert(manifest)
            self._select(kube_selections.CONVERTERS[kind](chosen))
        if body.managed or not self._expanded:
            if kind not in kube_selections.CODECS:
                self._ignored[kind] += 1
            return
        if kind == "Deployment":
            made = kube_selections.CONVERTERS[selections.REPLICA_SET](kube_selections.DEPLOYMENT.convert(manifest))
            self._select(msgspec.structs.replace(made, name=workloads.replica_set_name(made.name)))
        title = complaints.title(kind, manifest)
        expanded = workloads.expand(kind, body)
        for pod in expanded:
            self._claim("Pod", pod.metadata, f"{place}: {title}")
        self._add_pods([_Found((place, title), pod) for pod in expanded])

    def _select(self, selection: selections.Selection) -> None:
        self._selections[selection.key] = selection

    def _add_pods(self, found: list[_Found]) -> None:
        if len(self._pods) + len(found) > PODS_MAX:
            raise errors.InputError(problem=f"holds more than {PODS_MAX:,} pods", remedy="give fewer")
        self._pods.extend(found)

    def _claim(self, kind: str, metadata: wire.Metadata, place: str) -> None:
        """Take the name of an object; it must be one, and nobody else's."""
        checks.name(kind, metadata)
        title = complaints.title(kind, {"metadata": {"name": metadata.name, "namespace": metadata.namespace}})
        first = self._seen.setdefault(title, place)
        if first is not place:
            raise errors.InputError(title, problem=f"is there twice, first at {first}", remedy="remove or rename one")


_SHAPES: dict[type, str] = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false"}


def _require_room(value: nodes.Node | pods.Pod, title: str) -> None:
    """The graph takes it: said here, where the place is known."""
    problem = admission.of_vertex(value)
    if problem:
        raise errors.InputError(title, problem=problem, remedy="correct it")


def _namespace(name: str) -> nodes.Namespace:
    metadata = wire.Metadata(name=name)
    return kube_nodes.namespace(defaults.namespace(msgspec.structs.replace(wire.Namespace(), metadata=metadata)))
