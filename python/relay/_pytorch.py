"""Programs of PyTorch: `from_exported_program`, and `from_pytorch` for TorchScript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relay import _core
from relay._errors import refuse, wrong
from relay._weights import Weights, model_source, weights_argument


def _archive(program: Any) -> bytes | None:
    """The bytes of the archive of an ExportedProgram."""
    if type(program).__name__ != "ExportedProgram":
        return None
    import io

    import torch

    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def from_exported_program(
    program: object,
    shape: dict[str, Any] | None = None,
    freeze_params: bool = True,
    *,
    model: str = "",
    freeze: dict[str, Any] | None = None,
    params: Weights = None,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the typed module of a program of `torch.export`, and its weights by parameter name.

    program: a `torch.export.ExportedProgram`, or the path or bytes of a `.pt2` archive, which needs
        no PyTorch.
    shape: shapes of inputs by name; -1 keeps a dimension symbolic.
    freeze_params: makes the weights constants; the dictionary is empty then.
    model: the name of the program, for an archive that contains several.
    freeze: values of inputs by name, which become constants of the program.
    params: values of all parameters and persistent buffers by their names in the module, which replace those
        of the program, or the path of a file of weights, as `load_weights` reads it.
    """
    if not isinstance(freeze_params, bool):
        raise wrong(f"freeze_params is True or False, not {freeze_params!r}")
    source = model_source(program, "a program is an ExportedProgram, a path or bytes", _archive)
    own = {"model": model} if model else {}
    return _core.import_model(
        "torch",
        source,
        shape or {},
        {},
        freeze_params,
        "",
        own,
        freeze or {},
        {},
        {},
        [],
        weights_argument(params),
    )


def _shape_and_dtype(name: str, form: Any) -> tuple[tuple[int, ...], Any]:
    """The shape and the dtype, or None, that an entry of `input_infos` gives for an input."""
    dtype = None
    if len(form) == 2 and isinstance(form[0], (tuple, list)):
        form, dtype = form
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in form):
        raise wrong(f"the shape of the input {name!r} has numbers as sizes, not {form!r}")
    return tuple(form), dtype


def _torch_dtype(name: str, dtype: Any) -> Any:
    """The dtype of PyTorch that an entry of `input_infos`, or `default_dtype`, gives for an input."""
    import torch

    if isinstance(dtype, torch.dtype):
        return dtype
    text = dtype
    if not isinstance(dtype, str):
        try:
            text = np.dtype(dtype).name
        except TypeError:
            text = ""
    found = getattr(torch, text, None)
    if not isinstance(found, torch.dtype):
        raise wrong(f"the input {name!r} has no dtype {dtype!r} of PyTorch")
    return found


def _examples(script: Any, input_infos: Sequence[Any], default_dtype: str) -> dict[str, Any]:
    """A tensor for each input by the names of `input_infos`."""
    import torch

    declared = list(script.inlined_graph.inputs())
    if declared and declared[0].type().kind() == "ClassType":
        del declared[0]  # the module itself
    if len(declared) != len(input_infos):
        raise wrong(f"the program has {len(declared)} inputs, input_infos {len(input_infos)}")
    out: dict[str, Any] = {}
    for value, (name, form) in zip(declared, input_infos, strict=True):
        shape, dtype = _shape_and_dtype(name, form)
        traced = value.type().dtype() if isinstance(value.type(), torch.TensorType) else None
        if name in out:
            raise wrong(f"two inputs have the name {name!r}")
        if dtype is None and traced is not None:
            kind = traced
        else:
            kind = _torch_dtype(name, default_dtype if dtype is None else dtype)
        out[name] = torch.zeros(shape, dtype=kind)
    return out


def _fold_numbers(graph_module: Any) -> None:
    """Replaces calls that give plain numbers, such as sizes that TorchScript asks for, by the numbers."""
    for node in list(graph_module.graph.nodes):
        value = node.meta.get("val")
        if node.op == "call_function" and type(value) in (int, float, bool):
            node.replace_all_uses_with(value)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()


# Begins the names that `_number_weights` gives.
_WEIGHT = "relay_weight_"


def _number_weights(program: Any) -> dict[str, str]:
    """Names the weights of an ExportedProgram by numbers; returns their names before by the new ones.

    The importer writes letters, digits and "_" in names: those of `a.b` and `a_b` would be one.
    """
    names = {name: f"{_WEIGHT}{i}" for i, name in enumerate(list(program.state_dict))}
    for name, number in names.items():
        program.state_dict[number] = program.state_dict.pop(name)
    signature = program.graph_signature
    for spec in (*signature.input_specs, *signature.output_specs):
        spec.target = names.get(spec.target, spec.target)
    return {number: name for name, number in names.items()}


def from_pytorch(
    script_module: Any,
    input_infos: Sequence[tuple[str, Any]],
    custom_convert_map: Mapping[str, Any] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: None = None,
    preserve_pytorch_scopes: bool = False,
) -> tuple[_core.IRModule, dict[str, Any]]:
    """Returns the typed module of a TorchScript program, and its weights by parameter name.

    PyTorch exports the program for inputs of the given shapes (`torch.export`); branches on values of
    tensors are an error of PyTorch there. `from_exported_program` reads what `torch.export` writes itself.

    script_module: of `torch.jit.trace` or `torch.jit.script`, in evaluation mode.
    input_infos: for each input its name and shape, or its name and (shape, dtype). The dtype is otherwise
        that of the trace, else `default_dtype`.
    use_parser_friendly_name: names of parameters have "_" in place of ".".
    The other parameters are those of the first Relay, and are refused if they are given.
    """
    import torch

    refuse(
        "relay.frontend.from_pytorch",
        {
            "custom_convert_map": custom_convert_map,
            "export_renamed_c_graph_path": export_renamed_c_graph_path,
            "keep_quantized_weight": keep_quantized_weight or None,
            "preserve_pytorch_scopes": preserve_pytorch_scopes or None,
        },
    )
    if not isinstance(script_module, torch.jit.ScriptModule):
        raise wrong(
            f"a TorchScript program is needed, not {type(script_module).__name__}: torch.jit.trace makes "
            "one, and from_exported_program takes what torch.export returns"
        )
    examples = _examples(script_module, input_infos, default_dtype)
    # torch.export calls the Python method beside the compiled one of `torch.jit.script` otherwise.
    run = script_module._c._get_method("forward")
    for parameter in script_module.parameters():
        # Those of a file are plain tensors; torch.export looks for this mark.
        if not isinstance(parameter, torch.nn.Parameter):
            parameter._is_param = True

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.script = script_module

        def forward(self, *values: Any) -> Any:
            return run(*values)

    with torch.no_grad():
        program = torch.export.export(Whole(), tuple(examples.values()), strict=False)
    _fold_numbers(program.graph_module)
    owned = _number_weights(program)
    mod, weights = from_exported_program(program, freeze_params=False)
    main = mod["main"]
    inputs = [p for p in main.params if p.name_hint not in weights]
    if len(inputs) != len(examples):
        raise wrong(f"the program reads {len(inputs)} of its {len(examples)} inputs")
    names = dict(zip([p.name_hint for p in inputs], examples, strict=True))
    taken = {name: f"input {name}" for name in examples}
    for number in weights:
        # Parameters are named as in the user's program, not as in the module around it.
        own = owned.get(number, number).removeprefix("script.")
        name = own.replace(".", "_") if use_parser_friendly_name else own
        if name in taken:
            raise wrong(
                f"the {taken[name]} and the parameter {own} are both named {name}: rename one"
            )
        taken[name] = f"parameter {own}"
        names[number] = name
    made = [_core.Var(names[p.name_hint], p.type_annotation) for p in main.params]
    body = _core.apply_function(_core.Function(list(main.params), main.body), made)
    function = _core.Function(made, body, None, [], dict(main.attrs))
    return mod.with_function("main", function), {names[n]: value for n, value in weights.items()}
