"""One file for several processors: a machine loads the best version that it runs, and each can be named."""

import ctypes
import json
import re

import emulation
import numpy as np
import pytest
from command_line import fails, relay, relay_json

import relay as R

ALL = "x86-64-v2+v3+v4"
NAMES = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
SHAPE = (1, 16, 15, 15)
ARM = "aarch64-linux"


def network() -> R.IRModule:
    """A convolution, a depthwise one and a dense layer, whose widths fill no panel of 32 columns."""
    rng = np.random.default_rng(1)

    def weight(*shape):
        return R.const((rng.standard_normal(shape) / 8).astype("float32"))

    x = R.var("x", shape=SHAPE)
    y = R.nn.conv2d(x, weight(72, 16, 3, 3), padding=(1, 1), channels=72, kernel_size=(3, 3))
    y = R.nn.relu(R.nn.bias_add(y, weight(72)))
    y = R.nn.conv2d(y, weight(72, 1, 3, 3), padding=(1, 1), groups=72, kernel_size=(3, 3))
    y = R.nn.dense(R.nn.batch_flatten(R.nn.global_avg_pool2d(R.tanh(y))), weight(100, 72))
    return R.IRModule.from_expr(R.Function([x], R.nn.softmax(y)))


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    (folder / "m.relay").write_text(network().astext())
    words = ("compile", "-q", "m.relay", "--target", ALL, "-o", "m.so")
    (folder / "report.json").write_text(relay(*words, "--json", cwd=folder).stdout)
    return folder


def runs_here(here, name) -> bool:
    done = relay("run", "m.so", "--target", name, cwd=here, check=False)
    assert done.returncode == 0 or "E0610" in done.stderr, done.stderr
    return done.returncode == 0


def test_each_version_gives_the_numbers_of_a_file_of_its_own(here):
    x = np.random.default_rng(2).standard_normal(SHAPE).astype("float32")
    want = np.asarray(R.create_executor("debug", network()).evaluate()(x))
    runnable = [n for n in NAMES if runs_here(here, n)]
    assert NAMES[0] in runnable
    for name in runnable:
        module = R.runtime.load_module(here / "m.so", version=name)
        np.testing.assert_allclose(np.asarray(module(x)), want, rtol=2e-5, atol=1e-6)
    best = R.runtime.load_module(here / "m.so")
    assert json.loads(best.metadata)["target"].startswith(runnable[-1] + ":")


def test_versions_share_weights_and_the_reports_state_the_size(here):
    report = json.loads((here / "report.json").read_text())
    assert [v["name"] for v in report["versions"]] == NAMES
    constants = max(v["constant_bytes"] for v in report["versions"])
    code = sum(v["code_bytes"] for v in report["versions"])
    size = (here / "m.so").stat().st_size
    assert size == report["file_bytes"]
    rest = size - code - constants
    assert rest < 0.25 * constants + 40_000, (size, code, constants)
    text = relay("check", "m.so", cwd=here).stdout
    for name in NAMES:
        assert re.search(rf"^  version +{name}: code .*, constants ", text, re.M), text
    assert re.search(r"^  size +\S+ KiB; separate files ", text, re.M), text


def test_explain_and_show_tell_the_versions_apart(here):
    shown = NAMES[1] if runs_here(here, NAMES[1]) else NAMES[0]
    report = relay_json("explain", "m.so", "--target", shown, cwd=here)
    assert [v["name"] for v in report["versions"]] == NAMES
    others = [v for v in report["versions"] if not v["shown"]]
    assert len(others) == 2 and all(v["kernels_that_differ"] > 0 for v in others)
    differ = [k for k in report["kernels"] if "in_versions" in k]
    for kernel in differ:
        assert all(v["schedule"] != kernel["schedule"] for v in kernel["in_versions"])
    assert len(differ) == max(v["kernels_that_differ"] for v in others)
    text = relay("explain", "m.so", "--target", shown, cwd=here).stdout
    assert re.search(rf"^version  {shown}: .*; shown here$", text, re.M), text
    assert (
        f"version: {shown} of {', '.join(NAMES)}"
        in relay("show", "m.so", "--target", shown, cwd=here).stdout
    )
    # A model is compiled for all versions; a file of one version has nothing to tell.
    assert len(relay_json("explain", "m.relay", "--target", ALL, cwd=here)["versions"]) == 3
    assert "versions" not in relay_json("explain", "m.relay", "--target", shown, cwd=here)


def test_the_environment_names_a_version(here, monkeypatch):
    monkeypatch.setenv("RELAY_CODE_VERSION", NAMES[0])
    module = R.runtime.load_module(here / "m.so")
    assert json.loads(module.metadata)["target"].startswith(NAMES[0])
    monkeypatch.setenv("RELAY_CODE_VERSION", "x86-64-v9")
    fails("E0623", "run", "m.so", cwd=here, mentions=NAMES)


def test_a_program_of_python_is_exported_with_all_versions(tmp_path):
    program = R.build(network(), target="x86-64-v2+v3", cache=False)
    program.export_library(tmp_path / "m.so")
    assert "x86-64-v2, x86-64-v3" in relay("show", tmp_path / "m.so").stdout
    x = np.ones(SHAPE, "float32")
    least = R.runtime.load_module(tmp_path / "m.so", version=NAMES[0])
    np.testing.assert_allclose(np.asarray(program(x)), np.asarray(least(x)), rtol=1e-5, atol=1e-7)


def test_a_version_that_is_not_there_is_E0623(here):
    fails("E0623", "run", "m.so", "--target", "x86-64-v9", cwd=here, mentions=NAMES)
    with pytest.raises(R.UserError, match=r"(?s)E0623.*x86-64-v4"):
        R.runtime.load_module(here / "m.so", version="x86-64-v9")


def test_a_version_that_the_machine_lacks_is_E0610(tmp_path):
    (tmp_path / "m.relay").write_text(network().astext())
    words = ("compile", "-q", "m.relay", "-o", "m.so", "--target", "x86-64-v2+tbm")
    relay(*words, cwd=tmp_path)
    relay("run", "m.so", cwd=tmp_path)
    named = ("run", "m.so", "--target", "x86-64-v2+tbm")
    fails("E0610", *named, cwd=tmp_path, mentions=("x86-64-v2+tbm", "tbm"))
    words = ("compile", "-q", "m.relay", "-o", "n.so", "--target", "x86-64-v2+xop+tbm")
    relay(*words, cwd=tmp_path)
    relay("run", "n.so", cwd=tmp_path)


def test_no_version_that_fits_is_E0610(tmp_path):
    (tmp_path / "m.relay").write_text(network().astext())
    target = "x86-64-v3+xop+tbm -mattr=+fma4"
    relay("compile", "-q", "m.relay", "-o", "m.so", "--target", target, cwd=tmp_path)
    fails("E0610", "run", "m.so", cwd=tmp_path, mentions=("x86-64-v3+xop", "fma4"))


@pytest.mark.parametrize(
    ("target", "code", "mentions"),
    [
        ("x86-64-v3+aarch64-linux", "E1505", ("x86_64", "aarch64")),
        ("x86-64-v2+armv8.4-a", "E1505", ("x86_64", "aarch64")),
        ("x86-64-v4+v3", "E1505", ("x86-64-v4 would never be loaded",)),
        ("x86-64-v3+v3", "E1505", ("would never be loaded",)),
        ("x86-64-v2++v3", "E1505", ("empty",)),
        ("native+v3", "E1505", ("native",)),
        ("x86-64-v2" + "+v3" * 20, "E1505", ("at most 16",)),
        ("x86-64-v3+v7", "E0403", ("v7",)),
        ("x86-64-v2+v3 -l2=0", "E0403", ("-l2=0",)),
        ("x86-64-v2 -panel=3", "E0403", ("multiple of 4",)),
        ("x86-64-v3 -panel=128", "E0403", ("1 to 64",)),
    ],
)
def test_versions_that_do_not_go_together_are_refused(here, tmp_path, target, code, mentions):
    words = ("compile", "-q", here / "m.relay", "-o", tmp_path / "n.so", "--target", target)
    fails(code, *words, mentions=mentions)


@pytest.mark.skipif(bool(emulation.lacks(ARM)), reason=emulation.lacks(ARM))
def test_the_emulators_processor_decides(tmp_path, monkeypatch):
    """On a Cortex-A53 the version without dot products runs, on others the one with them."""
    rng = np.random.default_rng(3)
    x, w = rng.integers(-128, 128, (5, 64)), rng.integers(-128, 128, (24, 64))
    a = R.var("x", shape=x.shape, dtype="int8")
    product = R.nn.dense(a, R.const(w.astype("int8")), out_dtype="int32")
    (tmp_path / "m.relay").write_text(R.IRModule.from_expr(R.Function([a], product)).astext())
    np.save(tmp_path / "x.npy", x.astype("int8"))
    words = ("compile", "-q", "m.relay", "-o", "m.so", "--target", f"{ARM}+dotprod+i8mm")
    relay(*words, cwd=tmp_path)
    names = [ARM, f"{ARM}+dotprod", f"{ARM}+dotprod+i8mm"]

    def product_of(name, *more):
        run = ("run", "m.so", "--emulate", "--input", "x=x.npy", "--output", name, *more)
        relay(*run, cwd=tmp_path)
        (file,) = (tmp_path / name).iterdir()
        np.testing.assert_array_equal(np.load(file), x @ w.T)

    for i, name in enumerate(names):
        product_of(f"named{i}", "--target", name)
    product_of("best")
    monkeypatch.setenv("QEMU_CPU", "cortex-a53")
    product_of("least")
    for name in names[1:]:
        fails("E1503", "run", "m.so", "--emulate", "--target", name, cwd=tmp_path)
    fails("E0623", "run", "m.so", "--emulate", "--target", "sve", cwd=tmp_path, mentions=names)


# Of a file for every length: the emulator's processors, each with the version that it loads.
LENGTHS = {
    "aarch64-linux": {
        "max,sve-default-vector-length=16": "aarch64-linux",
        "max,sve-default-vector-length=32": "aarch64-linux+sve256",
        "max,sve-default-vector-length=64": "aarch64-linux+sve512",
        "max,sve-default-vector-length=128": "aarch64-linux+sve512",
    },
    "riscv64-linux": {
        "rv64": "riscv64-linux",
        "rv64,v=true,vext_spec=v1.0,vlen=128": "riscv64-linux+v",
        "rv64,v=true,vext_spec=v1.0,vlen=256": "riscv64-linux+zvl256b",
        "rv64,v=true,vext_spec=v1.0,vlen=512": "riscv64-linux+zvl512b",
        "rv64,v=true,vext_spec=v1.0,vlen=1024": "riscv64-linux+zvl1024b",
    },
}


@pytest.mark.parametrize("arch", LENGTHS)
def test_a_file_runs_at_every_length_of_vectors(arch, tmp_path, monkeypatch):
    """With vectors as long as the processor's, or the next shorter ones; integers have the same bits."""
    if why := emulation.lacks(arch):
        pytest.skip(why)
    rng = np.random.default_rng(2)
    x = rng.standard_normal(SHAPE).astype("float32")
    q, w = rng.integers(0, 256, (9, 72)), rng.integers(-128, 128, (100, 72))
    mod = network()
    product = R.nn.dense(
        R.var("q", shape=q.shape, dtype="uint8"), R.const(w.astype("int8")), out_dtype="int32"
    )
    main = mod["main"]
    outputs = R.Tuple([main.body, product])
    params = [*main.params, *R.analysis.free_vars(product)]
    mod = R.IRModule.from_expr(R.Function(params, outputs))
    (tmp_path / "m.relay").write_text(mod.astext())
    relay("compile", "-q", "m.relay", "-o", "m.so", "--target", f"{arch}+scalable", cwd=tmp_path)
    want = np.asarray(R.create_executor("debug", network()).evaluate()(x))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "q.npy", q.astype("uint8"))
    words = ("run", "-q", "m.so", "--emulate", "--output", "out", "--force")
    words += ("--input", "x=x.npy", "--input", "q=q.npy")

    def version_of(*more):
        report = relay_json(*words, *more, cwd=tmp_path)
        floats, integers = (np.load(f) for f in sorted((tmp_path / "out").iterdir()))
        np.testing.assert_allclose(floats, want, rtol=2e-5, atol=1e-6)
        np.testing.assert_array_equal(integers, q @ w.T)
        return report["version"]

    machines = LENGTHS[arch]
    names = list(dict.fromkeys(machines.values()))
    for cpu, name in machines.items():
        monkeypatch.setenv("QEMU_CPU", cpu)
        assert version_of() == name
        for longer in names[names.index(name) + 1 :][:1]:
            mentions = (longer.partition("+")[2],)
            fails("E1503", *words, "--target", longer, cwd=tmp_path, mentions=mentions)
    # The processor with the longest vectors runs all.
    for name in names:
        assert version_of("--target", name) == name


def test_c_programs_name_a_version(here):
    library = ctypes.CDLL(str(emulation.PACKAGE / "lib/librelay_runtime.so"))
    library.relay_last_error.restype = ctypes.c_char_p
    library.relay_module_metadata.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]
    library.relay_module_free.argtypes = [ctypes.c_void_p]
    assert library.relay_api_version() >= 4
    path, module, text = str(here / "m.so").encode(), ctypes.c_void_p(), ctypes.c_char_p()

    def load(name: str | None) -> int:
        version = None if name is None else name.encode()
        return library.relay_module_load_version(path, version, 1, ctypes.byref(module))

    for name in [n for n in NAMES if runs_here(here, n)]:
        assert load(name) == 0, library.relay_last_error()
        assert library.relay_module_metadata(module, ctypes.byref(text)) == 0
        assert json.loads(text.value)["target"].startswith(name + ":")
        library.relay_module_free(module)
    assert load("x86-64-v5") == 1 and b"E0623" in library.relay_last_error()
    assert load(None) == 1 and b"version" in library.relay_last_error()
