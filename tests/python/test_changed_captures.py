"""Functions within a function that change what they captured: the help makes the program Python's."""

from __future__ import annotations

import numpy as np
import pytest

import relay

GRAPH = [[1, 2], [3], [], [], [0]]


def marks(n: int, edges: list[list[int]]):
    seen = np.zeros(n, bool)

    def visit(v):
        if not seen[v]:
            seen[v] = True
            for w in edges[v]:
                visit(w)

    visit(0)
    return seen


def marks_as_helped(n: int, edges: list[list[int]]):
    seen = np.zeros(n, bool)

    def visit(v, seen):
        if seen[v]:
            return seen
        seen = seen.copy()
        seen[v] = True
        for w in edges[v]:
            seen = visit(w, seen)
        return seen

    seen = visit(0, seen)
    return seen


def table(n: int):
    known = np.zeros(50, "int64") - 1

    def fib(k):
        if k < 2:
            return k
        if known[k] < 0:
            known[k] = fib(k - 1) + fib(k - 2)
        return known[k]

    return fib(n)


def table_as_helped(n: int):
    known = np.zeros(50, "int64") - 1

    def fib(k, known):
        if k < 2:
            return k, known
        if known[k] >= 0:
            return known[k], known
        a, known = fib(k - 1, known)
        b, known = fib(k - 2, known)
        known = known.copy()
        known[k] = a + b
        return a + b, known

    value, known = fib(n, known)
    return value


def pushed(n: int) -> int:
    out = [0]

    def push(k):
        out.append(k)

    push(n)
    return len(out)


def pushed_as_helped(n: int) -> int:
    out = [0]

    def push(k, out):
        out.append(k)

    push(n, out)
    return len(out)


@pytest.mark.parametrize(
    ("refused", "helped", "advice", "arguments"),
    [
        (marks, marks_as_helped, "visit(..., seen)", (5, GRAPH)),
        (table, table_as_helped, "fib(..., known)", (30,)),
        (pushed, pushed_as_helped, "push(..., out)", (3,)),
    ],
)
def test_what_is_captured_is_made_a_parameter(refused, helped, advice, arguments):
    with pytest.raises(relay.UserError) as problem:
        relay.function(refused)(*arguments)
    assert problem.value.code == "E0904"
    assert f"make it a parameter: {advice}" in str(problem.value)
    # As Python has it, and as the function was meant.
    wanted = refused(*arguments)
    np.testing.assert_array_equal(helped(*arguments), wanted)
    np.testing.assert_array_equal(relay.function(helped)(*arguments), wanted)


def test_a_recursion_changes_a_copy():
    def half_helped(n: int, edges: list[list[int]]):
        seen = np.zeros(n, bool)

        def visit(v, seen):
            seen[v] = True
            for w in edges[v]:
                if not seen[w]:
                    visit(w, seen)

        visit(0, seen)
        return seen

    with pytest.raises(relay.UserError, match=r"E0904(.|\n)*calls itself") as problem:
        relay.function(half_helped)(5, GRAPH)
    advice = "change a copy (seen = seen.copy()), return it, and assign what the call returns"
    assert advice in str(problem.value)


def test_a_table_by_numbers_is_no_dictionary():
    def memo(n: int) -> int:
        known = {}

        def fib(k):
            if k in known:
                return known[k]
            return k

        return fib(n)

    with pytest.raises(relay.UserError, match=r"E0906(.|\n)*a table by numbers is an array"):
        relay.function(memo)(3)
