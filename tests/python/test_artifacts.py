"""Artifacts in use: loaded and dropped in any order, by many threads, changed and overwritten."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import relay

FUNCTIONS = {
    "tanh": np.tanh,
    "exp": np.exp,
    "abs": np.abs,
    "negative": np.negative,
    "sin": np.sin,
}
INPUT = np.array([-1.5, 0.25, 2], np.float32)


def program(name: str, add: int) -> relay.IRModule:
    return relay.parse(
        '#[version = "0.0.5"]\n'
        f"def @main(%x: Tensor[(3,), float32]) {{ add({name}(%x), {add}f) }}\n"
    )


def expected(name: str, add: int) -> np.ndarray:
    return FUNCTIONS[name](INPUT) + np.float32(add)


def is_right(exe: relay.runtime.Executable, name: str, add: int) -> bool:
    return np.allclose(exe(INPUT), expected(name, add), rtol=1e-5, atol=1e-5)


def in_threads(count: int, work) -> list:
    """What `work(thread, failures)` adds to the failures, errors included."""
    failures: list = []

    def guarded(number: int) -> None:
        try:
            work(number, failures)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory) -> dict[Path, tuple[str, int]]:
    """Twenty files with as many results, of five kinds of code."""
    folder = tmp_path_factory.mktemp("artifacts")
    made = {}
    for number in range(20):
        what = (list(FUNCTIONS)[number % len(FUNCTIONS)], number)
        made[folder / f"{number}.so"] = what
        relay.build(program(*what)).export_library(folder / f"{number}.so")
    return made


def test_the_next_artifact_is_not_the_last_one(artifacts):
    tanh, exp = list(artifacts)[:2]
    kept = relay.runtime.load_module(tanh)
    relay.runtime.load_module(tanh)
    assert is_right(relay.runtime.load_module(exp), *artifacts[exp])
    assert is_right(kept, *artifacts[tanh])


def test_threads_that_load_and_drop_always_get_what_they_loaded(artifacts):
    loads, threads = 10_000, 8

    def work(number: int, failures: list) -> None:
        dice = random.Random(number)
        kept: list = []
        for _ in range(loads // threads):
            path = dice.choice(list(artifacts))
            kept.append((path, relay.runtime.load_module(path, num_threads=1)))
            for asked, exe in (kept[-1], dice.choice(kept)):
                if not is_right(exe, *artifacts[asked]):
                    failures.append(asked)
            if len(kept) > 6:
                kept.pop(dice.randrange(len(kept)))

    assert in_threads(threads, work) == []


def test_threads_that_build_get_what_they_built():
    def work(number: int, failures: list) -> None:
        for turn, name in enumerate(FUNCTIONS):
            if not is_right(
                relay.build(program(name, number + 10 * turn)), name, number + 10 * turn
            ):
                failures.append((number, name))

    assert in_threads(4, work) == []


def test_a_file_that_changes_is_loaded_as_it_is_now(artifacts, tmp_path):
    path = tmp_path / "m.so"
    kept = []
    for source, what in artifacts.items():
        # In place, by turns with a rename.
        if len(kept) % 2:
            shutil.copyfile(source, path)
        else:
            shutil.copyfile(source, tmp_path / "new.so")
            os.replace(tmp_path / "new.so", path)
        kept.append((relay.runtime.load_module(path), what))
        assert all(is_right(exe, *known) for exe, known in kept)
    path.write_bytes(b"")
    assert all(is_right(exe, *known) for exe, known in kept)


OVERWRITE = """
import sys
import numpy as np
import relay

path, step = sys.argv[1], sys.argv[2]
exe = relay.runtime.load_module(path, num_threads=1)
x = np.ones((1, 2400), np.float32)
before = exe(x)
data = bytearray(open(path, "rb").read())
if step == "shorter":
    open(path, "wb").write(data[:4096])
elif step == "other":
    middle = len(data) // 2
    data[middle:middle + 4096] = bytes(4096)
    open(path, "r+b").write(data)
else:
    open(path, "r+b").write(data)
try:
    assert np.array_equal(exe(x), before)
    print("same")
except relay.RelayError as error:
    print(str(error)[:12])
"""


@pytest.mark.parametrize(
    ("step", "says"), [("shorter", "E0614"), ("other", "E0614"), ("same bytes", "same")]
)
def test_mapped_constants_of_an_overwritten_file(tmp_path, step, says):
    """In a process of its own: what fails here would be a signal."""
    weight = np.random.default_rng(0).standard_normal((2400, 2400), dtype=np.float32)
    x = relay.var("x", shape=(1, 2400))
    exe = relay.build(relay.Function([x], relay.nn.dense(x, relay.const(weight))))
    exe.export_library(tmp_path / "m.so")
    command = [sys.executable, "-c", OVERWRITE, str(tmp_path / "m.so"), step]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_what_is_exported_again_is_what_was_loaded(artifacts, tmp_path):
    first, second = list(artifacts)[:2]
    shutil.copyfile(first, tmp_path / "m.so")
    exe = relay.runtime.load_module(tmp_path / "m.so")
    exe.export_library(tmp_path / "copy.so")
    assert (tmp_path / "copy.so").read_bytes() == first.read_bytes()
    shutil.copyfile(second, tmp_path / "m.so")
    with pytest.raises(relay.UserError, match="E0614"):
        exe.export_library(tmp_path / "wrong.so")
    assert not (tmp_path / "wrong.so").exists()
