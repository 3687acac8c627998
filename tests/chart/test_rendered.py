"""The chart as helm renders it: every object fits the API's schema, whatever is chosen."""

import pathlib
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.chart import rendering

CHOICES: dict[str, rendering.Object] = {
    "defaults": {},
    "monitored": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "bare": {
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "given"},
        "service": {"enabled": False},
    },
    "everything": {
        "fullnameOverride": "placer",
        "image": {"repository": "registry.example/graphsched", "digest": "sha256:" + "a" * 64, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "schedulerName": "placer",
        "config": {"http": {"port": 10260}, "queue": {"backoffMaxSeconds": 10}},
        "extraArgs": ["--verbose"],
        "extraEnv": [{"name": "A", "value": "b"}],
        "http": {"port": 12345},
        "serviceAccount": {"annotations": {"example.org/role": "x"}},
        "service": {"annotations": {"a": "b"}},
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"a": "b"},
        "podLabels": {"team": "x"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
}

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
    """Return the only object of a kind."""
    (found,) = [document for document in objects if document["kind"] == kind]
    return found


@pytest.mark.parametrize("version", rendering.KUBERNETES_VERSIONS)
@pytest.mark.parametrize("choice", CHOICES)
def test_every_object_fits_the_schema(rendered: Rendered, choice: str, version: str) -> None:
    """No field is unknown to the API server, in the oldest and the newest version we speak of."""
    for document in rendered[choice]:
        if document["kind"] != "ServiceMonitor":  # a custom resource; its test is below
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize(
    ("choice", "kinds"),
    [
        ("defaults", "ClusterRole ClusterRoleBinding ConfigMap Deployment Service ServiceAccount"),
        ("monitored", "ClusterRole ClusterRoleBinding ConfigMap Deployment Service ServiceAccount ServiceMonitor"),
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


def test_the_configuration_is_the_users_over_the_charts(rendered: Rendered) -> None:
    """The chart says who it is and where it listens; what the user says wins."""
    defaults = yaml.safe_load(one(rendered["defaults"], "ConfigMap")["data"]["config.yaml"])
    chosen = yaml.safe_load(one(rendered["everything"], "ConfigMap")["data"]["config.yaml"])

    assert defaults == {
        "schedulerName": "graph-scheduler",
        "http": {"host": "0.0.0.0", "port": 10260, "auth": "delegated", "tls": {"selfSigned": True}},  # noqa: S104
    }
    assert chosen["schedulerName"] == "placer"
    assert chosen["http"]["port"] == 10260
    assert chosen["queue"] == {"backoffMaxSeconds": 10}


def test_a_changed_configuration_restarts_the_pods(rendered: Rendered) -> None:
    """The configuration's checksum is part of the pod template."""
    checksums = {
        one(rendered[choice], "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for choice in ("defaults", "everything")
    }

    assert len(checksums) == 2


def test_two_processes_never_decide_at_once(rendered: Rendered) -> None:
    """There is no lease, so the old pod goes before the new one comes, and there is one."""
    spec = one(rendered["defaults"], "Deployment")["spec"]

    assert (1, {"type": "Recreate"}) == (spec["replicas"], spec["strategy"])


def test_the_binding_names_the_account_the_pod_runs_as(rendered: Rendered) -> None:
    """The rights reach the process, and nobody else."""
    for choice in ("defaults", "everything"):
        objects = rendered[choice]
        account = one(objects, "ServiceAccount")["metadata"]["name"]
        (subject,) = one(objects, "ClusterRoleBinding")["subjects"]

        assert account == one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
        assert subject == {"kind": "ServiceAccount", "name": account, "namespace": "graphs"}


def test_helm_refuses_a_wrong_value(tmp_path: pathlib.Path) -> None:
    """The schema is asked before anything is rendered."""
    result = rendering.run_helm({"replica": 3}, tmp_path)

    assert result.returncode != 0
    assert "replica" in result.stderr
