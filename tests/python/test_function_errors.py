"""What relay.function refuses: the code, the line with the caret, what was found, what to write."""

from __future__ import annotations

import functools
import re
import sys
import types

import numpy as np
import pytest

import relay

HEADER = """\
from dataclasses import dataclass
import math
import numpy as np
import relay
LIST = [1.0, 2.0]
ARRAY = np.ones(3, "float32")
def plain(x): return x
@relay.data
class Shape:
    class Circle:
        radius: float
    class Nothing:
        pass
@relay.function
"""

# A case is the code and words of the message, then the function's body, with carets under what they
# are to be under; "def f" in a line of its own: the whole function.

OUTSIDE = """\
E0902 try is not
    try:
    ^
        y = x
    except ValueError:
        y = 1
    return y

E0902 with is not
    with open('f') as g:
    ^
        return x

E0902 a generator is not
    yield x
    ^^^^^^^

E0902 import within
    import os
    ^^^^^^^^^
    return x

E0902 return the new value
    global LIST
    ^^^^^^^^^^^
    return x

E0902 a class within
    class A: pass
    ^^^^^^^^^^^^^
    return x

E0902 leave it out
    del x
    ^^^^^
    return 1

E0902 a set is not
    return {1, 2}
           ^^^^^^

E0902 dictionary
    return {i: x for i in range(2)}
           ^^^^^^^^^^^^^^^^^^^^^^^^

E0902 a line of its own
    if (n := 3) > 2:
        ^^^^^^
        return x
    return n

E0902 else of a loop
    for i in range(3):
        pass
    else:
        x = 1
        ^^^^^
    return x

E0902 async
    def g():
        async def h(): pass
        ^^^^^^^^^^^^^^^^^^^
    return x
"""

# With x: relay.Tensor[(3, 4), "float32"] and n: int.

AT_THE_CALL = """\
E0905 indexed by integers
    return x[x]
           ^^^^

E0905 indices are integers
    return np.take(x, x)
           ^^^^^^^^^^^^^

E0905 the sizes of a shape are integers
    return np.zeros(x.sum())
           ^^^^^^^^^^^^^^^^^

E0903 'y' is not defined
    return y
           ^

E0903 only on some ways
    if n > 2:
        z = x
    return z
           ^

E0903 within the loop only
    for i in range(n):
        z = i
    return z
           ^

E0903 may have no value here
    z = z + 1
        ^
    return z

E0903 no attribute 'colour'
    return x.colour
           ^^^^^^^^

E0904 an argument, which is the caller's
    x[0] = 1
    ^
    return x

E0904 x = x.copy()
    x += 1
    ^
    return x

E0904 'LIST' is captured
    LIST.append(n)
    ^^^^
    return x

E0904 shares memory with 'y'
    y = x.copy()
    z = y[0]
    y[0] = 2
    return z
           ^

E0904 shares memory
    y = x * 1
    z = y.T
    for i in range(n):
        x = x + z.sum()
                ^
        y[0] = i
    return x

E0905 values of different types
def f
    if n > 2:
        return x
    return n > 2

E0905 different types
    return x if n > 2 else x[0]
           ^^^^^^^^^^^^^^^^^^^^

E0905 not a tensor of them
    if x > 0:
       ^^^^^
        return x
    return -x

E0905 numpy.sqrt is not defined for strings
    return np.sqrt('text')
           ^^^^^^^^^^^^^^^

E0905 not defined for these dtypes
    return x & 1
           ^^^^^

E0905 2 values
    a, b = x, n, n
    ^^^^
    return a

E0905 index 3 of an axis of size 3
    return x[3]
           ^^^^

E0905 3 indices for a tensor of rank 2
    return x[0, 0, 0]
           ^^^^^^^^^^

E0905 axis 2 of a tensor of rank 2
    return x.sum(axis=2)
           ^^^^^^^^^^^^^

E0905 keeps its dtype
    y = np.zeros(3, 'int32')
    y += 0.5
    ^^^^^^^^
    return y

E0905 the assertion fails: images
    assert x.ndim == 3, 'images'
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    return x

E0905 prints, or asserts, itself
    assert n > 2, [print(i) for i in range(2)]
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    return x

E0902 raises no exceptions
    if n > 2:
        raise ValueError('big')
        ^^^^^^^^^^^^^^^^^^^^^^^
    return x

E0902 never ends
    while True:
    ^
        n = n + 1
    return x

E0902 not assigned to
    n.real = 3
    ^^^^^^
    return x

E0905 300 is not a value of uint8
    return x.astype("uint8") + 300
           ^^^^^^^^^^^^^^^^^^^^^^^

E0905 returns tensors, numbers, strings
def f
    return np.sin

E0905 needs a known number of elements
    return max([i for i in range(n)])
           ^^^^^^^^^^^^^^^^^^^^^^^^^^

E0906 relay.Static
    return x.sum(axis=n)
           ^^^^^^^^^^^^^

E0906 elements of one type
    return (x, 'a')[n]
           ^^^^^^^^^^^

E0907 print has no 'file'
    print(n, file=None)
    ^^^^^^^^^^^^^^^^^^^
    return x

E0902 the format of a value that is known only at run time
    print(f'{n:.3f}')
          ^^^^^^^^^^
    return x

E0907 decorate it with @relay.function
    return plain(x)
           ^^^^^^^^

E0907 svd is not part of
    return np.linalg.svd(x)
           ^^^^^^^^^^^^^^^^

E0907 colour
    return np.sum(x, colour=1)
           ^^^^^^^^^^^^^^^^^^^

E0907 not a function
    return n(x)
           ^^^^

E0907 takes 1 argument, not 2
    g = lambda a: a
    return g(x, n)
           ^^^^^^^

E0907 takes other fields
    return Shape.Circle(1.0, 2.0)
           ^^^^^^^^^^^^^^^^^^^^^^

E0908 'radius' is of another type
    return Shape.Circle(x)
           ^^^^^^^^^^^^^^^

E0910 only what it returns itself
def f
    g = lambda v: g(v)
    return g(x)

E0910 only what it returns itself
def f
    return f(x, n - 1)

E0910 annotate what f returns, as in def f(...) -> int:
    total = 0
    for i in range(n):
        if i % 2 == 0:
            total = f(x, i)
                    ^^^^^^^
    return total + 1

E0910 g calls itself in a loop
    def g(k):
        s = 0
        while k > 1:
            if k > 2:
                s = g(k - 1)
                    ^^^^^^^^
            k -= 1
        return s
    return g(n)

E0906 a table by numbers is an array
    memo = {}
    def fib(k):
        if k in memo:
           ^^^^^^^^^
            return memo[k]
        return k
    return fib(n)

E0907 drops depends on sizes that only the run knows
    return x[:n].squeeze()
           ^^^^^^^^^^^^^^^

E0203
    return x @ np.ones((3, 2), 'float32')
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

E0203 (3, 4) and (3,)
    return x + np.ones(3, 'float32')
           ^^^^^^^^^^^^^^^^^^^^^^^^^

E0203 (3, 4) and (3, 2)
    y = relay.nn.dense(x, x[:, :2])
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
    return y

E0907 axes
    return relay.nn.softmax(x, axes=1)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""


def cases(text):
    found = []
    for block in text.strip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        code, _, words = head.partition(" ")
        body, line, caret = [], 0, "def f"
        for one in lines:
            if re.fullmatch(r" *\^+", one):
                line, caret = len(body), one
            elif one != "def f":
                body.append(one)
        found.append(pytest.param("\n".join(body), line, caret, code, words, id=f"{code} {words}"))
    return found


def load(tmp_path, body, header=HEADER, parameters="x, n"):
    text = f"{header}def f({parameters}):\n{body}\n"
    path = tmp_path / "program.py"
    path.write_text(text)
    module = sys.modules["program"] = types.ModuleType("program")
    exec(compile(text, str(path), "exec"), vars(module))
    return module.f


# From 3.12 on, Python knows where in a string what is within its braces is.
FINE_PLACES = sys.version_info >= (3, 12)


def check(raised, line, caret, code, words):
    error, text = raised.value, str(raised.value)
    assert error.code == code, text
    assert words in text, text
    found = re.search(r"--> .*program\.py:(\d+):(\d+)\n", text)
    assert int(found[1]) == HEADER.count("\n") + 1 + line, text
    if line:
        begin, shown = int(found[2]) - 1, re.search(r"\| *(\^+)", text)[1]
        if FINE_PLACES and "format of a value" in words:
            assert caret.index("^") <= begin and begin + len(shown) <= len(caret), text
            return
        assert begin == caret.index("^") and shown == caret.strip(), text


@pytest.mark.parametrize("body, line, caret, code, words", cases(OUTSIDE))
def test_outside_the_subset_at_decoration(tmp_path, body, line, caret, code, words):
    with pytest.raises(relay.UserError) as raised:
        load(tmp_path, body)
    check(raised, line, caret, code, words)


@pytest.mark.parametrize("body, line, caret, code, words", cases(AT_THE_CALL))
def test_what_does_not_fit_at_the_call(tmp_path, body, line, caret, code, words):
    f = load(tmp_path, body, parameters='x: relay.Tensor[(3, 4), "float32"], n: int')
    with pytest.raises(relay.UserError) as raised:
        f(np.ones((3, 4), "float32"), 3)
    check(raised, line, caret, code, words)


def test_nesting_has_a_limit(tmp_path):
    with pytest.raises(relay.UserError) as raised:
        load(tmp_path, "    return x + " + "-" * 1600 + "x")
    assert raised.value.code == "E0909" and "1500 levels deep" in str(raised.value)
    deep = load(tmp_path, "    return x" + " + x" * 700)
    np.testing.assert_allclose(deep(np.ones(1, "float32"), 1), 701)


def test_a_recursion_whose_types_grow(tmp_path):
    f = load(tmp_path, "    return n if n < 0 else f((x, n), n)")
    with pytest.raises(relay.UserError) as raised:
        f(np.ones(3, "float32"), 3)
    assert raised.value.code == "E0909" and "64 combinations of types" in str(raised.value)
    assert "f((x, n), n)" in str(raised.value)


def test_annotations(tmp_path):
    with pytest.raises(TypeError, match="a dimension is a size, a name or None, not -1"):
        _ = relay.Tensor[(-1,), "float32"]
    with pytest.raises(TypeError):
        _ = relay.Tensor[(1,), "float33"]
    f = load(tmp_path, "    return x", parameters='x: relay.Tensor[("n",), "float32"], n')
    g = load(
        tmp_path, "    return x", parameters='x: relay.Tensor[("n", "n"), "float32"], n: float'
    )
    with pytest.raises(relay.UserError) as raised:
        f(np.ones(3), 1)
    assert raised.value.code == "E0603"
    with pytest.raises(relay.UserError):
        g(np.ones((3, 4), "float32"), 1.0)
    with pytest.raises(relay.UserError) as raised:
        load(tmp_path, "    return x", parameters="x: nowhere, n")
    assert raised.value.code == "E0908" and "nowhere" in str(raised.value)
    with pytest.raises(relay.UserError) as raised:
        load(tmp_path, "    return x", parameters="x, n")(np.array([b"bytes"]), 1)
    assert raised.value.code == "E0908"
    result = load(tmp_path, "    return x", parameters="x, n").python
    result.__annotations__["return"] = relay.Tensor[(3,), "int32"]
    with pytest.raises(relay.UserError) as raised:
        relay.function(result)(np.ones(3, "float32"), 1)
    assert raised.value.code == "E0908" and "return" in str(raised.value)


def test_no_source():
    names = {}
    exec("def f(x):\n    return x", names)
    with pytest.raises(relay.UserError) as raised:
        relay.function(names["f"])
    assert raised.value.code == "E0901" and "file or a notebook" in str(raised.value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code does not know its columns")
def test_several_lambdas_in_a_line():
    one, two = relay.function(lambda x: x + 1), relay.function(lambda x: x * 3)
    made = [
        (lambda: relay.function(lambda x: (lambda y: y - 2)(x)))(),
        relay.function(lambda x: -x),
    ]
    assert (one(5), two(5), made[0](5), made[1](5)) == (6, 15, 3, -5)


def test_a_lambda_is_differentiated_and_batched():
    square = relay.function(lambda x: (x * x).sum())
    x = np.array([1.0, 3.0])
    assert relay.grad(square)(x).tolist() == [2, 6]
    assert relay.vmap(square)(x[:, None]).tolist() == [1, 9]
    assert relay.jvp(square)(x, x) is not None and relay.vjp(square)(x, 1.0) is not None


def test_source_that_changed(tmp_path):
    f = load(tmp_path, "    return x").python
    (tmp_path / "program.py").write_text("\n" * 30)
    with pytest.raises(relay.UserError) as raised:
        relay.function(f)
    assert raised.value.code == "E0901" and "changed" in str(raised.value)


def test_recursion_without_end_stops_at_its_fuel(tmp_path):
    f = load(tmp_path, "    if n < 0:\n        return x\n    return f(x, n + 1)")
    with relay.limits(fuel=10_000), pytest.raises(relay.RunError) as raised:
        f(np.ones(2, "float32"), 0)
    assert raised.value.code == "E0606"


def test_decorated_what_is_not_a_function():
    with pytest.raises(TypeError, match="decorates a function"):
        relay.function(3)
    with pytest.raises(TypeError, match="donate is a mapping of parameters"):
        relay.function(lambda x: x + 1.0, donate="x")
    with pytest.raises(TypeError, match=r"remove functools\.cache"):
        relay.function(functools.cache(lambda n: n))
    with pytest.raises(TypeError, match="each is one way"):
        relay.data(type("Empty", (), {}))


@pytest.mark.parametrize(
    "view",
    [
        "y.T",
        "y[1:]",
        "y.reshape(-1)",
        "np.asarray(y)",
        "np.split(y, 3)[0]",
        "np.flip(y)",
        "y[None]",
    ],
)
def test_views_share_memory(tmp_path, view):
    f = load(tmp_path, f"    y = x * 1\n    z = {view}\n    y[0] = n\n    return z")
    with pytest.raises(relay.UserError) as raised:
        f(np.ones((3, 4), "float32"), 1)
    assert raised.value.code == "E0904", str(raised.value)
    g = load(tmp_path, f"    y = x * 1\n    z = {view}\n    z[0] = n\n    return y")
    with pytest.raises(relay.UserError) as raised:
        g(np.ones((3, 4), "float32"), 1)
    assert raised.value.code == "E0904", str(raised.value)
