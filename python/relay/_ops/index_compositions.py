"""Relay's functions whose arguments are given in another form than their operators take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay import _core
from relay._errors import wrong
from relay._ops.call import call, is_number
from relay._ops.compositions import _named


def _numbers(value: object, what: str) -> list[int]:
    """A list of integers, or a constant of them."""
    if isinstance(value, _core.Constant):
        value = value.data.tolist()
    value = [value] if is_number(value) else value
    if isinstance(value, _core.Expr) or not all(is_number(v) for v in value):
        raise wrong(f"relay.{what} needs numbers that are known when the program is built")
    return [int(v) for v in value]


def _tensor(value: object, dtype: str | None = None) -> _core.Expr:
    return value if isinstance(value, _core.Expr) else _core.Constant(value, dtype)


@_named("strided_set")
def _strided_set(data, v, begin, end, strides=None):
    """Returns the data with `v` in the place of data[begin:end:strides]."""
    attrs = {"begin": begin, "end": end, "strides": [] if strides is None else strides}
    known = {name: _numbers(value, "strided_set") for name, value in attrs.items()}
    return call("strided_set", data, _tensor(v), **known)


@_named("reverse_reshape")
def _reverse_reshape(data, newshape):
    """Returns the elements in a shape whose codes 0, -1, -2 and -3 are read from the right.

    (10, 5, 4) in (-1, 0) is (50, 4).
    """
    return call("contrib_reverse_reshape", data, newshape=_numbers(newshape, "reverse_reshape"))


@_named("matrix_set_diag")
def _matrix_set_diag(data, diagonal, k=0, align="RIGHT_LEFT"):
    """Returns matrices with other diagonals, from the k-th or the first to the last of a pair.

    align: where shorter ones are in `diagonal`, above and below the main one.
    """
    low, high = (k, k) if is_number(k) else k
    words = align.split("_")
    if len(words) != 2 or not set(words) <= {"LEFT", "RIGHT"}:
        raise wrong("relay.matrix_set_diag: align is LEFT or RIGHT above and below: RIGHT_LEFT")
    right = [word == "RIGHT" for word in words]
    attrs = {"super_diag_right_align": right[0], "sub_diag_right_align": right[1]}
    return call("matrix_set_diag", data, diagonal, k1=low, k2=high, **attrs)


@_named("sparse_to_dense")
def _sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0):
    """Returns a tensor of one value but at some places, which have values of their own."""
    values = _tensor(sparse_values)
    is_list = not isinstance(sparse_indices, _core.Expr)
    places = _tensor(sparse_indices, "int32" if is_list else None)
    shape = _numbers(output_shape, "sparse_to_dense")
    fill = _tensor(default_value, values.dtype)
    return call("sparse_to_dense", places, values, fill, output_shape=shape)


@_named("nn.sparse_dense")
def _sparse_dense(dense_mat, sparse_mat, sparse_lhs=False):
    """Returns dense_mat by the transpose of a sparse matrix, a triple (data, indices, indptr).

    With sparse_lhs the sparse matrix by the transpose of dense_mat. It is made dense: for large
    ones `relay.prim_func` writes the loop over its elements.
    """
    return call("nn.sparse_dense", dense_mat, *map(_tensor, sparse_mat), sparse_lhs=sparse_lhs)


@_named("nn.sparse_add")
def _sparse_add(dense_mat, sparse_mat):
    """Returns the sum of a matrix and a sparse one, a triple (data, indices, indptr)."""
    return call("nn.sparse_add", dense_mat, *map(_tensor, sparse_mat))


@_named("nn.sparse_transpose")
def _sparse_transpose(x: Sequence):
    """Returns the transpose of a sparse square matrix, a triple (data, indices, indptr), as one."""
    return call("nn.sparse_transpose", *map(_tensor, x))


@_named("stft")
def _stft(
    data, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=True
):
    """Returns the Fourier transforms of windows: (batch, frequency, window, real or imaginary)."""
    plain = len(data.shape) == 1
    win_length = n_fft if win_length is None else win_length
    weights = _core.Constant(np.ones(win_length), data.dtype) if window is None else window
    out = call(
        "stft",
        call("expand_dims", data, axis=0) if plain else data,
        _tensor(weights),
        n_fft=n_fft,
        hop_length=n_fft // 4 if hop_length is None else hop_length,
        win_length=win_length,
        normalized=normalized,
        onesided=onesided,
    )
    return call("squeeze", out, axis=[0]) if plain else out
