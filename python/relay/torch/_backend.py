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

from relay._errors import wrong
from relay.torch import _options, _recurrent, _regions, _report
from relay.torch._compile import compile_graph, refuse
from relay.torch._decompositions import decompositions
from relay.torch._options import Options


def backend(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles a graph for torch.compile(model, backend="relay", options={...}).

    options: of relay.build, target, opt_level, num_threads (torch.get_num_threads(), if not given), cache and
        progress; and
        fallback: False makes operators an error that Relay does not have; PyTorch runs them otherwise.
        freeze: True makes parameters and buffers constants of inference programs.
        memory: the part of the activations that training keeps, from 0.0 to 1.0.
    """
    chosen = _options.read(options, mode)
    given = list(example_inputs)
    _recurrent.keep_layers(graph_module)

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
