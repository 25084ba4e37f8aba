"""Passes: each is a class whose objects map a module to a module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from relay import _core
from relay._instruments import (
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    pass_instrument,
)
from relay._pass import Pass, PassContext, PassInfo, Sequential
from relay._python_passes import (
    ApplyPassToFunction,
    FunctionPass,
    ModulePass,
    PrintIR,
    add_pass,
    function_pass,
    module_pass,
    remove_pass,
)
from relay._transformed import (
    Axes as Axes,
)
from relay._transformed import (
    FoldConstantExpr,
    InferTypeLocal,
    ToANormalFormExpr,
    add_batched,
    add_derivative,
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    lane_by_lane,
    to_cps,
    un_cps,
    value_and_grad,
    vjp,
    vmap,
)
from relay._transformed import (
    with_function as _with_function,
)

if TYPE_CHECKING:
    from relay._passes import *  # noqa: F403

build_config = PassContext


class Defunctionalization(Pass):
    """Makes data of functions used as values.

    `Defunctionalization()` is the pass; `Defunctionalization(func, mod)` is the function after it,
    in terms of the functions and data types of the program, as the pass makes it.
    """

    name = "Defunctionalization"

    def __new__(cls, func: _core.Function | None = None, mod: _core.IRModule | None = None):
        if func is None:
            return super().__new__(cls)
        return cls()(_with_function("main", func, mod)).functions["main"]

    def __init__(self) -> None:
        super().__init__()


# An option of a pass row: name, kind, doc, and default.
_Option = tuple[str, str, str, object]
OPTION_TYPES: dict[str, Any] = {
    "boolean": bool,
    "integer": int,
    "text": str,
    "list of names": Sequence[str],
}


def _describe(option: _Option) -> str:
    name, kind, doc, _ = option
    return f"{name} ({kind}): {doc}"


def _constructor(options: Sequence[_Option]) -> Callable[..., None]:
    """The constructor of a pass, with the signature that help() shows.

    Options that are named after operators, as those of ConvertLayout, are not names of parameters:
    they are given as `**{"nn.conv2d": "NCHW"}`.
    """
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=standard,
            annotation=OPTION_TYPES[kind] if standard is not None else OPTION_TYPES[kind] | None,
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


def _install() -> list[str]:
    names = []
    for name, level, doc, options in _core.pass_rows():
        members = {
            "name": name,
            "opt_level": level,
            "options": tuple(option for option, *_ in options),
            "__init__": _constructor(options),
            "__doc__": "\n".join([doc, *([""] if options else []), *map(_describe, options)]),
            "__module__": __name__,
        }
        made = globals().setdefault(name, type(name, (Pass,), members))
        made.opt_level = level
        names.append(name)
    return names


__all__ = [
    "ApplyPassToFunction",
    "BackwardFoldScaleAxis",
    "BatchingOps",
    "CanonicalizeCast",
    "ChangeBatch",
    "FoldConstantExpr",
    "ForwardFoldScaleAxis",
    "FunctionPass",
    "InferTypeLocal",
    "MergeComposite",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintIR",
    "Sequential",
    "ToANormalFormExpr",
    "AnnotateSpans",
    "FlattenAtrousConv",
    "SimplifyFCTranspose",
    "add_batched",
    "add_derivative",
    "add_pass",
    "build_config",
    "function_pass",
    "gradient",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "module_pass",
    "pass_instrument",
    "recast",
    "remove_pass",
    "lane_by_lane",
    "to_cps",
    "un_cps",
    "value_and_grad",
    "vjp",
    "vmap",
    *_install(),
]

# Made of what is above.
from relay._known_passes import (  # noqa: E402
    AnnotateSpans,
    BackwardFoldScaleAxis,
    BatchingOps,
    CanonicalizeCast,
    ChangeBatch,
    FlattenAtrousConv,
    ForwardFoldScaleAxis,
    MergeComposite,
    SimplifyFCTranspose,
    recast,
)

if not TYPE_CHECKING:

    def __getattr__(name):
        from relay._wrappers import absent

        raise absent("relay.transform", name)
