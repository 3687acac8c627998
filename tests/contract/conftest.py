"""Every test of the contract runs on both fakes, and on the real API server under the marker `cluster`."""

import pytest

from tests.contract import targets


@pytest.fixture(params=["fake", "memory", pytest.param("real", marks=pytest.mark.cluster)])
def target(request: pytest.FixtureRequest) -> targets.Target:
    """The API server under contract."""
    if request.param == "real":
        return targets.Real(request.getfixturevalue("cluster"))
    return targets.Fake() if request.param == "fake" else targets.Memory()
