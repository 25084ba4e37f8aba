"""relay.quantize and `relay quantize`: accuracy of a trained network, aims, reports, bad input."""

import json

import numpy as np
import pytest
from command_line import relay as command
from sklearn.datasets import load_digits

import relay

SHAPES = {
    "w1": (16, 1, 3, 3), "b1": (16,), "w2": (32, 16, 3, 3), "b2": (32,),
    "w3": (32, 32, 3, 3), "b3": (32,), "w4": (10, 512), "b4": (10,),
}  # fmt: skip
BATCH = 64


def network(x, p):
    """A convolutional network with a residual connection, as logits of ten digits."""

    def conv(x, w, b, stride=1):
        sums = relay.nn.conv2d(x, p[w], strides=(stride, stride), padding=(1, 1))
        return relay.nn.bias_add(sums, p[b])

    first = relay.nn.relu(conv(x, "w1", "b1"))
    second = relay.nn.relu(conv(first, "w2", "b2", 2))
    third = relay.nn.relu(relay.add(conv(second, "w3", "b3"), second))
    features = relay.nn.batch_flatten(relay.nn.max_pool2d(third, pool_size=(2, 2), strides=(2, 2)))
    return relay.nn.bias_add(relay.nn.dense(features, p["w4"]), p["b4"])


def trained(images, labels, epochs):
    """Returns parameters after Adam on the cross entropy."""
    params = {k: relay.var(k, shape=s) for k, s in SHAPES.items()}
    x, y = relay.var("x", shape=(BATCH, 1, 16, 16)), relay.var("y", shape=(BATCH, 10))
    scores = relay.multiply(y, relay.nn.log_softmax(network(x, params)))
    loss = relay.Function([x, y, *params.values()], relay.negative(relay.mean(scores)))
    mod = relay.IRModule.from_expr(loss)
    step = relay.build(relay.IRModule.from_expr(relay.transform.gradient(mod["main"], mod)))
    random = np.random.default_rng(0)
    values = {
        k: (random.standard_normal(s) * np.sqrt(2 / np.prod(s[1:]))).astype("float32")
        if len(s) > 1
        else np.zeros(s, "float32")
        for k, s in SHAPES.items()
    }
    mean = {k: 0 for k in SHAPES}
    square = {k: 0 for k in SHAPES}
    t = 0
    for _ in range(epochs):
        order = random.permutation(len(images))
        for at in range(0, len(order) - BATCH + 1, BATCH):
            t += 1
            chosen = order[at : at + BATCH]
            targets = np.eye(10, dtype="float32")[labels[chosen]]
            _, gradients = step(images[chosen], targets, *values.values())
            for k, g in zip(SHAPES, gradients[2:], strict=True):
                mean[k] = 0.9 * mean[k] + 0.1 * g
                square[k] = 0.99 * square[k] + 0.01 * g * g
                change = (mean[k] / (1 - 0.9**t)) / (np.sqrt(square[k] / (1 - 0.99**t)) + 1e-8)
                values[k] = (values[k] - 5e-3 * change).astype("float32")
    return values


@pytest.fixture(scope="module")
def digits():
    """A trained network of any batch, images to calibrate with, and how often a program is right."""
    data = load_digits()
    images = np.kron((data.images / 16).astype("float32"), np.ones((2, 2), "float32"))[:, None]
    order = np.random.default_rng(1).permutation(len(images))
    images, labels = images[order], data.target[order]
    known = 1297
    values = trained(images[:known], labels[:known], epochs=6)
    x = relay.var("x", shape=(relay.TypeVar("n"), 1, 16, 16))
    params = {k: relay.var(k, shape=s) for k, s in SHAPES.items()}
    mod = relay.IRModule.from_expr(relay.Function([x, *params.values()], network(x, params)))

    def accuracy(exe):
        return float((np.argmax(exe(images[known:]), 1) == labels[known:]).mean())

    dataset = [{"x": images[i : i + 32]} for i in range(0, 320, 32)]
    return mod, values, dataset, accuracy


@pytest.mark.parametrize("mode", ["min_max", "percentile", "entropy"])
def test_a_trained_network_keeps_its_accuracy(digits, mode):
    mod, values, dataset, accuracy = digits
    before = accuracy(relay.build(mod, params=values))
    assert before > 0.95
    quantized, report = relay.quantize.quantize_with_report(
        mod, values, dataset, calibrate_mode=mode
    )
    assert report.totals["quantized_layers"] == 4
    assert before - accuracy(relay.build(quantized)) <= 0.005
    assert report.totals["quantized_constant_bytes"] < 0.3 * report.totals["constant_bytes"]
    # Sums of integers, not only numbers that are rounded: so the optimised program says.
    text = relay.optimize(quantized).astext()
    assert text.count("int32") >= 4


class Layers:
    """A model as a class, one method for each part."""

    def __init__(self):
        random = np.random.default_rng(3)
        shapes = {"first": (8, 32), "second": (32, 4)}
        self.weights = {k: random.standard_normal(s).astype("float32") for k, s in shapes.items()}

    @relay.function
    def hidden(self, x):
        return np.maximum(x @ self.weights["first"], 0)

    @relay.function
    def __call__(self, x):
        return self.hidden(x) @ self.weights["second"]


def test_a_model_written_as_a_class_is_quantised():
    model = Layers()
    x = np.random.default_rng(4).standard_normal((64, 8)).astype("float32")

    @relay.function
    def run(x):
        return model(x)

    mod = run.lower(x).module
    quantized, report = relay.quantize.quantize_with_report(mod, None, [(x,)])
    assert [layer["quantized"] for layer in report.layers] == [True, True]
    want = model(x)
    assert np.abs(relay.build(quantized)(x) - want).max() < 0.05 * np.abs(want).max()


def test_weights_are_counted_as_the_program_stores_them():
    """Not as the target packs them: float filters of 3x3 are 6x6 there."""
    w = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype("float32")
    x = relay.var("x", shape=(1, 64, 28, 28))
    conv = relay.nn.conv2d(x, relay.const(w), padding=(1, 1), channels=64, kernel_size=(3, 3))
    image = np.random.default_rng(1).standard_normal((1, 64, 28, 28)).astype("float32")
    _, report = relay.quantize.quantize_with_report(relay.Function([x], conv), None, [(image,)])
    assert report.totals["constant_bytes"] == w.nbytes
    assert w.nbytes / 4 <= report.totals["quantized_constant_bytes"] <= w.nbytes / 4 + 64 * 16
    assert report.totals["compiled_bytes"] >= w.nbytes
    assert "weights as packed for the target" in str(report)


def test_aims_settings_and_scores(digits):
    mod, values, dataset, accuracy = digits
    with relay.quantize.qconfig(max_error=0, bias_correction=False) as config:
        assert relay.quantize.current_qconfig() is config
        _, report = relay.quantize.quantize_with_report(mod, values, dataset[:2])
        assert report.totals["quantized_layers"] == 0 and report.totals["output_error"] == 0
        assert relay.quantize.qconfig(max_error=0.5).bias_correction is False
    assert relay.quantize.current_qconfig().max_error is None
    _, report = relay.quantize.quantize_with_report(
        mod, values, dataset[:2], score=accuracy, max_loss=0.01
    )
    assert report.totals["score"] - report.totals["quantized_score"] <= 0.01
    name = report.layers[0]["name"]
    _, report = relay.quantize.quantize_with_report(mod, values, dataset[:1], keep_float=[name])
    assert [layer["quantized"] for layer in report.layers] == [False, True, True, True]

    def fails(exe):
        raise KeyError("no such label")

    with pytest.raises(KeyError, match="no such label"):
        relay.quantize(mod, values, dataset[:1], score=fails, max_loss=0)


def test_reports(digits, tmp_path):
    mod, values, dataset, _ = digits
    _, report = relay.quantize.quantize_with_report(mod, values, [tuple(dataset[0].values())])
    lines = str(report).splitlines()
    assert lines[0].split()[:3] == ["layer", "operator", "form"]
    assert lines[1].startswith("nn.conv2d 1") and "int8" in lines[1]
    assert repr(report).startswith("<relay.quantize.Report: 4 of 4 quantised")
    report.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["layers"] == report.layers
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == report._repr_html_()
    with pytest.raises(ValueError, match="written to"):
        report.save(tmp_path / "report.txt")


def test_fields_of_the_first_relay():
    fields = {
        "nbit_input": 8, "nbit_weight": 8, "nbit_activation": 32, "dtype_weight": "int8",
        "dtype_activation": "int32", "do_simulation": False, "round_for_shift": True,
        "debug_enabled_ops": None, "calibrate_chunk_by": -1, "partition_conversions": "disabled",
    }  # fmt: skip
    with relay.quantize.qconfig(calibrate_mode="percentile", **fields) as config:
        assert config.nbit_input == 8
        assert "nbit" not in repr(config) and config.calibrate_mode == "percentile"
    for name, other in {
        "nbit_input": 4, "do_simulation": True, "round_for_shift": False, "dtype_input": "int16",
        "weight_scale": "mean", "rounding": "DOWNWARD", "dtype_weight": "uint8",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} is .*, not"):
            relay.quantize.qconfig(**{name: other})
    with pytest.raises(ValueError, match="global_scale is for"):
        relay.quantize.qconfig(calibrate_mode="entropy", global_scale=4.0)
    with pytest.raises(ValueError, match="skip_conv_layers is a list"):
        relay.quantize.qconfig(skip_conv_layers=0)


def test_defaults_of_the_first_relay():
    """Scales are powers of 2, so that a rescaled sum is a shift to the right, with halves up."""
    rng = np.random.default_rng(11)
    first, second = (rng.normal(size=s).astype("float32") / 4 for s in ((16, 32), (8, 16)))
    x = relay.var("x", shape=(4, 32))
    hidden = relay.nn.relu(relay.nn.dense(x, relay.const(first)))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(hidden, relay.const(second))))
    # Multiples of half a step: halves are common.
    dataset = [{"x": (rng.integers(-80, 80, (4, 32)) / 32).astype("float32")} for _ in range(3)]
    defaults = {
        "nbit_input": 8, "nbit_weight": 8, "nbit_activation": 32, "dtype_input": "int8",
        "dtype_weight": "int8", "dtype_activation": "int32", "calibrate_mode": "global_scale",
        "global_scale": 8.0, "weight_scale": "power2", "skip_conv_layers": [0],
        "do_simulation": False, "round_for_shift": True, "debug_enabled_ops": None,
        "rounding": "UPWARD", "calibrate_chunk_by": -1, "partition_conversions": "disabled",
    }  # fmt: skip
    with pytest.raises(relay.RelayError, match="no convolution 0"):
        relay.quantize(mod, None, dataset, **defaults)
    with relay.quantize.qconfig(**{**defaults, "skip_conv_layers": None}) as config:
        assert (config.weight_scale, config.rounding) == ("power2", "UPWARD")
    with relay.quantize.qconfig(**{**defaults, "skip_conv_layers": None}):
        with pytest.raises(relay.RelayError, match="no layer of the program can be quantised"):
            relay.quantize(mod, None, dataset, skip_dense_layer=True)
        quantized, report = relay.quantize.quantize_with_report(
            mod, None, dataset, bias_correction=False, per_channel=False
        )
    assert [layer["scale"] for layer in report.layers] == [1 / 16] * 2
    assert [layer["zero_point"] for layer in report.layers] == [0] * 2

    def integers(weight):
        bits = int(np.ceil(np.log2(np.abs(weight).max()))) - 7
        return np.clip(np.round(weight * 2.0**-bits), -127, 127).astype("int64"), bits

    (w1, b1), (w2, b2) = integers(first), integers(second)
    exe = relay.build(quantized)
    evaluate = relay.create_executor("debug", quantized).evaluate()
    ties = 0
    for sample in dataset:
        q = np.floor(sample["x"] * 16 + 0.5).astype("int64")
        sums = np.maximum(q @ w1.T, 0)
        ties += np.count_nonzero(sums % 2**-b1 == 2 ** (-b1 - 1))
        shifted = np.clip((sums + (1 << (-b1 - 1))) >> -b1, -128, 127)
        want = (shifted @ w2.T) * 2.0 ** (b2 - 4)
        np.testing.assert_array_equal(exe(**sample), want)
        np.testing.assert_array_equal(evaluate(**sample), want)
    assert ties > 0


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST", "TONEAREST_EVEN"])
def test_roundings_agree_with_the_evaluator(rounding, digits):
    mod, values, dataset, _ = digits
    settings = {"dtype_input": "int8", "rounding": rounding, "weight_scale": "power2"}
    quantized, report = relay.quantize.quantize_with_report(mod, values, dataset[:2], **settings)
    text = quantized.astext(show_meta_data=False)
    assert text.count(f'rounding="{rounding}"') == (rounding != "TONEAREST_EVEN") * 4
    assert report.totals["output_error"] < 0.1
    exe, debug = relay.build(quantized), relay.create_executor("debug", quantized).evaluate()
    np.testing.assert_allclose(exe(**dataset[0]), debug(**dataset[0]), rtol=1e-4, atol=1e-4)


def test_one_range_for_all_and_layers_that_are_skipped():
    rng = np.random.default_rng(3)

    def weight(*shape):
        return relay.const(rng.normal(size=shape).astype("float32") / 4)

    x = relay.var("x", shape=(1, 4, 8, 8))
    y = relay.nn.relu(relay.nn.conv2d(x, weight(8, 4, 3, 3), padding=(1, 1)))
    y = relay.nn.global_avg_pool2d(relay.nn.conv2d(y, weight(8, 8, 3, 3), padding=(1, 1)))
    mod = relay.Function([x], relay.nn.dense(relay.nn.batch_flatten(y), weight(5, 8)))
    dataset = [{"x": rng.normal(size=(1, 4, 8, 8)).astype("float32")} for _ in range(4)]

    def forms(**settings):
        report = relay.quantize.quantize_with_report(mod, None, dataset, **settings)[1]
        return [layer["quantized"] for layer in report.layers], report

    with relay.quantize.qconfig(global_scale=4.0):
        found, report = forms()
    assert found == [True, True, True] and report.totals["calibration"] == "global_scale"
    assert [tuple(layer["range"]) for layer in report.layers] == [(-4.0, 4.0)] * 3
    assert all(abs(layer["scale"] - 8 / 255) < 1e-6 for layer in report.layers)
    assert forms(skip_conv_layers=[0])[0] == [False, True, True]
    assert forms(skip_conv_layers=[1], skip_dense_layer=True)[0] == [True, False, False]
    for bad in ({"skip_conv_layers": [2]}, {"global_scale": 0.0, "calibrate_mode": "global_scale"}):
        with pytest.raises(relay.RelayError) as error:
            forms(**bad)
        assert error.value.code == "E0702"


def test_bad_input(digits):
    mod, values, dataset, _ = digits
    image = dataset[0]["x"]
    for bad, code in [
        ([], "E0706"),
        (None, "E0706"),
        ([{"x": np.full_like(image, np.nan)}], "E0706"),
        ([{"x": image[:, :, :3]}], "E0603"),
        ([{"y": image}], "E0702"),
    ]:
        with pytest.raises(relay.RelayError) as error:
            relay.quantize(mod, values, bad)
        assert error.value.code == code
    with pytest.raises(TypeError, match="a sample is"):
        relay.quantize(mod, values, [image])
    for wrong in ({"weight_scale": "power4"}, {"nbit": 4}, {"keep_float": "w1"}, {"score": 1}):
        with pytest.raises(TypeError):
            relay.quantize(mod, values, dataset, **wrong)
    with pytest.raises(ValueError, match="calibrate_mode"):
        relay.quantize.qconfig(calibrate_mode="least")
    with pytest.raises(relay.RelayError) as error:
        relay.quantize(mod, values, dataset[:1], max_error=-1)
    assert error.value.code == "E0702"


@pytest.fixture
def model(tmp_path):
    weights = np.random.default_rng(0).standard_normal((8, 16)).astype("float32")
    x = relay.var("x", shape=(4, 16))
    mod = relay.IRModule.from_expr(
        relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(weights))))
    )
    path = tmp_path / "model.relay"
    path.write_text(mod.astext())
    folder = tmp_path / "samples"
    folder.mkdir()
    for i in range(3):
        np.savez(folder / f"{i}.npz", x=np.random.default_rng(i).random((4, 16), "float32"))
    return path, folder, weights


def test_command(model, tmp_path):
    path, folder, weights = model
    text = tmp_path / "q.relay"
    page = tmp_path / "report.html"
    done = command("quantize", path, "--calibrate", folder, "-o", text, "--report", page)
    assert "1 of 1 quantised, min_max over 3 samples" in done.stdout
    assert "random" not in done.stdout and page.read_text().startswith("<!doctype html>")
    # The program that it wrote is one that every command takes, and computes what it should.
    x = np.random.default_rng(9).random((4, 16), "float32")
    np.save(tmp_path / "x.npy", x)
    command("run", text, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "out")
    got = np.load(next((tmp_path / "out").glob("*.npy")))
    want = np.maximum(x @ weights.T, 0)
    assert np.abs(got - want).max() < 0.02 * np.abs(want).max()
    library = tmp_path / "q.so"
    done = command("quantize", path, "--calibrate", "2", "-o", library, "--json")
    assert json.loads(done.stdout)["quantized_layers"] == 1
    np.testing.assert_array_equal(relay.runtime.load_module(str(library))(x).shape, (4, 8))
    np.save(folder / "3.npy", x)
    assert (
        "over 4 samples"
        in command(
            "quantize", path, "--calibrate", folder, "-o", text, "--force", "--percentile", "99.9"
        ).stdout
    )


def test_command_bad_input(model, tmp_path):
    path, folder, _ = model

    def code(*options):
        done = command("quantize", path, "-o", tmp_path / "q.relay", *options, check=False)
        assert done.returncode != 0 and not (tmp_path / "q.relay").exists()
        return done.stderr.split("[")[1][:5]

    assert code("--calibrate", "0") == "E0706"
    assert code("--calibrate", tmp_path / "missing") == "E0701"
    assert code("--calibrate", tmp_path) == "E0706"
    assert code("--calibrate", "1000000000") == "E0702"
    assert code("--calibrate", folder, "--keep-float", "nothing") == "E0702"
    assert code("--calibrate", folder, "--report", tmp_path / "r.txt") == "E0702"
    np.savez(folder / "bad.npz", y=np.zeros((4, 16), "float32"))
    assert code("--calibrate", folder) in ("E0706", "E0510")
    np.savez(folder / "bad.npz", x=np.zeros((4, 3), "float32"))
    assert code("--calibrate", folder) == "E0603"
    (folder / "bad.npz").write_bytes(b"PK nothing")
    assert code("--calibrate", folder) == "E0701"
