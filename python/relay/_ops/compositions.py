"""Relay's functions that are more than one call of an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay import _core
from relay._errors import wrong
from relay._ops.call import call, checked, is_number
from relay._ops.layout_forms import convolution

COMPOSITIONS: dict[str, Callable[..., _core.Expr]] = {}


def _named(name: str) -> Callable:
    def add(function: Callable) -> Callable:
        COMPOSITIONS[name] = function
        return function

    return add


def _axes(axis: object) -> object:
    return [axis] if is_number(axis) else axis


def _constant(value: object, dtype: object) -> _core.Expr:
    return (
        value
        if isinstance(value, _core.Expr) or dtype in ("", None)
        else _core.Constant(value, dtype)
    )


def _known(sizes: Sequence, what: str) -> list[int]:
    if not all(isinstance(size, int) for size in sizes):
        raise wrong(f"{what} needs sizes that are known, not {tuple(map(str, sizes))}")
    return list(sizes)


@_named("arange")
def _arange(start, stop=None, step=None, dtype="float32"):
    """Returns the numbers from start to below stop, or from 0 to below start, by step."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if any(isinstance(v, _core.Expr) for v in (start, stop, step)):
        return call("dyn.arange", *(_constant(v, dtype) for v in (start, stop, step)))
    return call("arange", start=start, stop=stop, step=step, dtype=dtype)


@_named("full")
def _full(fill_value, shape=(), dtype=""):
    """Returns a tensor of one value everywhere; the shape may be an expression."""
    value = _constant(fill_value, dtype)
    if isinstance(shape, _core.Expr):
        filled = call("dyn.full", value, shape)
        return call("cast", filled, dtype=dtype) if dtype else filled
    attrs = {"dtype": dtype} if dtype else {}
    return call("full", value, shape=_axes(shape), **attrs)


@_named("one_hot")
def _one_hot(indices, on_value, off_value, depth, axis, dtype):
    """Returns vectors of off_value with on_value at each index; on a new axis of size depth."""
    values = _constant(on_value, dtype), _constant(off_value, dtype)
    if isinstance(depth, _core.Constant) and depth.data.size == 1:
        depth = depth.data.item()
    if isinstance(depth, _core.Expr):
        return _one_hot_of_any_depth(indices, values, depth, axis, dtype)
    return call("one_hot", indices, *values, depth=depth, axis=axis, dtype=dtype)


def _one_hot_of_any_depth(indices, values, depth, axis, dtype):
    rank = len(indices.shape) + 1
    if not is_number(axis) or not -rank <= axis < rank:
        raise wrong(f"relay.one_hot: the axis is a number from {-rank} to {rank - 1}, not {axis!r}")
    place = axis % rank
    count = call("cast", depth, dtype="int64")
    if len(depth.shape):
        count = call("reshape", count, newshape=[])
    zero, one = (_core.Constant(v, "int64") for v in (0, 1))
    numbers = call("dyn.arange", zero, count, one)
    if place < len(indices.shape):
        numbers = call("expand_dims", numbers, axis=1, num_newaxis=len(indices.shape) - place)
    whole = call("cast", call("expand_dims", indices, axis=place), dtype="int64")
    out = call(
        "where", call("equal", whole, numbers), *(call("cast", v, dtype=dtype) for v in values)
    )
    said = ["relay.one_hot: the depth ", count, " is negative"]
    return checked(call("greater_equal", count, zero), said, out)


@_named("reshape_like")
def _reshape_like(data, shape_like, lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None):
    """Returns the elements in the other's shape; or axes lhs_* of data in axes rhs_* of it."""
    if (lhs_begin, lhs_end, rhs_begin, rhs_end) == (0, None, 0, None):
        return call("reshape_like", data, shape_like)
    mine, other = data.shape, shape_like.shape
    axes = range(len(mine))[slice(lhs_begin, lhs_end)]
    first, last = (axes[0], axes[-1] + 1) if len(axes) else (lhs_begin, lhs_begin)
    shape = [*mine[:first], *other[slice(rhs_begin, rhs_end)], *mine[last:]]
    return call("reshape", data, newshape=_known(shape, "relay.reshape_like"))


@_named("segment_sum")
def _segment_sum(data, segment_ids, num_segments=None):
    """Returns the sums of the rows of each segment; without num_segments there are as many as the ids say."""
    if is_number(num_segments):
        return call("segment_sum", data, segment_ids, num_segments=num_segments)
    ids = call("cast", segment_ids, dtype="int64")
    if len(ids.shape) != 1:
        raise wrong("relay.segment_sum: the segment ids are a vector")
    if num_segments is None:
        num_segments = call("add", call("max", ids), _core.Constant(1, "int64"))
    elif not isinstance(num_segments, _core.Expr):
        raise wrong("relay.segment_sum: num_segments is a number or an expression")
    count = call("reshape", call("cast", num_segments, dtype="int64"), newshape=[1])
    sizes = call("shape_of", data, dtype="int64")
    rest = call("strided_slice", sizes, begin=[1], end=[len(data.shape)])
    shape = call("concatenate", _core.Tuple([count, rest]), axis=0)
    zeros = call("dyn.full", _core.Constant(0, data.dtype), shape)
    return call("scatter_nd", zeros, call("expand_dims", ids, axis=0), data, mode="add")


@_named("variance")
def _variance(data, axis=None, keepdims=False, exclude=False, unbiased=False, with_mean=None):
    """Returns the mean of the squared distances from the mean, or from with_mean."""
    attrs = {"axis": _axes(axis), "exclude": exclude}
    mean = call("mean", data, keepdims=True, **attrs) if with_mean is None else with_mean
    return call("variance", data, mean, keepdims=keepdims, unbiased=unbiased, **attrs)


@_named("nn.dropout")
def _dropout(data, rate=0.5):
    """Returns the data: what training drops at random, a compiled program keeps."""
    return _core.TupleGetItem(_dropout_raw(data, rate), 0)


@_named("nn.dropout_raw")
def _dropout_raw(data, rate=0.5):
    """Returns the data and the mask of what is kept, a tuple."""
    return call("nn.dropout", data, rate=rate)


@_named("vision.all_class_non_max_suppression")
def _all_class_non_max_suppression(
    boxes,
    scores,
    max_output_boxes_per_class=-1,
    iou_threshold=-1.0,
    score_threshold=-1.0,
    output_format="onnx",
):
    """Returns the boxes that stay, as (batch, class, box), and how many they are, a tuple."""
    if output_format != "onnx":
        raise wrong('relay.vision.all_class_non_max_suppression: output_format is "onnx"')
    if is_number(max_output_boxes_per_class) and max_output_boxes_per_class == -1:
        max_output_boxes_per_class = 2**31 - 1
    kept = call(
        "vision.all_class_non_max_suppression",
        boxes,
        scores,
        _constant(max_output_boxes_per_class, "int64"),
        _constant(iou_threshold, "float32"),
        _constant(score_threshold, "float32"),
    )
    count = call(
        "take", call("shape_of", kept, dtype="int64"), _core.Constant([0], "int64"), axis=0
    )
    return _core.Tuple([kept, count])


# The codes by which qnn.simulated_quantize tells dtypes.
_SIMULATED = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}


def _simulated(dtype: object) -> _core.Expr:
    if isinstance(dtype, _core.Expr):
        return dtype
    if dtype not in _SIMULATED:
        raise wrong(f"the dtype is one of {', '.join(_SIMULATED)}, not {dtype!r}")
    return _core.Constant(_SIMULATED[dtype], "int32")


@_named("qnn.simulated_quantize")
def _simulated_quantize(data, output_scale, output_zero_point, axis=-1, out_dtype="int8"):
    """Returns the numbers rounded as qnn.quantize does it, in floats; "disable" changes nothing."""
    code = _simulated(out_dtype)
    return call("qnn.simulated_quantize", data, code, output_scale, output_zero_point, axis=axis)


@_named("qnn.simulated_dequantize")
def _simulated_dequantize(data, input_scale, input_zero_point, axis=-1, in_dtype="int8"):
    """Returns what the numbers of qnn.simulated_quantize stand for."""
    code = _simulated(in_dtype)
    return call("qnn.simulated_dequantize", data, code, input_scale, input_zero_point, axis=axis)


def _packed_convolution(doc: str) -> Callable[..., _core.Expr]:
    def convolve(
        data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None,
        kernel_size=None, data_layout="NCHW8c", kernel_layout="OIHW", out_layout="", out_dtype="",
    ):  # fmt: skip
        attrs = {
            "strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
            "channels": channels, "kernel_size": kernel_size, "data_layout": data_layout,
            "kernel_layout": kernel_layout, "out_layout": out_layout, "out_dtype": out_dtype,
        }  # fmt: skip
        for name in ("strides", "padding", "dilation", "kernel_size"):
            attrs[name] = [attrs[name]] * 2 if is_number(attrs[name]) else attrs[name]
        given = {name: value for name, value in attrs.items() if value not in (None, "")}
        return convolution("nn.conv2d", {"data": data, "weight": kernel, **given})

    convolve.__doc__ = doc
    return convolve


_named("nn.contrib_conv2d_nchwc")(
    _packed_convolution("Returns the convolution of data and a weight in blocked layouts.")
)
_named("nn.contrib_depthwise_conv2d_nchwc")(
    _packed_convolution(
        "Returns the depthwise convolution of data and a weight in blocked layouts."
    )
)
