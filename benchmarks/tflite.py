"""TFLite models in Relay and in LiteRT with XNNPACK, on one thread, run in turn: the least time of each.

usage: tflite.py [--rounds N]
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

import tflite_models

MODELS = {
    "mobilenet_v2 224 float32": lambda: tflite_models.mobilenet_v2(False, 224, 1.0),
    "mobilenet_v2 224 int8": lambda: tflite_models.mobilenet_v2(True, 224, 1.0),
    "mobilenet_v1 128x0.5 float32": lambda: tflite_models.mobilenet_v1(False, 128, 0.5),
    "mobilenet_v1 128x0.5 int8": lambda: tflite_models.mobilenet_v1(True, 128, 0.5),
}


def runners(data: bytes, feeds: dict[str, np.ndarray]) -> dict:
    """A call of one run for each engine."""
    litert = Interpreter(model_content=data, num_threads=1)
    litert.allocate_tensors()
    for d in litert.get_input_details():
        litert.set_tensor(d["index"], feeds[d["name"]])
    exe = relay.build(relay.frontend.from_tflite(data)[0], num_threads=1)
    return {"relay": lambda: exe(**feeds), "litert": litert.invoke}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    for name, build in MODELS.items():
        data, feeds = build()
        engines = runners(data, feeds)
        least = dict.fromkeys(engines, float("inf"))
        for _ in range(rounds):
            for engine, run in engines.items():
                begin = time.perf_counter()
                run()
                least[engine] = min(least[engine], time.perf_counter() - begin)
        ms = {k: f"{v * 1e3:.2f} ms" for k, v in least.items()}
        print(f"{name}: {ms}, relay / litert {least['relay'] / least['litert']:.2f}", flush=True)


if __name__ == "__main__":
    main()
