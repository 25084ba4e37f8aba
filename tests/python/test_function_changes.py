"""Changes in place in relay.function: every name of an object sees them, as in Python, or they are refused.

A program is drawn of helpers that change their arguments and of statements that call them, take other
names and views, and read. It gives what Python gives, or E0904 (a change that some name would miss).
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from function_oracle import same

import relay


def returned_by_call(x):
    def first(p):
        p[0] = 9
        return p

    a = x.copy()
    b = first(a)
    b[1] = 8
    return a, b


def augmented(x):
    def more(z):
        z += 1

    a, n = x.copy(), 3
    more(a)
    more(a)
    more(n)
    return a, n


def lists_and_dictionaries(x):
    def push(s, v):
        s.append(v)

    def put(d, v):
        d["b"] = v
        d["a"][0] = 5

    xs, d = [1.0], {"a": x * 1}
    push(xs, x[1])
    push(xs, 4.0)
    put(d, x + 1)
    return xs, d["a"], d["b"]


def in_branches_and_loops(x):
    def step(p, i):
        if p[i] > 2:
            p[i] = 0
        else:
            p[i] = -1

    a, stack = x.copy(), [0.0]
    i = 0
    while i < x[4]:
        step(a, i)
        stack.append(a[i])
        i += 1
    if x[1] > 0:
        step(a, 4)
    return a, stack[2]


def through_two_helpers(x):
    def inner(p):
        p[0] += 1

    def outer(q):
        inner(q)
        inner(q)
        return q[0]

    def swap(p, q):
        t = p.copy()
        p[:] = q
        q[:] = t

    a, b = x.copy(), x * 2
    r = outer(a)
    swap(a, b)
    return a, b, r


def elements(x):
    rows = [x * 1, x * 2]
    a = rows[0]
    rows[0][1] = 50
    rows[0] += 1
    for row in rows:
        row -= 2
    c = rows
    c.append(x)
    return a, rows[1], len(rows)


def other_names(x):
    y = {"a": x}
    z = y
    y["a"] = x * 2
    t = [x * 1]
    u = (t, x)
    t.append(x)
    return z["a"], len(u[0])


def rebound(x):
    def apart(p):
        p = p + 1
        p[0] = 7
        return p

    a = x.copy()
    return apart(a), a


AS_PYTHON = [
    returned_by_call, augmented, lists_and_dictionaries, in_branches_and_loops, through_two_helpers,
    elements, other_names, rebound,
]  # fmt: skip


@pytest.mark.parametrize("function", AS_PYTHON, ids=lambda f: f.__name__)
def test_changes_are_seen_as_in_python(function):
    compiled = relay.function(function, opt_level=0)
    x = np.arange(5.0)
    same(compiled(x), function(x))
    same(compiled(x + 1), function(x + 1))


def in_an_expression(x):
    def g(p):
        p[0] = 7
        return p.sum()

    a = x.copy()
    return a.sum() + g(a)


def recursive(x):
    def g(p, n):
        if n > 0:
            p[0] = n
            g(p, n - 1)
        return 0

    a = x.copy()
    g(a, 3)
    return a


def read_around(x):
    a = x.copy()

    def g(p):
        s = 0.0
        for i in range(5):
            s = s + a[0]
            p[0] = p[0] + i
        return s

    return g(a)


def default(x):
    def g(p=[]):  # noqa: B006
        p.append(1)
        return len(p)

    n = g()
    return n + g()


def argument_of_main(x):
    def g(p):
        p[0] = 1

    g(x)
    return x


def rows_of_an_array(x):
    y = np.zeros((3, 5))
    for row in y:
        row += 5
    return y


def what_the_loop_runs_over(x):
    a = x.copy()
    for r in [a, a]:
        r += 1
    return a


def view(x):
    def g(p):
        p[0] = 9

    a = x.copy()
    v = a[1:]
    g(a)
    return v


def element_of_an_open_list(x):
    rows = [x * 1 for _ in x]
    row = rows[0]
    row[0] = 9
    return rows[0]


def result_that_is_an_argument(x):
    y = same_array(x)
    y[0] = 1
    return y


@relay.function
def same_array(x):
    return x


REFUSED = [
    (in_an_expression, "within an expression"), (recursive, "calls itself"),
    (read_around, "read by another"), (default, "the default of 'p'"),
    (argument_of_main, "the caller's"), (rows_of_an_array, "the loop runs over"),
    (what_the_loop_runs_over, "has changed in place"), (view, "'v' shares memory"),
    (element_of_an_open_list, "'rows' shares memory"), (result_that_is_an_argument, "the caller's"),
]  # fmt: skip


@pytest.mark.parametrize("function, words", REFUSED, ids=lambda f: getattr(f, "__name__", None))
def test_changes_that_a_name_would_miss_are_refused_with_the_line(function, words):
    with pytest.raises(relay.UserError) as raised:
        relay.function(function)(np.arange(5.0))
    text = str(raised.value)
    assert raised.value.code == "E0904" and words in text, text
    assert "test_function_changes.py" in text and "^" in text


HELPERS = """
    def first(p):
        p[0] = 7
    def more(p):
        p += 1
    def rows(p):
        for i in range(3):
            p[i] = p[i] * 2 + i
    def some(p, c):
        if c > 1:
            p[1] = -1
            return c
        return c + 1
    def apart(p):
        p = p + 1
        p[0] = 3
        return p
    def ident(p):
        return p
    def view(p):
        return p[1:]
    def both(p, q):
        first(p)
        more(q)
        return p
    def push(s, v):
        s.append(v)
    def read():
        return a[0]
    a = x.copy()
    b = x * 2
    c = a
    xs = [a, b * 1]
    ys = [x * 1 for _ in range(n)]
    s = 0.0
"""


def statement(rng: random.Random, depth: int = 0) -> list[str]:
    name = rng.choice
    array = name(["a", "b", "c", "xs[0]", "xs[1]"])
    if depth < 2 and rng.random() < 0.25:
        head = name(["for i in range(2):", "if x[1] > 0.5:", "for i in range(n):", "if x[1] > 9:"])
        body = [line for _ in range(2) for line in statement(rng, depth + 1)]
        return [head, *("    " + line for line in body)]
    return [
        name([
            f"first({array})", f"more({array})", f"rows({array})", f"s = some({array}, s)",
            f"c = apart({array})", f"c = ident({array})", f"c = view({array})", f"c = {array}",
            f"c = {array}.copy()", f"c = both({array}, {name(['a', 'b', 'c'])})",
            f"{name(['a', 'b', 'c'])}[1] = {rng.randint(2, 9)}", f"{name(['a', 'b', 'c'])} *= 2",
            f"xs[{rng.randint(0, 1)}][2] = 5", "xs[0] += 1", "s = s + read()", f"xs[1] = {array}",
            "push(ys, x)", "ys[0][1] = 4", "c = ys[1]", f"s = s + {array}[0] + some({array}, 1)",
        ])
    ]  # fmt: skip


def drawn(rng: random.Random) -> str:
    lines = [line for _ in range(rng.randint(2, 7)) for line in statement(rng)]
    body = "".join(f"    {line}\n" for line in lines)
    return f"def f(x, n):{HELPERS}{body}    return a, b, c, xs[0], xs[1], ys[0], ys[1], s\n"


def check_drawn(folder, seed: int) -> bool:
    """Whether a drawn program is compiled; AssertionError where it gives something else."""
    text = drawn(random.Random(seed))
    file = folder / f"drawn_{seed}.py"
    file.write_text("import numpy as np\n" + text)
    names: dict = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    x = np.arange(4.0)
    try:
        compiled = relay.function(names["f"], opt_level=0)
        found = compiled(x, 3)
    except relay.UserError as problem:
        # A variable that is of another rank, or has no value, on some ways is no change that is lost.
        assert problem.code in ("E0904", "E0903", "E0905"), f"seed {seed}\n{problem}\n{text}"
        return False
    expected = names["f"](x, 3)
    try:
        same(found, expected)
    except AssertionError as problem:
        raise AssertionError(f"seed {seed}\n{text}\n{problem}") from None
    return True


def test_drawn_programs_change_as_in_python(tmp_path):
    compiled = [check_drawn(tmp_path, seed) for seed in range(40)]
    assert sum(compiled) >= 8


@pytest.mark.slow
def test_many_drawn_programs_change_as_in_python(tmp_path):
    compiled = [check_drawn(tmp_path, seed) for seed in range(1000, 2500)]
    assert sum(compiled) >= 300
