"""Loops of numbers are kernels: fixed programs and drawn ones against CPython."""

import os
import platform
import re
import shutil
import subprocess

import loop_cases
import numpy as np
import pytest
from command_line import relay as command

import relay

COUNT = 200
LONG = int(os.environ.get("RELAY_EXAMPLES", "20000"))


def edit_distance(a, b):
    n, m = a.shape[0], b.shape[0]
    d = np.zeros((40, 40), dtype=np.int64)
    for i in range(n):
        d[i + 1, 0] = i + 1
    for j in range(m):
        d[0, j + 1] = j + 1
    for i in range(n):
        for j in range(m):
            c = 0 if a[i] == b[j] else 1
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + c)
    return d[n, m]


def mandelbrot(cr, ci, limit):
    x = 0.0
    y = 0.0
    n = 0
    while n < limit and x * x + y * y <= 4.0:
        x, y = x * x - y * y + cr, 2.0 * x * y + ci
        n += 1
    return n


def insertion_sort(x):
    y = x.copy()
    for i in range(1, y.shape[0]):
        v = y[i]
        j = i - 1
        while j >= 0 and y[j] > v:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = v
    return y


def sieve(n):
    prime = np.ones(200, dtype=bool)
    prime[0] = False
    prime[1] = False
    i = 2
    while i * i < n:
        if prime[i]:
            j = i * i
            while j < n:
                prime[j] = False
                j += i
        i += 1
    return prime


def floyd_warshall(w):
    d = w.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def bubble_sort(x):
    y = x.copy()
    n = y.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return y


def first_above(x, limit):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > limit:
                return i, j
    return -1, -1


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


NUMBERS = np.random.default_rng(5)
PROGRAMS = [
    (edit_distance, (NUMBERS.integers(0, 4, 30), NUMBERS.integers(0, 4, 30))),
    (mandelbrot, (-0.7, 0.27, 500)),
    (mandelbrot, (0.1, 0.2, 1000)),
    (insertion_sort, (NUMBERS.normal(size=50),)),
    (sieve, (200,)),
    (floyd_warshall, (NUMBERS.uniform(1, 10, (9, 9)),)),
    (bubble_sort, (NUMBERS.normal(size=20),)),
    (first_above, (NUMBERS.uniform(0, 1, (5, 6)), 0.9)),
    (first_above, (NUMBERS.uniform(0, 1, (5, 6)), 2.0)),
    (collatz, (97,)),
]


@pytest.mark.parametrize("python, args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_programs_compute_what_python_does(python, args):
    f = relay.function(python)
    got, want = f(*args), python(*args)
    for g, w in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12)
    kernels, interpreted = loop_cases.loops_of(f, *args)
    assert kernels >= 1 and interpreted == []


# Products that leave int64 and wrap: as a value of its own and below a remainder.
WRAPPING = """#[version = "0.0.5"]
def @main(%n: int64) -> (int64, int64) {
  let %loop: fn (int64, int64, int64) -> (int64, int64) =
    fn (%i: int64, %h: int64, %r: int64) -> (int64, int64) {
    if (less(%i, %n)) {
      %0 = multiply(floor_mod(%h, 1000003i64), 92233720368547i64);
      %2 = add(%r, mod(multiply(floor_mod(%0, 1000003i64), 92233720368547i64), 97i64));
      %loop(add(%i, 1i64), %0, %2)
    } else { (%h, %r) }
  };
  %loop(0i64, 12345i64, 0i64)
}
"""


def wrapping(n):
    def times(a):
        return (a * 92233720368547 + 2**63) % 2**64 - 2**63

    h, r = 12345, 0
    for _ in range(n):
        h = times(h % 1000003)
        r += int(np.fmod(times(h % 1000003), 97))
    return h, r


def test_products_wrap():
    mod = relay.parse(WRAPPING)
    for run in (relay.build(mod), relay.create_executor("debug", mod).evaluate()):
        assert tuple(int(v) for v in run(np.int64(200))) == wrapping(200)


def check(case):
    f = relay.function(case.python, fixed_sizes=case.number % 2 == 0)
    got, want = f(*case.args), case.python(*case.args)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9, err_msg=f"{case.text}{case.args}")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64's code generator is in Relay")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
def test_jumps_lie_inside_of_32_bytes_where_the_processor_needs_that(tmp_path):
    """Where a jump crosses or ends at 32 bytes, processors of the Skylake family decode it each time."""
    x = np.array([3, 1, 2])
    program = relay.function(insertion_sort).lower(x).module.astext()
    (tmp_path / "sort.relay").write_text(program)

    def jumps_across(cpu: str) -> tuple[int, int]:
        out = tmp_path / f"{cpu}.so"
        command("compile", tmp_path / "sort.relay", "-o", out, "--target", f"llvm -mcpu={cpu}")
        shown = subprocess.run(["objdump", "-d", "--no-show-raw-insn", out], capture_output=True,
                               text=True, check=True).stdout  # fmt: skip
        found = re.findall(r"^ *([0-9a-f]+):\t(\S+)", shown, re.MULTILINE)
        places = [int(address, 16) for address, _ in found]
        jumps = [k for k, (_, name) in enumerate(found[:-1]) if name.startswith("j")]
        return len(jumps), sum(places[k] // 32 != places[k + 1] // 32 for k in jumps)

    jumps, across = jumps_across("cascadelake")
    assert jumps > 10
    assert across == 0
    # The test sees jumps that lie across.
    assert jumps_across("znver3")[1] > 0


@pytest.mark.parametrize("part", range(4))
def test_drawn_programs(part, tmp_path):
    for case in loop_cases.draw(part, COUNT // 4, tmp_path):
        check(case)


def test_drawn_programs_of_lists_and_functions(tmp_path):
    for case in loop_cases.draw(50, 20, tmp_path, language=True):
        check(case)


@pytest.mark.slow
@pytest.mark.parametrize("language", [False, True])
@pytest.mark.parametrize("part", range(max(1, LONG // 200)))
def test_many_drawn_programs(part, language, tmp_path):
    for case in loop_cases.draw(1000 + part, 100, tmp_path, language=language):
        check(case)
