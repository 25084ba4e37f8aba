"""The list of oracles: what each operator means, over NumPy's arrays, which its compute rule has no part in.

An oracle is called with the attributes (all of them, by name) and the arguments, tuples flattened,
and returns one array or a list of them. Floats are computed in float64; the caller brings them to
the operator's dtype. The references walk elements one by one where that says most plainly what is
meant. The oracles are in families, one file each; op_oracles knows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

import relay

ORACLES: dict[str, Callable] = {}


def oracle(*names: str) -> Callable:
    """Registers a function as the meaning of operators."""

    def register(function: Callable) -> Callable:
        for name in names:
            assert name not in ORACLES, name
            ORACLES[name] = function
        return function

    return register


def attributes(name: str, text: str) -> SimpleNamespace:
    """Returns all attributes of an operator, those in `text` with the values there."""
    values = {a.name: a.default for a in relay.op.get(name).attrs}
    # Floats end in f; the rest of the syntax is Python's.
    text = re.sub(r"(?<=[\d.])f\b", "", text)
    values |= eval(f"dict({text})", {}, {})
    return SimpleNamespace(**values)


def answer(name: str, attrs: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what the operator gives by its oracle."""
    result = ORACLES[name](attributes(name, attrs), *map(wide, inputs))
    return [np.asarray(r) for r in (result if isinstance(result, (list, tuple)) else [result])]


def wide(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def along(v: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """Returns a vector as a tensor that broadcasts along `axis`."""
    shape = [1] * rank
    shape[axis] = -1
    return v.reshape(shape)
