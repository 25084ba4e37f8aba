"""What `relay explain`, `relay bench --profile` and the kernel cache tell and do."""

import os
import re
import shutil
import subprocess

import onnx
import pytest
from command_line import RELAY, fails, relay, relay_json, small_model
from hosts import HOSTS

# A sum that no rule takes: its weights are a parameter, whose columns are no neighbours in memory.
SUSPECT = """#[version = "0.0.5"]
def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {
  nn.softmax(nn.dense(%x, %w))
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("explain") / "model.onnx"
    onnx.save(small_model(), path)
    return path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiled(model, tmp_path, *args):
    return relay_json("compile", model, "-o", tmp_path / "m.so", "--force", *args)["cache"]


def test_explain_tells_passes_memory_and_kernels(model):
    out = relay("explain", model).stdout
    for word in (
        "target ",
        "FuseOps",
        "memory ",
        "minimum possible",
        "schedule ",
        "nodes ",
        "ends ",
    ):
        assert word in out, out
    assert str(model) not in out, "the folder of the model is private"
    assert "\x1b" not in out


def test_explain_json_and_one_kernel(model):
    report = relay_json("explain", model)
    assert {p["name"] for p in report["passes"]} >= {"FoldConstant", "FuseOps"}
    assert all(k["sites"] and k["rule"] and k["calls"] >= 1 for k in report["kernels"])
    main = report["memory"]["functions"][0]
    assert main["arena_bytes"] >= main["arena_lower_bound"]
    assert main["kernel_calls"] == sum(k["calls"] for k in report["kernels"])
    name = report["kernels"][0]["name"]
    out = relay("explain", model, "--kernel", name).stdout
    assert out.startswith(name) and "declined" in out and "FuseOps" not in out
    fails("E0702", "explain", model, "--kernel", "nothing", mentions=("no kernel 'nothing'",))


def test_an_artifact_explains_itself(model, tmp_path):
    host = HOSTS[0]  # every machine runs its code
    relay("compile", model, "-o", tmp_path / "m.so", host=host)
    from_source = relay_json("explain", model, host=host)
    from_file = relay_json("explain", tmp_path / "m.so", host=host)
    assert from_file["kernels"] == from_source["kernels"]
    assert from_file["memory"] == from_source["memory"]
    assert "passes" not in from_file


OPEN = """#[version = "0.0.5"]
def @main[n: Dim](%x: Tensor[(n, 64), float32], %w: Tensor[(256, 64), float32],
                  %v: Tensor[(64, 256), float32]) {
  let %a = nn.dense(%x, %w);
  let %b = nn.dense(nn.softmax(%a), %v);
  nn.softmax(nn.dense(%b, %w))
}
"""


def test_the_working_memory_of_open_sizes_is_a_formula(tmp_path):
    path = tmp_path / "open.relay"
    path.write_text(OPEN)
    (function,) = relay_json("explain", path)["memory"]["functions"]
    formula = function["working_memory"]
    assert re.fullmatch(r"(\d+ \+ )?\d+\*n( \+ align64\(4\*n\))?", formula), formula
    assert f"  @main: working memory {formula} bytes\n" in relay("explain", path).stdout
    plan = relay("show", path, "--plan").stdout
    assert f" places of open sizes; working memory {formula} bytes\n" in plan
    out = tmp_path / "open.so"
    relay("compile", path, "-o", out, "-q")
    assert relay_json("explain", out)["memory"]["functions"][0]["working_memory"] == formula
    fixed = relay_json("explain", path, "--input", "x=8,64")["memory"]["functions"][0]
    assert "working_memory" not in fixed and fixed["arena_bytes"] > 0


def test_a_slow_kernel_names_its_cause(tmp_path):
    (tmp_path / "s.relay").write_text(SUSPECT)
    report = relay_json("explain", tmp_path / "s.relay")
    slow = [k for k in report["kernels"] if k["suspect"]]
    assert all(k["rule"] == "loops" and k["declined"] for k in slow)
    if slow:
        assert "declined  contraction: " in relay("explain", tmp_path / "s.relay").stdout


def test_a_profile_names_the_limit_of_each_kernel(model):
    report = relay_json("bench", model, "--profile", "--repeat", 3)
    names = ["L1", "L2", "L3", "memory"]
    rates = report["limits"]["read_gbytes_per_second"]
    assert [n for n in names if n in rates] == list(rates) and {"L1", "memory"} <= set(rates)
    assert all(r > 0 for r in rates.values())
    assert abs(sum(k["share"] for k in report["kernels"]) - 1) < 1e-6
    for k in report["kernels"]:
        assert k["limit"] in ("", "compute", *names)
        assert not k["limit"] or 0 < k["of_limit"] <= 1.5


def test_the_second_compilation_finds_its_kernels(model, tmp_path, cache):
    first = compiled(model, tmp_path)
    assert first["hits"] == 0 and first["stored"] == first["misses"] > 0
    bytes_of_first = (tmp_path / "m.so").read_bytes()
    assert compiled(model, tmp_path)["misses"] == 0
    assert (tmp_path / "m.so").read_bytes() == bytes_of_first
    other = compiled(model, tmp_path, "--target", "x86-64-v2")
    assert other["hits"] < first["misses"] and other["stored"] > 0


def test_without_a_cache_nothing_is_kept(model, tmp_path, cache, monkeypatch):
    report = relay_json("compile", model, "-o", tmp_path / "m.so", "--no-cache")
    assert "cache" not in report and not cache.exists()
    monkeypatch.setenv("RELAY_CACHE_SIZE", "0")
    relay("compile", model, "-o", tmp_path / "m.so", "--force")
    assert not cache.exists()
    monkeypatch.setenv("RELAY_CACHE_SIZE", "many")
    fails("E0702", "compile", model, "-o", tmp_path / "n.so", mentions=("RELAY_CACHE_SIZE",))


def test_damaged_entries_are_compiled_again(model, tmp_path, cache):
    compiled(model, tmp_path)
    good = (tmp_path / "m.so").read_bytes()
    entries = sorted(cache.rglob("*.kernel"))
    entries[0].write_bytes(entries[0].read_bytes()[:-3])
    entries[1].write_bytes(b"")
    again = compiled(model, tmp_path)
    assert again["stored"] == 2 and "damaged" in again["note"]
    assert (tmp_path / "m.so").read_bytes() == good
    assert compiled(model, tmp_path)["misses"] == 0


def test_a_folder_that_cannot_be_written_is_a_note(model, tmp_path, monkeypatch):
    # Not even the superuser makes folders there.
    monkeypatch.setenv("RELAY_CACHE_DIR", "/proc/relay")
    done = relay("compile", model, "-o", tmp_path / "m.so")
    assert done.stderr == "" and "cannot be written" in done.stdout
    relay("run", model)


def test_two_processes_fill_one_cache(model, tmp_path, cache):
    commands = [[RELAY, "compile", str(model), "-o", str(tmp_path / f"{i}.so")] for i in range(3)]
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, env=os.environ) for c in commands]
    assert [p.wait(timeout=120) for p in running] == [0, 0, 0]
    assert (tmp_path / "0.so").read_bytes() == (tmp_path / "2.so").read_bytes()
    assert compiled(model, tmp_path)["misses"] == 0
    assert not [p for p in cache.rglob("*") if ".tmp" in p.name]


def test_the_cache_is_shown_and_cleared(model, tmp_path, cache):
    assert relay_json("cache")["kernels"] == 0
    stored = compiled(model, tmp_path)["stored"]
    shown = relay_json("cache", "info")
    assert shown["kernels"] == stored and 0 < shown["bytes"] < shown["max_bytes"]
    assert str(cache) in relay("cache").stdout
    assert relay_json("cache", "clear")["removed"] == stored
    assert relay_json("cache")["kernels"] == 0
    shutil.rmtree(cache)
    assert relay("cache", "shred", check=False).returncode == 2
