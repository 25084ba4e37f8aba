"""Python's operators, indexing, len() and iteration on expressions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relay import _core
from relay._errors import wrong
from relay._function.operations import arrays, indexing
from relay._function.syntax import errors
from relay._ops import signatures
from relay._ops.call import call
from relay._ops.indexing import index_tensor
from relay.op import list_op_names

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
    # The class outlives the interpreter's clean-up, so the method must not hold a node.
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
    """Compares identity, as for all nodes; refuses comparisons with numbers and arrays."""
    if isinstance(other, _core.Node) or other is None or isinstance(other, str):
        return _node_equal(self, other)
    raise wrong(
        "== compares expressions, not their values; relay.equal(x, y) is the operator, `x is y` "
        "asks whether they are the same"
    )


def _matmul(left, right):
    """Returns NumPy's product of vectors, matrices and batches of them."""
    sides = [s if isinstance(s, _core.Expr) else _core.Constant(s) for s in (left, right)]
    if not all(isinstance(s.checked_type, _core.TensorType) for s in sides):
        raise wrong("@ needs tensors of known types")
    try:
        return arrays.product(*sides)
    except errors.Refusal as problem:
        raise wrong(problem.message) from None


def _num_results(expr: _core.Expr) -> int | None:
    """Returns the number of fields; None if the expression is not known to be a tuple."""
    if isinstance(expr, _core.Tuple):
        return len(expr.fields)
    kind = expr.checked_type
    if isinstance(kind, _core.TupleType):
        return len(kind.fields)
    if kind is None and isinstance(expr, _core.Call) and isinstance(expr.op, _core.Op):
        results = signatures.RESULTS.get(expr.op.name)
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
    """Returns a field of a tuple, or NumPy's indexing of a tensor."""
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
    """Indices that are known are checked here; expressions and arrays index as in a relay.function."""
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


def install() -> None:
    """Gives expressions the operators."""
    expr = _core.Expr
    known = set(list_op_names())
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


install()
