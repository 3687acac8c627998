"""Plugins of others: found by their entry point, loaded with care, called within bounds.

A package offers a plugin under the entry point group `graphsched.plugins`; settings name it. Only the one that is named
is imported. One that can not be loaded, or is no plugin, is refused with its name and the reason, and the scheduler
runs without it. A call that takes longer than it may is cut off, wherever in its code it is.

The cut is an exception raised by a timer's signal in the middle of the plugin's Python code, so it works on the main
thread alone, which is where the scheduler's loop runs; elsewhere, and within one long call of C code, a plugin is only
judged late when it returns. Being no `Exception`, it is not caught by a plugin that catches those.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import signal
import threading
import types
from collections.abc import Iterator, Sequence

import msgspec

from graphsched.base.values import errors
from graphsched.decision import walking

GROUP = "graphsched.plugins"
"""The entry point group."""

_TIMERS = ((signal.ITIMER_REAL, signal.SIGALRM), (signal.ITIMER_VIRTUAL, signal.SIGVTALRM))
"""The clock on the wall, or, where somebody else has set that timer already, the processor's time."""


class Refused(msgspec.Struct, frozen=True):
    """A plugin that is not used, and why not."""

    name: str
    why: str

    def __str__(self) -> str:
        return f'plugin "{self.name}" is not used: {self.why}'


class _CutOff(BaseException):
    """Raised in a plugin's code when its time is up."""


def names() -> list[str]:
    """What settings may name: the shipped plugins, and those that installed packages offer."""
    offered = {each.name for each in importlib.metadata.entry_points(group=GROUP)}
    return sorted({plugin.name for plugin in walking.SHIPPED} | offered)


def load(name: str, *, place: tuple[str, ...]) -> walking.GraphWalk | Refused:
    """The plugin of this name, or why it is refused.

    Raises:
        InputError: Nobody offers it, or several do; `place` names the setting.
    """
    for plugin in walking.SHIPPED:
        if plugin.name == name:
            return plugin
    found = [each for each in importlib.metadata.entry_points(group=GROUP) if each.name == name]
    if not found:
        raise errors.InputError(
            *place, problem=f'no installed package offers a plugin "{name}"', remedy=f"known: {', '.join(names())}"
        )
    if len({each.value for each in found}) > 1:
        offers = " and ".join(sorted({each.value for each in found}))
        raise errors.InputError(*place, problem=f'"{name}" is offered by {offers}', remedy="uninstall one of them")
    try:
        made = found[0].load()
        plugin = made() if isinstance(made, type) else made
    except Exception as error:  # noqa: BLE001  importing somebody else's code may raise anything
        return Refused(name, f"{found[0].value} can not be loaded: {type(error).__name__}: {error}")
    problem = _problem(name, plugin)
    return Refused(name, f"{found[0].value} is no plugin: {problem}") if problem else plugin


def _problem(name: str, plugin: object) -> str:
    mode, known = getattr(plugin, "mode", None), ", ".join(walking.Mode)
    if not callable(getattr(plugin, "walk", None)):
        return "it has no method walk(graph, start, ctx)"
    if mode not in set(walking.Mode):
        return f"its mode is {mode!r}, which is none of {known}"
    if getattr(plugin, "name", None) != name:
        return f"its name is {getattr(plugin, 'name', None)!r}, not that of its entry point"
    return ""


def call(
    plugin: walking.GraphWalk,
    graph: walking.Graph,
    start: Sequence[walking.Key],
    ctx: walking.Context,
    *,
    cut_s: float,
) -> walking.Answer:
    """Call a plugin and cut it off after `cut_s` seconds, which is a good deal more than its context gives it."""
    try:
        with _cut_after(cut_s):
            return walking.run(plugin, graph, start, ctx)
    except _CutOff:
        return walking.Answer(walking.Verdict.LATE, why=f"it was cut off after {cut_s:g} s")


@contextlib.contextmanager
def _cut_after(seconds: float) -> Iterator[None]:
    """Raise `_CutOff` within, again and again, once the time is up; on another thread than the main one, never."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timer, number = next((each for each in _TIMERS if signal.getitimer(each[0]) == (0.0, 0.0)), _TIMERS[-1])
    within = True

    def cut(_: int, __: types.FrameType | None) -> None:
        if within:
            raise _CutOff

    before = signal.signal(number, cut)
    try:
        signal.setitimer(timer, seconds, seconds)
        yield
    finally:
        within = False
        signal.setitimer(timer, 0.0)
        signal.signal(number, before)
