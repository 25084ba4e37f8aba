"""Operators whose kernels are functions of the process: host_kernel, register_host_kernel."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_c_plugins import compile_library

import relay
from relay import te

POINTERS, SIZES = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64)
KERNEL = ctypes.CFUNCTYPE(None, POINTERS, SIZES, ctypes.c_void_p)


def twice(x):
    return te.compute(x.shape, lambda *i: x[i] * 2.0)


@pytest.fixture
def operator():
    with relay.register_op("hosted.twice", compute=twice, host_kernel="hosted.twice") as op:
        yield op
    relay.runtime.register_host_kernel("hosted.twice", None)


def numbers(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


def program(operator, *shape):
    x = relay.var("x", shape=shape)
    return relay.IRModule.from_expr(relay.Function([x], relay.exp(operator(relay.negative(x)))))


def test_a_python_function_is_called_with_buffers_and_sizes(operator, tmp_path):
    calls = []

    @KERNEL
    def kernel(buffers, sizes, context):
        calls.append(tuple(sizes[i] for i in range(4)))
        count = sizes[0] * sizes[1]
        numbers(buffers[1], count)[:] = numbers(buffers[0], count) * 2

    relay.runtime.register_host_kernel("hosted.twice", kernel)
    for mod in (program(operator, 3, 4), program(operator, relay.TypeVar("n"), 4)):
        for level in (0, 3):
            built = relay.build(mod, opt_level=level)
            x = np.arange(12, dtype="float32").reshape(3, 4) / 8
            np.testing.assert_allclose(built(x), np.exp(-2 * x), rtol=1e-5)
            assert calls.pop() == (3, 4, 3, 4)
            assert not calls
    # The meaning of the operator is its tensor function.
    slow = relay.create_executor("debug", mod).evaluate()(x)
    np.testing.assert_allclose(slow, np.exp(-2 * x), rtol=1e-5)
    assert not calls
    built.export_library(tmp_path / "model.so")
    np.testing.assert_allclose(
        relay.runtime.load_module(tmp_path / "model.so")(x), np.exp(-2 * x), rtol=1e-5
    )
    assert len(calls) == 1


def test_the_last_registration_holds_for_programs_that_are_loaded_after_it(operator, tmp_path):
    def fills_with(value):
        def kernel(buffers, sizes, context):
            numbers(buffers[1], sizes[0])[:] = value

        return KERNEL(kernel)

    relay.runtime.register_host_kernel("hosted.twice", fills_with(1))
    x = relay.var("x", shape=(5,))
    built = relay.build(relay.Function([x], operator(x)))
    built.export_library(tmp_path / "model.so")
    relay.runtime.register_host_kernel("hosted.twice", fills_with(2))
    again = relay.runtime.load_module(tmp_path / "model.so")
    zeros = np.zeros(5, "float32")
    assert set(built(zeros)) == {1} and set(again(zeros)) == {2}


def test_a_function_that_is_not_registered_E0619(operator, tmp_path):
    with pytest.raises(relay.UserError, match=r"E0619[\s\S]*hosted\.twice"):
        relay.build(program(operator, 3, 4))


def test_what_cannot_be_a_host_kernel():
    for wrong in ("exp", 3.0, twice, True, -1):
        with pytest.raises(TypeError, match="C function"):
            relay.runtime.register_host_kernel("hosted.wrong", wrong)
    with pytest.raises(TypeError, match="string"):
        relay.runtime.register_host_kernel("", None)
    with pytest.raises(TypeError, match="string"):
        relay.register_op("hosted.wrong", compute=twice, host_kernel=3)
    with pytest.raises(TypeError, match="other operators"):
        relay.register_op("hosted.wrong", lambda x: x, host_kernel="hosted.wrong")
    with pytest.raises(TypeError, match="Opaque"):
        relay.register_op(
            "hosted.wrong", compute=twice, fusion="ElemWise", host_kernel="hosted.wrong"
        )


PLUGIN = r"""
#include <relay/plugin.h>

static int calls = 0;
int hosted_calls(void);
RELAY_PLUGIN_EXPORT int hosted_calls(void) { return calls; }

static void thrice(void* const* buffers, const int64_t* sizes, const struct relay_kernel_context* context) {
  const float* x = buffers[0];
  float* y = buffers[1];
  (void)context;
  ++calls;
  for (int64_t i = 0; i < sizes[0]; ++i) y[i] = 3 * x[i];
}

static relay_plugin_status add_all(const relay_plugin_api* relay) {
  static const char* const args[] = {"x"};
  relay_operator_spec op = {sizeof op};
  op.name = "hosted.thrice";
  op.doc = "3 * x.";
  op.args = args;
  op.num_args = 1;
  op.%s =
      "def thrice(x: float32[n]) -> (y: float32[n]):\n"
      "  for i in range(n):\n"
      "    y[i] = x[i] * 3f\n";
  op.host_kernel = "hosted.thrice";
  op.host_function = thrice;
  return relay->add_operator(relay->plugin, &op);
}
RELAY_PLUGIN(add_all)
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_plug_in_brings_operator_and_kernel(tmp_path):
    library = compile_library(
        PLUGIN % "compute", tmp_path / "hosted.so", flags=("-std=c11", "-Wall", "-Werror")
    )
    relay.plugins.load(library)
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @main[n: Dim](%x: Tensor[(n,), float32]) { exp(hosted.thrice(negative(%x))) }\n"
    )
    x = np.arange(7, dtype="float32") / 8
    np.testing.assert_allclose(relay.build(mod)(x), np.exp(-3 * x), rtol=1e-5)
    assert ctypes.CDLL(str(library)).hosted_calls() == 1
    relay.unregister_op("hosted.thrice")


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_plug_in_whose_kernel_computes_a_definition_E1305(tmp_path):
    wrong = PLUGIN.replace("op.%s =", 'op.definition = "fn (%%x) { %%x }"; (void)') % ()
    library = compile_library(wrong, tmp_path / "wrong.so")
    with pytest.raises(
        relay.UserError, match="host kernel of an operator that is not a tensor function"
    ):
        relay.plugins.load(library)


HOST = r"""
#include <relay/c_api.h>
#include <stdio.h>

static void twice(void* const* buffers, const int64_t* sizes, const struct relay_kernel_context* context) {
  const float* x = buffers[0];
  float* y = buffers[1];
  if (x[0] < 0) relay_kernel_fail(context);
  for (int64_t i = 0; i < sizes[0]; ++i) y[i] = 2 * x[i];
}

int main(int argc, char** argv) {
  relay_module* module;
  relay_session* session;
  relay_tensor out;
  int64_t shape[] = {2};
  relay_tensor_type type = {RELAY_FLOAT, 32, 1, shape, RELAY_CPU, 0};
  float x[] = {1, 5};
  (void)argc;
  if (relay_register_host_kernel("", twice) != RELAY_USER_ERROR) return 1;
  if (relay_module_load(argv[1], 1, &module) != RELAY_USER_ERROR) return 2;
  puts(relay_last_error());
  if (relay_register_host_kernel("hosted.twice", twice) != RELAY_OK) return 3;
  if (relay_module_load(argv[1], 1, &module) != RELAY_OK) return 4;
  if (relay_session_create(module, "main", &session) != RELAY_OK) return 5;
  if (relay_session_set_input(session, 0, x, &type) != RELAY_OK) return 6;
  if (relay_session_run(session) != RELAY_OK) return 7;
  if (relay_session_output(session, 0, &out) != RELAY_OK) return 8;
  printf("%g %g\n", ((const float*)out.data)[0], ((const float*)out.data)[1]);
  x[0] = -1;
  if (relay_session_run(session) != RELAY_RUNTIME_ERROR) return 9;
  puts(relay_last_error());
  relay_session_free(session);
  relay_module_free(module);
  return 0;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_c_program_registers_the_kernel_of_an_artifact(operator, tmp_path):
    relay.runtime.register_host_kernel("hosted.twice", KERNEL(lambda *_: None))
    x = relay.var("x", shape=(2,))
    relay.build(relay.Function([x], operator(x))).export_library(tmp_path / "model.so")
    package = Path(relay.__path__[0])
    (tmp_path / "host.c").write_text(HOST)
    subprocess.run(
        [
            *("cc", "-std=c11", "-Wall", "-Werror", f"-I{package}/include", "host.c", "-o", "host"),
            *(f"-L{package}/lib", "-lrelay_runtime", f"-Wl,-rpath,{package}/lib"),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    out = subprocess.run(["./host", "model.so"], cwd=tmp_path, check=True, capture_output=True)
    text = out.stdout.decode()
    assert (
        "E0619" in text and "\n2 10\n" in text and "a condition on the data does not hold" in text
    )
