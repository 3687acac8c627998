"""An explanation as lines of plain text, for a terminal.

An `Explanation` comes in, lines go out; who prints them may colour them but need not. The first line is the answer. The
evidence follows indented, and only what is there: no line ever says "none".
"""

from __future__ import annotations

from collections.abc import Iterator

from graphsched.explain import groups, why, wording

_GROUPS_BRIEF = 6
_NODES_SHOWN = 5
_AVOIDED_SHOWN = 3
_SHORTFALLS_BRIEF = 4


def text(explanation: why.Explanation, *, verbose: bool = False) -> str:
    """All lines, joined; `verbose` adds every group with names of nodes."""
    return "\n".join(lines(explanation, verbose=verbose))


def lines(explanation: why.Explanation, *, verbose: bool = False) -> Iterator[str]:
    """Yield the headline, then the evidence."""
    yield explanation.headline
    if explanation.candidates:
        yield from _table(explanation)
    yield from _ways(explanation, verbose=verbose)
    for fit in explanation.cells:
        if fit.node == explanation.node:
            yield f"  NUMA: {fit}."
        elif verbose:
            yield f"    {fit}"
    if explanation.rules:
        yield f"  Rules: {'; '.join(str(each) for each in explanation.rules)}."
    for allowed in explanation.allowed:
        if allowed.node == explanation.node:
            yield f"  Allowed {allowed}."
        elif verbose:
            yield f"    {allowed.node} is allowed {allowed}"
    yield from (f"  Required by {each}." for each in explanation.met)
    for avoided in explanation.avoided[:_AVOIDED_SHOWN]:
        yield f"  Avoided for a while: {avoided}."
    if explanation.groups:
        yield from _groups(explanation, verbose=verbose)
    if verbose or explanation.state == "pending":
        yield from (f"  {each}." for each in explanation.shortfalls[: None if verbose else _SHORTFALLS_BRIEF])
    if explanation.changes:
        yield f"  Smallest change: {', or '.join(str(change) for change in explanation.changes)}."
    if explanation.wakes_on and explanation.state != "fits":
        yield f"  Wakes on: {wording.either(explanation.wakes_on)}.{_tries(explanation.waiting)}"
    if explanation.waiting is not None:
        yield from _queued(explanation.waiting)


def _queued(waiting: why.Waiting) -> Iterator[str]:
    if waiting.order is not None:
        yield f"  In the queue: {_place(waiting.order)}."
    if waiting.aside_s is not None:
        told = wording.duration(waiting.aside_s)
        yield f"  Aside for {told}: ways to its partners, or what rules say of it, are still being found out."


def _place(order: why.Order) -> str:
    told = f"{order.place:,} of {order.of:,} in the order of {order.plugin}"
    if not order.after:
        return told
    more = len(order.after) - _NODES_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f"{told}, after {', '.join(order.after[:_NODES_SHOWN])}{rest}, which it depends on"


def _tries(waiting: why.Waiting | None) -> str:
    if waiting is None or not waiting.attempts:
        return ""
    again = f", next try in {wording.duration(waiting.next_try_s)}" if waiting.next_try_s is not None else ""
    return f" Tried {wording.count(waiting.attempts, 'time')}{again}."


def _table(explanation: why.Explanation) -> Iterator[str]:
    """Scores by plugin, a column for each candidate."""
    candidates = explanation.candidates
    titles = [(plugin, why.PLUGIN_TITLES.get(plugin, plugin)) for plugin in candidates[0].scores]
    head = f"score of {explanation.score_max}"
    first = max(len(head), *(len(title) for _, title in titles)) if titles else len(head)
    widths = [max(len(candidate.node), 5) for candidate in candidates]

    def row(title: str, cells: list[str]) -> str:
        return f"  {title:<{first}}  " + "  ".join(
            f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)
        )

    yield row(head, [candidate.node for candidate in candidates])
    for plugin, title in titles:
        yield row(title, [str(candidate.scores.get(plugin, "–")) for candidate in candidates])
    yield row("total", [str(candidate.total) for candidate in candidates])


def _ways(explanation: why.Explanation, *, verbose: bool) -> Iterator[str]:
    """The ways from the node; `verbose` adds those of the runners-up."""
    for way in explanation.ways:
        if way.node == explanation.node:
            yield f"  To {way}"
        elif verbose:
            yield f"    from {way.node} to {way}"


def _groups(explanation: why.Explanation, *, verbose: bool) -> Iterator[str]:
    refused = sum(len(group.nodes) for group in explanation.groups)
    passed = explanation.feasible
    head = wording.count(explanation.nodes, "node") if not passed else f"{passed:,} fit, {refused:,} do not"
    if not verbose:
        yield f"  {head}: {groups.summary(explanation.groups, at_most=_GROUPS_BRIEF)}"
        return
    yield f"  {head}:"
    width = max(len(f"{len(group.nodes):,}") for group in explanation.groups)
    for group in explanation.groups:
        names = ", ".join(group.nodes[:_NODES_SHOWN]) + (", …" if len(group.nodes) > _NODES_SHOWN else "")
        yield f"    {len(group.nodes):>{width},} {group.label}: {names}"
