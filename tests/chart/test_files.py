"""What can be said of the chart without rendering it."""

import importlib.metadata
import itertools
from typing import Any

import jsonschema
import msgspec
import pytest

from graphsched.app import settings as configuration
from scripts import chart_page
from tests.chart import rendering


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
    """Each value has a comment above it, and the table of the README is made of those."""
    assert [] == [name for name, _, comment in chart_page.explained() if not comment]


def test_the_readme_is_fresh() -> None:
    """Its tables are what `python -m scripts.chart_page` writes."""
    assert chart_page.page() == chart_page.PAGE.read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"replica": 1},
        {"replicas": -1},
        {"mode": "exclusiv"},
        {"topology": {"crds": "all"}},
        {"leaderElection": {"enable": False}},
        {"image": {"repository": ""}},
        {"image": {"digest": "sha256:abc"}},
        {"schedulerName": "default-scheduler"},
        {"http": {"port": 80}},
        {"http": {"port": "10260"}},
        {"resources": {"limits": {"memory": "1Gx"}}},
        {"serviceMonitor": {"enabled": True}, "service": {"enabled": False}},
        {"podLabels": {"a": 1}},
        {"podDisruptionBudget": {"maxUnavailable": 0}},
        {"priorityClass": {"value": 2_000_000_000}},
        {"networkPolicy": {"apiServerPorts": []}},
        {"prometheusRule": {"disabled": ["KubePodCrashLooping"]}},
        {"flowControl": {"concurrencyShares": 0}},
        {"config": {"http": 5}},
        {"config": {"http": None}},
        {"config": {"http": {"tls": True}}},
        {"config": {"leaderElection": None}},
        {"extraVolumes": [{"secret": {"secretName": "cert"}}]},
        {"extraVolumes": [{"name": "cert"}]},
        {"extraVolumes": [{"name": "Cert", "emptyDir": {}}]},
        {"extraVolumes": {"name": "cert", "emptyDir": {}}},
        {"extraVolumeMounts": [{"name": "cert"}]},
        {"extraVolumeMounts": [{"name": "cert", "mountPath": "certificates"}]},
        {"extraVolumeMounts": [{"name": "cert", "mountPath": "/certificates", "readonly": True}]},
        {"extraVolumeMounts": [{"name": "cert", "mountPath": "/certificates", "readOnly": "yes"}]},
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
        {"extraVolumes": [{"name": "slurm", "configMap": {"name": "slurm"}}]},
        {"extraVolumeMounts": [{"name": "slurm", "mountPath": "/etc/slurm", "subPath": "a", "readOnly": True}]},
    ],
    ids=str,
)
def test_a_right_value_is_accepted(changes: dict[str, Any]) -> None:
    """The schema does not stand in the way."""
    assert errors_of(changes) == []


@pytest.mark.parametrize("shown", rendering.examples(), ids=str)
def test_an_example_of_the_operators_page_is_right(shown: str) -> None:
    """It passes the schema; every file it names lies in a mount, and every mount names a volume."""
    example = rendering.examples()[shown]
    mounts = {mount["name"]: mount["mountPath"] for mount in example["extraVolumeMounts"]}
    read = msgspec.convert(example["config"], configuration.Settings)
    files = [path for path in (read.http.tls.cert_file, read.http.tls.key_file, *read.topology.files) if path]

    assert errors_of(example) == []
    assert [volume["name"] for volume in example["extraVolumes"]] == list(mounts)
    assert files
    assert all(any(path.startswith(f"{place}/") for place in mounts.values()) for path in files)


def test_both_kinds_of_files_are_shown() -> None:
    """Those that the chart could not be used with otherwise: certificates, and the network as Slurm knows it."""
    named = {key for example in rendering.examples().values() for key in example["config"]}

    assert {"http", "topology"} == named


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


# What the program does, written a second time: a right added in haste must be added here as well.
NEEDED = {
    *itertools.product([""], ["nodes", "pods", "namespaces"], ["list", "watch"]),
    *itertools.product(["scheduling.k8s.io"], ["priorityclasses"], ["list", "watch"]),
    *itertools.product([""], ["services", "replicationcontrollers"], ["list", "watch"]),
    *itertools.product(["apps"], ["replicasets", "statefulsets"], ["list", "watch"]),
    *itertools.product(["graphsched.io"], ["networklinks"], ["list", "watch"]),
    *itertools.product(["topology.volcano.sh"], ["hypernodes"], ["list", "watch"]),
    *itertools.product(["kueue.x-k8s.io", "kai.scheduler"], ["topologies"], ["list", "watch"]),
    *itertools.product(["networktopology.diktyo.x-k8s.io"], ["networktopologies"], ["list", "watch"]),
    *itertools.product(["appgroup.diktyo.x-k8s.io"], ["appgroups"], ["list", "watch"]),
    *itertools.product(["topology.node.k8s.io"], ["noderesourcetopologies"], ["list", "watch"]),
    *itertools.product(["scheduling.koordinator.sh"], ["clusternetworktopologies"], ["list", "watch"]),
    ("", "pods", "get"),
    ("", "pods", "patch"),
    *itertools.product(["coordination.k8s.io"], ["leases"], ["get", "create", "update"]),
    ("", "pods/binding", "create"),
    ("", "pods/status", "patch"),
    *itertools.product(["events.k8s.io"], ["events"], ["create", "patch"]),
    *itertools.product(["graphsched.io"], ["graphpolicies"], ["list", "watch"]),
    ("graphsched.io", "graphpolicies/status", "patch"),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}


def test_the_roles_grant_what_is_needed_and_no_more() -> None:
    """The list of rights and the program's needs are the same set, and no right is listed twice."""
    granted = permissions(rendering.rights())

    assert NEEDED == granted
    assert len(granted) == sum(
        len(right["resources"]) * len(right["verbs"]) * len(right["apiGroups"]) for right in rendering.rights()
    )


TOLD = {("events", "create"), ("events", "patch"), ("graphpolicies/status", "patch")}


@pytest.mark.parametrize(
    ("mode", "writes"),
    [
        ("shared", {("pods/binding", "create"), ("pods/status", "patch"), *TOLD}),
        ("exclusive", {("pods/binding", "create"), ("pods/status", "patch"), *TOLD}),
        ("advise", {("pods", "patch"), *TOLD}),
        ("shadow", set()),
    ],
)
def test_a_mode_is_given_what_it_writes_and_no_more(mode: str, writes: set[tuple[str, str]]) -> None:
    """Who only advises may not bind, and who only watches may write nothing at all."""
    granted = permissions(rendering.rules("cluster", {"mode": mode, "http": {"auth": "loopback"}}))

    assert writes == {(resource, verb) for _, resource, verb in granted if verb not in {"get", "list", "watch"}}


@pytest.mark.parametrize("right", [right for right in rendering.rights() if "if" in right], ids=str)
def test_a_condition_names_a_setting_and_values_that_it_can_have(right: rendering.Object) -> None:
    """A misspelt setting would grant or withhold for ever."""
    for path, values in right["if"].items():
        for value in values:
            wanted: Any = value
            for name in reversed(path.split(".")):
                wanted = {name: wanted}
            read = msgspec.to_builtins(msgspec.convert(wanted, configuration.Settings))

            for name in path.split("."):
                read = read[name]
            assert read == value


def test_custom_resources_that_are_not_followed_need_no_rights() -> None:
    """Who sets `topology.crds: none` and `policies.enabled: never` grants nothing on them."""
    config = {"topology": {"crds": "none"}, "policies": {"enabled": "never"}, "http": {"auth": "loopback"}}
    groups = {group for group, _, _ in permissions(rendering.rules("cluster", config))}

    assert {"", "apps", "scheduling.k8s.io", "events.k8s.io"} == groups


def test_no_right_holds_a_wildcard() -> None:
    """Least privilege is spelt out."""
    assert not any("*" in triple for triple in permissions(rendering.rights()))


def test_every_right_says_what_needs_it() -> None:
    """And for which scope it is; only what is namespaced and of our own is for a namespace."""
    assert all(right["need"] and right["scope"] in {"cluster", "namespace"} for right in rendering.rights())
    assert {"leases"} == {
        name for right in rendering.rights() if right["scope"] == "namespace" for name in right["resources"]
    }


def test_the_shadow_may_write_nothing_about_pods() -> None:
    """A mode that changes nothing has no right to: it reads, and asks who scrapes it."""
    config = {"mode": "shadow", "http": {"auth": "delegated"}, "leaderElection": {"enabled": True, "leaseName": "x"}}

    assert {"list", "watch"} == {
        verb
        for group, _, verb in permissions(rendering.rules("cluster", config))
        if group not in {"authentication.k8s.io", "authorization.k8s.io"}
    }
