"""oneDNN as an external code generator: what it computes, what it leaves, and what happens without it."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guest_rows
import models
import numpy as np
import pytest
from command_line import relay as command
from command_line import relay_json

import relay
from relay import onednn


def is_installed():
    named = os.environ.get("RELAY_ONEDNN")
    for place in [named] if named else [Path(sys.prefix) / "lib" / "libdnnl.so.3", "libdnnl.so.3"]:
        try:
            ctypes.CDLL(str(place))
        except OSError:
            continue
        return True
    return False


needs_onednn = pytest.mark.skipif(
    not is_installed(), reason="oneDNN (onednn-cpu-gomp) is not installed"
)


@pytest.fixture(autouse=True)
def all_regions():
    """Takes regions of any size."""
    onednn.register(min_work=0)
    yield
    onednn.register()


def arrays(result):
    return [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]


def agrees(mod, inputs, takes, leaves=(), params=None):
    """Compares the divided program with Relay's own code; returns it and the explanation."""
    divided = onednn.partition(mod, params)
    told = relay.external.explain(divided, "onednn")
    taken, _, left = told.partition("leaves to Relay:")
    for part, ops in ((taken, takes), (left, leaves)):
        for op in ops:
            assert f"  {op} " in part, told
    want = arrays(relay.build(mod, params=params)(*inputs))
    exe = relay.build(divided)
    for _ in range(2):  # the first run makes the plan
        for got, w in zip(arrays(exe(*inputs)), want, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-4, atol=1e-5)
    return divided, told


@needs_onednn
@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("resnet18", ["onednn.conv2d_bias_sum_relu", "nn.max_pool2d", "onednn.dense_bias"]),
        ("mobilenet_v2", ["onednn.conv2d_bias_clip", "onednn.conv2d_bias_sum", "add"]),
        ("bert_base", ["onednn.dense_bias_gelu", "onednn.dense_bias_sum", "onednn.dense_bias"]),
    ],
)
def test_models(name, takes):
    model = models.build(name, small=True)
    mod, params = relay.frontend.from_onnx(model)
    agrees(mod, list(models.make_inputs(model, seed=0).values()), takes, params=params)


@needs_onednn
@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", guest_rows.read())
def test_the_table_of_models(name):
    kept = guest_rows.read()[name]
    assert guest_rows.row(name) == {key: kept[key] for key in ("regions", "taken", "stays")}


def test_the_table_is_on_the_page():
    assert guest_rows.read().keys() == set(guest_rows.MODELS)
    assert guest_rows.PAGE.read_text() == guest_rows.page(), "run guest_rows.py --small"


def weights(*shape):
    return relay.const(np.random.default_rng(len(shape)).standard_normal(shape, "float32"))


def settings():
    """Programs of one input, with the operators that oneDNN takes of them."""
    x = relay.var("x", shape=(2, 8, 9, 7))
    nn = relay.nn

    def conv(value, channels=8, kernel=(3, 3), groups=1, **attrs):
        given = weights(channels, value.checked_type.shape[1] // groups, *kernel)
        return nn.conv2d(
            value, given, groups=groups, kernel_size=kernel, channels=channels, **attrs
        )

    def typed(value):
        return relay.transform.InferType()(
            relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(value), value))
        )["main"].body

    x = typed(nn.relu(x)).args[0]
    same = conv(x, padding=(1, 1))
    biased = same + weights(8, 1, 1)
    yield (
        "strides and one-sided padding",
        conv(x, strides=(2, 1), padding=(0, 1, 2, 0)),
        ["nn.conv2d"],
    )
    yield "dilated groups", nn.relu(conv(x, groups=4, dilation=(2, 2))), ["onednn.conv2d_relu"]
    yield "depthwise", nn.bias_add(conv(x, groups=8), weights(8)), ["onednn.conv2d_bias"]
    yield "its own input is added", nn.relu(biased + x), ["onednn.conv2d_bias_sum_relu"]
    one = conv(x, kernel=(1, 1)) + weights(8, 1, 1)
    yield "an addend that is used again", relay.Tuple([one + biased, one]), ["onednn.conv2d_bias"]
    yield "sigmoid", relay.sigmoid(biased), ["onednn.conv2d_bias_sigmoid"]
    pool = {"pool_size": (3, 2), "strides": (2, 2), "padding": (1, 0, 1, 1)}
    yield "max pool", nn.max_pool2d(same, **pool), ["nn.max_pool2d"]
    for inside in (False, True):
        yield (
            f"mean {inside}",
            nn.avg_pool2d(same, count_include_pad=inside, **pool),
            ["nn.avg_pool2d"],
        )
    flat = relay.reshape(x, newshape=(2, 8, 63))
    yield (
        "dense of a batch",
        relay.tanh(nn.dense(flat, weights(5, 63)) + weights(5)),
        ["onednn.dense_bias_tanh"],
    )
    yield "products of a batch", nn.batch_matmul(flat, relay.exp(flat)), ["nn.batch_matmul"]
    turned = relay.transpose(flat, axes=(0, 2, 1))
    yield "plain products", nn.batch_matmul(flat, turned, transpose_b=False), ["nn.batch_matmul"]
    # Constants that a primitive reads in the layout that they have.
    yield "a constant on the left", nn.batch_matmul(weights(2, 5, 63), flat), ["nn.batch_matmul"]
    dense = nn.bias_add(nn.dense(flat, weights(5, 63)), weights(5), axis=-1)
    yield "a constant addend", dense + weights(2, 8, 5), ["onednn.dense_bias_sum"]
    yield (
        "a constant addend of a convolution",
        biased + weights(2, 8, 9, 7),
        ["onednn.conv2d_bias_sum"],
    )
    yield "a constant before a sum", weights(2, 8, 9, 7) + same, ["nn.conv2d", "add"]
    yield (
        "constants before a bias and an addend",
        nn.relu(weights(2, 8, 9, 7) + (weights(8, 1, 1) + same)),
        ["onednn.conv2d_bias_sum_relu"],
    )
    # Addends that the pattern would compute itself.
    yield "a product is doubled", nn.relu(dense + dense), ["onednn.dense_bias", "add", "nn.relu"]
    yield "a convolution before and after its bias", nn.relu(biased + same), ["nn.conv2d"]
    yield (
        "a bias that broadcasts a product",
        nn.relu(nn.dense(flat, weights(1, 63)) + weights(8)),
        ["nn.dense"],
    )
    row, bias = relay.reshape(x, newshape=(1, 1008)), weights(1, 8)
    summed = nn.relu(nn.dense(row, weights(8, 1008)) + bias) + bias
    yield "a bias that is added again as a matrix", summed, ["onednn.dense_bias_relu", "add"]

    def gelu(value, divisor=2**0.5, one=1.0, half=0.5):
        divisor, one, half = (
            c if isinstance(c, relay.Constant) else relay.const(c, "float32")
            for c in (divisor, one, half)
        )
        return half * ((one + relay.erf(value / divisor)) * value)

    yield "GELU of a convolution", gelu(biased), ["onednn.conv2d_bias_gelu"]
    ones = relay.const(np.ones(1, "float32"))
    yield (
        "GELU after a bias of 1",
        gelu(nn.dense(flat, weights(1, 63)) + ones),
        ["onednn.dense_bias_gelu"],
    )
    for constant in ("divisor", "one", "half"):
        for other in (weights(5), relay.const(0.75)):
            yield (
                f"GELU with another {constant}",
                gelu(dense, **{constant: other}),
                ["onednn.dense_bias"],
            )


@needs_onednn
def test_settings_of_operators():
    x = np.random.default_rng(0).standard_normal((2, 8, 9, 7), "float32")
    for name, body, takes in settings():
        mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
        try:
            agrees(mod, [x], takes)
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from e


def quantised():
    """Programs of bytes of one input of each dtype, with the operators that oneDNN takes of them."""
    shape = (2, 8, 9, 7)
    qnn, rng = relay.qnn.op, np.random.default_rng(7)

    def bytes_of(*dims):
        return relay.const(rng.integers(-127, 128, dims, "int8"))

    def real(*dims, low=-1.0, high=1.0):
        return relay.const(rng.uniform(low, high, dims).astype("float32"))

    def conv(x, zero, channels=8, groups=1, per_channel=True, **attrs):
        given = x.checked_type.shape[1] if x.checked_type else 8
        scale = real(channels, low=0.001, high=0.01) if per_channel else relay.const(0.01)
        sums = qnn.conv2d(
            x, bytes_of(channels, given // groups, 3, 3), relay.const(zero), relay.const(0),
            relay.const(0.02), scale, kernel_size=(3, 3), channels=channels,
            padding=(1, 1), groups=groups, **attrs,
        )  # fmt: skip
        factor = relay.const(np.asarray(scale.data) * np.float32(0.02))
        return qnn.dequantize(sums, factor, relay.const(0), axis=1)

    def ends(value, zero, dtype):
        return qnn.quantize(value, relay.const(0.05), relay.const(zero), out_dtype=dtype)

    for dtype, zero in (("uint8", 117), ("int8", -3)):
        x = relay.var("x", shape=shape, dtype=dtype)
        biased = relay.add(conv(x, zero), real(8, 1, 1))
        there = qnn.dequantize(x, relay.const(0.02), relay.const(zero))
        other = {"uint8": "int8", "int8": "uint8"}[dtype]
        tail = relay.nn.relu(relay.add(relay.add(biased, real(8, 1, 1)), there))
        yield dtype, ends(tail, 3, dtype), ["onednn.qconv2d_bias_shift_sum_relu_quantize"]
        yield dtype, ends(tail, 3, other), ["onednn.qconv2d_bias_shift_sum_relu_quantize"]
        yield dtype, tail, ["onednn.qconv2d_bias_shift_sum_relu", "qnn.dequantize"]
        yield dtype, ends(biased, 100, other), ["onednn.qconv2d_bias_quantize"]
        grouped = ends(conv(x, zero, groups=8), 9, "uint8")
        yield dtype, grouped, ["onednn.qconv2d_quantize"]
        yield dtype, conv(x, zero, groups=2, per_channel=False, strides=(2, 1)), ["onednn.qconv2d"]
        pooled = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
        yield dtype, conv(pooled, zero), ["nn.max_pool2d", "onednn.qconv2d"]
        flat = relay.reshape(x, newshape=(2, 504))
        sums = qnn.dense(
            flat, bytes_of(5, 504), relay.const(zero), relay.const(0), relay.const(0.02),
            real(5, low=0.001, high=0.01), units=5,
        )  # fmt: skip
        dense = qnn.dequantize(sums, real(5, low=1e-5, high=1e-4), relay.const(0), axis=1)
        yield dtype, ends(relay.add(dense, real(5)), 2, "int8"), ["onednn.qdense_bias_quantize"]


@needs_onednn
def test_quantised_programs():
    """Bytes differ by one step where the rounding of the last digit decides; floats agree."""
    rng = np.random.default_rng(3)
    for number, (dtype, body, takes) in enumerate(quantised()):
        mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
        x = rng.integers(0, 256, (2, 8, 9, 7), "uint8").view(dtype)
        divided = onednn.partition(mod)
        told = relay.external.explain(divided, "onednn").partition("leaves to Relay:")[0]
        assert all(f"  {op} " in told for op in takes), (number, told)
        want, got = (np.asarray(relay.build(m)(x)) for m in (mod, divided))
        assert got.dtype == want.dtype and np.ptp(want.astype("float32")) > 1, number
        if want.dtype == "float32":
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=str(number))
        else:
            far = np.abs(got.astype("int32") - want.astype("int32"))
            assert far.max() <= 1 and far.mean() < 0.01, (number, far.max(), far.mean())


@needs_onednn
def test_int8_resnet50():
    """All convolutions are in one region; the result is no farther from the float one than Relay's own."""
    model = models.build("resnet50", small=True)
    samples = [models.make_inputs(model, seed=i) for i in range(2)]
    mod, params = relay.frontend.from_onnx(model)
    quantized = relay.quantize(mod, params, samples)
    divided = onednn.partition(quantized)
    taken = relay.external.explain(divided, "onednn").partition("leaves to Relay:")[0]
    counts = [int(line.split()[0]) for line in taken.splitlines() if "onednn.qconv2d" in line]
    assert sum(counts) == 53, taken
    inputs = list(models.make_inputs(model, seed=5).values())
    want, got = (arrays(relay.build(m)(*inputs))[0] for m in (quantized, divided))
    real = arrays(relay.build(mod, params=params)(*inputs))[0]
    error = np.abs(want - real).max()
    assert error > 0 and np.abs(got - want).max() <= error


@needs_onednn
def test_symbolic_sizes():
    """Plans are made for the sizes of a call; what has sizes that no input has stays with Relay."""
    mod = parsed("nn.relu(nn.dense(exp(%x), %w))", "(n, 3, 16), float32", "(8, 16)")
    params = {"w": np.random.default_rng(1).standard_normal((8, 16), "float32")}
    divided = onednn.partition(mod, params)
    told = relay.external.explain(divided, "onednn")
    assert "onednn.dense_relu" in told.partition("leaves to Relay:")[0], told
    exe, own = relay.build(divided), relay.build(mod, params=params)
    for rows in (2, 5, 0, 1, 2):
        x = np.random.default_rng(rows).standard_normal((rows, 3, 16), "float32")
        np.testing.assert_allclose(np.asarray(exe(x)), np.asarray(own(x)), rtol=1e-4, atol=1e-5)
    window = parsed(CONV, "(2, 8, n, 7), float32")
    divided = onednn.partition(window, {"w": np.zeros((8, 8, 3, 3), "float32")})
    told = relay.external.explain(divided, "onednn")
    assert "takes: nothing" in told and "is not one of an input" in told, told


@needs_onednn
def test_a_product_over_no_terms_is_zero():
    """Of a region's results one may be empty while the others are not; epilogues see the zeros."""
    mod = relay.parse("""#[version = "0.0.5"]
def @main[m: Dim, n: Dim, k: Dim](%x: Tensor[(1, n, k), float32], %y: Tensor[(1, 16, k), float32],
    %z: Tensor[(1, m, n), float32], %b: Tensor[(1, m, 16), float32]) {
  let %p = nn.relu(nn.batch_matmul(%x, %y, transpose_b=True));
  (%p, nn.relu(add(nn.batch_matmul(%z, %p, transpose_b=False), %b)))
}""")
    divided = onednn.partition(mod)
    told = relay.external.explain(divided, "onednn")
    assert "leaves to Relay: nothing" in told, told
    exe = relay.build(divided)
    rng = np.random.default_rng(0)
    for m, n, k in ((3, 4, 5), (3, 4, 0), (3, 0, 5), (3, 0, 0), (0, 4, 5), (3, 4, 5)):
        x, y, z, b = (
            rng.standard_normal((1, *s), "float32") for s in ((n, k), (16, k), (m, n), (m, 16))
        )
        p = np.maximum(x @ y.transpose(0, 2, 1), 0)
        for got, want in zip(exe(x, y, z, b), (p, np.maximum(z @ p + b, 0)), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def parsed(body, x="(2, 8, 9, 7), float32", w="(8, 8, 3, 3)"):
    params = f"%x: Tensor[{x}], %w: Tensor[{w}, float32]"
    return relay.parse(f'#[version = "0.0.5"]\ndef @main[n: Dim]({params}) {{ {body} }}')


CONV = "nn.conv2d(%x, %w, channels=8, kernel_size=[3, 3])"


@pytest.mark.parametrize(
    ("mod", "reason"),
    [
        (parsed(CONV), "the weights are not constant"),
        (
            parsed("nn.max_pool2d(%x, pool_size=[2, 2], ceil_mode=True)"),
            "the number of windows is rounded up",
        ),
        (parsed('nn.relu(cast(argwhere(%x), dtype="float32"))'), "a size is known only in a run"),
        (parsed("nn.global_avg_pool2d(%x)", "(2, 8, n, n), float32"), "window is symbolic"),
        (parsed("nn.relu(%x)", "(2, 4), float64"), "a dtype is float64"),
        (parsed("nn.relu(%x)"), "in a region without a convolution or a product"),
        (parsed("exp(%x)"), "not supported"),
    ],
)
def test_what_stays_has_a_reason(mod, reason):
    divided = onednn.partition(mod)
    told = relay.external.explain(divided, "onednn")
    assert "takes: nothing" in told and reason in told, told


def test_small_regions_stay():
    x = relay.var("x", shape=(1, 16))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, weights(8, 16))))
    onednn.register()
    told = relay.external.explain(onednn.partition(mod), "onednn")
    assert "nn.dense  in a region of only 128 multiply-adds" in told


@pytest.mark.parametrize("shape", [(), (1,) * 11 + (2, 16)])
def test_ranks_that_onednn_has_not_stay(shape):
    y = relay.var("y", shape=shape)
    x = relay.var("x", shape=(2, 16))
    left = relay.reshape(relay.nn.dense(x, weights(16, 16)), newshape=(*[1] * 11, 2, 16))
    body = relay.Tuple([relay.nn.relu(left), relay.nn.relu(y)])
    told = relay.external.explain(
        onednn.partition(relay.IRModule.from_expr(relay.Function([x, y], body))), "onednn"
    )
    assert f"the rank of a tensor is {len(shape)}" in told, told


# ---- The library, called as the runtime calls it.

SCRATCH = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
STRINGS = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
PRINT_TEXT, PRINT_END, NUM_STRINGS = 15, 18, 21  # core/string_functions.h
CHECK_FAILED, OUT_OF_MEMORY = 4, 3


class Context(ctypes.Structure):
    """relay_kernel_context of runtime/core/kernel_abi.h."""

    _fields_ = [
        ("abi_version", ctypes.c_int32),
        ("num_threads", ctypes.c_int32),
        ("parallel_for", ctypes.c_void_p),
        ("scratch", SCRATCH),
        ("runtime", ctypes.c_void_p),
        ("error", ctypes.POINTER(ctypes.c_int32)),
        ("strings", ctypes.POINTER(STRINGS)),
        ("keep", ctypes.c_void_p),
    ]


class Region:
    """Runs descriptions of one region on its inputs."""

    GUARD = 64

    def __init__(self, inputs, result):
        self.inputs, self.result = inputs, result
        folder = Path(relay.__file__).parent / "lib"
        self.function = ctypes.CDLL(str(folder / "librelay_onednn.so")).relay_onednn_region

    def __call__(self, description):
        """Returns the error, its text and the result; fails where the library writes outside the result."""
        # Sizes that are no dimensions follow: the library does not know how many there are.
        sizes = [len(description), *(d for a in self.inputs for d in a.shape), *self.result.shape]
        given = np.array([*sizes, *[-7] * self.GUARD], "int64")
        data = np.frombuffer(description, "uint8").copy()
        out = np.full(self.GUARD * 2 + self.result.size, -7, "float32")
        memory = []

        def scratch(_, count):
            if count > 1 << 24:
                return None
            memory.append(np.empty(count + 64, "uint8"))
            return -(-memory[-1].ctypes.data // 64) * 64

        error, said = ctypes.c_int32(0), []

        def text(_, words):
            size = ctypes.c_uint32.from_address(words[0]).value
            said.append(ctypes.string_at(words[0] + 4, size).decode())
            return words[2] + 1

        def end(_, words):
            error.value = CHECK_FAILED
            return words[1] + 1

        strings = (STRINGS * NUM_STRINGS)()
        strings[PRINT_TEXT], strings[PRINT_END] = STRINGS(text), STRINGS(end)
        places = [data.ctypes.data, *(a.ctypes.data for a in self.inputs)]
        places.append(out.ctypes.data + 4 * self.GUARD)
        context = Context(2, 1, None, SCRATCH(scratch), None, ctypes.pointer(error), strings, None)
        buffers = (ctypes.c_void_p * (len(places) + self.GUARD))(*places)
        self.function(buffers, ctypes.c_void_p(given.ctypes.data), ctypes.byref(context))
        data[:] = 0xFF  # nothing may read the description after the call
        assert (out[: self.GUARD] == -7).all() and (out[-self.GUARD :] == -7).all()
        assert (error.value == CHECK_FAILED) == bool(said)
        return error.value, "".join(said), out[self.GUARD : -self.GUARD].reshape(self.result.shape)


def described(monkeypatch, body, inputs):
    """The description of a program that is one region, the bytes before its constants, and what runs it."""
    made = []
    write = onednn._Region.data_bytes

    def keep(region):
        out = write(region)
        constants = sum(-(-a.nbytes // 64) * 64 for a in region.data if a is not None)
        made.append((out, len(out) - constants))
        return out

    monkeypatch.setattr(onednn._Region, "data_bytes", keep)
    mod = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    relay.build(onednn.partition(mod))
    ((description, head),) = made
    return description, head, Region(inputs, np.asarray(relay.build(mod)(*inputs)))


def regions():
    x = relay.var("x", shape=(1, 8, 6, 5))
    conv = relay.nn.conv2d(x, weights(8, 8, 3, 3), kernel_size=(3, 3), channels=8, padding=(1, 1))
    pooled = relay.nn.max_pool2d(
        relay.nn.relu(conv + weights(8, 1, 1) + x), pool_size=(2, 2), strides=(1, 1)
    )
    yield "convolution", weights(1, 8, 5, 4) + pooled, (1, 8, 6, 5)
    y = relay.var("y", shape=(2, 3, 16))
    dense = relay.nn.bias_add(relay.nn.dense(y, weights(5, 16)), weights(5), axis=-1)
    yield "product", relay.nn.batch_matmul(weights(2, 4, 5), dense + weights(2, 3, 5)), (2, 3, 16)


@needs_onednn
@pytest.mark.parametrize("region", [pytest.param(r[1:], id=r[0]) for r in regions()])
def test_damaged_descriptions_are_errors(monkeypatch, region):
    body, shape = region
    x = np.random.default_rng(0).standard_normal(shape, "float32")
    description, head, run = described(monkeypatch, body, [x])
    for _ in range(2):
        error, _, got = run(description)
        assert error == 0
        np.testing.assert_allclose(got, run.result, rtol=1e-4, atol=1e-5)
    # A plan that is found again is for calls of its own sizes.
    _, said, _ = Region([x], run.result[..., :-1].copy())(description)
    assert said == "oneDNN: the sizes of a region's operands are not those of its description"
    assert run(description[:-64])[0] == CHECK_FAILED
    for size in range(0, head, 8):
        assert run(description[:size])[0] == CHECK_FAILED, size

    words = np.frombuffer(description, "int64")
    seen = {0: 0, CHECK_FAILED: 0, OUT_OF_MEMORY: 0}
    for place in range(head // 8):
        given = words[place]
        for n, value in enumerate((-1, 0, 1, 2, 5, given + 1, given - 1, 1 << 31, 1 << 61)):
            damaged = words.copy()
            damaged[2] = place * 100 + n  # the id: each has a plan of its own
            damaged[place] = value
            seen[run(damaged.tobytes())[0]] += 1
    assert seen[CHECK_FAILED] > 300, seen


@needs_onednn
def test_the_error_says_what_onednn_refuses_E0605(monkeypatch):
    x = relay.var("x", shape=(4, 16))
    body = relay.nn.relu(relay.nn.dense(x, weights(8, 16)))
    monkeypatch.setattr(onednn, "_FORMAT", 9)
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    exe = relay.build(onednn.partition(mod))
    said = (
        r"E0605.*: oneDNN: the region was compiled for another librelay_onednn.so, .*"
        "in the external kernel .*: relay_onednn_region of librelay_onednn.so"
    )
    with pytest.raises(relay.RunError, match=said):
        exe(np.zeros((4, 16), "float32"))


def saved(folder):
    x = relay.var("x", shape=(4, 16))
    body = relay.nn.relu(relay.nn.dense(x, weights(8, 16)))
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    path = folder / "model.so"
    relay.build(onednn.partition(mod)).export_library(str(path))
    return mod, path


@needs_onednn
def test_the_option_guest_of_the_command(tmp_path):
    model, compiled = tmp_path / "m.relay", tmp_path / "m.so"
    square = "Tensor[(4, 64, 64), float32]"
    model.write_text(
        '#[version = "0.0.5"]\n'
        f"def @main(%x: {square}, %y: {square}) {{ tanh(nn.batch_matmul(%x, %y)) }}\n"
    )
    command("compile", model, "-o", compiled, "--guest", "onednn")
    results = []
    for name, words in (("own", [model]), ("divided", [compiled])):
        command("run", *words, "--random-inputs", "3", "--output", tmp_path / name)
        results.append(np.load(tmp_path / name / "output0.npy"))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-5)
    kernels = relay_json("explain", compiled)["kernels"]
    assert any("onednn" in str(k) for k in kernels), kernels


LOAD = "import sys, relay; relay.runtime.load_module(sys.argv[1])"


@needs_onednn
def test_a_saved_program_on_several_threads_and_without_the_library_E0619(tmp_path):
    mod, path = saved(tmp_path)
    own, exe = relay.build(mod), relay.runtime.load_module(str(path))
    inputs = [np.random.default_rng(i).standard_normal((4, 16), "float32") for i in range(64)]
    with ThreadPoolExecutor(4) as pool:
        for x, got in zip(inputs, pool.map(exe, inputs), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(own(x)), rtol=1e-5, atol=1e-6)
    # A library that is not there, and one that is not oneDNN.
    for library, said in (
        ("/absent/libdnnl.so", "cannot be opened"),
        ("libm.so.6", "has no function"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", LOAD, str(path)],
            env={**os.environ, "RELAY_ONEDNN": library},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "E0619" in done.stderr and said in done.stderr, done.stderr
