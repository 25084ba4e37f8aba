"""The functions that docs/python_function.md lists as supported: their results, and what is refused."""

from __future__ import annotations

import ast
import linecache
import math
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from function_oracle import same
from numpy_cases import (
    CASES,
    CONTAINERS,
    DTYPES,
    EMPTY,
    EMPTY_VALUES,
    MATH,
    OF_DTYPE,
    REFUSED,
    values,
)

import relay
from relay._function import numpy_catalogue, python_math, python_methods
from relay._function.numpy_registry import METHOD_ROWS, ROWS, found

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import numpy_table  # noqa: E402

# Names of NumPy's and Python's own release, which others may lack or have more of.
WRITTEN_FOR = "The tables are for NumPy {} and Python {}.".format(*numpy_table.versions())
PAGE = (ROOT / "docs/python_function.md").read_text()
# So many calls share a build.
GROUP = 48


def python_function(body: str, parameters: list[str], name: str = "f") -> types.FunctionType:
    """A function of Python whose source can be read."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"def {name}({', '.join(parameters)}):\n{lines}"
    file = f"<case {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"np": np, "math": math, "relay": relay}
    exec(compile(source, file, "exec"), space)
    return space[name]


def exists(expression: str) -> bool:
    """Whether this NumPy and Python have what an expression names."""
    for node in ast.walk(ast.parse(expression)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (
            "np",
            "math",
            "np.linalg",
        ):
            of = math if ast.unparse(node.value) == "math" else np
            if ast.unparse(node.value) == "np.linalg":
                of = np.linalg
            if not hasattr(of, node.attr):
                return False
    return True


NUMPY = [e for expressions in CASES.values() for e in expressions if exists(e)]


@pytest.mark.parametrize("start", range(0, len(NUMPY), GROUP))
def test_results_are_numpys(start):
    """In value, dtype and shape: compiled, for several draws, and evaluated."""
    part = NUMPY[start : start + GROUP]
    first = values(0)
    given = python_function(f"return ({', '.join(part)},)", sorted(first))
    compiled = relay.function(given, opt_level=0)
    for seed in range(2):
        drawn = values(seed)
        arguments = [drawn[name] for name in sorted(drawn)]
        with np.errstate(all="ignore"):
            expected = given(*arguments)
        for expression, one, other in zip(part, compiled(*arguments), expected, strict=True):
            same(one, other, f"{expression}, draw {seed}", 2e-4)
        if seed == 0:
            mod = compiled.lower(*arguments).module
            evaluated = relay.create_executor("debug", mod).evaluate()(*arguments)
            pairs = zip(leaves(evaluated), leaves(expected), strict=True)
            for i, (one, other) in enumerate(pairs):
                same(one, other, f"result {i} of {part}, evaluated", 2e-4)


def leaves(value: object) -> tuple:
    """The tensors of a result, which the evaluator gives without structure."""
    if isinstance(value, (tuple, list)):
        return tuple(leaf for item in value for leaf in leaves(item))
    return () if isinstance(value, str) else (value,)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_of_nothing_are_numpys():
    part = [e for e in EMPTY if exists(e)]
    given = python_function(f"return ({', '.join(part)},)", sorted(EMPTY_VALUES))
    arguments = [EMPTY_VALUES[name] for name in sorted(EMPTY_VALUES)]
    with np.errstate(all="ignore"):
        expected = given(*arguments)
    results = relay.function(given, opt_level=0)(*arguments)
    for expression, one, other in zip(part, results, expected, strict=True):
        same(one, other, expression)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_numpys(dtype):
    """Of small integers NumPy computes some in half precision, others in double."""
    x = (np.random.default_rng(2).integers(0, 5, (3, 4))).astype(dtype)
    part = [e.replace("X", "x") for e in OF_DTYPE if exists(e)]
    part = [e for e in part if takes(python_function(f"return {e}", ["x"]), x)]
    assert len(part) > 35
    given = python_function(f"return ({', '.join(part)},)", ["x"])
    results = relay.function(given, opt_level=0)(x)
    with np.errstate(all="ignore"):
        expected = given(x)
    for expression, one, other in zip(part, results, expected, strict=True):
        half = any(leaf.dtype == "float16" for leaf in map(np.asarray, leaves(other)))
        # NumPy rounds pi to half precision within sinc: its values beside 0 are a thousandth off.
        same(one, other, f"{expression} of {dtype}", *((2e-3, 1e-3) if half else (1e-5, 1e-6)))


def takes(function: types.FunctionType, x: np.ndarray) -> bool:
    """Whether NumPy's function is there for a dtype."""
    try:
        with np.errstate(all="ignore"):
            function(x)
    except (TypeError, ValueError):
        return False
    return True


def build(body: str, **given: object) -> tuple[types.FunctionType, relay.RelayFunction]:
    plain = python_function(body, sorted(given))
    return plain, relay.function(plain, opt_level=0)


NUMBERS = [
    {"a": 1.2345, "b": -2.675, "n": 5, "k": 3},
    {"a": -7.5, "b": 0.285, "n": 1, "k": 1},
]


def test_results_of_math_are_pythons():
    expressions = [e for name, many in MATH.items() if hasattr(math, name) for e in many]
    for given in NUMBERS:
        for start in range(0, len(expressions), GROUP):
            part = expressions[start : start + GROUP]
            plain, compiled = build(f"return ({', '.join(part)},)", **given)
            for expression, one, other in zip(part, compiled(**given), plain(**given), strict=True):
                same(one, other, f"{expression} of {given}", 1e-12)


BODIES = [
    pytest.param(body, id=f"{of}.{name}{i}")
    for of, methods in CONTAINERS.items()
    for name, bodies in methods.items()
    for i, body in enumerate(bodies)
    if of != "str"
]


@pytest.mark.parametrize("body", BODIES)
def test_methods_do_what_pythons_do(body):
    x = values(3)["x"]
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    for numbers in NUMBERS:
        given = {n: v for n, v in {**numbers, "x": x}.items() if n in used}
        plain, compiled = build(body, **given)
        same(compiled(**given), plain(**given), body)


def test_an_empty_list_has_nothing_to_pop():
    body = "xs = [1.0]\nfor i in range(n):\n    last = xs.pop()\nreturn len(xs)"
    _, compiled = build(body, n=1)
    assert compiled(1) == 0
    with pytest.raises(relay.RunError, match=r"E0616(.|\n)*pop from an empty list \(<case .*:4\)"):
        compiled(2)


def test_methods_of_strings_are_pythons():
    bodies = [b for many in CONTAINERS["str"].values() for b in many if "t." not in b]
    whole = "\n".join(f"def g{i}():\n    {body}" for i, body in enumerate(bodies))
    whole += f"\nreturn ({', '.join(f'g{i}()' for i in range(len(bodies)))},)"
    plain, compiled = build(whole, n=4)
    assert [int(v) for v in compiled(4)] == list(plain(4))
    texts = np.array(["ab", "Cd", "x.d", "axd", "a\nd"], object)
    _, compiled = build("return t.startswith('a'), t.endswith('.d'), t.upper()", t=texts)
    starts, ends, upper = compiled(texts)
    assert list(starts) == [s.startswith("a") for s in texts]
    assert list(ends) == [s.endswith(".d") for s in texts]
    assert list(upper) == [s.upper() for s in texts]


def test_round_is_pythons_to_the_last_digit():
    rng = np.random.default_rng(5)
    numbers = [2.675, 1.005, 0.285, 1.115, 5.015, -0.575, 0.5, 2.5, 1e22, 1e300, 0.0, -0.0]
    numbers += [float(n) / 1000 for n in rng.integers(-(10**6), 10**6, 300)]
    numbers += (rng.standard_normal(100) * 10.0 ** rng.integers(-3, 17, 100)).tolist()
    for digits in (1, 2, 5, -2):

        @relay.function
        def rounded(xs: list[float], n: relay.Static = digits):
            return [round(x, n) for x in xs]

        assert [float(v) for v in rounded(numbers)] == [round(x, digits) for x in numbers]


@pytest.mark.parametrize("call, words, instead", REFUSED, ids=[r[0] for r in REFUSED])
def test_what_is_refused_names_the_argument(call, words, instead):
    drawn = values()
    names = sorted(
        {n.id for n in ast.walk(ast.parse(call)) if isinstance(n, ast.Name)} & set(drawn)
    )
    given = {name: drawn[name] for name in names}
    with pytest.raises(relay.UserError) as caught:
        build(f"return {call}", **given)[1](**given)
    (problem,) = caught.value.diagnostics
    assert words in problem.message + problem.help, str(caught.value)
    assert instead in problem.help, str(caught.value)
    assert "relay/_" not in str(caught.value) and "<lambda>" not in str(caught.value)


@pytest.mark.parametrize("space", ["numpy", "numpy.linalg", "math"])
def test_what_is_not_here_says_what_to_write(space):
    module = {"numpy": "np", "numpy.linalg": "np.linalg", "math": "math"}[space]
    _, names, _ = numpy_table.spaces()[space]
    x = np.float64(0.5)
    for name, instead in numpy_catalogue.ABSENT[space].items():
        if name not in names:
            continue
        with pytest.raises(relay.UserError) as caught:
            build(f"return {module}.{name}(x)", x=x)[1](x)
        (problem,) = caught.value.diagnostics
        assert problem.code == "E0907" and problem.help == instead, str(caught.value)


def test_each_function_that_is_here_is_called():
    called = set(CASES) | set(CONTAINERS["numpy"])
    # Those of strings: test_function_strings.py.
    here = {name for name in ROWS if found(name) is not None and not name.startswith("char.")}
    assert here - called == set()
    assert set(python_math.MATH) - set(MATH) == set()
    for of in ("list", "dict", "str"):
        methods = set(python_methods.READING[of]) | set(python_methods.CHANGING.get(of, {}))
        assert methods - set(CONTAINERS[of]) == set(), of
    assert set(python_methods.CHANGING["ndarray"]) == set(CONTAINERS["ndarray"])


METHODS = {
    "argpartition": "w.argpartition(2)[2:3] * 0", "choose": "(k % 2).choose([v, w])",
    "compress": "v.compress(b)", "item": "x.item(2) + x.item((0, 1))", "repeat": "v.repeat(2)",
    "reshape": "x.reshape(4, 3) + x.reshape((4, 3)) + x.reshape(-1, 3)", "dot": "m.dot(m)",
    "round": "x.round(2)", "searchsorted": "s.searchsorted(v)", "swapaxes": "c.swapaxes(0, 1)",
    "take": "v.take(k)", "transpose": "c.transpose(2, 0, 1)", "astype": "x.astype('float32')",
    "clip": "x.clip(-0.5, 0.5)", "squeeze": "x[None].squeeze(axis=0)", "nonzero": "g.nonzero()",
}  # fmt: skip


def test_methods_and_attributes_of_arrays():
    names = [n for n in METHOD_ROWS if hasattr(np.ndarray, n)]
    calls = [METHODS.get(name, f"x.{name}()") for name in names]
    attributes = ["T", "itemsize", "mT", "nbytes", "ndim", "shape", "size", "real", "imag"]
    calls += [f"x.{name}" for name in attributes if hasattr(np.ndarray, name)]
    drawn = values(1)
    plain, compiled = build(f"return ({', '.join(calls)},)", **drawn)
    for call, one, other in zip(calls, compiled(**drawn), plain(**drawn), strict=True):
        same(one, other, call)


def test_every_public_name_is_in_the_table():
    """Each function that a new NumPy or Python adds is supported or has a row in the catalogue."""
    if WRITTEN_FOR not in PAGE:
        pytest.skip("the table lists the names of another NumPy or Python")
    for space, (_, names, here) in numpy_table.spaces().items():
        absent = set(numpy_catalogue.ABSENT[space])
        assert set(names) - set(here) - absent == set(), space
        assert absent & set(here) == set(), space


def test_the_table_is_current():
    if WRITTEN_FOR not in PAGE:
        pytest.skip("the table lists the names of another NumPy or Python")
    done = subprocess.run([sys.executable, ROOT / "tools/numpy_table.py", "--check"], check=False)
    assert done.returncode == 0, "run tools/numpy_table.py"
