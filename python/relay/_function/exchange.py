"""Between objects of Python and the leaves of a compiled function's parameters and results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relay import _core
from relay._function.errors import ANNOTATION, Refusal
from relay._function.values import (
    ChainType,
    DataType,
    ListType,
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


def key_of(obj: object) -> object:
    """What of an argument decides how it is compiled: dtype and rank, structure, known values."""
    kind = type(obj)
    if kind is np.ndarray or isinstance(obj, np.generic):
        return obj.dtype, obj.ndim
    if kind in (float, int, bool):
        return kind
    if kind is tuple or kind is list:
        return kind, tuple(map(key_of, obj))
    if is_array(obj):
        return str(obj.dtype).rpartition(".")[2], len(obj.shape)
    if hasattr(kind, "__relay_data__"):
        return kind.__relay_data__
    formed = form_of(obj)
    if formed is None:
        return _hashable(obj)
    form, parts = formed
    if form.kind in ("dataclass", "object"):
        parts = [value_key(p) if isinstance(p, (bool, int, float)) else key_of(p) for p in parts]
        return form, tuple(parts)
    return form, tuple(map(key_of, parts))


def value_key(obj: object) -> object:
    """A known argument as a key: equal for what is compiled alike."""
    if isinstance(obj, float):
        # 0.0 and -0.0 differ, a NaN is like another.
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
        ) from None
    return type(obj), obj


class Sizes:
    """The names of sizes: equal ones have one name, and 1, which broadcasts, is 1.

    `fixed`: every size is itself.
    """

    def __init__(self, fixed: bool = False) -> None:
        self._fixed = fixed
        self._names: dict[int, Any] = {1: 1}

    def of(self, size: int, name: str) -> object:
        if self._fixed:
            return size
        if size not in self._names:
            self._names[size] = _core.TypeVar(name)
        return self._names[size]


def sizes_of(obj: object) -> Iterator[int]:
    """The sizes of all tensors in an argument."""
    if isinstance(obj, (np.generic, np.ndarray)) or is_array(obj):
        yield from obj.shape
    elif isinstance(obj, (tuple, list)):
        for item in obj:
            yield from sizes_of(item)
    elif (formed := form_of(obj)) is not None:
        yield from sizes_of(formed[1])


def pattern_of(objs: Any, fixed: bool) -> tuple[int, ...]:
    """Which sizes of arguments are equal, and which are 1; the sizes themselves where they are fixed."""
    if fixed:
        return tuple(sizes_of(objs))
    seen = {1: 0}
    return tuple(seen.setdefault(size, len(seen)) for size in sizes_of(objs))


def type_of_argument(obj: object, name: str, sizes: Sizes) -> Type:
    """The type that an argument without annotation has."""
    kind = type(obj)
    if isinstance(obj, (np.generic, np.ndarray)) or is_array(obj):
        dtype = str(obj.dtype).rpartition(".")[2]
        shape = tuple(sizes.of(size, f"{name}{i}") for i, size in enumerate(obj.shape))
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
        items = tuple(type_of_argument(item, f"{name}_{i}_", sizes) for i, item in enumerate(obj))
        return TupleType(items) if kind is tuple else ListType(items)
    if hasattr(kind, "__relay_data__"):
        return DataType(kind.__relay_data__)
    formed = form_of(obj)
    if formed is None:
        return static_type(obj)
    form, parts = formed
    known = form.kind in ("dataclass", "object")
    items = []
    for part, item in zip(form.names, parts, strict=True):
        if known and isinstance(item, (bool, int, float)):
            items.append(static_type(item))
        else:
            items.append(type_of_argument(item, f"{name}_{part}_", sizes))
    return TupleType(tuple(items), form)


def leaves_of(kind: Type, obj: Any) -> Iterator[object]:
    """The leaves of an argument, in the order of the parameters."""
    if isinstance(kind, TensorType):
        yield obj
    elif isinstance(kind, (TupleType, ListType)):
        for item, part in zip(kind.items, parts_of(kind, obj), strict=True):
            yield from leaves_of(item, part)
    elif isinstance(kind, ChainType):
        if isinstance(kind.item, TensorType):
            yield obj
        else:
            yield [_packed(kind.item, item) for item in obj]
    elif isinstance(kind, DataType):
        yield _constructed(kind, obj)


def parts_of(kind: Type, obj: Any) -> list:
    form = getattr(kind, "form", None)
    if form is None or form.kind == "namedtuple":
        return list(obj)
    if form.kind == "dict":
        return [obj[name] for name in form.names]
    return [getattr(obj, name) for name in form.names]


def _packed(kind: Type, obj: Any) -> object:
    leaves = list(leaves_of(kind, obj))
    return leaves[0] if len(leaves) == 1 else tuple(leaves)


def _constructed(kind: DataType, obj: Any) -> _core.ConstructorValue:
    name = getattr(type(obj), "__relay_constructor__", None)
    if name is None or type(obj).__relay_data__ is not kind.cls:
        raise Refusal(
            ANNOTATION,
            "an argument is not of its data type",
            expected=str(kind),
            found=type(obj).__name__,
        )
    made = kind.cls.__relay_type__
    fields = [_packed(of, getattr(obj, field)) for field, of in made.fields[name].items()]
    return _core.ConstructorValue(made.constructors[name].name_hint, fields)


def is_plain(kind: Type) -> bool:
    """Whether the object is its own only leaf."""
    return isinstance(kind, TensorType) or (
        isinstance(kind, ChainType) and isinstance(kind.item, TensorType)
    )


def maker(kind: Type) -> Callable[[Any], object] | None:
    """Makes the result of what a program returns; None where it is that."""
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
    if isinstance(kind, TensorType):
        return next(leaves)
    if isinstance(kind, (TupleType, ListType)):
        items = [_made(item, leaves) for item in kind.items]
        if isinstance(kind, ListType):
            return items
        return tuple(items) if kind.form is None else kind.form.make(items)
    if isinstance(kind, ChainType):
        found = next(leaves)
        if isinstance(kind.item, TensorType):
            return found
        return [_unpacked(kind.item, item) for item in found]
    if isinstance(kind, DataType):
        value = next(leaves)
        made = kind.cls.__relay_type__
        name = made.name_of(value.constructor)
        fields = zip(made.fields[name].items(), value.fields, strict=True)
        return kind.cls.__relay_union__[name](
            **{field: _unpacked(of, item) for (field, of), item in fields}
        )
    assert isinstance(kind, StaticType)
    return kind.obj


def _unpacked(kind: Type, obj: Any) -> object:
    return _made(kind, iter([obj] if len(leaf_types(kind)) == 1 else obj))


def library_of(args: tuple) -> Callable[[Any], object] | None:
    """How the library makes a tensor whose tensors are among the arguments; None: NumPy's."""
    for arg in args:
        if not isinstance(arg, (np.ndarray, np.generic)) and hasattr(arg, "__dlpack__"):
            package = sys.modules.get(type(arg).__module__.partition(".")[0])
            return getattr(package, "from_dlpack", None)
    return None


def in_library(result: object, from_dlpack: Callable[[Any], object], args: tuple = ()) -> object:
    """The result with its arrays as tensors of a library, in the same memory; not the arguments."""
    given = {id(arg) for arg in args if isinstance(arg, np.ndarray)}

    def convert(part: object) -> object:
        if isinstance(part, np.ndarray):
            return part if id(part) in given else from_dlpack(part)
        if isinstance(part, list):
            return [convert(item) for item in part]
        formed = form_of(part)
        if formed is not None:
            return formed[0].make([convert(item) for item in formed[1]])
        if isinstance(part, tuple):
            return tuple(convert(item) for item in part)
        return part

    return convert(result)
