"""Python's built-in functions on values; `BUILTINS` maps Python's function object to ours."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from relay import _core
from relay._function.numpy import registry as numpy_registry
from relay._function.numpy.elementwise import round_exactly, rounded
from relay._function.operations.arithmetic import (
    apply,
    cast,
    describe,
    is_number,
    kind_of,
    numpy_dtype,
)
from relay._function.operations.arrays import known
from relay._function.operations.fitting import line
from relay._function.operations.indexing import Slice, get
from relay._function.python import methods as python_methods
from relay._function.reading.effects import Text
from relay._function.reading.loops import Counter, Iteration
from relay._function.syntax.errors import CALL, UNSUPPORTED, VALUE, Refusal
from relay._function.values import (
    OUTSIDE,
    Chain,
    Closure,
    Data,
    Derivative,
    Form,
    Function,
    List,
    Reference,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
    as_expr,
    is_text,
    new_list_of,
    new_list_root,
)
from relay._ops.call import call

_NOTHING = Tuple(())


def _index_value(value: Value) -> Value:
    """Returns a bound of a range in the dtype of loop counters."""
    if isinstance(value, Tensor):
        if value.shape or kind_of(value.dtype) != "i":
            raise Refusal(VALUE, "range takes integers", found=describe(value))
        return Tensor(cast(value, "int64").expr, True)
    if not is_number(value) or (isinstance(value, Static) and not isinstance(value.obj, int)):
        raise Refusal(VALUE, "range takes integers", found=describe(value))
    return value


def _range(reader, *bounds: Value) -> Value:
    if not 1 <= len(bounds) <= 3:
        raise Refusal(CALL, "range takes one to three numbers")
    start, stop = (Static(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = _step(bounds[2]) if len(bounds) == 3 else 1
    return Static(reader.range_of(Counter(_index_value(start), _index_value(stop), step)))


def _step(value: Value) -> int | Value:
    """Returns the step of a range; a run in which it is 0 ends."""
    value = _index_value(value)
    if isinstance(value, Static):
        if value.obj == 0:
            raise Refusal(VALUE, "the step of a range is an integer, not 0")
        return int(value.obj)
    step = as_expr(value)
    # An axis of |step| elements has index 0 unless the step is 0: a check that is no effect, and is
    # part of the kernel of a loop.
    place = f"the step of the range at {line()} is 0"
    zero = call("checked_index", _core.Constant(0, "int64"), call("abs", step), place=place)
    return Tensor(call("add", step, zero), True)


def _enumerate(reader, values: Value, start: Value | None = None) -> Value:
    inner = reader.iteration(values)
    first = Static(0) if start is None else start
    known_items = None
    if inner.known is not None and isinstance(first, Static):
        known_items = [
            lambda i=i, item=item: Tuple((Static(first.obj + i), item()))
            for i, item in enumerate(inner.known)
        ]
    return Static(
        Iteration(
            [Counter(first, None), *inner.sources],
            lambda found: Tuple((found[0], inner.value(found[1:]))),
            known_items,
            inner.unrolled,
        )
    )


def _zip(reader, *values: Value, strict: Value | None = None) -> Value:
    parts = [reader.iteration(value) for value in values]
    if strict is not None and known(strict, "strict"):
        counts = {None if part.known is None else len(part.known) for part in parts}
        if counts == {None} or len(counts) > 1:
            raise Refusal(
                VALUE,
                "zip with strict=True needs equal known lengths",
                found=", ".join("open" if n is None else str(n) for n in sorted(counts, key=str)),
            )
    unrolled = any(part.unrolled for part in parts)
    known_items = None
    if all(part.known is not None for part in parts):
        rows = zip(*(part.known for part in parts), strict=False)
        known_items = [lambda row=row: Tuple(tuple(item() for item in row)) for row in rows]
    elif unrolled:
        raise Refusal(
            VALUE,
            "zip of a list of known length and one of open length",
            help="use two lists of known length, or two of open length",
        )

    def value(found: list[Value]) -> Value:
        items, at = [], 0
        for part in parts:
            items.append(part.value(found[at : at + len(part.sources)]))
            at += len(part.sources)
        return Tuple(tuple(items))

    sources = [source for part in parts for source in part.sources]
    return Static(Iteration(sources, value, known_items, unrolled))


def _reversed(reader, value: Value) -> Value:
    if isinstance(value, Chain):
        return dataclasses.replace(value, backward=not value.backward)
    inner = reader.iteration(value)
    if inner.known is not None:
        items = list(reversed(inner.known))
        return Static(Iteration([], inner.value, items, unrolled=True))
    (counter,) = inner.sources
    if counter.step != 1:
        raise Refusal(UNSUPPORTED, "reversed of a range with a step", help="range(n - 1, -1, -1)")
    last = apply("subtract", counter.stop, Static(1))
    before = apply("subtract", counter.start, Static(1))
    return Static(Iteration([Counter(last, before, -1, counter.over)], inner.value))


def _fold(name: str, python: Callable) -> Callable:
    def folded(reader, *values: Value, default: Value | None = None) -> Value:
        if len(values) == 1:
            if isinstance(values[0], Tensor):
                return _of_array(name, values[0])
            values = tuple(reader.elements(values[0], name))
            if not values and default is not None:
                return default
        elif default is not None:
            raise Refusal(CALL, f"{name}() takes a default beside one list, not beside numbers")
        if not values:
            raise Refusal(VALUE, f"{name}() of nothing", help="default=")
        if all(isinstance(v, Static) for v in values):
            return reader._python(lambda: python([v.obj for v in values]))
        out = values[0]
        for value in values[1:]:
            if any(isinstance(v, Tensor) and v.shape for v in (out, value)):
                raise Refusal(
                    VALUE,
                    f"{name}() compares numbers",
                    help=f"use np.{name}imum element by element",
                )
            chosen = apply(f"{name}imum", out, value)
            if isinstance(chosen, Tensor) and kind_of(chosen.dtype) == "f":
                # Python keeps the first operand if no comparison is true, for a number and NaN as well.
                better = apply("less" if name == "min" else "greater", value, out)
                chosen = Tensor(_picked(better, value, out, chosen.dtype), chosen.weak)
            out = chosen
        return out

    return folded


def _picked(test: Value, yes: Value, no: Value, dtype: str) -> _core.Expr:
    return call("where", as_expr(test), cast(yes, dtype).expr, cast(no, dtype).expr)


def _of_array(name: str, values: Tensor) -> Value:
    """Returns min or max of a vector, whose first element stays if no comparison is true."""
    if len(values.shape) != 1:
        raise Refusal(
            VALUE,
            f"{name}() compares numbers, and goes over one axis",
            found=describe(values),
            help=f"x.{name}() is the {'least' if name == 'min' else 'greatest'} of all elements",
        )
    if kind_of(values.dtype) == "f":
        first = get(values, Static(0))
        nothing = apply("isnan", values)
        values = Tensor(_picked(nothing, first, values, values.dtype))
    return numpy_registry.METHODS[name](values)


def _sum(reader, values: Value, start: Value | None = None) -> Value:
    total = Static(0) if start is None else start
    if reader.iteration(values).known is None:
        return reader.summed(values, total)
    for item in reader.elements(values, "sum"):
        total = reader.binary(ast.Add(), total, item)
    return total


def _any_all(is_any: bool) -> Callable:
    def found(reader, values: Value) -> Value:
        if isinstance(values, Tensor):
            return numpy_registry.METHODS["any" if is_any else "all"](values)
        out: Value = Static(not is_any)
        for item in reader.elements(values, "any" if is_any else "all"):
            test = reader.truth_of(item)
            if isinstance(test, bool):
                if test == is_any:
                    return Static(is_any)
                continue
            both = "logical_or" if is_any else "logical_and"
            out = Tensor(test if isinstance(out, Static) else call(both, out.expr, test), True)
        return out

    return found


def _number(dtype: str, python: type) -> Callable:
    def number(reader, value: Value) -> Value:
        if isinstance(value, Static):
            return reader._python(lambda: python(value.obj))
        if dtype == "bool":
            test = reader.truth_of(value)
            return Static(test) if isinstance(test, bool) else Tensor(test, True)
        if not is_number(value):
            raise Refusal(VALUE, f"{python.__name__}() takes a number", found=describe(value))
        if isinstance(value, Size):
            return value if dtype == "int64" else Tensor(cast(value, dtype).expr, True)
        expr = value.expr
        if any(size != 1 for size in value.shape):
            raise Refusal(VALUE, f"{python.__name__}() takes one number", found=describe(value))
        if value.shape:
            expr = call("reshape", expr, newshape=[])
        return Tensor(cast(Tensor(expr), dtype).expr, True)

    return number


def _isinstance(reader, value: Value, classes: Value) -> Value:
    wanted = known(classes, "a class")
    if isinstance(value, Static):
        return reader._python(lambda: isinstance(value.obj, wanted))
    return reader._python(lambda: _is_of(value, wanted))


# The classes of run-time values.
_CLASSES = {
    Size: int, Tuple: tuple, List: list, Chain: list, Closure: types.FunctionType,
    Function: types.FunctionType, Derivative: types.FunctionType, Reference: _core.RefValue, Text: str,
}  # fmt: skip
_NUMBERS = {"b": bool, "i": int, "f": float, "s": str}


def _is_of(value: Value, wanted: Any) -> bool:
    """Returns isinstance of the Python object that the value stands for."""
    if isinstance(value, Data):
        parts = wanted if isinstance(wanted, tuple) else (wanted,)
        if any(hasattr(part, "__relay_constructor__") for part in parts):
            raise Refusal(
                UNSUPPORTED,
                "which constructor made a value is known only at run time",
                help="use match",
            )
        return issubclass(value.cls, wanted)
    if isinstance(value, Tuple) and value.form is not None:
        return issubclass(value.form.cls, wanted)
    if not isinstance(value, Tensor):
        return issubclass(_CLASSES.get(type(value), object), wanted)
    if value.weak:
        return issubclass(_NUMBERS[kind_of(value.dtype)], wanted)
    array = issubclass(np.ndarray, wanted)
    if value.shape:
        return array
    number = issubclass(str if is_text(value) else numpy_dtype(value.dtype).type, wanted)
    if number != array and value.roots & OUTSIDE:
        raise Refusal(
            VALUE,
            "an argument without axes is a number of NumPy's or an array: which is not known",
            found=describe(value),
            help="x.ndim == 0 asks for both",
        )
    return number


def _round(reader, value: Value, ndigits: Value | None = None) -> Value:
    digits = None if ndigits is None else known(ndigits, "the number of digits")
    if isinstance(value, Static):
        return reader._python(lambda: round(value.obj, digits))
    if digits is None:
        return Tensor(cast(apply("rint", value), "int64").expr, True)
    weak = isinstance(value, Size) or value.weak
    if not weak or kind_of(as_expr(value).checked_type.dtype) != "f":
        out = rounded(value, digits)
    else:
        out = round_exactly(Tensor(value.expr), digits)
    return Tensor(out.expr, weak) if isinstance(out, Tensor) else out


def _sorted(reader, values: Value, key: Value | None = None, reverse: Value | None = None) -> Value:
    return List(python_methods.in_order(reader, values, key, reverse))


def _slice(reader, *bounds: Value) -> Value:
    nothing = Static(None)
    start, stop, step = {1: (nothing, *bounds, nothing), 2: (*bounds, nothing), 3: bounds}[
        len(bounds)
    ]
    return Slice(start, stop, step)


def _list(reader, iterable: Value = _NOTHING) -> Value:
    if isinstance(iterable, Chain):
        return dataclasses.replace(iterable, roots=new_list_of(iterable))
    if reader.iteration(iterable).known is None:
        return reader.gathered(iterable)
    return List(tuple(reader.elements(iterable, "list")))


def _dict(reader, **named: Value) -> Value:
    return Tuple(tuple(named.values()), Form("dict", dict, tuple(named)), new_list_root())


def _replace(reader, base: Value, **named: Value) -> Value:
    if not isinstance(base, Tuple) or base.form is None or base.form.kind != "dataclass":
        raise Refusal(VALUE, "replace takes a data class", found=describe(base))
    unknown = [name for name in named if name not in base.form.names]
    if unknown:
        raise Refusal(CALL, f"{base.form.cls.__name__} has no field '{unknown[0]}'")
    pairs = zip(base.form.names, base.items, strict=True)
    return Tuple(tuple(named.get(name, item) for name, item in pairs), base.form)


BUILTINS = {
    id(builtins.abs): lambda reader, x: apply("absolute", x),
    id(builtins.all): _any_all(False),
    id(builtins.any): _any_all(True),
    id(builtins.bool): _number("bool", bool),
    id(builtins.dict): _dict,
    id(builtins.divmod): lambda reader, x, y: Tuple(
        (reader.binary(ast.FloorDiv(), x, y), reader.binary(ast.Mod(), x, y))
    ),
    id(builtins.enumerate): _enumerate,
    id(builtins.float): _number("float64", float),
    id(builtins.int): _number("int64", int),
    id(builtins.isinstance): _isinstance,
    id(builtins.len): lambda reader, x: reader.builtin_len(x),
    id(builtins.list): _list,
    id(builtins.max): _fold("max", max),
    id(builtins.min): _fold("min", min),
    id(builtins.print): lambda reader, *values, **named: reader.print(list(values), named),
    id(builtins.pow): lambda reader, x, y: reader.binary(ast.Pow(), x, y),
    id(builtins.range): _range,
    id(builtins.reversed): _reversed,
    id(builtins.round): _round,
    id(builtins.slice): _slice,
    id(builtins.sorted): _sorted,
    id(builtins.sum): _sum,
    id(builtins.tuple): lambda reader, x=_NOTHING: Tuple(tuple(reader.elements(x, "tuple"))),
    id(builtins.zip): _zip,
    id(dataclasses.replace): _replace,
}
