"""The registry of supported NumPy functions and of their supported parameters.

`FUNCTIONS` maps a NumPy function object to its composition, `METHODS` and `ATTRIBUTES` those of arrays.
`ROWS` has the same by name, for the table of docs/python_function.md. A call refuses by name the parameters
of NumPy that the composition lacks.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay._function.syntax.errors import CALL, Refusal
from relay._function.values import Static, Value


@dataclass(frozen=True)
class Row:
    """A supported function; `only` documents restrictions of its arguments."""

    function: Callable
    only: str = ""


FUNCTIONS: dict[int, Callable] = {}
# Compositions whose first argument is the reader: they call functions of the program.
READERS: set[int] = set()
METHODS: dict[str, Callable] = {}
ATTRIBUTES: dict[str, Callable] = {}
ROWS: dict[str, Row] = {}
METHOD_ROWS: dict[str, Row] = {}
# Functions that are loops (numpy_loops.py), each compiled when it is first asked for.
LOOPS: dict[str, Callable[[], Any]] = {}

# What to write instead of an unsupported argument.
_INSTEAD = {
    "out": "assign the result: y = {name}(...)",
    "where": "np.where(mask, {name}(x), x) chooses element by element",
    "order": "leave it out: tensors are row by row",
    "dtype": "convert the argument or the result with astype",
    "initial": "take the result and the number together: np.maximum(result, initial)",
    "overwrite_input": "leave it out: arguments are not changed",
    "weights": "multiply by the weights, and divide by their sum",
    "method": "leave it out for linear interpolation",
}
# Arguments about the storage of the result: a function without them counts as complete.
STORAGE = {
    "out", "order", "casting", "subok", "signature", "sig", "extobj", "like", "device", "copy",
    "overwrite_input", "optimize", "axes", "axis of gufuncs", "assume_unique", "kind", "stable",
    "hermitian",
}  # fmt: skip


def found(path: str) -> object:
    """Returns NumPy's object of a dotted name; None if this NumPy has none."""
    of: object = np
    for part in path.split("."):
        of = getattr(of, part, None)
    return of


def there(name: str) -> Callable:
    """Returns the composition of a NumPy function, for other compositions."""
    return ROWS[name].function


def loop(name: str) -> Any:
    """Returns the compiled function of a loop, for `program.call`."""
    return LOOPS[name]()


@functools.cache
def signature_of(function: Callable) -> inspect.Signature | None:
    """Returns the signature of a function, None if Python does not know it."""
    text = getattr(function, "__text_signature__", None)
    if isinstance(function, types.BuiltinFunctionType) and text and "$" not in text:
        # inspect would tokenize the text, which takes 4 ms in each process.
        with contextlib.suppress(SyntaxError, NameError):
            return inspect.signature(eval(f"lambda {text.strip()[1:-1]}: None", {}))
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def missing(own: Callable, theirs: Callable | None) -> list[str]:
    """Returns the parameters of NumPy's function that the composition lacks."""
    signature = None if theirs is None else signature_of(theirs)
    if signature is None:
        return []
    mine = list(signature_of(own).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in mine):
        return []
    names = [p.name for p in mine if p.name != "reader"]
    positional = [p for p in signature.parameters.values() if p.name != "self"]
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named_alike = {
        p.name
        for p, name in zip(positional, names, strict=False)
        if name not in signature.parameters
    }
    return [
        p.name
        for p in positional
        if p.name not in names and p.name not in named_alike and p.kind not in kinds
    ]


def _refused(name: str, argument: str) -> Refusal:
    advice = _INSTEAD.get(argument, "leave it out, or compute the value outside and pass it")
    return Refusal(CALL, f"{name} is there without '{argument}'", help=advice.format(name=name))


def _says_nothing(value: Value, parameter: inspect.Parameter) -> bool:
    """Whether an argument is NumPy's own default."""
    if not isinstance(value, Static):
        return False
    if parameter.default is np._NoValue or value.obj is None:
        return value.obj is parameter.default or value.obj is None
    return type(value.obj) is type(parameter.default) and value.obj == parameter.default


def checked(name: str, function: Callable, theirs: Callable | None) -> Callable:
    """The function, with arguments bound as NumPy binds them and refused by name."""

    def call(*args: Value, **named: Value) -> Value:
        own = signature_of(function)
        kinds = {p.kind for p in own.parameters.values()}
        signature = None if theirs is None else signature_of(theirs)
        open_ended = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        if not kinds & open_ended and signature is not None:
            args, named = _as_theirs(name, own, signature, args, named)
        try:
            own.bind(*args, **named)
        except TypeError as error:
            raise Refusal(CALL, f"{name}: {error}") from None
        return function(*args, **named)

    return functools.wraps(function)(call)


def _as_theirs(
    name: str, own: inspect.Signature, theirs: inspect.Signature, args: tuple, named: dict
) -> tuple[tuple, dict]:
    """The arguments by our parameters, where NumPy has more of them or in another order."""
    parameters = list(theirs.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    mine = list(own.parameters)
    kept, given = [], dict(named)
    for i, value in enumerate(args):
        same = i == 0 or (
            i < min(len(positional), len(mine)) and _alike(i, mine, positional, theirs)
        )
        if same and len(kept) == i:
            kept.append(value)
        elif i >= len(positional):
            raise Refusal(CALL, f"{name} takes {len(positional)} positional arguments")
        elif positional[i].name not in mine:
            if not _says_nothing(value, positional[i]):
                raise _refused(name, positional[i].name)
        else:
            given[positional[i].name] = value
    for key in list(given):
        if key not in mine and key in theirs.parameters:
            if not _says_nothing(given[key], theirs.parameters[key]):
                raise _refused(name, key)
            del given[key]
    return tuple(kept), given


def _alike(
    i: int, mine: list[str], positional: list[inspect.Parameter], theirs: inspect.Signature
) -> bool:
    """Whether a parameter is NumPy's at that place, by its name or under another."""
    name = positional[i].name
    return name == mine[i] or (name not in mine and mine[i] not in theirs.parameters)


def numpy_function(
    *names: str, method: bool = False, only: str = "", reads: bool = False
) -> Callable:
    """Registers a composition under NumPy's names for it, and as a method of arrays."""

    def add(function: Callable) -> Callable:
        for name in names:
            of = found(name)
            if of is None:
                continue
            # By identity: some of NumPy's objects compare element-wise.
            FUNCTIONS[id(of)] = function if reads else checked(f"np.{name}", function, of)
            if reads:
                READERS.add(id(of))
            ROWS[name] = Row(function, only)
        if method:
            add_method(names[0], function, only)
        return function

    return add


def add_method(name: str, function: Callable, only: str = "") -> None:
    """Registers a method of arrays."""
    METHODS[name] = checked(f"the method {name}", function, getattr(np.ndarray, name, None))
    METHOD_ROWS[name] = Row(function, only)
