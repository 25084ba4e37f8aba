"""Histograms of PyTorch as sorted searches and sums, which Relay has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The operators of torch.histogram and torch.histogramdd."""
    aten = torch.ops.aten
    return {
        aten.histogram.bin_ct: _histogram,
        aten.histogram.bins_tensor: _histogram_between,
        aten._histogramdd_bin_edges.default: _edges_of_points,
        aten._histogramdd_from_bin_cts.default: _histogram_of_points,
        aten._histogramdd_from_bin_tensors.default: _counts,
    }


def _edges(x: torch.Tensor, bins: int, ends: Sequence[float] | None) -> torch.Tensor:
    """The edges of equal bins between two ends, or between the least and the greatest element."""
    if ends is None:
        low, high = x.amin(), x.amax()
        finite = torch.isfinite(low) & torch.isfinite(high)
        torch.ops.aten._assert_async.msg(finite, "the range of a histogram is not finite")
    else:
        low, high = (torch.scalar_tensor(e, dtype=x.dtype) for e in ends)
    is_point = low == high
    low, high = torch.where(is_point, low - 0.5, low), torch.where(is_point, high + 0.5, high)
    step = (high - low) / bins
    place = torch.arange(bins + 1, dtype=x.dtype)
    # From both ends, as torch.linspace.
    return torch.where(
        torch.arange(bins + 1) < (bins + 1) // 2, low + step * place, high - step * (bins - place)
    )


def _counts(
    x: torch.Tensor,
    edges: Sequence[torch.Tensor],
    *,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> torch.Tensor:
    """The sums of the weights of points, whose coordinates are the last axis, by bins between edges."""
    bins = [e.shape[0] - 1 for e in edges]
    points = x.reshape(-1, len(edges))
    index = torch.zeros(points.shape[0], dtype=torch.int64)
    inside = torch.ones(points.shape[0], dtype=torch.bool)
    for i, (count, ends) in enumerate(zip(bins, edges, strict=True)):
        column = points[:, i].contiguous()
        inside = inside & (column >= ends[0]) & (column <= ends[-1])
        # The last bin contains its upper end.
        place = (torch.searchsorted(ends, column, right=True) - 1).clamp(0, count - 1)
        index = index * count + place
    each = torch.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    each = torch.where(inside, each, 0)
    hist = x.new_zeros(math.prod(bins)).index_put((index,), each, accumulate=True).reshape(bins)
    if density:
        hist = hist / hist.sum()
        for i, ends in enumerate(edges):
            hist = hist / ends.diff().reshape([-1 if d == i else 1 for d in range(len(edges))])
    return hist


def _histogram(
    x: torch.Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> Any:
    if range is None and x.numel() == 0:
        return NotImplemented
    edges = _edges(x, bins, range)
    return _counts(x.unsqueeze(-1), [edges], weight=weight, density=density), edges


def _histogram_between(
    x: torch.Tensor,
    edges: torch.Tensor,
    *,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    hist = _counts(x.unsqueeze(-1), [edges], weight=weight, density=density)
    return hist, edges.clone()


def _edges_of_points(
    x: torch.Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> Any:
    """The edges along each coordinate of points, which are the last axis."""
    if range is None and x.numel() == 0:
        return NotImplemented
    return [
        _edges(x[..., i], count, None if range is None else range[2 * i : 2 * i + 2])
        for i, count in enumerate(bins)
    ]


def _histogram_of_points(
    x: torch.Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> Any:
    edges = _edges_of_points(x, bins, range=range)
    if edges is NotImplemented:
        return NotImplemented
    return _counts(x, edges, weight=weight, density=density)
