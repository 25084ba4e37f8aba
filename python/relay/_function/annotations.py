"""Annotations: types of the parameters and the result of a function."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Annotated, Any, TypeVar

from relay import _core
from relay._errors import wrong
from relay._function.operations.arithmetic import dtype_name
from relay._function.syntax.errors import ANNOTATION, Refusal
from relay._function.values import (
    ChainType,
    DataType,
    Form,
    StaticType,
    TensorType,
    TupleType,
    Type,
    number_type,
)


@dataclasses.dataclass(frozen=True)
class TensorAnnotation:
    """`relay.Tensor[shape, dtype]`."""

    shape: tuple
    dtype: str

    # A captured annotation is one known object, not a structure.
    __relay_annotation__ = True

    def __repr__(self) -> str:
        return f"relay.Tensor[{self.shape!r}, {self.dtype!r}]"


class Tensor:
    """The type of a tensor in annotations: `relay.Tensor[("n", 4), "float32"]`.

    For type checkers, `Annotated[np.ndarray, relay.Tensor[("n", 4), "float32"]]` is the same.

    A dimension is a size, a name (one size wherever it stands in the annotations of a function) or
    None (known at run time only).
    """

    def __class_getitem__(cls, item: Any) -> TensorAnnotation:
        shape, dtype = item if isinstance(item, tuple) and len(item) == 2 else (item, "float32")
        if not isinstance(shape, (tuple, list)):
            shape = (shape,)
        for size in shape:
            is_size = isinstance(size, int) and not isinstance(size, bool) and size >= 0
            if not (size is None or is_size or (isinstance(size, str) and size.isidentifier())):
                raise wrong(f"a dimension is a size, a name or None, not {size!r}")
        if not isinstance(dtype, str):
            dtype = dtype_name(dtype)
        _core.TensorType((), dtype)
        return TensorAnnotation(tuple(shape), dtype)


class _StaticMark:
    def __repr__(self) -> str:
        return "relay.Static"


_T = TypeVar("_T")
_MARK = _StaticMark()
# A parameter whose value is known when the function is compiled: `axis: relay.Static[int]`.
Static = Annotated[_T, _MARK]


def is_static(annotation: object) -> bool:
    return _MARK in getattr(annotation, "__metadata__", ())


class Names:
    """The named dimensions of one function's annotations."""

    def __init__(self, within_data: bool = False) -> None:
        self.within_data = within_data
        self.found: dict[str, Any] = {}

    def size(self, size: object) -> object:
        if not isinstance(size, str):
            return size
        if self.within_data:
            raise Refusal(
                ANNOTATION,
                f"a field of a data type has no named dimension '{size}'",
                help="write a size, or None for one that is known at run time only",
            )
        if size not in self.found:
            self.found[size] = _core.TypeVar(size)
        return self.found[size]


def type_of_annotation(annotation: object, names: Names, within: bool = False) -> Type | None:
    """Returns the type of an annotation; None for one that leaves dtype and rank to the call.

    within: it is inside a list or data, where `str` is a run-time string; elsewhere it is a known string.
    """
    if typing.get_origin(annotation) is Annotated:
        of = [m for m in annotation.__metadata__ if isinstance(m, TensorAnnotation)]
        annotation = of[0] if of else annotation.__origin__
    if isinstance(annotation, TensorAnnotation):
        return TensorType(annotation.dtype, tuple(map(names.size, annotation.shape)))
    if annotation in (bool, int, float):
        return number_type(annotation())
    if annotation is str and within:
        return TensorType("string", (), True)
    if annotation is None or annotation is type(None):
        return StaticType((type(None), "None"), None)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and len(args) == 1:
        item = type_of_annotation(args[0], names, True)
        return None if item is None else ChainType(item)
    if origin is tuple and args and args[-1] is not ...:
        return _record(None, [type_of_annotation(a, names, within) for a in args])
    if isinstance(annotation, type):
        if hasattr(annotation, "__relay_data__") or hasattr(annotation, "__relay_union__"):
            return DataType(getattr(annotation, "__relay_data__", annotation))
        return _of_class(annotation, names, within)
    if isinstance(annotation, (str, types.GenericAlias)) or origin is not None:
        return None
    return None


def _record(form: Form | None, items: list[Type | None]) -> TupleType | None:
    return None if None in items else TupleType(tuple(items), form)


def _of_class(cls: type, names: Names, within: bool) -> Type | None:
    fields = getattr(cls, "_fields", None)
    kind = "namedtuple" if issubclass(cls, tuple) and fields is not None else None
    if kind is None and dataclasses.is_dataclass(cls):
        kind, fields = "dataclass", tuple(f.name for f in dataclasses.fields(cls))
    if kind is None:
        return None
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:
        return None
    items = [type_of_annotation(hints.get(name), names, within) if name in hints else None
             for name in fields]  # fmt: skip
    return _record(Form(kind, cls, tuple(fields)), items)
