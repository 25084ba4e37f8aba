"""What ends a run: code, place in the source, and what to do, on the evaluator and in compiled code."""

from __future__ import annotations

import pytest
from command_line import fails, relay

COLOURS = """#[version = "0.0.5"]
type Colour { Red, Green(int32), Blue }
def @name(%c: Colour) -> int32 {
  match? (%c) {
    Red => 1,
    Green(%n) => %n,
  }
}
def @main(%x: int32) -> int32 {
  let %y = @name(if (greater(%x, 0)) { Green(%x) } else { Blue });
  add(%y, 1)
}
"""
SIZES = """#[version = "0.0.5"]
def @main(%x: Tensor[(?,), float32], %y: Tensor[(?,), float32]) {
  let %e = add(%x, %y);
  exp(%e)
}
"""
FUEL = """#[version = "0.0.5"]
def @loop(%i: int32) -> int32 { if (less(%i, 0)) { 0 } else { @loop(add(%i, 1)) } }
def @main(%i: int32) -> int32 { add(@loop(%i), 1) }
"""
CHECK = """#[version = "0.0.5"]
def @main(%n: int32) -> int32 {
  let %a = debug.check(less(%n, 9), ("n is ", %n));
  add(%n, 1)
}
"""
PRINT = """#[version = "0.0.5"]
def @main(%n: int32) -> int32 {
  let %a = debug.print(("n is ", %n));
  add(%n, 1)
}
"""

# The program, its inputs, the code, and what the message says in both executors.
FAILURES = {
    "match": (COLOURS, ["--input", "x=-1"], "E0607", [":4:3", "add a clause for it"]),
    "sizes": (SIZES, ["--input", "x=[1,2]", "--input", "y=[1,2,3]"], "E0", [":3:12", "add"]),
    "fuel": (FUEL, ["--input", "i=1", "--fuel", "1000"], "E0606", ["1000", "raise the limit"]),
    "check": (CHECK, ["--input", "n=12"], "E0616", ["n is 12"]),
}


@pytest.mark.parametrize("executor", ["eval", "vm"])
@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_says_where_it_is_and_what_to_do(kind, executor, tmp_path):
    text, inputs, code, mentions = FAILURES[kind]
    program = tmp_path / "p.relay"
    program.write_text(text)
    if code == "E0":  # the type relation's own error on the evaluator, a check in compiled code
        code = "E0203" if executor == "eval" else "E0607"
    fails(code, "run", program, *inputs, "--executor", executor, mentions=mentions)


@pytest.mark.parametrize("executor", ["eval", "vm"])
def test_print_writes_the_value(executor, tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(PRINT)
    done = relay("run", program, "--input", "n=12", "--executor", executor)
    assert done.stdout.splitlines()[0] == "n is 12"


def test_the_evaluator_names_the_calls_that_led_there(tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(COLOURS)
    fails(
        *("E0607", "run", program, "--input", "x=-1", "--executor", "eval"),
        mentions=["a Blue", "called from here", ":10:12"],
    )
