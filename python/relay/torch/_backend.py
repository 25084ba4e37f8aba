"""The back end "relay" of torch.compile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from relay import _core
from relay._errors import wrong
from relay.torch import _options, _regions, _report, _schema
from relay.torch._compile import compile_graph, refuse
from relay.torch._options import Options


def backend(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles a graph for torch.compile(model, backend="relay", options={...}).

    options: of relay.build, target, opt_level, num_threads, cache and progress; and
        fallback: False makes operators an error that Relay does not have; PyTorch runs them otherwise.
        freeze: True makes parameters and buffers constants of inference programs.
        memory: the part of the activations that training keeps, from 0.0 to 1.0.
    """
    chosen = _options.read(options, mode)
    given = list(example_inputs)

    def inference(module: fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        constants = _constants(module, given) if chosen.freeze else {}
        return compile_graph(module, "inference", chosen, constants)

    def forward(module: fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(module, "forward", chosen)

    def backward(module: fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(module, "backward", chosen)

    compiler = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=functools.partial(_partition, chosen),
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    return compiler(graph_module, example_inputs)


# What torch.compiler.reset() calls.
backend.reset = _report.reset  # type: ignore[attr-defined]


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of operators that Relay does not have itself into others.

    Those of torch._refs are left out: they end in operators (prims) that no back end has. Those of operators
    that draw random numbers are left out, too: they draw others than the operator does in eager mode.
    """
    rows = set(_core.torch_rows())
    table = {
        op: f
        for op, f in torch._decomp.decomposition_table.items()
        if f.__module__.startswith("torch._decomp")
    }
    table |= torch._decomp.core_aten_decompositions()
    kept = {
        op: f
        for op, f in table.items()
        if _schema.operator_name(op) not in rows
        and torch.Tag.nondeterministic_seeded not in getattr(op, "tags", ())
    }
    # Its second result is not what the backward operator takes.
    kept.pop(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default, None)
    return (
        kept | _of_lists() | {torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}
    )


_LISTED = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone cos cosh div erf erfc exp "
    "expm1 floor frac lerp log log10 log1p log2 max maximum minimum mul neg pow reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt sub tan tanh trunc"
)


def _of_lists() -> dict[Any, Callable[..., Any]]:
    """The operators that optimizers apply to lists of tensors: one operator for each tensor."""
    functions = {
        "copy": lambda x, source, non_blocking=False: torch.ops.aten.copy(x, source),
        "norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
        "zero": torch.zeros_like,
    }
    functions |= {name: getattr(torch, name) for name in _LISTED.split()}
    found = {}
    for name, function in functions.items():
        packet = getattr(torch.ops.aten, f"_foreach_{name}")
        for overload in packet.overloads():
            if "out" not in overload:
                op = getattr(packet, overload)
                found[op] = _for_each(op._schema, function)
    return found


def _for_each(schema: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """What applies a function to each entry of its arguments that are lists."""

    def apply(*args: Any, **kwargs: Any) -> list[Any]:
        names = [a.name for a in schema.arguments]
        given = dict(zip(names, args, strict=False)) | kwargs
        count = max(len(v) for v in given.values() if isinstance(v, (list, tuple)))
        out = []
        for i in range(count):
            own = {k: v[i] if isinstance(v, (list, tuple)) else v for k, v in given.items()}
            if "tensor1" in own:
                value = own.get("value", own.get("scalars", 1))
                if isinstance(own.get("scalars"), torch.Tensor):
                    value = own["scalars"][i]
                step = function is torch.addcdiv
                moved = own["tensor1"] / own["tensor2"] if step else own["tensor1"] * own["tensor2"]
                out.append(own["self"] + value * moved)
                continue
            keywords = {k: own.pop(k) for k in ("alpha", "ord", "dtype") if k in own}
            out.append(function(*own.values(), **keywords))
        return out

    return apply


def _encoder_layer(
    x: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> Any:
    """What nn.TransformerEncoderLayer calls in inference: a layer as one operator, as the operators of it."""
    if mask is not None or x.dim() != 3:
        return NotImplemented
    f = torch.nn.functional

    def attend(y: torch.Tensor) -> torch.Tensor:
        heads = f.linear(y, qkv_weight, qkv_bias).unflatten(-1, (3, num_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q / (embed_dim // num_heads) ** 0.5) @ k.transpose(-1, -2)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return f.linear(mixed, proj_weight, proj_bias)

    def feed(y: torch.Tensor) -> torch.Tensor:
        y = f.linear(y, ffn_weight_1, ffn_bias_1)
        return f.linear(f.gelu(y) if use_gelu else f.relu(y), ffn_weight_2, ffn_bias_2)

    def norm_1(y: torch.Tensor) -> torch.Tensor:
        return f.layer_norm(y, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(y: torch.Tensor) -> torch.Tensor:
        return f.layer_norm(y, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = x + attend(norm_1(x))
        return x + feed(norm_2(x))
    x = norm_1(x + attend(x))
    return norm_2(x + feed(x))


def _partition(
    options: Options, joint: fx.GraphModule, inputs: Any, **known: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward graph of a joint graph.

    What Relay does not have is found here, before the cut: it runs in PyTorch, once, so it is not
    computed again in the backward graph.
    """
    if options.freeze:
        raise wrong(
            "freeze=True makes parameters constants, but this graph is differentiated: call the model "
            "under torch.no_grad() or torch.inference_mode(), or leave freeze out"
        )
    refused = _regions.refused(joint)
    if not options.fallback:
        refuse(joint, refused)
    for node in refused:
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    if options.memory is None:
        return min_cut_rematerialization_partition(joint, inputs, **known)
    with torch._functorch.config.patch(activation_memory_budget=float(options.memory)):
        return min_cut_rematerialization_partition(joint, inputs, **known)


def _constants(
    graph_module: fx.GraphModule, example_inputs: Sequence[Any]
) -> dict[fx.Node, torch.Tensor]:
    """The placeholders of parameters and buffers that the graph does not change, with their values."""
    changed = {
        node.args[0]
        for node in graph_module.graph.nodes
        if _regions.changes(node) and isinstance(node.args[0], fx.Node)
    }
    found = {}
    for node in graph_module.graph.nodes:
        index = getattr(node.meta.get("desc"), "idx", None)
        if node.op != "placeholder" or node in changed or index is None:
            continue
        value = example_inputs[index]
        is_static = getattr(value, "_dynamo_static_input_type", None) is not None
        if isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and is_static):
            found[node] = value
    return found
