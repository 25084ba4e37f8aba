"""Functions within a decorated function that are its result."""

import numpy as np
import pytest

import relay

V = relay.Tensor[("n",), "float32"]
ONES = np.ones(3, "float32")


def test_it_runs_on_what_it_captured(capfd):
    @relay.function
    def make(k):
        total = np.exp(k).sum()
        print("made")

        def times(y: V):
            return y * total

        return times

    times = make(np.zeros(3, "float32"))
    assert isinstance(times, relay.FunctionValue)
    assert times(ONES).tolist() == [3, 3, 3]
    assert times(ONES[:1]).tolist() == [3]
    assert capfd.readouterr().out == "made\n"
    # The sum is outside of the function: once, however often that is called.
    text = make.lower(np.zeros(3, "float32")).astext()
    assert text.index("sum(") < text.index("fn (%y")


def test_ways_of_a_function_return_different_ones():
    @relay.function
    def choose(up: bool, k: float):
        def more(y: float):
            return y + k

        def less(y: float):
            return y - k

        if up:
            return more
        return less

    assert choose(True, 2.0)(1.0) == 3.0
    assert choose(False, 2.0)(1.0) == -1.0


def test_within_structures_with_the_sizes_around_them():
    @relay.function
    def pair(k: V):
        def add(y: "V"):
            return y + k, y.sum()

        def factorial(n: int):
            return 1 if n <= 1 else n * factorial(n - 1)

        return {"add": add, "all": [factorial], "k": k}

    made = pair(ONES)
    total, of_y = made["add"](ONES)
    assert total.tolist() == [2, 2, 2] and of_y == 3
    assert made["all"][0](5) == 120
    with pytest.raises(relay.UserError, match="E0603"):
        made["add"](np.ones(4, "float32"))


def test_references_are_shared():
    @relay.function
    def counter(r):
        def step(by: float):
            r.value = r.value + by
            return r.value

        return step

    r = relay.RefValue(np.zeros(()))
    step = counter(r)
    step(1.0)
    assert step(2.0) == 3.0 and float(r.value) == 3.0


def test_a_recursion_returns_one_and_calls_it():
    @relay.function
    def after(n: int):
        def add(y: float):
            return y + n

        if n > 3:
            return add
        found = after(n + 1)
        found(0.0)
        return found

    assert after(0)(1.0) == 5.0


def test_defaults_are_captured():
    @relay.function
    def make(k):
        def add(y: float, by=k):
            return y + by

        return add

    assert make(2.0)(1.0) == 3.0


@relay.function
def adder(k):
    def add(y):
        return y + k

    return add


def test_another_function_calls_what_one_returns():
    @relay.function
    def use(x, k):
        both = adder(k), adder(2 * k)
        return both[0](x), both[1](x)

    a, b = use(ONES, np.float32(2))
    assert a.tolist() == [3, 3, 3] and b.tolist() == [5, 5, 5]


@pytest.mark.parametrize("made", [relay.vmap, relay.grad, relay.jacobian])
def test_what_is_made_of_a_function_gives_no_functions(made):
    with pytest.raises(relay.UserError, match=r"E0905.*of returns a function"):
        made(adder)(np.ones(3))


REFUSED = {
    "def g(y):\n    return y\nreturn g": ("E0908", "'y' is not known", "annotations"),
    "return lambda y: y": ("E0908", "'y' is not known", "annotations"),
    "def g(*y: float):\n    return y\nreturn g": ("E0908", "not positional", ""),
    "def g(y: tuple[float, int]):\n    return y[0]\nreturn g": ("E0908", "neither tensor nor", ""),
    "def g(y: no_such_type):\n    return y\nreturn g": ("E0903", "no_such_type", ""),
    "def g(y: float):\n    return [y]\nreturn g": ("E0905", "tensors, numbers, and tuples", ""),
    "return relay.grad(lambda y: y)": ("E0905", "made of a function", "that calls it"),
    "return (np.sin if x > 0 else (lambda y: -y))(x)": ("E0905", "lambda of line", "both"),
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused_where_it_is_returned(body, tmp_path):
    code, words, help_ = REFUSED[body]
    path = tmp_path / "program.py"
    indented = "\n".join("    " + line for line in body.split("\n"))
    path.write_text(f"import numpy as np, relay\n\n@relay.function\ndef f(x):\n{indented}\n")
    scope = {"__name__": "program"}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    with pytest.raises(relay.UserError) as raised:
        scope["f"](1.0)
    assert raised.value.code == code, raised.value
    assert words in str(raised.value) and help_ in str(raised.value)
    assert f"program.py:{4 + body.count(chr(10)) + 1}:" in str(raised.value)
