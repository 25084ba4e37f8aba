"""What goes into a program and comes out: exact numbers, lists, options, data types."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import relay

VERSION = '#[version = "0.0.5"]\n'
PARAMETERS = {
    "i": "int32",
    "b": "uint8",
    "f": "float32",
    "h": "float16",
    "t": "bool",
    "v": "Tensor[(3,), int32]",
    "p": "(float32, Tensor[(2,), int64])",
}


def program(parameters: str, result: str, body: str) -> relay.IRModule:
    return relay.parse(f"{VERSION}def @main({parameters}) -> {result} {{ {body} }}\n")


def both(mod: relay.IRModule):
    return [relay.build(mod), relay.create_executor("debug", mod).evaluate()]


@pytest.fixture(scope="module")
def identities():
    mods = {name: program(f"%x: {kind}", kind, "%x") for name, kind in PARAMETERS.items()}
    return {name: both(mod) for name, mod in mods.items()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i", 3),
        ("i", -(2**31)),
        ("b", 255),
        ("f", 2**24),
        ("f", 0.1),
        ("f", 7),
        ("f", float("inf")),
        ("f", float("nan")),
        ("h", 0.5),
        ("t", True),
        ("v", [1, 2, 3]),
        ("v", (1, 2, 3)),
        ("p", (1.5, [1, 2])),
        ("p", [1, np.array([1, 2])]),
    ],
)
def test_exact_values_go_in(identities, name, value):
    for run in identities[name]:
        out = run(value)
        if name == "p":
            assert out[0].dtype == "float32" and out[1].dtype == "int64"
            assert float(out[0]) == value[0] and list(out[1]) == list(value[1])
        else:
            np.testing.assert_allclose(out, value, rtol=1e-6)
            assert PARAMETERS[name].count(str(out.dtype)) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i", None),
        ("i", 3.7),
        ("i", 3.0),
        ("i", True),
        ("i", 2**31),
        ("i", 2**70),
        ("i", "3"),
        ("i", np.int64(3)),
        ("i", [3, None]),
        ("i", np.array(None)),
        ("b", -1),
        ("b", 256),
        ("f", None),
        ("f", 2**24 + 1),
        ("f", 1e39),
        ("f", True),
        ("f", np.float64(1)),
        ("f", 1j),
        ("f", np.datetime64("2020-01-01")),
        ("h", 1e6),
        ("t", 1),
        ("t", 0.0),
        ("v", [1, 2.5, 3]),
        ("v", [[1], [2, 3]]),
        ("v", [1, 2]),
        ("v", "123"),
        ("v", {1, 2, 3}),
        ("v", np.array([1, 2, 3], "int64")),
        ("p", 1.0),
        ("p", (1.0,)),
        ("p", (1.0, [1, 2], 3)),
        ("p", (1.0, [1.5, 2])),
        ("p", (1.0, [1, 2, 3])),
        ("p", ([1.0], None)),
        ("p", None),
    ],
)
def test_what_is_not_exact_is_refused_by_name(identities, name, value):
    for run in identities[name]:
        with pytest.raises(relay.UserError) as caught:
            run(value)
        (problem,) = caught.value.diagnostics
        assert problem.code == "E0603"
        assert "'x'" in problem.message
        assert problem.expected and problem.found


def test_a_value_that_holds_itself():
    run = relay.create_executor("debug", program("%x: (int32,)", "(int32,)", "%x")).evaluate()
    value: list = []
    value.append(value)
    for call in (
        lambda: run(value),
        lambda: relay.Tuple(value),
        lambda: relay.const(value),
        lambda: relay.sum(relay.var("x", shape=(1,)), axis=value),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()


LISTS = """
type Shape { Dot, Box(float32, Tensor[(2,), int32]), Many(List[Shape]) }
def @main(%xs: List[int32], %o: Option[int32], %s: Shape, %rows: List[(bool, List[float32])])
    -> (int32, List[int32], Option[int32], Shape, List[(bool, List[float32])]) {
  (@length(%xs), @rev(%xs), %o, %s, %rows)
}
"""
BOX = relay.ConstructorValue("Box", (1.5, [1, 2]))


@pytest.fixture(scope="module")
def lists():
    return both(relay.parse(VERSION + LISTS))


def test_lists_options_and_data_go_in_and_come_out(lists):
    many = relay.ConstructorValue("Many", [[BOX, relay.ConstructorValue("Dot")]])
    for run in lists:
        count, turned, option, shape, rows = run(
            [1, 2, 3], None, many, [(True, [1, 0.5]), (False, [])]
        )
        assert count == 3 and turned == [3, 2, 1] and option is None
        assert rows == [(True, [1, 0.5]), (False, [])]
        box, dot = shape.fields[0]
        assert shape.constructor == "Many" and dot == relay.ConstructorValue("Dot")
        assert box.constructor == "Box" and box.fields[0] == 1.5 and list(box.fields[1]) == [1, 2]
        assert repr(dot) == "Dot" and repr(shape) == "Many([Box(1.5, [1, 2]), Dot])"
        assert run((), 5, BOX, [])[2] == 5


@pytest.mark.parametrize(
    ("args", "place"),
    [
        (([1, 2.5], None, BOX, []), "'xs', element 1"),
        ((3, None, BOX, []), "'xs'"),
        ((None, None, BOX, []), "'xs'"),
        (([], "a", BOX, []), "'o'"),
        (([], None, 3, []), "'s'"),
        (([], None, relay.ConstructorValue("Ring"), []), "'s'"),
        (([], None, relay.ConstructorValue("Box", [1.5]), []), "'s'"),
        (([], None, relay.ConstructorValue("Box", [1.5, [1, 2, 3]]), []), "'s', field 1"),
        (([], None, BOX, [(True, [1, None])]), "'rows', element 0, field 1, element 1"),
        (([], None, BOX, [(1, [])]), "'rows', element 0, field 0"),
    ],
)
def test_what_does_not_fit_into_data_is_named_with_its_place(lists, args, place):
    for run in lists:
        with pytest.raises(relay.UserError, match="E0603") as caught:
            run(*args)
        assert f"input {place} does not fit" in caught.value.diagnostics[0].message


def test_long_lists():
    for run in both(program("%xs: List[int32]", "List[int32]", "@rev(%xs)")):
        n = 20_000
        assert [int(x) for x in run(list(range(n)))] == list(range(n))[::-1]


def test_an_option_of_an_option_is_told_apart():
    kind = "Option[Option[int32]]"
    some = relay.ConstructorValue("Some", [None])
    for run in both(program(f"%x: {kind}", kind, "%x")):
        assert run(some) == some
        assert run(relay.ConstructorValue("None")) == relay.ConstructorValue("None")


def test_sizes_within_data_are_numbers():
    text = "def @main[n: Dim](%x: List[Tensor[(n,), int32]]) -> int32 { @length(%x) }"
    run = relay.create_executor("debug", relay.parse(VERSION + text)).evaluate()
    with pytest.raises(relay.UserError, match="E0603"):
        run([[1, 2]])


def test_a_loaded_artifact_knows_the_types_of_its_values(tmp_path):
    pair = relay.build(program("%x: (int32, float32)", "float32", "%x.1"))
    pair.export_library(tmp_path / "pair.so")
    assert relay.runtime.load_module(tmp_path / "pair.so")((1, 2.5)) == 2.5
    listed = relay.build(program("%xs: List[int32]", "int32", "@length(%xs)"))
    listed.export_library(tmp_path / "listed.so")
    loaded = relay.runtime.load_module(tmp_path / "listed.so")
    assert loaded([1, 2]) == 2
    with pytest.raises(relay.UserError, match="E0603") as caught:
        loaded(3)
    assert "'xs'" in str(caught.value) and "List[int32]" in str(caught.value)


def test_a_compiled_program_is_copied_pickled_and_shown():
    x = relay.var("x", shape=(3,))
    exe = relay.build(relay.Function([x], relay.nn.relu(x) + 1.0))
    values = np.array([-1, 0, 2], "float32")
    assert copy.deepcopy(exe) is exe and copy.copy(exe) is exe
    again = pickle.loads(pickle.dumps(exe))
    assert again(values).tolist() == [1, 1, 3] and again.num_threads == exe.num_threads
    shown = exe._repr_html_()
    assert (
        "@main(x: Tensor[(3,), float32])" in shown and "fused" in shown and "<script" not in shown
    )
