"""The prelude from Python; what its functions do is compared with Python's own lists."""

import random
from functools import reduce

import pytest
from command_line import relay as command
from test_language_examples import read, same

import relay


def evaluate(tmp_path, program: str):
    """The value of a program, by the evaluator and the VM at both ends of optimisation."""
    file = tmp_path / "program.relay"
    file.write_text('#[version = "0.0.5"]\n' + program)
    values = [
        read(command("run", "-q", *args, file).stdout)
        for args in (["--executor", "eval"], ["--opt-level", "0"], ["--opt-level", "3"])
    ]
    same(values[1], values[0])
    same(values[2], values[0])
    return values[0]


def text(xs) -> str:
    return "".join(f"Cons({x}, " for x in xs) + "Nil" + ")" * len(xs)


SUBTRACT = "fn (%a: int32, %b: int32) -> int32 { %a - 2 * %b }"
PAIR = "fn (%s: int32, %x: int32) -> (int32, int32) { (%s + %x, %s - %x) }"


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_lists(n, tmp_path):
    rng = random.Random(n)
    xs, ys = ([rng.randrange(-50, 50) for _ in range(n)] for _ in range(2))

    def f(a, b):
        return a - 2 * b

    def accumulate(values):
        state, out = 10, []
        for x in values:
            out.append(state - x)
            state += x
        return state, out

    total, made = accumulate(xs)
    cases = [
        ("@length(%xs)", n, "int32"),
        ("@sum(%xs)", sum(xs), "int32"),
        ("@rev(%xs)", xs[::-1], "List[int32]"),
        ("@concat(%xs, %ys)", xs + ys, "List[int32]"),
        ("@zip(%xs, %ys)", list(zip(xs, ys, strict=True)), "List[(int32, int32)]"),
        ("@map(fn (%x: int32) -> int32 { %x * 3 }, %xs)", [3 * x for x in xs], "List[int32]"),
        (
            "@filter(fn (%x: int32) -> bool { %x > 0 }, %xs)",
            [x for x in xs if x > 0],
            "List[int32]",
        ),
        (f"@foldl({SUBTRACT}, 5, %xs)", reduce(f, xs, 5), "int32"),
        (f"@foldr({SUBTRACT}, 5, %xs)", reduce(lambda b, a: f(a, b), xs[::-1], 5), "int32"),
        # The element that is made last stands first, from either side.
        (f"@map_accuml({PAIR}, 10, %xs)", (total, made[::-1]), "(int32, List[int32])"),
        ("@tensor_array_to_list(@tensor_array_from_list(%xs))", xs, "List[int32]"),
    ]
    state, last_first = accumulate(xs[::-1])
    cases.append(
        (f"@map_accumr({PAIR}, 10, %xs)", (state, last_first[::-1]), "(int32, List[int32])")
    )
    if n > 0:
        at = n // 2
        cases += [
            ("@hd(%xs)", xs[0], "int32"),
            ("@tl(%xs)", xs[1:], "List[int32]"),
            (f"@nth(%xs, {at})", xs[at], "int32"),
            (f"@update(%xs, {at}, 99)", [*xs[:at], 99, *xs[at + 1 :]], "List[int32]"),
            (
                f"@foldr1({SUBTRACT}, %xs)",
                reduce(lambda b, a: f(a, b), xs[-2::-1] if n > 1 else [], xs[-1]),
                "int32",
            ),
        ]
    calls = ", ".join(case[0] for case in cases)
    types = ", ".join(case[2] for case in cases)
    value = evaluate(
        tmp_path,
        f"def @main() -> ({types}) {{ let %xs: List[int32] = {text(xs)};"
        f" let %ys: List[int32] = {text(ys)}; ({calls}) }}",
    )
    same(value, tuple(case[1] for case in cases))


def test_functions_options_trees_and_numbers(tmp_path):
    value = evaluate(
        tmp_path,
        """
def @main() -> (int32, int32, int32, List[int32], List[int32], int32, Tree[int32], nat, int32) {
  let %down = fn (%i: int32) -> Option[(int32, int32)] {
    if (%i > 0) { Some((%i - 1, %i)) } else { None }
  };
  let %double = fn (%x: int32) -> int32 { %x * 2 };
  let %less = fn (%x: int32) -> int32 { %x - 1 };
  let %minus = fn (%a: int32, %b: int32) -> int32 { %a - %b };
  let %t = Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil)));
  (@compose(%double, %less)(5), @flip(%minus)(1, 10), @iterate(%double, 4)(@id(1)),
   @unfoldr(%down, 3), @unfoldl(%down, 3), @size(%t), @tmap(%double, %t),
   @nat_add(@nat_double(succ(zero)), succ(zero)),
   @nat_iterate(%double, succ(succ(zero)))(1))
}""",
    )
    rose = ("Rose", 2, [("Rose", 4, []), ("Rose", 6, [("Rose", 8, [])])])
    three = ("succ", ("succ", ("succ", ("zero",))))
    same(value, (8, 9, 16, [3, 2, 1], [1, 2, 3], 4, rose, three, 4))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 21])
def test_arrays(n, tmp_path):
    writes = "".join(
        f"let %a{i + 1} = @tensor_array_write(%a{i}, {i}, {i * i});\n" for i in range(n)
    )
    value = evaluate(
        tmp_path,
        "def @main() -> (int32, List[int32], List[int32]) {\n"
        f"  let %a0 = @tensor_array({n}, -1);\n{writes}"
        f"  let %p = @tensor_array_push(%a{n}, 7);\n"
        "  (@tensor_array_size(%p), @tensor_array_to_list(%p), @tensor_array_to_list(%a0)) }",
    )
    same(value, (n + 1, [i * i for i in range(n)] + [7], [-1] * n))


def test_a_million_elements_on_a_small_stack(tmp_path):
    file = tmp_path / "long.relay"
    file.write_text(
        """#[version = "0.0.5"]
def @range(%n: int32, %xs: List[int32]) -> List[int32] {
  if (%n == 0) { %xs } else { @range(%n - 1, Cons(%n, %xs)) }
}
def @main() -> int32 {
  let %xs = @range(1000000, Nil);
  @foldl(fn (%a: int32, %b: int32) -> int32 { bitwise_xor(%a, %b) }, 0,
         @rev(@map(fn (%x: int32) -> int32 { %x + 1 }, @filter(fn (%x: int32) { %x > 1 }, %xs))))
}"""
    )
    expected = reduce(lambda a, b: a ^ b, range(3, 1000002))
    limited = ["bash", "-c", 'ulimit -s 256 && exec "$0" "$@"']
    same(read(command("run", "-q", file, prefix=limited).stdout), expected)


def test_from_python():
    p = relay.prelude.Prelude()
    xs = p.cons(relay.const(1), p.cons(relay.const(2), p.nil()))
    mod = p.mod.with_function("main", relay.Function([], p.rev(xs)))
    assert mod["main"].checked_type.ret_type == p.l(relay.parse_type("int32"))
    assert {"map", "nat_add", "tensor_array_read"} <= set(mod.functions)
    with pytest.raises(AttributeError, match="no_such"):
        _ = p.no_such


def test_a_module_keeps_its_own_definitions():
    own = relay.parse('#[version = "0.0.5"]\ndef @length(%x: int32) -> int32 { %x }')
    mod = own.import_from_std("prelude.rly")
    assert relay.structural_equal(mod["length"], own["length"])
    assert "map" in mod
    with pytest.raises(relay.UserError, match="has no file"):
        own.import_from_std("more.rly")
