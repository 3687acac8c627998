"""Scores: every number derived by hand, truncation included.

In the comments `/` is integer division that drops the rest. Unless a row says otherwise a node has 4,000m CPU and
32 GiB (32,768 MiB), and what is shown is the score times the plugin's weight.
"""

from __future__ import annotations

import pytest

from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod, need
from tests.decision import tables
from tests.decision.tables import Config, Thing

POD = make_pod("web")
N1 = make_node("n1")
FPGA = "example.com/fpga"
FIT, BALANCED, IMAGES = "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"
TAINTS, AFFINITY = "TaintToleration", "NodeAffinity"
ZERO = POD.cpu("0").memory("0")


def bound(name: str = "old", node: str = "n1") -> PodBuilder:
    """A pod that is there already."""
    return make_pod(name).node(node)


def weighing(**weights: int) -> Config:
    """Resources of the allocation score with their weights; `_` stands for a hyphen, `fpga` for the extended one."""
    names = {"fpga": FPGA, "ephemeral_storage": "ephemeral-storage"}
    resources = [{"name": names.get(name, name), "weight": weight} for name, weight in weights.items()]
    return tables.plugin_config(FIT, scoringStrategy={"type": "LeastAllocated", "resources": resources})


LEAST: dict[str, tuple[PodBuilder, list[Thing], Config | None, int]] = {
    # cpu (4000-100)*100/4000 = 97, memory (32768-500)*100/32768 = 98; (97+98)/2 = 97
    "a small pod on an empty node": (POD.cpu("100m").memory("500Mi"), [N1], None, 97),
    # no key: 100m and 200Mi are assumed. 97, (32768-200)*100/32768 = 99; (97+99)/2 = 98
    "a pod that names no request": (POD, [N1], None, 98),
    # an explicit 0 stays 0: 100 and 100
    "a pod that requests zero": (ZERO, [N1], None, 100),
    # two containers without requests: 200m -> 95, 400Mi -> 98; 193/2 = 96
    "each container without a request counts": (POD.container("b"), [N1], None, 96),
    # cpu named by the first only: 0 + 100m -> 97; memory 200Mi + 200Mi -> 98; 195/2 = 97
    "the default is for each container by itself": (POD.cpu("0").container("b"), [N1], None, 97),
    # init: max(container 100m, init 100m) -> 97; 99; 98
    "an init container gets the defaults too": (ZERO.init_container("i"), [N1], None, 98),
    # nothing is left: 0 and 0
    "a pod that fills the node": (POD.cpu("4").memory("32Gi"), [N1], None, 0),
    # cpu 0, memory (32768-16384)*100/32768 = 50; 25
    "one resource filled, the other by half": (POD.cpu("4").memory("16Gi"), [N1], None, 25),
    # cpu (4000-1)*100/4000 = 99, memory 100; 199/2 = 99
    "a milli-CPU already costs a point": (POD.cpu("1m").memory("0"), [N1], None, 99),
    # (3-1)*100/3 = 66, memory not offered
    "thirds are cut, not rounded": (POD.cpu("1m"), [N1.cpu("3m").without("memory")], None, 66),
    # (7-1)*100/7 = 85, (7-2)*100/7 = 71; 156/2 = 78
    "sevenths": (POD.cpu("1m").memory("2"), [N1.cpu("7m").memory("7")], None, 78),
    # the placed pod: 2000m, 8Gi. cpu (4000-3000)*100/4000 = 25, memory (32768-16384)*100/32768 = 50; 37
    "what is there counts": (
        POD.cpu("1").memory("8Gi"),
        [N1, bound().cpu("2").memory("8Gi")],
        None,
        37,
    ),
    # the placed pod counts as 100m and 200Mi: 97 and 99; 98
    "a placed pod without requests counts with the defaults": (ZERO, [N1, bound()], None, 98),
    # cpu 5000 > 4000 is 0; memory 100; 50
    "an over-committed resource scores 0": (ZERO, [N1, bound().cpu("5").memory("0")], None, 50),
    # cpu 4000 of 4000 is 0 as well, memory 100
    "an exhausted one too": (ZERO, [N1, bound().cpu("4").memory("0")], None, 50),
    # cpu is left out: memory alone, (32768-16384)*100/32768 = 50
    "a resource the node does not offer is left out": (POD.memory("16Gi"), [N1.without("cpu")], None, 50),
    "a node that offers neither scores 0": (POD, [N1.without("cpu").without("memory")], None, 0),
    # cpu 50, memory 75; (3*50 + 1*75)/4 = 225/4 = 56
    "weights of resources": (POD.cpu("2").memory("8Gi"), [N1], weighing(cpu=3, memory=1), 56),
    # (1*50 + 3*75)/4 = 275/4 = 68
    "weights the other way round": (POD.cpu("2").memory("8Gi"), [N1], weighing(cpu=1, memory=3), 68),
    # cpu alone: 50
    "one resource only": (POD.cpu("2").memory("8Gi"), [N1], weighing(cpu=7), 50),
    # fpga (4-1)*100/4 = 75; (1*50 + 5*75)/6 = 425/6 = 70
    "an extended resource the pod requests": (
        POD.cpu("2").request(FPGA, "1"),
        [N1.resource(FPGA, "4")],
        weighing(cpu=1, fpga=5),
        70,
    ),
    # left out together with its weight: cpu 50
    "an extended resource the pod does not request": (
        POD.cpu("2"),
        [N1.resource(FPGA, "4"), bound().cpu("0").request(FPGA, "3")],
        weighing(cpu=1, fpga=5),
        50,
    ),
    # fpga: 2 are held, (4-3)*100/4 = 25
    "an extended resource that is partly taken": (
        POD.request(FPGA, "1"),
        [N1.resource(FPGA, "4"), bound().request(FPGA, "2")],
        weighing(fpga=1),
        25,
    ),
    # no request, but native: (100-40)*100/100 = 60, no default is assumed for the pod
    "ephemeral storage counts without a request": (
        POD,
        [N1.resource("ephemeral-storage", "100"), bound().request("ephemeral-storage", "40")],
        weighing(ephemeral_storage=1),
        60,
    ),
    # The scorer does not see pod-level requests of the pod to be placed: the container's default of 100m is 97;
    # memory 99; 98
    "pod-level requests of the newcomer are passed over": (POD.pod_requests({"cpu": "2"}), [N1], None, 98),
    # but those of placed pods count: cpu (4000-2000)*100/4000 = 50. Its memory is requested nowhere: 200Mi -> 99; 74
    "pod-level requests of placed pods are not": (
        ZERO,
        [N1, bound().pod_requests({"cpu": "2"})],
        None,
        74,
    ),
    # cpu max(100m, 2000m): 50; memory is named nowhere, max(200Mi, 200Mi): 99; 149/2 = 74
    "the peak of an init container counts": (
        POD.init_container("i", {"cpu": "2"}),
        [N1],
        None,
        74,
    ),
    # 100m + 300m overhead: 90; 200Mi -> 99; 189/2 = 94
    "overhead counts on top of the default": (POD.overhead({"cpu": "300m"}), [N1], None, 94),
}

HUNDRED = N1.cpu("100m").memory("100")


def balancing(*names: str) -> Config:
    """Resources whose balance is scored."""
    return tables.plugin_config(BALANCED, resources=[{"name": name, "weight": 1} for name in names])


THREE = balancing("cpu", "memory", FPGA)
# B(f1, f2) = trunc((1 - |f1 - f2| / 2) * 100); the score is 50 + (50 + B with - B without) / 2.
BALANCE: dict[str, tuple[PodBuilder, list[Thing], Config | None, int | None]] = {
    # f 0.025 and 0.0153: B = 99 with, 100 without; 50 + 49/2 = 74
    "a small pod on an empty node": (POD.cpu("100m").memory("500Mi"), [N1], None, 74),
    # 0.5 and 0.5: 100, 100; 50 + 50/2
    "a pod shaped like the node": (POD.cpu("2").memory("16Gi"), [N1], None, 75),
    # f 1 and 0: B 50, 100; 50 + 0/2
    "all CPU and no memory": (POD.cpu("4"), [N1], None, 50),
    "all memory and no CPU": (POD.memory("32Gi"), [N1], None, 50),
    # before 0.5/0: B 75; after 0.5/0.5: 100; 50 + 75/2 = 87
    "a pod that evens the node out": (POD.memory("16Gi"), [N1, bound().cpu("2")], None, 87),
    # before 1/0: 50; after 1/1: 100; 50 + 100/2
    "the greatest improvement": (POD.memory("32Gi"), [N1, bound().cpu("4")], None, 100),
    # 5000/4000 counts as 1, so this is the row above
    "an over-committed resource is full and no more": (POD.memory("32Gi"), [N1, bound().cpu("5")], None, 100),
    # before 1/0.25: 62.5 -> 62; after 1/1: 100; 50 + 88/2 = 94
    "halves of a point are cut": (
        POD.memory("24Gi"),
        [N1, bound().cpu("4").memory("8Gi")],
        None,
        94,
    ),
    # (1 - 0.5/100/2)*100 = 99.75 -> 99; 50 + 49/2 = 74
    "any unevenness costs a point": (POD.memory("1"), [N1.cpu("100m").memory("200")], None, 74),
    # f 0 and 0.68: by fractions 66, but doubles give 65.99999999999999 -> 65; 50 + 15/2 = 57 (58 by fractions)
    "doubles, not fractions: 0.68": (POD.memory("68"), [HUNDRED], None, 57),
    # f 0.1 and 0.8: by fractions 65, doubles 64.99... -> 64; 50 + 14/2 = 57
    "doubles, not fractions: 0.1 and 0.8": (POD.cpu("10m").memory("80"), [HUNDRED], None, 57),
    # 0.3: (1 - 0.15)*100 = 85; 50 + 35/2 = 67
    "an odd difference": (POD.memory("30"), [HUNDRED], None, 67),
    "a pod without requests is not scored": (POD, [N1], None, None),
    "nor is one that requests zero": (ZERO, [N1], None, None),
    "nor one that requests other resources only": (POD.request(FPGA, "1"), [N1.resource(FPGA, "1")], None, None),
    # no default is assumed: the placed pod counts 0
    "placed pods without requests count nothing": (POD.cpu("4"), [N1, bound()], None, 50),
    # one share only: no unevenness
    "a node that offers one of the two": (POD.cpu("1"), [N1.without("memory")], None, 75),
    "one resource in the profile": (POD.cpu("1"), [N1], balancing("cpu"), 75),
    # Pod-level requests are seen here: f 0.5 and 0.5
    "pod-level requests count": (POD.pod_requests({"cpu": "2", "memory": "16Gi"}), [N1], None, 75),
    # shares 0.5, 0, 0.25: mean 0.25, squares 0.0625 + 0.0625 + 0, std sqrt(0.125/3) = 0.2041; B 79;
    # 50 + (50 + 79 - 100)/2 = 50 + 14
    "three resources: the deviation of all": (
        POD.cpu("2").request(FPGA, "1"),
        [N1.resource(FPGA, "4")],
        THREE,
        64,
    ),
    # the third is not requested and left out: 0.5 and 0: B 75; 50 + 25/2 = 62
    "three resources, the third not requested": (POD.cpu("2"), [N1.resource(FPGA, "4")], THREE, 62),
    # neither requested nor offered: as above
    "three resources, the third not offered": (POD.cpu("2"), [N1], THREE, 62),
    # before (0.5, 0, 0): mean 1/6, std sqrt((1/9 + 1/36 + 1/36)/3) = 0.2357; B 76
    # after (0.5, 0.5, 0.5): 100; 50 + (50 + 24)/2
    "three resources evened out": (
        POD.memory("16Gi").request(FPGA, "2"),
        [N1.resource(FPGA, "4"), bound().cpu("2")],
        THREE,
        87,
    ),
}

MIB = 1 << 20
APP = POD.image("app:1")
N2 = make_node("n2")


def holding(node: NodeBuilder, mebibytes: int, *names: str) -> NodeBuilder:
    """The node with an image."""
    return node.image(mebibytes * MIB, *(names or ("app:1",)))


VOLUME = POD.set("spec.volumes", [{"name": "v", "image": {"reference": "app:1"}}]).image("other:1")
ELEVEN: list[Thing] = [
    make_node(f"n{number}").image(238683863, "app:1" if number <= 3 else "other:1") for number in range(1, 12)
]
# One container: the score is 100 * (S - 23 MiB) / (977 MiB), S between 23 and 1000 MiB.
IMAGE: dict[str, tuple[PodBuilder, list[Thing], int]] = {
    "an image nobody has": (APP, [N1], 0),
    # 100 * 477/977 = 48
    "half of the greatest size": (APP, [holding(N1, 500)], 48),
    "small images are not worth a point": (APP, [holding(N1, 23)], 0),
    # 100 * 9/977 = 0
    "just above the least size": (APP, [holding(N1, 32)], 0),
    # 100 * 10/977 = 1
    "the first point": (APP, [holding(N1, 33)], 1),
    "the greatest size": (APP, [holding(N1, 1000)], 100),
    "beyond the greatest size": (APP, [holding(N1, 5000)], 100),
    # 100 * 976/977 = 99
    "just below the greatest size": (APP, [holding(N1, 999)], 99),
    # 500 * 1/2 = 250: 100 * 227/977 = 23
    "one node of two has it": (APP, [holding(N1, 500), N2], 23),
    # 500 * 2/2
    "both nodes have it": (APP, [holding(N1, 500), holding(N2, 500)], 48),
    # trunc(524288000 * (1/3)) = 174762666; (174762666 - 24117248) * 100 / 1024458752 = 14
    "one node of three has it": (APP, [holding(N1, 500), N2, make_node("n3")], 14),
    # the node that came first has 500: 48 on both, whatever the other says
    "nodes disagree about the size": (APP, [holding(N1, 500), holding(N2, 900)], 48),
    # the first of the two entries: 48
    "a node lists one name twice": (APP, [holding(holding(N1, 500), 900)], 48),
    # no tag is :latest
    "a name without a tag": (POD.image("app"), [holding(N1, 500, "app:latest")], 48),
    "a port in the registry is no tag": (
        POD.image("registry.local:5000/app"),
        [holding(N1, 500, "registry.local:5000/app:latest")],
        48,
    ),
    "a digest is left as it is": (POD.image("app@sha256:12"), [holding(N1, 500, "app@sha256:12")], 48),
    "one of several names": (APP, [holding(N1, 500, "registry.local/app:1", "app:1")], 48),
    "another tag is another image": (POD.image("app:2"), [holding(N1, 500)], 0),
    # S = 500 + 500, ceiling 2000: 100 * 977/1977 = 49
    "two containers of one image count it twice": (APP.container("b"), [holding(N1, 500)], 49),
    # S = 500, ceiling 2000: 100 * 477/1977 = 24
    "a second container with another image": (APP.container("b", image="other:1"), [holding(N1, 500)], 24),
    "an init container counts as one": (APP.init_container("b", image="other:1"), [holding(N1, 500)], 24),
    # S = 500 + 500, ceiling 2000: 49
    "an init container of the same image": (APP.init_container("b", image="app:1"), [holding(N1, 500)], 49),
    # the volume adds to the sum but not to the ceiling: 48
    "an image volume": (VOLUME, [holding(N1, 500)], 48),
    # 500 + 300 = 800: 100 * 777/977 = 79
    "an image volume beside the image": (
        VOLUME.image("tool:1"),
        [holding(holding(N1, 500), 300, "tool:1")],
        79,
    ),
    "an image of no size": (APP, [holding(N1, 0)], 0),
    # 103085507/3 = 34361835.67, cut: one byte less than the 10244588 above 23 MiB that make a point
    "a byte short of the first point": (APP, [N1.image(103085507, "app:1"), N2, make_node("n3")], 0),
    "the first point to the byte": (APP, [N1.image(103085508, "app:1"), N2, make_node("n3")], 1),
    # 238683863 * 3/11 is 65095599, worth 4 points; as doubles, size * (3/11), it is 65095598.99 and worth 3
    "doubles, not fractions: three nodes of eleven": (APP, ELEVEN, 3),
}


@pytest.mark.parametrize("name", LEAST)
def test_table_of_least_allocated(name: str) -> None:
    """NodeResourcesFit as a score, weight 1."""
    pod, cluster, config, expected = LEAST[name]
    assert expected == tables.ask(pod, cluster, config)["n1"].scores[FIT]


@pytest.mark.parametrize("name", BALANCE)
def test_table_of_balanced_allocation(name: str) -> None:
    """NodeResourcesBalancedAllocation, weight 1; None where it is skipped."""
    pod, cluster, config, expected = BALANCE[name]
    assert expected == tables.ask(pod, cluster, config)["n1"].scores.get(BALANCED)


@pytest.mark.parametrize("name", IMAGE)
def test_table_of_image_locality(name: str) -> None:
    """ImageLocality, weight 1."""
    pod, cluster, expected = IMAGE[name]
    assert expected == tables.ask(pod, cluster)["n1"].scores[IMAGES]


def soft(name: str, count: int) -> NodeBuilder:
    """A node with so many taints that pods would rather avoid."""
    node = make_node(name)
    for number in range(count):
        node = node.taint(f"k{number}", "", "PreferNoSchedule")
    return node


# Untolerated taints t, greatest of the nodes that passed T: (100 - 100*t/T) * 3.
AVOIDING: dict[str, tuple[PodBuilder, list[Thing], list[int]]] = {
    "no taints at all": (POD, [soft("a", 0), soft("b", 0)], [300, 300]),
    # 100 - 0, 100 - 33, 100 - 100
    "none, one and three": (POD, [soft("a", 0), soft("b", 1), soft("c", 3)], [300, 201, 0]),
    # 100 - 100*2/7 = 100 - 28
    "two of seven": (POD, [soft("a", 2), soft("b", 7)], [216, 0]),
    "one everywhere": (POD, [soft("a", 1), soft("b", 1)], [0, 0]),
    "everything is tolerated": (POD.tolerate(), [soft("a", 0), soft("b", 2)], [300, 300]),
    # b: 1 of 1 left
    "one of two is tolerated": (
        POD.tolerate("k0", effect="PreferNoSchedule"),
        [soft("a", 0), soft("b", 2)],
        [300, 0],
    ),
    "a toleration for any effect counts": (POD.tolerate("k0"), [soft("a", 1), soft("b", 2)], [300, 0]),
    "a toleration for NoSchedule does not": (
        POD.tolerate("k0", effect="NoSchedule"),
        [soft("a", 0), soft("b", 1)],
        [300, 0],
    ),
    # c is refused, so its three taints do not set the scale: 100 - 100*1/1
    "a refused node sets no scale": (POD, [soft("a", 0), soft("b", 1), soft("c", 3).taint("hard")], [300, 0]),
}


@pytest.mark.parametrize("name", AVOIDING)
def test_table_of_taints_to_avoid(name: str) -> None:
    """TaintToleration as a score, weight 3, for the nodes that passed in order of their names."""
    pod, cluster, expected = AVOIDING[name]
    answer = tables.ask(pod, cluster)
    assert expected == [seen.scores[TAINTS] for seen in answer.values() if seen.status == "Success"]


LABELLED: list[Thing] = [
    make_node("a").label("disk", "ssd").label("zone", "z1"),
    make_node("b").label("disk", "ssd"),
    make_node("c"),
]
DISK, ZONE = need("disk", "In", "ssd"), need("zone", "In", "z1")
SKIPPED: list[int | None] = [None, None, None]
# Sum of matching weights w, greatest of the nodes that passed W: 100*w/W * 2.
PREFERRING: dict[str, tuple[PodBuilder, list[int | None]]] = {
    "no preference": (POD, SKIPPED),
    "one preference": (POD.prefer_nodes(7, DISK), [200, 200, 0]),
    # a 10, b 3: 100*3/10 = 30
    "preferences add up": (POD.prefer_nodes(3, DISK).prefer_nodes(7, ZONE), [200, 60, 0]),
    # a 7, b 3: 100*3/7 = 42
    "sevenths are cut": (POD.prefer_nodes(3, DISK).prefer_nodes(4, ZONE), [200, 84, 0]),
    # a 101, b 100: 100*100/101 = 99
    "almost the greatest": (POD.prefer_nodes(100, DISK).prefer_nodes(1, ZONE), [200, 198, 0]),
    "a preference nobody meets": (POD.prefer_nodes(5, need("rack")), [0, 0, 0]),
    "requirements of a preference are all needed": (POD.prefer_nodes(5, DISK, ZONE), [200, 0, 0]),
    "an empty preference scores nothing, which is a score": (POD.prefer_nodes(5), [0, 0, 0]),
    "an empty preference beside another": (POD.prefer_nodes(5).prefer_nodes(5, ZONE), [200, 0, 0]),
    "a preference of no weight": (POD.prefer_nodes(0, DISK), [0, 0, 0]),
    "a preference for what is not there": (POD.prefer_nodes(5, need("disk", "DoesNotExist")), [0, 0, 200]),
}


@pytest.mark.parametrize("name", PREFERRING)
def test_table_of_preferred_nodes(name: str) -> None:
    """NodeAffinity as a score, weight 2, for nodes a, b and c."""
    pod, expected = PREFERRING[name]
    assert expected == [seen.scores.get(AFFINITY) for seen in tables.ask(pod, LABELLED).values()]


def test_preferences_of_the_profile_add_to_those_of_the_pod() -> None:
    """The pod's 3 for a and b, the profile's 1 for a: 100*3/4 = 75."""
    added = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]
    }
    config = tables.plugin_config(AFFINITY, addedAffinity=added)
    answer = tables.ask(POD.prefer_nodes(3, DISK), LABELLED, config)

    assert [200, 150, 0] == [seen.scores[AFFINITY] for seen in answer.values()]


def test_weights_of_plugins_scale_their_scores() -> None:
    """LeastAllocated of 97, seven times."""
    config = tables.plugins(score={"enabled": [{"name": FIT, "weight": 7}], "disabled": [{"name": TAINTS}]})
    seen = tables.ask(POD.cpu("100m").memory("500Mi"), [N1], config)["n1"]

    assert {FIT: 679, BALANCED: 74, IMAGES: 0} == seen.scores
