"""Models in which the number of dimensions of something depends on what only a run knows."""

import json
import threading

import numpy as np
import onnxruntime
import pytest
from command_line import fails, relay_json
from command_line import relay as command
from onnx import TensorProto, helper

import relay

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.arange(12, dtype="float32").reshape(2, 6)
LIMIT = 16


def model_of(nodes, inputs, constants=()):
    value = helper.make_tensor_value_info
    tensors = [helper.make_tensor(name, INT64, [len(v)], v) for name, v in constants]
    graph = helper.make_graph(
        nodes, "g", [value(*i) for i in inputs], [value("y", FLOAT, None)], tensors
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def on_list(op, x=(("x", FLOAT, ["n", 6]),), **attrs):
    """An operator with a list of any length as its last input."""
    inputs = [*x, ("k", INT64, ["length"])]
    node = helper.make_node(op, [name for name, *_ in inputs], ["y"], **attrs)
    return model_of([node], inputs).SerializeToString()


def flattened():
    """The first k dimensions of x, the others as one: here the value decides, not its size."""
    nodes = [
        helper.make_node("Shape", ["x"], ["all"]),
        helper.make_node("Slice", ["all", "zero", "k"], ["some"]),
        helper.make_node("Concat", ["some", "rest"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["x", "sizes"], ["y"]),
    ]
    inputs = [("x", FLOAT, ["n", 3, 2]), ("k", INT64, [1])]
    return model_of(nodes, inputs, [("zero", [0]), ("rest", [-1])]).SerializeToString()


def agree(model, calls):
    """Runs the calls compiled and in the evaluator, each twice; returns what is compiled."""
    session = onnxruntime.InferenceSession(model)
    names = [i.name for i in session.get_inputs()]
    mod, _ = relay.frontend.from_onnx(model)
    built = relay.build(mod, opt_level=0, num_threads=1)
    evaluator = relay.create_executor("debug", mod).evaluate()
    for call in [*calls, *calls]:
        inputs = [np.asarray(v, None if len(v) else "int64") for v in call]
        (want,) = session.run(None, dict(zip(names, inputs, strict=True)))
        for program in (built, evaluator):
            got = program(*inputs)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want)
    return built


@pytest.mark.parametrize("op, lists", [
    ("Reshape", [[3, 4], [2, 2, 3], [4, -1], [12]]),
    ("Expand", [[2, 6], [3, 2, 6]]),
    ("Unsqueeze", [[0], [1, 3], [-1]]),
])  # fmt: skip
def test_lists_of_any_length(op, lists):
    built = agree(on_list(op), [(X, k) for k in lists])
    # One program for each length: what the lists hold is read by the kernels, and so is n.
    lengths = len({len(k) for k in lists})
    assert built.cache_info() == (2 * len(lists) - lengths, lengths, LIMIT, lengths)
    built(X, np.asarray(lists[0]))
    assert f"{lengths} of at most 16 programs" in repr(built)


@pytest.mark.parametrize("op, lists", [
    ("Tile", [[2, 1], [1, 3]]),
    ("Pad", [[0, 1, 2, 0]]),
])  # fmt: skip
def test_lists_whose_length_the_data_say(op, lists):
    assert isinstance(agree(on_list(op), [(X, k) for k in lists]), relay.Executable)


@pytest.mark.parametrize("op, attrs", [
    ("Squeeze", {}), ("ReduceSum", {"keepdims": 0}), ("ReduceMax", {"keepdims": 1}),
])  # fmt: skip
def test_axes_of_any_number(op, attrs):
    x = np.arange(6, dtype="float32").reshape(1, 6, 1)
    model = on_list(op, [("x", FLOAT, ["n", "m", 1])], **attrs)
    agree(model, [(x, [0]), (x, [0, 2]), (x, [-1])])


def test_a_shape_alone():
    agree(on_list("ConstantOfShape", []), [([2, 3],), ([4],), ([],)])


def test_an_input_of_any_rank():
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT, None)])
    agree(model.SerializeToString(), [(X,), (X[0],), (X[None],)])


def test_where_only_the_value_decides():
    x = np.arange(24, dtype="float32").reshape(4, 3, 2)
    built = agree(flattened(), [(x, [0]), (x, [1]), (x[:2], [1]), (x, [2])])
    assert built.cache_info().currsize == 3


def test_old_programs_are_let_go():
    program = relay.build(relay.frontend.from_onnx(on_list("Reshape"))[0], opt_level=0)
    for extra in [*range(20), 19, 0]:
        assert program(X, np.array([1] * extra + [12])).ndim == extra + 1
    assert program.cache_info() == (1, 21, LIMIT, LIMIT)


def test_threads_share_the_programs():
    program = relay.build(relay.frontend.from_onnx(on_list("Reshape"))[0], opt_level=0)
    wrong = []

    def call(length):
        for _ in range(20):
            got = program(X, np.array([1] * length + [12]))
            if got.shape != (1,) * length + (12,) or not (got.ravel() == X.ravel()).all():
                wrong.append(length)

    threads = [threading.Thread(target=call, args=(i % 3,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert program.cache_info().currsize == 3


def test_what_no_input_decides_is_refused_in_the_call():
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=INT64),
        helper.make_node("Unique", ["i"], ["sizes"]),
        helper.make_node("Reshape", ["x", "sizes"], ["y"]),
    ]
    model = model_of(nodes, [("x", FLOAT, ["n"])])
    mod, _ = relay.frontend.from_onnx(model.SerializeToString())
    with pytest.raises(relay.UserError, match="E0505"):
        relay.build(mod)(np.ones(4, "float32"))


def test_one_program_is_asked_for_where_there_are_many():
    mod, _ = relay.frontend.from_onnx(on_list("Reshape"))
    program = relay.build(mod)
    with pytest.raises(relay.UserError, match="E0505"):
        program.export_library("x.so")
    # The inputs are the model's, whatever it is that a program is made for.
    x, k = program.input_info()
    assert (x.name, x.dtype, x.shape, x.device) == ("x", "float32", ("n", 6), "cpu")
    assert (k.name, k.dtype, k.shape) == ("k", "int64", ("length",))
    for what in (
        lambda: program.output_info(),
        lambda: program.input_info("other"),
        lambda: relay.optimize(mod),
        lambda: mod["main"],
    ):
        with pytest.raises(relay.UserError, match="E0505"):
            what()
    with pytest.raises(TypeError, match="missing"):
        program(X)
    with pytest.raises(TypeError, match="does not exist"):
        program(X, n=[1])
    program(X, k=np.array([12]))
    assert [slot.name for slot in program.input_info()] == ["x", "k"]


# ---- The command line


@pytest.fixture
def stored(tmp_path):
    def write(model, name="m.onnx"):
        (tmp_path / name).write_bytes(model)
        np.save(tmp_path / "x.npy", X)
        return tmp_path

    return write


def shape_of_result(*args, cwd):
    return relay_json("run", *args, cwd=cwd)["outputs"][0]["shape"]


def test_run_takes_the_values_of_the_run(stored):
    folder = stored(on_list("Reshape"))
    for executor in ("vm", "eval"):
        x = ("m.onnx", "--executor", executor, "--input", "x=x.npy")
        assert shape_of_result(*x, "--input", "k=[3,4]", cwd=folder) == [3, 4]
        assert shape_of_result(*x, "--input", "k=[1,2,6]", cwd=folder) == [1, 2, 6]
    fails("E0505", "run", "m.onnx", cwd=folder, mentions=["'k'", "--specialise k="])


def test_compile_names_the_input(stored):
    folder = stored(on_list("Reshape"))
    fails(
        "E0505", "compile", "m.onnx", "-o", "m.so", cwd=folder, mentions=["'k'", "--specialise k="]
    )
    assert not (folder / "m.so").exists()


def test_one_value_is_main(stored):
    folder = stored(on_list("Reshape"))
    done = command("compile", "m.onnx", "-o", "m.so", "--specialise", "k=[3,4]", cwd=folder)
    assert "main for k of shape (2,)" in done.stdout
    assert shape_of_result("m.so", "--input", "x=x.npy", "--input", "k=[4,3]", cwd=folder) == [4, 3]
    fails("E0603", "run", "m.so", "--input", "x=x.npy", "--input", "k=[12]", cwd=folder)


def test_several_values_are_entry_functions(stored):
    folder = stored(flattened())
    x = np.arange(24, dtype="float32").reshape(4, 3, 2)
    np.save(folder / "x.npy", x)
    made = relay_json("compile", "m.onnx", "-o", "m.so", "--specialise", "k=[0],[2]", cwd=folder)
    assert made["entries"] == [{"function": "main.1", "inputs": {"k": "value [0]"}},
                               {"function": "main.2", "inputs": {"k": "value [2]"}}]  # fmt: skip
    given = ("m.so", "--input", "x=x.npy", "--input")
    assert shape_of_result(*given, "k=[0]", cwd=folder) == [24]
    assert shape_of_result(*given, "k=[2]", cwd=folder) == [4, 3, 2]
    fails("E0707", "run", *given, "k=[1]", cwd=folder, mentions=["k: value [0]; k: value [2]"])
    command("bench", *given, "k=[2]", cwd=folder)

    loaded = relay.runtime.load_module(folder / "m.so")
    assert loaded.function_names == ["main.1", "main.2"]
    np.testing.assert_array_equal(loaded(x, np.array([2])), x)
    np.testing.assert_array_equal(loaded(x, k=np.array([0])), x.ravel())
    with pytest.raises(relay.UserError, match="E0707"):
        loaded(x, np.array([1]))
    # Whoever names the function is told when it is the wrong one.
    with pytest.raises(relay.RelayError, match=r"E0616(?s:.*)'k' = \[2\]"):
        loaded.run("main.2", x, np.array([0]))
    assert [e["function"] for e in json.loads(loaded.metadata)["specialised"]] == [
        "main.1",
        "main.2",
    ]


def test_lists_of_one_length_are_one_program(stored):
    folder = stored(on_list("Reshape"))
    made = relay_json(
        "compile", "m.onnx", "-o", "m.so", "--specialise", "k=[3,4],[4,3],[12]", cwd=folder
    )
    assert [e["inputs"]["k"] for e in made["entries"]] == ["shape (2,)", "shape (1,)"]


@pytest.mark.parametrize("option, mentions", [
    ("k", "INPUT=VALUE"), ("k=", "INPUT=VALUE"), ("k=[1],abc", "INPUT=VALUE"), ("x=1", "nothing depends"),
    ("j=[1]", "nothing depends"), ("k=" + ",".join(["[1]"] * 17), "too many"),
])  # fmt: skip
def test_options_that_say_nothing(stored, option, mentions):
    folder = stored(on_list("Reshape"))
    more = () if option.startswith("k") else ("--specialise", "k=[12]")
    fails("E0702", "compile", "m.onnx", "-o", "m.so", "--specialise", option, *more, cwd=folder,
          mentions=[mentions])  # fmt: skip


def test_explain_says_what_for(stored):
    folder = stored(on_list("Reshape"))
    done = command("explain", "m.onnx", "--specialise", "k=[3,4]", cwd=folder)
    assert "specialised for input k of shape (2,)" in done.stdout
    assert "last 16" in done.stdout
    fails("E0702", "explain", "m.onnx", "--specialise", "k=[3,4],[12]", cwd=folder)


def test_check_says_what_decides(stored):
    folder = stored(flattened())
    (folder / "lists.onnx").write_bytes(on_list("Reshape"))
    for file, want in (("m.onnx", ("k", "value")), ("lists.onnx", ("k", "sizes"))):
        done = command("check", file, "--json", cwd=folder, check=False)
        report = json.loads(done.stdout)
        assert done.returncode == 1
        assert want in [(d["input"], d["by"]) for d in report["specialise"]]
        assert {d["code"] for d in report["diagnostics"]} == {"E0505"}
    done = command("check", "lists.onnx", cwd=folder, check=False)
    assert "a program for each case" in done.stdout
    assert "specialised   sizes of k" in done.stdout
