"""A trained ONNX model learns an additional class: magika's network recognises Relay programs.

    python examples/python/fine_tune.py

The model classifies 214 types of files from 2,048 of their bytes; JAX and tf2onnx made it. Relay's language
is not one of them. The model is imported with its weights as parameters, and all weights are trained.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

import relay
from relay import train

init = train.initializers
ROOT = Path(__file__).resolve().parents[2]
RELAY, LENGTH, BATCH = 213, 2048, 8


def load() -> tuple[Any, dict[str, np.ndarray]]:
    """The network, a function of bytes and weights, and the weights."""
    package = Path(importlib.util.find_spec("magika").origin).parent  # type: ignore[union-attr, arg-type]
    (path,) = package.glob("models/*/model.onnx")
    mod, weights = relay.frontend.from_onnx(
        path, shape={"bytes": (BATCH, LENGTH)}, freeze_params=False
    )
    network = mod.functions["main"]
    return network, {p.name_hint: weights[p.name_hint] for p in network.params[1:]}


def excerpts(suffix: str) -> list[np.ndarray]:
    """Files of this repository as magika reads them: their first and last 1,024 bytes, or 256."""
    out = []
    for path in sorted(ROOT.glob(f"**/*{suffix}")):
        if {".venv", "build"} & set(path.parts):
            continue
        data = np.frombuffer(path.read_bytes(), "uint8").astype("int32")
        if len(data) >= 200:
            excerpt = np.full(LENGTH, 256, "int32")
            head, tail = data[:1024], data[-1024:]
            excerpt[: len(head)], excerpt[LENGTH - len(tail) :] = head, tail
            out.append(excerpt)
    return out


def split(seed: int = 0) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Excerpts and their labels, the larger half for training; only Relay's label is used."""
    kinds = {".relay": True, ".py": False, ".cc": False, ".md": False}
    files = [(p, relay_) for suffix, relay_ in kinds.items() for p in excerpts(suffix)[:27]]
    order = np.argsort(init.words(init.as_key(seed), len(files)))
    x = np.stack([files[i][0] for i in order])
    y = np.array([files[i][1] for i in order])
    return (x[40:], y[40:]), (x[:40], y[:40])


def fit(steps: int) -> tuple[float, float]:
    """Trains; returns the fraction of unseen files classified correctly - Relay or not - before and after."""
    network, weights = load()
    # Scalars and small tensors are constants of the network's computation.
    learnt = {n: w for n, w in weights.items() if w.size >= 64 and w.dtype == "float32"}
    names = list(weights)

    @relay.function
    def probabilities(learnt: Any, data: Any) -> Any:
        return network(data, *[learnt[n] if n in learnt else weights[n] for n in names])

    @relay.function
    def loss(learnt: Any, data: Any, labels: Any) -> Any:
        chance = probabilities(learnt, data)[:, RELAY]
        right = np.where(labels, chance, 1.0 - chance)
        return -np.log(np.maximum(right, 1e-6)).mean()

    @relay.function(fixed_sizes=True)
    def judged(learnt: Any, data: Any) -> Any:
        return probabilities(learnt, data)[:, RELAY] > 0.5

    def right(learnt: Any) -> float:
        found = [judged(learnt, unseen[i : i + BATCH]) for i in range(0, len(unseen), BATCH)]
        return float((np.concatenate(found) == wanted).mean())

    known, (unseen, wanted) = split()
    trainer = train.Trainer(loss, learnt, train.adam(3e-4))
    batches = train.Batches(known, BATCH, key=0, drop_last=True)
    before, done = right(learnt), 0
    while done < steps:
        for batch in batches.epoch(done // len(batches)):
            trainer.step(*batch)
            done += 1
            if done == steps:
                break
    return before, right(trainer.params)


if __name__ == "__main__":
    before, after = fit(40)
    print(
        f"40 unseen files, Relay's or not: {before:.0%} judged rightly, {after:.0%} after training"
    )
