"""All of NumPy's functions, Python's `math` and the methods of Python's containers: here or not.

What is here is what the modules below register. What is not has a row in `ABSENT`, with what to write
instead, which the refusal of a call says too. docs/python_function.md has both as a table
(tools/numpy_table.py); a test compares them with the names of NumPy.
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
    """np.abs is np.absolute: what is one object is one row."""
    by_object = {id(found(name)): row for name, row in ROWS.items()}
    # Not by dir and getattr, which import submodules.
    for name, of in vars(np).items():
        if name not in ROWS and not name.startswith("_") and id(of) in by_object:
            ROWS[name] = by_object[id(of)]


_name_aliases()


def _rows(groups: dict[str, str]) -> dict[str, str]:
    """By name: what to write instead, from the names that share it."""
    return {name: instead for instead, names in groups.items() for name in names.split()}


_OUTSIDE = "do it outside the function, and pass the result"
_MUTABLE = "a tensor has no bytes of its own: x.astype, x.reshape, x.copy"

# What is not here: what to write instead, by the names that it is for.
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


# The names of what is not here, by NumPy's object.
NAMES = {
    id(of): (space, name)
    for space in ("numpy", "numpy.linalg")
    for name in ABSENT[space]
    if name != "row_stack" and (of := found(f"{space}.{name}"[6:].lstrip("."))) is not None
}


# Classes of NumPy's that describe a dtype, which is known.
DESCRIBED = (np.dtype, np.finfo, np.iinfo)

# By the name of a ufunc: its reduction, and its running form.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
_RUNNING = {"add": "cumsum", "multiply": "cumprod"}


def ufunc_method(ufunc: np.ufunc, method: str) -> Callable | None:
    """np.add.reduce and its kind: the composition, None where there is none."""
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
    """A function of two on all pairs of elements."""
    if b.shape and a.shape:
        a = Tensor(call("expand_dims", a.expr, axis=len(a.shape), num_newaxis=len(b.shape)))
    return function(a, b)


def instead_of(space: str, name: str) -> str:
    """What to write in the place of a name that is not here."""
    return ABSENT.get(space, {}).get(name) or "docs/python_function.md has those that are"
