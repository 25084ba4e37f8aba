"""Lists and other data in and out of programs that are loaded from files."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import relay

TEXT = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
type Tree[A] { Fork(Tree[A], A, Tree[A]), Leaf }
def @flat(%t: Tree[float32], %rest: List[float32]) -> List[float32] {
  match (%t) {
    Fork(%l, %x, %r) => @flat(%l, Cons(%x, @flat(%r, %rest))),
    Leaf => %rest,
  }
}
def @first(%l: List[float32]) -> Option[float32] { match (%l) { Cons(%x, _) => Some(%x), Nil => None } }
def @main[n: Dim](%t: Tree[float32], %m: Tensor[(n, 2), float32], %r: ref(float32)) {
  let %all = @flat(%t, Nil);
  let %u = ref_write(%r, 7f);
  (%all, @first(%all), (%t, %m))
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    mod = relay.parse(TEXT)
    path = tmp_path_factory.mktemp("loaded") / "data.so"
    built = relay.build(mod)
    built.export_library(path)
    return mod, built, path


def plain(value):
    """Arrays as numbers and lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


def test_a_loaded_program_takes_and_gives_data(program):
    mod, built, path = program
    loaded = relay.runtime.load_module(path)
    tree = relay.adt.types(mod).Tree
    value = tree.Fork(tree.Fork(tree.Leaf(), 1.0, tree.Leaf()), 2.0, tree.Leaf())
    matrix = np.float32([[1, 2], [3, 4], [5, 6]])
    for exe in (built, loaded):
        cell = relay.RefValue(np.float32(0))
        flat, first, (same, copy) = exe(value, matrix, cell)
        assert plain(flat) == [1, 2] and float(first) == 1 and float(cell.value) == 7
        assert isinstance(same, tree.Fork) and same == value
        np.testing.assert_array_equal(copy, matrix)
        assert plain(exe.run("flat", value, [5.0])) == [1, 2, 5]
        assert exe(tree.Leaf(), matrix, cell)[:2] == ([], None)


def test_what_does_not_fit_is_said_as_before_the_file(program):
    mod, built, path = program
    loaded = relay.runtime.load_module(path)
    leaf = relay.adt.types(mod).Tree.Leaf()
    bad = [
        (leaf, ["a"]),
        (leaf, [1.0, [2.0]]),
        (leaf, 3.0),
        (3.0, []),
        (relay.ConstructorValue("Fork", []), []),
    ]
    for arguments in bad:
        messages = []
        for exe in (built, loaded):
            with pytest.raises(relay.UserError, match="E0603") as problem:
                exe.run("flat", *arguments)
            messages.append(str(problem.value))
        assert messages[0] == messages[1]


def test_a_function_of_python_in_a_process_of_its_own(tmp_path):
    @relay.function
    def total(xs: list[int], by: int) -> list[int]:
        return [x * by for x in xs]

    path = tmp_path / "total.so"
    total.export_library(path)
    code = "import relay, sys; print([int(x) for x in relay.runtime.load_module(sys.argv[1])([1, 2, 3], 5)])"
    out = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert out.stdout.split("\n")[0] == "[5, 10, 15]"


def test_programs_of_tensors_say_nothing_more(tmp_path):
    x = relay.var("x", shape=(2,))
    relay.build(relay.Function([x], x + x)).export_library(tmp_path / "plain.so")
    assert b'"interface"' not in (tmp_path / "plain.so").read_bytes()
