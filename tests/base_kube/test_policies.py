"""GraphPolicy objects become rules; what can not be one is that rule's problem alone."""

import pathlib
import typing

import jsonschema
import pytest
import yaml

from graphsched.base.kube import policies as kube_policies
from graphsched.base.values import errors, keys, labels, policies

CRD = pathlib.Path(__file__).parents[2] / "charts/graphsched/crds/graphpolicies.yaml"


def policy(*rules: dict[str, typing.Any], priority: int = 0) -> kube_policies.Policy:
    """A policy with these rules."""
    spec = {"priority": priority, "rules": list(rules)}
    return kube_policies.POLICY.convert({"metadata": {"name": "edge"}, "spec": spec})


def test_a_rule_is_read_whole() -> None:
    """Every field arrives, selectors and lists in canonical form, the policy's priority where the rule has none."""
    found = kube_policies.read(
        policy(
            {
                "name": "near",
                "match": {
                    "pods": {"matchLabels": {"app": "web"}},
                    "namespaces": ["b", "a", "b"],
                    "nodes": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
                    "cidrs": ["10.1.2.3/8"],
                    "when": {"pod": "pod.spec.priority > 1", "node": "true"},
                },
                "action": "require",
                "require": {
                    "to": {"domain": {"label": "zone", "value": "z"}},
                    "maxHops": 2,
                    "maxLatencyMs": 1.5,
                    "minBandwidthMbps": 10,
                    "sameDomain": "zone",
                },
            },
            {"name": "far", "priority": -3, "action": "weight", "weight": -7},
            priority=5,
        )
    )
    web = labels.selector([labels.Requirement("app", labels.Operator.IN, ("web",))])
    gpu = labels.selector([labels.Requirement("gpu", labels.Operator.EXISTS)])
    path = policies.Path(keys.domain_key("zone", "z"), 2, 1.5, 10.0, "zone")
    match = policies.Match(web, ("a", "b"), gpu, ("10.0.0.0/8",), "pod.spec.priority > 1", "true")

    assert (
        policies.Rule("edge", 0, "near", 5, match, policies.Action.REQUIRE, path=path),
        policies.Rule("edge", 1, "far", -3, policies.Match(), policies.Action.WEIGHT, weight=-7),
    ) == found.rules
    assert ("near", "far") == found.names
    assert found.problems == {}


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"action": "deny", "match": {"cidrs": ["10.0.0"]}}, '"10.0.0" is not a network'),
        ({"action": "deny", "match": {"pods": {"matchLabels": {"a b": "c"}}}}, "is no label"),
        ({"action": "refuse"}, '"refuse" is not known'),
        ({"action": "weight"}, "weight: is missing, and action weight needs it (add weight, or write another action)"),
        ({"action": "weight", "weight": 101}, "101 is out of range"),
        ({"action": "require"}, "require: is missing, and action require needs it"),
        ({"action": "require", "require": {"to": {"node": "a"}}}, "asks for nothing"),
        ({"action": "require", "require": {"to": {"node": "a", "place": "b"}, "maxHops": 1}}, "names not one of"),
        ({"action": "require", "require": {"to": {"node": "a"}, "maxLatencyMs": -1}}, "a limit is negative"),
        ({"action": "require", "require": {"to": {"place": "a"}, "sameDomain": "z"}}, "a place has no labels"),
    ],
)
def test_a_rule_that_can_not_be_one_leaves_the_others_in_place(rule: dict[str, typing.Any], problem: str) -> None:
    """Its problem is told under its name; the rule beside it is read. In a manifest it is a mistake."""
    body = policy({"name": "bad", **rule}, {"name": "good", "action": "deny"})
    found = kube_policies.read(body)

    assert ["good"] == [each.name for each in found.rules]
    assert problem in found.problems["bad"]
    with pytest.raises(errors.InputError, match='GraphPolicy "edge": rule "bad": '):
        kube_policies.require(body)


def test_the_schema_has_the_fields_that_are_read_and_no_others() -> None:
    """What the API server lets through is what is decoded, at every level."""
    schema = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.Draft7Validator.check_schema(schema)

    def fields(of: dict[str, typing.Any]) -> set[str]:
        return set(of["properties"])

    def decoded(kind: type) -> set[str]:
        return set(kind.__struct_encode_fields__)  # type: ignore[attr-defined]

    spec = schema["properties"]["spec"]
    rule = spec["properties"]["rules"]["items"]
    assert decoded(kube_policies.Spec) == fields(spec)
    assert decoded(kube_policies.Rule) == fields(rule)
    assert decoded(kube_policies.Match) == fields(rule["properties"]["match"])
    assert decoded(kube_policies.When) == fields(rule["properties"]["match"]["properties"]["when"])
    require = rule["properties"]["require"]
    assert decoded(kube_policies.Require) == fields(require)
    assert decoded(kube_policies.To) == fields(require["properties"]["to"])
    assert decoded(kube_policies.Domain) == fields(require["properties"]["to"]["properties"]["domain"])
    assert [each.value for each in policies.Action] == rule["properties"]["action"]["enum"]
