"""Every test of the contract runs on the fake API server, and on the real one under the marker `cluster`."""

import pytest

from tests.contract import targets


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
def target(request: pytest.FixtureRequest) -> targets.Target:
    """The API server under contract."""
    return targets.Fake() if request.param == "fake" else targets.Real(request.getfixturevalue("cluster"))
