"""Real architectures through the whole compiler, against ONNX Runtime and the evaluator.

The small variants have every operator and attribute of the full ones and run in every test run; the
full sizes, where schedules and memory plans differ, are marked slow.
"""

import functools

import models
import numpy as np
import onnx
import oracles
import pytest

import relay

NAMES = list(models.MODELS)
OPT_LEVELS = (0, 1, 2, 3)


@functools.cache
def small(name: str) -> onnx.ModelProto:
    return models.build(name, small=True)


@functools.cache
def imported(name: str):
    return relay.frontend.from_onnx(small(name))


@functools.cache
def executable(name: str, opt_level: int = 3, threads: int = 1):
    mod, params = imported(name)
    return relay.build(mod, params=params, opt_level=opt_level, num_threads=threads)


@functools.cache
def reference(name: str, seed: int = 0) -> list[np.ndarray]:
    return oracles.run_onnxruntime(small(name), models.make_inputs(small(name), seed))


def run(exe, name: str, seed: int = 0) -> list[np.ndarray]:
    return oracles.as_arrays(exe(*models.make_inputs(small(name), seed).values()))


@pytest.mark.parametrize("opt_level", OPT_LEVELS)
@pytest.mark.parametrize("name", NAMES)
def test_matches_onnxruntime(name, opt_level):
    oracles.assert_agree(run(executable(name, opt_level), name), reference(name), name)


@pytest.mark.parametrize("name", NAMES)
def test_matches_evaluator(name):
    mod, params = imported(name)
    evaluate = relay.create_executor("debug", mod, params=params).evaluate()
    want = run(evaluate, name)
    oracles.assert_agree(want, reference(name), f"{name}, evaluator")
    for opt_level in OPT_LEVELS:
        what = f"{name}, opt_level {opt_level}"
        oracles.assert_agree(run(executable(name, opt_level), name), want, what)


@pytest.mark.parametrize("name", NAMES)
def test_one_thread_and_two_give_the_same_bits(name):
    one, two = (run(executable(name, threads=n), name) for n in (1, 2))
    oracles.assert_same_bits(two, one, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_leaves_no_trace_in_the_next(name):
    """The arena is reused: what one input left there must not show with another."""
    exe = executable(name)
    first = [a.copy() for a in run(exe, name, seed=0)]
    oracles.assert_agree(run(exe, name, seed=1), reference(name, 1), name)
    oracles.assert_same_bits(run(exe, name, seed=0), first, name)


@pytest.mark.parametrize("name", NAMES)
def test_results_outlive_the_next_run(name):
    exe = executable(name)
    kept = run(exe, name, seed=0)
    copies = [a.copy() for a in kept]
    run(exe, name, seed=1)
    oracles.assert_same_bits(kept, copies, name)


@pytest.mark.parametrize("name", NAMES)
def test_artifact_gives_the_same_bits(name, tmp_path):
    exe = executable(name)
    path = tmp_path / f"{name}.so"
    exe.export_library(str(path))
    loaded = relay.runtime.load_module(str(path))
    oracles.assert_same_bits(run(loaded, name), run(exe, name), name)


@pytest.mark.parametrize("name", ["resnet18", "bert_base", "lstm"])
def test_same_input_gives_the_same_bytes(name, tmp_path):
    paths = [tmp_path / "a.so", tmp_path / "b.so"]
    for path in paths:
        mod, params = relay.frontend.from_onnx(small(name))
        relay.build(mod, params=params, num_threads=1).export_library(str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("name", ["resnet18", "bert_base"])
def test_keyword_arguments_are_input_names(name):
    inputs = models.make_inputs(small(name))
    exe = executable(name)
    shuffled = dict(reversed(inputs.items()))
    oracles.assert_same_bits(oracles.as_arrays(exe(**shuffled)), run(exe, name), name)


@pytest.mark.parametrize("kind", ["graph", "debug"])
def test_inputs_go_by_the_names_of_the_model(kind):
    x = onnx.helper.make_tensor_value_info("input.1/x:0", onnx.TensorProto.FLOAT, [2, 3])
    w = onnx.helper.make_tensor_value_info("2nd", onnx.TensorProto.FLOAT, [2, 3])
    y = onnx.helper.make_tensor_value_info("out:0", onnx.TensorProto.FLOAT, [2, 3])
    node = onnx.helper.make_node("Sub", ["input.1/x:0", "2nd"], ["out:0"])
    graph = onnx.helper.make_graph([node], "g", [x, w], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    mod, params = relay.frontend.from_onnx(model)
    run = relay.create_executor(kind, mod, params=params).evaluate()
    a, b = np.full((2, 3), 5, np.float32), np.ones((2, 3), np.float32)
    got = oracles.as_arrays(run(**{"2nd": b, "input.1/x:0": a}))
    np.testing.assert_array_equal(got[0], a - b)


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("name", NAMES)
def test_older_processors_code_matches(name, target):
    """The baseline and AVX2 code paths run on this machine, too."""
    mod, params = imported(name)
    exe = relay.build(mod, target=target, params=params, num_threads=1)
    oracles.assert_agree(run(exe, name), reference(name), f"{name}, {target}")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_full_size_matches_onnxruntime(name, tmp_path):
    path = tmp_path / f"{name}.onnx"
    models.write(name, path)
    inputs = models.make_inputs(path)
    mod, params = relay.frontend.from_onnx(str(path))
    want = oracles.run_onnxruntime(str(path), inputs)
    results = []
    for threads in (1, 2):
        exe = relay.build(mod, params=params, num_threads=threads)
        results.append(oracles.as_arrays(exe(*inputs.values())))
        oracles.assert_agree(results[-1], want, f"{name}, {threads} threads")
    oracles.assert_same_bits(results[1], results[0], name)
