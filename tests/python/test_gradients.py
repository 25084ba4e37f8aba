"""Gradients: of programs, compiled and evaluated, and what is refused."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from command_line import relay as command

import relay

ROOT = Path(__file__).resolve().parents[2]
VERSION = '#[version = "0.0.5"]\n'
NETWORK = (
    VERSION
    + """def @main(%x: Tensor[(2, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32],
          %b: Tensor[(4), float32], %v: Tensor[(5, 64), float32]) {
  let %c = nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1]), %b));
  let %p = nn.max_pool2d(%c, pool_size=[2, 2], strides=[2, 2]);
  let %y = nn.log_softmax(nn.dense(nn.batch_flatten(%p), %v));
  negative(mean(%y))
}
"""
)


def blocks(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def test_snippets_of_the_documentation():
    snippets = blocks("docs/gradients.md")
    assert len(snippets) == 2
    names = {}
    for snippet in snippets:
        exec(snippet, names)


def sample(mod, name="main"):
    random = np.random.default_rng(3)
    shapes = [p.shape for p in mod.functions[name].params]
    return [random.standard_normal(s).astype("float32") for s in shapes]


def flat(value):
    if isinstance(value, list | tuple):
        return [leaf for v in value for leaf in flat(v)]
    return [np.asarray(value)]


@pytest.mark.parametrize("mode", ["first_order", "higher_order"])
def test_a_network_compiled_and_evaluated(mode):
    mod = relay.parse(NETWORK)
    g = relay.transform.gradient(mod.functions["main"], mod, mode=mode)
    inputs = sample(mod)
    expected = flat(relay.create_executor("debug", relay.IRModule.from_expr(g)).evaluate()(*inputs))
    assert [v.shape for v in expected[1:]] == [x.shape for x in inputs]
    for level in (0, 3):
        with relay.transform.PassContext(level):
            found = flat(relay.build(g)(*inputs))
        for f, e in zip(found, expected, strict=True):
            # Logits of 100 are known to 8e-6, and softmax makes that a relative error.
            np.testing.assert_allclose(f, e, rtol=2e-4, atol=5e-5)
    # Along the gradient the value grows as the gradient says.
    run = relay.build(mod)
    step = 1e-3
    moved = [x + step * d for x, d in zip(inputs, expected[1:], strict=True)]
    back = [x - step * d for x, d in zip(inputs, expected[1:], strict=True)]
    slope = (float(run(*moved)) - float(run(*back))) / (2 * step)
    assert slope == pytest.approx(sum(float((d * d).sum()) for d in expected[1:]), rel=1e-2)


def test_what_is_printed_is_a_program():
    mod = relay.parse(NETWORK)
    out = relay.transform.add_derivative(mod, "main", "slope")
    again = relay.parse(out.astext())
    inputs = sample(mod)
    a, b = (
        flat(relay.create_executor("debug", m).evaluate().run("slope", *inputs))
        for m in (out, again)
    )
    for f, e in zip(a, b, strict=True):
        np.testing.assert_array_equal(f, e)


def test_recursion_over_data_runs_compiled():
    mod = relay.parse(
        VERSION
        + """type List[A] { Cons(A, List[A]), Nil }
def @norm[n: Dim](%l: List[Tensor[(n), float32]], %sum: float32) -> float32 {
  match (%l) { Cons(%h, %t) => @norm(%t, add(%sum, sum(multiply(%h, %h)))), Nil => sqrt(%sum) }
}
def @main(%x: Tensor[(3), float32]) { @norm(Cons(%x, Cons(exp(%x), Nil)), 0f) }
"""
    )
    mod = relay.transform.add_derivative(mod, "main", "slope")
    x = np.float32([0.1, -0.3, 0.2])
    norm = np.sqrt((x * x).sum() + np.exp(2 * x).sum())
    mod = mod.with_function("main", mod.functions["slope"])
    value, (dx,) = relay.create_executor("vm", mod).evaluate()(x)
    np.testing.assert_allclose(value, norm, rtol=1e-5)
    np.testing.assert_allclose(dx, (x + np.exp(2 * x)) / norm, rtol=1e-5)


def test_second_derivatives():
    x = relay.var("x", shape=(2,), dtype="float64")
    f = relay.Function([x], relay.sum(relay.exp(x) * relay.reverse(x, 0)))
    at = np.array([0.3, 0.7])
    e, cross = np.exp(at), np.exp(at[0]) + np.exp(at[1])
    hessian = np.array([[e[0] * at[1], cross], [cross, e[1] * at[0]]])
    (found,) = relay.build(relay.transform.hessian(f))(at)
    np.testing.assert_allclose(found, hessian)
    along = np.array([1.0, -2.0])
    (product,) = relay.build(relay.transform.hvp(f))(at, along)
    np.testing.assert_allclose(product, hessian @ along)
    first, change = relay.build(relay.transform.jvp(f))(at, along)
    second, (gradient,) = relay.build(relay.transform.vjp(f))(at, np.array(1.0))
    assert first == second
    np.testing.assert_allclose(change, gradient @ along)


def test_the_command_line_has_the_pass(tmp_path):
    program = tmp_path / "square.relay"
    program.write_text(VERSION + "def @main(%x: float32) { multiply(%x, %x) }\n")
    text = command("opt", "--passes", "FirstOrderGradient", program).stdout
    value, (dx,) = relay.create_executor("debug", relay.parse(text)).evaluate()(np.float32(3))
    assert (value, dx) == (9, 6)


@pytest.mark.parametrize(
    ("body", "mode", "code", "says"),
    [
        ('cast(%x, dtype="int32")', "higher_order", "E1001", "holds no floats"),
        ('reinterpret(%x, dtype="float32")', "first_order", "E1002", "reinterpret has no gradient"),
        ("if (less(sum(%x), 0f)) { %x } else { exp(%x) }", "first_order", "E1007", "plain"),
    ],
)
def test_refusals_have_a_code_and_a_place(body, mode, code, says):
    mod = relay.parse(f"{VERSION}def @main(%x: Tensor[(1, 1, 4, 4), float32]) {{ {body} }}\n")
    with pytest.raises(relay.UserError, match=says) as error:
        relay.transform.gradient(mod.functions["main"], mod, mode)
    assert code in str(error.value)


def test_the_greatest_of_samples_needs_their_number():
    x, rois = relay.var("x", shape=(1, 1, 4, 4)), relay.var("r", shape=(2, 5))
    f = relay.Function(
        [x, rois], relay.sum(relay.vision.roi_align(x, rois, (2, 2), 1.0, mode="max"))
    )
    with pytest.raises(
        relay.UserError, match=r"E1003.*another number of samples(.|\n)*sample_ratio"
    ):
        relay.transform.gradient(f, mode="first_order")


def test_wrong_arguments():
    x = relay.var("x", shape=(2,))
    with pytest.raises(TypeError, match="Function"):
        relay.transform.gradient(x)
    with pytest.raises(relay.UserError, match="first_order"):
        relay.transform.gradient(relay.Function([x], x), mode="second_order")


def test_windows_that_tile_and_windows_that_overlap():
    x = np.float32([[1, 5, 2, 2], [3, 4, 2, 0]])[None, None]
    for strides, expected in [
        ((2, 2), [[0, 1, 1 / 3, 1 / 3], [0, 0, 1 / 3, 0]]),
        ((1, 1), [[0, 2, 1 / 3, 1 / 3], [0, 0, 1 / 3, 0]]),
    ]:
        v = relay.var("x", shape=x.shape)
        f = relay.Function([v], relay.nn.max_pool2d(v, pool_size=(2, 2), strides=strides))
        (found,) = relay.build(relay.transform.gradient(f))(x)[1]
        np.testing.assert_allclose(found[0, 0], expected, rtol=1e-6)


def max_pool_gradient(x, g, size, stride, padding, dilation):
    """Window by window; `padding` has begins, then ends. Elements that tie share."""
    out = np.zeros_like(x)
    for n, i, j, c in np.ndindex(*g.shape):
        at = [
            (
                n,
                i * stride[0] + a * dilation - padding[0],
                j * stride[1] + b * dilation - padding[1],
                c,
            )
            for a, b in np.ndindex(*size)
        ]
        at = [p for p in at if 0 <= p[1] < x.shape[1] and 0 <= p[2] < x.shape[2]]
        best = max(x[p] for p in at)
        ties = [p for p in at if x[p] == best]
        for p in ties:
            out[p] += g[n, i, j, c] / len(ties)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "shape, size, stride, padding, dilation",
    [
        ((2, 9, 12, 16), (3, 3), (2, 2), (1, 1, 1, 1), 1),
        ((1, 7, 8, 5), (2, 3), (1, 2), (0, 1, 1, 0), 1),
        ((1, 10, 9, 32), (3, 2), (2, 3), (0, 0, 0, 0), 2),
        ((1, 8, 9, 4), (2, 2), (3, 3), (0, 0, 0, 0), 1),  # elements that are in no window
        (
            (1, 4, 4, 3),
            (2, 2),
            (2, 2),
            (1, 1, 0, 0),
            1,
        ),  # windows side by side, but not from the first on
        ((1, 6, 4, 17), (2, 2), (2, 2), (0, 0, 0, 0), 1),
    ],
)
def test_gradients_of_max_pools(shape, size, stride, padding, dilation, dtype):
    random = np.random.default_rng(4)
    x = random.integers(-4, 4, shape).astype("float64")  # many tie
    v = relay.var("x", shape=shape, dtype=dtype)
    attrs = {
        "pool_size": size,
        "strides": stride,
        "padding": padding,
        "dilation": (dilation, dilation),
    }
    pool = relay.nn.max_pool2d(v, layout="NHWC", **attrs)
    planes = relay.nn.max_pool2d(relay.transpose(v, axes=(0, 3, 1, 2)), **attrs)
    for body, back in [(pool, (0, 1, 2, 3)), (planes, (0, 2, 3, 1))]:
        built = relay.build(relay.transform.gradient(relay.Function([v], body)))
        value, (found,) = built(x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))
        want = max_pool_gradient(
            x, np.ones(np.transpose(value, back).shape), size, stride, padding, dilation
        )
        tolerance = 1e-2 if dtype == "bfloat16" else 1e-6
        np.testing.assert_allclose(np.asarray(found, "float64"), want, rtol=tolerance, atol=1e-6)


def test_the_gradient_of_a_loop_is_one_product():
    """The weights of a recurrence, and the sequence that it reads, are used in every step."""

    @relay.function(fixed_sizes=True)
    def final(w, xs):
        h = np.zeros((2, 16), "float64")
        for t in range(xs.shape[0]):
            h = np.tanh(xs[t] + h @ w)
        return (h * h).sum()

    random = np.random.default_rng(2)
    w, xs = random.normal(size=(16, 16)) / 4, random.normal(size=(6, 2, 16))
    slope = relay.grad(final, argnums=(0, 1))
    dw, dx = slope(w, xs)
    for found, at, index in [(dw, w, (3, 5)), (dx, xs, (2, 1, 4))]:
        step = np.zeros_like(at)
        step[index] = 1e-6
        more, less = ((w + s, xs) if at is w else (w, xs + s) for s in (step, -step))
        change = (final(*more) - final(*less)) / 2e-6
        np.testing.assert_allclose(found[index], change, rtol=1e-5)
    text = relay.optimize(slope.lower(w, xs).module).astext()
    # Six on the way there, five on the way back, and one for the weights.
    assert len(re.findall(r"nn\.(matmul|contrib_dense_pack|dense)\(", text)) <= 12
    assert "scatter" not in text and "ref(" not in text


def draws(*shapes, low=0.0, high=1.0):
    random = np.random.default_rng(29)
    return [random.uniform(low, high, shape) for shape in shapes]


READS = {
    "crops": (
        lambda x, b: relay.image.crop_and_resize(
            x, b, relay.const([1, 0, 1], "int32"), (4, 3), "NCHW", extrapolation_value=0.5
        ),
        draws((2, 3, 6, 5), (3, 4)),
    ),
    "regions": (
        lambda x, r: relay.vision.roi_align(x, r, (2, 3), 1.5, sample_ratio=-1),
        draws((2, 3, 6, 5), (4, 5), high=1.9),
    ),
    "greatest samples of regions": (
        lambda x, r: relay.vision.roi_align(x, r, (2, 2), 2.0, sample_ratio=3, mode="max"),
        draws((2, 3, 6, 5), (4, 5), high=1.9),
    ),
    "pooled regions": (
        lambda x, r: relay.vision.roi_pool(x, r, (2, 3), 1.0),
        draws((4, 3, 6, 5), (3, 5), high=3.9),
    ),
    "a grid": (
        lambda x, g: relay.image.grid_sample(x, g, "bicubic", padding_mode="reflection"),
        draws((2, 3, 4, 5), (2, 2, 3, 6), low=-1.4, high=1.4),
    ),
    "moved places": (
        lambda x, o: relay.nn.deformable_conv2d(
            x, o, relay.const(draws((3, 1, 3, 2))[0], "float64"), groups=3, padding=(1, 0)
        ),
        draws((1, 3, 5, 5), (1, 12, 5, 4), high=0.9),
    ),
}


@pytest.mark.parametrize("name", READS)
def test_reads_between_elements_by_image_and_place(name):
    """Compiled and evaluated, against differences of the operator itself."""
    build, inputs = READS[name]
    variables = [relay.var(f"v{i}", shape=v.shape, dtype="float64") for i, v in enumerate(inputs)]
    made = build(*variables)
    weights = draws([int(n) for n in made.shape])[0]
    f = relay.Function(variables, relay.sum(made * relay.const(weights, "float64")))
    g = relay.transform.gradient(f, mode="first_order")
    slow = flat(relay.create_executor("debug", relay.IRModule.from_expr(g)).evaluate()(*inputs))
    fast = flat(relay.build(g, num_threads=1)(*inputs))
    value = relay.build(f, num_threads=1)
    directions = [np.random.default_rng(1).standard_normal(v.shape) for v in inputs]
    step = 1e-6
    ahead, behind = (
        value(*(v + s * step * d for v, d in zip(inputs, directions, strict=True))) for s in (1, -1)
    )
    for adjoints in (slow[1:], fast[1:]):
        found = sum((a * d).sum() for a, d in zip(adjoints, directions, strict=True))
        np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "attrs", "shape"),
    [
        ("nn.avg_pool2d", {"pool_size": (3, 3), "strides": (1, 1), "padding": (1, 1)}, (1, 2, 7, 6)),
        ("nn.avg_pool2d", {"pool_size": (3, 2), "strides": (2, 3), "padding": (1, 0)}, (1, 2, 8, 9)),
        (
            "nn.avg_pool2d",
            {"pool_size": (2, 3), "strides": (2, 2), "ceil_mode": True, "layout": "NHWC"},
            (1, 7, 8, 2),
        ),
        (
            "nn.avg_pool2d",
            {"pool_size": (2, 2), "strides": (4, 4), "padding": (1, 1), "count_include_pad": True},
            (1, 2, 9, 8),
        ),
        ("nn.avg_pool2d", {"pool_size": (2, 2), "strides": (2, 2)}, (1, 2, 4, 6)),
        ("nn.avg_pool2d", {"pool_size": (2, 2), "dilation": (3, 2)}, (1, 2, 7, 6)),
        ("nn.adaptive_avg_pool2d", {"output_size": (2, 4)}, (1, 2, 6, 6)),
        ("nn.global_avg_pool2d", {}, (1, 2, 3, 5)),
        ("image.resize2d", {"size": (8, 15)}, (1, 2, 4, 5)),
        ("image.resize2d", {"size": (8, 15), "method": "cubic", "layout": "NHWC"}, (1, 4, 5, 2)),
        (
            "image.resize2d",
            {
                "size": (8, 10), "method": "nearest_neighbor", "rounding_method": "ceil",
                "coordinate_transformation_mode": "asymmetric",
            },
            (1, 2, 4, 5),
        ),
        (
            "image.resize2d",
            {"size": (4, 9), "coordinate_transformation_mode": "align_corners"},
            (1, 2, 2, 3),
        ),
        ("image.resize2d", {"size": (3, 4)}, (1, 2, 6, 7)),
    ],
)  # fmt: skip
def test_means_and_sizes_are_transposed(name, attrs, shape):
    """They are linear: what the gradient gives is the transposed matrix."""
    count = int(np.prod(shape))
    function = relay
    for part in name.split("."):
        function = getattr(function, part)
    x = relay.var("x", shape=shape, dtype="float64")
    y = function(x, **attrs)
    forward = relay.create_executor(
        "debug", relay.IRModule.from_expr(relay.Function([x], y))
    ).evaluate()
    columns = [forward(row.reshape(shape)).ravel() for row in np.eye(count)]
    w = relay.var("w", shape=[int(n) for n in y.shape], dtype="float64")
    g = relay.transform.gradient(relay.Function([x, w], relay.sum(y * w)), mode="first_order")
    weights = draws([int(n) for n in y.shape])[0]
    found = relay.build(g, num_threads=1)(np.zeros(shape), weights)[1][0]
    np.testing.assert_allclose(
        found.ravel(), np.array(columns) @ weights.ravel(), rtol=1e-9, atol=1e-12
    )


def halves(w, xs):
    """The half of a size that only a run tells is another one than the loop begins with."""
    h, out = np.zeros((2, w.shape[0])), np.zeros((xs.shape[0], 2, w.shape[0]))
    for t in range(xs.shape[0]):
        a, b = np.split(xs[t] + h @ w, 2, axis=1)
        h = np.tanh(a) * b
        out[t] = h
    return (out * out).sum()


def grows(w, xs):
    h = w[0]
    while (h * h).sum() < 50.0:
        h = h * 1.5 + np.split(xs[0, 0], 2)[0]
    return (h * h).sum()


@pytest.mark.parametrize("f", [halves, grows])
def test_loops_over_open_sizes(f):
    random = np.random.default_rng(5)
    slopes = [
        relay.value_and_grad(made(f), argnums=(0, 1))
        for made in (relay.function, relay.function(fixed_sizes=True))
    ]
    for n in (4, 6):
        inputs = random.normal(size=(n, 2 * n)), random.normal(size=(3, 2, 2 * n))
        if f is grows:
            inputs = inputs[0][:, :n], inputs[1]
        (value, found), (wanted, expected) = (slope(*inputs) for slope in slopes)
        np.testing.assert_allclose(value, wanted)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize(
    "choice",
    [
        "if (less(sum(%w), 0f)) { %w } else { %x }",
        "match (%l) { Nil => %w, Cons(_, _) => %x }",
        "let %h: Tensor[(?), float32] = if (less(sum(%w), 0f)) { %w } else { %x }; %h",
    ],
)
def test_values_whose_sizes_are_forgotten(choice):
    """One branch has a size of a name, the other one that only a run tells."""
    mod = relay.parse(
        f"""{VERSION}
type List[A] {{ Cons(A, List[A]), Nil }}
def @e(%x: Tensor[(?), float32]) -> Tensor[(?), float32] {{ exp(%x) }}
def @main[n: Dim](%w: Tensor[(n), float32], %x: Tensor[(?), float32], %l: List[int32]) {{
  let %y = {{ {choice} }};
  sum(multiply(@e(%y), @e(%y)))
}}
"""
    )
    mod = relay.transform.add_derivative(mod, "main", "slope")
    mod = mod.with_function("main", mod.functions["slope"])
    x = np.float32([0.1, 0.2, 0.3])
    runs = [relay.create_executor(name, mod).evaluate() for name in ("debug", "vm")]
    for w, chosen in [(np.float32([-1, -2]), True), (np.float32([1, 2]), "match" in choice)]:
        for run in runs:
            _, gradients = run(w, x, [])
            for given, found, reached in [(w, gradients[0], chosen), (x, gradients[1], not chosen)]:
                wanted = 2 * np.exp(2 * given) if reached else 0 * given
                np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "shape", "weight", "attrs"),
    [
        ("conv1d", (3, 6, 17), (6, 1, 5), {"padding": (2, 2), "groups": 6}),
        ("conv1d", (2, 6, 18), (12, 2, 3), {"strides": (2,), "groups": 3}),
        ("conv1d", (2, 32, 300), (24, 32, 1), {}),
        ("conv1d_transpose", (2, 6, 9), (6, 1, 4), {"strides": (2,), "groups": 6}),
        ("conv2d_transpose", (2, 6, 5, 7), (6, 2, 4, 3), {"strides": (2, 1), "groups": 3}),
        ("conv2d_transpose", (2, 16, 14, 20), (16, 40, 1, 2), {"strides": (1, 2)}),
        ("conv3d", (2, 4, 6, 5, 7), (4, 1, 3, 3, 2), {"padding": (1, 1, 0), "groups": 4}),
        (
            "conv3d",
            (1, 4, 7, 6, 7),
            (8, 2, 2, 3, 3),
            {"strides": (2, 1, 2), "dilation": (2, 1, 1), "groups": 2},
        ),
        ("conv3d", (2, 16, 4, 8, 9), (24, 16, 1, 1, 1), {}),
        ("conv3d_transpose", (2, 4, 3, 4, 5), (4, 1, 2, 3, 2), {"strides": (2, 2, 1), "groups": 4}),
    ],
)
def test_convolutions_are_adjoint_to_their_gradients(op, shape, weight, attrs):
    """A convolution is linear in its weights: <g, conv(x, w)> = <dw, w> for any w."""
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight)
    f = relay.Function([x, w], getattr(relay.nn, op)(x, w, **attrs))
    compiled = relay.build(f)
    random = np.random.default_rng(11)
    xs, first = (random.normal(size=s).astype("float32") for s in (shape, weight))
    gs = random.normal(size=compiled(xs, first).shape).astype("float32")
    args = [relay.var(f"v{i}", shape=v.shape) for i, v in enumerate((xs, first, gs))]
    gradients = relay.TupleGetItem(relay.Call(relay.transform.vjp(f), args), 1)
    mod = relay.IRModule.from_expr(relay.Function(args, relay.TupleGetItem(gradients, 1)))
    dw = relay.build(mod)(xs, first, gs)
    for _ in range(4):
        ws = random.normal(size=weight).astype("float32")
        wanted = np.sum(gs.astype("float64") * compiled(xs, ws))
        scale = np.linalg.norm(dw) * np.linalg.norm(ws)
        assert abs(np.sum(dw.astype("float64") * ws) - wanted) < 1e-5 * scale


@pytest.mark.parametrize(
    ("shape", "weight", "attrs", "parts"),
    [
        ((16, 4, 40, 40), (32, 4, 3, 3), {"padding": (1, 1)}, True),
        ((20, 4, 64, 60), (32, 4, 3, 3), {"padding": (1, 1), "strides": (2, 2)}, True),
        ((2, 3, 9, 10), (4, 3, 1, 1), {"strides": (2, 3)}, False),
        ((2, 3, 12, 11), (4, 3, 3, 2), {"strides": (3, 2), "dilation": (2, 1)}, False),
        ((1, 4, 9, 9), (6, 2, 3, 3), {"strides": (4, 3), "padding": (1, 2), "groups": 2}, False),
        ((2, 6, 9, 10), (6, 1, 3, 3), {"padding": (1, 1), "groups": 6}, False),
        ((2, 6, 9, 8), (9, 2, 3, 2), {"strides": (2, 1), "dilation": (1, 2), "groups": 3}, False),
        ((8, 16, 48, 40), (16, 1, 3, 3), {"padding": (1, 1), "groups": 16}, True),
        ((2, 16, 24, 24), (40, 16, 1, 1), {}, False),
        ((16, 16, 48, 47), (40, 16, 1, 1), {"strides": (1, 2)}, True),
    ],
)
def test_weights_of_convolutions(shape, weight, attrs, parts, tmp_path):
    """Long sums are taken in parts that stay in L2, and no sums are made that are cut off."""
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight)
    f = relay.Function([x, w], relay.nn.conv2d(x, w, **attrs))
    out = relay.build(f)(np.zeros(shape, "float32"), np.zeros(weight, "float32")).shape
    random = np.random.default_rng(7)
    xs, ws, gs = (random.normal(size=s).astype("float32") for s in (shape, weight, out))
    slope = relay.transform.vjp(f)
    args = [relay.var(f"v{i}", shape=v.shape) for i, v in enumerate((xs, ws, gs))]
    gradients = relay.TupleGetItem(relay.Call(slope, args), 1)
    mod = relay.IRModule.from_expr(relay.Function(args, relay.TupleGetItem(gradients, 1)))
    dw = relay.build(mod, target="x86-64-v3")(xs, ws, gs)
    strides, dilation = attrs.get("strides", (1, 1)), attrs.get("dilation", (1, 1))
    (top, left), groups = attrs.get("padding", (0, 0)), attrs.get("groups", 1)
    padded = np.pad(xs, ((0, 0), (0, 0), (top, top), (left, left))).astype("float64")
    wanted = np.zeros(weight)
    for a in range(weight[2]):
        for b in range(weight[3]):
            h, v = a * dilation[0], b * dilation[1]
            window = padded[:, :, h :: strides[0], v :: strides[1]][:, :, : out[2], : out[3]]
            for k in range(groups):
                o = slice(k * weight[0] // groups, (k + 1) * weight[0] // groups)
                i = slice(k * weight[1], (k + 1) * weight[1])
                wanted[o, :, a, b] = np.einsum("nohw,nihw->oi", gs[:, o], window[:, i])
    np.testing.assert_allclose(dw, wanted, rtol=2e-4, atol=2e-3)
    program = tmp_path / "slope.relay"
    program.write_text(mod.astext())
    tir = command("show", "--tir", "--target", "x86-64-v3", program).stdout
    assert ("the sum in" in tir) == parts
    if parts:
        assert "strided_slice" not in relay.optimize(mod).astext()
