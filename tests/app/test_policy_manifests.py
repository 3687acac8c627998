"""A GraphPolicy in a file is judged by every command as a running scheduler would, and a mistake is one line."""

import itertools
import json
import pathlib
import typing

import pytest
import yaml

from graphsched.app import cli, evaluate
from tests.app.manifests import write
from tests.builders import make_node, make_pod

BAD: list[tuple[dict[str, typing.Any], str]] = [
    (
        {"action": "deny", "match": {"when": {"node": "nod.x"}}},
        "rule \"one\": match.when.node: 1:4: undeclared reference to 'nod.x' (correct the expression; docs/policies.md",
    ),
    (
        {"action": "deny", "match": {"when": {"pod": "1 + 1"}}},
        'rule "one": match.when.pod: it gives a value of type INT, not true or false (correct the expression',
    ),
    ({"action": "deny", "mach": {}}, "spec.rules[0].mach: is no field (write match)"),
    ({"action": "deny", "match": {"nods": {}}}, "spec.rules[0].match.nods: is no field (write nodes)"),
    (
        {"action": "deny", "match": {"nodes": {"matchLabel": {"a": "b"}}}},
        "spec.rules[0].match.nodes.matchLabel: is no field (write matchLabels)",
    ),
    ({"action": "deny", "match": {"cidrs": ["10.0"]}}, 'rule "one": match.cidrs: "10.0" is not a network (write e.g.'),
    ({"action": "weight", "weight": "much"}, "spec.rules[0].weight: is a text, not an integer (write an integer)"),
    ({"action": "weight", "weight": 101}, 'rule "one": weight: 101 is out of range (use -100 to 100)'),
    ({"action": "require", "require": {"to": {"node": "n"}, "maxHop": 3}}, "spec.rules[0].require.maxHop: is no field"),
]


def policy(rule: dict[str, typing.Any], name: str = "one") -> dict[str, typing.Any]:
    """A policy with this rule."""
    return {
        "apiVersion": "graphsched.io/v1alpha1",
        "kind": "GraphPolicy",
        "metadata": {"name": "edge"},
        "spec": {"rules": [{"name": name, **rule}]},
    }


@pytest.mark.parametrize(
    ("rule", "told", "command"),
    [(*bad, command) for bad, command in zip(BAD, itertools.cycle(["graph", "simulate", "explain"]), strict=False)],
    ids=[told for _, told in BAD],
)
def test_a_bad_rule_is_told_with_file_policy_field_and_remedy(
    rule: dict[str, typing.Any], told: str, command: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, by each command that reads manifests."""
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(policy(rule)))
    others = write(tmp_path / "c.yaml", make_node("n1"), make_pod("web"))
    arguments = [command, *(["web"] if command == "explain" else []), others, str(file)]

    assert 2 == cli.execute(arguments)
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    assert err.startswith(f'graphsched: {file}:1: GraphPolicy "edge": {told}')


@pytest.mark.parametrize(("rule", "told"), BAD, ids=[told for _, told in BAD])
def test_evaluate_answers_a_bad_rule_with_the_same(rule: dict[str, typing.Any], told: str) -> None:
    """The place is that in the request."""
    objects = [make_node("n1").manifest(), policy(rule)]
    request = {"objects": objects, "pod": make_pod("web").manifest()}
    answer = evaluate.answer(json.dumps(request).encode())

    assert str(answer["error"]).startswith(f'objects[1]: GraphPolicy "edge": {told}')


@pytest.mark.parametrize("name", ["", "Big", "a b", "a:b", "x" * 64, "-", "ä", "a\nb"])
def test_a_name_that_is_none_is_told_by_its_place(
    name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refusal names the rule, and is taken apart again."""
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(policy({"action": "deny"}, name)))

    assert 2 == cli.execute(["graph", str(file)])
    err = capsys.readouterr().err
    assert 1 == err.count("\n")
    assert f'{file}:1: GraphPolicy "edge": rules[0]: name: ' in err


def test_what_is_right_is_taken(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With every field that there is."""
    rule = {
        "priority": 3,
        "match": {
            "pods": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
            "namespaces": ["default"],
            "nodes": {"matchLabels": {}},
            "cidrs": ["10.0.0.0/8"],
            "when": {"pod": "pod.spec.priority > 1", "node": "node.metadata.name == 'n1'"},
        },
        "action": "require",
        "require": {
            "to": {"domain": {"label": "zone", "value": "a"}},
            "maxHops": 1,
            "maxLatencyMs": 1,
            "minBandwidthMbps": 1.5,
            "sameDomain": "zone",
        },
    }
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump(policy(rule)))

    assert 0 == cli.execute(["graph", str(file), "--layer", "policy"])
    assert "one" in capsys.readouterr().out
