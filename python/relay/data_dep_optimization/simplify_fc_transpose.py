"""Dense layers of transposed weights: the weights are transposed once, where they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relay import _core
from relay.analysis import search_fc_transpose
from relay.transform import SimplifyFCTranspose


def convert(
    func: _core.Function, params: Mapping[str, Any]
) -> tuple[_core.Function, dict[str, Any]]:
    """Returns the function without transposes of the weights in `params`, and the weights for it.

    A weight `w` that dense layers use transposed becomes the parameter `w.T`.
    """
    names = [name for name in search_fc_transpose(func) if name in params]
    mod = SimplifyFCTranspose(names)(_core.IRModule.from_expr(func))
    out = mod["main"]
    given = dict(params)
    for name in names:
        given[f"{name}.T"] = np.ascontiguousarray(np.asarray(params[name]).T)
        if all(p.name_hint != name for p in out.params):
            del given[name]
    return out, given
