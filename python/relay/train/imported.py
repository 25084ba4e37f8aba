"""Imported models in training form: random numbers come from a key that is an argument."""

from __future__ import annotations

import numpy as np

from relay import _core, random
from relay._errors import wrong
from relay._ir.expr_functor import ExprMutator


class _Keys(ExprMutator):
    """Replaces the constant keys of operators that draw random numbers by keys split from `key`."""

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
    """Returns a function with an additional parameter, a random key, that replaces its constant keys.

    An ONNX model in training form has Dropout with a seed, which drops the same elements at every call.
    `relay.frontend.from_onnx(..., freeze_params=False)` and this function make a model that can be
    trained. ValueError if it draws no random numbers.
    """
    key = _core.Var("key", _core.TensorType((10,), "uint64"))
    keys = _Keys(key)
    body = keys.visit(network.body)
    if keys.key is key:
        raise wrong("the function draws no random numbers from a key of its own")
    return _core.Function([*network.params, key], body, None, network.type_params)
