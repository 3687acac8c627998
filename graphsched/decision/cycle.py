"""The cycle: one pod, one view, one decision.

`app/loop` and `app/simulate` call `decide`; `evaluate` is the same question with every node's answer written out. All
the branches live here, the vectors in `constraints`, `scoring` and `classes`. Nothing is read but the view, nothing is
changed but the class cache, and equal input gives equal output: ties go to the first node by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphsched.base.values import pods, status
from graphsched.decision import classes, context as contexts, names, preparing, profile, trace
from graphsched.decision.constraints import check, identity, neighbours, paths, walk
from graphsched.decision.policy import compliance
from graphsched.decision.scoring import scores
from graphsched.graph import view

RUNNERS_UP = 2
"""How many further nodes a decision names."""

CLASSES_MAX = 1024
"""Classes kept: at 5,000 nodes one takes about 300 kB."""


class Decider:
    """Decides for one profile.

    Attributes:
        settings: The profile.
        classes: The class cache, with its statistics.
    """

    def __init__(self, settings: profile.Profile | None = None, *, classes_max: int = CLASSES_MAX) -> None:
        self.settings = settings or profile.Profile()
        self.classes = classes.Classes(self.settings, classes_max=classes_max)
        self._hard_by_default = any(constraint.hard for constraint in self.settings.spread_by_default)
        self._companies = classes.company_plugins(self.settings)
        self._graph_scores = classes.graph_plugins(self.settings)

    def decide(self, graph: view.View, pod: pods.Pod, context: contexts.Context = contexts.PLAIN) -> trace.Decision:
        """Choose a node, or say why there is none.

        Raises:
            StaleViewError: The store has moved on since the view was made.
        """
        if not graph.columns.rows:
            return _nowhere(graph, pod, trace.Diagnosis(nodes=0))
        refused = prefilter(pod, self.settings)
        if refused is not None:
            return _nowhere(graph, pod, _whole(graph, refused))
        found = self.classes.get(graph, pod.spec)
        subject, crowded = self._subject(graph, pod, context), _with_nominated(graph, pod)
        allowed = self._narrowed(graph, pod, self._outside(graph, pod, subject, crowded))
        mask = found.mask if allowed is None else found.mask & allowed
        feasible = int(np.count_nonzero(mask))
        if not feasible:
            return _nowhere(graph, pod, self._diagnosis(graph, pod, self._attribute(graph, pod, context)))
        row = graph.columns.rows.get(pod.nominated, -1) if pod.nominated else -1
        unscored = feasible == 1 or (row >= 0 and bool(mask[row]))
        if not unscored:
            failed = self._scoring_error(pod)
            if failed is not None:
                return _nowhere(graph, pod, _whole(graph, failed))
        extra = {} if feasible == 1 else self._company(graph, subject, mask)
        costs = contexts.costs_of(graph, context)
        summed, lift = _lifted(extra if costs is None else {**extra, names.REJECTIONS: -costs.column})
        ranking = found.ranking if allowed is None and summed is None else found.within(graph, mask, summed)
        if row < 0 or not mask[row]:
            row = int(ranking.key.argmax())
        added = tuple((plugin, int(values[row])) for plugin, values in extra.items())
        added += () if costs is None else costs.score(row)
        node = graph.columns.names[row]
        return trace.Decision(
            pod=pod.key,
            uid=pod.uid,
            generation=graph.generation,
            node=node,
            devices=crowded.get(node, graph).devices.choose(row, pod.spec.gpu) if pod.spec.gpu is not None else (),
            score=0 if unscored else int(ranking.key[row]) // classes.RANK_SPAN - lift,
            scores=() if unscored else (*found.scores_at(row, ranking.greatest), *added),
            feasible=feasible,
            runners_up=_next_best(graph, ranking.key, row) if feasible > 1 else (),
            avoided=() if costs is None else costs.avoided(mask),
        )

    def admits(
        self, graph: view.View, pod: pods.Pod, name: str, context: contexts.Context = contexts.PLAIN
    ) -> status.Status:
        """Whether one node takes the pod: every filter, evaluated anew for it alone.

        Raises:
            StaleViewError: The store has moved on since the view was made.
        """
        refused = prefilter(pod, self.settings)
        if refused is not None:
            return refused
        row = graph.columns.rows.get(name)
        if row is None:
            return status.Status(status.Code.UNRESOLVABLE, ("node(s) were deleted",), names.NODE_NAME)
        pinned = _pinned(pod.spec, self.settings)
        if pinned is not None and name not in {*pinned, pod.nominated}:
            return status.Status(status.Code.UNRESOLVABLE, (identity.NodeAffinity.reason,), names.NODE_AFFINITY)
        subject, rows = self._subject(graph, pod, context), np.array([row], np.intp)
        checks = [each for each in self._running(graph, pod) if each.applies(subject)]
        nominated = _nominated_there(graph, pod, name)
        for there in (graph.with_changes(added=nominated), graph) if nominated else (graph,):
            if not walk.mask(there, subject, checks, rows)[0]:
                attributed = walk.attribute(there, subject, checks)
                by = attributed.plugins[attributed.plugin[row]]
                return status.Status(status.Code(int(attributed.codes[row])), attributed.reasons(row), by)
        return status.SUCCESS

    def weigh(self, graph: view.View, pod: pods.Pod, name: str) -> trace.Weighing:
        """What is to be said of the node of this name, beside the one that `decide` chooses.

        Raises:
            StaleViewError: The store has moved on since the view was made.
        """
        decision, admitted = self.decide(graph, pod), self.admits(graph, pod, name)
        if not admitted.ok or not decision.placed:
            return trace.Weighing(decision, admitted)
        found, subject = self.classes.get(graph, pod.spec), self._subject(graph, pod)
        allowed = self._narrowed(graph, pod, self._outside(graph, pod, subject, _with_nominated(graph, pod)))
        mask = found.mask if allowed is None else found.mask & allowed
        extra = self._company(graph, subject, mask)
        summed, lift = _lifted(extra)
        key = (found.ranking if allowed is None and summed is None else found.within(graph, mask, summed)).key
        total, best = int(key[graph.columns.rows[name]]), int(key.max())
        return trace.Weighing(decision, admitted, total // classes.RANK_SPAN - lift, best // classes.RANK_SPAN - lift)

    def devices(self, graph: view.View, pod: pods.Pod, name: str) -> tuple[int, ...]:
        """Indices of the shareable GPUs that the pod gets on a node that admits it."""
        if pod.spec.gpu is None:
            return ()
        nominated = _nominated_there(graph, pod, name)
        there = graph.with_changes(added=nominated) if nominated else graph
        return there.devices.choose(graph.columns.rows[name], pod.spec.gpu)

    def prepare(self, graph: view.View, pod: pods.Pod, expired: Callable[[], bool] = contexts.never) -> bool:
        """Find out what rules say of such a pod and search for the ways it asks for, until `expired`.

        What was done is kept.

        Returns:
            Whether `decide` has nothing left to find out.
        """
        subject = self._subject(graph, pod)
        ruled = names.GRAPH_POLICY not in self.settings.disabled
        if ruled and not compliance.prepare(graph, subject, expired):
            return False
        return preparing.prepare(graph, subject, self.settings, expired)

    def needs(self, graph: view.View, pod: pods.Pod) -> bool:
        """Whether there may be something to `prepare` for such a pod; costs next to nothing."""
        return len(graph.rules) > 0 or preparing.concerns(graph, pod.spec)

    def keeps_company(self, graph: view.View, pod: pods.Pod) -> bool:
        """Whether what happens on other nodes, or a rule, may have a say in whether a node takes the pod."""
        return (
            self._hard_by_default
            or len(graph.rules) > 0
            or bool(pod.spec.spread)
            or neighbours.concerns(graph, pod.spec, pod.namespace, pod.labels)
            or paths.concerns(graph, pod.spec, pod.namespace, pod.labels)
        )

    def evaluate(self, graph: view.View, pod: pods.Pod, context: contexts.Context = contexts.PLAIN) -> trace.Evaluation:
        """Every node's verdict, evaluated anew without the class cache.

        Raises:
            StaleViewError: The store has moved on since the view was made.
        """
        if not graph.columns.rows:
            return trace.Evaluation(pod.key, graph.generation, {}, None, (), trace.Diagnosis(nodes=0))
        refused = prefilter(pod, self.settings)
        if refused is not None:
            return _refused_whole(graph, pod, refused)
        attributed = self._attribute(graph, pod)
        passed = (attributed.plugin < 0) & graph.columns.live
        failed = self._scoring_error(pod)
        nominated = graph.columns.rows.get(pod.nominated, -1)
        if failed is not None and np.count_nonzero(passed) > 1 and not (nominated >= 0 and passed[nominated]):
            return _refused_whole(graph, pod, failed)
        by_plugin = self._scores(graph, pod, passed) if failed is None else {}
        costs = contexts.costs_of(graph, context)
        if costs is not None:
            by_plugin[names.REJECTIONS] = -costs.column
        verdicts = {}
        for name, row in sorted(graph.columns.rows.items()):
            if passed[row]:
                scored = {plugin: int(values[row]) for plugin, values in by_plugin.items()}
                verdicts[name] = trace.Verdict(status.SUCCESS, scored, sum(scored.values()))
            else:
                by = attributed.plugins[attributed.plugin[row]]
                code = status.Code(int(attributed.codes[row]))
                verdicts[name] = trace.Verdict(status.Status(code, attributed.reasons(row), by))
        top = max((verdict.total for verdict in verdicts.values() if verdict.status.ok), default=None)
        best = tuple(name for name, verdict in verdicts.items() if verdict.status.ok and verdict.total == top)
        diagnosis = None if best else self._diagnosis(graph, pod, attributed)
        return trace.Evaluation(pod.key, graph.generation, verdicts, None, best, diagnosis)

    def _outside(
        self, graph: view.View, pod: pods.Pod, subject: check.Subject, crowded: dict[str, view.View]
    ) -> trace.Mask | None:
        """Bool a row: what the checks outside the class allow; None when they allow every node."""
        spec = pod.spec
        concerned = bool(spec.spread) or neighbours.concerns(graph, spec, pod.namespace, pod.labels)
        concerned = concerned or bool(graph.budgets) or paths.concerns(graph, spec, pod.namespace, pod.labels)
        ruled = len(graph.rules) > 0
        if not concerned and not crowded and not ruled and not self._hard_by_default:
            return None
        outside = [*walk.COMPANY, walk.PATHS, walk.GRANTED] if concerned or subject.default_spread else []
        if ruled:
            outside.append(walk.POLICY)
        outside = [each for each in outside if each.plugin not in self.settings.disabled]
        allowed = walk.mask(graph, subject, walk.plan(outside, subject), slice(None))
        if crowded:
            planned = walk.plan([each for each in self._running(graph, pod) if not each.static], subject)
            for name, there in crowded.items():
                rows = np.array([graph.columns.rows[name]], np.intp)
                allowed[rows] &= walk.mask(there, subject, planned, rows)
        return allowed

    def _narrowed(self, graph: view.View, pod: pods.Pod, allowed: trace.Mask | None) -> trace.Mask | None:
        """Those of the pinned names alone, where PreFilter still narrows and the filter that says so too is off."""
        if names.NODE_AFFINITY not in self.settings.disabled:
            return allowed
        pinned = _pinned(pod.spec, self.settings)
        if pinned is None:
            return allowed
        mask = _Narrowed(pinned, pod.nominated, by="").within(graph)
        return mask if allowed is None else allowed & mask

    def _company(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> dict[str, trace.Scores]:
        """Plugin → weighted score a row, of the scores outside the class that do not skip."""
        found: dict[str, trace.Scores] = {}
        told = graph.groups or graph.topology.links or graph.cells or graph.callers
        placed = subject.spec.graph is not None or told
        for each in (*self._companies, *self._graph_scores) if placed else self._companies:
            score = each.score(graph, subject, passed)
            if score is not None:
                found[each.plugin] = score * self.settings.weights[each.plugin]
        if len(graph.rules):
            weights = compliance.weights(graph, subject)
            if weights is not None:
                found[names.GRAPH_POLICY] = weights
        return found

    def _diagnosis(self, graph: view.View, pod: pods.Pod, attributed: walk.Attributed) -> trace.Diagnosis:
        counts: dict[str, int] = {}
        for refusals in attributed.refusals:
            for refusal in refusals:
                counts[refusal.reason] = counts.get(refusal.reason, 0) + int(np.count_nonzero(refusal.mask))
        plugins = {plugin for plugin in attributed.plugins if plugin}
        if _pinned(pod.spec, self.settings):
            plugins.add(names.NODE_AFFINITY)
        return trace.Diagnosis(
            nodes=len(graph.columns.rows),
            reasons=tuple(sorted(counts.items(), key=lambda entry: f"{entry[1]} {entry[0]}")),
            plugins=tuple(sorted(plugins)),
            helpful=bool((attributed.codes == status.Code.UNSCHEDULABLE).any()),
        )

    def _attribute(
        self, graph: view.View, pod: pods.Pod, context: contexts.Context = contexts.PLAIN
    ) -> walk.Attributed:
        subject, checks = self._subject(graph, pod, context), self._running(graph, pod)
        crowded = _with_nominated(graph, pod)
        pinned = _pinned(pod.spec, self.settings)
        if pinned:
            seen = (crowded[pod.nominated], graph) if pod.nominated in crowded else (graph,)
            by = next(filter(None, (_refusing(each, subject, checks, name=pod.nominated) for each in seen)), "")
            checks = [_Narrowed(pinned, pod.nominated, by=by), *checks]
        attributed = walk.attribute(graph, subject, checks)
        for name, there in crowded.items():
            # With the nominated pods first, as the filters run on such a node, so those refusals are the ones told.
            attributed = walk.overlaid(attributed, walk.attribute(there, subject, checks), graph.columns.rows[name])
        return attributed

    def _scores(self, graph: view.View, pod: pods.Pod, passed: trace.Mask) -> dict[str, trace.Scores]:
        """Plugin → weighted normalised score a row, for the plugins that do not skip."""
        subject = self._subject(graph, pod)
        by_plugin: dict[str, trace.Scores] = {}
        for each in classes.score_plugins(self.settings):
            if each.applies(subject):
                raw = each.raw(graph, subject, slice(None))
                greatest = int(raw.max(where=passed, initial=0))
                by_plugin[each.plugin] = (
                    scores.normalise(raw, greatest, each.normalised) * self.settings.weights[each.plugin]
                )
        return {**by_plugin, **self._company(graph, subject, passed)}

    def _scoring_error(self, pod: pods.Pod) -> status.Status | None:
        """What keeps nodes from being scored; kube-scheduler finds it only where it has several to choose from."""
        unreadable = any(preferred.weight and not preferred.term.valid for preferred in pod.spec.preferred)
        if not unreadable or not self.settings.weights.get(names.NODE_AFFINITY):
            return None
        reason = f'running PreScore plugin "{names.NODE_AFFINITY}": a preferred node affinity term can not be parsed'
        return status.Status(status.Code.ERROR, (reason,), names.NODE_AFFINITY)

    def _subject(self, graph: view.View, pod: pods.Pod, context: contexts.Context = contexts.PLAIN) -> check.Subject:
        return classes.whole_subject(graph, pod, self.settings, context.expired)

    def _running(self, graph: view.View, pod: pods.Pod) -> list[check.Check]:
        """The checks less those that nothing in the graph gives a reason to run."""
        concerned = neighbours.concerns(graph, pod.spec, pod.namespace, pod.labels)
        limited = paths.concerns(graph, pod.spec, pod.namespace, pod.labels)
        idle = {
            names.INTER_POD_AFFINITY: not concerned,
            names.GRAPH_PATH: not limited,
            names.BUDGET: not graph.budgets,
            names.GRAPH_POLICY: not len(graph.rules),
        }
        return [each for each in self._enabled() if not idle.get(each.plugin)]

    def _enabled(self) -> list[check.Check]:
        return [each for each in walk.IN_ORDER if each.plugin not in self.settings.disabled]


class _Narrowed:
    """Nodes that PreFilter cut away because required affinity pins other names. They have no plugin of their own.

    The node that the pod is nominated to is looked at before the cut, so it keeps the reasons of the checks. And the
    plugin that refuses it there (`by`) is named among those that cut away the others, as kube-scheduler names it.
    """

    plugin = ""
    static = True
    after: tuple[str, ...] = ()

    def __init__(self, pinned: frozenset[str], nominated: str, *, by: str) -> None:
        self._looked_at = {*pinned, nominated}
        plugins = sorted({names.NODE_AFFINITY, by} - {""})
        self.reason = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002
        """Always: it is made only where every required term pins names."""
        return True

    def within(self, graph: view.View) -> trace.Mask:
        """Bool a row: it is one of the pinned nodes, or the nominated one."""
        mask = np.zeros(graph.columns.capacity, np.bool_)
        for name in self._looked_at:
            row = graph.columns.rows.get(name)
            if row is not None:
                mask[row] = True
        return mask

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:  # noqa: ARG002
        """Bool for each row: it is one of those."""
        return self.within(graph)[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """All the others."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=True)]


def prefilter(pod: pods.Pod, settings: profile.Profile) -> status.Status | None:
    """The refusal of the pod as a whole, whatever the nodes; None when they decide."""
    missing = unsupported(pod.spec)
    if missing:
        reasons = tuple(f"graph-scheduler does not support {what} yet" for what in missing)
        return status.Status(status.Code.UNRESOLVABLE, reasons, names.UNSUPPORTED)
    wanted = pod.spec.graph
    if wanted is not None and wanted.problem:
        return status.Status(status.Code.UNRESOLVABLE, (wanted.problem,), names.UNSUPPORTED)
    pinned = _pinned(pod.spec, settings)
    if pinned is not None and not pinned:
        return status.Status(status.Code.UNRESOLVABLE, ("pod affinity terms conflict",), names.NODE_AFFINITY)
    return None


def _pinned(spec: pods.Spec, settings: profile.Profile) -> frozenset[str] | None:
    """The node names that PreFilter narrows the search to; None where it does not."""
    narrows = names.NODE_AFFINITY not in settings.disabled if settings.narrows is None else settings.narrows
    return identity.pinned_names(spec.affinity) if narrows else None


def _refusing(graph: view.View, subject: check.Subject, checks: list[check.Check], *, name: str) -> str:
    """The plugin that refuses the node of that name; empty where none does, or no node has it."""
    row = graph.columns.rows.get(name)
    if row is None:
        return ""
    attributed = walk.attribute(graph, subject, checks)
    number = int(attributed.plugin[row])
    return attributed.plugins[number] if number >= 0 else ""


def unsupported(spec: pods.Spec) -> tuple[str, ...]:
    """What the spec asks for and this version does not evaluate, in words, sorted."""
    return tuple(sorted(spec.claims))


def _with_nominated(graph: view.View, pod: pods.Pod) -> dict[str, view.View]:
    """Node name → the view with the pods counted there that are nominated to it and at least as important.

    One view a node: a node is judged with its own nominated pods, not with those of others.
    """
    found: dict[str, view.View] = {}
    for name in graph.nominated:
        waiting = _nominated_there(graph, pod, name)
        if waiting and name in graph.columns.rows:
            found[name] = graph.with_changes(added=waiting)
    return found


def _nominated_there(graph: view.View, pod: pods.Pod, name: str) -> list[tuple[pods.Pod, str]]:
    """The other pods nominated to this node that are at least as important, each with its name."""
    others = graph.nominated.get(name, {})
    return [(other, name) for key, other in others.items() if key != pod.key and other.priority >= pod.priority]


def _sum(parts: dict[str, trace.Scores]) -> trace.Scores | None:
    """All of them added up; None without any."""
    total: trace.Scores | None = None
    for part in parts.values():
        total = part if total is None else total + part
    return total


def _lifted(parts: dict[str, trace.Scores]) -> tuple[trace.Scores | None, int]:
    """Their sum, raised so that no total it is added to gets negative, as no key of a node that passes may be."""
    total = _sum(parts)
    lift = 0 if total is None else max(0, -int(total.min(initial=0)))
    return (total + lift if total is not None and lift else total), lift


def _next_best(graph: view.View, key: trace.Scores, chosen: int) -> tuple[str, ...]:
    """Names of the best nodes after the chosen one."""
    rest = key.copy()
    rest[chosen] = -1
    found: list[str] = []
    for _ in range(RUNNERS_UP):
        row = int(rest.argmax())
        if rest[row] < 0:
            break
        found.append(graph.columns.names[row])
        rest[row] = -1
    return tuple(found)


def _nowhere(graph: view.View, pod: pods.Pod, diagnosis: trace.Diagnosis) -> trace.Decision:
    return trace.Decision(pod.key, pod.uid, graph.generation, diagnosis=diagnosis)


def _refused_whole(graph: view.View, pod: pods.Pod, refused: status.Status) -> trace.Evaluation:
    verdicts = dict.fromkeys(sorted(graph.columns.rows), trace.Verdict(refused))
    return trace.Evaluation(pod.key, graph.generation, verdicts, refused, (), _whole(graph, refused))


def _whole(graph: view.View, refused: status.Status) -> trace.Diagnosis:
    return trace.Diagnosis(
        nodes=len(graph.columns.rows),
        plugins=() if refused.code is status.Code.ERROR else (refused.by,),
        prefilter=refused,
        helpful=refused.code is status.Code.UNSCHEDULABLE,
    )
