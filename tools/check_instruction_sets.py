#!/usr/bin/env python3
"""Checks that only src/target, and one file for each set elsewhere, name instruction sets.

tools/check_instruction_sets.py              check the tree; one line per name, exit code 1 if there is any
tools/check_instruction_sets.py --self-test  check the checker on texts with planted names

All other code reads the target's description (src/target/target.h). Comments may name sets, as measurements
do, and so may tests and the arguments that the fuzzer passes to the command line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCES = (".h", ".cc", ".c", ".def")
NAME = re.compile(
    r"x86|(?<![a-z])i[3-6]86|(?<![a-z])(sse\d?|avx|amx|vnni|f16c|fma4|znver|vpdp|neon|sve\d?)(?![a-df-z])"
    r"|(?-i:(?<=[a-z])(Sse|Avx|Amx|Neon|Sve)(?![a-z]))|aarch64|(?<![a-z])arm(64|v\d)|risc-?v|(?<![a-z])rvv(?![a-z])|wasm|loongarch|ppc64",
    re.IGNORECASE,
)
# A comment, or a literal, which is kept.
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')', re.DOTALL)
ALLOWED = re.compile(
    r"src/target/"
    r"|src/(codegen/llvm|runtime/machine)/(x86|x86_64|aarch64|arm|riscv|riscv64|webassembly|loongarch)\.cc$"
    r"|src/fuzz/|src/(\w+/)*test/"
)


def without_comments(text: str) -> str:
    """The text with comments blanked out, line by line as it was."""

    def kept(m: re.Match) -> str:
        return m[1] if m[1] else re.sub(r"[^\n]", " ", m[0])

    return COMMENT.sub(kept, text)


def hits(path: str, text: str) -> list[tuple[int, str]]:
    """The lines of a file that name an instruction set and may not, and the names."""
    if ALLOWED.match(path):
        return []
    lines = enumerate(without_comments(text).splitlines(), 1)
    return [(number, m[0]) for number, line in lines if (m := NAME.search(line))]


def self_test() -> list[str]:
    """What is not noticed of planted names, and what is noticed wrongly."""
    planted = [
        ("src/passes/p.cc", 'if (t.has_feature("avx512f")) return;'),
        ("src/passes/p.cc", 'if (t.has_feature("f16c")) return;'),
        ("src/codegen/llvm/kernel_values.cc", "#include <llvm/IR/IntrinsicsX86.h>"),
        ("src/codegen/llvm/jit.cc", "#if defined(__aarch64__)"),
        ("src/lower/rules/r.h", "int kSseLanes = 4;"),
        ("src/runtime/cpu.cc", '/* "avx" */ f("sse4.1");'),
        ("src/runtime/machine/machine.h", "bool has_amx();"),
        ("src/cli/c.cc", 's = "http://riscv64";'),
    ]
    accepted = [
        ("src/target/architectures.cc", '"+avx2"'),
        ("src/codegen/llvm/x86.cc", '"+avx2"'),
        ("src/runtime/machine/aarch64.cc", '"neon"'),
        ("src/passes/test/p_test.cc", '"+avx2"'),
        ("src/passes/p.cc", "// On AVX-512 it took half of the time."),
        ("src/passes/p.cc", "/* AVX-512\n x86 */ int passes, classes, resolved; f('\"'); // x86"),
    ]
    problems = [f"self-test: not noticed: {text}" for path, text in planted if not hits(path, text)]
    return problems + [
        f"self-test: {text} is refused" for path, text in accepted if hits(path, text)
    ]


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        problems = self_test()
        print("\n".join(problems) or "check_instruction_sets: the self-test passes")
        return 1 if problems else 0
    if arguments:
        print(__doc__)
        return 2
    root = Path(__file__).resolve().parent.parent
    count = 0
    files = [f for f in sorted((root / "src").rglob("*")) if f.suffix in SOURCES and f.is_file()]
    for file in files:
        path = str(file.relative_to(root))
        for number, name in hits(path, file.read_text(encoding="utf-8")):
            print(f"{path}:{number}: '{name}': ask the target's description (src/target/target.h)")
            count += 1
    if not count:
        print(f"check_instruction_sets: {len(files)} files ask the target's description")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
