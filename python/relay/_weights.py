"""Files of weights and of models."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from relay import _core
from relay._errors import wrong


def load_weights(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the arrays of a file of weights by their names.

    path: a safetensors file, a NumPy archive (.npz), or a state dictionary that `torch.save` wrote. It is
        read without PyTorch, and nothing in it is executed. Dots join the names of nested dictionaries.
    """
    path = os.fspath(path)
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    return _core.load_weights(path)


def model_source(
    model: object, expected: str, write: Callable[[Any], bytes | None] | None = None
) -> str | bytes:
    """Returns a model as importers take it: a path or bytes. ArgumentError for any other object.

    expected: the text of that error, "a model is a path or bytes".
    write: returns the bytes of a model that is another object, None for an object that is no model.
    """
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    written = None if write is None else write(model)
    if written is None:
        raise wrong(f"{expected}, not {type(model).__name__}")
    return written
