"""Variables, constants, programs from text; copying and pickling of programs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from relay import _core
from relay._errors import refuse, wrong
from relay.analysis import free_type_vars, free_vars


def var(
    name_hint: str,
    type_annotation: _core.Type | str | None = None,
    shape: Sequence | None = None,
    dtype: str = "float32",
) -> _core.Var:
    """Returns a new variable; of a tensor type when `shape` is given.

    A dimension is a size, a `TypeVar` (a named dimension) or None (known at run time only).
    """
    if type_annotation is not None and shape is not None:
        raise wrong("var() takes a type or a shape, not both")
    if isinstance(type_annotation, str):
        type_annotation = _core.parse_type(type_annotation)
    if shape is not None:
        type_annotation = _core.TensorType(shape, dtype)
    return _core.Var(name_hint, type_annotation)


def const(value: object, dtype: object = None) -> _core.Constant:
    """Returns a constant with a copy of the value's elements.

    Without a dtype an array keeps its own; Python's floats are float32 and its integers int32. With one, only
    floats may be rounded.
    """
    if dtype is None and type(value) in (float, int, list, tuple):
        found = np.asarray(value).dtype
        dtype = {"int64": "int32", "float64": "float32"}.get(found.name, found.name)
        if found.kind == "U":
            dtype = "string"
    return _core.Constant(value, dtype)


def parse(
    source: str,
    source_name: str | os.PathLike[str] = "<text>",
    init_module: None = None,
    init_meta_table: None = None,
) -> _core.IRModule:
    """Returns the typed module of a `.relay` text; messages name it `source_name`.

    The other parameters are those of the first Relay, and are refused if they are given.
    """
    refuse("relay.parse", {"init_module": init_module, "init_meta_table": init_meta_table})
    return _core.parse(source, os.fspath(source_name))


def parse_type(text: str) -> _core.Type:
    """Returns a type from its text, "Tensor[(1, 3), float32]"."""
    return _core.parse_type(text)


# ---- Pickle and copy -----------------------------------------------------------------------------


def _module_of(text: str) -> _core.IRModule:
    return parse(text, "<pickle>")


def _body_of(text: str, free: int) -> _core.Expr:
    main = parse(text, "<pickle>")["main"]
    return main if free < 0 else main.body


def _reduce_expr(self) -> tuple:
    """Pickles as text; free variables are new variables in the copy."""
    free = free_vars(self)
    types = free_type_vars(_core.Function(free, self))
    is_closed = isinstance(self, _core.Function) and not free and not types
    whole = self if is_closed else _core.Function(free, self, type_params=types)
    return _body_of, (_core.IRModule.from_expr(whole).astext(), -1 if is_closed else len(free))


def _install_pickle() -> None:
    # Programs are immutable: a copy is the program itself.
    for cls in (_core.IRModule, _core.Node):
        cls.__copy__ = lambda self: self
        cls.__deepcopy__ = lambda self, memo: self
    _core.IRModule.__reduce__ = lambda self: (_module_of, (self.astext(),))
    _core.Expr.__reduce__ = _reduce_expr
    _core.Type.__reduce__ = lambda self: (parse_type, (str(self),))


_install_pickle()
