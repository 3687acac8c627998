"""The chart as helm renders it: every object fits the API's schema, whatever is chosen."""

import json
import pathlib
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.chart import rendering

CHOICES: dict[str, rendering.Object] = {
    "defaults": {},
    "monitored": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "runbookBase": "https://wiki.example/operations",
            "disabled": ["GraphschedLoopLag"],
        },
        "rbac": {"metricsReaders": [{"name": "prometheus", "namespace": "monitoring"}]},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Scheduling"}},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},
            ],
        },
    },
    "alone": {
        "replicas": 1,
        "leaderElection": {"enabled": False},
        "config": {"http": {"host": "127.0.0.1", "auth": "loopback"}},
    },
    "advising": {"mode": "advise", "config": {"leaderElection": {"namespace": "kube-system", "leaseName": "ours"}}},
    "shadowing": {"mode": "shadow"},
    "bare": {
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "given"},
        "service": {"enabled": False},
        "flowControl": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "priorityClassName": "",
    },
    "everything": {
        "fullnameOverride": "placer",
        "image": {"repository": "registry.example/graphsched", "digest": "sha256:" + "a" * 64, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "schedulerName": "placer",
        "config": {"http": {"port": 10260}, "queue": {"backoffMaxSeconds": 10}},
        "extraArgs": ["--verbose"],
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraVolumes": [
            {"name": "certificate", "secret": {"secretName": "graphsched-tls"}},
            {"name": "slurm", "configMap": {"name": "slurm-topology"}},
        ],
        "extraVolumeMounts": [
            {"name": "certificate", "mountPath": "/etc/graphsched-tls", "readOnly": True},
            {"name": "slurm", "mountPath": "/etc/slurm", "readOnly": True},
        ],
        "http": {"port": 12345},
        "serviceAccount": {"annotations": {"example.org/role": "x"}},
        "service": {"annotations": {"a": "b"}},
        "priorityClass": {"create": True, "value": 500_000_000},
        "networkPolicy": {
            "enabled": True,
            "apiServerPorts": [8443],
            "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"},
        ],
        "podAnnotations": {"a": "b"},
        "podLabels": {"team": "x"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
}

CUSTOM = {"ServiceMonitor", "PrometheusRule"}
"""Their schemas are not Kubernetes' own; they have tests of their own below."""

Rendered = dict[str, list[rendering.Object]]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """The objects of every choice."""
    return {name: render(changes, tmp_path_factory.mktemp("helm")) for name, changes in CHOICES.items()}


def render(changes: rendering.Object, folder: pathlib.Path) -> list[rendering.Object]:
    """Render and parse, or fail with helm's words."""
    result = rendering.run_helm(changes, folder)
    assert result.returncode == 0, result.stderr
    return [document for document in yaml.safe_load_all(result.stdout) if document]


def one(objects: list[rendering.Object], kind: str) -> Any:
    """Return the only object of a kind, beside the special ones: for a dashboard, for scrapes, for the lease."""
    (found,) = [
        document
        for document in objects
        if document["kind"] == kind and not document["metadata"]["name"].endswith(("-dashboard", "-metrics", "-lease"))
    ]
    return found


@pytest.mark.parametrize("version", rendering.KUBERNETES_VERSIONS)
@pytest.mark.parametrize("choice", CHOICES)
def test_every_object_fits_the_schema(rendered: Rendered, choice: str, version: str) -> None:
    """No field is unknown to the API server, in the oldest and the newest version we speak of."""
    for document in rendered[choice]:
        if document["kind"] not in CUSTOM:
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize(
    ("choice", "kinds"),
    [
        (
            "defaults",
            (
                "ClusterRole ClusterRoleBinding ConfigMap Deployment FlowSchema FlowSchema PodDisruptionBudget "
                "PriorityLevelConfiguration Role RoleBinding Service ServiceAccount"
            ),
        ),
        (
            "monitored",
            (
                "ClusterRole ClusterRole ClusterRoleBinding ClusterRoleBinding ConfigMap ConfigMap Deployment "
                "FlowSchema FlowSchema NetworkPolicy PodDisruptionBudget PriorityLevelConfiguration PrometheusRule "
                "Role RoleBinding Service ServiceAccount ServiceMonitor"
            ),
        ),
        ("bare", "ConfigMap Deployment"),
    ],
)
def test_only_what_is_chosen_is_rendered(rendered: Rendered, choice: str, kinds: str) -> None:
    """What is switched off leaves nothing behind."""
    assert kinds.split() == sorted(document["kind"] for document in rendered[choice])


@pytest.mark.parametrize("choice", CHOICES)
def test_the_pod_fits_the_restricted_level(rendered: Rendered, choice: str) -> None:
    """No root, no capability, no writable root file system, the runtime's seccomp profile."""
    spec = one(rendered[choice], "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_names_of_ports_probes_and_monitor_agree(rendered: Rendered) -> None:
    """Whatever port is chosen, all that refer to it mean the same one."""
    objects = rendered["monitored"]
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    service = one(objects, "Service")
    monitor = one(objects, "ServiceMonitor")

    assert port == {"name": "http", "containerPort": 10260}
    assert [{"name": "http", "port": 10260, "targetPort": "http"}] == service["spec"]["ports"]
    assert "http" == container["livenessProbe"]["httpGet"]["port"] == container["readinessProbe"]["httpGet"]["port"]
    assert (
        "HTTPS" == container["livenessProbe"]["httpGet"]["scheme"] == container["readinessProbe"]["httpGet"]["scheme"]
    )
    (endpoint,) = monitor["spec"]["endpoints"]
    assert {"port": "http", "path": "/metrics", "interval": "30s", "scheme": "https"}.items() <= endpoint.items()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"] == one(objects, "Deployment")["spec"]["selector"]["matchLabels"]


def test_the_port_of_the_configuration_is_the_one_that_is_probed(rendered: Rendered) -> None:
    """It wins over the value, so all that ask go by it: a pod that is probed elsewhere is killed for ever."""
    objects = rendered["everything"]
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]

    assert 10260 == yaml.safe_load(one(objects, "ConfigMap")["data"]["config.yaml"])["http"]["port"]
    assert [{"name": "http", "containerPort": 10260}] == container["ports"]
    assert [{"name": "http", "port": 10260, "targetPort": "http"}] == one(objects, "Service")["spec"]["ports"]


def test_the_configuration_is_the_users_over_the_charts(rendered: Rendered) -> None:
    """The chart says who it is and where it listens; what the user says wins."""
    defaults = yaml.safe_load(one(rendered["defaults"], "ConfigMap")["data"]["config.yaml"])
    chosen = yaml.safe_load(one(rendered["everything"], "ConfigMap")["data"]["config.yaml"])

    assert defaults == {
        "schedulerName": "graph-scheduler",
        "mode": "shared",
        "topology": {"crds": "auto"},
        "policies": {"enabled": "auto"},
        "leaderElection": {"enabled": True, "namespace": "graphs", "leaseName": "sched-graphsched"},
        "http": {"host": "0.0.0.0", "port": 10260, "auth": "delegated", "tls": {"selfSigned": True}},  # noqa: S104
    }
    assert chosen["schedulerName"] == "placer"
    assert chosen["http"]["port"] == 10260
    assert chosen["queue"] == {"backoffMaxSeconds": 10}


def test_files_of_the_user_are_mounted_beside_the_charts(rendered: Rendered) -> None:
    """The chart's own two stay first and as they are; what the values add follows, word for word."""
    usual, chosen = (
        one(rendered[choice], "Deployment")["spec"]["template"]["spec"] for choice in ("defaults", "everything")
    )
    ((plain,), (container,)) = (spec["containers"] for spec in (usual, chosen))

    assert ["config", "tmp"] == [volume["name"] for volume in usual["volumes"]]
    assert ["/etc/graphsched", "/tmp"] == [mount["mountPath"] for mount in plain["volumeMounts"]]
    assert CHOICES["everything"]["extraVolumes"] == chosen["volumes"][2:]
    assert CHOICES["everything"]["extraVolumeMounts"] == container["volumeMounts"][2:]
    assert "placer" == chosen["volumes"][0]["configMap"]["name"]
    assert plain["volumeMounts"] == container["volumeMounts"][:2]


@pytest.mark.parametrize("shown", rendering.examples(), ids=str)
def test_an_example_of_the_operators_page_renders(shown: str, tmp_path: pathlib.Path) -> None:
    """As it stands there, over the defaults; with a certificate named, none is made at the start."""
    example = rendering.examples()[shown]
    objects = render(example, tmp_path)
    config = yaml.safe_load(one(objects, "ConfigMap")["data"]["config.yaml"])

    assert example["extraVolumes"] == one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"][2:]
    assert config["http"]["tls"]["selfSigned"] is ("tls" not in example["config"].get("http", {}))


def volumes_of(chosen: list[rendering.Object]) -> list[rendering.Object]:
    """An empty volume for every mount that names one."""
    return [{"name": name, "emptyDir": {}} for name in sorted({mount["name"] for mount in chosen})]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["/tmp"], "/tmp/ collides with what is mounted at /tmp"),
        (["/tmp/cache/"], "/tmp/cache/ collides with what is mounted at /tmp"),
        (["/etc/graphsched"], "/etc/graphsched/ collides with what is mounted at /etc/graphsched"),
        (["/etc/slurm/../graphsched/tls"], "/etc/graphsched/tls/ collides with what is mounted at /etc/graphsched"),
        (["//etc"], "/etc/ collides with what is mounted at /etc/graphsched"),
        (["/"], "/ collides with what is mounted at /etc/graphsched"),
        (["/a", "/a/"], "/a/ collides with what is mounted at /a"),
    ],
    ids=str,
)
def test_a_place_that_is_taken_is_refused(paths: list[str], said: str, tmp_path: pathlib.Path) -> None:
    """A mount over another hides its files, and below a read-only one the container would not start."""
    mounts = [{"name": f"v{number}", "mountPath": path} for number, path in enumerate(paths)]
    result = rendering.run_helm({"extraVolumes": volumes_of(mounts), "extraVolumeMounts": mounts}, tmp_path)

    assert result.returncode != 0
    assert f"extraVolumeMounts: {said}: choose a place beside it" in result.stderr


@pytest.mark.parametrize("path", ["/etc/graphsched-tls", "/tmpfiles", "/etc/slurm"])
def test_a_place_beside_is_not_taken(path: str, tmp_path: pathlib.Path) -> None:
    """Places are compared by their parts, not by their letters."""
    mounts = [{"name": "v", "mountPath": path}]

    assert render({"extraVolumes": volumes_of(mounts), "extraVolumeMounts": mounts}, tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"extraVolumeMounts": [{"name": "cert", "mountPath": "/c"}]},
            "extraVolumeMounts: no volume cert for /c: name one of extraVolumes",
        ),
        (
            {"extraVolumes": [{"name": "config", "emptyDir": {}}]},
            "extraVolumes: there is a volume config already: give it another name",
        ),
        (
            {"extraVolumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]},
            "extraVolumes: there is a volume a already: give it another name",
        ),
        ({"extraVolumeMounts": [{"name": "cert", "mountpath": "/c"}]}, "mountpath"),
    ],
    ids=str,
)
def test_volumes_and_mounts_that_do_not_fit_are_refused(
    changes: dict[str, Any], said: str, tmp_path: pathlib.Path
) -> None:
    """Said before anything reaches the cluster, by the value's name and with what to do."""
    result = rendering.run_helm(changes, tmp_path)

    assert result.returncode != 0
    assert said in result.stderr


def test_a_changed_configuration_restarts_the_pods(rendered: Rendered) -> None:
    """The configuration's checksum is part of the pod template."""
    checksums = {
        one(rendered[choice], "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for choice in ("defaults", "everything")
    }

    assert len(checksums) == 2


def test_two_processes_never_decide_at_once(rendered: Rendered, tmp_path: pathlib.Path) -> None:
    """With the lease two run, and a new one comes before an old one goes; without it one does, and goes first."""
    usual, alone = (one(rendered[choice], "Deployment")["spec"] for choice in ("defaults", "alone"))
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    refused = [
        rendering.run_helm({"replicas": 2, **changes}, tmp_path)
        for changes in ({"leaderElection": {"enabled": False}}, {"config": {"leaderElection": {"enabled": False}}})
    ]

    assert (2, rolling) == (usual["replicas"], usual["strategy"])
    assert (1, {"type": "Recreate"}) == (alone["replicas"], alone["strategy"])
    assert all("replicas: 2 need leaderElection.enabled" in result.stderr for result in refused)


def test_the_lease_is_renewed_ahead_of_everything_else(rendered: Rendered) -> None:
    """Requests for it match first, and go to the level where Kubernetes' own leases go."""
    first, usual = (
        next(
            each["spec"]
            for each in rendered["defaults"]
            if each["metadata"]["name"] == f"sched-graphsched{end}" and each["kind"] == "FlowSchema"
        )
        for end in ("-lease", "")
    )

    assert first["matchingPrecedence"] < usual["matchingPrecedence"]
    assert {"name": "leader-election"} == first["priorityLevelConfiguration"]
    assert not [each for each in rendered["alone"] if each["metadata"]["name"].endswith("-lease")]


def test_the_binding_names_the_account_the_pod_runs_as(rendered: Rendered) -> None:
    """The rights reach the process, and nobody else."""
    for choice in ("defaults", "everything"):
        objects = rendered[choice]
        account = one(objects, "ServiceAccount")["metadata"]["name"]
        (subject,) = one(objects, "ClusterRoleBinding")["subjects"]

        assert [subject] == one(objects, "RoleBinding")["subjects"]
        assert account == one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
        assert subject == {"kind": "ServiceAccount", "name": account, "namespace": "graphs"}


@pytest.mark.parametrize("choice", ["defaults", "alone", "advising", "shadowing"])
def test_the_roles_are_made_of_the_list_of_rights(rendered: Rendered, choice: str) -> None:
    """What is rendered is what the tests without helm, and those on a real API server, read from the list."""
    config = yaml.safe_load(one(rendered[choice], "ConfigMap")["data"]["config.yaml"])

    namespaced = [each for each in rendered[choice] if each["kind"] == "Role"]

    assert rendering.rules("cluster", config) == one(rendered[choice], "ClusterRole")["rules"]
    assert rendering.rules("namespace", config) == [rule for role in namespaced for rule in role["rules"]]
    assert all(role["metadata"]["namespace"] == config["leaderElection"]["namespace"] for role in namespaced)


def test_who_scrapes_may_read_metrics_and_nothing_else(rendered: Rendered) -> None:
    """The accounts that the values name are bound to a role of their own."""
    role, binding = (
        next(
            each
            for each in rendered["monitored"]
            if each["metadata"]["name"].endswith("-metrics") and each["kind"] == kind
        )
        for kind in ("ClusterRole", "ClusterRoleBinding")
    )

    assert [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}] == role["rules"]
    assert [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}] == binding["subjects"]
    assert role["metadata"]["name"] == binding["roleRef"]["name"]


def test_the_flow_schema_matches_the_account_and_its_own_level(rendered: Rendered) -> None:
    """Every request of the account, and nobody else's, goes to the level that is made beside it."""
    for choice in ("defaults", "everything"):
        objects = rendered[choice]
        spec = one(objects, "FlowSchema")["spec"]
        ((subject,),) = [rule["subjects"] for rule in spec["rules"]]
        account = one(objects, "ServiceAccount")["metadata"]

        assert {"name": account["name"], "namespace": account["namespace"]} == subject["serviceAccount"]
        assert spec["priorityLevelConfiguration"] == {
            "name": one(objects, "PriorityLevelConfiguration")["metadata"]["name"]
        }


def test_the_network_policy_lets_through_scrapes_and_the_api_server_only(rendered: Rendered) -> None:
    """One way in, from whom the values name; two ways out, and what the values add."""
    spec = one(rendered["monitored"], "NetworkPolicy")["spec"]
    given = CHOICES["monitored"]["networkPolicy"]["metricsFrom"]
    chosen = one(rendered["everything"], "NetworkPolicy")["spec"]

    assert [{"ports": [{"port": "http", "protocol": "TCP"}], "from": given}] == spec["ingress"]
    assert [443, 6443, 53, 53] == [port["port"] for rule in spec["egress"] for port in rule["ports"]]
    assert [{"ports": [{"port": "http", "protocol": "TCP"}]}] == chosen["ingress"]
    assert 8443 == chosen["egress"][0]["ports"][0]["port"]
    assert CHOICES["everything"]["networkPolicy"]["extraEgress"] == chosen["egress"][2:]
    assert spec["podSelector"] == one(rendered["monitored"], "Deployment")["spec"]["selector"]


def test_replicas_keep_apart_unless_told_otherwise(rendered: Rendered) -> None:
    """By node and by zone as a wish; the user's words replace each of the two."""
    spec = one(rendered["defaults"], "Deployment")["spec"]
    pod = spec["template"]["spec"]
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    (spread,) = pod["topologySpreadConstraints"]
    chosen = one(rendered["everything"], "Deployment")["spec"]["template"]["spec"]

    assert "kubernetes.io/hostname" == term["podAffinityTerm"]["topologyKey"]
    assert ("topology.kubernetes.io/zone", "ScheduleAnyway") == (spread["topologyKey"], spread["whenUnsatisfiable"])
    assert spec["selector"] == term["podAffinityTerm"]["labelSelector"] == spread["labelSelector"]
    assert {"nodeAffinity": {}} == chosen["affinity"]
    assert CHOICES["everything"]["topologySpreadConstraints"] == chosen["topologySpreadConstraints"]


def test_the_priority_class_is_the_clusters_or_its_own(rendered: Rendered) -> None:
    """The pod names the class that exists."""
    names = {choice: one(rendered[choice], "Deployment")["spec"]["template"]["spec"] for choice in CHOICES}
    own = one(rendered["everything"], "PriorityClass")

    assert "system-cluster-critical" == names["defaults"]["priorityClassName"]
    assert own["metadata"]["name"] == names["everything"]["priorityClassName"]
    assert 500_000_000 == own["value"]
    assert "priorityClassName" not in names["bare"]


def test_the_alerts_are_those_of_the_file(rendered: Rendered) -> None:
    """Word for word, but for the links, which lead where the operators read, and for those that are left out."""
    rule = one(rendered["monitored"], "PrometheusRule")
    expected = yaml.safe_load((rendering.CHART / "alerts" / "graphsched.yaml").read_text())
    for group in expected["groups"]:
        group["rules"] = [each for each in group["rules"] if each["alert"] != "GraphschedLoopLag"]
        for each in group["rules"]:
            link = each["annotations"]["runbook_url"]
            each["annotations"]["runbook_url"] = link.replace("docs/operations.md", "https://wiki.example/operations")

    assert expected == rule["spec"]
    assert {"release": "prometheus"}.items() <= rule["metadata"]["labels"].items()


def test_the_dashboard_is_the_file(rendered: Rendered) -> None:
    """In a ConfigMap that Grafana's sidecar finds by its label."""
    (found,) = [each for each in rendered["monitored"] if each["metadata"]["name"].endswith("-dashboard")]

    assert json.loads((rendering.CHART / "dashboards" / "graphsched.json").read_text()) == json.loads(
        found["data"]["graphsched.json"]
    )
    assert "1" == found["metadata"]["labels"]["grafana_dashboard"]
    assert {"grafana_folder": "Scheduling"} == found["metadata"]["annotations"]


def test_a_pod_that_starts_slowly_is_not_killed(rendered: Rendered) -> None:
    """It has a minute to listen, and the probe that kills asks what only a restart helps."""
    (container,) = one(rendered["defaults"], "Deployment")["spec"]["template"]["spec"]["containers"]
    startup, liveness = container["startupProbe"], container["livenessProbe"]

    assert 60 == startup["periodSeconds"] * startup["failureThreshold"]
    assert "/livez" == startup["httpGet"]["path"] == liveness["httpGet"]["path"]
    assert "/readyz" == container["readinessProbe"]["httpGet"]["path"]


def test_helm_refuses_a_wrong_value(tmp_path: pathlib.Path) -> None:
    """The schema is asked before anything is rendered."""
    result = rendering.run_helm({"replica": 3}, tmp_path)

    assert result.returncode != 0
    assert "replica" in result.stderr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"config": {"http": {"port": 0}}}, "config.http.port: a port that is not known beforehand can not be probed"),
        ({"extraArgs": ["--no-leader-elect"]}, "extraArgs: --no-leader-elect would win over"),
        ({"extraArgs": ["--log-format", "json", "--mode=advise"]}, "extraArgs: --mode=advise would win over"),
        ({"extraArgs": ["--port", "1"]}, "extraArgs: --port would win over"),
        ({"config": None}, "config"),
    ],
    ids=str,
)
def test_values_that_contradict_each_other_are_refused(
    changes: dict[str, Any], said: str, tmp_path: pathlib.Path
) -> None:
    """Two that both decide would give the same room away, and a pod whose probes ask elsewhere is killed for ever."""
    result = rendering.run_helm(changes, tmp_path)

    assert result.returncode != 0
    assert said in result.stderr
