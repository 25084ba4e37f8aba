"""Random small Python programs of loops over numbers and arrays, which CPython runs as well.

Integers stay small, and floats finite, so that both compute the same: every value that is carried from
step to step goes through `% 1009` or a clamp.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import drawn_functions
import numpy as np


@dataclass
class Case:
    number: int
    text: str
    args: tuple
    python: object = None


class _Draw:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.depth = 0
        self.loops = 0
        self.indices: list[str] = []

    def choice(self, *ways):
        return self.rng.choice(ways)

    def some(self, *ways):
        """One of some functions' results."""
        return self.rng.choice(ways)()

    # ---- Expressions

    def integer(self, depth: int = 2) -> str:
        if depth == 0 or self.rng.random() < 0.3:
            leaves = ["m", "k", "n", str(self.rng.randint(-7, 12)), *self.indices]
            return self.rng.choice(leaves)
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        return self.some(
            lambda: f"({a} + {b})",
            lambda: f"({a} - {b})",
            lambda: f"({a} * {b} % 1009)",
            lambda: f"({a} // {self.rng.randint(1, 9)})",
            lambda: f"({a} % {self.choice(-5, -3, 2, 7, 11)})",
            lambda: f"min({a}, {b})",
            lambda: f"max({a}, {b})",
            lambda: f"abs({a})",
            lambda: f"u[{self.index()}]",
            lambda: f"({a} if {self.test(depth - 1)} else {b})",
            lambda: f"({a} & {b})",
            lambda: f"({a} ^ {b})",
        )

    def real(self, depth: int = 2) -> str:
        if depth == 0 or self.rng.random() < 0.3:
            return self.choice("s", "t", "0.5", "-1.25", "2.0", "float(m)", "float(k)")
        a, b = self.real(depth - 1), self.real(depth - 1)
        return self.some(
            lambda: f"({a} + {b})",
            lambda: f"({a} - {b})",
            lambda: f"({a} * 0.5 + {b})",
            lambda: f"min(max({a} * {b}, -9.0), 9.0)",
            lambda: f"x[{self.index()}]",
            lambda: f"y[{self.index()}]",
            lambda: f"a[{self.index()}, {self.index()}]",
            lambda: f"({a} if {self.test(depth - 1)} else {b})",
            lambda: f"({a} / 3.0)",
        )

    def test(self, depth: int = 1) -> str:
        a, b = self.integer(depth), self.integer(depth)
        c, d = self.real(depth), self.real(depth)
        return self.some(
            lambda: f"{a} < {b}",
            lambda: f"{a} == {b}",
            lambda: f"{c} > {d}",
            lambda: f"{a} <= {b} and {c} < {d}",
            lambda: f"{a} > {b} or not {c} >= {d}",
        )

    def index(self) -> str:
        """A place of an axis of 6."""
        inside = [i for i in self.indices if i.startswith("i")]
        if inside and self.rng.random() < 0.6:
            return self.rng.choice(inside)
        return self.choice("m % 6", "k % 6", "-1", "0", "-(k % 6) - 1", "(m + 2) % 6")

    # ---- Statements

    def clamped(self, text: str) -> str:
        return f"min(max({text}, -50.0), 50.0)"

    def assignment(self) -> list[str]:
        return self.some(
            lambda: [f"m = {self.integer()} % 1009"],
            lambda: [f"k = ({self.integer()} + {self.integer()}) % 97"],
            lambda: [f"s = {self.clamped(self.real())}"],
            lambda: [f"t = {self.clamped(self.real() + ' + ' + self.real())}"],
            lambda: [f"s, t = t * 0.5, {self.clamped(self.real())}"],
            lambda: ["m, k = k, m % 97"],
            lambda: [f"y[{self.index()}] = {self.clamped(self.real())}"],
            lambda: [f"a[{self.index()}, {self.index()}] = {self.clamped(self.real())}"],
            lambda: [f"u[{self.index()}] = {self.integer()} % 1009"],
            lambda: [f"u[{self.index()}] += {self.rng.randint(-3, 3)}"],
            lambda: [f"a[{self.index()}, {self.index()}] *= 0.5"],
            lambda: self.swap(),
            lambda: [f"a[{self.index()}] = y"],
            lambda: [f"y[{self.choice('1:4', '::2', ':3')}] = {self.clamped(self.real())}"],
            lambda: [f"a[{self.index()}, 1:5] = {self.clamped(self.real())}"],
            lambda: self.row(),
        )

    def row(self) -> list[str]:
        """What an iteration does with a part of a row, of a length that only it knows."""
        i, p, q = self.index(), self.index(), self.index()
        block = self.choice(f"a[{p}:, {q}:]", f"a[:{p}, {q}:]", f"a[{p}:]", f"a[{p}:{q}, 1:]")
        own = self.choice(f"y[{p}:]", f"y[:{p}]", f"a[{i}, {p}:]", f"a[:{p}, {i}]", f"y[{p}:{q}]")
        return self.some(
            lambda: [f"s = {self.clamped(f'np.sum({own}) * 0.5')}"],
            lambda: [f"{own} = {self.clamped(self.real())}"],
            lambda: [f"{own} = np.maximum({own} * {self.choice('0.5', 's * 0.02')} + t, -50.0)"],
            lambda: [
                f"a[{i}, {p}:] -= a[{q}, {p}:] * {self.choice('0.5', '-0.25')}",
                f"a[{i}] %= 9.0",
            ],
            lambda: [f"{block} = np.minimum({block} * {self.choice('0.5', 's * 0.02')} - t, 50.0)"],
            lambda: [
                f"a[{p}:, {q}:] -= np.outer(a[{p}:, {i}], a[{i}, {q}:]) * 0.05",
                f"a[{p}:, {q}:] = np.minimum(np.maximum(a[{p}:, {q}:], -9.0), 9.0)",
            ],
            lambda: [f"{block} = {self.clamped(self.real())}"],
            lambda: [f"t = {self.clamped(f'np.dot(a[{i}, :{p}], a[:{p}, {q}])')}"],
            lambda: [
                f"m = np.argmin(y[{self.choice('1', '-2', 'm % 6')}:]) + np.argmax(x[:k % 6 + 1])"
            ],
        )

    def swap(self) -> list[str]:
        i, j = self.index(), self.index()
        return self.choice(
            [f"y[{i}], y[{j}] = y[{j}], y[{i}]"], [f"u[{i}], u[{j}] = u[{j}], u[{i}]"]
        )

    def block(self, budget: int, in_loop: bool) -> list[str]:
        out: list[str] = []
        for _ in range(self.rng.randint(1, budget)):
            kind = self.rng.random()
            if kind < 0.6 or self.depth >= 3:
                out += self.assignment()
            elif kind < 0.8:
                out += self.branch(in_loop)
            else:
                out += self.loop()
        return out

    def branch(self, in_loop: bool) -> list[str]:
        self.depth += 1
        out = [f"if {self.test()}:", *self.inside(self.block(2, in_loop))]
        way = self.rng.random()
        if way < 0.5:
            out += ["else:", *self.inside(self.block(2, in_loop))]
        elif in_loop and way < 0.75:
            out.append(self.choice("    break", "    continue"))
        elif in_loop and way < 0.85:
            out.append("    return s, t, m, k, y, a, u")
        self.depth -= 1
        return out

    @staticmethod
    def inside(lines: list[str]) -> list[str]:
        return [f"    {line}" for line in lines]

    def loop(self) -> list[str]:
        self.depth += 1
        self.loops += 1
        name = f"i{self.loops}"
        if self.rng.random() < 0.75:
            span = self.choice("6", "n", "1, 6", "5, -1, -1", "0, n, 2")
            self.indices.append(name)
            out = [f"for {name} in range({span}):", *self.inside(self.block(3, in_loop=True))]
            self.indices.remove(name)
        else:
            name = f"w{self.loops}"
            out = [f"{name} = {self.integer()} % 7"]
            self.indices.append(name)
            out += [f"while {name} > 0:", f"    {name} -= 1"]
            out += self.inside(self.block(2, in_loop=True))
            self.indices.remove(name)
        self.depth -= 1
        return out

    def case(self, number: int, repeated: bool) -> Case:
        body = [*self.loop(), *self.block(2, in_loop=False), *self.loop()]
        if repeated:
            body = ["for _ in range(repeat):", *self.inside(body)]
        head = [
            "y = x * 1.0",
            "a = b * 1.0",
            "u = v * 1",
            "s = 0.25",
            "t = 1.5",
            "m = 3",
            "k = 5",
        ]
        lines = [*head, *body, "return s, t, m, k, y, a, u"]
        numbers = np.random.default_rng(self.rng.randint(0, 1 << 30))
        args = (
            numbers.uniform(-2, 2, 6),
            numbers.uniform(-2, 2, (6, 6)),
            numbers.integers(-20, 20, 6),
            self.rng.randint(0, 6),
        )
        more = ", repeat" if repeated else ""
        text = f"def case_{number}(x, b, v, n{more}):\n"
        text += "".join(f"    {line}\n" for line in lines)
        return Case(number, text, args)


def draw(seed: int, count: int, folder: Path, repeated: bool = False) -> list[Case]:
    """That many programs; they stand in a file of the folder.

    `repeated`: a last parameter, which the arguments leave out, says how often the loops run.
    """
    cases = [_Draw(seed * 100_003 + k).case(k, repeated) for k in range(count)]
    drawn_functions.load(cases, folder / f"loop_cases_{seed}.py")
    return cases


def loops_of(function, *args) -> tuple[int, list[str]]:
    """How many kernels of a relay.function are loops, and why other loops are interpreted."""
    said = json.loads(function.lower(*args).compile().metadata)
    kernels = [k["name"] for k in said["kernels"] if k["name"].startswith("loop_")]
    return len(kernels), [row["reason"] for row in said.get("interpreted", [])]
