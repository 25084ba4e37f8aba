"""What gives the numbers that it gave in the first Relay, where others would be as good."""

from __future__ import annotations

import numpy as np
import pytest

import relay


def run(make, *arrays):
    """An operator's result for arrays, compiled and evaluated."""
    params = [relay.var(f"p{i}", shape=a.shape, dtype=a.dtype.name) for i, a in enumerate(arrays)]
    function = relay.Function(params, make(*params))
    found = relay.build(function)(*arrays)
    evaluated = relay.create_executor("debug", relay.IRModule.from_expr(function)).evaluate()(
        *arrays
    )
    for a, b in zip(np.atleast_1d(found), np.atleast_1d(evaluated), strict=True):
        np.testing.assert_array_equal(a, b)
    return found


LINE = np.arange(4, dtype="float32")
NEAREST = {
    "asymmetric": [0, 0, 1, 1, 2, 2, 3, 3],
    "half_pixel": [0, 0, 0, 1, 1, 2, 2, 3],
    "align_corners": [0, 0, 1, 1, 2, 2, 3, 3],
}


@pytest.mark.parametrize("mode", NEAREST)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_nearest_neighbour_is_the_one_below(mode, axes):
    resize = getattr(relay.image, f"resize{axes}d")
    data = np.broadcast_to(LINE, (1, 1, *[2] * (axes - 1), 4)).copy()
    size = [2] * (axes - 1) + [8]
    wanted = np.broadcast_to(np.float32(NEAREST[mode]), (1, 1, *size))
    for rounding in ({}, {"rounding_method": ""}):
        made = run(
            lambda x, r=rounding: resize(
                x, size, method="nearest_neighbor", coordinate_transformation_mode=mode, **r
            ),
            data,
        )
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("mode", NEAREST)
def test_upsampling_of_volumes(mode):
    data = np.broadcast_to(LINE, (1, 1, 2, 2, 4)).copy()
    made = run(
        lambda x: relay.nn.upsampling3d(x, 1, 1, 2, coordinate_transformation_mode=mode), data
    )
    np.testing.assert_array_equal(made[0, 0, 0, 0], NEAREST[mode])


def test_defaults_that_say_nothing_do_not_say_something_else():
    """What is left out of a call is what the signature says, also where that is an empty string."""
    for name in relay.op.list_op_names():
        row = relay.op.get(name)
        try:
            function = relay._ops.wrappers.make(row, "relay")
        except (AttributeError, KeyError):
            continue
        parameters = function.__signature__.parameters
        for attribute in row.attrs:
            given = parameters.get(attribute.name)
            if given is None or given.default != "" or attribute.default in ("", None):
                continue
            assert relay._ops.wrappers.says_nothing(given, "", attribute.default) is False, name


QUANTISED = {
    "lhs_scale": 0.0156863, "lhs_zero_point": 127, "rhs_scale": 0.0117647, "rhs_zero_point": 85,
    "output_scale": 0.0235294, "output_zero_point": 128,
}  # fmt: skip
LEFT = np.uint8([76, 140, 153, 172, 133, 140, 146, 153, 76, 140, 172, 146])
RIGHT = np.uint8([136, 119, 128, 17, 136, 119, 111, 94, 136, 119, 17, 128])


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        ("add", [120, 154, 167, 124, 158, 154, 154, 150, 120, 154, 124, 163]),
        ("subtract", [68, 120, 123, 192, 106, 120, 128, 140, 68, 120, 192, 119]),
    ],
)
def test_quantised_sums_round_each_operand(operator, wanted):
    numbers = {
        name: relay.const(value, "int32" if isinstance(value, int) else "float32")
        for name, value in QUANTISED.items()
    }
    made = run(lambda x, y: getattr(relay.qnn.op, operator)(x, y, **numbers), LEFT, RIGHT)
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize(
    ("operator", "scales", "wanted"),
    [
        ("add", (0.125, 0.125, 0.125), [255, 255, 129, 0]),
        ("add", (0.125, 0.125, 0.25), [255, 129, 65, 0]),
        ("add", (0.5, 0.25, 0.125), [255, 255, 255, 0]),
        ("subtract", (0.125, 0.125, 0.25), [0, 0, 0, 0]),
        ("mul", (0.125, 0.125, 0.25), [255, 16, 8, 0]),
        ("mul", (0.5, 0.25, 0.25), [255, 128, 64, 0]),
    ],
)
def test_quantised_operators_saturate_and_round_halves_up(operator, scales, wanted):
    zero = relay.const(0, "int32")
    x, y = np.uint8([255, 1, 1, 0]), np.uint8([255, 255, 128, 0])
    left, right, out = (relay.const(s, "float32") for s in scales)
    made = run(
        lambda a, b: getattr(relay.qnn.op, operator)(a, b, left, zero, right, zero, out, zero), x, y
    )
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("seed", range(6))
def test_rows_without_elements_stand_where_they_belong(seed):
    rng = np.random.default_rng(seed)
    count, rows = int(rng.integers(0, 7)), int(rng.integers(1, 9))
    places = np.sort(rng.integers(0, rows, count))
    indices = np.stack([places, rng.integers(0, 5, count)], 1).astype("int64")
    values = rng.standard_normal(count).astype("float32")
    new_indices, new_values, empty = [], [], []
    for row in range(rows):
        own = [i for i in range(count) if places[i] == row]
        empty.append(not own)
        new_indices += [list(indices[i]) for i in own] or [[row, 0]]
        new_values += [values[i] for i in own] or [-1]
    f = relay.Function(
        [i := relay.var("i", shape=(None, 2), dtype="int64"), v := relay.var("v", shape=(None,))],
        relay.sparse_fill_empty_rows(i, v, relay.const([rows, 5], "int64"), relay.const(-1.0)),
    )
    found = relay.build(f)(indices, values)
    for a, b in zip(found, (new_indices, np.float32(new_values), empty), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_gradient_of_a_tuple_is_that_of_the_sum_of_its_fields():
    x = relay.var("x", shape=(3,))
    y = x + x
    f = relay.Function([x], relay.Tuple([y + y, y]))
    value = np.float32([1, 2, 3])
    for mode in ("higher_order", "first_order"):
        (four, two), (slope,) = relay.build(relay.transform.gradient(f, mode=mode))(value)
        np.testing.assert_array_equal(four, 4 * value)
        np.testing.assert_array_equal(two, 2 * value)
        np.testing.assert_array_equal(slope, [6, 6, 6])
    # The first field's, which the first Relay gave with mode="higher_order".
    one, none = np.ones(3, "float32"), np.zeros(3, "float32")
    _, (slope,) = relay.build(relay.transform.vjp(f))(value, (one, none))
    np.testing.assert_array_equal(slope, [4, 4, 4])


def test_sums_that_are_wanted_in_float32_are_not_rounded_before():
    data, weight = relay.var("data", shape=(1, 3, 8, 8)), relay.var("weight", shape=(5, 3, 3, 3))
    low = [relay.cast(v, "float16") for v in (data, weight)]
    for asked in ("", "float32"):
        conv = relay.nn.conv2d(data, weight, padding=(1, 1), out_dtype=asked)
        found = relay.transform.ToMixedPrecision()(
            relay.IRModule.from_expr(relay.Function([data, weight], relay.nn.softmax(conv)))
        )
        wide = relay.nn.conv2d(*low, padding=(1, 1), out_dtype="float32")
        wanted = relay.IRModule.from_expr(relay.Function([data, weight], relay.nn.softmax(wide)))
        assert found == wanted, found.astext()
