"""Arguments of operators in forms of the first Relay: sizes as expressions, float indices, depthwise weights.

Each form takes the arguments of a call by name. It returns the expression for them, or None after it has
replaced what needed it; the operator is then called as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay import _core
from relay._errors import wrong
from relay._ops.call import call, is_number

FORMS: dict[str, Callable[[dict[str, Any]], _core.Expr | None]] = {}


def _form(*names: str) -> Callable:
    def add(function: Callable) -> Callable:
        FORMS.update(dict.fromkeys(names, function))
        return function

    return add


def _tensor_type(value: object) -> _core.TensorType | None:
    kind = value.checked_type if isinstance(value, _core.Expr) else None
    return kind if isinstance(kind, _core.TensorType) else None


def _rank(data: object, name: str) -> int:
    kind = _tensor_type(data)
    if kind is None or kind.shape is None:
        raise wrong(
            f"relay.{name}: a size is an expression, so the data has a known number of axes"
        )
    return len(kind.shape)


def _ints(*values: int) -> _core.Constant:
    return _core.Constant(list(values), "int64")


def _vector(value: object, count: int, name: str) -> _core.Expr:
    """An expression of `count` integers (any number for -1), as a vector of int64."""
    if not isinstance(value, _core.Expr):
        value = _core.Constant([value] if is_number(value) else value, "int64")
    kind = _tensor_type(value)
    if kind is None or len(kind.shape) > 1:
        raise wrong(f"relay.{name}: an expression of sizes is a vector or a number")
    value = call("cast", value, dtype="int64")
    if not kind.shape:
        value = call("expand_dims", value, axis=0)
    length = kind.shape[0] if kind.shape else 1
    if not isinstance(length, int) or count not in (-1, length):
        wanted = "a known number of" if count < 0 else str(count)
        raise wrong(f"relay.{name}: an expression of sizes has {wanted} elements, not {length}")
    return value


def _sizes(data: _core.Expr) -> _core.Expr:
    return call("shape_of", data, dtype="int64")


def _only(given: dict[str, Any], name: str, **defaults: object) -> None:
    """Refuses attributes that have no meaning for sizes that are expressions."""
    for attribute, default in defaults.items():
        if given.get(attribute) not in (default, None, ""):
            raise wrong(f"relay.{name}(): {attribute} needs sizes that are known")


@_form("squeeze")
def _squeeze(given: dict[str, Any]) -> _core.Expr | None:
    axis = given.get("axis")
    if not isinstance(axis, _core.Expr):
        return None
    data = given["data"]
    rank = _rank(data, "squeeze")
    axes = _vector(axis, -1, "squeeze")
    numbers = _core.Constant([[i] for i in range(rank)], "int64")
    gone = call(
        "any",
        call("equal", numbers, call("floor_mod", call("add", axes, _ints(rank)), _ints(rank))),
        axis=[1],
    )
    # Axes that stay come first, in their order.
    order = call("argsort", call("cast", gone, dtype="int64"), dtype="int64")
    kept = call("strided_slice", order, begin=[0], end=[rank - axes.shape[0]])
    return call("dyn.reshape", data, call("take", _sizes(data), kept, axis=0))


@_form("expand_dims")
def _expand_dims(given: dict[str, Any]) -> _core.Expr | None:
    axis = given.get("axis")
    if not isinstance(axis, _core.Expr):
        return None
    _only(given, "expand_dims", num_newaxis=1)
    data = given["data"]
    rank = _rank(data, "expand_dims")
    place = call(
        "floor_mod", call("add", _vector(axis, 1, "expand_dims"), _ints(rank + 1)), _ints(rank + 1)
    )
    numbers = _ints(*range(rank + 1))
    behind = call("cast", call("greater", numbers, place), dtype="int64")
    sizes = call("take", _sizes(data), call("subtract", numbers, behind), axis=0)
    return call("dyn.reshape", data, call("where", call("equal", numbers, place), _ints(1), sizes))


@_form("topk")
def _topk(given: dict[str, Any]) -> _core.Expr | None:
    k = given.get("k")
    if not isinstance(k, _core.Expr):
        return None
    data = given.pop("data")
    rank = _rank(data, "topk")
    axis = given.get("axis", -1) % rank
    all_of_them = call("topk", data, **{**given, "k": 0})
    numbers, sizes, count = _ints(*range(rank)), _sizes(data), _vector(k, 1, "topk")
    taken = call("where", call("less", count, _ints(1)), sizes, call("minimum", sizes, count))
    end = call("where", call("equal", numbers, _ints(axis)), taken, sizes)

    def first(part: _core.Expr) -> _core.Expr:
        return call("dyn.strided_slice", part, _ints(*[0] * rank), end, _ints(*[1] * rank))

    if given.get("ret_type", "both") != "both":
        return first(all_of_them)
    return _core.Tuple([first(_core.TupleGetItem(all_of_them, i)) for i in range(2)])


@_form("nn.pad")
def _pad(given: dict[str, Any]) -> _core.Expr | None:
    width = given.get("pad_width")
    if not isinstance(width, _core.Expr):
        return None
    rank = _rank(given["data"], "nn.pad")
    kind = _tensor_type(width)
    if kind is None or tuple(kind.shape) != (rank, 2):
        raise wrong(f"relay.nn.pad: the widths are of the shape {(rank, 2)}")
    by_side = call("transpose", call("cast", width, dtype="int64"))
    value = given.get("pad_value", 0)
    if not isinstance(value, _core.Expr):
        value = _core.Constant(value, given["data"].dtype)
    widths = call("reshape", by_side, newshape=[2 * rank])
    return call("dyn.pad", given["data"], widths, value, pad_mode=given.get("pad_mode", "constant"))


@_form("strided_slice")
def _slice_by_sizes(given: dict[str, Any]) -> _core.Expr | None:
    parts = [given.get(name) for name in ("begin", "end")]
    if given.get("slice_mode") != "size" or not any(isinstance(p, _core.Expr) for p in parts):
        return None
    data = given["data"]
    rank = _rank(data, "strided_slice")
    _only(given, "strided_slice", axes=None)
    begin, count = (_vector(part, rank, "strided_slice") for part in parts)
    # Strides have no meaning where sizes are given, as before.
    rest = call("less", count, _ints(0))
    end = call("where", rest, _sizes(data), call("add", begin, count))
    return call("dyn.strided_slice", data, begin, end, _ints(*[1] * rank))


def _spatial(layout: str, name: str) -> tuple[int, int]:
    if sorted(layout) != sorted("NCHW"):
        raise wrong(f"relay.{name}: with sizes as expressions the layout is NCHW in any order")
    return layout.index("H"), layout.index("W")


_NEAREST = {
    "round": lambda x: call("floor", call("add", x, _core.Constant(0.5, "float32"))),
    "floor": lambda x: call("floor", x),
    "ceil": lambda x: call("ceil", x),
    "round_prefer_floor": lambda x: call(
        "ceil", call("subtract", x, _core.Constant(0.5, "float32"))
    ),
    "round_prefer_ceil": lambda x: call("floor", call("add", x, _core.Constant(0.5, "float32"))),
}


def _places(old: _core.Expr, new: _core.Expr, mode: str) -> _core.Expr:
    """The place in the data of each of `new` results of an axis of size `old`, both scalars of int64."""
    zero, one = (_core.Constant(v, "int64") for v in (0, 1))
    i = call("cast", call("dyn.arange", zero, new, one), dtype="float32")
    ratio = call("divide", call("cast", old, dtype="float32"), call("cast", new, dtype="float32"))
    half, unit = (_core.Constant(v, "float32") for v in (0.5, 1.0))
    if mode == "asymmetric":
        return call("multiply", i, ratio)
    if mode == "align_corners":
        last, end = (call("cast", call("subtract", s, one), dtype="float32") for s in (old, new))
        return call("divide", call("multiply", i, last), call("maximum", end, unit))
    if mode == "half_pixel":
        return call("subtract", call("multiply", call("add", i, half), ratio), half)
    raise wrong(
        "with sizes as expressions the coordinates are half_pixel, align_corners or asymmetric, not "
        f"{mode!r}"
    )


def _resized(
    data: _core.Expr, axis: int, size: _core.Expr, method: str, mode: str, rounding: str
) -> _core.Expr:
    """The data at another size of an axis, a scalar of int64."""
    old = call("take", _sizes(data), _core.Constant(axis, "int64"), axis=0)
    at = _places(old, size, mode)
    last = call("subtract", old, _core.Constant(1, "int64"))

    def read(place: _core.Expr) -> _core.Expr:
        inside = call("maximum", call("cast", place, dtype="int64"), _core.Constant(0, "int64"))
        return call("take", data, call("minimum", inside, last), axis=axis)

    if method == "nearest_neighbor":
        rounding = rounding or ("round" if mode == "align_corners" else "floor")
        if rounding not in _NEAREST:
            raise wrong(f"rounding_method is one of {', '.join(_NEAREST)}, not {rounding!r}")
        return read(_NEAREST[rounding](at))
    if method not in ("linear", "bilinear"):
        raise wrong(
            f"with sizes as expressions the method is nearest_neighbor or linear, not {method!r}"
        )
    below = call("floor", at)
    weight = call("cast", call("subtract", at, below), dtype=data.dtype)
    behind = len(data.shape) - axis - 1
    if behind:
        weight = call("expand_dims", weight, axis=1, num_newaxis=behind)
    first = read(below)
    second = read(call("add", below, _core.Constant(1.0, "float32")))
    return call("add", first, call("multiply", call("subtract", second, first), weight))


@_form("image.resize2d")
def _resize2d(given: dict[str, Any]) -> _core.Expr | None:
    size = given.get("size")
    if not isinstance(size, _core.Expr):
        return None
    data = given["data"]
    _only(given, "image.resize2d", out_dtype=data.dtype, extrapolation_value=0.0)
    size = _vector(size, 2, "image.resize2d")
    method = given.get("method", "linear")
    for i, axis in enumerate(_spatial(given.get("layout", "NCHW"), "image.resize2d")):
        one = call("take", size, _core.Constant(i, "int64"), axis=0)
        mode = given.get("coordinate_transformation_mode", "half_pixel")
        data = _resized(data, axis, one, method, mode, given.get("rounding_method", ""))
    return data


@_form("nn.upsampling")
def _upsampling(given: dict[str, Any]) -> _core.Expr | None:
    scales = [given.get(name, 1) for name in ("scale_h", "scale_w")]
    if not any(isinstance(scale, _core.Expr) for scale in scales):
        return None
    data = given["data"]
    corners = given.get("align_corners", False)
    for axis, scale in zip(
        _spatial(given.get("layout", "NCHW"), "nn.upsampling"), scales, strict=True
    ):
        if not isinstance(scale, _core.Expr):
            scale = _core.Constant(scale, "float32")
        old = call("take", _sizes(data), _core.Constant(axis, "int64"), axis=0)
        scaled = call(
            "multiply", call("cast", old, dtype="float32"), call("cast", scale, dtype="float32")
        )
        size = call("cast", call("round", scaled), dtype="int64")
        mode = "align_corners" if corners else "asymmetric"
        method = given.get("method", "nearest_neighbor")
        data = _resized(data, axis, size, method, mode, "")
    return data


# ---- Operands ------------------------------------------------------------------------------------


@_form("sum", "prod")
def _count(given: dict[str, Any]) -> None:
    """Truth values are counted as int32."""
    kind = _tensor_type(given["data"])
    if kind is not None and kind.dtype == "bool":
        given["data"] = call("cast", given["data"], dtype="int32")


@_form("take", "gather", "gather_nd")
def _whole_indices(given: dict[str, Any]) -> None:
    """Indices in floats are rounded towards zero, as before."""
    kind = _tensor_type(given["indices"])
    if kind is not None and "float" in kind.dtype:
        given["indices"] = call("cast", given["indices"], dtype="int64")


@_form("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _depthwise_weight(given: dict[str, Any]) -> None:
    """A depthwise weight (channels, multiplier, ...) becomes (channels * multiplier, 1, ...)."""
    data, weight = _tensor_type(given["data"]), _tensor_type(given["weight"])
    groups = given.get("groups", 1)
    layout = given.get("kernel_layout") or ""
    place = layout.find("OI")
    if data is None or weight is None or groups == 1 or place < 0:
        return
    first, multiplier = weight.shape[place : place + 2]
    channels = data.shape[given.get("data_layout", "").find("C")]
    if first != groups or channels != groups or multiplier in (1, None):
        return
    sizes = [*weight.shape[:place], first * multiplier, 1, *weight.shape[place + 2 :]]
    given["weight"] = call("reshape", given["weight"], newshape=sizes)
