"""What ends a run: code, place in the source, and what to do, on the evaluator and in compiled code."""

from __future__ import annotations

import re

import numpy as np
import pytest
from command_line import fails
from command_line import relay as command

import relay

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
# The pattern is matched in two steps.
LIST = """#[version = "0.0.5"]
type Numbers { End, Of(int32, Numbers, Tensor[(2,), float32], Colour) }
type Colour { Red }
def @only(%l: Numbers) -> int32 {
  match? (%l) {
    Of(%h, End, _, _) => %h,
  }
}
def @main(%n: int32) -> int32 {
  let %v = ones(shape=[2]);
  let %y = @only(Of(1, Of(%n, End, %v, Red), %v, Red));
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

TRACE = """#[version = "0.0.5"]
def @main[n: Dim](%x: Tensor[(n,), float32]) {
  let %y = exp(debug.trace(negative(%x), label="the sign's change"));
  sum(debug.trace(%y))
}
"""
# What is called is neither inlined nor a loop.
DEEP = """#[version = "0.0.5"]
type Colour { Red, Green(int32), Blue }
def @depth(%c: Colour, %n: int32) -> int32 {
  if (greater(%n, 0)) { add(@depth(%c, subtract(%n, 1)), 1) } else {
    match? (%c) { Red => 1, Green(%m) => %m }
  }
}
def @main(%n: int32) -> int32 {
  let %y = @depth(Blue, %n);
  add(%y, 1)
}
"""
EVALUATED, COMPILED = ["--executor", "eval"], ["--executor", "vm"]
EXECUTORS = {"eval": EVALUATED, "native": COMPILED, "interpreted": [*COMPILED, "--no-native"]}

# The program, its inputs, the code, and what the message says in all executors.
FAILURES = {
    "match": (
        COLOURS,
        ["--input", "x=-1"],
        "E0607",
        [":4:3", "found:    Blue\n", "add a clause for it"],
    ),
    "field": (
        COLOURS.replace("Green(%n) => %n", "Blue => 2"),
        ["--input", "x=7"],
        "E0607",
        ["found:    Green(7)\n"],
    ),
    "list": (LIST, ["--input", "n=5"], "E0607", [":5:3", "Of(5, End, Tensor[(2,), float32], _)"]),
    "sizes": (
        SIZES,
        ["--input", "x=[1,2]", "--input", "y=[1,2,3]"],
        "E0",
        [":3:12", "add", "2", "3"],
    ),
    "fuel": (FUEL, ["--input", "i=1", "--fuel", "1000"], "E0606", ["1000", "raise the limit"]),
    "check": (CHECK, ["--input", "n=12"], "E0616", ["n is 12", ":3:12"]),
}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_says_where_it_is_and_what_to_do(kind, executor, tmp_path):
    text, inputs, code, mentions = FAILURES[kind]
    program = tmp_path / "p.relay"
    program.write_text(text)
    if code == "E0":  # the type relation's own error on the evaluator, a check in compiled code
        code = "E0203" if executor == "eval" else "E0607"
        mentions = [*mentions, "2 and 3" if executor != "eval" else "(2,) and (3,)"]
    fails(code, "run", program, *inputs, *EXECUTORS[executor], mentions=mentions)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_print_writes_the_value(executor, tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(PRINT)
    done = command("run", program, "--input", "n=12", *EXECUTORS[executor])
    assert done.stdout.splitlines()[0] == "n is 12"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_trace_writes_the_value_and_gives_it_on(executor, tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(TRACE)
    done = command("run", program, "--input", "x=[0,0]", *EXECUTORS[executor])
    assert done.stdout.splitlines()[:2] == [
        "the sign's change: Tensor[(2,), float32] = [-0.0, -0.0]",
        "Tensor[(2,), float32] = [1.0, 1.0]",
    ]
    assert re.search(r"^output0 .* 2$", done.stdout, re.MULTILINE)


def test_gradients_pass_through_a_trace(capfd):
    mod = relay.parse(TRACE.replace("[n: Dim]", "").replace("(n,)", "(2,)"))
    gradient = relay.build(relay.transform.gradient(mod.functions["main"], mod))
    _, (slope,) = gradient(np.float32([0, 1]))
    np.testing.assert_allclose(slope, -np.exp(np.float32([0, -1])), rtol=1e-6)
    assert capfd.readouterr().out.count("the sign's change") == 1


def test_a_label_is_ascii(tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(TRACE.replace("sign's", "sign\u2019s"))
    fails("E0801", "check", program, mentions=["printable ASCII"])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("depth", [2, 100])
def test_the_calls_that_led_there_are_named(executor, depth, tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(DEEP)
    words = [*EXECUTORS[executor], "--input", f"n={depth}"]
    mentions = ["Blue", ":5:5", ":4:29", ":9:12" if depth == 2 else ""]
    if executor != "eval":
        mentions += [
            "called by @depth at ",
            "called by @main at " if depth == 2 else "and 97 more calls",
        ]
    message = fails("E0607", "run", program, *words, mentions=mentions)
    calls = 3 if depth == 2 else 4
    assert len(re.findall("called (?:by|from)", message)) == calls
    # A limit is reached in a chain of calls, too.
    fails("E0606", "run", program, *words, "--fuel", "1", mentions=["raise the limit"])
