"""What is shorter to write in Python: variables, constants, parsing, arithmetic on expressions."""

from __future__ import annotations

import os
from collections.abc import Sequence

from relay import _core, op


def var(
    name: str,
    type_annotation: _core.Type | str | None = None,
    shape: Sequence | None = None,
    dtype: str = "float32",
) -> _core.Var:
    """Returns a new variable; of a tensor type when `shape` is given.

    A dimension is a size, a `TypeVar` (a named dimension) or None (known at run time only).
    """
    if type_annotation is not None and shape is not None:
        raise TypeError("var() takes a type or a shape, not both")
    if isinstance(type_annotation, str):
        type_annotation = _core.parse_type(type_annotation)
    if shape is not None:
        type_annotation = _core.TensorType(shape, dtype)
    return _core.Var(name, type_annotation)


def const(value: object, dtype: object = None) -> _core.Constant:
    """Returns a constant with a copy of the value's elements.

    Without a dtype, Python's floats are float32 and its integers int32.
    """
    if dtype is None and isinstance(value, float):
        dtype = "float32"
    elif dtype is None and isinstance(value, int) and not isinstance(value, bool):
        dtype = "int32"
    return _core.Constant(value, dtype)


def parse(text: str, name: str = "<text>") -> _core.IRModule:
    """Returns the typed module of a `.relay` text; `name` is what messages call it."""
    return _core.parse(text, os.fspath(name))


def parse_type(text: str) -> _core.Type:
    """Returns a type from its text, "Tensor[(1, 3), float32]"."""
    return _core.parse_type(text)


def _binary(name: str, swapped: bool = False):
    # The class outlives the interpreter's clean-up and must hold no node.
    def method(self, other):
        return _core.Call(_core.op_node(name), [other, self] if swapped else [self, other])

    return method


_ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "pow": "power", "mod": "mod", "floordiv": "floor_divide",
}  # fmt: skip
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _install_operators() -> None:
    known = set(op.list_op_names())
    for python, name in _ARITHMETIC.items():
        if name in known:
            setattr(_core.Expr, f"__{python}__", _binary(name))
            setattr(_core.Expr, f"__r{python}__", _binary(name, swapped=True))
    for python, name in _COMPARISONS.items():
        if name in known:
            setattr(_core.Expr, f"__{python}__", _binary(name))
    if "negative" in known:
        _core.Expr.__neg__ = lambda self: _core.Call(_core.op_node("negative"), [self])
    _core.Expr.__call__ = lambda self, *args: _core.Call(self, args)
    _core.Tuple.__getitem__ = lambda self, index: self.fields[index]
    _core.Tuple.__len__ = lambda self: len(self.fields)


_install_operators()
