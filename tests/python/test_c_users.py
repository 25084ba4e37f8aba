"""What C users find in the package: the README's lines work as written, with pkg-config and with CMake."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import relay

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the examples and a compiled model are."""
    folder = tmp_path_factory.mktemp("c_users")
    shutil.copytree(ROOT / "examples", folder / "examples")
    x = relay.var("x", shape=(2, 3))
    relay.build(relay.Function([x], relay.exp(x))).export_library(folder / "model.so")
    return folder


def sh(folder, command):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_of_the_readme():
    text = (ROOT / "README.md").read_text()
    (lines,) = [s for s in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "run_model" in s]
    return lines


def needed(program):
    dynamic = sh(program.parent, f"readelf -d {program.name}")
    return set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))


needs_pkg_config = pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")


@needs_pkg_config
def test_the_lines_of_the_readme(folder):
    assert "first 1" in sh(folder, lines_of_the_readme())
    assert "librelay_runtime.so" in needed(folder / "run_model")


@needs_pkg_config
def test_a_model_of_open_sizes(folder):
    """An open batch is 1, or what the second argument says."""
    x = relay.var("x", shape=(relay.TypeVar("n"), 3))
    relay.build(relay.Function([x], relay.exp(x))).export_library(folder / "open.so")
    lines = lines_of_the_readme()
    assert "rank 2, 12 bytes, first 1" in sh(folder, lines.replace("model.so", "open.so"))
    assert "rank 2, 60 bytes, first 1" in sh(folder, "./run_model open.so 5")
    assert "rank 2, 0 bytes\n" in sh(folder, "./run_model open.so 0")
    with pytest.raises(AssertionError, match=r"usage: ./run_model MODEL.so \[SIZE\]"):
        sh(folder, "./run_model open.so 5x")


@needs_pkg_config
def test_a_static_program_needs_the_c_library_alone(folder):
    lines = lines_of_the_readme().replace("--libs relay)", "--libs relay-static)")
    assert "first 1" in sh(folder, lines)
    libraries = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
    assert needed(folder / "run_model") <= libraries


@needs_pkg_config
def test_a_program_that_needs_nothing(folder):
    lines = lines_of_the_readme().replace("--libs relay)", "--libs relay-static) -static")
    assert "first 1" in sh(folder, lines)
    assert not needed(folder / "run_model")


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_cmake_finds_it(folder):
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\n"
        "find_package(relay REQUIRED)\n"
        "foreach(kind IN ITEMS runtime runtime_static)\n"
        "  add_executable(${kind} examples/c/run_model.c)\n"
        "  target_link_libraries(${kind} PRIVATE relay::${kind})\n"
        "endforeach()\n"
    )
    place = f"{relay.__path__[0]}/lib/cmake/relay"
    sh(folder, f"cmake -S . -B build -Drelay_DIR={place} >/dev/null && cmake --build build")
    for kind in ("runtime", "runtime_static"):
        assert "first 1" in sh(folder, f"build/{kind} model.so")


def test_the_header_is_the_one_of_the_sources():
    header = Path(relay.__path__[0]) / "include" / "relay" / "c_api.h"
    assert header.read_text() == (ROOT / "include" / "relay" / "c_api.h").read_text()
