"""How the tables ask: one pod, a cluster, and what must be said of every node.

A row is asked twice, of the engine and through the JSON lines of `evaluate`, and both must say the same. The manifests
of `tests.builders` come in and pass the project's own decoding; `Answer` goes out: node → what was said of it. Rows
that no manifest can express (shareable GPUs) are asked of the engine alone.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence

import msgspec

from graphsched.app import evaluate, profiles
from graphsched.base.kube import pods as kube_pods, wire
from graphsched.base.values import nodes, pods
from graphsched.decision import cycle, trace
from graphsched.graph import delta, store
from tests import builders

Thing = builders.NodeBuilder | builders.PodBuilder
"""A node or a pod that is there."""
Config = dict[str, typing.Any]

U, UAU = "Unschedulable", "UnschedulableAndUnresolvable"


class Seen(msgspec.Struct, frozen=True):
    """What was said of one node: the code's name, who refused and why, or what it scored."""

    status: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    scores: dict[str, int] = {}

    @property
    def refusal(self) -> tuple[str, ...]:
        """Code, plugin and reasons in one; empty where the node passed."""
        return () if self.status == "Success" else (self.status, self.plugin, *self.reasons)


Answer = dict[str, Seen]


def plugin_config(name: str, **args: object) -> Config:
    """A configuration that gives one plugin arguments."""
    return {"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}


def plugins(**points: object) -> Config:
    """A configuration that switches plugins on and off."""
    return {"profiles": [{"plugins": points}]}


def ask(pod: builders.PodBuilder, cluster: Sequence[Thing], config: Config | None = None) -> Answer:
    """What the engine says of every node, which is also what `evaluate` says where it can be asked."""
    answer = ask_engine(pod, cluster, config)
    if not any(each._extra for each in (pod, *cluster)):
        assert ask_lines(pod, cluster, config) == answer
    return answer


def incoming(pod: builders.PodBuilder) -> pods.Pod:
    """The pod as it is to be placed: `spec.nodeName` is a wish."""
    asked = kube_pods.incoming(wire.POD.convert(pod.manifest()))
    gpu = pod.build().spec.gpu
    if gpu is None:
        return asked
    return msgspec.structs.replace(asked, spec=msgspec.structs.replace(asked.spec, gpu=gpu))


def filled(cluster: Sequence[Thing | nodes.Namespace]) -> store.Store:
    """A store that holds the cluster."""
    graph = store.Store()
    patch = delta.Patch()
    for thing in cluster:
        patch.set_vertex(thing if isinstance(thing, nodes.Namespace) else thing.build())
    assert isinstance(graph.apply(patch), delta.Applied)
    return graph


def evaluation(
    pod: builders.PodBuilder, cluster: Sequence[Thing | nodes.Namespace], config: Config | None = None
) -> trace.Evaluation:
    """The engine's evaluation, after it has been held to the decision of the same engine."""
    graph, asked = filled(cluster), incoming(pod)
    decider = cycle.Decider(profiles.from_configuration(config or {}, scheduler_name=asked.scheduler))
    found = decider.evaluate(graph.view(), asked)
    decision = decider.decide(graph.view(), asked)
    expected = found.best[0] if found.best else ""
    passed = found.verdicts.get(asked.nominated)
    if passed is not None and passed.status.ok:
        expected = asked.nominated
    assert (expected, found.diagnosis) == (decision.node, decision.diagnosis)
    if decision.feasible > 1 and expected != asked.nominated:
        verdict = found.verdicts[expected]
        assert (verdict.total, verdict.scores) == (decision.score, dict(decision.scores))
    return found


def ask_engine(pod: builders.PodBuilder, cluster: Sequence[Thing], config: Config | None = None) -> Answer:
    """What the engine says."""
    return {
        name: Seen(verdict.status.code.title, verdict.status.by, verdict.status.reasons, dict(verdict.scores))
        for name, verdict in evaluation(pod, cluster, config).verdicts.items()
    }


def result(
    pod: builders.PodBuilder, cluster: Sequence[Thing], config: Config | None = None, *, normalized: bool = True
) -> dict[str, typing.Any]:
    """The RESULT that one line of `evaluate` holds."""
    request = {
        "id": 1,
        "objects": [thing.manifest() for thing in cluster],
        "pod": pod.manifest(),
        "normalized": normalized,
        **({"config": config} if config else {}),
    }
    answer = msgspec.json.decode(msgspec.json.encode(evaluate.answer(msgspec.json.encode(request))))
    assert "error" not in answer, answer["error"]
    assert [] == answer["warnings"]
    (found,) = answer["results"]
    return dict(found)


def ask_lines(
    pod: builders.PodBuilder, cluster: Sequence[Thing], config: Config | None = None, *, normalized: bool = True
) -> Answer:
    """What `evaluate` says, without the score of claims, which the engine does not have: there are none."""
    return {
        name: Seen(
            verdict["status"],
            verdict.get("plugin", ""),
            tuple(verdict.get("reasons", ())),
            {plugin: score for plugin, score in verdict.get("scores", {}).items() if plugin != "DynamicResources"},
        )
        for name, verdict in result(pod, cluster, config, normalized=normalized)["nodes"].items()
    }
