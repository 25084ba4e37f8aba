"""Damaged models are imported or refused, and never end the process (mutated_models.py)."""

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("mutated_models.py")


def run(folder, seed: int, count: int) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--seed", str(seed), "--count", str(count), "--keep", folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def test_a_few(tmp_path):
    run(tmp_path, seed=7, count=300)


@pytest.mark.slow
def test_many(tmp_path):
    seed = int(os.environ.get("RELAY_SEED", datetime.date.today().toordinal()))
    run(tmp_path, seed, 20000)
