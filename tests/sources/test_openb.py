"""The openb trace becomes a cluster with shareable GPUs, and a bad cell is told with file, line and column."""

import pathlib

import pytest

from graphsched.base.values import errors, nodes, pods
from graphsched.sources import openb
from tests.builders import make_namespace

MIB = 1 << 20
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
SHORT = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    """A file that may be written."""
    return tmp_path / "a.csv"


def test_nodes_have_shareable_gpus(file: pathlib.Path) -> None:
    """CPU, memory, devices, and labels for hostname and model; a node without GPUs has no model."""
    file.write_text(NODES + "n1,64000,262144,2,P100\nn2,32000,1,0,\n\n")

    assert openb.read([str(file)]).nodes == (
        nodes.Node(
            "n1",
            labels=(("kubernetes.io/hostname", "n1"), ("openb/gpu-model", "P100")),
            allocatable=(("cpu", 64_000), ("memory", 262_144 * MIB), ("pods", 1000)),
            gpu_model="P100",
            gpus=2,
        ),
        nodes.Node(
            "n2",
            labels=(("kubernetes.io/hostname", "n2"),),
            allocatable=(("cpu", 32_000), ("memory", MIB), ("pods", 1000)),
        ),
    )


@pytest.mark.parametrize(
    ("row", "gpu"),
    [
        ("p,1,1,0,0,,LS,Running,5,6,7", None),
        ("p,1,1,1,460,,LS,Running,5,6,7", pods.GpuDemand(1, 460)),
        ("p,1,1,1,1000,T4,LS,Running,5,6,7", pods.GpuDemand(1, 1000, ("T4",))),
        ("p,1,1,8,1000,V100M32|V100M16|V100M16,LS,Failed,5,6,7", pods.GpuDemand(8, 1000, ("V100M16", "V100M32"))),
    ],
)
def test_pods_ask_for_shareable_gpus(file: pathlib.Path, row: str, gpu: pods.GpuDemand | None) -> None:
    """Whole devices or a part of one, of any model or of some; the phase of the original run does not matter."""
    file.write_text(PODS + row + "\n")

    pod = openb.read([str(file)]).pods[0]

    assert ("pod/openb/p", gpu, 5.0, "") == (pod.key, pod.spec.gpu, pod.created, pod.node)


def test_a_pod_scores_as_it_asks(file: pathlib.Path) -> None:
    """A trace says 0 where it means 0: no default is added."""
    file.write_text(SHORT + "p,2000,0,0,0\n")

    pod = openb.read([str(file)]).pods[0]

    assert pods.Demand((("cpu", 2000),), 2000, 0) == pod.spec.demand
    assert pod.held is pod.spec.demand


def test_files_without_the_trailing_columns_are_read(file: pathlib.Path) -> None:
    """The multi-GPU variants stop early; equal pods share a spec."""
    file.write_text(SHORT + "p1,1000,1,1,1000\np2,1000,1,1,1000\np3,1000,1,0,0\n")

    found = openb.read([str(file)]).pods

    assert ["p1", "p2", "p3"] == [pod.name for pod in found]
    assert found[0].spec is found[1].spec
    assert found[0].spec is not found[2].spec


def test_nodes_and_pods_of_several_files_are_one_cluster(tmp_path: pathlib.Path) -> None:
    """Told apart by their headers, in the order given."""
    for name, text in {"n": NODES + "n1,1,1,0,\n", "p": SHORT + "p1,1,1,0,0\n", "q": SHORT + "p2,1,1,0,0\n"}.items():
        (tmp_path / name).write_text(text)

    found = openb.read([str(tmp_path / name) for name in "qnp"])

    assert (["n1"], ["p2", "p1"]) == ([node.name for node in found.nodes], [pod.name for pod in found.pods])
    assert (make_namespace("openb"),) == found.namespaces


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NODES, True),
        (PODS, True),
        (SHORT, True),
        ("\ufeff" + NODES, True),
        (NODES.replace("\n", "\r\n"), True),
        (NODES.replace(",", ", "), True),
        ("kind: Node\n", False),
        ("name,cpu_milli\n", False),
        ("", False),
        ("\x00\xff", False),
    ],
)
def test_a_trace_is_known_by_its_header(file: pathlib.Path, text: str, expected: bool) -> None:
    """Whatever the file is called."""
    file.write_bytes(text.encode())

    assert openb.is_openb(str(file)) is expected


def test_a_folder_is_no_trace(tmp_path: pathlib.Path) -> None:
    """It may hold manifests."""
    assert not openb.is_openb(str(tmp_path))


BAD = [
    ("", "{}: is empty (its first line names the columns)"),
    ("\n", "{}: is empty"),
    (NODES, "{}: has a header and no rows (give the whole file)"),
    (
        "a,b\n1,2\n",
        "{}:1: is no header of a node or pod file (a node file has sn,cpu_milli,memory_mib,gpu,model; a pod",
    ),
    ("sn,cpu_milli,memory_mib,gpu\nn,1,1,0\n", "{}:1: lacks the column model (a node file has"),
    ("name,cpu_milli,memory_mib,num_gpu\np,1,1,0\n", "{}:1: lacks the column gpu_milli (a node file has"),
    ("sn,sn,cpu_milli,memory_mib,gpu,model\n", "{}:1: names a column twice (remove one)"),
    (NODES + "n1,1,1,0\n", "{}:2: has 4 columns, not 5 (keep as many as the header has)"),
    (NODES + "n1,1,1,0,,\n", "{}:2: has 6 columns, not 5"),
    (NODES + "n1,x,1,0,\n", '{}:2:4: cpu_milli: "x" is not a whole number from 0 to 1099511627776 (correct the cell)'),
    (NODES + "n1,-1,1,0,\n", '{}:2:4: cpu_milli: "-1" is not a whole number'),
    (NODES + "n1,1.5,1,0,\n", '{}:2:4: cpu_milli: "1.5" is not a whole number'),
    (NODES + "n1,,1,0,\n", '{}:2:4: cpu_milli: "" is not a whole number'),
    (NODES + "n1,1099511627777,1,0,\n", '{}:2:4: cpu_milli: "1099511627777" is not a whole number'),
    (NODES + "n1," + "9" * 5000 + ",1,0,\n", '{}:2:4: cpu_milli: "9999'),
    (NODES + "n1,1,1,65,T4\n", '{}:2:8: gpu: "65" is not a whole number from 0 to 64'),
    (NODES + "n1,1,1,2,\n", "{}:2:10: model: is missing though the node has GPUs (name the GPU model)"),
    (NODES + "n1,1,1,0,\n\nn1,1,1,0,\n", '{0}:4:1: sn: "n1" is there twice, first at {0}:2 (remove or rename one)'),
    (NODES + ",1,1,0,\n", '{}:2:1: sn: "" is not a name (name the row, without a slash)'),
    (NODES + "a/b,1,1,0,\n", '{}:2:1: sn: "a/b" is not a name'),
    (SHORT + "p,1,1,0,500\n", "{}:2:9: gpu_milli: is 500 though num_gpu is 0 (set one of them right)"),
    (SHORT + "p,1,1,1,0\n", "{}:2:9: gpu_milli: is 0 though num_gpu is 1 (set one of them right)"),
    (SHORT + "p,1,1,2,500\n", "{}:2:9: gpu_milli: is 500 of each of 2 GPUs (a part is of one GPU only)"),
    (SHORT + "p,1,1,1,1001\n", '{}:2:9: gpu_milli: "1001" is not a whole number from 0 to 1000'),
    (PODS + "p,1,1,0,0,,LS,Running,soon,6,7\n", '{}:2:23: creation_time: "soon" is not a whole number'),
    (NODES + "n1,\x00,1,0,\n", "{}: is binary, not text"),
    (NODES + "n1,1\n2,1,0,\n", "{}:2: has 2 columns, not 5"),
]


@pytest.mark.parametrize(("text", "line"), BAD)
def test_a_bad_cell_is_one_line(file: pathlib.Path, text: str, line: str) -> None:
    """File, line and column, what is wrong, how to mend it."""
    file.write_text(text)

    with pytest.raises(errors.InputError) as caught:
        openb.read([str(file)])

    assert str(caught.value).startswith(line.format(file))
    assert str(caught.value).endswith(")")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    """Whether it is read or only looked at."""
    path = str(tmp_path / "x.csv")

    for attempt in (lambda: openb.is_openb(path), lambda: openb.read([path])):
        with pytest.raises(errors.InputError, match=r"x\.csv: no such file or directory \(check the path\)"):
            attempt()
