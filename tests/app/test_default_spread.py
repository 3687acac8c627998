"""Spreading by default, and the arguments of the plugins that look at other pods, asked through `evaluate`."""

from __future__ import annotations

import json
import typing

import msgspec
import pytest

from graphsched.app import evaluate, profiles
from graphsched.base.values import errors
from graphsched.decision import names, profile
from graphsched.sources import manifests
from tests.builders import Manifest, make_node, make_pod

HOSTNAME = "kubernetes.io/hostname"


def evaluated(*objects: Manifest, pod: Manifest, spread: Manifest | None = None) -> dict[str, typing.Any]:
    """Node → verdict."""
    arguments = [{"name": names.POD_TOPOLOGY_SPREAD, "args": spread}] if spread else []
    config = {"profiles": [{"schedulerName": "graph-scheduler", "pluginConfig": arguments}]}
    nodes = [make_node(name).label(HOSTNAME, name).manifest() for name in ("n1", "n2")]
    request = {"objects": [*nodes, *objects], "pod": pod, "config": config}
    answer = json.loads(msgspec.json.encode(evaluate.answer(json.dumps(request).encode())))
    assert [] == answer["warnings"]
    return typing.cast("dict[str, typing.Any]", answer["results"][0]["nodes"])


def spread_scores(*objects: Manifest, pod: Manifest, spread: Manifest | None = None) -> list[int | None]:
    """The weighted score on n1 and n2; None where the plugin skips."""
    found = evaluated(*objects, pod=pod, spread=spread)
    return [found[name]["scores"].get(names.POD_TOPOLOGY_SPREAD) for name in ("n1", "n2")]


def service(**selector: str) -> Manifest:
    """A Service."""
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": selector}}


def replica_set() -> Manifest:
    """A ReplicaSet of the pods with app=web."""
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}


HERE = make_pod("there").label("app", "web").node("n1").manifest()
WEB = make_pod("web").label("app", "web").manifest()


def test_a_service_spreads_its_pods() -> None:
    """Softly by hostname, here without any zone: n1 counts ln 4 + 2, rounded 3, and n2 2."""
    assert [2 * 66, 2 * 100] == spread_scores(HERE, service(app="web"), pod=WEB)


def test_a_replica_set_spreads_its_pods() -> None:
    """If it controls them."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    owned = {**WEB, "metadata": {**WEB["metadata"], "ownerReferences": [owner]}}

    assert [2 * 66, 2 * 100] == spread_scores(HERE, replica_set(), pod=owned)
    assert [None, None] == spread_scores(HERE, replica_set(), pod=WEB)


def test_a_pod_that_nothing_selects_is_not_spread() -> None:
    """Nor where the Service selects others, or the list of defaults is empty."""
    assert [None, None] == spread_scores(HERE, pod=WEB)
    assert [None, None] == spread_scores(HERE, service(app="db"), pod=WEB)
    assert [None, None] == spread_scores(HERE, service(app="web"), pod=WEB, spread={"defaultingType": "List"})


def test_a_pod_with_constraints_of_its_own_has_no_defaults() -> None:
    """Not even where its own are hard, and leave nothing to score."""
    own = make_pod("web").label("app", "web").spread(HOSTNAME, {"matchLabels": {"app": "db"}}).manifest()

    assert [None, None] == spread_scores(HERE, service(app="web"), pod=own)


def test_hard_defaults_refuse() -> None:
    """A list may hold hard constraints, with the Service's selector."""
    constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    defaults = {"defaultingType": "List", "defaultConstraints": [constraint]}
    found = evaluated(HERE, service(app="web"), pod=WEB, spread=defaults)

    assert ["Unschedulable", "Success"] == [found[name]["status"] for name in ("n1", "n2")]
    assert ["node(s) didn't match pod topology spread constraints"] == found["n1"]["reasons"]


def test_a_deployment_that_is_expanded_keeps_its_pods_together() -> None:
    """They belong to a ReplicaSet with the Deployment's selector, as a controller would have made it."""
    collector = manifests.Collector()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    collector.add(deployment, place="a.yaml:1")
    found = collector.state()

    assert ["selection/ReplicaSet/default/web."] * 2 == [pod.owner for pod in found.pods]
    assert ["selection/ReplicaSet/default/web."] == [selection.key for selection in found.selections]


def configured(name: str, args: Manifest) -> profile.Profile:
    """The profile with these arguments of one plugin."""
    config = {"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}
    return profiles.from_configuration(config, scheduler_name="graph-scheduler")


def test_arguments_of_inter_pod_affinity_are_taken() -> None:
    """The weight of required terms of others, and whether preferred ones of others count alone."""
    args = {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}
    found = configured(names.INTER_POD_AFFINITY, args)

    assert (0, True) == (found.hard_affinity_weight, found.ignore_existing_preferences)
    assert 1 == configured(names.INTER_POD_AFFINITY, {}).hard_affinity_weight


_SOFT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        (names.INTER_POD_AFFINITY, {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight: 101 is out of range"),
        (names.INTER_POD_AFFINITY, {"hardPodAffinityWeight": True}, "hardPodAffinityWeight: True is out of range"),
        (names.INTER_POD_AFFINITY, {"ignorePreferredTermsOfExistingPods": 1}, "1 is not true or false"),
        (names.POD_TOPOLOGY_SPREAD, {"defaultConstraints": [_SOFT]}, "defaultingType: is System"),
        (names.POD_TOPOLOGY_SPREAD, {"defaultingType": "Other"}, "'Other' is not known"),
        (names.POD_TOPOLOGY_SPREAD, {"defaultingType": ["List"]}, "is not known"),
        (names.POD_TOPOLOGY_SPREAD, [{**_SOFT, "labelSelector": {}}], "[0].labelSelector: is not for defaults"),
        (names.POD_TOPOLOGY_SPREAD, [{**_SOFT, "maxSkew": 0}], "[0].maxSkew: 0 is out of range"),
        (names.POD_TOPOLOGY_SPREAD, [{**_SOFT, "topologyKey": ""}], "[0].topologyKey: '' is no label key"),
        (names.POD_TOPOLOGY_SPREAD, [{**_SOFT, "whenUnsatisfiable": "No"}], "[0].whenUnsatisfiable: 'No' is not known"),
        (names.POD_TOPOLOGY_SPREAD, [{**_SOFT, "whenUnsatisfiable": []}], "[0].whenUnsatisfiable: [] is not known"),
        (names.POD_TOPOLOGY_SPREAD, [{**_SOFT, "minDomains": "2"}], "defaultConstraints: Expected `int"),
        (names.POD_TOPOLOGY_SPREAD, [_SOFT, _SOFT], "name a topology key twice"),
        (names.POD_TOPOLOGY_SPREAD, {"colour": 1}, "colour: is unknown"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(name: str, args: typing.Any, told: str) -> None:
    """With the path of the field, in one line."""
    given = {"defaultingType": "List", "defaultConstraints": args} if isinstance(args, list) else args

    with pytest.raises(errors.InputError) as error:
        configured(name, given)

    assert told in str(error.value)
