"""What is shorter to write in Python: variables, constants, parsing, arithmetic on expressions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from relay import _core, _signatures, op
from relay._build import refuse
from relay._errors import wrong
from relay._indexing import index_tensor
from relay._wrappers import call


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

    Without a dtype an array keeps its own; Python's floats are float32 and its integers int32. With
    one, nothing may be lost but the last digits of floats.
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


# ---- Operators of Python on expressions ----------------------------------------------------------

_ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "pow": "power", "mod": "mod", "floordiv": "floor_divide", "lshift": "left_shift",
    "rshift": "right_shift",
}  # fmt: skip
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_LOGIC = {"and": "and", "or": "or", "xor": "xor"}


def _no_value(what: str, instead: str):
    def method(self, *_):
        raise wrong(f"{what}: an expression has no value while the program is built; {instead}")

    return method


def _dtype(expr: _core.Expr, sign: str) -> str:
    kind = expr.checked_type
    if not isinstance(kind, _core.TensorType):
        raise wrong(f"{sign} needs a tensor of a known type, not {kind}")
    return kind.dtype


def _binary(name: str, swapped: bool = False):
    # The class outlives the interpreter's clean-up and must hold no node.
    def method(self, other):
        return call(name, other, self) if swapped else call(name, self, other)

    return method


def _bits(name: str, swapped: bool = False):
    def method(self, other):
        family = "logical" if _dtype(self, name) == "bool" else "bitwise"
        return _binary(f"{family}_{name}", swapped)(self, other)

    return method


def _invert(self):
    return call("logical_not" if _dtype(self, "~") == "bool" else "bitwise_not", self)


def _equal(self, other):
    """Identity, as for all nodes; what looks like a comparison of values is refused."""
    if isinstance(other, _core.Node) or other is None or isinstance(other, str):
        return _node_equal(self, other)
    raise wrong(
        "== compares expressions, not their values; relay.equal(x, y) is the operator, `x is y` "
        "asks whether they are the same"
    )


def _matmul(left, right):
    """NumPy's product of vectors, matrices and batches of them."""
    from relay._function import arrays, errors

    sides = [s if isinstance(s, _core.Expr) else _core.Constant(s) for s in (left, right)]
    if not all(isinstance(s.checked_type, _core.TensorType) for s in sides):
        raise wrong("@ needs tensors of known types")
    try:
        return arrays.product(*sides)
    except errors.Refusal as problem:
        raise wrong(problem.message) from None


def _num_results(expr: _core.Expr) -> int | None:
    """How many fields the expression has, None when it is not a tuple, or not known to be one."""
    if isinstance(expr, _core.Tuple):
        return len(expr.fields)
    kind = expr.checked_type
    if isinstance(kind, _core.TupleType):
        return len(kind.fields)
    if kind is None and isinstance(expr, _core.Call) and isinstance(expr.op, _core.Op):
        results = _signatures.RESULTS.get(expr.op.name)
        return results(_Attributes(expr)) if results else None
    return None


class _Attributes:
    """The attributes of a call by name."""

    def __init__(self, call: _core.Call) -> None:
        self._attrs = call.attrs

    def __getattr__(self, name: str) -> object:
        return getattr(self._attrs, name)


def _field(expr: _core.Expr, index: int) -> _core.Expr:
    return expr.fields[index] if isinstance(expr, _core.Tuple) else _core.TupleGetItem(expr, index)


def _get_item(self, index):
    """A field of a tuple, or a part of a tensor as NumPy would index it."""
    size = _num_results(self)
    if size is not None:
        if isinstance(index, slice):
            return _core.Tuple([_field(self, i) for i in range(size)[index]])
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise wrong(f"a tuple is indexed by a number, not {index!r}")
        if not -size <= index < size:
            raise IndexError(f"index {index} of a tuple with {size} fields")
        return _field(self, range(size)[index])
    if isinstance(self.checked_type, _core.TensorType):
        return _part(self, index)
    raise wrong(
        f"only tuples and tensors of known types are indexed, not {self.checked_type or 'this'}; "
        "give the variables types, or use relay.TupleGetItem"
    )


def _part(tensor: _core.Expr, index: object) -> _core.Expr:
    """Constant indices have their own error; the others are handled as in a relay.function."""
    from relay._function import errors, indexing

    items = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(item, (_core.Expr, np.ndarray, list)) for item in items):
        try:
            return index_tensor(tensor, index)
        except TypeError as problem:
            if all(isinstance(size, int) for size in tensor.shape):
                raise
            first = problem
    else:
        first = None
    try:
        return indexing.part_of(tensor, index)
    except errors.Refusal as problem:
        raise first or TypeError(problem.message) from None


def _length(self) -> int:
    size = _num_results(self)
    if size is not None:
        return size
    shape = getattr(self.checked_type, "shape", None)
    if shape and isinstance(shape[0], int):
        return shape[0]
    raise wrong(
        "len: only tuples and tensors whose first size is known have a length while the program is "
        "built; x.shape has a tensor's sizes"
    )


def _iterate(self) -> Iterator[_core.Expr]:
    size = _num_results(self)
    if size is None:
        raise wrong(
            "only a tuple can be iterated over while the program is built; relay.split gives the "
            "parts of a tensor"
        )
    return iter([_field(self, i) for i in range(size)])


_node_equal = _core.Expr.__eq__


def _astype(self: _core.Expr, dtype: object) -> _core.Call:
    """Returns the elements in another dtype."""
    return call("cast", self, dtype=dtype)


def _astext(self: _core.Expr) -> str:
    """Returns the text form."""
    return str(self)


def _install_operators() -> None:
    expr = _core.Expr
    known = set(op.list_op_names())
    for python, name in _ARITHMETIC.items():
        if name in known:
            setattr(expr, f"__{python}__", _binary(name))
            setattr(expr, f"__r{python}__", _binary(name, swapped=True))
    for python, name in _COMPARISONS.items():
        setattr(expr, f"__{python}__", _binary(name))
    for python, name in _LOGIC.items():
        setattr(expr, f"__{python}__", _bits(name))
        setattr(expr, f"__r{python}__", _bits(name, swapped=True))
    expr.__neg__ = lambda self: call("negative", self)
    expr.__abs__ = lambda self: call("abs", self)
    expr.__invert__ = _invert
    expr.__matmul__ = _matmul
    expr.__rmatmul__ = lambda self, other: _matmul(other, self)
    expr.__call__ = lambda self, *args: _core.Call(self, args)
    node_hash = expr.__hash__
    expr.__eq__ = _equal
    expr.__hash__ = node_hash
    expr.__getitem__ = _get_item
    expr.__len__ = _length
    expr.__iter__ = _iterate
    expr.astype = _astype
    expr.astext = _astext
    branch = "relay.If, relay.where and relay.logical_and, _or, _not are part of the program"
    number = "relay.cast is part of the program"
    expr.__bool__ = _no_value("if, and, or, not", branch)
    expr.__contains__ = _no_value("in", "relay.equal and relay.any are part of the program")
    expr.__int__ = _no_value("int()", number)
    expr.__float__ = _no_value("float()", number)
    expr.__round__ = lambda self: call("round", self)
    # An array on the left leaves the operation to the expression on the right.
    expr.__array_ufunc__ = None


# ---- Pickle and copy -----------------------------------------------------------------------------


def _module_of(text: str) -> _core.IRModule:
    return parse(text, "<pickle>")


def _body_of(text: str, free: int) -> _core.Expr:
    main = parse(text, "<pickle>")["main"]
    return main if free < 0 else main.body


def _reduce_expr(self) -> tuple:
    """As text: variables that are free in it are new ones in what is read again."""
    from relay.analysis import free_type_vars, free_vars

    free = free_vars(self)
    types = free_type_vars(_core.Function(free, self))
    is_closed = isinstance(self, _core.Function) and not free and not types
    whole = self if is_closed else _core.Function(free, self, type_params=types)
    return _body_of, (_core.IRModule.from_expr(whole).astext(), -1 if is_closed else len(free))


def _install_pickle() -> None:
    # Programs do not change, so that a copy is the program itself.
    for cls in (_core.IRModule, _core.Node):
        cls.__copy__ = lambda self: self
        cls.__deepcopy__ = lambda self, memo: self
    _core.IRModule.__reduce__ = lambda self: (_module_of, (self.astext(),))
    _core.Expr.__reduce__ = _reduce_expr
    _core.Type.__reduce__ = lambda self: (parse_type, (str(self),))


_install_operators()
_install_pickle()
