"""Front ends: models of other systems as Relay programs."""

from __future__ import annotations

import os
from typing import Any

from relay import _core
from relay._build import refuse


def from_onnx(
    model: object,
    shape: dict[str, Any] | None = None,
    dtype: dict[str, Any] | str = "float32",
    opset: None = None,
    freeze_params: bool = True,
    convert_config: None = None,
    export_node_renamed_model_path: None = None,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the typed module of an ONNX model, and its weights by parameter name.

    model: a path, the bytes of a model, or an `onnx.ModelProto`.
    shape: shapes of inputs by name; -1 keeps a dimension symbolic.
    dtype: element types by input name, for inputs that differ from the model's.
    freeze_params: makes the weights constants; the dictionary is empty then.
    The other parameters are Relay's of old, and are refused when they are given.
    """
    refuse(
        "relay.frontend.from_onnx",
        {
            "opset": opset,
            "convert_config": convert_config,
            "export_node_renamed_model_path": export_node_renamed_model_path,
        },
    )
    if not isinstance(dtype, dict) and dtype != "float32":
        raise TypeError("dtype is a dictionary by input name: every input of a model has a type")
    if not isinstance(freeze_params, bool):
        raise TypeError(f"freeze_params is True or False, not {freeze_params!r}")
    if isinstance(model, (str, os.PathLike)):
        model = os.fspath(model)
    elif isinstance(model, (bytearray, memoryview)):
        model = bytes(model)
    elif not isinstance(model, bytes):
        if not hasattr(model, "SerializeToString"):
            raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")
        model = model.SerializeToString(deterministic=True)
    dtypes = dtype if isinstance(dtype, dict) else {}
    shapes = {} if shape is None else shape
    return _core.import_onnx(model, shapes, dtypes, freeze_params, "")
