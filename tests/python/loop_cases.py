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
    results = "s, t, m, k, y, a, u"

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
            out.append(f"    return {self.results}")
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
        lines = [*head, *body, f"return {self.results}"]
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


class _DrawLanguage(_Draw):
    """Lists, nested functions, and arrays of data-dependent sizes, as well."""

    results = "s, t, m, k, y, a, u, z, sum(xs), len(xs)"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.functions: list[str] = []  # of a float and an integer
        self.changing: list[str] = []  # of an array, a place and a float
        self.inside_function = False

    def real(self, depth: int = 2) -> str:
        if self.functions and depth and self.rng.random() < 0.12:
            name = self.rng.choice(self.functions)
            return f"{name}({self.real(depth - 1)}, {self.integer(depth - 1)})"
        if not self.inside_function and self.rng.random() < 0.1:
            return self.choice("xs[m % len(xs)]", "xs[-1]", "z[k % len(z)]", "z[-1]", "sum(xs)")
        return super().real(depth)

    def integer(self, depth: int = 2) -> str:
        if not self.inside_function and self.rng.random() < 0.08:
            return self.choice("len(xs)", "len(z)", "js[0]", "js[1]", "js[-1]")
        return super().integer(depth)

    def assignment(self) -> list[str]:
        if self.inside_function or self.rng.random() < 0.55:
            return super().assignment()
        return self.some(self.list_statement, self.sized, self.called)

    def list_statement(self) -> list[str]:
        value = self.clamped(self.real())
        return self.some(
            lambda: ["if len(xs) < 9:", f"    xs.append({value})"],
            lambda: ["if len(xs) > 1:", "    s = xs.pop()"],
            lambda: ["for e in xs:", "    t = " + self.clamped("t * 0.5 + e")],
            lambda: ["for j, e in enumerate(xs):", f"    y[j % 6] = {self.clamped('e + s')}"],
            lambda: [f"xs = [{self.clamped(f'e * 0.5 + {self.real(1)}')} for e in xs]"],
            lambda: [f"xs = [float(e) for e in range({self.choice('1', 'k % 3')}, 4)]"],
            lambda: [
                "if len(xs) < 7:",
                f"    xs = {self.choice('xs + [t]', '[s] + xs', 'xs + xs')}",
            ],
            lambda: [f"js[{self.choice('0', '1', '-1')}] = {self.integer()} % 97"],
            lambda: ["js = [js[1], m % 97, js[0]]"],
            lambda: [f"m = sum([e for e in js if e > {self.rng.randint(0, 9)}]) % 1009"],
        )

    def sized(self) -> list[str]:
        """What arrays are whose sizes are numbers of the program."""
        size = self.choice("m % 5 + 1", "k % 7 + 1", "n + 1", "len(xs)", "len(z) % 6 + 1")
        return self.some(
            lambda: [f"z = np.zeros({size})", f"z[{self.choice('0', '-1')}] = s"],
            lambda: [f"z = np.full({size}, t)"],
            lambda: [f"z = x[m % 6:] * {self.choice('0.5', 't')}", f"z = {self.choice('z', '-z')}"],
            lambda: ["for j in range(len(z)):", f"    z[j] = {self.clamped('z[j] * 0.5 + t')}"],
            lambda: [f"s = {self.clamped('np.sum(z)')}"],
            lambda: [f"z = np.minimum(np.maximum(z * {self.real(1)}, -9.0), 9.0)"],
            lambda: ["if len(z) < 8:", "    z = np.concatenate((z, y[:2]))"],
            lambda: ["z = z[::-1].copy()"],
            lambda: [f"z[k % len(z)] {self.choice('=', '+=')} s * 0.5"],
            lambda: ["for e in z:", f"    s = {self.clamped('s * 0.5 - e')}"],
            lambda: ["y[:min(len(z), 6)] = z[:6]"],
        )

    def called(self) -> list[str]:
        if self.changing and self.rng.random() < 0.5:
            name, way = self.rng.choice(self.changing), self.choice("", "s = ", "t = ")
            return [f"{way}{name}(y, {self.index()}, {self.clamped(self.real())})"]
        if not self.functions:
            return super().assignment()
        f, g = self.rng.choice(self.functions), self.rng.choice(self.functions)
        return self.some(
            lambda: [f"s = {f}({self.real()}, {self.integer()})"],
            lambda: [f"xs = [{f}(e, k) for e in xs]"],
            lambda: [f"t = {self.clamped(f'{f}(s, 2) + {g}(t, {self.integer(1)})')}"],
        )

    def function(self, number: int) -> list[str]:
        """A nested function; its variables have the names that statements use."""
        outer, self.indices, self.inside_function = self.indices, [], True
        calls, self.functions = self.functions, list(self.functions) if number else []
        way = self.rng.random()
        name = f"f{number}"
        if way < 0.2:
            lines = [f"{name} = lambda s, m: {self.clamped('s * 0.5 + m')}"]
            calls.append(name)
        elif way < 0.4:
            again = self.clamped(f"s * 0.5 + {self.choice('1.0', 'm', 'm % 3')}")
            value = self.choice(f"{name}({again}, m - 1)", f"0.5 * {name}({again}, m - 1) - 0.25")
            lines = [f"def {name}(s, m):", "    if m % 9 == 0:", "        return s",
                     f"    return {value.replace('m - 1', 'm % 9 - 1')}"]  # fmt: skip
            calls.append(name)
        elif way < 0.7:
            inner = [f"t = {self.clamped(self.simple())}", *self.early("s", "t", "-t", "s + 1.0")]
            lines = [f"def {name}(s, m):", *self.inside(inner)]
            calls.append(name)
        else:
            inner = [f"t = {self.clamped('s + c[i]')}"]
            inner += ["c[i] = " + self.clamped(self.choice("t - 1.0", "c[i] * 0.5", "s"))]
            inner += self.early("s", "t", "c[0]", "0.5")
            lines = [f"def {name}(c, i, s):", "    m = int(s)", *self.inside(inner)]
            self.changing.append(name)
        self.indices, self.inside_function, self.functions = outer, False, calls
        return lines

    def simple(self) -> str:
        return self.choice("s * 0.5", "s + m % 5", "-s", "s * s - 1.0", "0.25 * (m % 7)")

    def early(self, *values: str) -> list[str]:
        """Branches and loops that return, and what follows them."""
        test = self.choice("t > 1.0", "m % 3 == 1", "s < t", "t * 0.5 < s and m > 2")
        out = [f"if {test}:"]
        if self.rng.random() < 0.5:
            out += ["    if m % 2 == 0:", f"        return {self.choice(*values)}"]
            out += [f"    t = {self.clamped('t + ' + self.choice('1.0', 's', 'm % 11'))}"]
        else:
            out += [f"    t = {self.clamped('t * 0.5 - s')}"]
        if self.rng.random() < 0.4:
            out += ["else:", f"    s = {self.clamped('s * 0.5 + ' + self.choice('t', '2.0'))}"]
        if self.rng.random() < 0.6:
            out += [f"for j in range({self.choice('4', 'm % 5')}):"]
            out += ["    t = " + self.clamped("t * 0.5 + j")]
            if self.rng.random() < 0.6:
                out += [f"    if {self.choice('t > 2.0', 'j == 2', 's < j')}:"]
                out += ["        " + self.choice("break", "return t", "return s", "continue")]
                out += ["    s = " + self.clamped("s * 0.5 + 0.25")]
        return [*out, f"return {self.clamped(self.choice('s + t', 't', 's * 0.5 - t'))}"]

    def case(self, number: int, repeated: bool) -> Case:
        functions = [line for k in range(self.rng.randint(0, 3)) for line in self.function(k)]
        made = super().case(number, repeated)
        head = ["z = np.ones(n + 1)", "js = [3, 1, 2]"]
        head += [
            self.choice("xs = [0.5, -1.0, 2.0]", "xs = [float(e) * 0.5 for e in range(n + 1)]")
        ]
        first, *rest = made.text.splitlines()
        text = "\n".join([first, *self.inside([*head, *functions]), *rest]) + "\n"
        return Case(number, text, made.args)


def draw(
    seed: int, count: int, folder: Path, repeated: bool = False, language: bool = False
) -> list[Case]:
    """That many programs; they stand in a file of the folder.

    `repeated`: a last parameter, which the arguments leave out, says how often the loops run.
    `language`: programs with lists, nested functions and arrays of data-dependent sizes.
    """
    of = _DrawLanguage if language else _Draw
    cases = [of(seed * 100_003 + k).case(k, repeated) for k in range(count)]
    drawn_functions.load(cases, folder / f"loop_cases_{seed}.py")
    return cases


def loops_of(function, *args) -> tuple[int, list[str]]:
    """How many kernels of a relay.function are loops, and why other loops are interpreted."""
    said = json.loads(function.lower(*args).compile().metadata)
    kernels = [k["name"] for k in said["kernels"] if k["name"].startswith("loop_")]
    return len(kernels), [row["reason"] for row in said.get("interpreted", [])]
