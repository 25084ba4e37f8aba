"""The operators, generated from the registry: descriptions, and functions that build calls."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass

from relay import _core


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
    """One call that works: argument types and attributes as text, the range of the values.

    Where values matter, `inputs` holds them, and `results` what they give: a list for each tensor.
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
    # Where the results of the examples are from; None: tests hold a formula instead.
    source: str | None

    @property
    def node(self) -> _core.Op:
        """The operator as an expression, the callee of a call."""
        return _core.op_node(self.name)


def list_op_names() -> list[str]:
    """Returns the names of all operators, sorted."""
    return _core.op_names()


@functools.cache
def get(name: str) -> Operator:
    """Returns what the registry knows about an operator; RelayError E0105 for an unknown name."""
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


def __getattr__(name: str):
    """Operators are reached from here too: relay.op.nn.relu is relay.nn.relu."""
    if any(full.partition(".")[0] == name for full in list_op_names()):
        return getattr(sys.modules["relay"], name)
    raise AttributeError(f"module 'relay.op' has no attribute '{name}'")


def _document(row: Operator) -> str:
    lines = [row.doc, ""]
    lines += [f"{a.name}: {a.doc}" for a in row.args]
    lines += [f"{a.name} ({a.type}, default {a.default!r}): {a.doc}" for a in row.attrs]
    return "\n".join(lines).strip()


def _make(row: Operator, module: str) -> Callable[..., _core.Call]:
    node = row.node
    arg_names = [a.name for a in row.args]
    attr_names = [a.name for a in row.attrs]
    names = [*arg_names, *attr_names]

    def build(*values, **named):
        given = dict(zip(names, values, strict=False))
        if len(values) > len(names):
            raise TypeError(f"{row.name}() takes {len(names)} arguments, {len(values)} are given")
        for name, value in named.items():
            if name in given:
                raise TypeError(f"{row.name}() got '{name}' twice")
            given[name] = value
        missing = [name for name in arg_names if name not in given]
        if missing:
            raise TypeError(f"{row.name}() needs {', '.join(missing)}")
        operands = [given.pop(name) for name in arg_names]
        return _core.Call(node, operands, given)

    short = row.name.rpartition(".")[2]
    build.__name__ = build.__qualname__ = short
    build.__module__ = module
    build.__doc__ = _document(row)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    # Names that Python reserves go by keyword dictionary only and stay out of the signature.
    if all(name.isidentifier() for name in names) and len(set(names)) == len(names):
        build.__signature__ = inspect.Signature(
            [inspect.Parameter(n, kind) for n in arg_names]
            + [inspect.Parameter(a.name, kind, default=a.default) for a in row.attrs]
        )
    return build


def _namespace(parent: dict, parent_name: str, name: str) -> types.ModuleType:
    full = f"{parent_name}.{name}"
    if not isinstance(parent.get(name), types.ModuleType):
        module = types.ModuleType(full, f"The operators {name}.*.")
        sys.modules[full] = module
        parent[name] = module
    return parent[name]


def _install(package: dict) -> None:
    """Puts a function per operator into the package: relay.add, relay.nn.relu."""
    for full in list_op_names():
        *outer, short = full.split(".")
        names, module = package, package["__name__"]
        for part in outer:
            names = vars(space := _namespace(names, module, part))
            module = space.__name__
        names.setdefault(short, _make(get(full), module))
