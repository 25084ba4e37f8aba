"""Relay: a compiler for machine-learning programs.

    mod, params = relay.frontend.from_onnx("resnet50.onnx")
    exe = relay.build(mod, params=params)
    probabilities = exe(image)
    exe.export_library("resnet50.so")

Operators are functions named as in the registry: `relay.add`, `relay.nn.conv2d`.
"""

from __future__ import annotations

from typing import Any as _Any

from relay import _wrappers
from relay import _core, frontend, op, prelude, random, runtime, transform
from relay._build import Executable, build, optimize
from relay._core import (
    Call,
    Constant,
    Constructor,
    ConstructorValue,
    Diagnostic,
    Expr,
    FuncType,
    Function,
    GlobalVar,
    If,
    InternalError,
    IRModule,
    Let,
    Match,
    Node,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    RelayError,
    RunError,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeVar,
    UserError,
    Var,
    structural_equal,
)
from relay._expr import const, parse, parse_type, var
from relay._executor import create_executor

__version__ = _core.__version__

_wrappers.install(globals())

__all__ = [name for name in globals() if not name.startswith("_") and name != "annotations"]


def __getattr__(name: str) -> _Any:
    raise _wrappers.absent("relay", name)
