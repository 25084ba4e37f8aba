"""One wheel: what it holds, its command, and every Python of this machine."""

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY
from torch_graphs import TorchGraph

import relay

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(relay.__file__).parent


def test_the_compiler_is_there_once():
    libraries = [f for f in PACKAGE.rglob("*.so") if f.stat().st_size > 2_000_000]
    # The code generators of other architectures are in the package relay-targets.
    assert {f.name for f in libraries} - {"librelay_targets.so"} == {"_core.abi3.so"}
    assert os.path.getsize(RELAY) < 100_000


def launched(folder, *, module=None):
    (folder / "bin").mkdir()
    shutil.copy(RELAY, folder / "bin" / "relay")
    if module is not None:
        package = folder / "lib" / "python3.99" / "site-packages" / "relay"
        package.mkdir(parents=True)
        (package / "_core.abi3.so").write_bytes(module)
    return subprocess.run([folder / "bin" / "relay", "--version"], capture_output=True, text=True)


def test_the_command_without_its_package(tmp_path):
    done = launched(tmp_path)
    assert done.returncode == 1 and "the Python package relay is not beside" in done.stderr


def test_the_command_with_a_broken_package(tmp_path):
    done = launched(tmp_path, module=b"\x7fELF nothing")
    assert done.returncode == 1 and "the compiler cannot be loaded" in done.stderr


# The oldest systems on which the wheel runs: RHEL 8, Debian 10, Ubuntu 20.04. Their C++ is not used.
OLDEST = (2, 28)
# What a process may be without.
OPTIONAL = re.compile(r"_ITM_|__gmon_start__|__morestack|ZSTD_trace_|_ZTH|__cxa_pure_virtual")


def shown_by(library):
    """The names that a shared library has for others."""
    table = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    return {line.split()[-1] for line in table.stdout.splitlines()}


def test_nothing_newer_than_the_oldest_system_is_needed():
    files = [*PACKAGE.rglob("*.so"), Path(RELAY)]
    assert {"_core.abi3.so", "librelay_runtime.so", "librelay_text.so"} <= {f.name for f in files}
    threads = shown_by(PACKAGE / "lib" / "librelay_threads.so")
    for file in files:
        table = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True)
        wanted = re.findall(r"^.*\*UND\*\s+\w+ +(?:\((\S+)\))? *(\S+)$", table.stdout, re.MULTILINE)
        assert wanted
        for version, symbol in wanted:
            library, _, number = version.partition("_")
            if library == "GLIBC":
                needed = tuple(map(int, number.split(".")))
                assert needed <= OLDEST, (file.name, symbol, version)
            elif not version:
                # An unknown name without a version is not found, which shows when it is called.
                known = re.match("_?Py", symbol) or OPTIONAL.match(symbol) or symbol in threads
                assert known, (file.name, symbol)
            else:
                assert library == "GCC", (file.name, symbol, version)


def test_the_module_shows_nothing_but_its_entries():
    assert shown_by(PACKAGE / "_core.abi3.so") == {"PyInit__core", "relay_main"}


# What a process keeps for such variables of libraries that it loads late is about 1.6 KB.
OTHERS = """
__thread char taken[1200] __attribute__((tls_model("initial-exec")));
char* touch(void) { return taken; }
"""


def test_other_libraries_may_have_the_room_for_variables_of_threads(tmp_path):
    (tmp_path / "others.c").write_text(OTHERS)
    library = tmp_path / "others.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "others.c"], check=True)
    program = (
        f"import ctypes; ctypes.CDLL('{library}').touch(); import relay; print(relay.const(1))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PROGRAM = """
import numpy as np, relay
x = relay.var("x", shape=(2, 3))
exe = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))
assert exe(np.asfortranarray([[1, -2, 3], [4, 5, -6.0]], "float32")).tolist() == [[1, 0, 3], [4, 5, 0]]

@relay.function
def double(a, n):
    for _ in range(n):
        a = a * 2.0
    return a

assert double(np.ones(2, "float32"), 3).tolist() == [8, 8]
"""


@pytest.mark.slow
def test_code_that_is_made_one_has_one_frame():
    pytest.importorskip("elftools")
    subprocess.run([ROOT / "tools" / "build.sh"], check=True)
    tool = ROOT / "tools" / "folded_parts.py"
    done = subprocess.run(
        [sys.executable, tool, ROOT / "build" / "release"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_python_of_this_machine(tmp_path):
    # Needs PyPI, or a mirror of it, for NumPy in each of them.
    subprocess.run([ROOT / "tools" / "wheel.sh"], check=True)
    (wheel,) = ROOT.glob("dist/relay-*.whl")
    assert "-cp310-abi3-" in wheel.name and wheel.name.endswith("manylinux_2_28_x86_64.whl")
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'with the following platform tag: "manylinux_2_2' in " ".join(shown.stdout.split())
    assert wheel.stat().st_size <= 24e6
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert sum(name.endswith("_core.abi3.so") for name in names) == 1
    assert not any(".libs/" in name for name in names), "libraries of others"
    assert not any("relay/targets/" in name for name in names)
    pythons = {os.path.realpath(sys.executable)}
    for name in glob.glob("/usr/bin/python3.*") + glob.glob(
        os.path.expanduser("~/.pyenv/versions/*/bin/python3")
    ):
        version = subprocess.run(
            [name, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True
        )
        if version.returncode == 0 and int(version.stdout) >= 10:
            pythons.add(os.path.realpath(name))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    g = TorchGraph()
    x, w = g.input("x", ("n", 3)), g.weight("w", np.ones((2, 3), np.float32))
    y = g.node("aten.linear.default", {"input": x, "weight": w, "bias": None}, ("n", 2))
    (tmp_path / "net.pt2").write_bytes(g.archive(y))
    for i, python in enumerate(sorted(pythons)):
        folder = tmp_path / str(i)
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", wheel], check=True)
        subprocess.run([folder / "bin" / "python", program], check=True, cwd=tmp_path)
        relay_command = folder / "bin" / "relay"
        subprocess.run([relay_command, "--version"], check=True, cwd=tmp_path)
        # An exported program needs no PyTorch.
        subprocess.run([relay_command, "run", "net.pt2", "--dim", "n=4"], check=True, cwd=tmp_path)
    # Of the last one: other architectures, without their package and with it.
    words = [relay_command, "compile", "-q", "net.pt2", "-o", "net.so", "--target", "aarch64-linux"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert "error[E1506]" in done.stderr and "pip install 'relay[targets]'" in done.stderr
    (targets,) = ROOT.glob("dist/relay_targets-*.whl")
    assert targets.stat().st_size <= 24e6
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "--find-links", ROOT / "dist", f"{wheel}[targets]"], check=True)
    subprocess.run(words, check=True, cwd=tmp_path)
    if shutil.which("qemu-aarch64"):
        run = [relay_command, "run", "net.so", "--emulate", "--dim", "n=4"]
        subprocess.run(run, check=True, cwd=tmp_path)
    (library,) = folder.glob("lib/python3*/site-packages/relay/targets/aarch64-linux/*.a")
    assert library.stat().st_size > 0
