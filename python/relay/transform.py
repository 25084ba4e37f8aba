"""Passes: each is a class whose objects map a module to a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def _describe(option: tuple[str, str, str]) -> str:
    name, kind, doc = option
    return f"{name} ({kind}): {doc}"


def _install() -> list[str]:
    names = []
    for name, level, doc, options in _core.pass_rows():
        members = {
            "name": name,
            "opt_level": level,
            "options": tuple(option for option, _, _ in options),
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
