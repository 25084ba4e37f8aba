"""Contractions of 16-bit floats against NumPy in float64, on whatever unit this machine has for them."""

import ml_dtypes
import numpy as np
import pytest
from command_line import relay as command

import relay

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def rounded(shape, dtype, seed):
    """Numbers that the dtype holds, between -1 and 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(TYPES[dtype])


def expect_close(got, want, dtype):
    """Sums are taken in float32 and rounded once to the dtype."""
    assert str(got.dtype) == dtype
    error = np.abs(np.asarray(got).astype("float64") - want)
    step = float(ml_dtypes.finfo(TYPES[dtype]).eps)
    assert np.all(error <= step * np.maximum(np.abs(want), 1)), error.max()


def run(inputs, body, dtype):
    parameters = [relay.var(f"x{i}", shape=x.shape, dtype=dtype) for i, x in enumerate(inputs)]
    program = relay.Function(parameters, body(*parameters))
    return relay.build(relay.IRModule.from_expr(program))(*inputs)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows, columns, inputs", [(1, 40, 64), (33, 100, 96), (64, 64, 30),
                                                     (1, 1100, 1000), (4, 1000, 1100)])  # fmt: skip
@pytest.mark.parametrize("constant", [True, False])
def test_dense(dtype, rows, columns, inputs, constant):
    x, w = rounded((rows, inputs), dtype, 1), rounded((columns, inputs), dtype, 2)
    want = x.astype("float64") @ w.astype("float64").T
    if constant:
        got = run([x], lambda x: relay.nn.dense(x, relay.const(w)), dtype)
    else:
        got = run([x, w], relay.nn.dense, dtype)
    expect_close(got, want, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [3, 32])
@pytest.mark.parametrize("kernel, stride, size", [(1, 1, 7), (3, 1, 18), (3, 2, 33)])
def test_convolution(dtype, channels, kernel, stride, size):
    outputs, border = 40, kernel // 2
    x = rounded((1, channels, size, size), dtype, 3)
    w = rounded((outputs, channels, kernel, kernel), dtype, 4)
    got = run(
        [x],
        lambda x: relay.nn.conv2d(
            x, relay.const(w), strides=(stride, stride), padding=(border, border)
        ),
        dtype,
    )
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (border, border), (border, border)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
    want = np.einsum("nchwrs,ocrs->nohw", windows[:, :, ::stride, ::stride], w.astype("float64"))
    expect_close(got, want, dtype)


def open_convolution(dtype, kernel, stride, outputs=40, inputs=32):
    border = kernel // 2
    return f"""#[version = "0.0.5"]
def @main[n: Dim, h: Dim, w: Dim](
    %x: Tensor[(n, {inputs}, h, w), {dtype}],
    %w: Tensor[({outputs}, {inputs}, {kernel}, {kernel}), {dtype}]) {{
  nn.conv2d(%x, %w, strides=[{stride}, {stride}], padding=[{border}, {border}, {border}, {border}])
}}"""


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel, stride", [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_convolution_of_open_images(dtype, kernel, stride):
    """Tiles of every number of columns that larger ones leave over."""
    border = kernel // 2
    w = rounded((40, 32, kernel, kernel), dtype, 4)
    program = relay.build(relay.parse(open_convolution(dtype, kernel, stride)))
    for shape in ((1, 1, 1), (2, 5, 17), (1, 3, 44), (0, 4, 4)):
        x = rounded((shape[0], 32, *shape[1:]), dtype, sum(shape))
        padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (border, border), (border, border)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        windows = windows[:, :, ::stride, ::stride]
        want = np.einsum("nchwrs,ocrs->nohw", windows, w.astype("float64"))
        expect_close(np.asarray(program(x, w)), want, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_batch_matmul(dtype):
    x, y = rounded((3, 20, 64), dtype, 5), rounded((3, 24, 64), dtype, 6)
    want = np.einsum("bik,bjk->bij", x.astype("float64"), y.astype("float64"))
    expect_close(
        run([x, y], lambda a, b: relay.nn.batch_matmul(a, b, transpose_b=True), dtype), want, dtype
    )


def test_numbers_that_one_bfloat16_does_not_hold():
    """Every float16 is the sum of two: all of its bits count."""
    x = np.full((32, 64), 1 + 2.0**-10, np.float16)
    w = np.eye(64, dtype=np.float16)
    got = run([x], lambda x: relay.nn.dense(x, relay.const(w)), "float16")
    np.testing.assert_array_equal(np.asarray(got), x)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 7, 33), (5, 100)])
@pytest.mark.parametrize("axis", [None, -1])
def test_least_and_greatest(dtype, shape, axis):
    x = rounded(shape, dtype, 9)
    for name in ("min", "max"):
        got = run([x], lambda x, name=name: getattr(relay, name)(x, axis=axis), dtype)
        want = getattr(np, name)(x.astype("float32"), axis=axis)
        assert str(got.dtype) == dtype
        assert np.array_equal(np.asarray(got).astype("float32"), want)
    x.flat[3] = np.nan
    assert np.isnan(np.asarray(run([x], relay.max, dtype)).astype("float32"))


@pytest.mark.parametrize("dtype", TYPES)
def test_least_of_a_tensor_is_vectors(dtype, tmp_path):
    x = relay.var("x", shape=(4, 640), dtype=dtype)
    program = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.min(x))))
    program.export_library(tmp_path / "least.so")
    assert "rows: 1 reduction, " in command("explain", tmp_path / "least.so").stdout


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("constant", [True, False])
def test_rows_of_open_number(dtype, constant):
    """One program for every number of rows, along one axis and two; weights of the program or of the run."""
    w = rounded((96, 64), dtype, 1)
    head, given = "@main[b: Dim, n: Dim]", f", %w: Tensor[(96, 64), {dtype}]"
    text = f'#[version = "0.0.5"]\ndef {head}(%x: Tensor[(b, n, 64), {dtype}]{given}) {{ nn.dense(%x, %w) }}'
    module = relay.parse(text)
    program = relay.build(module, params={"w": w}) if constant else relay.build(module)
    for rows in ((1, 1), (1, 31), (2, 24), (3, 65), (0, 4)):
        x = rounded((*rows, 64), dtype, 2)
        got = np.asarray(program(x) if constant else program(x, w))
        expect_close(got, x.astype("float64") @ w.astype("float64").T, dtype)


def test_a_large_matrix_of_float16_for_one_row_is_not_widened(tmp_path):
    x = relay.var("x", shape=(1, 1024), dtype="float16")
    product = relay.nn.dense(x, relay.const(rounded((1024, 1024), "float16", 3)))
    program = relay.IRModule.from_expr(relay.Function([x], product))
    relay.build(program, target="x86-64-v3").export_library(tmp_path / "m.so")
    assert (tmp_path / "m.so").stat().st_size < 1024 * 1024 * 3


ZEN4 = "llvm -mcpu=znver4 -num-threads=1"


def assembly(tmp_path, program, target):
    (tmp_path / "m.relay").write_text(program)
    return command("show", "m.relay", "--asm", "--target", target, cwd=tmp_path).stdout


PRODUCTS = {
    "constant": """def @main(%x: Tensor[(32, 64), TYPE]) {
      nn.dense(%x, ones(shape=[64, 64], dtype="TYPE")) }""",
    "input": """def @main(%x: Tensor[(32, 64), TYPE], %w: Tensor[(256, 64), TYPE]) {
      nn.dense(%x, %w) }""",
    "many rows": """def @main(%x: Tensor[(2048, 64), TYPE], %w: Tensor[(64, 64), TYPE]) {
      nn.dense(%x, %w) }""",
    "batch": """def @main(%x: Tensor[(4, 32, 64), TYPE], %w: Tensor[(4, 48, 64), TYPE]) {
      nn.batch_matmul(%x, %w, transpose_b=True) }""",
    "convolution": """def @main(%x: Tensor[(1, 32, 17, 17), TYPE]) {
      nn.conv2d(%x, ones(shape=[64, 32, 3, 3], dtype="TYPE"), strides=[2, 2],
                padding=[1, 1], kernel_size=[3, 3], channels=64) }""",
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_pairs_of_bfloat16_are_multiplied_by_avx512(name, tmp_path):
    program = '#[version = "0.0.5"]\n' + PRODUCTS[name]
    text = assembly(tmp_path, program.replace("TYPE", "bfloat16"), ZEN4)
    assert "vdpbf16ps" in text and "vfmadd" not in text
    assert "vdpbf16ps" not in assembly(tmp_path, program.replace("TYPE", "float16"), ZEN4)
    older = "llvm -mcpu=znver3 -num-threads=1"
    assert "vdpbf16ps" not in assembly(tmp_path, program.replace("TYPE", "bfloat16"), older)


@pytest.mark.parametrize("kernel, stride", [(1, 1), (3, 2)])
def test_pairs_of_bfloat16_are_multiplied_in_images_of_open_size(kernel, stride, tmp_path):
    program = open_convolution("bfloat16", kernel, stride)
    text = assembly(tmp_path, program, ZEN4)
    assert "vdpbf16ps" in text and "vfmadd" not in text
    halves = open_convolution("float16", kernel, stride)
    assert "vdpbf16ps" not in assembly(tmp_path, halves, ZEN4)


WITH_UNIT = "llvm -mcpu=sapphirerapids -num-threads=1"


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_matrix_unit_is_preferred_to_pairs(name, tmp_path):
    program = '#[version = "0.0.5"]\n' + PRODUCTS[name].replace("TYPE", "bfloat16")
    text = assembly(tmp_path, program, WITH_UNIT)
    assert "tdpbf16ps" in text and "vdpbf16ps" not in text


@pytest.mark.parametrize("kernel, stride", [(1, 1), (3, 2)])
def test_a_matrix_unit_takes_images_of_open_size(kernel, stride, tmp_path):
    program = open_convolution("bfloat16", kernel, stride)
    assert "tdpbf16ps" in assembly(tmp_path, program, WITH_UNIT)


@pytest.mark.parametrize("kernel, stride, dilation", [(3, 1, 1), (2, 1, 2), (5, 2, 1)])
@pytest.mark.parametrize("dtypes", [("uint8", "int8", "int32"), ("bfloat16",) * 3])
def test_no_matrix_unit_for_sizes_that_may_be_negative(kernel, stride, dilation, dtypes, tmp_path):
    """Images of a symbolic size without padding."""
    data, weight, result = dtypes
    taps = f"strides=[{stride}, {stride}], dilation=[{dilation}, {dilation}]"
    program = f"""#[version = "0.0.5"]
def @main[h: Dim, w: Dim](%x: Tensor[(1, h, w, 32), {data}],
                          %w: Tensor[({kernel}, {kernel}, 32, 48), {weight}]) {{
  nn.conv2d(%x, %w, {taps}, data_layout="NHWC", kernel_layout="HWIO", out_dtype="{result}")
}}"""
    assert "tdp" not in assembly(tmp_path, program, WITH_UNIT)


@pytest.mark.parametrize("batch, rows, columns, inputs", [(3, 20, 64, 34), (2, 9, 197, 64),
                                                            (2, 40, 37, 33)])  # fmt: skip
@pytest.mark.parametrize("transposed", [True, False])
def test_products_of_a_batch(batch, rows, columns, inputs, transposed):
    x = rounded((batch, rows, inputs), "bfloat16", 1)
    w = rounded((batch, columns, inputs), "bfloat16", 2)
    want = x.astype("float64") @ w.astype("float64").transpose(0, 2, 1)
    given = w if transposed else np.ascontiguousarray(w.transpose(0, 2, 1))
    got = run(
        [x, given], lambda x, w: relay.nn.batch_matmul(x, w, transpose_b=transposed), "bfloat16"
    )
    expect_close(got, want, "bfloat16")


ATTENTION = """#[version = "0.0.5"]
def @main[b: Dim, s: Dim, t: Dim](%q: Tensor[(b, 2, s, DEPTH), bfloat16],
    %k: Tensor[(b, t, 2, DEPTH), bfloat16], %v: Tensor[(b, 2, t, 48), bfloat16]) {
  %0 = reshape(%q, newshape=[2 * b, s, DEPTH]);
  %1 = transpose(%k, axes=[0, 2, 1, 3]);
  %2 = reshape(transpose(%1, axes=[0, 1, 3, 2]), newshape=[2 * b, DEPTH, t]);
  %3 = reshape(nn.batch_matmul(%0, %2), newshape=[b, 2, s, t]);
  %4 = cast(nn.softmax(cast(%3, dtype="float32"), axis=3), dtype="bfloat16");
  %5 = reshape(%v, newshape=[2 * b, t, 48]);
  %6 = nn.batch_matmul(reshape(%4, newshape=[2 * b, s, t]), %5);
  (reshape(%6, newshape=[b, 2, s, 48]), PROBABILITIES)
}"""


def attention(depth: int, probabilities: str = "%v") -> str:
    return ATTENTION.replace("DEPTH", str(depth)).replace("PROBABILITIES", probabilities)


@pytest.mark.parametrize("depth, probabilities", [(64, "%v"), (33, "%v"), (34, "%4")])
def test_attention_of_symbolic_sizes(depth, probabilities):
    exe = relay.build(relay.fromtext(attention(depth, probabilities)))
    draw = np.random.default_rng(depth)
    ends = [0, 1, 8, 15, 16, 31, 32, 33, 64, 65]
    for _ in range(40):
        b, s, t = int(draw.integers(0, 3)), int(draw.choice(ends)), int(draw.choice(ends))
        if draw.random() < 0.5:
            s, t = int(draw.integers(1, 90)), int(draw.integers(1, 90))
        q, k = rounded((b, 2, s, depth), "bfloat16", 1), rounded((b, t, 2, depth), "bfloat16", 2)
        v = rounded((b, 2, t, 48), "bfloat16", 3)
        if t > 1 and b > 0:  # what one query sees stays with its own
            k[0, 0, 0, 0] = np.inf
        scores = q.astype("float64") @ k.astype("float64").transpose(0, 2, 3, 1)
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max(axis=3, keepdims=True, initial=-np.inf))
            weights = weights / weights.sum(axis=3, keepdims=True)
        want = weights @ v.astype("float64")
        got = exe(q, k, v)[0].astype("float64")
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0.05, atol=0.02, err_msg=f"{b} {s} {t}")


def test_pairs_of_bfloat16_are_multiplied_in_attention_of_symbolic_sizes(tmp_path):
    text = assembly(tmp_path, attention(64), ZEN4)
    products = [part for part in text.split("_body:") if part.count("vdpbf16ps") > 10]
    assert len(products) == 2
    assert "vdpbf16ps" not in assembly(tmp_path, attention(64), "llvm -mcpu=znver3 -num-threads=1")


def test_a_matrix_unit_takes_attention_of_symbolic_sizes(tmp_path):
    text = assembly(tmp_path, attention(64), WITH_UNIT)
    products = [part for part in text.split("_body:") if "tdpbf16ps" in part]
    assert len(products) == 2


@pytest.mark.parametrize("rows, columns, inputs", [(40, 320, 64), (9, 300, 70), (600, 400, 520)])
def test_rows_by_a_matrix_that_is_an_input(rows, columns, inputs):
    x, w = rounded((rows, inputs), "bfloat16", 1), rounded((columns, inputs), "bfloat16", 2)
    want = x.astype("float64") @ w.astype("float64").T
    expect_close(run([x, w], relay.nn.dense, "bfloat16"), want, "bfloat16")


@pytest.mark.parametrize("rows", [2, 5, 8, 31])
@pytest.mark.parametrize("columns, inputs", [(300, 256), (64, 1024), (1200, 1024), (97, 272)])
def test_few_rows_of_bfloat16_by_a_matrix_as_it_lies(tmp_path, rows, columns, inputs):
    """Products of pairs along the sum, where they fill vectors."""
    dense = (
        "def @main(%x: Tensor[(M, K), bfloat16], %w: Tensor[(N, K), bfloat16]) { nn.dense(%x, %w) }"
    )
    for name, size in (("M", rows), ("N", columns), ("K", inputs)):
        dense = dense.replace(f"({name},", f"({size},").replace(f" {name})", f" {size})")
    dense = f'#[version = "0.0.5"]\n{dense}'
    text = assembly(tmp_path, dense, ZEN4)
    assert "vdpbf16ps" in text
    assert ("vaddps" in text) == (rows <= inputs // 32 and inputs % 32 == 0)  # sums of lanes
    x, w = rounded((rows, inputs), "bfloat16", 1), rounded((columns, inputs), "bfloat16", 2)
    want = x.astype("float64") @ w.astype("float64").T
    for target in ("native", "x86-64-v4 -mattr=+avx512bf16"):
        exe = relay.build(relay.parse(dense), target=target)
        try:
            got = exe(x, w)
        except relay.RelayError as missing:
            assert "E0610" in str(missing)  # a machine without such instructions
            continue
        expect_close(got, want, "bfloat16")
