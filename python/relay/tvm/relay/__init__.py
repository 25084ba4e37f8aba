"""The first Relay's `tvm.relay`: the names of `relay`, over modules that change.

Names that are the same here and there are `relay`'s own: expressions, types, operators, patterns.
Functions that take or return modules take and return `tvm.IRModule`, and arrays as NDArrays.
"""

from __future__ import annotations

import inspect
import typing

import relay as _relay
from relay import _core
from relay._absent import absent
from relay._ir import type_functor as _type_functor
from relay.tvm import transform as transform
from relay.tvm._exchange import View, adapt, given, returned
from relay.tvm.ir.module import IRModule as _IRModule
from relay.tvm.relay import backend as backend
from relay.tvm.relay import build_module as build_module
from relay.tvm.relay import vm as vm
from relay.tvm.relay.build_module import (
    bind_params_by_name as bind_params_by_name,
)
from relay.tvm.relay.build_module import (
    build as build,
)
from relay.tvm.relay.build_module import (
    build_config as build_config,
)
from relay.tvm.relay.build_module import (
    create_executor as create_executor,
)
from relay.tvm.relay.build_module import (
    optimize as optimize,
)
from relay.tvm.runtime.params import (
    load_param_dict as load_param_dict,
)
from relay.tvm.runtime.params import (
    save_param_dict as save_param_dict,
)


class _TypeVarKind(type):
    """Makes `TypeVar(name, kind)` and `isinstance(t, TypeVar)` mean Relay's class."""

    def __call__(cls, name: str, kind: int = _type_functor.TypeKind.Type) -> typing.Any:
        return _core.TypeVar(name, kind == _type_functor.TypeKind.ShapeVar)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _core.TypeVar)


class TypeVar(metaclass=_TypeVarKind):
    """A type parameter of a function or data type; with TypeKind.ShapeVar, a dimension."""


class Prelude(_relay.Prelude):
    """The prelude in a module: its types, constructors and functions are attributes."""

    def __init__(self, mod: _IRModule | None = None) -> None:
        handle = _IRModule() if mod is None else mod
        super().__init__(given(handle))
        handle._module, self.mod = self.mod, handle

    def _define(self, source: _core.IRModule) -> None:
        self.mod.update(returned(source))


def fromtext(source: str, source_name: str = "from_string") -> typing.Any:
    """Returns the module of a text; the expression if it has no definitions."""
    return returned(_relay.fromtext(source, source_name))


def _view(name: str, **own: typing.Any) -> View:
    return View(f"{__name__}.{name}", f"relay.{name}", **own)


analysis, dataflow_pattern, quantize, frontend, data_dep_optimization = map(
    _view, ("analysis", "dataflow_pattern", "quantize", "frontend", "data_dep_optimization")
)
# Modules of `relay.testing`, which is imported when a program reads a name of it.
NETWORKS = {
    name: _view(f"testing.{name}")
    for name in (
        "densenet", "dcgan", "dqn", "inception_v3", "init", "layers", "lstm", "mlp", "mobilenet",
        "nat", "resnet", "resnet_3d", "squeezenet", "synthetic", "vgg",
    )
}  # fmt: skip
testing = _view("testing", **NETWORKS)

# Files of the first Relay that programs imported names from; the names are those of the package.
_FILES = (
    "adt", "base", "expr", "expr_functor", "function", "param_dict", "scope_builder", "ty",
    "type_functor",
)  # fmt: skip


class _File(View):
    """A file of the first Relay's package, whose names are the package's."""

    def __getattr__(self, name: str) -> typing.Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_package, name)


import sys as _sys  # noqa: E402

_package = _sys.modules[__name__]
globals().update({name: _File(f"{__name__}.{name}", _relay) for name in _FILES})
prelude = _view("prelude", Prelude=Prelude)


def __getattr__(name: str) -> typing.Any:
    if name == "tvm" or name.startswith("__"):
        raise absent("relay.tvm.relay", name)
    value = getattr(_relay, name)
    if inspect.isfunction(value) and value.__module__ in _TAKE_MODULES:
        value = adapt(value)
    globals()[name] = value
    return value


# Modules of Relay whose functions take or return modules.
_TAKE_MODULES = ("relay._expr", "relay._ir.names", "relay._pass.transformed")
