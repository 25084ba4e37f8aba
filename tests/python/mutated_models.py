"""Damaged ONNX models: every one is imported or refused with a code, soon.

    python tests/python/mutated_models.py --seed 1 --count 2000 --keep FOLDER
    python tests/python/mutated_models.py --write FOLDER

changes bytes of small models with operators that read their inputs' sizes, and of real ones under --keep,
and imports what comes out. A crash ends the process; the model that did it is FOLDER/last.onnx. --write makes
files of the small models and of ONNX's backend suite, for longer runs under sanitizers (base/test/replay.h):

    RELAY_REPLAY_CORPUS=FOLDER RELAY_REPLAY_ROUNDS=100000 build/asan/src/frontend/frontend_test \\
        --gtest_filter='OnnxReplay.*'
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np
import onnx_cases
import test_onnx_branches as branches
import test_onnx_contrib as contrib
from onnx import helper

import relay

LIMIT_S = 10.0


def sources() -> list[bytes]:
    """Returns models that are right: branches, loops, attention, packed and quantised weights."""
    squeezed = branches.squeezed([helper.make_node("Gemm", ["y", "w"], ["z"])],
                                 [("w", np.ones((3, 2), np.float32))])  # fmt: skip
    (first, weights), (second, more) = branches.gru("x", 8), branches.gru("xx", 8)
    layers = [
        first,
        helper.make_node("Transpose", ["xy"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "joined"], ["xx"]),
        second,
    ]
    loops = branches.model_of(layers, [("x", 1, ["steps", "batch", 8])], ["xxy"],
                              [("joined", np.array([0, 0, 8])), *weights, *more])  # fmt: skip
    floats, quantised = contrib.floats, contrib.quantised
    heads = {"num_heads": 4}
    blocks = {"K": 40, "N": 6, "bits": 4, "block_size": 16}
    lengths, scale, zero = np.array([3, 5], np.int32), contrib.SCALE, contrib.ZERO
    small = [floats(3, 40), quantised(6, 3, 8), floats(18), quantised(12)]
    nodes = [
        ("MatMulNBits", small, (1, 2, 3), blocks),
        ("Attention", [floats(2, 5, 16), floats(16, 48), floats(48), lengths], (1, 2), heads),
        ("MultiHeadAttention", [floats(2, 4, 16), floats(2, 6, 16), floats(2, 6, 16)], (), heads),
        ("RotaryEmbedding", [floats(2, 3, 16), np.array([2]), floats(9, 4), floats(9, 4)], (2, 3), {}),
        ("QGemm", [quantised(3, 8), scale, zero, quantised(8, 5), scale, zero], (1, 2, 4, 5), {}),
    ]  # fmt: skip
    single = [contrib.model_of(op, inputs, [contrib.FLOAT], constants, attrs)
              for op, inputs, constants, attrs in nodes]  # fmt: skip
    return [m.SerializeToString() for m in (squeezed, loops, *single)]


def damaged(model: bytes, rng: random.Random) -> bytes:
    """Returns the model with some bytes changed, cut out or put in."""
    out = bytearray(model)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        # The graph stands before the weights.
        at, what = rng.randrange(max(1, min(len(out), 12000))), rng.random()
        if what < 0.6:
            out[at : at + 1] = bytes([rng.randrange(256)])
        elif what < 0.75:
            out[at : at + 1] = bytes([(out[at] if at < len(out) else 0) ^ 1 << rng.randrange(8)])
        elif what < 0.87:
            del out[at : at + rng.randrange(1, 9)]
        else:
            out[at:at] = rng.randbytes(rng.randrange(1, 5))
    return bytes(out)


def write(folder: Path) -> None:
    """Writes models that are right, and small enough that a change of a few bytes means something."""
    most = 20_000
    small = {c.name: c.model for c in onnx_cases.cases() if len(c.model) <= most}
    small |= {f"source{i}": model for i, model in enumerate(sources()) if len(model) <= most}
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in small.items():
        (folder / f"{name}.onnx").write_bytes(model)


def main(argv: list[str]) -> int:
    """Imports damaged models; 1 when one of them does what none may."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(argv)
    if options.write:
        write(options.write)
        return 0
    if options.keep is None:
        parser.error("--keep or --write says a folder")
    models = sources() + [p.read_bytes() for p in sorted(options.keep.glob("source*.onnx"))]
    rng, bad, good = random.Random(options.seed), 0, 0
    for i in range(options.count):
        model = damaged(rng.choice(models), rng)
        (options.keep / "last.onnx").write_bytes(model)
        start = time.monotonic()
        complaint = ""
        try:
            relay.frontend.from_onnx(model)
            good += 1
        except relay.UserError:
            pass
        except Exception as error:
            complaint = f"{type(error).__name__}: {str(error)[:300]}"
        if time.monotonic() - start > LIMIT_S:
            complaint = f"{time.monotonic() - start:.0f} s"
        if complaint:
            bad += 1
            (options.keep / f"bad{i}.onnx").write_bytes(model)
            print(f"{i}: {complaint}", flush=True)
    print(f"seed {options.seed}: {options.count} models, {good} imported, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
