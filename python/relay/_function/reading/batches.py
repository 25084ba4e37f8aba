"""Calls of batched functions within a relay.function.

The function is read for the types of one lane and closed: captured values become parameters without a
batch axis. Its batch becomes a function of the program (Program.batch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from relay import _core, analysis
from relay._function.reading.calls import bind
from relay._function.reading.effects import bound_around
from relay._function.reading.returned_functions import refuse_functions
from relay._function.syntax import scope
from relay._function.syntax.errors import BATCH_AXIS, BATCH_RAGGED, BATCH_SIZES, CALL, Refusal
from relay._function.values import (
    OUTSIDE,
    Batch,
    ChainType,
    Closure,
    DataType,
    ListType,
    NamedAxes,
    RefType,
    Static,
    StaticType,
    TensorType,
    TupleType,
    Type,
    Value,
    flatten,
    forward,
    leaf_types,
    pack,
    type_of,
    unflatten,
    unpack,
    widen,
)
from relay._plural import counted


class Batching:
    """The part of the reader that handles calls of batched functions."""

    def call_batch(self, asked: Batch, args: list[Value], named: dict[str, Value]) -> Value:
        function = asked.function
        if isinstance(function, Static) and hasattr(function.obj, "defaults") and named:
            args = list(bind(function.obj.node, function.obj.defaults, args, named).values())
            named = {}
        if named:
            raise Refusal(CALL, "a batched function takes its arguments by their places")
        lanes = _Lanes()
        params: list[_core.Var] = []
        exprs: list[_core.Expr] = []
        inner: list[Value] = []
        in_axes: list[int | None] = []
        for i, (arg, axes) in enumerate(zip(args, _of_arguments(asked.in_axes, args), strict=True)):
            kind = forward(widen(type_of(arg)))
            leaves = list(_leaves(kind, axes, f"argument {i}"))
            lane = lanes.without(f"argument {i}", kind, iter(leaves))
            mine = [_core.Var(f"x{i}", of) for of in leaf_types(lane)]
            params += mine
            exprs += flatten(arg, kind)
            in_axes += leaves
            inner.append(unflatten(lane, iter(mine), OUTSIDE))
        names = scope.read([function.node]) if isinstance(function, Closure) else set()
        with self.frozen(names) as lets:
            result, done = self.called_apart(function, inner, {})
        returned = forward(widen(type_of(result)))
        refuse_functions(returned, "the batch")
        body = bound_around(done, pack(flatten(result, returned)))
        outside = dict(lets)
        captured = analysis.free_vars(_core.Function(params, body))
        params += captured
        exprs += [outside.get(v, v) for v in captured]
        in_axes += [None] * len(captured)
        plain = _core.Function(params, body)
        sizes = analysis.free_type_vars(plain)
        plain = _core.Function(params, body, None, sizes)
        out_axes = list(_leaves(returned, asked.out_axes, "the result"))
        out = out_axes[0] if len(out_axes) == 1 else tuple(out_axes)
        var = self.program.batch(plain, tuple(in_axes), out, lanes.size)
        out = _core.Call(var, exprs)
        return unpack(self.effect(out) if done else out, lanes.with_lanes(returned, iter(out_axes)))


def _of_arguments(axes: Any, args: list[Value]) -> list[Any]:
    if not isinstance(axes, tuple):
        return [axes] * len(args)
    if len(axes) == len(args):
        return list(axes)
    raise Refusal(
        BATCH_AXIS,
        "in_axes are those of other arguments",
        expected=f"{counted(len(args), 'axis')}, one for each argument",
        found=str(len(axes)),
    )


def _leaves(kind: Type, axes: Any, what: str) -> Iterator[int | None]:
    """Returns the axis of each leaf of a value; an axis holds for all leaves below its position."""
    if isinstance(axes, NamedAxes):
        axes = _by_place(kind, axes, what)
    if isinstance(kind, (TupleType, ListType)):
        if isinstance(axes, tuple) and len(axes) != len(kind.items):
            raise Refusal(
                BATCH_AXIS,
                f"the axes of {what} are those of another structure",
                expected=counted(len(kind.items), "axis"),
                found=str(len(axes)),
            )
        for i, item in enumerate(kind.items):
            yield from _leaves(item, axes[i] if isinstance(axes, tuple) else axes, what)
        return
    if isinstance(axes, tuple):
        raise Refusal(BATCH_AXIS, f"{what} has no parts for several axes", found=str(kind))
    if isinstance(kind, (ChainType, DataType)) and axes not in (0, None):
        raise Refusal(
            BATCH_AXIS,
            "lists and data have the lanes along the first axes of their tensors",
            expected="axis 0, or None",
            found=str(axes),
        )
    if not isinstance(kind, StaticType):
        yield axes


def _by_place(kind: Type, axes: NamedAxes, what: str) -> tuple:
    named = dict(axes.axes)
    names = kind.form.names if isinstance(kind, TupleType) and kind.form else ()
    if set(names) == set(named):
        return tuple(named[name] for name in names)
    raise Refusal(
        BATCH_AXIS,
        f"the axes of {what} are those of another structure",
        expected=f"an axis for each of {', '.join(map(str, names))}" if names else str(kind),
        found=", ".join(map(str, named)),
    )


class _Lanes:
    """The number of lanes; types with the batch axis removed and added."""

    def __init__(self) -> None:
        self.size: int | None = None  # if it is known
        self._name: Any = None
        self._named_by = self._what = ""

    def without(self, what: str, kind: Type, axes: Iterator[int | None]) -> Type:
        """Returns the type of an argument in one lane."""
        self._what = what
        return _of_tensors(kind, axes, self._without_axis, "the same in all lanes: None in in_axes")

    def _without_axis(self, kind: TensorType, axis: int) -> TensorType:
        rank = len(kind.shape)
        if not -rank <= axis < rank:
            raise Refusal(
                BATCH_AXIS,
                f"there is no axis {axis}",
                expected=f"an axis of {kind}",
                found=str(axis),
                help="None in in_axes for what is the same in all lanes",
            )
        axis %= rank
        self._count(kind.shape[axis])
        return TensorType(kind.dtype, kind.shape[:axis] + kind.shape[axis + 1 :])

    def _count(self, size: Any) -> None:
        # Equal sizes of arguments have one name; the program compares computed sizes.
        if not isinstance(size, (int, _core.TypeVar)):
            return
        if self._name is not None and self._name != size:
            raise Refusal(
                BATCH_SIZES,
                "the arguments have different numbers of lanes",
                expected=f"{self._name}, as {self._named_by} has",
                found=f"{size} in {self._what}",
            )
        if self._name is None:
            self._name, self._named_by = size, self._what
        if isinstance(size, int):
            self.size = size

    def with_lanes(self, kind: Type, axes: Iterator[int | None]) -> Type:
        """Returns the structure of a result in all lanes; the sizes are those of its tensors."""
        return _of_tensors(kind, axes, lambda t, _: TensorType(t.dtype, t.shape), "without lanes")


def _of_tensors(
    kind: Type,
    axes: Iterator[int | None],
    change: Callable[[TensorType, int], Type],
    data: str,
) -> Type:
    """Returns the type with `change` applied to each tensor that has a batch axis.

    data: what the values are called in the error for data types, which cannot have a batch axis.
    """
    if isinstance(kind, TupleType):
        return TupleType(tuple(_of_tensors(i, axes, change, data) for i in kind.items), kind.form)
    if isinstance(kind, ListType):
        return ListType(tuple(_of_tensors(i, axes, change, data) for i in kind.items))
    if isinstance(kind, StaticType):
        return kind
    axis = next(axes)
    if axis is None:
        return kind
    if isinstance(kind, ChainType):
        return ChainType(_of_tensors(kind.item, iter(_all_first(kind.item)), change, data))
    if isinstance(kind, (DataType, RefType)):
        raise Refusal(
            BATCH_RAGGED,
            "references and data of a class of yours have no lanes",
            expected=data,
            found=str(kind),
        )
    return change(kind, axis)


def _all_first(kind: Type) -> list[int | None]:
    return list(_leaves(kind, 0, "a list"))
