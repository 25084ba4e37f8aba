"""Named dimensions that may or may not be equal: the program compiles, and a run is checked."""

import functools

import hypothesis
import numpy as np
import op_programs
import pytest
from command_line import fails, relay_json
from hypothesis import strategies as st

import relay

# Operator, types of its arguments, attributes, shapes that fit, shapes that do not, the complaint.
CASES = [
    ("add", ["(n, 3)", "(m, 3)"], "", [(2, 3), (2, 3)], [(2, 3), (4, 3)], "n must equal m"),
    ("add", ["(n,)", "(3,)"], "", [(3,), (3,)], [(4,), (3,)], "n must equal 3"),
    ("nn.dense", ["(2, n)", "(4, m)"], "", [(2, 5), (4, 5)], [(2, 5), (4, 9)], "n must equal m"),
    ("reshape", ["(n, 2)"], "newshape=[-1, 4]", [(6, 2)], [(3, 2)], "must equal"),
    ("squeeze", ["(n, 2)"], "axis=[0]", [(1, 2)], [(3, 2)], "n must equal 1"),
    ("split", ["(n,)"], "indices_or_sections=2", [(4,)], [(5,)], "must equal n"),
    ("nn.mirror_pad", ["(n,)"], "pad_width=[[2, 0]]", [(2,)], [(1,)], "n must be at least 2"),
    ("nn.conv1d", ["(1, 2, n)", "(3, 2, 5)"], "", [(1, 2, 7), (3, 2, 5)], [(1, 2, 4), (3, 2, 5)],
     "n must be at least 5"),
]  # fmt: skip


def compiled(op: str, shapes, attrs: str):
    text = op_programs.call_text(op, [f"Tensor[{s}, float32]" for s in shapes], attrs)
    return relay.build(relay.parse(text.replace("@main(", "@main[n: Dim, m: Dim](")))


@pytest.mark.parametrize(("op", "shapes", "attrs", "good", "bad", "complaint"), CASES)
def test_a_run_checks_what_compilation_assumed(op, shapes, attrs, good, bad, complaint):
    exe = compiled(op, shapes, attrs)
    exe(*(np.ones(s, np.float32) for s in good))
    with pytest.raises(relay.RunError, match=complaint):
        exe(*(np.ones(s, np.float32) for s in bad))


def test_one_broadcasts_whatever_the_other_is():
    exe = compiled("add", ["(n,)", "(1,)"], "")
    for size in (0, 1, 5):
        got = exe(np.ones(size, np.float32), np.ones(1, np.float32))
        np.testing.assert_array_equal(got, np.full(size, 2, np.float32))


@pytest.mark.parametrize("width", [1, 2, 7, 8, 13, 14, 15, 16, 23, 29, 31])
def test_the_border_of_a_convolution_whose_width_is_open(width, *, height=3, channels=8):
    """No tile may take what stands beside the line for its border, also where no whole tile fits."""
    exe = border_program(channels)
    x = np.random.default_rng(width).normal(size=(1, channels, height, width)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = sum(padded[:, :, i : i + height, k : k + width] for i in range(3) for k in range(3))
    np.testing.assert_allclose(exe(x), want, rtol=1e-5, atol=1e-5)


@functools.cache
def border_program(channels: int):
    """The sum of a point and its neighbours in each channel."""
    types = [f"Tensor[(1, {channels}, n, m), float32]"]
    weight = relay.const(np.ones((channels, 1, 3, 3), np.float32))
    x = relay.parse(op_programs.call_text("nn.relu", types, "").replace(
        "@main(", "@main[n: Dim, m: Dim]("))["main"].params[0]  # fmt: skip
    y = relay.nn.conv2d(x, weight, padding=[1, 1, 1, 1], groups=channels, channels=channels,
                        kernel_size=[3, 3])  # fmt: skip
    return relay.build(relay.IRModule.from_expr(relay.Function([x], y)))


@pytest.mark.parametrize("op", ["nn.max_pool2d", "nn.avg_pool2d"])
@pytest.mark.parametrize("attrs", ["pool_size=[3, 3], padding=[1, 1]",
                                   "pool_size=[3, 2], padding=[1, 0], ceil_mode=True",
                                   "pool_size=[5, 5], padding=[2, 2]"])  # fmt: skip
def test_windows_of_open_pictures_are_those_of_constant_ones(op, attrs):
    open_program = relay.build(relay.parse(
        op_programs.call_text(op, ["Tensor[(?, 3, ?, ?), float32]"], attrs)))  # fmt: skip
    for size in ((1, 3, 2, 2), (2, 3, 5, 16), (1, 3, 17, 37)):
        x = np.random.default_rng(size[3]).normal(size=size).astype(np.float32)
        type_text = f"Tensor[{size}, float32]"
        want = relay.build(relay.parse(op_programs.call_text(op, [type_text], attrs)))(x)
        np.testing.assert_allclose(open_program(x), want, rtol=1e-5, atol=1e-6)


def test_weights_of_a_transposed_convolution_are_turned_when_it_is_compiled():
    rng = np.random.default_rng(5)
    weight = rng.normal(size=(64, 32, 4, 4)).astype(np.float32)
    attrs = "strides=[2, 2], padding=[1, 1, 1, 1], channels=32, kernel_size=[4, 4]"
    x = rng.normal(size=(1, 64, 3, 5)).astype(np.float32)

    def result(size: str):
        types = [f"Tensor[{size}, float32]", "Tensor[(64, 32, 4, 4), float32]"]
        module = relay.parse(op_programs.call_text("nn.conv2d_transpose", types, attrs))
        name = module["main"].params[1].name_hint
        return relay.build(module, params={name: weight})(x)

    want = result("(1, 64, 3, 5)")
    np.testing.assert_allclose(result("(1, 64, ?, ?)"), want, rtol=1e-4, atol=1e-4)


@hypothesis.given(
    begin=st.one_of(st.none(), st.integers(-6, 6)),
    end=st.one_of(st.none(), st.integers(-6, 6), st.just(2**63 - 1)),
    stride=st.sampled_from([-3, -2, -1, 1, 2, 3]),
)
def test_slices_of_open_sizes_are_numpys(begin, end, stride):
    given = [] if begin is None else [f"begin=[{begin}]"]
    given += [] if end is None else [f"end=[{end}]"]
    hypothesis.assume(given)
    attrs = ", ".join([*given, f"strides=[{stride}]"])
    exe = compiled("strided_slice", ["(n, 2)"], attrs)
    for size in range(6):
        x = np.arange(2.0 * size, dtype=np.float32).reshape(size, 2)
        want = x[slice(begin, end, stride)]
        np.testing.assert_array_equal(exe(x), want)
        text = op_programs.call_text("strided_slice", [f"Tensor[({size}, 2), float32]"], attrs)
        np.testing.assert_array_equal(relay.build(relay.parse(text))(x), want)


LAYER = """#[version = "0.0.5"]
def @main[n: Dim, m: Dim](%x: Tensor[(n, m, 16), float32], %w: Tensor[(16, 16), float32]) {
  %0 = reshape(nn.softmax(nn.dense(%x, %w), axis=-1), newshape=[n, m, 2, 8]);
  nn.attention(%0, %0, %0, 0f, query_layout="BSHD", key_layout="BSHD", value_layout="BSHD",
               out_layout="BSHD")
}
"""


@pytest.mark.parametrize(
    ("n", "m"), [(0, 0), (0, 5), (5, 0), (2**40, 0), (0, 2**40), (2**40, 1), (1, 2**40)]
)
def test_nothing_and_more_than_fits(n, m, tmp_path):
    """No kernel counts to 2^40 around an empty loop, and what fits no memory is said."""
    path = tmp_path / "layer.relay"
    path.write_text(LAYER)
    run = ("run", path, "--dim", f"n={n}", "--dim", f"m={m}")
    if n * m:
        fails("E0604", *run)
    else:
        assert relay_json(*run)["outputs"][0]["shape"] == [n, m, 2, 8]


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("weight", ["(n, 5)", "(?, 5)"])
@pytest.mark.parametrize(
    "x_shape, call, further",
    [("(3, 5)", "nn.dense(%x, %w, units=4)", ()), ("(1, 5, 2, 2)", "nn.conv2d(%x, %w, channels=4, "
     "kernel_size=[1, 1])", (1, 1))],
)  # fmt: skip
def test_a_size_that_an_attribute_says_is_that_of_the_weight(
    x_shape, call, further, weight, derived
):
    weight = weight[:-1] + "".join(f", {size}" for size in further) + ")"
    if derived and "?" in weight:
        pytest.skip("the gradient of this has no size")
    dims = "[n: Dim]" if "n" in weight else ""
    text = f"""#[version = "0.0.5"]
    def @main{dims}(%x: Tensor[{x_shape}, float32], %w: Tensor[{weight}, float32]) {{ {call} }}"""
    mod = relay.parse(text)
    if derived:
        mod = relay.IRModule.from_expr(relay.transform.gradient(mod["main"], mod=mod))
    x = np.ones([int(size) for size in x_shape.strip("()").split(",")], "float32")
    runs = [relay.build(mod, opt_level=level) for level in (0, 3)]
    for run in (*runs, relay.create_executor("debug", mod).evaluate()):
        run(x, np.ones((4, 5, *further), "float32"))
        for size in (1, 3, 6):
            with pytest.raises(relay.RelayError, match=r"E0607|E0801"):
                run(x, np.ones((size, 5, *further), "float32"))


@pytest.mark.parametrize("n, a", [(2, 8), (3, 4), (1, 12), (0, 4), (2, 0)])
def test_reshapes_that_state_a_size_in_another_way(n, a):
    run = relay.build(
        relay.parse("""#[version = "0.0.5"]
        def @main[n: Dim, a: Dim](
            %x: Tensor[(n, 4 * (a // 4), 4 * (a // 4), 2), float32], %y: Tensor[(a,), float32]) {
          %0 = transpose(%x, axes=[0, 3, 1, 2]);
          %1 = reshape(%0, newshape=[n, 2, a, a], allowzero=True);
          %2 = reshape(%0, newshape=[n, 2, a * a], allowzero=True);
          (add(%1, %y), exp(%2), exp(reshape(%0, newshape=[1, n * 2, a * a], allowzero=True)))
        }""")
    )
    rng = np.random.default_rng(10 * n + a)
    x = rng.standard_normal((n, a, a, 2)).astype("float32")
    y = rng.standard_normal(a).astype("float32")
    moved = x.transpose(0, 3, 1, 2)
    want = [moved + y, np.exp(moved).reshape(n, 2, a * a), np.exp(moved).reshape(1, n * 2, a * a)]
    for found, expected in zip(run(x, y), want, strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
