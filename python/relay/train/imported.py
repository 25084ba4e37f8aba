"""Imported models in the form of training: random numbers from a key that is an argument."""

from __future__ import annotations

import numpy as np

from relay import _core, random
from relay._errors import wrong
from relay._ir.expr_functor import ExprMutator


class _Keys(ExprMutator):
    """Gives each operator that draws from a constant key one that is split from `key`."""

    def __init__(self, key: _core.Expr) -> None:
        super().__init__()
        self.key = key

    def visit_constant(self, const: _core.Constant) -> _core.Expr:
        if const.data.dtype != np.uint64 or const.data.shape != (10,):
            return const
        pair = random.threefry_split(self.key)
        self.key = _core.TupleGetItem(pair, 0)
        return _core.TupleGetItem(pair, 1)


def with_key(network: _core.Function) -> _core.Function:
    """Returns a function with one more parameter, a random key, for what it draws from keys of its own.

    An ONNX model in its training form has Dropout with a seed, which drops the same elements at every
    call: `relay.frontend.from_onnx(..., freeze_params=False)` of it, and this, make it a model that
    trains. ValueError when nothing is drawn.
    """
    key = _core.Var("key", _core.TensorType((10,), "uint64"))
    keys = _Keys(key)
    body = keys.visit(network.body)
    if keys.key is key:
        raise wrong("the function draws no random numbers from a key of its own")
    return _core.Function([*network.params, key], body, None, network.type_params)
