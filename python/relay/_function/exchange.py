"""Conversion between Python objects and the leaves of a compiled function's parameters and results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from relay import _core
from relay._function.bound import BoundMethod
from relay._function.reading.references import content_of, refused
from relay._function.syntax.errors import ANNOTATION, Refusal
from relay._function.values import (
    ChainType,
    DataType,
    FunctionType,
    ListType,
    RefType,
    StaticType,
    TensorType,
    TupleType,
    Type,
    form_of,
    is_array,
    leaf_types,
    number_type,
    static_type,
)
from relay._plural import counted
from relay._structure import Task, unwound

# The most elements of a list or tuple without annotation: each becomes a parameter.
_MAX_ITEMS = 2000


# NumPy's dtypes of strings: of fixed length, of any length, and object.
_TEXT_KINDS = "UTO"
_TEXT = "string"
# An attribute that compiled methods set on their class.
MODEL = "__relay_model__"


def key_of(obj: object, in_model: bool = False) -> object:
    """Returns the compilation key of an argument: dtype and rank, structure, known values.

    The key of a model includes the sizes.
    """
    kind = type(obj)
    if kind is np.ndarray or isinstance(obj, np.generic):
        dtype = _TEXT if obj.dtype.kind in _TEXT_KINDS else obj.dtype
        return dtype, obj.shape if in_model else obj.ndim
    if kind in (float, int, bool):
        return kind
    if kind is tuple or kind is list:
        return kind, tuple([key_of(item, in_model) for item in obj])
    if is_array(obj):
        sizes = tuple(obj.shape)
        return str(obj.dtype).rpartition(".")[2], sizes if in_model else len(sizes)
    if hasattr(kind, "__relay_data__"):
        return kind.__relay_data__
    if kind is _core.RefValue:
        return kind, key_of(obj.value, in_model)
    formed = form_of(obj)
    if formed is None:
        return _hashable(obj)
    form, parts = formed
    in_model = in_model or is_model(kind)
    known = (bool, int, float) if form.kind in ("dataclass", "object") else ()
    return form, tuple(
        [value_key(p) if isinstance(p, known) else key_of(p, in_model) for p in parts]
    )


def value_key(obj: object) -> object:
    """Returns the key of a known argument: equal for arguments that compile alike."""
    if isinstance(obj, float):
        # 0.0 and -0.0 differ; all NaNs are equal.
        return float, repr(obj)
    if isinstance(obj, np.ndarray):
        return obj.shape, obj.dtype, obj.tobytes()
    if isinstance(obj, (tuple, list)):
        return type(obj), tuple(map(value_key, obj))
    if isinstance(obj, dict):
        return dict, tuple((value_key(k), value_key(v)) for k, v in obj.items())
    return _hashable(obj)


def _hashable(obj: object) -> object:
    try:
        hash(obj)
    except TypeError:
        raise Refusal(
            ANNOTATION,
            f"an argument of type {type(obj).__name__} is not a tensor, number or structure of them",
            help="numpy.asarray(x) is its array" if hasattr(obj, "__array__") else "",
        ) from None
    return type(obj), obj


def is_model(cls: type) -> bool:
    """Whether a class has compiled methods: the sizes of its tensors are numbers."""
    return hasattr(cls, MODEL)


class Sizes(NamedTuple):
    """Which sizes of arguments are numbers: 1, which broadcasts, those of models, and those of the fields.

    Other sizes have names; equal sizes share a name.
    """

    # Every size.
    fixed: bool = False
    # The sizes of models: equal sizes of data are these numbers.
    of_models: frozenset[int] = frozenset()
    # Whether first axes, which may be batch axes, are named apart from the other sizes.
    batched: bool = False
    # Whether sizes of all axes but the first are numbers.
    others: bool = False

    def is_number(self, size: int, axis: int) -> bool:
        """Whether the size of an axis is compiled as a number."""
        if self.fixed or size == 1 or (axis > 0 and self.others):
            return True
        return size in self.of_models and (axis > 0 or not self.batched)

    def group(self, size: int, axis: int) -> tuple[int, bool]:
        """Returns the key that open sizes of one name share."""
        return size, self.batched and axis == 0

    def pattern(self, objs: Any) -> tuple[int, ...]:
        """Returns the sizes that are numbers, and negative numbers for the groups of equal open sizes."""
        seen: dict[tuple[int, bool], int] = {}
        return tuple(
            [
                size
                if in_model or self.is_number(size, axis)
                else seen.setdefault(self.group(size, axis), -1 - len(seen))
                for size, axis, in_model in _sizes_in(objs)
            ]
        )


def choices_of_sizes(objs: Any, fixed: bool) -> list[Sizes]:
    """Returns choices of sizes to make numbers, in order; the first for which the program types is taken.

    With a model among the arguments, fewer and fewer sizes of the data are open, the batch size to the last.
    """
    of_models = frozenset([size for size, _, in_model in _sizes_in(objs) if in_model])
    if fixed or not of_models:
        return [Sizes(fixed)]
    return [
        Sizes(False, of_models, batched, others)
        for others in (False, True)
        for batched in (True, False)
    ]


def _sizes_in(obj: object, in_model: bool = False) -> Iterator[tuple[int, int, bool]]:
    """Returns the sizes of all tensors in an argument, each with its axis and whether it is in a model."""
    if isinstance(obj, (np.generic, np.ndarray)) or is_array(obj):
        for axis, size in enumerate(obj.shape):
            yield size, axis, in_model
    elif isinstance(obj, (tuple, list)):
        for item in obj:
            yield from _sizes_in(item, in_model)
    elif (formed := form_of(obj)) is not None:
        yield from _sizes_in(formed[1], in_model or is_model(type(obj)))


class NamesOfSizes:
    """The sizes in the types of arguments: numbers and names."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self._names: dict[tuple[int, bool], Any] = {}

    def of(self, size: int, axis: int, name: str) -> object:
        """Returns the number or the name of the size of an axis."""
        if self.sizes.is_number(size, axis):
            return size
        group = self.sizes.group(size, axis)
        if group not in self._names:
            self._names[group] = _core.TypeVar(name)
        return self._names[group]


def _dtype_of(array: Any) -> str:
    """Returns the name of an array's dtype, "string" for dtypes of strings."""
    kind = getattr(array.dtype, "kind", "")
    texts = kind in ("U", "T") or (kind == "O" and all(isinstance(x, str) for x in array.flat))
    return _TEXT if texts else str(array.dtype).rpartition(".")[2]


def type_of_argument(obj: object, name: str, sizes: NamesOfSizes) -> Type:
    """Returns the type of an argument without annotation."""
    kind = type(obj)
    if isinstance(obj, (np.generic, np.ndarray)) or is_array(obj):
        dtype = _dtype_of(obj)
        shape = tuple(sizes.of(size, i, f"{name}{i}") for i, size in enumerate(obj.shape))
        try:
            _core.TensorType((), dtype)
        except TypeError:
            raise Refusal(
                ANNOTATION, f"'{name}' is of dtype {dtype}, which Relay does not have"
            ) from None
        return TensorType(dtype, shape)
    if (number := number_type(obj)) is not None:
        return number
    if kind is tuple or kind is list:
        if len(obj) > _MAX_ITEMS:
            raise Refusal(
                ANNOTATION,
                f"'{name}' has {counted(len(obj), 'element')}, each of which would be a parameter",
                expected=f"at most {_MAX_ITEMS}",
                help="annotate it, list[float] say: then it is of any length; or give an array",
            )
        items = tuple(type_of_argument(item, f"{name}_{i}_", sizes) for i, item in enumerate(obj))
        return TupleType(items) if kind is tuple else ListType(items)
    if hasattr(kind, "__relay_data__"):
        return DataType(kind.__relay_data__)
    if kind is _core.RefValue:
        item = content_of(type_of_argument(obj.value, name, NamesOfSizes(Sizes())))
        if item is None:
            raise refused(f"a reference to {type(obj.value).__name__}")
        return RefType(item)
    if kind is BoundMethod:
        raise Refusal(
            ANNOTATION,
            f"'{name}' is a method of an object, whose tensors would not change with the object's",
            help="give the object, and call its method: model.predict(x), say",
        )
    formed = form_of(obj)
    if formed is None:
        return static_type(obj)
    form, parts = formed
    known = form.kind in ("dataclass", "object")
    if is_model(kind):
        sizes = NamesOfSizes(Sizes(fixed=True))
    items = []
    for part, item in zip(form.names, parts, strict=True):
        if known and isinstance(item, (bool, int, float)):
            items.append(static_type(item))
        else:
            items.append(type_of_argument(item, f"{name}_{part}_", sizes))
    return TupleType(tuple(items), form)


def leaves_of(kind: Type, obj: Any) -> list[object]:
    """Returns the leaves of an argument in parameter order; values of data may have any depth."""
    made: dict[int, _core.ConstructorValue] = {}

    # Recursive over the type, not over the value.
    def collect(kind: Type, obj: Any, leaves: list) -> Task:
        if isinstance(kind, DataType):
            leaves.append((yield construct(kind, obj)))
        elif isinstance(kind, (TupleType, ListType)):
            for item, part in zip(kind.items, parts_of(kind, obj), strict=True):
                yield from collect(item, part, leaves)
        elif isinstance(kind, ChainType) and not isinstance(kind.item, TensorType):
            items = []
            for part in obj:
                items.append((yield pack(kind.item, part)))
            leaves.append(items)
        elif isinstance(kind, (TensorType, ChainType, RefType)):
            leaves.append(obj)

    def pack(kind: Type, obj: Any) -> Task:
        leaves: list = []
        yield from collect(kind, obj, leaves)
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    def construct(kind: DataType, obj: Any) -> Task:
        name = getattr(type(obj), "__relay_constructor__", None)
        if name is None or type(obj).__relay_data__ is not kind.cls:
            raise Refusal(
                ANNOTATION,
                "an argument is not of its data type",
                expected=str(kind),
                found=type(obj).__name__,
            )
        if id(obj) not in made:
            of = kind.cls.__relay_type__
            fields = []
            for field, part in of.fields[name].items():
                value = getattr(obj, field)
                if isinstance(part, DataType):
                    value = yield construct(part, value)
                elif not isinstance(part, TensorType):
                    value = yield pack(part, value)
                fields.append(value)
            made[id(obj)] = _core.ConstructorValue(of.constructors[name].name_hint, fields)
        return made[id(obj)]

    leaves: list[object] = []
    unwound(collect(kind, obj, leaves))
    return leaves


def parts_of(kind: Type, obj: Any) -> list:
    form = getattr(kind, "form", None)
    if form is None or form.kind == "namedtuple":
        return list(obj)
    if form.kind == "dict":
        return [obj[name] for name in form.names]
    return [getattr(obj, name) for name in form.names]


def is_plain(kind: Type) -> bool:
    """Whether the object is its only leaf."""
    return isinstance(kind, (TensorType, RefType, FunctionType)) or (
        isinstance(kind, ChainType) and isinstance(kind.item, TensorType)
    )


def maker(kind: Type) -> Callable[[Any], object] | None:
    """Returns what builds the result from a program's results; None where they are equal."""
    if is_plain(kind):
        return None
    is_tuple = isinstance(kind, TupleType) and kind.form is None and len(kind.items) > 1
    if is_tuple and all(map(is_plain, kind.items)):
        return None
    count = len(leaf_types(kind))

    def make(out: Any) -> object:
        return _made(kind, iter([out] if count == 1 else out))

    return make


def _made(kind: Type, leaves: Iterator) -> object:
    """Builds the result from its leaves; values of data may have any depth."""
    made: dict[int, object] = {}

    # Recursive over the type, not over the value.
    def take(kind: Type, leaves: Iterator) -> Task:
        if isinstance(kind, (TensorType, RefType, FunctionType)):
            return next(leaves)
        if isinstance(kind, (TupleType, ListType)):
            items = []
            for item in kind.items:
                items.append((yield from take(item, leaves)))
            if isinstance(kind, ListType):
                return items
            return tuple(items) if kind.form is None else kind.form.make(items)
        if isinstance(kind, ChainType):
            found = next(leaves)
            if isinstance(kind.item, TensorType):
                return found
            items = []
            for item in found:
                items.append((yield unpack(kind.item, item)))
            return items
        if isinstance(kind, DataType):
            return (yield construct(kind, next(leaves)))
        assert isinstance(kind, StaticType)
        return kind.obj

    def unpack(kind: Type, obj: Any) -> Task:
        return (yield from take(kind, iter([obj] if len(leaf_types(kind)) == 1 else obj)))

    def construct(kind: DataType, value: _core.ConstructorValue) -> Task:
        if id(value) not in made:
            of = kind.cls.__relay_type__
            name = of.name_of(value.constructor)
            fields = []
            for part, item in zip(of.fields[name].values(), value.fields, strict=True):
                field = item
                if isinstance(part, DataType):
                    field = yield construct(part, item)
                elif not isinstance(part, TensorType):
                    field = yield unpack(part, item)
                fields.append(field)
            made[id(value)] = kind.cls.__relay_union__[name](*fields)
        return made[id(value)]

    return unwound(take(kind, leaves))


_OF_NO_LIBRARY = frozenset((np.ndarray, float, int, bool))


def library_of(args: tuple) -> Callable[[Any], object] | None:
    """Returns from_dlpack of the library whose tensors are among the arguments; None for NumPy."""
    for arg in args:
        # A failed attribute look-up takes a quarter of the time of a short call.
        if type(arg) in _OF_NO_LIBRARY:
            continue
        if not isinstance(arg, (np.ndarray, np.generic)) and hasattr(arg, "__dlpack__"):
            package = sys.modules.get(type(arg).__module__.partition(".")[0])
            return getattr(package, "from_dlpack", None)
    return None


def in_library(result: object, from_dlpack: Callable[[Any], object], args: tuple = ()) -> object:
    """Returns the result with its arrays, except arguments, as tensors of a library in the same memory."""
    given = {id(arg) for arg in args if isinstance(arg, np.ndarray)}

    def convert(part: object) -> object:
        if isinstance(part, np.ndarray):
            # Other libraries have no string tensors.
            return part if id(part) in given or part.dtype == object else from_dlpack(part)
        if isinstance(part, list):
            return [convert(item) for item in part]
        formed = form_of(part)
        if formed is not None:
            return formed[0].make([convert(item) for item in formed[1]])
        if isinstance(part, tuple):
            return tuple(convert(item) for item in part)
        return part

    return convert(result)
