"""Every TFLite operator that is imported, against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_cases import CASES, Case

import relay

litert = pytest.importorskip("ai_edge_litert.interpreter")


def by_litert(
    data: bytes, feeds: dict[str, np.ndarray], reference: bool = True
) -> list[np.ndarray]:
    """The results of LiteRT's reference kernels, or of those that it has beside."""
    kinds = litert.OpResolverType
    resolver = kinds.BUILTIN_REF if reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    run = litert.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    details = {d["name"]: d["index"] for d in run.get_input_details()}
    for name, value in feeds.items():
        run.resize_tensor_input(details[name], value.shape)
    run.allocate_tensors()
    for name, value in feeds.items():
        run.set_tensor(details[name], value)
    run.invoke()
    return [run.get_tensor(d["index"]) for d in run.get_output_details()]


def by_relay(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of Relay, compiled without the passes that only make programs faster."""
    mod, _ = relay.frontend.from_tflite(data)
    exe = relay.build(mod, opt_level=0)
    out = exe(**feeds)
    return [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else [out])]


def check(case: Case) -> None:
    data, feeds = case.build()
    expected, found = by_litert(data, feeds, case.reference), by_relay(data, feeds)
    assert len(expected) == len(found)
    for e, f in zip(expected, found, strict=True):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        if e.dtype == bool or case.tolerance == 0:
            np.testing.assert_array_equal(f, e)
        else:
            scale = max(1e-30, float(np.abs(e.astype(np.float64)).max(initial=0)))
            np.testing.assert_allclose(f, e, rtol=0, atol=case.tolerance * scale)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case):
    check(case)
