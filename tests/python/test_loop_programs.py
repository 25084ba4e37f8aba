"""The sixty programs of `make bench-language` at their small size: CPython's results, by one kernel each."""

import sys
from pathlib import Path

import loop_cases
import numpy as np
import pytest

import relay

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import loop_programs
from loop_programs import PROGRAMS, Program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs_compute_what_python_does(program: Program):
    compiled = program.compiled(relay.function)
    arguments = program.arguments("small")
    got, want = compiled(*arguments), program.python(*arguments)
    assert loop_programs.same(got, want), (got, want)
    kernels, reasons = loop_cases.loops_of(compiled, *arguments)
    if program.loops:
        assert kernels >= 1 and reasons == []


def test_there_are_sixty():
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) == 60
    for program in PROGRAMS:
        first, again = program.arguments("small"), program.arguments("small")
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize(
    "got, want, agree",
    [
        (np.int64(3), 3, True),
        (3.0, 3, False),
        (4, 3, False),
        (np.array([1.0, 2.0 + 1e-12]), np.array([1.0, 2.0]), True),
        (np.array([1.0, 2.1]), np.array([1.0, 2.0]), False),
        (np.ones(2), np.ones(3), False),
        ((1, 2.0), (1, 2.0), True),
        ((1, 2.0), (1, 2.0, 3), False),
    ],
)
def test_results_are_compared(got, want, agree):
    assert loop_programs.same(got, want) == agree


def sums_before(x):
    total = np.zeros(len(x) + 1)
    for i in range(len(x)):
        total[i + 1] = total[i] + x[i]
        if total[i + 1] > 9.0:
            total[i + 1] = 9.0
    return total


def test_loops_keep_computed_sizes():
    """The carried table has n + 1 rows, so that its indices are proved in bounds."""
    compiled = relay.function(sums_before)
    x = np.arange(6.0)
    np.testing.assert_array_equal(compiled(x), sums_before(x))
    text = compiled.lower(x).astext()
    assert "%total: Tensor[((x0 + 1),), float64]" in text
    assert "?" not in text and "checked_index" not in text


def test_explain_names_loops():
    compiled = relay.function(sums_before)
    assert "a loop" not in compiled.explain()
    compiled(np.ones(3))
    assert "test_loop_programs.py" in compiled.explain()
    assert "a loop is the kernel loop_" in compiled.explain()
    recursive = loop_programs.PROGRAMS[-1].compiled(relay.function)
    recursive(*loop_programs.PROGRAMS[-1].arguments("small"))
    said = recursive.explain()
    assert "main is native" in said and "interpreted" not in said
