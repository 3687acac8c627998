"""Services and controllers as selectors, and the controller of a pod."""

from __future__ import annotations

import json

import pytest

from graphsched.base.kube import pods as kube_pods, selections as kube_selections, wire
from graphsched.base.values import errors, labels

APP = labels.Requirement("app", labels.Operator.IN, ("web",))


@pytest.mark.parametrize(
    ("kind", "selector", "requirements"),
    [
        ("Service", {"app": "web"}, (APP,)),
        ("Service", {}, ()),
        ("Service", None, None),
        ("ReplicationController", {"app": "web"}, (APP,)),
        ("ReplicaSet", {"matchLabels": {"app": "web"}}, (APP,)),
        ("StatefulSet", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, (APP,)),
        ("StatefulSet", None, None),
        ("ReplicaSet", {"matchExpressions": [{"key": "app", "operator": "Like"}]}, None),
    ],
)
def test_only_the_selector_is_kept(
    kind: str, selector: object, requirements: tuple[labels.Requirement, ...] | None
) -> None:
    """None where it is missing or can not be read, as kube-scheduler goes on without it."""
    manifest = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": selector, "replicas": 3}}
    body = kube_selections.CODECS[kind].decode(json.dumps(manifest).encode())
    found = kube_selections.CONVERTERS[kind](body)

    assert f"selection/{kind}/shop/web" == found.key
    assert requirements == (None if found.selector is None else found.selector.requirements)


@pytest.mark.parametrize("kind", sorted(kube_selections.CODECS))
def test_an_object_has_a_name(kind: str) -> None:
    """One line says what is missing."""
    with pytest.raises(errors.InputError, match=rf"{kind}: metadata\.name: is missing"):
        kube_selections.CONVERTERS[kind](kube_selections.CODECS[kind].convert({}))


@pytest.mark.parametrize(
    ("owner", "key"),
    [
        (wire.Owner("apps/v1", "ReplicaSet", "web", controller=True), "selection/ReplicaSet/shop/web"),
        (wire.Owner("apps/v1", "StatefulSet", "web", controller=True), "selection/StatefulSet/shop/web"),
        (wire.Owner("v1", "ReplicationController", "web", controller=True), "selection/ReplicationController/shop/web"),
        (wire.Owner("apps/v1", "ReplicaSet", "web"), ""),
        (wire.Owner("apps/v1beta2", "ReplicaSet", "web", controller=True), ""),
        (wire.Owner("apps/v1", "DaemonSet", "web", controller=True), ""),
        (wire.Owner("v1", "Service", "web", controller=True), ""),
        (wire.Owner("apps/v1", "ReplicaSet", "a/b", controller=True), ""),
    ],
)
def test_the_controller_of_a_pod_is_known_if_its_selector_counts(owner: wire.Owner, key: str) -> None:
    """By kind and apiVersion; others, and owners that do not control, spread nothing."""
    metadata = wire.Metadata(name="p", namespace="shop", owner_references=[owner])

    assert key == kube_pods.pod(wire.Pod(metadata=metadata)).owner
