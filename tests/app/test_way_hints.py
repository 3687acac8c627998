"""Who was refused for its ways wakes when ways change, and not when a pod comes."""

from __future__ import annotations

import pytest

from graphsched.app import hints, tidings
from graphsched.decision import names
from tests.builders import make_node, make_pod

Event = tidings.Event


def came() -> tidings.News:
    """A pod was bound."""
    news = tidings.News()
    news.pod(None, make_pod("other").node("n1").build())
    return news


def left() -> tidings.News:
    """A pod went."""
    news = tidings.News()
    news.pod(make_pod("other").node("n1").build(), None)
    return news


@pytest.mark.parametrize(
    ("news", "event"),
    [
        pytest.param(tidings.News(ways=True), Event.WAYS, id="a link changed"),
        pytest.param(tidings.News(removed=[make_node("n").build()]), Event.NODE_GONE, id="a node went"),
        pytest.param(tidings.News(added=[(None, make_node("n").build())]), Event.NODE_ADDED, id="a node came"),
        pytest.param(came(), None, id="a pod came"),
        pytest.param(left(), Event.OTHER_GONE, id="a pod went"),
    ],
)
def test_a_pod_refused_for_its_ways_wakes_on(news: tidings.News, event: tidings.Event | None) -> None:
    """Links, places and nodes; pods that come could only limit it further."""
    assert hints.hint([names.GRAPH_PATH], news, make_pod("web").build(), None) is event


def test_a_change_of_ways_is_news_for_nobody_else() -> None:
    """Others do not look at ways."""
    news = tidings.News(ways=True)

    assert news
    assert not news.beyond_company
    assert hints.hint([names.NODE_RESOURCES_FIT], news, make_pod("web").build(), None) is None
