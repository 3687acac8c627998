"""The plugin keeps the contract, and does what it says."""

import graphsched_widest

from graphsched import testing
from graphsched.base.values import keys
from graphsched.decision import walking
from graphsched.graph import adjacency


class TestContract(testing.PluginContract):
    """Everything that graphsched asks of a plugin."""

    def make(self) -> walking.GraphWalk:
        """The plugin."""
        made: walking.GraphWalk = graphsched_widest.WidestFirst()
        return made


def test_what_most_wait_for_goes_first() -> None:
    """Of two that wait for nobody, the one with more behind it."""
    writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
    narrow, wide, one, other = (keys.pod_key("default", name) for name in ("a", "b", "c", "d"))
    for key in (narrow, wide, one, other):
        writer.add(key)
    for before, after in ((narrow, one), (wide, one), (wide, other)):
        writer.set(before, after)
    graph = walking.Graph(writer.picture())

    found = graphsched_widest.WidestFirst().walk(graph, graph.keys, walking.Context())

    assert [wide, narrow, one, other] == found
