"""CEL expressions over one pod or one node.

A text comes in and is compiled once; asked with the facts of a pod or a node it answers yes, no, or that it can not
tell. What it may read is listed in docs/policies.md and made here (`facts_of_pod`, `facts_of_node`).

Invariant: only a value of type BOOL that is true is a yes. Nearly every error is a value to the engine, and taken for
true by Python, so its type alone is looked at; that an expression goes on for too long is raised.
"""

from __future__ import annotations

import functools
import re
import typing

import msgspec

from graphsched.base.values import nodes
from graphsched.decision.constraints import check
from graphsched.decision.policy import answers

POD, NODE = "pod", "node"
"""What the two kinds of expressions are about: the name of their one variable."""
MESSAGE_MAX = 200
"""Characters of what the engine says about an expression."""
OVERRUNS_MAX = 8
"""So often an expression may go on until the engine stops it, which takes 7 ms; then it is not asked any more, since it
would be asked about thousands of nodes, and nothing is decided meanwhile."""
NO_ENGINE = "this installation has no CEL engine (the package cel-expr-python)"

Facts = dict[str, typing.Any]


class Broken(msgspec.Struct, frozen=True, gc=False):
    """Why an expression is none."""

    problem: str


class Expression:
    """A compiled expression.

    Attributes:
        overruns: How often it went on until the engine stopped it.
    """

    def __init__(self, variable: str, compiled: typing.Any, engine: typing.Any) -> None:
        self.overruns = 0
        self._variable = variable
        self._compiled = compiled
        self._bool = engine.Type.BOOL

    @property
    def exhausting(self) -> bool:
        """Whether it is not asked any more, and fails for everything."""
        return self.overruns >= OVERRUNS_MAX

    def ask(self, asked: typing.Any) -> tuple[int, str]:
        """The answer, and why there is none where it failed; `asked` is what `prepared` made of the facts."""
        if self.exhausting:
            return answers.FAILED, f"it went on until it was stopped {OVERRUNS_MAX} times, and is not asked any more"
        try:
            found = self._compiled.eval(asked)
        except RuntimeError as error:
            # Too many iterations; the engine answers everything else with a value.
            self.overruns += 1
            return answers.FAILED, _shortened(str(error).removesuffix(" [INTERNAL]"))
        if found.type() == self._bool:
            return (answers.YES if found.value() is True else answers.NO), ""
        return answers.FAILED, _shortened(f"{found.value()}" if found.type().name() == "ERROR" else _no_bool(found))


def compiled(variable: str, text: str) -> Expression | Broken:
    """The expression in this text about `POD` or `NODE`, or what is wrong with it."""
    try:
        engine, environment = _environment(variable)
    except ImportError:
        return Broken(NO_ENGINE)
    try:
        found = environment.compile(text)
    except RuntimeError as error:
        return Broken(_shortened(_complaint(str(error))))
    if found.return_type() not in (engine.Type.BOOL, engine.Type.DYN):
        return Broken(f"it gives a value of type {found.return_type().name()}, not true or false")
    return Expression(variable, found, engine)


def prepared(variable: str, facts: Facts) -> typing.Any:
    """The facts as every expression about this variable takes them: made once for all of them."""
    return _environment(variable)[1].Activation({variable: facts})


def facts_of_node(node: nodes.Node) -> Facts:
    """What an expression reads of a node: shaped as the object, amounts in milli-CPU, bytes and pieces."""
    return {
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "spec": {
            "unschedulable": node.unschedulable,
            "taints": [{"key": each.key, "value": each.value, "effect": each.effect} for each in node.taints],
        },
        "status": {
            "allocatable": dict(node.allocatable),
            "addresses": list(node.addresses),
            "declaredFeatures": list(node.features),
        },
    }


def facts_of_pod(subject: check.Subject) -> Facts:
    """What an expression reads of a pod: what all pods of its kind have in common, so no name."""
    spec = subject.spec
    return {
        "metadata": {"namespace": subject.namespace, "labels": dict(subject.labels)},
        "spec": {
            "priority": subject.priority,
            "nodeSelector": dict(spec.selector),
            "tolerations": [
                {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
                for each in spec.tolerations
            ],
            "requests": dict(spec.demand.amounts),
        },
    }


@functools.cache
def _environment(variable: str) -> tuple[typing.Any, typing.Any]:
    """The engine, and its environment with this one variable; loaded with the first expression, as it takes memory."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional()]
    return cel, cel.NewEnv(variables={variable: cel.Type.DYN}, extensions=extensions)


def _complaint(text: str) -> str:
    """What the compiler says, without the words around it: `1:6: Syntax error: …`."""
    first = text.split("\n", 1)[0]
    return re.sub(r"^.*?<input>:", "", first).removesuffix(" [INVALID_ARGUMENT]").replace(" (in container '')", "")


def _no_bool(found: typing.Any) -> str:
    return f"it gives a value of type {found.type().name()}, not true or false"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_MAX else f"{line[:MESSAGE_MAX]}…"
