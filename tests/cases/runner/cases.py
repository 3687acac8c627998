"""
Cases of scheduling as data: what was there, what came, where it must go, and where the case was met first.

Comes in: the YAML files of `tests/cases/data`. Goes out: `Case` values. `arena.py` makes their objects real, `play.py`
creates their pods, `verdicts.py` compares.

Invariant: a field that the runner would not honour is an error when the file is read, so that no expectation passes
unseen.
"""

import functools
import pathlib
from typing import Any

import msgspec
import yaml

Object = dict[str, Any]

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    What must become of one pod.

    Attributes:
        node: It is bound there.
        nodes: It is bound to one of these.
        prefer_with_topology: The best of `nodes` for a score that knows how devices are linked; never an obligation.
        unschedulable: It is refused, and stays.
        reasons: Each occurs in the refusal's message.
        message: How that message starts.
        gated: Nobody tries to place it.
        victims: Exactly these were evicted for it; None where the case does not say.
        nominated: The node that is kept for it.
        later: Where it ends up without outside help once all pods of the case were tried.
        by, gone, until: Parts of a story that is told step by step; such a case has a test of its own.
    """

    node: str = ""
    nodes: tuple[str, ...] = ()
    prefer_with_topology: str = ""
    unschedulable: bool = False
    reasons: tuple[str, ...] = ()
    message: str = ""
    gated: bool = False
    victims: tuple[str, ...] | None = None
    nominated: str = ""
    later: "Expectation | None" = None
    by: str = ""
    gone: bool = False
    until: str = ""

    @property
    def targets(self) -> tuple[str, ...]:
        """The nodes that are right; empty where none is."""
        return (self.node,) if self.node else self.nodes


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the control plane is started with: feature gates, and APIs that are off by default."""

    feature_gates: dict[str, bool] = {}
    runtime_config: tuple[str, ...] = ()

    @property
    def gates(self) -> str:
        """The feature gates as a flag takes them."""
        return ",".join(f"{gate}={str(on).lower()}" for gate, on in sorted(self.feature_gates.items()))

    @property
    def key(self) -> str:
        """Equal for equal configurations."""
        return " ".join([self.gates, *self.runtime_config])


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    One case.

    Attributes:
        source: The public report that it stems from.
        kind: What part of scheduling it is about.
        why: The trap.
        objects: What is there before anything is scheduled, as a user writes it.
        pending: Pods, in the order in which they are created.
        expect: By the name of the pod.
        config: Gates that are not on by default.
        steps: Prose, where a snapshot cannot tell the case.
        note: Hints for readers.
        documented: What the API's text promises where the released code does otherwise.
        expect_default_gates: What happens without `config`, in words.
        name: The file's name without its ending.
    """

    source: str
    kind: str
    why: str
    objects: tuple[Object, ...]
    pending: tuple[Object, ...]
    expect: dict[str, Expectation]
    config: Config = Config()
    steps: str = ""
    note: str = ""
    documented: dict[str, Expectation] = {}
    expect_default_gates: str = ""
    name: str = ""


def decode(text: str, *, name: str) -> Case:
    """
    Read one file.

    Raises:
        msgspec.ValidationError: it has a field that nobody would look at, or lacks one.
        ValueError: expectations and pods do not belong together.
    """
    case = msgspec.structs.replace(msgspec.convert(yaml.safe_load(text), Case), name=name)
    pods = [pod["metadata"]["name"] for pod in case.pending]
    if sorted(pods) != sorted(case.expect):
        raise ValueError(f"{name}: pods {sorted(pods)}, but expectations for {sorted(case.expect)}")
    return case


@functools.cache
def all_cases() -> dict[str, Case]:
    """Every case by name, in order."""
    return {path.stem: decode(path.read_text(), name=path.stem) for path in sorted(DATA.glob("*.yaml"))}
