"""Writes the reference part of the documentation's site: docs/reference/, from the sources alone.

reference.py [FOLDER]    FOLDER instead of docs/reference

Python: each public name by its docstring and its signature or stub. C: the declarations and comments of the
headers. Commands: what `relay COMMAND --help` prints. Errors: the codes of src/base/codes, docs/errors.json.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import relay
from relay.tvm._exchange import View

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path(sys.executable).with_name("relay")
HEADERS = ("c_api.h", "plugin.h")
# Modules whose parts are their package's own affair.
INSIDE = ("relay.lsp.",)
FENCE = "``````"


# ---- Markdown


def plain(text: str) -> str:
    """Text as Markdown that shows it as it is; what is between backticks stays code."""
    parts = re.split(r"(``.*?``|`[^`]*`)", text)
    parts[::2] = [re.sub(r"([\\*_<>\[\]|#~$])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def markdown(doc: str) -> str:
    """A docstring as Markdown: paragraphs, rows such as `name: text`, and indented code."""
    out: list[str] = []
    for block in re.split(r"\n[ \t]*\n", doc.strip("\n")):
        lines = block.split("\n")
        if not out:
            out.append("\n".join(plain(line.strip()) for line in lines))
            continue
        if all(line.startswith("    ") for line in lines):
            code = [line[4:] for line in lines]
            if out and out[-1].startswith("```python\n"):
                out[-1] = out[-1].removesuffix("\n```") + "\n\n" + "\n".join(code) + "\n```"
            else:
                out.append("```python\n" + "\n".join(code) + "\n```")
            continue
        rows: list[str] = []
        for line in lines:
            item = re.match(r"(\*{0,2}[\w.]+(?: \([^)]*\))?): (.*)", line)
            if item:
                rows.append(f"- `{item[1]}`: {plain(item[2])}")
            elif rows and rows[-1].startswith("- ") and line.startswith(" "):
                rows[-1] += " " + plain(line.strip())
            else:
                rows.append(plain(line.strip()))
        out.append("\n".join(rows))
    return "\n\n".join(out)


# ---- Python


def public_modules() -> list[types.ModuleType]:
    """The public modules of the package, the packages before their parts."""
    names = {"relay"}
    for found in pkgutil.walk_packages(relay.__path__, "relay."):
        names.add(found.name)
    names |= {name for name in sys.modules if name.startswith("relay.")}
    chosen = [
        name
        for name in names
        if not any(part.startswith("_") for part in name.split("."))
        and not name.startswith(INSIDE)
        # The names of a view are those of the module that it shows.
        and not isinstance(sys.modules.get(name), View)
    ]
    modules = []
    for name in sorted(chosen, key=lambda n: (n.count("."), n)):
        modules.append(sys.modules.get(name) or importlib.import_module(name))
    return modules


def own_names(module: types.ModuleType) -> set[str] | None:
    """The names that a module's source defines or offers (`import name as name`); None without a source."""
    if getattr(module, "__file__", None) is None:
        return None
    found: set[str] = set()
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {a.name for a in node.names if a.asname == a.name}
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return found


def public_names(module: types.ModuleType) -> list[str]:
    """The public names of a module: what it lists, or defines and offers. Operators are put into theirs."""
    names = vars(module)
    listed = names.get("__all__")
    if listed is not None:
        return sorted(n for n in listed if not isinstance(getattr(module, n), types.ModuleType))
    own = own_names(module)
    found = []
    for name, value in names.items():
        if name.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
            continue
        owner = str(getattr(value, "__module__", ""))
        made = owner.startswith(("relay._ops", "relay._pass"))
        if owner.startswith("relay") and (own is None or name in own or made):
            found.append(name)
    return sorted(found)


class Stubs:
    """The signatures and docstrings of the compiled module, from its stub."""

    def __init__(self) -> None:
        self.signatures: dict[str, str] = {}
        self.docs: dict[str, str] = {}
        self.operators = set(relay.op.list_op_names())
        tree = ast.parse((Path(relay.__file__).parent / "_core.pyi").read_text())
        for node in tree.body:
            self._add(node, "")

    def _add(self, node: ast.stmt, prefix: str) -> None:
        if isinstance(node, ast.ClassDef):
            self.docs[node.name] = ast.get_docstring(node) or ""
            for inner in node.body:
                self._add(inner, node.name + ".")
        elif isinstance(node, ast.FunctionDef) and prefix + node.name not in self.signatures:
            arguments = node.args
            if prefix:
                first = [*arguments.posonlyargs, *arguments.args][:1]
                if first and first[0].arg in ("self", "cls"):
                    (arguments.posonlyargs or arguments.args).pop(0)
            text = f"({ast.unparse(arguments)})"
            if node.returns is not None:
                text += f" -> {ast.unparse(node.returns)}"
            self.signatures[prefix + node.name] = text
            self.docs[prefix + node.name] = ast.get_docstring(node) or ""

    def of(self, value: object, name: str) -> tuple[str, str]:
        """The signature and the docstring of a class or function."""
        own = getattr(value, "__module__", "") == "relay" or type(value).__module__ == "nanobind"
        if own and (name in self.docs or f"{name}.__init__" in self.signatures):
            signature = self.signatures.get(name) or self.signatures.get(f"{name}.__init__", "")
            return signature.partition(" -> None")[0], self.docs.get(name, "")
        try:
            signature = str(inspect.signature(value))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            signature = "()" if callable(value) else ""
        signature = re.sub(r" at 0x[0-9a-f]+", "", signature)
        # Annotations are texts where the module delays them.
        signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
        return signature, inspect.getdoc(value) or ""


def members(kind: type) -> Iterator[tuple[str, object, str]]:
    """The public methods and properties that a class defines: name, object, directive."""
    for name, value in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            yield name, value.__func__, "py:method"
        elif isinstance(value, property) or type(value).__name__ == "cached_property":
            yield name, value, "py:property"
        elif callable(value):
            yield name, value, "py:method"


def entry(directive: str, name: str, signature: str, doc: str, more: str = "") -> str:
    """One documented object."""
    if directive in ("py:property", "py:data"):
        signature = ""
    body = "\n\n".join(part for part in (markdown(doc), more) if part)
    return f"{FENCE}{{{directive}}} {name}{' '.join(signature.split())}\n\n{body}\n{FENCE}\n"


def python_pages() -> dict[str, str]:
    """A page for each public module, by its file's name."""
    stubs = Stubs()
    owners: dict[int, str] = {}
    aliases: dict[str, list[str]] = {}
    rows: dict[str, list[tuple[str, object]]] = {}
    for module in public_modules():
        for name in public_names(module):
            value = getattr(module, name)
            path = f"{module.__name__}.{name}"
            if callable(value) and id(value) in owners:
                aliases.setdefault(owners[id(value)], []).append(path)
                continue
            owners[id(value)] = path
            rows.setdefault(module.__name__, []).append((name, value))
    pages = {}
    for module in public_modules():
        title = module.__name__
        # Names in signatures are those of the module first.
        current = f"```{{py:currentmodule}} {title}\n```\n"
        parts = [f"# {title}\n", current, markdown(inspect.getdoc(module) or ""), "\n"]
        groups: dict[str, list[str]] = {
            "Classes": [],
            "Functions": [],
            "Operators": [],
            "Values": [],
        }
        for name, value in rows.get(title, []):
            group, text = python_entry(stubs, title, name, value, aliases)
            groups[group].append(text)
        for group, texts in groups.items():
            if texts:
                parts.append(f"## {group}\n\n" + "\n".join(texts))
        again = [
            f"`{a}`"
            for owner, names in aliases.items()
            for a in names
            if a.rpartition(".")[0] == title
        ]
        if again:
            parts.append(
                "## Other names\n\n" + ", ".join(again) + " are documented in other modules.\n"
            )
        pages[f"python/{title}.md"] = "\n".join(parts)
    return pages


def python_entry(
    stubs: Stubs, module: str, name: str, value: object, aliases: dict[str, list[str]]
) -> tuple[str, str]:
    """The group of a name, and its entry."""
    path = f"{module}.{name}"
    others = aliases.get(path, [])
    more = "Also " + ", ".join(f"`{other}`" for other in others) + "." if others else ""
    if inspect.isclass(value):
        signature, doc = stubs.of(value, name)
        texts = [entry("py:class", name, signature.removesuffix(" -> None"), doc, more)]
        for member, inner, directive in members(value):
            signature, doc = stubs.of(inner, f"{name}.{member}")
            known = stubs.docs.get(f"{name}.{member}") if value.__module__ == "relay" else None
            if known is not None:
                signature, doc = stubs.signatures[f"{name}.{member}"], known or doc
            signature = re.sub(r"^\((?:self|cls)(?:, )?", "(", signature)
            texts.append(entry(directive, f"{name}.{member}", signature, doc))
        return "Classes", "\n".join(texts)
    if callable(value):
        signature, doc = stubs.of(value, name)
        group = "Operators" if path.removeprefix("relay.") in stubs.operators else "Functions"
        return group, entry("py:function", name, signature, doc, more)
    return "Values", entry("py:data", name, "", f"A {type(value).__name__}.", more)


# ---- C


def c_page(header: str) -> str:
    """The declarations of a header with their comments."""
    text = (ROOT / "include" / "relay" / header).read_text()
    first = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
    assert first is not None
    parts = [f"# relay/{header}\n", *c_comment(first[1])]
    inside = text[first.end() :]
    # What only compilers need.
    inside = re.sub(
        r"#(?:if|ifdef|ifndef) (?:defined\(__GNUC__\)|__cplusplus)\n.*?#endif\n",
        "",
        inside,
        flags=re.S,
    )
    pattern = re.compile(
        r"(?:/\*(?P<doc>(?:[^*]|\*(?!/))*)\*/\n)?"
        r"(?P<code>(?:typedef|RELAY_API|struct|#define RELAY_)"
        r"(?:[^;{}\n\\]|\\\n|\{(?:[^{}]|\{[^{}]*\})*\}|\n(?!\n))*(?:;[^\n]*|\n))"
    )
    for found in pattern.finditer(inside):
        code = found["code"].strip()
        if code.startswith("#define RELAY_API") and "VERSION" not in code:
            continue
        named = re.search(
            r"(?:\(\*)?(relay_\w+|RELAY_\w+)(?:\)?\(|;|\s*\{| \d)", code.replace("RELAY_API ", "")
        )
        name = re.findall(r"\}\s*(\w+);", code)[-1:] or ([named[1]] if named else [])
        if not name:
            continue
        parts.append(f"## {plain(name[0])}\n\n```c\n{code.replace('RELAY_API ', '')}\n```\n")
        parts += c_comment(found["doc"] or "")
    return "\n".join(parts)


def c_comment(text: str) -> list[str]:
    """A comment as Markdown; indented lines are code."""
    lines = [re.sub(r"^ \* ?", "", line) for line in text.split("\n")]
    lines[0] = lines[0].strip()
    blocks = "\n".join(lines).strip().split("\n\n")
    out = []
    for block in blocks:
        rows = block.split("\n")
        if block and all(row.startswith("  ") for row in rows):
            out.append("```c\n" + "\n".join(row[2:] for row in rows) + "\n```\n")
        elif block:
            out.append(plain(" ".join(row.strip() for row in rows)) + "\n")
    return out


# ---- Commands


def help_of(*words: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        [COMMAND, *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "100"},
    )
    return done.stdout


def commands() -> list[str]:
    """The names of the commands."""
    listed = help_of().partition("Commands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w+) ", listed, re.MULTILINE)


def rows_of(text: str) -> list[tuple[str, str]]:
    """The rows of a list in a help text: what is typed, and what it does."""
    out: list[tuple[str, str]] = []
    for line in text.split("\n"):
        found = re.match(r"  (\S.*?)(?:  +(.*))?$", line)
        if found:
            out.append((found[1], found[2] or ""))
        elif line.strip() and out:
            out[-1] = (out[-1][0], f"{out[-1][1]} {line.strip()}")
    return out


def commands_page() -> str:
    """Every command with its arguments and options."""
    parts = ["# Commands\n"]
    for name in commands():
        text = help_of(name)
        about, _, rest = text.partition("Usage: ")
        usage = rest.partition("\n")[0]
        parts.append(f"## relay {name}\n\n{plain(about.strip())}\n\n```text\n{usage}\n```\n")
        arguments = rest.partition("Arguments:\n")[2].partition("\n\n")[0]
        for word, doc in rows_of(arguments):
            parts.append(f"- `{word}`: {plain(doc)}")
        if arguments:
            parts.append("")
        parts.append(f"```{{program}} relay {name}\n```\n")
        for word, doc in rows_of(rest.partition("Options:\n")[2]):
            parts.append(f"```{{option}} {word}\n{plain(doc)}\n```\n")
    return "\n".join(parts)


# ---- Errors


@dataclass(frozen=True)
class Code:
    """A diagnostic code: "E0101", its title and its area."""

    code: str
    title: str
    area: str


def error_codes() -> list[Code]:
    """The codes that the sources declare, in their order."""
    found = []
    for header in ROOT.glob("src/base/codes/*.h"):
        text = header.read_text()
        area = text.partition("\n")[0].rpartition(": ")[2].rstrip(".")
        for code, title in re.findall(r'DiagnosticCode \w+\{\s*"(E\d{4})",\s*"([^"]*)"', text):
            found.append(Code(code, title, area))
    return sorted(found, key=lambda c: c.code)


def advice() -> dict[str, dict[str, str]]:
    """docs/errors.json."""
    return json.loads((ROOT / "docs" / "errors.json").read_text(encoding="utf-8"))


def program_of(code: str) -> tuple[str, str] | None:
    """The shortest program of tests/must_fail with the code as its first, and its message."""
    found = []
    for expected in ROOT.glob("tests/must_fail/*.expected"):
        message = expected.read_text()
        if message.startswith(f"error[{code}]"):
            program = expected.with_suffix(".relay").read_text()
            found.append((len(program), program, message))
    return min(found)[1:] if found else None


def prepare(folder: Path) -> None:
    """Writes the files that the examples of docs/errors.json name."""
    from onnx import TensorProto, helper, save

    header = '#[version = "0.0.5"]\n'
    (folder / "program.relay").write_text(
        header + "def @main(%x: Tensor[(1, 3), float32]) { nn.relu(%x) }\n"
    )
    (folder / "open.relay").write_text(
        header + "def @main[n: Dim](%x: Tensor[(n,), float32]) { nn.relu(%x) }\n"
    )
    (folder / "other.bin").write_bytes(bytes(100))

    def model(name: str, node: object, opset: int = 17, *more: object) -> None:
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in "xy")
        graph = helper.make_graph([node], "g", [x, *more], [y])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        save(made, folder / f"{name}.onnx")

    model("model", helper.make_node("Relu", ["x"], ["y"]))
    model("unknown", helper.make_node("Frobnicate", ["x"], ["y"]))
    model("undefined", helper.make_node("Relu", ["nothing"], ["y"]))
    model("newer", helper.make_node("Relu", ["x"], ["y"]), 999)
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [None])
    model("dynamic", helper.make_node("Reshape", ["x", "shape"], ["y"]), 17, shape)
    (folder / "damaged.onnx").write_bytes((folder / "model.onnx").read_bytes()[:-7])
    compile_model = [COMMAND, "compile", "-q", "model.onnx", "-o", "model.so"]
    subprocess.run(compile_model, cwd=folder, check=True, capture_output=True)
    whole = (folder / "model.so").read_bytes()
    (folder / "damaged.so").write_bytes(whole[: len(whole) // 2])


def outcome(row: dict[str, str], folder: Path) -> str:
    """The message of an example of docs/errors.json, "" if it has none."""
    if "run" in row:
        done = subprocess.run(
            [COMMAND, *shlex.split(row["run"])[1:]], cwd=folder, capture_output=True, text=True
        )
        return done.stderr if done.returncode else ""
    file = folder / "example.py"
    file.write_text("import numpy as np\nimport relay\n\n" + "\n".join(row["python"]))
    try:
        runpy.run_path(str(file))
    except relay.RelayError as e:
        return str(e).replace(f"{folder}/", "")
    return ""


def errors_page() -> str:
    """Every code with an example and what to do about it."""
    told = advice()
    parts = [
        "# Error codes\n",
        "A code keeps its meaning. The examples were run when this page was made.\n",
    ]
    area = ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for one in error_codes():
            if one.area != area:
                area = one.area
                parts.append(f"## {area.capitalize()}: {one.code[:3]}xx\n")
            row = told[one.code]
            parts.append(f"### {one.code}\n\n{plain(one.title.capitalize())}.\n")
            program = program_of(one.code)
            if "when" in row:
                parts.append(f"**Example.** {row['when']}\n")
            elif "run" in row:
                parts.append(f"```console\n$ {row['run']}\n{outcome(row, folder).rstrip()}\n```\n")
            elif "python" in row:
                parts.append(f"```python\n{chr(10).join(row['python'])}\n```\n")
                parts.append(f"```text\n{outcome(row, folder).rstrip()}\n```\n")
            elif program is not None:
                parts.append(f"```relay\n{program[0].rstrip()}\n```\n")
                parts.append(f"```text\n{program[1].rstrip()}\n```\n")
            parts.append(f"**What to do.** {row['fix']}\n")
    return "\n".join(parts)


# ---- All


def pages() -> dict[str, str]:
    """The files of the reference by their paths."""
    python = python_pages()
    listed = "\n".join(name.removesuffix(".md") for name in python)
    index = (
        "# Reference\n\n"
        "Made from the sources: docstrings, stubs, headers, `--help` and the list of codes.\n\n"
        f"```{{toctree}}\n:caption: Python\n:maxdepth: 1\n\n{listed}\n```\n\n"
        "```{toctree}\n:caption: C\n:maxdepth: 1\n\n"
        + "\n".join(f"c/{header.removesuffix('.h')}" for header in HEADERS)
        + "\n```\n\n```{toctree}\n:caption: Commands and errors\n:maxdepth: 1\n\ncommands\nerrors\n```\n"
    )
    return {
        "index.md": index,
        **python,
        **{f"c/{header.removesuffix('.h')}.md": c_page(header) for header in HEADERS},
        "commands.md": commands_page(),
        "errors.md": errors_page(),
    }


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "docs" / "reference"
    made = pages()
    for old in folder.rglob("*.md") if folder.exists() else ():
        if str(old.relative_to(folder)) not in made:
            old.unlink()
    for name, text in made.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # An unchanged page is not built again.
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    print(f"reference: {len(made)} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
