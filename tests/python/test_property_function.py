"""Random functions of relay.function's subset: what is compiled is what Python does."""

from __future__ import annotations

import random
import sys
import types

import numpy as np
import pytest
from function_oracle import agree

import relay

# Variables of one type each: vectors, scalars, Python integers, lists of vectors.
VECTORS, SCALARS, INTEGERS, LISTS = ("a", "b", "c"), ("s", "t"), ("n", "m"), ("xs",)


class Generator:
    """Draws a function; each variable keeps its type, so that every path through it has one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.budget = 14

    def one(self, *choices):
        return self.random.choice(choices)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    # ---- Expressions

    def vector(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.one(*VECTORS)
        inner = lambda: self.vector(depth - 1)  # noqa: E731
        scalar = lambda: self.scalar(depth - 1)  # noqa: E731
        cut = self.one(1, 2, 3)
        return self.one(
            f"np.tanh({inner()} {self.one('+', '-', '*')} {inner()})",
            f"({inner()} * {self.one('0.5', '0.25', scalar())})",
            f"np.maximum({inner()}, {self.one('0', inner())})",
            f"np.where({inner()} > {scalar()}, {inner()}, {inner()})",
            f"({inner()} if {self.test(depth - 1)} else {inner()})",
            f"{inner()}[::-1]",
            f"np.roll({inner()}, {self.one('1', '2')})",
            f"np.concatenate([{inner()}[:{cut}], {inner()}[{cut}:]])",
            f"(x @ {inner()} * 0.1)",
            f"x[{self.integer(depth - 1)} % 4]",
            f"helper({inner()}, {scalar()})",
            f"g({inner()})",
            "xs[-1]",
        )  # fmt: skip

    def scalar(self, depth: int = 2) -> str:
        if depth <= 0 or self.random.random() < 0.2:
            return self.one(*SCALARS)
        return self.one(
            f"np.tanh({self.vector(depth - 1)}.{self.one('sum', 'max', 'mean')}())",
            f"({self.scalar(depth - 1)} * 0.5 + {self.integer(depth - 1)} * 0.1)",
            f"{self.vector(depth - 1)}[{self.integer(depth - 1)} % 4]",
            f"np.abs({self.scalar(depth - 1)})",
        )

    def integer(self, depth: int = 2) -> str:
        if depth <= 0 or self.random.random() < 0.3:
            return self.one(*INTEGERS, str(self.random.randrange(5)))
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        return self.one(
            f"(({left} {self.one('+', '-', '*')} {right}) % {self.one(5, 7, 11)})",
            f"({left} // {self.one(2, 3)})",
            f"max({left}, {right})",
            "len(xs)",
            f"({left} if {self.test(depth - 1)} else {right})",
        )

    def test(self, depth: int = 1) -> str:
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        simple = f"{left} {self.one('<', '<=', '==', '!=', '>')} {right}"
        return self.one(
            simple,
            f"{left} < {right} <= 9",
            f"not {simple}" if depth == 0 else f"({simple} {self.one('and', 'or')} {self.test(0)})",
            f"{self.scalar(depth - 1)} > 0.37",
        )

    # ---- Statements

    def block(self, indent: int, loop: bool) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, loop)

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, indent: int, loop: bool) -> None:
        self.budget -= 1
        compound = self.budget > 0 and indent < 4
        kind = self.one("vector", "vector", "scalar", "integer", "list", "change", "swap",
                        *(["if", "if", "for", "for", "while", "rows", "return"] if compound else []),
                        *(["break", "continue"] if loop else []))  # fmt: skip
        getattr(self, f"_{kind}")(indent, loop)

    def _vector(self, indent, loop):
        self.put(indent, f"{self.one(*VECTORS)} = {self.vector()}")

    def _scalar(self, indent, loop):
        self.put(indent, f"{self.one(*SCALARS)} = {self.scalar()}")

    def _integer(self, indent, loop):
        name = self.one(*INTEGERS)
        self.put(indent, self.one(f"{name} = {self.integer()} % 13", f"{name} = ({name} + 2) % 9"))

    def _list(self, indent, loop):
        self.put(indent, f"xs.append({self.vector(1)})")

    def _change(self, indent, loop):
        name, at = self.one(*VECTORS), self.integer(1)
        self.put(indent, f"{name} = {name}.copy()")
        self.put(
            indent,
            self.one(
                f"{name}[{at} % 4] = {self.scalar(1)}",
                f"{name}[1:3] += {self.scalar(1)}",
                f"{name} *= 0.5",
                f"{name}[{name} > 0.5] = 0.25",
            ),
        )

    def _swap(self, indent, loop):
        left, right = self.random.sample(VECTORS, 2)
        self.put(indent, f"{left}, {right} = {right} * 1, {left} * 1")

    def _if(self, indent, loop):
        self.put(indent, f"if {self.test()}:")
        self.block(indent + 1, loop)
        if self.random.random() < 0.3:
            self.put(indent, f"elif {self.test()}:")
            self.block(indent + 1, loop)
        if self.random.random() < 0.5:
            self.put(indent, "else:")
            self.block(indent + 1, loop)

    def _for(self, indent, loop):
        bound = self.one("n % 4", "m % 3", "2", "3", "len(xs)")
        self.put(indent, f"for {self.fresh('i')} in range({bound}):")
        self.block(indent + 1, True)
        self.put(indent + 1, "m = (m + 1) % 7")

    def _while(self, indent, loop):
        name = self.fresh("k")
        self.put(indent, f"{name} = 0")
        self.put(indent, f"while {name} < {self.integer(1)} % 5:")
        self.put(indent + 1, f"{name} += 1")
        self.block(indent + 1, True)

    def _rows(self, indent, loop):
        name = self.fresh("r")
        over = self.one("x", "xs", "enumerate(x)")
        targets = f"j{name}, {name}" if over.startswith("enumerate") else name
        self.put(indent, f"for {targets} in {over}:")
        self.put(indent + 1, f"b = np.tanh(b + {name})")
        if over != "xs":
            self.block(indent + 1, True)

    def _return(self, indent, loop):
        self.put(indent, f"if {self.test()}:")
        self.put(indent + 1, RETURN)

    def _break(self, indent, loop):
        self.put(indent, f"if {self.test()}:")
        self.put(indent + 1, "break")

    def _continue(self, indent, loop):
        self.put(indent, f"if {self.test()}:")
        self.put(indent + 1, "continue")

    def text(self) -> str:
        for _ in range(6):
            self.statement(1, False)
        self.put(1, RETURN)
        return HEADER + "\n".join(self.lines) + "\n"


RETURN = "return a * 1, b * 1, c * 1, np.float32(s), np.float32(t), n + 0, m + 0, len(xs), xs[-1]"
HEADER = """\
import numpy as np
import relay

@relay.function
def helper(v, by):
    if v.sum() > 0.1:
        return v * by
    return v - by * 0.5

@relay.function
def f(x, a, b, s, n):
    c, t, m = a + b, s * 2, 3
    xs = [a * 2]
    def g(v):
        return v * 0.5 + c
"""


def load(text: str, path) -> relay.RelayFunction:
    path.write_text(text)
    module = types.ModuleType("random_function")
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec"), vars(module))
    return module.f


@pytest.mark.parametrize("seed", range(24))
def test_random_functions(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.slow
def test_many_random_functions(tmp_path):
    for seed in range(1000, 1400):
        check(seed, tmp_path)


def check(seed, folder):
    text = Generator(seed).text()
    f = load(text, folder / f"random_{seed}.py")
    rng = np.random.default_rng(seed)
    for n in (3, 0):
        x = (rng.standard_normal((4, 4)) * 0.5).astype("float32")
        a, b = (rng.standard_normal(4).astype("float32") for _ in range(2))
        try:
            agree(f, x, a, b, np.float32(0.3), n, levels=(3,) if n else (0, 3), rtol=2e-4)
        except BaseException:
            print(f"seed {seed}\n{text}")
            raise
