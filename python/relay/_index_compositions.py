"""Relay's functions that place elements by sizes that are known, made of other operators.

Type, gradient, fusion and batching follow from what they are made of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relay import _core
from relay._compositions import _known, _named
from relay._wrappers import call, is_number


def _constant(values: object, dtype: str = "int64") -> _core.Constant:
    return _core.Constant(np.asarray(values), dtype)


def _numbers(value: object, what: str) -> list[int]:
    """A list of integers, or a constant of them."""
    if isinstance(value, _core.Constant):
        value = value.data.tolist()
    value = [value] if is_number(value) else value
    if isinstance(value, _core.Expr) or not all(is_number(v) for v in value):
        raise TypeError(f"relay.{what} needs numbers that are known when the program is built")
    return [int(v) for v in value]


def _tensor(value: object, dtype: str | None = None) -> _core.Expr:
    return value if isinstance(value, _core.Expr) else _core.Constant(value, dtype)


# ---- Slices --------------------------------------------------------------------------------------


@_named("slice_like")
def _slice_like(data, shape_like, axes=None):
    """Returns the first elements along the axes (all: None), as many as the other has there."""
    rank = len(data.shape)
    axes = range(rank) if not axes else [a % rank for a in _numbers(axes, "slice_like")]
    wanted = [shape_like.shape[a] for a in axes]
    for axis, size in zip(axes, wanted, strict=True):
        have = data.shape[axis]
        if isinstance(have, int) and isinstance(size, int) and size > have:
            raise TypeError(f"relay.slice_like: axis {axis} has {have} elements, not {size}")
    return call(
        "strided_slice", data, begin=[0] * len(wanted), end=wanted, strides=[1], axes=list(axes)
    )


@_named("strided_set")
def _strided_set(data, v, begin, end, strides=None):
    """Returns the data with `v` in the place of data[begin:end:strides]."""
    sizes = _known(data.shape, "relay.strided_set")
    parts = [_numbers(p, "strided_set") for p in (begin, end, [] if strides is None else strides)]
    steps = parts[2] or [1] * len(parts[0])
    if not len(parts[0]) == len(parts[1]) == len(steps) <= len(sizes):
        raise TypeError("relay.strided_set: begin, end and strides have a number for each axis")
    inside, values = np.ones((), bool), _tensor(v)
    for axis, size in enumerate(sizes):
        places = list(range(size))
        if axis < len(steps):
            # Relay's ends beyond the front mean the front.
            places = list(range(size)[slice(parts[0][axis], parts[1][axis], steps[axis])])
        if _known(values.shape, "relay.strided_set")[axis] != len(places):
            raise TypeError(f"relay.strided_set: axis {axis} has {len(places)} places to set")
        found = np.zeros(size, "int64")
        found[places] = np.arange(len(places))
        chosen = np.zeros(size, bool)
        chosen[places] = True
        if not places:
            return data
        inside = inside[..., None] & chosen
        values = call("take", values, _constant(found), axis=axis)
    return call("where", _core.Constant(inside), values, data)


@_named("reverse_reshape")
def _reverse_reshape(data, newshape):
    """Returns the elements in a shape whose codes 0, -1, -2 and -3 are read from the right.

    (10, 5, 4) in (-1, 0) is (50, 4).
    """
    sizes = _known(data.shape, "relay.reverse_reshape")[::-1]
    out: list[int] = []
    at = 0
    for code in _numbers(newshape, "reverse_reshape")[::-1]:
        if code > 0 or code == -1:
            out.append(code)
            at += 1
        elif code in (0, -2, -3):
            take = {0: 1, -3: 2, -2: max(len(sizes) - at, 0)}[code]
            read = sizes[at : at + take]
            if len(read) < take:
                raise TypeError("relay.reverse_reshape: the codes ask for more axes than there are")
            out += [math.prod(read)] if code == -3 else read
            at += take
        else:
            raise TypeError(f"relay.reverse_reshape: {code} is not a code from the right")
    return call("reshape", data, newshape=out[::-1])


@_named("sliding_window")
def _sliding_window(data, axis, window_shape, strides):
    """Returns all windows over the axes from `axis` on: their numbers, then what is in them."""
    rank = len(data.shape)
    axis = axis + rank if axis < 0 else axis
    shape, steps = _numbers(window_shape, "sliding_window"), _numbers(strides, "sliding_window")
    if not len(shape) == len(steps) == rank - axis:
        raise TypeError("relay.sliding_window: a window has a size and a stride for each axis")
    sizes = _known(data.shape[axis:], "relay.sliding_window")
    for offset in reversed(range(len(shape))):
        size, width, step = sizes[offset], shape[offset], steps[offset]
        if not 1 <= width <= size or step < 1:
            raise TypeError(f"relay.sliding_window: no window of {width} fits into {size}")
        starts = np.arange((size - width) // step + 1)[:, None] * step
        data = call("take", data, _constant(starts + np.arange(width)), axis=axis + offset)
    windows = len(shape)
    order = [
        *range(axis),
        *range(axis, axis + 2 * windows, 2),
        *range(axis + 1, axis + 2 * windows, 2),
    ]
    return call("transpose", data, axes=order)


@_named("nn.fifo_buffer")
def _fifo_buffer(data, buffer, axis):
    """Returns the buffer with the data behind it and as much of its front gone."""
    rank = len(buffer.shape)
    axis = axis + rank if axis < 0 else axis
    both = call("concatenate", _core.Tuple([buffer, data]), axis=axis)
    (gone,) = _known(data.shape[axis : axis + 1], "relay.nn.fifo_buffer")
    (whole,) = _known(both.shape[axis : axis + 1], "relay.nn.fifo_buffer")
    return call("strided_slice", both, begin=[gone], end=[whole], strides=[1], axes=[axis])


# ---- Blocks --------------------------------------------------------------------------------------


def _pairs(value: Sequence, count: int, what: str) -> list[list[int]]:
    pairs = [_numbers(pair, what) for pair in value]
    if len(pairs) != count or not all(len(p) == 2 for p in pairs):
        raise TypeError(f"relay.{what} takes a pair for each axis of a block")
    return pairs


@_named("nn.space_to_batch_nd")
def _space_to_batch_nd(data, block_shape, paddings, pad_value=0):
    """Returns the elements of every block as images of their own, along the batch."""
    block = _numbers(block_shape, "nn.space_to_batch_nd")
    pairs = _pairs(paddings, len(block), "nn.space_to_batch_nd")
    rest = [[0, 0]] * (len(data.shape) - len(block) - 1)
    widths = [[0, 0], *pairs, *rest]
    fill = _core.Constant(pad_value, data.dtype)
    data = call("nn.pad", data, fill, pad_width=widths)
    batch, *sizes = _known(data.shape, "relay.nn.space_to_batch_nd")
    count = len(block)
    for size, b in zip(sizes, block, strict=False):
        if size % b:
            raise TypeError(f"relay.nn.space_to_batch_nd: blocks of {b} do not fill {size}")
    split = [n for size, b in zip(sizes, block, strict=False) for n in (size // b, b)]
    data = call("reshape", data, newshape=[batch, *split, *sizes[count:]])
    inner = [2 * i + 2 for i in range(count)]
    outer = [2 * i + 1 for i in range(count)]
    tail = range(2 * count + 1, 2 * count + 1 + len(sizes) - count)
    data = call("transpose", data, axes=[*inner, 0, *outer, *tail])
    merged = [size // b for size, b in zip(sizes, block, strict=False)]
    return call("reshape", data, newshape=[batch * math.prod(block), *merged, *sizes[count:]])


@_named("nn.batch_to_space_nd")
def _batch_to_space_nd(data, block_shape, crops):
    """Returns the images along the batch put together again to blocks, cut at the borders."""
    block = _numbers(block_shape, "nn.batch_to_space_nd")
    pairs = _pairs(crops, len(block), "nn.batch_to_space_nd")
    batch, *sizes = _known(data.shape, "relay.nn.batch_to_space_nd")
    count = len(block)
    if batch % math.prod(block):
        raise TypeError(f"relay.nn.batch_to_space_nd: a batch of {batch} is not of whole blocks")
    data = call("reshape", data, newshape=[*block, batch // math.prod(block), *sizes])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, count + 1 + len(sizes))
    data = call("transpose", data, axes=order)
    whole = [size * b for size, b in zip(sizes, block, strict=False)]
    shape = [batch // math.prod(block), *whole, *sizes[count:]]
    data = call("reshape", data, newshape=shape)
    begin = [first for first, _ in pairs]
    end = [size - last for size, (_, last) in zip(whole, pairs, strict=True)]
    return call(
        "strided_slice", data, begin=begin, end=end, strides=[1], axes=list(range(1, count + 1))
    )


@_named("nn.upsampling3d")
def _upsampling3d(
    data,
    scale_d=1,
    scale_h=1,
    scale_w=1,
    layout="NCDHW",
    method="nearest_neighbor",
    coordinate_transformation_mode="half_pixel",
):
    """Returns the volumes scaled up; method is nearest_neighbor or trilinear."""
    sizes = _known([data.shape[layout.index(axis)] for axis in "DHW"], "relay.nn.upsampling3d")
    scales = (scale_d, scale_h, scale_w)
    return call(
        "image.resize3d",
        data,
        size=[round(n * s) for n, s in zip(sizes, scales, strict=True)],
        layout=layout,
        method={"trilinear": "linear"}.get(method, method),
        coordinate_transformation_mode=coordinate_transformation_mode,
    )


# ---- Matrices ------------------------------------------------------------------------------------


@_named("matrix_set_diag")
def _matrix_set_diag(data, diagonal, k=0, align="RIGHT_LEFT"):
    """Returns matrices with other diagonals, from the k-th or the first to the last of a pair.

    align: where shorter ones are in `diagonal`, above and below the main one.
    """
    low, high = (k, k) if is_number(k) else k
    words = align.split("_")
    if len(words) != 2 or not set(words) <= {"LEFT", "RIGHT"} or low > high:
        raise TypeError("relay.matrix_set_diag: k is a number or a pair, align as RIGHT_LEFT")
    rows, columns = _known(data.shape[-2:], "relay.matrix_set_diag")
    sizes = _known(diagonal.shape, "relay.matrix_set_diag")
    longest, count = sizes[-1], high - low + 1
    if count > 1:
        lead = sizes[:-2]
        diagonal = call("reshape", diagonal, newshape=[*lead, count * longest])
    i, j = np.indices((rows, columns))
    d = j - i
    inside = (low <= d) & (d <= high)
    length = np.minimum(rows + np.minimum(d, 0), columns - np.maximum(d, 0))
    right = np.where(d >= 0, words[0] == "RIGHT", words[1] == "RIGHT")
    offset = np.where(right & (count > 1), longest - length, 0)
    place = (high - d) * longest + np.minimum(i, j) + offset
    values = call(
        "take", diagonal, _constant(np.where(inside, place, 0)), axis=len(diagonal.shape) - 1
    )
    return call("where", _core.Constant(inside), values, data)


@_named("sparse_to_dense")
def _sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0):
    """Returns a tensor of one value but at some places, which have values of their own."""
    values = _tensor(sparse_values)
    places = _tensor(
        sparse_indices, "int32" if not isinstance(sparse_indices, _core.Expr) else None
    )
    shape = _numbers(output_shape, "sparse_to_dense")
    if len(places.shape) < 2:
        # One axis: a place is a number.
        count = 1 if not places.shape else _known(places.shape, "relay.sparse_to_dense")[0]
        places = call("reshape", places, newshape=[count, 1])
    (count,) = _known(places.shape[:1], "relay.sparse_to_dense")
    values = call("broadcast_to", values, shape=[count])
    fill = _tensor(default_value, values.dtype)
    base = call("full", fill, shape=shape)
    return call("scatter_nd", base, call("transpose", places, axes=[1, 0]), values, mode="update")


def _dense(sparse: object, rows: int, columns: int, what: str) -> _core.Expr:
    """A matrix of three vectors (values, columns, where rows begin) as a plain one."""
    values, indices, starts = map(_tensor, sparse)
    if len(values.shape) != 1:
        raise TypeError(f"relay.{what} takes matrices of elements, not of blocks")
    (count,) = _known(values.shape, f"relay.{what}")
    # The row of an element: as many rows end in front of it or at it.
    ends = call("strided_slice", starts, begin=[1], end=[rows + 1], strides=[1])
    ends = call("expand_dims", ends, axis=0)
    place = _core.Constant(np.arange(count)[:, None], starts.dtype)
    row = call("sum", call("cast", call("less_equal", ends, place), dtype=indices.dtype), axis=[1])
    places = call("stack", _core.Tuple([row, indices]), axis=0)
    zeros = call("zeros", shape=[rows, columns], dtype=values.dtype)
    return call("scatter_nd", zeros, places, values, mode="add")


def _rows(sparse: object, what: str) -> int:
    (starts,) = _known(_tensor(sparse[2]).shape, f"relay.{what}")
    return starts - 1


@_named("nn.sparse_dense")
def _sparse_dense(dense_mat, sparse_mat, sparse_lhs=False):
    """Returns dense_mat by the transpose of a sparse matrix, a triple (data, indices, indptr).

    With sparse_lhs the sparse matrix by the transpose of dense_mat. It is made dense: for large
    ones `relay.prim_func` writes the loop over its elements.
    """
    (columns,) = _known(dense_mat.shape[1:], "relay.nn.sparse_dense")
    plain = _dense(sparse_mat, _rows(sparse_mat, "nn.sparse_dense"), columns, "nn.sparse_dense")
    return call("nn.dense", *((plain, dense_mat) if sparse_lhs else (dense_mat, plain)))


@_named("nn.sparse_add")
def _sparse_add(dense_mat, sparse_mat):
    """Returns the sum of a matrix and a sparse one, a triple (data, indices, indptr)."""
    rows, columns = _known(dense_mat.shape, "relay.nn.sparse_add")
    return call("add", dense_mat, _dense(sparse_mat, rows, columns, "nn.sparse_add"))


# ---- Numbers -------------------------------------------------------------------------------------


@_named("fixed_point_multiply")
def _fixed_point_multiply(data, multiplier, shift):
    """Returns int32 numbers by multiplier * 2**(shift - 31), rounded, halves up."""
    wide = call("cast", data, dtype="int64")
    if shift > 0:
        wide = call("left_shift", wide, _core.Constant(shift, "int64"))
    wide = call("multiply", wide, _core.Constant(multiplier, "int64"))
    right = 31 - min(shift, 0)
    wide = call("add", wide, _core.Constant(1 << (right - 1), "int64"))
    return call("cast", call("right_shift", wide, _core.Constant(right, "int64")), dtype="int32")


def _waves(count: int, kept: int, dtype: str) -> tuple[_core.Constant, _core.Constant]:
    """Cosines and sines of all pairs of a time and a frequency."""
    turns = np.outer(np.arange(kept), np.arange(count)) % count * (2 * np.pi / count)
    return _core.Constant(np.cos(turns), dtype), _core.Constant(np.sin(turns), dtype)


def _product(data: _core.Expr, waves: _core.Expr) -> _core.Expr:
    """Along the last axis."""
    lead = _known(data.shape, "a Fourier transform")[:-1]
    flat = call("reshape", data, newshape=[math.prod(lead), data.shape[-1]])
    return call("reshape", call("nn.dense", flat, waves), newshape=[*lead, waves.shape[0]])


@_named("dft")
def _dft(re_data, im_data, inverse=False):
    """Returns the discrete Fourier transform along the last axis, a tuple of real and imaginary parts.

    A product with a matrix of waves: for thousands of points, not millions.
    """
    (count,) = _known(re_data.shape[-1:], "relay.dft")
    cos, sin = _waves(count, count, re_data.dtype)
    sign = "subtract", "add"
    rr, ri = _product(re_data, cos), _product(re_data, sin)
    ir, ii = _product(im_data, cos), _product(im_data, sin)
    if inverse:
        scale = _core.Constant(1 / count, re_data.dtype)
        re, im = call(sign[0], rr, ii), call(sign[1], ir, ri)
        return _core.Tuple([call("multiply", re, scale), call("multiply", im, scale)])
    return _core.Tuple([call(sign[1], rr, ii), call(sign[0], ir, ri)])


@_named("stft")
def _stft(
    data, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=True
):
    """Returns the Fourier transforms of windows: (batch, frequency, window, real or imaginary)."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    plain = len(data.shape) == 1
    data = call("expand_dims", data, axis=0) if plain else data
    frames = _sliding_window(data, 1, [n_fft], [hop_length])
    if window is None:
        window = _core.Constant(np.ones(win_length), data.dtype)
    if win_length < n_fft:
        front = (n_fft - win_length) // 2
        widths = [[front, n_fft - win_length - front]]
        window = call("nn.pad", _tensor(window), _core.Constant(0, data.dtype), pad_width=widths)
    frames = call("multiply", frames, _tensor(window))
    cos, sin = _waves(n_fft, n_fft // 2 + 1 if onesided else n_fft, data.dtype)
    parts = [_product(frames, cos), call("negative", _product(frames, sin))]
    out = call("transpose", call("stack", _core.Tuple(parts), axis=-1), axes=[0, 2, 1, 3])
    if normalized:
        out = call("multiply", out, _core.Constant(1 / math.sqrt(n_fft), data.dtype))
    return call("squeeze", out, axis=[0]) if plain else out


# ---- Gradients -----------------------------------------------------------------------------------


def _adjoint(build: object, at: _core.Expr, adjoint: _core.Expr) -> _core.Expr:
    """The gradient of build(x) for x = at, weighted by the adjoint."""
    from relay.transform import vjp

    x = _core.Var("x", at.checked_type)
    pair = _core.apply_function(vjp(_core.Function([x], build(x))), [at, adjoint])
    return _core.TupleGetItem(_core.TupleGetItem(pair, 1), 0)


@_named("nn.max_pool2d_grad")
def _max_pool2d_grad(
    out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout="NCHW", out_layout="",
    ceil_mode=False,
):  # fmt: skip
    """Returns the gradient of nn.max_pool2d, weighted by out_grad."""
    attrs = {
        "pool_size": pool_size, "strides": strides, "padding": padding, "layout": layout,
        "out_layout": out_layout, "ceil_mode": ceil_mode,
    }  # fmt: skip
    return _adjoint(lambda x: call("nn.max_pool2d", x, **attrs), data, out_grad)


@_named("nn.avg_pool2d_grad")
def _avg_pool2d_grad(
    out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout="NCHW", out_layout="",
    ceil_mode=False, count_include_pad=False,
):  # fmt: skip
    """Returns the gradient of nn.avg_pool2d, weighted by out_grad."""
    attrs = {
        "pool_size": pool_size, "strides": strides, "padding": padding, "layout": layout,
        "out_layout": out_layout, "ceil_mode": ceil_mode, "count_include_pad": count_include_pad,
    }  # fmt: skip
    return _adjoint(lambda x: call("nn.avg_pool2d", x, **attrs), data, out_grad)
