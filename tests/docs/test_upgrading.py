"""docs/upgrading.md tells of the definitions, the format and the settings that there are."""

import re

import yaml

from graphsched.graph import codec
from scripts import configuration_page
from tests.docs import test_pages

TEXT = (test_pages.ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
CRDS = "charts/graphsched/crds"


def test_every_definition_of_the_chart_is_named_with_the_command_that_brings_it_up_to_date() -> None:
    """Helm does not, so whoever upgrades has to."""
    defined = {
        yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"]["name"]
        for path in (test_pages.ROOT / CRDS).glob("*.yaml")
    }

    assert defined == set(re.findall(r"`(\w+\.graphsched\.io)`", TEXT))
    assert f"kubectl apply --server-side --force-conflicts -f {CRDS}\n" in TEXT


def test_the_number_of_the_format_is_the_programs() -> None:
    """Followers are upgraded by it."""
    assert f"are of format {codec.FORMAT}. " in TEXT


def test_every_setting_it_names_is_one() -> None:
    """A setting that does not exist ends the program that was just upgraded."""
    page = configuration_page.page()
    groups = set(re.findall(r"^## (\w+)", page, re.MULTILINE))
    named = {name for name in re.findall(r"`(\w+\.\w+)(?:: [^`]+)?`", TEXT) if name.partition(".")[0] in groups}

    assert {"topology.crds", "policies.enabled", "queue.order"} <= named
    assert set() == {name for name in named if f"`{name}`" not in page}
