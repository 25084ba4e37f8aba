"""Names of the first Relay that this one does not have, each with the reason, and the error that says it."""

from __future__ import annotations

from relay import _core
from relay._ops import signatures

_ONE_EXECUTOR = "relay.build makes what runs, and there is one way to run it"
_NO_CODEGEN = "there are no external code generators to give parts of a program to"
_ONE_DEVICE = "there is one device"
_PLACES = "the place of an expression is text, file:line:column: expr.span"
_NO_SPARSE = "no pass makes weights sparse; nn.sparse_dense takes the blocks of one"
_BY_QUANTIZE = "relay.quantize.quantize is one step, with nothing between for others to do"
_BY_BUILD = "relay.build does it, behind the passes"

# Names beside operators, by module.
ABSENT: dict[str, dict[str, str]] = {
    "": {
        "BuildModule": _ONE_EXECUTOR,
        "GraphExecutor": _ONE_EXECUTOR,
        "AotExecutor": _ONE_EXECUTOR,
        "vm": _ONE_EXECUTOR,
        "Span": _PLACES,
        "SequentialSpan": _PLACES,
        "SourceName": _PLACES,
        "SpanCheck": _PLACES,
        "TypeConstraint": "what operators demand of types is in their relations",
        "TypeRelation": "what operators demand of types is in their relations",
        "IncompleteType": "a type that is not known is None",
        "collage": _NO_CODEGEN,
        "contrib": _NO_CODEGEN,
        "memory_plan": _BY_BUILD,
    },
    "transform": {
        "LayoutConfig": "ConvertLayout and AlterOpLayout choose by operator, not by the number of a layer",
        "Legalize": "operators are written in others by their definitions: CanonicalizeOps",
        "AnnotateTarget": _NO_CODEGEN,
        "MergeCompilerRegions": _NO_CODEGEN,
        "PartitionGraph": _NO_CODEGEN,
        "CollagePartition": _NO_CODEGEN,
        "OutlineCompilerFunctionsWithExistingGlobalSymbols": _NO_CODEGEN,
        "MarkCompilerFunctionsAsExtern": _NO_CODEGEN,
        "InlineCompilerFunctionsBoundTo": _NO_CODEGEN,
        "CapturePostDfsIndexInSpans": _NO_CODEGEN,
        "DenseToSparse": _NO_SPARSE,
        "Conv2dToSparse": _NO_SPARSE,
        "Conv2dToSparse2": _NO_SPARSE,
        "PlanDevices": _ONE_DEVICE,
        "ManifestLifetimes": _BY_BUILD,
        "SplitArgs": "a kernel takes any number of arguments",
        "FlexibleShapeDispatch": "sizes may stay open: name the dimension",
    },
    "analysis": {
        "get_calibration_data": _NO_CODEGEN,
        "AnnotatedRegionSet": _NO_CODEGEN,
        "process_params": _NO_SPARSE,
    },
    "dataflow_pattern": {
        "register_df_node": "patterns are not open to other kinds: `where` asks a function",
    },
    "testing": {
        "yolo_detection": "reading and drawing images is left to other packages",
        "darknet": "there is no importer of Darknet",
        "tf": "there is no importer of TensorFlow",
        "tflite": "there is no importer of TFLite",
        "py_converter": "relay.create_executor('debug') evaluates any program",
        "byoc": _NO_CODEGEN,
        "TempOpAttr": "rows of operators do not change; relay.register_op adds one",
    },
    "IRModule": {
        "get_constructor": "constructors are told by name, not by number: get_type(name) gives a type's",
        "update": "a module does not change: with_function gives another",
        "update_func": "a module does not change: with_function gives another",
        "global_infos": _ONE_DEVICE,
        "source_map": _PLACES,
    },
    "quantize": {
        "QAnnotateKind": _BY_QUANTIZE,
        "kind2str": _BY_QUANTIZE,
        "QuantizeContext": _BY_QUANTIZE,
        "quantize_context": _BY_QUANTIZE,
        "partition": _BY_QUANTIZE,
        "annotate": _BY_QUANTIZE,
        "realize": _BY_QUANTIZE,
        "prerequisite_optimize": _BY_QUANTIZE,
    },
    "frontend": {
        "from_tflite": "models of other formats are converted to ONNX first",
        "from_pytorch": "torch.onnx.export writes what from_onnx reads",
        "from_keras": "models of other formats are converted to ONNX first",
        "from_tensorflow": "models of other formats are converted to ONNX first",
        "from_coreml": "models of other formats are converted to ONNX first",
        "from_mxnet": "models of other formats are converted to ONNX first",
        "from_caffe": "models of other formats are converted to ONNX first",
        "from_caffe2": "models of other formats are converted to ONNX first",
        "from_darknet": "models of other formats are converted to ONNX first",
        "from_paddle": "models of other formats are converted to ONNX first",
        "from_oneflow": "models of other formats are converted to ONNX first",
    },
}

# The reasons by the name of an operator, and by the full name of anything else.
OPERATORS = {name: reason for reason, names in signatures.ABSENT.items() for name in names.split()}
_OTHERS = {
    f"{module}.{name}" if module else name: reason
    for module, names in ABSENT.items()
    for name, reason in names.items()
}


def absent(module: str, name: str) -> AttributeError:
    """Returns the error for an absent name of a module; for a name of the first Relay with the reason."""
    full = f"{module}.{name}".removeprefix("relay.").removeprefix("op.")
    reason = OPERATORS.get(full) or _OTHERS.get(full)
    if reason is not None:
        return AttributeError(f"Relay's {full} is not here: {reason}")
    near = suggestions(full)
    hint = f"; did you mean {near}?" if near else ""
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}")


def suggestions(name: str) -> str:
    """Returns operators of a similar name, or of the same name in another namespace."""
    import difflib

    known = _core.op_names()
    short = name.rpartition(".")[2]
    near = [n for n in known if n.rpartition(".")[2] == short]
    near += [n for n in difflib.get_close_matches(name, known, 2, 0.8) if n not in near]
    return ", ".join(f"relay.{n}".replace("relay.qnn.", "relay.qnn.op.") for n in near)
