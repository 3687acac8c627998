"""What Services and controllers select, joined for one pod: the selector by which it is spread by default.

Comes in: Services, ReplicationControllers, ReplicaSets and StatefulSets, from `store`. Goes out: selectors, to
`decision`. Answers are remembered until one of these objects changes, so that the replicas of a workload ask once, and
where there is nothing to join, asking is two failed look-ups.

Invariant: an answer depends on the objects there are now, and on nothing that was asked before.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphsched.base.values import keys, labels, selections

ANSWERS_MAX = 4096
"""Answers remembered: one for each namespace, set of labels and owner."""

_Answer = labels.Selector | None


class Selections:
    """Objects that select pods: Services by namespace, controllers by key."""

    def __init__(self) -> None:
        self._services: dict[str, dict[keys.VertexKey, labels.Selector]] = {}
        self._controllers: dict[str, selections.Selection] = {}
        self._answers: dict[tuple[str, labels.Labels, str], _Answer] = {}

    def set(self, key: keys.VertexKey, selection: selections.Selection | None) -> None:
        """The object of this key is this one; None when it is gone. One that says nothing is not kept."""
        self._answers.clear()
        kind, namespace, _ = keys.name_of(key).split("/", 2)
        chosen = None if selection is None else selection.selector
        if kind != selections.SERVICE:
            if selection is None or chosen is None:
                self._controllers.pop(key, None)
            else:
                self._controllers[key] = selection
        elif chosen is not None and chosen.requirements:
            self._services.setdefault(namespace, {})[key] = chosen
        elif key in self._services.get(namespace, ()):
            del self._services[namespace][key]
            if not self._services[namespace]:
                del self._services[namespace]

    def of(self, namespace: str, pod_labels: labels.Labels, owner: str) -> labels.Selector | None:
        """The selector of all that select such a pod, or None where nothing does.

        Args:
            namespace: Of the pod.
            pod_labels: Of the pod.
            owner: Key of the selection of its controller, or empty.
        """
        if namespace not in self._services and owner not in self._controllers:
            return None
        asked = (namespace, pod_labels, owner)
        if asked not in self._answers:
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[asked] = self._joined(namespace, pod_labels, owner)
        return self._answers[asked]

    def service(self, namespace: str, name: str) -> labels.Selector | None:
        """The selector of this Service; None where there is no such Service, or it selects nothing."""
        return self._services.get(namespace, {}).get(keys.selection_key(selections.SERVICE, namespace, name))

    def content(self) -> tuple[dict[str, dict[keys.VertexKey, labels.Selector]], dict[str, selections.Selection]]:
        """Services by namespace and controllers by key; not to be changed."""
        return self._services, self._controllers

    def _joined(self, namespace: str, pod_labels: labels.Labels, owner: str) -> _Answer:
        # As kube-scheduler merges them: Services and ReplicationControllers hold labels, of which the last to name a
        # key wins; the requirements of the others are added.
        merged: dict[str, labels.Requirement] = {}
        for chosen in self._services.get(namespace, {}).values():
            if chosen.matches(pod_labels):
                merged.update(_by_key(chosen))
        added: tuple[labels.Requirement, ...] = ()
        controller = self._controllers.get(owner)
        if controller is not None and controller.selector is not None:
            if controller.kind == selections.REPLICATION_CONTROLLER:
                merged.update(_by_key(controller.selector))
            else:
                added = controller.selector.requirements
        return labels.selector((*merged.values(), *added)) if merged or added else None


def _by_key(chosen: labels.Selector) -> Iterator[tuple[str, labels.Requirement]]:
    return ((requirement.key, requirement) for requirement in chosen.requirements)
