"""The transcripts in docs/tools.md: the commands print what stands under them."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from command_line import RELAY, relay

PAGE = (Path(__file__).resolve().parents[2] / "docs/tools.md").read_text()
PROGRAM = re.search(r"```text\n(#\[version.*?)```", PAGE, re.DOTALL).group(1)
# A machine's own findings, and a model that the page does not have.
OTHERS = ("relay doctor", "relay diff model.onnx")


def transcripts() -> list[tuple[str, list[str], list[str]]]:
    """Each command of `relay` with the lines that are typed into it, and those that it prints."""
    out = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        command, *lines = block.splitlines()
        if not command.startswith("$ relay") or command[2:].startswith(OTHERS):
            continue
        prompts = [re.match(r"(?:debug|relay)> ?(.*)", line) for line in lines]
        typed = [p.group(1) for p in prompts if p]
        out.append((command[2:], typed, [x for x, p in zip(lines, prompts, strict=True) if not p]))
    return out


@pytest.mark.parametrize(("command", "typed", "printed"), transcripts(), ids=lambda v: str(v)[:40])
def test_a_transcript_is_true(command, typed, printed, tmp_path):
    (tmp_path / "norm.relay").write_text(PROGRAM)
    if "older.so" in command:
        (tmp_path / "older.relay").write_text(PROGRAM.replace("sum(", "max("))
        relay("compile", tmp_path / "older.relay", "-o", tmp_path / "older.so")
    done = subprocess.run(
        [RELAY, *shlex.split(command)[1:]],
        input="".join(line + "\n" for line in typed),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.stderr == "" and done.returncode in (0, 1), done.stderr
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    number = r"-?\d+\.\d+"
    for ours, theirs in zip(printed, shown, strict=True):
        assert re.sub(number, "#", theirs) == re.sub(number, "#", ours.rstrip())
        # The last digit of a sine is the machine's own.
        assert [float(n) for n in re.findall(number, theirs)] == pytest.approx(
            [float(n) for n in re.findall(number, ours)], rel=1e-6
        )


def test_every_tool_has_a_transcript():
    commands = " ".join(command for command, _, _ in transcripts())
    for tool in ("repl", "diff", "debug --find-nan", "debug norm.relay", "help"):
        assert f"relay {tool}" in commands
