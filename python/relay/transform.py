"""Passes: each is a class whose objects map a module to a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay._absent import absent
from relay._pass.instruments import (
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    pass_instrument,
)
from relay._pass.known_passes import (
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
from relay._pass.passes import Pass, PassContext, PassInfo, Sequential
from relay._pass.python_passes import (
    ApplyPassToFunction,
    FunctionPass,
    ModulePass,
    PrintIR,
    add_pass,
    function_pass,
    module_pass,
    remove_pass,
)
from relay._pass.rows import PASSES as _PASSES
from relay._pass.transformed import (
    Axes as Axes,
)
from relay._pass.transformed import (
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

if TYPE_CHECKING:
    from relay._passes import *  # noqa: F403

build_config = PassContext


globals().update(_PASSES)

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
    *_PASSES,
]

if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.transform", name)
