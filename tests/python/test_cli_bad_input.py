"""What a user can get wrong, a case each: one paragraph with the error's code and what to do, exit
code 1, no crash, and no output file, whole or in part."""

import _ctypes
import random
import struct
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_line import PROGRAM, fails, model, relay, small_model, value
from onnx import TensorProto, helper


@pytest.fixture
def here(tmp_path):
    """A folder with program.relay and model.onnx; the test must leave no out.so there."""
    (tmp_path / "program.relay").write_text(PROGRAM)
    onnx.save(small_model(), tmp_path / "model.onnx")
    yield tmp_path
    assert not list(tmp_path.glob("out*"))


@pytest.fixture
def artifact(here):
    relay("compile", here / "program.relay", "-o", here / "p.so", "--target", "x86-64-v2")
    return here / "p.so"


def compile_fails(code, here, name, **kwargs):
    return fails(code, "compile", here / name, "-o", here / "out.so", **kwargs)


def test_missing_file(here):
    compile_fails("E0701", here, "nowhere.onnx", mentions=["nowhere.onnx"])
    fails("E0701", "run", here / "nowhere.so")
    fails("E0701", "check", here)


@pytest.mark.parametrize("keep", [0, 1, 10, 200, -1])
def test_truncated_model(here, keep):
    whole = (here / "model.onnx").read_bytes()
    (here / "cut.onnx").write_bytes(whole[: keep if keep >= 0 else len(whole) - 1])
    compile_fails("E0502", here, "cut.onnx", mentions=["cut.onnx"])


def test_damaged_models_never_crash(here):
    """Bytes changed anywhere: either still a model, or an error of the front end."""
    whole = (here / "model.onnx").read_bytes()
    dice = random.Random(3)
    for _ in range(25):
        bytes_ = bytearray(whole)
        for _ in range(dice.choice([1, 3, 20])):
            bytes_[dice.randrange(len(bytes_))] = dice.randrange(256)
        (here / "bad.onnx").write_bytes(bytes_)
        done = relay("check", here / "bad.onnx", check=False)
        assert done.returncode in (0, 1), (done.returncode, done.stderr)
        assert done.returncode == 0 or "error[E" in done.stderr + done.stdout


def test_not_a_model(here):
    (here / "bad.onnx").write_bytes(random.Random(1).randbytes(5000))
    compile_fails("E0502", here, "bad.onnx")


def test_unknown_operators_are_all_listed(here):
    nodes = [
        helper.make_node("Whirl", ["x"], ["a"], "first_node"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Twist", ["b"], ["c"], "second_node"),
        helper.make_node("Whirl", ["c"], ["y"], "third_node"),
    ]
    onnx.save(model(nodes, [value("x", [2])], [value("y", [2])]), here / "u.onnx")
    compile_fails(
        "E0501",
        here,
        "u.onnx",
        mentions=["Whirl", "Twist", "first_node", "second_node", "third_node"],
        errors=2,
    )


@pytest.mark.parametrize(
    ("given", "mentions"),
    [
        ({"y": (2, 3)}, ["'y'", "x"]),
        ({"x": (2, 4)}, ["x", "(2, 3)", "(2, 4)"]),
        ({"x": (2, 3, 1)}, ["x"]),
    ],
)
def test_wrong_input_name_or_shape(here, artifact, given, mentions):
    for name, shape in given.items():
        np.save(here / "in.npy", np.zeros(shape, np.float32))
        message = ("--input", f"{name}={here}/in.npy")
        code = "E0510" if name == "y" else "E0603"
        fails(code, "run", artifact, *message, "--output", here / "out", mentions=mentions)


def test_wrong_input_dtype(here, artifact):
    np.save(here / "in.npy", np.zeros((2, 3), np.float64))
    fails(
        "E0603",
        "run",
        artifact,
        "--input",
        f"x={here}/in.npy",
        "--output",
        here / "out",
        mentions=["x", "float32", "float64"],
    )


def test_wrong_inputs_are_all_named(here, artifact):
    np.save(here / "in.npy", np.zeros((7, 7), np.float32))
    given = [f"--input={name}={here}/in.npy" for name in "xw"]
    fails("E0603", "run", artifact, *given, mentions=["'x'", "'w'"], errors=2)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"hello", b"\x93NUMPY\x01\x00\xff\xff{"])
def test_damaged_array_file(here, artifact, content):
    (here / "in.npy").write_bytes(content)
    done = relay("run", artifact, "--input", f"x={here}/in.npy", check=False)
    assert done.returncode == 1 and "error[E" in done.stderr and "in.npy" in done.stderr


def test_damaged_artifacts(here, artifact):
    whole = artifact.read_bytes()
    bad = here / "bad.so"
    for keep in (4, 64, 1000, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:keep])
        fails("E0608", "run", bad)
    dice = random.Random(5)
    for _ in range(25):
        bytes_ = bytearray(whole)
        for _ in range(3):
            bytes_[dice.randrange(4, len(bytes_))] ^= 1 << dice.randrange(8)
        bad.write_bytes(bytes_)
        for command in (["show", bad, "--bytecode"], ["check", bad]):
            done = relay(*command, check=False)
            assert done.returncode == 1, (done.returncode, done.stderr)
            assert "error[E0608]" in done.stderr or "error[E0609]" in done.stderr, done.stderr


def test_check_of_an_artifact(here, artifact):
    done = relay("check", artifact)
    assert "p.so is an intact artifact" in done.stdout and "functions 1" in done.stdout
    (here / "copy.so").write_bytes(artifact.read_bytes())
    assert (
        relay("check", here / "copy.so").stdout.split("\n", 1)[1] == done.stdout.split("\n", 1)[1]
    )
    fails("E0702", "check", artifact, "--input", "x=1")


def test_foreign_shared_object(here):
    (here / "bad.so").write_bytes(Path(_ctypes.__file__).read_bytes())
    fails("E0608", "run", here / "bad.so")
    (here / "bad.so").write_bytes(b"\x7fELF" + struct.pack("<60x"))
    fails("E0608", "run", here / "bad.so")


@pytest.mark.parametrize(
    ("place", "code"),
    [("nowhere.bin", "E0509"), ("../elsewhere.bin", "E0509"), ("/etc/passwd", "E0509")],
)
def test_external_data(here, place, code):
    inside = here / "sub"
    inside.mkdir()
    (here / "elsewhere.bin").write_bytes(bytes(4 * 3))
    tensor = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=place)
    node = helper.make_node("Add", ["x", "w"], ["y"], "add")
    made = model([node], [value("x", [3])], [value("y", [3])], [tensor])
    (inside / "e.onnx").write_bytes(made.SerializeToString())
    fails(
        code,
        "compile",
        inside / "e.onnx",
        "-o",
        here / "out.so",
        mentions=["w", place.split("/")[-1]],
    )


def test_external_data_through_a_link(here):
    inside = here / "sub"
    inside.mkdir()
    (here / "elsewhere.bin").write_bytes(bytes(4 * 3))
    (inside / "link.bin").symlink_to(here / "elsewhere.bin")
    tensor = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="link.bin")
    node = helper.make_node("Add", ["x", "w"], ["y"], "add")
    made = model([node], [value("x", [3])], [value("y", [3])], [tensor])
    (inside / "e.onnx").write_bytes(made.SerializeToString())
    fails("E0509", "compile", inside / "e.onnx", "-o", here / "out.so")


def test_overflowing_dimension(here):
    node = helper.make_node("Relu", ["x"], ["y"], "relu")
    huge = [2**62, 2**62]
    onnx.save(model([node], [value("x", huge)], [value("y", huge)]), here / "huge.onnx")
    done = relay("compile", here / "huge.onnx", "-o", here / "out.so", check=False)
    assert done.returncode == 1 and "error[E" in done.stderr
    (here / "huge.relay").write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(4611686018427387904, 4), float32]) { reshape(%x, newshape=[-1]) }\n"
    )
    done = relay("compile", here / "huge.relay", "-o", here / "out.so", check=False)
    assert done.returncode == 1 and "error[E" in done.stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--target", "z80"), "E0403"),
        (("--target", "llvm -mtriple=mips64-linux-gnu"), "E0403"),
        (("--target", "llvm -keys=rocm"), "E0403"),
        (("--target", "llvm -mattr=+neon"), "E0403"),
        (("--disable-pass", "FuseOpps"), "E0301"),
        (("--input", "data"), "E0702"),
        (("--input", "data=1,x"), "E0702"),
        (("--input", "dada=1,3,10,10"), "E0510"),
    ],
)
def test_wrong_options(here, args, code):
    fails(code, "compile", here / "model.onnx", "-o", here / "out.so", *args)


OPEN = """#[version = "0.0.5"]
def @main[n: Dim](%x: Tensor[(n, 3), float32], %y: Tensor[(n,), float32], %k: int64) {
  (nn.relu(%x), exp(%y), abs(%k))
}
"""


@pytest.mark.parametrize("file", ["open.relay", "open.so"])
@pytest.mark.parametrize(
    ("given", "code", "mentions"),
    [
        ("x=hello", "E0702", ["'hello'"]),
        ("z=4,3", "E0510", ["'z' does not exist", "x, y, k"]),
        ("x=4", "E0510", ["'x' has another rank", "(4,)"]),
        ("x=4,4", "E0510", ["'x'", "size", "(4, 4)"]),
        ("x=4,3:int32", "E0510", ["'x' has another dtype", "int32"]),
        ("k=5,", "E0510", ["'k' has another rank"]),
    ],
)
def test_what_is_given_for_an_input_is_checked(here, file, given, code, mentions):
    (here / "open.relay").write_text(OPEN)
    if file == "open.so":
        relay("compile", here / "open.relay", "-o", here / "open.so")
    for command in ("run", "bench", "explain"):
        fails(code, command, here / file, "--input", given, mentions=mentions)
    if file == "open.relay":
        for command in ("check", "opt", "show"):
            fails(code, command, here / file, "--input", given, mentions=mentions)
        fails(code, "compile", here / file, "-o", here / "out.so", "--input", given)


@pytest.mark.parametrize("file", ["open.relay", "open.so"])
def test_shapes_are_used_for_every_kind_of_file(here, file):
    (here / "open.relay").write_text(OPEN)
    relay("compile", here / "open.relay", "-o", here / "open.so")
    given = ("--input", "x=4,3", "--input", "y=4:float32")
    assert "(4, 3)" in relay("run", here / file, *given).stdout
    relay("bench", here / file, "--repeat=1", *given)
    wrong = relay("run", here / file, "--input", "x=4,3", "--input", "y=5", check=False)
    assert wrong.returncode == 1 and ("E0510" in wrong.stderr or "E0603" in wrong.stderr)


def test_a_shape_given_to_compile_is_that_of_the_program(here):
    (here / "open.relay").write_text(OPEN)
    relay("compile", here / "open.relay", "-o", here / "f.so", "--input", "x=4,3")
    shown = relay("show", here / "f.so").stdout
    assert "x: Tensor[(4, 3), float32]" in shown and "y: Tensor[(4,), float32]" in shown


@pytest.mark.parametrize("option", ["--opt-level=1", "--disable-pass=Foo"])
@pytest.mark.parametrize("command", ["run", "bench", "explain", "show"])
def test_options_of_compilation_are_refused_for_what_is_compiled(artifact, command, option):
    name = option.split("=")[0]
    fails("E0702", command, artifact, option, mentions=(f"{name} does not apply to a compiled",))
    # The target names a version of what is compiled.
    fails("E0623", command, artifact, "--target=foo", mentions=("has no version 'foo'",))


def test_output_that_cannot_be_written(here):
    fails("E0611", "compile", here / "model.onnx", "-o", here / "no" / "such" / "folder.so")


def test_no_such_function_or_pass(here, artifact):
    fails("E0612", "run", artifact, "--function", "mian", mentions=["main"])
    fails("E0301", "opt", here / "program.relay", "--passes", "FuseOpps", mentions=["FuseOps"])


@pytest.mark.parametrize("cpu", ["bdver4", "knl", "sapphirerapids"])
def test_artifact_for_another_cpu(here, cpu):
    """No machine of today has all of what these have."""
    # The model has constants to fold, which must not need the other CPU.
    relay("compile", here / "model.onnx", "-o", here / "p.so", "--target", f"llvm -mcpu={cpu}")
    done = relay("run", here / "p.so", check=False)
    if done.returncode == 0:
        pytest.skip(f"this machine runs code for {cpu}")
    fails("E0610", "run", here / "p.so", mentions=["--target"])


def test_artifact_of_another_version(here, artifact):
    """The version is the first number of the footer, whose 152 bytes end the file."""
    bytes_ = bytearray(artifact.read_bytes())
    assert bytes_.endswith(b"RELAYART")
    struct.pack_into("<I", bytes_, len(bytes_) - 152, 99)
    (here / "new.so").write_bytes(bytes_)
    fails("E0609", "run", here / "new.so", mentions=["version"])
    struct.pack_into("<I", bytes_, len(bytes_) - 152, 5)
    (here / "old.so").write_bytes(bytes_)
    fails("E0609", "run", here / "old.so", mentions=["format version 5, written by relay 0."])
