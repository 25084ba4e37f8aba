"""Gradients where a known size goes through a function that says `?` to one that names it."""

import numpy as np
import pytest

import relay

VERSION = '#[version = "0.0.5"]\n'
LIST = "type List[A] { Cons(A, List[A]), Nil }\n"
F = """def @f[n: Dim](%x: Tensor[(n), float64]) -> Tensor[(n), float64] { multiply(%x, exp(%x)) }
"""
LOOP = """def @f[n: Dim](%i: int32, %x: Tensor[(n), float64]) -> Tensor[(n), float64] {
  if (less(%i, 1)) { %x } else { multiply(%x, @f(subtract(%i, 1), %x)) } }
"""
SUM = """def @s(%l: List[Tensor[(?), float64]], %c: Tensor[(?), float64]) -> Tensor[(?), float64] {
  match (%l) { Cons(%h, %t) => @s(%t, @g(%h, %c)), Nil => %c } }
def @g[n: Dim, m: Dim](%x: Tensor[(n), float64], %y: Tensor[(m), float64]) -> Tensor[(m), float64] {
  multiply(sum(%x), exp(%y)) }
"""
X = np.array([0.1, 0.2, -0.3, 0.5])
# Of each program: text, and what it computes for a row of arguments.
PROGRAMS = {
    "a function": (
        F + "def @g(%x: Tensor[(?), float64]) { sum(@f(%x)) }\n"
        "def @main(%x: Tensor[(4), float64]) { @g(%x) }",
        lambda x: (x * np.exp(x)).sum(-1),
    ),
    "a recursion": (
        LOOP + "def @g(%i: int32, %x: Tensor[(?), float64]) { sum(@f(%i, %x)) }\n"
        "def @main(%x: Tensor[(4), float64]) { @g(2, %x) }",
        lambda x: (x**3).sum(-1),
    ),
    "a list": (
        LIST + F + "def @s(%l: List[Tensor[(?), float64]]) -> float64 {\n"
        "  match (%l) { Cons(%h, %t) => add(sum(@f(%h)), @s(%t)), Nil => 0f64 } }\n"
        "def @k(%x: Tensor[(?), float64]) { @s(Cons(%x, Cons(multiply(%x, %x), Nil))) }\n"
        "def @main(%x: Tensor[(4), float64]) { @k(%x) }",
        lambda x: (x * np.exp(x) + x**2 * np.exp(x**2)).sum(-1),
    ),
    "a list and a state": (
        LIST + SUM + "def @k(%x: Tensor[(?), float64]) { sum(@s(Cons(%x, Nil), %x)) }\n"
        "def @main(%x: Tensor[(4), float64]) { @k(%x) }",
        lambda x: x.sum(-1) * np.exp(x).sum(-1),
    ),
}


def slope(f, x, h=1e-5):
    moves = h * np.eye(len(x))
    return (f(x + moves) - f(x - moves)) / (2 * h)


@pytest.mark.parametrize("level", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("program", PROGRAMS)
def test_known_sizes_through_open_ones(program, level):
    text, f = PROGRAMS[program]
    mod = relay.parse(VERSION + text)

    def run(kind, *args):
        whole = relay.transform.add_derivative(mod, "main", "d", kind)
        if level is None:
            return relay.create_executor("debug", whole).evaluate().run("d", *args)
        entry = {"relay.RemoveUnusedFunctions.entry_functions": ["d"]}
        with relay.transform.PassContext(level, config=entry):
            return relay.build(whole).run("d", *args)

    along = np.array([1.0, -2.0, 0.5, 3.0])
    value, (dx,) = run("gradient", X)
    np.testing.assert_allclose(np.asarray(value), f(X))
    np.testing.assert_allclose(np.asarray(dx), slope(f, X), rtol=1e-7)
    _, change = run("jvp", X, along)
    np.testing.assert_allclose(np.asarray(change), slope(f, X) @ along, rtol=1e-7)
    (second,) = run("hvp", X, along)
    curve = (slope(f, X + 1e-4 * along) - slope(f, X - 1e-4 * along)) / 2e-4
    np.testing.assert_allclose(np.asarray(second), curve, rtol=1e-4)


@pytest.mark.parametrize("level", [None, 0, 3])
def test_weights_of_another_size_end_the_run(level):
    mod = relay.parse(VERSION + "def @main(%x: Tensor[(?), float64]) { multiply(%x, %x) }")
    g = relay.transform.vjp(mod.functions["main"], mod)
    if level is None:
        run = relay.create_executor("debug", relay.IRModule.from_expr(g)).evaluate()
    else:
        run = relay.build(g, opt_level=level)
    _, (dx,) = run(X, np.arange(4.0))
    np.testing.assert_allclose(np.asarray(dx), 2 * X * np.arange(4))
    # One weight would broadcast.
    for size in (1, 3):
        wrong = rf"E0616.*the weights of a vjp have the shape \[{size}\], and what they weight has \[4\]"
        with pytest.raises(relay.RunError, match=wrong):
            run(X, np.ones(size))


@pytest.mark.parametrize(
    "channels, outputs, attrs",
    [
        (3, 5, "padding=[1, 1, 1, 1]"),
        (18, 4, "strides=[2, 2], padding=[1, 0, 0, 1]"),
        (32, 6, "groups=2, dilation=[2, 1], padding=[2, 1, 2, 1]"),
        (6, 6, "groups=6, strides=[1, 2], padding=[1, 1, 1, 1]"),
        (17, 70, "strides=[1, 2], dilation=[1, 2], padding=[2, 1, 0, 2]"),
        (20, 80, "padding=[1, 1, 1, 1]"),
    ],
    ids=["few channels", "rows of channels", "groups", "depthwise", "steps", "many outputs"],
)
def test_gradients_of_weights_are_those_of_known_sizes(channels, outputs, attrs):
    groups = {"groups=2": 2, "groups=6": 6}.get(attrs.split(",")[0], 1)

    def build(dims, n, a, b):
        mod = relay.parse(
            VERSION
            + f"def @main{dims}(%x: Tensor[({n}, {channels}, {a}, {b}), float32], "
            + f"%w: Tensor[({outputs}, {channels // groups}, 3, 3), float32]) {{ "
            + f"%0 = nn.conv2d(%x, %w, {attrs}); sum(multiply(%0, %0)) }}"
        )
        entry = {"relay.RemoveUnusedFunctions.entry_functions": ["d"]}
        with relay.transform.PassContext(3, config=entry):
            return relay.build(relay.transform.add_derivative(mod, "main", "d", "gradient"))

    open_sizes = build("[n: Dim, a: Dim, b: Dim]", "n", "a", "b")
    rng = np.random.default_rng(channels)
    w = rng.standard_normal((outputs, channels // groups, 3, 3)).astype("float32")
    for n, a, b in ((2, 9, 7), (1, 5, 5), (1, 3, 4)):
        x = rng.standard_normal((n, channels, a, b)).astype("float32")
        _, found = open_sizes.run("d", x, w)
        _, want = build("", n, a, b).run("d", x, w)
        for mine, other in zip(found, want, strict=True):
            np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-3, atol=1e-3)
    _, (dx, dw) = open_sizes.run("d", np.zeros((0, channels, 4, 6), "float32"), w)
    assert np.asarray(dx).shape == (0, channels, 4, 6)
    np.testing.assert_array_equal(np.asarray(dw), np.zeros_like(w))


@pytest.mark.parametrize("order", ["gradient", "hvp"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "strides, dilation, padding",
    [
        ([1, 1], [1, 1], [0, 0, 0, 0]),
        ([2, 1], [1, 1], [1, 0, 2, 1]),
        ([1, 2], [2, 3], [0, 1, 1, 0]),
    ],
    ids=["plain", "steps", "gaps"],
)
def test_kernels_of_symbolic_sizes(strides, dilation, padding, groups, order):
    """A kernel nearly as large as the image, as gradients of weights have them, and gradients of those."""
    attrs = f"strides={strides}, dilation={dilation}, padding={padding}, groups={groups}"

    def build(dims, image, kernel):
        mod = relay.parse(
            VERSION
            + f"def @main{dims}(%x: Tensor[(2, 4, {image}), float64], "
            + f"%w: Tensor[({4 // groups}, {kernel}, 6), float64]) {{ "
            + f'%0 = nn.conv2d(%x, %w, {attrs}, kernel_layout="IHWO"); sum(multiply(%0, %0)) }}'
        )
        entry = {"relay.RemoveUnusedFunctions.entry_functions": ["d"]}
        with relay.transform.PassContext(3, config=entry):
            return relay.build(relay.transform.add_derivative(mod, "main", "d", order))

    more = [2 + s for s in strides]
    open_sizes = build(
        "[a: Dim, b: Dim]",
        ", ".join(f"{d} * {k} + {m}" for d, k, m in zip(dilation, "ab", more, strict=True)),
        "a, b",
    )
    rng = np.random.default_rng(groups)
    for kernel in ((3, 4), (1, 2), (8, 5)):
        image = [d * k + m for d, k, m in zip(dilation, kernel, more, strict=True)]
        args = [rng.standard_normal((2, 4, *image)), rng.standard_normal((4 // groups, *kernel, 6))]
        if order == "hvp":
            args += [rng.standard_normal(a.shape) for a in args]
        known = build("", f"{image[0]}, {image[1]}", f"{kernel[0]}, {kernel[1]}").run("d", *args)
        found = open_sizes.run("d", *args)
        if order == "gradient":
            (value, found), (want, known) = found, known
            np.testing.assert_allclose(np.asarray(value), np.asarray(want))
        for mine, other in zip(found, known, strict=True):
            np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-10, atol=1e-10)


def test_kernel_and_result_of_symbolic_sizes_have_no_gradient():
    def conv(weight, layout):
        return relay.parse(
            VERSION
            + "def @main[h: Dim, a: Dim](%x: Tensor[(1, 2, h, h), float32], "
            + f'%w: Tensor[({weight}), float32]) {{ nn.conv2d(%x, %w, kernel_layout="{layout}") }}'
        )

    mod = conv("a, a, 2, 3", "HWIO")
    run = relay.build(mod)
    x, w = np.ones((1, 2, 5, 5), "float32"), np.ones((4, 4, 2, 3), "float32")
    np.testing.assert_array_equal(np.asarray(run(x, w)), np.full((1, 3, 2, 2), 32, "float32"))
    with pytest.raises(relay.RunError, match="h must be at least a"):
        run(x, np.ones((6, 6, 2, 3), "float32"))
    with pytest.raises(relay.UserError, match="kernel and result both have symbolic sizes"):
        relay.transform.add_derivative(mod, "main", "d", "gradient")
    with pytest.raises(relay.UserError, match=r"E0203[\s\S]*a kernel_layout that ends in O"):
        relay.build(conv("3, 2, a, a", "OIHW"))
