"""`relay doctor`: what it examines, and what it says of a damaged installation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from command_line import relay

ROOT = Path(__file__).resolve().parents[2]
FOUND = [
    "processor",
    "memory",
    "programs",
    "strings",
    "cache",
    "devices",
    "line editing",
    "environment",
]


def doctor(check: bool = True, **variables: str) -> dict[str, dict]:
    prefix = ["env", *(f"{name}={value}" for name, value in variables.items())]
    done = relay("doctor", "--json", prefix=prefix, check=check)
    return {row["what"]: row for row in json.loads(done.stdout)["findings"]}


def test_a_whole_installation(tmp_path):
    rows = doctor(RELAY_CACHE_DIR=str(tmp_path / "cache"))
    assert list(rows) == FOUND
    assert all(
        rows[what]["state"] == "ok" for what in ("processor", "programs", "strings", "cache")
    )
    assert "native: " in rows["processor"]["found"] and "GFLOP/s" in rows["processor"]["found"]
    assert str(tmp_path) in rows["cache"]["found"]
    text = relay("doctor").stdout
    assert all(f"\n{what} " in text for what in FOUND)


def test_what_is_limited_has_a_remedy(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chmod(shared, 0o777)
    rows = doctor(RELAY_CACHE_DIR=str(shared), RELAY_CACHE_SIZ="1G")
    assert rows["cache"]["state"] == "limited" and "RELAY_CACHE_DIR" in rows["cache"]["remedy"]
    assert rows["environment"]["found"] == "nothing reads RELAY_CACHE_SIZ"
    assert "RELAY_CACHE_SIZE" in rows["environment"]["remedy"]
    assert doctor(RELAY_CACHE_SIZE="0")["cache"]["state"] == "limited"


def test_what_is_broken_is_said(tmp_path):
    rows = doctor(check=False, TMPDIR=str(tmp_path / "nowhere"))
    assert rows["programs"]["state"] == "broken" and "TMPDIR" in rows["programs"]["remedy"]
    done = relay("doctor", prefix=["env", f"TMPDIR={tmp_path / 'nowhere'}"], check=False)
    assert done.returncode == 1 and "What to do: " in done.stdout


def test_the_variables_are_those_that_the_sources_read():
    """The remedy lists what is read: by `getenv`, and by the wrapper of the kernel cache."""
    read: set[str] = set()
    for file in ROOT.glob("src/**/*.cc"):
        if not {"test", "fuzz"} & set(file.relative_to(ROOT).parts):
            read |= set(re.findall(r'(?:getenv|variable)\("(RELAY_\w+)"\)', file.read_text()))
    remedy = doctor(RELAY_NOTHING="1")["environment"]["remedy"]
    assert set(re.findall(r"RELAY_\w+", remedy)) == read
