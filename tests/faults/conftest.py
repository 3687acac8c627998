"""One control plane for all worlds of these tests."""

from collections.abc import Iterator

import pytest

from tests.controlplane import binaries, cluster as clusters


@pytest.fixture(scope="session")
def arena(programs: binaries.Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    """An API server that many worlds share; no controllers, no kubelets."""
    options = clusters.Options(authorization="AlwaysAllow")
    with clusters.Cluster(options, programs=programs, logs=tmp_path_factory.mktemp("arena-logs")) as cluster:
        yield cluster
