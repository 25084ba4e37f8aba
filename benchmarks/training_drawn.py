"""Training networks that are drawn, not chosen: what `training.py --drawn SEED` measures.

A network is a few layers over images - convolutions with groups, strides and awkward channels, transposed
ones, pools, normalisations, activations - then a mean over the pixels and a dense layer. Relay and
PyTorch's eager mode start from the same weights, their first losses are compared, and a step of each
(forward, backward, SGD with momentum) is timed by the processor's time of the process, alternately.
`draw(seed, index)` gives the same network for the same numbers.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import relay
from relay import train

Layer = tuple[str, tuple[int, ...]]
TOLERANCE = 1e-3  # of the first losses, relative


def draw(seed: int, index: int) -> tuple[str, tuple[int, ...], list[Layer]]:
    """Returns a text, the shape of the images, and the layers with their numbers."""
    dice = random.Random(f"training {seed}/{index}")
    channels, size = dice.choice((1, 3, 8, 17, 32)), dice.choice((9, 16, 28, 33))
    shape = (dice.choice((1, 4, 16)), channels, size, size)
    layers: list[Layer] = []
    for _ in range(dice.randint(2, 6)):
        kind = dice.choice(("conv", "conv", "conv", "spread", "pool", "norm", "act", "act"))
        if kind == "conv":
            outputs, kernel = dice.choice((1, 8, 19, 32, 64)), dice.choice((1, 3, 3, 5))
            groups = dice.choice((1, 1, 1, 2, channels))
            if channels % groups:
                groups = 1
            outputs = -(-outputs // groups) * groups
            stride = dice.choice((1, 1, 2, 3)) if size > 6 else 1
            layers.append((kind, (channels, outputs, kernel, stride, groups)))
            channels, size = outputs, (size - 1) // stride + 1
        elif kind == "spread" and size <= 16:
            outputs, stride = dice.choice((1, 8, 19)), dice.choice((2, 3))
            layers.append((kind, (channels, outputs, stride)))
            channels, size = outputs, size * stride
        elif kind == "pool" and size >= 4:
            layers.append((dice.choice(("max", "mean")), (2,)))
            size //= 2
        elif kind == "norm":
            layers.append((kind, (channels,)))
        elif kind == "act":
            layers.append((dice.choice(("relu", "tanh", "sigmoid", "gelu")), ()))
    layers.append(("dense", (channels, dice.choice((1, 10, 100)))))
    words = " ".join(k + "".join(f" {n}" for n in numbers) for k, numbers in layers)
    return f"{'x'.join(map(str, shape))}: {words}", shape, layers


def weights_of(layers: list[Layer], rng: np.random.Generator) -> list[tuple[np.ndarray, ...]]:
    def normal(*shape: int) -> np.ndarray:
        scale = math.sqrt(2 / max(1, math.prod(shape[1:])))
        return (rng.normal(size=shape) * scale).astype("float32")

    out: list[tuple[np.ndarray, ...]] = []
    for kind, numbers in layers:
        if kind == "conv":
            inputs, outputs, kernel, _, groups = numbers
            out.append((normal(outputs, inputs // groups, kernel, kernel),))
        elif kind == "spread":
            inputs, outputs, stride = numbers
            out.append((normal(inputs, outputs, stride, stride),))
        elif kind == "norm":
            ones = np.ones((numbers[0], 1, 1), "float32")
            out.append((ones, ones * 0))
        elif kind == "dense":
            out.append((normal(*numbers),))
        else:
            out.append(())
    return out


class Conv:
    def __init__(self, weight: np.ndarray, stride: int, groups: int) -> None:
        self.weight, self.stride, self.groups = weight, stride, groups
        self.pad = weight.shape[-1] // 2

    @relay.function
    def __call__(self, x: Any) -> Any:
        return relay.nn.conv2d(
            x,
            self.weight,
            padding=(self.pad, self.pad),
            strides=(self.stride, self.stride),
            groups=self.groups,
        )


class Spread:
    def __init__(self, weight: np.ndarray, stride: int) -> None:
        self.weight, self.stride = weight, stride

    @relay.function
    def __call__(self, x: Any) -> Any:
        return relay.nn.conv2d_transpose(x, self.weight, strides=(self.stride, self.stride))


class Norm:
    def __init__(self, scale: np.ndarray, shift: np.ndarray) -> None:
        self.scale, self.shift = scale, shift

    @relay.function
    def __call__(self, x: Any) -> Any:
        centred = x - x.mean(axis=(0, 2, 3), keepdims=True)
        variance = (centred * centred).mean(axis=(0, 2, 3), keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * self.scale + self.shift


class Dense:
    def __init__(self, weight: np.ndarray) -> None:
        self.weight = weight

    @relay.function
    def __call__(self, x: Any) -> Any:
        return x.mean(axis=(2, 3)) @ self.weight


class MaxPool:
    @relay.function
    def __call__(self, x: Any) -> Any:
        return relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))


class MeanPool:
    @relay.function
    def __call__(self, x: Any) -> Any:
        return relay.nn.avg_pool2d(x, pool_size=(2, 2), strides=(2, 2))


class Relu:
    @relay.function
    def __call__(self, x: Any) -> Any:
        return relay.nn.relu(x)


class Tanh:
    @relay.function
    def __call__(self, x: Any) -> Any:
        return np.tanh(x)


class Sigmoid:
    @relay.function
    def __call__(self, x: Any) -> Any:
        return relay.sigmoid(x)


class Gelu:
    @relay.function
    def __call__(self, x: Any) -> Any:
        return 0.5 * x * (1.0 + relay.erf(x * np.float32(math.sqrt(0.5))))


PLAIN = {"max": MaxPool, "mean": MeanPool, "relu": Relu, "tanh": Tanh, "sigmoid": Sigmoid,
         "gelu": Gelu}  # fmt: skip


class Drawn:
    """The network in Relay."""

    def __init__(self, layers: list[Layer], weights: list[tuple[np.ndarray, ...]]) -> None:
        made = {
            "conv": lambda numbers, w: Conv(*w, *numbers[3:]),
            "spread": lambda numbers, w: Spread(*w, numbers[2]),
            "norm": lambda numbers, w: Norm(*w),
            "dense": lambda numbers, w: Dense(*w),
        }
        self.layers = [
            made[kind](numbers, w) if kind in made else PLAIN[kind]()
            for (kind, numbers), w in zip(layers, weights, strict=True)
        ]

    @relay.function
    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


@relay.function
def loss_of(model: Any, x: Any) -> Any:
    return np.square(model(x)).mean()


def relay_step(
    layers: list[Layer], weights: list[tuple[np.ndarray, ...]], x: np.ndarray
) -> Callable[[], float]:
    trainer = train.Trainer(
        loss_of, Drawn(layers, weights), train.sgd(1e-3, momentum=0.9), num_threads=1
    )
    return lambda: float(trainer.step(x))


def torch_step(
    layers: list[Layer], weights: list[tuple[np.ndarray, ...]], data: np.ndarray
) -> Callable[[], float]:
    import torch
    from torch.nn import functional

    params = [[torch.tensor(w, requires_grad=True) for w in layer] for layer in weights]
    update = torch.optim.SGD([w for layer in params for w in layer], 1e-3, momentum=0.9)
    start = torch.tensor(data)

    def forward() -> Any:
        x = start
        for (kind, numbers), w in zip(layers, params, strict=True):
            if kind == "conv":
                _, _, kernel, stride, groups = numbers
                x = functional.conv2d(x, w[0], None, stride, kernel // 2, 1, groups)
            elif kind == "spread":
                x = functional.conv_transpose2d(x, w[0], stride=numbers[2])
            elif kind == "max":
                x = functional.max_pool2d(x, 2)
            elif kind == "mean":
                x = functional.avg_pool2d(x, 2)
            elif kind == "norm":
                flat = [v.reshape(-1) for v in w]
                x = functional.batch_norm(x, None, None, *flat, training=True)
            elif kind == "dense":
                x = x.mean((2, 3)) @ w[0]
            else:
                x = getattr(functional, kind)(x) if kind != "tanh" else torch.tanh(x)
        return x.square().mean()

    def step() -> float:
        update.zero_grad()
        loss = forward()
        loss.backward()
        update.step()
        return loss.item()

    return step


def turn(step: Callable[[], float], seconds: float) -> float:
    """The processor's time of a step, in seconds: the mean of a turn."""
    count, begin, clock = 0, time.perf_counter(), time.process_time()
    while count < 1 or time.perf_counter() - begin < seconds:
        step()
        count += 1
    return (time.process_time() - clock) / count


def measure(seed: int, count: int, seconds: float) -> None:
    """Prints a line for each network, the slowest and the geometric mean of the ratios."""
    import torch

    torch.set_num_threads(1)
    ratios: dict[str, float] = {}
    print("| network | Relay, ms | eager, ms | ratio | first step, s |\n|---|---|---|---|---|")
    for index in range(count):
        text, shape, layers = draw(seed, index)
        rng = np.random.default_rng([seed, index])
        weights, x = weights_of(layers, rng), rng.normal(size=shape).astype("float32")
        begin = time.process_time()
        ours = relay_step(layers, weights, x)
        losses = [ours()]
        first = time.process_time() - begin
        theirs = torch_step(layers, weights, x)
        losses += [theirs(), ours(), theirs()]
        best = [math.inf, math.inf]
        for _ in range(3):
            best = [min(b, turn(s, seconds / 6)) for b, s in zip(best, (ours, theirs), strict=True)]
        ratio = best[0] / best[1]
        wrong = any(
            not abs(a - b) <= TOLERANCE * max(abs(b), 1e-6) for a, b in (losses[:2], losses[2:])
        )
        name = f"#{index} {text}"
        ratios[name] = ratio
        print(f"| {name} | {best[0] * 1e3:.3g} | {best[1] * 1e3:.3g} | {ratio:.2f} | {first:.1f} |"
              + (f" WRONG: losses {losses}" if wrong else ""), flush=True)  # fmt: skip
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = max(ratios, key=ratios.__getitem__)
    print(f"\nseed {seed}: {len(ratios)} networks, geometric mean {mean:.2f} of eager, "
          f"{sum(r > 1 for r in ratios.values())} above 1, worst {ratios[worst]:.2f}: {worst}")  # fmt: skip
