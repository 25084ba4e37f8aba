"""Modules that call functions which they do not have, and functions that are made of a module's."""

from __future__ import annotations

import numpy as np
import pytest

import relay


def test_a_call_of_a_function_that_is_not_there():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @fact(%n: int32) -> int32 {\n"
        "  if (less(%n, 1)) { 1 } else { multiply(%n, @fact(subtract(%n, 1))) } }\n"
    )
    alone = relay.IRModule.from_expr(mod["fact"])
    uses = [
        lambda: relay.build(alone),
        lambda: relay.optimize(alone),
        lambda: relay.create_executor("debug", alone).evaluate(),
        lambda: relay.transform.to_cps(mod["fact"]),
        lambda: relay.transform.FuseOps()(alone),
        lambda: relay.transform.Inline()(alone),
        lambda: relay.transform.PartialEvaluate()(alone),
    ]
    for use in uses:
        with pytest.raises(relay.UserError, match=r"E0103(.|\n)*there is no function @fact"):
            use()
    # Put together one after the other, it is whole.
    assert int(relay.build(alone.with_function("fact", mod["fact"]))(np.int32(5))) == 120


def test_continuations_of_a_recursion_are_functions_of_the_module_after_the_pass():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @func(%n: int32) -> int32 {\n"
        "  if (less(%n, 1)) { 1 } else { multiply(%n, @func(subtract(%n, 1))) } }\n"
        "def @func_cps(%n: int32) -> int32 { add(%n, 1) }\n"
        "def @main(%n: int32) -> int32 { add(@func(%n), @func_cps(%n)) }\n"
    )
    whole = relay.transform.ToCPS()(mod)
    for name in ("func", "main"):
        made = relay.transform.to_cps(mod[name], mod)
        called = relay.analysis.global_names(made)
        assert called and set(called) <= set(whole.functions)
        direct = whole.with_function("direct", relay.transform.un_cps(made))
        run = relay.create_executor("debug", direct).evaluate().run
        assert int(run("direct", np.int32(4))) == {"func": 24, "main": 29}[name]
