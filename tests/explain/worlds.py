"""Small clusters for explanations: nodes and pods in a store, and one question asked of it."""

from __future__ import annotations

from graphsched.base.values import pods
from graphsched.decision import cycle, profile
from graphsched.explain import telling, why
from graphsched.graph import delta, store
from tests import builders


def world(*builds: builders.NodeBuilder | builders.PodBuilder) -> store.Store:
    """A store that holds these."""
    graph = store.Store()
    patch = delta.Patch()
    for build in builds:
        patch.set_vertex(build.build())
    graph.apply(patch)
    return graph


def asked(
    graph: store.Store,
    pod: builders.PodBuilder | pods.Pod,
    *,
    settings: profile.Profile | None = None,
    **more: object,
) -> why.Explanation:
    """The explanation of this pod."""
    value = pod if isinstance(pod, pods.Pod) else pod.build()
    return why.explain(graph.view(), value, cycle.Decider(settings), **more)  # type: ignore[arg-type]


def told(
    graph: store.Store,
    pod: builders.PodBuilder | pods.Pod,
    *,
    settings: profile.Profile | None = None,
    **more: object,
) -> list[str]:
    """The lines a terminal shows."""
    return telling.text(asked(graph, pod, settings=settings, **more)).splitlines()
