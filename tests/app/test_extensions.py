"""Plugins of others are found by name, refused with a reason when broken, and cut off when they take too long."""

from __future__ import annotations

import importlib.metadata
import itertools
import signal
import threading
import typing
from collections.abc import Sequence

import pytest

from graphsched.app import extensions
from graphsched.base.values import errors
from graphsched.decision import walking
from graphsched.graph import adjacency

PLACE = ("config.yaml", "queue.order")
HERE = "tests.app.test_extensions"


class Good:
    """A plugin."""

    name = "good"
    mode = walking.Mode.BFS

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """Nothing goes before anything."""
        return ()


class Endless(Good):
    """Never looks at its context, and catches what can be caught."""

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """Go round for ever."""
        for _ in itertools.count():
            try:
                sum(range(100))
            except Exception:  # noqa: BLE001  as plugins do
                return ()
        return ()


class Walkless:
    """No plugin."""

    name = "walkless"
    mode = walking.Mode.BFS


class Moody(Good):
    """Of no mode that there is."""

    mode = typing.cast("walking.Mode", "ZIGZAG")


def offered(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Installed packages offer these plugins, by name."""
    points = [importlib.metadata.EntryPoint(name, value, extensions.GROUP) for name, value in values.items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == extensions.GROUP else [])
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", _load)


def _load(point: importlib.metadata.EntryPoint) -> object:
    """Classes of this module are loaded from it, whatever it was imported as."""
    if point.module != HERE:
        return importlib.import_module(point.module)
    return globals()[point.attr]


def test_the_plugins_that_come_along_need_no_package() -> None:
    """By their names."""
    assert "criticalPath" == getattr(extensions.load("criticalPath", place=PLACE), "name", "")
    assert {"criticalPath", "priorityQueue"} <= set(extensions.names())


def test_a_plugin_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class is made, without arguments."""
    offered(monkeypatch, good=f"{HERE}:Good")

    assert isinstance(extensions.load("good", place=PLACE), Good)
    assert ["criticalPath", "good", "priorityQueue"] == extensions.names()


def test_a_name_that_nobody_offers_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with what there is."""
    offered(monkeypatch, good=f"{HERE}:Good")
    with pytest.raises(errors.InputError, match=r'config\.yaml.*queue\.order.*"goood".*criticalPath, good'):
        extensions.load("goood", place=PLACE)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("gone", "no_such_package:Plugin", "no_such_package:Plugin can not be loaded: ModuleNotFoundError"),
        ("walkless", f"{HERE}:Walkless", "it has no method walk"),
        ("moody", f"{HERE}:Moody", "its mode is 'ZIGZAG', which is none of BFS, DFS, TOPO"),
        ("other", f"{HERE}:Good", "its name is 'good', not that of its entry point"),
    ],
)
def test_a_broken_plugin_is_named_and_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str) -> None:
    """With what is wrong; it never ends the program."""
    offered(monkeypatch, **{name: value})
    refused = extensions.load(name, place=PLACE)

    assert isinstance(refused, extensions.Refused)
    assert f'plugin "{name}" is not used: ' in str(refused)
    assert why in str(refused)


def test_two_packages_of_one_name_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one is meant is not guessed."""
    points = [importlib.metadata.EntryPoint("good", f"{HERE}:{name}", extensions.GROUP) for name in ("Good", "Endless")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)  # noqa: ARG005  its one argument
    with pytest.raises(errors.InputError, match="offered by"):
        extensions.load("good", place=PLACE)


def nothing() -> walking.Graph:
    """A graph without a vertex."""
    return walking.Graph(adjacency.Writer[walking.Key]().picture())


def test_a_plugin_that_never_ends_is_cut_off() -> None:
    """Within its own code; the timer and its signal are as before."""
    before = [signal.getsignal(number) for _, number in extensions._TIMERS]
    answer = extensions.call(Endless(), nothing(), [], walking.Context(), cut_s=0.02)

    assert (walking.Verdict.LATE, "it was cut off after 0.02 s") == (answer.verdict, answer.why)
    assert before == [signal.getsignal(number) for _, number in extensions._TIMERS]
    assert (0.0, 0.0) in {signal.getitimer(timer) for timer, _ in extensions._TIMERS}


def test_a_plugin_in_time_is_not_disturbed() -> None:
    """On the main thread and on another, where no signal could reach it."""
    answers = [extensions.call(Good(), nothing(), [], walking.Context(), cut_s=5)]
    thread = threading.Thread(
        target=lambda: answers.append(extensions.call(Good(), nothing(), [], walking.Context(), cut_s=5))
    )
    thread.start()
    thread.join(timeout=30)

    assert [walking.Verdict.DONE] * 2 == [answer.verdict for answer in answers]
