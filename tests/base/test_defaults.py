"""Objects that never met an API server get what it would have given them."""

import typing

import pytest

from graphsched.base.kube import defaults, wire
from graphsched.base.values import errors, nodes
from tests import builders
from tests.builders import make_node, make_pod, selecting

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
CLASSES = {
    "high": nodes.PriorityClass("high", 100),
    "shy": nodes.PriorityClass("shy", 50, never_preempts=True),
}


def admit(
    builder: builders.PodBuilder,
    *,
    classes: dict[str, nodes.PriorityClass] | None = None,
    runtime: builders.Manifest | None = None,
) -> wire.Pod:
    """The pod as admitted, without a UID unless the builder was given another one."""
    body = wire.POD.convert(builder.manifest())
    if body.metadata.uid.startswith("uid-"):
        body = wire.POD.convert({**builder.manifest(), "metadata": {**builder.manifest()["metadata"], "uid": ""}})
    found = {"sandbox": wire.RUNTIME_CLASS.convert({"metadata": {"name": "sandbox"}, **runtime})} if runtime else {}
    admitted = defaults.pod(body, priority_classes=classes or {}, runtime_classes=found)
    again = defaults.pod(admitted, priority_classes=classes or {}, runtime_classes=found)

    assert again == admitted, "applying it twice is applying it once"
    return admitted


def requests_of(body: wire.Pod, index: int = 0, kind: str = "containers") -> wire.Resources | None:
    """The requests of a container."""
    resources = getattr(body.spec, kind)[index].resources
    return resources.requests if resources else None


def test_identity_and_scheduler_get_their_defaults() -> None:
    """Namespace default, default-scheduler, priority 0."""
    admitted = admit(make_pod("p", ""))

    assert ("default", "default-scheduler", 0) == (
        admitted.metadata.namespace,
        admitted.spec.scheduler_name,
        admitted.spec.priority,
    )


def test_requests_follow_from_limits() -> None:
    """Only where a request is missing, for init containers as well."""
    builder = make_pod("p").cpu("1").limit("cpu", "2").limit("memory", "3Mi")
    manifest = builder.manifest()["spec"]["containers"][0]
    builder = builder.set("spec.initContainers", [{"name": "i", "resources": {"limits": {"cpu": "5"}}}])

    admitted = admit(builder)

    assert manifest["resources"]["requests"] == {"cpu": "1"}
    assert {"cpu": "1", "memory": "3Mi"} == requests_of(admitted)
    assert {"cpu": "5"} == requests_of(admitted, kind="init_containers")


POD_LEVEL = [
    ("nothing said", {}, {}),
    ("requests alone stay", {"requests": {"cpu": "1"}}, {"cpu": "1"}),
    ("limits of what no container asks for", {"limits": {"memory": "5Mi"}}, {"cpu": "500m", "memory": "5Mi"}),
    ("containers go before limits", {"limits": {"cpu": "5"}}, {"cpu": "500m"}),
    ("what is said goes first", {"requests": {"cpu": "2"}, "limits": {"cpu": "5"}}, {"cpu": "2"}),
    ("other resources stay out", {"limits": {"example.com/gpu": "1", "cpu": "1"}}, {"cpu": "500m"}),
]


@pytest.mark.parametrize(("about", "resources", "expected"), POD_LEVEL, ids=[row[0] for row in POD_LEVEL])
def test_requests_of_the_pod_follow_from_its_limits(
    about: str,
    resources: dict[str, dict[str, str]],
    expected: dict[str, str],
) -> None:
    """The containers ask for 500m of CPU."""
    builder = make_pod("p").cpu("500m")
    if resources:
        builder = builder.set("spec.resources", resources)
    found = admit(builder).spec.resources

    assert expected == ((found.requests if found else None) or {})


def test_huge_pages_of_containers_become_those_of_the_pod() -> None:
    """Only where the pod says something about resources."""
    huge = make_pod("p").limit("hugepages-2Mi", "4Mi").pod_requests({"cpu": "1"})
    found = admit(huge).spec.resources

    assert found is not None
    assert {"cpu": "1", "hugepages-2Mi": "4194304"} == found.requests


def test_on_the_hosts_network_every_port_is_of_the_host() -> None:
    """Unless it names another one."""
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 91}]
    builder = make_pod("p").set("spec.containers.0.ports", ports)

    def host_ports(body: wire.Pod) -> list[int]:
        return [port.host_port for port in (body.spec.containers or [])[0].ports or []]

    assert [0, 91] == host_ports(admit(builder))
    assert [80, 91] == host_ports(admit(builder.set("spec.hostNetwork", True)))


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": "other", "operator": "Exists"}], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}], [UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists", "effect": "NoExecute"}], []),
        ([{"operator": "Exists"}], []),
    ],
)
def test_a_pod_waits_a_while_on_a_node_that_is_gone(
    tolerations: list[builders.Manifest],
    added: list[str],
) -> None:
    """Five minutes, unless it says something about that."""
    found = admit(make_pod("p").set("spec.tolerations", tolerations)).spec.tolerations or []

    expected = [wire.Toleration(key, "Exists", effect="NoExecute", toleration_seconds=300) for key in added]
    assert expected == found[len(tolerations) :]


def test_label_keys_are_merged_into_the_selectors_of_pod_terms() -> None:
    """Keys the pod does not have, and terms without a selector, are left alone."""
    keys = {"matchLabelKeys": ["rev", "absent"], "mismatchLabelKeys": ["tenant"]}
    builder = (
        make_pod("p")
        .label("rev", "1")
        .label("tenant", "t")
        .near("a", selecting(app="x"), **keys)
        .away_from("a", None, **keys)
        .prefer_near(1, "a", selecting(app="x"), **keys)
        .prefer_away_from(1, "a", selecting(app="x"), **keys)
    )

    affinity = admit(builder).spec.affinity

    expected = wire.LabelSelector(
        {"app": "x"},
        [wire.Requirement("rev", "In", ["1"]), wire.Requirement("tenant", "NotIn", ["t"])],
    )
    assert affinity is not None
    assert affinity.pod_affinity is not None
    assert affinity.pod_anti_affinity is not None
    found = [
        (affinity.pod_affinity.required or [])[0].label_selector,
        (affinity.pod_anti_affinity.required or [])[0].label_selector,
        (affinity.pod_affinity.preferred or [])[0].pod_affinity_term.label_selector,
        (affinity.pod_anti_affinity.preferred or [])[0].pod_affinity_term.label_selector,
    ]
    assert [expected, None, expected, expected] == found


def test_label_keys_are_merged_into_spread_constraints() -> None:
    """As In with the pod's own value."""
    builder = make_pod("p").label("rev", "1").spread("a", {}, matchLabelKeys=["rev"])

    found = (admit(builder).spec.topology_spread_constraints or [])[0].label_selector

    assert wire.LabelSelector(match_expressions=[wire.Requirement("rev", "In", ["1"])]) == found


PRIORITIES = [
    ("no class", {}, CLASSES, (0, None)),
    ("a class", {"priorityClassName": "high"}, CLASSES, (100, "PreemptLowerPriority")),
    ("a class that never preempts", {"priorityClassName": "shy"}, CLASSES, (50, "Never")),
    ("a given priority is kept", {"priorityClassName": "high", "priority": 7}, CLASSES, (7, "PreemptLowerPriority")),
    ("a dump without its classes", {"priorityClassName": "gone", "priority": 7}, CLASSES, (7, None)),
    ("built in", {"priorityClassName": "system-cluster-critical"}, {}, (2_000_000_000, "PreemptLowerPriority")),
    ("built in", {"priorityClassName": "system-node-critical"}, {}, (2_000_001_000, "PreemptLowerPriority")),
    ("the global default", {}, {"d": nodes.PriorityClass("d", 5, global_default=True)}, (5, "PreemptLowerPriority")),
    (
        "the least of several global defaults",
        {},
        {
            "d": nodes.PriorityClass("d", 5, global_default=True),
            "e": nodes.PriorityClass("e", 4, global_default=True, never_preempts=True),
        },
        (4, "Never"),
    ),
]


@pytest.mark.parametrize(("about", "fields", "classes", "expected"), PRIORITIES, ids=[row[0] for row in PRIORITIES])
def test_priority_comes_from_the_class(
    about: str,
    fields: dict[str, typing.Any],
    classes: dict[str, nodes.PriorityClass],
    expected: tuple[int, str | None],
) -> None:
    """Rows: fields of the spec, classes at hand, priority and policy."""
    builder = make_pod("p")
    for name, value in fields.items():
        builder = builder.set(f"spec.{name}", value)
    spec = admit(builder, classes=classes).spec

    assert expected == (spec.priority, spec.preemption_policy)


def test_an_unknown_priority_class_is_refused_with_those_there_are() -> None:
    """One line, with pod and field."""
    with pytest.raises(errors.InputError) as caught:
        admit(make_pod("p").set("spec.priorityClassName", "hihg"), classes=CLASSES)

    assert (
        'Pod "default/p": spec.priorityClassName: no PriorityClass "hihg" (add its manifest, or use one of: high, shy, '
        "system-cluster-critical, system-node-critical)"
    ) == str(caught.value)


SANDBOX = {
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"sandbox": "true"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]},
}


def test_a_runtime_class_brings_overhead_selector_and_tolerations() -> None:
    """Beside what the pod has itself."""
    builder = make_pod("p").node_selector("disk", "ssd").tolerate("a").set("spec.runtimeClassName", "sandbox")
    spec = admit(builder, runtime=SANDBOX).spec

    assert ({"cpu": "250m"}, {"disk": "ssd", "sandbox": "true"}) == (spec.overhead, spec.node_selector)
    assert ["a", "sandbox"] == [entry.key for entry in spec.tolerations or []][:2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("spec.overhead", {"cpu": "1"}), 'spec.overhead: differs from that of RuntimeClass "sandbox"'),
        (("spec.nodeSelector", {"sandbox": "no"}), 'spec.nodeSelector.sandbox: is "no", but RuntimeClass "sandbox"'),
        (("spec.runtimeClassName", "other"), 'spec.runtimeClassName: no RuntimeClass "other"'),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_refused(change: tuple[str, typing.Any], message: str) -> None:
    """As admission would."""
    builder = make_pod("p").set("spec.runtimeClassName", "sandbox").set(*change)

    with pytest.raises(errors.InputError) as caught:
        admit(builder, runtime=SANDBOX)

    assert str(caught.value).startswith(f'Pod "default/p": {message}')


def test_a_pod_from_a_cluster_may_lack_its_runtime_class() -> None:
    """It was admitted under it: the marks are there already."""
    builder = make_pod("p").uid("real").set("spec.runtimeClassName", "gone").overhead({"cpu": "1"})

    assert {"cpu": "1"} == admit(builder).spec.overhead


def test_what_a_node_has_is_allocatable_unless_it_says_otherwise() -> None:
    """Capacity stands in."""
    capacity = {"cpu": "8"}
    silent = make_node("n").set("status", {"capacity": capacity})
    telling = make_node("n").set("status.capacity", capacity)

    assert capacity == defaults.node(wire.NODE.convert(silent.manifest())).status.allocatable
    assert "4" == (defaults.node(wire.NODE.convert(telling.manifest())).status.allocatable or {})["cpu"]


def test_a_namespace_carries_its_name_as_a_label() -> None:
    """Whatever the manifest claims."""
    body = wire.NAMESPACE.convert({"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "b", "c": "d"}}})

    assert {"kubernetes.io/metadata.name": "a", "c": "d"} == defaults.namespace(body).metadata.labels
