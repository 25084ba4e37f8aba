"""Front ends: models of other systems as Relay programs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

from relay import _core
from relay._absent import absent
from relay._errors import refuse, wrong
from relay._pytorch import (
    from_exported_program as from_exported_program,
)
from relay._pytorch import (
    from_pytorch as from_pytorch,
)
from relay._specialise import OpenModel, RankIsOpen
from relay._weights import Weights, model_source, weights_argument
from relay._weights import load_weights as load_weights
from relay.frontend import tflite as tflite


def _proto_bytes(model: Any) -> bytes | None:
    if not hasattr(model, "SerializeToString"):
        return None
    return model.SerializeToString(deterministic=True)


def from_onnx(
    model: object,
    shape: dict[str, Any] | None = None,
    dtype: dict[str, Any] | str = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: None = None,
    export_node_renamed_model_path: None = None,
    *,
    freeze: dict[str, Any] | None = None,
    params: Weights = None,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the typed module of an ONNX model, and its weights by parameter name.

    If a rank depends on values that are known only at run time, the module is an `OpenModel`:
    `relay.build` and `relay.create_executor` make a program for each case when it first occurs.

    model: a path, the bytes of a model, or an `onnx.ModelProto`.
    shape: shapes of inputs by name; -1 keeps a dimension symbolic.
    dtype: element types by input name, for inputs that differ from the model's.
    opset: the version of the operator set by which nodes are read, instead of the model's.
    freeze_params: makes the weights constants; the dictionary is empty then.
    freeze: values of inputs by name, which become constants of the program.
    params: values of initializers by name, in place of the model's, or the path of a file of weights, as
        `load_weights` reads it. Initializers without a value keep the model's.
    The other parameters are those of the first Relay, and are refused if they are given.
    """
    refuse(
        "relay.frontend.from_onnx",
        {
            "convert_config": convert_config,
            "export_node_renamed_model_path": export_node_renamed_model_path,
        },
    )
    if not isinstance(dtype, dict) and dtype != "float32":
        raise wrong("dtype is a dictionary by input name: every input of a model has a type")
    if not isinstance(freeze_params, bool):
        raise wrong(f"freeze_params is True or False, not {freeze_params!r}")
    source = model_source(model, "a model is a path, bytes or a ModelProto", _proto_bytes)
    dtypes = dtype if isinstance(dtype, dict) else {}
    shapes = {} if shape is None else shape
    if opset is not None and (isinstance(opset, bool) or not isinstance(opset, int) or opset < 1):
        raise wrong(f"opset is a number from 1 on, or None, not {opset!r}")
    frozen = {} if freeze is None else freeze
    own = {} if opset is None else {"opset": opset}

    def load(**known: dict[str, Any]) -> tuple[_core.IRModule, list]:
        found: list = []
        sizes = shapes | known.get("sizes", {})
        rest = known.get("value", {}), known.get("elements", {}), found
        try:
            mod, weights = _core.import_model(
                "onnx",
                source,
                sizes,
                dtypes,
                freeze_params,
                "",
                own,
                frozen,
                *rest,
                weights_argument(params),
            )
        except _core.UserError as error:
            if not found:
                raise
            raise RankIsOpen(error, *found) from None
        return mod, weights

    try:
        return load()
    except RankIsOpen as refused:
        # Weights cannot be parameters beside inputs that differ between programs.
        if not freeze_params:
            raise refused.error from None
        # The declared type is that of other models: callers that only build it see no difference.
        return cast("_core.IRModule", OpenModel(load, refused)), {}


def check_onnx(
    path: str | os.PathLike[str],
    shape: dict[str, Any] | None = None,
    freeze: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a report on an ONNX file before it is imported, as `relay check --json` prints it.

    It has the operators by domain and version, the parameters, the symbolic sizes and the inputs that
    have them; all errors, as "diagnostics"; and, if the file can be imported, under "program" the types
    of inputs and outputs, nodes of data-dependent sizes, operations, memory, and the kernels that run
    in plain loops. Raises for a file that is not an ONNX model.

    shape, freeze: as for `from_onnx`.
    """
    return json.loads(_core.check_model("onnx", os.fspath(path), shape or {}, freeze or {}))


def from_tflite(
    model: object,
    shape_dict: dict[str, Any] | None = None,
    dtype_dict: dict[str, Any] | None = None,
    op_converter: None = None,
    *,
    signature: str = "",
    freeze_params: bool = True,
    freeze: dict[str, Any] | None = None,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the typed module of a TFLite model, and its weights by parameter name.

    model: a path, or the bytes of a model.
    shape_dict: shapes of inputs by name; -1 keeps a dimension symbolic.
    dtype_dict: element types by input name, for inputs that differ from the model's.
    op_converter: that of the first Relay; refused if it is given.
    signature: the name of the signature to import; empty for the first subgraph.
    freeze_params: makes the weights constants; the dictionary is empty then.
    freeze: values of inputs by name, which become constants of the program.
    """
    refuse("relay.frontend.from_tflite", {"op_converter": op_converter})
    if not isinstance(freeze_params, bool):
        raise wrong(f"freeze_params is True or False, not {freeze_params!r}")
    source = model_source(model, "a model is a path or bytes")
    own = {"signature": signature} if signature else {}
    return _core.import_model(
        "tflite",
        source,
        shape_dict or {},
        dtype_dict or {},
        freeze_params,
        "",
        own,
        freeze or {},
        {},
        {},
        [],
        None,
    )


if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.frontend", name)
