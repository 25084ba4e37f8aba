"""Front ends: models of other systems as Relay programs."""

from __future__ import annotations

import os

from relay import _core


def from_onnx(
    model: object,
    shape: dict | None = None,
    dtype: object = "float32",
    freeze_params: bool = True,
) -> tuple[_core.IRModule, dict]:
    """Returns the typed module of an ONNX model, and its weights by parameter name.

    model: a path, the bytes of a model, or an `onnx.ModelProto`.
    shape: shapes of inputs by name; -1 keeps a dimension symbolic.
    dtype: element types by input name, for inputs that differ from the model's. A single name
        has no effect, as every input of a model has a type.
    freeze_params: makes the weights constants; the dictionary is empty then.
    """
    folder = ""
    if isinstance(model, (str, os.PathLike)):
        model = os.fspath(model)
    elif isinstance(model, (bytearray, memoryview)):
        model = bytes(model)
    elif not isinstance(model, bytes):
        if not hasattr(model, "SerializeToString"):
            raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")
        model = model.SerializeToString(deterministic=True)
    shapes = {name: [int(d) for d in dims] for name, dims in (shape or {}).items()}
    dtypes = dtype if isinstance(dtype, dict) else {}
    return _core.import_onnx(model, shapes, dtypes, freeze_params, folder)
