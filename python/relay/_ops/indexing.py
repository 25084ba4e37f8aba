"""`x[...]` on a tensor: NumPy's basic indexing as operators."""

from __future__ import annotations

from relay import _core
from relay._errors import wrong
from relay._ops.call import call, is_number
from relay._plural import counted


def index_tensor(tensor: _core.Expr, index: object) -> _core.Expr:
    """Returns the part of a tensor that integers, slices, `...` and None (a new axis) choose."""
    rank = len(tensor.shape)
    items = list(index) if isinstance(index, tuple) else [index]
    items = _without_ellipsis(items, rank)
    begin, end, strides, axes, dropped = [], [], [], [], []
    axis = 0
    for item in items:
        if item is None:
            continue
        if is_number(item):
            _check(int(item), tensor.shape[axis])
            dropped.append(axis)
            item = slice(item, None if item == -1 else int(item) + 1)
        if item != slice(None):
            first, last, step = _bounds(item, tensor.shape[axis])
            begin.append(first)
            end.append(last)
            strides.append(step)
            axes.append(axis)
        axis += 1
    out = tensor
    if axes:
        out = call("strided_slice", out, begin=begin, end=end, strides=strides, axes=axes)
    if dropped:
        out = call("squeeze", out, axis=dropped)
    at = 0
    for item in items:
        if item is None:
            out = call("expand_dims", out, axis=at)
        at += 0 if is_number(item) else 1
    return out


def _without_ellipsis(items: list, rank: int) -> list:
    for item in items:
        if not (item is None or item is ... or is_number(item) or isinstance(item, slice)):
            raise wrong(
                f"a tensor is indexed by integers, slices, ... and None, not {type(item).__name__}; "
                "relay.take, relay.gather_nd and relay.adv_index take tensors"
            )
    used = sum(item is not None and item is not ... for item in items)
    ellipses = [i for i, item in enumerate(items) if item is ...]
    if len(ellipses) > 1:
        raise IndexError("an index has one ... at most")
    if used > rank:
        raise IndexError(f"{counted(used, 'index')} for a tensor of rank {rank}")
    at = ellipses[0] if ellipses else len(items)
    return items[:at] + [slice(None)] * (rank - used) + items[at + 1 :]


def _check(index: int, size: object) -> None:
    if isinstance(size, int) and not -size <= index < size:
        raise IndexError(f"index {index} of an axis of size {size}")
    if not isinstance(size, int) and index < 0:
        raise wrong("an index from the end needs an axis of known size")


# Larger than any size; strided_slice clamps to the ends of an axis.
_FAR = (1 << 31) - 1


def _bounds(item: slice, size: object) -> tuple[int, int, int]:
    """Returns begin, end and stride of a slice for strided_slice."""
    for part in (item.start, item.stop, item.step):
        if not (part is None or is_number(part)):
            raise wrong("the bounds of a slice are integers; relay.strided_slice takes tensors")
    step = 1 if item.step is None else int(item.step)
    if step == 0:
        raise wrong("the step of a slice is not zero")
    if isinstance(size, int):
        first, last, step = slice(item.start, item.stop, step).indices(size)
        # Before the first element; -1 would be the last element.
        return first, last if last >= 0 else -size - 1, step
    if step < 0:
        raise wrong("a slice with a negative step needs an axis of known size")
    return item.start or 0, _FAR if item.stop is None else int(item.stop), step
