"""What runs are given: scalars, lists, shapes, arrays and archives, alike for every kind of file."""

import json
import re

import numpy as np
import onnx
import pytest
from command_line import fails, model, relay, relay_json, value
from hosts import HOSTS
from onnx import TensorProto, helper

OPEN = """#[version = "0.0.5"]
def @main[n: Dim](%x: Tensor[(n, 3), float32], %y: Tensor[(n,), float32], %k: int64, %b: bool) {
  (nn.relu(%x), exp(%y), abs(%k), if (%b) { 1f } else { 2f })
}
def @same[n: Dim](%x: Tensor[(n, 3), float32]) { %x }
"""
SAME = """#[version = "0.0.5"]
def @main[n: Dim](%x: Tensor[(n, 3), float32]) { %x }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same function as text, compiled, and nearly the same as an ONNX model."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "open.relay").write_text(OPEN)
    relay("compile", folder / "open.relay", "-o", folder / "open.so")
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Exp", ["y"], ["c"]),
        helper.make_node("Abs", ["k"], ["d"]),
        helper.make_node("Not", ["b"], ["e"]),
    ]
    inputs = [value("x", ["n", 3]), value("y", ["n"])]
    inputs += [value("k", [], TensorProto.INT64), value("b", [], TensorProto.BOOL)]
    outputs = [value("a", ["n", 3]), value("c", ["n"])]
    outputs += [value("d", [], TensorProto.INT64), value("e", [], TensorProto.BOOL)]
    onnx.save(model(nodes, inputs, outputs), folder / "open.onnx")
    return folder


FILES = ("open.relay", "open.so", "open.onnx")


def results(files, tmp_path, file, *given):
    """The outputs of a run in order."""
    options = [word for text in given for word in ("--input", text)]
    report = relay_json("run", files / file, *options, "--output", tmp_path / file)
    return [np.load(tmp_path / file / f"{o['name']}.npy") for o in report["outputs"]]


@pytest.mark.parametrize("file", FILES)
def test_scalars_and_lists_are_values(files, tmp_path, file):
    given = ("k=-5", "b=false", "y=[0, 1.5]", "x=[[1,-2,3],[-4,5,6]]")
    relu, exp, size, flag = results(files, tmp_path, file, *given)
    np.testing.assert_array_equal(relu, np.float32([[1, 0, 3], [0, 5, 6]]))
    np.testing.assert_allclose(exp, np.exp(np.float32([0, 1.5])), rtol=1e-6)
    assert size.shape == () and size == 5
    assert flag == (True if file == "open.onnx" else 2)


@pytest.mark.parametrize("file", FILES)
def test_one_number_is_the_value_of_a_scalar_and_the_size_of_a_list(files, tmp_path, file):
    outputs = results(files, tmp_path, file, "k=7", "y=4")
    assert outputs[2] == 7 and outputs[1].shape == (4,) and outputs[0].shape == (4, 3)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("file", FILES)
def test_archives_give_one_or_all_inputs(files, tmp_path, file, save):
    x = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    save(tmp_path / "all.npz", x=x, y=np.zeros(4, np.float32), k=np.int64(-3), b=np.True_)
    save(tmp_path / "one.npz", x)
    outputs = results(files, tmp_path, file, str(tmp_path / "all.npz"))
    np.testing.assert_array_equal(outputs[0], np.maximum(x, 0))
    assert outputs[2] == 3
    for name in ("all", "one"):
        again = tmp_path / name
        again.mkdir()
        outputs = results(files, again, file, f"x={tmp_path}/{name}.npz")
        np.testing.assert_array_equal(outputs[0], np.maximum(x, 0))


def test_archives_name_inputs_that_begin_with_a_slash(tmp_path):
    graph = [helper.make_node("Relu", ["/encoder/x"], ["y"])]
    inputs, outputs = [value("/encoder/x", [2])], [value("y", [2])]
    onnx.save(model(graph, inputs, outputs), tmp_path / "m.onnx")
    np.savez_compressed(tmp_path / "in.npz", **{"/encoder/x": np.float32([-1, 2])})
    relay("run", tmp_path / "m.onnx", "--input", tmp_path / "in.npz", "--output", tmp_path / "out")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), [0, 2])


@pytest.mark.parametrize("file", FILES)
def test_arrays_are_converted_where_nothing_is_lost(files, tmp_path, file):
    np.save(tmp_path / "half.npy", np.float16([[1, -2, 3]]))
    np.save(tmp_path / "short.npy", np.int16([[1, -2, 3]]))
    np.save(tmp_path / "k.npy", np.uint32(2**32 - 1))
    for x in ("half", "short"):
        folder = tmp_path / x
        folder.mkdir()
        out = results(files, folder, file, f"x={tmp_path}/{x}.npy", f"k={tmp_path}/k.npy")
        np.testing.assert_array_equal(out[0], np.float32([[1, 0, 3]]))
        assert out[2] == 2**32 - 1
    for dtype in (np.float64, np.int32, np.bool_):
        np.save(tmp_path / "wide.npy", np.zeros((1, 3), dtype))
        given = ("--input", f"x={tmp_path}/wide.npy")
        mentions = ("'x'", "float32", np.dtype(dtype).name)
        fails("E0603", "run", files / file, *given, mentions=mentions)


@pytest.mark.parametrize("executor", ["vm", "eval"])
@pytest.mark.parametrize(
    ("given", "code", "mentions"),
    [
        ("k=2.5", "E0702", ["'k'", "int64", "'2.5'"]),
        ("k=99999999999999999999", "E0702", ["'k'", "int64"]),
        ("b=1", "E0702", ["'b'", "bool", "'1'"]),
        ("k=true", "E0702", ["'k'", "'true'"]),
        ("y=[1e39]", "E0702", ["'y'", "float32", "'1e39'"]),
        ("y=[16777217]", "E0702", ["'y'", "float32", "'16777217'"]),
        ("x=[[1,2,3],[4,5]]", "E0702", ["rows differ in length"]),
        ("x=[[1,2,3],4]", "E0702", ["rows differ"]),
        ("x=[[], [[1]]]", "E0702", ["rows differ"]),
        ("x=[[1,2,3]", "E0702", ["brackets"]),
        ("x=[1,,2]", "E0702", ["missing"]),
        ("x=[1 2]", "E0702", ["comma"]),
        ("x=[1,2,3]", "E0603", ["'x'", "(n, 3)"]),
        ("y=1.5", "E0603", ["'y'", "(n,)"]),
        ("z=[1]", "E0510", ["'z' does not exist", "x, y, k, b"]),
        ("z=1", "E0510", ["'z' does not exist", "x, y, k, b"]),
        ("x=5", "E0510", ["'x'", "rank"]),
    ],
)
def test_wrong_values_name_the_input(files, executor, given, code, mentions):
    run = ("run", files / "open.relay", "--executor", executor, "--input", given)
    fails(code, *run, mentions=mentions)


def test_an_input_is_given_once(files, tmp_path):
    np.savez(tmp_path / "a.npz", y=np.zeros(2, np.float32))
    for given in ("y=3", "y=[1,2]", str(tmp_path / "a.npz"), f"y={tmp_path}/a.npz"):
        options = ("--input", "y=[1]", "--input", given)
        fails("E0702", "run", files / "open.so", *options, mentions=("'y' is given twice",))
    options = ("--input", "x=2,3", "--input", "x=3,3")
    fails("E0702", "compile", files / "open.relay", "-o", tmp_path / "a.so", *options)


def test_values_are_not_for_the_compiler(files, tmp_path):
    options = ("-o", tmp_path / "a.so", "--input", "y=[1,2]")
    fails("E0702", "compile", files / "open.relay", *options, mentions=("is not a shape",))


def test_damaged_archives(files, tmp_path):
    np.savez_compressed(tmp_path / "whole.npz", x=np.ones((4, 3), np.float32))
    whole = (tmp_path / "whole.npz").read_bytes()
    bad = tmp_path / "bad.npz"
    for keep in (0, 10, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:keep])
        fails("E0701", "run", files / "open.so", "--input", bad, mentions=("bad.npz",))
    for place in range(0, len(whole), 7):
        bytes_ = bytearray(whole)
        bytes_[place] ^= 0x55
        bad.write_bytes(bytes_)
        done = relay("run", files / "open.so", "--input", bad, check=False)
        assert done.returncode == (1 if "error[E" in done.stderr else 0), done.stderr


@pytest.mark.parametrize("file", FILES)
def test_open_sizes_stay_open_and_what_is_invented_is_said(files, file):
    for command in (("run",), ("bench", "--repeat=1")):
        text = relay(*command, files / file, "--input", "k=1").stdout
        assert "3 inputs not given: random values (seed 0)" in text
        assert "dimension n is 1 in them; --dim n=SIZE sets another size" in text
        report = relay_json(*command, files / file, "--dim", "n=6")
        assert report["invented_sizes"] == {"n": 6}
        for given in ("x=6,3", "y=6"):
            report = relay_json(*command, files / file, "--input", given)
            assert "invented_sizes" not in report, "said by the other input"
    assert relay_json("run", files / file, "--dim", "n=6")["outputs"][0]["shape"] == [6, 3]


@pytest.mark.parametrize("file", ["open.relay", "open.onnx"])
def test_the_program_that_is_measured_is_the_one_that_is_deployed(files, tmp_path, file):
    host = HOSTS[0]  # every machine runs its code
    relay("compile", files / file, "-o", tmp_path / "a.so", host=host)
    compiled = relay_json("explain", tmp_path / "a.so", host=host)["kernels"]
    assert relay_json("explain", files / file, host=host)["kernels"] == compiled
    assert (
        "dimension n is open; --input NAME=SHAPE fixes it" in relay("explain", files / file).stdout
    )


@pytest.mark.parametrize(
    ("dim", "mentions"),
    [
        ("m=2", ["'m'", "n"]),
        ("n", ["NAME=SIZE"]),
        ("n=-1", ["NAME=SIZE"]),
        ("n=x", ["NAME=SIZE"]),
    ],
)
def test_wrong_dimensions(files, dim, mentions):
    for command in ("run", "bench"):
        fails("E0702", command, files / "open.so", "--dim", dim, mentions=mentions)


def test_dimensions_that_the_inputs_say_otherwise(files):
    options = ("--input", "x=4,3", "--dim", "n=5")
    fails("E0702", "run", files / "open.so", *options, mentions=("'n'", "4", "5"))
    fails("E0702", "run", files / "open.so", "--dim", "n=4", "--dim", "n=5", mentions=("twice",))


def test_a_result_may_be_an_input(files, tmp_path):
    (tmp_path / "same.relay").write_text(SAME)
    relay("compile", tmp_path / "same.relay", "-o", tmp_path / "same.so")
    for command in (("run",), ("bench", "--repeat=2", "--profile", "--json")):
        relay(*command, files / "open.relay", "--function", "same", "--input", "x=4,3")
        for file in ("same.relay", "same.so"):
            relay(*command, tmp_path / file, "--input", "x=4,3")


def test_a_rate_says_what_is_counted(tmp_path):
    """Minimal filtering does fewer operations than the operator defines."""
    (tmp_path / "conv.relay").write_text(
        """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 64, 56, 56), float32]) {
  nn.conv2d(%x, ones(shape=[64, 64, 3, 3], dtype="float32"), padding=[1, 1])
}
"""
    )
    few = "of which some kernels execute fewer"
    assert few in relay("run", tmp_path / "conv.relay").stdout
    relay("compile", tmp_path / "conv.relay", "-o", tmp_path / "conv.so")
    bench = ("bench", tmp_path / "conv.so", "--repeat=1")
    assert few in relay(*bench, "--profile", "--trace", tmp_path / "t.json").stdout
    for report in (relay_json("run", tmp_path / "conv.so"), relay_json(*bench)):
        assert few in report["counting"]
    explained = relay("explain", tmp_path / "conv.so").stdout
    assert re.search(r"MFLOP as defined, [\d.]+ executed", explained)
    kernels = json.loads(relay("explain", tmp_path / "conv.so", "--json").stdout)["kernels"]
    assert any(k["arithmetic"] == 0.25 for k in kernels)
    (tmp_path / "dense.relay").write_text(
        """#[version = "0.0.5"]
def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) { nn.dense(%x, %w) }
"""
    )
    report = relay_json("run", tmp_path / "dense.relay")
    assert report["counting"] == "operations as the operators define them"
