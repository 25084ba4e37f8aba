"""Ranges and likely sizes of open dimensions: --dim, --hot and relay.build's dims and hot."""

import functools
import os

import hypothesis
import numpy as np
import pytest
from command_line import fails, relay, relay_json
from hypothesis import strategies as st

import relay as rl

PRODUCTS = """#[version = "0.0.5"]
def @main[n: Dim, m: Dim](%x: Tensor[(n, 24), float32], %y: Tensor[(m, 24), float32]) {
  let %scores = nn.dense(%x, %y);
  let %weights = nn.softmax(%scores);
  (nn.dense(%weights, transpose(%y)), sum(%x, axis=[0]))
}
"""
HOT = {"n": [1, 17], "m": [3, 32]}
RANGES = {"n": (1, 40), "m": (1, 64)}


@functools.cache
def built(level: int):
    return rl.build(rl.parse(PRODUCTS), dims=RANGES, hot=HOT, opt_level=level)


@functools.cache
def evaluated():
    return rl.create_executor("debug", rl.parse(PRODUCTS)).evaluate()


@pytest.mark.parametrize("level", range(4))
@hypothesis.settings(max_examples=12)
@hypothesis.given(n=st.one_of(st.sampled_from(HOT["n"]), st.integers(1, 40)),
                  m=st.one_of(st.sampled_from(HOT["m"]), st.integers(1, 64)))  # fmt: skip
@hypothesis.example(n=1, m=3)
@hypothesis.example(n=17, m=32)
def test_versions_give_what_the_evaluator_gives(level, n, m):
    rng = np.random.default_rng(n * 100 + m)
    x, y = (rng.standard_normal((rows, 24)).astype(np.float32) for rows in (n, m))
    for got, want in zip(built(level)(x, y), evaluated()(x, y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


MOST_ROWS = 260 // 8  # that the kernel for few rows takes


@functools.cache
def layers(names: str, rows: str):
    return rl.build(
        rl.parse(f"""#[version = "0.0.5"]
def @main{names}(%x: Tensor[({rows}, 260), float32], %v: Tensor[(264, 260), float32],
                 %b: Tensor[(264,), float32], %w: Tensor[(5, 264), float32]) {{
  nn.dense(nn.relu(nn.bias_add(nn.dense(%x, %v), %b)), %w)
}}
""")
    )


@pytest.mark.parametrize(("names", "rows"), [("[n: Dim]", "n"), ("", "?")])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1, 100])
def test_few_rows_are_multiplied_by_a_kernel_of_their_own(names, rows, n):
    rng = np.random.default_rng(n)
    shapes = ((n, 260), (264, 260), (264,), (5, 264))
    x, v, b, w = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    want = np.maximum(x @ v.T + b, 0) @ w.T
    np.testing.assert_allclose(layers(names, rows)(x, v, b, w), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("n", "m"), [(0, 3), (41, 3), (1, 0), (1, 65)])
def test_sizes_outside_of_their_range_are_refused(n, m):
    with pytest.raises(rl.RunError, match=r"dimension [nm] is not in 1\.\.(40|64)"):
        built(3)(np.ones((n, 24), np.float32), np.ones((m, 24), np.float32))


@pytest.mark.parametrize(
    ("options", "mentions"),
    [
        ({"hot": {"k": [1]}}, "no open dimension 'k'"),
        ({"dims": {"n": (1, 8)}, "hot": {"n": [9]}}, "outside of its range"),
        ({"dims": {"n": (8, 1)}}, "range of dimension 'n' is empty"),
        ({"dims": {"n": (1,)}}, "is a pair"),
        ({"hot": {"n": [-1]}}, "outside of its range"),
        ({"hot": {"n": [1, 2, 3], "m": [1, 2, 3]}}, "too many combinations"),
    ],
)
def test_hints_that_make_no_sense(options, mentions):
    with pytest.raises(rl.UserError, match="E0702") as error:
        rl.build(rl.parse(PRODUCTS), **options)
    assert mentions in str(error.value)


@pytest.mark.parametrize(
    ("hints", "mentions"),
    [
        ("3", "cannot be read"),
        ('[["n", 1]]', "cannot be read"),
        ('[["n", 0, 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]]]', "cannot be read"),
        ('[["k", 0, 9, [1]]]', "no open dimension 'k'"),
        ('[["n", 5, 4, []]]', "is empty"),
    ],
)
def test_hints_in_a_text_that_make_no_sense(hints, mentions):
    text = PRODUCTS.replace("(m, 24), float32])", f"(m, 24), float32], size_hints={hints})")
    with pytest.raises(rl.UserError, match="E0702") as error:
        rl.build(rl.parse(text))
    assert mentions in str(error.value)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The program as text and compiled, in a folder."""
    folder = tmp_path_factory.mktemp("likely")
    (folder / "products.relay").write_text(PRODUCTS)
    relay("compile", folder / "products.relay", "-o", folder / "products.so", "-q",
          "--dim", "n=1..512", "--hot", "n=1,128", "--hot", "m=16")  # fmt: skip
    return folder


def test_explain_says_when_a_version_runs(files):
    text = relay("explain", files / "products.so").stdout
    assert "runs      where n = 128, m = 16" in text
    assert "runs      where no version does" in text
    assert "kernels for likely sizes" in text
    report = relay_json("explain", files / "products.so")
    versions = [k["version"] for k in report["kernels"] if "version" in k]
    assert {"n = 1, m = 16", "n = 128, m = 16"} <= set(versions)
    assert report["code"]["versions"] == len(versions)
    assert 0 < report["code"]["version_bytes"] < report["code"]["bytes"]


def test_versions_run_for_their_sizes(files):
    def called(n):
        report = relay_json("bench", files / "products.so", "--repeat", "1", "--profile",
                            "--dim", f"n={n}", "--dim", "m=16")  # fmt: skip
        return {k["name"] for k in report["kernels"]}

    versions = {k["name"] for k in relay_json("explain", files / "products.so")["kernels"]
                if k.get("version") == "n = 128, m = 16"}  # fmt: skip
    assert versions and versions <= called(128)
    assert not versions & called(127)


def test_weights_are_not_copied_for_versions(tmp_path):
    """Versions share the packed weights: the file grows by code only."""
    text = """#[version = "0.0.5"]
def @main[n: Dim](%x: Tensor[(n, 512), float32], %w: Tensor[(512, 512), float32]) {
  nn.dense(nn.relu(nn.dense(%x, %w)), %w)
}
"""
    params = {"w": np.ones((512, 512), np.float32)}
    sizes = []
    for hot in ({}, {"n": [1, 8, 64, 128]}):
        exe = rl.build(rl.parse(text), params=params, hot=hot)
        exe.export_library(str(tmp_path / "m.so"))
        sizes.append(os.path.getsize(tmp_path / "m.so"))
        os.remove(tmp_path / "m.so")
    assert sizes[0] < sizes[1] < 1.3 * sizes[0]


def test_bench_measures_several_sizes(files):
    text = relay("bench", files / "products.so", "--repeat", "2", "--dim", "n=1,5,128").stdout
    rows = [line.split() for line in text.splitlines() if line.strip()]
    assert ["n", "min", "median", "p90", "runs"] in rows
    assert [row[0] for row in rows if row[0] in ("1", "5", "128")] == ["1", "5", "128"]
    lines = relay_json("bench", files / "products.so", "--repeat", "2", "--dim", "n=1,5",
                       "--dim", "m=2,3")["sizes"]  # fmt: skip
    assert [(line["dims"]["n"], line["dims"]["m"]) for line in lines] == [
        (1, 2), (5, 2), (1, 3), (5, 3)]  # fmt: skip
    assert all(0 < line["min_seconds"] <= line["median_seconds"] for line in lines)


@pytest.mark.parametrize(
    ("args", "mentions"),
    [
        (("run", "products.relay", "--dim", "n=1,2"), "relay bench measures several"),
        (("run", "products.so", "--dim", "n=1..4"), "was compiled before"),
        (("run", "products.so", "--hot", "n=4"), "--hot"),
        (("run", "products.relay", "--executor", "eval", "--dim", "n=1..4"), "takes no range"),
        (("run", "products.relay", "--dim", "n=4..1"), "is empty"),
        (("run", "products.relay", "--dim", "n=..1"), "cannot be read"),
        (("run", "products.relay", "--dim", "n=1..2", "--dim", "n=1..3"), "twice"),
        (("run", "products.relay", "--hot", "n=1,,2"), "cannot be read"),
        (("run", "products.relay", "--hot", "k=1"), "no open dimension 'k'"),
        (("bench", "products.so", "--dim", "n=1,2", "--profile"), "shows a run of one size"),
        (("explain", "products.relay", "--dim", "n=4,5"), "gives several sizes"),
        (("explain", "products.relay", "--dim", "n=4", "--dim", "n=5"), "twice"),
    ],
)
def test_options_that_make_no_sense(files, args, mentions):
    fails("E0702", *args, cwd=files, mentions=(mentions,))


def test_sizes_of_a_run_from_nothing_to_far_too_much(files):
    fails("E0607", "run", "products.so", "--dim", "n=513", cwd=files,
          mentions=("dimension n is not in 1..512",))  # fmt: skip
    fails("E0607", "run", "products.so", "--dim", "n=0", cwd=files,
          mentions=("dimension n is not in 1..512",))  # fmt: skip
    assert relay_json("run", files / "products.so", "--dim", "m=0")["outputs"][0]["shape"] == [
        1,
        24,
    ]
    fails("E0604", "run", "products.so", "--dim", f"m={2**40}", cwd=files, mentions=("memory",))
