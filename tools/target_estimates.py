"""Estimates of inner loops for processors that the tests emulate only, in docs/targets.md.

    tools/target_estimates.py            compare the table of the document with the compiler's code
    tools/target_estimates.py --write    write it

A program is compiled for a core, and llvm-mca (LLVM 19) simulates the loop with the most multiply-accumulate
instructions: cycles without cache misses. The peak is one such instruction in each vector unit and cycle.
LLVM models the Cortex-A76 as a Cortex-A57, which has one such unit, and runs code for Armv7, too.
The unit of the SiFive X280 takes two cycles for a register of 512 bits.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

import relay

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/targets.md"
BEGIN, END = "<!-- estimates -->", "<!-- end of estimates -->"
MCA = "/usr/lib/llvm-19/bin/llvm-mca"
MULTIPLY = re.compile(
    r"\s(fmla|fmadd|sdot|udot|usdot|bfdot|bfmmla|usmmla|s?mlal2?|umlal2?|mla|vfma\.f32|vmlal\.s16|vf?n?w?m(acc|add|sac|sub)\w*\.v[vfx])\s"
)
LOAD = re.compile(r"\s(ld\w*|vld\w+(\.\d+)?|vl\w+\.v|fl[hwd]|l[bhw]u?)\s")
STACK = re.compile(r"\[sp|\(sp\)")
ITERATIONS = 100


@dataclass(frozen=True)
class Core:
    triple: str
    name: str
    units: float  # that multiply vectors, in LLVM's model
    target: str = ""  # of the code; empty: the core


CORES = [
    Core("aarch64-linux", "cortex-a76", 1),
    Core("aarch64-linux", "neoverse-v2", 4),
    Core("aarch64-linux", "neoverse-v2", 4, "aarch64-linux"),
    Core("aarch64-linux", "a64fx", 2),
    Core("riscv64-linux", "sifive-x280", 0.5),
    Core("riscv64-linux", "sifive-p670", 2),
    Core("armv7-linux-gnueabihf", "cortex-a57", 1, "armv7-linux"),
]


def programs() -> dict[str, relay.IRModule]:
    """A program for each kind of contraction."""
    rng = np.random.default_rng(0)

    def module(shape: tuple, dtype: str, build: object) -> relay.IRModule:
        x = relay.var("x", shape=shape, dtype=dtype)
        return relay.IRModule.from_expr(relay.Function([x], build(x)))

    def weights(*shape: int, dtype: object = "float32") -> relay.Expr:
        return relay.const((rng.standard_normal(shape) * 20).astype(dtype))

    def conv(x: relay.Expr, w: relay.Expr, groups: int) -> relay.Expr:
        # Of stride 2: others have kernels of minimal filtering, which add more than they multiply.
        strides = (2, 2) if groups == 1 else (1, 1)
        return relay.nn.conv2d(
            x, w, padding=(1, 1), strides=strides, kernel_size=(3, 3), groups=groups
        )

    return {
        "GEMM, 256 x 256 x 256, float32": module(
            (256, 256), "float32", lambda x: relay.nn.dense(x, weights(256, 256))
        ),
        "convolution, 3 x 3, stride 2, 64 to 64 channels, 28 x 28": module(
            (1, 64, 28, 28), "float32", lambda x: conv(x, weights(64, 64, 3, 3), 1)
        ),
        "depthwise convolution, 3 x 3, 64 channels, 28 x 28": module(
            (1, 64, 28, 28), "float32", lambda x: conv(x, weights(64, 1, 3, 3), 64)
        ),
        "GEMM, 256 x 256 x 256, bfloat16": module(
            (256, 256),
            "bfloat16",
            lambda x: relay.nn.dense(
                x, weights(256, 256, dtype=ml_dtypes.bfloat16), out_dtype="float32"
            ),
        ),
        "GEMM, 256 x 256 x 256, uint8 by int8": module(
            (256, 256),
            "uint8",
            lambda x: relay.nn.dense(x, weights(256, 256, dtype="int8"), out_dtype="int32"),
        ),
    }


def inner_loop(assembly: str) -> list[str]:
    """The instructions of the loop without a label inside that has the most multiplications."""
    best: list[str] = []
    label, body, length = "", [], []
    for line in assembly.splitlines():
        # How many registers an instruction uses is said before the loop; llvm-mca reads it in comments.
        if found := re.search(r"\svset\w+\s.*, (e\d+), (mf?\d),", line):
            length = [
                f"# LLVM-MCA-RISCV-{k} {v.upper()}"
                for k, v in zip(("SEW", "LMUL"), found.groups(), strict=True)
            ]
        if found := re.match(r"(\.L\w+):", line):
            label, body = found[1], length.copy()
        elif line.startswith("\t") and not line.startswith("\t."):
            body.append(line)
            if re.search(rf"\s{re.escape(label)}$", line) and label:
                count = sum(bool(MULTIPLY.search(i)) for i in body)
                if count > sum(bool(MULTIPLY.search(i)) for i in best):
                    best = body
                body = []
    return best


def assembly(mod: relay.IRModule, target: str) -> str:
    """What `relay show --asm` prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.relay"
        program.write_text(mod.astext())
        return subprocess.run(
            [Path(sys.executable).with_name("relay"), "show", program, "--asm", "--target", target],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


def cycles(loop: list[str], core: Core) -> float:
    """Of one iteration, by llvm-mca."""
    done = subprocess.run(
        [MCA, f"-mtriple={core.triple}", f"-mcpu={core.name}", f"-iterations={ITERATIONS}"],
        input="\n".join(loop) + "\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(re.search(r"Total Cycles:\s+(\d+)", done.stdout)[1]) / ITERATIONS


def row(name: str, mod: relay.IRModule, core: Core) -> str:
    loop = inner_loop(assembly(mod, core.target or f"{core.triple} -mcpu={core.name}"))
    multiplications = sum(bool(MULTIPLY.search(i)) for i in loop)
    loads = sum(bool(LOAD.search(i)) for i in loop)
    spills = sum(bool(STACK.search(i)) for i in loop)
    time = cycles(loop, core)
    share = 100 * multiplications / core.units / time
    code = f", {core.target}" if core.target else ""
    return (
        f"| {name} | {core.name}{code} | {multiplications} | {multiplications / max(1, loads):.1f} "
        f"| {spills} | {time:.1f} | {share:.0f} % |"
    )


def table() -> str:
    lines = [
        "| kernel | core | multiply-accumulates | per load | spills | cycles | of the peak |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, mod in programs().items():
        lines += [row(name, mod, core) for core in CORES]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    made = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if arguments == ["--write"]:
        DOCUMENT.write_text(made)
        return 0
    if made != text:
        print(f"{DOCUMENT}: the table differs; tools/target_estimates.py --write makes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
