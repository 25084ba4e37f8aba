"""Models of PyTorch through torch.compile: Relay beside inductor and eager mode.

    benchmarks/torch_models.py [--part inference,training,overhead] [--only NAME,...] [--batch 1,8]
                               [--dtype float32,bfloat16] [--sizes static,dynamic] [--threads N]
                               [--clock wall] [--seconds S] [--limit S] [--no-inductor]

Modules with random weights, their back ends alternately in one process: inference; steps of training, which
are the forward and backward pass and an update by SGD; and calls of a program of one addition. Inference is
measured for each dtype; inference and training with the sizes of the arguments, with symbolic sizes, or both.
A time is the smallest of all calls. With several threads each back end is called for 20 ms in turn, and at
least twice: PyTorch's threads wait actively for some ms after their work, on a core that the next back end
uses. `first` is what the first call takes beyond that of the back end "aot_eager". `--clock cpu` counts the
processor time of the process, for machines that others use, too, and in first calls that of the compilers
which it starts.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
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


class ConvNext(nn.Module):
    """A block of ConvNeXt: a depthwise convolution, then a perceptron over the channels."""

    def __init__(self, c: int):
        super().__init__()
        self.depth = nn.Conv2d(c, c, 7, padding=3, groups=c)
        self.norm = nn.LayerNorm(c)
        self.wide, self.narrow = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)


def convnext(widths: tuple[int, ...] = (48, 96, 192), count: int = 2) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4)]
    for i, c in enumerate(widths):
        if i:
            layers.append(nn.Conv2d(widths[i - 1], c, 2, 2))
        layers += [ConvNext(c) for _ in range(count)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


class UNet(nn.Module):
    def __init__(self, c: int = 16):
        super().__init__()
        self.first = nn.Sequential(*block(3, c), *block(c, c))
        self.down = nn.Sequential(nn.MaxPool2d(2), *block(c, 2 * c), *block(2 * c, 2 * c))
        self.low = nn.Sequential(nn.MaxPool2d(2), *block(2 * c, 4 * c), *block(4 * c, 4 * c))
        self.up1, self.up2 = (
            nn.ConvTranspose2d(4 * c, 2 * c, 2, 2),
            nn.ConvTranspose2d(2 * c, c, 2, 2),
        )
        self.mid = nn.Sequential(*block(4 * c, 2 * c))
        self.last = nn.Sequential(*block(2 * c, c), nn.Conv2d(c, 3, 1))

    def forward(self, x):
        a = self.first(x)
        b = self.down(a)
        b = self.mid(torch.cat([self.up1(self.low(b)), b], 1))
        return self.last(torch.cat([self.up2(b), a], 1))


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

# What is trained, and the batch of a step.
TRAINING: dict[str, tuple[Callable[[], nn.Module], Callable[[int], tuple], int]] = {
    "resnet18": (lambda: resnet((2, 2, 2, 2)), pixels(112), 4),
    "bert": (lambda: encoder(256, 4, 4, 1000), words(64), 8),
    "convnext": (convnext, pixels(64), 8),
    "lstm": (lambda: Last(nn.LSTM, 128, 1), rows(32, 128), 16),
    "unet": (UNet, pixels(64), 4),
}

BACKENDS = ("eager", "inductor", "relay")
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def children_time() -> float:
    """The processor time of the processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class TooLong(Exception):
    pass


def out_of_time(*_: Any) -> None:
    raise TooLong


# Seconds that a back end is called for, at least, before another one, with several threads.
TURN = 0.02


class Comparison:
    """Calls of the same work by each back end, alternately."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.clock = CLOCKS[given.clock]
        self.backends = tuple(b for b in BACKENDS if b != "inductor" or not given.no_inductor)
        self.dynamic = False  # whether all sizes are symbolic
        self.ratios: list[float] = []

    def first(
        self, backend: str, make: Callable[[Callable], Callable[[], Any]]
    ) -> tuple[Callable[[], Any], float]:
        """The function that does the work, after its first call, and how long that took."""
        signal.signal(signal.SIGALRM, out_of_time)
        signal.alarm(self.given.limit)
        dynamic = True if self.dynamic else None
        options = {"num_threads": self.given.threads} if backend == "relay" else None
        try:
            begin, children = self.clock(), children_time()
            run = make(
                (lambda f: f)
                if backend == "eager"
                else lambda f: torch.compile(f, backend=backend, dynamic=dynamic, options=options)
            )
            run()
            taken = self.clock() - begin
            return run, taken + (children_time() - children if self.given.clock == "cpu" else 0)
        finally:
            signal.alarm(0)

    def row(self, name: str, batch: int, make: Callable[[Callable], Callable[[], Any]]) -> None:
        torch._dynamo.reset()
        traced, runs, first, best = 0.0, {}, {}, {}
        for backend in ("aot_eager", *self.backends):
            try:
                run, taken = self.first(backend, make)
            except Exception as error:
                # PyTorch's own back ends fail for the gradients of an LSTM's weights.
                late = TooLong in (type(error), type(getattr(error, "inner_exception", None)))
                if backend == "relay" and not late:
                    raise
                continue
            if backend == "aot_eager":
                traced = taken
                continue
            runs[backend], first[backend] = run, max(taken - traced, 0.0)
            best[backend] = math.inf
        end = time.perf_counter() + self.given.seconds
        while time.perf_counter() < end:
            for backend, run in runs.items():
                several = self.given.threads > 1
                turn, calls = time.perf_counter() + (TURN if several else 0), 0
                while calls < 1 + several or time.perf_counter() < turn:
                    begin = self.clock()
                    run()
                    best[backend] = min(best[backend], self.clock() - begin)
                    calls += 1
        others = min(best[b] for b in best if b != "relay")
        ratio = best["relay"] / others if "relay" in best else math.nan
        times = [f"{best[b] * 1e3:.3f}" if b in best else "-" for b in BACKENDS]
        firsts = [f"{first[b]:.1f}" if b in first else "-" for b in BACKENDS[1:]]
        print(" | ".join([name, str(batch), *times, f"{ratio:.2f}", *firsts]), flush=True)
        self.ratios.append(ratio)

    def end(self, what: str) -> None:
        known = [r for r in self.ratios if not math.isnan(r)]
        if known:
            mean = math.exp(sum(math.log(r) for r in known) / len(known))
            above = sum(r > 1 for r in known)
            print(f"{what}: geometric mean {mean:.2f}, {above} of {len(known)} above 1", flush=True)
        self.ratios = []


def infer(name: str, batch: int, dtype: torch.dtype) -> Callable[[Callable], Callable[[], Any]]:
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().eval().to(dtype)
    args = tuple(a.to(dtype) if a.is_floating_point() else a for a in inputs(batch))

    def prepared(compiled: Callable) -> Callable[[], Any]:
        run = compiled(model)

        def call() -> Any:
            with torch.no_grad():
                return run(*args)

        return call

    return prepared


def train(name: str) -> Callable[[Callable], Callable[[], Any]]:
    make, inputs, batch = TRAINING[name]
    args = inputs(batch)

    def prepared(compiled: Callable) -> Callable[[], Any]:
        torch.manual_seed(0)
        model = make().train()
        loss = compiled(lambda *given: model(*given).square().mean())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

        def step() -> Any:
            optimizer.zero_grad()
            loss(*args).backward()
            optimizer.step()

        return step

    return prepared


def overhead(compiled: Callable) -> Callable[[], Any]:
    """A hundred calls of a program that does next to nothing."""
    run, x = compiled(lambda x: x + 1), torch.ones(8)

    def calls() -> Any:
        with torch.no_grad():
            for _ in range(100):
                run(x)

    return calls


def sizes_of(text: str) -> list[str]:
    sizes = text.split(",")
    for name in sizes:
        if name not in ("static", "dynamic"):
            raise argparse.ArgumentTypeError(f"{name!r} is neither static nor dynamic")
    return sizes


def models_of(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in MODELS and name not in TRAINING:
            known = ", ".join(sorted({*MODELS, *TRAINING}))
            raise argparse.ArgumentTypeError(f"{name!r} is no model; there are {known}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="inference,training,overhead", help="with commas")
    parser.add_argument("--only", type=models_of, help="models, with commas")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--dtype", default="float32", help="of inference, with commas")
    parser.add_argument(
        "--sizes", type=sizes_of, default="static", help="static, dynamic or static,dynamic"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", default="wall", choices=CLOCKS)
    parser.add_argument("--seconds", type=float, default=2.0, help="for all back ends of a setting")
    parser.add_argument("--limit", type=int, default=120, help="seconds of a first call")
    parser.add_argument(
        "--no-inductor", action="store_true", help="leave out PyTorch's own compiler"
    )
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch._dynamo.config.allow_rnn = True  # recurrent layers are parts of graphs
    compare = Comparison(given)
    # What PyTorch loads for its first graph belongs to none of the models.
    compare.first("aot_eager", overhead)
    only = given.only
    parts = given.part.split(",")
    head = ["model", "batch", "eager ms", "inductor ms", "relay ms", "ratio", "first inductor s"]
    print(" | ".join([*head, "first relay s"]), flush=True)
    if "inference" in parts:
        for dtype, sizes in itertools.product(given.dtype.split(","), given.sizes):
            compare.dynamic = sizes == "dynamic"
            for name in only or MODELS:
                for batch in map(int, given.batch.split(",")) if name in MODELS else ():
                    run = infer(name, batch, getattr(torch, dtype))
                    compare.row(f"{name} {dtype} {sizes}", batch, run)
            compare.end(f"{dtype} {sizes}")
        compare.dynamic = False
    if "training" in parts:
        for sizes in given.sizes:
            compare.dynamic = sizes == "dynamic"
            for name in only or TRAINING:
                if name in TRAINING:
                    compare.row(f"train {name} {sizes}", TRAINING[name][2], train(name))
            compare.end(f"training {sizes}")
        compare.dynamic = False
    if "overhead" in parts:
        compare.row("100 calls", 1, overhead)


if __name__ == "__main__":
    main()
