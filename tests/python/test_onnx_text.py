"""ONNX's operators on strings, against its reference evaluator or ONNX Runtime."""

import numpy as np
import onnx.reference
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relay

STRING, FLOAT, INT64 = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64
WORDS = np.array(["Monday", "tuesday", "", "Ärger", "straße", "monday", "MONDAY"], dtype=object)


def model(nodes, inputs, outputs, ml=0):
    """Returns a model; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
    )
    opsets = [helper.make_opsetid("", 21)]
    if ml:
        opsets.append(helper.make_opsetid("ai.onnx.ml", ml))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(proto, *inputs):
    """Runs a model at both levels and in the evaluator, which give the same."""
    mod, params = relay.frontend.from_onnx(proto.SerializeToString())
    outs = []
    for level in (0, 3):
        out = relay.build(mod, params=params, opt_level=level, num_threads=1)(*inputs)
        outs.append(out if isinstance(out, (list, tuple)) else [out])
    for a, b in zip(*outs, strict=True):
        np.testing.assert_array_equal(a, b)
    return outs[0]


def runtime(proto, **inputs):
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("words", [[], ["monday"], ["monday", "tuesday", "", "ärger", "straße"]])
def test_string_normalizer(words, action, sensitive):
    attrs = {"stopwords": words} if words else {}
    node = helper.make_node(
        "StringNormalizer",
        ["x"],
        ["y"],
        case_change_action=action,
        is_case_sensitive=sensitive,
        locale="en_US.UTF-8",
        **attrs,
    )
    proto = model([node], [("x", STRING, ["n"])], [("y", STRING, ["m"])])
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    for x in (WORDS, WORDS[:1], WORDS[5:6]):
        stops = words if sensitive else [w.lower() for w in words]
        kept = [w for w in x if (w if sensitive else w.lower()) not in stops] or [""]
        assert run(proto, x)[0].tolist() == [change(w) for w in kept]


@pytest.mark.parametrize("maxsplit", [None, 0, 1, 3])
@pytest.mark.parametrize("delimiter", [None, "", ",", "--", "ü"])
def test_string_split(delimiter, maxsplit):
    attrs = {k: v for k, v in (("delimiter", delimiter), ("maxsplit", maxsplit)) if v is not None}
    node = helper.make_node("StringSplit", ["x"], ["y", "n"], **attrs)
    lines = [
        "a,b,,c",
        "  a b\t\u2003c ",
        "",
        ",",
        "a--b---c",
        "üaüü",
        " ",
        "beyond sixteen bytes,then one",
    ]
    x = np.array(lines, dtype=object).reshape(2, 4)
    proto = model([node], [("x", STRING, [2, "n"])], [("y", STRING, None), ("n", INT64, None)])
    parts = [line.split(delimiter or None, -1 if maxsplit is None else maxsplit) for line in lines]
    y, n = run(proto, x)
    assert n.ravel().tolist() == [len(p) for p in parts]
    most = max(map(len, parts))
    assert y.shape == (2, 4, most)
    assert y.reshape(8, most).tolist() == [p + [""] * (most - len(p)) for p in parts]


def tokenizer(shape, **attrs):
    attrs = {"mark": 0, "pad_value": "#", "mincharnum": 1, **attrs}
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **attrs)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", STRING, shape)],
        [helper.make_tensor_value_info("y", STRING, None)])  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


TOKENIZERS = {
    "letters": {"separators": [""]},
    "dot": {"tokenexp": "."},
    "space": {"separators": [" "]},
    "cascade": {"separators": [r"\s+", "[,;-]", "é|éa"]},
    "context": {"separators": ["^ ", "(ab|b)+$", r"\x{e9}{1,2}\B"]},
    "newline": {"separators": ["\n", "[\n,]", "\\\n"]},
    "word": {"tokenexp": "[a-zA-Z0-9_]+"},
    "bounded": {"tokenexp": r"\b\w\w+\b"},
    "longest": {"tokenexp": "a|ab|(?:abé?,?){2,3}"},
    "empty": {"tokenexp": r"[ab]*?(b{0,2})"},
    "named": {"tokenexp": r"[[:alpha:]]{2,}|[^[:ascii:]\s]|[\d.-]+|\.$"},
    "negated": {"tokenexp": r"[^\W_a]+|[]\-]"},
}  # fmt: skip


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokenizer(kind):
    """Strings of few letters, so that patterns meet, overlap and miss."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    letters = [*"aabb  1_,;-.\n]", "é", "é", "日", "😀", "\u2003"]
    least = (1,) if kind in ("letters", "dot") else (1, 2, 3)
    for count, mark in [(n, m) for n in least for m in (0, 1)]:
        attrs = {**TOKENIZERS[kind], "mincharnum": count, "mark": mark}
        for shape in ([4], [5, 6]):
            lengths = rng.integers(0, 24, shape)
            x = np.empty(shape, object)
            for at in np.ndindex(*shape):
                x[at] = "".join(rng.choice(letters, lengths[at]))
            if rng.random() < 0.5:
                x[(0,) * len(shape)] = ""
            (want,) = runtime(tokenizer(shape, **attrs), x=x)
            (got,) = run(tokenizer([None] * len(shape), **attrs), x)
            assert got.shape == want.shape, (attrs, x.tolist())
            assert got.tolist() == want.tolist(), (attrs, x.tolist())


ATOMS = ["a", "b", "é", "日", ".", "[ab]", "[^a\n]", r"\w", r"\W", r"\s", r"\d", "(?:ab|a)", "(b|é)", "-",
         ",", "[[:alpha:]1-3]", r"\b", "^", "$", r"\B"]  # fmt: skip
REPETITIONS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{0,2}", "{2,}"]


def drawn_pattern(rng):
    """Returns a pattern of up to four atoms."""
    out = ""
    for _ in range(rng.integers(1, 5)):
        atom = int(rng.integers(len(ATOMS)))
        out += ATOMS[atom]
        if atom < len(ATOMS) - 4:  # not an assertion
            out += str(rng.choice(REPETITIONS))
        out += "|" if rng.random() < 0.2 else ""
    return out


@pytest.mark.parametrize("by", ["separators", "tokenexp"])
def test_tokenizer_of_drawn_patterns(by):
    rng = np.random.default_rng(len(by))
    compared = 0
    for _ in range(40):
        attrs = {"mincharnum": int(rng.integers(1, 4)), "mark": int(rng.integers(0, 2))}
        count = rng.integers(1, 4) if by == "separators" else 1
        patterns = [drawn_pattern(rng) for _ in range(count)]
        attrs[by] = patterns if by == "separators" else "(?:" + patterns[0] + ")"
        x = np.empty((24,), object)
        for i in range(len(x)):
            x[i] = "".join(rng.choice([*"aab b13,-_\n", "é", "日"], rng.integers(0, 30)))
        try:
            mod, _ = relay.frontend.from_onnx(tokenizer([None], **attrs).SerializeToString())
        except relay.RelayError as refused:
            assert by == "separators", attrs
            assert "matches the empty string" in str(refused), attrs
            continue
        got = relay.build(mod, num_threads=1, opt_level=0)(x)
        (want,) = runtime(tokenizer([None], **attrs), x=x)
        assert got.shape == want.shape, (attrs, x.tolist())
        assert got.tolist() == want.tolist(), (attrs, x.tolist())
        compared += 1
    assert compared > 5


@pytest.mark.parametrize("mark", [0, 1])
def test_tokenizer_without_tokens(mark):
    for strings in (["", ""], [",", ",,"]):
        x = np.array(strings, object)
        proto = tokenizer([None], separators=[","], mark=mark)
        assert run(proto, x)[0].shape == runtime(proto, x=x)[0].shape == (2, 0)
    # ONNX Runtime drops an axis here, which no type can say.
    assert run(proto, np.empty((0,), object))[0].shape == (0, 0)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({}, "'separators' and 'tokenexp' are missing"),
        ({"tokenexp": ""}, "'separators' and 'tokenexp' are missing"),
        ({"tokenexp": ".", "mincharnum": 2}, "'mincharnum' is out of range"),
        ({"separators": [""], "mincharnum": 2}, "'mincharnum' is out of range"),
        ({"separators": [","], "mincharnum": 0}, "'mincharnum' is out of range"),
        ({"separators": ["a*"]}, "'separators'.*matches the empty string"),
        ({"separators": [",", r"\b"]}, "'separators'.*matches the empty string"),
        ({"separators": ["", ","]}, "'separators'.*matches the empty string"),
        ({"tokenexp": "(?i)a"}, "'tokenexp'.*flags"),
        ({"tokenexp": r"\p{L}+"}, r"'tokenexp'.*escape \\p"),
        ({"tokenexp": r"[\pL]"}, r"'tokenexp'.*escape \\p"),
        ({"tokenexp": r"\Qa.b\E"}, r"'tokenexp'.*escape \\Q"),
        ({"tokenexp": "(a"}, "'tokenexp'.*group is not closed"),
        ({"tokenexp": "a)"}, "'tokenexp'.*closes no group"),
        ({"tokenexp": "(?:"}, "'tokenexp'.*group is not closed"),
        ({"tokenexp": "a**"}, "'tokenexp'.*nothing to repeat"),
        ({"tokenexp": "|*"}, "'tokenexp'.*nothing to repeat"),
        ({"tokenexp": "a{1001}"}, "'tokenexp'.*more than 1000"),
        ({"tokenexp": "a{3,2}"}, "'tokenexp'.*bounds are exchanged"),
        ({"tokenexp": "((a{1000}){1000}){1000}"}, "'tokenexp'.*too large"),
        ({"tokenexp": "(" * 2000}, "'tokenexp'.*nested too deeply"),
        ({"tokenexp": "[a"}, r"'tokenexp'.*'\[' is not closed"),
        ({"tokenexp": "[z-a]"}, "'tokenexp'.*not letters in order"),
        ({"tokenexp": "[[:letter:]]"}, "'tokenexp'.*no name of letters"),
        ({"tokenexp": r"\x{110000}"}, r"'tokenexp'.*escape \\x"),
        ({"tokenexp": "\\é"}, "'tokenexp'.*not ASCII"),
        ({"tokenexp": "a\\"}, "'tokenexp'.*at the end"),
    ],
)
def test_a_tokenizer_that_cannot_be_held_says_why(attrs, message):
    with pytest.raises(relay.RelayError, match=f"(?s)E0504.*{message}"):
        relay.frontend.from_onnx(tokenizer([None], **attrs).SerializeToString())


def test_tokenizer_takes_vectors_and_matrices():
    for shape in ([], [1, 2, 3]):
        with pytest.raises(relay.RelayError, match=r"rank 1 or 2"):
            relay.frontend.from_onnx(tokenizer(shape, separators=[","]).SerializeToString())


def test_a_rule_of_tokens_that_is_none_fails_in_the_run():
    text = """#[version = "0.0.5"]
    def @main(%x: Tensor[(?), string], %p: Tensor[(), string], %f: Tensor[(1), string]) {
      text.tokens(%x, %p, %f, between=False)
    }"""
    built = relay.build(relay.parse(text))
    assert built(["ab a"], "a", ["-"]).tolist() == [["a", "a"]]
    for pattern in ("a(", "a\nb"):
        with pytest.raises(relay.RelayError, match="E0605"):
            built(["ab"], pattern, ["-"])


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "int64", "uint64"])
def test_cast_to_text_and_back(kind):
    to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=STRING),
        helper.make_node("Cast", ["s"], ["y"], to=to),
    ]
    proto = model(nodes, [("x", to, [None])], [("s", STRING, [None]), ("y", to, [None])])
    if kind.startswith("float"):
        x = np.array([0.1, -0.0, 1e-7, 3.14159, 65504, np.inf, -np.inf, np.nan, 1 / 3], kind)
    else:
        x = np.array([0, 1, np.iinfo(kind).min, np.iinfo(kind).max], kind)
    s, y = run(proto, x)
    np.testing.assert_array_equal(y, x)
    assert all(len(t) <= 24 for t in s)
    if kind == "float32":
        assert s.tolist() == ["0.1", "-0", "1e-07", "3.14159", "65504", "INF", "-INF", "NaN",
                              "0.33333334"]  # fmt: skip


def test_text_that_is_no_number_fails_in_the_run():
    node = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
    mod, _ = relay.frontend.from_onnx(
        model([node], [("x", STRING, [None])], [("y", FLOAT, [None])]).SerializeToString()
    )
    built = relay.build(mod)
    np.testing.assert_array_equal(
        built(["+1.5", "1E3", "-inf", "nan"]), [1.5, 1000, -np.inf, np.nan]
    )
    for bad in ("", "1.5x", "one", " 1", "0x10"):
        with pytest.raises(
            relay.RelayError, match=r"E0605.*a string is not a number or not a pattern"
        ):
            built([bad])


def test_a_pattern_that_is_none_fails_in_the_run():
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="a(b")
    proto = model([node], [("x", STRING, [None])], [("y", TensorProto.BOOL, [None])])
    built = relay.build(relay.frontend.from_onnx(proto.SerializeToString())[0])
    with pytest.raises(relay.RelayError, match="E0605"):
        built(["ab"])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("of_words", [False, True])
def test_tf_idf(of_words, mode):
    pool = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
    attrs = {"pool_strings": [str(p) for p in pool]} if of_words else {"pool_int64s": pool}
    weights = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    node = helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        mode=mode,
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=3,
        ngram_counts=[0, 4],
        ngram_indexes=[0, 1, 2, 3, 4, 5, 6],
        weights=weights,
        **attrs,
    )
    kind = STRING if of_words else INT64
    proto = model([node], [("x", kind, ["n", 8])], [("y", FLOAT, None)])
    x = np.random.default_rng(0).integers(1, 10, (5, 8))
    given = x.astype(str).astype(object) if of_words else x
    np.testing.assert_allclose(run(proto, given)[0], runtime(proto, x=given)[0])


LABELS = {"strings": (STRING, object), "int64s": (INT64, "int64"), "floats": (FLOAT, "float32")}


def label_encoder(keys, key, values, value, **attrs):
    """Returns a model that looks values up by keys; `keys` and `values` are their kinds."""
    attrs |= {f"keys_{keys}": key, f"values_{values}": value}
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attrs)
    kinds = LABELS[keys][0], LABELS[values][0]
    return model([node], [("x", kinds[0], [None])], [("y", kinds[1], None)], ml=4)


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
@pytest.mark.parametrize("keys", ["strings", "int64s", "floats"])
@pytest.mark.parametrize("values", ["strings", "int64s", "floats"])
def test_label_encoder(keys, values, count):
    rng = np.random.default_rng(count)

    def some(kind, size):
        n = rng.permutation(size * 3)[:size]
        return {"strings": [f"k{i}é" for i in n], "int64s": n.tolist(), "floats": (n / 4).tolist()}[
            kind
        ]

    key, value = some(keys, count), some(values, count)
    defaults = {"strings": {"default_string": "none"}, "int64s": {"default_int64": -7},
                "floats": {"default_float": 0.25}}[values]  # fmt: skip
    if keys == "floats":
        key[-1] = float("nan")
    proto = label_encoder(keys, key, values, value, **defaults)
    x = np.array(key[:50] + some(keys, 50), dtype=LABELS[keys][1])
    np.testing.assert_array_equal(run(proto, x)[0], runtime(proto, x=x)[0])


@pytest.mark.parametrize(
    ("keys", "key", "x"),
    [
        ("strings", ["a", "", "a", ""], ["", "a", "b"]),
        ("int64s", [5, 0, 5, 0], [0, 5, 1]),
        ("floats", [0.5, float("nan"), 0.5, float("nan")], [float("nan"), 0.5, 0]),
    ],
)
def test_label_encoder_takes_the_first_of_equal_keys(keys, key, x):
    proto = label_encoder(keys, key, "int64s", [1, 2, 3, 4], default_int64=-7)
    x = np.array(x, dtype=LABELS[keys][1])
    assert run(proto, x)[0].tolist() == runtime(proto, x=x)[0].tolist() == [2, 1, -7]


def keys_of_one_hash():
    """Returns two strings of 16 letters with the same hash (runtime/core/string_functions.h)."""
    multiplier, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def behind(word):
        """Returns the state of the hash behind the first eight letters."""
        state = (16 * multiplier ^ int.from_bytes(word, "little")) * multiplier & mask
        return state ^ state >> 32

    # The second eight letters of the keys differ where the states do, in letters of ASCII alone.
    one = b"00000000"
    for number in range(1, 10**6):
        other = b"%08d" % number
        different = (behind(one) ^ behind(other)).to_bytes(8, "little")
        if max(different) < 128:
            break
    rest = bytes(65 if d == 64 else 64 for d in different)
    changed = bytes(r ^ d for r, d in zip(rest, different, strict=True))
    return [(one + rest).decode(), (other + changed).decode()]


@pytest.mark.parametrize("values", ["strings", "int64s"])
def test_label_encoder_searches_keys_of_one_hash(values):
    key = [*keys_of_one_hash(), "z", "", "a"]
    value = [f"v{i}" for i in range(5)] if values == "strings" else [*range(5)]
    for count, form in ((5, "searchsorted"), (1, "text.hash")):
        proto = label_encoder("strings", key[:count], values, value[:count])
        text = str(relay.frontend.from_onnx(proto.SerializeToString())[0])
        assert [f for f in ("searchsorted", "text.hash") if f in text] == [form]
        x = np.array([*key, "b", "zz"], object)
        np.testing.assert_array_equal(run(proto, x)[0], runtime(proto, x=x)[0])


@pytest.mark.parametrize("values", ["strings", "int64s"])
def test_label_encoder_holds_a_long_word_once(values, tmp_path):
    """Empty slots of the table repeat a key and its value: short ones, not the first key."""
    key = ["a" * 10**4, *(f"k{i}" for i in range(999))]
    value = [*range(1000)] if values == "int64s" else ["b" * 10**4, *(str(i) for i in range(999))]
    proto = label_encoder("strings", key, values, value)
    mod, params = relay.frontend.from_onnx(proto.SerializeToString())
    relay.build(mod, params=params).export_library(tmp_path / "labels.so")
    assert (tmp_path / "labels.so").stat().st_size < 10**6


def test_words_in_the_middle_of_a_model():
    """Strings in constants, in branches and in sequences; chosen, joined and compared."""
    then = helper.make_graph(
        [helper.make_node("StringConcat", ["x", "dot"], ["t"])], "t", [],
        [helper.make_tensor_value_info("t", STRING, None)])  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["e"])], "e", [],
        [helper.make_tensor_value_info("e", STRING, None)])  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["dot"], value_string="."),
        helper.make_node("If", ["c"], ["a"], then_branch=then, else_branch=other),
        helper.make_node("Concat", ["a", "x"], ["b"], axis=0),
        helper.make_node("Equal", ["b", "word"], ["hit"]),
        helper.make_node("Where", ["hit", "dot", "b"], ["y"]),
    ]
    proto = model(
        nodes, [("c", TensorProto.BOOL, []), ("x", STRING, ["n"]), ("word", STRING, [1])],
        [("y", STRING, None)])  # fmt: skip
    for c in (True, False):
        got = run(proto, np.array(c), np.array(["one", "two"], object), np.array(["one"], object))[
            0
        ]
        assert got.tolist() == (["one.", "two.", ".", "two"] if c else [".", "two", ".", "two"])


@pytest.mark.parametrize(("words", "message"), [([b"a"], "size of its shape"),
                                                ([b"a", b"\xff"], "UTF-8")])  # fmt: skip
def test_damaged_strings_are_refused(words, message):
    broken = TensorProto(name="w", data_type=STRING, dims=[2], string_data=words)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])], "g", [],
        [helper.make_tensor_value_info("y", STRING, [2])], initializer=[broken])  # fmt: skip
    with pytest.raises(relay.RelayError, match=f"E0508.*{message}"):
        relay.frontend.from_onnx(helper.make_model(graph).SerializeToString())


MOVES = {
    "Compress": ({"c": np.array([True, False, True])}, {"axis": 1}, (2, 3)),
    "DepthToSpace": ({}, {"blocksize": 2}, (1, 4, 2, 1)),
    "SpaceToDepth": ({}, {"blocksize": 2}, (1, 1, 2, 4)),
    "Expand": ({"s": np.array([2, 2, 3])}, {}, (2, 3)),
    "Flatten": ({}, {}, (2, 3)),
    "Gather": ({"i": np.array([2, 0])}, {"axis": 1}, (2, 3)),
    "GatherElements": ({"i": np.array([[2, 0], [1, 1]])}, {"axis": 1}, (2, 3)),
    "GatherND": ({"i": np.array([[1, 0], [0, 2]])}, {}, (2, 3)),
    "ReverseSequence": ({"l": np.array([2, 3])}, {"batch_axis": 0, "time_axis": 1}, (2, 3)),
    "ScatterElements": ({"i": np.array([[1], [0]]), "u": np.array([["U"], ["V"]], object)},
                        {"axis": 1}, (2, 3)),
    "ScatterND": ({"i": np.array([[1]]), "u": np.array([["U", "V", "W"]], object)}, {}, (2, 3)),
    "Slice": ({"b": np.array([2]), "e": np.array([-10]), "a": np.array([1]), "t": np.array([-1])},
              {}, (2, 3)),
    "Squeeze": ({}, {}, (1, 6)),
    "Tile": ({"r": np.array([2, 1])}, {}, (2, 3)),
    "Transpose": ({}, {"perm": [1, 0]}, (2, 3)),
    "Unsqueeze": ({"a": np.array([0])}, {}, (2, 3)),
    "CenterCropPad": ({"s": np.array([2])}, {"axes": [1]}, (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("op", MOVES)
def test_operators_that_move_take_strings(op):
    constants, attrs, shape = MOVES[op]
    node = helper.make_node(op, ["x", *constants], ["y"], **attrs)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", STRING, shape)],
        [helper.make_tensor_value_info("y", STRING, None)],
        initializer=[onnx.numpy_helper.from_array(v, k) for k, v in constants.items()],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    words = ["a", "bb", "", "d", "ee", "fff", "g", "h"]
    x = np.resize(np.array(words, object), shape)
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_array_equal(run(proto, x)[0], want.astype(object))


def test_pad_and_trilu_of_strings():
    """The reference has none of strings."""
    x = np.array([["a", "b"], ["c", "d"]], object)

    def of(nodes, **constants):
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info("x", STRING, [2, 2])],
            [helper.make_tensor_value_info("y", STRING, None)],
            initializer=[onnx.numpy_helper.from_array(v, k) for k, v in constants.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 18)]
        return run(helper.make_model(graph, opset_imports=opsets, ir_version=9), x)[0].tolist()

    pads, star = np.array([0, 1, 0, 0]), np.array("*", object)
    pad = helper.make_node("Pad", ["x", "p"], ["y"])
    assert of([pad], p=pads) == [["", "a", "b"], ["", "c", "d"]]
    pad = helper.make_node("Pad", ["x", "p", "v"], ["y"])
    assert of([pad], p=pads, v=star) == [["*", "a", "b"], ["*", "c", "d"]]
    pad = helper.make_node("Pad", ["x", "p"], ["y"], mode="edge")
    assert of([pad], p=pads) == [["a", "a", "b"], ["c", "c", "d"]]
    assert of([helper.make_node("Trilu", ["x"], ["y"])]) == [["a", "b"], ["", "d"]]


# Alike in seven bytes, with ends on both sides of them.
ALIKE = [
    front + end
    for front in ("", "b", "aaaaaa", "aaaaaaa", "aaaaaaaa", "çççaaaaaaaa")
    for end in ("", "a", "bb", "a", "ba", "")
]


@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("words", [["b", "a", "ç", "b", "", "a", "b"], ALIKE, ["x"], []])
def test_unique_words(words, in_order):
    node = helper.make_node("Unique", ["x"], ["y", "at", "back", "count"], sorted=in_order)
    outputs = [("y", STRING, None), *((name, INT64, None) for name in ("at", "back", "count"))]
    got = run(model([node], [("x", STRING, ["n"])], outputs), np.array(words, dtype=object))
    want, at, back, count = np.unique(
        np.array(words, dtype=str), return_index=True, return_inverse=True, return_counts=True
    )
    if not in_order:
        order = np.argsort(at)
        back = np.argsort(order)[back]
        want, at, count = want[order], at[order], count[order]
    for g, w in zip(got, (want, at, back, count), strict=True):
        assert np.asarray(g).tolist() == w.tolist()
