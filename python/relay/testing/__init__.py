"""Networks to test and measure with, by the names that Relay's users know.

    from relay import testing
    mod, params = testing.resnet.get_workload(num_layers=18)
    exe = relay.build(mod, params=params)

`get_net` gives a function whose weights are parameters, `get_workload` its module with random weights.
"""

from __future__ import annotations

from typing import Any

from relay import _core
from relay.testing import (
    dcgan as dcgan,
)
from relay.testing import (
    densenet as densenet,
)
from relay.testing import (
    dqn as dqn,
)
from relay.testing import (
    inception_v3 as inception_v3,
)
from relay.testing import (
    init as init,
)
from relay.testing import (
    layers as layers,
)
from relay.testing import (
    lstm as lstm,
)
from relay.testing import (
    mlp as mlp,
)
from relay.testing import (
    mobilenet as mobilenet,
)
from relay.testing import (
    resnet as resnet,
)
from relay.testing import (
    squeezenet as squeezenet,
)
from relay.testing import (
    synthetic as synthetic,
)
from relay.testing import (
    vgg as vgg,
)
from relay.testing.init import create_workload as create_workload
from relay.transform import Pass


def run_infer_type(expr: _core.Expr) -> _core.Expr:
    """Returns the expression with its types; a function as one."""
    mod = _core.IRModule.from_expr(expr)
    return mod["main"] if isinstance(expr, _core.Function) else mod["main"].body


def run_opt_pass(expr: _core.Expr, opt_pass: Pass) -> _core.Expr:
    """Returns the expression after a pass."""
    if not isinstance(opt_pass, Pass):
        raise TypeError(f"{opt_pass!r} is not a pass; relay.transform.FuseOps() is one")
    main = opt_pass(_core.IRModule.from_expr(expr))["main"]
    return main if isinstance(expr, _core.Function) else main.body


def count_ops(expr: _core.Expr) -> dict[str, int]:
    """Returns how often each operator is called, by name."""
    from relay.analysis import list_op_freqs

    return list_op_freqs(_core.IRModule.from_expr(expr))


def __getattr__(name: str) -> Any:
    from relay._wrappers import absent

    raise absent("relay.testing", name)
