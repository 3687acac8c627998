"""The custom resources that the chart brings."""

import pathlib

import pytest
import yaml

from graphsched.base.kube import networklinks
from graphsched.sources import custom
from tests.chart import rendering

CRDS = sorted((rendering.CHART / "crds").glob("*.yaml"))


def definition(name: str) -> rendering.Object:
    """The definition in a file."""
    read: rendering.Object = yaml.safe_load((rendering.CHART / "crds" / name).read_text())
    return read


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_a_definition_is_called_as_the_api_server_wants_it(path: pathlib.Path) -> None:
    """Plural and group, in a file of the plural's name, structural to its ends."""
    crd = definition(path.name)
    spec = crd["spec"]

    assert f"{spec['names']['plural']}.{spec['group']}" == crd["metadata"]["name"]
    assert path.stem == spec["names"]["plural"]
    assert "graphsched.io" == spec["group"]
    for version in spec["versions"]:
        assert {"status": {}} == version["subresources"]
        assert "object" == version["schema"]["openAPIV3Schema"]["type"]


def test_links_are_followed_where_they_are_defined() -> None:
    """The path that is watched is the definition's."""
    spec = definition("networklinks.yaml")["spec"]
    (version,) = spec["versions"]

    assert f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}" == custom.NETWORK_LINKS.path
    assert (spec["group"], spec["names"]["kind"]) in custom.KINDS


def test_the_definition_knows_every_field_that_is_read_and_no_other() -> None:
    """A field that the schema does not know would be dropped by the API server without a word."""
    (version,) = definition("networklinks.yaml")["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]
    end = fields["spec"]["properties"]["endpoints"]["items"]["properties"]

    for body, known in (
        (networklinks.Spec, fields["spec"]["properties"]),
        (networklinks.Endpoint, end),
        (networklinks.Domain, end["domain"]["properties"]),
        (
            networklinks.Status,
            {name: each for name, each in fields["status"]["properties"].items() if name != "conditions"},
        ),
    ):
        assert set(body.__struct_encode_fields__) == set(known)
