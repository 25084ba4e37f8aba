"""relay.train: optimisers against their definitions, schedules, losses, whole steps, files."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import math
import os
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import relay
from relay import train, tree

rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def same_numbers_in_whatever_order():
    global rng
    rng = np.random.default_rng(3)


needs_safetensors = pytest.mark.skipif(
    importlib.util.find_spec("safetensors") is None, reason="safetensors is not installed"
)


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object
    activation: str = "tanh"


class Model:
    def __init__(self):
        self.layers = [Layer(f32(4, 8), f32(8)), Layer(f32(8, 3), f32(3), "none")]
        self.count = np.int32([7])

    @relay.function
    def __call__(self, x):
        for layer in self.layers:
            x = x @ layer.weight + layer.bias
            if layer.activation == "tanh":
                x = np.tanh(x)
        return x


def f32(*shape):
    return rng.normal(size=shape).astype("float32")


@relay.function
def loss(model, x, y):
    return train.losses.softmax_cross_entropy(model(x), y)


x, y = f32(12, 4), rng.integers(0, 3, 12).astype("int32")

# ---- Structures


def test_tensors_are_found_by_structure():
    model = Model()
    names = [f"layers.{i}.{part}" for i in range(2) for part in ("weight", "bias")]
    assert list(tree.leaves(model)) == [*names, "count"]
    doubled = tree.map(lambda a: a * 2, model)
    assert isinstance(doubled, Model) and doubled.layers[0].activation == "tanh"
    np.testing.assert_array_equal(doubled.layers[1].bias, model.layers[1].bias * 2)
    again = tree.replace(model, tree.leaves(doubled))
    assert again.layers[1].bias is doubled.layers[1].bias


def test_a_structure_is_saved_as_parameters():
    model = Model()
    loaded = relay.load_param_dict(relay.save_param_dict(model))
    assert list(loaded) == list(tree.leaves(model))
    np.testing.assert_array_equal(loaded["layers.1.weight"], model.layers[1].weight)
    nested = relay.load_param_dict(relay.save_param_dict({"a": {"b": f32(2)}, "c": f32(1)}))
    assert list(nested) == ["a.b", "c"]


def test_structures_that_do_not_fit_are_refused():
    leaves = tree.leaves(Model())
    for change, says in [
        (lambda d: d.pop("count"), "missing: count"),
        (lambda d: d.update(more=f32(1)), "unknown: more"),
        (lambda d: d.update(count=np.int64([7])), "'count' does not fit: int32"),
        (lambda d: d.update({"layers.0.bias": f32(9)}), r"\(8,\) is wanted"),
    ]:
        changed = dict(leaves)
        change(changed)
        with pytest.raises(ValueError, match=says):
            tree.replace(Model(), changed)
    with pytest.raises(ValueError, match="differ"):
        tree.map(lambda a, b: a, {"a": f32(1)}, {"b": f32(1)})
    with pytest.raises(ValueError, match="named '0'"):
        tree.leaves({"0": f32(1), 0: f32(1)})


# ---- Optimisers

P, G = {"w": f32(3, 2), "b": f32(2)}, [{"w": f32(3, 2), "b": f32(2)} for _ in range(3)]


def run(optimizer, params=P, grads=G):
    @relay.function(fixed_sizes=True)
    def update(params, grads, state, step):
        return optimizer.update(params, grads, state, step)

    state = optimizer.init(params)
    for step, g in enumerate(grads):
        params, state = update(params, g, state, np.int64(step))
    return params


def by_definition(rule):
    out = {}
    for name in P:
        p, state = P[name].astype("float64"), {}
        for step, g in enumerate(G):
            p = rule(p, g[name].astype("float64"), state, step + 1)
        out[name] = p
    return out


def sgd(momentum, nesterov, decay):
    def rule(p, g, s, t):
        g = g + decay * p
        s["m"] = momentum * s.get("m", 0) + g
        return p - 0.1 * (momentum * s["m"] + g if nesterov else s["m"])

    return rule


def adam(decay):
    def rule(p, g, s, t):
        s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
        s["v"] = 0.99 * s.get("v", 0) + 0.01 * g * g
        if p.ndim > 1:
            p = p * (1 - 0.1 * decay)
        m, v = s["m"] / (1 - 0.9**t), s["v"] / (1 - 0.99**t)
        return p - 0.1 * m / (np.sqrt(v) + 1e-3)

    return rule


@pytest.mark.parametrize(
    ("optimizer", "rule"),
    [
        (train.sgd(0.1), sgd(0, False, 0)),
        (train.sgd(0.1, momentum=0.9), sgd(0.9, False, 0)),
        (train.sgd(0.1, momentum=0.9, nesterov=True, decay=0.2), sgd(0.9, True, 0.2)),
        (train.adam(0.1, beta2=0.99, epsilon=1e-3), adam(0)),
        (train.adamw(0.1, beta2=0.99, epsilon=1e-3, decay=0.5), adam(0.5)),
    ],
)
def test_optimizers_are_what_they_are_defined_as(optimizer, rule):
    found, wanted = run(optimizer), by_definition(rule)
    for name in P:
        np.testing.assert_allclose(found[name], wanted[name], rtol=2e-5, atol=1e-6)


def test_states_of_small_dtypes_are_wide():
    params = {"w": P["w"].astype("float16"), "n": np.int32([1])}
    grads = [{"w": g["w"].astype("float16"), "n": None} for g in G]
    state = train.adam(0.1).init(params)
    assert state["first"]["w"].dtype == "float32" and state["first"]["n"] is None
    out = run(train.adam(0.1), params, grads)
    assert out["w"].dtype == "float16" and out["n"] == [1]


def test_schedules():
    S = train.schedules

    def at(schedule, step):
        @relay.function
        def rate(step):
            return schedule(step)

        return float(rate(np.int64(step)))

    cosine = S.Cosine(0.5, steps=20, warmup=10, end=0.1)
    expected = [0.05, 0.25, 0.5, 0.3, 0.1, 0.1]
    found = [at(cosine, s) for s in (0, 4, 10, 15, 20, 99)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose([at(S.Linear(1, 0, 10), s) for s in (0, 5, 12)], [1, 0.5, 0])
    np.testing.assert_allclose(at(S.Exponential(1, 10, 0.5), 5), 0.5**0.5, rtol=1e-6)
    np.testing.assert_allclose(at(S.Exponential(1, 10, 0.5, staircase=True), 19), 0.5)
    with pytest.raises(TypeError, match="a number or a schedule"):
        train.sgd("fast")


# ---- Losses


def test_losses_are_what_they_are_defined_as():
    logits, labels = rng.normal(size=(6, 4)), rng.integers(0, 4, 6)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    right = -np.log(p[np.arange(6), labels])
    L = train.losses
    np.testing.assert_allclose(L.softmax_cross_entropy(logits, labels), right.mean())
    np.testing.assert_allclose(L.softmax_cross_entropy(logits, labels, reduce=False), right)
    smooth = 0.9 * right - 0.1 * np.log(p).mean(axis=1)
    np.testing.assert_allclose(
        L.softmax_cross_entropy(logits, labels, smoothing=0.1), smooth.mean()
    )
    wanted = rng.uniform(size=(6, 4))
    s = 1 / (1 + np.exp(-logits))
    entropy = -(wanted * np.log(s) + (1 - wanted) * np.log(1 - s))
    np.testing.assert_allclose(L.sigmoid_cross_entropy(logits, wanted), entropy.mean())
    far = np.array([0.5, -3.0])
    np.testing.assert_allclose(L.huber(far, 0 * far, reduce=False), [0.125, 2.5])
    np.testing.assert_allclose(L.squared_error(far, 0 * far), 9.25 / 2)
    np.testing.assert_allclose(L.absolute_error(far, 0 * far), 3.5 / 2)
    np.testing.assert_allclose(L.accuracy(p, labels), (p.argmax(axis=1) == labels).mean())


def test_cross_entropies_are_stable():
    logits, labels = np.float32([[1e4, -1e4, 0], [-1e4, 1e4, 0]]), np.int32([0, 0])
    found = train.losses.softmax_cross_entropy(logits, labels, reduce=False)
    np.testing.assert_array_equal(found, [0, 2e4])

    @relay.function
    def both(logits, labels, wanted):
        a = train.losses.softmax_cross_entropy(logits, labels)
        return a + train.losses.sigmoid_cross_entropy(logits, wanted)

    slope = relay.grad(both)(logits, labels, (logits > 0).astype("float32"))
    assert np.isfinite(slope).all() and slope[1, 1] == pytest.approx(0.5)


# ---- Steps


def test_a_model_learns_and_the_loss_is_that_before_the_step():
    model = Model()
    trainer = train.Trainer(loss, model, train.adam(0.05))
    first = trainer.step(x, y)
    np.testing.assert_allclose(first, loss.python(model, x, y), rtol=1e-5)
    for _ in range(60):
        last = trainer.step(x, y)
    assert last < 0.05 and trainer.params.count.tolist() == [7]
    # Its own results are arguments of the form that it is compiled for.
    assert trainer.run.cache_info().currsize == 1


def test_a_step_writes_over_its_own_state_and_nothing_else():
    model = Model()
    given = tree.map(np.copy, model)
    trainers = [
        train.Trainer(loss, model, train.adam(0.05), in_place=in_place)
        for in_place in (True, False)
    ]
    before = [dict(tree.leaves(t.state._asdict())) for t in trainers]
    for _ in range(3):
        np.testing.assert_array_equal(*(t.step(x, y) for t in trainers))
    after = [dict(tree.leaves(t.state._asdict())) for t in trainers]
    for name, array in after[0].items():
        np.testing.assert_array_equal(array, after[1][name])
        # Numbers are new; arrays are the ones that the first step began with.
        assert (array is before[0][name]) == (np.ndim(array) > 0)
        assert after[1][name] is not before[1][name]
    for a, b in zip(*(tree.leaves(m).values() for m in (model, given)), strict=True):
        np.testing.assert_array_equal(a, b)
    # What a step changes is computed where it is; only the key is copied at its end.
    (made,) = trainers[0].run._compiled.values()
    donations = made.executable.donations()
    assert len(donations) == sum(np.ndim(a) > 0 for a in after[0].values())
    assert [d.input for d in donations if not d.in_place] == ["state_key"]


def test_a_state_that_cannot_be_written_to_is_refused():
    trainer = train.Trainer(loss, Model(), train.sgd(0.1))
    trainer.step(x, y)
    trainer.state.params.layers[0].weight.flags.writeable = False
    with pytest.raises(
        relay.UserError, match=r"E1205.*layers_0_weight' is donated(.|\n)*read-only"
    ):
        trainer.step(x, y)


def test_parts_of_a_batch_add_up_to_the_whole():
    model = Model()
    trainers = [
        train.Trainer(loss, model, train.sgd(0.1, momentum=0.9), accumulate=n) for n in (1, 3)
    ]
    for _ in range(3):
        values = [t.step(x, y) for t in trainers]
        np.testing.assert_allclose(*values, rtol=1e-5)
    for a, b in zip(*(tree.leaves(t.params).values() for t in trainers), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_gradients_are_clipped_by_their_norm():
    model = {"w": np.float32([3, 4]), "v": np.float32([12])}

    @relay.function
    def half_square(model, scale):
        return 0.5 * ((model["w"] ** 2).sum() + (model["v"] ** 2).sum()) * scale

    trainer = train.Trainer(half_square, model, train.sgd(1.0), clip=6.5)
    trainer.step(np.float32(1))
    np.testing.assert_allclose(trainer.params["w"], [1.5, 2], rtol=1e-6)
    trainer.step(np.float32(0.1))
    np.testing.assert_allclose(trainer.params["w"], [1.35, 1.8], rtol=1e-6)


def test_a_step_with_infinite_gradients_changes_only_the_scale():
    @relay.function
    def half_loss(model, x):
        w = model["w"].astype("float16")
        return (w * x).sum()

    trainer = train.Trainer(
        half_loss,
        {"w": np.float32([1, 2])},
        train.sgd(1.0, momentum=0.5),
        loss_scale=train.LossScale(2.0**15, growth=2),
    )
    tiny, large = np.float16([1e-7, 0]), np.float16([100, 0])
    trainer.step(large)
    assert trainer.params["w"].tolist() == [1, 2] and trainer.state.scale == 2**14
    assert trainer.state.step == 0
    for _ in range(2):
        trainer.step(tiny)
    assert trainer.state.scale == 2**15 and trainer.state.step == 2
    moved = 1 - trainer.params["w"][0]
    np.testing.assert_allclose(moved, 2.5 * float(tiny[0]), rtol=0.1)


@relay.function
def noisy(model, statistics, x, y, key):
    kept = relay.random.uniform(key, (12, 4))[1] < np.float32(0.8)
    found = model(np.where(kept, x, 0) / np.float32(0.8))
    mean = 0.9 * statistics["mean"] + 0.1 * found.mean(axis=0)
    return train.losses.softmax_cross_entropy(found - mean, y), {"mean": mean}


def noisy_trainer():
    return train.Trainer(
        noisy, Model(), train.adam(0.01), variables={"mean": np.zeros(3, "float32")}, key=5
    )


@needs_safetensors
def test_what_is_saved_goes_on_bit_for_bit(tmp_path):
    one, other = noisy_trainer(), noisy_trainer()
    for _ in range(3):
        one.step(x, y)
    assert one.variables["mean"].any()
    path = tmp_path / "state.safetensors"
    one.save(path)
    assert os.listdir(tmp_path) == ["state.safetensors"]
    wanted = [one.step(x, y) for _ in range(3)]
    other.load(path)
    assert [other.step(x, y) for _ in range(3)] == wanted and len(set(map(float, wanted))) == 3
    for a, b in zip(*(tree.leaves(t.state).values() for t in (one, other)), strict=True):
        np.testing.assert_array_equal(a, b)


@needs_safetensors
def test_files_of_other_models_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    train.save_tensors(Model(), path)
    with pytest.raises(ValueError, match="not a file of a Trainer"):
        noisy_trainer().load(path)
    np.testing.assert_array_equal(train.load_tensors(Model(), path).count, [7])
    train.Trainer(loss, Model(), train.sgd(0.1)).save(path)
    with pytest.raises(ValueError, match="missing"):
        noisy_trainer().load(path)


def test_batches_have_an_order_of_their_own_in_each_epoch():
    data = train.Batches((np.arange(10), np.arange(10) * 2), 3, key=4)
    epochs = [[b for b in data.epoch(i)] for i in (0, 0, 1)]
    orders = [np.concatenate([a for a, _ in epoch]).tolist() for epoch in epochs]
    assert len(data) == 4 and orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == 10 and all((2 * a == b).all() for a, b in epochs[0])
    assert [a.tolist() for a, _ in data.epoch(1, 3)] == [epochs[2][3][0].tolist()]
    with pytest.raises(ValueError, match="different numbers"):
        train.Batches((np.arange(3), np.arange(4)), 1)
    with pytest.raises(ValueError, match="from 1 to 3"):
        train.Batches((np.arange(3),), 4)


def test_fitting_goes_on_where_it_stopped(tmp_path):
    data = train.Batches((x, y), 4, key=2)
    whole = train.Trainer(loss, Model(), train.adam(0.01))
    start = tree.map(np.copy, whole.params)
    out = io.StringIO()
    assert len(whole.fit(data, 2, out=out)) == 2 and "epoch 2/2  3/3  loss" in out.getvalue()
    parts = train.Trainer(loss, start, train.adam(0.01))
    for batch in list(data.epoch(0))[:2]:
        parts.step(*batch)
    parts.fit(data, 2, progress=False)
    for a, b in zip(*(tree.leaves(t.params).values() for t in (whole, parts)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_line_of_an_epoch_is_renewed_on_terminals_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    data = train.Batches((x, y), 4, key=2)
    for out in (io.StringIO(), Terminal()):
        train.Trainer(loss, Model(), train.adam(0.01)).fit(data, 2, out=out)
        lines = out.getvalue().splitlines()
        assert [line.count("loss") > 0 for line in lines if line.strip()].count(True) >= 2
        assert ("\r" in out.getvalue()) == out.isatty()
        assert out.getvalue().count("\n") == 2


def test_first_values_of_parameters():
    I = train.initializers  # noqa: E741
    keys = I.Keys(1)
    a, b = next(keys), next(keys)
    np.testing.assert_array_equal(next(I.Keys(1)), a)
    assert (a != b).any()
    w = I.he_normal(a, (50, 40, 3, 3), "oi")
    assert w.dtype == "float32" and w.std() == pytest.approx(np.sqrt(2 / 360), rel=0.02)
    np.testing.assert_array_equal(I.he_normal(a, (50, 40, 3, 3), "oi"), w)
    u = I.glorot_uniform(b, (300, 100))
    assert abs(u).max() == pytest.approx(np.sqrt(6 / 400), rel=1e-3)
    assert I.lecun_normal(b, (300, 100)).std() == pytest.approx(np.sqrt(1 / 300), rel=0.02)
    with pytest.raises(ValueError, match="no inputs"):
        I.he_normal(a, (5,))
    with pytest.raises(TypeError, match="10 uint64"):
        I.as_key(np.zeros(3))


def test_wrong_arguments():
    with pytest.raises(TypeError, match="Trainer takes a function, not Model"):
        train.Trainer(Model(), Model(), train.sgd(0.1))
    for model in ({"a": 1}, {"a": np.ones(3, "int32")}):
        with pytest.raises(ValueError, match="no tensors of floats"):
            train.Trainer(loss, model, train.sgd(0.1))
    with pytest.raises(TypeError, match="an optimizer is"):
        train.Trainer(loss, Model(), "adam")
    with pytest.raises(ValueError, match="norm above 0"):
        train.Trainer(loss, Model(), train.sgd(0.1), clip=0.0)
    with pytest.raises(TypeError, match=r"data is relay\.train\.Batches"):
        train.Trainer(loss, Model(), train.sgd(0.1)).fit((x, y))
    for rate in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="from 0 on"):
            train.sgd(rate)
    with pytest.raises(ValueError, match="momentum is from 0"):
        train.sgd(0.1, momentum=1.0)
    with pytest.raises(ValueError, match="beta2 is from 0"):
        train.adam(0.1, beta2=1.5)
    parts = train.Trainer(loss, Model(), train.sgd(0.1), accumulate=5)
    with pytest.raises(ValueError, match=r"of \(12, 4\), cannot be computed in 5 parts"):
        parts.step(x, y)
    with pytest.raises(ValueError, match="1 or more parts"):
        train.Trainer(loss, Model(), train.sgd(0.1), accumulate=0)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


@needs_safetensors
def test_the_page_does_what_it_says(tmp_path, monkeypatch):
    """Snippets build on each other; `# ->` behind an expression is its value, printed."""
    monkeypatch.chdir(tmp_path)
    text = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    path = tmp_path / "training_page.py"
    path.write_text(text)
    module = sys.modules["training_page"] = types.ModuleType("training_page")
    tested, code = 0, []
    for line in [*text.splitlines(), "0  # -> 0"]:
        found = re.match(r"^(\S.*?)\s+# -> (.*)$", line)
        if found is None:
            code.append(line)
            continue
        # Line numbers stay those of the file, where functions are read.
        exec(compile("\n".join(code), str(path), "exec"), vars(module))
        code = [""] * len(code) + [""]
        assert str(eval(found[1], vars(module))) == found[2], found[1]
        tested += 1
    assert tested == 6


def test_layers_in_the_form_of_training():
    L = train.layers

    @relay.function(fixed_sizes=True)
    def both(key, x, scale, shift, statistics):
        return L.dropout(key, x, 0.25), L.batch_norm(x, scale, shift, statistics)

    image = rng.normal(size=(8, 3, 5, 4)) * 2 + 1
    scale, shift, old = f32(3).astype("float64"), np.ones(3), (np.zeros(3), np.ones(3))
    dropped, (found, (mean, variance)) = both(
        train.initializers.as_key(1), image, scale, shift, old
    )
    kept = dropped != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.06)
    np.testing.assert_allclose(dropped[kept], image[kept] / 0.75)
    at = image.mean(axis=(0, 2, 3)), image.var(axis=(0, 2, 3))
    each = [v[:, None, None] for v in (*at, scale, shift)]
    wanted = (image - each[0]) / np.sqrt(each[1] + 1e-5) * each[2] + each[3]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(mean, 0.1 * at[0])
    np.testing.assert_allclose(variance, 0.9 + 0.1 * at[1] * 160 / 159)


def onnx_model():
    """Convolution, normalisation and dropout, as exporters write them for training."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    h, made = onnx.helper, onnx.numpy_helper.from_array
    weights = {
        "w": f32(8, 1, 3, 3) * np.float32(0.3),
        "scale": np.ones(8, "float32"),
        "shift": np.zeros(8, "float32"),
        "mean": np.zeros(8, "float32"),
        "var": np.ones(8, "float32"),
        "out": f32(8, 4),
        "ratio": np.float32(0.25),
        "train": np.array(True),
    }
    nodes = [
        h.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        h.make_node(
            "BatchNormalization",
            ["c", "scale", "shift", "mean", "var"],
            ["b", "new_mean", "new_var"],
            training_mode=1,
        ),
        h.make_node("Relu", ["b"], ["r"]),
        h.make_node("GlobalAveragePool", ["r"], ["p"]),
        h.make_node("Flatten", ["p"], ["f"]),
        h.make_node("Dropout", ["f", "ratio", "train"], ["d"], seed=3),
        h.make_node("MatMul", ["d", "out"], ["y"]),
    ]
    float32 = onnx.TensorProto.FLOAT
    graph = h.make_graph(
        nodes,
        "training",
        [h.make_tensor_value_info("x", float32, [16, 1, 8, 8])],
        [h.make_tensor_value_info(n, float32, None) for n in ("y", "new_mean", "new_var")],
        [made(value, name) for name, value in weights.items()],
    )
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])


def test_an_imported_model_trains_with_its_normalisation_and_dropout():
    mod, weights = relay.frontend.from_onnx(onnx_model(), freeze_params=False)
    network = train.with_key(mod.functions["main"])
    names = [p.name_hint for p in network.params[1:-1]]
    statistics = {n: weights[n] for n in ("mean", "var")}
    params = {n: weights[n] for n in names if n not in statistics}

    @relay.function
    def loss(params, statistics, images, labels, key):
        given = [params[n] if n in params else statistics[n] for n in names]
        logits, mean, var = network(images, *given, key)
        value = train.losses.softmax_cross_entropy(logits, labels)
        return value, {"mean": mean, "var": var}

    images = rng.normal(size=(16, 1, 8, 8)).astype("float32")
    labels = rng.integers(0, 4, 16).astype("int32")
    images += labels[:, None, None, None] * np.float32(0.7) * np.sin(np.arange(8, dtype="float32"))
    trainer = train.Trainer(loss, params, train.adam(0.03), variables=statistics, key=1)
    values = [float(trainer.step(images, labels)) for _ in range(150)]
    assert values[-1] < 0.6 * values[0] and trainer.variables["mean"].any()
    # Another mask at each step.
    frozen = train.Trainer(loss, params, train.sgd(0.0), variables=statistics, key=1)
    assert len({float(frozen.step(images, labels)) for _ in range(4)}) == 4
    with pytest.raises(ValueError, match="draws no random numbers"):
        train.with_key(relay.Function([], relay.const(1.0)))
