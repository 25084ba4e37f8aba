"""Files of weights and of models."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

from relay import _core
from relay._errors import wrong

# Arrays by name, or the path of a file of weights.
Weights: TypeAlias = dict[str, Any] | str | os.PathLike[str] | None


def load_weights(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the arrays of a file of weights by their names.

    path: a safetensors file, a NumPy archive (.npz), or a state dictionary that `torch.save` wrote. It is
        read without PyTorch, and nothing in it is executed. Dots join the names of nested dictionaries.
    """
    return _core.load_weights(os.fspath(path))


def weights_argument(params: Weights) -> dict[str, Any] | str | None:
    """Returns the `params` of a front end as `_core.import_model` takes them."""
    if isinstance(params, (str, os.PathLike)):
        return os.fspath(params)
    if params is not None and not isinstance(params, dict):
        raise wrong(f"params is a dictionary of arrays or a path, not {type(params).__name__}")
    return params


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
