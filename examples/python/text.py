"""A text of this repository, one character after the other: an LSTM and a transformer of four layers.

python examples/python/text.py
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import relay
from relay import train

init = train.initializers
ROOT = Path(__file__).resolve().parents[2]


def read(path: str = "docs/performance.md") -> tuple[np.ndarray, str]:
    """The text as numbers of its characters, and the characters."""
    text = (ROOT / path).read_text()
    letters = "".join(sorted(set(text)))
    return np.array([letters.index(c) for c in text], "int32"), letters


def excerpts(text: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Excerpts that begin at every eighth character, and the same shifted by one character."""
    starts = np.arange(0, len(text) - length - 1, 8)[:, None] + np.arange(length)
    return text[starts], text[starts + 1]


class LSTM:
    """The gates of all letters are one product before the loop; the loop has the recurrent one."""

    def __init__(self, keys: Any, letters: int, width: int = 128) -> None:
        self.letters = init.normal(next(keys), (letters, width), 0.5)
        self.inputs = init.glorot_uniform(next(keys), (width, 4 * width))
        self.states = init.glorot_uniform(next(keys), (width, 4 * width))
        self.bias = np.repeat(np.array([0, 1, 0, 0], "float32"), width)
        self.out = init.glorot_uniform(next(keys), (width, letters))

    @relay.function
    def __call__(self, text: Any) -> Any:
        count, length = text.shape
        width = self.states.shape[0]
        gates = np.swapaxes(self.letters[text], 0, 1) @ self.inputs + self.bias
        h = np.zeros((count, width), "float32")
        c = np.zeros((count, width), "float32")
        states = np.zeros((length, count, width), "float32")
        for t in range(length):
            i, f, g, o = np.split(gates[t] + h @ self.states, 4, axis=1)
            c = relay.sigmoid(f) * c + relay.sigmoid(i) * np.tanh(g)
            h = relay.sigmoid(o) * np.tanh(c)
            states[t] = h
        return np.swapaxes(states, 0, 1) @ self.out


class Block:
    """Attention and a perceptron, each added to what it read in normal form."""

    def __init__(self, keys: Any, width: int, heads: int) -> None:
        self.heads = heads
        self.norms = [(init.ones((width,)), init.zeros((width,))) for _ in range(2)]
        self.qkv = init.lecun_normal(next(keys), (width, 3 * width))
        self.join = init.lecun_normal(next(keys), (width, width)) * np.float32(0.3)
        self.up = init.lecun_normal(next(keys), (width, 4 * width))
        self.down = init.lecun_normal(next(keys), (4 * width, width)) * np.float32(0.3)

    @relay.function
    def __call__(self, x: Any) -> Any:
        count, length, width = x.shape
        size = width // self.heads
        first, second = self.norms
        shape = (count, length, 3, self.heads, size)
        q, k, v = np.transpose((normal(x, first) @ self.qkv).reshape(shape), (2, 0, 3, 1, 4))
        places = np.arange(length)
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(size))
        scores = np.where(places[:, None] >= places, scores, np.float32(-1e9))
        mixed = np.transpose(relay.nn.softmax(scores, axis=-1) @ v, (0, 2, 1, 3))
        x = x + mixed.reshape((count, length, width)) @ self.join
        return x + relay.nn.relu(normal(x, second) @ self.up) @ self.down


@relay.function
def normal(x: Any, scale_shift: Any) -> Any:
    scale, shift = scale_shift
    centred = x - x.mean(axis=-1, keepdims=True)
    return (
        centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift
    )


class Transformer:
    def __init__(
        self, keys: Any, letters: int, length: int, width: int = 64, layers: int = 4, heads: int = 4
    ) -> None:
        self.letters = init.normal(next(keys), (letters, width), 0.5)
        self.places = init.normal(next(keys), (length, width), 0.1)
        self.blocks = [Block(keys, width, heads) for _ in range(layers)]
        self.norm = (init.ones((width,)), init.zeros((width,)))
        self.out = init.lecun_normal(next(keys), (width, letters))

    @relay.function
    def __call__(self, text: Any) -> Any:
        x = self.letters[text] + self.places
        for block in self.blocks:
            x = block(x)
        return normal(x, self.norm) @ self.out


@relay.function
def loss(model: Any, text: Any, following: Any) -> Any:
    return train.losses.softmax_cross_entropy(model(text), following)


def fit(model: Any, length: int, size: int, rate: float, steps: int) -> float:
    """Trains a model; returns the loss, in nats a character, of its last tenth of the steps."""
    batches = train.Batches(excerpts(read()[0], length), size, key=1, drop_last=True)
    schedule = train.schedules.Cosine(rate, steps=steps, warmup=steps // 20)
    trainer = train.Trainer(loss, model, train.adamw(schedule), clip=1.0)
    values: list[float] = []
    while len(values) < steps:
        for batch in batches.epoch(len(values) // len(batches)):
            values.append(float(trainer.step(*batch)))
            if len(values) == steps:
                break
    return float(np.mean(values[-steps // 10 :]))


if __name__ == "__main__":
    letters = read()[1]
    for model, length, rate in [
        (LSTM(init.Keys(0), len(letters)), 48, 8e-3),
        (Transformer(init.Keys(0), len(letters), 64), 64, 2e-3),
    ]:
        begin = time.perf_counter()
        value = fit(model, length, 32, rate, 400)
        print(
            f"{type(model).__name__}: {value:.2f} nats a character, {time.perf_counter() - begin:.1f} s"
        )
