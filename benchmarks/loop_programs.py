"""Sixty programs of loops, and their arguments at three sizes.

The functions (loop_arrays.py, loop_numbers.py) are plain Python over numbers and NumPy arrays: the same
source runs in CPython, under numba.njit and under relay.function. A size is the argument of the program's
maker; small is about 1,000 steps of the innermost loop, medium 100,000, and large several million.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import loop_arrays as arrays
import loop_numbers as numbers
import numpy as np

SIZES = ("small", "medium", "large")


@dataclass(frozen=True)
class Program:
    """A function with the maker of its arguments; `sizes` are the maker's arguments."""

    kind: str
    python: Callable
    make: Callable[..., tuple]
    sizes: tuple[int, int, int]
    loops: bool = True  # False: it recurses, and has no loop that is a kernel

    @property
    def name(self) -> str:
        return self.python.__name__

    def arguments(self, size: str) -> tuple:
        """Returns the arguments at a size, the same in every process."""
        return self.make(self.sizes[SIZES.index(size)])

    def compiled(self, decorate: Callable[[Callable], Callable]) -> Callable:
        """Returns the function as `decorate` makes it; its recursive calls are of the same."""
        around = dict(self.python.__globals__)
        python = types.FunctionType(self.python.__code__, around, self.name)
        around[self.name] = decorate(python)
        return around[self.name]


def rng() -> np.random.Generator:
    return np.random.default_rng(2026)


def word(n: int, letters: int = 4) -> np.ndarray:
    return rng().integers(0, letters, n)


def two_words(n: int) -> tuple:
    return word(n), rng().permutation(word(n))


def sack(n: int) -> tuple:
    r = rng()
    return r.integers(1, 30, n), r.integers(1, 100, n), 10 * n


def hidden_states(n: int) -> tuple:
    r = rng()
    observed = r.integers(0, 6, n)
    return observed, *(np.log(r.uniform(0.1, 1, shape)) for shape in ((8,), (8, 8), (8, 6)))


def two_waves(n: int) -> tuple:
    r = rng()
    return r.normal(size=n).cumsum(), r.normal(size=n).cumsum()


def reals(n: int) -> tuple:
    return (rng().normal(size=n),)


def searched(n: int) -> tuple:
    r = rng()
    return np.sort(r.normal(size=n)), r.normal(size=n)


def plate(n: int) -> tuple:
    return rng().uniform(0, 1, (n, n)), 10


def image_of(n: int) -> tuple:
    return (rng().uniform(0, 1, (n, n)),)


def text_and_pattern(n: int) -> tuple:
    text = word(n, 2)
    return text, text[n // 2 : n // 2 + 12].copy()


def text_and_window(n: int) -> tuple:
    r = rng()
    return r.integers(0, 4, n), r.integers(0, 4, 40)


def distances(n: int) -> tuple:
    return (rng().uniform(1, 100, (n, n)),)


def edges(n: int) -> tuple:
    r = rng()
    return r.integers(0, n, 4 * n), r.integers(0, n, 4 * n), r.uniform(1, 10, 4 * n), n


def unweighted_edges(n: int) -> tuple:
    source, target, _, nodes = edges(n)
    return source, target, nodes


def maze(n: int) -> tuple:
    walls = rng().uniform(size=(n, n)) < 0.25
    walls[0, 0] = False
    return (walls,)


def acyclic(n: int) -> tuple:
    r = rng()
    source = np.sort(r.integers(0, n - 1, 4 * n))
    target = source + 1 + (r.uniform(size=4 * n) * (n - 1 - source)).astype(np.int64)
    return np.searchsorted(source, np.arange(n + 1)).astype(np.int64), target


def positive_matrix(n: int) -> tuple:
    a = rng().normal(size=(n, n))
    return (a @ a.T + n * np.eye(n),)


def matrix(n: int) -> tuple:
    return (rng().normal(size=(n, n)) + 2.0 * np.eye(n),)


def bands(n: int) -> tuple:
    r = rng()
    lower, upper, right = r.uniform(-1, 1, (3, n))
    return lower, r.uniform(3, 4, n), upper, right


def bodies(steps: int) -> tuple:
    r = rng()
    return 3 * r.normal(size=(8, 3)), r.normal(size=(8, 3)), r.uniform(0.5, 1, 8), steps, 1e-3


def lattice(n: int) -> tuple:
    """n^3 particles near the points of a grid."""
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3), -1).reshape(-1, 3) * 1.2
    return grid + rng().uniform(-0.1, 0.1, grid.shape), 2.5


def clusters(n: int) -> tuple:
    r = rng()
    return r.normal(size=(n, 3)), r.normal(size=(16, 3))


def uniform_pair(n: int) -> tuple:
    r = rng()
    return r.uniform(size=n), r.uniform(size=n), 32


def small_sizes(n: int) -> tuple:
    return (rng().integers(1, 20, n),)


def between(low: float, high: float, *more: float) -> Callable[[int], tuple]:
    """A maker of uniform numbers, with constants behind them."""
    return lambda n: (rng().uniform(low, high, n), *more)


def filtered(*more: float) -> Callable[[int], tuple]:
    return lambda n: (rng().normal(size=n), *more)


def count(*more: int) -> Callable[[int], tuple]:
    """A maker of the size itself."""
    return lambda n: (n, *more)


PROGRAMS = [
    Program("tables", arrays.edit_distance, two_words, (32, 316, 2000)),
    Program("tables", arrays.common_subsequence, two_words, (32, 316, 2000)),
    Program("tables", arrays.knapsack, sack, (10, 100, 600)),
    Program("tables", arrays.matrix_chain, small_sizes, (18, 85, 300)),
    Program("tables", arrays.viterbi, hidden_states, (16, 1600, 50_000)),
    Program("tables", arrays.time_warping, two_waves, (32, 316, 1600)),
    Program("tables", arrays.coin_change, lambda n: (np.array([1, 2, 5, 10, 25, 50, 100, 200]), n),
            (200, 12_500, 500_000)),
    Program("sorting", arrays.insertion_sort, reals, (60, 630, 4000)),
    Program("sorting", arrays.shell_sort, reals, (120, 6000, 200_000)),
    Program("sorting", arrays.heap_sort, reals, (120, 6000, 200_000)),
    Program("sorting", arrays.quick_sort, reals, (120, 6000, 200_000)),
    Program("sorting", arrays.merge_sort, reals, (120, 6000, 200_000)),
    Program("sorting", arrays.binary_search, searched, (120, 7000, 200_000)),
    Program("filters", numbers.moving_average, filtered(0.1), (1000, 100_000, 4_000_000)),
    Program("filters", numbers.biquad, filtered(0.2, 0.4, 0.2, -0.6, 0.3), (1000, 100_000, 4_000_000)),
    Program("filters", numbers.kalman, filtered(1e-3, 0.2), (1000, 100_000, 4_000_000)),
    Program("filters", numbers.shift_register, lambda n: (0xACE1, n), (1000, 100_000, 10_000_000)),
    Program("filters", numbers.running_variance, reals, (1000, 100_000, 4_000_000)),
    Program("filters", numbers.garch, filtered(0.1, 0.1, 0.8), (1000, 100_000, 4_000_000)),
    Program("stencils", arrays.heat_line, lambda n: (rng().uniform(0, 1, n), 20), (52, 5000, 200_000)),
    Program("stencils", arrays.jacobi_plate, plate, (12, 102, 800)),
    Program("stencils", arrays.gauss_seidel, plate, (12, 102, 600)),
    Program("stencils", arrays.life, lambda n: (rng().integers(0, 2, (n, n)), 10), (10, 100, 600)),
    Program("stencils", arrays.sobel, image_of, (34, 318, 2000)),
    Program("stencils", arrays.blur, lambda n: (*image_of(n), np.full((5, 5), 0.04)), (6, 63, 500)),
    Program("strings", arrays.match_count, text_and_pattern, (1000, 100_000, 4_000_000)),
    Program("strings", arrays.z_function, lambda n: (word(n, 2),), (1000, 100_000, 4_000_000)),
    Program("strings", arrays.rolling_hash, text_and_pattern, (1000, 100_000, 3_000_000)),
    Program("strings", arrays.longest_palindrome, lambda n: (word(n, 2),), (300, 30_000, 2_000_000)),
    Program("strings", arrays.closest_window, text_and_window, (80, 4000, 200_000)),
    Program("integers", numbers.coprime_pairs, count(), (22, 170, 1000)),
    Program("integers", numbers.power_sum, count(1_000_003), (120, 6000, 200_000)),
    Program("integers", numbers.longest_collatz, count(), (36, 1100, 50_000)),
    Program("integers", numbers.sieve, count(), (400, 35_000, 3_000_000)),
    Program("integers", numbers.xorshift, lambda n: (88172645, n), (1000, 100_000, 10_000_000)),
    Program("integers", numbers.divisor_sums, count(), (130, 2800, 40_000)),
    Program("graphs", arrays.floyd_warshall, distances, (10, 46, 200)),
    Program("graphs", arrays.bellman_ford, edges, (60, 3500, 80_000)),
    Program("graphs", arrays.maze_distance, maze, (17, 160, 1000)),
    Program("graphs", arrays.components, unweighted_edges, (120, 9000, 400_000)),
    Program("graphs", arrays.dijkstra, distances, (24, 225, 1500)),
    Program("graphs", arrays.topological_order, acyclic, (120, 9000, 400_000)),
    Program("factorisations", arrays.cholesky, positive_matrix, (18, 84, 300)),
    Program("factorisations", arrays.lu_pivoting, matrix, (15, 67, 250)),
    Program("factorisations", arrays.gram_schmidt, matrix, (10, 46, 180)),
    Program("factorisations", arrays.tridiagonal, bands, (500, 50_000, 2_000_000)),
    Program("factorisations", arrays.gauss_jordan, positive_matrix, (10, 46, 200)),
    Program("particles", numbers.planets, bodies, (36, 3600, 100_000)),
    Program("particles", numbers.cell_counts, uniform_pair, (1000, 100_000, 4_000_000)),
    Program("particles", numbers.pair_forces, lattice, (3, 7, 13)),
    Program("particles", numbers.nearest_centers, clusters, (20, 2000, 100_000)),
    Program("tolerance", numbers.square_roots, between(0.5, 1000.0, 1e-14), (120, 12_000, 500_000)),
    Program("tolerance", numbers.power_iteration, lambda n: (*positive_matrix(n), 1e-9), (10, 40, 300)),
    Program("tolerance", numbers.bisection, between(0.1, 9.0, 1e-12), (25, 2500, 100_000)),
    Program("tolerance", numbers.kepler, between(0.0, 6.28, 0.6), (200, 20_000, 500_000)),
    Program("tolerance", numbers.mandelbrot, count(200), (8, 45, 300)),
    Program("recursion", numbers.fibonacci, count(), (15, 24, 32), loops=False),
    Program("recursion", numbers.ackermann, lambda n: ((2, n) if n > 10 else (3, n)), (20, 220, 8),
            loops=False),
    Program("recursion", numbers.binomial, lambda n: (n, n * 2 // 5), (13, 20, 25), loops=False),
    Program("recursion", numbers.queens, lambda n: ((1 << n) - 1, 0, 0, 0), (6, 9, 12), loops=False),
]  # fmt: skip


def programs(only: list[str]) -> Iterator[Program]:
    """Yields the programs whose names or kinds are in `only`; all if it is empty."""
    for program in PROGRAMS:
        if not only or program.name in only or program.kind in only:
            yield program


def same(got: object, want: object) -> bool:
    """Whether two results agree: integers exactly, floats up to the order of their operations."""
    if isinstance(want, tuple):
        return isinstance(got, tuple) and len(got) == len(want) and all(map(same, got, want))
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape or (a.dtype.kind == "f") != (b.dtype.kind == "f"):
        return False
    return np.allclose(a, b, rtol=1e-9, atol=1e-12) if b.dtype.kind == "f" else np.array_equal(a, b)
