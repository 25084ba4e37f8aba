"""The prompt: entries from a pipe, and lines that are edited in a pseudo-terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
from command_line import RELAY
from onnx import TensorProto, helper, save

ROOT = Path(__file__).resolve().parents[2]


def answers(text: str, *words: object, check: bool = True) -> tuple[list[str], str]:
    """The lines that the prompt prints for these entries, and its messages."""
    done = subprocess.run(
        [RELAY, "repl", *map(str, words)], input=text, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == (0 if check else 1), done.stderr
    return done.stdout.splitlines(), done.stderr


def test_definitions_values_and_expressions_are_kept():
    out, errors = answers("""
def @twice(%x: int32) { %x + %x }
let %a = @twice(21)
%a * 2
%b: float32 = 1.5f;
%b
let %c = 3; %c + %a
type Tree { Leaf(int32), Fork(Tree, Tree) }
def @sum(%t: Tree) -> int32 {
  match (%t) {
    Leaf(%n) => %n,
    Fork(%l, %r) => @sum(%l) + @sum(%r)
  }
}
let %t = Fork(Leaf(1), Fork(Leaf(2), Leaf(3)))
@sum(%t)
let %f = fn (%x: int32) { %x + %a }
%f(1)
let %r = ref(1)
ref_write(%r, 5)
ref_read(%r)
""")
    assert errors == ""
    assert out == [
        "@twice: fn (int32) -> int32",
        "%a: int32 = 42",
        "84 : int32",
        "%b: float32 = 1.5",
        "1.5 : float32",
        "45 : int32",
        "type Tree",
        "@sum: fn (Tree) -> int32",
        "%t: Tree = Fork(Leaf(1), Fork(Leaf(2), Leaf(3)))",
        "6 : int32",
        "%f: fn (int32) -> int32 = <fn: fn (int32) -> int32>",
        "43 : int32",
        "%r: ref(int32) = ref(1)",
        "() : ()",
        "5 : int32",
    ]


def test_an_error_leaves_the_session_as_it_was():
    out, errors = answers(
        """
def @f(%x: int32) { %x + 1 }
def @f(%x: int32) { %x + nothing }
@f(1)
type T { A(int32) }
let %v = A(1)
type T { A(int32), B }
%v
let %g = fn (%x: int32) { @f(%x) }
let %h = fn (%x: int32) { %g(%x) }
let %g = 1
:clear @f
:clear %nothing
:nothing
def @prompt() { 1 }
@f(41)
def @f(%x: int32) { 1f }
""",
        check=False,
    )
    assert out == [
        "@f: fn (int32) -> int32",
        "2 : int32",
        "type T",
        "%v: T = A(1)",
        "type T",
        "%v is forgotten: it is of the old type",
        "%g: fn (int32) -> int32 = <fn: fn (int32) -> int32>",
        "%h: fn (int32) -> int32 = <fn: fn (int32) -> int32>",
        "42 : int32",
        "@f: fn (int32) -> float32",
        "%h is forgotten: it does not fit the new definition",
        "%g is forgotten: it does not fit the new definition",
    ]
    for says in (
        "error[E0105]",
        "prompt:2:26",
        "%v is not bound",
        "%g is part of %h",
        "%h uses @f",
        "the session has no '%nothing'",
        "there is no command ':nothing'",
        "@prompt is the session's own name",
    ):
        assert says in errors, says
    # A definition that others use is not forgotten.
    out, errors = answers(
        "def @f() { 1 }\ndef @g() { @f() }\n:clear @f\n:clear @g\n:clear @f\n:list\n", check=False
    )
    assert out == ["@f: fn () -> int32", "@g: fn () -> int32"] and errors.count("error[") == 1


def test_commands_show_what_the_compiler_does():
    out, errors = answers("""
def @g(%x: float32) { sin(%x) * %x }
def @other() { 1 }
:type fn (%x: float32) { @g(%x) }
:ast 1 + 2
:grad @g
:opt @g
let %x = ones(shape=[3], dtype="float32")
:plan exp(%x) + 1f
:tir exp(%x) + 1f
:asm exp(%x)
:time @g(2f)
:doc nn.dense
:list
:help
""")
    assert errors == ""
    text = "\n".join(out)
    assert "fn (float32) -> float32" in out
    assert "def @g_gradient(%x: float32) -> (float32, (float32,)) {" in out
    assert "  %2 = cos(%x);" in out
    assert "def @other" not in text
    assert "plan prompt(x: Tensor[(3,), float32])" in text
    assert "# fused_exp_add" in text and "ret" in text
    assert "a run takes" in text and "(minimum of 1000)" in text
    assert "  units: int = None  Columns of the result." in out
    assert any(line.startswith(":load FILE") for line in out)


def test_files_are_loaded_first(tmp_path):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model, text = tmp_path / "m.onnx", tmp_path / "p.relay"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), model)
    text.write_text('#[version = "0.0.5"]\n// Adds one.\ndef @inc(%x: int32) { %x + 1 }\n')
    out, errors = answers(
        '@main(negative(ones(shape=[1, 3], dtype="float32")))\n@inc(1)\n', text, model
    )
    assert errors == ""
    assert out[0] == "@inc: fn (int32) -> int32" and out[1].startswith("@main: fn (Tensor[(1, 3)")
    assert out[2:] == ["[[0, 0, 0]] : Tensor[(1, 3), float32]", "2 : int32"]
    done = subprocess.run(
        [RELAY, "repl", tmp_path / "no.relay"], capture_output=True, text=True, input=""
    )
    assert done.returncode == 1 and "E0701" in done.stderr


def test_limits_end_an_entry():
    loop = "def @loop(%i: int32) -> int32 { @loop(%i + 1) }\n@loop(1)\n1 + 1\n"
    out, errors = answers(loop, "--fuel", 1000, check=False)
    assert "E0606" in errors and out[-1] == "2 : int32"
    for entries in (loop, loop.replace("\n@loop(1)", "\n:time @loop(1)")):
        out, errors = answers(entries, "--time-limit", 2, check=False)
        assert "E0615" in errors and "E0304" not in errors, errors
        assert out[-1] == "2 : int32"


def test_limits_end_the_reading_of_a_file(tmp_path):
    text = tmp_path / "long.relay"
    lines = "".join(f"  let %x{i + 1} = %x{i} * %x{i};\n" for i in range(100_000))
    text.write_text(f'#[version = "0.0.5"]\ndef @f(%x0: float32) {{\n{lines}  %x100000\n}}\n')
    done = subprocess.run(
        [RELAY, "repl", "--time-limit", "0.02", text], capture_output=True, text=True, input=""
    )
    assert done.returncode == 1 and "E0304" in done.stderr


@pytest.mark.skipif(
    subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout.count("libedit")
    == 0,
    reason="libedit is not installed",
)
def test_lines_are_edited_on_a_terminal(tmp_path):
    child = pexpect.spawn(
        RELAY,
        ["repl"],
        encoding="utf-8",
        dimensions=(24, 80),
        env={"TERM": "xterm", "HOME": str(tmp_path)},
        timeout=30,
    )
    child.expect("relay> ")
    child.sendline("def @f(%x: int32) {")
    child.expect(r"\.\.\.> ")
    child.sendline("  %x + 1 }")
    child.expect("@f: fn")
    child.expect("relay> ")
    child.sendline("@f(41)")
    child.expect("42 : int32")
    child.expect("relay> ")
    child.send("nn.log_sof\t")  # completed
    child.expect("tmax")
    child.send("\x15\x1b[A")  # the line is deleted; the entry before
    child.expect(r"@f\(41\)")
    child.sendline("")
    child.expect("42 : int32")
    child.expect("relay> ")
    child.sendline("def @loop(%i: int32) -> int32 { @loop(%i + 1) }")
    child.expect("relay> ")
    child.sendline("@loop(1)")
    time.sleep(0.3)
    child.sendintr()
    child.expect("cancelled")
    child.expect("relay> ")
    child.sendline("2 + 2")
    child.expect("4 : int32")
    child.expect("relay> ")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    history = tmp_path / ".local/state/relay/history"
    assert "loop" in history.read_text() and history.stat().st_mode & 0o77 == 0


def test_python_has_the_prompt():
    program = (
        "import relay\n"
        "relay.register_op('mylib.twice', lambda x: x + x)\n"
        "relay.repl()\nprint('behind')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="mylib.twice(21)\n:quit\n",
        capture_output=True,
        text=True,
    )
    assert done.stdout == "42 : int32\nbehind\n", done.stderr
