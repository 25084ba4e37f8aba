"""Programs in the style of the first Relay's tutorials and tests run in `relay` and through `relay.tvm`."""

from __future__ import annotations

import numpy as np
import pytest
from old_programs import ABSENT, PROGRAMS

import relay
import relay.tvm as tvm
from relay.tvm.contrib import graph_executor


def compare(got, want, rtol):
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            compare(a, b, rtol)
        return
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-5)


def test_there_are_many():
    assert 2 * len(PROGRAMS) + len(ABSENT) >= 200


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_relay(name):
    row = PROGRAMS[name]
    mod = relay.IRModule.from_expr(row.make(relay))
    compare(relay.create_executor("debug", mod).evaluate()(*row.arrays), row.results, row.rtol)


@pytest.mark.parametrize("name", PROGRAMS)
def test_through_tvm(name):
    row = PROGRAMS[name]
    mod = tvm.IRModule()
    mod["main"] = row.make(tvm.relay)
    with tvm.transform.PassContext(opt_level=2):
        library = tvm.relay.build(mod, target="llvm")
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    for i, value in enumerate(row.arrays):
        module.set_input(i, tvm.nd.array(value))
    module.run()
    want = row.results
    while isinstance(want, tuple) and any(isinstance(part, tuple) for part in want):
        want = tuple(p for part in want for p in (part if isinstance(part, tuple) else (part,)))
    got = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    compare(tuple(got) if isinstance(want, tuple) else got[0], want, row.rtol)


@pytest.mark.parametrize("names", [relay, tvm.relay], ids=["relay", "tvm"])
@pytest.mark.parametrize("name", ABSENT)
def test_what_does_not_run_says_why(name, names):
    make, reason = ABSENT[name]
    with pytest.raises((AttributeError, relay.RelayError, ValueError), match=reason):
        make(names)
