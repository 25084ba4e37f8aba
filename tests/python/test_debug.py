"""`relay debug`: sessions from a pipe and in a pseudo-terminal, and --find-nan."""

from __future__ import annotations

import subprocess

import numpy as np
import onnx
import pexpect
import pytest
from command_line import RELAY, fails, relay, relay_json
from onnx import TensorProto, helper, numpy_helper

PROGRAM = """#[version = "0.0.5"]
def @half(%v: Tensor[(2, 3), float32]) {
  let %w = multiply(%v, 0.5f);
  subtract(%w, 1f)
}
def @main(%x: Tensor[(2, 3), float32]) {
  let %a = @half(%x);
  let %b = nn.relu(%a);
  let %c = log(%b);
  let %d = @half(%c);
  nn.softmax(%d, axis=1)
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("debug") / "net.relay"
    path.write_text(PROGRAM)
    np.save(path.parent / "x.npy", np.array([[4, 6, 8], [2, 5, 3]], np.float32))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """log of a difference that is negative in one place, behind a dense layer."""
    path = tmp_path_factory.mktemp("debug") / "net.onnx"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="fc"),
        helper.make_node("Sub", ["h", "b"], ["s"], name="shift"),
        helper.make_node("Log", ["s"], ["l"], name="logarithm"),
        helper.make_node("Softmax", ["l"], ["y"], name="weights"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [
            numpy_helper.from_array(np.ones((3, 4), np.float32), "w"),
            numpy_helper.from_array(np.array([0, 0, 5, 0], np.float32), "b"),
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def session(path, commands: str, *words: object, check: bool = True) -> list[str]:
    """What a session prints for these commands, one a line."""
    done = subprocess.run(
        [RELAY, "debug", path, *map(str, words)],
        input=commands.replace("; ", "\n"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == (0 if check else 1), done.stderr + done.stdout
    assert done.stderr == "", done.stderr
    return done.stdout.splitlines()


def x_of(program):
    return "--input", f"x={program.parent / 'x.npy'}"


def test_steps_enter_functions_and_next_passes_them(program):
    # The calls of the program: multiply, subtract, nn.relu, log, multiply, subtract, nn.softmax.
    stepped = session(program, "step; step; step", *x_of(program))[1:]
    assert [line.split()[:3] for line in stepped] == [
        ["#0", "multiply", "net.relay:3:12"],
        ["#1", "subtract", "net.relay:4:3"],
        ["#2", "nn.relu", "net.relay:8:12"],
    ]
    passed = session(program, "break log; continue; next", *x_of(program))
    assert passed[-1].startswith("#6  nn.softmax  net.relay:11:3 ->")
    finished = session(program, "break multiply; continue; finish", *x_of(program))
    assert finished[-1].startswith("#2  nn.relu ")


def test_back_repeats_the_run_up_to_the_call_before(program):
    lines = session(program, "step 4; back; back 2; step; back 2", *x_of(program), check=False)
    calls = [line.split()[1] for line in lines if line.startswith("#")]
    assert calls == ["log", "nn.relu", "multiply", "subtract"]
    assert "there is no call before this one" in "\n".join(lines)


def test_breakpoints_by_line_function_and_value(program):
    def stops(what: str) -> list[str]:
        lines = session(program, f"break {what}; " + "continue; " * 9, *x_of(program), check=False)
        return [line.split()[0] for line in lines if line.startswith("#")]

    assert stops(":9") == ["#3"]
    assert stops("multiply") == ["#0", "#4"]
    assert stops("@half") == ["#0", "#4"]
    assert stops("inf") == ["#3", "#4", "#5"]
    assert stops("nan") == []
    assert stops("range -10 1.5") == ["#0", "#1", "#2", "#3", "#4", "#5"]
    assert stops("shape 2,3")[:2] == ["#0", "#1"]
    assert stops("shape 7") == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("break nn.dense", "the program has no operator, node or line"),
        ("break :2", "the next one is in line 3"),
        ("break @other", "the program has no function"),
        ("break range a 1", "is not a number"),
        ("delete 3", "there is no breakpoint"),
        ("print", "no call has been made"),
        ("step 0", "is not a number of calls"),
        ("bogus", "`help` lists the commands"),
        ("step; print in 7", "the call has no in 7"),
        ("step; print %zz", "%zz has no value here"),
    ],
)
def test_a_wrong_command_is_answered_and_the_session_goes_on(program, command, message):
    lines = "\n".join(session(program, command + "; help", *x_of(program), check=False))
    assert message in lines
    assert "error[E0704]" in lines
    assert "End the session" in lines


def test_values_variables_and_the_way_to_a_call_are_shown(program):
    lines = session(
        program,
        "step 2; print %v; print %w; where; list; print in 0; print out",
        *x_of(program),
    )
    text = "\n".join(lines)
    assert "%v: Tensor[(2, 3), float32]: min 2, max 8, mean 4.667" in text
    assert "%w: Tensor[(2, 3), float32]: min 1, max 4, mean 2.333" in text
    assert "in @half, called at net.relay:7:12" in text
    assert "in @main" in text
    assert "->    4    subtract(%w, 1f)" in text
    assert "  [1, 2, 3, 0, 1.5, 0.5]" in text


def test_a_failing_call_can_be_looked_at(tmp_path):
    path = tmp_path / "bad.relay"
    path.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(?,), float32], %y: Tensor[(?,), float32]) {\n"
        "  let %e = exp(%x);\n  add(%e, %y)\n}\n"
    )
    inputs = "--input", "x=[1,2]", "--input", "y=[1,2,3]"
    lines = session(path, "continue; where; print in 1; back", *inputs, check=False)
    assert lines[1].startswith("error[E02")
    assert "#1  add  bad.relay:4:3" in lines
    assert "  [1, 2, 3]" in lines
    assert lines[-1].startswith("#0  exp  bad.relay:3:12 ->")


def test_compiled_programs_are_stepped_kernel_by_kernel(model):
    lines = session(model, "step; print; where; into; continue")
    assert any(line.startswith("#0  fused_") for line in lines)
    text = "\n".join(lines)
    assert "in 0   Tensor[(2, 3), float32]" in text
    assert "computes fc (MatMul)" in text
    assert "Tensor[(2, 4), float32]" in text
    assert "the run is over" in text
    stopped = session(model, "break logarithm; continue; where")
    assert "logarithm (Log)" in "\n".join(stopped)


def test_tensors_of_a_call_are_saved(program, tmp_path):
    path = tmp_path / "call.npz"
    session(program, f"step; save {path}", *x_of(program))
    saved = np.load(path)
    assert sorted(saved) == ["in0", "in1", "out0"]
    np.testing.assert_array_equal(saved["out0"], 0.5 * np.load(program.parent / "x.npy"))
    lines = "\n".join(session(program, f"step; save {path}", *x_of(program), check=False))
    assert "E0703" in lines


def test_a_terminal_completes_names(program):
    child = pexpect.spawn(
        RELAY, ["debug", str(program)], encoding="utf-8", timeout=30, dimensions=(40, 160)
    )
    child.expect("debug> ")
    child.send("break nn.soft\t\r")
    child.expect("breakpoint 1: nn.softmax")
    child.send("c\r")
    child.expect("#6  nn.softmax")
    child.send("q\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.parametrize("executor", ["eval", "vm"])
def test_the_first_nan_is_named_and_its_inputs_are_saved(model, tmp_path, executor):
    folder = tmp_path / "found"
    x = tmp_path / "x.npy"
    np.save(x, np.ones((2, 3), np.float32))
    done = relay(
        *("debug", model, "--find-nan", "--executor", executor, "--input", f"x={x}"),
        *("--output", folder),
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "NaN     log, logarithm (Log), of call" in done.stdout
    saved = np.load(folder / "inputs.npz")
    assert len(saved) == 1
    np.testing.assert_array_equal(next(iter(saved.values())), [[3, 3, -2, 3]] * 2)
    again = relay("run", folder / "program.relay", "--input", folder / "inputs.npz")
    assert "NaN" in again.stdout


def test_numbers_that_come_in_are_not_held_against_an_operator(model, tmp_path):
    x = tmp_path / "x.npy"
    np.save(x, np.array([[9, 9, np.nan], [9, 9, 9]], np.float32))
    report = relay_json("debug", model, "--find-nan", "--input", f"x={x}")
    assert report["found"] == []
    assert report["inputs"] == {"nan": 1, "infinite": 0}
    assert report["results"]["nan"] == 4


def test_what_cannot_be_debugged_is_refused(program, model, tmp_path):
    compiled = tmp_path / "net.so"
    relay("compile", model, "-o", compiled)
    fails("E0702", "debug", compiled, mentions=["is compiled"])
    fails("E0702", "debug", program, "--output", tmp_path, mentions=["--find-nan"])
    fails("E0702", "diff", compiled, mentions=["is compiled"])
    fails(
        "E0702",
        "diff",
        program,
        "--against",
        "nothing",
        errors=2,
        mentions=["there is no reference 'nothing'"],
    )
