"""Training steps of Relay, PyTorch (eager, inductor) and JAX, if they are installed.

    benchmarks/training.py [--only NAME] [--seconds S] [--threads N] [--limit S] [--no-inductor] [--no-memory]
    benchmarks/training.py --drawn SEED [--count N] [--seconds S]

Forward, backward and an update by SGD with momentum, as one step; the same network and sizes for all,
two threads, alternating in one process. A time is the smallest of the means of the turns. Peak memory is
that of a separate process for each engine that executes three steps, libraries and compiler included. An
engine that does not complete its first step, which compiles, within the limit is omitted.
`--drawn` measures networks that SEED draws (training_drawn.py) beside PyTorch's eager mode, on one thread.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import training_drawn

import relay
from relay import train

I = train.initializers  # noqa: E741
Step = Callable[[], object]
rng = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


class Case(NamedTuple):
    """How the step is made for each engine; None where it cannot be said.

    Of a network, `torch` gives a module, its loss and a batch; `jax` gives parameters, the loss of
    these on a batch, and a batch.
    """

    relay: Callable[[int], Step]
    torch: Callable[[], tuple[Any, Callable, tuple]] | None = None
    jax: Callable[[], tuple[Any, Callable, tuple]] | None = None
    eager: Callable[[], Step] | None = None
    jax_step: Callable[[], Step] | None = None


def trainer_step(loss: Any, params: Any, batch: tuple, threads: int, **more: Any) -> Step:
    trainer = train.Trainer(
        loss, params, train.sgd(1e-3, momentum=0.9), num_threads=threads, **more
    )
    return lambda: trainer.step(*batch)


# ---- ResNet-18


class Normalised:
    """A convolution and the normalisation of its result over the batch."""

    def __init__(self, keys: Any, inputs: int, outputs: int, size: int, stride: int) -> None:
        self.weight = I.he_normal(next(keys), (outputs, inputs, size, size), "oi")
        self.scale, self.shift = I.ones((outputs,)), I.zeros((outputs,))
        self.stride, self.pad = stride, size // 2

    @relay.function
    def __call__(self, x: Any) -> Any:
        x = relay.nn.conv2d(
            x, self.weight, strides=(self.stride, self.stride), padding=(self.pad, self.pad)
        )
        mean = x.mean(axis=(0, 2, 3))
        centred = x - mean[:, None, None]
        variance = (centred * centred).mean(axis=(0, 2, 3))
        factor = self.scale / np.sqrt(variance + 1e-5)
        return centred * factor[:, None, None] + self.shift[:, None, None]


class Residual:
    def __init__(self, keys: Any, inputs: int, outputs: int, stride: int) -> None:
        self.first = Normalised(keys, inputs, outputs, 3, stride)
        self.second = Normalised(keys, outputs, outputs, 3, 1)
        self.side = Normalised(keys, inputs, outputs, 1, stride) if inputs != outputs else None

    @relay.function
    def __call__(self, x: Any) -> Any:
        out = self.second(relay.nn.relu(self.first(x)))
        return relay.nn.relu(out + (x if self.side is None else self.side(x)))


class ResNet:
    def __init__(self, keys: Any) -> None:
        self.stem = Normalised(keys, 3, 64, 7, 2)
        widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
        widths += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
        self.blocks = [Residual(keys, *width) for width in widths]
        self.weight, self.bias = I.glorot_uniform(next(keys), (512, 1000)), I.zeros((1000,))

    @relay.function
    def __call__(self, x: Any) -> Any:
        x = relay.nn.relu(self.stem(x))
        x = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
        for block in self.blocks:
            x = block(x)
        return x.mean(axis=(2, 3)) @ self.weight + self.bias


@relay.function
def class_loss(model: Any, x: Any, labels: Any) -> Any:
    return train.losses.softmax_cross_entropy(model(x), labels)


def resnet(threads: int) -> Step:
    x, labels = f32(8, 3, 224, 224), np.arange(8, dtype="int32")
    return trainer_step(class_loss, ResNet(I.Keys(0)), (x, labels), threads)


def torch_resnet() -> tuple[Any, Callable, tuple]:
    import torch
    from torch import nn

    def normalised(i: int, o: int, size: int, stride: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o)
        )

    class Block(nn.Module):
        def __init__(self, i: int, o: int, stride: int) -> None:
            super().__init__()
            self.first, self.second = normalised(i, o, 3, stride), normalised(o, o, 3, 1)
            self.side = normalised(i, o, 1, stride) if i != o else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.second(torch.relu(self.first(x))) + self.side(x))

    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    widths += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    model = nn.Sequential(
        normalised(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        *(Block(*w) for w in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000),
    )  # fmt: skip
    batch = torch.randn(8, 3, 224, 224), torch.arange(8)
    return model, nn.functional.cross_entropy, batch


def jax_resnet() -> tuple[Any, Callable, tuple]:
    from jax import lax
    from jax import numpy as jnp

    key = iter(range(1000))

    def normalised(i: int, o: int, size: int) -> Any:
        weight = jax_normal(next(key), (o, i, size, size), math.sqrt(2 / (i * size * size)))
        return weight, jnp.ones(o), jnp.zeros(o)

    def apply(x: Any, layer: Any, stride: int) -> Any:
        weight, scale, shift = layer
        pad = weight.shape[-1] // 2
        x = lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2)
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        factor = scale / jnp.sqrt(variance + 1e-5)
        return (x - mean[:, None, None]) * factor[:, None, None] + shift[:, None, None]

    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    widths += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    params = {
        "stem": normalised(3, 64, 7),
        "blocks": [
            (
                normalised(i, o, 3),
                normalised(o, o, 3),
                normalised(i, o, 1) if i != o else None,
            )
            for i, o, _ in widths
        ],
        "out": (jax_normal(next(key), (512, 1000), 0.05), jnp.zeros(1000)),
    }

    def loss(params: Any, x: Any, labels: Any) -> Any:
        x = jnp.maximum(apply(x, params["stem"], 2), 0)
        window, pads = (1, 1, 3, 3), [(0, 0), (0, 0), (1, 1), (1, 1)]
        x = lax.reduce_window(x, -jnp.inf, lax.max, window, (1, 1, 2, 2), pads)
        for (first, second, side), (_, _, stride) in zip(params["blocks"], widths, strict=True):
            out = apply(jnp.maximum(apply(x, first, stride), 0), second, 1)
            x = jnp.maximum(out + (x if side is None else apply(x, side, stride)), 0)
        return jax_class_loss(x.mean((2, 3)) @ params["out"][0] + params["out"][1], labels)

    return params, loss, (f32(8, 3, 224, 224), np.arange(8, dtype="int32"))


# ---- BERT


class Layer:
    def __init__(self, keys: Any, width: int, heads: int) -> None:
        self.heads = heads
        self.qkv = I.glorot_uniform(next(keys), (width, 3 * width)), I.zeros((3 * width,))
        self.join = I.glorot_uniform(next(keys), (width, width)), I.zeros((width,))
        self.up = I.glorot_uniform(next(keys), (width, 4 * width)), I.zeros((4 * width,))
        self.down = I.glorot_uniform(next(keys), (4 * width, width)), I.zeros((width,))
        self.norms = [(I.ones((width,)), I.zeros((width,))) for _ in range(2)]

    @relay.function
    def __call__(self, x: Any) -> Any:
        count, length, width = x.shape
        size = width // self.heads
        shape = (count, length, 3, self.heads, size)
        q, k, v = np.transpose(linear(x, self.qkv).reshape(shape), (2, 0, 3, 1, 4))
        scores = q @ np.swapaxes(k, -1, -2) * np.float32(1 / math.sqrt(size))
        mixed = np.transpose(relay.nn.softmax(scores, axis=-1) @ v, (0, 2, 1, 3))
        x = normal(x + linear(mixed.reshape((count, length, width)), self.join), self.norms[0])
        hidden = linear(x, self.up)
        hidden = 0.5 * hidden * (1.0 + relay.erf(hidden * np.float32(math.sqrt(0.5))))
        return normal(x + linear(hidden, self.down), self.norms[1])


@relay.function
def linear(x: Any, layer: Any) -> Any:
    return x @ layer[0] + layer[1]


@relay.function
def normal(x: Any, norm: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * norm[0] + norm[1]


class Bert:
    def __init__(self, keys: Any, words: int = 2000, width: int = 256) -> None:
        self.words = I.normal(next(keys), (words, width), 0.02)
        self.places = I.normal(next(keys), (64, width), 0.02)
        self.norm = I.ones((width,)), I.zeros((width,))
        self.layers = [Layer(keys, width, 4) for _ in range(4)]
        self.out = I.glorot_uniform(next(keys), (width, words)), I.zeros((words,))

    @relay.function
    def __call__(self, text: Any) -> Any:
        x = normal(self.words[text] + self.places, self.norm)
        for layer in self.layers:
            x = layer(x)
        return linear(x, self.out)


def bert(threads: int) -> Step:
    text = rng.integers(0, 2000, (32, 64)).astype("int32")
    return trainer_step(class_loss, Bert(I.Keys(0)), (text, text), threads)


def torch_bert() -> tuple[Any, Callable, tuple]:
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(2000, 256), nn.Embedding(64, 256)
            self.norm, self.out = nn.LayerNorm(256), nn.Linear(256, 2000)
            layer = nn.TransformerEncoderLayer(
                256, 4, 1024, dropout=0.0, activation="gelu", batch_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

        def forward(self, text: Any) -> Any:
            places = torch.arange(text.shape[1])
            return self.out(self.layers(self.norm(self.words(text) + self.places(places))))

    text = torch.randint(0, 2000, (32, 64))
    return (
        Model(),
        lambda y, t: nn.functional.cross_entropy(y.flatten(0, 1), t.flatten()),
        (text, text),
    )


def jax_bert() -> tuple[Any, Callable, tuple]:
    import jax
    from jax import numpy as jnp

    key = iter(range(1000))

    def dense(i: int, o: int) -> Any:
        return jax_normal(next(key), (i, o), math.sqrt(2 / (i + o))), jnp.zeros(o)

    def norm() -> Any:
        return jnp.ones(256), jnp.zeros(256)

    def normal(x: Any, norm: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / jnp.sqrt(variance + 1e-5) * norm[0] + norm[1]

    def linear(x: Any, layer: Any) -> Any:
        return x @ layer[0] + layer[1]

    def block(x: Any, layer: Any) -> Any:
        q, k, v = linear(x, layer["qkv"]).reshape(32, 64, 3, 4, 64).transpose(2, 0, 3, 1, 4)
        mixed = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 8, axis=-1) @ v
        mixed = mixed.transpose(0, 2, 1, 3).reshape(32, 64, 256)
        x = normal(x + linear(mixed, layer["join"]), layer["norms"][0])
        hidden = jax.nn.gelu(linear(x, layer["up"]), approximate=False)
        return normal(x + linear(hidden, layer["down"]), layer["norms"][1])

    params = {
        "words": jax_normal(next(key), (2000, 256), 0.02),
        "places": jax_normal(next(key), (64, 256), 0.02),
        "norm": norm(),
        "layers": [
            {
                "qkv": dense(256, 768),
                "join": dense(256, 256),
                "up": dense(256, 1024),
                "down": dense(1024, 256),
                "norms": [norm(), norm()],
            }
            for _ in range(4)
        ],
        "out": dense(256, 2000),
    }

    def loss(params: Any, text: Any, wanted: Any) -> Any:
        x = normal(params["words"][text] + params["places"], params["norm"])
        for layer in params["layers"]:
            x = block(x, layer)
        return jax_class_loss(linear(x, params["out"]), wanted)

    text = rng.integers(0, 2000, (32, 64)).astype("int32")
    return params, loss, (text, text)


# ---- LSTM


@relay.function
def lstm(params: Any, x: Any) -> Any:
    """What is seen at all times is one product; the loop has the recurrent one."""
    length, count, _ = x.shape
    width = params["states"].shape[0]
    gates = x @ params["inputs"] + params["bias"]
    h, c = np.zeros((count, width), "float32"), np.zeros((count, width), "float32")
    states = np.zeros((length, count, width), "float32")
    for t in range(length):
        i, f, g, o = np.split(gates[t] + h @ params["states"], 4, axis=1)
        c = relay.sigmoid(f) * c + relay.sigmoid(i) * np.tanh(g)
        h = relay.sigmoid(o) * np.tanh(c)
        states[t] = h
    return states


@relay.function
def lstm_loss(params: Any, x: Any, y: Any) -> Any:
    return train.losses.squared_error(lstm(params, x), y)


def lstm_step(threads: int) -> Step:
    keys = I.Keys(0)
    params = {
        "inputs": I.glorot_uniform(next(keys), (300, 2048)),
        "states": I.glorot_uniform(next(keys), (512, 2048)),
        "bias": I.zeros((2048,)),
    }
    return trainer_step(lstm_loss, params, (f32(50, 16, 300), f32(50, 16, 512)), threads)


def torch_lstm() -> tuple[Any, Callable, tuple]:
    import torch
    from torch import nn

    batch = torch.randn(50, 16, 300), torch.randn(50, 16, 512)
    return nn.LSTM(300, 512), lambda y, t: nn.functional.mse_loss(y[0], t), batch


def jax_lstm() -> tuple[Any, Callable, tuple]:
    import jax
    from jax import numpy as jnp

    params = {
        "inputs": jax_normal(0, (300, 2048), 0.03),
        "states": jax_normal(1, (512, 2048), 0.03),
        "bias": jnp.zeros(2048),
    }

    def loss(params: Any, x: Any, y: Any) -> Any:
        def step(state: Any, seen: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(seen + h @ params["states"], 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((16, 512))
        _, states = jax.lax.scan(step, (zeros, zeros), x @ params["inputs"] + params["bias"])
        return ((states - y) ** 2).mean()

    return params, loss, (f32(50, 16, 300), f32(50, 16, 512))


# ---- Digits


class Digits:
    def __init__(self, keys: Any) -> None:
        self.first = I.he_normal(next(keys), (16, 1, 3, 3), "oi"), I.zeros((16,))
        self.second = I.he_normal(next(keys), (32, 16, 3, 3), "oi"), I.zeros((32,))
        self.out = I.glorot_uniform(next(keys), (128, 10)), I.zeros((10,))

    @relay.function
    def __call__(self, x: Any) -> Any:
        for w, b in (self.first, self.second):
            x = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), b))
            x = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
        return linear(x.reshape((x.shape[0], 128)), self.out)


def digits(threads: int) -> Step:
    batch = f32(32, 1, 8, 8), rng.integers(0, 10, 32).astype("int32")
    return trainer_step(class_loss, Digits(I.Keys(0)), batch, threads)


def torch_digits() -> tuple[Any, Callable, tuple]:
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10),
    )  # fmt: skip
    batch = torch.randn(32, 1, 8, 8), torch.randint(0, 10, (32,))
    return model, nn.functional.cross_entropy, batch


def jax_digits() -> tuple[Any, Callable, tuple]:
    from jax import lax
    from jax import numpy as jnp

    params = {
        "first": (jax_normal(0, (16, 1, 3, 3), 0.5), jnp.zeros((16, 1, 1))),
        "second": (jax_normal(1, (32, 16, 3, 3), 0.1), jnp.zeros((32, 1, 1))),
        "out": (jax_normal(2, (128, 10), 0.1), jnp.zeros(10)),
    }

    def loss(params: Any, x: Any, labels: Any) -> Any:
        for weight, bias in (params["first"], params["second"]):
            x = jnp.maximum(lax.conv_general_dilated(x, weight, (1, 1), "SAME") + bias, 0)
            window = (1, 1, 2, 2)
            x = lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")
        x = x.reshape(x.shape[0], 128) @ params["out"][0] + params["out"][1]
        return jax_class_loss(x, labels)

    return params, loss, (f32(32, 1, 8, 8), rng.integers(0, 10, 32).astype("int32"))


# ---- A Tree-LSTM

WIDTH, TREES, LEAVES = 64, 256, 8
Number = relay.Tensor[(), "int32"]


@relay.data
class Phrase:
    class Word:
        number: Number

    class Join:
        left: Phrase
        right: Phrase


def phrases() -> list:
    """Trees of eight words each, of many forms, as nested tuples."""

    def draw(count: int) -> Any:
        if count == 1:
            return int(rng.integers(0, 100))
        at = int(rng.integers(1, count))
        return draw(at), draw(count - at)

    return [draw(LEAVES) for _ in range(TREES)]


def tree_params() -> dict[str, np.ndarray]:
    return {"words": f32(100, 2 * WIDTH), "gates": f32(2 * WIDTH, 5 * WIDTH) * np.float32(0.1)}


@relay.function
def encode(params: Any, phrase: Phrase) -> Any:
    match phrase:
        case Phrase.Word(number):
            both = params["words"][number]
            return both[:WIDTH], both[WIDTH:]
        case Phrase.Join(left, right):
            h1, c1 = encode(params, left)
            h2, c2 = encode(params, right)
            i, f1, f2, o, g = np.split(np.concatenate([h1, h2]) @ params["gates"], 5)
            c = relay.sigmoid(i) * np.tanh(g) + relay.sigmoid(f1) * c1 + relay.sigmoid(f2) * c2
            return relay.sigmoid(o) * np.tanh(c), c


@relay.function
def tree_loss(params: Any, trees: list[Phrase]) -> Any:
    total = np.float32(0)
    for phrase in trees:
        total = total + np.square(encode(params, phrase)[0]).mean()
    return total / TREES


def tree_step(threads: int) -> Step:
    def made(phrase: Any) -> Any:
        if isinstance(phrase, int):
            return Phrase.Word(np.int32(phrase))
        return Phrase.Join(made(phrase[0]), made(phrase[1]))

    return trainer_step(tree_loss, tree_params(), ([made(p) for p in phrases()],), threads)


def batched_tree_step(threads: int) -> Step:
    """The same, with the nodes of one depth computed together."""
    step = tree_step(threads)

    def batched() -> object:
        with relay.transform.PassContext(required_pass=["BatchTrees"]):
            return step()

    return batched


def eager_trees() -> Step:
    import torch

    params = {k: torch.tensor(v, requires_grad=True) for k, v in tree_params().items()}
    made, update = phrases(), torch.optim.SGD(params.values(), 1e-3, momentum=0.9)

    def encode(phrase: Any) -> Any:
        if isinstance(phrase, int):
            return params["words"][phrase].split(WIDTH)
        (h1, c1), (h2, c2) = encode(phrase[0]), encode(phrase[1])
        i, f1, f2, o, g = (torch.cat([h1, h2]) @ params["gates"]).split(WIDTH)
        c = i.sigmoid() * g.tanh() + f1.sigmoid() * c1 + f2.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c

    def step() -> None:
        update.zero_grad()
        (sum(encode(p)[0].square().mean() for p in made) / TREES).backward()
        update.step()

    return step


# ---- A recursive function of a number


@relay.function
def climb(x: float, n: int) -> float:
    return x if n == 0 else climb(x * 1.01 + math.sin(x) * 0.01, n - 1)


def recursion(threads: int) -> Step:
    slope = relay.grad(climb)
    return lambda: slope(0.5, 100)


def eager_recursion() -> Step:
    import torch

    def climb(x: Any, n: int) -> Any:
        return x if n == 0 else climb(x * 1.01 + x.sin() * 0.01, n - 1)

    def step() -> None:
        x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        climb(x, 100).backward()

    return step


def jax_recursion() -> Step:
    import jax

    def climb(x: Any, n: int) -> Any:
        return x if n == 0 else climb(x * 1.01 + jax.numpy.sin(x) * 0.01, n - 1)

    slope = jax.grad(lambda x: climb(x, 100))
    return lambda: slope(0.5).block_until_ready()


ENGINES = ("Relay", "eager", "inductor", "JAX")

CASES = {
    "ResNet-18, 8 x 3 x 224 x 224": Case(resnet, torch_resnet, jax_resnet),
    "BERT, 4 layers of 256, 32 x 64": Case(bert, torch_bert, jax_bert),
    "LSTM, 300/512 x 50, batch 16": Case(lstm_step, torch_lstm, jax_lstm),
    "digits CNN, batch 32": Case(digits, torch_digits, jax_digits),
    "Tree-LSTM, 256 trees": Case(tree_step, eager=eager_trees),
    "Tree-LSTM, 256 trees, `BatchTrees`": Case(batched_tree_step, eager=eager_trees),
    "gradient of a recursion, 100 calls": Case(
        recursion, eager=eager_recursion, jax_step=jax_recursion
    ),
}


def torch_step(make: Callable, compiled: bool) -> Step:
    import torch

    torch.manual_seed(0)
    model, loss, (x, *wanted) = make()
    update = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)

    def forward(x: Any, *wanted: Any) -> Any:
        return loss(model(x), *wanted)

    run = torch.compile(forward) if compiled else forward

    def step() -> None:
        update.zero_grad()
        run(x, *wanted).backward()
        update.step()

    return step


def jax_normal(seed: int, shape: tuple[int, ...], scale: float) -> Any:
    import jax

    return jax.random.normal(jax.random.PRNGKey(seed), shape) * np.float32(scale)


def jax_class_loss(logits: Any, labels: Any) -> Any:
    import jax
    from jax import numpy as jnp

    found = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -found.mean()


def jax_training(make: Callable) -> Step:
    """One compiled function that gives its parameters and moments up, as Relay's step does."""
    import jax

    params, loss, batch = make()
    state = [params, jax.tree.map(jax.numpy.zeros_like, params)]
    batch = jax.tree.map(jax.numpy.asarray, batch)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(params: Any, moments: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
        return jax.tree.map(lambda p, m: p - 1e-3 * m, params, moments), moments, value

    def step() -> None:
        *state[:], value = update(*state, *batch)
        jax.block_until_ready((state, value))

    return step


def engines(case: Case, threads: int, inductor: bool) -> dict[str, Callable[[], Step]]:
    """How the step of a case is made, by engine."""
    ways: dict[str, Callable[[], Step]] = {"Relay": lambda: case.relay(threads)}
    if case.torch is not None:
        make = case.torch
        ways["eager"] = lambda: torch_step(make, False)
        if inductor:
            ways["inductor"] = lambda: torch_step(make, True)
    if case.eager is not None:
        ways["eager"] = case.eager
    if case.jax is not None:
        of_network = case.jax
        ways["JAX"] = lambda: jax_training(of_network)
    if case.jax_step is not None:
        ways["JAX"] = case.jax_step
    return ways


def started(ways: dict[str, Callable[[], Step]], limit: int) -> dict[str, Step]:
    """The steps, each run once; without engines that are not installed or take too long for it."""

    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    out = {}
    for name, way in ways.items():
        signal.alarm(limit)
        try:
            step = way()
            step()
            out[name] = step
        except ImportError:
            pass
        except TimeoutError:
            print(f"{name}: no step within {limit} s", file=sys.stderr, flush=True)
        finally:
            signal.alarm(0)
    return out


def print_memory(way: Callable[[], Step]) -> None:
    """The most memory that this process has had after three steps, in MiB."""
    step = way()
    for _ in range(3):
        step()
    with open("/proc/self/status") as status:
        [peak] = [line.split()[1] for line in status if line.startswith("VmHWM")]
    print(int(peak) // 1024)


def memory_of(case: str, engine: str, given: argparse.Namespace) -> str:
    command = [sys.executable, __file__, "--case", case, "--engine", engine]
    command += ["--threads", str(given.threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * given.limit)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.split()[-1] if done.returncode == 0 else ""


def measure(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """The smallest mean time of a turn, in seconds; turns of each in alternation."""
    best = {name: math.inf for name in steps}
    end = time.perf_counter() + seconds * len(steps)
    turns = 0
    while turns < 3 or time.perf_counter() < end:
        for name, step in steps.items():
            step()
            count, begin = 0, time.perf_counter()
            while count < 1 or time.perf_counter() - begin < seconds / 6:
                step()
                count += 1
            best[name] = min(best[name], (time.perf_counter() - begin) / count)
        turns += 1
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--seconds", type=float, default=6, help="for each engine and case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, default=300, help="seconds for an engine's first step")
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="networks that SEED draws")
    parser.add_argument("--count", type=int, default=20, help="networks drawn (default: 20)")
    parser.add_argument("--case", help=argparse.SUPPRESS)  # of a process that measures memory
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drawn is not None:
        training_drawn.measure(given.drawn, given.count, given.seconds)
        return
    os.environ.setdefault("OMP_NUM_THREADS", str(given.threads))
    if given.engine == "Relay":
        print_memory(lambda: CASES[given.case].relay(given.threads))
        return
    try:
        import torch

        torch.set_num_threads(given.threads)
    except ImportError:
        print("PyTorch is not installed: Relay alone", file=sys.stderr)
    if given.engine:
        print_memory(engines(CASES[given.case], given.threads, True)[given.engine])
        return
    columns = [*ENGINES, "of eager", "of the others' best", *(f"MiB: {e}" for e in ENGINES)]
    print(f"| a step, float32, ms | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for name, case in CASES.items():
        if given.only not in name:
            continue
        ways = engines(case, given.threads, not given.no_inductor)
        found = measure(started(ways, given.limit), given.seconds)
        mib = {} if given.no_memory else {e: memory_of(name, e, given) for e in found}
        others = [t for e, t in found.items() if e in ("inductor", "JAX")]
        row = [name, *(f"{found[e] * 1e3:.3g}" if e in found else "" for e in ENGINES)]
        row.append(f"{found['Relay'] / found['eager']:.2g}" if "eager" in found else "")
        row.append(f"{found['Relay'] / min(others):.2g}" if others else "")
        row += [mib.get(e, "") for e in ENGINES]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
