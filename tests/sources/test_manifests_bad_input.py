"""Every mistake in a manifest is one line: file, object, field, what is wrong, how to mend it."""

import pathlib

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.values import errors
from graphsched.sources import documents, manifests

NODE = "kind: Node\napiVersion: v1\nmetadata: {name: n1}\n"
POD = "kind: Pod\napiVersion: v1\nmetadata: {name: web}\n"
DEPLOYMENT = "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n"
TEMPLATE = "template: {spec: {containers: [{}]}}}\n"
LINK = "kind: NetworkLink\napiVersion: graphsched.io/v1alpha1\nmetadata: {name: l}\n"
HEAD = "apiVersion: v1\nmetadata: {name: web}\n"


def refusal(tmp_path: pathlib.Path, text: str) -> str:
    """The line about a file."""
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(errors.InputError) as caught:
        manifests.read([str(path)])
    return str(caught.value).replace(str(path), "a.yaml")


def pod(spec: str) -> str:
    """A pod with a spec in flow style."""
    return POD + f"spec: {spec}\n"


def container(requests: str, limits: str = "{}") -> str:
    """A pod with one container."""
    return pod(f"{{containers: [{{name: c, resources: {{requests: {requests}, limits: {limits}}}}}]}}")


TWO = NODE + "---\n" + NODE
CPU = 'a.yaml:1: Pod "default/web": spec.containers[0].resources.requests.cpu: '
TABLE = [
    ("a quantity that is none", container("{cpu: 12Gx}"), CPU + '"12Gx" is not a quantity (use e.g. 12, 500m, 1.5Gi)'),
    ("no number at all", container("{cpu: .nan}"), CPU + '"nan" is not a quantity (use e.g. 12, 500m, 1.5Gi)'),
    ("true", container("{cpu: yes}"), CPU + "is not a quantity (use e.g. 12, 500m, 1.5Gi)"),
    ("nothing", container("{cpu: }"), CPU + "is not a quantity (use e.g. 12, 500m, 1.5Gi)"),
    ("a negative request", container("{cpu: -1}"), CPU + '"-1" is negative (use 0 or more)'),
    (
        "a request above its limit",
        container("{cpu: 2}", "{cpu: 1500m}"),
        CPU + '"2" is above the limit "1500m" (raise the limit or lower the request)',
    ),
    (
        "more than 64 bits",
        container("{cpu: 99999999999999999999}"),
        CPU + '"99999999999999999999" does not fit 64 bits (use at most 9223372036854775807)',
    ),
    (
        "more than the graph counts, in sum",
        pod("{containers: [{resources: {requests: {cpu: 30T}}}, {resources: {requests: {cpu: 30T}}}]}"),
        'a.yaml:1: Pod "default/web": amount 60000000000000000 of cpu is out of range (correct it)',
    ),
    (
        "a number of more than 64 bits",
        pod("{containers: [{name: c}], tolerations: [{operator: Exists, tolerationSeconds: 99999999999999999999}]}"),
        (
            'a.yaml:1: Pod "default/web": spec.tolerations[0].tolerationSeconds: 99999999999999999999 does not fit 64 '
            "bits (use at most 9223372036854775807)"
        ),
    ),
    (
        "a bad quantity of a node",
        NODE + "status: {allocatable: {cpu: 12Gx}}\n",
        'a.yaml:1: Node "n1": status.allocatable.cpu: "12Gx" is not a quantity (use e.g. 12, 500m, 1.5Gi)',
    ),
    ("a node twice", TWO, 'a.yaml:5: Node "n1": is there twice, first at a.yaml:1 (remove or rename one)'),
    (
        "a pod twice",
        pod("{containers: [{}]}") + "---\n" + pod("{containers: [{}]}"),
        'a.yaml:6: Pod "default/web": is there twice, first at a.yaml:1 (remove or rename one)',
    ),
    (
        "a pod that a workload makes as well",
        POD.replace("web", "web-1")
        + "spec: {containers: [{}]}\n---\n"
        + DEPLOYMENT
        + "spec: {replicas: 2, "
        + TEMPLATE,
        'a.yaml:6: Pod "default/web-1": is there twice, first at a.yaml:1 (remove or rename one)',
    ),
    (
        "a pod on an unknown node",
        pod("{nodeName: n2, containers: [{}]}") + "---\n" + NODE,
        'a.yaml:1: Pod "default/web": spec.nodeName: there is no Node "n2" (add the node, or leave the field out)',
    ),
    (
        "an unknown kind",
        "kind: Pood\n" + HEAD,
        'a.yaml:1: unknown kind "Pood" in apiVersion "v1" (correct apiVersion and',
    ),
    ("an unknown kind in a known group", "kind: Deploy\napiVersion: apps/v1\n", 'a.yaml:1: unknown kind "Deploy" in'),
    ("a known kind in the wrong group", "kind: Deployment\napiVersion: v1\n", 'a.yaml:1: unknown kind "Deployment" in'),
    (
        "a misspelt kind of our own",
        "kind: GraphPolcy\napiVersion: graphsched.io/v1alpha1\n",
        'a.yaml:1: unknown kind "GraphPolcy" in',
    ),
    (
        "our own kind in a version that is none",
        "kind: GraphPolicy\napiVersion: graphsched.io/v1\n",
        'a.yaml:1: unknown apiVersion "graphsched.io/v1" (correct apiVersion and kind)',
    ),
    (
        "a misspelt field of a link",
        LINK + "spec: {endpoints: [{node: n1}, {node: n2}], latency: 1}\n",
        'a.yaml:1: NetworkLink "l": spec.latency: is no field (write latencyMs)',
    ),
    (
        "a misspelt field of an end of a link",
        LINK + "spec: {endpoints: [{node: n1}, {nod: n2}]}\n",
        'a.yaml:1: NetworkLink "l": spec.endpoints[1].nod: is no field (write node)',
    ),
    ("a group that is gone", "kind: Deployment\napiVersion: extensions/v1beta1\n", "a.yaml:1: unknown kind"),
    (
        "an unknown kind and no apiVersion",
        "kind: Pood\n",
        'a.yaml:1: unknown kind "Pood" (correct apiVersion and kind)',
    ),
    ("no kind", "metadata: {name: a}\n", "a.yaml:1: kind: is missing (say e.g. kind: Pod)"),
    ("a kind that is no text", "kind: 3\n", "a.yaml:1: kind: is missing (say e.g. kind: Pod)"),
    (
        "an apiVersion that is no text",
        "kind: Pod\napiVersion: 1\n",
        "a.yaml:1: Pod: apiVersion: is not a text (say e.g.",
    ),
    ("a list", "- a\n", "a.yaml:1: is a list, not an object (begin with apiVersion and kind)"),
    ("a text", "hello\n", "a.yaml:1: is a text, not an object (begin with apiVersion and kind)"),
    ("a number", "3\n", "a.yaml:1: is a number, not an object (begin with apiVersion and kind)"),
    ("no name", "kind: Pod\napiVersion: v1\nspec: {}\n", "a.yaml:1: Pod: metadata.name: is missing (name the Pod)"),
    ("no name of a node", "kind: Node\napiVersion: v1\n", "a.yaml:1: Node: metadata.name: is missing (name the Node)"),
    (
        "a generated name",
        "kind: Pod\napiVersion: v1\nmetadata: {generateName: web-}\n",
        "a.yaml:1: Pod: metadata.name: is missing (name the Pod)",
    ),
    (
        "a wrong type",
        pod("{containers: x}"),
        'a.yaml:1: Pod "default/web": spec.containers: is a text, not a list (write a',
    ),
    (
        "a label without quotes",
        "kind: Pod\napiVersion: v1\nmetadata: {name: web, labels: {version: 1.10}}\n",
        'a.yaml:1: Pod "default/web": metadata.labels.version: is a number, not a text (put it in quotes)',
    ),
    ("no container", POD, 'a.yaml:1: Pod "default/web": spec.containers: is missing or empty (add a container)'),
    (
        "a mistake inside a list",
        "kind: List\napiVersion: v1\nitems:\n- {kind: ConfigMap}\n- {kind: Pood, apiVersion: v1}\n",
        'a.yaml:1: items[1]: unknown kind "Pood" in apiVersion "v1" (correct apiVersion and kind)',
    ),
    (
        "a mistake inside a workload",
        DEPLOYMENT + "spec: {template: {spec: {containers: [{resources: {requests: {cpu: x}}}]}}}\n",
        'a.yaml:1: Deployment "default/web": Pod "default/web-0": spec.containers[0].resources.requests.cpu: "x" is',
    ),
    (
        "a wrong type inside a workload",
        DEPLOYMENT + "spec: {replicas: two}\n",
        'a.yaml:1: Deployment "default/web": spec.replicas: is a text, not an integer (write an integer)',
    ),
    (
        "too many replicas",
        DEPLOYMENT + "spec: {replicas: 1000000000}\n",
        'a.yaml:1: Deployment "default/web": spec.replicas: 1000000000 is out of range (use 0 to 200000)',
    ),
    (
        "an unknown priority class",
        pod("{priorityClassName: hihg, containers: [{}]}"),
        'a.yaml:1: Pod "default/web": spec.priorityClassName: no PriorityClass "hihg" (add its manifest',
    ),
    (
        "an unknown runtime class",
        pod("{runtimeClassName: kata, containers: [{}]}"),
        'a.yaml:1: Pod "default/web": spec.runtimeClassName: no RuntimeClass "kata" (add its manifest',
    ),
    ("broken YAML", NODE + "spec: [\n", "a.yaml:5:1: broken YAML: "),
    ("a key twice", NODE + "kind: Pod\n", 'a.yaml:4:1: the key "kind" appears twice (remove one)'),
    ("the second document", NODE + "---\nkind: Pood\n", 'a.yaml:5: unknown kind "Pood"'),
]


@pytest.mark.parametrize(("about", "text", "line"), TABLE, ids=[row[0] for row in TABLE])
def test_a_mistake_is_one_line(tmp_path: pathlib.Path, about: str, text: str, line: str) -> None:
    """Rows: a manifest, the beginning of the line."""
    told = refusal(tmp_path, text)

    assert told.startswith(line)
    assert told.endswith(")"), "there is a remedy"
    assert "\n" not in told


def test_too_many_pods_are_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several workloads may do together what one may not."""
    monkeypatch.setattr(manifests, "PODS_MAX", 3)
    spec = "spec: {replicas: 2, template: {spec: {containers: [{}]}}}\n"
    two = "---\n".join(f"kind: Deployment\napiVersion: apps/v1\nmetadata: {{name: {name}}}\n{spec}" for name in "ab")

    assert "a.yaml:6: holds more than 3 pods (give fewer)" == refusal(tmp_path, two)


text = strategies.text(alphabet="abkPodNe{}[]:-,*&<>!|'\"\n\t #0123456789", max_size=60)


@hypothesis.given(text, strategies.sampled_from(["", NODE + "---\n", "kind: Pod\napiVersion: v1\n", POD + "spec: "]))
def test_whatever_is_written_is_a_cluster_or_one_line(text: str, head: str) -> None:
    """No other exception leaves the reader."""
    data = (head + text).encode()
    try:
        collector = manifests.Collector()
        for document in documents.parse(data, "a.yaml"):
            collector.add(document.body, place=document.place)
        told = str(len(collector.state().pods))
    except errors.InputError as error:
        told = str(error)

    assert told
    assert "\n" not in told
