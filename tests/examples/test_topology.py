"""The networks of `examples/topology` come out as they are drawn."""

from graphsched.app import offline
from graphsched.base.values import keys, relations
from tests.architecture import tidy

FOLDER = tidy.ROOT / "examples" / "topology"
REGION = "domain/topology.kubernetes.io/region="


def links(*files: str) -> dict[tuple[str, str], relations.Link]:
    """Ends → link, of the graph out of these files and the nodes."""
    graph = offline.graph_of(offline.load([str(FOLDER / name) for name in ("nodes.yaml", *files)]))
    found = {}
    for edge in graph.edge_ids(keys.EdgeKind.LINK):
        link = graph.edge(edge)
        assert isinstance(link, relations.Link)
        found[str(edge.source), str(edge.target)] = link
    return found


def test_a_mesh_is_links_between_nodes() -> None:
    """Each way, and the degraded one counts for half."""
    found = links("mesh.yaml")
    nodes = [f"node/n{number}" for number in (1, 2, 3)]

    assert {(one, other) for one in nodes for other in nodes if one != other} == set(found)
    assert (0.5, 1.0) == (found["node/n1", "node/n3"].health, found["node/n1", "node/n2"].health)


def test_rails_are_places_between_nodes() -> None:
    """Each card reaches its peer on the same rail in two steps."""
    found = links("rail.yaml")

    assert 12 == len(found)
    assert {"place/rail-0", "place/rail-1"} == {target for source, target in found if source == "node/gpu-1"}
    assert 400_000.0 == found["place/rail-0", "node/gpu-2"].bandwidth_mbps


def test_a_wide_area_network_joins_domains() -> None:
    """A line that is down takes nothing from one that is up, and a satellite is as fast as each of its directions."""
    found = links("wan.yaml")

    assert 38.0 == found[f"{REGION}europe", f"{REGION}america"].latency_ms
    assert 4 == len(found)
    assert (20.0, 1.0) == (
        found["place/ship", f"{REGION}europe"].bandwidth_mbps,
        found[f"{REGION}europe", "place/ship"].bandwidth_mbps,
    )


def test_a_folder_with_all_of_them_is_one_graph() -> None:
    """Files of Slurm beside manifests, in one run."""
    paths = [str(FOLDER / name) for name in ("nodes.yaml", "mesh.yaml", "rail.yaml", "wan.yaml", "topology.conf")]
    graph = offline.graph_of(offline.load(paths))

    assert {"place/slurm/leaf1", "place/slurm/leaf2", "place/slurm/spine", "place/rail-0", "place/ship"} <= set(
        graph.vertex_keys("place/")
    )
    assert 7 == len(graph.edge_ids(keys.EdgeKind.CONTAINS))
    assert [] == graph.audit()
