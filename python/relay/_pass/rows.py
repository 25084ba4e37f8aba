"""A class for each pass of the compiler, from the pass's row; `relay.transform` offers them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from relay import _core
from relay._pass.passes import Pass
from relay._pass.transformed import with_function


class Defunctionalization(Pass):
    """Converts functions that are used as values to data.

    `Defunctionalization()` is the pass; `Defunctionalization(func, mod)` is the function after it, which
    uses functions and data types that the pass adds to the program.
    """

    name = "Defunctionalization"

    def __new__(cls, func: _core.Function | None = None, mod: _core.IRModule | None = None):
        if func is None:
            return super().__new__(cls)
        return cls()(with_function("main", func, mod)).functions["main"]

    def __init__(self) -> None:
        super().__init__()


Defunctionalization.__module__ = "relay.transform"

# An option in a pass row: name, kind, doc, default.
_Option = tuple[str, str, str, object]
_OPTION_TYPES: dict[str, Any] = {
    "boolean": bool,
    "integer": int,
    "text": str,
    "list of names": Sequence[str],
}


def _describe(option: _Option) -> str:
    name, kind, doc, _ = option
    return f"{name} ({kind}): {doc}"


def _constructor(options: Sequence[_Option]) -> Callable[..., None]:
    """Returns the constructor of a pass, with the signature that help() shows.

    Options named after operators, such as those of ConvertLayout, cannot be parameter names; they are given
    as `**{"nn.conv2d": "NCHW"}`.
    """
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=standard,
            annotation=_OPTION_TYPES[kind] if standard is not None else _OPTION_TYPES[kind] | None,
        )
        for name, kind, _, standard in options
        if name.isidentifier()
    ]
    if not all(name.isidentifier() for name, *_ in options):
        parameters.append(
            inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD, annotation=str)
        )

    def __init__(self: Pass, *values: object, **named: object) -> None:
        Pass.__init__(self, *values, **named)

    __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return __init__


def _class_of(name: str, level: int, doc: str, options: Sequence[_Option]) -> type[Pass]:
    members = {
        "name": name,
        "opt_level": level,
        "options": tuple(option for option, *_ in options),
        "__init__": _constructor(options),
        "__doc__": "\n".join([doc, *([""] if options else []), *map(_describe, options)]),
        "__module__": "relay.transform",
    }
    return type(name, (Pass,), members)


def _classes() -> dict[str, type[Pass]]:
    made: dict[str, type[Pass]] = {}
    for row in _core.pass_rows():
        name, level, *_ = row
        made[name] = Defunctionalization if name == Defunctionalization.name else _class_of(*row)
        made[name].opt_level = level
    return made


# The class of each pass of the compiler, by name.
PASSES = _classes()
