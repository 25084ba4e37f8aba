"""Operators of PyTorch as others, where Relay does not have them itself."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from relay import _core
from relay.torch import _histograms, _schema


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
    return kept | _of_lists() | _own() | _histograms.decompositions()


def _own() -> dict[Any, Callable[..., Any]]:
    """Operators that PyTorch does not decompose, as others."""
    # PyTorch declares the operators of this module when it first needs them.
    import torch.nn.modules.linear_cross_entropy

    aten, nn = torch.ops.aten, torch.ops.torch_nn
    return {
        aten._transformer_encoder_layer_fwd.default: _encoder_layer,
        aten._pdist_forward.default: _pdist,
        aten._pdist_backward.default: _pdist_backward,
        aten._adaptive_avg_pool2d.default: _adaptive_pool,
        aten._adaptive_avg_pool2d_backward.default: functools.partial(
            _adaptive_pool_backward, rank=2
        ),
        aten._adaptive_avg_pool3d.default: _adaptive_pool,
        aten._adaptive_avg_pool3d_backward.default: functools.partial(
            _adaptive_pool_backward, rank=3
        ),
        aten.embedding_renorm.default: _renorm,
        aten.resize.default: _resize,
        aten.hash_tensor.default: _hash,
        aten.linalg_inv_ex.default: _inverse,
        nn._linear_cross_entropy_batch_chunked.default: _linear_cross_entropy,
        nn._linear_cross_entropy_batch_chunked_no_reduction.default: _linear_cross_entropies,
    }


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


def _pairs(n: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of each pair of different rows, in the order of pdist."""
    first, second = torch.triu_indices(n, n, 1).unbind(0)
    return first, second


def _pdist(x: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    first, second = _pairs(x.shape[0])
    return torch.linalg.vector_norm(x[first] - x[second], p, dim=1)


def _pdist_backward(
    grad: torch.Tensor, x: torch.Tensor, p: float, distances: torch.Tensor
) -> torch.Tensor:
    """The gradient of `_pdist`; that of rows without a distance is zero."""
    first, second = _pairs(x.shape[0])
    difference = x[first] - x[second]
    own, distance = grad.unsqueeze(1), distances.unsqueeze(1)
    if p == 0:
        moved = torch.zeros_like(difference)
    elif p == 1:
        moved = own * difference.sign()
    elif p == float("inf"):
        moved = own * difference.sign() * (difference.abs() == distance)
    else:
        near = difference == 0 if p < 2 else distance == 0
        power = torch.where(near, 1.0, difference.abs()) ** (p - 1)
        scaled = power / torch.where(distance == 0, 1.0, distance) ** (p - 1)
        moved = torch.where(near, 0.0, own * difference.sign() * scaled)
    zeros = torch.zeros_like(x)
    return zeros.index_add(0, first, moved).index_add(0, second, -moved)


def _windows(n: Any, out: Any, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which of n elements each window of adaptive pooling has, and how many, as a column."""
    at = torch.arange(out, device=like.device).unsqueeze(1)
    begin, end = at * n // out, ((at + 1) * n + out - 1) // out
    place = torch.arange(n, device=like.device)
    return (place >= begin) & (place < end), end - begin


def _sums(inside: torch.Tensor, x: torch.Tensor, axis: int) -> torch.Tensor:
    """For each row of a mask, the sum of the elements of an axis that it selects."""
    y = torch.where(inside, x.transpose(axis, -1).unsqueeze(-2), 0.0).sum(-1)
    return y.transpose(axis, -1)


def _is_symbolic(sizes: Any) -> bool:
    return not all(isinstance(n, int) for n in sizes)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _adaptive_pool(x: torch.Tensor, output_size: list[Any]) -> Any:
    """Averages of adaptive pooling; NotImplemented where the numbers of windows are known."""
    if not _is_symbolic(output_size):
        return NotImplemented
    y = _wide(x)
    for axis, out in enumerate(output_size, -len(output_size)):
        inside, count = _windows(x.shape[axis], out, x)
        y = _sums(inside, y, axis) / count.reshape([-1] + [1] * (-1 - axis))
    return y.to(x.dtype)


def _adaptive_pool_backward(grad: torch.Tensor, x: torch.Tensor, rank: int) -> Any:
    """The gradient of `_adaptive_pool`; NotImplemented where the numbers of windows are known."""
    if not _is_symbolic(grad.shape[-rank:]):
        return NotImplemented
    moved = _wide(grad)
    for axis in range(-rank, 0):
        inside, count = _windows(x.shape[axis], grad.shape[axis], x)
        moved = _sums(inside.T, moved / count.reshape([-1] + [1] * (-1 - axis)), axis)
    return moved.to(x.dtype)


def _renorm(
    weight: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float
) -> torch.Tensor:
    """An embedding whose rows at the indices have at most the norm `max_norm`."""
    norm = torch.linalg.vector_norm(weight, norm_type, dim=1, keepdim=True)
    used = torch.zeros_like(norm, dtype=torch.bool).index_fill(0, indices.reshape(-1), True)
    scaled = _wide(weight) * (max_norm / (_wide(norm) + 1e-7))
    return torch.where(used & (norm > max_norm), scaled.to(weight.dtype), weight)


def _resize(x: torch.Tensor, size: list[Any], *, memory_format: Any = None) -> Any:
    """The first elements in memory with other sizes; NotImplemented for more elements than there are."""
    count = math.prod(size)
    if memory_format not in (None, torch.contiguous_format) or count > x.numel():
        return NotImplemented
    return x.reshape(-1)[:count].reshape(size)


def _hash(x: torch.Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Any:
    """The exclusive or of elements as 64 bits; NotImplemented where their number is symbolic."""
    axes = sorted(d % max(x.dim(), 1) for d in dim) or list(range(x.dim()))
    sizes = [x.shape[a] for a in axes if x.dim()]
    if mode != 0 or not all(isinstance(n, int) for n in sizes):
        return NotImplemented
    bits = (x.double() if x.is_floating_point() else x.long()).view(torch.int64)
    others = [a for a in range(x.dim()) if a not in axes]
    count = math.prod(sizes)
    bits = bits.permute(others + axes if x.dim() else ()).reshape(
        [x.shape[a] for a in others] + [count]
    )
    while count > 1:
        half = count // 2
        middle = bits[..., half : count - half]
        bits = torch.cat([bits[..., :half] ^ bits[..., count - half :], middle], -1)
        count -= half
    if count == 0:
        bits = bits.new_zeros([*bits.shape[:-1], 1])
    shape = [1 if a in axes else x.shape[a] for a in range(x.dim())]
    return bits.reshape(shape if keepdim else [x.shape[a] for a in others]).view(torch.uint64)


# Columns of the largest matrix whose elimination is written out: each takes a dozen operators.
_MOST_COLUMNS = 16


def _inverse(a: torch.Tensor, *, check_errors: bool = False) -> Any:
    """Gauss-Jordan elimination with pivots by column, and the number of the first pivot that is zero.

    NotImplemented for large matrices and complex ones.
    """
    n = a.shape[-1]
    if not isinstance(n, int) or n > _MOST_COLUMNS or a.is_complex() or check_errors:
        return NotImplemented
    rows = torch.arange(n, device=a.device)
    own = torch.eye(n, dtype=a.dtype, device=a.device).expand(a.shape)
    m = torch.cat([a, own], -1)
    info = torch.zeros(a.shape[:-2], dtype=torch.int32, device=a.device)
    for k in range(n):
        at = torch.where(rows < k, -1.0, m[..., k].abs()).argmax(-1, keepdim=True)
        order = torch.where(rows == k, at, torch.where(rows == at, k, rows))
        m = m.gather(-2, order.unsqueeze(-1).expand(m.shape))
        pivot = m[..., k, k]
        info = torch.where((info == 0) & (pivot == 0), k + 1, info)
        row = m[..., k : k + 1, :] / pivot[..., None, None]
        m = torch.where((rows == k).unsqueeze(-1), row, m - m[..., k : k + 1] * row)
    return m[..., n:], info.to(torch.int32)


def _class_losses(
    x: torch.Tensor,
    classes: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None,
    weight: torch.Tensor | None,
    ignore_index: int,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The logarithms of probabilities, the target classes, and their weights (0: ignored)."""
    logits = x.to(dtype) @ classes.to(dtype).T
    if bias is not None:
        logits = logits + bias.to(dtype)
    counted = target != ignore_index
    target = torch.where(counted, target, 0)
    weights = counted.to(dtype)
    if weight is not None:
        weights = weights * weight.to(dtype)[target]
    return logits.log_softmax(1), target, weights


def _linear_cross_entropies(
    x: torch.Tensor,
    classes: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None,
    weight: torch.Tensor | None,
    ignore_index: int,
    _chunk: int,
    _policy: str,
    dtype: torch.dtype,
) -> torch.Tensor:
    """linear_cross_entropy in chunks of the batch: the loss of each row."""
    logs, target, weights = _class_losses(x, classes, target, bias, weight, ignore_index, dtype)
    return (-weights * logs.gather(1, target.unsqueeze(1)).squeeze(1)).to(x.dtype)


def _linear_cross_entropy(
    x: torch.Tensor,
    classes: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None,
    weight: torch.Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    _chunk: int,
    _policy: str,
    dtype: torch.dtype,
    _retain: bool,
    of_x: bool,
    of_classes: bool,
    of_bias: bool,
) -> Any:
    """linear_cross_entropy in chunks of the batch: the loss, and its gradients, computed with it."""
    if label_smoothing != 0 or reduction not in ("mean", "sum"):
        return NotImplemented
    logs, target, weights = _class_losses(x, classes, target, bias, weight, ignore_index, dtype)
    if reduction == "mean":
        weights = weights / weights.sum()
    loss = -(weights * logs.gather(1, target.unsqueeze(1)).squeeze(1)).sum()
    chosen = torch.arange(logs.shape[1], device=x.device) == target.unsqueeze(1)
    slope = (logs.exp() - chosen.to(dtype)) * weights.unsqueeze(1)
    none, narrow = x.new_zeros(0, 0), lambda t: t.to(x.dtype)
    return (
        narrow(loss),
        narrow(slope @ classes.to(dtype)) if of_x else none,
        narrow(slope.T @ x.to(dtype)) if of_classes else none,
        narrow(slope.sum(0)) if of_bias else x.new_zeros(0),
    )
