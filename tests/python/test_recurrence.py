"""RNN, LSTM, GRU, Scan and Loop are loops over steps, of any length; ONNX Runtime says what they compute."""

import time

import numpy as np
import onnx
import oracles
import pytest
from command_line import relay as relay_command
from onnx import TensorProto, helper, numpy_helper

import relay

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
F, I64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(nodes, inputs, outputs, constants=()):
    """A model of nodes; inputs are (name, type, shape), outputs names."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_empty_tensor_value_info(o) for o in outputs],
        [numpy_helper.from_array(v, n) for n, v in constants],
    )
    for o in graph.output:
        o.type.tensor_type.elem_type = F
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def build(model, **options):
    mod, _ = relay.frontend.from_onnx(model.SerializeToString())
    return relay.build(mod, **options)


def run(exe, feeds):
    out = exe(*feeds.values())
    return list(out) if isinstance(out, (tuple, list)) else [out]


def agree(got, want, tolerance=2e-5):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert np.shape(g) == w.shape
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


class Cell:
    """A recurrent node with random attributes and weights."""

    def __init__(self, seed: int, kind: str):
        self.kind, self.rng = kind, np.random.default_rng(seed)
        pick = self.rng.integers
        self.direction = ["forward", "reverse", "bidirectional"][pick(3)]
        self.sides = 2 if self.direction == "bidirectional" else 1
        self.batch, self.features = int(pick(1, 4)), int(pick(1, 6))
        self.hidden = int(pick(1, 7))
        self.batch_first = bool(pick(3) == 0)
        self.attrs = {"direction": self.direction, "hidden_size": self.hidden}
        # ONNX Runtime does not clip what the last activation of an LSTM is applied to.
        if pick(3) == 0 and kind != "LSTM":
            self.attrs["clip"] = 0.4
        if kind == "GRU" and pick(2):
            self.attrs["linear_before_reset"] = 1
        if kind == "LSTM" and pick(4) == 0:
            self.attrs["input_forget"] = 1
        if pick(3) == 0:
            names = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign"]
            some = [names[pick(len(names))] for _ in range(ACTIVATIONS[kind])]
            self.attrs["activations"] = some * self.sides
        self.lengths, self.initial, self.bias = pick(2) == 1, pick(2) == 1, pick(4) > 0
        self.peepholes = kind == "LSTM" and pick(3) == 0 and "input_forget" not in self.attrs

    def numbers(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype(np.float32)

    def model(self, layout: int, steps, batch):
        """The model; `steps` and `batch` are numbers or names."""
        states = 2 if self.kind == "LSTM" else 1
        gates, s, h = GATES[self.kind], self.sides, self.hidden
        x = (batch, steps, self.features) if layout else (steps, batch, self.features)
        state = (batch, s, h) if layout else (s, batch, h)
        inputs = [("x", F, x)]
        names = ["x", "w", "r", "b" if self.bias else ""]
        names += ["lengths" if self.lengths else ""]
        if self.lengths:
            inputs.append(("lengths", TensorProto.INT32, (batch,)))
        for i in range(states):
            names.append(f"s{i}" if self.initial else "")
            if self.initial:
                inputs.append((f"s{i}", F, state))
        names.append("p" if self.peepholes else "")
        while names[-1] == "":
            names.pop()
        rng, self.rng = self.rng, np.random.default_rng(7)
        constants = [("w", self.numbers(s, gates * h, self.features))]
        constants += [("r", self.numbers(s, gates * h, h))]
        constants += [("b", self.numbers(s, 2 * gates * h))] if self.bias else []
        constants += [("p", self.numbers(s, 3 * h))] if self.peepholes else []
        self.rng = rng
        outputs = ["y", "last", "cell"][: 1 + states]
        attrs = {**self.attrs, **({"layout": 1} if layout else {})}
        node = helper.make_node(self.kind, names, outputs, **attrs)
        return model_of([node], inputs, outputs, constants)

    def feeds(self, steps):
        out = {"x": self.numbers(steps, self.batch, self.features)}
        if self.lengths:
            some = self.rng.integers(1, steps + 1, self.batch).astype(np.int32)
            some[self.rng.integers(self.batch)] = steps
            out["lengths"] = some
        if self.initial:
            for i in range(2 if self.kind == "LSTM" else 1):
                out[f"s{i}"] = self.numbers(self.sides, self.batch, self.hidden)
        return out

    def turned(self, feeds):
        """The same for the layout with the batch first, which ONNX Runtime does not have."""
        return {k: v if v.ndim == 1 else np.swapaxes(v, 0, 1) for k, v in feeds.items()}

    def results(self, want):
        return [np.transpose(want[0], (2, 0, 1, 3)), *(np.swapaxes(w, 0, 1) for w in want[1:])]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("seed", range(7))
def test_cells_of_fixed_and_open_lengths(kind, seed):
    cell = Cell(seed, kind)
    layout = int(cell.batch_first)
    fixed = int(cell.rng.integers(1, 9))
    oracle = cell.model(0, "n", "b")
    for steps, batch, lengths in [("n", "b", (1, 7)), (fixed, cell.batch, (fixed,))]:
        exe = build(cell.model(layout, steps, batch))
        for n in lengths:
            feeds = cell.feeds(n)
            want = oracles.run_onnxruntime(oracle, feeds)
            if layout:
                feeds, want = cell.turned(feeds), cell.results(want)
            agree(run(exe, feeds), want)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_the_evaluator_agrees(kind):
    cell = Cell(3, kind)
    cell.lengths, cell.batch_first = True, False
    mod, _ = relay.frontend.from_onnx(cell.model(0, "n", cell.batch).SerializeToString())
    feeds = cell.feeds(4)
    agree(
        [np.asarray(v) for v in relay.create_executor("debug", mod).evaluate()(*feeds.values())],
        oracles.run_onnxruntime(cell.model(0, "n", cell.batch), feeds),
    )


def test_an_lstm_clips_what_its_activations_are_applied_to():
    model = lstm("n")
    model.graph.node[0].attribute.append(helper.make_attribute("clip", 0.3))
    w, r = (numpy_helper.to_array(t)[0].astype(np.float64) for t in model.graph.initializer)
    x = np.random.default_rng(4).uniform(-1, 1, (6, 1, 5)).astype(np.float32)
    h = c = np.zeros((1, 8))
    y = []
    for step in x:
        i, o, f, z = np.split(np.clip(step @ w.T + h @ r.T, -0.3, 0.3), 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(z) / (1 + np.exp(-i))
        h = np.tanh(np.clip(c, -0.3, 0.3)) / (1 + np.exp(-o))
        y.append(h)
    agree(run(build(model), {"x": x}), [np.stack(y)[:, None], h[None]])


def lstm(steps, hidden=8):
    rng = np.random.default_rng(1)
    constants = [
        ("w", rng.uniform(-0.4, 0.4, (1, 4 * hidden, 5)).astype(np.float32)),
        ("r", rng.uniform(-0.4, 0.4, (1, 4 * hidden, hidden)).astype(np.float32)),
    ]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "last"], hidden_size=hidden)
    return model_of([node], [("x", F, (steps, 1, 5))], ["y", "last"], constants)


def test_code_and_compile_time_do_not_grow_with_the_length(tmp_path):
    lines, times = [], []
    for steps in (100, 1000, 100_000):
        model = lstm(steps)
        begin = time.perf_counter()
        exe = build(model)
        times.append(time.perf_counter() - begin)
        path = tmp_path / f"{steps}.onnx"
        onnx.save(model, path)
        lines.append(len(relay_command("show", path, "--bytecode", "-q").stdout.splitlines()))
        if steps == 1000:
            x = np.random.default_rng(2).uniform(-1, 1, (steps, 1, 5)).astype(np.float32)
            agree(run(exe, {"x": x}), oracles.run_onnxruntime(model, {"x": x}), 1e-4)
    assert max(lines) - min(lines) <= 4 and max(lines) < 60, lines
    assert times[2] < 5 * times[0] + 1, times


def test_a_few_steps_are_written_out():
    def functions(steps):
        mod, _ = relay.frontend.from_onnx(lstm(steps, hidden=64).SerializeToString())
        return relay.build(mod).function_names

    assert functions(2) == ["main"]
    assert functions(50) == ["main", "main_loop"]


def test_weights_that_are_parameters_are_packed_once_they_are_bound():
    model = lstm(50, hidden=16)
    x = np.random.default_rng(3).uniform(-1, 1, (50, 1, 5)).astype(np.float32)
    kernels = []
    for freeze in (True, False):
        mod, params = relay.frontend.from_onnx(model.SerializeToString(), freeze_params=freeze)
        assert len(params) == (0 if freeze else 2)
        exe = relay.build(mod, params=params)
        agree(run(exe, {"x": x}), oracles.run_onnxruntime(model, {"x": x}))
        kernels.append(exe.metadata.count("contrib_dense_pack"))
    assert kernels[0] == kernels[1] > 0


def test_time_is_linear_in_the_length():
    exe = build(lstm("n", hidden=64))
    x = np.zeros((20_000, 1, 5), np.float32)
    begin = time.perf_counter()
    exe(x)
    # To copy 20,000 lines of 64 numbers, 5 MB, at each step takes ten seconds and more.
    assert time.perf_counter() - begin < 3


def test_a_sequence_of_no_steps():
    exe = build(lstm("n"))
    y, last = run(exe, {"x": np.zeros((0, 1, 5), np.float32)})
    assert y.shape == (0, 1, 1, 8)
    np.testing.assert_array_equal(last, np.zeros((1, 1, 8)))


# ---- Scan and Loop ------------------------------------------------------------------------------


def body(nodes, inputs, outputs, constants=()):
    return helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(v, n) for n, v in constants],
    )


def scan(steps_x, steps_y, **attrs):
    """Sums of products with running states: two scanned inputs, a state, two results."""
    step = body(
        [
            helper.make_node("Mul", ["a", "b"], ["ab"]),
            helper.make_node("MatMul", ["ab", "weight"], ["abw"]),  # of the graph around
            helper.make_node("Add", ["s", "abw"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["next"]),
            helper.make_node("Identity", ["next"], ["first"]),
            helper.make_node("ReduceSum", ["ab"], ["second"], keepdims=0),
        ],
        [("s", F, (3,)), ("a", F, (3,)), ("b", F, (3,))],
        [("next", F, (3,)), ("first", F, (3,)), ("second", F, ())],
    )
    nodes = [
        helper.make_node("Exp", ["w"], ["weight"]),
        helper.make_node(
            "Scan", ["s0", "x", "y"], ["s", "u", "v"], num_scan_inputs=2, body=step, **attrs
        ),
    ]
    x, y = (3, steps_x), (steps_y, 3)
    inputs = [("w", F, (3, 3)), ("s0", F, (3,)), ("x", F, x), ("y", F, y)]
    return model_of(nodes, inputs, ["s", "u", "v"])


SCANS = [
    {"scan_input_axes": [1, 0]},
    {"scan_input_axes": [1, 0], "scan_input_directions": [1, 0], "scan_output_directions": [0, 1]},
    {"scan_input_axes": [1, 0], "scan_output_axes": [1, 0], "scan_output_directions": [1, 0]},
]


@pytest.mark.parametrize("attrs", SCANS)
def test_scans_of_fixed_and_open_lengths(attrs):
    rng = np.random.default_rng(5)
    for steps, lengths in (("n", (1, 6)), (4, (4,)), (400, (400,))):
        exe = build(scan(steps, steps, **attrs))
        for n in lengths:
            shapes = {"w": (3, 3), "s0": (3,), "x": (3, n), "y": (n, 3)}
            feeds = {k: rng.uniform(-1, 1, s).astype(np.float32) for k, s in shapes.items()}
            agree(run(exe, feeds), oracles.run_onnxruntime(scan(n, n, **attrs), feeds))


def test_scanned_inputs_must_be_of_one_length():
    exe = build(scan("n", "m", scan_input_axes=[1, 0]))
    shapes = {"w": (3, 3), "s0": (3,), "x": (3, 4), "y": (5, 3)}
    with pytest.raises(relay.RunError, match="must equal"):
        exe(*(np.ones(s, np.float32) for s in shapes.values()))


def loop(limit, keep_going=True):
    """x grows by its square; each step is stacked. The condition holds while the sum is below 20."""
    condition = ["cond", "go"] if keep_going else ["small", "go"]
    step = body(
        [
            helper.make_node("Mul", ["v", "v"], ["square"]),
            helper.make_node("Add", ["v", "square"], ["next"]),
            helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "bound"], ["small"]),
            helper.make_node("Identity", condition[:1], condition[1:]),
            helper.make_node("Cast", ["i"], ["number"], to=F),
            helper.make_node("Add", ["square", "number"], ["line"]),
        ],
        [("i", I64, ()), ("cond", TensorProto.BOOL, ()), ("v", F, (2,))],
        [("go", TensorProto.BOOL, ()), ("next", F, (2,)), ("line", F, (2,))],
        [("bound", np.float32(20))],
    )
    constants, inputs, nodes = [], [("x", F, (2,))], []
    if limit == "size":  # as many as another input is long
        inputs.append(("z", F, ("n",)))
        nodes = [
            helper.make_node("Shape", ["z"], ["zs"]),
            helper.make_node("Squeeze", ["zs"], ["m"]),
        ]
    elif limit == "data":
        inputs.append(("m", I64, ()))
    else:
        constants.append(("m", np.int64(limit)))
    nodes.append(helper.make_node("Loop", ["m", "", "x"], ["last", "lines"], body=step))
    return model_of(nodes, inputs, ["last", "lines"], constants)


@pytest.mark.parametrize("keep_going", [True, False], ids=["counted", "conditional"])
@pytest.mark.parametrize("limit", [0, 3, 70, "size", "data"])
def test_loops_that_stack(limit, keep_going):
    model = loop(limit, keep_going)
    exe = build(model)
    for n in (0, 1, 5) if isinstance(limit, str) else (limit,):
        feeds = {"x": np.array([0.05, -0.2], np.float32)}
        if limit == "size":
            feeds["z"] = np.zeros(n, np.float32)
        if limit == "data":
            feeds["m"] = np.array(n)
        agree(run(exe, feeds), oracles.run_onnxruntime(model, feeds))


def test_a_loop_that_needs_its_steps_number_is_written_out():
    # A slice that grows with the step: its size is another at each.
    step = body(
        [
            helper.make_node("Add", ["i", "one"], ["end"]),
            helper.make_node("Unsqueeze", ["end", "axis"], ["ends"]),
            helper.make_node("Slice", ["x", "axis", "ends"], ["part"]),
            helper.make_node("ReduceSum", ["part"], ["sum"], keepdims=0),
            helper.make_node("Add", ["v", "sum"], ["next"]),
        ],
        [("i", I64, ()), ("cond", TensorProto.BOOL, ()), ("v", F, ())],
        [("cond", TensorProto.BOOL, ()), ("next", F, ())],
        [("one", np.int64(1)), ("axis", np.array([0]))],
    )
    nodes = [helper.make_node("Loop", ["m", "", "s"], ["last"], body=step)]
    inputs = [("x", F, (4,)), ("s", F, ())]
    model = model_of(nodes, inputs, ["last"], [("m", np.int64(4))])
    feeds = {"x": np.arange(4, dtype=np.float32), "s": np.array(1, np.float32)}
    agree(run(build(model), feeds), oracles.run_onnxruntime(model, feeds))


@pytest.mark.parametrize("op", ["forward", "backward"])
def test_what_a_loop_replaces_line_by_line_stays_as_it_was_outside(op):
    # The tensor that is written over is read again afterwards: no step may write into it.
    at = "%i" if op == "forward" else "subtract(3i64, %i)"
    text = f"""
#[version = "0.0.5"]
def @fill(%i: int64, %x: Tensor[(4, 2), float32]) -> Tensor[(4, 2), float32] {{
  if (less(%i, 4i64)) {{
    @fill(add(%i, 1i64), update_slice(%x, full(cast(%i, dtype="float32"), shape=[1, 2]), {at}))
  }} else {{ %x }}
}}
def @main(%x: Tensor[(4, 2), float32], %n: int64) {{
  let %y = exp(%x);
  let %filled = @fill(%n, %y);
  (%filled, %y, %x)
}}
"""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    kept = x.copy()
    for level in (0, 3):
        exe = relay.build(relay.parse(text), opt_level=level)
        for start in (0, 2, 4):
            filled, y, again = exe(x, np.int64(start))
            want = np.exp(kept)
            for i in range(start, 4):
                want[i if op == "forward" else 3 - i] = i
            np.testing.assert_allclose(filled, want, rtol=1e-6)
            np.testing.assert_allclose(y, np.exp(kept), rtol=1e-6)
            np.testing.assert_array_equal(again, kept)
            np.testing.assert_array_equal(x, kept)
