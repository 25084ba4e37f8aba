"""Every construct of Python is compiled, with Python's result, or refused where it stands."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback

import numpy as np
import pytest

import relay

# ruff: noqa: E501
HEADER = """\
import asyncio
from dataclasses import dataclass
import numpy as np
import relay
LIST = [1.0, 2.0]
@dataclass
class Point:
    x: object
    y: object
POINT = Point(1.0, 2.0)
@relay.function
"""

# What is compiled: bodies of f(x, n), for a matrix of 2 x 3 and a number.
COMPILED = [
    "return x + n - x * n / 2 // 1 % 5 ** 2",
    "return x @ x.T",
    "return n << 1 >> 1 | 4 & 6 ^ 1",
    "return (not n) or (n and n > 1)",
    "return -x, +x, ~np.array([1, 2])",
    "return n < 1, n <= 1, n > 1, n >= 1, n == 1, n != 1, 0 < n < 9",
    "return n is None, n is not None, 'a' in ('a', 'b'), 3 not in [1, 2]",
    "return x if n > 0 else -x",
    "return (lambda a, b=1: a + b)(x)",
    "y = x\nz: int = 3\ny = y * z\ny -= 1\nreturn y",
    "a, *b = [x, n, 3]\n(c, [d]) = (1, [2])\nreturn a, b, c, d",
    "return x[0], x[..., 1:], x[None], x[:, ::2]",
    "return {'a': x, 'b': [n]}",
    "return [v * 2 for v in [1, 2, 3] if v != 2]",
    "return sum(v for v in [n, 2])",
    "total = 0.0\nfor i in range(10):\n    if i == 2:\n        continue\n    if i > 5:\n        break\n    total += i\nreturn total",
    "while n > 0:\n    n = n - 1\n    x = x + 1\nreturn x",
    "return n**-1, 2**n, (lambda *a, **k: (a, k['b']))(x, b=1)",
    "return n == 'a', None != n, x is None",
    "pass\n'a string'\n...\nreturn np.sum(x, axis=0)",
    "assert n >= 0, f'n is {n}'\nreturn n",
    "if n is None:\n    raise ValueError('no n')\nelif n == 'a':\n    return 1\nelse:\n    return x",
    "def g(a, /, b, *, c=1):\n    return a + b + c\nreturn g(x, n, c=2), g(*[x, n])",
    "match n:\n    case 0:\n        return x\n    case 1 | 2:\n        return x + 1\n    case _:\n        return x + 2",
    "match (n, None, POINT):\n    case (a, None, Point(x=b, y=_)):\n        return a + b\n    case _:\n        return 0.0",
    "match [n, 2]:\n    case [a, b] if b == 2:\n        return a\n    case other:\n        return n",
]

# What is refused: the construct, and words of the reason.
REFUSED = {
    "AsyncFunctionDef": ("async def g():\n    return 1\nreturn x", "event loop"),
    "AsyncFor": ("async def g():\n    async for i in x:\n        pass\nreturn x", "async"),
    "AsyncWith": ("async def g():\n    async with x:\n        pass\nreturn x", "async"),
    "Await": ("async def g():\n    await x\nreturn x", "async"),
    "ClassDef": ("class A:\n    pass\nreturn x", "outside the function"),
    "Delete": ("del n\nreturn x", "leave it out"),
    "DictComp": ("return {i: x for i in range(2)}", "write the dictionary out"),
    "Global": ("global LIST\nLIST = 1\nreturn x", "return the new value"),
    "Nonlocal": ("def g():\n    nonlocal x\n    x = 1\nreturn x", "return the new value"),
    "Import": ("import os\nreturn x", "top of the file"),
    "ImportFrom": ("from os import path\nreturn x", "top of the file"),
    "NamedExpr": ("return (y := x) + y", "a line of its own"),
    "Set": ("return {1, 2}", "a list or a tuple"),
    "SetComp": ("return {v for v in [1]}", "list comprehension"),
    "Try": ("try:\n    return x\nexcept ValueError as e:\n    return n\nfinally:\n    pass", "with if"),
    "TryStar": ("try:\n    return x\nexcept* ValueError:\n    n = 1", "with if"),
    "With": ("with x as y:\n    return y", "outside the function"),
    "Yield": ("yield x", "append to a list"),
    "YieldFrom": ("yield from x", "append to a list"),
    "MatchMapping": ("match {'a': n}:\n    case {'a': 1, **rest}:\n        return x\n    case _:\n        return n",
                     "write it with if"),
    "MatchStar": ("match (n, 1, 2):\n    case [a, *rest]:\n        return a\n    case _:\n        return n",
                  "lists of open length"),
    "Starred": ("return print(*x)", ""),
    "TypeAlias": ("type A = int\nreturn x", "outside the function"),
    "TypeVar": ("def g[T](a: T):\n    return a\nreturn g(x)", "type parameters"),
    "TypeVarTuple": ("def g[*T](a):\n    return a\nreturn g(x)", "type parameters"),
    "ParamSpec": ("def g[**T](a):\n    return a\nreturn g(x)", "type parameters"),
    "TemplateStr": ("return t'{n}'", ""),
    "else of for": ("for i in range(3):\n    pass\nelse:\n    n = 1\nreturn x", "before break"),
    "else of while": ("while n > 3:\n    n = 1\nelse:\n    n = 1\nreturn x", "before break"),
    "assigned attribute": ("POINT.x = 1\nreturn x", "replace"),
    "complex numbers": ("return x + 1j", ""),
    "bytes": ("return x + b'a'", ""),
    "an unknown name": ("return y", "not defined"),
    "an unknown attribute": ("return x.nothing", "no attribute"),
    "a call of a function of Python": ("return len(open('a').read())", ""),
    "a captured list that changes": ("LIST.append(1)\nreturn x", "captured"),
    "a captured list whose element changes": ("LIST[0] = 1\nreturn x", "captured"),
    "an argument that changes": ("x[0] = 1\nreturn x", "copy"),
    "an f-string with a format": ("print(f'{n:.2f}')\nreturn x", "colon"),
    "a condition of many values": ("return 1 if x > 0 else 2", "one truth value"),
    "a slice of a number": ("return n[0]", ""),
    "a missing return": ("if n > 0:\n    return x", ""),
    "a shape that does not fit": ("return x + np.ones(5)", "(2, 3) and (5,)"),
    "a product that does not fit": ("return x @ x", "(2, 3) and (2, 3)"),
    "a keyword that is not there": ("return np.sum(x, axes=0)", "axes"),
    "too many arguments": ("return (lambda a: a)(x, n)", ""),
    "a recursion of lambdas": ("g = lambda a: g(a)\nreturn g(x)", ""),
    "a division of strings": ("return 'a' / 'b'", ""),
    "an index of a string": ("return x['a']", ""),
    "an unhashable key": ("return {x: 1}", ""),
    "unpacking of too many": ("a, b, c = (1, 2)\nreturn x", "2"),
    "raise at run time": ("if x[0, 0] > 0:\n    raise ValueError('no')\nreturn x", ""),
    "an attribute of a module that is not there": ("return np.nothing(x)", "nothing"),
    "a negative power of integers": ("return np.array([1, 2]) ** -n, np.array([1, 2]) ** -1", "divide 1"),
    "iterating over a number": ("for i in n:\n    pass\nreturn x", ""),
    "an infinite loop over a generator": ("return [v for v in iter(int, 1)]", ""),
}  # fmt: skip

# Parts of other constructs, what no function holds, and what older versions of Python have in place of others.
PARTS = {
    "Module", "Interactive", "Expression", "FunctionType", "TypeIgnore", "Load", "Store", "Del", "AugLoad", "AugStore",
    "Param", "Suite", "Index", "ExtSlice", "Num", "Str", "Bytes", "NameConstant", "Ellipsis", "arguments", "arg",
    "alias", "keyword", "withitem", "ExceptHandler", "comprehension", "match_case", "FormattedValue",
    "Interpolation",
}  # fmt: skip


def source_of(body):
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"{HEADER}def f(x, n):\n{lines}\n"


def load(tmp_path, body):
    path = tmp_path / f"program_{abs(hash(body))}.py"
    path.write_text(source_of(body))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.f


def leaf_classes():
    todo, found = [ast.AST], set()
    while todo:
        cls = todo.pop()
        below = [c for c in cls.__subclasses__() if c.__module__ == "ast"]
        todo += below
        if not below:
            found.add(cls.__name__)
    return found


def classes_in(body):
    return {type(node).__name__ for node in ast.walk(ast.parse(source_of(body)))}


def is_python(body):
    try:
        ast.parse(source_of(body))
    except SyntaxError:
        return False
    return True


def test_every_construct_of_this_python_is_tried():
    tried = {name for body in COMPILED for name in classes_in(body)}
    tried |= {
        name for name, (body, _) in REFUSED.items() if is_python(body) and name in classes_in(body)
    }
    assert leaf_classes() - PARTS - tried == set()


def same(a, b):
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return np.allclose(a, b)


X, N = np.arange(6.0).reshape(2, 3), 2


@pytest.mark.parametrize("body", COMPILED)
def test_what_is_compiled_gives_what_python_gives(tmp_path, body):
    f = load(tmp_path, body)
    assert same(f(X, N), f.python(X, N))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_where_and_why(tmp_path, name):
    body, words = REFUSED[name]
    if not is_python(body):
        pytest.skip("this Python does not have it")
    with pytest.raises(relay.UserError) as raised:
        load(tmp_path, body)(X, N)
    text = str(raised.value)
    assert "program_" in text and "^" in text and words in text, text
    # The traceback is the user's own lines, and the call.
    assert len(traceback.extract_tb(raised.value.__traceback__)) <= 6
    # The reason is the error's own, and nothing from within the reader.
    assert not isinstance(
        raised.value.__cause__, (AttributeError, KeyError, AssertionError, IndexError)
    ), text


def test_a_negative_power_that_is_known_at_run_time_only(tmp_path):
    f = load(tmp_path, "return 2**n")
    assert f(X, 5) == 32
    with pytest.raises(relay.RunError, match=r"E0616(.|\n)*power is negative \(.*program_.*:13\)"):
        f(X, -1)
