"""Programs of one operator call, written as Relay text, with NumPy's answer beside them.

Text is the interface here: it names operators and attributes as the registry does, and needs no
wrapper per operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import oracles

import relay

# What examples of operators on strings are drawn from: numbers among them, so that they can be read.
WORDS = ["1", "-20", "300", "4", "55"]
VERSION = '#[version = "0.0.5"]\n'


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """Returns the text of a tensor type: a scalar is its dtype alone."""
    if len(shape) == 0:
        return dtype
    inner = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    return f"Tensor[({inner}), {dtype}]"


def call_text(op: str, args: Sequence[str], attrs: str = "") -> str:
    """Returns a module whose main calls `op`; each of `args` is a type, a tensor or a tuple."""
    parameters, operands = [], []
    for arg in args:
        names = []
        for text in tensor_texts(arg):
            names.append(f"%x{len(parameters)}")
            parameters.append(f"{names[-1]}: {text}")
        is_tuple = arg.strip().startswith("(")
        comma = "," if len(names) == 1 else ""
        operands.append(f"({', '.join(names)}{comma})" if is_tuple else names[0])
    inside = ", ".join([*operands, *([attrs] if attrs else [])])
    return f"{VERSION}def @main({', '.join(parameters)}) {{\n  {op}({inside})\n}}\n"


def tensor_texts(arg: str) -> list[str]:
    """Returns the tensor types within a type's text, in order."""
    return re.findall(r"Tensor\[\([^)]*\), *\w+\]|\b(?:float|int|uint|bool|bfloat)\d*\b(?!\])", arg)


def stored_value(text: str, values: Sequence[float]) -> np.ndarray:
    """Returns the values of a tensor type, in row-major order."""
    shape, dtype = shape_and_dtype(text)
    return np.array(values).astype(relay_dtype(dtype)).reshape(shape)


def shape_and_dtype(text: str) -> tuple[list[int], str]:
    found = re.fullmatch(r"Tensor\[\(([^)]*)\), *(\w+)\]", text)
    shape = [int(d) for d in found[1].split(",") if d.strip()] if found else []
    return shape, found[2] if found else text


def example_value(text: str, low: float, high: float, rng: np.random.Generator) -> np.ndarray:
    """Returns random values of a tensor type between `low` and `high`."""
    shape, dtype = shape_and_dtype(text)
    if dtype == "string":
        return np.asarray(rng.choice(np.array(WORDS, dtype=object), shape), dtype=object)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        low = max(low, 0) if dtype.startswith("uint") else low
        return np.asarray(rng.integers(math.ceil(low), math.floor(high) + 1, shape)).astype(dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(relay_dtype(dtype))


def relay_dtype(name: str) -> np.dtype:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def run_both(text: str, inputs: Sequence[np.ndarray], opt_level: int = 3) -> tuple[list, list]:
    """Returns the evaluator's and the compiled program's results."""
    mod = relay.parse(text)
    evaluated = relay.create_executor("debug", mod).evaluate()(*inputs)
    compiled = relay.build(mod, opt_level=opt_level, num_threads=1)(*inputs)
    return oracles.as_arrays(evaluated), oracles.as_arrays(compiled)


# NumPy's answers.


def _c_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are divided towards zero."""
    if a.dtype.kind == "f":
        return a / b
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient).astype(a.dtype)


_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Elementwise:
    """One operator on one or two tensors; floats are computed in float64 and then compared."""

    answer: Callable[..., np.ndarray]
    dtypes: tuple[str, ...] = ("float32",)
    low: float = -4.0
    high: float = 4.0
    # Values of the right operand are kept away from zero by this much.
    nonzero: bool = False
    tolerance: float = 1e-5


FLOATS = ("float32", "float64")
NUMBERS = ("float32", "float64", "int32", "int64")
INTEGERS = ("int8", "int32", "int64", "uint8")

UNARY: dict[str, Elementwise] = {
    "abs": Elementwise(np.abs, NUMBERS),
    "acos": Elementwise(np.arccos, low=-0.99, high=0.99),
    "acosh": Elementwise(np.arccosh, low=1.01, high=9.0),
    "asin": Elementwise(np.arcsin, low=-0.99, high=0.99),
    "asinh": Elementwise(np.arcsinh),
    "atan": Elementwise(np.arctan),
    "atanh": Elementwise(np.arctanh, low=-0.9, high=0.9),
    "bitwise_not": Elementwise(np.invert, INTEGERS),
    "ceil": Elementwise(np.ceil, FLOATS),
    "copy": Elementwise(lambda x: x, NUMBERS),
    "cos": Elementwise(np.cos, FLOATS),
    "cosh": Elementwise(np.cosh),
    "erf": Elementwise(_erf),
    "exp": Elementwise(np.exp, FLOATS),
    "floor": Elementwise(np.floor, FLOATS),
    "isfinite": Elementwise(np.isfinite),
    "isinf": Elementwise(np.isinf),
    "isnan": Elementwise(np.isnan),
    "log": Elementwise(np.log, FLOATS, low=0.05, high=9.0),
    "log10": Elementwise(np.log10, low=0.05, high=9.0),
    "log2": Elementwise(np.log2, low=0.05, high=9.0),
    "logical_not": Elementwise(np.logical_not, ("bool",)),
    "negative": Elementwise(np.negative, NUMBERS),
    "nn.relu": Elementwise(lambda x: np.maximum(x, 0), NUMBERS),
    "ones_like": Elementwise(np.ones_like, NUMBERS),
    "rsqrt": Elementwise(lambda x: 1 / np.sqrt(x), low=0.05, high=9.0),
    "sigmoid": Elementwise(lambda x: 1 / (1 + np.exp(-x)), FLOATS),
    "sign": Elementwise(np.sign, NUMBERS),
    "sin": Elementwise(np.sin, FLOATS),
    "sinh": Elementwise(np.sinh),
    "sqrt": Elementwise(np.sqrt, FLOATS, low=0.0, high=9.0),
    "stop_gradient": Elementwise(lambda x: x, NUMBERS),
    "tan": Elementwise(np.tan, low=-1.2, high=1.2),
    "tanh": Elementwise(np.tanh, FLOATS),
    "trunc": Elementwise(np.trunc, FLOATS),
    "zeros_like": Elementwise(np.zeros_like, NUMBERS),
}

BINARY: dict[str, Elementwise] = {
    "add": Elementwise(np.add, NUMBERS),
    "bitwise_and": Elementwise(np.bitwise_and, INTEGERS),
    "bitwise_or": Elementwise(np.bitwise_or, INTEGERS),
    "bitwise_xor": Elementwise(np.bitwise_xor, INTEGERS),
    "divide": Elementwise(_c_division, NUMBERS, nonzero=True),
    "equal": Elementwise(np.equal, NUMBERS),
    "fixed_point_product": Elementwise(
        lambda a, b: ((a.astype(np.int64) * b + 2**30) >> 31).astype(np.int32),
        ("int32",),
        low=-2147483647,
        high=2147483647,
    ),
    "floor_divide": Elementwise(np.floor_divide, ("int32", "int64"), nonzero=True),
    "floor_mod": Elementwise(np.mod, ("int32", "int64"), nonzero=True),
    "greater": Elementwise(np.greater, NUMBERS),
    "greater_equal": Elementwise(np.greater_equal, NUMBERS),
    "left_shift": Elementwise(np.left_shift, ("int32", "int64"), low=0, high=7),
    "less": Elementwise(np.less, NUMBERS),
    "less_equal": Elementwise(np.less_equal, NUMBERS),
    "logical_and": Elementwise(np.logical_and, ("bool",)),
    "logical_or": Elementwise(np.logical_or, ("bool",)),
    "logical_xor": Elementwise(np.logical_xor, ("bool",)),
    "maximum": Elementwise(np.maximum, NUMBERS),
    "minimum": Elementwise(np.minimum, NUMBERS),
    "mod": Elementwise(np.fmod, ("int32", "int64"), nonzero=True),
    "multiply": Elementwise(np.multiply, NUMBERS),
    "not_equal": Elementwise(np.not_equal, NUMBERS),
    "power": Elementwise(np.power, low=0.05, high=4.0),
    "right_shift": Elementwise(np.right_shift, ("int32", "int64"), low=0, high=7),
    "subtract": Elementwise(np.subtract, NUMBERS),
    "trunc_divide": Elementwise(_c_division, ("int32", "int64"), nonzero=True),
    "trunc_mod": Elementwise(np.fmod, ("int32", "int64"), nonzero=True),
}


@dataclass(frozen=True)
class Reduction:
    """One reduction; `empty` says whether it has a value over no elements.

    Where terms add up they are positive: cancellation would make any order of summation wrong.
    """

    answer: Callable[..., np.ndarray]
    dtypes: tuple[str, ...] = ("float32",)
    low: float = -2.0
    empty: bool = True
    result: str | None = None
    one_axis: bool = False


REDUCTIONS: dict[str, Reduction] = {
    "all": Reduction(np.all, ("bool",)),
    "any": Reduction(np.any, ("bool",)),
    "argmax": Reduction(np.argmax, NUMBERS, empty=False, result="int32", one_axis=True),
    "argmin": Reduction(np.argmin, NUMBERS, empty=False, result="int32", one_axis=True),
    "max": Reduction(np.max, NUMBERS, empty=False),
    "mean": Reduction(np.mean, FLOATS, low=0.5, empty=False),
    "min": Reduction(np.min, NUMBERS, empty=False),
    "prod": Reduction(np.prod, NUMBERS, low=0.5),
    "sum": Reduction(np.sum, NUMBERS, low=0.5),
}
