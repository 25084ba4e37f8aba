#!/usr/bin/env python3
"""Compares every #include below src/ with layers.toml, and code with what [absent] and [only] forbid.

tools/check_layers.py              check the tree; one line per violation, exit code 1 if there is any
tools/check_layers.py --self-test  check the checker on small trees with planted violations
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//.*')
SOURCES = (".h", ".cc", ".c")


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
    if "test" in file.parts[1:-1]:
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


def self_test(rules: dict) -> list[str]:
    """Plants one violation of each sort; returns what was not noticed, and what was noticed wrongly."""
    allowed = {
        "ir/a.h": '#include "node/node.h"\n#include "runtime/core/tensor.h"\n#include <vector>',
        "codegen/llvm/b.cc": '#include <llvm/IR/IRBuilder.h>\n#include "tir/stmt.h"',
        "passes/test/c.cc": '#include "ops/all.h"',
        "ops/d.cc": '#include "lower/interface/topi.h"',
        "runtime/e.cc": '#include "base/diagnostic.h"\n  #  include "runtime/vm/vm.h"',
        "runtime/f.cc": '// #include "ir/expr.h"',
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
        for name, text in {**allowed, **planted}.items():
            file = root / "src" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n", encoding="utf-8")
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
    faults, count = check_tree(root, rules)
    print("\n".join(faults) if faults else f"check_layers: {count} includes keep their direction")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
