"""Waiting pods that are tied to each other, for tests of the queue's order."""

from __future__ import annotations

from graphsched.base.values import groups, keys, labels, pods


def pod(name: str, app: str = "", priority: int = 0) -> pods.Pod:
    """A waiting pod, with an app label if it is to have one."""
    owned = labels.from_mapping({"app": app} if app else {})
    return pods.Pod(keys.pod_key("default", name), uid=name, priority=priority, labels=owned)


def group(name: str, **calls: str) -> groups.Group:
    """A group whose workloads are those of the app of their name; each calls the ones listed after it."""
    return groups.Group(
        "default",
        name,
        tuple(
            groups.Workload(
                app,
                labels.selector([labels.Requirement("app", labels.Operator.IN, (app,))]),
                tuple(groups.Dependency(other) for other in called.split()),
            )
            for app, called in calls.items()
        ),
    )
