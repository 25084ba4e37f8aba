"""Attributes that are sizes: named dimensions and what is computed from them, everywhere the same."""

import numpy as np
import pytest

import relay

HEAD = '#[version = "0.0.5"]\n'
RNG = np.random.default_rng(0)


def rows(n: int) -> np.ndarray:
    return RNG.standard_normal((n, 6)).astype(np.float32)


def module(body: str, params: str = "%x: Tensor[(n, 6), float32]", names: str = "n: Dim"):
    return relay.parse(f"{HEAD}def @main[{names}]({params}) {{ {body} }}")


# A call on %x, of n rows of six, and NumPy's answer.
CALLS = {
    "reshape(%x, newshape=[n, 2, 3])": lambda x: x.reshape(-1, 2, 3),
    "reshape(%x, newshape=[2 * n, 3])": lambda x: x.reshape(-1, 3),
    "reshape(%x, newshape=[n, -1, 2])": lambda x: x.reshape(len(x), 3, 2),
    "reshape(%x, newshape=[-4, n, 1, 6])": lambda x: x.reshape(len(x), 1, 6),
    "broadcast_to(%x, shape=[n + 1, n, 6])": lambda x: np.broadcast_to(x, (len(x) + 1, *x.shape)),
    "zeros(shape=[n, max(n, 3)])": lambda x: np.zeros((len(x), max(len(x), 3)), np.float32),
    'ones(shape=[n // 2], dtype="int32")': lambda x: np.ones(len(x) // 2, np.int32),
    "full(2f, shape=[(n + 1) // 2, 3])": lambda x: np.full(((len(x) + 1) // 2, 3), 2, np.float32),
    "strided_slice(%x, begin=[0], end=[n // 2])": lambda x: x[: len(x) // 2],
    "strided_slice(%x, begin=[n // 2, 1], end=[n, n])": lambda x: x[len(x) // 2 :, 1 : len(x)],
    'strided_slice(%x, begin=[n // 2], end=[2], strides=[1], slice_mode="size")': (
        lambda x: x[len(x) // 2 : len(x) // 2 + 2]
    ),
    "strided_slice(%x, begin=[n // 2], end=[0], strides=[-1])": lambda x: x[len(x) // 2 : 0 : -1],
    "tile(%x, reps=[n, 2])": lambda x: np.tile(x, (len(x), 2)),
    'arange(stop=n, dtype="int64")': lambda x: np.arange(len(x), dtype=np.int64),
    'arange(start=n, stop=3 * n + 2, step=2, dtype="int32")': (
        lambda x: np.arange(len(x), 3 * len(x) + 2, 2, dtype=np.int32)
    ),
    'arange(start=4, stop=n, dtype="int32")': lambda x: np.arange(4, len(x), dtype=np.int32),
    'arange(start=n, stop=0, step=-3, dtype="int32")': (
        lambda x: np.arange(len(x), 0, -3, dtype=np.int32)
    ),
    "nn.pad(%x, 1f, pad_width=[[n, 1], [0, 2 * n]])": (
        lambda x: np.pad(x, ((len(x), 1), (0, 2 * len(x))), constant_values=1)
    ),
    'nn.pad(%x, 0f, pad_width=[[0, n], [0, 0]], pad_mode="edge")': (
        lambda x: np.pad(x, ((0, len(x)), (0, 0)), mode="edge")
    ),
    'nn.mirror_pad(%x, pad_width=[[n, 0], [0, 0]], mode="SYMMETRIC")': (
        lambda x: np.pad(x, ((len(x), 0), (0, 0)), mode="symmetric")
    ),
    "collapse_sum_to(broadcast_to(%x, shape=[3, n, 6]), shape=[n, 6])": lambda x: 3 * x,
}


@pytest.mark.parametrize("call", CALLS)
def test_sizes_are_computed_from_the_arguments_shapes(call):
    mod = module(call)
    again = relay.parse(str(mod))
    assert relay.structural_equal(mod["main"], again["main"]), str(mod)
    compiled, unoptimised = relay.build(again), relay.build(mod, opt_level=0)
    evaluate = relay.create_executor("debug", mod).evaluate()
    for n in (1, 2, 5):
        x = rows(n)
        want = CALLS[call](x)
        for run in (compiled, unoptimised, evaluate):
            np.testing.assert_allclose(np.asarray(run(x)), want, rtol=1e-6)
            assert np.asarray(run(x)).dtype == want.dtype


@pytest.mark.parametrize(
    "mode", ["half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"]
)
@pytest.mark.parametrize("method", ["linear", "nearest_neighbor", "cubic"])
def test_a_resize_to_named_sizes_is_that_to_numbers(mode, method):
    attrs = f'method="{method}", coordinate_transformation_mode="{mode}"'
    image = "%x: Tensor[(1, 2, n, 4), float32]"
    named = relay.build(module(f"image.resize2d(%x, size=[2 * n, n], {attrs})", image))
    for n in (1, 3):
        fixed = module(f"image.resize2d(%x, size=[{2 * n}, {n}], {attrs})", image)
        x = RNG.standard_normal((1, 2, n, 4)).astype(np.float32)
        np.testing.assert_allclose(named(x), relay.build(fixed)(x), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("zeros(shape=[n - 3])", "at least"),
        ("strided_slice(%x, begin=[n - 4], end=[n])", "at least"),
        ("reshape(%x, newshape=[n, 3, n - 1])", "must equal|at least"),
        ("tile(%x, reps=[n - 3, 1])", "at least"),
        ("nn.pad(%x, 0f, pad_width=[[n - 3, 0], [0, 0]])", "at least"),
    ],
)
def test_a_run_refuses_sizes_below_zero(call, complaint):
    mod = module(call)
    relay.build(mod)(rows(4) if "reshape" not in call else rows(3))
    with pytest.raises(relay.RunError, match=complaint):
        relay.build(mod)(rows(1))
    with pytest.raises(relay.RunError, match=r"E0607|E0801|E0203"):
        relay.create_executor("debug", mod).evaluate()(rows(1))


def test_programs_that_differ_in_a_name_only_are_equal():
    def reshaped(name: str, sizes: str):
        return module(
            f"reshape(%x, newshape=[{sizes}])", f"%x: Tensor[({name}, 4), float32]", f"{name}: Dim"
        )

    one = reshaped("n", "2 * n, 2")["main"]
    assert relay.structural_equal(one, reshaped("rows", "2 * rows, 2")["main"])
    assert not relay.structural_equal(one, reshaped("n", "n, 4")["main"])


def test_sizes_in_functions_closures_and_tuples():
    mod = relay.parse(f"""{HEAD}
def @ramp[n: Dim](%p: (Tensor[(n,), float32], int32), %times: int32) -> Tensor[(n,), float32] {{
  if (%times <= 0) {{ %p.0 }} else {{
    let %more = fn (%y: Tensor[(n,), float32]) -> Tensor[(n,), float32] {{
      %y + arange(stop=n, dtype="float32")
    }};
    @ramp((%more(%p.0), %times), %times - 1)
  }}
}}
def @main[k: Dim](%x: Tensor[(k,), float32], %times: int32) {{ @ramp((%x, 1), %times) }}
""")
    x = RNG.standard_normal(5).astype(np.float32)
    want = x + 3 * np.arange(5, dtype=np.float32)
    for run in (
        relay.build(mod),
        relay.build(mod, opt_level=0),
        relay.create_executor("debug", mod).evaluate(),
    ):
        np.testing.assert_allclose(np.asarray(run(x, np.int32(3))), want, rtol=1e-6)


def test_a_closure_that_leaves_knows_the_sizes_around_it():
    mod = relay.parse(f"""{HEAD}
def @maker[n: Dim](%x: Tensor[(n, 2), float32]) -> fn () -> Tensor[(n,), float32] {{
  fn () -> Tensor[(n,), float32] {{ arange(stop=n, dtype="float32") }}
}}
def @pick[A](%f: A, %g: A, %c: bool) -> A {{ if (%c) {{ %f }} else {{ %g }} }}
def @main[n: Dim](%x: Tensor[(n, 2), float32], %c: bool) -> Tensor[(n,), float32] {{
  let %f = @maker(%x);
  let %g = fn () -> Tensor[(n,), float32] {{ zeros(shape=[n]) }};
  let %h = @pick(%f, %g, %c);
  %h()
}}
""")
    x = np.ones((4, 2), np.float32)
    for run in (relay.build(mod), relay.create_executor("debug", mod).evaluate()):
        np.testing.assert_array_equal(np.asarray(run(x, np.bool_(True))), np.arange(4))
        np.testing.assert_array_equal(np.asarray(run(x, np.bool_(False))), np.zeros(4))


def test_programs_are_built_in_python():
    n = relay.TypeVar("n")
    x = relay.var("x", shape=(n, 6))
    y = relay.reshape(x, [n, 2, 3])
    assert y.shape == (n, 2, 3)
    assert relay.reshape(x, (2 * n, 3)).shape == (2 * n, 3)
    assert relay.zeros(x.shape, "float32").shape == (n, 6)
    assert relay.tile(x, (n // 2, 1)).shape[0] == (n // 2) * n
    assert relay.strided_slice(x, [0], [n - 1]).attrs.end == [n - 1]
    f = relay.Function([x], relay.nn.relu(y) + relay.ones((n, 2, 3), "float32"))
    mod = relay.IRModule.from_expr(f)
    assert "newshape=[n, 2, 3]" in str(mod)
    got = relay.build(mod)(rows(3) * 0)
    np.testing.assert_array_equal(got, np.ones((3, 2, 3)))
    with pytest.raises((TypeError, relay.UserError), match=r"axis|int"):
        relay.nn.softmax(x, axis=n)
    with pytest.raises(ValueError, match="below one"):
        n // 0


def test_a_dimension_that_nothing_binds_is_refused():
    n, m = relay.TypeVar("n"), relay.TypeVar("m")
    x = relay.var("x", shape=(n, 4))
    f = relay.Function([x], relay.zeros((m,), "float32"))
    with pytest.raises(relay.UserError, match="m"):
        relay.build(relay.IRModule.from_expr(f))


@pytest.mark.parametrize("n", [1, 3])
def test_sizes_that_are_fixed_go_into_attributes(n, tmp_path):
    from command_line import relay as command

    path = tmp_path / "m.relay"
    path.write_text(
        HEAD + "def @main[n: Dim](%x: Tensor[(n, 4), float32]) {\n"
        "  nn.relu(reshape(%x, newshape=[2 * n, 2])) + zeros(shape=[2 * n, 1])\n}\n"
    )
    shown = command("show", path, "--input", f"x={n}x4", "--after", "SimplifyExpr")
    assert f"newshape=[{2 * n}, 2]" in shown.stdout, shown.stdout + shown.stderr
    assert "n" not in shown.stdout.split("newshape")[1].split("]")[0]


def test_a_size_of_zero_is_no_code_of_reshape():
    mod = module("reshape(%x, newshape=[n, n])", "%x: Tensor[(4, n), float32]")
    for run in (relay.build(mod), relay.create_executor("debug", mod).evaluate()):
        assert np.asarray(run(np.ones((4, 0), np.float32))).shape == (0, 0)
