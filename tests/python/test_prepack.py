"""Inputs that are set once for many runs: main.prepack computes what follows from them alone."""

import numpy as np
import pytest
from command_line import fails
from command_line import relay as command

import relay

VERSION = '#[version = "0.0.5"]\n'
TEXT = (
    VERSION
    + """def @main(%x: Tensor[(3, 64), float32], %w: Tensor[(96, 64), float32],
    %b: Tensor[(96), float32]) { nn.relu(nn.bias_add(nn.dense(%x, %w), %b)) }"""
)


def arrays(seed=0):
    random = np.random.default_rng(seed)
    draw = lambda *shape: random.normal(size=shape).astype("float32")  # noqa: E731
    return {"x": draw(3, 64), "w": draw(96, 64), "b": draw(96)}


def expected(x, w, b):
    return np.maximum(x @ w.T + b, 0)


@pytest.fixture(scope="module")
def exe():
    return relay.build(relay.parse(TEXT), prepack=["w", "b"])


def test_weights_are_packed_once_and_give_the_same_numbers(exe):
    assert exe.function_names == ["main", "main.prepack"]
    assert [s.name for s in exe.input_info()] == ["x", "b", "prepacked"]
    assert [s.name for s in exe.input_info("main.prepack")] == ["w"]
    values = arrays()
    ready = exe.prepack(w=values["w"], b=values["b"])
    whole = relay.build(relay.parse(TEXT))
    np.testing.assert_array_equal(ready(values["x"]), whole(**values))
    np.testing.assert_allclose(ready(x=values["x"]), expected(**values), rtol=1e-5, atol=1e-5)
    other = arrays(1)
    np.testing.assert_allclose(
        exe.prepack(w=other["w"], b=other["b"])(values["x"]),
        expected(values["x"], other["w"], other["b"]), rtol=1e-5, atol=1e-5,
    )  # fmt: skip
    assert repr(ready).startswith("<relay.Prepacked: b, prepacked of ")


def test_an_artifact_has_both_functions(exe, tmp_path):
    path = tmp_path / "m.so"
    exe.export_library(path)
    values = arrays()
    loaded = relay.runtime.load_module(path).prepack(w=values["w"], b=values["b"])
    np.testing.assert_allclose(loaded(values["x"]), expected(**values), rtol=1e-5, atol=1e-5)


def test_convolutions_of_bytes_and_floats():
    for dtype, out in (("float32", "float32"), ("int8", "int32")):
        text = (
            VERSION
            + f"""def @main(%x: Tensor[(1, 16, 9, 9), {dtype}],
            %w: Tensor[(24, 16, 3, 3), {dtype}]) {{
            nn.conv2d(%x, %w, padding=[1, 1, 1, 1], out_dtype="{out}") }}"""
        )
        random = np.random.default_rng(0)
        x = random.integers(-9, 9, (1, 16, 9, 9)).astype(dtype)
        w = random.integers(-9, 9, (24, 16, 3, 3)).astype(dtype)
        exe = relay.build(relay.parse(text), prepack=["w"])
        assert "main.prepack" in exe.function_names
        np.testing.assert_array_equal(exe.prepack(w=w)(x), relay.build(relay.parse(text))(x, w))


def test_where_nothing_follows_the_inputs_are_set_all_the_same():
    text = VERSION + "def @main(%x: Tensor[(8), float32], %w: Tensor[(8), float32]) { %x + %w }"
    exe = relay.build(relay.parse(text), prepack=["w"])
    assert exe.function_names == ["main"]
    x = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(exe.prepack(w=x)(x), 2 * x)


@pytest.mark.parametrize(
    ("text", "names", "code"),
    [
        (TEXT, ["v"], "E1401"),
        (TEXT, ["w", "w"], "E1401"),
        ("def @main(%x: Tensor[(?), float32]) { exp(%x) }", ["x"], "E1402"),
        ("def @main(%x: (float32, float32)) { %x.0 }", ["x"], "E1402"),
        ("def @main(%x: string) { %x }", ["x"], "E1402"),
        ("def @main(%n: Tensor[(2), float32]) -> Tensor[(2), float32] "
         "{ if (sum(%n) > 1f) { @main(%n - 1f) } else { %n } }", ["n"], "E1403"),
    ],
)  # fmt: skip
def test_what_cannot_be_prepacked_is_refused(text, names, code):
    with pytest.raises(relay.UserError, match=code):
        relay.build(relay.parse(text if text == TEXT else VERSION + text), prepack=names)


def test_inputs_that_are_not_there_are_refused(exe):
    values = arrays()
    with pytest.raises(TypeError, match="has no input 'v'"):
        exe.prepack(v=values["w"])
    with pytest.raises(relay.UserError, match="needs input 'w'"):
        exe.prepack(b=values["b"])
    with pytest.raises(TypeError, match="multiple values"):
        exe.prepack(w=values["w"], b=values["b"])(values["x"], b=values["b"])


def test_the_command_runs_both(tmp_path):
    model = tmp_path / "m.relay"
    model.write_text(TEXT)
    values = arrays()
    given = []
    for name, value in values.items():
        np.save(tmp_path / f"{name}.npy", value)
        given += ["--input", f"{name}={tmp_path}/{name}.npy"]
    said = command("compile", model, "-o", tmp_path / "m.so", "--prepack", "w", "-q").stdout
    assert "prepacked  prepacked: Tensor[" in said
    for what in ([model, "--prepack", "w"], [tmp_path / "m.so"]):
        command("run", *what, *given, "--output", tmp_path / "out", "--force", "-q")
        np.testing.assert_allclose(
            np.load(next((tmp_path / "out").iterdir())), expected(**values), rtol=1e-5, atol=1e-5
        )
    assert "min" in command("bench", tmp_path / "m.so", "--repeat", "2", *given).stdout


def test_the_command_has_sizes_of_the_other_inputs(tmp_path):
    model = tmp_path / "m.relay"
    model.write_text(TEXT.replace("@main(%x: Tensor[(3,", "@main[n: Dim](%x: Tensor[(n,"))
    command("run", model, "--prepack", "w", "--dim", "n=3", "-q")
    fails("E0702", "run", model, "--prepack", "w", "--dim", "m=3", mentions=["dimension 'm'"])
