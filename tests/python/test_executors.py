"""`create_executor`: the reference evaluator and the compiled program by one face."""

import numpy as np
import pytest

import relay

VERSION = '#[version = "0.0.5"]\n'
TEXT = (
    VERSION
    + """
type List[A] { Cons(A, List[A]), Nil, }
def @sum(%l: List[Tensor[(3,), float32]], %acc: Tensor[(3,), float32]) -> Tensor[(3,), float32] {
  match (%l) { Cons(%h, %t) => { @sum(%t, add(%acc, %h)) }, Nil => { %acc } }
}
def @main(%x: Tensor[(3,), float32], %y: Tensor[(3,), float32]) {
  (@sum(Cons(%x, Cons(%y, Cons(%x, Nil))), %y), if (equal(1, 1)) { %x } else { %y })
}
"""
)
X = np.array([1, 2, 3], np.float32)
Y = np.array([10, 20, 30], np.float32)


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_runs_programs_with_lists(kind):
    run = relay.create_executor(kind, relay.parse(TEXT)).evaluate()
    total, first = run(X, y=Y)
    np.testing.assert_array_equal(total, 2 * X + 2 * Y)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(run.run("main", X, Y)[1], X)
    assert [slot.name for slot in run.input_info()] == ["x", "y"]
    assert [slot.shape for slot in run.output_info()] == [(3,), (3,)]


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_params_become_constants(kind):
    run = relay.create_executor(kind, relay.parse(TEXT), params={"y": Y}).evaluate()
    np.testing.assert_array_equal(run(X)[0], 2 * X + 2 * Y)
    with pytest.raises(relay.RelayError, match="nothing"):
        relay.create_executor(kind, relay.parse(TEXT), params={"nothing": Y}).evaluate()


def test_the_evaluator_checks_its_arguments():
    run = relay.create_executor("debug", relay.parse(TEXT)).evaluate()
    with pytest.raises(relay.RelayError, match="E0603"):
        run(X, np.zeros(4, np.float32))
    with pytest.raises(relay.RelayError, match="needs input 'y'"):
        run(X)
    with pytest.raises(relay.RelayError, match="E0612"):
        run.run("absent")


def test_an_operator_without_a_compiled_form_at_level_0_is_evaluated():
    """Batch normalisation is itself here; the compiler replaces it first."""
    text = VERSION + (
        "def @main(%x: Tensor[(1, 2, 2), float32], %v: Tensor[(2,), float32]) "
        "{ %0 = nn.batch_norm(%x, %v, %v, %v, %v); %1 = nn.dropout(%0.0); %1.0 }"
    )
    x, v = np.ones((1, 2, 2), np.float32), np.array([1, 4], np.float32)
    want = relay.create_executor("debug", relay.parse(text)).evaluate()(x, v)
    got = relay.create_executor("vm", relay.parse(text)).evaluate()(x, v)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_unknown_executors_are_named():
    with pytest.raises(relay.RelayError, match='"debug" and "vm"'):
        relay.create_executor("tpu", relay.parse(TEXT))


LOOP = """#[version = "0.0.5"]
def @main(%n: int64, %x: Tensor[(64, 64), float32]) {
  let %loop = fn (%t: int64, %a: Tensor[(64, 64), float32], %b: Tensor[(64, 64), float32])
      -> (Tensor[(64, 64), float32], Tensor[(64, 64), float32]) {
    if (%t < %n) { %loop(%t + 1i64, nn.relu(%b), add(%a, 1f)) } else { (%a, %b) }
  };
  let %r = %loop(0i64, %x, %x);
  (%r.0, %r.1, %r.0, %x)
}
"""


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_results_that_are_not_copied_share_no_memory(steps):
    run = relay.build(relay.parse(LOOP))
    x = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    results = [np.asarray(r) for r in run(np.int64(steps), x)]
    a, b = x, x
    for _ in range(steps):
        a, b = np.maximum(b, 0), a + 1
    for result, expected in zip(results, (a, b, a, x), strict=True):
        np.testing.assert_array_equal(result, expected)
    for i, result in enumerate(results):
        assert not any(np.shares_memory(result, other) for other in (*results[:i], x))
