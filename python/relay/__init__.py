"""Relay: a compiler for machine-learning programs.

    mod, params = relay.frontend.from_onnx("resnet50.onnx")
    exe = relay.build(mod, params=params)
    probabilities = exe(image)
    exe.export_library("resnet50.so")

Operators are functions named as in the registry: `relay.add`, `relay.nn.conv2d`.
"""

from __future__ import annotations

import typing as _typing

# Imported for what they add: the text that nodes show, Python's operators on expressions, NumPy's loops.
from relay._function import numpy_loops as _numpy_loops
from relay._ir import (
    display as _display,
    expr_operators as _expr_operators,
    old_methods as _old_methods,
)

# `name as name`: what type checkers take for a part of the package.
from relay import (
    _absent,
    _core,
    adt as adt,
    analysis as analysis,
    data_dep_optimization as data_dep_optimization,
    dataflow_pattern as dataflow_pattern,
    external as external,
    frontend as frontend,
    loops as loops,
    op as op,
    plugins as plugins,
    prelude as prelude,
    quantize as quantize,
    random as random,
    runtime as runtime,
    te as te,
    transform as transform,
)
from relay._build import (
    Donation as Donation,
    Executable as Executable,
    Prepacked as Prepacked,
    build as build,
    optimize as optimize,
)
from relay._core import (
    Attrs as Attrs,
    Call as Call,
    Clause as Clause,
    Constant as Constant,
    Constructor as Constructor,
    ConstructorValue as ConstructorValue,
    Diagnostic as Diagnostic,
    Expr as Expr,
    FuncType as FuncType,
    Function as Function,
    FunctionValue as FunctionValue,
    GlobalTypeVar as GlobalTypeVar,
    GlobalVar as GlobalVar,
    If as If,
    InternalError as InternalError,
    IRModule as IRModule,
    Let as Let,
    Match as Match,
    Node as Node,
    Op as Op,
    PatternConstructor as PatternConstructor,
    PatternTuple as PatternTuple,
    PatternVar as PatternVar,
    PatternWildcard as PatternWildcard,
    RefCreate as RefCreate,
    RefRead as RefRead,
    RefType as RefType,
    RefValue as RefValue,
    RefWrite as RefWrite,
    RelayError as RelayError,
    RunError as RunError,
    TensorType as TensorType,
    Tuple as Tuple,
    TupleGetItem as TupleGetItem,
    TupleType as TupleType,
    Type as Type,
    TypeCall as TypeCall,
    TypeData as TypeData,
    TypeVar as TypeVar,
    ArgumentError as ArgumentError,
    UserError as UserError,
    Var as Var,
    structural_equal as structural_equal,
)
from relay._expr import const as const, parse as parse, parse_type as parse_type, var as var
from relay._executor import create_executor as create_executor
from relay._ir.expr_functor import (
    ExprFunctor as ExprFunctor,
    ExprMutator as ExprMutator,
    ExprVisitor as ExprVisitor,
)
from relay._function.annotations import Static as Static, Tensor as Tensor
from relay._function.data import data as data
from relay._function.derived import (
    grad as grad,
    hessian as hessian,
    hvp as hvp,
    jacobian as jacobian,
    jvp as jvp,
    value_and_grad as value_and_grad,
    vjp as vjp,
    vmap as vmap,
)
from relay._function.function import RelayFunction as RelayFunction, function as function
from relay._limits import limits as limits
from relay._ir.names import (
    Any_ as Any,
    CallWithFields as CallWithFields,
    FunctionWithFields as FunctionWithFields,
    IfWithFields as IfWithFields,
    LetWithFields as LetWithFields,
    Pattern as Pattern,
    ShapeVar as ShapeVar,
    TupleGetItemWithFields as TupleGetItemWithFields,
    TupleWithFields as TupleWithFields,
    astext as astext,
    bind as bind,
    bind_params_by_name as bind_params_by_name,
    fromtext as fromtext,
    load_param_dict as load_param_dict,
    parse_expr as parse_expr,
    pretty_print as pretty_print,
    save_param_dict as save_param_dict,
    scalar_type as scalar_type,
)
from relay._module import compile as compile
from relay._prim_func import PrimFunc as PrimFunc, parallel as parallel, prim_func as prim_func
from relay._prompt import repl as repl
from relay._register_op import register_op as register_op
from relay._ops.registered_op import RegisteredOp as RegisteredOp, unregister_op as unregister_op
from relay._ir.scope_builder import ScopeBuilder as ScopeBuilder, WithScope as WithScope
from relay._ir.type_functor import (
    TypeFunctor as TypeFunctor,
    TypeKind as TypeKind,
    TypeMutator as TypeMutator,
    TypeVisitor as TypeVisitor,
)
from relay.prelude import Prelude as Prelude
from relay.transform import build_config as build_config
from relay import distributions as distributions, train as train, tree as tree

__version__ = _core.__version__

# Type checkers read the module's stub, written when the extension module is built.
from relay._operators import *  # noqa: F403

for _kind in (kind for name, kind in vars(_core).items() if globals().get(name) is kind):
    # Messages of the binding name its classes as users find them.
    if isinstance(_kind, type) and _kind.__module__ == "relay._core":
        _kind.__module__ = "relay"

__all__ = [name for name in globals() if not name.startswith("_") and name != "annotations"]


if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        if name == "torch":
            # Importing this package does not import PyTorch; its part of the package does.
            import importlib

            return importlib.import_module("relay.torch")
        raise _absent.absent("relay", name)
