"""Inputs that are donated to outputs: whose memory is written, what is refused, caches of decoders."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from command_line import relay as command
from onnx import TensorProto, helper

import relay

UPDATE = """#[version = "0.0.5"]
def @main(%cache: Tensor[(4, 3), float32], %x: Tensor[(4, 3), float32]) {
  (sum(%x), add(%cache, %x))
}
"""


def update(**donate):
    return relay.build(relay.parse(UPDATE), donate=donate)


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


def test_a_call_writes_into_the_array_and_returns_it():
    exe = update(cache=1)
    assert exe.donations() == [relay.Donation("cache", "output1", True)]
    cache, x = zeros(4, 3), np.arange(12, dtype="float32").reshape(4, 3)
    for times in range(1, 4):
        total, new = exe(cache, x) if times < 3 else exe(x=x, cache=cache)
        assert new is cache and total == x.sum()
        np.testing.assert_array_equal(cache, times * x)
    assert update(cache="output1").donations() == exe.donations()
    assert relay.build(relay.parse(UPDATE)).donations() == []


def test_what_is_donated_is_not_written_out_as_text():
    """Which would take milliseconds a call: a message says it only where the array is refused."""
    shown = []

    class Watched(np.ndarray):
        def __repr__(self):
            shown.append(self.shape)
            return "watched"

    cache = zeros(4, 3).view(Watched)
    update(cache=1)(cache, np.ones((4, 3), "float32"))
    assert cache.sum() == 12 and not shown


def test_a_stored_program_keeps_its_donations(tmp_path):
    path = tmp_path / "update.so"
    update(cache=1).export_library(path)
    exe = relay.runtime.load_module(path)
    cache, x = zeros(4, 3), np.ones((4, 3), "float32")
    assert exe(cache, x)[1] is cache and cache.sum() == 12
    assert [d.in_place for d in exe.donations()] == [True]


@pytest.mark.parametrize(
    ("cache", "says"),
    [
        (lambda: np.broadcast_to(np.float32(0), (4, 3)), "not contiguous|read-only"),
        (lambda: zeros(4, 6)[:, ::2], "not contiguous"),
        (lambda: zeros(4, 3, dtype="float64"), "elements of float64"),
        (lambda: [[0.0] * 3] * 4, "found:    list"),
        (lambda: np.frombuffer(bytes(49), "uint8")[1:].view("float32").reshape(4, 3),
         "not aligned|read-only"),
    ],
)  # fmt: skip
def test_arrays_that_cannot_be_written_into_are_refused_E1205(cache, says):
    with pytest.raises(relay.UserError, match=rf"E1205(.|\n)*({says})"):
        update(cache=1)(cache(), zeros(4, 3))


def test_memory_of_another_input_is_refused():
    whole = zeros(8, 3)
    exe = update(cache=1)
    for x in (whole[:4], whole[2:6]):
        with pytest.raises(relay.UserError, match=r"E1205(.|\n)*memory of input 'x' too"):
            exe(whole[:4], x)
    exe(whole[:4], whole[4:])
    wrong = zeros(5, 3)
    with pytest.raises(relay.UserError, match="E0603"):
        exe(wrong, zeros(4, 3))


def test_of_many_inputs_the_one_that_begins_before_and_ends_behind_is_found():
    text = """#[version = "0.0.5"]
def @main(%b: Tensor[(1, 3), float32], %a: Tensor[(10, 3), float32], %cache: Tensor[(4, 3), float32],
          %other: Tensor[(4, 3), float32]) {
  (add(%cache, sum(%a)), add(%other, sum(%b))) }
"""
    exe = relay.build(relay.parse(text), donate={"cache": 0, "other": 1})
    whole = zeros(20, 3)
    with pytest.raises(relay.UserError, match=r"E1205(.|\n)*memory of input 'a' too") as found:
        exe(whole[2:3], whole[:10], whole[4:8], whole[16:])
    assert "'other' is donated" not in str(found.value)
    with pytest.raises(relay.UserError, match=r"memory of input 'other' too"):
        exe(whole[:1], whole[:10], whole[12:16], whole[15:19])
    # Those that are only read may overlap.
    cache, other = exe(whole[2:3], whole[:10], whole[10:14], whole[14:18])
    assert np.shares_memory(cache, whole) and np.shares_memory(other, whole)


@pytest.mark.parametrize(
    ("donate", "code"),
    [({"past": 1}, "E1201"), ({"cache": 2}, "E1201"), ({"cache": "present"}, "E1201"),
     ({"cache": 1, "x": 1}, "E1202"), ({"cache": 0}, "E1203")],
)  # fmt: skip
def test_donations_that_make_no_sense_are_refused(donate, code):
    with pytest.raises(relay.UserError, match=code):
        update(**donate)
    for wrong in ({"cache": 1.5}, {1: 1}, [("cache", 1)]):
        with pytest.raises(TypeError):
            relay.build(relay.parse(UPDATE), donate=wrong)


def test_the_evaluator_leaves_its_arguments_alone():
    donated = UPDATE.replace("float32]) {", 'float32], donate=[["cache", 1]]) {')
    cache, x = zeros(4, 3), np.ones((4, 3), "float32")
    _, new = relay.create_executor("debug", relay.parse(donated)).evaluate()(cache, x)
    assert cache.sum() == 0 and new.sum() == 12
    _, new = relay.build(relay.parse(donated))(cache, x)
    assert new is cache and cache.sum() == 12


def test_other_libraries_give_their_own_tensors():
    torch = pytest.importorskip("torch")
    exe = update(cache=1)
    cache, x = torch.zeros(4, 3), torch.ones(4, 3)
    assert exe(cache, x)[1] is cache and float(cache.sum()) == 12
    with pytest.raises(relay.UserError, match=r"E1205"):
        exe(torch.zeros(3, 4).T, x)


# ---- Functions in Python


def test_parts_of_a_structure_are_donated():
    @relay.function(donate={"state": 1})
    def step(state, x):
        total = state["sum"] + x
        return total.sum(), {"sum": total, "count": state["count"] + 1, "last": state["last"] * 2}

    state = {"sum": zeros(3), "count": np.int64(0), "last": zeros(2, 2)}
    x = np.float32([1, 2, 3])
    _, new = step(state, x)
    assert new["sum"] is state["sum"] and new["last"] is state["last"]
    assert state["sum"].tolist() == [1, 2, 3] and new["count"] == 1 and state["count"] == 0


def test_structures_that_differ_are_refused():
    @relay.function(donate={"state": 1})
    def step(state, x):
        return {"sum": state["sum"] + x}, x

    with pytest.raises(relay.UserError, match=r"E09.*cannot be donated to part 1"):
        step({"sum": zeros(3), "more": zeros(2)}, zeros(3))


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("first", ["fails", "differs", "is fine"])
def test_other_calls_leave_donation_on(first, times):
    """A call that fails, or whose sizes do not allow it, says nothing about the next one."""

    @relay.function(donate={"state": 0})
    def step(state, x):
        return state + x

    for _ in range(times):
        if first == "fails":
            with pytest.raises(relay.RelayError):
                step(zeros(4), zeros(5))
        if first == "differs":
            state = zeros(1)
            assert step(state, zeros(5)).shape == (5,)
        state = zeros(4)
        new = step(state, np.ones(4, "float32"))
        assert new is state and state.tolist() == [1, 1, 1, 1]
    # What is remembered is the form that donates.
    assert step(state, zeros(4)) is state


def test_a_function_whose_result_is_of_another_size_donates_where_it_can():
    @relay.function(donate={"state": 0})
    def longer(state, x):
        return np.concatenate([state, x])[: state.shape[0] + x.shape[0]]

    for _ in range(2):
        state = zeros(4)
        new = longer(state, zeros(4))
        assert new.shape == (8,) and new is not state


def test_a_failure_in_the_run_leaves_donation_on():
    @relay.function(donate={"state": 0})
    def step(state, i):
        assert i < 3, "too far"
        new = state.copy()
        new[i] += 1.0
        return new

    state = zeros(3)
    for i in (0, 5, 1, 7, 2):
        if i < 3:
            assert step(state, i) is state
        else:
            with pytest.raises(relay.RunError, match="too far"):
                step(state, i)
    assert state.tolist() == [1, 1, 1]


@relay.function(donate={"a": 0})
def put(a, i, v):
    a[i] = v
    a += 1
    return a


def test_what_is_donated_may_be_written():
    a, expected = zeros(4, 3), zeros(4, 3)
    assert put(a, 1, np.float32(5)) is a
    put.python(expected, 1, np.float32(5))
    np.testing.assert_array_equal(a, expected)
    (made,) = put._compiled.values()
    assert [d.in_place for d in made.executable.donations()] == [True]


def test_the_arrays_of_a_donated_structure_may_be_written():
    @relay.function(donate={"state": 0})
    def step(state, v):
        w = state["w"]
        w[0] = v
        state["b"][1] += v
        state["more"][0] -= v
        return state

    def fresh():
        return {"w": np.zeros(3), "b": np.ones(3), "more": np.zeros(2)}

    state, expected = fresh(), fresh()
    new = step(state, 2.0)
    step.python(expected, 2.0)
    for name, array in expected.items():
        assert new[name] is state[name]
        np.testing.assert_array_equal(state[name], array)


def test_a_written_argument_whose_memory_another_result_takes():
    @relay.function(donate={"a": 0})
    def doubled(a, v):
        b = a * 2
        a[0] = v
        return b, a

    a = np.arange(4.0)
    b, changed = doubled(a, 9.0)
    assert b is a and b.tolist() == [0, 2, 4, 6] and changed.tolist() == [9, 1, 2, 3]


def test_a_function_that_writes_what_it_is_given_changes_it_for_its_caller():
    def twice(v):
        a = np.zeros((4, 3), "float32")
        same = a
        put(a, 0, v)
        b = a.sum()
        c = put(a, 1, v)
        return a, b, c, same

    found = relay.function(twice)(np.float32(3))
    a = zeros(4, 3)
    put.python(a, 0, np.float32(3))
    total = a.sum()
    put.python(a, 1, np.float32(3))
    for part, wanted in zip(found, (a, total, a, a), strict=True):
        np.testing.assert_array_equal(part, wanted)


CAPTURED = zeros(4, 3)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda a, v: put(a, 0, v), (zeros(4, 3), np.float32(1))),
        (lambda v: put(CAPTURED, 0, v), (np.float32(1),)),
    ],
)
def test_what_is_not_given_up_is_not_written_by_what_is_called(function, args):
    with pytest.raises(relay.UserError, match=r"E0904.*is an argument, which is the caller's"):
        relay.function(function)(*args)
    assert CAPTURED.sum() == 0


def test_what_is_not_donated_is_not_written():
    @relay.function(donate={"a": 0})
    def f(a, b):
        b[0] = 1.0
        return a

    with pytest.raises(relay.UserError, match=r"E0904.*'b' is an argument, which is the caller's"):
        f(np.zeros(3), np.zeros(3))


# ---- Caches of decoders


def decoder(length, mode="linear", steps=1):
    """One head: the new keys and values go into caches, which the attention then reads."""
    nodes = [
        helper.make_node("TensorScatter", [f"past_{n}", n, "at"], [f"present_{n}"], mode=mode)
        for n in ("key", "value")
    ] + [
        helper.make_node("Transpose", ["present_key"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["query", "turned"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"]),
        helper.make_node("MatMul", ["weights", "present_value"], ["y"]),
    ]
    cache, lines = [1, 2, length, 8], [1, 2, steps, 8]

    def info(name, shape, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [info("query", lines), info("key", lines), info("value", lines),
              info("mask", [1, 1, 1, length]), info("at", [1], TensorProto.INT64),
              info("past_key", cache), info("past_value", cache)]  # fmt: skip
    outputs = [info("y", lines), info("present_key", cache), info("present_value", cache)]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])


DONATE = {"past_key": "present_key", "past_value": "present_value"}


def feeds(length, at, rng):
    f32 = lambda *shape: rng.normal(size=shape).astype("float32")  # noqa: E731
    mask = np.where(np.arange(length) <= at, 0, -np.inf).astype("float32")
    return {"query": f32(1, 2, 1, 8), "key": f32(1, 2, 1, 8), "value": f32(1, 2, 1, 8),
            "mask": mask.reshape(1, 1, 1, length), "at": np.int64([at])}  # fmt: skip


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_decoder_updates_its_caches_in_place(mode):
    mod, params = relay.frontend.from_onnx(decoder(16, mode))
    plain = relay.build(mod, params=params)
    exe = relay.build(mod, params=params, donate=DONATE)
    assert [d.in_place for d in exe.donations()] == [True, True]
    rng = np.random.default_rng(1)
    mine = {"past_key": zeros(1, 2, 16, 8), "past_value": zeros(1, 2, 16, 8)}
    other = dict(mine)
    places = range(5) if mode == "linear" else range(13, 19)
    for at in places:
        given = feeds(16, at, rng)
        y, key, value = plain(**given, **other)
        other = {"past_key": key, "past_value": value}
        mine_y, mine_key, mine_value = exe(**given, **mine)
        assert mine_key is mine["past_key"] and mine_value is mine["past_value"]
        np.testing.assert_array_equal(mine_key, key)
        np.testing.assert_array_equal(mine_value, value)
        np.testing.assert_allclose(mine_y, y, rtol=1e-6)


def test_a_place_outside_of_the_cache_is_an_error():
    mod, params = relay.frontend.from_onnx(decoder(16))
    exe = relay.build(mod, params=params, donate=DONATE)
    for at in (16, -1):
        caches = {"past_key": zeros(1, 2, 16, 8), "past_value": zeros(1, 2, 16, 8)}
        with pytest.raises(relay.RunError, match=r"E0605(.|\n)*index \d+ is out of bounds"):
            exe(**feeds(16, at, np.random.default_rng(2)), **caches)


# ---- The command line


def test_the_command_line_donates_and_says_how(tmp_path):
    path = tmp_path / "decoder.onnx"
    onnx.save(decoder(16), path)
    donate = [f"--donate={a}={b}" for a, b in DONATE.items()]
    out = tmp_path / "decoder.so"
    said = command("compile", path, "-o", out, "-q", *donate).stdout
    assert "donated    past_key -> present_key, in place\n" in said
    assert "past_value -> present_value, in place" in command("explain", out).stdout
    report = json.loads(command("explain", out, "--json").stdout)
    assert [d["in_place"] for d in report["memory"]["donations"]] == [True, True]
    plan = command("show", path, "--plan", *donate).stdout
    assert "// past_key is donated to present_key, in place\n" in plan
    assert "in place of past_key" in plan
    exe = relay.runtime.load_module(out)
    assert exe.donations()[0] == relay.Donation("past_key", "present_key", True)


def test_the_command_line_refuses_donations_that_make_no_sense(tmp_path):
    path = tmp_path / "update.relay"
    path.write_text(UPDATE)
    for words, code, status in [
        (["--donate", "cache"], "E0702", 2),
        (["--donate", "cache=7"], "E1201", 1),
        (["--donate", "past=1"], "E1201", 1),
        (["--donate", "cache=0"], "E1203", 1),
        (["--donate", "cache=1", "--donate", "x=1"], "E1202", 1),
    ]:
        done = command("compile", path, "-o", tmp_path / "x.so", *words, check=False)
        assert code in done.stderr and done.returncode == status, (words, done.stderr)
    copied = tmp_path / "copied.relay"
    copied.write_text(UPDATE.replace("add(%cache, %x)", "transpose(%cache)")
                      .replace("(4, 3)", "(4, 4)"))  # fmt: skip
    said = command("compile", copied, "-o", tmp_path / "y.so", "-q", "--donate=cache=1").stdout
    assert "cache -> output1, copied: the kernel that makes it reads the input" in said, said


# ---- Random programs

UNARY = ["negative(%s)", "nn.relu(%s)", "multiply(%s, 0.5f)", "transpose(%s)", "reverse(%s, axis=0)",
         "reshape(reshape(%s, newshape=[16]), newshape=[4, 4])"]  # fmt: skip
BINARY = ["add(%s, %s)", "multiply(%s, %s)", "nn.dense(%s, %s)", "maximum(%s, %s)",
          "update_slice(%s, strided_slice(%s, begin=[0], end=[2]), 1i64)",
          "where(less(%s, %s), %s, %s)"]  # fmt: skip


def random_program(rng, count):
    """Lets on square matrices, some donated; results are any of them, parameters among them."""
    dim = "n" if rng.random() < 0.4 else "4"
    params = [f"%p{i}" for i in range(count)]
    names, lets = list(params), []
    for i in range(rng.integers(2, 9)):
        pick = lambda: names[rng.integers(max(0, len(names) - 6), len(names))]  # noqa: E731
        forms = UNARY[:5] if dim == "n" else UNARY
        form = (
            forms[rng.integers(len(forms))]
            if rng.random() < 0.4
            else BINARY[rng.integers(len(BINARY))]
        )
        if dim == "n" and "update" in form:
            form = "subtract(%s, %s)"
        a, b = pick(), pick()
        text = form % (a, b, a, b) if form.count("%s") == 4 else form % ((a, b)[: form.count("%s")])
        if rng.random() < 0.1:
            text = f"if (less(sum({a}), 1f)) {{ {text} }} else {{ {b} }}"
        lets.append(f"  let %v{i} = {text};")
        names.append(f"%v{i}")
    results = [names[rng.integers(len(names))] for _ in range(rng.integers(1, 4))]
    pairs = list(zip(rng.permutation(count), rng.permutation(len(results)), strict=False))
    donate = ", ".join(f'["p{p}", {o}]' for p, o in pairs)
    shape = f"Tensor[({dim}, {dim}), float32]"
    head = ", ".join(f"{p}: {shape}" for p in params)
    generic = "[n: Dim]" if dim == "n" else ""
    body = "\n".join(lets)
    return (f'#[version = "0.0.5"]\ndef @main{generic}({head}, donate=[{donate}]) {{\n'
            f"{body}\n  ({', '.join(results)},)\n}}\n"), pairs  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_give_the_same(seed):
    rng = np.random.default_rng(seed)
    text, pairs = random_program(rng, 3)
    mod = relay.parse(text)
    args = [rng.normal(size=(4, 4)).astype("float32") for _ in range(3)]
    wanted = relay.create_executor("debug", mod).evaluate()(*args)
    exe = relay.build(mod, opt_level=int(rng.integers(4)), cache=False)
    given = [a.copy() for a in args]
    found = exe(*given)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=text)
    for p, o in pairs:
        assert found[o] is given[p], text
    donated = {p for p, _ in pairs}
    for i, (a, b) in enumerate(zip(given, args, strict=True)):
        assert i in donated or (a == b).all(), text


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_the_place_of_an_update_has_any_integer_dtype(dtype, level):
    text = f"""#[version = "0.0.5"]
    def @main(%x: Tensor[(4, 3), float32], %line: Tensor[(1, 3), float32], %at: {dtype}) {{
      update_slice(%x, %line, %at)
    }}"""
    x = np.zeros((4, 3), "float32")
    got = relay.build(relay.parse(text), opt_level=level)(x, x[:1] + 1, np.array(2, dtype))
    np.testing.assert_array_equal(got, np.repeat([[0.0], [0], [1], [0]], 3, 1))
