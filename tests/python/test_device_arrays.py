"""Arrays on OpenCL devices: programs that take and give them there, and DLPack."""

import ctypes
import subprocess
import sys

import emulation
import numpy as np
import pytest
from command_line import relay as run_command
from command_line import relay_json

import relay

# Two steps of which the first gives what the second takes.
FIRST = """#[version = "0.0.5"]
def @main(%x: Tensor[(80, 90), float32]) { tanh(add(%x, %x)) }
"""
SECOND = """#[version = "0.0.5"]
def @main(%y: Tensor[(80, 90), float32], %s: Tensor[(80, 90), float32]) {
  (multiply(%y, %s), add(%y, %s))
}
"""
HERE = "opencl:0"
X = np.linspace(-1, 1, 7200, dtype="float32").reshape(80, 90)
NO_DEVICE = f"""
import relay
relay.runtime.array([1.0], "{HERE}")
"""


@pytest.fixture(scope="module", autouse=True)
def opencl():
    """Skips, with the reason, where the machine has no OpenCL device."""
    tried = subprocess.run([sys.executable, "-c", NO_DEVICE], capture_output=True, text=True)
    if "E0620" in tried.stderr:
        pytest.skip(tried.stderr.strip().splitlines()[-1])
    assert tried.returncode == 0, tried.stderr


def build(text, **options):
    return relay.build(relay.parse(text), target="native; opencl", **options)


@pytest.fixture(scope="module")
def first():
    return build(FIRST, result_devices=HERE)


@pytest.fixture(scope="module")
def second():
    return build(SECOND, param_devices={"y": HERE}, result_devices={1: "opencl"})


class Foreign:
    """Another library's tensor, which gives the capsules of an NDArray."""

    def __init__(self, array, versions=True, **changes):
        self.array, self.versions, self.changes = array, versions, changes

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versions and "max_version" in options:
            raise TypeError("max_version")
        return self.array.__dlpack__(**(options | self.changes))


def refused(code, action, words=""):
    with pytest.raises(relay.UserError, match=words) as error:
        action()
    assert code in str(error.value), error.value


def test_a_result_stays_and_the_next_program_takes_it(first, second, tmp_path):
    y = first(X)
    assert isinstance(y, relay.runtime.NDArray)
    assert (y.device, y.shape, y.dtype, y.nbytes) == (HERE, (80, 90), "float32", X.nbytes)
    assert "on opencl:0" in repr(y)
    product, total = second(y, X)
    assert isinstance(product, np.ndarray) and isinstance(total, relay.runtime.NDArray)
    want = np.tanh(X + X)
    np.testing.assert_allclose(product, want * X, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total.numpy(), want + X, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(total, dtype="float64"), total.numpy())
    # What is on the host is copied where a program wants it there, and the other way round.
    np.testing.assert_array_equal(second(y.numpy(), X)[0], product)
    np.testing.assert_array_equal(first(relay.runtime.array(X, HERE)).numpy(), y.numpy())
    # A compiled file gives and takes the same.
    first.export_library(tmp_path / "first.so")
    loaded = relay.runtime.load_module(tmp_path / "first.so")
    assert loaded.output_info()[0].device == HERE
    np.testing.assert_array_equal(loaded(X).numpy(), y.numpy())
    assert [s.device for s in second.input_info()] == [HERE, "cpu"]
    assert [s.device for s in second.output_info()] == ["cpu", HERE]


def test_explain_counts_what_is_still_copied(tmp_path):
    """Nothing, where inputs and results are on the device."""
    exe = build(FIRST, param_devices={"x": "opencl"}, result_devices={"output0": HERE})
    exe.export_library(tmp_path / "m.so")
    device = relay_json("explain", tmp_path / "m.so")["devices"][-1]
    assert device["kernels"] >= 1
    assert [device.get(k, {}).get("bytes", 0) for k in ("from_host", "to_host")] == [0, 0]
    # The command prints results of a device.
    run_command("run", tmp_path / "m.so", "-q")


@pytest.mark.parametrize("constrain", [False, True])
def test_on_device_keeps_a_result_where_it_says_so(constrain):
    x = relay.var("x", shape=(4, 5), dtype="float32")
    there = relay.annotation.on_device(relay.exp(x), "opencl", constrain_result=constrain)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Tuple([there, relay.negative(x)])))
    exe = relay.build(mod, target="native; opencl")
    given = np.linspace(-1, 1, 20, dtype="float32").reshape(4, 5)
    result, other = exe(given)
    assert isinstance(result, relay.runtime.NDArray) == constrain
    np.testing.assert_allclose(np.asarray(result), np.exp(given), rtol=1e-5)
    np.testing.assert_array_equal(other, -given)
    # The evaluator gives the same on the host, also of arguments on a device.
    evaluated = relay.create_executor("debug", mod).evaluate()(relay.runtime.array(given, HERE))
    np.testing.assert_allclose(evaluated[0], np.exp(given), rtol=1e-5)


def test_results_that_are_inputs_and_constants():
    exe = build(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(80, 90), float32]) {\n"
        '  (%x, arange(stop=6f, dtype="float32"), exp(%x))\n}\n',
        param_devices={"x": HERE},
        result_devices=HERE,
    )
    given = relay.runtime.array(X, HERE)
    same, constant, exp = exe(given)
    np.testing.assert_array_equal(same.numpy(), X)
    np.testing.assert_allclose(exp.numpy(), np.exp(X), rtol=1e-5)
    # A constant of the program is read-only: the form without versions is a copy.
    for versions in (True, False):
        again = relay.runtime.from_dlpack(Foreign(constant, versions))
        np.testing.assert_array_equal(again.numpy(), np.arange(6, dtype="float32"))


@pytest.mark.parametrize("versions", [True, False])
def test_dlpack_round_trips_share_memory(first, second, versions):
    y = first(X)
    assert y.__dlpack_device__() == (4, 0)
    again = relay.runtime.from_dlpack(Foreign(y, versions))
    del y
    want = np.tanh(X + X)
    np.testing.assert_allclose(again.numpy(), want, rtol=1e-5, atol=1e-6)
    # As an argument, without a call of from_dlpack.
    product, _ = second(Foreign(again, versions), X)
    np.testing.assert_allclose(product, want * X, rtol=1e-5, atol=1e-6)
    # A capsule that is not taken frees its memory.
    again.__dlpack__()
    again.__dlpack__(max_version=(1, 1))
    # NumPy takes the copy that it asks for.
    host = (
        np.from_dlpack(Foreign(again, versions, dl_device=(1, 0), copy=True))
        if (np.lib.NumpyVersion(np.__version__) >= "2.1.0")
        else again.numpy()
    )
    np.testing.assert_array_equal(host, again.numpy())
    # A copy is another memory.
    copy = relay.runtime.from_dlpack(Foreign(again, versions, copy=True))
    np.testing.assert_array_equal(copy.numpy(), again.numpy())


def test_results_outlive_their_program():
    y = build(FIRST, result_devices=HERE)(X)
    np.testing.assert_allclose(y.numpy(), np.tanh(X + X), rtol=1e-5, atol=1e-6)


def test_sizes_and_dtypes():
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float64"):
        for shape in ((), (0, 3), (5,), (2, 3, 4)):
            given = np.arange(int(np.prod(shape)), dtype="float64").reshape(shape).astype(dtype)
            there = relay.runtime.array(given, "opencl")
            assert (there.dtype, there.shape) == (dtype, shape)
            np.testing.assert_array_equal(there.numpy(), given)
            again = relay.runtime.from_dlpack(Foreign(there))
            np.testing.assert_array_equal(again.numpy(), given)


def test_must_fail_uses_of_an_array(first):
    y = first(X)
    refused("E0602", lambda: y.__dlpack__(stream=3), "no streams")
    refused("E0602", lambda: y.__dlpack__(dl_device=(2, 0)), "cuda")
    refused("E0602", lambda: y.__dlpack__(dl_device=(1, 0), copy=False), "only as a copy")
    with pytest.raises(ValueError, match="only as a copy"):
        y.__array__(copy=False)
    for wrong in (True, "s", 1.5):
        with pytest.raises(relay.ArgumentError, match="a stream is None or a number"):
            y.__dlpack__(stream=wrong)
    # Constants, and values of data types, are of the host.
    refused("E0602", lambda: relay.const(y), "not in the CPU's memory")


def test_must_fail_arguments():
    with pytest.raises(relay.ArgumentError, match="is not a tensor on a device"):
        relay.runtime.from_dlpack(X)
    for device in ("cpu", "moon:0", ""):
        with pytest.raises(relay.ArgumentError, match="a device is a text such as"):
            relay.runtime.array(X, device)
    with pytest.raises(relay.ArgumentError, match="a device is a text such as"):
        relay.runtime.array(X, 3)
    with pytest.raises(relay.RunError, match="E0620"):
        relay.runtime.array(X, "opencl:77")
    refused("E0602", lambda: relay.runtime.array(["a", "b"], HERE), "strings")


def test_must_fail_a_buffer_of_another_context_E0602(first):
    """The pointer of a capsule is replaced by that of a context of its own."""
    cl = pytest.importorskip("pyopencl")
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, X.nbytes)
    capsule = first(X).__dlpack__()
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    ctypes.c_void_p.from_address(address(capsule, b"dltensor")).value = buffer.int_ptr

    class Other:
        def __dlpack_device__(self):
            return (4, 0)

        def __dlpack__(self):
            return capsule

    refused("E0602", lambda: relay.runtime.from_dlpack(Other()), "another OpenCL context")


def test_must_fail_placements_E1601_E1602():
    refused("E1601", lambda: build(FIRST, param_devices={"z": HERE}), "no input 'z'")
    refused("E1601", lambda: build(FIRST, result_devices={"z": HERE}), "no result 'z'")
    refused("E1601", lambda: build(FIRST, result_devices={4: HERE}), "no result '4'")
    refused("E1601", lambda: build(FIRST, result_devices="moon"), "no device 'moon'")
    square = FIRST.replace("tanh(add(%x, %x))", "%x")
    refused(
        "E1602", lambda: build(square, donate={"x": 0}, param_devices={"x": HERE}), "is donated"
    )
    refused("E1602", lambda: build(square, donate={"x": 0}, result_devices=HERE), "takes an input")
    refused("E1602", lambda: build(FIRST, prepack=["x"], param_devices={"x": HERE}), "is prepacked")
    text = FIRST.replace("Tensor[(80, 90), float32]", "(Tensor[(8,), float32],)")
    text = text.replace("tanh(add(%x, %x))", "%x.0")
    refused("E1602", lambda: build(text, param_devices={"x": HERE}), "a tensor of numbers")


def test_c_programs_take_and_give_them(first, tmp_path):
    library = ctypes.CDLL(str(emulation.PACKAGE / "lib/librelay_runtime.so"))
    library.relay_last_error.restype = ctypes.c_char_p
    pointer = ctypes.c_void_p
    for name in ("relay_session_set_input_dlpack", "relay_session_output_dlpack"):
        getattr(library, name).argtypes = [pointer, ctypes.c_size_t, pointer]
    for name in ("relay_session_run", "relay_session_free", "relay_module_free"):
        getattr(library, name).argtypes = [pointer]

    class Type(ctypes.Structure):
        _fields_ = (
            ("code", ctypes.c_int32),
            ("bits", ctypes.c_int32),
            ("rank", ctypes.c_int32),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("device_type", ctypes.c_int32),
            ("device_id", ctypes.c_int32),
        )

    class Given(ctypes.Structure):
        _fields_ = (("type", Type), ("data", pointer), ("bytes", ctypes.c_size_t))

    build(FIRST, param_devices={"x": HERE}, result_devices=HERE).export_library(tmp_path / "m.so")
    module, session, output = pointer(), pointer(), pointer()

    def done(status):
        assert status == 0, library.relay_last_error()

    done(library.relay_module_load(str(tmp_path / "m.so").encode(), 1, ctypes.byref(module)))
    done(library.relay_session_create(module, b"main", ctypes.byref(session)))
    info = Type()
    done(library.relay_session_output_info(session, 0, None, ctypes.byref(info)))
    assert (info.device_type, info.device_id) == (4, 0)
    shape = (ctypes.c_int64 * 2)(80, 90)
    of_host = Type(2, 32, 2, shape, 1, 0)
    data = X.copy()
    done(
        library.relay_session_set_input(
            session, 0, data.ctypes.data_as(pointer), ctypes.byref(of_host)
        )
    )
    want = X
    for _ in range(3):
        done(library.relay_session_run(session))
        want = np.tanh(want + want)
        given = Given()
        done(library.relay_session_output(session, 0, ctypes.byref(given)))
        assert (given.type.device_type, given.bytes) == (1, X.nbytes)
        got = np.ctypeslib.as_array(
            ctypes.cast(given.data, ctypes.POINTER(ctypes.c_float)), (80, 90)
        )
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        # The next step reads it where it is.
        done(library.relay_session_output_dlpack(session, 0, ctypes.byref(output)))
        done(library.relay_session_set_input_dlpack(session, 0, output))
    library.relay_session_free(session)
    library.relay_module_free(module)
