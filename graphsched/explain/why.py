"""Why a pod is where it is, or why it is nowhere: the answer as a value and as sentences.

An evaluation and the view it was made on come in, an `Explanation` goes out; `text` turns it into what a terminal
shows, the debug endpoint sends it as JSON. The first line holds the answer, the rest is for whoever wants the evidence.

Invariant: everything said is read from the view or shown by the checks; nothing is guessed from the reasons' texts.
"""

from __future__ import annotations

import types
from collections.abc import Mapping

import msgspec
import numpy as np

from graphsched.base.values import nodes, pods, status
from graphsched.decision import context as contexts, cycle, names, profile, trace
from graphsched.explain import avoidance, cells, company, groups, remedies, rulings, shortfalls, ways, wording
from graphsched.graph import occupancy, view

PLUGIN_TITLES = {
    names.TAINT_TOLERATION: "taints to avoid",
    names.NODE_AFFINITY: "preferred nodes",
    names.NODE_RESOURCES_FIT: "room left",
    names.BALANCED_ALLOCATION: "balance of resources",
    names.IMAGE_LOCALITY: "image at hand",
    names.INTER_POD_AFFINITY: "company of other pods",
    names.POD_TOPOLOGY_SPREAD: "evenness of spread",
    names.REJECTIONS: "pods turned away of late",
    names.HEADROOM: "out of others' way",
    names.GRAPH_DISTANCE: "near what it asks for",
    names.GRAPH_PEERS: "near its partners",
    names.GRAPH_BANDWIDTH: "bandwidth to partners",
    names.GRAPH_HEALTH: "links in health",
    names.GRAPH_TAINTS: "weight of its tolerations",
    names.GRAPH_CELLS: "fits one NUMA cell",
    names.GRAPH_POLICY: "rules of policies",
}

_JOINING, _GROWING = "a node joining", "a node joining or growing"
_WAKES = {
    names.NODE_RESOURCES_FIT: ("a pod leaving a node it may run on", _GROWING),
    names.GPU_DEVICES: ("a pod giving back GPUs", "a node with GPUs joining"),
    names.NODE_PORTS: ("a pod giving back the host port", _JOINING),
    names.TAINT_TOLERATION: ("a taint going away", _JOINING),
    names.NODE_UNSCHEDULABLE: ("a node being uncordoned",),
    names.NODE_AFFINITY: ("a node getting the labels", _JOINING),
    names.NODE_NAME: ("that node joining",),
    names.INTER_POD_AFFINITY: ("pods that it looks for coming", "pods in the way leaving", _JOINING),
    names.POD_TOPOLOGY_SPREAD: ("a pod like it coming or leaving elsewhere", "a node joining an emptier domain"),
    names.NODE_DECLARED_FEATURES: ("a node declaring the feature",),
    names.HEADROOM: ("a pod leaving a node it may run on", _GROWING),
    names.BUDGET: ("a pod leaving a node it may run on", "a ceiling or a reservation being eased", _GROWING),
    names.POOL: ("a node joining the pool",),
    names.GRAPH_PATH: ("a link getting better or known", "a partner of it leaving", _JOINING),
    names.GRAPH_POLICY: ("a rule of the policy changing", "a node that the rules allow joining"),
}


class Order(msgspec.Struct, frozen=True, gc=False):
    """A pending pod's place in a queue that a plugin puts in order.

    Attributes:
        plugin: Its name.
        place: 1 for the pod that goes first of all.
        of: Number of pods in the queue.
        after: `namespace/name` of the pods in the queue that it depends on itself.
    """

    plugin: str
    place: int
    of: int
    after: tuple[str, ...] = ()


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """What a live queue knows of a pending pod.

    Attributes:
        seconds: How long it has been waiting.
        attempts: How often it was tried.
        next_try_s: When it is tried again by itself; None when only an event wakes it.
        order: Its place, where `queue.order` names a plugin.
        aside_s: How long it has been waiting for ways to be found, or rules to be asked, before its next try.
    """

    seconds: float
    attempts: int
    next_try_s: float | None = None
    order: Order | None = None
    aside_s: float | None = None


class Advised(msgspec.Struct, frozen=True, gc=False):
    """A pod that was tied to a node here, for another scheduler to bind it there.

    Attributes:
        node: Name of the node.
        seconds: How long ago.
        given_up: Whether its room there is for others again.
    """

    node: str
    seconds: float
    given_up: bool = False


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A node that passed every check, with its scores by plugin and their sum."""

    node: str
    scores: dict[str, int]
    total: int


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """The answer.

    Attributes:
        pod: `namespace/name`.
        state: `runs`, `pending`, `fits` (pending, and a node would take it now), `gated` or `advised` (tied to a node,
            where another scheduler is to bind it).
        headline: The answer in one sentence.
        node: Where it runs or would go; empty when nowhere.
        candidates: That node first, then at most two runners-up.
        score_max: What a total could be at most.
        feasible: Number of nodes that passed every check.
        groups: The refused nodes by what is in the way.
        nodes: Number of nodes.
        changes: What would be enough, cheapest first.
        wakes_on: What makes it worth another try.
        waiting: From the live queue, where there is one.
        avoided: Nodes that look worse for a while.
        ways: From each of the candidates to what the pod wants to be near and to its partners.
        rules: Those that weigh the first of the candidates.
        allowed: Those by which a candidate is allowed that others would deny.
        cells: How it lies in the NUMA cells of each of the candidates, where that counts.
        met: What rules require of the ways from there, and the ways.
        shortfalls: Ways that kept it away from nodes, those of most nodes first.
    """

    pod: str
    state: str
    headline: str
    node: str = ""
    candidates: tuple[Candidate, ...] = ()
    score_max: int = 0
    feasible: int = 0
    groups: tuple[groups.Group, ...] = ()
    nodes: int = 0
    changes: tuple[remedies.Change, ...] = ()
    wakes_on: tuple[str, ...] = ()
    waiting: Waiting | None = None
    avoided: tuple[avoidance.Avoided, ...] = ()
    ways: tuple[ways.Way, ...] = ()
    rules: tuple[rulings.Weighing, ...] = ()
    allowed: tuple[rulings.Allowed, ...] = ()
    cells: tuple[cells.Fit, ...] = ()
    met: tuple[rulings.Met, ...] = ()
    shortfalls: tuple[shortfalls.Shortfall, ...] = ()


def explain(
    graph: view.View,
    pod: pods.Pod,
    decider: cycle.Decider,
    *,
    waiting: Waiting | None = None,
    advised: Advised | None = None,
    context: contexts.Context = contexts.PLAIN,
    rejections: Mapping[str, tuple[str, float]] = types.MappingProxyType({}),
) -> Explanation:
    """Explain one pod on this view. A pod that runs is weighed as if it were about to be placed.

    Args:
        graph: The view.
        pod: The pod.
        decider: Decides.
        waiting: What the live queue knows of it.
        advised: What another scheduler was told about it, in mode `advise`.
        context: What a live scheduler would decide with.
        rejections: Node → the reason its kubelet turned a pod of ours away for, and how many seconds ago.
    """
    if pod.gates and not pod.node:
        return _gated(graph, pod, waiting)
    settings = decider.settings
    placement = counted.node if (counted := graph.placement(pod.key)) is not None else ""
    subject, beneath = pod, graph
    if placement:
        subject = msgspec.structs.replace(pod, node="", devices=())
        beneath = graph.with_changes(removed=[pod.key])
    evaluation = decider.evaluate(beneath, subject, context)
    ranked = _ranked(evaluation)
    base = Explanation(
        pod=pod.full_name,
        state="runs" if placement else "fits" if ranked else "pending",
        headline="",
        node=placement,
        feasible=len(ranked),
        groups=groups.refused(beneath, subject, evaluation, settings),
        nodes=len(evaluation.verdicts),
        score_max=100 * sum(settings.weights.get(plugin, 0) for plugin in _scored(ranked)),
        waiting=waiting,
        avoided=avoidance.avoided(beneath, ranked, context, rejections),
        shortfalls=shortfalls.of(beneath, subject, evaluation, now=context.now),
    )
    if advised is not None:
        return _advised(base, beneath, subject, evaluation, settings, advised)
    if placement or ranked:
        placed = (
            _placed(base, beneath, subject, evaluation, ranked, settings) if placement else _fits(base, subject, ranked)
        )
        placed = msgspec.structs.replace(
            placed,
            rules=rulings.weighing(beneath, subject, placed.node),
            met=rulings.met(beneath, subject, placed.node, now=context.now),
        )
        return _with_ways(placed, beneath, subject, settings, context)
    return _pending(base, beneath, subject, evaluation, settings)


def _with_ways(
    found: Explanation, graph: view.View, pod: pods.Pod, settings: profile.Profile, context: contexts.Context
) -> Explanation:
    """With what is told of the node it has or gets and of the runners-up: ways, cells, and rules that allow them."""
    told = [found.node, *(candidate.node for candidate in found.candidates if candidate.node != found.node)]
    known = [name for name in told if name in graph.columns.rows]
    every = tuple(way for name in known for way in ways.of_node(graph, pod, name, now=context.now))
    lying = tuple(fit for name in known if (fit := cells.of_node(graph, pod, name, settings)) is not None)
    return msgspec.structs.replace(found, ways=every, cells=lying, allowed=rulings.allowed(graph, pod, known))


def _gated(graph: view.View, pod: pods.Pod, waiting: Waiting | None) -> Explanation:
    gates = wording.both(pod.gates)
    noun = "the scheduling gate" if len(pod.gates) == 1 else "the scheduling gates"
    return Explanation(
        pod=pod.full_name,
        state="gated",
        headline=f"{pod.name} is held back by {noun} {gates}; it is not tried before that is removed.",
        nodes=len(graph.columns.rows),
        wakes_on=("its scheduling gates being removed",),
        waiting=waiting,
    )


def _ranked(evaluation: trace.Evaluation) -> list[Candidate]:
    passed = [
        Candidate(name, verdict.scores, verdict.total)
        for name, verdict in evaluation.verdicts.items()
        if verdict.status.ok
    ]
    return sorted(passed, key=lambda candidate: (-candidate.total, candidate.node))


def _scored(ranked: list[Candidate]) -> tuple[str, ...]:
    return tuple(ranked[0].scores) if ranked else ()


def _placed(
    base: Explanation,
    graph: view.View,
    pod: pods.Pod,
    evaluation: trace.Evaluation,
    ranked: list[Candidate],
    settings: profile.Profile,
) -> Explanation:
    verdict = evaluation.verdicts.get(base.node)
    where = f"{pod.name} runs on {base.node}"
    if verdict is None:
        return msgspec.structs.replace(base, headline=f"{where}, a node that is not known here.")
    if evaluation.prefilter is not None:
        reasons = " and ".join(evaluation.prefilter.reasons)
        return msgspec.structs.replace(base, headline=f"{where}. It could not be placed here anew: {reasons}.")
    if not verdict.status.ok:
        there = company.Company(graph, pod, settings)
        obstacle = groups.label(graph, pod, base.node, verdict.status, there)
        headline = f"{where}, which would not be chosen now: it is {obstacle}."
        return msgspec.structs.replace(base, headline=headline, candidates=tuple(ranked[:2]))
    own = next(candidate for candidate in ranked if candidate.node == base.node)
    others = [candidate for candidate in ranked if candidate.node != base.node][:2]
    if len(ranked) == 1:
        headline = f"{where}, {_sole(base.nodes)}."
    elif own.total == ranked[0].total:
        rivals = sum(candidate.total == own.total for candidate in ranked) - 1
        tie = f", the first by name of {wording.count(rivals + 1, 'equal')}" if rivals else ""
        first = tie if own.node == ranked[0].node else f", as good as {ranked[0].node}"
        headline = f"{where}: score {own.total} of {base.score_max}{first}."
    else:
        headline = (
            f"{where}: score {own.total} of {base.score_max}. As the cluster is now, {ranked[0].node} would be "
            f"better ({ranked[0].total})."
        )
    return msgspec.structs.replace(base, headline=headline, candidates=(own, *others))


def _advised(
    base: Explanation,
    graph: view.View,
    pod: pods.Pod,
    evaluation: trace.Evaluation,
    settings: profile.Profile,
    advised: Advised,
) -> Explanation:
    node, verdict = advised.node, evaluation.verdicts.get(advised.node)
    headline = f"{pod.name} was advised to {node} {wording.duration(advised.seconds)} ago and is not bound there yet: "
    if verdict is None:
        headline += "the node is not known here"
    elif verdict.status.ok:
        headline += "nothing known here is in the way, the scheduler named in the pod has to bind it"
    else:
        others = company.Company(graph, pod, settings)
        headline += f"it is {groups.label(graph, pod, node, verdict.status, others)} now"
    kept = "Its room there is for others again" if advised.given_up else "Its room there is kept"
    return msgspec.structs.replace(
        base,
        state="advised",
        node=node,
        headline=f"{headline}. {kept}; its affinity can not be changed any more, only a new pod is placed anew.",
    )


def _sole(total: int) -> str:
    return "the only node there is" if total == 1 else f"the only one of {total:,} nodes that takes it"


def _fits(base: Explanation, pod: pods.Pod, ranked: list[Candidate]) -> Explanation:
    best = ranked[0]
    node = pod.nominated if any(candidate.node == pod.nominated for candidate in ranked) else best.node
    chosen = next(candidate for candidate in ranked if candidate.node == node)
    others = [candidate for candidate in ranked if candidate.node != node][:2]
    if len(ranked) == 1:
        reason = _sole(base.nodes)
    elif node == pod.nominated:
        reason = "the node nominated to it"
    else:
        reason = f"score {chosen.total} of {base.score_max}, the best of {wording.count(len(ranked), 'node')}"
    headline = f"{pod.name} is pending and fits: it would go to {node} ({reason})."
    return msgspec.structs.replace(base, headline=headline, node=node, candidates=(chosen, *others))


def _pending(
    base: Explanation,
    graph: view.View,
    pod: pods.Pod,
    evaluation: trace.Evaluation,
    settings: profile.Profile,
) -> Explanation:
    since = f" for {wording.duration(base.waiting.seconds)}" if base.waiting else ""
    plugins = evaluation.diagnosis.plugins if evaluation.diagnosis else ()
    wakes = dict.fromkeys(event for plugin in plugins for event in _WAKES.get(plugin, ("any change of the cluster",)))
    if _GROWING in wakes:
        wakes.pop(_JOINING, None)
    return msgspec.structs.replace(
        base,
        headline=f"{pod.name} is pending{since}: {dominating(graph, pod, evaluation, base.groups, settings)}.",
        changes=remedies.smallest(graph, pod, evaluation, settings),
        wakes_on=tuple(wakes) if base.nodes else (_JOINING,),
    )


def dominating(
    graph: view.View,
    pod: pods.Pod,
    evaluation: trace.Evaluation,
    found: tuple[groups.Group, ...],
    settings: profile.Profile,
) -> str:
    """The one reason to look at first, as part of a sentence.

    Nodes that are full come before nodes that are too small, and those before nodes that are of another sort: a
    thousand nodes without a GPU are no news to somebody who asked for one.
    """
    if evaluation.prefilter is not None:
        return " and ".join(evaluation.prefilter.reasons)
    if not evaluation.verdicts:
        return "there are no nodes"
    near = [name for group in found if group.room for name in group.nodes]
    if near:
        return _lacking_room(graph, pod, evaluation, near, settings)
    small = [group for group in found if group.plugin in {names.NODE_RESOURCES_FIT, names.GPU_DEVICES}]
    if small:
        return _too_small(graph, pod, evaluation, [name for group in small for name in group.nodes])
    if len(found) == 1:
        return f"every node is {found[0].label}" if len(found[0].nodes) > 1 else f"the only node is {found[0].label}"
    return f"no node accepts it ({groups.summary(found, at_most=3)})"


def _lacking_room(
    graph: view.View, pod: pods.Pod, evaluation: trace.Evaluation, near: list[str], settings: profile.Profile
) -> str:
    total = len(evaluation.verdicts)
    refusals = [evaluation.verdicts[name].status for name in near]
    if all(refusal.by == names.GPU_DEVICES for refusal in refusals):
        return f"{_none(near, total)} has {_devices_wanted(pod)} free{_most_devices(graph, pod, near)}"
    if all(refusal.by == names.NODE_PORTS for refusal in refusals):
        ports = wording.either([str(port.port) for port in pod.spec.ports])
        return f"{_all(near, total)} without host port {ports}, which is taken"
    wanted = dict(pod.spec.demand.amounts)
    common = [name for name in wanted if all(name in groups.short_of(refusal) for refusal in refusals)]
    if common:
        rows = np.array([graph.columns.rows[name] for name in near], np.intp)
        percent = settings.headroom if any(refusal.by == names.HEADROOM for refusal in refusals) else 0
        limits = {groups.limit(refusal) for refusal in refusals if refusal.by == names.BUDGET}
        beside = f" outside the headroom of {percent}%" if percent else "".join(f" {limit}" for limit in sorted(limits))
        free = {name: remedies.granted_column(graph, pod, name, headroom=percent)[rows] for name in common}
        # The resource of which most is missing even where most is free.
        resource = max(common, key=lambda name: (wanted[name] - max(0, int(free[name].max()))) / wanted[name])
        greatest = int(free[resource].max())
        most = min(name for name, amount in zip(near, free[resource].tolist(), strict=True) if amount == greatest)
        return (
            f"{_none(near, total)} has {wording.amount(resource, wanted[resource], up=True)} free{beside} "
            f"(most: {wording.amount(resource, max(0, greatest))} on {most})"
        )
    scarce = sorted({name for refusal in refusals for name in short(refusal)})
    apart = stranded(graph, pod, evaluation, near)
    if apart:
        others = sorted({name for refusal in apart for name in short(refusal)})
        return (
            f"the {wording.count(len(apart), 'node')} with {_devices_wanted(pod)} free "
            f"{'is' if len(apart) == 1 else 'are'} short of {wording.either(others)}, the others of GPUs"
        )
    return f"{_all(near, total)} full, {'' if len(near) == 1 else 'each '}short of {wording.either(scarce)}"


def stranded(graph: view.View, pod: pods.Pod, evaluation: trace.Evaluation, near: list[str]) -> list[status.Status]:
    """Refusals of the nodes whose GPUs would do but whose other resources do not."""
    gpu = pod.spec.gpu
    if gpu is None:
        return []
    rows = np.array([graph.columns.rows[name] for name in near], np.intp)
    fitting = graph.devices.fit(gpu, rows)
    return [evaluation.verdicts[name].status for name, fits in zip(near, fitting.tolist(), strict=True) if fits]


def _only(near: list[str], total: int) -> str:
    """The one node in question, introduced."""
    return f"{near[0]}, the only node{'' if total == 1 else ' it may run on'},"


def _where(near: list[str], total: int) -> str:
    nodes_text = wording.count(len(near), "node")
    return f"the {nodes_text}" if len(near) == total else f"the {nodes_text} it may run on"


def _none(near: list[str], total: int) -> str:
    """Subject of a sentence about what no node has."""
    return f"not even {_only(near, total)}" if len(near) == 1 else f"none of {_where(near, total)}"


def _all(near: list[str], total: int) -> str:
    """Subject and verb of a sentence about what all nodes are."""
    return f"{_only(near, total)} is" if len(near) == 1 else f"all of {_where(near, total)} are"


def short(refusal: status.Status) -> tuple[str, ...]:
    """What is missing on a node that has too little room, as nouns."""
    if refusal.by == names.GPU_DEVICES:
        return ("GPUs",)
    if refusal.by == names.NODE_PORTS:
        return ("the host port",)
    return (*groups.short_of(refusal), *(("pods",) if groups.too_many_pods(refusal) else ()))


def _devices_wanted(pod: pods.Pod) -> str:
    gpu = pod.spec.gpu
    return "GPUs" if gpu is None else wording.gpus(msgspec.structs.replace(gpu, models=()))


def _most_devices(graph: view.View, pod: pods.Pod, near: list[str]) -> str:
    gpu = pod.spec.gpu
    if gpu is None:
        return ""
    best, at = -1, ""
    for name in sorted(near):
        free = graph.devices.free[:, graph.columns.rows[name]]
        most = int(free.max()) if gpu.milli < occupancy.GPU_MILLI else int((free >= gpu.milli).sum())
        if most > best:
            best, at = most, name
    what = f"{best}/1000 of one" if gpu.milli < occupancy.GPU_MILLI else str(best)
    return f" (most: {what} on {at})" if best > 0 else ""


def _too_small(graph: view.View, pod: pods.Pod, evaluation: trace.Evaluation, small: list[str]) -> str:
    total = len(evaluation.verdicts)
    wanted = dict(pod.spec.demand.amounts)
    for resource, amount in wanted.items():
        largest = max((_offered(graph, name, resource) for name in small), default=0)
        if amount > largest:
            has = f"has more than {wording.amount(resource, largest)}" if largest else "has any"
            return f"it asks for {wording.amount(resource, amount, up=True)}, and {_none(small, total)} {has}"
    if pod.spec.gpu is not None and any(evaluation.verdicts[name].status.by == names.GPU_DEVICES for name in small):
        return f"{_none(small, total)} has {wording.gpus(pod.spec.gpu)}"
    return f"{_all(small, total)} too small in some way"


def _offered(graph: view.View, name: str, resource: str) -> int:
    node = graph.node(name)
    offered: nodes.Amounts = node.allocatable if node is not None else ()
    return dict(offered).get(resource, 0)
