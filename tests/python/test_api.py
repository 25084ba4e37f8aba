"""The Python package as its users meet it: building, running, arrays, passes, errors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relay

DOUBLE = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { add(%x, %x) }\n'


def identity(dtype: str, shape: str = "(2, 3)") -> relay.runtime.Executable:
    text = f"def @main(%x: Tensor[{shape}, {dtype}]) {{ copy(%x) }}\n"
    return relay.build(relay.parse('#[version = "0.0.5"]\n' + text))


@pytest.fixture(scope="module")
def double() -> relay.runtime.Executable:
    return relay.build(relay.parse(DOUBLE))


# ---- Programs ------------------------------------------------------------------------------------


def test_a_network_written_in_python():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3)))
    f = relay.Function([x, w], relay.nn.global_avg_pool2d(y) * relay.const(2.0))
    exe = relay.build(f)
    data = np.random.default_rng(0).standard_normal((1, 3, 8, 8), dtype=np.float32)
    weight = np.random.default_rng(1).standard_normal((4, 3, 3, 3), dtype=np.float32)
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    conv = np.einsum("nchwij,ocij->nohw", windows, weight)
    want = 2 * np.maximum(conv, 0).mean(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(exe(data, w=weight), want, rtol=1e-5, atol=1e-5)


def test_what_prints_parses_back_with_constants_and_named_dimensions():
    n = relay.TypeVar("n")
    x = relay.Var("x", relay.TensorType([n, 2], "float32"))
    weight = relay.const(np.array([[1.5, -0.0], [np.inf, np.nan]], np.float32))
    f = relay.Function([x], relay.nn.dense(x, weight), type_params=[n])
    mod = relay.transform.InferType()(relay.IRModule.from_expr(f))
    again = relay.parse(mod.astext())
    assert relay.structural_equal(mod, again)
    assert again.astext() == mod.astext()


def test_operators_of_python_are_operators_of_relay():
    x = relay.var("x", shape=(3,))
    f = relay.Function([x], -(1.0 - x / 2.0) * x + x**2.0)
    data = np.array([1, -2, 3], np.float32)
    np.testing.assert_allclose(relay.build(f)(data), -(1 - data / 2) * data + data**2, rtol=1e-6)


def test_every_operator_has_help():
    for name in ("add", "nn.conv2d", "nn.softmax", "strided_slice"):
        function = relay
        for part in name.split("."):
            function = getattr(function, part)
        assert len(function.__doc__) > 20


def test_passes_are_found_by_name_and_nest_in_contexts():
    mod = relay.parse(DOUBLE)
    fused = relay.transform.FuseOps()(mod)
    assert "Primitive=1" in fused.astext()
    with relay.transform.PassContext(opt_level=0, disabled_pass=["FuseOps"]):
        assert relay.transform.PassContext.current().opt_level == 0
        kept = relay.transform.Sequential([relay.transform.FuseOps()])(mod)
    assert "Primitive" not in kept.astext()
    assert relay.transform.PassContext.current().opt_level == 3


def test_passes_take_their_options():
    mod = relay.parse("""#[version = "0.0.5"]
def @f(%x: float32) -> float32 { exp(%x) }
def @main() { (@f, @f(1f)) }
""")
    assert (
        "fn (" not in relay.transform.EtaExpand()(mod).astext().split("@main")[1].split("{", 1)[1]
    )
    expand = relay.transform.EtaExpand(expand_global_var=True)
    assert repr(expand) == "relay.transform.EtaExpand(expand_global_var=True)"
    assert "fn (%p0" in relay.transform.Sequential([expand])(mod).astext()
    with pytest.raises(TypeError, match="its options: expand_constructor, expand_global_var"):
        relay.transform.EtaExpand(expand_types=True)


def test_functions_in_and_out_of_continuation_passing_style():
    mod = relay.parse("""#[version = "0.0.5"]
def @main(%x: float32) -> float32 {
  let %f = fn (%y: float32) -> float32 { %y * %y };
  %f(%f(%x)) + 1f
}
""")
    main = mod.functions["main"]
    cps = relay.transform.to_cps(main, mod)
    assert [p.name_hint for p in cps.params] == ["x", "k"]
    direct = relay.transform.un_cps(cps)
    assert len(direct.params) == 1
    data = relay.transform.Defunctionalization(main, mod)
    assert "fn (" in str(main) and str(data).count("fn (") == 1
    assert repr(relay.transform.Defunctionalization()) == "relay.transform.Defunctionalization()"
    for f in (main, direct):
        run = relay.create_executor("debug", relay.IRModule.from_expr(f)).evaluate()
        assert float(run(np.float32(3))) == 82


def test_fast_math_is_for_those_who_ask():
    x = relay.var("x", shape=(4, 8))
    f = relay.Function([x], relay.exp(x))
    data = np.linspace(-3, 3, 32, dtype=np.float32).reshape(4, 8)
    exact = relay.build(f)(data)
    with relay.transform.PassContext(required_pass=["FastMath"]):
        fast = relay.build(f)(data)
    np.testing.assert_allclose(exact, np.exp(data), rtol=1e-6)
    np.testing.assert_allclose(fast, np.exp(data), rtol=4e-6)
    assert not np.array_equal(exact, fast)


# ---- Arrays --------------------------------------------------------------------------------------


class Lent:
    """An array as another library would lend it, through DLPack only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.lent = 0

    def __dlpack__(self, **options: object) -> object:
        self.lent += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpack_in(double):
    lent = Lent(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(double(lent), lent.array * 2)
    assert lent.lent == 1


def test_results_are_dlpack_out_and_outlive_the_program():
    exe = relay.build(relay.parse(DOUBLE))
    result = exe(np.ones((2, 3), np.float32))
    del exe
    np.testing.assert_array_equal(np.from_dlpack(result), np.full((2, 3), 2, np.float32))


def test_results_of_one_call_are_not_touched_by_the_next(double):
    first = double(np.ones((2, 3), np.float32))
    double(np.full((2, 3), 7, np.float32))
    assert first.max() == 2


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2],
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        np.arange(6, dtype=np.float32).reshape(2, 3)[::-1],
        np.broadcast_to(np.float32(3), (2, 3)),
    ],
    ids=["strided", "transposed", "reversed", "broadcast"],
)
def test_arrays_of_any_strides(double, array):
    np.testing.assert_array_equal(double(array), array * 2)


def test_read_only_arrays_are_read_and_stay_as_they_are(double):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    np.testing.assert_array_equal(double(array), array * 2)
    assert array[1, 2] == 5


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ],
)
def test_every_element_type_goes_in_and_comes_out(dtype):
    array = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    result = identity(dtype)(array)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_arrays_without_elements_and_without_dimensions():
    assert identity("float32", "(0, 3)")(np.empty((0, 3), np.float32)).shape == (0, 3)
    assert identity("float32", "()")(np.float32(4)).shape == ()


# ---- Artifacts -----------------------------------------------------------------------------------


def test_an_artifact_runs_like_the_program_and_says_where_it_comes_from(double, tmp_path):
    path = tmp_path / "double.so"
    double.export_library(path)
    again = relay.runtime.load_module(path)
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(again(array), double(array))
    assert again.input_info()[0].shape == (2, 3)
    assert again.input_info()[0].name == "x"
    assert again.input_info()[0].device == "cpu"
    assert json.loads(again.metadata)
    with pytest.raises(relay.UserError, match="E0611"):
        double.export_library(path, overwrite=False)


def test_the_same_program_gives_the_same_bytes(tmp_path):
    for name in ("a.so", "b.so"):
        relay.build(relay.parse(DOUBLE)).export_library(tmp_path / name)
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()


def test_threads_share_one_program(double):
    failures: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(200):
            array = rng.standard_normal((2, 3), dtype=np.float32)
            if not np.array_equal(double(array), array * 2):
                failures.append(array)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- ONNX ----------------------------------------------------------------------------------------


def model() -> onnx.ModelProto:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], np.arange(12, dtype=np.float32))
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1, name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_weights_are_constants_or_parameters():
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    array = np.ones((2, 3), np.float32)
    frozen, none = relay.frontend.from_onnx(model(), shape={"x": (2, 3)})
    assert none == {}
    loose, params = relay.frontend.from_onnx(model(), shape={"x": (2, 3)}, freeze_params=False)
    assert list(params) == ["w"]
    for exe in (relay.build(frozen), relay.build(loose, params=params)):
        np.testing.assert_allclose(exe(array), array @ weight.T)
    np.testing.assert_allclose(relay.build(loose)(array, params["w"]), array @ weight.T)


def test_a_dimension_that_the_model_leaves_open_stays_open():
    mod, _ = relay.frontend.from_onnx(model().SerializeToString())
    exe = relay.build(mod)
    assert exe.input_info()[0].shape == ("batch", 3)
    for rows in (1, 5, 17):
        assert exe(np.ones((rows, 3), np.float32)).shape == (rows, 4)


# ---- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "parts"),
    [
        ((np.ones((2, 4), np.float32),), {}, ["x", "(2, 3)", "(2, 4)"]),
        ((np.ones((2, 3), np.float64),), {}, ["x", "float32", "float64"]),
        ((), {"y": np.ones((2, 3), np.float32)}, ["y", "x"]),
        ((), {}, ["x"]),
        ((np.ones((2, 3), np.float32),) * 2, {}, ["1", "2"]),
        (("text",), {}, ["x"]),
    ],
    ids=["shape", "dtype", "name", "missing", "too many", "no array"],
)
def test_wrong_inputs_are_named_with_what_is_expected_and_what_came(double, args, kwargs, parts):
    with pytest.raises((relay.RelayError, TypeError)) as caught:
        double(*args, **kwargs)
    for part in parts:
        assert part in str(caught.value)


def test_an_error_has_its_parts_as_fields():
    with pytest.raises(relay.UserError) as caught:
        relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.dens(%x) }')
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E0105"
    assert "nn.dense" in diagnostic.help or "nn.dense" in str(diagnostic)
    assert diagnostic.place.startswith("<text>:2")


def test_an_unknown_target_or_pass_names_its_neighbours():
    with pytest.raises(relay.UserError, match="x86-64-v3"):
        relay.build(relay.parse(DOUBLE), target="x86-64-v33")
    with pytest.raises(relay.RelayError):
        relay.create_executor("graf", relay.parse(DOUBLE))


def test_import_is_quick_and_quiet():
    code = "import sys, relay; print([m for m in ('onnx', 'torch') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""
