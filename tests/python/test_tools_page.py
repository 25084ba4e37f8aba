"""The transcripts in docs/tools.md: the commands print what stands under them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pexpect
import pytest
from command_line import RELAY, relay

PAGE = (Path(__file__).resolve().parents[2] / "docs/tools.md").read_text()
PROGRAMS = dict(re.findall(r"`(\w+\.relay)`:\n\n```text\n(#\[version.*?)```", PAGE, re.DOTALL))
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
    for name, program in PROGRAMS.items():
        (tmp_path / name).write_text(program)
    if "older.so" in command:
        (tmp_path / "older.relay").write_text(PROGRAMS["norm.relay"].replace("sum(", "max("))
        relay("compile", tmp_path / "older.relay", "-o", tmp_path / "older.so")
    done = subprocess.run(
        [RELAY, *shlex.split(command)[1:]],
        input="".join(line + "\n" for line in typed),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode in (0, 1), done.stdout
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    if printed[-1] == "...":  # and what a machine says of itself
        printed = printed[:-1]
        shown = shown[: len(printed)]
    number = r"-?\d+\.\d+"
    for ours, theirs in zip(printed, shown, strict=True):
        assert re.sub(number, "#", theirs) == re.sub(number, "#", ours.rstrip())
        # The last digit of a sine is the machine's own.
        assert [float(n) for n in re.findall(number, theirs)] == pytest.approx(
            [float(n) for n in re.findall(number, ours)], rel=1e-6
        )


TOOLS = [
    "doctor",
    "diff norm.relay --input x=[[1,2,3,4],[4,3,2,1]]",
    "debug --find-nan norm.relay --executor vm --input x=[[1,2,3,4],[-1,-2,-3,-4]] --force",
    "run trace.relay --executor eval --input x=[1,2,1000]",
    "run colours.relay --executor vm --input n=2",
    "check norm.relay trace.relay",
    "bench norm.relay --repeat 3 --profile --plot times.svg --html page.html --force",
    "show norm.relay --plan",
]


@pytest.mark.parametrize("words", TOOLS, ids=lambda words: words.split()[0])
def test_a_terminal_shows_what_a_pipe_shows(words, tmp_path):
    """Colours and progress change no word; what a line begins with is there, whatever it measures."""
    for name, program in PROGRAMS.items():
        (tmp_path / name).write_text(program)
    piped = subprocess.run(
        [RELAY, *words.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    child = pexpect.spawn(
        RELAY,
        words.split(),
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
        encoding="utf-8",
        dimensions=(50, 100),
        timeout=120,
    )
    shown = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", child.read())
    child.close()
    assert child.exitstatus == piped.returncode, shown
    for line in piped.stdout.splitlines():
        assert not line or line.split()[0][:8] in shown, (line, shown)


def test_every_tool_has_a_transcript():
    commands = " ".join(command for command, _, _ in transcripts())
    for tool in ("repl", "diff", "debug --find-nan", "debug norm.relay", "run", "help"):
        assert f"relay {tool}" in commands
