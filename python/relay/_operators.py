"""The operators: a function for each, and a module for each namespace of them.

`relay` offers all of it: `add` here is relay.add, `nn.conv2d` is relay.nn.conv2d.
"""

from __future__ import annotations

from relay import op, random
from relay._ops import wrappers as _wrappers

op.FUNCTIONS.update(_wrappers.functions({"random": random}))
globals().update(op.FUNCTIONS)

__all__ = list(op.FUNCTIONS)
