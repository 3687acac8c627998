"""
Pytest fixtures with a real control plane, for every test marked `cluster`.

Comes in: nothing but the built programs. Goes out: `cluster`, one control plane for the whole run, emptied before
each test that asks for it; and `new_cluster`, which starts one of the test's own where it must be killed, filled or
set up otherwise.

Invariant: no test sees a node or pod that another one made.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.controlplane import binaries, cluster as clusters

NewCluster = Callable[[clusters.Options], clusters.Cluster]

#: Collections that a test may fill, those that hold others' objects back last.
_EMPTIED = (
    "/api/v1/namespaces/default/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
)


@pytest.fixture(scope="session")
def programs() -> binaries.Binaries:
    """The built control plane; the first run on a machine builds it, which takes minutes."""
    return binaries.ensure()


@pytest.fixture(scope="session")
def shared_cluster(
    programs: binaries.Binaries,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[clusters.Cluster]:
    """One control plane with fake kubelets for the whole run. Tests ask for `cluster`, which is empty."""
    options = clusters.Options(kwok=True)
    with clusters.Cluster(options, programs=programs, logs=tmp_path_factory.mktemp("cluster-logs")) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: clusters.Cluster) -> clusters.Cluster:
    """The shared control plane (API server with RBAC, fake kubelets, no scheduler), without nodes and pods."""
    shared_cluster.require_alive()
    for path in _EMPTIED:
        shared_cluster.call("DELETE", path, {"gracePeriodSeconds": 0})
    return shared_cluster


@pytest.fixture
def new_cluster(
    programs: binaries.Binaries,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NewCluster]:
    """A function that starts a control plane of the test's own (about 4 s); it ends with the test."""
    running: list[clusters.Cluster] = []

    def start(options: clusters.Options) -> clusters.Cluster:
        one = clusters.Cluster(options, programs=programs, logs=tmp_path_factory.mktemp("cluster-logs"))
        running.append(one)
        one.start()
        return one

    yield start
    for one in running:
        one.stop()
