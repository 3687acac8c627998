"""What can be said of the chart without rendering it."""

import importlib.metadata
import itertools
import re
from typing import Any

import jsonschema
import pytest

from tests.chart import rendering

README = (rendering.CHART / "README.md").read_text()


def errors_of(changes: rendering.Object) -> list[str]:
    """Validate the defaults with `changes` laid over them."""
    validator = jsonschema.Draft7Validator(rendering.schema())
    return [error.message for error in validator.iter_errors(rendering.merged(rendering.values(), changes))]


def test_the_schema_is_valid() -> None:
    """The schema itself follows the JSON schema draft it names."""
    jsonschema.Draft7Validator.check_schema(rendering.schema())


def test_the_defaults_are_valid() -> None:
    """The values that ship pass their own schema."""
    assert errors_of({}) == []


def test_the_schema_knows_every_default_and_no_more() -> None:
    """A value without schema would go unchecked; a schema without value would go unseen."""
    known = set(rendering.schema()["properties"]) - {"global"}

    assert set(rendering.values()) == known


def test_every_value_is_explained() -> None:
    """Each top-level value has a comment, above it or at its first child."""
    text = (rendering.CHART / "values.yaml").read_text()
    explained = set(re.findall(r"^#.*\n([a-zA-Z]+):", text, re.MULTILINE))
    explained |= set(re.findall(r"^([a-zA-Z]+):\n  #", text, re.MULTILINE))
    self_explaining = {
        "imagePullSecrets",
        "service",
        "serviceAccount",
        "podAnnotations",
        "podLabels",
        "nodeSelector",
        "tolerations",
        "affinity",
    }

    assert set(rendering.values()) - explained == self_explaining


@pytest.mark.parametrize(
    "changes",
    [
        {"replica": 1},
        {"replicas": -1},
        {"replicas": 2},
        {"image": {"repository": ""}},
        {"image": {"digest": "sha256:abc"}},
        {"schedulerName": "default-scheduler"},
        {"http": {"port": 80}},
        {"http": {"port": "10260"}},
        {"resources": {"limits": {"memory": "1Gx"}}},
        {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}},
        {"podLabels": {"a": 1}},
    ],
    ids=str,
)
def test_a_wrong_value_is_refused(changes: dict[str, Any]) -> None:
    """A misspelt or impossible value is an error, not a surprise in the cluster."""
    assert errors_of(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": 0},
        {"image": {"digest": "sha256:" + "a" * 64}},
        {"serviceMonitor": {"enabled": True}},
        {"resources": {"limits": {"cpu": 2, "memory": "1.5Gi"}}},
        {"config": {"anything": {"goes": ["here"]}}},
        {"global": {"set": "by a parent chart"}},
    ],
    ids=str,
)
def test_a_right_value_is_accepted(changes: dict[str, Any]) -> None:
    """The schema does not stand in the way."""
    assert errors_of(changes) == []


def test_the_chart_carries_the_version_of_the_package() -> None:
    """One release, one number."""
    version = importlib.metadata.version("graphsched")
    chart = rendering.chart()

    assert (version, version) == (chart["version"], chart["appVersion"])
    assert {"apiVersion": "v2", "name": "graphsched", "type": "application"}.items() <= chart.items()


def permissions(rules: list[rendering.Object]) -> set[tuple[str, str, str]]:
    """Spread rules out to (group, resource, verb)."""
    return {
        triple for rule in rules for triple in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def documented() -> set[tuple[str, str, str]]:
    """Read the table of the chart's README."""
    rows = re.findall(r"^\| ([\w.]+) \| ([\w/, ]+) \| ([a-z, ]+) \| .* \|$", README, re.MULTILINE)
    return permissions(
        [
            {
                "apiGroups": ["" if group == "core" else group],
                "resources": resources.split(", "),
                "verbs": verbs.split(", "),
            }
            for group, resources, verbs in rows
        ],
    )


# What the program does, written a third time: a rule added in haste must be added here as well.
NEEDED = {
    *itertools.product([""], ["nodes", "pods", "namespaces"], ["get", "list", "watch"]),
    *itertools.product(["scheduling.k8s.io"], ["priorityclasses"], ["get", "list", "watch"]),
    *itertools.product([""], ["services", "replicationcontrollers"], ["get", "list", "watch"]),
    *itertools.product(["apps"], ["replicasets", "statefulsets"], ["get", "list", "watch"]),
    ("", "pods/binding", "create"),
    ("", "pods/status", "patch"),
    *itertools.product(["events.k8s.io"], ["events"], ["create", "patch"]),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}


def test_the_role_grants_what_is_needed_and_documented_and_no_more() -> None:
    """The role, its table in the README and the program's needs are the same set."""
    granted = permissions(rendering.cluster_rules())

    assert (NEEDED, NEEDED) == (granted, documented())


def test_no_rule_holds_a_wildcard() -> None:
    """Least privilege is spelt out."""
    assert not any("*" in triple for triple in permissions(rendering.cluster_rules()))
