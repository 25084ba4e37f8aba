"""PyTorch modules as programs that run without PyTorch, through torch.export."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from relay import _core
from relay._build import Executable, build
from relay._errors import wrong
from relay._pytorch import from_exported_program


def compile(
    module: Any,
    example: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: str | None = None,
    **options: Any,
) -> Executable:
    """Returns the compiled program of a PyTorch module.

    `torch.export` traces the module. The program holds its weights, takes and returns arrays, and is written
    to a file by `Executable.export_library`; neither it nor the file needs PyTorch. E0914 for a module that
    cannot be exported, such as one whose Python code branches on the values of a tensor; E0501 for operators
    that Relay does not support. To compile a module for use in PyTorch, with gradients and fallback, call
    `torch.compile(module, backend="relay")`.

    module: a `torch.nn.Module`, in the mode (`eval()`, `train()`) that is meant.
    example: its positional arguments; their sizes are those of the program unless `dynamic_shapes` leaves
        them open. A size of 1 cannot be left open.
    kwargs: its keyword arguments.
    dynamic_shapes: as for `torch.export.export`.
    target, options: as for `relay.build`.
    """
    import torch
    from torch._dynamo.exc import TorchDynamoException
    from torch._export.serde.serialize import SerializeError
    from torch._subclasses.fake_tensor import (
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
    )
    from torch.fx.experimental.symbolic_shapes import (
        ConstraintViolationError,
        GuardOnDataDependentSymNode,
    )

    if not isinstance(module, torch.nn.Module):
        raise wrong(f"a module is a torch.nn.Module, not {type(module).__name__}")
    if isinstance(module, torch.jit.ScriptModule):
        _fail(
            "it is a TorchScript program",
            "give the Python module, or call relay.frontend.from_pytorch(module, input_infos)",
        )
    if not isinstance(example, (tuple, list)):
        raise wrong(f"example is a tuple of arguments, such as (x,), not {type(example).__name__}")
    leaves = torch.utils._pytree.tree_leaves((example, kwargs))
    for tensor in [*leaves, *module.parameters(), *module.buffers()]:
        if isinstance(tensor, torch.Tensor) and not _is_dense(tensor):
            _fail(
                "a tensor is sparse, nested or of a quantised type",
                "give the module dense tensors, and quantise with quantized_decomposed operators (PT2E)",
            )
    try:
        program = torch.export.export(
            module, tuple(example), kwargs, dynamic_shapes=dynamic_shapes, strict=False
        )
        mod, _ = from_exported_program(program)
    except GuardOnDataDependentSymNode as error:
        _refuse(
            error,
            "use torch.where or torch.cond for a branch, torch.while_loop for a loop, and torch._check for a "
            'size; torch.compile(module, backend="relay") compiles what comes before and after',
            "its Python code depends on the values of a tensor",
        )
    except (
        TorchDynamoException,
        SerializeError,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
        ConstraintViolationError,
    ) as error:
        _refuse(error, _advice_on_sizes(module, example, kwargs, dynamic_shapes))
    except ValueError as error:
        # Sizes that cannot be left open; the module's own errors are the caller's.
        if not str(error).startswith("Found the following conflicts between user-specified ranges"):
            raise
        _refuse(error, _advice_on_sizes(module, example, kwargs, dynamic_shapes))
    return build(mod, target, **options)


def _is_dense(tensor: Any) -> bool:
    return not (tensor.is_nested or tensor.is_quantized or "strided" not in str(tensor.layout))


def _fail(message: str, advice: str) -> NoReturn:
    _core.fail("E0914", None, 0, 0, f"PyTorch cannot export the module: {message}", "", "", advice)
    raise AssertionError(message)


def _advice_on_sizes(
    module: Any, example: Sequence[Any], kwargs: dict[str, Any] | None, dynamic_shapes: Any
) -> str:
    """Returns advice if an example has a size of 1 that `dynamic_shapes` leaves open."""
    import torch

    given = inspect.signature(module.forward).bind(*example, **(kwargs or {})).arguments
    by_name = isinstance(dynamic_shapes, Mapping)
    pairs = [(given if by_name else list(given.values()), dynamic_shapes)]
    while pairs:
        value, shapes = pairs.pop()
        if isinstance(value, torch.Tensor):
            value = list(value.shape)
        if isinstance(shapes, Mapping):
            axes = value if isinstance(value, Mapping) else dict(enumerate(value))
            pairs += [(axes[name], inner) for name, inner in shapes.items() if name in axes]
        elif isinstance(shapes, (tuple, list)):
            pairs += zip(value, shapes, strict=False)
        elif value == 1 and not (
            shapes is None or isinstance(shapes, int) or shapes == torch.export.Dim.STATIC
        ):
            return (
                "torch.export specialises a size of 1: "
                "give example arguments whose open sizes are 2 or more"
            )
    return ""


def _refuse(error: Exception, advice: str, what: str = "") -> NoReturn:
    """Raises E0914 for what torch.export refuses, with the line of the module's code.

    what: the message in place of PyTorch's.
    """
    import torch

    homes = (torch.__path__[0], os.path.dirname(__file__))
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(homes)
    ]
    place = ""
    if frames:
        place = f'\n  File "{frames[-1].filename}", line {frames[-1].lineno}, in {frames[-1].name}'
    if not what:
        # What follows is advice on torch.export.
        what = str(error).split("\n\nThe error above occurred")[0].strip() or type(error).__name__
    _fail(what + place, advice)
