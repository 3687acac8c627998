"""A Pod of the API becomes the value that decisions are made on."""

import json
import typing

import pytest

from graphsched.base.kube import pods as kube_pods, wire
from graphsched.base.values import errors, labels, pods
from tests import builders
from tests.builders import make_pod, need, selecting

Op = labels.Operator


def decode(manifest: builders.Manifest) -> pods.Pod:
    """The value of a manifest that came as JSON, as from the API server."""
    return kube_pods.pod(wire.POD.decode(json.dumps(manifest).encode()))


def test_a_full_pod_is_decoded_whole() -> None:
    """Identity, state and spec, each from its field."""
    manifest = (
        make_pod("web", "shop")
        .label("app", "web")
        .cpu("500m")
        .node("n1")
        .nominated("n2")
        .scheduler("graph-scheduler")
        .priority(7)
        .never_preempts()
        .gate("b")
        .gate("a")
        .created("2025-01-01T00:00:01Z")
        .started("2025-01-01T01:00:02+01:00")
        .deleting()
        .manifest()
    )

    assert decode(manifest) == pods.Pod(
        key=builders.make_pod("web", "shop").build().key,
        uid="uid-shop-web",
        spec=pods.Spec(
            demand=pods.Demand((("cpu", 500),), 500, 200 << 20),
            images=("app:1",),
            image_containers=1,
        ),
        held=pods.Demand((("cpu", 500),), 500, 200 << 20),
        labels=(("app", "web"),),
        node="n1",
        nominated="n2",
        scheduler="graph-scheduler",
        priority=7,
        never_preempts=True,
        gates=("b", "a"),
        deleting=True,
        created=1735689601.0,
        started=1735689602.0,
    )


def test_the_least_pod_gets_the_defaults_of_the_api() -> None:
    """Namespace, scheduler and priority; null stands for absent."""
    pod = decode({"metadata": {"name": "p", "labels": None, "creationTimestamp": None}, "spec": {"containers": None}})

    assert ("pod/default/p", "default-scheduler", 0, 0.0, None) == (
        pod.key,
        pod.scheduler,
        pod.priority,
        pod.created,
        pod.started,
    )


def test_replicas_share_one_spec_and_one_set_of_labels() -> None:
    """Also when they are bound to different nodes and differ in volumes that nobody asks for."""
    first = make_pod("web-1").cpu("1").label("app", "web").node("n1").set("spec.volumes", [{"name": "token-1"}])
    second = make_pod("web-2").cpu("1").label("app", "web").node("n2").set("spec.volumes", [{"name": "token-2"}])

    one, other = decode(first.manifest()), decode(second.manifest())

    assert one.spec is other.spec
    assert one.labels is other.labels
    assert one.held is one.spec.demand


def test_a_placed_pod_shares_the_spec_of_its_pending_siblings() -> None:
    """A report of resources changes what is held, not what is asked for."""
    pending = make_pod("web-1").cpu("1")
    report = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    running = make_pod("web-2").cpu("1").set("status.containerStatuses", report)

    one, other = pending.build(), running.build()

    assert one.spec is other.spec
    assert (("cpu", 2000),) == other.held.amounts


def test_namespaces_do_not_leak_through_shared_specs() -> None:
    """The same manifest in two namespaces selects pods of its own one."""
    specs = [make_pod("p", name).near(builders.ZONE, selecting(app="x")).build().spec for name in ("a", "b")]

    assert [("a",), ("b",)] == [spec.pod_affinity[0].namespaces for spec in specs]


def test_labels_do_not_leak_through_shared_specs() -> None:
    """The same constraint with matchLabelKeys selects each pod's own value."""
    builder = make_pod("p").spread(builders.ZONE, selecting(app="x"), matchLabelKeys=["rev", "absent"])
    selected = [builder.label("rev", rev).build().spec.spread[0].selector for rev in ("1", "2")]

    app = labels.Requirement("app", Op.IN, ("x",))
    assert [labels.selector([app, labels.Requirement("rev", Op.IN, (rev,))]) for rev in ("1", "2")] == selected


def test_a_pod_to_be_placed_keeps_its_wish_for_a_node() -> None:
    """`incoming` reads spec.nodeName as a condition, `pod` as a fact."""
    body = wire.POD.convert(make_pod("p").node("n1").manifest())

    placed, wanted = kube_pods.pod(body), kube_pods.incoming(body)

    assert ("n1", "") == (placed.node, placed.spec.node_name)
    assert ("", "n1") == (wanted.node, wanted.spec.node_name)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"),
        ("nginx@sha256:ab", "nginx@sha256:ab"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, expected: str) -> None:
    """The colon of a port is no tag."""
    assert expected == kube_pods.image_name(image)


def test_images_of_all_containers_count_with_repeats() -> None:
    """Init containers and sidecars included, image volumes apart."""
    pod = (
        make_pod("p")
        .image("a")
        .container("two", image="a:latest")
        .init_container("init", image="b:1")
        .sidecar("side", image="c:1")
        .set("spec.volumes", [{"name": "v", "image": {"reference": "d"}}])
        .build()
    )

    assert ("b:1", "c:1", "a:latest", "a:latest") == pod.spec.images
    assert (4, ("d:latest",)) == (pod.spec.image_containers, pod.spec.image_volumes)


def test_host_ports_are_of_regular_containers_and_sidecars_only() -> None:
    """Sorted, each once, with the API's defaults; ports of the pod alone do not count."""
    ports = [{"containerPort": 9, "hostPort": 90}, {"containerPort": 8}, {"containerPort": 9, "hostPort": 90}]
    pod = make_pod("p").host_port(80, "UDP", "10.0.0.1").set("spec.initContainers", [])
    manifest = pod.manifest()
    manifest["spec"]["containers"].append({"name": "b", "ports": ports})
    manifest["spec"]["initContainers"] = [
        {"name": "i", "ports": [{"containerPort": 1, "hostPort": 1}]},
        {"name": "s", "ports": [{"containerPort": 2, "hostPort": 2}], "restartPolicy": "Always"},
    ]

    expected = (
        pods.HostPort("TCP", "0.0.0.0", 2),  # noqa: S104  a value, nothing is bound
        pods.HostPort("TCP", "0.0.0.0", 90),  # noqa: S104
        pods.HostPort("UDP", "10.0.0.1", 80),
    )
    assert expected == decode(manifest).spec.ports


def test_a_toleration_without_operator_compares_for_equality() -> None:
    """And one with Exists needs no value."""
    manifest = make_pod("p").manifest()
    manifest["spec"]["tolerations"] = [{"key": "a", "value": "1"}, {"operator": "Exists", "tolerationSeconds": 5}]

    expected = (pods.Toleration("a", "Equal", "1"), pods.Toleration("", "Exists", seconds=5))
    assert expected == decode(manifest).spec.tolerations


@pytest.mark.parametrize(
    ("volume", "claim"),
    [
        ({"persistentVolumeClaim": {"claimName": "data"}}, "persistentVolumeClaim data"),
        ({"ephemeral": {"volumeClaimTemplate": {}}}, "ephemeral volume v"),
        ({"gcePersistentDisk": {"pdName": "d"}}, "gcePersistentDisk volume v"),
        ({"awsElasticBlockStore": {"volumeID": "d"}}, "awsElasticBlockStore volume v"),
        ({"iscsi": {"iqn": "d"}}, "iscsi volume v"),
        ({"rbd": {"image": "d"}}, "rbd volume v"),
        ({"azureDisk": {"diskName": "d"}}, "azureDisk volume v"),
        ({"azureFile": {"shareName": "d"}}, "azureFile volume v"),
        ({"cinder": {"volumeID": "d"}}, "cinder volume v"),
        ({"vsphereVolume": {"volumePath": "d"}}, "vsphereVolume volume v"),
        ({"portworxVolume": {"volumeID": "d"}}, "portworxVolume volume v"),
    ],
)
def test_a_volume_that_a_plugin_looks_at_is_a_claim(volume: builders.Manifest, claim: str) -> None:
    """In the words of a refusal."""
    pod = make_pod("p").set("spec.volumes", [{"name": "v", **volume}]).build()

    assert (claim,) == pod.spec.claims


@pytest.mark.parametrize(
    "source",
    ["configMap", "secret", "emptyDir", "downwardAPI", "hostPath", "projected", "nfs", "csi", "fc", "glusterfs"],
)
def test_a_volume_that_no_plugin_looks_at_is_none(source: str) -> None:
    """Inline CSI volumes are made by the kubelet; no plugin counts them."""
    pod = make_pod("p").set("spec.volumes", [{"name": "v", source: {}}]).build()

    assert () == pod.spec.claims


def test_resource_claims_are_claims() -> None:
    """By the pod's own name for them."""
    pod = make_pod("p").set("spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "t"}]).build()

    assert ("resourceClaim gpu",) == pod.spec.claims


def test_a_scheduling_group_is_a_claim() -> None:
    """Its pods are placed together or not at all, so that none may be placed as if it were alone."""
    pod = make_pod("p").set("spec.schedulingGroup", {"podGroupName": "trio"}).build()

    assert ("schedulingGroup trio",) == pod.spec.claims


@pytest.mark.parametrize(
    ("fields", "features"),
    [
        ({"hostNetwork": True}, ()),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostUsers": False}, ()),
        ({"hostNetwork": True, "hostUsers": False}, ("UserNamespacesHostNetworkSupport",)),
    ],
)
def test_the_host_network_in_a_user_namespace_is_a_feature(fields: builders.Manifest, features: tuple[str]) -> None:
    """Only both together."""
    manifest = make_pod("p").manifest()
    manifest["spec"].update(fields)

    assert features == decode(manifest).spec.features


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_restarting_all_containers_is_a_feature(kind: str) -> None:
    """A rule of any container asks for it."""
    rules = [{"action": "Restart"}, {"action": "RestartAllContainers"}]
    pod = make_pod("p").set(f"spec.{kind}", [{"name": "c", "restartPolicyRules": rules}]).build()

    assert ("RestartAllContainersOnContainerExits",) == pod.spec.features


def test_spread_constraints_get_the_defaults_of_the_api() -> None:
    """One domain at least, node affinity honoured, taints ignored."""
    pod = make_pod("p").spread(builders.ZONE, None, max_skew=2, hard=False).build()

    assert (pods.SpreadConstraint(2, builders.ZONE, False, None),) == pod.spec.spread
    assert (1, True, False) == (
        pod.spec.spread[0].min_domains,
        pod.spec.spread[0].honor_affinity,
        pod.spec.spread[0].honor_taints,
    )


def test_spread_constraints_keep_what_is_said() -> None:
    """Every field of one."""
    builder = make_pod("p").spread(
        builders.ZONE,
        {},
        minDomains=3,
        nodeAffinityPolicy="Ignore",
        nodeTaintsPolicy="Honor",
    )
    constraint = builder.build().spec.spread[0]

    assert labels.Selector() == constraint.selector
    assert (3, False, True) == (constraint.min_domains, constraint.honor_affinity, constraint.honor_taints)


@pytest.mark.parametrize(
    ("term", "namespaces", "selector"),
    [
        ({}, ("own",), None),
        ({"namespaces": []}, ("own",), None),
        ({"namespaces": ["b", "a", "b"]}, ("a", "b"), None),
        ({"namespaceSelector": {}}, (), labels.Selector()),
        ({"namespaces": ["a"], "namespaceSelector": {}}, ("a",), labels.Selector()),
    ],
)
def test_a_pod_term_knows_its_namespaces(
    term: builders.Manifest,
    namespaces: tuple[str, ...],
    selector: labels.Selector | None,
) -> None:
    """Its owner's where it says nothing; all where the selector is empty; none where there is no selector."""
    spec = make_pod("p", "own").away_from(builders.ZONE, selecting(a="1"), **term).build().spec

    assert (namespaces, selector) == (
        spec.pod_anti_affinity[0].namespaces,
        spec.pod_anti_affinity[0].namespace_selector,
    )


def test_pod_terms_are_kept_apart_by_kind() -> None:
    """Required and preferred, affinity and anti-affinity."""
    spec = (
        make_pod("p")
        .near("a", None)
        .away_from("b", None)
        .prefer_near(3, "c", None)
        .prefer_away_from(4, "d", None)
        .build()
        .spec
    )

    def term(key: str) -> pods.PodTerm:
        return pods.PodTerm(key, None, ("default",))

    assert ((term("a"),), (term("b"),)) == (spec.pod_affinity, spec.pod_anti_affinity)
    assert (pods.PreferredPodTerm(3, term("c")),) == spec.preferred_pod_affinity
    assert (pods.PreferredPodTerm(4, term("d")),) == spec.preferred_pod_anti_affinity


def test_a_bad_field_names_pod_and_field() -> None:
    """Which a watch counts and logs before it goes on."""
    manifest = make_pod("web", "shop").cpu("12Gx").manifest()

    with pytest.raises(errors.InputError) as caught:
        decode(manifest)

    assert str(caught.value).startswith('Pod "shop/web": spec.containers[0].resources.requests.cpu: "12Gx" is not')


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", [{}]), r"\[0\]\.topologyKey"),
        (("spec.topologySpreadConstraints", [{"whenUnsatisfiable": "Never"}]), r"\[0\]\.whenUnsatisfiable"),
        (("metadata.name", ""), r"metadata\.name"),
    ],
)
def test_a_rule_that_can_not_be_understood_is_refused(change: tuple[str, typing.Any], where: str) -> None:
    """Dropping it would loosen what somebody wrote."""
    with pytest.raises(errors.InputError, match=where):
        make_pod("p").set(*change).build()


def test_a_bad_pod_is_refused_every_time() -> None:
    """The second failure does not meet a half-filled table."""
    builder = make_pod("p").near(builders.ZONE, {"matchExpressions": [need("a", "Sometimes")]})

    for _ in range(2):
        with pytest.raises(errors.InputError, match='operator "Sometimes" is not known'):
            builder.build()
