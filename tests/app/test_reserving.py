"""Reservations by settings: checked when they are read, and on nodes as if their annotations said so."""

import json
import pathlib

import pytest

from graphsched.app import cli, findings, offline, reserving as reserving_settings, settings
from graphsched.base.values import errors, labels, nodes
from graphsched.sources import reserving, resources
from tests.app import live
from tests.app.manifests import write
from tests.builders import NodeBuilder, make_node, make_pod
from tests.fakes import apiserver, storage, virtual

GOLD = """
resources:
  reservations:
    - {holder: team-a, amounts: {cpu: "2"}, nodeSelector: {tier: gold}}
"""


def configured(tmp_path: pathlib.Path, text: str) -> str:
    """A file of settings."""
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def reserved(text: str) -> NodeBuilder:
    """A node with the annotation."""
    return make_node("n1").set("metadata.annotations", {"graphsched.io/reserved": text})


def kept(holder: str, cpu: int, **node_labels: str) -> reserving.Kept:
    """A reservation of CPU."""
    return reserving.Kept(labels.from_mapping(node_labels), holder, ((nodes.CPU, cpu),))


# ── what is read ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_amounts_are_read_in_the_units_of_nodes(tmp_path: pathlib.Path) -> None:
    """Quantities as in an annotation, a zero keeps nothing; without labels all nodes are meant."""
    text = "resources: {reservations: [{holder: a/web, amounts: {cpu: 1.5, memory: 4Gi, pods: 3, example.com/gpu: 0}}]}"
    loaded = settings.load(configured(tmp_path, text))

    amounts = (("cpu", 1500), ("memory", 4 << 30), ("pods", 3))
    assert (reserving.Kept((), "a/web", amounts),) == loaded.resources.kept
    assert settings.Settings().resources.kept == ()


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ("[{holder: A, amounts: {cpu: 1}}]", '[0].holder: "A" is no holder (a namespace, or namespace/workload)'),
        ("[{holder: a/b/c, amounts: {cpu: 1}}]", '[0].holder: "a/b/c" is no holder'),
        ("[{holder: a, amounts: {cpus: 1}}]", '[0].amounts: "cpus" is no resource (e.g. cpu, memory, pods)'),
        ("[{holder: a, amounts: {cpu: 12Gx}}]", '[0].amounts.cpu: "12Gx" is not a quantity'),
        ("[{holder: a, amounts: {cpu: -1}}]", '[0].amounts.cpu: "-1" is negative (use 0 or more)'),
        ("[{holder: a, amounts: {memory: 64Pi}}]", "[0].amounts.memory: 64Pi is more than any node has (keep less)"),
        ("[{holder: a, amounts: {memory: 99999999999999999999}}]", "[0].amounts.memory: "),
        ("[{holder: a, amounts: {cpu: true}}]", "[0].amounts.cpu: Expected int | float | str, got bool"),
        ("[{holder: a, amounts: {}}]", "[0].amounts: is empty (name a resource, e.g. cpu: 2)"),
        ("[{holder: a}]", "[0]: amounts is missing"),
        ("[{amounts: {cpu: 1}}]", "[0]: holder is missing"),
        ("[{holder: a, amount: {cpu: 1}}]", '[0]: unknown setting "amount" (did you mean "amounts"?)'),
        ("[{holder: a, amounts: {cpu: 1}, nodeSelector: {a b: c}}]", '[0].nodeSelector: "a b" is no label key'),
        ("[{holder: a, amounts: {cpu: 1}, nodeSelector: {a: b c}}]", '[0].nodeSelector: "b c" is no label value'),
        (
            "[{holder: a, amounts: {cpu: 1}}, {holder: a, amounts: {memory: 1}}]",
            '[1]: is for "a" and the nodes of [0], which counts alone (put both into one)',
        ),
        ("{holder: a}", ": is a mapping (it must be a list)"),
    ],
)
def test_what_can_not_be_kept_is_one_line(tmp_path: pathlib.Path, entries: str, told: str) -> None:
    """File, field, problem, remedy."""
    path = configured(tmp_path, f"resources: {{reservations: {entries}}}")

    with pytest.raises(errors.InputError) as caught:
        settings.load(path)
    assert str(caught.value).startswith(f"{path}: resources.reservations")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_more_reservations_than_are_compared_with_every_node_are_refused(tmp_path: pathlib.Path) -> None:
    """Each is looked at for each node that comes or changes."""
    entries = ", ".join(f"{{holder: a{number}, amounts: {{cpu: 1}}}}" for number in range(257))

    with pytest.raises(errors.InputError, match="are 257, at most 256 are read"):
        settings.load(configured(tmp_path, f"resources: {{reservations: [{entries}]}}"))


def test_an_unknown_field_of_an_entry_of_a_mapping_is_one_line(tmp_path: pathlib.Path) -> None:
    """As one of a list."""
    path = configured(tmp_path, "watermarks: {cpu: {highPercent: 90, lowPercent: 10, lowPercnt: 1}}")

    with pytest.raises(
        errors.InputError, match=r'watermarks\.cpu.*unknown setting "lowPercnt" \(did you mean "lowPercent"'
    ):
        settings.load(path)


# ── which nodes keep it ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_node_keeps_what_its_labels_are_selected_for() -> None:
    """All the labels have to be there; any other node is the very same as before."""
    rules = (kept("a", 1000, tier="gold"), kept("b", 500, tier="gold", zone="x"), kept("c", 250))
    gold, plain = make_node("n1").label("tier", "gold").build(), make_node("n2").build()

    assert (("a", (("cpu", 1000),)), ("c", (("cpu", 250),))) == reserving.on(gold, rules).budget.reserved
    assert (("c", (("cpu", 250),)),) == reserving.on(plain, rules).budget.reserved
    assert plain is reserving.on(plain, rules[:2])


def test_the_annotation_counts_first_then_the_first_that_matches() -> None:
    """For each holder by itself, so that twice is once."""
    node = reserved('{"a": {"cpu": "3"}}').label("tier", "gold").build()
    rules = (kept("a", 1000), kept("b", 500, tier="gold"), kept("b", 250))
    once = reserving.on(node, rules)

    assert (("a", (("cpu", 3000),)), ("b", (("cpu", 500),))) == once.budget.reserved
    assert once == reserving.on(once, rules)


def test_alike_nodes_share_what_they_keep() -> None:
    """Ten thousand of them have one budget."""
    first, second = (reserving.on(make_node(name).build(), (kept("a", 1000),)) for name in ("n1", "n2"))

    assert first.budget is second.budget


def test_what_is_followed_of_the_server_passes_through() -> None:
    """Nodes alone, and nothing at all is in between where nothing is kept."""
    followed = reserving.followed((kept("a", 1000),))
    changed = [each for each, plain in zip(followed, resources.ALL, strict=True) if each is not plain]

    assert followed is not resources.ALL
    assert resources.ALL is reserving.followed(())
    assert ["nodes"] == [each.name for each in changed]
    body = changed[0].decode(json.dumps(make_node("n1").manifest()).encode())
    assert reserving.on(make_node("n1").build(), (kept("a", 1000),)) == changed[0].convert(body)


# ── what becomes of it ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("cpu", "placed"), [("2", True), ("2001m", False)])
def test_simulate_keeps_room_for_the_holder(
    cpu: str, *, placed: bool, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 4 CPUs 2 are kept: a stranger gets the other two, to the thousandth; the holder gets all."""
    config = configured(tmp_path, GOLD)
    node = make_node("n1").label("tier", "gold")
    stranger, holder = make_pod("p", "team-b").cpu(cpu), make_pod("p", "team-a").cpu("4")

    path = write(tmp_path / "stranger.yaml", node, stranger)
    assert (0 if placed else 1) == cli.execute(["simulate", path, "--config", config])
    out = capsys.readouterr().out
    assert placed == ("beside what is reserved for others" not in out)
    assert 0 == cli.execute(["simulate", write(tmp_path / "holder.yaml", node, holder), "--config", config])


def test_more_than_a_node_offers_leaves_nothing_for_others(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a resource that is overdrawn, or that the node does not have; the holder has what there is, and no more."""
    text = 'resources: {reservations: [{holder: team-a, amounts: {cpu: "64", "example.com/gpu": 1}}]}'
    config = configured(tmp_path, text)

    def code(namespace: str, cpu: str) -> int:
        pod = make_pod("p", namespace).cpu(cpu)
        return cli.execute(["simulate", write(tmp_path / "c.yaml", make_node("n1"), pod), "--config", config])

    assert (1, 0, 1) == (code("team-b", "1m"), code("team-a", "4"), code("team-a", "4001m"))
    assert "Insufficient cpu beside what is reserved for others" in capsys.readouterr().out


def test_a_captured_graph_that_keeps_it_already_keeps_it_once(tmp_path: pathlib.Path) -> None:
    """What a running scheduler knew came through the same settings."""
    path = write(tmp_path / "c.yaml", make_node("n1").label("tier", "gold"))
    config = configured(tmp_path, GOLD)
    once = offline.load([path], config=config)
    rules = settings.load(config).resources.kept

    assert once.nodes == tuple(reserving.on(node, rules) for node in once.nodes)
    assert (("team-a", (("cpu", 2000),)),) == once.nodes[0].budget.reserved


@virtual.timed
async def test_a_running_scheduler_keeps_it_on_nodes_that_have_the_labels() -> None:
    """Also on one that gets them later; and an audit, which reads the nodes anew, finds nothing to mend."""
    reservation = reserving_settings.ReservationSettings("team-a", {"cpu": "3"}, {"tier": "gold"})
    group = reserving_settings.ResourceSettings((reservation,))
    async with live.scheduler(make_node("n1").cpu("4"), make_node("n2").cpu("1"), resources=group) as it:
        key = storage.Key(apiserver.NODES, "", "n1")
        it.server.storage.patch(key, {"metadata": {"labels": {"tier": "gold"}}}, strategic=False)
        await it.quiet()
        it.pod(make_pod("web").cpu("2"))
        await it.until(lambda: it.message("web") != "")

        assert "1 Insufficient cpu beside what is reserved for others" in it.message("web")
        assert findings.Result.CLEAN == (await it.program.auditor.once("test")).result
        it.server.storage.patch(key, {"metadata": {"labels": {"tier": None}}}, strategic=False)
        await it.bound("web")
