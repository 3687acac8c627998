"""The decision written the obvious way: for every node, for every check, a loop.

It knows nothing of columns, classes or indices: it reads the vertices and edges of a graph and counts everything again
for every question. The engine must give the same answers (`test_against_plain`), which is what makes this worth
keeping plain. `plain_filters` and `plain_scores` hold the single rules.

Comes in: a `plain_cluster.Cluster`, a pod, a profile. Goes out: the same values that the engine hands out.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping

from graphsched.base.values import pods, status
from graphsched.decision import profile, trace
from tests.decision.plain_cluster import Cluster
from tests.decision.plain_filters import before_nodes, pinned, refusal
from tests.decision.plain_rules import U
from tests.decision.plain_scores import scores


def evaluate(cluster: Cluster, pod: pods.Pod, settings: profile.Profile) -> dict[str, trace.Verdict]:
    """Node name → verdict, for every node."""
    refused = before_nodes(pod, settings)
    if refused is not None:
        return {name: trace.Verdict(refused) for name in sorted(cluster.machines)}
    verdicts: dict[str, trace.Verdict] = {}
    passed = []
    for name, machine in sorted(cluster.machines.items()):
        answer = refusal(cluster, pod, machine, settings)
        if answer is not None:
            verdicts[name] = trace.Verdict(answer)
        else:
            verdicts[name] = trace.Verdict(status.SUCCESS)
            passed.append(machine)
    by_plugin = scores(cluster, pod, passed, settings)
    for machine in passed:
        name = machine.node.name
        found = {plugin: values[name] for plugin, values in by_plugin.items()}
        verdicts[name] = trace.Verdict(status.SUCCESS, found, sum(found.values()))
    return verdicts


def ranking(verdicts: Mapping[str, trace.Verdict]) -> list[str]:
    """The nodes that passed: greatest total first, then by name."""
    return sorted(
        (name for name, verdict in verdicts.items() if verdict.status.ok),
        key=lambda name: (-verdicts[name].total, name),
    )


def diagnosis(
    cluster: Cluster, pod: pods.Pod, verdicts: Mapping[str, trace.Verdict], settings: profile.Profile
) -> trace.Diagnosis:
    """Why no node was left, from the verdicts."""
    if not cluster.machines:
        return trace.Diagnosis(nodes=0)
    refused = before_nodes(pod, settings)
    if refused is not None:
        return trace.Diagnosis(len(verdicts), plugins=(refused.by,), prefilter=refused)
    counts = collections.Counter(reason for verdict in verdicts.values() for reason in verdict.status.reasons)
    plugins = {verdict.status.by for verdict in verdicts.values()} - {""}
    if pinned(pod.spec, settings):
        plugins.add("NodeAffinity")
    return trace.Diagnosis(
        nodes=len(verdicts),
        reasons=tuple(sorted(counts.items(), key=lambda entry: f"{entry[1]} {entry[0]}")),
        plugins=tuple(sorted(plugins)),
        helpful=any(verdict.status.code is U for verdict in verdicts.values()),
    )
