"""SECURITY.md says what the program does: rights, numbers, settings, files."""

import pathlib
import re

import pytest
import yaml

from graphsched.app import access, ordering, settings
from graphsched.base.kube import demands, levels, policies
from graphsched.base.values import patterns
from graphsched.decision.policy import expressions
from graphsched.observe import feeds, listener, server
from scripts import configuration_page
from tests.docs import test_pages

PAGE = (test_pages.ROOT / "SECURITY.md").read_text(encoding="utf-8")
RIGHTS = yaml.safe_load((test_pages.ROOT / "charts" / "graphsched" / "rights.yaml").read_text(encoding="utf-8"))


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def test_every_right_of_the_chart_is_judged() -> None:
    """What it could be abused for stands beside it, verb by verb; and no right is judged that nobody is given."""
    table = section("What each right could be abused for")
    rows = re.findall(r"^\| ([a-z, ]+) (`.*?`) \|", table, flags=re.MULTILINE)
    judged = {
        (resource, verb)
        for verbs, resources in rows
        for resource in re.findall(r"`([a-z/]+)`", resources)
        for verb in verbs.split(", ")
    }
    granted = {(resource, verb) for right in RIGHTS for resource in right["resources"] for verb in right["verbs"]}

    assert granted == judged
    # Below the two lines of its head, every line of the table was understood.
    assert len(rows) == table.count("\n| ") - 1


@pytest.mark.parametrize(
    "said",
    [
        f"{demands.TEXT_MAX} characters and {demands.ENTRIES_MAX} entries an annotation",
        f"{policies.RULES_MAX} rules a policy, {policies.EXPRESSION_LENGTH_MAX} characters an expression",
        f"after {expressions.OVERRUNS_MAX} stops it is not asked any more",
        f"more than {patterns.LENGTH_MAX} characters, with nested repetition or in more than {patterns.WAYS_MAX} ways",
        f"{levels.LEVELS_MAX} levels of labels",
        f"{feeds.FOLLOWERS_MAX} are answered at a time, {feeds.WAIT_S_MAX:.0f} s each",
        f"{listener.CONNECTIONS_MAX} connections",
        f"{listener.HANDSHAKE_S:.0f} s for a handshake, {server.HEADER_S_MAX:.0f} s for a request to come in",
        f"{server.ANSWER_S_MAX:.0f} s for an answer",
        f"{server.REQUESTS_MAX} requests at a time, {access.REVIEWS_MAX} reviews on their way",
        f"{access.WAITING_MAX} that wait",
        f"up to {access.REVIEWS_MAX} questions at a time",
        "8 kB a header, 64 headers",
    ],
)
def test_the_bounds_are_those_of_the_program(said: str) -> None:
    """A number that changes there changes here."""
    assert said in " ".join(PAGE.split())
    assert 2.0 == ordering.CUT_FACTOR
    assert (8190, 64, 10.0) == (server._HEADER_BYTES_MAX, server._HEADERS_MAX, access.REMEMBERED_S)


@pytest.mark.parametrize(
    "actor",
    [
        "Whoever annotates pods",
        "Author of a GraphPolicy",
        "Author of NetworkLinks, HyperNodes and other topology",
        "Author of a plugin that is installed",
        "Follower of `/debug/graph`",
    ],
)
def test_who_reaches_the_graph_is_judged(actor: str) -> None:
    """What they can do, what stands in the way with the test that proves it, and what does not."""
    (row,) = [line for line in section("Who may want it").splitlines() if line.startswith(f"| {actor} |")]
    _, can, way, rest = [cell.strip() for cell in row.strip("|").split(" | ")]

    assert all((can, rest))
    assert re.findall(r"`tests/[\w/]+\.py`", way)


def test_every_setting_and_test_it_names_exists() -> None:
    """A checklist that names what is not there is worse than none."""
    pages = configuration_page.page()
    named = re.findall(r"`((?:http|log)\.[a-zA-Z.]+)`?", PAGE)
    files = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)

    assert {"http.auth", "http.tls.certFile", "http.tls.keyFile"} <= set(named)
    assert [] == [name for name in named if f"`{name}" not in pages and f"## {name}" not in pages]
    assert 2 <= len(files)
    assert [] == [name for name in files if not (test_pages.ROOT / name).is_file()]
    assert "delegated" != settings.HTTPSettings().auth
    assert pathlib.Path(test_pages.ROOT / "SECURITY.md") in test_pages.PAGES
