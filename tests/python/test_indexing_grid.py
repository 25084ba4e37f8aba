"""Every operator that takes places, at and beyond the ends, against NumPy.

The grids are complete, so many cases are one program: one compilation and one run for all of them.
What lies outside has one of three outcomes, and each is stated: it is cut off (slices), it is moved
to the border (take, gather), or it is an error (constants in a model, everything that scatters).
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import op_programs
import oracles
import pytest
from onnx import TensorProto, helper, numpy_helper

import relay

FAR = np.iinfo(np.int64).max


def slice_cases(n):
    bounds = [*range(-2 * n, 2 * n + 1)]
    steps = [s for s in bounds if s != 0]
    far = [(s, e, t) for s in (-FAR - 1, FAR) for e in (-FAR - 1, FAR) for t in (-1, 1, -FAR, FAR)]
    return [*itertools.product(bounds, bounds, steps), *far]


def slices(n):
    """Start, end, step and what Python's slices take of n elements."""
    x = np.arange(n, dtype="float32") + 1
    return x, [(c, x[c[0] : c[1] : c[2]]) for c in slice_cases(n)]


def build_and_run(text, *inputs):
    """Returns what the evaluator and the compiled program give."""
    evaluated, compiled = op_programs.run_both(text, inputs)
    return {"evaluator": evaluated, "compiled": compiled}


def in_one(parts):
    """The body of a program that gives all of the (rank one) parts, one behind the other."""
    groups = [parts[i : i + 200] for i in range(0, len(parts), 200)]
    return "(" + ", ".join(f"concatenate(({', '.join(g)},))" for g in groups) + ",)"


LARGER = pytest.param(4, marks=pytest.mark.slow)


@pytest.mark.parametrize("n", [0, 1, 2, LARGER])
@pytest.mark.parametrize("open_size", [False, True])
def test_strided_slice(n, open_size):
    x, cases = slices(n)
    if open_size:
        # The bounds are arguments, and so is the size.
        text = (
            f"{op_programs.VERSION}def @main(%x: Tensor[(?,), float32], %b: Tensor[(1,), int64], "
            "%e: Tensor[(1,), int64], %s: Tensor[(1,), int64]) "
            "{ dyn.strided_slice(%x, %b, %e, %s) }"
        )
        mod = relay.parse(text)
        runs = {
            "evaluator": relay.create_executor("debug", mod).evaluate(),
            "compiled": relay.build(mod, num_threads=1),
        }
        for who, run in runs.items():
            for bounds, want in cases:
                got = oracles.as_arrays(run(x, *(np.array([b]) for b in bounds)))[0]
                np.testing.assert_array_equal(got, want, err_msg=f"{who}: {bounds} of {n}")
        return
    parts = [f"strided_slice(%x, begin=[{b}], end=[{e}], strides=[{s}])" for (b, e, s), _ in cases
             if s != -FAR - 1]  # fmt: skip
    text = f"{op_programs.VERSION}def @main(%x: Tensor[({n},), float32]) {{ {in_one(parts)} }}"
    want = np.concatenate([w for _, w in cases])
    for who, got in build_and_run(text, x).items():
        np.testing.assert_array_equal(np.concatenate(got), want, err_msg=f"{who}, size {n}")


def slice_model(n, cases, dynamic):
    """ONNX Slices of one vector, joined; with `dynamic` its size is a name."""
    nodes, names, constants = [], [], []
    numbers = sorted({v for case in cases for v in case})
    for v in numbers:
        constants.append(numpy_helper.from_array(np.array([v], "int64"), f"c{v}"))
    constants.append(numpy_helper.from_array(np.array([0], "int64"), "axes"))
    for i, (b, e, s) in enumerate(cases):
        names.append(f"y{i}")
        nodes.append(
            helper.make_node("Slice", ["x", f"c{b}", f"c{e}", "axes", f"c{s}"], names[-1:])
        )
    nodes.append(helper.make_node("Concat", names, ["y"], axis=0))
    float32 = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "slices",
        [helper.make_tensor_value_info("x", float32, ["n" if dynamic else n])],
        [helper.make_tensor_value_info("y", float32, [None])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def is_one_beyond(case, n):
    begin, end, step = case
    return step == 1 and begin >= n and end == begin + 1


@pytest.mark.parametrize("case", [(0, 1, 1), (3, 4, 1), (6, 7, 1)])
def test_one_element_of_an_open_dimension_must_be_there(case):
    model = slice_model(0, [case], True)
    mod, params = relay.frontend.from_onnx(model)
    runs = {
        "evaluator": relay.create_executor("debug", mod).evaluate(),
        "compiled": relay.build(mod, params=params, num_threads=1),
    }
    for who, run in runs.items():
        for n in range(9):
            x = np.arange(n, dtype="float32")
            if n > case[0]:
                np.testing.assert_array_equal(
                    oracles.as_arrays(run(x))[0], x[case[0] : case[1]], who
                )
                continue
            with pytest.raises(relay.RelayError):
                run(x)


def onnx_slice(x, begin, end, step):
    """As ONNX defines it: a start before the first element is the first one, also going down."""
    if step < 0 and len(x) > 0 and begin is not None and begin < -len(x):
        begin = 0
    return x[begin:end:step]


@pytest.mark.parametrize("n", [0, 1, 3, LARGER])
@pytest.mark.parametrize("dynamic", [False, True])
def test_onnx_slice(n, dynamic):
    x, cases = slices(n)
    cases = [(c, onnx_slice(x, *c)) for c, _ in cases]
    if dynamic:
        # One element of an open dimension is kept as a dimension of 1: it must be there.
        kept = [(c, w) for c, w in cases if not is_one_beyond(c, n)]
        # A joined size is a term for each case: some of them do.
        cases = kept[:: 1 + len(kept) // 100]
    size = 150 if dynamic else 1000
    for i in range(0, len(cases), size):
        some = cases[i : i + size]
        mod, params = relay.frontend.from_onnx(slice_model(n, [c for c, _ in some], dynamic))
        want = np.concatenate([w for _, w in some])
        evaluated = relay.create_executor("debug", mod).evaluate()(x, *params.values())
        compiled = relay.build(mod, params=params, num_threads=1)(x)
        for who, got in (("evaluator", evaluated), ("compiled", compiled)):
            np.testing.assert_array_equal(
                oracles.as_arrays(got)[0], want, err_msg=f"{who}, size {n}"
            )


def test_a_start_before_the_first_element_and_a_negative_step_give_nothing():
    x = np.arange(8, dtype="float32")
    mod, params = relay.frontend.from_onnx(slice_model(8, [(-9, 1, -1), (3, -9, -1)], False))
    got = oracles.as_arrays(relay.build(mod, params=params)(x))[0]
    np.testing.assert_array_equal(got, [3, 2, 1, 0])


# ---- Places that are data ------------------------------------------------------------------------

DATA = np.arange(12, dtype="float32").reshape(4, 3)
PLACES = np.arange(-9, 10)


def moved(places, size):
    """Negative places count from the end; then what is outside goes to the border."""
    return np.clip(np.where(places < 0, places + size, places), 0, size - 1)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_take(dtype):
    places = PLACES.astype(dtype)
    want = {
        "clip": DATA[np.clip(places, 0, 3)],
        "wrap": DATA[places % 4],
        "fast": DATA[moved(places, 4)],
    }
    for mode, rows in want.items():
        types = [op_programs.tensor_type(a.shape, str(a.dtype)) for a in (DATA, places)]
        text = op_programs.call_text("take", types, f'axis=0, mode="{mode}"')
        for who, got in build_and_run(text, DATA, places).items():
            np.testing.assert_array_equal(got[0], rows, err_msg=f"{who}, {mode}")
        flat = op_programs.call_text("take", types, f'mode="{mode}"')
        picked = {"clip": np.clip(places, 0, 11), "wrap": places % 12, "fast": moved(places, 12)}
        for who, got in build_and_run(flat, DATA, places).items():
            np.testing.assert_array_equal(got[0], DATA.ravel()[picked[mode]], err_msg=who)


def test_gather_gather_nd_and_adv_index():
    grid = np.array(list(itertools.product(PLACES, PLACES)), "int64")
    want = DATA[moved(grid[:, 0], 4), moved(grid[:, 1], 3)]
    types = [op_programs.tensor_type(a.shape, str(a.dtype)) for a in (DATA, grid.T)]
    for who, got in build_and_run(op_programs.call_text("gather_nd", types), DATA, grid.T).items():
        np.testing.assert_array_equal(got[0], want, err_msg=who)
    rows, columns = grid[:, 0].copy(), grid[:, 1].copy()
    parts = ", ".join(op_programs.tensor_type(a.shape, str(a.dtype)) for a in (DATA, rows, columns))
    text = op_programs.call_text("adv_index", [f"({parts})"])
    for who, got in build_and_run(text, DATA, rows, columns).items():
        np.testing.assert_array_equal(got[0], want, err_msg=who)
    along = np.stack([PLACES] * 3, axis=1)
    types = [op_programs.tensor_type(a.shape, str(a.dtype)) for a in (DATA, along)]
    want = np.take_along_axis(DATA, moved(along, 4), 0)
    for who, got in build_and_run(
        op_programs.call_text("gather", types, "axis=0"), DATA, along
    ).items():
        np.testing.assert_array_equal(got[0], want, err_msg=who)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_checked_gather(axis, dtype):
    # Lines of whole vectors and a rest; indices from both ends, and one outside in each part.
    rng = np.random.default_rng(axis)
    data = (rng.integers(0, 100, (5, 40)) if dtype != "bool" else rng.random((5, 40)) < 0.5).astype(
        dtype
    )
    size = data.shape[axis]
    places = rng.integers(-size, size, (3, 39)).astype("int64")
    types = [op_programs.tensor_type(a.shape, str(a.dtype)) for a in (data, places)]
    text = op_programs.call_text("gather", types, f"axis={axis}, checked=True")
    part = data if axis == 0 else data[:3]
    want = np.take_along_axis(part[:, :39] if axis == 0 else part, places % size, axis)
    for who, got in build_and_run(text, data, places).items():
        np.testing.assert_array_equal(got[0], want, err_msg=who)
    mod = relay.parse(text)
    runs = {
        "evaluator": relay.create_executor("debug", mod).evaluate(),
        "compiled": relay.build(mod, num_threads=1),
    }
    for who, run in runs.items():
        for at, outside in itertools.product([(0, 0), (1, 20), (2, 38)], [size, -size - 1, FAR]):
            wrong = places.copy()
            wrong[at] = outside
            with pytest.raises(relay.RelayError, match="E0605"):
                pytest.fail(f"{who} gave {run(data, wrong)} for {outside} at {at}")


def test_one_hot_and_reverse_sequence():
    places = PLACES.astype("int64")
    types = [op_programs.tensor_type(places.shape, "int64"), "float32", "float32"]
    want = (places[:, None] == np.arange(4)).astype("float32")
    one, zero = np.float32(1), np.float32(0)
    for who, got in build_and_run(
        op_programs.call_text("one_hot", types, "depth=4"), places, one, zero
    ).items():
        np.testing.assert_array_equal(got[0], want, err_msg=who)
    data = np.arange(len(places) * 4, dtype="float32").reshape(-1, 4)
    types = [op_programs.tensor_type(data.shape, "float32"), types[0]]
    lengths = np.clip(places, 0, 4)
    want = np.stack([np.r_[row[:k][::-1], row[k:]] for row, k in zip(data, lengths, strict=True)])
    for who, got in build_and_run(
        op_programs.call_text("reverse_sequence", types), data, places
    ).items():
        np.testing.assert_array_equal(got[0], want, err_msg=who)


@pytest.mark.parametrize("op", ["scatter_elements", "scatter_nd"])
def test_scattering_outside_is_an_error(op):
    data, update = np.zeros(4, "float32"), np.ones(1, "float32")
    shape = (1,) if op == "scatter_elements" else (1, 1)
    types = [
        "Tensor[(4,), float32]",
        op_programs.tensor_type(shape, "int64"),
        "Tensor[(1,), float32]",
    ]
    mod = relay.parse(op_programs.call_text(op, types))
    runs = {
        "evaluator": relay.create_executor("debug", mod).evaluate(),
        "compiled": relay.build(mod, num_threads=1),
    }
    for run in runs.values():
        for place in PLACES:
            index = np.full(shape, place)
            if -4 <= place < 4:
                want = data.copy()
                want[place] = 1
                np.testing.assert_array_equal(oracles.as_arrays(run(data, index, update))[0], want)
                continue
            with pytest.raises(relay.RelayError, match="E0605"):
                run(data, index, update)


# ---- The same in models --------------------------------------------------------------------------


def index_model(op, indices, updates=None, **attributes):
    """A model of one operator whose indices are an input, or a constant when they are given."""
    inputs = {"data": TensorProto.FLOAT, "indices": TensorProto.INT64}
    shapes = {"data": DATA.shape, "indices": indices.shape}
    if updates is not None:
        inputs["updates"], shapes["updates"] = TensorProto.FLOAT, updates.shape
    node = helper.make_node(op, [*inputs], ["y"], **attributes)
    return lambda constant: helper.make_model(
        helper.make_graph(
            [node],
            op,
            [helper.make_tensor_value_info(k, t, shapes[k]) for k, t in inputs.items()
             if not (constant and k == "indices")],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(indices, "indices")] if constant else [],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )  # fmt: skip


CASES = {
    "Gather": (np.array([-4, 3, -1], "int64"), None, {"axis": 0}),
    "GatherElements": (np.array([[-4, 3, -1]], "int64"), None, {"axis": 0}),
    "GatherND": (np.array([[-4, -3], [3, 2]], "int64"), None, {}),
    "ScatterElements": (np.array([[-4, 3, -1]], "int64"), np.ones((1, 3), "float32"), {"axis": 0}),
    "ScatterND": (np.array([[-4, -3], [3, 2]], "int64"), np.ones(2, "float32"), {}),
}


@pytest.mark.parametrize("op", CASES)
def test_indices_of_models(op):
    indices, updates, attributes = CASES[op]
    for beyond in (0, -1, 5, -5):
        # The first index runs over the ends: -4 - 5, ..., -4 + 8.
        places = indices.copy()
        places.flat[0] = places.flat[0] + beyond if beyond <= 0 else 3 + beyond
        inside = beyond == 0
        make = index_model(op, places, updates, **attributes)
        rest = {"data": DATA} | ({} if updates is None else {"updates": updates})
        want = oracles.run_onnxruntime(make(False), rest | {"indices": places}) if inside else None
        for constant in (False, True):
            model, arguments = make(constant), rest | ({} if constant else {"indices": places})

            def run(model=model, arguments=arguments):
                mod, params = relay.frontend.from_onnx(model)
                return oracles.as_arrays(relay.build(mod, params=params)(**arguments))

            if inside:
                oracles.assert_agree(run(), want, op)
            else:
                with pytest.raises(relay.RelayError, match="E0504" if constant else "E0605"):
                    run()


# ---- Borders and parts ---------------------------------------------------------------------------


def outcomes(op, x, attrs, open_size, *more):
    """What evaluator and compiled program give, or the code of the error that they end with."""
    types = (
        ["Tensor[(?,), float32]"] if open_size else [op_programs.tensor_type(x.shape, "float32")]
    )
    text = op_programs.call_text(op, types + ["float32"] * len(more), attrs)
    for run in ("evaluator", "compiled"):
        try:
            mod = relay.parse(text)
            call = (
                relay.create_executor("debug", mod).evaluate()
                if run == "evaluator"
                else relay.build(mod, num_threads=1)
            )
            yield run, oracles.as_arrays(call(x, *more))
        except relay.RelayError as error:
            yield run, re.search(r"error\[(E\d{4})\]", str(error))[1]


def assert_gives(got, want, message):
    """The arrays, and no code of an error."""
    assert isinstance(got, list) and len(got) == len(want), f"{message}: {got}"
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b, message)
        assert a.shape == b.shape, message


def bordered(x, before, after, mode, fill=9):
    """NumPy's border behind what negative widths cut off; None where there is not enough."""
    if max(-before, 0) + max(-after, 0) > len(x):
        return None
    rest = x[max(-before, 0) : len(x) - max(-after, 0)]
    widths = (max(before, 0), max(after, 0))
    need = {"edge": 1, "wrap": 1, "reflect": max(widths) + 1, "symmetric": max(widths)}
    if max(widths) > 0 and len(rest) < need.get(mode, 0):
        return None
    return np.pad(rest, widths, mode, **({"constant_values": fill} if mode == "constant" else {}))


WIDTHS = {
    0: [(0, 0), (1, 0), (0, 2), (-1, 0), (-1, 1)],
    1: [(1, 0), (0, 2), (-1, 0), (-1, -1), (-2, 0), (-2, 2)],
    3: [(2, 2), (3, 0), (0, 4), (-3, 0), (-4, 0), (-4, 4), (-1, -1), (-2, -2)],
}


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("n", WIDTHS)
def test_borders(n, mode):
    x = np.arange(n, dtype="float32") + 1
    for before, after in WIDTHS[n]:
        want = bordered(x, before, after, mode)
        width = f"pad_width=[[{before}, {after}]]"
        for open_size in (False, True):
            if mode == "symmetric":
                got = outcomes("nn.mirror_pad", x, f'{width}, mode="SYMMETRIC"', open_size)
            else:
                attrs = f'{width}, pad_mode="{mode}"'
                got = outcomes("nn.pad", x, attrs, open_size, np.float32(9))
            for who, result in got:
                message = f"{who}: {width} of {n}, open: {open_size}"
                if want is None:
                    assert result in ("E0203", "E0607"), message
                else:
                    assert_gives(result, [want], message)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_splits(n):
    x = np.arange(n, dtype="float32")
    for parts in ([], [0], [n], [n + 1], [n, n], [0, n], [2, 1], [-1], [1, 3], 1, 2, 3, 0, -1):
        starts = parts if isinstance(parts, list) else None
        fits = (
            parts > 0 and n % parts == 0
            if starts is None
            else starts == sorted(starts) and all(0 <= s <= n for s in starts)
        )
        for open_size in (False, True):
            attrs = f"indices_or_sections={parts}"
            for who, result in outcomes("split", x, attrs, open_size):
                message = f"{who}: {attrs} of {n}, open: {open_size}"
                if not fits:
                    assert result in ("E0801", "E0203", "E0607"), message
                    continue
                assert_gives(result, np.split(x, parts), message)


@pytest.mark.parametrize("n", [2, 3])
def test_a_turn_of_any_length(n):
    """Turned by k: the part behind the cut, then the part before it."""
    x = np.arange(n, dtype="float32")
    for shift in range(-2 * n - 1, 2 * n + 2):
        cut = -shift % n
        text = (
            f"{op_programs.VERSION}def @main(%x: Tensor[({n},), float32]) {{\n"
            f"  %0 = split(%x, indices_or_sections=[{cut}]);\n  concatenate((%0.1, %0.0))\n}}\n"
        )
        for who, got in build_and_run(text, x).items():
            np.testing.assert_array_equal(got[0], np.roll(x, shift), f"{who}, {shift}")


def model_of_one(op, x, outputs, constants, open_size, **attributes):
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, ["x", *constants], names, **attributes)
    shape = ["n"] if open_size else x.shape
    return helper.make_model(
        helper.make_graph(
            [node],
            op,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
            [numpy_helper.from_array(np.array(v, "int64"), k) for k, v in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=9,
    )


def outcome_of_model(model, x):
    try:
        mod, params = relay.frontend.from_onnx(model)
        return oracles.as_arrays(relay.build(mod, params=params, num_threads=1)(x))
    except relay.RelayError as error:
        return re.search(r"error\[(E\d{4})\]", str(error))[1]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("n", WIDTHS)
def test_borders_of_models(n, mode):
    x = np.arange(n, dtype="float32") + 1
    for pads in WIDTHS[n]:
        want = bordered(x, *pads, mode, 0)
        for open_size in (False, True):
            got = outcome_of_model(model_of_one("Pad", x, 1, {"p": pads}, open_size, mode=mode), x)
            message = f"{pads} of {n}, open: {open_size}"
            if want is None:
                # An open size is found by the run, in a check or in the kernel that reads the pads.
                assert got in ("E0203", "E0504", "E0605", "E0607"), message
            else:
                assert_gives(got, [want], message)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_parts_of_models(n):
    x = np.arange(n, dtype="float32")
    for sizes in ([n], [0, n], [n, 0], [n + 1], [n, 1], [-1, n + 1], [0, 0], [n // 2, n - n // 2]):
        fits = min(sizes) >= 0 and sum(sizes) == n
        for open_size in (False, True):
            model = model_of_one("Split", x, len(sizes), {"sizes": sizes}, open_size)
            got = outcome_of_model(model, x)
            message = f"{sizes} of {n}, open: {open_size}"
            if not fits:
                assert got in ("E0203", "E0504", "E0607"), message
                continue
            assert_gives(got, np.split(x, np.cumsum(sizes)[:-1]), message)
    for parts in (1, 2, 3, 5):
        got = outcome_of_model(model_of_one("Split", x, parts, {}, False, num_outputs=parts), x)
        each = -(-n // parts)
        want = [x[i * each : (i + 1) * each] for i in range(parts)]
        assert_gives(got, want, f"{parts} parts of {n}")


@pytest.mark.parametrize("opset", [11, 13])
def test_the_greatest_of_an_empty_axis(opset):
    for shape, axis in itertools.product([(0,), (2, 0), (0, 3), (2, 0, 3)], [0, 1, -1]):
        if axis >= len(shape):
            continue
        x = np.zeros(shape, "float32")
        graph = helper.make_graph(
            [helper.make_node("Hardmax", ["x"], ["y"], axis=axis)],
            "hardmax",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )
        got = outcome_of_model(model, x)
        want = oracles.run_onnxruntime(model, {"x": x})
        assert_gives(got, want, f"{shape}, axis {axis}")
