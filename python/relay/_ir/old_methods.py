"""Methods of expressions and types by the names of the first Relay."""

from __future__ import annotations

from collections.abc import Mapping

from relay import _core
from relay._errors import wrong


def _astuple(self: _core.Call) -> _core.Call:
    """Returns the call itself, whose value is a tuple."""
    if isinstance(self.checked_type, (_core.TupleType, type(None))):
        return self
    raise wrong(f"the value of this call is not a tuple: it is {self.checked_type}")


def _tuple_value(self: _core.Call) -> _core.Call:
    """The call itself, whose value is a tuple."""
    if not isinstance(self.checked_type, (_core.TupleType, type(None))):
        raise AttributeError(f"the value of this call is not a tuple: it is {self.checked_type}")
    return self


def _with_attr(
    self: _core.Function, attr_key_or_dict: str | Mapping[str, object], attr_value: object = None
) -> _core.Function:
    """Returns the function with attributes: a name and its value, or a dictionary."""
    more = {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else attr_key_or_dict
    return _with_attrs(self, {**dict(self.attrs), **dict(more)})


def _without_attr(self: _core.Function, attr_key: str) -> _core.Function:
    """Returns the function without an attribute."""
    return _with_attrs(self, {k: v for k, v in dict(self.attrs).items() if k != attr_key})


def _with_attrs(f: _core.Function, attrs: dict[str, object]) -> _core.Function:
    return _core.Function(list(f.params), f.body, f.ret_type, list(f.type_params), attrs)


def _concrete_shape(self: _core.TensorType) -> tuple[int, ...]:
    """The sizes; an error if one is not a number."""
    if not all(isinstance(size, int) for size in self.shape):
        raise wrong(f"the sizes {tuple(map(str, self.shape))} are not all numbers")
    return tuple(self.shape)


def install() -> None:
    """Adds the methods."""
    _core.Call.astuple = _astuple
    _core.Call.tuple_value = property(_tuple_value)
    _core.Function.with_attr = _with_attr
    _core.Function.without_attr = _without_attr
    _core.TensorType.concrete_shape = property(_concrete_shape)


install()
