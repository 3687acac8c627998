"""A pod is Guaranteed where kube-apiserver would say so of it."""

import pytest

from graphsched.base.values import errors
from tests.builders import PodBuilder, make_pod

BOTH = ("cpu", "memory")


def alike(pod: PodBuilder, container: int = 0) -> PodBuilder:
    """Its container limited to what it requests: 2 CPUs and 1Gi."""
    for resource, amount in (("cpu", "2"), ("memory", "1Gi")):
        pod = pod.request(resource, amount, container).limit(resource, amount, container)
    return pod


def test_every_container_limited_to_what_it_requests_is_guaranteed() -> None:
    """Other resources do not count."""
    pod = alike(alike(make_pod("p")).container("second"), 1).request("example.com/gpu", "1")

    assert pod.build().spec.guaranteed


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("none"),
        make_pod("requests").cpu("2").memory("1Gi"),
        alike(make_pod("second")).container("idle"),
        alike(make_pod("init")).init_container("idle"),
        alike(make_pod("more")).limit("cpu", "2001m"),
        alike(make_pod("zero")).limit("memory", "0"),
        make_pod("cpu").request("cpu", "1").limit("cpu", "1"),
        alike(make_pod("whole")).pod_requests({"cpu": "2", "memory": "1Gi"}),
    ],
    ids=lambda pod: pod.manifest()["metadata"]["name"],
)
def test_anything_else_is_not(pod: PodBuilder) -> None:
    """A container without limits, a limit above the request, a resource missing, a pod-level request without limit."""
    assert not pod.build().spec.guaranteed


def test_the_sums_count_and_not_each_container() -> None:
    """As kube-apiserver compares them: 1 and 3 CPUs limited to 2 each are what they request together."""
    pod = alike(alike(make_pod("p")).container("second"), 1).request("cpu", "1").request("cpu", "3", 1)

    assert pod.build().spec.guaranteed


def test_quantities_are_compared_and_not_texts() -> None:
    """1024Mi is 1Gi, and 2000m are 2."""
    assert alike(make_pod("p")).limit("memory", "1024Mi").limit("cpu", "2000m").build().spec.guaranteed


def test_the_pod_as_a_whole_decides_where_it_has_resources() -> None:
    """Whatever its containers say."""
    amounts = {"cpu": "2", "memory": "1Gi"}
    pod = make_pod("p").cpu("1").set("spec.resources", {"requests": amounts, "limits": amounts})

    assert pod.build().spec.guaranteed


def test_a_limit_that_is_no_quantity_is_told_with_its_place() -> None:
    """Pod, container, resource."""
    with pytest.raises(errors.InputError, match=r'Pod "default/p": spec.containers\[0\].resources.limits.cpu: "2x"'):
        alike(make_pod("p")).limit("cpu", "2x").build()
