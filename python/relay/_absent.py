"""Names of the first Relay that this one does not have, each with the reason, and the error that says it."""

from __future__ import annotations

from relay import _core
from relay._ops import signatures

_ONE_EXECUTOR = "relay.build makes the only kind of executable"
_NOT_INCLUDED = "no code generator for it is included; relay.external.register adds one"
_NO_MEASURED_PARTS = "AnnotateTarget gives an operator to the first of the targets that supports it"
_BY_PARTITION = "the functions of PartitionGraph are the regions: mod.functions, attribute Compiler"
_BY_EXTERNAL = "relay.external registers code generators, with their patterns"
_ON_PROCESSOR = (
    "relay.tvm runs programs on the processor; "
    "relay.build(mod, target=...) of relay takes 'opencl' and 'cuda'"
)
_BY_PLACE = "on_device and device_copy name a device by its text, 'opencl:0'"
_PLACES = "the location of an expression is text, file:line:column: expr.span"
_NO_SPARSE = "no pass makes weights sparse; nn.sparse_dense takes the blocks of a sparse weight"
_BY_QUANTIZE = "relay.quantize.quantize is a single step without public intermediate stages"
_BY_BUILD = "relay.build does it after the passes"
_NO_SEARCH = "schedules follow from rules: there is no search, and there are no records of one"
_TENSOR_IR = "relay.prim_func and relay.te.Schedule write and rewrite kernels"
_NO_NAMES = "Python calls functions itself: none are looked up by name"
_BY_TE = (
    "relay.te.create_prim_func makes a kernel of tensor expressions, relay.te.Schedule rewrites it"
)
_ONE_PROCESS = "programs run in the process that loads them"
_OTHER_LANGUAGE = "this package has Relay's programs only"
_NO_BOOTSTRAP = "other packages download files and models"
_IN_LIBRARY = "an exported library is one file with its weights"

# Names beside operators, by module.
ABSENT: dict[str, dict[str, str]] = {
    "": {
        "BuildModule": _ONE_EXECUTOR,
        "GraphExecutor": _ONE_EXECUTOR,
        "AotExecutor": _ONE_EXECUTOR,
        "vm": "relay.build makes the only kind of executable; relay.tvm.relay.vm has the old names",
        "Span": _PLACES,
        "SequentialSpan": _PLACES,
        "SourceName": _PLACES,
        "SpanCheck": _PLACES,
        "TypeConstraint": "the type relations of operators contain the constraints",
        "TypeRelation": "the type relations of operators contain the constraints",
        "IncompleteType": "an unknown type is None",
        "collage": _NO_MEASURED_PARTS,
        "contrib": _BY_EXTERNAL,
        "memory_plan": _BY_BUILD,
    },
    "transform": {
        "LayoutConfig": "ConvertLayout and AlterOpLayout choose by operator, not by the number of a layer",
        "Legalize": "CanonicalizeOps expands the definitions of operators",
        "CollagePartition": _NO_MEASURED_PARTS,
        "OutlineCompilerFunctionsWithExistingGlobalSymbols": "PartitionGraph makes functions of the module",
        "MarkCompilerFunctionsAsExtern": "a function keeps its body, the definition of its kernel",
        "CapturePostDfsIndexInSpans": _NO_MEASURED_PARTS,
        "DenseToSparse": _NO_SPARSE,
        "Conv2dToSparse": _NO_SPARSE,
        "Conv2dToSparse2": _NO_SPARSE,
        "ManifestLifetimes": _BY_BUILD,
        "SplitArgs": "a kernel takes any number of arguments",
        "FlexibleShapeDispatch": "sizes may be symbolic: name the dimension",
    },
    "analysis": {
        "get_calibration_data": _BY_PARTITION,
        "AnnotatedRegionSet": _BY_PARTITION,
        "process_params": _NO_SPARSE,
    },
    "dataflow_pattern": {
        "register_df_node": "new kinds of patterns cannot be added: `where` calls a function",
    },
    "testing": {
        "yolo_detection": "other packages read and draw images",
        "darknet": "there is no importer of Darknet",
        "tf": "there is no importer of TensorFlow",
        "tflite": "TensorFlow is not called; relay.frontend.from_tflite reads files",
        "py_converter": "relay.create_executor('debug') evaluates any program",
        "byoc": _BY_EXTERNAL,
        "TempOpAttr": "rows of operators are immutable; relay.register_op adds one",
    },
    "tvm": {
        **dict.fromkeys(
            ("cuda", "gpu", "rocm", "opencl", "metal", "vulkan", "hexagon", "webgpu", "ext_dev"),
            _ON_PROCESSOR,
        ),
        **dict.fromkeys(("autotvm", "auto_scheduler", "meta_schedule"), _NO_SEARCH),
        **dict.fromkeys(("tir", "script", "arith"), _TENSOR_IR),
        **dict.fromkeys(("build", "lower", "topi"), _BY_TE),
        **dict.fromkeys(("get_global_func", "register_func", "register_object"), _NO_NAMES),
        **dict.fromkeys(("rpc", "micro"), _ONE_PROCESS),
        "driver": "the commands are relay compile, run, bench and show",
        "relax": _OTHER_LANGUAGE,
        "support": "relay.__version__ is the version",
    },
    "tvm.contrib": {
        "debugger": "relay show --tir and relay explain describe the kernels of a program",
        "download": _NO_BOOTSTRAP,
        "relay_viz": "a program shows itself: its text, and in notebooks its form in HTML",
        **dict.fromkeys(("cc", "tar", "ndk", "xcode", "emcc"), "export_library needs no compiler"),
        **dict.fromkeys(
            ("cublas", "cudnn", "cblas", "mkl", "rocblas", "nvcc", "pipeline_executor"),
            _NOT_INCLUDED,
        ),
        "dnnl": "relay.onednn divides a program for oneDNN",
        "cuda_graph": _ON_PROCESSOR,
    },
    "tvm.contrib.graph_executor.GraphModule": {
        "share_params": _IN_LIBRARY,
        "debug_get_output": "relay.transform.ToANormalForm names every value: return the one in question",
        "set_output_zero_copy": "results are tensors of the program; donated inputs are written in place",
    },
    "tvm.runtime": {
        **dict.fromkeys(("load_static_library", "system_lib"), _IN_LIBRARY),
        **dict.fromkeys(("Object", "ObjectGeneric", "convert", "PackedFunc", "String"), _NO_NAMES),
        **dict.fromkeys(
            ("profiling", "profiler_vm"), "relay bench --profile measures every kernel"
        ),
        **dict.fromkeys(("DataType", "DataTypeCode"), "dtypes are texts, those of NumPy"),
    },
    "tvm.runtime.vm.Executable": {
        **dict.fromkeys(
            ("bytecode", "constants", "primitives", "virtual_devices"),
            "relay show --bytecode prints the program",
        ),
        **dict.fromkeys(
            ("move_late_bound_consts", "load_late_bound_consts", "get_late_bound_consts"),
            _IN_LIBRARY,
        ),
    },
    "tvm.runtime.vm.VirtualMachine": {
        "invoke_with_outputs": "results are tensors of the program; donated inputs are written in place",
    },
    "tvm.runtime.Module": {
        **dict.fromkeys(("get_source", "imported_modules", "import_module"), _IN_LIBRARY),
        "time_evaluator": 'the module of lib["default"](device) has it',
    },
    "tvm.target": {
        **dict.fromkeys(
            (
                "cuda",
                "rocm",
                "mali",
                "intel_graphics",
                "arm_cpu",
                "rasp",
                "vta",
                "bifrost",
                "hexagon",
                "riscv_cpu",
                "adreno",
                "opengl",
            ),
            "a target is a text: Target('llvm -mcpu=...')",
        ),
        **dict.fromkeys(("generic_func", "override_native_generic_func", "GenericFunc"), _NO_NAMES),
        **dict.fromkeys(("codegen", "VirtualDevice", "list_kinds"), _BY_PLACE),
    },
    "tvm.te": {
        **dict.fromkeys(
            (
                "create_schedule",
                "thread_axis",
                "scan",
                "tag_scope",
                "hybrid",
                "tensor_intrin",
                "decl_tensor_intrin",
                "gradient",
            ),
            _BY_TE,
        ),
        "extern_primfunc": "relay.te.extern takes a kernel",
    },
    "tvm.ir": {
        **dict.fromkeys(
            ("save_json", "load_json"), "programs are stored as text: astext() and fromtext"
        ),
        **dict.fromkeys(("make_node", "EnvFunc", "register_intrin_lowering"), _NO_NAMES),
        **dict.fromkeys(("Span", "SourceName", "Source", "SequentialSpan"), _PLACES),
        **dict.fromkeys(
            ("TypeConstraint", "TypeRelation"),
            "the type relations of operators contain the constraints",
        ),
        **dict.fromkeys(("IncompleteType",), "an unknown type is None"),
        **dict.fromkeys(("PoolInfo", "WorkspaceMemoryPools", "ConstantMemoryPools"), _BY_BUILD),
        **dict.fromkeys(("VDevice", "GlobalInfo", "DummyGlobalInfo"), _BY_PLACE),
        **dict.fromkeys(("Range", "PrimExpr", "PrimType", "PointerType"), _TENSOR_IR),
    },
    "tvm.testing": {
        **dict.fromkeys(("requires_rpc", "requires_micro"), _ONE_PROCESS),
        "check_numerical_grads": "relay.testing.check_grad compares gradients with finite differences",
    },
    "IRModule": {
        "get_constructor": "constructors have names, not numbers: get_type(name) gives those of a type",
        "update": "a module is immutable: with_function returns a new one; relay.tvm.IRModule changes",
        "update_func": "a module is immutable: with_function returns a new one; relay.tvm.IRModule changes",
        "global_infos": _BY_PLACE,
        "source_map": _PLACES,
    },
    "tvm.IRModule": {
        "get_constructor": "constructors have names, not numbers: get_type(name) gives those of a type",
        "global_infos": _BY_PLACE,
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
        "from_keras": "convert models of other formats to ONNX first",
        "from_tensorflow": "convert models of other formats to ONNX first",
        "from_coreml": "convert models of other formats to ONNX first",
        "from_mxnet": "convert models of other formats to ONNX first",
        "from_caffe": "convert models of other formats to ONNX first",
        "from_caffe2": "convert models of other formats to ONNX first",
        "from_darknet": "convert models of other formats to ONNX first",
        "from_paddle": "convert models of other formats to ONNX first",
        "from_oneflow": "convert models of other formats to ONNX first",
    },
}

# The reasons by the name of an operator, and by the full name of anything else.
OPERATORS = {name: reason for reason, names in signatures.ABSENT.items() for name in names.split()}
_OTHERS = {
    f"{module}.{name}" if module else name: reason
    for module, names in ABSENT.items()
    for name, reason in names.items()
}


class _Unknown(AttributeError):
    """The error for a name that no module has; the search for similar names waits until its text is read.

    `from package import module` asks the package for the name first, and drops the error.
    """

    def __str__(self) -> str:
        module, name, full = self.args
        near = suggestions(full)
        hint = f"; did you mean {near}?" if near else ""
        return f"module '{module}' has no attribute '{name}'{hint}"


class Unsupported(AttributeError):
    """A name of the first Relay that is absent, with the reason."""


def absent(module: str, name: str) -> AttributeError:
    """Returns the error for an absent name of a module; for a name of the first Relay with the reason."""
    full = f"{module}.{name}".removeprefix("relay.").removeprefix("op.")
    reason = OPERATORS.get(full) or _OTHERS.get(full)
    if reason is not None:
        return Unsupported(f"Relay's {full} is not supported: {reason}")
    return _Unknown(module, name, full)


def suggestions(name: str) -> str:
    """Returns operators of a similar name, or of the same name in another namespace."""
    import difflib

    known = _core.op_names()
    short = name.rpartition(".")[2]
    near = [n for n in known if n.rpartition(".")[2] == short]
    near += [n for n in difflib.get_close_matches(name, known, 2, 0.8) if n not in near]
    return ", ".join(f"relay.{n}".replace("relay.qnn.", "relay.qnn.op.") for n in near)
