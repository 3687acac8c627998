"""Cordon, node name, taints, node affinity and selector, declared features: node by node.

Every expected answer is read off kube-scheduler's rules: which plugin refuses first, in the order NodeUnschedulable,
NodeName, TaintToleration, NodeAffinity, NodeDeclaredFeatures, and in which words.
"""

from __future__ import annotations

import pytest

from tests.builders import PodBuilder, make_node, make_pod, need
from tests.decision import tables
from tests.decision.tables import UAU, Thing

CORDONED = (UAU, "NodeUnschedulable", "node(s) were unschedulable")
NAMED = (UAU, "NodeName", "node(s) didn't match the requested node name")
TAINTED = (UAU, "TaintToleration", "node(s) had untolerated taint(s)")
UNMATCHED = (UAU, "NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
ENFORCED = (UAU, "NodeAffinity", "node(s) didn't match scheduler-enforced node affinity")
CUT = (UAU, "", "node(s) didn't satisfy plugin(s) [NodeAffinity]")
CONFLICT = (UAU, "NodeAffinity", "pod affinity terms conflict")
FEATURES = (UAU, "NodeDeclaredFeatures", "node(s) didn't match Pod's required features")
OK: tuple[str, ...] = ()

POD = make_pod("web")
N1 = make_node("n1")
CORDON = "node.kubernetes.io/unschedulable"
# The flag without the taint that kubectl's cordon adds, so that the first plugin is seen alone.
FLAGGED = N1.set("spec.unschedulable", True)

UNSCHEDULABLE: dict[str, tuple[PodBuilder, Thing, tuple[str, ...]]] = {
    "a node that takes pods": (POD, N1, OK),
    "a cordoned node": (POD, FLAGGED, CORDONED),
    "cordoned with flag and taint: the flag is looked at first": (POD, N1.cordoned(), CORDONED),
    "only the taint is left": (POD, N1.taint(CORDON), TAINTED),
    "the cordon is tolerated by key": (POD.tolerate(CORDON), N1.cordoned(), OK),
    "the cordon is tolerated with its effect": (POD.tolerate(CORDON, effect="NoSchedule"), N1.cordoned(), OK),
    "a toleration for another effect does not help": (POD.tolerate(CORDON, effect="NoExecute"), FLAGGED, CORDONED),
    "everything is tolerated": (POD.tolerate(), N1.cordoned(), OK),
    "a toleration by a value the cordon has not": (POD.tolerate(CORDON, "yes"), FLAGGED, CORDONED),
    "Equal without a value meets the cordon's empty value": (
        POD.tolerate(CORDON, operator="Equal"),
        N1.cordoned(),
        OK,
    ),
}

NODE_NAME: dict[str, tuple[PodBuilder, Thing, tuple[str, ...]]] = {
    "the node asked for": (POD.node("n1"), N1, OK),
    "another node": (POD.node("n2"), N1, NAMED),
    "a prefix is another name": (POD.node("n"), N1, NAMED),
    "the cordon is looked at before the name": (POD.node("n2"), FLAGGED, CORDONED),
    "the name is looked at before taints": (POD.node("n2"), N1.taint("k"), NAMED),
}

TAINTS: dict[str, tuple[PodBuilder, Thing, tuple[str, ...]]] = {
    "NoSchedule keeps pods away": (POD, N1.taint("k", "v"), TAINTED),
    "NoExecute keeps pods away": (POD, N1.taint("k", "v", "NoExecute"), TAINTED),
    "PreferNoSchedule does not": (POD, N1.taint("k", "v", "PreferNoSchedule"), OK),
    "tolerated by key and value": (POD.tolerate("k", "v"), N1.taint("k", "v"), OK),
    "another value": (POD.tolerate("k", "w"), N1.taint("k", "v"), TAINTED),
    "another key": (POD.tolerate("l", "v"), N1.taint("k", "v"), TAINTED),
    "Exists asks for no value": (POD.tolerate("k"), N1.taint("k", "v"), OK),
    "a missing operator means Equal": (
        POD.set("spec.tolerations", [{"key": "k", "value": "v"}]),
        N1.taint("k", "v"),
        OK,
    ),
    "the effect must be the same": (POD.tolerate("k", "v", "NoExecute"), N1.taint("k", "v"), TAINTED),
    "an empty effect covers each": (POD.tolerate("k", "v"), N1.taint("k", "v", "NoExecute"), OK),
    "an empty key with Exists covers everything": (POD.tolerate(), N1.taint("k", "v").taint("l"), OK),
    "an empty key with Equal covers any key of that value": (
        POD.tolerate(operator="Equal"),
        N1.taint("k").taint("l"),
        OK,
    ),
    "and no other value": (POD.tolerate(operator="Equal"), N1.taint("k", "v"), TAINTED),
    "each taint needs a toleration": (POD.tolerate("k"), N1.taint("k").taint("l"), TAINTED),
    "each taint has one": (POD.tolerate("k").tolerate("l"), N1.taint("k").taint("l"), OK),
    "the same key with two effects needs both": (
        POD.tolerate("k", effect="NoSchedule"),
        N1.taint("k").taint("k", "", "NoExecute"),
        TAINTED,
    ),
    "a time limit makes no difference": (
        POD.set("spec.tolerations", [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]),
        N1.taint("k", "", "NoExecute"),
        OK,
    ),
    "Gt covers nothing while its gate is off": (POD.tolerate("k", "1", operator="Gt"), N1.taint("k", "5"), TAINTED),
    "Lt covers nothing while its gate is off": (POD.tolerate("k", "9", operator="Lt"), N1.taint("k", "5"), TAINTED),
    "an unknown effect keeps nobody away": (POD, N1.taint("k", "v", "Whatever"), OK),
}

SSD = N1.label("disk", "ssd").label("gen", "5")
AFFINITY: dict[str, tuple[PodBuilder, Thing, tuple[str, ...]]] = {
    "a selector that holds": (POD.node_selector("disk", "ssd"), SSD, OK),
    "a selector of another value": (POD.node_selector("disk", "hdd"), SSD, UNMATCHED),
    "a selector for a label the node has not": (POD.node_selector("rack", "r1"), SSD, UNMATCHED),
    "each part of the selector must hold": (
        POD.node_selector("disk", "ssd").node_selector("gen", "6"),
        SSD,
        UNMATCHED,
    ),
    "In finds one of its values": (POD.require_nodes(need("disk", "In", "hdd", "ssd")), SSD, OK),
    "In without the label": (POD.require_nodes(need("rack", "In", "r1")), SSD, UNMATCHED),
    "NotIn with one of its values": (POD.require_nodes(need("disk", "NotIn", "ssd")), SSD, UNMATCHED),
    "NotIn with another value": (POD.require_nodes(need("disk", "NotIn", "hdd")), SSD, OK),
    "NotIn without the label": (POD.require_nodes(need("rack", "NotIn", "r1")), SSD, OK),
    "Exists": (POD.require_nodes(need("disk")), SSD, OK),
    "Exists without the label": (POD.require_nodes(need("rack")), SSD, UNMATCHED),
    "DoesNotExist": (POD.require_nodes(need("rack", "DoesNotExist")), SSD, OK),
    "DoesNotExist with the label": (POD.require_nodes(need("disk", "DoesNotExist")), SSD, UNMATCHED),
    "Gt: 5 is greater than 4": (POD.require_nodes(need("gen", "Gt", "4")), SSD, OK),
    "Gt: 5 is not greater than 5": (POD.require_nodes(need("gen", "Gt", "5")), SSD, UNMATCHED),
    "Gt compares numbers, not texts: 5 is not greater than 10": (
        POD.require_nodes(need("gen", "Gt", "10")),
        SSD,
        UNMATCHED,
    ),
    "Lt: 5 is less than 10": (POD.require_nodes(need("gen", "Lt", "10")), SSD, OK),
    "Lt: 5 is not less than 5": (POD.require_nodes(need("gen", "Lt", "5")), SSD, UNMATCHED),
    "Lt without the label": (POD.require_nodes(need("rack", "Lt", "5")), SSD, UNMATCHED),
    "Gt with a label that is no number": (POD.require_nodes(need("disk", "Gt", "1")), SSD, UNMATCHED),
    "Gt with a bound that is no number matches nothing": (POD.require_nodes(need("gen", "Gt", "x")), SSD, UNMATCHED),
    "requirements of a term are all needed": (
        POD.require_nodes(need("disk"), need("rack")),
        SSD,
        UNMATCHED,
    ),
    "terms are alternatives": (POD.require_nodes(need("rack")).require_nodes(need("disk")), SSD, OK),
    "a term that can not be parsed is passed over": (
        POD.require_nodes(need("gen", "Gt", "x")).require_nodes(need("disk")),
        SSD,
        OK,
    ),
    "an empty term matches nothing": (POD.require_nodes(), SSD, UNMATCHED),
    "an empty term beside one that holds": (POD.require_nodes().require_nodes(need("disk")), SSD, OK),
    "affinity without terms matches nothing": (
        POD.set("spec.affinity.nodeAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": {}}),
        SSD,
        UNMATCHED,
    ),
    "selector and affinity are both needed: the selector fails": (
        POD.node_selector("disk", "hdd").require_nodes(need("gen")),
        SSD,
        UNMATCHED,
    ),
    "selector and affinity are both needed: the affinity fails": (
        POD.node_selector("disk", "ssd").require_nodes(need("rack")),
        SSD,
        UNMATCHED,
    ),
    "taints are looked at before affinity": (POD.node_selector("disk", "hdd"), SSD.taint("k"), TAINTED),
}

NAME = "metadata.name"
PINS: dict[str, tuple[PodBuilder, tuple[str, ...], tuple[str, ...]]] = {
    # pod, what is said of n1 (label disk=ssd), what is said of n2 (no labels)
    "pinned to n1, so n2 is never looked at": (POD.require_nodes(fields=(need(NAME, "In", "n1"),)), OK, CUT),
    "pinned to n1 whose labels fail": (
        POD.require_nodes(need("rack"), fields=(need(NAME, "In", "n1"),)),
        UNMATCHED,
        CUT,
    ),
    "pinned to a node that is not there": (POD.require_nodes(fields=(need(NAME, "In", "gone"),)), CUT, CUT),
    "two terms pin two nodes": (
        POD.require_nodes(fields=(need(NAME, "In", "n1"),)).require_nodes(fields=(need(NAME, "In", "n2"),)),
        OK,
        OK,
    ),
    "one term pins, the other does not: all are looked at": (
        POD.require_nodes(fields=(need(NAME, "In", "n2"),)).require_nodes(need("rack")),
        UNMATCHED,
        OK,
    ),
    "a term that pins two different nodes conflicts": (
        POD.require_nodes(fields=(need(NAME, "In", "n1"), need(NAME, "In", "n2"))),
        CONFLICT,
        CONFLICT,
    ),
    "a conflict beside a pin leaves the pin": (
        POD.require_nodes(fields=(need(NAME, "In", "n1"), need(NAME, "In", "n2"))).require_nodes(
            fields=(need(NAME, "In", "n2"),)
        ),
        CUT,
        OK,
    ),
    "NotIn on the name cuts nothing away beforehand": (
        POD.require_nodes(fields=(need(NAME, "NotIn", "n1"),)),
        UNMATCHED,
        OK,
    ),
    "In with two names is a mistake, yet both are pinned": (
        POD.require_nodes(fields=(need(NAME, "In", "n1", "n3"),)),
        UNMATCHED,
        CUT,
    ),
    "a mistaken expression does not undo the pin beside it": (
        POD.require_nodes(need("gen", "Gt", "x"), fields=(need(NAME, "In", "n1"),)),
        UNMATCHED,
        CUT,
    ),
    "the nominated node is looked at before the cut": (
        POD.nominated("n2").require_nodes(fields=(need(NAME, "In", "n1"),)),
        OK,
        UNMATCHED,
    ),
}

ENFORCE = {"nodeSelectorTerms": [{"matchExpressions": [need("disk", "In", "ssd")]}]}
ADDED: dict[str, tuple[PodBuilder, Thing, tuple[str, ...]]] = {
    "the profile's affinity holds": (POD, SSD, OK),
    "the profile's affinity fails": (POD, N1, ENFORCED),
    "the profile's is looked at before the pod's": (POD.node_selector("a", "b"), N1, ENFORCED),
    "the pod's is looked at as well": (POD.node_selector("a", "b"), SSD, UNMATCHED),
}

RESTARTING = POD.set(
    "spec.containers.0.restartPolicyRules", [{"action": "RestartAllContainers", "exitCodes": {"operator": "In"}}]
)
USERS = POD.set("spec.hostNetwork", True).set("spec.hostUsers", False)
FEATURE: dict[str, tuple[PodBuilder, Thing, tuple[str, ...]]] = {
    "no feature is needed": (POD, N1, OK),
    "restarting all containers needs a feature": (RESTARTING, N1, FEATURES),
    "host network in a user namespace needs a feature": (USERS, N1, FEATURES),
    "another feature does not help": (USERS, N1.feature("Other"), FEATURES),
    "resources are looked at before features": (
        USERS.cpu("5"),
        N1,
        (UAU, "NodeResourcesFit", "Insufficient cpu"),
    ),
}


@pytest.mark.parametrize("name", UNSCHEDULABLE)
def test_table_of_cordons(name: str) -> None:
    """NodeUnschedulable."""
    pod, node, expected = UNSCHEDULABLE[name]
    assert expected == tables.ask(pod, [node])["n1"].refusal


@pytest.mark.parametrize("name", NODE_NAME)
def test_table_of_node_names(name: str) -> None:
    """NodeName."""
    pod, node, expected = NODE_NAME[name]
    assert expected == tables.ask(pod, [node])["n1"].refusal


@pytest.mark.parametrize("name", TAINTS)
def test_table_of_taints(name: str) -> None:
    """TaintToleration as a filter."""
    pod, node, expected = TAINTS[name]
    assert expected == tables.ask(pod, [node])["n1"].refusal


@pytest.mark.parametrize("name", AFFINITY)
def test_table_of_affinity_and_selector(name: str) -> None:
    """NodeAffinity as a filter."""
    pod, node, expected = AFFINITY[name]
    assert expected == tables.ask(pod, [node])["n1"].refusal


@pytest.mark.parametrize("name", PINS)
def test_table_of_pinned_names(name: str) -> None:
    """NodeAffinity before any node is looked at."""
    pod, of_n1, of_n2 = PINS[name]
    answer = tables.ask(pod, [SSD, make_node("n2")])
    assert (of_n1, of_n2) == (answer["n1"].refusal, answer["n2"].refusal)


@pytest.mark.parametrize("name", ADDED)
def test_table_of_affinity_the_profile_adds(name: str) -> None:
    """NodeAffinity with addedAffinity."""
    pod, node, expected = ADDED[name]
    added = {"requiredDuringSchedulingIgnoredDuringExecution": ENFORCE}
    config = tables.plugin_config("NodeAffinity", addedAffinity=added)
    assert expected == tables.ask(pod, [node], config)["n1"].refusal


@pytest.mark.parametrize("name", FEATURE)
def test_table_of_declared_features(name: str) -> None:
    """NodeDeclaredFeatures."""
    pod, node, expected = FEATURE[name]
    assert expected == tables.ask(pod, [node])["n1"].refusal


def test_a_declared_feature_is_enough() -> None:
    """The names are those that nodes declare."""
    features = tables.incoming(RESTARTING).spec.features
    assert 1 == len(features)
    assert OK == tables.ask(RESTARTING, [N1.feature(features[0])])["n1"].refusal
