"""Options of the Python package: what would not be used is refused."""

from __future__ import annotations

import threading

import pytest

import relay

TEXT = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { add(%x, %x) }\n'


@pytest.fixture(scope="module")
def mod():
    return relay.parse(TEXT)


WRONG = [
    {"opt_level": 9},
    {"opt_level": -1},
    {"opt_level": 2.0},
    {"opt_level": "3"},
    {"opt_level": True},
    {"opt_level": 2**40},
    {"required_pass": ["NoSuchPass"]},
    {"disabled_pass": ["FuseOp"]},
    {"disabled_pass": "FuseOps"},
    {"disabled_pass": [3]},
    {"disabled_pass": 3},
    {"config": {"relay.backend.use_auto_scheduler": True}},
    {"config": {"relay.FuseOps.max_dept": 3}},
    {"config": {"relay.FuseOps.max_depth": "3"}},
    {"config": {"relay.DivToMul.inexact": 1}},
    {"config": {"relay.RemoveUnusedFunctions.entry_functions": ["main", 3]}},
    {"config": {3: 4}},
    {"config": [1]},
    {"verify": 1},
    {"target": 3},
    {"trace": print},
]


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_a_context_refuses(settings):
    with pytest.raises((TypeError, ValueError)):
        relay.transform.PassContext(**settings)


def test_errors_name_what_there_is():
    with pytest.raises(
        relay.UserError, match=r"E0313(.|\n)*did you mean relay\.FuseOps\.max_depth"
    ):
        relay.transform.PassContext(config={"relay.FuseOps.max_dept": 3})
    with pytest.raises(relay.UserError, match=r"E0301(.|\n)*FuseOps"):
        relay.transform.PassContext(disabled_pass=["FuseOp"])


def test_what_a_context_takes(mod):
    config = {
        "relay.FuseOps.max_depth": 3,
        "relay.DivToMul.inexact": True,
        "relay.RemoveUnusedFunctions.entry_functions": ["main"],
    }
    with relay.transform.PassContext(0, ["FastMath"], ["Inline"], None, config, "native", True):
        assert relay.build(mod, num_threads=1).num_threads == 1


@pytest.mark.parametrize("name", ["FuseOps", "ToANormalForm"])
def test_passes_that_compilation_needs_cannot_be_left_out(mod, name):
    with relay.transform.PassContext(disabled_pass=[name]):
        with pytest.raises(relay.UserError, match="cannot be skipped"):
            relay.build(mod)
        assert isinstance(relay.optimize(mod), relay.IRModule)


@pytest.mark.parametrize("name", [row[0] for row in relay._core.pass_rows()])
def test_any_other_pass_can(mod, name):
    if name in ("FuseOps", "ToANormalForm"):
        return
    for level in (0, 3):
        with relay.transform.PassContext(level, disabled_pass=[name]):
            relay.build(mod)


@pytest.mark.parametrize(
    "options",
    [
        {"num_threads": -3},
        {"num_threads": 1.0},
        {"num_threads": 10**6},
        {"num_threads": None},
        {"opt_level": 4},
        {"cache": 1},
        {"target": "llvm -mcpu=nothing"},
        {"target": b"native"},
        {"params": [1]},
        {"params": {3: 1}},
        {"params": {"y": 1}},
        {"params": {"x": None}},
        {"params": 0},
        {"target_host": "llvm"},
        {"executor": "graph"},
        {"runtime": "cpp"},
        {"workspace_memory_pools": []},
        {"constant_memory_pools": []},
        {"mod_name": "m"},
        {"num_thread": 1},
    ],
    ids=str,
)
def test_build_refuses(mod, options):
    with pytest.raises((TypeError, ValueError)):
        relay.build(mod, **options)


@pytest.mark.parametrize(
    "call",
    [
        lambda mod: relay.build(3),
        lambda mod: relay.build(None),
        lambda mod: relay.optimize("mod"),
        lambda mod: relay.create_executor("debug", mod, "cpu"),
        lambda mod: relay.create_executor("debug", mod, target="native"),
        lambda mod: relay.create_executor("debug", mod, opt_level=3),
        lambda mod: relay.create_executor("no", mod),
        lambda mod: relay.parse(TEXT, init_module=mod),
        lambda mod: relay.parse(TEXT, "a", None, {}),
        lambda mod: relay.parse(3),
        lambda mod: relay.frontend.from_onnx(3),
        lambda mod: relay.frontend.from_onnx(b"", opset=0),
        lambda mod: relay.frontend.from_onnx(b"", opset="13"),
        lambda mod: relay.frontend.from_onnx(b"", dtype="float16"),
        lambda mod: relay.frontend.from_onnx(b"", shape={"x": (1.5,)}),
        lambda mod: relay.frontend.from_onnx(b"", shape={"x": 3}),
        lambda mod: relay.frontend.from_onnx(b"", shape=[3]),
        lambda mod: relay.frontend.from_onnx(b"", freeze_params=1),
        lambda mod: relay.transform.FuseOps(max_depth="3"),
        lambda mod: relay.transform.Sequential(["FuseOps"]),
        lambda mod: relay.transform.Sequential([relay.transform.FuseOps()], opt_level=9),
        lambda mod: relay.transform.FuseOps()(3),
        lambda mod: relay.transform.to_cps(3),
        lambda mod: relay.transform.un_cps(mod["main"]),
        lambda mod: relay.transform.Defunctionalization(3),
        lambda mod: relay.runtime.load_module("/nowhere.so", num_threads=-1),
        lambda mod: relay.runtime.load_module(3),
        lambda mod: relay.TensorType([1.5]),
        lambda mod: relay.TensorType([-1]),
        lambda mod: relay.TensorType([2**70]),
        lambda mod: relay.TensorType([2], "float31"),
        lambda mod: relay.var("x", 3),
        lambda mod: relay.Function([3], relay.const(1)),
        lambda mod: relay.structural_equal(mod, 3),
    ],
)
def test_other_functions_refuse(mod, call):
    with pytest.raises((TypeError, ValueError)):
        call(mod)


def test_contexts_end_in_order():
    outer, inner = relay.transform.PassContext(1), relay.transform.PassContext(2)
    with pytest.raises(ValueError):
        outer.__exit__(None, None, None)
    with outer:
        inner.__enter__()
        with pytest.raises(ValueError):
            outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        levels = []
        thread = threading.Thread(
            target=lambda: levels.append(relay.transform.PassContext.current().opt_level)
        )
        thread.start()
        thread.join()
        assert levels == [3] and relay.transform.PassContext.current().opt_level == 1


# ---- Variables that nothing binds ----------------------------------------------------------------


def typed(name):
    return relay.var(name, shape=(2,))


def test_free_variables_of_an_expression_are_its_parameters():
    x, y = typed("x"), typed("y")
    exe = relay.build(y - x)
    assert [slot.name for slot in exe.input_info()] == ["y", "x"]
    assert list(exe([5, 5], [1.0, 2])) == [4, 3]


def test_a_variable_that_nothing_binds_is_an_error():
    x, y, z = typed("x"), typed("y"), typed("z")
    let = relay.Let(y, x + x, y * y)
    mod = relay.parse(TEXT)
    for wrong in (
        relay.Function([x], x + y),
        relay.Function([x], relay.Tuple([let, y])),
        relay.Function([x], relay.Let(y, y + x, y)),
        relay.Function([x], relay.Function([], z)),
    ):
        for build in (relay.build, relay.IRModule.from_expr, lambda f: mod.with_function("f", f)):
            with pytest.raises(relay.UserError, match="E0103"):
                build(wrong)
    with pytest.raises(relay.UserError, match="E0104"):
        relay.build(relay.Function([x], relay.Function([x], x)))
    with pytest.raises(relay.UserError, match="E0104"):
        relay.build(relay.Function([x], relay.Tuple([let, relay.Let(y, x, y)])))


def test_what_is_shared_or_deep_is_bound():
    x, y = typed("x"), typed("y")
    shared = y * x
    body = relay.Let(y, x + x, relay.Tuple([shared, shared + y]))
    assert relay.build(relay.Function([x], body))([1.0, 2])[0].tolist() == [2, 8]
    deep = x
    for i in range(3000):
        v = typed(f"v{i}")
        deep = relay.Let(v, x + x, deep + v)
    assert relay.IRModule.from_expr(relay.Function([x], deep))


def test_repr_says_what_it_is(mod):
    assert repr(mod).startswith("IRModule(@main: fn (")
    exe = relay.build(mod)
    assert repr(exe).startswith("<relay.Executable: @main(x: Tensor[(2, 3), float32]) -> ")
    assert "IRModule" in repr(relay.create_executor("debug", mod))
    assert "<relay.Evaluation" in repr(relay.create_executor("debug", mod).evaluate())
    assert "opt_level=1" in repr(relay.transform.PassContext(1))
