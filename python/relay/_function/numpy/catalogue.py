"""The catalogue of NumPy, of Python's `math` and of container methods: supported names and absent ones.

The modules imported here register the supported functions. An absent one has a row in `ABSENT` with the code
to write instead, which the error of a call shows. docs/python_function.md lists both (tools/numpy_table.py);
a test compares them with the names of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay._function.numpy import (  # noqa: F401
    arrangement,
    elementwise,
    functions,
    linear,
    search,
    statistics,
)
from relay._function.numpy.registry import ROWS, found
from relay._function.operations.arrays import tensor_of
from relay._function.values import Tensor, Value
from relay._ops.call import call


def _name_aliases() -> None:
    """Gives aliases the row of their object: np.abs is np.absolute."""
    by_object = {id(found(name)): row for name, row in ROWS.items()}
    # dir and getattr would import submodules.
    for name, of in vars(np).items():
        if name not in ROWS and not name.startswith("_") and id(of) in by_object:
            ROWS[name] = by_object[id(of)]


_name_aliases()


def _rows(groups: dict[str, str]) -> dict[str, str]:
    """Returns by name what to write instead, from names grouped by it."""
    return {name: instead for instead, names in groups.items() for name in names.split()}


_OUTSIDE = "do it outside the function, and pass the result"
_MUTABLE = "a tensor has no bytes of its own: x.astype, x.reshape, x.copy"

# Absent names, grouped by what to write instead.
ABSENT: dict[str, dict[str, str]] = {
    "numpy": _rows({
        "print, or an f-string": "array2string array_repr array_str format_float_positional "
        "format_float_scientific",
        "np.asarray; np.isfinite(x).all() tests it": "asarray_chkfinite",
        "there are no matrices of class np.matrix: np.block, @": "asmatrix bmat",
        "dates are integers here: x.astype('int64') outside": "busday_count busday_offset "
        "datetime_as_string datetime_data is_busday isnat",
        "np.einsum; its order of products is chosen when it is compiled": "einsum_path",
        _OUTSIDE: "frombuffer fromfile fromiter fromregex fromstring from_dlpack genfromtxt load "
        "loadtxt save savetxt savez savez_compressed test info nested_iters",
        "a function is compiled as it is: call it, or relay.vmap(f)": "frompyfunc",
        "it says nothing about a compiled program: leave it out": "get_include get_printoptions "
        "getbufsize geterr geterrcall printoptions set_printoptions setbufsize seterr seterrcall "
        "show_config show_runtime may_share_memory shares_memory",
        "np.bincount of np.ravel_multi_index of two np.digitize": "histogram2d histogramdd",
        "np.exp(np.abs(x)) scaled by a polynomial, see np.polyval": "i0",
        "np.dot of bits and powers of 2": "packbits",
        "(x[:, None] >> np.arange(8)) & 1": "unpackbits",
        "np.polymul of the factors": "poly",
        "np.polymul and np.polysub, a coefficient at a time": "polydiv",
        "np.linalg.solve of the normal equations of np.vander(x, n)": "polyfit",
        "Newton's method with np.polyval and np.polyder": "roots",
        "np.vstack": "row_stack",
        "np.sort; there are no complex numbers": "sort_complex",
    }),
    "numpy.linalg": _rows({
        "np.linalg.solve, np.linalg.inv; or compute it outside, and pass it": "cholesky pinv",
        "a power iteration with @ and np.linalg.norm; or compute it outside": "eig eigh eigvals "
        "eigvalsh svd svdvals matrix_rank",
        "np.linalg.solve(a.T @ a, a.T @ b), of full column rank": "lstsq",
        "np.linalg.solve; or compute it outside, and pass it": "qr",
        "np.sign and np.log of np.abs(np.linalg.det(x)), where it does not overflow": "slogdet",
        _OUTSIDE: "test",
    }),
    "math": _rows({
        "1 - math.erf(x), which loses digits beyond 4": "erfc",
        "math.prod of a known number of factors; or compute it outside": "gamma lgamma",
        "sum(xs), or np.sum; it is rounded at each step": "fsum",
        "x * y + z": "fma",
    }),
    "list": _rows({}),
    "dict": _rows({"write the dictionary out: {'a': 0, 'b': 0}": "fromkeys"}),
    "str": _rows({
        "an f-string": "format format_map",
        "there are no bytes": "encode",
        "replace, once for each character": "maketrans translate",
    }),
    "ndarray": _rows({
        _MUTABLE: "base byteswap ctypes data dump dumps flags getfield setfield setflags strides "
        "to_device tobytes tofile view device",
        "x.ravel()": "flat",
        "np.resize(x, shape), a new tensor": "resize",
        "the tensor itself; [x[0], x[1]] is a list of a known number": "tolist",
    }),
}  # fmt: skip


# The names of absent functions, by NumPy's object.
NAMES = {
    id(of): (space, name)
    for space in ("numpy", "numpy.linalg")
    for name in ABSENT[space]
    if name != "row_stack" and (of := found(f"{space}.{name}"[6:].lstrip("."))) is not None
}


# NumPy's classes that describe a dtype.
DESCRIBED = (np.dtype, np.finfo, np.iinfo)

# The reduction and the running form of a ufunc, by its name.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
_RUNNING = {"add": "cumsum", "multiply": "cumprod"}


def ufunc_method(ufunc: np.ufunc, method: str) -> Callable | None:
    """Returns the composition of a method such as np.add.reduce, None if there is none."""
    name = ufunc.__name__
    if method == "reduce" and name in _REDUCTIONS:
        whole = ROWS[_REDUCTIONS[name]].function
        return lambda array, axis=0, keepdims=False: whole(array, axis=axis, keepdims=keepdims)
    if method == "accumulate" and name in _RUNNING:
        running = ROWS[_RUNNING[name]].function
        return lambda array, axis=0: running(array, axis=axis)
    if method == "outer" and ufunc.nin == 2 and name in ROWS:
        return lambda A, B: _outer(ROWS[name].function, tensor_of(A), tensor_of(B))
    return None


def _outer(function: Callable, a: Tensor, b: Tensor) -> Value:
    """Applies a function to all pairs of elements."""
    if b.shape and a.shape:
        a = Tensor(call("expand_dims", a.expr, axis=len(a.shape), num_newaxis=len(b.shape)))
    return function(a, b)


def instead_of(space: str, name: str) -> str:
    """Returns what to write instead of an absent name."""
    return ABSENT.get(space, {}).get(name) or "docs/python_function.md has those that are"
