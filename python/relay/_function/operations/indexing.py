"""`x[...]` and `x[...] = v` on tensors, as NumPy has them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from relay import _core
from relay._function.operations.arithmetic import cast, describe, filled, is_number
from relay._function.operations.fitting import ensured, line
from relay._function.operations.ranges import at_most
from relay._function.syntax.errors import STATIC, UNSUPPORTED, VALUE, Refusal
from relay._function.values import (
    List,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
    as_expr,
    is_text,
    kind_of,
    lift,
    range_of,
    size_expr,
    sizes_in,
)
from relay._ops.call import call
from relay._ops.indexing import index_tensor
from relay._plural import counted

_FAR = (1 << 31) - 1


class Slice(Value):
    """A slice whose bounds are values."""

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.parts = (start, stop, step)

    def known(self) -> slice | None:
        """The slice when all its bounds are numbers."""
        if all(isinstance(p, Static) for p in self.parts):
            return slice(*(p.obj for p in self.parts))
        return None


def _is_integer(value: Value) -> bool:
    if isinstance(value, Static):
        return isinstance(value.obj, int) and not isinstance(value.obj, bool)
    if isinstance(value, Tensor):
        return not value.shape and kind_of(value.dtype) == "i"
    return isinstance(value, Size)


def _array(value: Value) -> Tensor | None:
    """An index that is a tensor with axes."""
    if isinstance(value, Tensor) and value.shape:
        return value if kind_of(value.dtype) in "ib" else None
    if isinstance(value, (List, Tuple)) and all(_is_integer(v) for v in value.items):
        if all(isinstance(v, Static) for v in value.items):
            return Tensor(_core.Constant(np.array([v.obj for v in value.items], dtype="int64")))
        return Tensor(call("stack", _core.Tuple([_index(v) for v in value.items]), axis=0))
    return None


def _index(value: Value) -> _core.Expr:
    """An integer index as an int64."""
    return as_expr(cast(value, "int64")) if isinstance(value, Tensor) else as_expr(value)


def items_of(index: Value, rank: int) -> list[Value]:
    """One item for each axis, and None for new ones."""
    items = list(index.items) if isinstance(index, Tuple) else [index]
    used = 0
    for item in items:
        obj = item.obj if isinstance(item, Static) else 0
        if obj is None or obj is ...:
            continue
        array = None if isinstance(item, Slice) else _array(item)
        if not (isinstance(item, Slice) or _is_integer(item) or array is not None):
            raise Refusal(
                VALUE,
                "a tensor is indexed by integers, slices, ..., None and integer or bool tensors",
                found=describe(item),
            )
        used += len(array.shape) if array is not None and array.dtype == "bool" else 1
    dots = [i for i, item in enumerate(items) if isinstance(item, Static) and item.obj is ...]
    if len(dots) > 1:
        raise Refusal(VALUE, "an index has one ... at most")
    if used > rank:
        raise Refusal(VALUE, f"{counted(used, 'index')} for a tensor of rank {rank}")
    at = dots[0] if dots else len(items)
    rest = [Slice(Static(None), Static(None), Static(None)) for _ in range(rank - used)]
    return items[:at] + rest + items[at + (1 if dots else 0) :]


def get(tensor: Tensor, index: Value) -> Tensor:
    """The part of a tensor that an index chooses; a view of it where NumPy's is."""
    items = items_of(index, len(tensor.shape))
    arrays = [i for i, item in enumerate(items) if _is_array_item(item)]
    if not arrays:
        out = _basic(tensor.expr, items)
        is_view = bool(sizes_in(out.checked_type)) or any(isinstance(i, Slice) for i in items)
        return Tensor(out, False, tensor.roots) if is_view else Tensor(out)
    (at, *others), array = arrays, _array(items[arrays[0]])
    if array.dtype == "bool" and _is_whole(items[1:]):
        return _masked(tensor, array)
    is_mask = array.dtype == "bool"
    if others or (is_mask and (at == 0 or len(array.shape) > 1)):
        return _several(tensor, items, arrays)
    whole = Slice(Static(None), Static(None), Static(None))
    around = _basic(tensor.expr, [*items[:at], whole, *items[at + 1 :]])
    # Integers before the array have dropped their axes.
    axis = sum(1 for item in items[:at] if not _is_integer(item))
    if any(_is_integer(i) for i in items) and axis != 0:
        raise Refusal(
            UNSUPPORTED,
            "a tensor index behind a slice, beside an integer, is not part of relay.function",
            help="index in two steps",
        )
    size = sizes_in(around.checked_type)[axis]
    if is_mask:
        return Tensor(call("take", around, _row(_hits(array, Tensor(around), axis), 0), axis=axis))
    return Tensor(call("take", around, _places(array, size, around, axis), axis=axis))


def _is_array_item(item: Value) -> bool:
    if isinstance(item, Slice) or (isinstance(item, Static) and item.obj is None):
        return False
    return not _is_integer(item)


def _is_whole(items: list[Value]) -> bool:
    """Whether all items are `:`."""
    return all(isinstance(i, Slice) and i.known() == slice(None) for i in items)


def _several(tensor: Tensor, items: list[Value], arrays: list[int]) -> Tensor:
    """Elements by an index for each of the first axes; a mask stands for the indices of its hits."""
    count = max(arrays) + 1
    alone = all(_is_array_item(i) or _is_integer(i) for i in items[:count])
    # Integers behind a mask are indices like those of an array; before slices they are not.
    while count < len(items) and _is_integer(items[count]):
        count += 1
    if not _is_whole(items[count:]) or not alone:
        raise Refusal(
            UNSUPPORTED,
            "several tensors as indices stand at the first axes, without slices between them",
            help="transpose the tensor first, or index in two steps",
        )
    indices: list[_core.Expr] = []
    for item in items[:count]:
        axis = len(indices)
        array, size = _array(item), tensor.shape[axis]
        if array is None:
            indices.append(place_in(item, size, tensor.expr, axis))
        elif array.dtype != "bool":
            indices.append(_places(array, size, tensor.expr, axis))
        else:
            hits = _hits(array, tensor, axis)
            indices += [_row(hits, i) for i in range(len(array.shape))]
    return Tensor(call("adv_index", _core.Tuple([tensor.expr, *indices])))


def places_of(indices: Tensor, of: Tensor, axis: int) -> _core.Expr:
    """The places in an axis of a tensor that indices name, from the end where they are negative."""
    return _places(indices, of.shape[axis], of.expr, axis)


def _places(array: Tensor, size: object, of: _core.Expr, axis: int) -> _core.Expr:
    index = _index(array)
    if isinstance(index, _core.Constant) and isinstance(size, int):
        numbers = np.asarray(index.data)
        for number in numbers[(numbers < -size) | (numbers >= size)]:
            raise Refusal(VALUE, f"index {number} of an axis of size {size}")
        return _core.Constant(np.where(numbers < 0, numbers + size, numbers))
    return checked(index, size_along(size, of, axis))


def checked(index: _core.Expr, size: _core.Expr) -> _core.Expr:
    """The places that indices name; the run ends where one is outside, and says this line."""
    return call("checked_index", index, size, place=line())


def _masked(tensor: Tensor, mask: Tensor) -> Tensor:
    """The slices at which a mask of the first axes is true."""
    return Tensor(
        call("gather_nd", tensor.expr, _hits(mask, tensor, 0), index_rank=len(mask.shape))
    )


def _hits(mask: Tensor, tensor: Tensor, axis: int) -> _core.Expr:
    """The indices of the elements of a mask that are true: a row for each of its axes."""
    return call("transpose", call("argwhere", fitting_mask(mask, tensor, axis)), axes=[1, 0])


def _row(matrix: _core.Expr, row: int) -> _core.Expr:
    return call("take", matrix, _core.Constant(row, "int64"), axis=0)


def fitting_mask(mask: Tensor, tensor: Tensor, first: int = 0) -> _core.Expr:
    """A mask that has the sizes of a tensor's axes from `first` on; the run ends where it has not."""
    expr, shape = mask.expr, tensor.shape[first : first + len(mask.shape)]
    for axis, (have, size) in enumerate(zip(mask.shape, shape, strict=True)):
        if have is not None and have == size:
            continue
        if isinstance(have, int) and isinstance(size, int):
            raise Refusal(
                VALUE,
                "a mask is as long as the axes that it is for",
                expected=str(tuple(shape)),
                found=str(tuple(mask.shape)),
            )
        mine, wanted = (
            size_along(have, mask.expr, axis),
            size_along(size, tensor.expr, first + axis),
        )
        pieces = ["a mask of size ", mine, " for an axis of size ", wanted]
        expr = ensured(call("equal", mine, wanted), pieces, expr)
    return expr


def _basic(expr: _core.Expr, items: list[Value]) -> _core.Expr:
    """Integers, slices and new axes: numbers together, what is not known one by one."""
    shape = sizes_in(expr.checked_type)
    plain, later, axis, out_axis = [], [], 0, 0
    for item in items:
        if isinstance(item, Static) and item.obj is None:
            plain.append(None)
            out_axis += 1
            continue
        known = item.known() if isinstance(item, Slice) else None
        if isinstance(item, Slice):
            if known is not None and _is_plain(known, shape[axis]):
                plain.append(known)
            else:
                plain.append(slice(None))
                later.append((out_axis, item, shape[axis]))
            out_axis += 1
        elif isinstance(item, Static) and isinstance(shape[axis], int):
            if not -shape[axis] <= item.obj < shape[axis]:
                raise Refusal(VALUE, f"index {item.obj} of an axis of size {shape[axis]}")
            plain.append(item.obj)
        else:
            plain.append(slice(None))
            later.append((out_axis, item, shape[axis]))
            out_axis += 1
        axis += 1
    if not all(isinstance(p, slice) and p == slice(None) for p in plain):
        expr = index_tensor(expr, tuple(plain))
    # Integers come first: a slice is then cut from what they leave, not from the whole tensor.
    integers = [entry for entry in later if not isinstance(entry[1], Slice)]
    for at, item, size in reversed(integers):
        expr = call("take", expr, place_in(item, size, expr, at), axis=at)
    for at, item, size in reversed(later):
        if isinstance(item, Slice):
            expr = _sliced(expr, at - sum(i < at for i, _, _ in integers), item, size)
    return expr


def _is_plain(known: slice, size: object) -> bool:
    return isinstance(size, int) or known == slice(None)


def _sliced(expr: _core.Expr, axis: int, item: Slice, size: object) -> _core.Expr:
    """A slice of one axis whose bounds or size are not numbers."""
    start, stop, step = item.parts
    by = 1 if isinstance(step, Static) and step.obj is None else getattr(step, "obj", None)
    if not isinstance(by, int) or by == 0:
        raise Refusal(STATIC, "the step of a slice is a number that is known")
    if by < 0:
        if not (_absent(start) and _absent(stop)):
            raise Refusal(
                UNSUPPORTED,
                "a slice with a negative step and bounds needs an axis of known size",
                help="slice first, then reverse with [::-1]",
            )
        expr = call("reverse", expr, axis=axis)
        start = stop = Static(None)
        by = -by
        if by == 1:
            return expr
    if all(isinstance(p, (Static, Size)) for p in (start, stop)) and size is not None:
        first = 0 if _absent(start) else _bound(start)
        last = _FAR if _absent(stop) else _bound(stop)
        return call("strided_slice", expr, begin=[first], end=[last], strides=[by], axes=[axis])
    begin = _core.Constant(0, "int64") if _absent(start) else _index(start)
    end = size_along(size, expr, axis) if _absent(stop) else _index(stop)
    begins, ends = (call("expand_dims", bound, axis=0) for bound in (begin, end))
    strides = _core.Constant(np.array([by], dtype="int64"))
    return call("dyn.strided_slice", expr, begins, ends, strides, axes=[axis])


def _absent(bound: Value) -> bool:
    return isinstance(bound, Static) and bound.obj is None


def _bound(bound: Value) -> object:
    return bound.dim if isinstance(bound, Size) else bound.obj


def part_of(tensor: _core.Expr, index: object) -> _core.Expr:
    """The part of an expression that an index of Python's objects and expressions chooses."""
    return get(Tensor(tensor), _index_of(index)).expr


def _index_of(index: object) -> Value:
    if isinstance(index, tuple):
        return Tuple(tuple(map(_index_of, index)))
    if isinstance(index, slice):
        return Slice(*(lift(bound) for bound in (index.start, index.stop, index.step)))
    return lift(index)


# ---- Changes -------------------------------------------------------------------------------------


def set_item(tensor: Tensor, index: Value, value: Value) -> Tensor:
    """The tensor with the part that an index chooses replaced."""
    if not is_number(value) and not (is_text(value) and tensor.dtype == "string"):
        raise Refusal(VALUE, "an element is set to a tensor or a number", found=describe(value))
    new = filled(value, tensor.dtype)
    items = items_of(index, len(tensor.shape))
    if (lines := _leading(tensor, items)) is not None:
        return Tensor(call("update_slice", tensor.expr, _spread(new, *lines[1:]), lines[0]))
    if (part := _written_slice(tensor, items)) is not None:
        return Tensor(part.update(tensor.expr, new))
    first = items[0]
    array = _array(first) if _is_array_item(first) and _is_whole(items[1:]) else None
    if array is not None and array.dtype == "bool" and not sizes_in(new.checked_type):
        return _set_masked(tensor, array, new)
    if array is not None and array.dtype != "bool" and None not in (*array.shape, *tensor.shape):
        return _set_lines(tensor, array, new)
    return _scattered(tensor, items, new)


@dataclass(frozen=True)
class _Along:
    """The places along an axis that are written: from `first` on, `count` of them, `step` apart.

    `count` is a number, a size, or an expression of an int64 where only a run tells.
    """

    first: _core.Expr
    count: object
    step: int = 1
    is_whole: bool = False
    is_dropped: bool = False
    is_reversed: bool = False


@dataclass(frozen=True)
class _Part:
    """A slice along each axis of a tensor."""

    axes: tuple[_Along, ...]

    def update(self, data: _core.Expr, new: _core.Expr) -> _core.Expr:
        kept = [along for along in self.axes if not along.is_dropped]
        values = _fitted(new, [along.count for along in kept])
        for axis, along in enumerate(kept):
            if along.is_reversed:
                values = call("reverse", values, axis=axis)
        # Leading axes of one element are left out.
        leading = True
        for axis, along in enumerate(self.axes):
            leading &= along.is_dropped
            if along.is_dropped and not leading:
                at = axis - next(i for i, a in enumerate(self.axes) if not a.is_dropped)
                values = call("expand_dims", values, axis=at)
        count = max((i + 1 for i, a in enumerate(self.axes) if not a.is_whole), default=1)
        written = self.axes[:count]
        starts = _core.Tuple([along.first for along in written])
        strides = [along.step for along in written]
        if all(step == 1 for step in strides):
            return call("update_slice", data, values, starts)
        return call("update_slice", data, values, starts, strides=strides)


def _fitted(new: _core.Expr, shape: list) -> _core.Expr:
    """A value in the shape of the part that is set; sizes are numbers, sizes or expressions."""
    have = sizes_in(new.checked_type)
    if len(have) > len(shape):
        known = tuple("?" if isinstance(n, _core.Expr) else n for n in shape)
        raise Refusal(
            VALUE,
            "the value has more axes than the part that is set",
            expected=f"a shape that broadcasts to {known}",
            found=str(new.checked_type),
        )
    if not any(isinstance(n, _core.Expr) for n in shape):
        return call("broadcast_to", new, shape=shape) if shape else new
    sizes = [n if isinstance(n, _core.Expr) else size_expr(n) for n in shape]
    return call("dyn.broadcast_to", new, call("stack", _core.Tuple(sizes), axis=0))


def _written_slice(tensor: Tensor, items: list[Value]) -> _Part | None:
    """The part that integers and slices choose; None for new axes and tensors as indices."""
    axes = []
    for axis, item in enumerate(items):
        if axis >= len(tensor.shape):
            return None
        size = tensor.shape[axis]
        if isinstance(item, Slice):
            along = _slice_along(item, size, tensor.expr, axis)
        elif _is_integer(item):
            along = _Along(place_in(item, size, tensor.expr, axis), 1, is_dropped=True)
        else:
            along = None
        if along is None:
            return None
        axes.append(along)
    return _Part(tuple(axes))


def _slice_along(item: Slice, size: object, of: _core.Expr, axis: int) -> _Along | None:
    """The places of a slice; None where its step is negative and its ends are not known."""
    known = item.known()
    zero = _core.Constant(0, "int64")
    if known is not None and known in (slice(None), slice(None, None, 1)):
        return _Along(zero, size_along(size, of, axis) if size is None else size, is_whole=True)
    if known is not None and isinstance(size, int):
        places = range(size)[known]
        is_reversed = places.step < 0
        places = places[::-1] if is_reversed else places
        first = places[0] if places else 0
        return _Along(
            _core.Constant(first, "int64"),
            len(places),
            places.step if len(places) > 1 else 1,
            is_reversed=is_reversed,
        )
    start, stop, step = item.parts
    by = 1 if _absent(step) else getattr(step, "obj", None)
    if not isinstance(by, int) or by == 0:
        raise Refusal(STATIC, "the step of a slice is a number that is known")
    if by < 0:
        return None
    length = size_along(size, of, axis)
    first = zero if _absent(start) else _bound_in(start, size, length)
    if size is not None and all(isinstance(p, (Static, Size)) for p in (start, stop)):
        return _Along(first, sizes_in(_sliced(of, axis, item, size).checked_type)[axis], by)
    last = length if _absent(stop) else _bound_in(stop, size, length)
    room = call("subtract", last, first)
    if by != 1:
        room = call("add", room, _core.Constant(by - 1, "int64"))
        room = call("floor_divide", room, _core.Constant(by, "int64"))
    return _Along(first, call("maximum", room, zero), by)


def _bound_in(bound: Value, size: object, length: _core.Expr) -> _core.Expr:
    """The bound of a slice, from the end where it is negative, and clamped to the axis."""
    expr, known = _index(bound), range_of(bound)
    if known is None or not known.is_natural:
        zero = _core.Constant(0, "int64")
        from_end = call("maximum", call("add", expr, length), zero)
        expr = call("where", call("less", expr, zero), from_end, expr)
    if known is None or size is None or not at_most(known.high, size):
        expr = call("minimum", expr, length)
    return expr


def _set_lines(tensor: Tensor, indices: Tensor, new: _core.Expr) -> Tensor:
    """The lines of the first axis that a tensor of integers names."""
    places = _places(indices, tensor.shape[0], tensor.expr, 0)
    values = _fitted(new, [*indices.shape, *tensor.shape[1:]])
    return Tensor(call("scatter_nd", tensor.expr, call("expand_dims", places, axis=0), values))


def _spread(value: _core.Expr, shape: list, axes: int) -> _core.Expr:
    """The value broadcast to a shape, with `axes` axes of size 1 in front that it lacks."""
    spread = call("broadcast_to", value, shape=shape) if shape or value.shape else value
    return call("expand_dims", spread, axis=0, num_newaxis=axes) if axes else spread


def _leading(tensor: Tensor, items: list[Value]) -> tuple[_core.Expr, list, int] | None:
    """Where lines of the first axis start, their shape, and whether it lacks the axis."""
    shape = list(tensor.shape)
    if not _is_whole(items[1:]) or None in shape[1:]:
        return None
    first = items[0]
    if isinstance(first, Slice):
        known = first.known()
        if known is None or not isinstance(shape[0], int):
            return None
        start, stop, step = known.indices(shape[0])
        if step != 1 or stop <= start:
            return None
        return _core.Constant(start, "int64"), [stop - start, *shape[1:]], 0
    if not _is_integer(first):
        return None
    return place_in(first, shape[0], tensor.expr, 0), shape[1:], 1


def place_in(index: Value, size: object, of: _core.Expr, axis: int) -> _core.Expr:
    """The place in an axis that an index names, from the end where it is negative.

    The run ends where it is outside; what is known of loops' variables and of sizes may tell that
    it is inside.
    """
    if isinstance(index, Static) and isinstance(size, int):
        if not -size <= index.obj < size:
            raise Refusal(VALUE, f"index {index.obj} of an axis of size {size}")
        return _core.Constant(index.obj % size, "int64")
    expr, known = _index(index), range_of(index)
    where = None if known is None else known.place_in(size)
    if where == "front":
        return expr
    length = size_along(size, of, axis)
    return call("add", expr, length) if where == "end" else checked(expr, length)


def size_along(size: object, of: _core.Expr, axis: int) -> _core.Expr:
    """The size of a tensor along an axis, an int64; `size`: what its type says, None for `?`."""
    if size is not None:
        return size_expr(size)
    return call("take", call("shape_of", of, dtype="int64"), _core.Constant(axis, "int64"), axis=0)


def _set_masked(tensor: Tensor, mask: Tensor, new: _core.Expr) -> Tensor:
    expr = fitting_mask(mask, tensor)
    lacking = len(tensor.shape) - len(mask.shape)
    if lacking:
        expr = call("expand_dims", expr, axis=len(mask.shape), num_newaxis=lacking)
    return Tensor(call("where", expr, new, tensor.expr))


def _scattered(tensor: Tensor, items: list[Value], new: _core.Expr) -> Tensor:
    """Writes by the positions of the elements in memory."""
    shape = list(tensor.shape)
    if None in shape:
        sizes = call("shape_of", tensor.expr, dtype="int64")
        bounds = (
            _core.Constant(0, "int64"),
            call("ndarray_size", tensor.expr, dtype="int64"),
            _core.Constant(1, "int64"),
        )
        grid = call("dyn.reshape", call("dyn.arange", *bounds), sizes, allowzero=True)
    elif all(isinstance(size, int) for size in shape):
        grid = _core.Constant(np.arange(math.prod(shape), dtype="int64").reshape(shape))
    else:
        total = functools.reduce(lambda a, b: b * a, shape)
        grid = call(
            "reshape",
            call("arange", start=0, stop=total, dtype="int64"),
            newshape=shape,
            allowzero=True,
        )
    places = get(Tensor(grid), Tuple(tuple(items))).expr
    chosen = sizes_in(places.checked_type)
    is_open = None in chosen
    values = call("broadcast_to_like", new, places) if is_open else _fitted(new, list(chosen))
    flat = call("reshape", tensor.expr, newshape=[-1])
    out = call(
        "scatter_elements",
        flat,
        call("reshape", places, newshape=[-1]),
        call("reshape", values, newshape=[-1]),
        axis=0,
    )
    if None in shape:
        return Tensor(call("dyn.reshape", out, sizes, allowzero=True))
    return Tensor(call("reshape", out, newshape=shape, allowzero=True))
