"""What the operators mean that are made of others, over NumPy's arrays; see oracle_registry."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
from oracle_registry import ORACLES, oracle
from window_oracles import borders, channels_first, convolution, from_channels_first, padded


@oracle("slice_like")
def _(a, x, like):
    cut = [slice(None)] * x.ndim
    for axis in a.axes or range(x.ndim):
        cut[axis] = slice(like.shape[axis])
    return x[tuple(cut)]


@oracle("strided_set")
def _(a, x, v):
    out = x.copy()
    strides = a.strides or [1] * len(a.begin)
    out[tuple(slice(*p) for p in zip(a.begin, a.end, strides, strict=True))] = v
    return out


@oracle("contrib_reverse_reshape")
def _(a, x):
    shape, left = [], list(x.shape)
    for code in reversed(a.newshape):
        if code == 0:
            shape.append(left.pop())
        elif code == -3:
            shape.append(left.pop() * left.pop())
        else:
            shape.append(code)
            left = left[:-1]
    return x.reshape(shape[::-1])


@oracle("sliding_window")
def _(a, x):
    axes = tuple(range(a.axis, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, a.window_shape, axis=axes)
    return view[(slice(None),) * a.axis + tuple(slice(None, None, s) for s in a.strides)]


@oracle("nn.fifo_buffer")
def _(a, x, buffer):
    both = np.concatenate([buffer, x], axis=a.axis)
    return np.take(both, range(x.shape[a.axis], both.shape[a.axis]), axis=a.axis)


@oracle("nn.space_to_batch_nd")
def _(a, x):
    rest = [(0, 0)] * (x.ndim - len(a.block_shape) - 1)
    x = np.pad(x, [(0, 0), *map(tuple, a.paddings), *rest], constant_values=a.pad_value)
    places = itertools.product(*map(range, a.block_shape))
    steps = [[slice(p, None, b) for p, b in zip(at, a.block_shape, strict=True)] for at in places]
    return np.concatenate([x[(slice(None), *cut)] for cut in steps])


@oracle("nn.batch_to_space_nd")
def _(a, x):
    batch = x.shape[0] // int(np.prod(a.block_shape))
    sizes = [n * b for n, b in zip(x.shape[1:], a.block_shape, strict=False)]
    out = np.zeros((batch, *sizes, *x.shape[1 + len(sizes) :]))
    for i, at in enumerate(itertools.product(*map(range, a.block_shape))):
        cut = [slice(p, None, b) for p, b in zip(at, a.block_shape, strict=True)]
        out[(slice(None), *cut)] = x[i * batch : (i + 1) * batch]
    ends = [slice(f, n - e) for (f, e), n in zip(a.crops, sizes, strict=True)]
    return out[(slice(None), *ends)]


@oracle("vision.yolo_reorg")
def _(a, x):
    """Darknet's loop over the places in memory."""
    batch, channels, height, width = x.shape
    s, few = a.stride, channels // a.stride**2
    flat, out = x.reshape(batch, -1), np.zeros((batch, x[0].size))
    for k, j, i in itertools.product(range(channels), range(height), range(width)):
        offset = k // few
        from_x, from_y = i * s + offset % s, j * s + offset // s
        place = from_x + width * s * (from_y + height * s * (k % few))
        out[:, i + width * (j + height * k)] = flat[:, place]
    return out.reshape(batch, channels * s * s, height // s, width // s)


@oracle("matrix_set_diag")
def _(a, x, diagonal):
    out, (rows, columns) = x.copy(), x.shape[-2:]
    diagonal = diagonal[..., None, :] if a.k1 == a.k2 else diagonal
    for d in range(a.k1, a.k2 + 1):
        length = min(rows + min(d, 0), columns - max(d, 0))
        right = a.super_diag_right_align if d >= 0 else a.sub_diag_right_align
        start = diagonal.shape[-1] - length if right else 0
        for n in range(length):
            out[..., n - min(d, 0), n + max(d, 0)] = diagonal[..., a.k2 - d, start + n]
    return out


@oracle("sparse_to_dense")
def _(a, places, values, default):
    out = np.full(a.output_shape, default)
    for place, value in zip(places, values, strict=True):
        out[tuple(place)] = value
    return out


def plain(values, columns, starts, width) -> np.ndarray:
    """A sparse matrix as one."""
    out = np.zeros((len(starts) - 1, width))
    for row in range(len(out)):
        for n in range(starts[row], starts[row + 1]):
            out[row, columns[n]] += values[n]
    return out


@oracle("nn.sparse_dense")
def _(a, x, *sparse):
    other = plain(*sparse, x.shape[1])
    return other @ x.T if a.sparse_lhs else x @ other.T


@oracle("nn.sparse_add")
def _(a, x, *sparse):
    return x + plain(*sparse, x.shape[1])


@oracle("nn.sparse_transpose")
def _(a, *sparse):
    turned = plain(*sparse, len(sparse[2]) - 1).T
    rows, columns = np.nonzero(turned)
    counts = np.count_nonzero(turned, axis=1)
    starts = np.cumsum([0, *counts])
    return [turned[rows, columns], columns.astype("int32"), starts.astype("int32")]


@oracle("sparse_reshape")
def _(a, places, old, new):
    made = np.zeros(old).reshape(new).shape
    flat = np.ravel_multi_index(tuple(places.T), tuple(old))
    return [np.stack(np.unravel_index(flat, made), 1).astype("int32"), np.array(made, "int32")]


@oracle("dft")
def _(a, re, im):
    out = (np.fft.ifft if a.inverse else np.fft.fft)(re + 1j * im)
    return [out.real, out.imag]


@oracle("stft")
def _(a, x, window):
    front = (a.n_fft - a.win_length) // 2
    window = np.pad(window, (front, a.n_fft - a.win_length - front))
    frames = np.lib.stride_tricks.sliding_window_view(x, a.n_fft, axis=1)[:, :: a.hop_length]
    out = np.fft.fft(frames * window)[..., : a.n_fft // 2 + 1 if a.onesided else a.n_fft]
    out = out / np.sqrt(a.n_fft) if a.normalized else out
    return np.stack([out.real, out.imag], -1).transpose(0, 2, 1, 3)


# ---- Sums, windows and selections


@oracle("logsumexp")
def _(a, x):
    axis = None if a.axis is None else tuple(a.axis)
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=a.keepdims))


def reduced_axes(a: SimpleNamespace, rank: int) -> tuple[int, ...]:
    axes = range(rank) if a.axis is None else a.axis
    return tuple(d for d in range(rank) if (d in axes) != a.exclude)


@oracle("std", "mean_std", "mean_variance")
def moments(a, x):
    axes = reduced_axes(a, x.ndim)
    return x.std(axis=axes, keepdims=a.keepdims, ddof=int(a.unbiased))


def mean_and(a, x, power: int):
    mean = x.mean(axis=reduced_axes(a, x.ndim), keepdims=a.keepdims)
    return [mean, moments(a, x) ** power]


ORACLES["mean_std"] = lambda a, x: mean_and(a, x, 1)
ORACLES["mean_variance"] = lambda a, x: mean_and(a, x, 2)


@oracle("segment_sum")
def _(a, x, ids):
    return np.stack([x[ids == n].sum(axis=0) for n in range(a.num_segments)])


def fixed_point(x, multiplier, shift, rounding) -> int:
    """An integer by a factor, with the rounding of the operators."""
    exact, right = x * multiplier * 2 ** max(shift, 0), max(-shift, 0)
    if rounding == "ONCE":
        return (exact + 2 ** (30 + right)) >> (31 + right)
    first = (exact + 2**30) >> 31
    away = (abs(first) + (2**right >> 1)) >> right
    return away if first >= 0 else -away


@oracle("fixed_point_multiply")
def _(a, x):
    flat = [fixed_point(int(v), a.multiplier, a.shift, a.rounding) for v in x.ravel()]
    return np.array(flat, "int32").reshape(x.shape)


@oracle("fixed_point_multiply_per_axis")
def _(a, x, multiplier, left, right):
    shape = [x.shape[d] if d in a.axes else 1 for d in range(x.ndim)]
    parts = np.broadcast_arrays(x, *(p.reshape(shape) for p in (multiplier, left - right)))
    flat = [
        fixed_point(*map(int, v), a.rounding) for v in zip(*(p.ravel() for p in parts), strict=True)
    ]
    return np.array(flat, "int32").reshape(x.shape)


@oracle("unique")
def _(a, x):
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.arange(len(values)) if a.sorted else np.argsort(first)
    rank = np.argsort(order)
    pad = (0, len(x) - len(values))
    out = [np.pad(values[order], pad), np.pad(first[order], pad), rank[inverse.ravel()]]
    out.append(np.array([len(values)]))
    out += [np.pad(counts[order], pad)] if a.return_counts else []
    return [v.astype("int32") for v in out]


def over_space(over):
    return lambda a, x: over(x, axis=tuple(range(2, x.ndim)), keepdims=True)


oracle("nn.global_max_pool1d", "nn.global_max_pool3d")(over_space(np.max))
oracle("nn.global_avg_pool1d", "nn.global_avg_pool3d")(over_space(np.mean))


@oracle("nn.max_pool2d_grad", "nn.avg_pool2d_grad")
def pool_gradient(a, g, x, best=False):
    """Of windows without borders that do not overlap."""
    out, (ky, kx) = np.zeros(x.shape), a.pool_size
    for i, j in np.ndindex(*g.shape[2:]):
        part = (slice(None), slice(None), slice(i * ky, (i + 1) * ky), slice(j * kx, (j + 1) * kx))
        if best:
            share = x[part] == x[part].max(axis=(2, 3), keepdims=True)
            share = share / share.sum(axis=(2, 3), keepdims=True)
        else:
            share = 1 / (ky * kx)
        out[part] = g[:, :, i, j, None, None] * share
    return out


ORACLES["nn.max_pool2d_grad"] = lambda a, g, x: pool_gradient(a, g, x, True)


def below(size, scale):
    """The elements that the nearest neighbour of half pixels takes where nothing is said of rounding."""
    at = (np.arange(size * scale) + 0.5) / scale - 0.5
    return np.maximum(np.floor(at + 1e-5), 0).astype(int)


@oracle("nn.upsampling3d")
def _(a, x):
    # As the first Relay: the element below half a pixel's distance, also at whole scales.
    for axis, scale in ((2, a.scale_d), (3, a.scale_h), (4, a.scale_w)):
        x = x.take(below(x.shape[axis], int(scale)), axis=axis)
    return x


@oracle("image.dilation2d")
def _(a, x, w):
    x = channels_first(x, a.data_layout)
    w = w.transpose(2, 0, 1) if a.kernel_layout == "HWI" else w
    x = padded(x, a.padding, a.padding, -np.inf)
    (sy, sx), (dy, dx) = a.strides, a.dilations
    rows, columns = ((w.shape[1] - 1) * dy + 1, (w.shape[2] - 1) * dx + 1)
    sizes = (x.shape[2] - rows) // sy + 1, (x.shape[3] - columns) // sx + 1
    out = np.zeros((*x.shape[:2], *sizes))
    for i, j in np.ndindex(*sizes):
        part = x[:, :, i * sy : i * sy + rows : dy, j * sx : j * sx + columns : dx]
        out[:, :, i, j] = (part + w).max(axis=(2, 3))
    return from_channels_first(out, a.data_layout)


@oracle("nn.correlation")
def _(a, x, y):
    x, y = padded(x, a.padding, a.padding), padded(y, a.padding, a.padding)
    reach, k = a.max_displacement, a.kernel_size
    border = 2 * (reach + (k - 1) // 2)
    sizes = [-(-(n - border) // a.stride1) for n in x.shape[2:]]
    moves = range(-(reach // a.stride2) * a.stride2, reach + 1, a.stride2)
    out = np.zeros((x.shape[0], len(moves) ** 2, *sizes))
    for n, (dy, dx) in enumerate(itertools.product(moves, moves)):
        for i, j in np.ndindex(*sizes):
            r, c = i * a.stride1 + reach, j * a.stride1 + reach
            left = x[:, :, r : r + k, c : c + k]
            right = y[:, :, r + dy : r + dy + k, c + dx : c + dx + k]
            both = left * right if a.is_multiply else abs(left - right)
            out[:, n, i, j] = both.mean(axis=(1, 2, 3))
    return out


@oracle("nn.bitpack")
def _(a, x):
    planes = [np.packbits(x >> b & 1, axis=a.pack_axis) for b in range(a.bits)]
    return np.stack(planes, a.bit_axis)


def of_bits(x: np.ndarray, bits: int, signs: bool) -> np.ndarray:
    """The sum of the bits, each by its power of two, as 0 and 1 or as -1 and 1."""
    planes = [(x.astype(np.int64) >> b & 1) << b for b in range(bits)]
    return sum((2 * p - (1 << b) if signs else p) for b, p in enumerate(planes))


@oracle("nn.bitserial_dense")
def _(a, x, w):
    product = of_bits(x, a.data_bits, False) @ of_bits(w, a.weight_bits, a.unipolar).T
    return product.astype(a.out_dtype)


@oracle("nn.bitserial_conv2d")
def _(a, x, w):
    x = padded(of_bits(x, a.activation_bits, False), a.padding, a.padding)
    weight = of_bits(w, a.weight_bits, a.unipolar)
    return convolution(x, weight, a.strides, [1, 1], 1).astype(a.out_dtype)


@oracle(
    "annotation.stop_fusion",
    "annotation.checkpoint",
    "annotation.compiler_begin",
    "annotation.compiler_end",
    "device_copy",
    "on_device",
)
def _(a, x):
    return x


@oracle("sparse_fill_empty_rows")
def _(a, indices, values, shape, value):
    empty = np.bincount(indices[:, 0], minlength=shape[0]) == 0
    places = np.zeros((empty.sum(), indices.shape[1]), indices.dtype)
    places[:, 0] = np.flatnonzero(empty)
    fills = np.full(len(places), value.item(), values.dtype)
    indices, values = np.concatenate([indices, places]), np.concatenate([values, fills])
    order = np.argsort(indices[:, 0], kind="stable")
    return [indices[order], values[order], empty]


@oracle("nn.conv2d_backward_weight")
def _(a, g, x):
    """The derivative of each element of the result by an element of the weight is one of the data."""
    g, x = channels_first(g, a.grad_layout), channels_first(x, a.data_layout)
    x = padded(x, *borders(a.padding, 2))
    (height, width), each = a.kernel_size, x.shape[1] // a.groups
    out = np.zeros((g.shape[1], each, height, width))
    for o, c, i, j in np.ndindex(*out.shape):
        at = o // (g.shape[1] // a.groups) * each + c
        rows = i * a.dilation[0] + np.arange(g.shape[2]) * a.strides[0]
        columns = j * a.dilation[1] + np.arange(g.shape[3]) * a.strides[1]
        out[o, c, i, j] = (x[:, at][:, rows][:, :, columns] * g[:, o]).sum()
    return out.transpose(["OIHW".index(axis) for axis in a.kernel_layout])


def deformed(a, x, offset, mask, w):
    """Each element that a kernel reads is moved, and read between the four around its place."""
    x, offset = channels_first(x, a.data_layout), channels_first(offset, a.data_layout)
    w = w.transpose([a.kernel_layout.index(axis) for axis in "OIHW"])
    (n, channels), (out, each, ky, kx) = x.shape[:2], w.shape
    begins, _ = borders(a.padding, 2)
    y = np.zeros((n, out, *offset.shape[2:]))
    for b, o, i, j in np.ndindex(*y.shape):
        for c, p, q in np.ndindex(each, ky, kx):
            at = o // (out // a.groups) * each + c
            group = at // (channels // a.deformable_groups)
            first = 2 * (group * ky * kx + p * kx + q)
            row = i * a.strides[0] - begins[0] + p * a.dilation[0] + offset[b, first, i, j]
            column = j * a.strides[1] - begins[1] + q * a.dilation[1] + offset[b, first + 1, i, j]
            v = between(x[b, at], row, column, a.border == "zeros")
            y[b, o, i, j] += v * w[o, c, p, q] * (1 if mask is None else mask[b, first // 2, i, j])
    return from_channels_first(y, a.data_layout)


def between(image: np.ndarray, row: float, column: float, zeros: bool) -> float:
    """An image at a place: with zeros around it, or nothing beyond the edge's places."""
    height, width = image.shape
    if not zeros and not (0 <= row < height and 0 <= column < width):
        return 0.0
    total, low = 0.0, (math.floor(row), math.floor(column))
    for i, j in itertools.product((0, 1), (0, 1)):
        p, q = low[0] + i, low[1] + j
        share = (1 - abs(row - p)) * (1 - abs(column - q))
        if not zeros:
            p, q = min(p, height - 1), min(q, width - 1)
        if 0 <= p < height and 0 <= q < width:
            total += share * image[p, q]
    return total


oracle("nn.deformable_conv2d")(lambda a, x, offset, w: deformed(a, x, offset, None, w))
oracle("nn.modulated_deformable_conv2d")(deformed)
