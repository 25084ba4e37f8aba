"""Handwritten digits of scikit-learn: a perceptron and a convolutional network, to 97 % and more.

python examples/python/digits.py
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

import relay
from relay import train

init = train.initializers


def data(seed: int = 0) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """1,437 images of 8 by 8 to train with and 360 to test with, in an order drawn by a key."""
    import sklearn.datasets  # type: ignore[import-not-found, import-untyped, unused-ignore]

    digits = sklearn.datasets.load_digits()
    order = np.argsort(init.words(init.as_key(seed), len(digits.target)))
    images = (digits.images[order, None] / 16).astype("float32")
    labels = digits.target[order].astype("int32")
    return (images[360:], labels[360:]), (images[:360], labels[:360])


class Perceptron:
    def __init__(self, keys: Any, hidden: int = 128) -> None:
        sizes = [64, hidden, 10]
        self.layers = [
            (init.he_normal(next(keys), (n, m)), init.zeros((m,)))
            for n, m in itertools.pairwise(sizes)
        ]

    @relay.function
    def __call__(self, x: Any) -> Any:
        x = x.reshape((x.shape[0], 64))
        for w, b in self.layers[:-1]:
            x = np.maximum(x @ w + b, 0)
        w, b = self.layers[-1]
        return x @ w + b


class Convolution:
    def __init__(self, key: Any, inputs: int, outputs: int) -> None:
        self.weight = init.he_normal(key, (outputs, inputs, 3, 3), "oi")
        self.bias = init.zeros((outputs,))

    @relay.function
    def __call__(self, x: Any) -> Any:
        x = relay.nn.conv2d(x, self.weight, padding=(1, 1))
        return np.maximum(relay.nn.bias_add(x, self.bias), 0)


class Convolutional:
    def __init__(self, keys: Any) -> None:
        self.first = Convolution(next(keys), 1, 16)
        self.second = Convolution(next(keys), 16, 32)
        self.weight = init.glorot_uniform(next(keys), (128, 10))
        self.bias = init.zeros((10,))

    @relay.function
    def __call__(self, x: Any) -> Any:
        x = relay.nn.max_pool2d(self.first(x), pool_size=(2, 2), strides=(2, 2))
        x = relay.nn.max_pool2d(self.second(x), pool_size=(2, 2), strides=(2, 2))
        return x.reshape((x.shape[0], 128)) @ self.weight + self.bias


@relay.function
def loss(model: Any, images: Any, labels: Any) -> Any:
    return train.losses.softmax_cross_entropy(model(images), labels)


@relay.function(fixed_sizes=True)
def accuracy(model: Any, images: Any, labels: Any) -> Any:
    return train.losses.accuracy(model(images), labels)


def fit(model: Any, epochs: int, progress: bool = False) -> float:
    """Trains a model; returns the part of the test images that it knows."""
    known, unknown = data()
    batches = train.Batches(known, 32, key=1, drop_last=True)
    rate = train.schedules.Cosine(4e-3, steps=epochs * len(batches), warmup=len(batches))
    trainer = train.Trainer(loss, model, train.adamw(rate))
    trainer.fit(batches, epochs, progress)
    return float(accuracy(trainer.params, *unknown))


if __name__ == "__main__":
    for kind in (Perceptron, Convolutional):
        begin = time.perf_counter()
        found = fit(kind(init.Keys(4)), 20, progress=True)
        seconds = time.perf_counter() - begin
        print(f"{kind.__name__}: {found:.1%} of 360 unseen digits, {seconds:.1f} s")
