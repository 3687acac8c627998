"""What hints ask of the graph: who fits on nodes that a pod has left, and whether that pod was in somebody's way.

Comes in: names of nodes and the spec of a pod that waits for room, at 5 to 10 µs for the same checks that decide, over
the few rows in question; or a pod that waits for ways, and what others were and are. Goes out: yes or no.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from graphsched.app import encounters, hints
from graphsched.base.values import pods
from graphsched.decision import classes, profile
from graphsched.decision.constraints import check, feasibility, granted, sharing, walk
from graphsched.graph import matchers, partners, store as stores, view as views

_GRANTED = granted.Granted()
_CHECKS: tuple[check.Check, ...] = (
    feasibility.NodeResourcesFit(),
    feasibility.GpuDevices(),
    sharing.Headroom(),
    _GRANTED,
)


class Rooms:
    """Answers `hints.Room` from the present graph."""

    def __init__(self, store: stores.Store, settings: profile.Profile) -> None:
        self._store = store
        self._settings = settings
        self._checks = tuple(each for each in _CHECKS if each.plugin not in settings.disabled)
        # What holds for all pods of a spec alike, whoever they belong to.
        self._spare = tuple(each for each in self._checks if each is not _GRANTED)
        self._names: Sequence[str] = ()
        self._layout = -1
        self._rows = np.zeros(0, np.intp)

    def __call__(self, names: Sequence[str], spec: pods.Spec) -> bool:
        """Whether one of these nodes has the resources and devices that the spec asks for."""
        view = self._store.view()
        return self._room(view, names, classes.subject_of(spec, self._settings), self._spare)

    def granted(self, names: Sequence[str], pod: pods.Pod) -> bool:
        """The same, beside what is granted to others."""
        view = self._store.view()
        subject = classes.subject_of(pod.spec, self._settings)
        subject = msgspec.structs.replace(subject, namespace=pod.namespace, labels=pod.labels)
        return self._room(view, names, subject, self._checks)

    def _room(
        self, view: views.View, names: Sequence[str], subject: check.Subject, checks: Sequence[check.Check]
    ) -> bool:
        columns = view.columns
        if names is not self._names or columns.layout != self._layout:
            # Asked for the same nodes by one kind of pod after the other.
            known = [columns.rows[name] for name in names if name in columns.rows]
            self._names, self._layout, self._rows = names, columns.layout, np.array(known, np.intp)
        applying = [each for each in checks if each.applies(subject)]
        return bool(walk.mask(view, subject, applying, self._rows).any())

    def leaving(self, pod: pods.Pod) -> hints.Leaving:
        """Tells who is one less of those to whom the pod limits the way."""
        store = self._store
        named = partners.limiting(store.groups, store.selections, pod.spec, pod.namespace, pod.labels)
        limiting = [partner.matcher for partner in named if partner.limited]

        def selects(matcher: matchers.Matcher, kind: encounters.Kind) -> bool:
            namespace, known = kind
            told = store.matchers.namespace_labels(namespace)
            return matcher.selects(known, namespace=namespace, namespace_labels=told)

        def leaves(before: encounters.Kind, after: encounters.Kind | None) -> bool:
            return any(selects(each, before) and (after is None or not selects(each, after)) for each in limiting)

        return leaves
