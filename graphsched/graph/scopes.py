"""Which pods a term speaks of.

Affinity terms and spread constraints all pick pods the same way: by namespace, listed or selected by label, and by the
pod's own labels. That part of a term is its `Scope`; it carries no topology key, so terms that differ in the key alone
share one count per node. `matchers` counts the pods in a scope, `owners` finds the scopes that a pod is in.

Invariant: a namespace nobody has described has no labels; it is not another kind of namespace.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import labels, pods


class Scope(msgspec.Struct, frozen=True, gc=False):
    """A set of pods, by namespace and by label.

    Attributes:
        selector: On the pod's labels; None selects no pod, the empty selector every one.
        namespaces: Listed namespaces, sorted.
        namespace_selector: Further namespaces by their labels; None adds none, the empty selector adds all.
    """

    selector: labels.Selector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: labels.Selector | None = None

    def covers(self, namespace: str, namespace_labels: labels.Labels) -> bool:
        """Whether the namespace is one of those listed or selected."""
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)

    def selects(self, pod_labels: labels.Labels, *, namespace: str, namespace_labels: labels.Labels) -> bool:
        """Whether a pod with these labels, in this namespace, belongs to the set."""
        if self.selector is None or not self.covers(namespace, namespace_labels):
            return False
        return self.selector.matches(pod_labels)


def of_term(term: pods.PodTerm) -> Scope:
    """The scope of a term that a placed pod owns, read as it stands."""
    return Scope(term.selector, term.namespaces, term.namespace_selector)


def of_incoming(term: pods.PodTerm) -> Scope:
    """The scope of a term of the pod that is being scheduled.

    kube-scheduler turns such a term's namespace selector into names first, and then still evaluates the selector,
    against no labels at all: one that accepts their absence (NotIn and DoesNotExist alone) selects every namespace.
    """
    chosen = term.namespace_selector
    if chosen is not None and chosen.matches(labels.NO_LABELS):
        chosen = labels.Selector()
    return Scope(term.selector, term.namespaces, chosen)
