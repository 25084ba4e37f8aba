"""Every name of Relay's modules is supported or has a reason, and the supported ones work."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import relay
import relay.tvm
from relay import testing

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import from_relay  # noqa: E402

NAMES = {m: names for m, names in from_relay.names().items() if m != "operators"}
X = relay.var("x", shape=(2, 3))
DATA = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
MOD = relay.IRModule.from_expr(relay.Function([X], relay.nn.relu(X * relay.const(DATA))))


def graph_module():
    library = relay.tvm.relay.build(relay.tvm.IRModule.from_expr(MOD["main"]))
    return relay.tvm.contrib.graph_executor.GraphModule(library["default"](relay.tvm.cpu()))


# What has the names of a class: an object of it.
OBJECTS = {
    "IRModule": lambda: MOD,
    "tvm.IRModule": lambda: relay.tvm.IRModule.from_expr(MOD["main"]),
    "tvm.contrib.graph_executor.GraphModule": graph_module,
    "tvm.runtime.Module": lambda: graph_module().library,
    "tvm.runtime.vm.Executable": lambda: relay.tvm.runtime.vm.Executable(graph_module().library),
    "tvm.runtime.vm.VirtualMachine": lambda: relay.tvm.runtime.vm.VirtualMachine(
        graph_module().library
    ),
}


def owner(module):
    if module in OBJECTS:
        return OBJECTS[module]()
    return relay if module == "relay" else __import__(f"relay.{module}", fromlist=["*"])


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_here_or_says_why_not(module):
    gone = from_relay.reasons().get(module, {})
    assert set(gone) <= set(NAMES[module])
    has = owner(module)
    for name in NAMES[module]:
        if name in gone and not hasattr(type(has), name):
            with pytest.raises(AttributeError, match=r"is not supported: ."):
                getattr(has, name)
        else:
            assert hasattr(has, name), name


def test_the_page_is_written():
    assert from_relay.PAGE.read_text() == from_relay.page(), "run tools/from_relay.py"


def evaluate(expr, *arrays):
    return relay.create_executor("debug", relay.IRModule.from_expr(expr)).evaluate()(*arrays)


def test_types():
    assert relay.scalar_type("int32") == relay.TensorType((), "int32")
    n = relay.ShapeVar("n")
    assert relay.TensorType((n,)).shape == (n,)
    assert str(relay.TensorType((relay.Any(), 3))) == "Tensor[(?, 3), float32]"
    r = relay.var("r", relay.RefType(relay.scalar_type("int32")))
    assert str(r.type_annotation) == "ref(int32)"
    p = relay.Prelude()
    assert relay.TypeCall(p.l, [relay.scalar_type("int32")]) == p.l(relay.scalar_type("int32"))
    assert str(relay.GlobalTypeVar("List")) == "List"
    assert isinstance(relay.PatternWildcard(), relay.Pattern)


def test_references():
    cell = relay.var("cell", relay.RefType(relay.scalar_type("int32")))
    v = relay.var("v", relay.TupleType([]))
    body = relay.Let(
        cell,
        relay.RefCreate(relay.const(3)),
        relay.Let(v, relay.RefWrite(cell, relay.RefRead(cell) * 2), relay.RefRead(cell)),
    )
    assert evaluate(relay.Function([], body)) == 6


def test_binding():
    y = relay.var("y", shape=(2, 3))
    f = relay.Function([X, y], X - y)
    assert np.array_equal(evaluate(relay.bind(f, {y: DATA}), DATA), 0 * DATA)
    assert [p.name_hint for p in relay.bind(f, {y: DATA}).params] == ["x"]
    assert relay.analysis.free_vars(relay.bind(X - y, {y: X * 2.0})) == [X]
    named = relay.bind_params_by_name(f, {"x": DATA})
    assert np.array_equal(evaluate(named, 2 * DATA), -DATA)
    with pytest.raises(ValueError, match="no parameter z"):
        relay.bind_params_by_name(f, {"z": DATA})
    with pytest.raises(TypeError, match="not a variable"):
        relay.bind(f, {3: DATA})


def test_text():
    assert relay.parse_expr("add(1f, 2f)").op.name == "add"
    assert relay.fromtext(MOD.astext()) == MOD
    assert relay.fromtext('#[version = "0.0.5"]\nadd(1f, 2f)').op.name == "add"
    assert relay.astext(MOD) == MOD.astext() and "meta" in relay.astext(MOD)
    assert relay.pretty_print(X * 2.0) == str(X * 2.0)


def test_parts_that_are_replaced():
    y = relay.var("y", shape=(2, 3))
    f = relay.FunctionWithFields(MOD["main"], attrs={"Composite": "a"})
    assert dict(f.attrs) == {"Composite": "a"} and f.body == MOD["main"].body
    total = relay.sum(X, axis=1)
    assert relay.CallWithFields(total, args=[y]).attrs.axis == [1]
    assert relay.CallWithFields(total) == total
    let = relay.Let(y, X, y)
    assert relay.LetWithFields(let, value=y).value == y
    choice = relay.If(relay.const(True), X, y)
    assert relay.IfWithFields(choice, true_branch=y).true_branch == y
    assert list(relay.TupleWithFields(relay.Tuple([X]), [y]).fields) == [y]
    item = relay.TupleGetItem(relay.Tuple([X, y]), 0)
    assert relay.TupleGetItemWithFields(item, index=1).index == 1


def test_parameters_on_disk():
    params = {
        "w": DATA, "n": np.arange(3), "b": np.array([True, False]), "s": np.float16(2),
        "u": np.zeros((0, 4), "uint8"),
    }  # fmt: skip
    data = relay.save_param_dict(params)
    again = relay.load_param_dict(data)
    assert list(again) == list(params)
    for name, value in params.items():
        assert np.array_equal(again[name], value) and again[name].dtype == np.asarray(value).dtype
    # What Relay of old wrote for {"w": float32 [1, 2]}.
    old = bytes.fromhex(
        "b79c04054f8de5f7" "0000000000000000" "0100000000000000" "0100000000000000" "77"
        "0100000000000000" "3fa1b496f0405edd" "0000000000000000" "0100000000000000" "01000000"
        "02200100" "0200000000000000" "0800000000000000" "0000803f" "00000040"
    )  # fmt: skip
    assert relay.save_param_dict({"w": np.array([1, 2], "float32")}) == old
    with pytest.raises(ValueError, match="begin otherwise"):
        relay.load_param_dict(bytes(64))
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        with contextlib.suppress(ValueError):
            relay.load_param_dict(broken[: rng.integers(len(data) + 1)])


def test_loops():
    i, total = relay.var("i", shape=(), dtype="int32"), relay.var("t", shape=(), dtype="int32")
    loop = relay.loops.while_loop(lambda i, t: i < 5, [i, total], lambda i, t: [i + 1, t + i])
    out = relay.TupleGetItem(loop(relay.const(0), relay.const(0)), 1)
    f = relay.Function([], out)
    assert evaluate(f) == 10 and relay.build(f)() == 10


def test_modules():
    assert repr(MOD) == (
        "IRModule(@main: fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32], 2 operators, "
        "24 B of constants)"
    )
    assert (
        "<details>" in MOD._repr_html_()
        and "nn.relu" in X.astype("int8")._repr_html_() + MOD._repr_html_()
    )
    ((name, f),) = MOD.functions_items()
    assert name.name_hint == "main" and f == MOD["main"]
    assert [g.name_hint for g in MOD.get_global_vars()] == ["main"]
    marked = MOD.with_attr("mine", 3).with_attrs({"yours": "text"})
    assert marked.get_attr("mine") == 3 and marked.get_attr("yours") == "text"
    assert marked.without_attr("mine").get_attr("mine") is None and MOD.get_attr("mine") is None
    assert MOD.clone() == MOD and str(relay.Prelude().mod.get_global_type_var("List")) == "List"
    for change in (
        lambda: MOD.update(MOD),
        lambda: MOD.update_func("main", f),
        lambda: MOD.__setitem__("main", f),
    ):
        with pytest.raises(TypeError, match="with_function"):
            change()


def test_a_module_of_functions():
    f = relay.Function([X], relay.exp(X))
    mod = relay.IRModule({"main": f, relay.GlobalVar("other"): f})
    assert set(mod.functions) == {"main", "other"} and mod["main"].checked_type is not None
    assert relay.IRModule().functions == {} and "no functions" in repr(relay.IRModule())
    with pytest.raises(TypeError, match=r"not a relay\.Function"):
        relay.IRModule({"main": 3})
    with pytest.raises(relay.UserError, match="E0103"):
        relay.IRModule({"main": relay.Function([], X)})


def test_mixed_precision():
    w = relay.const(np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3))
    f = relay.Function([X], relay.nn.softmax(relay.nn.relu(relay.nn.dense(X, w))))
    mod = relay.IRModule.from_expr(f)
    for dtype in ("float16", "bfloat16"):
        mixed = relay.transform.ToMixedPrecision(dtype)(mod)
        assert relay.analysis.all_dtypes(mixed["main"]) >= {dtype, "float32"}
        assert mixed["main"].body.dtype == "float32"
        np.testing.assert_allclose(relay.build(mixed)(DATA), relay.build(mod)(DATA), atol=0.02)


def test_pickle_and_copy():
    for thing in (MOD, X, X * 2.0, MOD["main"], relay.TensorType((2,)), relay.const(DATA)):
        assert copy.deepcopy(thing) is thing and copy.copy(thing) is thing
        again = pickle.loads(pickle.dumps(thing))
        if isinstance(thing, relay.Expr):
            assert relay.structural_equal(again, thing, map_free_vars=True)
        else:
            assert again == thing
    kept = copy.deepcopy({"mod": MOD, "list": [X]})
    assert kept["list"][0] is X


def test_passes_on_expressions():
    t = relay.transform
    folded = t.FoldConstantExpr(relay.const(1.0) + relay.const(2.0))
    assert isinstance(folded, relay.Constant) and folded.data == 3
    assert "let" in str(t.ToANormalFormExpr(relay.exp(relay.exp(X))))
    assert t.InferTypeLocal(X) == relay.TensorType((2, 3))
    assert isinstance(t.BatchingOps()(MOD), relay.IRModule)
    changed = t.ChangeBatch({X: 0}, 7)(relay.IRModule.from_expr(relay.Function([X], relay.exp(X))))
    assert changed["main"].body.shape == (7, 3)


def test_merged_composites():
    from relay.dataflow_pattern import is_op, wildcard

    table = [
        ("mylib.relu", is_op("nn.relu")(wildcard() * wildcard())),
        ("mylib.exp", is_op("exp")(wildcard()), lambda e: False),
    ]
    mod = relay.IRModule.from_expr(relay.Function([X], relay.exp(relay.nn.relu(X * X))))
    out = relay.transform.MergeComposite(table)(mod)["main"].body
    assert out.op.name == "exp" and dict(out.args[0].op.attrs)["Composite"] == "mylib.relu"


def test_analyses():
    analysis, F = relay.analysis, relay.analysis.Feature
    assert analysis.detect_feature(MOD) == {F.fVar, F.fConstant, F.fFunction, F.fOp, F.fCall}
    y = relay.exp(X)
    assert F.fGraph in analysis.detect_feature(y + y)
    i = relay.var("i", shape=(), dtype="int32")
    loop = relay.loops.while_loop(lambda i: i < 5, [i], lambda i: [i + 1])
    assert {F.fLetRec, F.fIf, F.fLet, F.fTuple} <= analysis.detect_feature(loop)
    assert analysis.check_basic_block_normal_form(MOD["main"])
    cond = relay.var("c", shape=(), dtype="bool")
    both = relay.If(cond, y, relay.nn.relu(y))
    assert not analysis.check_basic_block_normal_form(both)
    assert list(analysis.analyze_operations_distribution(MOD).values()) == [2]
    text = '#[version = "0.0.5"]\n' + "\n".join(
        [
            "def @main(%x: int32) -> int32 { @other(%x) + @loop(%x) }",
            "def @other(%x: int32) -> int32 { %x }",
            "def @loop(%x: int32) -> int32 { if (%x < 1) { %x } else { @loop(%x - 1) } }",
        ]
    )
    graph = analysis.CallGraph(relay.parse(text))
    assert graph.ref_count("loop") == 2 and graph.global_call_count("main") == 2
    assert graph.is_recursive("loop") and not graph.is_recursive("main")
    with pytest.raises(KeyError):
        graph.ref_count("nobody")


def test_lstm():
    mod, params = testing.lstm.get_workload(3, 5, batch_size=2)
    data = np.random.default_rng(0).standard_normal((3, 2, 5)).astype("float32")

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    h = c = np.zeros((2, 5), "float32")
    for x in data:
        gates = x @ params["i2h_weight"].T + params["i2h_bias"] + h @ params["h2h_weight"].T
        i, f, g, o = np.split(gates + params["h2h_bias"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    np.testing.assert_allclose(relay.build(mod, params=params)(data), h, rtol=1e-4, atol=1e-5)


def test_synthetic():
    mod, params = testing.synthetic.get_workload()
    out = relay.build(mod, params=params)(np.zeros((1, 3, 24, 12), "float32"))
    np.testing.assert_allclose(out.sum(), 1, rtol=1e-5)
