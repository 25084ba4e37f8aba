"""Tensors of strings: text, artifacts, the virtual machine, the evaluator, NumPy, the command line."""

import json
import subprocess
import sys
from pathlib import Path

import command_line
import numpy as np
import pytest

import relay

WORDS = ["one", "", "zwei", "três", "четыре", "五", "a\0b", "\U0001f600", "x" * 5000, 'q"\\\n\t']
LEVELS = [0, 3]


def parse(text: str):
    return relay.parse('#[version = "0.0.5"]\n' + text)


def evaluated(module, *inputs):
    return relay.create_executor("debug", module).evaluate()(*inputs)


def results(text: str, *inputs):
    """What the program computes at both levels and in the evaluator, which agree."""
    module = parse(text)
    outs = [relay.build(module, num_threads=1, opt_level=level)(*inputs) for level in LEVELS]
    outs.append(evaluated(module, *inputs))
    for other in outs[1:]:
        same(outs[0], other)
    return outs[0]


def same(a, b):
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("kind", ["object", "U", "swapped U", "strided U", "StringDType", "list"])
def test_numpy_in_and_out(kind):
    words = WORDS
    x = {
        "object": lambda: np.array(words, dtype=object),
        "U": lambda: np.array(words),
        "swapped U": lambda: np.array(words).astype(">U5000"),
        "strided U": lambda: np.repeat(np.array(words), 2)[::2],
        "StringDType": lambda: np.array(words, dtype=np.dtypes.StringDType()),
        "list": lambda: words,
    }[kind]()
    got = results(f"def @main(%x: Tensor[({len(words)},), string]) {{ reverse(%x, axis=0) }}", x)
    assert got.dtype == object
    assert got.tolist() == words[::-1]


def test_rank_0():
    assert results("def @main(%x: Tensor[(), string]) { %x }", "word").item() == "word"
    assert results('def @main() { "a\\"b\\\\ ü" }').item() == 'a"b\\ ü'


@pytest.mark.parametrize("bad", [[1.5, 2.5], ["a", 1], ["a", None], [b"a", b"b"], ["a", "\ud800"]])
def test_what_is_no_string_is_refused(bad):
    built = relay.build(parse("def @main(%x: Tensor[(2,), string]) { %x }"))
    with pytest.raises((relay.RelayError, TypeError, UnicodeError)):
        built(bad)
    with pytest.raises((relay.RelayError, TypeError, UnicodeError)):
        built(np.array(bad, dtype=object))


def test_what_an_array_of_code_points_cannot_be():
    built = relay.build(parse("def @main(%x: Tensor[(2,), string]) { %x }"))
    with pytest.raises((relay.RelayError, UnicodeError)):
        built(np.array(["a", "\ud800"]))
    for other in (np.array(["a"]), np.array([["a", "b"]]), np.array("a")):
        with pytest.raises(relay.RelayError, match="E0603"):
            built(other)
    empty = relay.build(parse("def @main(%x: Tensor[(?, 2), string]) { %x }"))
    assert empty(np.empty((0, 2), "U3")).shape == (0, 2)


def test_strings_for_numbers_are_refused():
    built = relay.build(parse("def @main(%x: Tensor[(2,), float32]) { %x }"))
    with pytest.raises(relay.RelayError, match=r"Tensor\[\(2,\), string\]"):
        built(np.array(["a", "b"]))


MOVES = {
    "reshape(%x, newshape=[3, 2])": lambda x: x.reshape(3, 2),
    "transpose(%x)": lambda x: x.T,
    "take(%x, %i, axis=1)": lambda x: x[:, [2, 0]],
    "concatenate((%x, %x), axis=0)": lambda x: np.concatenate([x, x]),
    "tile(%x, reps=[1, 2])": lambda x: np.tile(x, (1, 2)),
    "broadcast_to(%x, shape=[2, 2, 3])": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "strided_slice(%x, begin=[0, 1], end=[2, 3])": lambda x: x[:, 1:],
    "where(%c, %x, reverse(%x, axis=1))": lambda x: np.where(
        [[True, False, True]] * 2, x, x[:, ::-1]
    ),
    'where(%c, %x, "other")': lambda x: np.where(
        [[True, False, True]] * 2, x, np.array("other", object)
    ),
    "stack((%x, %x), axis=0)": lambda x: np.stack([x, x]),
    "repeat(%x, repeats=2, axis=0)": lambda x: np.repeat(x, 2, 0),
    "expand_dims(%x, axis=0)": lambda x: x[None],
}


@pytest.mark.parametrize("call", MOVES)
def test_operators_that_move(call):
    x = np.array([["a", "bb", ""], ["ä", "ccc", "d d"]], dtype=object)
    index, condition = np.array([2, 0]), np.array([[True, False, True]] * 2)
    text = (
        "def @main(%x: Tensor[(2, 3), string], %i: Tensor[(2,), int64], "
        f"%c: Tensor[(2, 3), bool]) {{ {call} }}"
    )
    np.testing.assert_array_equal(results(text, x, index, condition), MOVES[call](x))


def test_open_sizes():
    text = "def @main[n: Dim](%x: Tensor[(n, 2), string]) { concatenate((%x, %x), axis=0) }"
    module = relay.build(parse(text))
    for n in (0, 1, 5):
        x = np.array([[f"{i}", "é" * i] for i in range(n)], dtype=object).reshape(n, 2)
        np.testing.assert_array_equal(module(x), np.concatenate([x, x]))


def test_lists_references_and_functions():
    text = """
type List[A] { Cons(A, List[A]), Nil, }
def @count(%n: int32, %acc: List[Tensor[(2,), string]], %r: ref(Tensor[(2,), string])) {
  if (less(%n, 1)) { %acc } else {
    let %old = ref_read(%r);
    ref_write(%r, concatenate((strided_slice(%old, begin=[1], end=[2]), %w), axis=0));
    @count(subtract(%n, 1), Cons(%old, %acc), %r)
  }
}
def @main(%n: int32, %x: Tensor[(2,), string]) {
  let %r = ref(%x);
  @count(%n, Nil, %r)
}
""".replace("%w", "reshape(reverse(strided_slice(%old, begin=[0], end=[1]), axis=0), newshape=[1])")
    module = parse(text)
    got = relay.build(module)(np.int32(5), ["a", "b"])
    assert [x.tolist() for x in got] == [["a", "b"], ["b", "a"]] * 2 + [["a", "b"]]
    same(got, evaluated(module, np.int32(5), ["a", "b"]))


def test_results_outlive_everything():
    module = relay.build(parse("def @main(%x: Tensor[(3,), string]) { (reverse(%x, axis=0), %x) }"))
    kept = [module([f"a{i}", f"b{i}" * 1000, ""]) for i in range(100)]
    del module
    for i, (back, x) in enumerate(kept):
        assert back.tolist() == ["", f"b{i}" * 1000, f"a{i}"]
        assert x.tolist() == back.tolist()[::-1]


def test_artifacts_hold_strings(tmp_path):
    words = relay.const(np.array(WORDS, dtype=object))
    x = relay.var("x", relay.TensorType((2,), "int64"))
    module = relay.IRModule.from_expr(relay.Function([x], relay.take(words, x, axis=0)))
    # What is printed, parses back to the same constants.
    assert relay.structural_equal(relay.parse(module.astext()), module)
    built = relay.build(module)
    path = tmp_path / "words.so"
    built.export_library(str(path))
    for loaded in (built, relay.runtime.load_module(str(path))):
        for i in range(len(WORDS)):
            assert loaded(np.array([i, 0])).tolist() == [WORDS[i], WORDS[0]]
    damaged = bytearray(path.read_bytes())
    at = bytes(damaged).index("четыре".encode())
    damaged[at] ^= 0xFF
    (tmp_path / "damaged.so").write_bytes(damaged)
    command_line.fails("E0608", "check", tmp_path / "damaged.so")


def test_constants_from_python():
    assert relay.const("ü").dtype == "string"
    words = [["a", "b\0"], ["c", ""]]
    module = relay.IRModule.from_expr(relay.Function([], relay.const(words)))
    assert evaluated(module).tolist() == words
    for value in ("1", ["1", "2"]):
        with pytest.raises(TypeError):
            relay.const(value, "float32")


def test_command_line(tmp_path):
    program = tmp_path / "program.relay"
    program.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(2,), string], %s: Tensor[(), string]) "
        "{ concatenate((%x, reshape(%s, newshape=[1])), axis=0) }\n"
    )
    inputs = ["--input", 'x=["a, b", "ü\\n"]', "--input", 's="]"']
    out = command_line.relay("run", program, *inputs, "--output", tmp_path / "out", "--json")
    answer = json.loads(out.stdout)
    (file,) = (tmp_path / "out").iterdir()
    assert np.load(file).tolist() == ["a, b", "ü\n", "]"]
    assert answer["outputs"][0]["dtype"] == "string"
    np.save(tmp_path / "x.npy", np.array(["a, b", "ü\n"]))
    again = command_line.relay(
        "run", program, "--input", f"x={tmp_path}/x.npy", "--input", 's="]"', "--json"
    )
    assert json.loads(again.stdout)["outputs"] == answer["outputs"]
    shown = command_line.relay("run", program, *inputs)
    assert '"a, b", "ü\\n", "]"' in shown.stdout
    for wrong in ("x=[a, b]", 'x=["a", "b]', "x=[1, 2]"):
        refused = command_line.relay("run", program, "--input", wrong, check=False)
        assert refused.returncode == 1
        assert "E0702" in refused.stderr


C_PROGRAM = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1])
runtime.relay_last_error.restype = ctypes.c_char_p
size, text = ctypes.c_size_t, ctypes.c_char_p
def check(status):
    if status != 0:
        sys.exit(runtime.relay_last_error().decode())
module, session = ctypes.c_void_p(), ctypes.c_void_p()
check(runtime.relay_module_load(sys.argv[2].encode(), 1, ctypes.byref(module)))
check(runtime.relay_session_create(module, b"main", ctypes.byref(session)))
words = [w.encode() for w in sys.argv[3:]]
given = (text * len(words))(*words)
shape = (ctypes.c_int64 * 1)(len(words))
check(runtime.relay_session_set_input_strings(session, size(0), given, shape, 1))
check(runtime.relay_session_run(session))
for i in range(len(words)):
    at, n = text(), size()
    check(runtime.relay_session_output_string(
        session, size(0), size(i), ctypes.byref(at), ctypes.byref(n)))
    print(ctypes.string_at(at, n.value).decode())
assert runtime.relay_session_output_string(
    session, size(0), size(len(words)), ctypes.byref(at), ctypes.byref(n)) != 0
print("librelay_text" in open("/proc/self/maps").read())
"""


@pytest.mark.parametrize(("body", "wanted", "needs_library"), [
    ("reverse(%x, axis=0)", ["b", "é", ""], False),
    ('where(equal(%x, "b"), "hit", %x)', ["", "é", "hit"], False),
    ("text.change_case(%x, upper=True)", ["", "É", "B"], True),
])  # fmt: skip
def test_the_c_interface_and_what_it_loads(tmp_path, body, wanted, needs_library):
    """The runtime alone, in a process of its own, opens the text library for programs that need it."""
    path = tmp_path / "program.so"
    relay.build(parse(f"def @main(%x: Tensor[(3,), string]) {{ {body} }}")).export_library(
        str(path)
    )
    library = Path(relay.__file__).parent / "lib/librelay_runtime.so"
    done = subprocess.run(
        [sys.executable, "-c", C_PROGRAM, library, path, "", "é", "b"],
        capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines() == [*wanted, str(needs_library)]


def test_without_the_text_library_loading_says_what_is_missing(tmp_path):
    path = tmp_path / "program.so"
    program = parse("def @main(%x: Tensor[(1,), string]) { text.change_case(%x) }")
    relay.build(program).export_library(str(path))
    alone = tmp_path / "librelay_runtime.so"
    alone.write_bytes((Path(relay.__file__).parent / "lib/librelay_runtime.so").read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", C_PROGRAM, alone, path, "A"], capture_output=True, text=True,
        check=False)  # fmt: skip
    assert done.returncode != 0
    assert "E0618" in done.stderr
    assert "librelay_text.so" in done.stderr


def test_gradients_of_strings_are_refused():
    with pytest.raises(relay.RelayError, match=r"E10\d\d|E0204"):
        relay.transform.gradient(
            parse("def @main(%x: Tensor[(2,), string]) { reverse(%x, axis=0) }")["main"]
        )
