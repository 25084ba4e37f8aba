"""Models of PyTorch through torch.compile: Relay beside inductor and eager mode.

    benchmarks/torch_models.py [--only NAME,...] [--batch 1,8] [--dtype float32] [--seconds S] [--limit S]
                               [--no-inductor]

Inference of a module with random weights, its back ends alternately in one process, two threads. A time is
the smallest of all calls; `first` is what the first call takes beyond that of the back end "aot_eager".
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import relay.torch  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "python"))
import torch_models as small


def block(c: int, d: int, stride: int = 1, kernel: int = 3, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(c, d, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(d), nn.ReLU()]


class Residual(nn.Module):
    def __init__(self, c: int, d: int, stride: int = 1, narrow: int = 1):
        super().__init__()
        inner = d // narrow
        first = block(c, inner, 1, 1) if narrow > 1 else []
        last = [
            nn.Conv2d(inner, d, 1 if narrow > 1 else 3, padding=0 if narrow > 1 else 1, bias=False)
        ]
        middle = block(c if narrow == 1 else inner, inner, stride)
        self.body = nn.Sequential(*first, *middle, *last, nn.BatchNorm2d(d))
        same = c == d and stride == 1
        self.skip = nn.Identity() if same else nn.Sequential(*block(c, d, stride, 1)[:2])

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet(counts: tuple[int, ...], narrow: int = 1) -> nn.Module:
    layers: list[nn.Module] = [*block(3, 64, 2, 7), nn.MaxPool2d(3, 2, 1)]
    c = 64
    for stage, count in enumerate(counts):
        d = 64 * 2**stage * narrow
        for i in range(count):
            layers.append(Residual(c, d, 2 if i == 0 and stage else 1, narrow))
            c = d
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 1000))


class Inverted(nn.Module):
    def __init__(self, c: int, d: int, stride: int, wide: int):
        super().__init__()
        m = c * wide
        self.same = c == d and stride == 1
        self.body = nn.Sequential(
            *block(c, m, 1, 1), *block(m, m, stride, 3, m), *block(m, d, 1, 1)[:2]
        )

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


def mobilenet() -> nn.Module:
    layers, c = block(3, 32, 2), 32
    for wide, d, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(count):
            layers.append(Inverted(c, d, stride if i == 0 else 1, wide))
            c = d
    layers += block(c, 1280, 1, 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def vgg() -> nn.Module:
    layers, c = [], 3
    for d in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
        layers += block(c, d)[::2] if d else [nn.MaxPool2d(2)]
        c = d or c
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(512 * 49, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def encoder(width: int, heads: int, depth: int, vocabulary: int = 0) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
    )
    body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(vocabulary, width), body) if vocabulary else body


class Last(nn.Module):
    def __init__(self, kind: Any, width: int, layers: int):
        super().__init__()
        self.rnn, self.out = kind(width, width, layers, batch_first=True), nn.Linear(width, 10)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def pixels(size: int, c: int = 3) -> Callable[[int], tuple]:
    return lambda n: (torch.randn(n, c, size, size),)


def rows(length: int, width: int) -> Callable[[int], tuple]:
    return lambda n: (torch.randn(n, length, width),)


def words(length: int) -> Callable[[int], tuple]:
    return lambda n: (torch.randint(0, 1000, (n, length)),)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], tuple]]] = {
    "resnet18": (lambda: resnet((2, 2, 2, 2)), pixels(224)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), 4), pixels(224)),
    "mobilenet_v2": (mobilenet, pixels(224)),
    "vgg11": (vgg, pixels(224)),
    "vit_small": (lambda: encoder(384, 6, 12), rows(197, 384)),
    "bert_base": (lambda: encoder(768, 12, 12, 1000), words(128)),
    "encoder_long": (lambda: encoder(256, 4, 4, 1000), words(512)),
    "mlp": (
        lambda: nn.Sequential(
            nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        ),
        lambda n: (torch.randn(n, 784),),
    ),
    "lstm": (lambda: Last(nn.LSTM, 128, 2), rows(64, 128)),
    "gru": (lambda: Last(nn.GRU, 128, 1), rows(64, 128)),
} | {
    f"small_{name}": entry
    for name, entry in small.MODELS.items()
    if name not in ("lstm", "gru", "bert")
}

BACKENDS = ("eager", "inductor", "relay")


class TooLong(Exception):
    pass


def out_of_time(*_: Any) -> None:
    raise TooLong


def first_call(model: nn.Module, backend: str, args: tuple, limit: int) -> tuple[Any, float]:
    """The compiled module after its first call, and how long that took."""
    torch._dynamo.reset()
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(limit)
    try:
        begin = time.perf_counter()
        run = model if backend == "eager" else torch.compile(model, backend=backend)
        with torch.no_grad():
            run(*args)
        return run, time.perf_counter() - begin
    finally:
        signal.alarm(0)


def compare(
    name: str, batch: int, dtype: torch.dtype, seconds: float, limit: int, backends: tuple[str, ...]
) -> list[str]:
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().eval().to(dtype)
    args = tuple(a.to(dtype) if a.is_floating_point() else a for a in inputs(batch))
    _, traced = first_call(model, "aot_eager", args, limit)
    runs, first, best = {}, {}, {}
    for backend in backends:
        try:
            runs[backend], taken = first_call(model, backend, args, limit)
            first[backend] = max(taken - traced, 0.0)
            best[backend] = math.inf
        except (TooLong, torch._dynamo.exc.BackendCompilerFailed) as error:
            if not isinstance(error, TooLong) and not isinstance(error.inner_exception, TooLong):
                raise
    end = time.perf_counter() + seconds
    with torch.no_grad():
        while time.perf_counter() < end:
            for backend, run in runs.items():
                begin = time.perf_counter()
                run(*args)
                best[backend] = min(best[backend], time.perf_counter() - begin)
    others = min(best[b] for b in best if b != "relay")
    ratio = best["relay"] / others if "relay" in best else math.nan
    times = [f"{best[b] * 1e3:.3f}" if b in best else "-" for b in BACKENDS]
    firsts = [f"{first[b]:.1f}" if b in first else "-" for b in BACKENDS[1:]]
    return [name, str(batch), *times, f"{ratio:.2f}", *firsts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="models, with commas")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seconds", type=float, default=2.0, help="for all back ends of a setting")
    parser.add_argument("--limit", type=int, default=120, help="seconds of a first call")
    parser.add_argument(
        "--no-inductor", action="store_true", help="leave out PyTorch's own compiler"
    )
    given = parser.parse_args()
    backends = tuple(b for b in BACKENDS if b != "inductor" or not given.no_inductor)
    torch.set_num_threads(2)
    # What PyTorch loads for its first graph belongs to none of the models.
    first_call(nn.Linear(2, 2), "aot_eager", (torch.ones(1, 2),), given.limit)
    chosen = given.only.split(",") if given.only else list(MODELS)
    head = ["model", "batch", "eager ms", "inductor ms", "relay ms", "ratio", "first inductor s"]
    print(" | ".join([*head, "first relay s"]), flush=True)
    ratios = []
    for name in chosen:
        for batch in map(int, given.batch.split(",")):
            dtype = getattr(torch, given.dtype)
            row = compare(name, batch, dtype, given.seconds, given.limit, backends)
            print(" | ".join(row), flush=True)
            ratios.append(float(row[5]))
    known = [r for r in ratios if not math.isnan(r)]
    if known:
        mean = math.exp(sum(math.log(r) for r in known) / len(known))
        print(f"geometric mean {mean:.2f}, {sum(r > 1 for r in known)} of {len(known)} above 1")


if __name__ == "__main__":
    main()
