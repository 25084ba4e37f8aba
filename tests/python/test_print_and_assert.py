"""print and assert in compiled code: what they say, in order, once, and through every pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY

import relay

ROOT = Path(__file__).resolve().parents[2]


def said(capsys, function, *args):
    """What a function prints when it is compiled, when it is evaluated, and in Python."""
    compiled = function(*args)
    out = capsys.readouterr().out
    if hasattr(function, "python"):
        expected = function.python(*args)
        assert capsys.readouterr().out.splitlines() == out.splitlines()
        if isinstance(expected, (int, float, np.ndarray)):
            np.testing.assert_allclose(compiled, expected)
        evaluated = relay.create_executor("debug", function.lower(*args).module).evaluate()
        evaluated(*args)
        assert capsys.readouterr().out == out
    return out


@relay.function
def collatz(n: int) -> int:
    print("from", n)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        print(n, end=" ")
        steps += 1
    print()
    return steps


def test_a_loop_prints_in_order(capsys):
    assert said(capsys, collatz, 3) == "from 3\n10 5 16 8 4 2 1 \n"


@relay.function
def noisy(n: int) -> int:
    print("noisy", n)
    return n + 1


@relay.function
def calls(n: int) -> int:
    a = noisy(n)
    print("between")
    b = noisy(a)
    noisy(b)
    return a * b


def test_calls_print_when_they_are_made(capsys):
    assert said(capsys, calls, 1) == "noisy 1\nbetween\nnoisy 2\nnoisy 3\n"


@relay.function
def ways(n: int) -> int:
    print("start")
    if n > 3:
        print("big", n)
        if n > 100:
            print("huge")
            return -1
        n = n - 3
    else:
        print("small")
    m = noisy(n) if n > 1 else n
    if n == 0 or noisy(m) > 4:
        print("or")
    for i in range(n):
        if i == 2:
            print("leave")
            break
        print(i, end=";")
    for label in ("a", "b", "c"):
        m = int(noisy(m))
        if m == 4:
            continue
        if m > 6:
            print("far")
            break
        print(label, m)
    print("end", n, m)
    return n + m


@pytest.mark.parametrize("n", [0, 2, 5, 200])
def test_every_way_prints_what_python_prints(capsys, n):
    said(capsys, ways, n)


@relay.function
def countdown(n: int) -> int:
    print(n)
    if n == 0:
        return 0
    below = countdown(n - 1)
    print("back", n)
    return below + n


@relay.function
def nested(n: int) -> int:
    def walk(i):
        print("walk", i)
        return 0 if i == 0 else walk(i - 1) + i

    total = walk(n)
    print("total", total)
    return total


@relay.function
def is_even(n: int) -> bool:
    print("even", n)
    return True if n == 0 else is_odd(n - 1)


@relay.function
def is_odd(n: int) -> bool:
    print("odd", n)
    return False if n == 0 else is_even(n - 1)


@pytest.mark.parametrize("function", [countdown, nested, is_even])
def test_recursion_prints(capsys, function):
    said(capsys, function, 3)


@relay.function
def listed(n: int) -> int:
    values = [int(noisy(i)) for i in range(n)]
    print("values", values, sep=": ")
    match n:
        case 0:
            print("none")
        case k if noisy(k) > 2:
            print("guard")
        case _:
            print("other")
    return n


@pytest.mark.parametrize("n", [0, 1, 3])
def test_lists_and_matches_print(capsys, n):
    said(capsys, listed, n)


@relay.function
def values(x, n: int):
    print("x", x, (n, [1.5, "two"]), {"a": n}, None, True, sep=" | ")
    print(f"{n} of {x.shape[0]}: {'known'!r:>8}, {x.dtype}, {2:03d}")
    return x


def test_what_values_look_like(capsys):
    values(np.array([[1, 0.1], [1e-5, 1e16]], "float32"), 3)
    assert capsys.readouterr().out == (
        "x | [[1.0, 0.1], [1e-05, 1e+16]] | (3, [1.5, 'two']) | {'a': 3} | None | True\n"
        "3 of 2:  'known', float32, 002\n"
    )


@relay.function
def show(x):
    print(x)
    return x


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_numbers_are_written_as_python_writes_them(capsys, dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(50) * 10.0 ** rng.integers(-3, 3, 50)).astype(dtype)
    show(x)
    text = capsys.readouterr().out.strip()
    read = np.array(eval(text), dtype)
    assert np.array_equal(read, x)
    if dtype == "float64":
        assert text == str(x.tolist())
    show(np.array([np.nan, np.inf, -np.inf, -0.0, 0.5], "float32"))
    assert capsys.readouterr().out == "[nan, inf, -inf, -0.0, 0.5]\n"


def test_large_tensors_are_cut(capsys):
    show(np.arange(4000).reshape(2, 2000))
    ends = "[0, 1, 2, ..., 1997, 1998, 1999], [2000, 2001, 2002, ..., 3997, 3998, 3999]"
    assert capsys.readouterr().out == f"[{ends}]\n"
    show(np.zeros((0, 3), "float32"))
    assert capsys.readouterr().out == "[]\n"


# ---- Assertions


@relay.function
def root(x):
    assert x >= 0, f"no root of {x}"
    return np.sqrt(x)


def test_an_assertion_says_what_is_wrong_and_where():
    assert root(np.float32(4)) == 2
    line = root.node.body[0].lineno
    for run in (root, relay.create_executor("debug", root.lower(np.float32(1)).module).evaluate()):
        with pytest.raises(
            relay.RunError, match=r"E0616.*assertion failed: no root of -1\.5 \("
        ) as e:
            run(np.float32(-1.5))
        assert f"test_print_and_assert.py:{line})" in str(e.value)


@relay.function
def first_negative(x):
    for i in range(x.shape[0]):
        print("at", i)
        assert x[i] >= 0
    return x


def test_what_is_behind_a_failed_assertion_does_not_happen(capsys):
    with pytest.raises(relay.RunError, match=r"assertion failed: x\[i\] >= 0 \("):
        first_negative(np.array([1, -1, 2]))
    assert capsys.readouterr().out == "at 0\nat 1\n"


def test_what_cannot_be_printed_is_refused():
    with pytest.raises(relay.UserError, match=r"print has no 'file'"):
        relay.function(_to_a_file)(1)
    with pytest.raises(relay.UserError, match="the format of a value"):
        relay.function(_in_a_format)(np.float32(1))
    with pytest.raises(relay.UserError, match="print shows tensors"):
        relay.function(_of_a_function)(1)


def _to_a_file(x):
    print(x, file=None)
    return x


def _in_a_format(x):
    print(f"{x:.3f}")
    return x


def _of_a_function(x):
    print(lambda y: y)
    return x


# ---- Passes

PROGRAM = """
#[version = "0.0.5"]
def @twice(%x: float32) -> float32 {
  let %a = debug.print(("twice ", %x));
  multiply(%x, 2f)
}
def @main(%x: float32, %n: int32) -> float32 {
  let %a = debug.print(("same",));
  let %b = debug.print(("same",));
  let %y = @twice(%x);
  let %unused = @twice(%y);
  let %c = debug.check(less(%n, 9), ("n is ", %n));
  let %z = if (greater(%n, 3)) {
    let %d = debug.print(("big",), newline=False);
    let %e = debug.print((" number",));
    add(%y, 1f)
  } else {
    let %f = debug.print(("small",));
    %y
  };
  add(%z, %y)
}
"""
EXPECTED = {
    1: "same\nsame\ntwice 2.5\ntwice 5.0\nsmall\n",
    5: "same\nsame\ntwice 2.5\ntwice 5.0\nbig number\n",
}


def test_effects_survive_every_pass(capsys):
    mod = relay.parse(PROGRAM)
    x, passes = np.float32(2.5), [name for name, *_ in relay._core.pass_rows()]
    changed = {"": mod}
    for name in passes:
        try:
            changed[name] = getattr(relay.transform, name)()(mod)
        except (relay.UserError, AttributeError, TypeError):
            continue
    assert len(changed) > 25
    for name, after in changed.items():
        if str(after["main"].checked_type) != str(mod["main"].checked_type):
            continue  # a batch, or in the form of continuations
        for n, text in EXPECTED.items():
            run = relay.create_executor("debug", after).evaluate()
            assert float(run(x, np.int32(n))) == (11 if n > 3 else 10)
            assert capsys.readouterr().out == text, name


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_effects_survive_the_compiler(capsys, level):
    exe = relay.build(relay.parse(PROGRAM), opt_level=level)
    for n, text in EXPECTED.items():
        exe(np.float32(2.5), np.int32(n))
        assert capsys.readouterr().out == text
    with pytest.raises(relay.RunError, match=r"E0616.*n is 9"):
        exe(np.float32(2.5), np.int32(9))
    assert capsys.readouterr().out == "same\nsame\ntwice 2.5\ntwice 5.0\n"


@relay.function
def lossy(w):
    print("loss of", w)
    assert w > 0, "positive"
    return w * w * 3.0


@relay.function
def descent(w):
    return relay.grad(lossy)(w)


def test_a_gradient_prints_what_the_function_prints(capsys):
    w = np.float32(2)
    assert relay.grad(lossy)(w) == 12
    assert capsys.readouterr().out == "loss of 2.0\n"
    assert descent(w) == 12
    assert capsys.readouterr().out == "loss of 2.0\n"
    with pytest.raises(relay.RunError, match=r"E0616.*positive"):
        relay.grad(lossy)(np.float32(-1))


def test_the_lanes_of_a_batch_print_one_after_the_other(capsys):
    x = np.array([1, 2, 3], "float32")
    assert relay.vmap(lossy)(x).tolist() == [3, 12, 27]
    assert capsys.readouterr().out == "loss of 1.0\nloss of 2.0\nloss of 3.0\n"
    with pytest.raises(relay.RunError, match=r"E0616.*positive"):
        relay.vmap(lossy)(-x)


# ---- Outside of Python


def test_a_compiled_file_prints_where_it_is_run(tmp_path):
    model = tmp_path / "noisy.relay"
    model.write_text(PROGRAM)
    inputs = ["--input", "x=2.5", "--input", "n=5", "-q"]
    library = tmp_path / "noisy.so"
    run = [RELAY, "compile", model, "-o", library, "-q"]
    subprocess.run(run, check=True, capture_output=True)
    for what in (model, library):
        done = subprocess.run(
            [RELAY, "run", what, *inputs], check=True, capture_output=True, text=True
        )
        assert done.stdout.startswith(EXPECTED[5]) and done.stdout.count("big") == 1
        as_json = subprocess.run(
            [RELAY, "run", what, *inputs, "--json"], check=True, capture_output=True, text=True
        )
        assert as_json.stdout.startswith("{") and as_json.stderr.startswith(EXPECTED[5])
    load = f"run = relay.runtime.load_module({str(library)!r})"
    code = f"import relay, numpy as np; {load}; run(np.float32(2.5), np.int32(5))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == EXPECTED[5]
