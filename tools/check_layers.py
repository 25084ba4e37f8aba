#!/usr/bin/env python3
"""Compares every #include below src/ and every import of python/relay with layers.toml.

It also compares code with what [absent] and [only] forbid, and refuses circles of Python's modules and
folders of more than 40 sources.

tools/check_layers.py              check the tree; one line per violation, exit code 1 if there is any
tools/check_layers.py --self-test  check the checker on small trees with planted violations
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import tomllib
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//.*')
SOURCES = (".h", ".cc", ".c")
# The sources that one folder may hold, those of its own folders not counted.
MOST_SOURCES = 40


def owner(rows: dict[str, list[str]], path: str) -> str:
    """The row that holds for a path below src/ or for an entry of a row: that of the innermost folder."""
    held = [row for row in rows if path == row or path.startswith(row + "/")]
    return max(held, key=len, default=path.split("/")[0])


def within(rows: dict[str, list[str]], path: str, entry: str) -> bool:
    """Whether an include path lies in a room, or in the folder of a room, that a row names."""
    inner = owner(rows, path)
    return path.startswith(entry + "/") and not inner.startswith(entry + "/")


def reach(rows: dict[str, list[str]], start: str) -> set[str]:
    """The rooms that `start` can get at through any number of rows."""
    seen: set[str] = set()
    work = [start]
    while work:
        for entry in rows.get(work.pop(), []):
            room = owner(rows, entry)
            if room not in seen:
                seen.add(room)
                work.append(room)
    return seen


def check_rules(rules: dict) -> list[str]:
    """Faults of layers.toml itself: unknown rooms, circles, and hard lines that its rows would cross."""
    rows = rules["rooms"]
    faults = []
    for table in ("rooms", "tests", "never"):
        for room, entries in rules.get(table, {}).items():
            for name in [room, *(owner(rows, entry) for entry in entries)]:
                if name not in rows:
                    faults.append(f"layers.toml: [{table}] {room}: there is no room {name}")
    for room in rows:
        reached = reach(rows, room)
        # A folder of a room stands for the room here, so ops -> lower/interface counts as ops -> lower.
        if room in reached:
            faults.append(f"layers.toml: {room} reaches itself")
        for forbidden in rules.get("never", {}).get(room, []):
            if forbidden in reached:
                faults.append(f"layers.toml: {room} reaches {forbidden}, which it never may")
    return faults


def check_include(rules: dict, file: Path, quote: str, path: str) -> str | None:
    """Why `file` (relative to src/) may not include `path`, or None."""
    rows = rules["rooms"]
    room = owner(rows, file.as_posix())
    is_test = "test" in file.parts[1:-1]
    for prefix, owners in rules.get("libraries", {}).items():
        if path.startswith(prefix):
            stays = any(file.as_posix().startswith(holder + "/") for holder in owners)
            return None if stays else f"{path} stays in {', '.join(owners)}"
    if quote == "<":
        return None
    if path.split("/")[0] not in rows or "/" not in path:
        return f'"{path}" does not start with a room; outside headers are included with <>'
    allowed = [room, "base", *rows[room]]
    if is_test:
        # A test of a room may use all of the room.
        allowed += [row for row in rows if row.startswith(room + "/")]
        allowed += rules.get("tests", {}).get(room, [])
    if any(within(rows, path, entry) for entry in allowed):
        return None
    return f'{room} may not include "{path}" (allowed: {", ".join(allowed)})'


def has(code: str, text: str) -> bool:
    """Whether code has the text; one that begins or ends as a name does is a whole name there."""
    before = r"(?<!\w)" if re.match(r"\w", text) else ""
    after = r"(?!\w)" if re.search(r"\w$", text) else ""
    return re.search(before + re.escape(text) + after, code) is not None


def check_text(rules: dict, file: Path, line: str) -> str | None:
    """Why `file` (relative to src/) may not have this line because of text in it, or None.

    Comments and tests may have any text.
    """
    if "test" in file.parts[1:-1]:
        return None
    code = line if INCLUDE.match(line) else line.split("//")[0]
    for place, texts in rules.get("absent", {}).items():
        if f"{file.as_posix()}/".startswith(f"{place}/"):
            for text in texts:
                if has(code, text):
                    return f"{place} has no '{text}' ([absent] in layers.toml says why)"
    for word, owners in rules.get("only", {}).items():
        if file.as_posix() not in owners and not INCLUDE.match(line) and has(code, word):
            return f"{word} stays in {', '.join(owners)}"
    return None


def check_names(rules: dict, file: Path, line: str) -> str | None:
    """Why a line of `file` (relative to src/) may not be so: it holds the name of a row; or None."""
    if "test" in file.parts[1:-1] or file.as_posix() in rules.get("lists", {}).get("files", []):
        return None
    code = TEXT_OR_COMMENT.sub(lambda m: m[0] if m[0].startswith('"') else "", line)
    for folder, rooms in rules.get("unnamed", {}).items():
        name = folder.split("/")[-1]
        if file.parts[0] in rooms and name.lower() in code.lower():
            return f"{file.parts[0]} holds the name of {folder}, which it meets as a row of a list"
    return None


def check_tree(root: Path, rules: dict) -> tuple[list[str], int]:
    """All violations below root/src, and the number of includes looked at."""
    faults = check_rules(rules)
    count = 0
    source_root = root / "src"
    for file in sorted(source_root.rglob("*")):
        if file.suffix not in SOURCES or not file.is_file():
            continue
        relative = file.relative_to(source_root)
        if relative.parts[0] not in rules["rooms"]:
            faults.append(f"src/{relative}: {relative.parts[0]} is not a room of layers.toml")
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if fault := check_text(rules, relative, line):
                faults.append(f"src/{relative}:{number}: {fault}")
            match = INCLUDE.match(line)
            if match:
                count += 1
                fault = check_include(rules, relative, match[1], match[2])
            else:
                fault = check_names(rules, relative, line)
            if fault:
                faults.append(f"src/{relative}:{number}: {fault}")
    return faults, count


def modules_of(package: Path) -> dict[str, Path]:
    """The modules of a package of Python, by their dotted names."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def base_of(name: str, file: Path, node: ast.ImportFrom) -> str:
    """The module that an import names behind `from`; `name` is the module that has the import."""
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    around = parts[: len(parts) - node.level + (file.name == "__init__.py")]
    return ".".join([*around, *([node.module] if node.module else [])])


def front_names(name: str, file: Path, tree: ast.Module) -> set[str]:
    """The names that a package's front page takes from modules: they are no modules where it is imported."""
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and base_of(name, file, node) != name
        for alias in node.names
    }


def is_for_types(node: ast.AST) -> bool:
    """Whether it is `if TYPE_CHECKING:`, whose body never runs."""
    return (
        isinstance(node, ast.If)
        and ast.unparse(node.test).endswith("TYPE_CHECKING")
        and not (isinstance(node.test, ast.UnaryOp))
    )


def named_modules(name: str, file: Path, tree: ast.Module) -> list[tuple[str, str, int]]:
    """What a module imports, in functions too: a module, a name of it or "", and the line."""
    found = []
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if is_for_types(node):
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found += [(alias.name, "", node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = base_of(name, file, node)
            found += [(base, alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, (ast.Call, ast.Subscript)):
            # importlib.import_module("relay.torch"), sys.modules["relay"].
            of = node.func if isinstance(node, ast.Call) else node.value
            given = node.args[:1] if isinstance(node, ast.Call) else [node.slice]
            by = ast.unparse(of).rpartition(".")[2]
            if by in ("import_module", "__import__", "modules"):
                found += [
                    (text.value, "", node.lineno)
                    for text in given
                    if isinstance(text, ast.Constant) and isinstance(text.value, str)
                ]
    return found


def imports_of(modules: dict[str, Path], extensions: set[str]) -> dict[str, dict[str, int]]:
    """For each module the modules of the package that it imports, with the line of one such import.

    extensions: modules that are compiled from another language; they count as importing nothing.
    """
    trees = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in modules.items()}
    fronts = {
        name: front_names(name, file, trees[name])
        for name, file in modules.items()
        if file.name == "__init__.py"
    }
    found: dict[str, dict[str, int]] = {}
    for name, file in modules.items():
        mine: dict[str, int] = {}
        for base, part, line in named_modules(name, file, trees[name]):
            whole = f"{base}.{part}"
            if whole in extensions:
                continue
            is_module = whole in modules and part not in fronts.get(base, ())
            target = whole if is_module else base
            # The packages around a module run before it; those around the importing module run already.
            parts = target.split(".")
            around = [".".join(parts[:count]) for count in range(1, len(parts))]
            for each in [target, *(p for p in around if not f"{name}.".startswith(f"{p}."))]:
                if each in modules and each != name:
                    mine.setdefault(each, line)
        found[name] = mine
    return found


def circles(imports: dict[str, dict[str, int]]) -> list[list[str]]:
    """Circles of modules that import each other, until none is left without one of these modules."""
    rest = {name: set(targets) for name, targets in imports.items()}
    found = []
    while True:
        while ends := [name for name, targets in rest.items() if not targets & rest.keys()]:
            for name in ends:
                del rest[name]
        if not rest:
            return found
        # Each that is left imports one that is left.
        way = [min(rest)]
        while (target := min(rest[way[-1]] & rest.keys())) not in way:
            way.append(target)
        found.append(way[way.index(target) :])
        for name in found[-1]:
            del rest[name]


def check_python(root: Path, rules: dict) -> tuple[list[str], int]:
    """The violations below root/python/relay, and the number of imports looked at."""
    package = root / "python" / "relay"
    modules = modules_of(package)
    imports = imports_of(modules, {f"relay.{name}" for name in rules["python"]["extensions"]})
    layers = rules["python"]["layers"]
    level = {entry: number for number, entries in enumerate(layers) for entry in entries}
    paths = {
        name: file.relative_to(package).with_suffix("").as_posix() for name, file in modules.items()
    }
    rows = {name: owner(level, path) for name, path in paths.items()}
    shown = {name: file.relative_to(root).as_posix() for name, file in modules.items()}
    faults = [
        f"layers.toml: [python] {entry} is no module of python/relay"
        for entry in level
        if not any(path == entry or path.startswith(entry + "/") for path in paths.values())
    ]
    for way in circles(imports):
        steps = zip(way, [*way[1:], way[0]], strict=True)
        places = ", ".join(f"{shown[a]}:{imports[a][b]}" for a, b in steps)
        faults.append(f"{shown[way[0]]}: {' -> '.join([*way, way[0]])} is a circle ({places})")
    for name, targets in imports.items():
        if rows[name] not in level:
            faults.append(f"{shown[name]}: the module has no layer in layers.toml")
            continue
        for target, line in targets.items():
            if level.get(rows[target], 0) > level[rows[name]]:
                faults.append(
                    f"{shown[name]}:{line}: {rows[name]} is in a lower layer than {rows[target]}"
                )
    return faults, sum(map(len, imports.values()))


def check_folders(root: Path) -> list[str]:
    """The folders of more sources than a person looks through."""
    faults = []
    for top, pattern in (("src", "*.cc"), ("python/relay", "*.py")):
        for folder in [root / top, *(f for f in sorted((root / top).rglob("*")) if f.is_dir())]:
            count = len(list(folder.glob(pattern)))
            if count > MOST_SOURCES:
                faults.append(
                    f"{folder.relative_to(root)}: {count} sources in a folder, at most {MOST_SOURCES}"
                )
    return faults


def self_test(rules: dict) -> list[str]:
    """Plants one violation of each sort; returns what was not noticed, and what was noticed wrongly."""
    allowed = {
        "ir/a.h": '#include "node/node.h"\n#include "runtime/core/tensor.h"\n#include <vector>',
        "codegen/llvm/b.cc": '#include <llvm/IR/IRBuilder.h>\n#include "tir/stmt.h"',
        "passes/test/c.cc": '#include "ops/all.h"',
        "ops/d.cc": '#include "lower/interface/topi.h"',
        "runtime/e.cc": '#include "base/diagnostic.h"\n  #  include "runtime/vm/vm.h"',
        "runtime/f.cc": '// #include "ir/expr.h"',
        "runtime/test/f.cc": "std::stringstream read;",
        "plan/g.cc": "int32_t variant;  // not a PrimFunc",
        "plan/test/h.cc": "PrimFunc f;",
        "vm/i.cc": "MyPrimFunc f;",
        "lower/j.cc": "PrimFunc f;",
        "lower/kernel_provider.cc": "auto f = schedule_kernel(composed, target, 3);",
        "tir/compute.h": "std::map<std::string, int> names;",
        "tir/hints.h": "// no std::map<std::string, std::string>",
        "frontend/common/g.cc": '#include "frontend/common/h.h"\n#include "ir/expr.h"',
        "frontend/onnx/g.cc": '#include "frontend/common/h.h"\n#include <onnx/onnx-ml.pb.h>',
        "frontend/g.cc": '#include "frontend/common/h.h"',
        "frontend/test/g.cc": '#include "frontend/onnx/onnx.h"\n#include "ops/all.h"',
        "driver/g.cc": '#include "frontend/frontend.h"  // an ONNX model\nint a;  // onnx',
    }
    planted = {
        "runtime/x.cc": '#include "ir/expr.h"',
        "runtime/y.cc": "std::ostringstream text;",
        "base/y.cc": "#include <sstream>",
        "tir/x.h": '#include "ir/expr.h"',
        "passes/x.cc": '#include "ops/nn.h"',
        "ir/x.h": '#include "runtime/vm/vm.h"',
        "ir/test/y.cc": '#include "ops/nn.h"',
        "ops/x.cc": '#include "lower/lower.h"',
        "driver/x.cc": "#include <llvm/IR/Module.h>",
        "base/x.cc": '#include "diagnostic.h"',
        "nowhere/x.cc": "#include <vector>",
        "plan/x.cc": "tir::PrimFunc f;",
        "plan/y.cc": '#include "tir/stmt.h"',
        "plan/z.cc": '#include "lower/kernel_body.h"',
        "vm/x.h": "const ComposedKernel& kernel;",
        "driver/y.cc": "auto f = schedule_kernel(composed, target, 3);",
        "tir/stmt.h": "  std::map<std::string, std::string> attrs;",
        "lower/rules/x.cc": "  } catch (const UserError&) {",
        "frontend/common/x.cc": '#include "frontend/onnx/onnx.h"',
        "frontend/common/y.cc": "#include <onnx/onnx-ml.pb.h>",
        "frontend/common/z.cc": '#include "frontend/frontend.h"',
        "frontend/x.cc": '#include "frontend/onnx/onnx.h"',
        "driver/z.cc": '#include "frontend/onnx/onnx.h"',
        "cli/y.cc": 'const char* help = "an ONNX model";',
        "bind/y.cc": "void import_onnx();",
    }
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_tree(root, {f"src/{name}": text for name, text in {**allowed, **planted}.items()})
        faults, _ = check_tree(root, rules)
        for name in planted:
            if not any(fault.startswith(f"src/{name}:") for fault in faults):
                problems.append(f"self-test: the violation planted in {name} is not noticed")
        for name in allowed:
            if any(fault.startswith(f"src/{name}:") for fault in faults):
                problems.append(f"self-test: {name} is refused: {faults}")
    crossed = {**rules, "rooms": {**rules["rooms"], "node": ["ir"]}}
    if not any("never" in fault for fault in check_rules(crossed)):
        problems.append("self-test: a crossed hard line in layers.toml is not noticed")
    return problems + self_test_python()


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")


def self_test_python() -> list[str]:
    """Plants a violation of each sort among modules of Python and in folders."""
    rules = {
        "python": {
            "extensions": ["compiled"],
            "layers": [["low"], ["middle", "folder"], ["high", "folder/above"], ["__init__"]],
        }
    }
    allowed = {
        "__init__.py": "from relay import high as high\nfrom relay.middle import name as name",
        "low.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from relay import high",
        "middle.py": "import sys\nfrom relay import compiled, low\nname = sys.modules['other']",
        "high.py": "def f():\n    from relay.folder import inner\n    import relay.middle",
        "folder/__init__.py": "from relay.folder.inner import inner as inner",
        "folder/inner.py": "from relay.low import f",
        "folder/above.py": "from relay import high",
    }
    planted = {
        "a circle": {
            "middle.py": "from relay.folder import inner",
            "folder/inner.py": "import relay.middle",
        },
        "a circle in functions": {
            "folder/inner.py": "def f():\n    from . import other",
            "folder/other.py": "def f():\n    from .inner import f",
        },
        "a circle through the front page": {"high.py": "from relay import name"},
        "a circle through a folder's front page": {
            "folder/inner.py": "from relay import middle",
            "middle.py": "from relay.folder import inner",
        },
        "a circle through a package that runs first": {
            "folder/__init__.py": "from relay import high",
        },
        "a circle by name": {"high.py": "import importlib\nimportlib.import_module('relay')"},
        "a circle in sys.modules": {"high.py": "import sys\nsys.modules['relay'].name"},
        "an import of a higher layer": {"low.py": "from relay import middle"},
        "one in a function": {"low.py": "def f():\n    import relay.folder.inner"},
        "one of a module above its folder": {"folder/inner.py": "from relay.folder import above"},
        "a module without a layer": {"new.py": "import relay.low"},
        "a layer without a module": {"folder/above.py": None},
    }
    problems = []
    for what, changes in {"": {}, **planted}.items():
        with tempfile.TemporaryDirectory() as folder:
            files = {n: t for n, t in {**allowed, **changes}.items() if t is not None}
            write_tree(Path(folder), {f"python/relay/{n}": text for n, text in files.items()})
            faults, _ = check_python(Path(folder), rules)
            if what and not faults:
                problems.append(f"self-test: {what} of Python's modules is not noticed")
            if what.startswith("a circle") and not any("is a circle" in fault for fault in faults):
                problems.append(f"self-test: {what} is not noticed as a circle")
            if not what and faults:
                problems.append(f"self-test: modules of Python are refused: {faults}")
    for top, suffix in (("src/ir", ".cc"), ("python/relay", ".py")):
        for count in (MOST_SOURCES, MOST_SOURCES + 1):
            with tempfile.TemporaryDirectory() as folder:
                names = [f"{top}/f{i}{suffix}" for i in range(count)] + [f"{top}/test/g{suffix}"]
                write_tree(Path(folder), dict.fromkeys(names, ""))
                if bool(check_folders(Path(folder))) != (count > MOST_SOURCES):
                    problems.append(f"self-test: {count} sources in {top} are judged wrongly")
    return problems


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    rules = tomllib.loads((root / "layers.toml").read_text(encoding="utf-8"))
    if arguments == ["--self-test"]:
        faults = self_test(rules)
        print("\n".join(faults) if faults else "check_layers: the self-test passes")
        return 1 if faults else 0
    if arguments:
        print(__doc__)
        return 2
    faults, includes = check_tree(root, rules)
    more, imports = check_python(root, rules)
    faults += more + check_folders(root)
    print(
        "\n".join(faults)
        if faults
        else f"check_layers: {includes} includes and {imports} imports keep their direction"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
