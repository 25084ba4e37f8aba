"""`relay.tvm`: programs of the first Relay as they were written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relay as core
import relay.tvm as tvm
from relay.tvm import relay
from relay.tvm.contrib import graph_executor, graph_runtime

ROOT = Path(__file__).resolve().parents[2]
A = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


def two_results():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x, y], relay.Tuple([x + y, relay.Tuple([relay.nn.relu(x)])]))
    return mod


def test_the_page_runs():
    page = (ROOT / "docs" / "from_relay.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) == 3
    code = "\n".join(blocks)
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- Graph modules -------------------------------------------------------------------------------


def test_a_graph_module():
    library = relay.build(two_results(), target=tvm.target.Target("llvm -mtriple=x86_64-linux-gnu"))
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    assert (module.get_num_inputs(), module.get_num_outputs()) == (2, 2)
    assert module.get_input_info() == ({"x": (2, 3), "y": (2, 3)}, dict.fromkeys("xy", "float32"))
    assert [module.get_input_index(name) for name in ("y", "z")] == [1, -1]
    module.set_input("x", A.astype("float64"))
    module.set_input(1, tvm.nd.array(A))
    module.set_input(nothing_of_this_name=A)
    module.run()
    tvm.testing.assert_allclose(module.get_output(0).numpy(), A + A)
    out = tvm.nd.empty((2, 3))
    assert module.get_output(1, out) is out
    tvm.testing.assert_allclose(out, np.maximum(A, 0))
    tvm.testing.assert_allclose(module.get_input("x").asnumpy(), A)
    module["run"](x=2 * A)
    tvm.testing.assert_allclose(module["get_output"](0).numpy(), 3 * A)


def test_inputs_are_copied_but_for_zero_copy():
    module = graph_executor.GraphModule(relay.build(two_results(), "llvm")["default"](tvm.cpu()))
    x, y, shared = tvm.nd.array(A), A.copy(), tvm.nd.array(A)
    module.set_input("x", x)
    module.set_input("y", y)
    x[:], y[:] = 9.0, 9.0
    module.run()
    tvm.testing.assert_allclose(module.get_output(0), A + A)
    module.set_input_zero_copy("y", shared)
    shared[:] = 5.0
    module.run()
    tvm.testing.assert_allclose(module.get_output(0), A + 5)
    y[:] = 7.0
    module["set_input_zero_copy"](1, y)
    module.run()
    tvm.testing.assert_allclose(module.get_output(0), A + 7)
    with pytest.raises(ValueError, match="takes an array, not list"):
        module.set_input_zero_copy("y", A.tolist())
    with pytest.raises(ValueError, match="of float32, not float64"):
        module.set_input_zero_copy("y", A.astype("float64"))
    with pytest.raises(RuntimeError, match="Could not find 'z'"):
        module.set_input_zero_copy("z", shared)
    with pytest.raises(ValueError, match="with the name or the number"):
        module.set_input(None, 3)
    with pytest.raises(ValueError, match="input x needs a value"):
        module.set_input("x")


def test_a_library_has_its_name():
    library = relay.build(two_results(), "llvm", mod_name="zz")
    module = graph_executor.GraphModule(library["zz"](tvm.cpu()))
    module.run(x=A, y=A)
    tvm.testing.assert_allclose(module.get_output(0), A + A)
    with pytest.raises(AttributeError, match="no function 'default': the library is 'zz'"):
        library["default"]
    with pytest.raises(ValueError, match="mod_name is a name"):
        relay.build(two_results(), "llvm", mod_name=3)


def test_what_a_graph_module_refuses():
    module = graph_executor.GraphModule(relay.build(two_results(), "llvm")["default"](tvm.cpu()))
    with pytest.raises(ValueError, match="no result before"):
        module.get_output(0)
    with pytest.raises(ValueError, match="input x is not set"):
        module.run(y=A)
    with pytest.raises(RuntimeError, match="Could not find 'z'"):
        module.set_input("z", A)
    with pytest.raises(ValueError, match=r"shape \(2, 3\), not \(3, 2\)"):
        module.set_input("x", A.T)
    with pytest.raises(ValueError, match="of float32, not float64"):
        module.set_input("x", tvm.nd.array(A.astype("float64")))
    with pytest.raises(AttributeError, match="no function 'fly'"):
        module["fly"]
    with pytest.raises(AttributeError, match="ToANormalForm"):
        module.debug_get_output(0)
    with pytest.raises(ValueError, match=r"lib\[\"default\"\]\(device\)"):
        graph_executor.GraphModule(3)
    with pytest.raises(ValueError, match=r"a device is tvm\.cpu\(\)"):
        relay.build(two_results(), "llvm")["default"]("gpu")


def test_measurements():
    module = graph_executor.GraphModule(relay.build(two_results(), "llvm")["default"](tvm.cpu()))
    result = module.benchmark(tvm.cpu(), repeat=3, number=2, x=A, y=A)
    assert len(result.results) == 3 and 0 < result.min <= result.mean <= result.max
    assert "mean (ms)" in str(result)
    timer = module.module.time_evaluator("run", tvm.cpu(), number=1, repeat=2, min_repeat_ms=1)
    assert len(timer().results) == 2


def test_options_of_measurements(monkeypatch):
    now, rests, runs = [0.0], [], []
    clock = tvm.runtime.module.time
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])
    monkeypatch.setattr(clock, "sleep", rests.append)
    measure = tvm.runtime.module.measure

    def run(step):
        runs.append(step)
        now[0] += step

    # A clock that takes runs for no time: the limit ends the measurement.
    assert measure(lambda: run(0.0), 1, 1, 5, 3, 0, 1).mean == 0
    assert len(runs) == 1 + 3
    # The least time is met by more runs in one measurement.
    assert measure(lambda: run(0.001), 1, 1, 5, 100, 0, 1).mean == pytest.approx(0.001)
    assert len(runs) == 4 + 1 + 1 + 5
    measure(lambda: run(1.0), 1, 4, None, 100, 250, 2)
    assert rests == [0.25, 0.25]
    for bad in ((0, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="cooldown_interval_ms is 0"):
            measure(lambda: None, 1, 1, None, *bad)


def test_the_oldest_form(tmp_path):
    mod, params = relay.testing.mlp.get_workload(batch_size=2)
    data = np.random.default_rng(0).random((2, 1, 28, 28), "float32")
    with relay.build_config(opt_level=3):
        graph, lib, params = relay.build(mod, "llvm", params=params)
    path = str(tmp_path / "deploy.tar")
    assert lib.export_library(path) == path
    stored = relay.save_param_dict(params)
    found = []
    for library in (lib, tvm.runtime.load_module(path)):
        module = graph_runtime.create(graph, library, tvm.cpu(0))
        module.load_params(stored)
        module.run(data=tvm.nd.array(data))
        found.append(module.get_output(0).asnumpy())
    np.testing.assert_array_equal(*found)
    other = relay.build(two_results(), "llvm")
    with pytest.raises(ValueError, match="not that of the library"):
        graph_runtime.create(graph, other, tvm.cpu())


# ---- Machines and executors ----------------------------------------------------------------------


def test_a_virtual_machine(tmp_path, monkeypatch):
    program = relay.vm.compile(two_results(), target={"kind": "llvm", "mcpu": "core-avx2"})
    code, library = program.save()
    library.export_library(tmp_path / "program.so")
    again = tvm.runtime.vm.Executable.load_exec(
        code, tvm.runtime.load_module(tmp_path / "program.so")
    )
    assert again.globals == ["main"] and again.get_function_params("main") == ["x", "y"]
    machine = tvm.runtime.vm.VirtualMachine(again, tvm.cpu())
    machine.set_input("main", A, tvm.nd.array(A))
    first, (second,) = machine.run()
    tvm.testing.assert_allclose(first.numpy(), A + A)
    tvm.testing.assert_allclose(second.numpy(), np.maximum(A, 0))
    machine.invoke_stateful("main", x=A, y=A)
    assert len(machine.get_outputs()) == 2
    sets, set_input = [], machine.set_input
    monkeypatch.setattr(machine, "set_input", lambda *args: sets.append(set_input(*args)))
    for whole in (False, True):
        assert machine.benchmark(tvm.cpu(), A, A, number=1, repeat=2, end_to_end=whole).mean > 0
    # Once, and once more for each of 1 + 2 runs that are measured with it.
    assert len(sets) == 1 + 1 + 3
    kept = A.copy()
    machine.set_input("main", kept, kept)
    kept[:] = 9
    tvm.testing.assert_allclose(machine.run()[0], A + A)
    with pytest.raises(ValueError, match="no function 'other'; it has main"):
        machine.set_input("other", A)
    with pytest.raises(ValueError, match="takes no fcompile"):
        library.export_library(tmp_path / "program.so", fcompile=print)
    with pytest.raises(ValueError, match="takes no cc"):
        library.export_library(tmp_path / "program.so", cc="gcc")
    for act in (tvm.runtime.load_module, library.save):
        with pytest.raises(ValueError, match="one format, 'so'"):
            act(tmp_path / "program.so", fmt="ptx")
    assert library.save(str(tmp_path / "again.so")) == str(tmp_path / "again.so")
    with pytest.raises(ValueError, match="not that of the library"):
        tvm.runtime.vm.Executable.load_exec(b"other", library)


@pytest.mark.parametrize("kind", ["debug", "graph", "vm", "aot"])
def test_executors(kind):
    mod = two_results()
    executor = relay.create_executor(kind, mod, device=tvm.cpu(), target="llvm")
    first, (second,) = executor.evaluate()(A, y=A)
    tvm.testing.assert_allclose(first.numpy(), A + A)
    tvm.testing.assert_allclose(second.numpy(), np.maximum(A, 0))
    x = relay.var("x", shape=(2, 3))
    run = relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(
        relay.Function([x], relay.exp(x))
    )
    tvm.testing.assert_allclose(run(tvm.nd.array(A)).numpy(), np.exp(A), rtol=1e-6)
    empty = relay.create_executor(kind)
    assert empty.evaluate(relay.const(1) + relay.const(2)).numpy() == 3
    y = relay.var("y", shape=())
    assert empty.evaluate(y * y, binds={y: np.float32(3)}).numpy() == 9
    with pytest.raises(ValueError, match="'y' is not a variable"):
        empty.evaluate(y * y, binds={"y": 3})
    total = executor.evaluate(mod.get_global_var("main"))
    tvm.testing.assert_allclose(total(A, A)[0].numpy(), A + A)


# ---- Modules that change -------------------------------------------------------------------------


def test_a_module_is_assigned_to():
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule({relay.GlobalVar("main"): relay.Function([x], x)})
    kept = mod.clone()
    mod["main"] = relay.Function([x], relay.exp(x))
    mod.update({"other": relay.Function([x], relay.nn.relu(x))})
    mod.update_func(mod.get_global_var("other"), relay.Function([x], relay.tanh(x)))
    assert {var.name_hint for var in mod.get_global_vars()} == {"main", "other"}
    assert (
        mod["other"].body.op.name == "tanh" and "main" in mod and relay.GlobalVar("no") not in mod
    )
    assert [f.body.op.name for f in mod.functions.values()] == ["exp", "tanh"]
    assert "other" not in kept and tvm.ir.structural_equal(kept["main"].body, x)
    mod.update(tvm.IRModule({"main": relay.Function([x], x)}))
    assert tvm.ir.structural_equal(mod["main"], kept["main"])
    assert mod.with_attr("a", 1).get_attr("a") == 1 and mod.get_attr("a") is None
    with pytest.raises(TypeError, match=r"relay\.Function"):
        mod["main"] = 3
    with pytest.raises(AttributeError, match="constructors have names"):
        mod.get_constructor(0)
    with pytest.raises(ValueError, match="takes no global_infos"):
        tvm.IRModule(global_infos={"vdevice": []})
    with pytest.raises(ValueError, match="has no option name"):
        mod.script(name="Module")
    with pytest.raises(ValueError, match="has no option style"):
        mod.show(style="light")
    assert mod.script() == mod.astext(False) and mod.script(show_meta=True) == mod.astext()


def test_functions_that_wait_for_others():
    f, g = relay.GlobalVar("f"), relay.GlobalVar("g")
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule()
    mod[f] = relay.Function([x], g(x), relay.TensorType((2,)))
    assert f in mod and mod["f"].body.op == g
    for _ in range(2):
        with pytest.raises(tvm.error.DiagnosticError, match=r"E0103.*no function @g"):
            str(mod)
    # Whether a name exists does not depend on what waits.
    assert not hasattr(mod, "nothing_of_this_name") and not hasattr(mod, "source_map")
    with pytest.raises(tvm.error.DiagnosticError, match=r"E0103.*variable %z"):
        tvm.IRModule()["main"] = relay.Function([x], relay.var("z", shape=(2,)))
    mod[g] = relay.Function([x], x + x, relay.TensorType((2,)))
    got = relay.create_executor("graph", mod).evaluate(f)(np.ones(2, "float32"))
    tvm.testing.assert_allclose(got.numpy(), [2, 2])


def test_data_types_and_the_prelude():
    mod = tvm.IRModule()
    prelude = relay.prelude.Prelude(mod)
    assert prelude.mod is mod and "map" in mod
    a = relay.TypeVar("a")
    name = relay.GlobalTypeVar("Box")
    box, none = relay.Constructor("Box", [a], name), relay.Constructor("Empty", [], name)
    mod[name] = relay.TypeData(name, [a], [box, none])
    assert isinstance(a, relay.TypeVar) and [c.name_hint for c in mod[name].constructors] == [
        "Box", "Empty",
    ]  # fmt: skip
    v = relay.var("v")
    inside = relay.Clause(relay.PatternConstructor(box, [relay.PatternVar(v)]), v)
    outside = relay.Clause(relay.PatternConstructor(none, []), relay.const(0))
    mod["main"] = relay.Function([], relay.Match(box(relay.const(3)), [inside, outside]))
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind, mod).evaluate()().numpy() == 3
    with pytest.raises(ValueError, match="another definition already"):
        relay.TypeData(name, [a], [box])
    with pytest.raises(ValueError, match="belongs to Box, not to Other"):
        relay.TypeData(relay.GlobalTypeVar("Other"), [], [relay.Constructor("C", [], name)])


def tensors_of(value):
    """Constructors with nested lists, for results of the type tensor_t and lists of it."""
    if isinstance(value, list):
        return [tensors_of(part) for part in value]
    return (value.constructor, *(np.asarray(field).tolist() for field in value.fields))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_arrays_of_tensors_by_dtype(dtype):
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)

    def of(name):
        return p.get_global_var(name, dtype)

    tensor2 = p.get_tensor_ctor("tensor2", dtype)
    x = relay.var("x", shape=(3, 2), dtype=dtype)
    rows = of("tensor_array_unstack_tensor2")(x)
    some, lengths = (relay.const(np.array(v, "int32")) for v in ([2, 0], [1, 2]))
    empty = of("tensor_array")(relay.const(2))
    written = of("tensor_array_write")(empty, relay.const(1), tensor2(x))
    scattered = of("tensor_array_scatter")(rows, some, rows)
    results = [
        rows,
        of("tensor_array_concat")(rows),
        of("tensor_array_gather")(rows, some),
        written,
        of("tensor_array_read")(written, relay.const(1)),
        of("tensor_array_stack")(scattered),
        of("tensor_array_split")(empty, tensor2(x), lengths),
        of("tensor_take")(tensor2(x), relay.const(1), relay.const(3)),
    ]
    mod["main"] = relay.Function([x], relay.Tuple(results))
    data = np.arange(6).reshape(3, 2)
    want = [
        [("tensor1", [0, 1]), ("tensor1", [2, 3]), ("tensor1", [4, 5])],
        ("tensor1", [0, 1, 2, 3, 4, 5]),
        ("tensor2", [[4, 5], [0, 1]]),
        [("tensor_nil",), ("tensor2", data.tolist())],
        ("tensor2", data.tolist()),
        ("tensor2", [[2, 3], [2, 3], [0, 1]]),
        [("tensor2", [[0, 1]]), ("tensor2", [[2, 3], [4, 5]])],
        ("tensor2", [[2, 3], [4, 5]]),
    ]
    for kind in ("debug", "vm"):
        run = relay.create_executor(kind, mod, device=tvm.cpu(), target="llvm").evaluate()
        got = [tensors_of(value) for value in run(data.astype(dtype))]
        assert repr(got).replace(f"_{dtype}", "").replace(".0", "") == repr(want)


def test_names_of_the_prelude_by_dtype():
    p = core.Prelude()
    assert p.get_name("tensor_t", "int8") == "tensor_int8_t"
    assert "tensor_array_int8" not in p.mod
    assert str(p.get_type("tensor_t", "int8")) == "tensor_int8_t" and "tensor_array_int8" in p.mod
    assert p.get_ctor("tensor_int8_t", "tensor_nil", "int8").name_hint == "tensor_nil_int8"
    for refused, match in (
        (lambda: p.get_global_var("tensor_fly", "int8"), "no function 'tensor_fly'"),
        (lambda: p.get_type("list", "int8"), "is 'tensor_t', not 'list'"),
        (lambda: p.get_tensor_ctor("tensor7", "int8"), "no constructor tensor7_int8"),
        (lambda: p.get_global_var("tensor_array", "flaot32"), "flaot32"),
        (lambda: p.get_global_var("tensor_array", 3), "a dtype is a text"),
    ):
        with pytest.raises(ValueError, match=match):
            refused()


def test_comparisons():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    f, g = relay.Function([x], relay.exp(x)), relay.Function([y], relay.exp(y))
    assert tvm.ir.structural_equal(f, g) and not tvm.ir.structural_equal(x, y)
    assert tvm.ir.structural_equal([x], [y], map_free_vars=True)
    assert tvm.ir.structural_hash(f) == tvm.ir.structural_hash(g)
    assert tvm.ir.structural_hash(x, True) == tvm.ir.structural_hash(y, True)
    tvm.ir.assert_structural_equal(tvm.IRModule.from_expr(f), tvm.IRModule.from_expr(g))
    with pytest.raises(ValueError, match="differ"):
        tvm.ir.assert_structural_equal(f, relay.Function([x], relay.tanh(x)))


# ---- Passes --------------------------------------------------------------------------------------


def test_passes():
    mod = two_results()
    fused = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FuseOps(2)])
    with tvm.transform.PassContext(opt_level=3):
        out = tvm.transform.Sequential([fused])(mod)
    assert isinstance(out, tvm.IRModule) and "Primitive=1" in out.astext()
    assert isinstance(fused, tvm.ir.transform.Pass) and "FuseOps" in repr(fused)
    assert relay.transform.FuseOps().info.name == "FuseOps"
    x = relay.var("x", shape=(2,))
    tidy = relay.testing.run_opt_pass(
        relay.add(relay.const(1.0), relay.const(2.0)), relay.transform.FoldConstant()
    )
    assert isinstance(tidy, relay.Constant)
    gradient = relay.transform.gradient(relay.Function([x], relay.sum(x * x)), tvm.IRModule())
    assert relay.create_executor().evaluate(gradient)(np.ones(2, "float32"))[1][0].shape == (2,)


def test_options_of_passes():
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    conv = relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4)
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.max_pool2d(conv))))
    convert = relay.transform.ConvertLayout
    out = convert({"nn.conv2d": ["NHWC", "default"]})(mod)
    assert 'data_layout="NHWC"' in out.astext() and 'layout="NHWC"' in out.astext()
    with pytest.raises(ValueError, match="is a layout, not 'default'"):
        convert({"nn.conv2d": ["default", "default"]})
    out = convert({"nn.conv2d": ["NHWC", "HWIO"], "nn.max_pool2d": ["NHWC"]})(mod).astext()
    assert 'kernel_layout="HWIO"' in out and 'dst_layout="HWIO"' in out
    with pytest.raises(ValueError, match=r"nn\.conv2d's weights is 'OIHW' in some order"):
        convert({"nn.conv2d": ["NHWC", "NHWC"]})
    with pytest.raises(ValueError, match=r"nn\.max_pool2d has no other layout"):
        convert({"nn.max_pool2d": ["NHWC", "HWIO"]})
    with pytest.raises(
        ValueError, match=r"nn\.conv2d has layouts of its data and its weights, not 3"
    ):
        convert({"nn.conv2d": ["NHWC", "default", "HWIO"]})
    image = relay.Function([x], relay.nn.relu(relay.image.resize2d(x, (16, 16))))
    out = convert({"image.resize2d": ["NHWC"]})(tvm.IRModule.from_expr(image)).astext()
    assert out.count(', layout="NHWC"') == 1 and out.count("layout_transform") == 2
    with pytest.raises(ValueError, match="'NCHW' in some order: the compiler chooses blocks"):
        convert({"nn.conv2d": ["NCHW8c", "default"]})
    with pytest.raises(ValueError, match="'NCW' in some order: not 'NHWC'"):
        convert({"nn.max_pool1d": ["NHWC"]})
    with pytest.raises(ValueError, match=r"nn\.conv2d has no layout"):
        convert({"nn.conv2d": []})
    pool = relay.Function([x], relay.nn.relu(relay.nn.max_pool2d(x, (2, 2), (2, 2))))
    out = convert({"nn.max_pool2d": ["NHWC"]})(tvm.IRModule.from_expr(pool))
    assert (
        out.astext().count(', layout="NHWC"') == 1 and out.astext().count("layout_transform") == 2
    )
    with pytest.raises(ValueError, match=r"the layout of nn\.relu follows that of the operators"):
        convert({"nn.relu": ["NHWC"]})
    assert relay.transform.FuseOps(0)(mod).astext().count("Primitive=1") == 3
    assert relay.transform.FuseOps(2)(mod).astext().count("Primitive=1") < 3
    with pytest.raises(ValueError, match="level from 0 to 4"):
        relay.transform.FuseOps(9)
    assert relay.transform.EliminateCommonSubexpr()(mod)["main"] is not None
    with pytest.raises(ValueError, match="fskip is a function"):
        relay.transform.EliminateCommonSubexpr(True)
    assert (
        relay.transform.CombineParallelDense(2, to_batch=False).info.name == "CombineParallelDense"
    )


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_indices_of_an_order_in_other_dtypes(dtype):
    x = relay.var("x", shape=(3, 5))
    order = relay.argsort(x, axis=0, is_ascend=False, dtype=dtype)
    best = [relay.topk(x, k=k, ret_type="indices", dtype=dtype) for k in (1, 3)]
    values, places = relay.topk(x, k=2, dtype=dtype)
    loss = relay.sum(relay.topk(x, k=2, dtype=dtype)[0])
    gradient = relay.transform.gradient(relay.Function([x], loss), mode="first_order")
    data = np.random.default_rng(3).random((3, 5)).astype("float32")
    body = relay.Tuple([order, *best, values, places])
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    rows = np.argsort(-data, 1)
    want = [np.argsort(-data, 0), rows[:, :1], rows[:, :3], -np.sort(-data, 1)[:, :2], rows[:, :2]]
    for kind in ("debug", "vm"):
        got = relay.create_executor(kind, mod).evaluate()(data)
        assert [str(g.dtype) for g in got] == [dtype, dtype, dtype, "float32", dtype]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g.numpy(), w)
        (adjoint,) = relay.create_executor(kind, tvm.IRModule.from_expr(gradient)).evaluate()(data)[
            1
        ]
        assert adjoint.numpy().sum() == 6


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_indices_and_lengths_that_are_floats(dtype):
    x, n = relay.var("x", shape=(3, 5)), relay.var("n", shape=(3,), dtype=dtype)
    one, zero = relay.const(1.0), relay.const(0.0)
    fields = [
        relay.one_hot(n, one, zero, 5, -1, "float32"),
        relay.sequence_mask(x, n, mask_value=-1.0, axis=1),
        relay.reverse_sequence(x, n, seq_axis=1, batch_axis=0),
    ]
    mod = tvm.IRModule.from_expr(relay.Function([x, n], relay.Tuple(fields)))
    loss = relay.sum(fields[1] * fields[2])
    gradient = relay.transform.gradient(relay.Function([x, n], loss), mode="first_order")
    data = np.random.default_rng(3).random((3, 5)).astype("float32")
    ends = np.array([3, 2.5, 0], dtype)
    masked = np.where(np.arange(5) < ends[:, None], data, -1)
    turned = data.copy()
    turned[0, :3], turned[1, :2] = data[0, 2::-1], data[1, 1::-1]
    want = [np.arange(5) == ends[:, None], masked, turned]
    back = masked.copy()  # the adjoint of a reversal is one
    back[0, :3], back[1, :2] = masked[0, 2::-1], masked[1, 1::-1]
    adjoint = np.where(np.arange(5) < ends[:, None], turned, 0) + back
    for kind in ("debug", "vm"):
        got = relay.create_executor(kind, mod).evaluate()(data, ends)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g.numpy(), w)
        found = relay.create_executor(kind, tvm.IRModule.from_expr(gradient)).evaluate()(data, ends)
        np.testing.assert_allclose(found[1][0].numpy(), adjoint, rtol=1e-6)
        np.testing.assert_array_equal(found[1][1].numpy(), np.zeros(3))


def test_calls_that_stay_apart():
    x = relay.var("x", shape=(2,))
    both = relay.add(relay.exp(x) + relay.tanh(x), relay.exp(x) * relay.tanh(x))
    mod = tvm.IRModule.from_expr(relay.Function([x], both))

    def counts(fskip):
        text = relay.transform.EliminateCommonSubexpr(fskip)(mod).astext()
        return text.count("exp("), text.count("tanh(")

    assert counts(None) == (1, 1)
    assert counts(lambda e: isinstance(e, relay.Call) and e.op.name == "exp") == (2, 1)
    with pytest.raises(Stop):
        counts(stop)


def test_instruments_outside_a_context():
    seen = []

    @tvm.instrument.pass_instrument
    class Watch:
        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def run_before_pass(self, mod, info):
            seen.append(info.name)

    mod = two_results()
    context = tvm.transform.PassContext.current()
    context.override_instruments([Watch()])
    relay.transform.InferType()(mod)
    with tvm.transform.PassContext(opt_level=1):
        relay.transform.FoldConstant()(mod)
    assert seen == ["enter", "InferType"]
    context.override_instruments(None)
    relay.transform.InferType()(mod)
    assert seen == ["enter", "InferType", "exit"]


def test_passes_of_the_program():
    @relay.transform.function_pass(opt_level=1)
    class Replace:
        def __init__(self, op):
            self.op = op

        def transform_function(self, func, mod, ctx):
            assert isinstance(mod, tvm.IRModule)
            return relay.Function(func.params, self.op(func.body.fields[0]))

    @tvm.transform.module_pass(opt_level=1)
    def add_twin(mod, ctx):
        mod["twin"] = mod["main"]
        return mod

    mod = two_results()
    out = add_twin(Replace(relay.tanh)(mod))
    assert isinstance(add_twin, tvm.transform.ModulePass)
    assert isinstance(Replace(relay.exp), tvm.transform.FunctionPass)
    assert out["twin"].body.op.name == "tanh" and "twin" not in mod


class Stop(Exception):
    pass


def stop(_):
    raise Stop


def test_exceptions_pass_through():
    seen = []

    @tvm.instrument.pass_instrument
    class Watch:
        def __init__(self, stop):
            self.stop = stop

        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def run_before_pass(self, mod, info):
            assert isinstance(mod, tvm.IRModule)
            if info.name == self.stop:
                raise Stop(info.name)

    mod = two_results()
    for run in (lambda: relay.build(mod, "llvm"), lambda: relay.transform.FuseOps()(mod)):
        with tvm.transform.PassContext(instruments=[Watch("FuseOps")]), pytest.raises(Stop):
            run()
    with tvm.transform.PassContext(instruments=[Watch("")]) as context:
        context.override_instruments([Watch("FuseOps")])
        with pytest.raises(Stop):
            relay.transform.FuseOps()(mod)
    assert seen == ["enter", "exit"] * 4

    @relay.transform.function_pass(opt_level=0)
    def fail(func, mod, ctx):
        raise Stop

    with pytest.raises(Stop):
        fail(mod)
    with pytest.raises(core.UserError, match="E0702"):
        tvm.transform.PassContext(opt_level=7)
    assert tvm.transform.PassContext(opt_level=4).required_pass == {"FastMath"}


# ---- Front ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("friendly", [False, True])
def test_a_program_of_torchscript(friendly):
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, data, scale):
            return torch.softmax(self.layer(data) * scale, 1), torch.argmax(data, 1)

    torch.manual_seed(0)
    model = Model().eval()
    data, scale = torch.rand(2, 4), torch.tensor(2.0, dtype=torch.float64)
    script = torch.jit.trace(model, (data, scale))
    mod, params = relay.frontend.from_pytorch(
        script, [("input.1", (2, 4)), ("scale", ((), "float64"))], use_parser_friendly_name=friendly
    )
    assert set(params) == {f"layer{'_' if friendly else '.'}{n}" for n in ("weight", "bias")}
    assert [p.name_hint for p in mod["main"].params][:2] == ["input.1", "scale"]
    module = graph_executor.GraphModule(
        relay.build(mod, "llvm", params=params)["default"](tvm.cpu())
    )
    module.set_input("input.1", data.numpy())
    module.run(scale=2.0)
    probabilities, best = model(data, scale)
    tvm.testing.assert_allclose(module.get_output(0), probabilities.detach(), rtol=1e-5)
    np.testing.assert_array_equal(module.get_output(1), best)
    with pytest.raises(ValueError, match="2 inputs, input_infos 1"):
        relay.frontend.from_pytorch(script, [("data", (2, 4))])
    with pytest.raises(ValueError, match=r"torch\.jit\.trace"):
        relay.frontend.from_pytorch(model, [("data", (2, 4))])
    with pytest.raises(ValueError, match="numbers as sizes"):
        relay.frontend.from_pytorch(script, [("data", (2, None)), ("scale", ())])
    with pytest.raises(ValueError, match="takes no custom_convert_map"):
        relay.frontend.from_pytorch(script, [("data", (2, 4))], custom_convert_map={})


def test_torchscript_without_parameters(tmp_path):
    torch = pytest.importorskip("torch")

    class Scale(torch.nn.Module):
        def forward(self, x, y):
            return x * 2.0 + y

    infos = [("x", (2, 3)), ("y", ((2, 3), np.float32))]
    torch.jit.script(Scale()).save(tmp_path / "scale.pt")
    for script in (
        torch.jit.script(Scale()),
        torch.jit.trace(Scale(), (torch.ones(2, 3),) * 2),
        torch.jit.load(tmp_path / "scale.pt"),
    ):
        mod, params = relay.frontend.from_pytorch(script, infos)
        assert params == {} and [p.name_hint for p in mod["main"].params] == ["x", "y"]
        got = relay.create_executor("vm", mod).evaluate()(A, A)
        tvm.testing.assert_allclose(got, 3 * A, rtol=1e-6)
    for bad in ("flaot32", "nn", object()):
        with pytest.raises(ValueError, match="input 'y' has no dtype"):
            relay.frontend.from_pytorch(script, [("x", (2, 3)), ("y", ((2, 3), bad))])
    script = torch.jit.script(Scale())
    with pytest.raises(ValueError, match="input 'x' has no dtype 'flaot32'"):
        relay.frontend.from_pytorch(script, [("x", (2, 3)), ("y", (2, 3))], default_dtype="flaot32")
    with pytest.raises(ValueError, match="two inputs have the name 'x'"):
        relay.frontend.from_pytorch(script, [("x", (2, 3)), ("x", (2, 3))])


def test_torchscript_with_names_that_collide(tmp_path):
    torch = pytest.importorskip("torch")

    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.b = torch.nn.Parameter(torch.full((3,), 2.0))

        def forward(self, x):
            return x * self.b

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.a_b = Part(), torch.nn.Parameter(torch.full((3,), 3.0))

        def forward(self, x):
            return self.a(x) + self.a_b

    torch.jit.script(Whole()).save(tmp_path / "whole.pt")
    script = torch.jit.load(tmp_path / "whole.pt")
    mod, params = relay.frontend.from_pytorch(script, [("x", (2, 3))])
    assert {name: float(np.asarray(v)[0]) for name, v in params.items()} == {"a.b": 2, "a_b": 3}
    assert {p.name_hint for p in mod["main"].params} == {"x", "a.b", "a_b"}
    got = relay.create_executor("vm", mod, params=params).evaluate()(A)
    tvm.testing.assert_allclose(got, 2 * A + 3, rtol=1e-6)
    with pytest.raises(ValueError, match=r"parameter a.* and the parameter a.* are both named a_b"):
        relay.frontend.from_pytorch(script, [("x", (2, 3))], use_parser_friendly_name=True)
    with pytest.raises(ValueError, match="input a_b and the parameter a_b"):
        relay.frontend.from_pytorch(script, [("a_b", (2, 3))])


# ---- Arrays, devices, targets --------------------------------------------------------------------


def test_arrays():
    a = tvm.nd.array([[1.0, 2.0]])
    assert (a.shape, a.dtype, str(a.device)) == ((1, 2), "float64", "cpu(0)")
    a.copyfrom(np.array([[3, 4]]))
    b = a.copyto(tvm.nd.empty((1, 2), "float64"))
    assert b.numpy().tolist() == [[3, 4]] and b.same_as(b) and a.copyto(tvm.cpu()) is not a
    assert np.from_dlpack(a).tolist() == [[3, 4]] and relay.const(a).data.tolist() == [[3, 4]]
    assert tvm.nd.from_dlpack(np.ones(2)).numpy().tolist() == [1, 1]
    assert "NDArray shape=(1, 2), cpu(0)" in repr(a)
    with pytest.raises(ValueError, match="to an NDArray or a device"):
        a.copyto(np.empty((1, 2)))
    with pytest.raises(ValueError, match="copied into"):
        a.copyto(tvm.nd.empty((1, 2)))
    again = tvm.runtime.load_param_dict(relay.save_param_dict({"a": a}))
    assert isinstance(again["a"], tvm.nd.NDArray) and again["a"].numpy().tolist() == [[3, 4]]


def test_devices_and_targets():
    assert tvm.device("llvm", 0) == tvm.cpu() and tvm.cpu().device_type == 1 and tvm.cpu().exist
    with pytest.raises(ValueError, match="'cuda' is not supported: relay"):
        tvm.device("cuda", 0)
    with pytest.raises(AttributeError, match="runs programs on the processor"):
        tvm.cuda()
    with pytest.raises(ValueError, match="'cuda' is not supported"):
        relay.build(two_results(), target="cuda -arch=sm_80")
    with pytest.raises(ValueError, match="one target"):
        relay.build(two_results(), target=["llvm", "llvm"])
    target = tvm.target.Target("llvm -num-cores 4 -mcpu core-avx2 -libs=mkl")
    assert (str(target), target.kind.name, target.mcpu) == (
        "llvm -mcpu=core-avx2",
        "llvm",
        "core-avx2",
    )
    other = "llvm -mtriple=mips64-linux-gnu"
    assert str(tvm.target.Target(other)) == other
    with pytest.raises(core.UserError, match=r"E0403.*no code generator for 'mips64"):
        relay.build(two_results(), target={"kind": "llvm", "mtriple": "mips64-linux-gnu"})
    for refused in (
        lambda: tvm.target.Target({"kind": "llvm", "host": {"kind": "llvm", "mtriple": "mips"}}),
        lambda: tvm.target.Target("llvm", host=other),
        lambda: tvm.target.Target(target, host=other),
        lambda: relay.build(two_results(), "llvm", target_host=other),
    ):
        with pytest.raises(ValueError, match="the host is the target"):
            refused()
    with pytest.raises(ValueError, match="'cuda' is not supported"):
        tvm.target.Target({"kind": "llvm", "host": "cuda"})
    with pytest.raises(ValueError, match=r"tag .* is not known"):
        tvm.target.Target({"tag": "raspberry-pi/4b"})
    assert tvm.target.Target({"kind": "llvm", "host": "llvm"}).text == "llvm"
    assert tvm.testing.device_enabled is tvm.runtime.enabled
    assert [tvm.runtime.enabled(t) for t in ("llvm -mcpu=x", "", "cuda")] == [True, False, False]
    assert tvm.target.Target(target) == target and tvm.target.Target.current() is None
    with target:
        assert tvm.target.Target.current() is target
        assert relay.build(two_results()).target == "llvm -mcpu=core-avx2"
    with pytest.raises(AttributeError, match="no search"):
        _ = tvm.autotvm
    with pytest.raises(ValueError, match="'crt' is not supported"):
        relay.backend.Runtime("crt")
    lib = relay.build(
        two_results(),
        "llvm",
        executor=relay.backend.Executor("aot"),
        runtime=relay.backend.Runtime("cpp"),
    )
    assert lib.libmod_name == "default"


def test_it_is_installed_as_tvm():
    code = """
import relay.tvm
relay.tvm.install()
relay.tvm.install()
import importlib.util, tvm, tvm.ir.transform, tvm.relay.op, tvm.relay.testing.resnet
from tvm import relay as r, te
from tvm.contrib import graph_executor, graph_runtime
from tvm.ir.instrument import pass_instrument
from tvm.relay import expr as _expr
from tvm.relay.dataflow_pattern import *
from tvm.relay.expr_functor import ExprMutator
from tvm.runtime.vm import VirtualMachine
from tvm.transform import PassContext
assert tvm.__name__ == "tvm" and importlib.util.find_spec("tvm") and _expr.Call is r.Call
assert is_op("add") and issubclass(ExprMutator, object) and tvm.relay is relay.tvm.relay
for line in ("import tvm.rpc", "from tvm import rpc", "import relay.tvm.rpc.server",
             "from tvm.contrib.debugger import debug_executor", "from tvm.relay import collage",
             "import tvm.nonsense"):
    try:
        exec(line)
    except ModuleNotFoundError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    rpc, debugger, collage, other = done.stdout.splitlines()[2:]
    assert done.stdout.splitlines()[:3] == [rpc] * 3
    assert rpc.startswith("Relay's tvm.rpc is not supported: programs run")
    assert debugger.startswith("Relay's tvm.contrib.debugger is not supported: relay show")
    assert collage.startswith("Relay's collage is not supported: AnnotateTarget")
    assert other == "No module named 'tvm.nonsense'"
    code = "import sys, types; sys.modules['tvm'] = types.ModuleType('tvm')\n"
    code += "import relay.tvm; relay.tvm.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "another package 'tvm' is loaded" in done.stderr


def test_networks_are_imported_when_a_program_names_them():
    code = """
import sys, relay
relay._absent.suggestions = None  # an import does not search for similar names
import relay.tvm
relay.tvm.install()
assert 'relay.testing' not in sys.modules
import tvm, tvm.relay.testing.resnet as resnet
from tvm.relay.testing.mlp import *
from tvm.relay.testing import init
assert tvm.relay.testing.resnet is resnet and get_workload(batch_size=1)
assert isinstance(resnet.get_workload(num_layers=18)[0], tvm.IRModule)
assert "Xavier" in dir(init) and "run_opt_pass" in dir(tvm.relay.testing)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_relay_does_not_import_it():
    code = "import sys, relay, relay.testing, relay.lsp; assert 'relay.tvm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
