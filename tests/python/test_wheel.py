"""One wheel: what it holds, its command, and every Python of this machine."""

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import RELAY

import relay

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(relay.__file__).parent


def test_the_compiler_is_there_once():
    libraries = [f for f in PACKAGE.rglob("*.so") if f.stat().st_size > 1_000_000]
    assert [f.name for f in libraries] == ["_core.abi3.so"]
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


# The systems on which the wheel runs: RHEL 9, Ubuntu 22.04, Debian 12 and later.
OLDEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}


def test_nothing_newer_than_the_oldest_system_is_needed():
    files = [f for f in PACKAGE.rglob("*.so") if ".libs" not in str(f)] + [Path(RELAY)]
    for file in files:
        table = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True)
        wanted = re.findall(r"\*UND\*.*\((\w+?)_([\d.]+)\)\s+(\S+)", table.stdout)
        assert wanted
        for library, version, symbol in wanted:
            needed = tuple(map(int, version.split(".")))
            assert library not in OLDEST or needed <= OLDEST[library], (file.name, symbol, version)


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
def test_every_python_of_this_machine(tmp_path):
    # Needs PyPI, or a mirror of it, for NumPy in each of them.
    subprocess.run([ROOT / "tools" / "wheel.sh"], check=True)
    (wheel,) = ROOT.glob("dist/*.whl")
    assert "-cp310-abi3-manylinux_2_34_x86_64" in wheel.name and wheel.stat().st_size <= 24e6
    with zipfile.ZipFile(wheel) as content:
        assert sum(f.filename.endswith("_core.abi3.so") for f in content.infolist()) == 1
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
    for i, python in enumerate(sorted(pythons)):
        folder = tmp_path / str(i)
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", wheel], check=True)
        subprocess.run([folder / "bin" / "python", program], check=True, cwd=tmp_path)
        subprocess.run([folder / "bin" / "relay", "--version"], check=True, cwd=tmp_path)
