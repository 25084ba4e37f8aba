"""Calls of each of NumPy's functions that is here, by name: expressions of the values below.

Each is what a user would write; `test_numpy_names.py` compares their results with NumPy's own, and
fails where a function that is here has none.
"""

from __future__ import annotations

import numpy as np

# ruff: noqa: E501


def values(seed: int = 0) -> dict[str, np.ndarray]:
    """The arguments that expressions are about, drawn anew for each seed."""
    rng = np.random.default_rng(seed)
    n = rng.standard_normal((3, 4)).astype("float32")
    n[0, 1] = n[2, 2] = np.nan
    matrix = rng.standard_normal((3, 3)) + 3 * np.eye(3)
    special = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3.0])
    return {
        "x": rng.standard_normal((3, 4)),
        "y": rng.standard_normal((3, 4)).astype("float32"),
        "p": rng.uniform(0.1, 0.9, (3, 4)).astype("float32"),
        "v": rng.standard_normal(6),
        "w": rng.standard_normal(6),
        "e": rng.standard_normal(5).astype("float32"),
        "i": rng.integers(-9, 9, 6),
        "k": rng.integers(0, 5, 6).astype("int32"),
        "j": rng.integers(1, 7, 6),
        "b": rng.integers(0, 2, 6).astype(bool),
        "g": rng.integers(0, 2, (3, 4)).astype(bool),
        "m": matrix,
        "n": n,
        "c": rng.standard_normal((2, 3, 4)).astype("float32"),
        "s": np.sort(rng.standard_normal(7)),
        "z": special,
        "r": rng.permutation(special).astype("float32"),
        "t": np.array(["ab", "Cd", "x"], object),
        "u": rng.integers(0, 255, 6).astype("uint8"),
        "o": np.float64(rng.standard_normal()),
    }


UNARY_ANY = [
    "absolute",
    "abs",
    "negative",
    "positive",
    "sign",
    "square",
    "conj",
    "conjugate",
    "isfinite",
    "isinf",
    "isnan",
    "logical_not",
]
UNARY_FLOAT = [
    "acosh", "arccosh",
    "arcsinh", "asinh", "arctan", "atan", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "rint", "sin", "sinh", "tan",
    "tanh", "trunc", "cbrt", "deg2rad", "rad2deg", "degrees", "radians", "signbit", "fix", "sinc", "isposinf", "isneginf", "angle",
]  # fmt: skip
UNIT = ["acos", "arccos", "arcsin", "asin", "arctanh", "atanh"]
POSITIVE = ["log", "log10", "log1p", "log2", "sqrt", "reciprocal"]
BINARY = [
    "add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal",
]  # fmt: skip
DIVISIONS = ["divide", "true_divide", "floor_divide", "remainder", "mod", "fmod"]
BINARY_FLOAT = [
    "arctan2",
    "atan2",
    "hypot",
    "copysign",
    "heaviside",
    "logaddexp",
    "logaddexp2",
    "nextafter",
]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]

CASES: dict[str, list[str]] = {
    **{f: [f"np.{f}(x)", f"np.{f}(y)", f"np.{f}(i)", f"np.{f}(z)"] for f in UNARY_ANY},
    **{f: [f"np.{f}(x * 3)", f"np.{f}(y)", f"np.{f}(i)", f"np.{f}(z)"] for f in UNARY_FLOAT},
    **{f: [f"np.{f}(x / 5)", f"np.{f}(p)"] for f in UNIT},
    **{f: [f"np.{f}(x * x + 0.1)", f"np.{f}(p)", f"np.{f}(j)"] for f in POSITIVE},
    **{f: [f"np.{f}(x, y)", f"np.{f}(y, 2)", f"np.{f}(i, k)", f"np.{f}(z, z[::-1])"] for f in BINARY},
    **{f: [f"np.{f}(x, y)", f"np.{f}(y, 2)", f"np.{f}(i, j)"] for f in DIVISIONS},
    **{f: [f"np.{f}(x, y)", f"np.{f}(y, 2)", f"np.{f}(z, z[::-1])", f"np.{f}(z, r)"] for f in BINARY_FLOAT},
    **{f: [f"np.{f}(x, g)", f"np.{f}(i, b)"] for f in LOGICAL},
    **{f: [f"np.{f}(i, k)", f"np.{f}(b, ~b)"] for f in BITS},
    "arccosh": ["np.arccosh(x * x + 1)"], "acosh": ["np.acosh(p + 1)"],
    "invert": ["np.invert(i)", "np.invert(b)"], "bitwise_not": ["np.bitwise_not(k)"], "bitwise_invert": ["np.bitwise_invert(i)"],
    "left_shift": ["np.left_shift(k, 2)"], "right_shift": ["np.right_shift(i, 1)"],
    "bitwise_left_shift": ["np.bitwise_left_shift(k, k)"], "bitwise_right_shift": ["np.bitwise_right_shift(i, 1)"],
    "power": ["np.power(p, y)", "np.power(j, 3)"], "pow": ["np.pow(p, 2)"], "float_power": ["np.float_power(p, 2)", "np.float_power(j, k)"],
    "ldexp": ["np.ldexp(x, i[:4])", "np.ldexp(y, 3)"], "frexp": ["np.frexp(x)", "np.frexp(z)", "np.frexp(y)", "np.frexp(np.array([1.0, 2.0, 0.5, 8.0, 1e-300]))"],
    "modf": ["np.modf(x * 4)", "np.modf(z)", "np.modf(y)"], "divmod": ["np.divmod(i, j)", "np.divmod(x, 0.7)"],
    "gcd": ["np.gcd(i, j)", "np.gcd(k, 12)"], "lcm": ["np.lcm(i, j)", "np.lcm(k, 12)"],
    "spacing": ["np.spacing(x)", "np.spacing(y)"], "bitwise_count": ["np.bitwise_count(i)", "np.bitwise_count(u)", "np.bitwise_count(k)"],
    "isclose": ["np.isclose(x, x + 1e-9)", "np.isclose(y, y * 1.00001)", "np.isclose(z, z, equal_nan=True)", "np.isclose(i, i[::-1], atol=2)", "np.isclose(z, z[::-1])", "np.isclose(y, x)", "np.isclose(i, v)"],
    "allclose": ["np.allclose(x, x)", "np.allclose(y, y + 1)", "np.allclose(z, z, equal_nan=True)"],
    "array_equal": ["np.array_equal(x, x)", "np.array_equal(x, v)", "np.array_equal(i, i + 1)", "np.array_equal(z, z, equal_nan=True)"],
    "array_equiv": ["np.array_equiv(v, v)", "np.array_equiv(x, x[:1])"],
    "isreal": ["np.isreal(x)"], "iscomplex": ["np.iscomplex(y)"], "isrealobj": ["np.isrealobj(x)"], "iscomplexobj": ["np.iscomplexobj(x)"],
    "real": ["np.real(x)"], "imag": ["np.imag(y)"], "real_if_close": ["np.real_if_close(x)"], "isfortran": ["np.isfortran(x)"],
    "nan_to_num": ["np.nan_to_num(n)", "np.nan_to_num(z)", "np.nan_to_num(r, nan=1.5, posinf=7.0, neginf=-7.0)", "np.nan_to_num(i)"],
    "unwrap": ["np.unwrap(v * 5)", "np.unwrap(x * 5, axis=0)"],
    "round": ["np.round(x, 2)", "np.round(y)", "np.round(y, 1)", "np.round(i, -1)", "np.round(v * 100, decimals=-1)"], "around": ["np.around(x, 3)"],
    # Reductions
    "sum": ["np.sum(x)", "np.sum(y, axis=0)", "np.sum(i)", "np.sum(k, axis=0)", "np.sum(b)", "np.sum(x, axis=(0, 1), keepdims=True)", "np.sum(x, where=g)", "np.sum(x, axis=1, initial=2.0)", "np.sum(x, 0, None, None, True)", "np.sum(y, dtype='float64')"],
    "prod": ["np.prod(x)", "np.prod(y, axis=1)", "np.prod(j)", "np.prod(x, axis=0, where=g)", "np.prod(x, initial=3.0)"],
    "mean": ["np.mean(x)", "np.mean(y, axis=1)", "np.mean(i)", "np.mean(x, axis=0, keepdims=True)", "np.mean(x, where=g | (x > 0))"],
    "average": ["np.average(x)", "np.average(x, axis=0, weights=x[:, 0] * 0 + np.arange(1.0, 4.0))", "np.average(y, weights=p)", "np.average(i)", "np.average(i, weights=j)", "np.average(x, axis=1, weights=np.arange(1.0, 5.0), returned=True)", "np.average(x, axis=1, returned=True)"],
    "var": ["np.var(x)", "np.var(y, axis=0)", "np.var(x, ddof=1)", "np.var(x, axis=1, keepdims=True)", "np.var(i)", "np.var(x, correction=1)"],
    "std": ["np.std(x)", "np.std(y, axis=0)", "np.std(x, axis=1, ddof=1)", "np.std(x, where=x > -9)"],
    "max": ["np.max(x)", "np.max(y, axis=0)", "np.max(i)", "np.max(x, initial=9.0)", "np.max(x, axis=1, where=g, initial=-9.0)"], "amax": ["np.amax(x, axis=1)"],
    "min": ["np.min(x)", "np.min(y, axis=0)", "np.min(i)", "np.min(x, axis=1, where=g, initial=9.0)"], "amin": ["np.amin(x, axis=1)"],
    "argmax": ["np.argmax(x)", "np.argmax(y, axis=0)", "np.argmax(i)", "np.argmax(x, axis=1, keepdims=True)"], "argmin": ["np.argmin(x)", "np.argmin(y, axis=1)"],
    "any": ["np.any(g)", "np.any(x > 1, axis=0)", "np.any(i)", "np.any(g, where=~g)"], "all": ["np.all(g)", "np.all(x > -1, axis=1)", "np.all(g, where=g)"],
    "count_nonzero": ["np.count_nonzero(g)", "np.count_nonzero(k, axis=0)", "np.count_nonzero(g, axis=1)"],
    "cumsum": ["np.cumsum(x)", "np.cumsum(y, axis=0)", "np.cumsum(k)"], "cumprod": ["np.cumprod(x)", "np.cumprod(y, axis=1)", "np.cumprod(j)"],
    "cumulative_sum": ["np.cumulative_sum(v)", "np.cumulative_sum(x, axis=1, include_initial=True)"], "cumulative_prod": ["np.cumulative_prod(v)", "np.cumulative_prod(x, axis=0, include_initial=True)"],
    "ptp": ["np.ptp(x)", "np.ptp(y, axis=0)", "np.ptp(i)"],
    "median": ["np.median(x)", "np.median(y, axis=0)", "np.median(i)", "np.median(x, axis=1, keepdims=True)", "np.median(n)", "np.median(c, axis=(0, 2))", "np.median(e)"],
    "quantile": ["np.quantile(x, 0.3)", "np.quantile(y, 0.25, axis=0)", "np.quantile(x, [0.1, 0.9], axis=1)", "np.quantile(i, 0.5)", "np.quantile(v, 0.4, method='lower')", "np.quantile(v, 0.4, method='higher')", "np.quantile(v, 0.4, method='nearest')", "np.quantile(v, 0.4, method='midpoint')", "np.quantile(n, 0.5, axis=0)", "np.quantile(x, 0.2, keepdims=True)"],
    "percentile": ["np.percentile(x, 30)", "np.percentile(y, 25, axis=0)", "np.percentile(x, [10, 90])", "np.percentile(i, 50)", "np.percentile(y, 33.3)"],
    "cov": ["np.cov(x)", "np.cov(v, w)", "np.cov(v)", "np.cov(y, rowvar=False)", "np.cov(x, bias=True)", "np.cov(x, ddof=0)"],
    "corrcoef": ["np.corrcoef(x)", "np.corrcoef(v, w)", "np.corrcoef(x, rowvar=False)"],
    "bincount": ["np.bincount(k)", "np.bincount(k, minlength=9)", "np.bincount(k, weights=v)", "np.bincount(u)"],
    "histogram": ["np.histogram(v)", "np.histogram(v, bins=4)", "np.histogram(x, bins=5, range=(-1.0, 1.0))", "np.histogram(v, bins=[-2.0, -0.5, 0.0, 1.0])", "np.histogram(v, density=True)", "np.histogram(v, bins=3, weights=w)", "np.histogram(i, bins=4)", "np.histogram(v * 0, bins=3)"],
    "histogram_bin_edges": ["np.histogram_bin_edges(v, bins=4)", "np.histogram_bin_edges(i)", "np.histogram_bin_edges(e, 3)"],
    "nansum": ["np.nansum(n)", "np.nansum(n, axis=0)", "np.nansum(i)"], "nanprod": ["np.nanprod(n)", "np.nanprod(n, axis=1)"],
    "nanmean": ["np.nanmean(n)", "np.nanmean(n, axis=1)", "np.nanmean(i)"], "nanvar": ["np.nanvar(n)", "np.nanvar(n, axis=0, ddof=1)"], "nanstd": ["np.nanstd(n, axis=1)"],
    "nanmax": ["np.nanmax(n)", "np.nanmax(n, axis=0)", "np.nanmax(i)"], "nanmin": ["np.nanmin(n)", "np.nanmin(n, axis=1)"],
    "nanargmax": ["np.nanargmax(n)", "np.nanargmax(n, axis=0)"], "nanargmin": ["np.nanargmin(n, axis=1)"],
    "nanmedian": ["np.nanmedian(n)", "np.nanmedian(n, axis=0)", "np.nanmedian(n, axis=1, keepdims=True)"],
    "nanquantile": ["np.nanquantile(n, 0.3)", "np.nanquantile(n, 0.3, axis=1)"], "nanpercentile": ["np.nanpercentile(n, 70, axis=0)"],
    "nancumsum": ["np.nancumsum(n)", "np.nancumsum(n, axis=1)"], "nancumprod": ["np.nancumprod(n, axis=0)"],
    # Shapes
    "reshape": ["np.reshape(x, (4, 3))", "np.reshape(x, -1)"], "ravel": ["np.ravel(x)"], "transpose": ["np.transpose(x)", "np.transpose(c, (2, 0, 1))"], "permute_dims": ["np.permute_dims(c, (1, 0, 2))"],
    "swapaxes": ["np.swapaxes(c, 0, 2)"], "moveaxis": ["np.moveaxis(c, 0, -1)", "np.moveaxis(c, (0, 1), (1, 2))"], "rollaxis": ["np.rollaxis(c, 2)", "np.rollaxis(c, 0, 3)"], "matrix_transpose": ["np.matrix_transpose(c)"],
    "expand_dims": ["np.expand_dims(x, 1)", "np.expand_dims(x, (0, -1))"], "squeeze": ["np.squeeze(np.ones((1, 3)))", "np.squeeze(x[None], axis=0)"],
    "broadcast_to": ["np.broadcast_to(v, (2, 6))"], "broadcast_arrays": ["np.broadcast_arrays(x, x[:1], x[:, :1])"], "broadcast_shapes": ["np.broadcast_shapes((2, 1), (1, 3))"],
    "concatenate": ["np.concatenate([x, y])", "np.concatenate((x, x), axis=1)", "np.concatenate([x, v], axis=None)"], "concat": ["np.concat([v, w])"], "append": ["np.append(v, w)", "np.append(x, x, axis=1)", "np.append(v, 3.0)"],
    "stack": ["np.stack([v, w])", "np.stack([v, w], axis=-1)"], "vstack": ["np.vstack([v, w])"], "hstack": ["np.hstack([v, w])", "np.hstack([x, x])"], "dstack": ["np.dstack([v, w])", "np.dstack([x, x])"], "column_stack": ["np.column_stack([v, w])", "np.column_stack([x, x])"], "block": ["np.block([[m, m], [m, m]])", "np.block([v, w])"],
    "split": ["np.split(v, 3)", "np.split(v, [2, 3])", "np.split(x, 2, axis=1)"], "array_split": ["np.array_split(v, 4)", "np.array_split(x, 3, axis=1)"], "hsplit": ["np.hsplit(x, 2)", "np.hsplit(v, 2)"], "vsplit": ["np.vsplit(x, 3)"], "dsplit": ["np.dsplit(c, 2)"], "unstack": ["np.unstack(np.eye(3))", "np.unstack(np.eye(2), axis=1)"],
    "tile": ["np.tile(v, 2)", "np.tile(x, (2, 1))"], "repeat": ["np.repeat(v, 2)", "np.repeat(x, 3, axis=1)"], "resize": ["np.resize(v, (2, 4))", "np.resize(v, 3)"], "delete": ["np.delete(v, 2)", "np.delete(x, [0, 2], axis=0)", "np.delete(np.eye(3), slice(1, 3), axis=0)"], "insert": ["np.insert(v, 2, 9.0)", "np.insert(x, 1, 5.0, axis=1)", "np.insert(v, 1, [7.0, 8.0])", "np.insert(x, 0, x[0], axis=0)"], "trim_zeros": ["np.trim_zeros(np.array([0, 0, 1, 2, 0, 3, 0]))", "np.trim_zeros(k, 'f')"],
    "flip": ["np.flip(x)", "np.flip(x, 0)", "np.flip(c, (0, 2))"], "fliplr": ["np.fliplr(x)"], "flipud": ["np.flipud(x)"], "rot90": ["np.rot90(x)", "np.rot90(x, 2)", "np.rot90(x, -1)", "np.rot90(c, 1, (1, 2))"],
    "roll": ["np.roll(v, 2)", "np.roll(x, 1, axis=1)", "np.roll(x, (1, 2), (0, 1))", "np.roll(x, 3)", "np.roll(v, -8)", "np.roll(x, 1, axis=(0, 1))"],
    "pad": ["np.pad(v, 2)", "np.pad(x, ((1, 0), (0, 2)), constant_values=3)", "np.pad(v, (1, 2), mode='edge')", "np.pad(v, 3, mode='reflect')", "np.pad(v, 3, mode='symmetric')", "np.pad(v, 8, mode='wrap')", "np.pad(v, 9, 'reflect')", "np.pad(x, 1, constant_values=((1, 2), (3, 4)))", "np.pad(i, 2, 'symmetric')"],
    "atleast_1d": ["np.atleast_1d(o)", "np.atleast_1d(v, x)"], "atleast_2d": ["np.atleast_2d(v)"], "atleast_3d": ["np.atleast_3d(v)", "np.atleast_3d(x)"],
    "diag": ["np.diag(v)", "np.diag(m)", "np.diag(x, 1)", "np.diag(v, -2)", "np.diag(i, k=1)"], "diagonal": ["np.diagonal(x)", "np.diagonal(x, -1)", "np.diagonal(c, 1, 0, 2)"], "diagflat": ["np.diagflat(x)"], "trace": ["np.trace(m)", "np.trace(x, 1)", "np.trace(c)", "np.trace(np.outer(k, k))"],
    "tril": ["np.tril(x)", "np.tril(x, -1)"], "triu": ["np.triu(x)", "np.triu(c, 1)"], "tri": ["np.tri(3)", "np.tri(3, 4, 1)", "np.tri(2, dtype='int32')"],
    "tril_indices": ["np.tril_indices(3)", "np.tril_indices(3, 1, 4)"], "triu_indices": ["np.triu_indices(4, 1)"], "tril_indices_from": ["np.tril_indices_from(x)"], "triu_indices_from": ["np.triu_indices_from(m, 1)"], "diag_indices": ["np.diag_indices(3)"], "diag_indices_from": ["np.diag_indices_from(m)"],
    "meshgrid": ["np.meshgrid(v, w)", "np.meshgrid(v, e, indexing='ij')", "np.meshgrid(v, i, e)", "np.meshgrid(v, w, sparse=True)"], "ix_": ["np.ix_(k, k)", "np.ix_(b, k)"], "indices": ["np.indices((2, 3))"],
    "shape": ["np.shape(x)"], "size": ["np.size(x)"], "ndim": ["np.ndim(c)"],
    # New tensors
    "zeros": ["np.zeros((2, 3))", "np.zeros(3, dtype='int32')"], "ones": ["np.ones(3)"], "empty": ["np.empty((2, 2)) * 0"], "full": ["np.full((2, 2), 3.5)", "np.full(3, 1)"],
    "zeros_like": ["np.zeros_like(x)", "np.zeros_like(i)"], "ones_like": ["np.ones_like(y)"], "empty_like": ["np.empty_like(x) * 0 if False else np.zeros_like(x)"], "full_like": ["np.full_like(x, 2)"],
    "arange": ["np.arange(5)", "np.arange(1, 7, 2)", "np.arange(0.0, 1.0, 0.25)"], "linspace": ["np.linspace(0, 1, 5)", "np.linspace(o, 2.0, 4)", "np.linspace(0.0, 1.0, 5, endpoint=False)", "np.linspace(v, w, 3)", "np.linspace(0, 1, 3, retstep=True)", "np.linspace(v, w, 4, axis=-1)"], "logspace": ["np.logspace(0, 2, 4)", "np.logspace(o, 1.0, 3)"], "geomspace": ["np.geomspace(1, 100, 5)", "np.geomspace(p[0, 0], 2.0, 3)"],
    "eye": ["np.eye(3)", "np.eye(2, 3, 1)", "np.eye(len(v))", "np.eye(v.shape[0], 3, -1, dtype='int32')"], "identity": ["np.identity(2)", "np.identity(len(v))"], "vander": ["np.vander(v, 3)", "np.vander(j, 3, increasing=True)"], "fromfunction": ["np.fromfunction(lambda a, d: a * 2 + d, (2, 3))"],
    "array": ["np.array([[1, 2], [3, 4]])", "np.array(x)", "np.array([o, 2.0])"], "asarray": ["np.asarray([1.0, 2.0])"], "asanyarray": ["np.asanyarray(x)"], "ascontiguousarray": ["np.ascontiguousarray(x.T)"], "asfortranarray": ["np.asfortranarray(x)"], "require": ["np.require(x)"], "copy": ["np.copy(x)"], "astype": ["np.astype(x, np.float32)"],
    "bartlett": ["np.bartlett(5)"], "blackman": ["np.blackman(5)"], "hamming": ["np.hamming(5)"], "hanning": ["np.hanning(5)"], "kaiser": ["np.kaiser(5, 3.0)"],
    # Choice
    "where": ["np.where(g, x, y)", "np.where(x > 0, 1.0, 0.0)", "np.where(b, i, 0)", "np.where(b)", "np.where(g)"], "clip": ["np.clip(x, -0.5, 0.5)", "np.clip(y, None, 0.2)", "np.clip(i, 0, 3)", "np.clip(x, min=0)"],
    "select": ["np.select([v > 0.5, v > 0], [v, w])", "np.select([b], [i], default=7)", "np.select([x > 0, x < -1], [x, 2.0], 1.5)"], "choose": ["np.choose(k % 2, [v, w])", "np.choose(k, [i, j], mode='clip')", "np.choose(k, (i, j), mode='wrap')"], "piecewise": ["np.piecewise(v, [v < 0, v >= 0], [-1.0, 1.0])", "np.piecewise(v, [v < 0], [lambda a: a * a, lambda a: a])"],
    "compress": ["np.compress([True, False, True], x, axis=0)", "np.compress(b, v)"], "extract": ["np.extract(g, x)"],
    "take": ["np.take(v, k)", "np.take(x, [0, 2], axis=1)"], "take_along_axis": ["np.take_along_axis(x, np.argsort(x, axis=1), axis=1)"], "argwhere": ["np.argwhere(g)", "np.argwhere(b)"], "nonzero": ["np.nonzero(g)", "np.nonzero(k)"], "flatnonzero": ["np.flatnonzero(g)"],
    # Sorting and sets
    "sort": ["np.sort(x)", "np.sort(y, axis=0)", "np.sort(x, axis=None)", "np.sort(i)", "np.sort(z)", "np.sort(v, kind='stable')", "np.sort(b)"], "argsort": ["np.argsort(x)", "np.argsort(k, kind='stable')", "np.argsort(x, axis=None)", "np.argsort(y, 0, 'mergesort')"],
    "partition": ["np.partition(v, 2)[2]"], "argpartition": ["v[np.argpartition(v, 2)][2]"], "lexsort": ["np.lexsort((v, k))", "np.lexsort((k, b, k))"], "searchsorted": ["np.searchsorted(s, v)", "np.searchsorted(s, v, side='right')", "np.searchsorted(s, 0.3)", "np.searchsorted(np.sort(i), x)", "np.searchsorted(s, z)", "np.searchsorted(v, w, sorter=np.argsort(v))"], "digitize": ["np.digitize(v, s)", "np.digitize(v, s[::-1])", "np.digitize(x, s, right=True)"],
    "unique": ["np.unique(k)", "np.unique(x)", "np.unique(k, return_counts=True)", "np.unique(k, return_index=True, return_inverse=True)", "np.unique(b)", "np.unique(n)", "np.unique(np.reshape(k, (2, 3)), return_inverse=True)"], "unique_values": ["np.sort(np.unique_values(k))"], "unique_counts": ["np.unique_counts(k)"], "unique_inverse": ["np.unique_inverse(k)"], "unique_all": ["np.unique_all(k)"],
    "isin": ["np.isin(k, [1, 3])", "np.isin(x, v)", "np.isin(i, k, invert=True)"], "intersect1d": ["np.intersect1d(i, k)", "np.intersect1d(k, j, return_indices=True)"], "setdiff1d": ["np.setdiff1d(i, k)", "np.setdiff1d(j, k)"], "union1d": ["np.union1d(i, k)"], "setxor1d": ["np.setxor1d(i, k)", "np.setxor1d(j, k)"],
    # Differences and signals
    "diff": ["np.diff(v)", "np.diff(x, axis=0)", "np.diff(i, n=2)", "np.diff(b)", "np.diff(v, prepend=0.0)", "np.diff(x, append=x[:, :1])"], "ediff1d": ["np.ediff1d(v)", "np.ediff1d(i, to_begin=-99, to_end=[88, 99])"], "trapezoid": ["np.trapezoid(v)", "np.trapezoid(x, dx=0.5)", "np.trapezoid(v, w)", "np.trapezoid(x, axis=0)"], "gradient": ["np.gradient(v)", "np.gradient(x)", "np.gradient(v, 0.5)", "np.gradient(s, np.sort(np.append(v, 9.0)))", "np.gradient(x, axis=1, edge_order=2)", "np.gradient(y, 2.0, 3.0)", "np.gradient(v, edge_order=2)"], "interp": ["np.interp(v, s, s * 2)", "np.interp(x, s, s ** 2, left=-1.0, right=1.0)", "np.interp(0.2, s, s)", "np.interp(v, s, s, period=1.5)", "np.interp(z, s, s)"],
    "convolve": ["np.convolve(v, w)", "np.convolve(v, w[:3], 'same')", "np.convolve(v, w[:2], mode='valid')", "np.convolve(i, j)", "np.convolve(v[:3], w, 'same')", "np.convolve(v, w[:4], 'same')"], "correlate": ["np.correlate(v, w)", "np.correlate(v, w[:3], 'same')", "np.correlate(v, w[:3], 'full')", "np.correlate(v, w[:4], 'same')", "np.correlate(v[:3], w, 'valid')", "np.correlate(v[:2], w, 'full')", "np.correlate(v[:4], w, 'same')"],
    "polyval": ["np.polyval(v, x)", "np.polyval([1, 2, 3], i)", "np.polyval(e, 0.5)"], "polyadd": ["np.polyadd(v, w[:3])"], "polysub": ["np.polysub(v[:2], w)"], "polymul": ["np.polymul(v, w)"], "polyder": ["np.polyder(v)", "np.polyder(i, 2)"], "polyint": ["np.polyint(v)", "np.polyint(v, 2, [1.0, 2.0])"],
    # Products
    "dot": ["np.dot(v, w)", "np.dot(m, m)", "np.dot(v[:4] * 2, x.T)", "np.dot(m, c.reshape(2, 3, 4))", "np.dot(2.0, v)"], "vdot": ["np.vdot(x, y)"], "inner": ["np.inner(v, w)", "np.inner(x, y)"], "outer": ["np.outer(v, w)"], "matmul": ["np.matmul(m, x)"], "vecdot": ["np.vecdot(x, x)"], "matvec": ["np.matvec(x, x[0])"], "vecmat": ["np.vecmat(x[:, 0], x)"], "tensordot": ["np.tensordot(x, x, axes=2)", "np.tensordot(c, c, axes=([0, 1], [0, 1]))", "np.tensordot(v, w, 0)", "np.tensordot(m, x, 1)"], "einsum": ["np.einsum('ij,kj->ik', x, x)"], "kron": ["np.kron(v, w)", "np.kron(m, x)", "np.kron(i, k)", "np.kron(v, m)"], "cross": ["np.cross(m, m[::-1])", "np.cross(m, m, axis=0)", "np.cross(i[:3], j[:3])"],
    "linalg.det": ["np.linalg.det(m)"], "linalg.inv": ["np.linalg.inv(m)"], "linalg.solve": ["np.linalg.solve(m, x)", "np.linalg.solve(m, x[:, 0])"], "linalg.norm": ["np.linalg.norm(x)", "np.linalg.norm(v, 1)", "np.linalg.norm(v, np.inf)", "np.linalg.norm(y, axis=1)", "np.linalg.norm(x, 'fro')", "np.linalg.norm(x, 1)", "np.linalg.norm(x, -np.inf)", "np.linalg.norm(v, 3)", "np.linalg.norm(v, 0)", "np.linalg.norm(c, axis=(1, 2))", "np.linalg.norm(x, 2, axis=0, keepdims=True)", "np.linalg.norm(i)"],
    "linalg.vector_norm": ["np.linalg.vector_norm(x)", "np.linalg.vector_norm(x, axis=1, ord=1)"], "linalg.matrix_norm": ["np.linalg.matrix_norm(x)", "np.linalg.matrix_norm(c, ord=1)"], "linalg.cond": ["np.linalg.cond(m, 1)", "np.linalg.cond(m, 'fro')"], "linalg.matrix_power": ["np.linalg.matrix_power(m, 3)", "np.linalg.matrix_power(m, -2)", "np.linalg.matrix_power(m, 0)"], "linalg.multi_dot": ["np.linalg.multi_dot([m, x, x.T, m])", "np.linalg.multi_dot([x[:, 0], m, x])"], "linalg.tensorinv": ["np.linalg.tensorinv(m, ind=1)"], "linalg.tensorsolve": ["np.linalg.tensorsolve(m, x[:, 0])"],
    "linalg.cross": ["np.linalg.cross(m, m[::-1])"], "linalg.diagonal": ["np.linalg.diagonal(c)"], "linalg.trace": ["np.linalg.trace(c)"], "linalg.outer": ["np.linalg.outer(v, w)"], "linalg.matmul": ["np.linalg.matmul(m, x)"], "linalg.tensordot": ["np.linalg.tensordot(m, x, axes=1)"], "linalg.vecdot": ["np.linalg.vecdot(x, x, axis=0)"], "linalg.matrix_transpose": ["np.linalg.matrix_transpose(c)"],
    # Indices, functions, dtypes
    "unravel_index": ["np.unravel_index(k, (2, 3))", "np.unravel_index(np.argmax(x), x.shape)"], "ravel_multi_index": ["np.ravel_multi_index((k % 3, k % 4), (3, 4))", "np.ravel_multi_index((k, i), (3, 4), mode='clip')", "np.ravel_multi_index((k, i), (3, 4), mode='wrap')"],
    "apply_along_axis": ["np.apply_along_axis(lambda a: a.sum(), 1, x)", "np.apply_along_axis(lambda a: a * a[0], 0, x)", "np.apply_along_axis(lambda a: np.sort(a), 1, c)"], "apply_over_axes": ["np.apply_over_axes(np.sum, c, [0, 2])"],
    "result_type": ["np.result_type(x, y) == np.float64", "np.zeros(2, np.result_type(i, y))"], "promote_types": ["np.zeros(2, np.promote_types('int8', 'int16'))"], "common_type": ["np.zeros(2, np.common_type(y, i))"], "can_cast": ["np.can_cast('int8', 'int16')"], "issubdtype": ["np.issubdtype(x.dtype, np.floating)"], "isdtype": ["np.isdtype(x.dtype, 'real floating')"], "min_scalar_type": ["np.zeros(2, np.min_scalar_type(300))"], "mintypecode": ["np.mintypecode('df')"], "typename": ["np.typename('d')"], "base_repr": ["np.base_repr(5, 3)"], "binary_repr": ["np.binary_repr(5)"], "finfo": ["x * np.finfo(x.dtype).eps", "np.clip(y, np.finfo(np.float32).tiny, None)", "k + np.iinfo('int8').max", "np.zeros(2, np.dtype('int16'))"],
    "ufunc.reduce": ["np.add.reduce(x)", "np.maximum.reduce(x, axis=1)", "np.logical_or.reduce(g)", "np.multiply.reduce(x, axis=None)"], "ufunc.accumulate": ["np.add.accumulate(x)", "np.multiply.accumulate(v)"], "ufunc.outer": ["np.subtract.outer(v, e)", "np.multiply.outer(x, v)", "np.arctan2.outer(v, v)"],
    "mask_indices": ["np.mask_indices(3, np.triu)"], "isscalar": ["np.isscalar(3)", "np.isscalar(x)"], "iterable": ["np.iterable(x)", "np.iterable(3)"],
}  # fmt: skip

# Of math, by name: expressions of two floats, two integers and a tensor that the run gives.
MATH: dict[str, list[str]] = {
    **{f: [f"math.{f}(a)", f"math.{f}(b)"] for f in (
        "asinh", "atan", "cbrt", "ceil", "cos", "cosh", "degrees", "exp", "exp2", "expm1", "fabs", "floor", "isfinite",
        "isinf", "isnan", "radians", "sin", "sinh", "tan", "tanh", "trunc", "erf", "ulp",
    )},
    **{f: [f"math.{f}(a / 9)"] for f in ("acos", "asin", "atanh")},
    **{f: [f"math.{f}(a * a + 1.5)"] for f in ("acosh", "log", "log10", "log1p", "log2", "sqrt")},
    **{f: [f"math.{f}(a, b)", f"math.{f}(n, b)", f"math.{f}(2.5, a)"] for f in ("atan2", "copysign", "fmod", "remainder", "nextafter")},
    "pow": ["math.pow(a * a, b)"], "hypot": ["math.hypot(a, b)", "math.hypot(a, b, 2.0, n)"], "dist": ["math.dist([a, b], [1.0, 2.0])"],
    "isclose": ["math.isclose(a, a + 1e-12)", "math.isclose(a, b)", "math.isclose(a, b, abs_tol=100.0)", "math.isclose(a, b, rel_tol=0.5)"],
    "ldexp": ["math.ldexp(a, n)"], "frexp": ["math.frexp(a)", "math.frexp(1.0 * n)"], "modf": ["math.modf(a)", "math.modf(b)"],
    "gcd": ["math.gcd(n, 12)", "math.gcd(n, k, 6)"], "lcm": ["math.lcm(n, 12)", "math.lcm(n, k)"],
    "factorial": ["math.factorial(n)"], "comb": ["math.comb(n + 3, k)", "math.comb(2, n)"], "perm": ["math.perm(n + 3, k)", "math.perm(n)"],
    "isqrt": ["math.isqrt(n)", "math.isqrt(n * 100000000000 + 7)", "math.isqrt((n + 3037000000) ** 2 - 1)"], "prod": ["math.prod([a, b, n])", "math.prod([n, k], start=2)"], "sumprod": ["math.sumprod([a, n], [b, k])"],
}  # fmt: skip

# Of lists, dictionaries and strings, by class and method: bodies of a function of the same.
GROWN = "xs = [n]\nfor i in range(k):\n    xs.append(i * n)\n"
CONTAINERS: dict[str, dict[str, list[str]]] = {
    "list": {
        "append": ["xs = [a]\nxs.append(b)\nreturn xs[0] + xs[1]"],
        "extend": ["xs = [a]\nxs.extend([b, 2.0])\nreturn xs"],
        "pop": [
            "xs = [a, b, 3.0]\nlast = xs.pop()\nfirst = xs.pop(0)\nreturn last, first, xs",
            GROWN + "last = xs.pop()\nreturn last, xs.pop(), len(xs), sum(xs)",
            GROWN + "first = xs.pop(0)\nreturn first, len(xs)",
            "stack, seen = [n], 0\nwhile len(stack) > 0:\n    top = stack.pop()\n    seen += top\n    if top > 0:\n        stack.append(top - 1)\n        stack.append(top // 2)\nreturn seen",
        ],
        "insert": ["xs = [a, b]\nxs.insert(1, 5.0)\nreturn xs", GROWN + "xs.insert(0, 9)\nreturn xs[0], len(xs)"],
        "clear": ["xs = [a]\nxs.clear()\nxs.append(b)\nreturn xs"],
        "reverse": ["xs = [a, b, 1.0]\nxs.reverse()\nreturn xs", GROWN + "xs.reverse()\nreturn xs[0], xs[1]"],
        "sort": ["xs = [a, b, 0.5, -3.0]\nxs.sort()\nreturn xs", "xs = [a, b, 0.5]\nxs.sort(reverse=True)\nreturn xs", "xs = [a, b, -7.0]\nxs.sort(key=lambda x: x * x)\nreturn xs", "ps = [(a, 1), (b, 2)]\nps.sort(key=lambda p: p[0])\nreturn ps"],
        "remove": ["xs = ['p', 'q', 'r']\nxs.remove('q')\nreturn len(xs)"],
        "copy": ["xs = [a]\nys = xs.copy()\nys.append(b)\nreturn xs, ys"],
        "index": ["return ['p', 'q'].index('q') + n"],
        "count": ["return [1, n, 2, n].count(n)", "return [1, 2, 1].count(1) + n", GROWN + "return xs.count(n)"],
    },
    "dict": {
        "get": ["d = {'p': a}\nreturn d.get('p'), d.get('q', b), d.get('q') is None"],
        "copy": ["d = {'p': a}\ne = d.copy()\ne['q'] = b\nreturn len(d), e"],
        "items": ["total = 0.0\nfor key, value in {'p': a, 'q': b}.items():\n    total += value if key == 'p' else -value\nreturn total"],
        "keys": ["return [key == 'p' for key in {'p': a, 'q': b}.keys()]"],
        "values": ["return sum({'p': a, 'q': b}.values())"],
        "pop": ["d = {'p': a, 'q': b}\nx = d.pop('p')\nreturn x, d.pop('r', n), d"],
        "popitem": ["d = {'p': a, 'q': b}\nkey, x = d.popitem()\nreturn key, x, d"],
        "setdefault": ["d = {'p': a}\nx = d.setdefault('q', b)\nreturn x, d.setdefault('p', n), d"],
        "update": ["d = {'p': a}\nd.update({'q': b}, r=n)\nd.update([('p', n)])\nreturn d", "return {'p': a} | {'q': b, 'p': n}"],
        "clear": ["d = {'p': a}\nd.clear()\nd['q'] = b\nreturn d"],
    },
    "str": {
        **{m: [f"return n if 'ab Cd'.{m}() == '{getattr('ab Cd', m)()}' else -n"] for m in ("capitalize", "casefold", "lower", "swapcase", "title", "upper")},
        **{m: [f"return n if 'ab1'.{m}() else -n"] for m in ("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper")},
        **{m: [f"return n if len(' x '.{m}()) == {len(getattr(' x ', m)())} else -n"] for m in ("strip", "lstrip", "rstrip", "split", "rsplit", "splitlines")},
        **{m: [f"return n + 'abab'.{m}('b')"] for m in ("count", "find", "index", "rfind", "rindex")},
        **{m: [f"return n if len('ab'.{m}(5)) == 5 else -n"] for m in ("center", "ljust", "rjust", "zfill")},
        **{m: [f"return n if 'a-b-c'.{m}('-')[0] == '{getattr('a-b-c', m)('-')[0]}' else -n"] for m in ("partition", "rpartition")},
        "startswith": ["return n if 'abc'.startswith('ab') else -n", "return t.startswith('a')"], "endswith": ["return n if 'abc'.endswith(('b', 'c')) else -n", "return t.endswith('d')"],
        "removeprefix": ["return n + len('abc'.removeprefix('a'))"], "removesuffix": ["return n + len('abc'.removesuffix('c'))"], "replace": ["return n + len('abc'.replace('b', 'xyz'))"],
        "join": ["return n + len('-'.join(['a', 'b']))"], "expandtabs": ["return n + len('a\\tb'.expandtabs(4))"],
    },
    "ndarray": {
        "fill": ["y = x.copy()\ny.fill(7)\nreturn y"], "sort": ["y = x.copy()\ny.sort()\nz = x.copy()\nz.sort(axis=0)\nreturn y, z"], "partition": ["y = x.ravel().copy()\ny.partition(2)\nreturn y[2]"],
        "put": ["y = x.copy()\ny.put([0, 5], [9.0, 8.0])\nreturn y"],
    },
    "numpy": {
        "put": ["y = x.copy()\nnp.put(y, [1, 2], 5.0)\nreturn y"], "fill_diagonal": ["y = x.copy()\nnp.fill_diagonal(y, 1.5)\nreturn y", "y = x[:, :2].copy()\nnp.fill_diagonal(y, n)\nreturn y"],
        "copyto": ["y = np.zeros((3, 4))\nnp.copyto(y, x)\nreturn y", "y = x.copy()\nnp.copyto(y, 0.0, where=x > 0)\nreturn y"], "putmask": ["y = x.copy()\nnp.putmask(y, x > 0, [1.0, 2.0])\nreturn y"],
        "place": ["y = x.copy()\nnp.place(y, x > 0, [1.0, 2.0, 3.0])\nreturn y"], "put_along_axis": ["y = x.copy()\nnp.put_along_axis(y, np.argmax(x, axis=1, keepdims=True), 99.0, axis=1)\nreturn y"],
    },
    "builtins": {
        "divmod": ["return divmod(n, 3), divmod(a, 0.5), divmod(-n, k)"],
        "sorted": ["return sorted([a, b, 1.0])", "return sorted((a, b, 1.0), reverse=True)", "return sorted([3, 1, 2])[0] + n", "return sorted([n, k, 4], key=lambda v: -v)"],
        "round": ["return round(a, 2), round(a), round(b, 3), round(12345.678 * a, -1)"],
        "in": ["return n in [1, 2, 3], a in (a, b), n not in [n], 'q' in ['p'], n in range(4)", GROWN + "return n in xs, -1 in xs", "return n in np.arange(5), 0.5 in x"],
        "slice": ["return x[slice(0, 2)], x[slice(None, None, 2), 1]"],
    },
}  # fmt: skip

# Calls that are refused: words of the message, and of what to write instead.
REFUSED: list[tuple[str, str, str]] = [
    ("np.add(x, y, out=x)", "does not take 'out' here", "assign the result"),
    ("np.exp(x, where=g)", "does not take 'where' here", "np.where chooses"),
    ("np.exp(x, dtype='float32')", "does not take 'dtype' here", "astype"),
    ("x.sum(out=x)", "does not take 'out' here", "assign the result"),
    ("np.sum(x, axes=0)", "axes", ""),
    ("np.max(x, where=g)", "initial", "initial=0"),
    ("np.squeeze(x)", "sizes that only the run knows", "axis=0"),
    ("np.quantile(x, 0.5, method='weibull')", "method=", "linear"),
    ("np.pad(x, 1, mode='linear_ramp')", "mode 'linear_ramp'", "np.concatenate"),
    ("np.unique(x, axis=0)", "without axis=", "np.lexsort"),
    ("np.linalg.norm(x, 2)", "singular values", "outside"),
    ("np.linalg.cond(m)", "singular values", "p=1"),
    ("np.roll(x, (1, 2, 3), (0, 1))", "a shift for each axis", ""),
    ("np.median(x, axis=5)", "axis 5", ""),
    ("np.bincount(v)", "integers", "astype"),
    ("np.insert(v, [1, 2], 0.0)", "one position", "np.concatenate"),
    ("np.gcd(v, 2)", "integers", "astype"),
    ("np.sort(x, kind='bubble')", "kind=", ""),
    ("np.searchsorted(x, 1.0)", "vector", ""),
    ("np.nonzero(o)", "number", "atleast_1d"),
    ("np.linspace(0, 1, k[0])", "num", ""),
    ("'abc'.encode()", "encode", "no bytes"),
    ("x.tolist()", "tolist", "the tensor itself"),
    ("x.view()", "view", "astype"),
    ("[1, 2].foo()", "foo", ""),
    ("sorted(x)", "known number", ""),
    ("(lambda xs: (xs, xs.pop()))([1, 2])", "reads it before", "statement"),
    ("[xs.pop() for xs in [[1], [2]]]", "may not be evaluated", "statement"),
    ("x[0, 0] if [1].pop() else o", "may not be evaluated", "statement"),
]

# Tensors without elements, and of one.
EMPTY_VALUES = {
    "v": np.zeros(0), "w": np.zeros(3), "x": np.zeros((0, 3)), "y": np.zeros((3, 0)), "i": np.zeros(0, "int64"),
    "b": np.zeros(0, bool), "one": np.ones(1), "m": np.array([[2.0]]),
}  # fmt: skip
EMPTY = [
    "np.median(v)", "np.median(x, axis=0)", "np.median(y, axis=0)", "np.quantile(y, 0.5, axis=0)", "np.nanmedian(y, axis=0)", "np.nanmedian(v)",
    "np.nanmean(v)", "np.nansum(v)", "np.nanstd(v)", "np.unique(v)", "np.unique(i, return_counts=True)",
    "np.unique(i, return_inverse=True, return_index=True)", "np.isin(w, v)", "np.isin(v, w)", "np.intersect1d(v, w)", "np.setdiff1d(w, v)",
    "np.union1d(v, v)", "np.setxor1d(v, w)", "np.setxor1d(v, v)", "np.searchsorted(v, w)", "np.searchsorted(w, v)", "np.digitize(v, w)",
    "np.digitize(w, v)", "np.bincount(i)", "np.bincount(i, minlength=3)", "np.histogram(v)", "np.histogram(v, bins=3)", "np.interp(v, w, w)",
    "np.convolve(w, one)", "np.diff(v)", "np.ediff1d(v)", "np.trapezoid(v)", "np.argsort(v)", "np.sort(x, axis=0)", "np.nonzero(v)",
    "np.flatnonzero(b)", "np.diag(v)", "np.diagonal(x)", "np.trace(x)", "np.roll(v, 1)", "np.roll(x, 1, axis=0)", "np.flip(x)", "np.pad(v, 2)",
    "np.pad(x, 1)", "np.meshgrid(v, w)", "np.kron(v, w)", "np.outer(v, w)", "np.tensordot(x, x, axes=2)", "np.inner(v, v)", "np.linalg.norm(v)",
    "np.cov(y)", "np.trim_zeros(w)", "np.trim_zeros(v)", "np.compress(b, v)", "np.extract(b, v)", "np.array_split(v, 3)", "np.cumsum(v)",
    "np.cumulative_sum(v, include_initial=True)", "np.lexsort((v, i))", "np.polyval(v, w)", "np.vander(v, 2)", "np.tri(0)", "np.tril_indices(0)",
    "np.select([b], [v])", "np.choose(i, [v, v])", "np.linspace(v, v, 3)", "np.sum(x, where=x > 0)", "np.all(v)", "np.prod(v)", "np.allclose(v, v)",
    "np.array_equal(v, v)", "np.median(one)", "np.quantile(one, 0.3)", "np.unique(one)", "np.gradient(w)", "np.interp(w, one, one)",
    "np.convolve(one, one)", "np.cross(x, x)", "np.ptp(one)", "np.corrcoef(one, one)", "np.cov(one)", "np.diag(one)", "np.diag(m)", "np.unwrap(one)",
    "np.unwrap(v)", "np.gcd(i, i)", "np.delete(w, 1)", "np.insert(v, 0, 1.0)", "np.kron(m, m)", "np.roll(one, 1)", "np.histogram(one)",
]  # fmt: skip

# What depends on the dtype, of each of these as `X`.
DTYPES = ["bool", "int8", "uint8", "int32", "float16", "float32"]
OF_DTYPE = [
    "np.arctan2(X, X)", "np.hypot(X, X)", "np.expm1(X)", "np.cbrt(X)", "np.fmax(X, X)", "np.heaviside(X, X)", "np.float_power(X, 2)",
    "np.ldexp(X, 2)", "np.divmod(X, 3)", "np.modf(X)", "np.frexp(X)", "np.square(X)", "np.isclose(X, X)", "np.nan_to_num(X)", "np.sinc(X)",
    "np.angle(X)", "np.median(X)", "np.quantile(X, 0.25)", "np.average(X)", "np.average(X, weights=X)", "np.ptp(X)", "np.bincount(X.ravel())",
    "np.histogram(X)", "np.nansum(X)", "np.nanmean(X)", "np.nanvar(X)", "np.nanmedian(X)", "np.cumulative_sum(X, axis=0)", "np.diag(X)",
    "np.trace(X)", "np.kron(X, X)", "np.cross(X[:, :3], X[:, :3])", "np.pad(X, 1, 'wrap')", "np.convolve(X[0], X[1])", "np.polyder(X[0])",
    "np.polyint(X[0])", "np.gradient(X)", "np.trapezoid(X)", "np.diff(X)", "np.tensordot(X, X)", "np.inner(X, X)", "np.vdot(X, X)",
    "np.linalg.norm(X)", "np.linalg.norm(X, 1)", "np.unique(X, return_counts=True)", "np.isin(X, X)", "np.setdiff1d(X, X[0])",
    "np.where(X > 1, X, X)", "np.where(X > 1, X, 2)", "np.clip(X, 0, 1)", "np.sum(X, where=X > 1)", "np.max(X, initial=3)", "np.vander(X[0], 3)",
    "np.gcd(X, X)", "np.bitwise_count(X)", "np.linspace(X, X, 3)", "np.linalg.matrix_power(X[:, :3], 2)", "np.count_nonzero(X)", "np.unwrap(X[0])",
    "np.polyval(X[0], X[1])", "np.einsum('ij,kj->ik', X, X)", "np.einsum('ij->j', X)",
]  # fmt: skip
