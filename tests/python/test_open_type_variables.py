"""Type variables that no function binds: they print, parse and pickle, and a module has none."""

import copy
import pickle

import numpy as np
import pytest

import relay

N = relay.TypeVar("n")
T = relay.TypeVar("t", is_dim=False)
X = relay.var("x", relay.TensorType((N, 4)))
Y = relay.Var("y", T)
OPEN = [
    relay.Function([X], relay.exp(X)),
    relay.Function([Y], relay.Tuple([Y, Y])),
    relay.exp(X),
    relay.Tuple([X, Y]),
]


@pytest.mark.parametrize("expr", OPEN)
def test_text_declares_what_is_open(expr):
    text = relay.astext(expr)
    assert text.startswith("free_type [")
    again = relay.parse_expr(text)
    assert relay.structural_equal(again, expr, map_free_vars=True)
    assert relay.astext(again) == text
    assert relay.structural_equal(pickle.loads(pickle.dumps(expr)), expr, map_free_vars=True)
    assert copy.deepcopy(expr) is expr


def test_a_module_binds_them():
    f = OPEN[0]
    for mod in (
        relay.IRModule.from_expr(f),
        relay.IRModule({"main": f}),
        relay.IRModule().with_function("main", f),
        relay.IRModule.from_expr(f.body),
    ):
        assert mod["main"].type_params == [N]
        assert relay.parse(mod.astext()) == mod
        assert pickle.loads(pickle.dumps(mod)) == mod
    out = relay.build(f)(np.zeros((3, 4), "float32"))
    assert np.array_equal(out, np.ones((3, 4)))


def test_what_is_bound_stays_as_it_is():
    f = relay.Function([X], relay.exp(X), type_params=[N])
    assert relay.IRModule.from_expr(f)["main"].type_params == [N]
    assert not relay.astext(f).startswith("free_type")
    nil = relay.parse('#[version = "0.0.5"] def @main() -> List[int32] { Nil }')["main"].body
    assert "free_type" not in relay.astext(nil)


def test_free_variables_without_a_declaration_are_an_error():
    for text in ("%x", "free_var %x: Tensor[(n,), float32]; %x", "free_type [n: Dimension]; 1"):
        with pytest.raises(relay.UserError, match="E010"):
            relay.parse_expr(text)
