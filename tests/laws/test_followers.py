"""The law of followers: whoever gets what happened since holds the graph, however it was merged on the way."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from graphsched.graph import delta, followers, patchlog
from graphsched.graph.store import Store
from tests.laws import strategies
from tests.laws.test_store import store_of

# A failing law is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

EPOCH = 1


def whole(store: Store) -> bytes:
    """The graph, to begin with."""
    vertices, edges = store.content()
    patch = delta.Patch(vertices=vertices, edges=edges)
    return followers.message(patch, epoch=EPOCH, base=store.generation, generation=store.generation)


@given(strategies.histories, st.lists(st.tuples(strategies.patches, st.booleans()), max_size=8), st.integers(1, 8))
def test_a_copy_is_the_graph_whenever_it_has_asked(
    history: list[delta.Patch], later: list[tuple[delta.Patch, bool]], patches_max: int
) -> None:
    """It asks after some patches and not after others, and after a gap it begins again."""
    store, follower = store_of(history), followers.Follower()
    store.log = patchlog.PatchLog(store.generation, patches_max=patches_max)
    follower.take(whole(store))

    for patch, asks in later:
        assert isinstance(store.apply(patch), delta.Applied)
        if not asks:
            continue
        missed = store.log.since(follower.generation)
        if missed is None:
            follower.take(whole(store))
        else:
            merged = delta.merge(missed)
            base = follower.generation
            follower.take(followers.message(merged, epoch=EPOCH, base=base, generation=store.generation))

        assert follower.generation == store.generation
        assert follower.store.content() == store.content()
        assert follower.store.audit() == []
    assert not any(follower.refused.values())
