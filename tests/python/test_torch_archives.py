"""Archives of exported programs (.pt2) without PyTorch: what they compute, and how bad ones are refused."""

import copy
import json
import random
import zipfile

import numpy as np
import pytest
from command_line import fails, relay, relay_json
from torch_graphs import TorchGraph, meta

import relay as rl
from relay import _core

RANDOM = np.random.default_rng(5)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def run(data: bytes, *args, **kwargs):
    mod, params = rl.frontend.from_exported_program(data, **kwargs)
    assert params == {}
    out = rl.create_executor(mod=mod).evaluate()(*args)
    return out if isinstance(out, tuple) else (out,)


def compiled(data: bytes, *args):
    mod, _ = rl.frontend.from_exported_program(data)
    out = rl.build(mod)(*args)
    return out if isinstance(out, tuple) else (out,)


def imported(graph: TorchGraph, *values, tensors=None, **kwargs):
    return _core.import_torch(graph.json(*values), tensors or {}, **kwargs)


def perceptron():
    g = TorchGraph()
    x = g.input("x", ("n", 3))
    w1, b1, w2 = (
        g.weight(n, floats(*s)) for n, s in (("a.w", (4, 3)), ("a.b", (4,)), ("b.w", (2, 4)))
    )
    h = g.node("aten.linear.default", {"input": x, "weight": w1, "bias": b1}, ("n", 4))
    h = g.node("aten.relu_.default", {"self": h}, ("n", 4))
    y = g.node("aten.linear.default", {"input": h, "weight": w2, "bias": None}, ("n", 2))
    return g, y


def perceptron_in_numpy(g, x):
    h = np.maximum(x @ g.weights["a.w"].T + g.weights["a.b"], 0)
    return h @ g.weights["b.w"].T


def test_a_program_with_open_sizes_computes_what_numpy_does():
    g, y = perceptron()
    data = g.archive(y)
    mod, _ = rl.frontend.from_exported_program(data)
    assert str(mod["main"].ret_type).startswith("Tensor[(n, 2)")
    for n in (1, 5):
        x = floats(n, 3)
        np.testing.assert_allclose(run(data, x)[0], perceptron_in_numpy(g, x), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            compiled(data, x)[0], perceptron_in_numpy(g, x), rtol=1e-5, atol=1e-6
        )


def test_the_command_reads_an_archive(tmp_path):
    g, y = perceptron()
    path = tmp_path / "net.bin"  # found by its content
    path.write_bytes(g.archive(y))
    x = floats(2, 3)
    np.save(tmp_path / "x.npy", x)
    relay(
        "run",
        path,
        "--input",
        f"x={tmp_path / 'x.npy'}",
        "--output",
        tmp_path / "out",
        cwd=tmp_path,
    )
    relay("compile", path, "-o", tmp_path / "net.so", cwd=tmp_path)
    report = relay_json("check", path)
    assert report["file"]["nodes"] == 3
    assert {o["name"] for o in report["file"]["operators"]} == {"linear.default", "relu_.default"}
    assert all(o["imported"] for o in report["file"]["operators"])
    shown = relay("show", path).stdout
    assert "nn.relu" in shown


def test_weights_may_be_parameters():
    g, y = perceptron()
    mod, params = rl.frontend.from_exported_program(g.archive(y), freeze_params=False)
    assert sorted(params) == ["a_b", "a_w", "b_w"]
    x = floats(2, 3)
    out = rl.create_executor(mod=mod).evaluate()(x, **params)
    np.testing.assert_allclose(out, perceptron_in_numpy(g, x), rtol=1e-5, atol=1e-6)


def test_weights_of_a_file_replace_those_of_the_archive(tmp_path):
    g, y = perceptron()
    path = tmp_path / "net.pt2"
    path.write_bytes(g.archive(y))
    x = floats(2, 3)
    g.weights = {n: 2 * w for n, w in g.weights.items()}
    np.savez(tmp_path / "tuned.npz", **g.weights)
    want = perceptron_in_numpy(g, x)
    for given in (g.weights, tmp_path / "tuned.npz"):
        (got,) = run(path.read_bytes(), x, params=given)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.save(tmp_path / "x.npy", x)
    tuned = ("--params", "tuned.npz")
    relay("run", "net.pt2", *tuned, "--input", "x=x.npy", "--output", "out", cwd=tmp_path)
    (made,) = (tmp_path / "out").glob("*.npy")
    np.testing.assert_allclose(np.load(made), want, rtol=1e-5, atol=1e-6)
    relay("compile", "net.pt2", *tuned, "-o", "net.so", cwd=tmp_path)
    np.testing.assert_allclose(
        rl.runtime.load_module(tmp_path / "net.so")(x), want, rtol=1e-5, atol=1e-6
    )
    assert relay_json("check", "net.pt2", *tuned, cwd=tmp_path)["ok"]
    relay("bench", "net.pt2", *tuned, "--repeat", "2", cwd=tmp_path)
    # By the names of the module also where they are parameters.
    mod, _ = rl.frontend.from_exported_program(path, freeze_params=False)
    got = rl.build(mod, params=tmp_path / "tuned.npz")(x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("code", "said", "change"),
    [
        ("E0508", "no value for the model's 'a.b'", lambda w: w.pop("a.b")),
        ("E0510", "no weight 'c.w'", lambda w: w.update({"c.w": w["b.w"]})),
        ("E0510", "did you mean b.w", lambda w: w.update({"b.v": w["b.w"]})),
        ("E0508", r"\(3, 4\)", lambda w: w.update({"a.w": w["a.w"].T.copy()})),
        ("E0508", "float64", lambda w: w.update({"a.w": w["a.w"].astype(np.float64)})),
        (
            "E0508",
            "calls it 'model.a.w'",
            lambda w: w.update({f"model.{n}": w.pop(n) for n in list(w)}),
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, code, said, change):
    g, y = perceptron()
    (tmp_path / "net.pt2").write_bytes(g.archive(y))
    weights = dict(g.weights)
    change(weights)
    with pytest.raises(rl.UserError, match=rf"{code}[\s\S]*{said}"):
        rl.frontend.from_exported_program(tmp_path / "net.pt2", params=weights)
    np.savez(tmp_path / "w.npz", **weights)
    done = relay("check", "net.pt2", "--params", "w.npz", cwd=tmp_path, check=False)
    assert done.returncode == 1 and f"error[{code}]" in done.stderr
    done = relay("compile", "net.pt2", "--params", "w.npz", "-o", "n.so", cwd=tmp_path, check=False)
    assert done.returncode == 1 and f"error[{code}]" in done.stderr and "w.npz" in done.stderr


def test_shared_weights_and_those_outside_of_the_state_need_no_value():
    g = TorchGraph()
    x = g.input("x", (2, 3))
    w = floats(3, 3)
    first, second = g.weight("embed.w", w), g.weight("head.w", w)
    scale = g.weight("scale", floats(3), "buffer")
    g.specs[-1]["buffer"]["persistent"] = False
    h = g.node("aten.linear.default", {"input": x, "weight": first, "bias": None}, (2, 3))
    h = g.node("aten.linear.default", {"input": h, "weight": second, "bias": None}, (2, 3))
    y = g.node("aten.mul.Tensor", {"self": h, "other": scale}, (2, 3))
    names = {"embed.w": "weight_0", "head.w": "weight_0", "scale": "weight_2"}
    config = {
        n: {"path_name": f, "use_pickle": False, "tensor_meta": meta(g.weights[n].shape)}
        for n, f in names.items()
    }
    text = json.dumps({"config": config})
    data = g.archive(y, files={"data/weights/model_weights_config.json": text})
    x = floats(2, 3)
    new = floats(3, 3)
    (got,) = run(data, x, params={"embed.w": new})
    np.testing.assert_allclose(got, x @ new.T @ new.T * g.weights["scale"], rtol=1e-5, atol=1e-6)


# ---- Views and writes ----------------------------------------------------------------------------


def test_writes_go_through_chains_of_views():
    g = TorchGraph()
    x = g.input("x", (4, 6))
    c = g.node("aten.clone.default", {"self": x}, (4, 6))
    t = g.node("aten.transpose.int", {"self": c, "dim0": 0, "dim1": 1}, (6, 4))
    s = g.node("aten.slice.Tensor", {"self": t, "dim": 0, "start": 1, "end": 5, "step": 2}, (2, 4))
    row = g.node("aten.select.int", {"self": s, "dim": 0, "index": -1}, (4,))
    g.node("aten.add_.Tensor", {"self": row, "other": 10.0}, (4,))
    v = g.node("aten.view.default", {"self": c, "size": [-1]}, (24,))
    g.node("aten.mul_.Scalar", {"self": v, "other": 2}, (24,))
    a = floats(4, 6)
    want = a.copy()
    want.T[1:5:2][-1] += 10
    want *= 2
    for got in (run(g.archive(c, s), a), compiled(g.archive(c, s), a)):
        np.testing.assert_allclose(got[0], want, rtol=1e-6)
        np.testing.assert_allclose(got[1], want.T[1:5:2], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_are_written(axis):
    g = TorchGraph()
    x, y = (
        g.input("x", (3, 4, 5)),
        g.input("y", tuple(2 if a == axis else n for a, n in enumerate((3, 4, 5)))),
    )
    c = g.node("aten.clone.default", {"self": x}, (3, 4, 5))
    part = g.node(
        "aten.narrow.default",
        {"self": c, "dim": axis, "start": 1, "length": 2},
        tuple(2 if a == axis else n for a, n in enumerate((3, 4, 5))),
    )
    g.node(
        "aten.copy_.default",
        {"self": part, "src": y},
        tuple(2 if a == axis else n for a, n in enumerate((3, 4, 5))),
    )
    d = g.node("aten.diagonal.default", {"self": c, "offset": 1, "dim1": 0, "dim2": 2}, (4, 3))
    g.node("aten.fill_.Scalar", {"self": d, "value": 7}, (4, 3))
    a = floats(3, 4, 5)
    b = floats(*(2 if i == axis else n for i, n in enumerate((3, 4, 5))))
    want = a.copy()
    index = [slice(None)] * 3
    index[axis] = slice(1, 3)
    want[tuple(index)] = b
    want[np.arange(3), :, np.arange(1, 4)] = 7
    np.testing.assert_array_equal(run(g.archive(c), a, b)[0], want)


def test_writes_into_inputs_and_buffers_are_results():
    g = TorchGraph()
    x, count = g.input("x", (3,)), g.weight("steps", np.array(4, np.int64), "buffer")
    g.node("aten.add_.Tensor", {"self": count, "other": 1}, (), "int64")
    g.node("aten.mul_.Tensor", {"self": x, "other": 2.0}, (3,))
    y = g.node("aten.add.Tensor", {"self": x, "other": count}, (3,))
    mod, _, about = imported(g, y, x, tensors=g.weights)
    assert [(o["kind"], o["target"], o["alias_of"]) for o in about["outputs"]] == [
        ("user_output", "", ""),
        ("user_output", "", "x"),
        ("user_input_mutation", "x", ""),
        ("buffer_mutation", "steps", ""),
    ]
    a = floats(3)
    out = rl.create_executor(mod=mod).evaluate()(a)
    np.testing.assert_allclose(out[0], 2 * a + 5, rtol=1e-6)
    np.testing.assert_allclose(out[2], 2 * a, rtol=1e-6)
    assert int(out[3]) == 5


def test_a_write_into_repeated_elements_is_refused():
    g = TorchGraph()
    x = g.input("x", (1, 3))
    e = g.node("aten.expand.default", {"self": x, "size": [4, 3]}, (4, 3))
    g.node("aten.add_.Tensor", {"self": e, "other": 1}, (4, 3))
    with pytest.raises(rl.UserError, match=r"E0504.*repeats elements"):
        imported(g, x)


# ---- Sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))",
            "2 * s0 + 1",
        ),
        ("2*s0 + 1", "2 * s0 + 1"),
        ("FloorDiv(Symbol('s0', integer=True), Integer(2))", "s0 // 2"),
        ("((s0 + 1)//2)", "(s0 + 1) // 2"),
        ("CeilToInt(IntTrueDiv(s0, 2))", "ceildiv(s0, 2)"),
        ("Max(1, s0)", "max(s0, 1)"),
        ("Mod(s0, 4)", "s0 % 4"),
        ("s0**2", "s0 * s0"),
        ("-s0 + 10 + 2*s0 - -3", "s0 + 13"),
        ("Mul(Rational(1, 2), Add(Mul(Integer(4), Symbol('s0')), Integer(6)))", "2 * s0 + 3"),
    ],
)
def test_sizes_are_expressions_of_symbols(text, want):
    g = TorchGraph()
    g.input("x", ("s0",))
    n = g.node("aten.sym_size.int", {"self": g.input("y", ("s0", 2)), "dim": 0}, None, text)
    z = g.node("aten.full.default", {"size": [n], "fill_value": 1.0}, (text,))
    mod, _, _ = imported(g, z)
    for s in (3, 6):
        expected = eval(want.replace("ceildiv(s0, 2)", "-(-s0 // 2)"), {"max": max}, {"s0": s})
        out = rl.create_executor(mod=mod).evaluate()(floats(s), floats(s, 2))
        assert out.shape == (expected,)


@pytest.mark.parametrize("text", ["((s0//4)**2)//(s0//4)", "s1*(s0//s1)"])
def test_sizes_of_inputs_may_be_quotients_of_symbols(text):
    g = TorchGraph()
    x, y = g.input("x", ("s0", "s1")), g.input("y", (text,))
    z = g.node("aten.mul.Tensor", {"self": y, "other": 2}, (text,))
    mod, _, _ = imported(g, z, g.node("aten.relu.default", {"self": x}, ("s0", "s1")))
    f = rl.create_executor(mod=mod).evaluate()
    n = eval(text, {"s0": 9, "s1": 2})
    a, b = floats(9, 2), floats(n)
    np.testing.assert_array_equal(f(a, b)[0], 2 * b)
    with pytest.raises(rl.RelayError):
        f(a, floats(n + 1))


def test_sizes_that_follow_from_others_are_checked():
    g = TorchGraph()
    x, y = g.input("x", ("s0",)), g.input("y", ("2*s0",))
    h = g.node(
        "aten.slice.Tensor", {"self": y, "dim": 0, "start": 0, "end": g.integer("n", "s0")}, ("s0",)
    )
    z = g.node("aten.add.Tensor", {"self": x, "other": h}, ("s0",))
    mod, _, about = imported(g, z)
    assert [i["kind"] for i in about["inputs"]] == ["tensor", "tensor", "size_of"]
    f = rl.create_executor(mod=mod).evaluate()
    a, b = floats(3), floats(6)
    np.testing.assert_allclose(f(a, b), a + b[:3], rtol=1e-6)
    with pytest.raises(rl.RelayError):
        f(a, floats(7))


def test_an_integer_that_no_tensor_has_is_the_size_of_an_empty_one():
    g = TorchGraph()
    n = g.integer("n", "s1")
    z = g.node("aten.arange.default", {"end": n}, ("s1",), "int64")
    mod, _, about = imported(g, z)
    assert about["inputs"][0]["kind"] == "size"
    out = rl.create_executor(mod=mod).evaluate()(np.zeros((4, 0), np.uint8))
    assert list(out) == [0, 1, 2, 3]


def test_the_bounds_of_sizes_are_told():
    g = TorchGraph()
    x = g.input("x", ("s0",))
    g.ranges = {"s0": {"min_val": 2, "max_val": 100}}
    _, _, about = imported(g, x)
    assert about["sizes"] == [("s0", 2, 100)]


# ---- Parts ---------------------------------------------------------------------------------------


def part(build):
    g = TorchGraph()
    g.output(*build(g))
    return g


def test_a_branch_and_a_loop():
    g = TorchGraph()
    x, c = g.input("x", (3,)), g.input("c", (), "bool")
    yes = part(
        lambda p: [p.node("aten.mul.Tensor", {"self": p.input("a", (3,)), "other": 2.0}, (3,))]
    )
    no = part(lambda p: [p.node("aten.neg.default", {"self": p.input("a", (3,))}, (3,))])
    (y,) = g.node("higher_order.cond", [c, yes, no, [x]], [(3,)])
    test, body = part(_loop_test), part(_loop_body)
    i = g.node("aten.full.default", {"size": [], "fill_value": 0}, (), "int64")
    i, v = g.node(
        "higher_order.while_loop", [test, body, [i, y], []], [(), (3,)], ["int64", "float32"]
    )
    data = g.archive(i, v)
    a = floats(3)
    for truth in (True, False):
        got = run(data, a, np.array(truth))
        assert int(got[0]) == 4
        np.testing.assert_allclose(got[1], (2 * a if truth else -a) + 4, rtol=1e-5, atol=1e-6)


def _loop_test(p):
    i, _ = p.input("i", (), "int64"), p.input("v", (3,))
    return [p.node("aten.lt.Scalar", {"self": i, "other": 4}, (), "bool")]


def _loop_body(p):
    i, v = p.input("i", (), "int64"), p.input("v", (3,))
    return [
        p.node("aten.add.Scalar", {"self": i, "other": 1}, (), "int64"),
        p.node("aten.add.Scalar", {"self": v, "other": 1.0}, (3,)),
    ]


def test_assertions_are_checked_in_the_run():
    g = TorchGraph()
    x = g.input("x", (3,))
    total = g.node("aten.sum.default", {"self": x}, ())
    small = g.node("aten.lt.Scalar", {"self": total, "other": 10.0}, (), "bool")
    g.node("aten._assert_async.msg", {"self": small, "assert_msg": "the sum is too large"}, ())
    g.nodes[-1]["outputs"] = []
    y = g.node("aten.neg.default", {"self": x}, (3,))
    data = g.archive(y)
    np.testing.assert_array_equal(run(data, np.ones(3, np.float32))[0], -np.ones(3))
    for f in (run, compiled):
        with pytest.raises(rl.RelayError, match=r"E0616.*the sum is too large"):
            f(data, np.full(3, 9, np.float32))


# ---- Bad programs --------------------------------------------------------------------------------

TRACE = (
    'File "/home/me/train.py", line 3, in main\n  m(x)\n'
    'File "model.py", line 12, in forward\n    y = odd(x)\n'
)


def test_what_cannot_be_imported_is_named_with_its_place_in_python():
    g = TorchGraph()
    x = g.input("x", (3,))
    y = g.node("aten.odd.default", {"self": x}, (3,), trace=TRACE)
    z = g.node("aten.linalg_svd.default", {"A": x}, (3,))
    with pytest.raises(rl.UserError) as refused:
        imported(g, y, z)
    text = str(refused.value)
    assert text.count("E0501") == 2
    assert 'torch graph: File "model.py", line 12, in forward (aten.odd.default)' in text
    assert "node v2 (aten.linalg_svd.default)" in text


def test_all_gaps_of_a_graph_are_listed_at_once():
    g = TorchGraph()
    x = g.input("x", (3,))
    y = g.node("aten.odd.default", {"self": x}, (3,))
    z = g.node("aten.relu.default", {"self": y}, (3,))
    w = g.node("aten.dropout.default", {"self": z, "p": 0.5, "train": True}, (3,))
    gaps = _core.torch_unsupported(g.json(w))
    assert [(at, target) for at, target, _ in gaps] == [
        (0, "torch.ops.aten.odd.default"),
        (2, "torch.ops.aten.dropout.default"),
    ]
    assert "dropout in training" in gaps[1][2]
    assert "aten.add.Tensor" in _core.torch_rows()


def broken(change):
    g, y = perceptron()
    program = g.program(y)
    change(program)
    return program


def a_node(program, i=0):
    return program["graph_module"]["graph"]["nodes"][i]


BAD = {
    "no JSON": ("E0502", lambda p: "{"),
    "no graph": ("E0502", lambda p: p.pop("graph_module") and None),
    "a list for a string": ("E0502", lambda p: a_node(p).update(target=[])),
    "a size that is a string": (
        "E0502",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["x"]["sizes"].__setitem__(
            0, {"as_int": "3"}
        ),
    ),
    "two alternatives": (
        "E0502",
        lambda p: a_node(p)["inputs"][0]["arg"].update(as_int=3),
    ),
    "a newer schema": ("E0503", lambda p: p["schema_version"].update(major=99)),
    "an older schema": ("E0503", lambda p: p["schema_version"].update(major=1)),
    "an unknown value": (
        "E0507",
        lambda p: a_node(p)["inputs"][0].update(arg={"as_tensor": {"name": "nothing"}}),
    ),
    "a name twice": (
        "E0507",
        lambda p: a_node(p, 2).update(outputs=copy.deepcopy(a_node(p)["outputs"])),
    ),
    "another shape than the result's": (
        "E0507",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["v3"]["sizes"].__setitem__(
            1, {"as_int": 9}
        ),
    ),
    "another dtype than the result's": (
        "E0507",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["v3"].update(dtype=8),
    ),
    "an argument that no row reads": (
        "E0504",
        lambda p: a_node(p)["inputs"].append({"name": "odd", "arg": {"as_int": 1}}),
    ),
    "an operator that has no rule for complex tensors": (
        "E0501",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["x"].update(dtype=10),
    ),
    "a size that no dimension is": (
        "E0505",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["v1"]["sizes"].__setitem__(
            0, {"as_expr": {"expr_str": "sqrt(n)"}}
        ),
    ),
    "a size that is no expression": (
        "E0507",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["v1"]["sizes"].__setitem__(
            0, {"as_expr": {"expr_str": "2 +* n"}}
        ),
    ),
    "a size that is too deep": (
        "E0506",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["v1"]["sizes"].__setitem__(
            0, {"as_expr": {"expr_str": "(" * 5000 + "n" + ")" * 5000}}
        ),
    ),
    "a weight of another shape": (
        "E0508",
        lambda p: p["graph_module"]["graph"]["tensor_values"]["w_a_w"]["sizes"].__setitem__(
            0, {"as_int": 5}
        ),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_program_is_refused(case):
    code, change = BAD[case]
    g, y = perceptron()
    program = g.program(y)
    text = change(program)
    if not isinstance(text, str):
        text = json.dumps(program)
    with pytest.raises(rl.UserError, match=code):
        _core.import_torch(text, g.weights)


def test_graphs_in_graphs_have_a_bound():
    inner = part(lambda p: [p.input("a", (3,))])
    g = TorchGraph()
    a, c = g.input("a", (3,)), g.input("c", (), "bool")
    (y,) = g.node("higher_order.cond", [c, inner, inner, [a]], [(3,)])
    program = g.program(y)
    graph = deep = program["graph_module"]["graph"]
    for _ in range(40):
        node = {
            **graph["nodes"][0],
            "inputs": [{"name": "", "arg": {"as_graph": {"name": "p", "graph": deep}}}],
        }
        deep = {**graph, "nodes": [node]}
    program["graph_module"]["graph"] = deep
    with pytest.raises(rl.UserError, match="E0506"):
        _core.import_torch(json.dumps(program), {})


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("E0502", {"archive_format": b"aoti"}),
        ("E0503", {"archive_version": b"7"}),
        ("E0504", {"byteorder": b"big"}),
        ("E0502", {"models/model.json": b"[1, 2"}),
        ("E0515", {"models/other.json": b"{}"}),
        ("E0508", {"data/weights/weight_0": b"123"}),
        ("E0508", {"data/weights/model_weights_config.json": b'{"config": {}}'}),
        ("E0502", {"data/weights/model_weights_config.json": b'{"config": []}'}),
    ],
)
def test_a_bad_archive_is_refused(tmp_path, code, files):
    g, y = perceptron()
    path = tmp_path / "bad.pt2"
    path.write_bytes(g.archive(y, files=files))
    fails(code, "compile", path, "-o", tmp_path / "bad.so", mentions=["bad.pt2"])


def test_a_weight_without_elements_is_named(tmp_path):
    g, y = perceptron()
    whole, path = tmp_path / "whole.pt2", tmp_path / "bad.pt2"
    whole.write_bytes(g.archive(y))
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith("weights/weight_0"):
                target.writestr(entry, source.read(entry))
    said = ["lacks the elements of", "an entry 'data/weights/weight_0'"]
    fails("E0508", "compile", path, "-o", tmp_path / "bad.so", mentions=said)


def test_a_program_of_several_is_chosen_by_name():
    g, y = perceptron()
    other = g.program(y)
    data = g.archive(y, files={"models/other.json": json.dumps(other).encode()})
    mod, _ = rl.frontend.from_exported_program(data, model="model")
    assert len(mod["main"].params) == 1
    with pytest.raises(rl.UserError, match=r"E0515.*several programs"):
        rl.frontend.from_exported_program(data)


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"),
    [([4, 3], [3, 1], 1), ([4, 3], [-3, 1], 0), ([4, 3], [1 << 62, 1], 0), ([4, 3], [3], 0)],
)
def test_strides_stay_within_their_file(sizes, strides, offset):
    g, y = perceptron()
    whole = [{"as_int": s} for s in sizes], [{"as_int": s} for s in strides]
    meta = {
        "dtype": 7,
        "sizes": whole[0],
        "strides": whole[1],
        "storage_offset": {"as_int": offset},
        "layout": 7,
    }
    config = {
        "config": {
            n: {
                "path_name": f"weight_{i}",
                "use_pickle": False,
                "tensor_meta": meta if n == "a.w" else None,
            }
            for i, n in enumerate(g.weights)
        }
    }
    data = g.archive(
        y, files={"data/weights/model_weights_config.json": json.dumps(config).encode()}
    )
    with pytest.raises(rl.UserError, match="E0508"):
        rl.frontend.from_exported_program(data)


def test_a_weight_may_lie_by_strides():
    g = TorchGraph()
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = g.node(
        "aten.add.Tensor", {"self": g.input("x", (4, 3)), "other": g.weight("w", w.T)}, (4, 3)
    )
    meta = {
        "dtype": 7,
        "sizes": [{"as_int": 4}, {"as_int": 3}],
        "strides": [{"as_int": 1}, {"as_int": 4}],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }
    config = {"config": {"w": {"path_name": "weight_0", "use_pickle": False, "tensor_meta": meta}}}
    data = g.archive(
        y,
        files={
            "data/weights/weight_0": w.tobytes(),
            "data/weights/model_weights_config.json": json.dumps(config).encode(),
        },
    )
    np.testing.assert_array_equal(run(data, np.zeros((4, 3), np.float32))[0], w.T)


def test_damaged_archives_end_in_messages():
    """Bytes and fields that are changed at random give a program or a user's error, and nothing else."""
    g, y = perceptron()
    data = g.archive(y)
    draw = random.Random(11)
    refused = 0
    for _ in range(150):
        bad = bytearray(data)
        for _ in range(draw.choice([1, 1, 4])):
            at = draw.randrange(len(bad))
            bad[at] = draw.randrange(256)
        if draw.random() < 0.3:
            bad = bad[: draw.randrange(len(bad))]
        try:
            rl.frontend.from_exported_program(bytes(bad))
        except rl.UserError:
            refused += 1
    assert refused > 50


def test_changed_fields_end_in_messages():
    g, y = perceptron()
    text = json.dumps(g.program(y))
    draw = random.Random(12)
    values = [
        None,
        True,
        -1,
        1 << 62,
        1e308,
        "",
        "x",
        [],
        {},
        [[]],
        {"as_int": 0},
        {"as_none": True},
    ]

    def fields(node, path=()):
        items = (
            node.items()
            if isinstance(node, dict)
            else enumerate(node)
            if isinstance(node, list)
            else ()
        )
        for key, value in items:
            yield (*path, key)
            yield from fields(value, (*path, key))

    refused = 0
    for _ in range(300):
        program = json.loads(text)
        path = draw.choice(list(fields(program)))
        at = program
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = draw.choice(values)
        try:
            _core.import_torch(json.dumps(program), g.weights)
        except rl.UserError:
            refused += 1
    assert refused > 100
