"""TFLite models in Relay and in LiteRT with XNNPACK, run in turn: the least time of each, wall and processor.

usage: tflite.py [--rounds N] [--threads 1,2] [--only WORD]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

import relay

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python"))

import tflite_models as models

MODELS = {
    f"{name} {form}": (build, (form, *args))
    for name, build, args in (
        ("MobileNet-v2, 224x224", models.mobilenet_v2, (224, 1.0)),
        ("EfficientNet-lite0, 224x224", models.efficientnet_lite, (224, 1.0)),
        ("SSD of MobileNet-v2, 320x320", models.detector, (320, 1.0)),
        ("landmarks, 192x192", models.landmarks, (192, 1.0)),
    )
    for form in ("float32", "int8")
}


def runners(data: bytes, feeds: dict[str, np.ndarray], threads: int) -> dict:
    """A call of one run for each engine."""
    litert = Interpreter(model_content=data, num_threads=threads)
    litert.allocate_tensors()
    for d in litert.get_input_details():
        litert.set_tensor(d["index"], feeds[d["name"]])
    exe = relay.build(relay.frontend.from_tflite(data)[0], num_threads=threads)
    return {"relay": lambda: exe(**feeds), "litert": litert.invoke}


def least(engines: dict, rounds: int) -> dict[str, tuple[float, float]]:
    """Of each engine the least time of a run and the least processor time, of runs in turn."""
    out = {name: (np.inf, np.inf) for name in engines}
    for i in range(rounds):
        for name, run in engines.items():
            wall, processor = time.perf_counter(), time.process_time()
            run()
            taken = time.perf_counter() - wall, time.process_time() - processor
            if i > 0:  # the first run touches the memory
                out[name] = tuple(map(min, out[name], taken))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default="", help="models with this word in their name")
    args = parser.parse_args()
    for threads in map(int, args.threads.split(",")):
        ratios = []
        for name, (build, given) in MODELS.items():
            if args.only not in name:
                continue
            times = least(runners(*build(*given), threads), args.rounds)
            (wall, own), (their_wall, theirs) = times["relay"], times["litert"]
            ratios.append((wall / their_wall, own / theirs))
            print(f"{name}, {threads} threads: Relay {wall * 1e3:.2f} ms, LiteRT"
                  f" {their_wall * 1e3:.2f} ms, ratio {ratios[-1][0]:.2f}; processor"
                  f" {own * 1e3:.2f} and {theirs * 1e3:.2f} ms, ratio {ratios[-1][1]:.2f}",
                  flush=True)  # fmt: skip
        mean = np.exp(np.log(ratios).mean(0))
        print(f"geometric mean on {threads} threads: {mean[0]:.2f}, processor {mean[1]:.2f}")


if __name__ == "__main__":
    main()
