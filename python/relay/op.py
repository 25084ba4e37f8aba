"""The operators of the registry."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relay import _core
from relay._absent import absent

if TYPE_CHECKING:
    from relay._operators import *  # noqa: F403


# The functions that make calls of operators, and the modules of a namespace; relay._operators fills it.
FUNCTIONS: dict[str, object] = {}


@dataclass(frozen=True)
class Argument:
    """A tensor argument."""

    name: str
    doc: str


@dataclass(frozen=True)
class Attribute:
    """A static argument with its default."""

    name: str
    type: str
    default: object
    doc: str


@dataclass(frozen=True)
class Example:
    """A valid call: argument types and attributes as text, and the range of the values.

    If values matter, `inputs` has them, and `results` their results: a list for each tensor.
    """

    args: list[str]
    attrs: str
    low: float
    high: float
    inputs: list[list[float]]
    results: list[list[float]]


@dataclass(frozen=True)
class Operator:
    """A row of the registry."""

    name: str
    doc: str
    args: list[Argument]
    attrs: list[Attribute]
    examples: list[Example]
    support_level: int
    # The source of the examples' results; None: tests have a formula instead.
    source: str | None

    @property
    def node(self) -> _core.Op:
        """The operator as an expression, the callee of a call."""
        return _core.op_node(self.name)


def list_op_names() -> list[str]:
    """Returns the names of all operators, sorted."""
    return _core.op_names()


def get(name: str) -> _core.Op:
    """Returns an operator, the callee of its calls; RelayError E0105 for an unknown name.

    `call.op == relay.op.get("nn.relu")` tests whether a call is of it; `doc`, `args`, `attrs` and the other
    attributes are the columns of its row.
    """
    return _core.op_node(name)


@functools.cache
def row(name: str) -> Operator:
    """Returns the row of an operator; RelayError E0105 for an unknown name."""
    name, doc, args, attrs, examples, level, source = _core.op_row(name)
    return Operator(
        name,
        doc,
        [Argument(*row) for row in args],
        [Attribute(*row) for row in attrs],
        [Example(*row) for row in examples],
        level,
        source,
    )


def _known(name: str, doc: str) -> property:
    def read(self: _core.Op) -> Any:
        return getattr(row(self.name), name)

    read.__doc__ = doc
    return property(read)


for _name, _doc in (
    ("doc", "What the operator computes."),
    ("args", "Its tensor arguments, each an `Argument`."),
    ("attrs", "Its static arguments, each an `Attribute`."),
    ("examples", "Calls that work, each an `Example`."),
    ("support_level", "The level of support, 1 to 10 and above, as Relay counts it."),
    ("source", "Where the results of the examples are from; None where tests hold a formula."),
):
    setattr(_core.Op, _name, _known(_name, _doc))


if not TYPE_CHECKING:

    def __getattr__(name):
        """Returns the function of an operator: relay.op.nn.relu is relay.nn.relu."""
        try:
            return FUNCTIONS[name]
        except KeyError:
            raise absent("relay", name) from None
