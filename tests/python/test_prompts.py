"""relay.function where there is no file: programs of -c, the prompt, IPython."""

import importlib.util
import os
import subprocess
import sys

import pytest

PROGRAM = """import relay
@relay.function
def f(x):
    return x + 1.0

print("is", f(2.0))
"""
# From 3.13 on, Python keeps the text of what it is given by -c and at its own prompt.
KEEPS_THE_TEXT = sys.version_info >= (3, 13)


def run(command, given=None):
    plain = {"PYTHON_BASIC_REPL": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **plain},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("where", ["-c", "prompt"])
def test_where_python_keeps_the_text_and_where_not(where):
    command = [sys.executable, "-c", PROGRAM] if where == "-c" else [sys.executable, "-q", "-i"]
    out = run(command, None if where == "-c" else PROGRAM)
    if KEEPS_THE_TEXT:
        assert "is 3.0" in out
    else:
        assert "error[E0901]: the source of f cannot be read" in out
        assert "at the prompt of Python 3.13" in out


def test_a_program_on_standard_input_has_no_text():
    out = run([sys.executable, "-"], PROGRAM)
    assert "error[E0901]: the source of f cannot be read: <stdin>" in out


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
def test_the_prompt_of_ipython():
    command = [
        sys.executable,
        "-m",
        "IPython",
        "--no-banner",
        "--colors=nocolor",
        "--no-confirm-exit",
    ]
    assert "3.0" in run([*command, "--simple-prompt"], PROGRAM).replace("is ", "")


NOTEBOOK = """
import nbclient, nbformat
cells = [PROGRAM, "f", "f.lower(1.0).module"]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
nbclient.NotebookClient(notebook).execute()
stream, function, module = (cell.outputs[0] for cell in notebook.cells)
assert stream["text"] == "is 3.0\\n"
assert "relay.function f(x), 1 compiled" in function["data"]["text/html"]
assert "IRModule" in module["data"]["text/html"]
"""


def test_a_notebook(tmp_path):
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package)
    path = tmp_path / "run.py"
    path.write_text(f"PROGRAM = {PROGRAM!r}\n{NOTEBOOK}")
    subprocess.run([sys.executable, path], check=True, cwd=tmp_path, timeout=120)
