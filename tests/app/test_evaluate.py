"""
`graphsched evaluate`: the machine interface, field by field as its contract says.

Requests go in as bytes and answers are compared whole: what is absent matters as much as what is there.
"""

import io
import json
import subprocess
import sys
import typing

import msgspec
import pytest

from graphsched.app import evaluate
from tests.builders import Manifest, NodeBuilder, PodBuilder, make_node, make_pod, need

Answer = dict[str, typing.Any]


def ask(*objects: NodeBuilder | PodBuilder, **fields: object) -> Answer:
    """The answer to a request with these objects and fields."""
    request = {"id": 7, "objects": [build.manifest() for build in objects], **fields}
    return typing.cast("Answer", json.loads(msgspec.json.encode(evaluate.answer(json.dumps(request).encode()))))


def result(*objects: NodeBuilder | PodBuilder, pod: PodBuilder, **fields: object) -> Answer:
    """The only result of a request that has nothing to warn of."""
    answer = ask(*objects, pod=pod.manifest(), **fields)
    assert {"id", "results", "warnings"} == set(answer)
    assert [] == answer["warnings"]
    return typing.cast("Answer", answer["results"][0])


def test_the_whole_answer() -> None:
    """Every field, with the values of the reference: (50 + 99) / 2, and 50 + (50 + 75 - 100) / 2."""
    n1, n2 = make_node("n1"), make_node("n2").cordoned()

    assert {
        "pod": "default/web",
        "outcome": "scheduled",
        "nodes": {
            "n1": {
                "status": "Success",
                "scores": {
                    "DynamicResources": 0,
                    "ImageLocality": 0,
                    "NodeResourcesBalancedAllocation": 62,
                    "NodeResourcesFit": 74,
                    "TaintToleration": 300,
                },
                "total": 436,
            },
            "n2": {
                "status": "UnschedulableAndUnresolvable",
                "plugin": "NodeUnschedulable",
                "reasons": ["node(s) were unschedulable"],
            },
        },
        "feasible": ["n1"],
        "best": ["n1"],
        "selected": "n1",
    } == result(n2, n1, pod=make_pod("web").cpu("2"))


def test_a_pod_that_fits_nowhere() -> None:
    """All reasons of the first refusing plugin, and the message without preemption."""
    found = result(make_node("n1").cpu("1").memory("1Gi"), pod=make_pod("web").cpu("2").memory("2Gi"))

    assert {
        "pod": "default/web",
        "outcome": "unschedulable",
        "nodes": {
            "n1": {
                "status": "UnschedulableAndUnresolvable",
                "plugin": "NodeResourcesFit",
                "reasons": ["Insufficient cpu", "Insufficient memory"],
            },
        },
        "feasible": [],
        "best": [],
        "message": "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
    } == found


def test_a_prefilter_refusal_is_every_nodes() -> None:
    """And stands beside them as well."""
    pinned = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    other = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    found = result(make_node("n1"), make_node("n2"), pod=make_pod("web").require_nodes(fields=(pinned, other)))
    refusal = {
        "status": "UnschedulableAndUnresolvable",
        "plugin": "NodeAffinity",
        "reasons": ["pod affinity terms conflict"],
    }

    assert (refusal, {"n1": refusal, "n2": refusal}) == (found["preFilter"], found["nodes"])
    assert "0/2 nodes are available: pod affinity terms conflict." == found["message"]


def test_a_node_cut_by_the_prefilters_node_list_has_no_plugin() -> None:
    """As the framework reports it."""
    pinned = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    found = result(make_node("n1"), make_node("n2"), pod=make_pod("web").require_nodes(fields=(pinned,)))

    assert {
        "status": "UnschedulableAndUnresolvable",
        "reasons": ["node(s) didn't satisfy plugin(s) [NodeAffinity]"],
    } == found["nodes"]["n2"]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (
            make_pod("web").gate("a").gate("b"),
            {
                "pod": "default/web",
                "outcome": "gated",
                "gated": {
                    "status": "UnschedulableAndUnresolvable",
                    "plugin": "SchedulingGates",
                    "reasons": ["waiting for scheduling gates: [a b]"],
                },
            },
        ),
        (make_pod("web").deleting(), {"pod": "default/web", "outcome": "deleting"}),
    ],
    ids=["gated", "deleting"],
)
def test_a_pod_that_is_not_tried_has_no_nodes(pod: PodBuilder, expected: Answer) -> None:
    """Nothing refused it."""
    assert expected == result(make_node("n1"), pod=pod)


def test_each_pod_sees_where_the_earlier_ones_went() -> None:
    """Assumed at once; trying one again by name tells that it was placed."""
    web = make_pod("web").cpu("3")
    answer = ask(
        make_node("n1"),
        make_node("n2"),
        pod=web.manifest(),
        pods=["default/web", make_pod("b").cpu("3").manifest(), make_pod("c").cpu("3").manifest(), "default/c"],
    )

    assert [
        ("default/web", "scheduled", "n1"),
        ("default/web", "placed", None),
        ("default/b", "scheduled", "n2"),
        ("default/c", "unschedulable", None),
        ("default/c", "unschedulable", None),
    ] == [(each["pod"], each["outcome"], each.get("selected")) for each in answer["results"]]


def test_a_pod_of_the_objects_is_tried_by_name() -> None:
    """Pending there, it counts for nothing until it is tried; bound, it is placed already."""
    answer = ask(
        make_node("n1"),
        make_pod("waits").cpu("3"),
        make_pod("runs").cpu("500m").node("n1"),
        pods=["default/runs", "default/waits"],
    )

    assert ["placed", "scheduled"] == [each["outcome"] for each in answer["results"]]


def test_the_nominated_node_wins_if_it_fits() -> None:
    """Whatever the scores; and it is said."""
    world: list[NodeBuilder | PodBuilder] = [make_node("n1"), make_node("n2"), make_pod("load").cpu("2").node("n2")]
    found = result(*world, pod=make_pod("web").cpu("1").nominated("n2"))
    refused = result(*world, pod=make_pod("web").cpu("3").nominated("n2"))

    assert ("n2", True, ["n1"]) == (found["selected"], found["byNomination"], found["best"])
    assert ("n1", False) == (refused["selected"], "byNomination" in refused)


def test_what_refuses_the_nominated_node_is_named_for_nodes_cut_away() -> None:
    """As kube-scheduler does: it looks there first, and keeps the plugins in one set."""
    pod = make_pod("web").nominated("n1").require_nodes(fields=(need("metadata.name", "In", "gone"),))
    found = result(make_node("n1").cordoned(), make_node("n2"), pod=pod)

    assert ["node(s) were unschedulable"] == found["nodes"]["n1"]["reasons"]
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity NodeUnschedulable]"
    assert [reason] == found["nodes"]["n2"]["reasons"]
    assert f"0/2 nodes are available: 1 {reason}, 1 node(s) were unschedulable." == found["message"]


@pytest.mark.parametrize(("scheduler", "outcome"), [("default-scheduler", "unschedulable"), ("other", "scheduled")])
def test_room_nominated_to_an_equal_pod_is_taken(scheduler: str, outcome: str) -> None:
    """Unless that pod is another scheduler's, in whose queue it is none of our business."""
    waiting = make_pod("waits").cpu("3").nominated("n1").scheduler(scheduler)

    assert outcome == result(make_node("n1"), waiting, pod=make_pod("web").cpu("2"))["outcome"]


def test_a_gated_pod_holds_no_room_by_its_nomination() -> None:
    """It has not reached the queue that nominations are taken from."""
    waiting = make_pod("waits").cpu("3").nominated("n1").gate("example.com/later")

    assert "scheduled" == result(make_node("n1"), waiting, pod=make_pod("web").cpu("2"))["outcome"]


def test_objects_are_defaulted_unless_they_are_normalized() -> None:
    """A request follows from the limit, as the API server would have made it."""
    pod = make_pod("web").limit("cpu", "5")

    assert "unschedulable" == result(make_node("n1"), pod=pod)["outcome"]
    assert "scheduled" == result(make_node("n1"), pod=pod, normalized=True)["outcome"]


def test_node_name_is_a_wish() -> None:
    """A pod that is to be scheduled and names a node may go only there."""
    found = result(make_node("n1"), make_node("n2"), pod=make_pod("web").node("n2"))

    assert "n2" == found["selected"]
    assert "NodeName" == found["nodes"]["n1"]["plugin"]


def test_ended_pods_are_dropped() -> None:
    """They hold nothing."""
    ended = make_pod("done").cpu("4").node("n1").phase("Succeeded")

    assert "scheduled" == result(make_node("n1"), ended, pod=make_pod("web").cpu("4"))["outcome"]


def test_a_pod_on_an_unknown_node_is_kept() -> None:
    """References may dangle."""
    assert "scheduled" == result(make_node("n1"), make_pod("a").node("gone"), pod=make_pod("web"))["outcome"]


def test_what_is_not_supported_is_refused_and_named() -> None:
    """Never ignored."""
    found = result(make_node("n1"), pod=make_pod("web").claim("data"))

    assert ("unschedulable", "GraphUnsupported") == (found["outcome"], found["preFilter"]["plugin"])
    assert "persistentVolumeClaim data" in found["preFilter"]["reasons"][0]


def test_what_makes_the_answer_incomplete_is_warned_of() -> None:
    """Preemption, gates the other way than usual, unknown fields."""
    answer = ask(
        make_node("n1"),
        pod=make_pod("web").manifest(),
        preempt=True,
        featureGates={"GangScheduling": True, "PodLevelResources": True, "NoSuchGate": False},
        colour="blue",
    )

    assert [
        "colour: unknown field, ignored",
        "preempt: preemption is not supported yet, PostFilter was not run",
        "featureGates: GangScheduling=true is not supported, ignored",
    ] == answer["warnings"]


@pytest.mark.parametrize(
    ("line", "identity", "error"),
    [
        (b"", None, "not a JSON object: Input data was truncated"),
        (b"[1]", None, "not a JSON object"),
        (b'{"id": "x"', None, "not a JSON object"),
        (b'{"id": {"deep": [12345678901234567890123]}}', {"deep": [12345678901234567890123]}, "pod: is missing"),
        (b'{"id": 1, "pod": 3}', 1, "pod: Expected `object`, got `int`"),
        (b'{"id": "\xff", "pod": {}}', None, "not a JSON object: byte 0xff is not UTF-8"),
        (b'{"id": 1, "pod": {"kind": "Node", "metadata": {"name": "a"}}}', 1, "pod: kind: is not Pod"),
        (b'{"id": 1, "pods": [3]}', 1, "pods[0]: is neither a pod nor the name of one"),
        (b'{"id": 1, "pods": ["a/b"]}', 1, 'pods[0]: there is no pod "a/b"'),
        (b'{"id": 1, "pod": {}, "objects": [{"kind": "Nod", "apiVersion": "v1"}]}', 1, "objects[0]: unknown kind"),
        (b'{"id": 1, "pod": {"metadata": {}}}', 1, "pod: Pod: metadata.name: is missing"),
        (b'{"id": 1, "pod": {"metadata": {"name": "a"}}, "config": {"extenders": [{}]}}', 1, "extenders: are not"),
        (b'{"id": 1, "pod": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", None, "nested too deeply"),
    ],
)
def test_a_failure_is_an_answer(line: bytes, identity: object, error: str) -> None:
    """With the request's id where it could be read, and in one line what is wrong."""
    answer = json.loads(msgspec.json.encode(evaluate.answer(line)))

    assert (identity, [], []) == (answer["id"], answer["results"], answer["warnings"])
    assert error in answer["error"]


def test_more_than_can_be_counted_is_a_mistake_and_no_bug() -> None:
    """Each container's request fits 64 bits, and their sum does not."""
    pod = make_pod("web").manifest()
    pod["spec"]["containers"] = [
        {"name": f"c{number}", "resources": {"requests": {"memory": "7Ei"}}} for number in range(5)
    ]

    assert (
        'pod: Pod "default/web": amount 40352252661239644160 of memory is out of range (correct it)'
        == ask(make_node("n1"), pod=pod)["error"]
    )


def config(**profile: object) -> Manifest:
    """A KubeSchedulerConfiguration with one profile."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 4,
        "profiles": [{"schedulerName": "default-scheduler", **profile}],
    }


def test_weights_and_disabled_plugins_of_a_profile_count() -> None:
    """A score's weight multiplies, a disabled plugin is absent, a disabled filter lets pass."""
    plugins = {
        "score": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}], "disabled": [{"name": "ImageLocality"}]},
        "filter": {"disabled": [{"name": "NodeUnschedulable"}]},
    }
    found = result(
        make_node("n1").set("spec.unschedulable", True), pod=make_pod("web").cpu("2"), config=config(plugins=plugins)
    )

    assert {
        "DynamicResources": 0,
        "NodeResourcesBalancedAllocation": 62,
        "NodeResourcesFit": 370,
        "TaintToleration": 300,
    } == found["nodes"]["n1"]["scores"]


def test_everything_can_be_switched_off_and_some_on_again() -> None:
    """`*` is all of them."""
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}}
    found = result(make_node("n1").cordoned(), pod=make_pod("web").cpu("2"), config=config(plugins=plugins))

    assert {"NodeResourcesFit": 74} == found["nodes"]["n1"]["scores"]


def test_one_extension_point_counts_more_than_all_at_once_in_any_order() -> None:
    """Whether the configuration names multiPoint first or last."""
    score = {"enabled": [{"name": "NodeResourcesFit", "weight": 2}]}
    everything = {"disabled": [{"name": "*"}]}
    first, last = (
        result(make_node("n1"), pod=make_pod("web").cpu("2"), config=config(plugins=plugins))["nodes"]["n1"]["scores"]
        for plugins in ({"multiPoint": everything, "score": score}, {"score": score, "multiPoint": everything})
    )

    assert {"NodeResourcesFit": 148} == first == last


@pytest.mark.parametrize(
    ("point", "refusal"),
    [
        ("filter", (["node(s) didn't satisfy plugin(s) [NodeAffinity]"], None)),
        ("preFilter", (["node(s) didn't match Pod's node affinity/selector"], "NodeAffinity")),
        ("multiPoint", (None, None)),
    ],
)
def test_names_are_pinned_before_the_filter_and_apart_from_it(point: str, refusal: tuple[object, object]) -> None:
    """Each of the two parts of NodeAffinity can be switched off alone; both together let every node pass."""
    pod = make_pod("web").require_nodes(fields=(need("metadata.name", "In", "gone"),))
    found = result(make_node("n1"), pod=pod, config=config(plugins={point: {"disabled": [{"name": "NodeAffinity"}]}}))

    assert refusal == (found["nodes"]["n1"].get("reasons"), found["nodes"]["n1"].get("plugin"))


def test_arguments_of_plugins_count() -> None:
    """Scored resources, ignored resources, added affinity."""
    arguments = [
        {
            "name": "NodeResourcesFit",
            "args": {
                "ignoredResources": ["example.com/toy"],
                "scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]},
            },
        },
        {
            "name": "NodeAffinity",
            "args": {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "ours", "operator": "Exists"}]}],
                    },
                },
            },
        },
    ]
    found = result(
        make_node("n1").label("ours", "yes"),
        make_node("n2"),
        pod=make_pod("web").cpu("2").request("example.com/toy", "1"),
        config=config(pluginConfig=arguments),
    )

    assert 50 == found["nodes"]["n1"]["scores"]["NodeResourcesFit"]
    assert ["node(s) didn't match scheduler-enforced node affinity"] == found["nodes"]["n2"]["reasons"]


@pytest.mark.parametrize(
    ("configuration", "error"),
    [
        (
            config(pluginConfig=[{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]),
            "profiles[0].pluginConfig[0].args.scoringStrategy.type: MostAllocated is not supported",
        ),
        (
            config(plugins={"score": {"enabled": [{"name": "Mine"}]}}),
            'profiles[0].plugins.score.enabled: no plugin "Mine"',
        ),
        (config(plugins={"bind": {"disabled": [{"name": "*"}]}}), "profiles[0].plugins.bind: can not be changed here"),
        (config(plugins=[]), "profiles[0].plugins: is not a mapping"),
        (config(colour="blue"), "profiles[0].colour: is unknown or not supported"),
        (config(plugins={"score": {"enabled": [{"name": "NodeAffinity", "weight": -1}]}}), "-1 is not a weight"),
        ({"kind": "Other"}, "kind: is Other"),
        ({"kind": ["Other"]}, "kind: is ['Other']"),
        (
            config(pluginConfig=[{"name": "NodeResourcesFit", "args": {"ignoredResources": True}}]),
            "profiles[0].pluginConfig[0].args.ignoredResources: is not a list of texts",
        ),
    ],
)
def test_a_configuration_that_can_not_be_honoured_is_refused(configuration: Manifest, error: str) -> None:
    """Followed in part, it would answer another question."""
    assert error in ask(make_node("n1"), pod=make_pod("web").manifest(), config=configuration)["error"]


def test_a_caller_may_ask_one_by_one() -> None:
    """Each answer is there before the next request is sent, and the end of input is the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "graphsched", "evaluate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "pod": make_pod("web").manifest()}).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert (number, "no nodes available to schedule pods") == (answer["id"], answer["results"][0]["message"])
        process.stdin.close()

        assert 0 == process.wait(timeout=30)


def test_a_line_without_end_is_answered_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage costs a bounded amount of memory and one answer."""
    monkeypatch.setattr(evaluate, "LINE_BYTES_MAX", 1000)
    answers = io.BytesIO()
    evaluate.serve(io.BytesIO(b"x" * 5_000_000 + b'\n{"id": 2}\n'), answers)

    assert [None, 2] == [json.loads(line)["id"] for line in answers.getvalue().splitlines()]


def test_nothing_is_left_for_the_next_request() -> None:
    """Equal requests get equal answers."""
    request = {"objects": [make_node("n1").manifest()], "pod": make_pod("web").cpu("3").manifest()}
    line = json.dumps(request).encode()

    assert evaluate.answer(line) == evaluate.answer(line)
