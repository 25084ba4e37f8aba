"""What a relay.function is put together with: models and their methods, operators, programs, modules."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest
from function_oracle import same

import relay

rng = np.random.default_rng(5)


def normal(*shape):
    return (rng.standard_normal(shape) * 0.2).astype("float32")


Rows = relay.Tensor[("n", 16), "float32"]
Vector = relay.Tensor[(None,), "float64"]


# ---- Models of classes


class Conv:
    def __init__(self, inputs, outputs):
        self.weight, self.bias = normal(outputs, inputs, 3, 3), normal(outputs, 1, 1)

    @relay.function
    def __call__(self, x):
        return np.maximum(relay.nn.conv2d(x, self.weight, padding=(1, 1)) + self.bias, 0)


class Network:
    """Convolutions, then a product that fits one size of images only."""

    def __init__(self):
        self.layers = [Conv(1, 4), Conv(4, 4)]
        self.out = normal(16, 10)

    @relay.function
    def __call__(self, x):
        for layer in self.layers:
            x = relay.nn.max_pool2d(layer(x), (2, 2), strides=(2, 2))
        return x.reshape(-1, 16) @ self.out

    @relay.function
    def flat(self, x):
        n, c, h, w = x.shape
        return x.reshape(n, c * h * w) @ self.out

    @relay.function
    def typed(self, x: Rows, by: float = 2.0):
        return x @ self.out * by


def images(n, channels=1, size=8):
    return normal(n, channels, size, size)


def classify(model, x, labels):
    return -np.mean(np.take_along_axis(relay.nn.log_softmax(model(x)), labels[:, None], 1))


def test_a_trained_model_is_called_for_other_batches():
    x, labels = images(6), rng.integers(0, 10, 6)
    trainer = relay.train.Trainer(classify, Network(), relay.train.adam(0.01))
    losses = [float(trainer.step(x, labels)) for _ in range(30)]
    assert losses[-1] < losses[0]
    before = Network.__call__.cache_info().currsize
    whole = trainer.params(x)
    assert whole.shape == (6, 10) and np.isfinite(whole).all()
    for n in (2, 3, 5):
        np.testing.assert_allclose(trainer.params(x[:n]), whole[:n], rtol=1e-5, atol=1e-6)
    # The batch is open, also where it is as large as something of the model's, or the image.
    for n in (4, 8, 16):
        assert trainer.params(images(n)).shape == (n, 10)
    assert Network.__call__.cache_info().currsize == before + 1


def test_sizes_of_data_are_known_where_open_ones_have_no_type():
    network, cache = Network(), Network.flat.cache_info
    before = cache().currsize
    for n in (2, 3, 4):
        x = images(n, 1, 4)
        np.testing.assert_allclose(network.flat(x), x.reshape(n, 16) @ network.out, rtol=1e-5)
    assert cache().currsize == before + 1
    assert network.flat(images(3, 4, 2)).shape == (3, 10)
    assert cache().currsize == before + 2
    with pytest.raises(relay.UserError, match="E02"):
        network.flat(images(3, 1, 3))


def test_models_of_other_sizes_are_other_forms():
    class Dense:
        def __init__(self, n, m):
            self.weight = normal(n, m)

        @relay.function
        def __call__(self, x):
            return x @ self.weight

    a, b = Dense(3, 5), Dense(5, 3)
    for _ in range(2):
        for layer, n in ((a, 3), (b, 5)):
            for x in (normal(2, n), normal(7, n), normal(n, n), normal(n)):
                np.testing.assert_allclose(layer(x), x @ layer.weight, rtol=1e-5, atol=1e-6)
    assert Dense.__call__.cache_info().currsize == 4


# ---- Methods of objects


def test_a_method_is_called_as_before():
    network, x = Network(), images(2)
    method = network.__call__
    same(method(x), network(x))
    same(method(x=x), network(x))
    assert method == network.__call__ and hash(method) == hash(network.__call__)
    assert method != Network().__call__ and method != network.flat
    assert (method.__name__, method.__qualname__) == ("__call__", "Network.__call__")
    assert str(inspect.signature(method)) == "(x)"
    assert "Network.__call__ of <" in repr(method) and not hasattr(method, "other")
    same(copy.copy(method)(x), network(x))
    same(copy.deepcopy(method)(x), network(x))
    same(pickle.loads(pickle.dumps(method))(x), network(x))


def test_in_what_a_method_becomes_its_object_is_constant(tmp_path):
    network, x = Network(), images(6)
    lowered = network.__call__.lower(x)
    assert set(lowered.module.functions) == {"main"}
    assert [p.name_hint for p in lowered.module["main"].params] == ["x"]
    assert "(self: constants, x: Tensor[(x0, 1, x2, x2), float32])" in repr(lowered)
    expected = network(x)
    same(lowered.compile()(x), expected)
    network.__call__.export_library(tmp_path / "model.so")
    program = relay.runtime.load_module(tmp_path / "model.so")
    assert [slot.name for slot in program.input_info()] == ["x"]
    for n in (6, 2, 8, 4):
        np.testing.assert_allclose(program(x[:n]), network(x[:n]), rtol=1e-5, atol=1e-6)
    assert network.__call__.astext() == lowered.astext()
    assert relay.structural_equal(network.__call__.module, lowered.module)
    assert "x: Tensor[(x0, 1, x2, x2), float32]" in network.__call__.explain()
    # What it becomes has the tensors as they are now.
    network.out += 1
    np.testing.assert_allclose(network.__call__.lower(x).compile()(x), network(x), rtol=1e-5)


def test_a_method_that_is_annotated_needs_no_arguments():
    network = Network()
    module = network.typed.module
    assert [p.name_hint for p in module["main"].params] == ["x", "by"]
    x = normal(3, 16)
    np.testing.assert_allclose(relay.build(module)(x, 3.0), x @ network.out * 3, rtol=1e-5)
    assert "%x: Tensor[(n, 16), float32]" in network.typed.astext()


def test_a_model_of_a_class_is_quantised():
    network = Network()
    samples = [{"x": images(4)} for _ in range(3)]
    exact = network.__call__.lower(samples[0]["x"]).module
    quantised = relay.quantize.quantize(exact, None, samples)
    assert quantised.astext(show_meta_data=False).count("qnn.quantize") >= 2
    found = relay.build(quantised)(samples[0]["x"])
    assert np.abs(found - network(samples[0]["x"])).max() < 0.1


def test_calls_of_typed_and_recursive_layers_are_in_main():
    class Block:
        def __init__(self, inner):
            self.inner, self.scale = inner, np.float32(0.5)

        @relay.function
        def __call__(self, x):
            return x * self.scale if self.inner is None else self.inner(x) + x

        @relay.function
        def half(self, x: Vector) -> Vector:
            return x * 0.5

        @relay.function
        def power(self, x, n):
            return x if n == 0 else self.power(x * self.scale, n - 1)

        @relay.function
        def both(self, x):
            return self.half(x) + self.power(x, x.shape[0])

    nested, x = Block(Block(Block(None))), np.arange(3.0)
    module = nested.__call__.lower(x).module
    assert set(module.functions) == {"main"}
    same(relay.build(module)(x), nested(x))
    same(relay.build(nested.both.lower(x).module)(x), x / 2 + x / 8)


def test_a_method_of_which_it_is_not_known_what_is_meant_is_refused():
    network = Network()
    with pytest.raises(
        relay.UserError, match=r"E0908.*flat has \d compiled forms for such an object"
    ):
        # Of this structure, none.
        network.out = normal(7, 3)
        network.flat.module  # noqa: B018
    x = images(2)
    with pytest.raises(relay.UserError, match=r"E0908.*'f' is a method of an object"):
        relay.function(lambda f, x: f(x))(network.__call__, x)


def test_a_method_is_captured_with_constants():
    network = Network()
    method, x = network.__call__, images(2)
    same(relay.function(lambda x: method(x) * 2)(x), network(x) * 2)


# ---- Operators, modules and programs

MODULE = relay.parse("""#[version = "0.0.5"]
def @scale(%x: Tensor[(?, 4), float32], %by: float32) -> Tensor[(?, 4), float32] {
  multiply(%x, %by)
}
def @main[n: Dim](%x: Tensor[(n, 4), float32], %by: float32) {
  let %y = exp(multiply(%x, %by));
  (%y, sum(%y, axis=[1]))
}
def @deep(%x: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] { @scale(%x, 3f) }
def @give(%a: Tensor[(4,), float32]) { add(%a, 1f) }
""")
PROGRAM = relay.build(MODULE)
X = normal(3, 4)


@pytest.fixture
def swish():
    def definition(x, y, beta):
        return x * relay.sigmoid(x * y * relay.const(beta, "float32"))

    with relay.register_op("composition.swish", definition, attrs={"beta": 1.0}) as op:
        yield op


def test_operators_of_users_are_called(swish):
    def expected(x, by):
        return x / (1 + np.exp(-x * by))

    f = relay.function(lambda x: swish(x, 2.0, beta=0.5))
    np.testing.assert_allclose(f(X), expected(X, 1.0), rtol=1e-5)
    g = relay.function(lambda x: swish(x, x, 1.5).sum())
    np.testing.assert_allclose(g(X), expected(X, 1.5 * X).sum(), rtol=1e-5)
    slope = relay.grad(lambda x: swish(x, 1.0).sum())(X)
    s = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(slope, s * (1 + X * (1 - s)), rtol=1e-4, atol=1e-6)
    lanes = relay.vmap(lambda x: swish(x, 2.0, beta=0.5))(np.stack([X, -X]))
    np.testing.assert_allclose(lanes, [expected(X, 1.0), expected(-X, 1.0)], rtol=1e-5)
    with pytest.raises(relay.UserError, match=r"E0907.*swish: missing a required argument: 'y'"):
        relay.function(lambda x: swish(x))(X)
    with pytest.raises(relay.UserError, match=r"(?s)E0\d{3}.*swish\(x, TABLE\)"):
        relay.function(lambda x: swish(x, TABLE), fixed_sizes=True)(X)


TABLE = normal(5, 7)


def test_an_operator_without_a_gradient_says_so():
    def definition(x):
        return relay.te.compute(x.shape, lambda *i: x[i] * 2.0)

    with relay.register_op("composition.twice", compute=definition) as twice:
        f = relay.function(lambda x: twice(x).sum())
        np.testing.assert_allclose(f(X), 2 * X.sum(), rtol=1e-4)
        np.testing.assert_allclose(relay.vmap(f)(np.stack([X, X])), [2 * X.sum()] * 2, rtol=1e-4)
        with pytest.raises(relay.UserError, match=r"E1002.*composition.twice has no gradient"):
            relay.grad(f)(X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: MODULE["main"](x, 2.0)[1],
        lambda x: MODULE["main"](by=2.0, x=x)[1],
        lambda x: PROGRAM(x, 2.0)[1],
        lambda x: ALONE(x, 2.0)[1],
    ],
)
def test_functions_of_modules_and_programs_are_called(function):
    expected = np.exp(2 * X)
    compiled = relay.function(function)
    for n in (3, 1, 2):
        np.testing.assert_allclose(compiled(X[:n]), expected[:n].sum(axis=1), rtol=1e-5)
    slope = relay.grad(lambda x: compiled(x).sum())(X)
    np.testing.assert_allclose(slope, 2 * expected, rtol=1e-4)
    lanes = relay.vmap(compiled)(np.stack([X, -X]))
    np.testing.assert_allclose(lanes, [expected.sum(axis=1), (1 / expected).sum(axis=1)], rtol=1e-5)
    wrong = r"axis 1 of 'x' of @main is of size 5, not 4 \(.*test_function_composition.py:\d+\)"
    with pytest.raises(relay.RunError, match=rf"E0616.*{wrong}"):
        compiled(normal(3, 5))
    fixed = relay.function(function, fixed_sizes=True)
    np.testing.assert_allclose(fixed(X), expected.sum(axis=1), rtol=1e-5)
    with pytest.raises(
        relay.UserError, match=r"(?s)E0908.*'x' of @main is of other sizes.*lambda x: \w+"
    ):
        fixed(normal(3, 5))
    with pytest.raises(relay.UserError, match=r"(?s)E0908.*'x' is of another type.*float64"):
        compiled(X.astype("float64"))


ALONE = MODULE["main"]


def test_what_a_function_of_a_module_calls_comes_with_it():
    @relay.function
    def main(x):
        return MODULE["deep"](x) + MODULE["scale"](x, 2.0)

    @relay.function
    def scale(x):
        return main(x) + main(x)

    np.testing.assert_allclose(scale(X), X * 10, rtol=1e-5)
    np.testing.assert_allclose(relay.grad(lambda x: (scale(x) * X).sum())(X), X * 10, rtol=1e-5)
    # Each is there once: both that are compiled, and both that they call.
    assert len(scale.module.functions) == 4


CALLS_OTHERS = MODULE["deep"]
VARIABLE = MODULE.get_global_var("main")
GIVING = relay.build(MODULE["give"], donate={"a": 0})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: MODULE["nothing"](x), r"E0907.*no function 'nothing'"),
        (lambda x: MODULE["main"](x), r"E0907.*@main needs 'by'"),
        (lambda x: MODULE["main"](x, 1.0, 2.0), r"E0907.*@main takes 2 arguments, not 3"),
        (lambda x: MODULE["main"](x, to=1.0), r"E0907.*@main has no parameter 'to'"),
        (lambda x: MODULE["main"](x, 1.0, x=x), r"E0907.*@main gets 'x' twice"),
        (lambda x: MODULE["main"](x, x), r"E0908.*'by' is of another type"),
        (lambda x: MODULE["main"](x[0], 1.0), r"E0908.*'x' is of another type"),
        (lambda x: CALLS_OTHERS(x), r"(?s)E0907.*calls @scale of its module.*name the module"),
        (
            lambda x: VARIABLE(x, 1.0),
            r"(?s)E0907.*@main is the name of a function.*mod\[\"main\"\]",
        ),
        (lambda x: GIVING(x[0]), r"(?s)E0907.*changes an array that it is given.*found: +a"),
        (lambda x: PROGRAM.run("deep", x), r"(?s)E0907.*a program's run.*mod\[\"name\"\]"),
    ],
)
def test_calls_that_cannot_be_are_refused(function, message):
    with pytest.raises(relay.UserError, match=message):
        relay.function(function)(X)


def test_a_loaded_program_is_not_a_part_of_a_function(tmp_path):
    PROGRAM.export_library(tmp_path / "program.so")
    loaded = relay.runtime.load_module(tmp_path / "program.so")
    expected = (
        r"(?s)E0907.*a loaded program is machine code.*help: +call the module.*mod\[\"main\"\]"
    )
    for program in (loaded, pickle.loads(pickle.dumps(PROGRAM))):
        with pytest.raises(relay.UserError, match=expected):
            relay.function(lambda x, program=program: program(x, 2.0))(X)


# ---- Sizes of the run

SIZES = relay.parse("""#[version = "0.0.5"]
def @square[n: Dim](%x: Tensor[(n, n), float32]) { multiply(%x, 2f) }
def @pair[n: Dim](%x: Tensor[(n, 4), float32], %w: Tensor[(n,), float32]) {
  multiply(%x, expand_dims(%w, axis=1))
}
def @both[n: Dim](%x: (Tensor[(n,), float32], Tensor[(n, 2), float32])) {
  (sum(%x.0), sum(%x.1))
}
def @any[s: Shape, t: BaseType](%x: Tensor[s, t]) -> Tensor[s, t] { add(%x, %x) }
def @two(%x: Tensor[(2, 3), float32]) { sum(%x) }
""")


def test_named_sizes_of_a_function_are_those_of_the_run():
    square = relay.function(lambda x: SIZES["square"](x).sum())
    np.testing.assert_allclose(square(X[:, :3]), 2 * X[:, :3].sum(), rtol=1e-5)
    with pytest.raises(
        relay.RunError, match=r"E0616.*axis 1 of 'x' of @square is of size 4, not 3"
    ):
        square(X)
    pair = relay.function(lambda x, w: SIZES["pair"](x, w))
    np.testing.assert_allclose(pair(X, X[:, 0]), X * X[:, :1], rtol=1e-5)
    with pytest.raises(relay.RunError, match=r"E0616.*axis 0 of 'w' of @pair is of size 2, not 3"):
        pair(X, X[:2, 0])
    both = relay.function(lambda x, y: SIZES["both"]((x, y))[1])
    np.testing.assert_allclose(both(X[:, 0], X[:, :2]), X[:, :2].sum(), rtol=1e-4)
    with pytest.raises(relay.RunError, match=r"E0616.*axis 1 of 'x' of @both is of size 4, not 2"):
        both(X[:, 0], X)
    two = relay.function(lambda x: SIZES["two"](x))
    with pytest.raises(relay.RunError, match="E0616"):
        two(np.ones((3, 2), "float32"))
    # Nothing is broadcast, and no count of elements stands for sizes.
    with pytest.raises(relay.UserError, match=r"E0908.*'x' of @two is of other sizes"):
        two(np.ones((1, 3), "float32"))
    with pytest.raises(relay.RunError, match="E0616"):
        pair(np.ones((0, 5), "float32"), np.ones(0, "float32"))


def test_sizes_that_only_the_run_knows_may_be_named_ones():
    @relay.function
    def pair(x, w, keep, more):
        return SIZES["pair"](x[keep], w[more]).sum(), SIZES["square"](x[keep][:, :2]).sum()

    keep = np.array([True, False, True])
    expected = (X * X[:, :1])[keep].sum(), 2 * X[keep][:, :2].sum()
    np.testing.assert_allclose(pair(X, X[:, 0], keep, keep), expected, rtol=1e-4)
    with pytest.raises(relay.RunError, match=r"E0616.*axis 0 of 'w' of @pair is of size 1, not 2"):
        pair(X, X[:, 0], keep, ~keep)


def test_functions_of_any_rank_and_dtype_are_refused():
    with pytest.raises(
        relay.UserError, match=r"(?s)E0907.*@any is for values of any rank or dtype"
    ):
        relay.function(lambda x: SIZES["any"](x))(X)


# ---- What modules do and hold

WORDS = relay.parse("""#[version = "0.0.5"]
def @say(%x: float32) { let %p: bool = debug.print((%x,)); %x }
def @power(%x: float32, %n: int32) -> float32 {
  if (%n > 0) { %x * @power(%x, %n - 1) } else { 1f }
}
""")


def test_what_a_function_of_a_module_does_is_done_once(capfd):
    @relay.function
    def f(x):
        WORDS["say"](x)
        y = WORDS["say"](x + 1)
        return y + y

    assert f(np.float32(1)) == 4
    assert capfd.readouterr().out.split() == ["1.0", "2.0"]


def test_recursive_functions_are_called():
    @relay.function
    def power(x, n: int):
        return x if n == 0 else WORDS["power"](x, 2) * power(x, n - 1)

    x = np.float32(1.5)
    np.testing.assert_allclose(power(x, 2), x**5, rtol=1e-6)
    slope = relay.grad(lambda x: WORDS["power"](x, 3))(x)
    np.testing.assert_allclose(slope, 3 * x**2, rtol=1e-6)
    # The program of a function is a module as any other, also within that function's own kin.
    inner = power.lower(x, 1).module
    outer = relay.function(lambda x: inner["main"](x, 1) * power(x, 0))
    np.testing.assert_allclose(outer(x), x**4, rtol=1e-6)


def test_one_function_may_have_two_names():
    f = relay.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4), float32]) { let %y = exp(%x); multiply(%y, 3f) }
""")["main"]
    mod = relay.IRModule({"f": f, "g": f})
    both = relay.function(lambda x: mod["f"](x) + mod["g"](x))
    np.testing.assert_allclose(both(X), 6 * np.exp(X), rtol=1e-5)
    x = relay.var("x", shape=(3, 4))
    call = relay.add(mod.get_global_var("f")(x), mod.get_global_var("g")(x))
    whole = mod.with_function("main", relay.Function([x], call))
    np.testing.assert_allclose(relay.build(whole)(X), 6 * np.exp(X), rtol=1e-5)


def weighted(rows):
    x = relay.var("x", shape=(relay.Any(), 256), dtype="float32")
    weights = rng.standard_normal((rows, 256)).astype("float32")
    product = relay.nn.dense(x, relay.const(weights))
    return relay.IRModule.from_expr(relay.Function([x], product)), weights


def test_weights_of_modules_come_along():
    mod, weights = weighted(8)
    program = relay.build(mod)
    x = normal(2, 256)
    for function in (lambda x: mod["main"](x).sum(), lambda x: program(x).sum()):
        compiled = relay.function(function)
        np.testing.assert_allclose(compiled(x), (x @ weights.T).sum(), rtol=1e-3, atol=1e-4)
        slope = relay.grad(compiled)(x)
        np.testing.assert_allclose(slope[1], weights.sum(axis=0), rtol=1e-3, atol=1e-4)


def test_a_program_does_not_keep_large_weights_twice():
    kept = [*weighted(2048)]
    weights = kept.pop()
    program = relay.build(kept[0])
    x = normal(2, 256)
    compiled = relay.function(lambda x: program(x).sum())
    np.testing.assert_allclose(compiled(x), (x @ weights.T).sum(), rtol=1e-2, atol=1e-2)
    gone = weakref.ref(kept.pop())
    del compiled
    gc.collect()
    assert gone() is None
    again = relay.function(lambda x: program(x).mean())
    with pytest.raises(
        relay.UserError,
        match=r"(?s)E0907.*the module that this program was built from is gone.*mod\[",
    ):
        again(x)


def test_a_program_that_was_given_parameters_is_called():
    mod = relay.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4), float32], %w: Tensor[(4,), float32]) { multiply(%x, %w) }
""")
    program = relay.build(mod, params={"w": np.arange(4, dtype="float32")})
    double = relay.function(lambda x: program(x) * 2)
    np.testing.assert_allclose(double(X), X * np.arange(4) * 2, rtol=1e-5)
    with pytest.raises(relay.UserError, match=r"E0907.*@main takes 1 argument, not 2"):
        relay.function(lambda x: program(x, x[0]))(X)
