"""Strings in relay.function: arrays of them, one, in lists and data; compared with what Python computes."""

# Text in annotations names sizes and dtypes.
# ruff: noqa: F821

import subprocess
import sys

import numpy as np
import pytest

import relay

WORDS = np.array(["a", "bb", "", "été", "bb"])
KINDS = {
    "U": WORDS,
    "object": WORDS.astype(object),
    "StringDType": WORDS.astype(np.dtypes.StringDType()),
}


@relay.function
def compared(x, y):
    return x == y, x != "bb", x < "b", x >= "b"


@relay.function
def joined(x):
    return x + "!", "<" + x, x + x[::-1]


@relay.function
def moved(x):
    y = np.where(x == "bb", x, "other")
    return y.reshape((1, -1)), x[1:3], x[x != ""], np.concatenate([x, y]), np.stack([x, y])


@relay.function
def changed(x, w):
    y = x.copy()
    y[0] = "first"
    y[1] = w
    y[2] += "?"
    return y, np.full((2, 2), "full"), np.array(["one", w])


@relay.function
def cases(x):
    return np.char.upper(x), np.char.lower(x), np.char.add(x, "s")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [joined, moved, cases])
def test_of_one_array(function, kind):
    expected = function.python(WORDS.astype(object) if function is not cases else WORDS)
    for got, want in zip(function(KINDS[kind]), expected, strict=True):
        assert got.dtype == object
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons(kind):
    other = KINDS[kind][::-1].copy()
    for got, want in zip(
        compared(KINDS[kind], other), compared.python(WORDS, WORDS[::-1]), strict=True
    ):
        assert got.dtype == bool
        assert got.tolist() == want.tolist()


def test_changes_in_place():
    words = KINDS["object"]
    for got, want in zip(
        changed(words, np.str_("longer than before")),
        changed.python(words, "longer than before"),
        strict=True,
    ):
        assert got.tolist() == want.tolist()
    assert words.tolist() == WORDS.tolist()


def test_lengths_share_a_form():
    @relay.function
    def same(x):
        return x[::-1]

    for size in range(1, 300):
        assert same(np.array(["x" * size])).tolist() == ["x" * size]
    assert same.cache_info().currsize == 1
    assert len(same._runs) < 300


def test_control_flow():
    @relay.function
    def run(words, x):
        name, seen = "none", 0
        for w in words:
            if w == "bb":
                seen += 1
            if w:
                name = w
        while name != "bbbb":
            name = name + "b"
        return name, seen, "positive" if x > 0 else "not"

    name, seen, sign = run(WORDS, 2.0)
    assert (name.item(), seen.item(), sign.item()) == ("bbbb", 2, "positive")


def test_annotated():
    @relay.function
    def first(x: relay.Tensor[("n",), "string"]) -> relay.Tensor[(), "string"]:
        return x[0]

    @relay.function
    def same(x: relay.Tensor[("n",), str]):
        return x

    assert first(WORDS).item() == "a"
    assert same(["p", "q"]).tolist() == ["p", "q"]
    assert "%x: Tensor[(n,), string]" in first.astext()


@relay.data
class File:
    class Leaf:
        name: str

    class Folder:
        name: str
        files: "list[File]"


def test_lists_and_data():
    @relay.function
    def paths(file: File, above: relay.Tensor[(), "string"]) -> list[str]:
        match file:
            case File.Leaf(name):
                return [above + name]
            case File.Folder(name, files):
                out = [above + name]
                for f in files:
                    out = out + paths(f, above + name + "/")
                return out

    @relay.function
    def counted(pairs: list[tuple[str, int]]):
        total = 0
        for name, n in pairs:
            if name == "x":
                total += n
        return total

    tree = File.Folder("r", [File.Leaf("a"), File.Folder("s", [File.Leaf("b")])])
    assert [p.item() for p in paths(tree, "")] == ["r", "r/a", "r/s", "r/s/b"]
    assert counted([("x", 1), ("y", 2), ("x", 4)]) == 5


def test_numbers_of_strings():
    @relay.function
    def read(x):
        return x.astype(float), x.astype("int32")

    floats, whole = read(np.array(["3", "-4"]))
    assert floats.tolist() == [3.0, -4.0]
    assert whole.dtype == np.int32
    with pytest.raises(relay.RunError, match="a string is not a number"):
        read(np.array(["3", "four"]))


def test_captured_and_known():
    table = np.array(["zero", "one", "two"])

    @relay.function
    def name(i, how="plain"):
        return table[i] if how == "plain" else how

    assert name(1).item() == "one"
    # A str of Python is known, as it is for axis names and modes.
    assert name(1, "loud") == "loud"


def test_beside_tensors_of_a_library():
    torch = pytest.importorskip("torch", reason="torch is not installed")

    @relay.function
    def both(x, w):
        return x * 2, w

    number, words = both(torch.ones(2), WORDS)
    assert isinstance(number, torch.Tensor)
    assert words.tolist() == WORDS.tolist()


BAD = {
    "a sum with a number": (
        lambda x: x + 1,
        "E0905",
        "numpy.add is not defined for strings and numbers",
    ),
    "a product": (lambda x: x * x, "E0905", "numpy.multiply is not defined for strings"),
    "== with a number": (lambda x: x == 1, "E0905", "strings and numbers"),
    "a sum of the axis": (lambda x: x.sum(), "E0204", "strings are moved and compared"),
    "an element that is a number": (
        lambda x: np.where(x == "a", x, 1),
        "E0905",
        "int64 is not made string",
    ),
    "numbers made strings": (
        lambda x: np.ones(2).astype(str),
        "E0905",
        "float64 is not made string",
    ),
    "bools of strings": (lambda x: x.astype(bool), "E0905", "string is not made bool"),
}


@pytest.mark.parametrize("what", BAD)
def test_refused(what):
    python, code, message = BAD[what]
    with pytest.raises(relay.UserError, match=message) as caught:
        relay.function(python)(WORDS)
    assert caught.value.code == code


def test_objects_that_are_no_strings():
    @relay.function
    def same(x):
        return x

    for bad, dtype in ((np.array([1, "a"], dtype=object), "object"), (np.array([b"a"]), "|S1")):
        with pytest.raises(relay.UserError, match="which Relay does not have") as caught:
            same(bad)
        assert caught.value.code == "E0908"
        assert dtype in str(caught.value)
    same(WORDS)
    with pytest.raises(relay.UserError, match="1 is not a string") as caught:
        same(np.array([1, "a"], dtype=object))
    assert caught.value.code == "E0603"


def test_a_string_is_no_element_of_numbers():
    @relay.function
    def put(x):
        y = x.copy()
        y[0] = "a"
        return y

    with pytest.raises(relay.UserError, match="an element is set to a tensor or a number"):
        put(np.ones(2))


def test_in_a_file(tmp_path):
    @relay.function
    def shout(x: relay.Tensor[("n",), "string"]):
        return x + "!"

    shout.export_library(tmp_path / "shout.so")
    code = "import relay, sys; print(relay.runtime.load_module(sys.argv[1])(['a', 'b']).tolist())"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "shout.so"], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("['a!', 'b!']\n", "")
