"""What the API server would refuse is refused offline, too, with object, field and remedy."""

import typing

import pytest

from graphsched.base.kube import checks, wire
from graphsched.base.values import errors
from tests import builders
from tests.builders import make_node, make_pod, need

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = "spec.affinity.nodeAffinity"
SPREAD = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}


def refusal(builder: builders.PodBuilder) -> str:
    """The line about a pod; empty when it is fine."""
    try:
        checks.pod(wire.POD.convert(builder.manifest()))
    except errors.InputError as error:
        return str(error)
    return ""


def test_a_sound_pod_passes() -> None:
    """With something of everything."""
    builder = (
        make_pod("p")
        .cpu("1")
        .limit("cpu", "1")
        .limit("memory", "1Gi")
        .tolerate("a", "b", "NoSchedule")
        .tolerate()
        .require_nodes(need("a", "Gt", "1"), fields=(need("metadata.name", "In", "n1"),))
        .prefer_nodes(100, need("a"))
        .prefer_near(1, "a", None)
        .spread("a", None)
        .host_port(65_535, "SCTP")
        .overhead({"cpu": "1"})
        .never_preempts()
    )

    assert not refusal(builder)


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("metadata.name", "Web", 'Pod: metadata.name: "Web" is not a name (use a-z'),
        ("metadata.name", "a/b", 'Pod: metadata.name: "a/b" is not a name'),
        ("metadata.name", "a" * 254, 'Pod: metadata.name: "aaaa'),
        ("metadata.name", "", "Pod: metadata.name: is missing (name the Pod)"),
        ("metadata.namespace", "a/b", 'Pod: metadata.namespace: "a/b" is not a name'),
        ("spec.containers", [], "spec.containers: is missing or empty (add a container)"),
        (
            "spec.initContainers",
            [{"name": "a"}, {"name": "a"}],
            'spec.initContainers[1].name: there is a container "a" already (rename one)',
        ),
        ("spec.priority", 2**31, f"spec.priority: {2**31} is out of range (use -{2**31} to"),
        ("metadata.labels", {"a b": "c"}, 'metadata.labels: "a b" is not a label (write e.g. example.com/name)'),
        ("metadata.labels", {"/a": "c"}, 'metadata.labels: "/a" is not a label'),
        ("metadata.labels", {"a": "b" * 64}, 'metadata.labels.a: "bbbb'),
        ("spec.nodeSelector", {"example.com/a": "-b"}, 'spec.nodeSelector.example.com/a: "-b" is not a value of a l'),
        (f"{TERM}.{REQUIRED}", {"nodeSelectorTerms": []}, f"{TERM}.{REQUIRED}.nodeSelectorTerms: is missing or empty"),
        ("spec.overhead", {"cpu": "x"}, 'spec.overhead.cpu: "x" is not a quantity'),
        ("spec.overhead", {"whatever": "-1"}, 'spec.overhead.whatever: "-1" is negative (use 0 or more)'),
        (
            "spec.resources",
            {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
            'spec.resources.requests.cpu: "2" is above',
        ),
        ("spec.preemptionPolicy", "Always", 'spec.preemptionPolicy: "Always" is not known (use one of: Never, Preempt'),
        ("spec.tolerations", [{"key": "a", "operator": "Exist"}], 'spec.tolerations[0].operator: "Exist" is not known'),
        ("spec.tolerations", [{"key": "a", "effect": "No"}], 'spec.tolerations[0].effect: "No" is not known'),
        ("spec.tolerations", [{"value": "a"}], "spec.tolerations[0].key: is missing (name the taint, or use operator"),
        (
            "spec.containers.0.ports",
            [{"hostPort": 65_536}],
            "spec.containers[0].ports[0].hostPort: 65536 is out of range",
        ),
        ("spec.containers.0.ports", [{"hostPort": -1}], "spec.containers[0].ports[0].hostPort: -1 is out of range"),
        ("spec.containers.0.ports", [{"protocol": "tcp"}], 'spec.containers[0].ports[0].protocol: "tcp" is not known'),
        (
            f"{TERM}.{REQUIRED}",
            {"nodeSelectorTerms": [{"matchFields": [need("a")]}]},
            f"{TERM}.{REQUIRED}.nodeSelector",
        ),
        (f"{TERM}.{PREFERRED}", [{"weight": 0, "preference": {}}], f"{TERM}.{PREFERRED}[0].weight: 0 is out of range"),
        (f"{TERM}.{PREFERRED}", [{"weight": 101}], f"{TERM}.{PREFERRED}[0].weight: 101 is out of range (use 1 to 100)"),
        (
            f"spec.affinity.podAffinity.{PREFERRED}",
            [{"weight": 0}],
            f"spec.affinity.podAffinity.{PREFERRED}[0].weight: 0",
        ),
        (
            "spec.topologySpreadConstraints",
            [{**SPREAD, "maxSkew": 0}],
            "spec.topologySpreadConstraints[0].maxSkew: 0 is",
        ),
        (
            "spec.topologySpreadConstraints",
            [{**SPREAD, "minDomains": 0}],
            "spec.topologySpreadConstraints[0].minDomains: 0",
        ),
        (
            "spec.topologySpreadConstraints",
            [{**SPREAD, "topologyKey": ""}],
            "spec.topologySpreadConstraints[0].topologyKey",
        ),
        (
            "spec.topologySpreadConstraints",
            [{**SPREAD, "whenUnsatisfiable": "No"}],
            "spec.topologySpreadConstraints[0].when",
        ),
        (
            "spec.topologySpreadConstraints",
            [{**SPREAD, "nodeTaintsPolicy": "No"}],
            "spec.topologySpreadConstraints[0].node",
        ),
    ],
)
def test_a_mistake_is_named(path: str, value: typing.Any, line: str) -> None:
    """Rows: one field changed, the beginning of the line."""
    told = refusal(make_pod("p").set(path, value))

    prefix = "" if line.startswith("Pod") else 'Pod "default/p": '
    assert told.startswith(prefix + line)


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_request_above_its_limit_is_refused(kind: str) -> None:
    """Compared as amounts, not as texts."""
    resources = {"requests": {"cpu": "1001m"}, "limits": {"cpu": "1"}}
    told = refusal(make_pod("p").set(f"spec.{kind}", [{"name": "a", "resources": resources}]))

    where = f"spec.{kind}[0].resources.requests.cpu"
    expected = f'Pod "default/p": {where}: "1001m" is above the limit "1" (raise the limit or lower the request)'
    assert expected == told


def test_devices_come_whole() -> None:
    """Rounded up, half a GPU would take one, and nobody would be told."""
    where = 'Pod "default/p": spec.containers[0].resources.requests.example.com/gpu'
    expected = f'{where}: "500m" is not a whole number (ask for whole ones)'

    assert expected == refusal(make_pod("p").request("example.com/gpu", "500m"))
    assert "" == refusal(make_pod("p").request("example.com/gpu", "2000m").request("cpu", "500m"))


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("metadata.name", "N1", 'Node: metadata.name: "N1" is not a name'),
        (
            "spec.taints",
            [{"key": "a", "effect": "NoSchedul"}],
            'Node "n1": spec.taints[0].effect: "NoSchedul" is not known',
        ),
        ("metadata.labels", {"zone": "a b"}, 'Node "n1": metadata.labels.zone: "a b" is not a value of a label'),
        ("spec.taints", [{"effect": "NoSchedule"}], 'Node "n1": spec.taints[0].key: is missing (name the taint)'),
        ("status.allocatable", {"cpu": "-1"}, 'Node "n1": status.allocatable.cpu: "-1" is negative (use 0 or more)'),
        (
            "status.allocatable",
            {"gpu": "12Gx"},
            'Node "n1": status.allocatable.gpu: "12Gx" is not a quantity (use e.g.',
        ),
    ],
)
def test_a_mistake_in_a_node_is_named(path: str, value: typing.Any, line: str) -> None:
    """Also in resources that nobody counts."""
    with pytest.raises(errors.InputError) as caught:
        checks.node(wire.NODE.convert(make_node("n1").set(path, value).manifest()))

    assert str(caught.value).startswith(line)
