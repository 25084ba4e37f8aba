"""The values that names stand for while a function is read: tensors of the program, and known Python objects.

Values are immutable. Each has a type. Types are joined where paths through a function meet; a value is
flattened into the expressions that are its leaves, and rebuilt from them:

    join(type_of(a), type_of(b))        the type of a value that is a or b
    flatten(a, type)                    the leaves of a, as that type has them
    unflatten(type, leaves)             a value of that type
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay import _core
from relay._function import prelude
from relay._function.operations.fitting import held
from relay._function.operations.ranges import Range
from relay._function.syntax.errors import VALUE, Refusal
from relay._ops.call import call

# Memory tokens: even numbers are tensors, odd ones lists and dictionaries.
_tokens = itertools.count(0, 2)
# Memory that the caller or Python outside the function holds as well: it must not be changed.
OUTSIDE = frozenset({-2, -1})
# Memory that values of data types hold: it must not be changed either.
HELD = frozenset({-4, -3})


def new_root() -> frozenset[int]:
    """Returns the token of a new tensor's memory."""
    return frozenset({next(_tokens)})


def new_list_root() -> frozenset[int]:
    """Returns the tokens of a new list's memory; the even number is that of its elements.

    Elements that are separate values have separate memory; those of a list of the prelude share the
    even number.
    """
    token = next(_tokens)
    return frozenset({token, token + 1})


def new_list_of(*lists: Value) -> frozenset[int]:
    """Returns the memory of a new list whose elements belong to other values."""
    return new_list_root().union(t for value in lists for t in value.roots if t % 2 == 0)


def item_roots(chain: Chain) -> frozenset[int]:
    """Returns the memory of an element of a list of the prelude; a list as element has list memory."""
    return frozenset(t for t in chain.roots if t % 2 == 0) | {next(_tokens) + 1}


def renewed(value: Value, tokens: dict[int, int]) -> Value:
    """Returns the value with its memory tokens replaced."""
    if not value.roots & tokens.keys():
        return value

    def new(roots: frozenset[int]) -> frozenset[int]:
        return frozenset(tokens.get(t, t) for t in roots)

    if isinstance(value, (Tuple, List)):
        items = tuple(renewed(item, tokens) for item in value.items)
        return dataclasses.replace(value, items=items, own=new(value.own))
    return dataclasses.replace(value, roots=new(value.roots))


def fresh_token(like: int = 0) -> int:
    """Returns a new token of the same kind."""
    return next(_tokens) + like % 2


def fresh_tokens(changed: frozenset[int]) -> dict[int, int]:
    """Returns a new token for each token, of the same kind."""
    return {t: fresh_token(t) for t in changed}


def slots_of(value: Value, key: tuple = ()) -> Iterator[tuple[tuple, frozenset[int]]]:
    """Returns the memory of each part of a value that may change in place, by its path."""
    if isinstance(value, (Tuple, List)):
        if value.own:
            yield (*key, "own"), value.own
        for i, item in enumerate(value.items):
            yield from slots_of(item, (*key, i))
    elif not (isinstance(value, Tensor) and not value.shape) and value.roots:
        yield key, value.roots


def placed(value: Value, likes: Sequence[Value], more: dict[tuple, set[int]], key: tuple) -> Value:
    """Returns the value in the union of the others' memory and of what `more` gives for its parts."""
    if isinstance(value, (Tuple, List)):
        count = len(value.items)
        alike = all(isinstance(v, (Tuple, List)) and len(v.items) == count for v in likes)
        items = tuple(
            placed(item, [v.items[i] for v in likes] if alike else likes, more, (*key, i))
            for i, item in enumerate(value.items)
        )
        if not value.own:
            return dataclasses.replace(value, items=items)
        own = frozenset(t for v in likes for t in (v.own if alike else v.roots) if alike or t % 2)
        own = (own or value.own) | more.get((*key, "own"), set())
        return dataclasses.replace(value, items=items, own=own)
    if not isinstance(value, (Tensor, Chain)):
        return value
    roots = frozenset().union(*(v.roots for v in likes)) or value.roots
    roots |= more.get(key, set())
    if isinstance(value, Tensor):
        roots = frozenset(t for t in roots if t % 2 == 0)
    return dataclasses.replace(value, roots=roots)


def with_parts(value: Value, changes: Sequence[tuple[Value, Value]]) -> Value:
    """Returns the value with changed parts, recognised by identity, replaced by their new values."""
    for old, new in changes:
        if value is old:
            return new
    if not isinstance(value, (Tuple, List)):
        return value
    items = tuple(with_parts(item, changes) for item in value.items)
    if all(new is old for new, old in zip(items, value.items, strict=True)):
        return value
    return dataclasses.replace(value, items=items)


def given_up(value: Value) -> Value:
    """Returns the value in fresh memory: its caller gives it up, except lists of open length."""
    if isinstance(value, (Tuple, List)):
        own = new_list_root() if value.own else value.own
        return dataclasses.replace(value, items=tuple(map(given_up, value.items)), own=own)
    return dataclasses.replace(value, roots=new_root()) if isinstance(value, Tensor) else value


def own_of(value: Value) -> frozenset[int]:
    """Returns the memory that a change in place writes: that of a list, not of its elements."""
    is_list = isinstance(value, (List, Chain, Tuple))
    return frozenset(token for token in value.roots if bool(token % 2) == is_list)


_OPEN = _core.TensorType((None,)).shape[0]


def sizes_in(kind: _core.Type) -> tuple:
    """The sizes of a tensor type, None for `?`."""
    return tuple(None if size == _OPEN else size for size in kind.shape)


class Value:
    """A value; `roots` are the tokens of memory that it may share, empty for immutable values."""

    roots: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Static(Value):
    """A known Python object: a number, a string, None, a function, a module."""

    obj: Any


@dataclass(frozen=True, eq=False)
class Size(Value):
    """A symbolic size, or arithmetic of symbolic sizes: x.shape[0]."""

    dim: Any


@dataclass(frozen=True, eq=False)
class Tensor(Value):
    """A tensor of the program.

    weak: it is a Python number, whose dtype yields to any other dtype.
    range: the known bounds of an integer.
    """

    expr: _core.Expr
    weak: bool = False
    roots: frozenset[int] = dataclasses.field(default_factory=new_root)
    range: Range | None = None

    @property
    def natural(self) -> bool:
        """Whether it is known to be non-negative."""
        return self.range is not None and self.range.is_natural

    @property
    def shape(self) -> tuple:
        """The sizes: numbers, symbolic sizes, or None for sizes known at run time only."""
        return sizes_in(self.expr.checked_type)

    @property
    def dtype(self) -> str:
        """The dtype of the tensor."""
        return self.expr.checked_type.dtype


@dataclass(frozen=True)
class Form:
    """The class and field names of a structure: a named tuple, data class, dictionary or plain object."""

    kind: str
    cls: type
    names: tuple

    def make(self, items: list) -> object:
        """Returns the structure with these items."""
        named = dict(zip(self.names, items, strict=True))
        if self.kind == "dict":
            return named
        if self.kind == "object":
            made = self.cls.__new__(self.cls)
            vars(made).update(named)
            return made
        return self.cls(**named)


@dataclass(frozen=True, eq=False)
class Tuple(Value):
    """A structure with a known number of parts; a dictionary is mutable."""

    items: tuple
    form: Form | None = None
    own: frozenset[int] = frozenset()

    @property
    def is_dict(self) -> bool:
        """Whether it stands for a dictionary."""
        return self.form is not None and self.form.kind == "dict"

    @property
    def roots(self) -> frozenset[int]:
        return self.own.union(*(item.roots for item in self.items))

    def named(self, name: object) -> Value | None:
        """Returns the item of that name, None where there is none."""
        if self.form is None or name not in self.form.names:
            return None
        return self.items[self.form.names.index(name)]


@dataclass(frozen=True, eq=False)
class List(Value):
    """A list of known length."""

    items: tuple
    own: frozenset[int] = dataclasses.field(default_factory=new_list_root)

    @property
    def roots(self) -> frozenset[int]:
        return self.own.union(*(item.roots for item in self.items))


@dataclass(frozen=True, eq=False)
class Chain(Value):
    """A list of the prelude, of any length; `backward`: the last element is the head."""

    expr: _core.Expr
    item: Type
    backward: bool = False
    roots: frozenset[int] = dataclasses.field(default_factory=new_list_root)


@dataclass(frozen=True, eq=False)
class Data(Value):
    """A value of a relay.data class."""

    expr: _core.Expr
    cls: type


@dataclass(frozen=True, eq=False)
class Reference(Value):
    """A reference of the program, to values of a type."""

    expr: _core.Expr
    item: Type


@dataclass(frozen=True, eq=False)
class Closure(Value):
    """A function within the function; its free names are looked up in `frame` when it is called."""

    node: ast.FunctionDef | ast.Lambda
    frame: Any
    defaults: dict

    def __repr__(self) -> str:
        return f"the function {getattr(self.node, 'name', 'lambda')} of line {self.node.lineno}"


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function of the program, which is called when it runs."""

    expr: _core.Expr
    kind: FunctionType


@dataclass(frozen=True, eq=False)
class Derivative(Value):
    """A function transform, such as the derivative by some arguments; see derived.py."""

    kind: str
    function: Value
    argnums: int | tuple[int, ...] = 0
    has_aux: bool = False


class PythonFunction:
    """The base of `relay.RelayFunction`, by which values and calls recognise one."""

    # What it is the derivative of, if it is one.
    derivative: Derivative | None = None


@dataclass(frozen=True)
class NamedAxes:
    """The batch axes of the parts of a structure with named parts."""

    axes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Batch(Derivative):
    """A batched function and its batch axes; see reading/batches.py."""

    in_axes: Any = 0
    out_axes: Any = 0


@dataclass(frozen=True, eq=False)
class Clash(Value):
    """A variable without a value: reading it is an error with this code, message and help."""

    code: str
    message: str
    help: str = ""


# ---- Types ---------------------------------------------------------------------------------------


class Type:
    pass


@dataclass(frozen=True)
class TensorType(Type):
    dtype: str
    shape: tuple
    weak: bool = False

    def __str__(self) -> str:
        text = str(_core.TensorType(self.shape, self.dtype))
        return f"{text} (a Python number)" if self.weak else text


@dataclass(frozen=True)
class StaticType(Type):
    """The type of one known object; objects of built-in types compare by value."""

    key: object
    obj: Any = dataclasses.field(compare=False)

    def __str__(self) -> str:
        if isinstance(self.obj, (Tensor, Tuple, List)):
            return "constants"
        shown = repr(self.obj)
        # An address in a message is no information.
        return f"an object of class {type(self.obj).__name__}" if " at 0x" in shown else shown


@dataclass(frozen=True)
class SizeType(Type):
    dim: Any

    def __str__(self) -> str:
        return f"the size {self.dim}"


@dataclass(frozen=True)
class TupleType(Type):
    items: tuple
    form: Form | None = None

    def __str__(self) -> str:
        name = "" if self.form is None else self.form.cls.__name__
        return f"{name}({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class ListType(Type):
    items: tuple

    def __str__(self) -> str:
        return f"a list of {len(self.items)}"


@dataclass(frozen=True)
class ChainType(Type):
    item: Type
    backward: bool = False

    def __str__(self) -> str:
        return f"list[{self.item}]"


@dataclass(frozen=True)
class DataType(Type):
    cls: type

    def __str__(self) -> str:
        return self.cls.__name__


@dataclass(frozen=True)
class RefType(Type):
    item: Type

    def __str__(self) -> str:
        return f"ref({self.item})"


@dataclass(frozen=True, eq=False)
class FunctionType(Type):
    """The type of a function value. Names of parameters are not compared: they serve calls in the program."""

    core: _core.FuncType
    kinds: dict[str, Type]
    returned: Type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionType) and _core.structural_equal(self.core, other.core)

    def __hash__(self) -> int:
        return hash((FunctionType, len(self.kinds)))

    def __str__(self) -> str:
        return str(self.core)


@dataclass(frozen=True)
class ClashType(Type):
    clash: Clash

    def __str__(self) -> str:
        return self.clash.message


class Mismatch(Exception):
    """Two types have no common supertype."""


_PLAIN = (int, float, bool, str, bytes, type(None), slice, type(...))


def type_of(value: Value) -> Type:
    if isinstance(value, Tensor):
        kind = value.expr.checked_type
        return TensorType(kind.dtype, sizes_in(kind), value.weak)
    if isinstance(value, Static):
        return static_type(value.obj)
    if isinstance(value, Size):
        return SizeType(value.dim)
    if isinstance(value, Tuple):
        return TupleType(tuple(type_of(item) for item in value.items), value.form)
    if isinstance(value, List):
        return ListType(tuple(type_of(item) for item in value.items))
    if isinstance(value, Chain):
        return ChainType(value.item, value.backward)
    if isinstance(value, Data):
        return DataType(value.cls)
    if isinstance(value, Reference):
        return RefType(value.item)
    if isinstance(value, Function):
        return value.kind
    if isinstance(value, Clash):
        return ClashType(value)
    return StaticType(id(value), value)


def static_type(obj: object) -> StaticType:
    if isinstance(obj, _PLAIN):
        return StaticType((type(obj), repr(obj)), obj)
    return StaticType(id(obj), obj)


def number_type(obj: object) -> TensorType | None:
    """Returns the type of a Python number in the program."""
    if isinstance(obj, bool):
        return TensorType("bool", (), True)
    if isinstance(obj, int):
        return TensorType("int64", (), True)
    return TensorType("float64", (), True) if isinstance(obj, float) else None


def is_text(value: Value) -> bool:
    """Whether it is a tensor of strings, or a known string."""
    if isinstance(value, Tensor):
        return value.dtype == "string"
    return isinstance(value, Static) and isinstance(value.obj, str)


def as_text(kind: Type) -> Type:
    """Returns the run-time type of a known string, any other type unchanged."""
    known = isinstance(kind, StaticType) and isinstance(kind.obj, str)
    return TensorType("string", (), True) if known else kind


def widen(kind: Type) -> Type:
    """Returns the type of a variable that changes: known numbers become run-time numbers."""
    if isinstance(kind, StaticType):
        return number_type(kind.obj) or kind
    if isinstance(kind, SizeType):
        return TensorType("int64", (), True)
    if isinstance(kind, TupleType):
        # Numbers of an object are constructor arguments: they stay known.
        keeps = kind.form is not None and kind.form.kind in ("dataclass", "object")
        items = (i if keeps and isinstance(i, StaticType) else widen(i) for i in kind.items)
        return TupleType(tuple(items), kind.form)
    if isinstance(kind, ListType):
        return ListType(tuple(map(widen, kind.items)))
    return kind


def opened(kind: Type) -> Type:
    """Returns the type with computed sizes made open.

    In a recursive function, n cannot be inferred from a tensor of size n + 1 alone.
    """
    if isinstance(kind, TensorType):
        sizes = (None if isinstance(size, _core.Dim) else size for size in kind.shape)
        return TensorType(kind.dtype, tuple(sizes), kind.weak)
    if isinstance(kind, TupleType):
        return TupleType(tuple(map(opened, kind.items)), kind.form)
    return ListType(tuple(map(opened, kind.items))) if isinstance(kind, ListType) else kind


def join(a: Type, b: Type) -> Type:
    """Returns the common supertype; raises Mismatch where there is none."""
    if a == b:
        return a
    for clash in (a, b):
        if isinstance(clash, ClashType):
            return clash
    if isinstance(a, (ListType, ChainType)) and isinstance(b, (ListType, ChainType)):
        return _join_lists(a, b)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.items) != len(b.items) or a.form != b.form:
            raise Mismatch
        return TupleType(tuple(map(join, a.items, b.items)), a.form)
    a, b = as_text(widen(a)), as_text(widen(b))
    if a == b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return _join_tensors(a, b)
    raise Mismatch


def _join_tensors(a: TensorType, b: TensorType) -> TensorType:
    if a.weak and b.weak and "string" not in (a.dtype, b.dtype):
        return TensorType(np.promote_types(a.dtype, b.dtype).name, (), True)
    if a.weak or b.weak:
        weak, other = (a, b) if a.weak else (b, a)
        if not fits_weakly(weak.dtype, other.dtype):
            raise Mismatch
        return other
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        raise Mismatch
    sizes = (x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
    return TensorType(a.dtype, tuple(sizes))


def kind_of(dtype: str) -> str:
    """Returns b, i, f or s: bool, integer, float or string."""
    if dtype in ("string", "bool"):
        return dtype[0]
    return "f" if "float" in dtype else "i"


def fits_weakly(number: str, dtype: str) -> bool:
    """Whether a Python number of the first dtype converts to the second."""
    mine, other = kind_of(number), kind_of(dtype)
    return mine == other or (mine == "i" and other == "f")


def forward(kind: Type) -> Type:
    """Returns the type with its lists in forward order, as functions pass them."""
    if isinstance(kind, ChainType):
        return ChainType(forward(kind.item))
    if isinstance(kind, TupleType):
        return TupleType(tuple(map(forward, kind.items)), kind.form)
    return ListType(tuple(map(forward, kind.items))) if isinstance(kind, ListType) else kind


def _join_lists(a: Type, b: Type) -> Type:
    if isinstance(a, ListType) and isinstance(b, ListType) and len(a.items) == len(b.items):
        try:
            return ListType(tuple(map(join, a.items, b.items)))
        except Mismatch:
            pass
    items = []
    for kind in (a, b):
        found = map(widen, kind.items) if isinstance(kind, ListType) else [kind.item]
        items += map(forward, found)
    if not items:
        raise Mismatch
    item = items[0]
    for other in items[1:]:
        item = join(item, other)
    # A list that grows at its end is stored in reverse.
    return ChainType(item, any(isinstance(k, ChainType) and k.backward for k in (a, b)))


# ---- Leaves --------------------------------------------------------------------------------------


def leaf_types(kind: Type) -> list[_core.Type]:
    """Returns the types of a value's leaves."""
    if isinstance(kind, TensorType):
        return [_core.TensorType(kind.shape, kind.dtype)]
    if isinstance(kind, (TupleType, ListType)):
        return [leaf for item in kind.items for leaf in leaf_types(item)]
    if isinstance(kind, ChainType):
        return [prelude.list_of(packed_type(kind.item))]
    if isinstance(kind, DataType):
        return [kind.cls.__relay_type__.header]
    if isinstance(kind, RefType):
        return [_core.RefType(packed_type(kind.item))]
    return [kind.core] if isinstance(kind, FunctionType) else []


def packed_type(kind: Type) -> _core.Type:
    leaves = leaf_types(kind)
    return leaves[0] if len(leaves) == 1 else _core.TupleType(leaves)


def pack(leaves: list[_core.Expr]) -> _core.Expr:
    """Returns one expression that holds the leaves."""
    return leaves[0] if len(leaves) == 1 else _core.Tuple(leaves)


def unpack(expr: _core.Expr, kind: Type, roots: frozenset[int] | None = None) -> Value:
    """Returns the value that one expression holds; `roots` as for `unflatten`."""
    count = len(leaf_types(kind))
    if count == 1:
        return unflatten(kind, iter([expr]), roots)
    return unflatten(kind, iter([_core.TupleGetItem(expr, i) for i in range(count)]), roots)


def flatten(value: Value, kind: Type) -> list[_core.Expr]:
    """Returns the leaves of a value converted to a supertype of its type."""
    if isinstance(kind, TensorType):
        return [_as_tensor(value, kind)]
    if isinstance(kind, (TupleType, ListType)):
        pairs = zip(value.items, kind.items, strict=True)
        return [leaf for item, of in pairs for leaf in flatten(item, of)]
    if isinstance(kind, ChainType):
        return [as_chain(value, kind).expr]
    return [value.expr] if isinstance(kind, (DataType, RefType, FunctionType)) else []


def unflatten(
    kind: Type, leaves: Iterator[_core.Expr], roots: frozenset[int] | None = None
) -> Value:
    """Builds a value of a type from its leaves; `roots`: its memory, None for fresh memory."""
    if isinstance(kind, TensorType):
        expr = next(leaves)
        if roots is None:
            return Tensor(expr, kind.weak)
        return Tensor(expr, kind.weak, frozenset(r for r in roots if r % 2 == 0))
    if isinstance(kind, TupleType):
        made = Tuple(tuple(unflatten(item, leaves, roots) for item in kind.items), kind.form)
        if not made.is_dict:
            return made
        own = new_list_root() if roots is None else frozenset(r for r in roots if r % 2)
        return dataclasses.replace(made, own=own)
    if isinstance(kind, ListType):
        items = tuple(unflatten(item, leaves, roots) for item in kind.items)
        return List(items, new_list_root() if roots is None else roots)
    if isinstance(kind, ChainType):
        expr = next(leaves)
        item = _sized(kind.item, expr.checked_type)
        return Chain(expr, item, kind.backward, new_list_root() if roots is None else roots)
    if isinstance(kind, DataType):
        return Data(next(leaves), kind.cls)
    if isinstance(kind, RefType):
        return Reference(next(leaves), kind.item)
    if isinstance(kind, FunctionType):
        return Function(next(leaves), kind)
    if isinstance(kind, SizeType):
        return Size(kind.dim)
    if isinstance(kind, ClashType):
        return kind.clash
    return kind.obj if isinstance(kind.obj, Value) else Static(kind.obj)


def _sized(item: Type, list_type: _core.Type) -> Type:
    """Returns the element type with the sizes that the list's type gives."""
    of = list_type.args[0]
    fields = of.fields if len(leaf_types(item)) != 1 else [of]
    return _with_sizes(item, iter(fields))


def _with_sizes(kind: Type, leaves: Iterator[_core.Type]) -> Type:
    if isinstance(kind, TensorType):
        return TensorType(kind.dtype, sizes_in(next(leaves)), kind.weak)
    if isinstance(kind, TupleType):
        return TupleType(tuple(_with_sizes(item, leaves) for item in kind.items), kind.form)
    if isinstance(kind, ListType):
        return ListType(tuple(_with_sizes(item, leaves) for item in kind.items))
    if isinstance(kind, ChainType):
        return ChainType(_sized(kind.item, next(leaves)), kind.backward)
    if isinstance(kind, (DataType, RefType)):
        next(leaves)
    return kind


def annotated(expr: _core.Expr, kind: _core.Type) -> _core.Expr:
    """Returns the expression annotated with a type that knows fewer sizes."""
    if expr.checked_type == kind:
        return expr
    v = _core.Var("wide", kind)
    return _core.Let(v, expr, v)


def _as_tensor(value: Value, kind: TensorType) -> _core.Expr:
    expr = converted(value, kind.dtype)
    if kind.shape and not sizes_in(expr.checked_type):
        if None in kind.shape:
            raise Mismatch
        return call("broadcast_to", expr, shape=list(kind.shape))
    return annotated(expr, _core.TensorType(kind.shape, kind.dtype))


# The operators of computed sizes.
_SUM, _PRODUCT = 0, 2


def size_expr(dim: Any) -> _core.Expr:
    """Returns a size, or a difference of sizes, as an int64: read from empty tensors' shapes, at no cost."""
    if isinstance(dim, int):
        return _core.Constant(dim, "int64")
    if (taken := _taken(dim)) != 0:
        return call("subtract", size_expr(dim + taken), size_expr(taken))
    shape = call("shape_of", call("zeros", shape=[dim, 0], dtype="bool"), dtype="int64")
    return call("take", shape, _core.Constant(0, "int64"), axis=0)


def _taken(dim: Any) -> Any:
    """Returns what a sum of sizes takes away: 1 of n - 1, which is negative where n is 0."""
    taken: Any = 0
    rest = [dim]
    while rest:
        part = rest.pop()
        op = getattr(part, "op", None)
        if op == _SUM:
            rest += [part.a, part.b]
        elif getattr(part.a if op == _PRODUCT else part, "value", 0) < 0:
            taken = taken - part
    return taken


def as_expr(value: Value, dtype: str | None = None) -> _core.Expr:
    """Returns the expression of a tensor, number or size; a number gets `dtype`, if it is given."""
    if isinstance(value, (Tensor, Chain, Data)):
        return value.expr
    if isinstance(value, Size):
        return size_expr(value.dim)
    if isinstance(value, Static) and (kind := number_type(value.obj)) is not None:
        # A bool in a number's position is a number.
        obj = int(value.obj) if kind.dtype == "bool" and dtype not in (None, "bool") else value.obj
        try:
            return _core.Constant(obj, dtype or kind.dtype)
        except TypeError:
            raise Refusal(
                VALUE,
                f"{value.obj} is not a value of {dtype or kind.dtype}",
                help="np.float64(...) and the like say the dtype of a number",
            ) from None
    if dtype in (None, "string") and is_text(value):
        return _core.Constant(value.obj)
    if isinstance(value, (Tuple, List)):
        return _core.Tuple([as_expr(item) for item in value.items])
    raise Mismatch


def converted(value: Value, dtype: str) -> _core.Expr:
    """Returns the expression of a tensor, number or size, converted to a dtype."""
    expr = as_expr(value, dtype)
    if expr.checked_type.dtype == dtype:
        return expr
    if isinstance(value, Size) or (isinstance(value, Tensor) and value.weak):
        return held(expr, range_of(value), dtype)
    return call("cast", expr, dtype=dtype)


def range_of(value: Value) -> Range | None:
    """Returns the known bounds of an integer."""
    if isinstance(value, Tensor):
        return value.range
    if isinstance(value, Size):
        return Range(value.dim, value.dim)
    if isinstance(value, Static) and type(value.obj) is int:
        return Range(value.obj, value.obj)
    return None


def as_chain(value: Value, kind: ChainType) -> Chain:
    """Returns a list of the prelude with elements of that type, in that order."""
    if isinstance(value, Chain):
        expr, item = value.expr, value.item
        if packed_type(item) != packed_type(kind.item):
            expr = prelude.mapped(
                lambda x: pack(flatten(unpack(x, item), kind.item)),
                expr,
                packed_type(item),
                packed_type(kind.item),
            )
        if value.backward != kind.backward:
            expr = prelude.reverse(expr)
        return Chain(expr, kind.item, kind.backward, value.roots)
    expr = prelude.nil(packed_type(kind.item))
    for element in value.items if kind.backward else reversed(value.items):
        expr = prelude.cons(pack(flatten(element, kind.item)), expr)
    return Chain(expr, kind.item, kind.backward, value.roots)


# ---- Objects of Python ---------------------------------------------------------------------------


def form_of(obj: object) -> tuple[Form, list] | None:
    """Returns the form and the parts of a named tuple, data class instance, dictionary or plain object."""
    cls = type(obj)
    if isinstance(obj, tuple):
        fields = getattr(cls, "_fields", None)
        return None if fields is None else (Form("namedtuple", cls, tuple(fields)), list(obj))
    if cls is dict:
        if not all(isinstance(key, (str, int)) for key in obj):
            return None
        return Form("dict", dict, tuple(obj)), list(obj.values())
    if dataclasses.is_dataclass(cls):
        names = tuple(f.name for f in dataclasses.fields(cls))
        return Form("dataclass", cls, names), [getattr(obj, name) for name in names]
    # An object that is an array by itself, such as a table of another library, is not flattened.
    if hasattr(cls, "__array__"):
        return None
    plain = type(getattr(cls, "__dict__", None)).__name__ == "mappingproxy"
    if plain and hasattr(obj, "__dict__") and cls.__module__.partition(".")[0] not in _FOREIGN:
        return Form("object", cls, tuple(vars(obj))), list(vars(obj).values())
    return None


# Modules whose objects are not flattened.
_FOREIGN = {"builtins", "numpy", "relay", "types", "functools", "math", "typing", "enum", "torch"}


def is_array(obj: object) -> bool:
    """Whether it is a tensor of some library."""
    return isinstance(obj, (np.ndarray, np.generic)) or (
        hasattr(obj, "__dlpack__") and hasattr(obj, "shape") and not isinstance(obj, type)
    )


def lift(obj: object) -> Value:
    """Returns the value of a captured Python object; arrays become constants."""
    if isinstance(obj, Value):
        return obj
    if isinstance(obj, (_core.Function, _core.GlobalVar)) or hasattr(obj, "__relay_annotation__"):
        return Static(obj)
    if isinstance(obj, _core.Expr):
        return Tensor(obj, False, OUTSIDE - {-1})
    if isinstance(obj, np.generic) or is_array(obj):
        return Tensor(_core.Constant(obj), False, OUTSIDE - {-1})
    if type(obj) is tuple:
        return Tuple(tuple(map(lift, obj)))
    if type(obj) is list:
        return List(tuple(map(lift, obj)), OUTSIDE - {-2})
    if isinstance(obj, type) or (callable(obj) and not dataclasses.is_dataclass(obj)):
        formed = None if isinstance(obj, type) else _formed_callable(obj)
    else:
        formed = form_of(obj)
    if formed is None:
        return Static(obj)
    made = Tuple(tuple(map(lift, formed[1])), formed[0])
    return dataclasses.replace(made, own=OUTSIDE - {-2}) if made.is_dict else made


def _formed_callable(obj: object) -> tuple[Form, list] | None:
    """Returns the form of a layer: an object whose class has a compiled `__call__`."""
    return form_of(obj) if isinstance(type(obj).__dict__.get("__call__"), PythonFunction) else None
