"""The reference of the documentation: nothing that is public is missing, and its examples are true."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from command_line import RELAY
from command_line import relay as run_relay
from test_highlight import tool

import relay

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(relay.__file__).parent
reference = tool("reference")


@pytest.fixture(scope="module")
def python():
    """All pages, with the whole names of what they document."""
    found = []
    for name, text in reference.python_pages().items():
        module = name.removeprefix("python/").removesuffix(".md")
        assert f"{{py:currentmodule}} {module}\n" in text
        found.append(
            re.sub(r"(\{py:(?:class|function|data|method|property)\}) ", rf"\1 {module}.", text)
        )
    return "\n".join(found)


def module_of(file: Path) -> str:
    path = file.relative_to(PACKAGE).with_suffix("")
    return ".".join(["relay", *(p for p in path.parts if p != "__init__")])


def written_names() -> set[str]:
    """The public names as the files of the package have them, read without running anything."""
    found = {
        f"relay.{name}" for name in relay.__all__ if not hasattr(getattr(relay, name), "__path__")
    }
    for file in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]:
        module = module_of(file)
        parts = module.split(".")
        if any(p.startswith("_") for p in parts) or module.startswith("relay.lsp."):
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found.add(f"{module}.{node.name}")
    return found


def test_no_public_name_is_missing(python):
    modules = {module_of(f) for f in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]}
    wanted = written_names() - modules - {"relay.random", "relay.op"}
    entries = set(re.findall(r"\{py:(?:class|function|data)\} ([\w.]+)", python))
    others = set(re.findall(r"`(relay\.[\w.]+)`", python))
    assert sorted(wanted - entries - others) == []
    assert len(wanted) > 600 and len(entries) > 500
    assert entries >= {
        "relay.build",
        "relay.nn.conv2d",
        "relay.transform.FuseOps",
        "relay.train.Trainer",
    }


def test_methods_have_signatures_and_documents(python):
    assert (
        "{py:method} relay.IRModule.astext(show_meta_data: bool=True, show_types: bool=False)"
        in python
    )
    assert "{py:property} relay.Diagnostic.code" in python
    blocks = re.findall(
        r"^``````\{py:(\w+)\} ([\w.]+)([^\n]*)\n\n(.*?)^``````$", python, re.M | re.S
    )
    assert len(blocks) > 900
    for kind, name, signature, _ in blocks:
        assert kind in ("property", "data", "class") or signature.startswith("("), (name, signature)
        assert " object at 0x" not in signature, name
    # Compiled methods whose name and signature say all.
    bare = [name for kind, name, _, body in blocks if not body.strip() and kind != "property"]
    assert all(name.startswith(("relay.te.", "relay.Op.", "relay.IRModule.")) for name in bare), (
        bare
    )


@pytest.mark.parametrize("header", reference.HEADERS)
def test_no_declaration_of_c_is_missing(header):
    page = reference.c_page(header)
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "include/relay" / header).read_text(), flags=re.S)
    wanted = set(re.findall(r"^RELAY_API [\w *]*?(\w+)\(", text, re.M))
    wanted |= set(re.findall(r"^typedef .*?\(\*(\w+)\)", text, re.M))
    wanted |= set(re.findall(r"^\} (\w+);", text, re.M))
    titles = {t.replace("\\", "") for t in re.findall(r"^## (.*)$", page, re.M)}
    assert wanted <= titles, wanted - titles
    assert len(wanted) > (25 if header == "c_api.h" else 7)
    code = "\n".join(re.findall(r"```c\n(.*?)```", page, re.S))
    assert all(name in code for name in wanted)
    assert "RELAY_API " not in code
    if header == "c_api.h":
        assert "Loads an artifact." in page


def test_no_command_and_no_option_is_missing():
    page = reference.commands_page()
    listed = subprocess.run(
        [RELAY, "--help-all"], capture_output=True, text=True, check=True
    ).stdout
    seen, command, sections = 0, "", {}
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        sections[part.partition("\n")[0]] = part
    for line in listed.split("\n"):
        if usage := re.match(r"\s*Usage: (relay [a-z]\w*)", line):
            command = usage[1]
            assert command in sections
        elif command and (found := re.match(r" {2,4}(-[-\w, =:.\[\]|]+)", line)):
            for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", found[1].split("  ")[0]):
                row = rf"\{{option\}} [^\n]*(?<![\w-]){option}(?![\w-])"
                assert re.search(row, sections[command]), (command, option)
                seen += 1
    assert seen > 100 and len(sections) >= 13


def test_every_code_has_advice_and_no_other_does():
    codes = [one.code for one in reference.error_codes()]
    declared = set()
    for header in ROOT.glob("src/base/codes/*.h"):
        declared |= set(re.findall(r'"(E\d{4})"', header.read_text()))
    told = reference.advice()
    assert set(codes) == declared == set(told)
    for code, row in told.items():
        assert row["fix"].endswith(".") and len(row["fix"]) > 20, code
        assert set(row) <= {"fix", "run", "python", "when"} and len(row) <= 2, code
        assert len(row) == 2 or reference.program_of(code) is not None, f"{code} has no example"
        assert row.get("when", ".").endswith((".", "`.")), code


def test_the_examples_of_codes_end_with_their_codes(tmp_path, operators_as_before):
    reference.prepare(tmp_path)
    count = 0
    for code, row in reference.advice().items():
        if len(row) == 1 or "when" in row:
            count += len(row) == 1
            continue
        message = reference.outcome(row, tmp_path)
        assert message.startswith((f"error[{code}]", f"relay: error[{code}]")), (code, message)
        count += 1
    assert count >= 84


def test_help_explains_every_code():
    listed = run_relay("help", "codes").stdout
    for one in reference.error_codes():
        assert f"  {one.code}  {one.title}" in listed
    help_of = {
        code: run_relay("help", code).stdout for code in ("E0203", "e0304", "E0306", "E0614")
    }
    for code, text in help_of.items():
        row = reference.advice()[code.upper()]
        assert text.startswith(f"{code.upper()}: ")
        assert row["fix"] in " ".join(text.split())
    assert "newshape=[4, 2]" in help_of["E0203"] and "error[E0203]" in help_of["E0203"]
    assert "  with relay.limits(time=1e-9):\n" in help_of["e0304"]
    assert "  $ relay compile program.relay" in help_of["E0306"]
    assert "cp other.so model.so" in help_of["E0614"]


def test_messages_of_the_command_name_the_help(tmp_path):
    program = tmp_path / "p.relay"
    program.write_text(
        '#[version = "0.0.5"]\ndef @main(%x: float32) { %y }\ndef @f() { nn.rel(1) }\n'
    )
    done = run_relay("check", program, check=False)
    assert done.stderr.endswith("Explained by: relay help E0103, relay help E0105\n")
    assert "Explained" not in run_relay("check", check=False).stderr
    assert run_relay("help", "fmt").stdout == run_relay("fmt", "--help").stdout
    assert run_relay("help").stdout == run_relay("--help").stdout
    for name, says in (("E9999", "relay help codes lists them"), ("fmtt", "did you mean fmt?")):
        done = run_relay("help", name, check=False)
        assert done.returncode == 2 and says in done.stderr
