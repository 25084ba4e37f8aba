"""Networks for tests and measurements, by the names of the first Relay.

    from relay import testing
    mod, params = testing.resnet.get_workload(num_layers=18)
    exe = relay.build(mod, params=params)

`get_net` returns a function whose weights are parameters, `get_workload` its module with random weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay import _core
from relay._absent import absent
from relay._errors import refuse, wrong
from relay._executor import create_executor
from relay.analysis import list_op_freqs
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
    nat as nat,
)
from relay.testing import (
    resnet as resnet,
)
from relay.testing import (
    resnet_3d as resnet_3d,
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
from relay.transform import Pass, gradient


def run_infer_type(expr: _core.Expr) -> _core.Expr:
    """Returns the typed expression; for a function, the function."""
    mod = _core.IRModule.from_expr(expr)
    return mod["main"] if isinstance(expr, _core.Function) else mod["main"].body


def run_opt_pass(expr: _core.Expr, opt_pass: Pass) -> _core.Expr:
    """Returns the expression after a pass."""
    if not isinstance(opt_pass, Pass):
        raise wrong(f"{opt_pass!r} is not a pass; relay.transform.FuseOps() is one")
    main = opt_pass(_core.IRModule.from_expr(expr))["main"]
    return main if isinstance(expr, _core.Function) else main.body


def count_ops(expr: _core.Expr) -> dict[str, int]:
    """Returns how often each operator is called, by name."""
    return list_op_freqs(_core.IRModule.from_expr(expr))


def rand(dtype: str = "float32", *shape: int) -> np.ndarray:
    """Returns an array of random numbers from 0 to 1."""
    return np.random.rand(*shape).astype(dtype) if shape else np.asarray(np.random.rand(), dtype)


def check_grad(
    func: _core.Function,
    inputs: Sequence[Any] | None = None,
    test_inputs: Sequence[Any] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: None = None,
    executor_kind: str = "debug",
) -> None:
    """Compares the gradient of a function with finite differences; AssertionError if they differ.

    inputs: arrays for the parameters, by default random ones with the standard deviation `scale` (10 * eps)
        around `mean`; differences of this size need float64.
    test_inputs: the inputs with respect to which the gradient is compared, all by default.
    executor_kind: the executor of the programs, as for `relay.create_executor`.
    """
    refuse("relay.testing.check_grad", {"target_devices": target_devices})
    forward = run_infer_type(func)
    backward = run_infer_type(gradient(forward, mode=mode))

    def run(f: _core.Function) -> Any:
        return create_executor(executor_kind, _core.IRModule.from_expr(f)).evaluate()

    value, derivative = run(forward), run(backward)
    if inputs is None:
        spread = 10 * eps if scale is None else scale
        kinds = [p.checked_type for p in forward.params]
        inputs = [
            (mean + spread * np.random.randn(*kind.shape)).astype(kind.dtype)
            if kind.shape
            else np.asarray(mean + spread * np.random.randn(), kind.dtype)
            for kind in kinds
        ]
    given = [np.asarray(x) for x in inputs]
    tested = range(len(given))
    if test_inputs is not None:
        tested = [i for i, x in enumerate(inputs) if any(x is t for t in test_inputs)]
    _, gradients = derivative(*given)
    for i in tested:
        found = np.zeros(given[i].shape, given[i].dtype)
        for at in np.ndindex(*given[i].shape):
            ends = []
            for step in (eps, -eps):
                moved = [x.copy() for x in given]
                moved[i][at] += step
                ends.append(np.sum(value(*moved), dtype="float64"))
            found[at] = (ends[0] - ends[1]) / (2 * eps)
        np.testing.assert_allclose(gradients[i], found, atol=atol, rtol=rtol)


def __getattr__(name: str) -> Any:
    raise absent("relay.testing", name)
