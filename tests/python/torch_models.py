"""Models as people write them in PyTorch, small and with random weights, with arguments for a batch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class ResNet(nn.Module):
    class Block(nn.Module):
        def __init__(self, c, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(c, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.down = None
            if stride != 1 or c != out:
                self.down = nn.Sequential(
                    nn.Conv2d(c, out, 1, stride, bias=False), nn.BatchNorm2d(out)
                )

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
            return F.relu(y + (x if self.down is None else self.down(x)))

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 7, 2, 3, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        self.blocks = nn.Sequential(self.Block(16, 16, 1), self.Block(16, 32, 2))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()

        def step(c, out, groups=1, kernel=1, act=nn.Hardswish):
            pad = kernel // 2
            conv = nn.Conv2d(c, out, kernel, padding=pad, groups=groups, bias=False)
            return nn.Sequential(conv, nn.BatchNorm2d(out), act())

        self.expand, self.depth = step(8, 32), step(32, 32, 32, 5, nn.ReLU6)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(32, 8, 1),
            nn.ReLU(),
            nn.Conv2d(8, 32, 1),
            nn.Hardsigmoid(),
        )
        self.project = step(32, 8, act=nn.Identity)
        self.stem = step(3, 8, kernel=3, act=nn.SiLU)

    def forward(self, x):
        x = self.stem(x)
        y = self.depth(self.expand(x))
        return x + self.project(y * self.squeeze(y))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def double(c, out):
            return nn.Sequential(
                nn.Conv2d(c, out, 3, padding=1),
                nn.GroupNorm(4, out),
                nn.LeakyReLU(0.1),
                nn.Conv2d(out, out, 3, padding=1),
                nn.InstanceNorm2d(out, affine=True),
                nn.ELU(),
            )

        self.a, self.b, self.c = double(1, 8), double(8, 16), double(16 + 8, 8)
        self.up = nn.ConvTranspose2d(16, 16, 2, 2)
        self.end = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.c(torch.cat([a, self.up(b)], dim=1))
        return F.interpolate(self.end(y), scale_factor=2, mode="bilinear", align_corners=False)


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.depth = nn.Conv2d(16, 16, 7, padding=3, groups=16)
        self.norm = nn.LayerNorm(16, eps=1e-6)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)
        self.scale = nn.Parameter(torch.full((16,), 0.1))

    def forward(self, x):
        x = self.patch(x)
        y = self.depth(x).permute(0, 2, 3, 1)
        y = self.scale * self.down(F.gelu(self.up(self.norm(y))))
        return (x + y.permute(0, 3, 1, 2)).mean((2, 3))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, 32))
        self.place = nn.Parameter(torch.randn(1, 17, 32) * 0.02)
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return (x + self.mlp(self.norm2(x)))[:, 0]


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(60, 32, padding_idx=0), nn.Embedding(16, 32)
        self.norm = nn.LayerNorm(32)
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, tokens, mask):
        b, n = tokens.shape
        x = self.norm(self.word(tokens) + self.place(torch.arange(n)))
        q, k, v = (m(x).view(b, n, 4, 8).transpose(1, 2) for m in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(8)
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, 32)
        x = self.norm(x + self.o(y))
        return torch.tanh(self.norm(x + self.down(F.gelu(self.up(x), approximate="tanh"))))[:, 0]


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(60, 32)
        self.norm = nn.Parameter(torch.ones(32))
        self.qkv, self.o = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)
        self.gate, self.up = nn.Linear(32, 48, bias=False), nn.Linear(32, 48, bias=False)
        self.down, self.head = nn.Linear(48, 32, bias=False), nn.Linear(32, 60, bias=False)

    def rms(self, x):
        return self.norm * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def turn(self, x, n):
        angle = torch.outer(torch.arange(n).float(), 10000.0 ** (-torch.arange(0, 8, 2) / 8))
        angle = torch.cat([angle, angle], -1)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        half = torch.cat([-x[..., 4:], x[..., :4]], -1)
        return x * cos + half * sin

    def forward(self, tokens):
        b, n = tokens.shape
        x = self.embed(tokens)
        q, k, v = (
            t.view(b, n, 4, 8).transpose(1, 2) for t in self.qkv(self.rms(x)).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(self.turn(q, n), self.turn(k, n), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, n, 32))
        y = self.rms(x)
        return self.head(self.rms(x + self.down(F.silu(self.gate(y)) * self.up(y))))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(8, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.tokens = nn.Sequential(nn.Linear(12, 24), nn.Mish(), nn.Linear(24, 12))
        self.channels = nn.Sequential(nn.Linear(16, 32), nn.Softplus(), nn.Linear(32, 16))

    def forward(self, x):
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return F.log_softmax(x + self.channels(self.norm(x)), dim=-1)


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(8 + 4 * i), nn.ReLU(), nn.Conv2d(8 + 4 * i, 4, 3, padding=1)
            )
            for i in range(3)
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return F.avg_pool2d(x, 2).sum((2, 3))


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Conv1d(1, 8, 1)
        self.filters = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3))
        self.gates = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3))
        self.end = nn.Conv1d(8, 4, 1)

    def forward(self, x):
        x = self.start(x)
        for i, (f, g) in enumerate(zip(self.filters, self.gates, strict=True)):
            padded = F.pad(x, (2**i, 0))
            x = x + torch.tanh(f(padded)) * torch.sigmoid(g(padded))
        return self.end(F.relu(x))


class GraphConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 4)

    def spread(self, x, edges):
        source, target = edges
        out = torch.zeros_like(x).index_add(0, target, x[source])
        count = x.new_zeros(x.shape[0]).index_add(0, target, x.new_ones(source.shape[0]))
        return out / count.clamp(min=1)[:, None]

    def forward(self, x, edges):
        return self.second(self.spread(F.relu(self.first(self.spread(x, edges))), edges))


def images(c: int, size: int) -> Callable[[int], tuple]:
    return lambda n: (torch.randn(n, c, size, size),)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], tuple]]] = {
    "resnet": (ResNet, images(3, 32)),
    "mobilenet": (MobileNet, images(3, 12)),
    "unet": (UNet, images(1, 16)),
    "convnext": (ConvNext, images(3, 32)),
    "vision_transformer": (VisionTransformer, images(3, 32)),
    "bert": (
        Bert,
        lambda n: (torch.randint(1, 60, (n, 9)), (torch.arange(9) < 7).expand(n, 9).long()),
    ),
    "llama": (Llama, lambda n: (torch.randint(0, 60, (n, 10)),)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda n: (torch.randn(n, 5, 8),)),
    "gru": (lambda: Recurrent(nn.GRU), lambda n: (torch.randn(n, 5, 8),)),
    "mixer": (Mixer, lambda n: (torch.randn(n, 12, 16),)),
    "densenet": (DenseNet, images(8, 8)),
    "wavenet": (WaveNet, lambda n: (torch.randn(n, 1, 20),)),
    "graph_convolution": (
        GraphConvolution,
        lambda n: (torch.randn(4 * n, 6), torch.randint(0, 4 * n, (2, 9 * n))),
    ),
}
