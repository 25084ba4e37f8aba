"""relay.analysis, visitors and ScopeBuilder."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import analysis

x = relay.var("x", shape=(2, 8))
w = relay.var("w", shape=(4, 8))
y = relay.nn.dense(x, w)


def test_variables():
    z = relay.var("z", shape=(2, 4))
    body = relay.Let(z, relay.nn.relu(y), z + z)
    assert analysis.free_vars(body) == [x, w]
    assert analysis.bound_vars(body) == [z]
    assert analysis.all_vars(relay.Function([x], body)) == [x, z, w]
    assert analysis.free_vars(relay.Function([x, w], body)) == []


def test_variables_of_patterns():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @main(%l: List[int32]) -> int32 { match? (%l) { Cons(%a, Cons(_, _)) => %a } }"
    )
    main = mod["main"]
    assert [v.name_hint for v in analysis.bound_vars(main)] == ["l", "a"]
    assert analysis.free_vars(main) == []
    assert [v.name_hint for v in analysis.free_vars(main.body)] == ["l"]


def test_type_variables():
    n, m = relay.TypeVar("n"), relay.TypeVar("m")
    a = relay.var("a", shape=(n, m + 1))
    f = relay.Function([a], relay.nn.relu(a), None, [n])
    assert analysis.all_type_vars(f) == [n, m]
    assert analysis.bound_type_vars(f) == [n]
    assert analysis.free_type_vars(f) == [m]
    assert analysis.free_type_vars(relay.TupleType([a.checked_type])) == [n, m]


def test_facts():
    out = relay.cast(y, "float64") * relay.const(2.0, "float64")
    assert analysis.all_dtypes(out) == {"float32", "float64"}
    assert analysis.check_constant(relay.const(1) + relay.const(2))
    assert not analysis.check_constant(y)
    assert analysis.well_formed(relay.Function([x, w], y))
    assert not analysis.well_formed(relay.Function([x], y))
    mod = relay.IRModule.from_expr(relay.Function([x, w], out + out))
    assert analysis.well_formed(mod)
    assert analysis.list_op_freqs(mod) == {"nn.dense": 1, "cast": 1, "multiply": 1, "add": 1}
    assert analysis.get_total_mac_number(mod) == 2 * 4 * 8
    last = analysis.extract_intermdeiate_expr(mod, 0)
    assert last["main"].body.op.name == "nn.dense"
    with pytest.raises(IndexError, match="4 calls"):
        analysis.extract_intermdeiate_expr(mod, 4)
    with pytest.raises(AttributeError):
        _ = analysis.no_such_function


def test_macs_of_convolutions():
    image, kernel = relay.var("image", shape=(1, 4, 9, 9)), relay.var("kernel", shape=(6, 2, 3, 3))
    conv = relay.nn.conv2d(image, kernel, groups=2, padding=(1, 1))
    assert analysis.get_total_mac_number(conv) == 6 * 9 * 9 * 2 * 3 * 3
    batch = relay.nn.batch_matmul(
        relay.var("a", shape=(3, 2, 5)), relay.var("b", shape=(3, 5, 4)), transpose_b=False
    )
    assert analysis.get_total_mac_number(batch) == 3 * 2 * 4 * 5
    # Of a transposed one for each element of the result too: the kernel and the channels of a group.
    kernel = relay.var("kernel", shape=(4, 3, 5, 5))
    wide = relay.nn.conv2d_transpose(
        image, kernel, channels=6, groups=2, kernel_size=(5, 5), strides=(2, 2)
    )
    assert wide.shape == (1, 6, 21, 21)
    assert analysis.get_total_mac_number(wide) == 6 * 21 * 21 * 2 * 5 * 5
    opened = relay.nn.dense(relay.var("a", shape=(relay.TypeVar("n"), 8)), w)
    with pytest.raises(TypeError, match="sizes that are not known"):
        analysis.get_total_mac_number(opened)


def test_layers_and_fusion():
    deep = relay.nn.relu(relay.nn.dense(relay.nn.relu(y), relay.var("v", shape=(3, 4))))
    assert analysis.count_layers(deep, ["nn.dense"]) == 2
    assert analysis.count_layers(deep, ["nn.conv2d"]) == 0
    mod = relay.IRModule.from_expr(deep)
    fused = analysis.extract_fused_functions(mod)
    assert [name.rsplit("_", 1)[0] for name in fused] == ["fused_nn_dense_nn_relu"] * 2


def test_depth():
    out = x
    for _ in range(20_000):
        out = relay.nn.relu(out)
    count = []
    analysis.post_order_visit(out, count.append)
    assert len(count) == 20_002 and count[1] == x and count[-1] == out

    class Depth(relay.ExprFunctor):
        def visit_var(self, var):
            return 0

        def visit_op(self, op):
            return 0

        def visit_call(self, call):
            return 1 + max(self.visit(a) for a in call.args)

    assert Depth().visit(out) == 20_000
    with pytest.raises(NotImplementedError, match="visit_tuple"):
        Depth().visit(relay.Tuple([out]))


def test_visitor():
    class Names(relay.ExprVisitor):
        def __init__(self):
            super().__init__()
            self.names = []

        def visit_call(self, call):
            self.names.append(call.op.name)

    names = Names()
    names.visit(relay.If(relay.const(True), relay.nn.relu(y + y), y))
    assert names.names == ["nn.dense", "add", "nn.relu"]


def test_scope_builder():
    c = relay.var("c", shape=(), dtype="bool")
    sb = relay.ScopeBuilder()
    z = sb.let("z", y + y)
    assert sb.type_of(z).shape == (2, 4)
    with sb.if_scope(c):
        one = sb.let("one", relay.const(1.0))
        sb.ret(z + one)
    with sb.else_scope():
        sb.ret(z)
    exe = relay.build(relay.Function([x, w, c], sb.get()))
    data, weight = np.ones((2, 8), "float32"), np.ones((4, 8), "float32")
    np.testing.assert_allclose(exe(data, weight, np.array(True)), np.full((2, 4), 17))
    np.testing.assert_allclose(exe(data, weight, np.array(False)), np.full((2, 4), 16))
    with pytest.raises(RuntimeError, match=r"needs a ret\(\)"):
        relay.ScopeBuilder().get()
    with (
        pytest.raises(RuntimeError, match="follows an if_scope"),
        relay.ScopeBuilder().else_scope(),
    ):
        pass
