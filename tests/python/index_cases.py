"""Drawn functions that read and write by indices, in all forms that `@relay.function` takes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import drawn_functions
import numpy as np

# The parameters of each function: the data, integers of the run, an array of indices, a mask.
HEAD = "def case_{number}(x, i, j, idx, mask):\n"


@dataclass
class Case:
    """A function of one form, and what it is called with.

    `dynamic`: sizes within depend on the data, so that lanes part. `fails`: an index is outside.
    """

    number: int
    text: str
    args: tuple
    dynamic: bool
    fails: bool
    python: object = field(default=None, repr=False)


class _Draw:
    def __init__(self, seed: int, fails: bool) -> None:
        self.rng = random.Random(seed)
        self.shape = (self.rng.randint(3, 5), self.rng.randint(2, 4))
        self.values = {"i": self.rng.randint(1, 2), "j": self.rng.randint(0, 1)}
        self.fails = fails
        self.dynamic = False

    def choice(self, *ways):
        return self.rng.choice(ways)

    # ---- Indices

    def known(self, size: int) -> str:
        """An index that is a number."""
        return str(self.rng.randint(-size, size - 1))

    def of_run(self, axis: int) -> str:
        """One that the run tells: arguments, and sums with them and with sizes."""
        size = self.shape[axis]
        ways = ["i", "-i", "j", "j - 1", "i - 1", f"x.shape[{axis}] - i", f"x.shape[{axis}] - 1"]
        ways += [f"-x.shape[{axis}] + j", "idx[0]", "idx[-1] - 1", "i * j"]
        text = self.rng.choice(ways)
        if size == 2 and text == "i":
            text = "i - 1"
        return text

    def index(self, axis: int) -> str:
        return self.choice(self.known(self.shape[axis]), self.of_run(axis), self.of_run(axis))

    def bound(self, axis: int) -> str:
        return self.choice("", str(self.rng.randint(-2, 2)), "i", "-i", "j")

    def slice(self, axis: int) -> str:
        begin, end = self.bound(axis), self.bound(axis)
        if any(v in "ij-" for v in (begin + end).replace(" ", "")):
            self.dynamic |= not (begin + end).lstrip("-").isdigit()
        step = "" if begin + end else self.choice("", ":2", ":-1")
        if begin[1:].isdigit() or end[1:].isdigit() or (begin + end).isdigit():
            self.dynamic = True
        return f"{begin}:{end}{step}"

    def read(self) -> str:
        """A part of x, in any form."""
        n = self.shape[0]
        forms = [
            lambda: f"x[{self.index(0)}]",
            lambda: f"x[{self.index(0)}, {self.index(1)}]",
            lambda: f"x[{self.index(0)}][{self.index(1)}]",
            lambda: f"x[:, {self.index(1)}]",
            lambda: f"x[..., {self.index(1)}]",
            lambda: f"x[{self.slice(0)}]",
            lambda: f"x[:, {self.slice(1)}]",
            lambda: f"x[{self.index(0)}, {self.slice(1)}]",
            lambda: f"x[{self.slice(0)}, {self.index(1)}]",
            lambda: f"x[{self.index(0)}, None]",
            lambda: "x[idx]",
            lambda: "x[idx - 1]",
            lambda: "x[-idx]",
            lambda: f"x[np.array([{self.known(n)}, {self.known(n)}])]",
            lambda: f"x[[{self.index(0)}, {self.known(n)}]]",
            lambda: "x[idx, idx % x.shape[1]]",
            lambda: f"x[idx, {self.index(1)}]",
            lambda: "x[:, idx % x.shape[1] - 1]",
            lambda: f"np.take(x, {self.index(0)}, axis=0)",
            lambda: "np.take(x, idx, axis=0)",
            lambda: "np.take(x, -idx - 1)",
            lambda: 'np.take(x, idx * 3, axis=1, mode="wrap")',
            lambda: 'np.take(x, idx * 3 - 4, axis=0, mode="clip")',
            lambda: self.masked("x[mask]"),
            lambda: self.masked("x[x > 0.2]"),
            lambda: self.masked("x[x[:, 0] > 0]"),
        ]
        return self.rng.choice(forms)()

    def masked(self, text: str) -> str:
        self.dynamic = True
        return text

    # ---- Statements

    def loop(self) -> list[str]:
        down = self.choice("x[-t]", "x[t - 1]", "x[x.shape[0] - t]", "x[t, -1]", "x[t][i - 1]")
        forms = [
            ["for t in range(1, x.shape[0]):", f"    s += np.sum(np.sin({down})) * t"],
            ["for t in range(len(x)):", "    s += np.sum(y[t] * x[-t - 1])"],
            ["for t in range(len(x) - 1):", "    y[t + 1] = y[t] * 0.5 + x[t + 1] ** 2"],
            ["for t in range(len(x) - 1, 0, -1):", "    y[t - 1] += y[t] * x[t, 0]"],
            ["for t in range(1, x.shape[0]):", "    y[-t] = y[t - 1] * x[-t] + 1.0"],
            ["for t in range(i):", "    s += np.sum(x[t] ** 2)", "    y[t, j] += s"],
            [
                "for t in range(x.shape[0]):",
                "    for u in range(x.shape[1]):",
                "        y[t, u] = x[t, u] * x[t - 1, -u - 1]",
            ],
            [
                "t = 0",
                "while t < x.shape[0]:",
                "    s += np.sum(np.sin(x[t]) * y[-t - 1])",
                "    t += 1",
            ],
            [
                "for t in range(x.shape[0]):",
                "    if t > 0:",
                "        s += np.sum(x[t] * x[t - 1])",
                "    else:",
                "        s += x[t, 0] ** 3",
            ],
            ["for t in range(len(idx)):", "    s += np.sum(x[idx[t]] ** 2 * (t + 1))"],
        ]
        return self.rng.choice(forms)

    def store(self) -> list[str]:
        a, b = self.index(0), self.index(1)
        value = self.choice("x[0, 0] * 3.0", "2.5", "np.sin(x[-1, -1])")
        row = self.choice(value, "x[j] * 2.0", "np.sin(y[0])")
        forms = [
            [f"y[{a}] = {row}"],
            [f"y[{a}] += {row}"],
            [f"y[{a}, {b}] = {value}"],
            [f"y[{a}, {b}] += {value}"],
            [f"y[{a}, {b}] *= {value}"],
            [f"y[:, {b}] = {value}"],
            [f"y[:, {b}] += x[:, 0] ** 2"],
            ["y[1:] = x[:-1] * 2.0"],
            ["y[:-1] += x[1:]"],
            ["y[::2] = 0.5"],
            [f"y[{a}, 1:] = x[0, :-1] ** 2"],
            [f"y[{a}, {self.slice(1)}] = 0.5"],
            [f"y[{a}, ::2] += {value}"],
            [f"y[{self.slice(0)}, {self.slice(1)}] *= {value}"],
            [f"y[{self.slice(0)}, {b}] += {value}"],
            self.both_slices(),
            ["y[::-1] = x * 2.0"],
            ["y[:, ::-1] += x ** 2"],
            [f"y[::2, {b}] = x[::2, 0]"],
            [f"y[1:, {b}] = x[:-1, -1] * 3.0"],
            ["y[i], y[j] = y[j] * 1.0, y[i] * 2.0"],
            ["y[idx] = y[idx[::-1]]"],
            ["for t in range(len(x)):", "    y[t, 1:] = x[t, :-1] * y[t, 0]"],
            ["for t in range(len(x) - 1):", f"    y[t + 1, {b}] += y[t, -1] * x[t, 0]"],
            ["y[idx] = x[idx] * 2.0"],
            ["y[idx[0]] = x[idx[1]] ** 2"],
            ["y[mask] = 0.25"],
            ["y[x > 0] = 1.5"],
        ]
        return self.rng.choice(forms)

    def both_slices(self) -> list[str]:
        self.dynamic = True
        return self.choice(
            ["y[i:, j:] -= x[i:, j:] ** 2"],
            ["y[:i, j:] = x[-i:, j:] * 0.5"],
            ["for t in range(len(x)):", "    y[t:, 1:] -= x[t:, :1] * x[t, 1:]"],
        )

    def outside(self) -> list[str]:
        """A read or a write by an index of the run that is outside."""
        n = self.shape[0]
        self.values["i"] = self.choice(n, n + 3, -n - 1, 40)
        forms = [
            ["s += np.sum(x[i])"],
            ["s += np.sum(x[i, 0])"],
            ["s += np.sum(x[:, i])"],
            ["y[i] = 1.0"],
            ["y[i, 1] += 2.0"],
            ["y[:, i] = 2.0"],
            ["s += np.sum(x[idx * 9 + 9])"],
            ["s += np.sum(x[idx, idx + 7])"],
            ["y[idx + 9] = 2.0"],
            ["s += np.sum(np.take(x, i, axis=0))"],
            ["for t in range(i + 50):", "    s += np.sum(x[t])"],
            ["for t in range(len(x)):", "    y[t - 9] = 1.0"],
            ["t = 0", "while t <= x.shape[0]:", "    y[t] = 1.0", "    t += 1"],
        ]
        return self.rng.choice(forms)

    def body(self) -> list[str]:
        lines = ["s = 0.0", "y = x * 1.0"]
        if self.fails:
            lines += self.outside()
        else:
            kind = self.choice("read", "read", "read", "loop", "store", "store")
            if kind == "loop":
                lines += self.loop()
            elif kind == "store":
                lines += self.store()
            if kind == "read" or self.rng.random() < 0.3:
                lines.append(f"s += np.sum(np.sin({self.read()}) * 1.5)")
        return [*lines, "return s + np.sum(y * y * y)"]

    def case(self, number: int) -> Case:
        lines = self.body()
        n = self.shape[0]
        numbers = np.random.default_rng(self.rng.randint(0, 1 << 30))
        x = numbers.uniform(0.3, 1.5, self.shape) * numbers.choice([-1.0, 1.0], self.shape)
        idx = np.array(self.rng.sample(range(n), 2), "int64")
        mask = numbers.random(n) < 0.6
        args = (x, np.int64(self.values["i"]), np.int64(self.values["j"]), idx, mask)
        text = HEAD.format(number=number) + "".join(f"    {line}\n" for line in lines)
        return Case(number, text, args, self.dynamic, self.fails)


def draw(seed: int, count: int, folder: Path) -> list[Case]:
    """That many cases; their functions stand in a file of the folder."""
    cases = [_Draw(seed * 100_003 + k, k % 8 == 7).case(k) for k in range(count)]
    drawn_functions.load(cases, folder / f"index_cases_{seed}.py")
    return [case for case in cases if case.fails == _fails(case)]


def _fails(case: Case) -> bool:
    """Whether NumPy finds an index outside; values that overflow are none."""
    x, *rest = case.args
    try:
        with np.errstate(all="ignore"):
            case.python(x, *rest)
    except IndexError:
        return True
    return False


def slope(case: Case, direction: np.ndarray) -> float:
    """The derivative along a direction, by differences."""
    x, *rest = case.args
    step = 1e-6
    up, down = case.python(x + step * direction, *rest), case.python(x - step * direction, *rest)
    return (up - down) / (2 * step)


def gradient(case: Case) -> np.ndarray:
    """The derivatives by all elements."""
    x = case.args[0]
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        direction = np.zeros_like(x)
        direction[at] = 1
        out[at] = slope(case, direction)
    return out
