"""Write docs/reliability.md from the fault table that the tests play; a test compares the two.

Comes in: `tests.faults.table`. Goes out: the page. Run it after changing the table:
`python -m scripts.reliability_page`.
"""

import pathlib
from collections.abc import Iterator

from tests.faults import table

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "reliability.md"

_HEAD = """\
# Reliability

What goes wrong between graphsched and the cluster, and what becomes of it. Every cell below is played against a real
kube-apiserver, with two seeds in every `make test-cluster` and with twenty in `make torture`. A proxy between scheduler
and API server makes the call go wrong; afterwards it is asked of the API server itself, not of the scheduler's memory,
that

- every pod that fits somewhere is bound, and every other one says why in its condition;
- no pod was ever seen on two nodes, and of no pod two bindings worked;
- no node holds more than it has;
- the graph is what a fresh list shows, and its own audit finds nothing;
- nothing is kept of pods that are settled; `/livez` passed all the time, and `/readyz` never before every list was had
  and again in the end.

A failure prints the command that repeats it, such as `python -m tests.faults --only '503/bind' --seed 7`.

This page is written by `python -m scripts.reliability_page` from `tests/faults/table.py`.

## What graphsched does

"""

_GRID = """
## Fault × call × phase

A scheduler is started with pods waiting (**S**), comes to rest (**Q**, for quiet), gets a burst of pods (**B**), is
ended or killed with bindings under way and started again (**R**). A letter says that the fault strikes that call in
that phase and all of the above holds afterwards; a number stands for a reason why it cannot occur.

"""
_LEGEND = """
`others` stands for namespaces, priority classes, services, replication controllers, replica sets and stateful sets:
the seed draws one. `lease` is any call for the lease of the leader election: read, taken or renewed; in all other
columns the scheduler runs without an election.

`customs` stands for NetworkLink and Volcano's HyperNode in turns, played with both installed: the graph's places, links
and containment are what a fresh list of them says. In the last four columns the scheduler follows GraphPolicies, one of
which denies a node to all pods: no pod is ever seen there, and the policy's status comes to speak of its present state.
In each phase these objects come to say something else. Lists of policies and discovery of API groups are the
scheduler's own and kopf's, in turns.
"""
_BETWEEN = """
## Between decision and binding

A binding is held on its way while somebody interferes, in each of the four phases; then it goes on.

"""
_DISASTERS = """
## Beyond single calls

Each has a test of its own, in `tests/faults`.

"""
_LETTERS = dict(zip(table.Phase, "SQBR", strict=True))


def page() -> str:
    """The whole page."""
    return "".join([_HEAD, *_answers(), _GRID, *_grid(), _BETWEEN, *_deeds(), _DISASTERS, *_disasters()])


def _answers() -> Iterator[str]:
    yield "| Fault | What happens |\n|---|---|\n"
    for fault in table.FAULTS:
        yield f"| {fault.title} | {fault.answer} |\n"


def _grid() -> Iterator[str]:
    reasons: list[str] = []
    yield f"| Fault | {' | '.join(table.CALLS)} |\n|---|{'---|' * len(table.CALLS)}\n"
    for fault in table.FAULTS:
        cells = [_cell(fault, call, reasons) for call in table.CALLS]
        yield f"| {fault.title} | {' | '.join(cells)} |\n"
    yield "\n"
    for number, reason in enumerate(reasons, 1):
        yield f"{number}. It cannot occur: {reason}.\n"
    yield _LEGEND


def _deeds() -> Iterator[str]:
    yield "| Meanwhile | Played | What happens |\n|---|---|---|\n"
    for deed in table.DEEDS:
        yield f"| {deed.title} | {_cell(deed, table.BETWEEN, [])} | {deed.answer} |\n"


def _disasters() -> Iterator[str]:
    reasons: list[str] = []
    yield "| What | Played | What happens | Test |\n|---|---|---|---|\n"
    for one in table.DISASTERS:
        marks = []
        for phase in table.Phase:
            reason = one.reasons.get(phase, "")
            if reason and reason not in reasons:
                reasons.append(reason)
            marks.append(str(reasons.index(reason) + 1) if reason else _LETTERS[phase])
        yield f"| {one.title} | {' '.join(marks)} | {one.answer} | `{one.test}` |\n"
    yield "\n"
    for number, reason in enumerate(reasons, 1):
        yield f"{number}. It cannot occur: {reason}.\n"


def _cell(fault: table.Fault, call: str, reasons: list[str]) -> str:
    marks = []
    for phase in table.Phase:
        reason = table.reason_against(fault, call, phase)
        if reason and reason not in reasons:
            reasons.append(reason)
        marks.append(str(reasons.index(reason) + 1) if reason else _LETTERS[phase])
    return marks[0] if len(set(marks)) == 1 else " ".join(marks)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
