"""torch.compile(model, backend="relay"): PyTorch's results, sizes, fallback, options, errors."""

from __future__ import annotations

import copy
import json
import operator
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import relay
from relay import _core
from relay.torch import _options
from relay.torch._compile import compile_graph

STRICT = {"fallback": False}


@pytest.fixture(autouse=True)
def from_the_beginning():
    torch._dynamo.reset()
    relay.torch.reset()
    torch.manual_seed(3)
    yield
    torch._dynamo.reset()


def close(got, want, tolerance=2e-5):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def compiled(model, **how):
    return torch.compile(model, backend="relay", **how)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4)
        )

    def forward(self, x):
        return self.layers(x)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        x = nn.functional.max_pool2d(x + self.block(x), 2)
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


MODELS = {
    "perceptron": (Perceptron, lambda: (torch.randn(8, 16),)),
    "convolutions": (Convolutions, lambda: (torch.randn(2, 3, 16, 16),)),
    "transformer": (Transformer, lambda: (torch.randint(0, 50, (2, 7)),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_without_fallback_are_eager_mode(name):
    make, inputs = MODELS[name]
    model = make().eval()
    fast = compiled(model, options=STRICT)
    given = inputs()
    with torch.no_grad():
        close(fast(*given), model(*given))
        close(fast(*given), model(*given))
    (graph,) = relay.torch.report().graphs
    assert graph.kind == "inference" and graph.programs == 1 and graph.operators > 0
    assert graph.calls == 2 and graph.fallbacks == []


@pytest.mark.parametrize("name", MODELS)
def test_steps_of_training_are_eager_mode(name):
    make, inputs = MODELS[name]
    model = make().train()
    twin = copy.deepcopy(model)
    fast = compiled(model)
    for _ in range(2):
        given = inputs()
        got, want = fast(*given), twin(*given)
        close(got, want)
        got.square().mean().backward()
        want.square().mean().backward()
    for (path, mine), (_, other) in zip(
        model.named_parameters(), twin.named_parameters(), strict=True
    ):
        assert mine.grad is not None, path
        close(mine.grad, other.grad, 1e-4)
    for mine, other in zip(model.buffers(), twin.buffers(), strict=True):
        close(mine, other)
    assert {g.kind for g in relay.torch.report().graphs} == {"forward", "backward"}


class Bags(nn.Module):
    """Bags of embeddings in each mode, one of them empty."""

    def __init__(self):
        super().__init__()
        self.sum = nn.EmbeddingBag(20, 6, mode="sum", padding_idx=3)
        self.mean = nn.EmbeddingBag(20, 6, mode="mean", padding_idx=3)
        self.max = nn.EmbeddingBag(20, 6, mode="max", include_last_offset=True)
        self.weight = nn.Parameter(torch.rand(9))

    def forward(self, tokens):
        offsets = torch.tensor([0, 4, 4])
        ends = torch.tensor([0, 4, 4, 9])
        return torch.cat(
            [
                self.sum(tokens, offsets, per_sample_weights=self.weight),
                self.mean(tokens, offsets),
                self.max(tokens, ends),
            ]
        )


class Sampled(nn.Module):
    """An image that a learned grid reads."""

    def __init__(self, mode, padding):
        super().__init__()
        self.grid = nn.Linear(4, 2)
        self.conv = nn.Conv2d(2, 3, 1)
        self.how = {"mode": mode, "padding_mode": padding, "align_corners": False}

    def forward(self, places):
        image = self.conv(torch.linspace(-1, 1, 60).view(1, 2, 5, 6).expand(2, -1, -1, -1))
        return nn.functional.grid_sample(image, self.grid(places), **self.how)


LAYERS = {
    "bags": (Bags, lambda: torch.tensor([1, 3, 5, 1, 7, 3, 2, 19, 0])),
    "bilinear zeros": (lambda: Sampled("bilinear", "zeros"), lambda: torch.randn(2, 4, 3, 4)),
    "bicubic border": (lambda: Sampled("bicubic", "border"), lambda: torch.randn(2, 4, 3, 4)),
    "nearest reflection": (
        lambda: Sampled("nearest", "reflection"),
        lambda: torch.randn(2, 4, 3, 4),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers_without_fallback(name):
    make, inputs = LAYERS[name]
    model = make()
    twin = copy.deepcopy(model)
    x = inputs()
    got, want = compiled(model, options=STRICT)(x), twin(x)
    close(got, want)
    weights = torch.linspace(0.5, 2, want.numel()).view_as(want)
    (got * weights).sum().backward()
    (want * weights).sum().backward()
    for (path, mine), (_, other) in zip(
        model.named_parameters(), twin.named_parameters(), strict=True
    ):
        assert mine.grad is not None, path
        close(mine.grad, other.grad, 1e-4)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 6, 3, stride=2, padding=1),
        nn.Conv2d(4, 4, (3, 2), dilation=(1, 2), groups=4),
        nn.Conv2d(4, 6, 2, groups=2),
        nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
        nn.Conv1d(3, 4, 5, stride=3, padding=2),
        nn.Conv2d(16, 5, 3, padding=(0, 1)),
        nn.Conv2d(40, 6, 2, stride=2, groups=2),
        nn.Conv2d(3, 6, 2, groups=3),
        nn.ConvTranspose2d(5, 17, 2, stride=2),
    ],
    ids=[
        "strides",
        "depthwise",
        "groups",
        "transposed",
        "one axis",
        "channels that fill vectors",
        "groups that fill vectors",
        "depthwise with two outputs each",
        "transposed to channels that fill vectors",
    ],
)
def test_convolutions_of_images_of_all_sizes_have_gradients(layer):
    layer = copy.deepcopy(layer)
    run = compiled(layer, dynamic=True, options=STRICT)
    for sizes in ((2, 11, 8), (3, 9, 13), (5, 6, 6)):
        x = torch.randn(sizes[0], layer.in_channels, *sizes[5 - layer.weight.dim() :])
        found = []
        for f in (run, layer):
            given = x.clone().requires_grad_()
            layer.zero_grad()
            y = f(given)
            (y * torch.linspace(0, 1, y.numel()).view_as(y)).sum().backward()
            found.append([y.detach(), given.grad, *(p.grad for p in layer.parameters())])
        close(*found, 1e-4)
    assert [g.calls for g in relay.torch.report().graphs] == [3, 3]


def test_numbers_that_python_reads_are_arguments_of_programs():
    def cut(x, at):
        first, shift = at[0].item(), at[1].item()
        torch._check(first >= 0)
        torch._check(first <= 5)
        scaled = x * (x[0, 0].item() + 1) + torch.scalar_tensor(x[1, 1].item())
        return x[first : first + 2] * 2, scaled + (shift - 3) * 2, x.cumsum(0)[: first + 1].sum(0)

    x = torch.randn(9, 4)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        fast = compiled(cut, options=STRICT)
        for at in (torch.tensor([2, 5]), torch.tensor([0, -4])):
            close(fast(x, at), cut(x, at))
    assert all(not g.fallbacks for g in relay.torch.report().graphs)


def test_incomplete_gamma_and_zeta_functions_at_poles_and_limits():
    inf, nan = float("inf"), float("nan")
    values = [0.0, 1e-30, 1e-3, 0.5, 1.0, 1.5, 7.0, 30.0, 190.0, 900.0, 2e4, inf, nan, -1.0, -2.5]
    near = [898.5, 900.5, 19990.0, 20020.0, 8.0, 9.5, -7.25]
    a, x = torch.meshgrid(
        *(torch.tensor(v).double() for v in (values, values + near)), indexing="ij"
    )
    zero = torch.zeros((0, 3), dtype=torch.float64)
    for function in (torch.special.gammainc, torch.special.gammaincc, torch.special.zeta):
        fast = compiled(function, options=STRICT)
        torch.testing.assert_close(
            fast(a, x), function(a, x), rtol=1e-8, atol=1e-14, equal_nan=True
        )
        assert fast(zero, zero).shape == (0, 3)
        half, other = a[3:9, 3:9].float(), x[3:9, 3:9].float()
        torch.testing.assert_close(fast(half, other), function(half, other), equal_nan=True)


def run_both(function, *given):
    """The results of a function without fallback, and those of eager mode."""
    torch._dynamo.reset()
    got = compiled(function, options=STRICT)(*given)
    return got, function(*given)


@pytest.mark.parametrize("shape,index", [((5,), (2, 0)), ((), (1,)), ((), ()), ((5,), ())], ids=str)
def test_places_without_elements_or_dimensions(shape, index):
    x, at, source = torch.randn(shape), torch.zeros(index, dtype=torch.int64), torch.randn(index)

    def function(x, at, source):
        out = [x.gather(0, at), x.scatter(0, at, source), x.scatter_add(0, at, source)]
        for how in ("sum", "mean", "amax", "prod"):
            for with_self in (True, False):
                out.append(x.scatter_reduce(0, at, source, how, include_self=with_self))
        return out

    close(*run_both(function, x, at, source))


def test_ranges_of_integers_have_whole_bounds():
    def function(x):
        return [
            x + torch.arange(-0.9, 2.1, 2.0, dtype=torch.int64),
            torch.arange(3.1, dtype=torch.int64),
            torch.arange(False, 3, 1, dtype=torch.int64),
            torch.arange(1.0, 5.000001, 2.0, dtype=torch.int64),
            torch.linspace(-2.9, 4.9, 7, dtype=torch.int64),
            torch.logspace(0, 1.2, 4, dtype=torch.int64),
        ]

    close(*run_both(function, torch.tensor([5])), tolerance=0)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8], ids=str)
def test_real_bounds_say_how_long_a_range_of_narrow_integers_is(dtype):
    """Unlike in int64. The elements are counted from the whole start by the whole step."""

    def function(x):
        return [
            x + torch.arange(0.9, 4.1, 2.0, dtype=dtype),
            torch.arange(3.1, dtype=dtype),
            torch.arange(0.5, 9, 1.6, dtype=dtype),
            torch.arange(7.9, 0.5, -1.5, dtype=dtype),
        ]

    close(*run_both(function, torch.tensor([5], dtype=dtype)), tolerance=0)


def test_exponents_of_narrow_spaces_are_not_rounded():
    def function(x):
        return x * torch.logspace(-2, 3, 20, dtype=torch.bfloat16)

    got, want = run_both(function, torch.ones(1, dtype=torch.bfloat16))
    torch.testing.assert_close(got, want, rtol=2**-7, atol=0)


def test_bounds_and_steps_of_narrow_spaces_are_rounded():
    def function(x):
        return x + torch.linspace(-2, 1, 50, dtype=torch.bfloat16)

    close(*run_both(function, torch.zeros(1, dtype=torch.bfloat16)), tolerance=0)


def test_sums_and_products_of_truth_values():
    x = torch.tensor([[True, False, True], [True, True, True], [False, False, False]])

    def function(x):
        return x.prod(1, dtype=torch.bool), x.sum(1, dtype=torch.bool), x.sum(1), x.prod(1)

    close(*run_both(function, x), tolerance=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_embeddings_whose_rows_have_a_greatest_norm(dtype):
    weight, at = 3 * torch.randn(6, 4).to(dtype), torch.tensor([[1, 4], [4, 2]])

    def function(weight, at):
        weight = weight.clone()
        return nn.functional.embedding(at, weight, max_norm=1.5), weight

    got, want = run_both(function, weight, at)
    assert not torch.equal(want[1], weight) and torch.equal(want[1][0], weight[0])
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("rank", [2, 3])
def test_adaptive_averages_with_open_numbers_of_windows(rank):
    pool = {2: nn.functional.adaptive_avg_pool2d, 3: nn.functional.adaptive_avg_pool3d}[rank]

    def function(x):
        return pool(x, [max(n, 7) - 2 for n in x.shape[2:]])

    fast = compiled(function, dynamic=True, options=STRICT)
    for sizes in ([4, 12, 9], [5, 9, 12]):
        x = torch.randn(2, 3, *sizes[-rank:])
        x.view(-1)[3] = torch.inf  # no other window has it
        mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, want = fast(mine), function(other)
        close(got, want)
        for y in (got, want):
            (y * torch.linspace(0, 1, y.numel()).view_as(y)).sum().backward()
        close(mine.grad, other.grad)
    assert len({g.kind for g in relay.torch.report().graphs}) == 2


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_filtered_images_with_aligned_corners(mode):
    """Larger, smaller, unchanged, from and to a size of 1, and scales that do not agree with the sizes."""
    filtered = getattr(torch.ops.aten, f"_upsample_{mode}2d_aa").default

    def resized(x, column):
        return [filtered(x, [h, w], True) for h, w in ((13, 3), (6, 9), (1, 4), (6, 1))] + [
            filtered(column, [4, 5], True),
            filtered(x, [3, 3], False, 1.7, 0.9),
        ]

    x, column = torch.randn(1, 2, 6, 9), torch.randn(1, 1, 1, 7)
    close(compiled(resized, options=STRICT)(x, column), resized(x, column))


def test_histograms_and_hashes():
    torch.manual_seed(11)
    x, weight = torch.randn(50, 2), torch.rand(50)

    def counted(x, weight):
        points = torch.histogramdd(x, [3, 4], weight=weight, density=True)
        edges = torch.tensor([-1.0, 0.0, 0.25, 2.0])
        return [
            *torch.histogram(x, 7),
            *torch.histogram(x[:, 0], 5, range=(-1, 1), weight=weight, density=True),
            *torch.histogram(x, edges),
            *torch.histogram(x * 0 + 3, 4),
            points.hist,
            *points.bin_edges,
        ]

    close(compiled(counted, options=STRICT)(x, weight), counted(x, weight))

    def hashed(x):
        return [
            torch.hash_tensor(x),
            torch.hash_tensor(x, 1),
            torch.hash_tensor(x, 0, keepdim=True),
        ]

    for given in (x, x.bfloat16(), (x * 100).long(), x > 0):
        for mine, want in zip(compiled(hashed, options=STRICT)(given), hashed(given), strict=True):
            assert torch.equal(mine, want)


def test_counts_of_numbers():
    def count(x, weights):
        return torch.bincount(x, minlength=3), torch.bincount(x, weights)

    run = compiled(count, options=STRICT)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for weights in (torch.randn(9), torch.randn(9).double(), torch.arange(9)):
            x = torch.randint(0, 7, (9,))
            close(run(x, weights), count(x, weights))
        close(run(torch.tensor([1]), torch.ones(1)), count(torch.tensor([1]), torch.ones(1)))
        assert torch.equal(compiled(torch.bincount)(torch.arange(0)), torch.arange(0))
        with pytest.raises(relay.RunError, match="E06"):
            run(torch.tensor([1, -2, 3, 2, 1, 1, 1, 1, 1]), torch.randn(9))
    assert relay.torch.report().fallbacks == []


def test_a_histogram_without_a_finite_range_is_an_error():
    fast = compiled(lambda x: torch.histogram(x, 3)[0], options=STRICT)
    with pytest.raises(RuntimeError, match="the range of a histogram is not finite"):
        fast(torch.tensor([1.0, float("nan")]))


OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
    "adamw": (torch.optim.AdamW, {}),
    "adamw by lists": (torch.optim.AdamW, {"foreach": True}),
    "adam": (torch.optim.Adam, {"amsgrad": True}),
    "rmsprop": (torch.optim.RMSprop, {}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers_are_eager_mode_without_fallback(name):
    make, options = OPTIMIZERS[name]
    model = nn.Linear(8, 8)
    twin = copy.deepcopy(model)
    first = make(model.parameters(), lr=0.01, **options)
    second = make(twin.parameters(), lr=0.01, **options)
    step = compiled(first.step, options=STRICT)
    for _ in range(3):
        x = torch.randn(4, 8)
        for m, optimizer, run in ((model, first, step), (twin, second, second.step)):
            optimizer.zero_grad()
            m(x).square().sum().backward()
            run()
    for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
        close(mine, other)


# ---- Sizes --------------------------------------------------------------------------------------


def test_after_three_compiles_no_size_compiles_again():
    model = Perceptron().eval()
    fast = compiled(model, options=STRICT)
    with torch.no_grad():
        for batch in (4, 7, 1, 3, 1, 64, 9, 2):
            x = torch.randn(batch, 16)
            close(fast(x), model(x))
    assert len(relay.torch.report().graphs) <= 3


def test_open_sizes_from_the_beginning():
    model = nn.Sequential(nn.Embedding(50, 8), nn.Softmax(1), nn.Linear(8, 4)).eval()
    fast = compiled(model, dynamic=True, options=STRICT)
    with torch.no_grad():
        for shape in ((2, 7), (3, 5), (4, 11)):
            x = torch.randint(0, 50, shape)
            close(fast(x), model(x))
    assert max(len(graph.symbols) for graph in relay.torch.report().graphs) == 2


@pytest.mark.parametrize("train", [False, True])
def test_windows_past_the_end_of_open_sizes(train):
    def pools(x):
        y, at = nn.functional.max_pool2d(x, 3, 2, ceil_mode=True, return_indices=True)
        return y, at, nn.functional.avg_pool2d(x, (2, 3), (3, 2), 1, ceil_mode=True)

    fast = compiled(pools, dynamic=True, options=STRICT)
    for height, width in ((8, 11), (9, 14), (12, 13)):
        x = torch.randn(2, 3, height, width, requires_grad=train)
        want, got = pools(x), fast(x)
        close(got, want)
        if train:
            losses = [y[0].square().sum() + y[2].square().sum() for y in (got, want)]
            close(*(torch.autograd.grad(loss, x) for loss in losses))
    assert len(relay.torch.report().graphs) <= 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "shape, window",
    [
        ((2, 3, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ((3, 8, 8), {"kernel_size": 2}),
        ((2, 3, 9, 9), {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 2}),
        ((2, 3, 10, 7), {"kernel_size": (3, 2), "stride": 2, "ceil_mode": True}),
        ((1, 2, 5, 6, 7), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ],
    ids=str,
)
def test_one_of_equal_maxima_has_the_gradient(shape, window, dtype):
    pool = nn.functional.max_pool3d if len(shape) == 5 else nn.functional.max_pool2d
    x = torch.randint(0, 3, shape).to(dtype).requires_grad_()

    def gradient(f):
        y = f(x, **window)
        # Sums of these are exact in bfloat16.
        return torch.autograd.grad(y, x, (torch.arange(y.numel()) % 5).to(dtype).reshape(y.shape))

    assert torch.equal(*(gradient(f)[0] for f in (compiled(pool, options=STRICT), pool)))


def test_windows_of_padding_alone_have_no_gradient():
    x = torch.randn(1, 1, 2, 2, requires_grad=True)

    def pool(x):
        return nn.functional.max_pool2d(x, 2, 1, padding=1, dilation=3)

    y = compiled(pool, options=STRICT)(x)
    assert torch.equal(y, torch.full_like(y, -torch.inf))
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.zeros_like(x))


def test_the_inverse_of_a_matrix():
    def inverse(x):
        return torch.linalg.matrix_power(x, -2)

    fast = compiled(inverse, options=STRICT)
    # Without exchanged rows, the first pivot would be zero.
    x = torch.tensor([[0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [3.0, 0.0, 1.0]], requires_grad=True)
    close(fast(x), inverse(x))
    close(*(torch.autograd.grad(f(x).square().sum(), x) for f in (fast, inverse)), 1e-4)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        fast(torch.ones(3, 3, requires_grad=True))


def test_a_size_that_is_a_number_in_the_program():
    fast = compiled(lambda x, n: x * n + torch.arange(n).sum(), dynamic=True)
    for n in (3, 5, 8):
        x = torch.randn(4, 6)
        close(fast(x, n), x * n + sum(range(n)))


# ---- Fallback -----------------------------------------------------------------------------------


def with_singular_values(x):
    y = torch.relu(x @ x.T) + torch.eye(4)
    z = torch.linalg.svdvals(y)  # this line is reported
    return (z * 2).sum(0)


LINE = with_singular_values.__code__.co_firstlineno + 2


def test_what_has_no_row_runs_in_pytorch_and_is_reported_with_its_line():
    fast = compiled(with_singular_values)
    for _ in range(3):
        x = torch.randn(4, 4)
        close(fast(x), with_singular_values(x), 1e-3)
    report = relay.torch.report()
    (graph,) = report.graphs
    assert graph.programs == 2 and graph.calls == 3
    (fallback,) = report.fallbacks
    assert "linalg_svd" in fallback.operator and fallback.count == 1
    assert f'test_torch_compile.py", line {LINE}, in with_singular_values' in fallback.place
    assert fallback.place in str(report) and fallback.reason in str(report)


def test_without_fallback_it_is_an_error():
    fast = compiled(with_singular_values, options=STRICT)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="E0501") as raised:
        fast(torch.randn(4, 4))
    assert f"line {LINE}" in str(raised.value) and "linalg_svd" in str(raised.value)
    assert raised.value.inner_exception.code == "E0501"


def open_vector(n):
    """A vector whose size is a symbol, in the mode that is the second result."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext([DimDynamic.DYNAMIC], constraint_sizes=[None])
    source = torch._dynamo.source.ConstantSource("vector")
    vector = mode.from_tensor(
        torch.ones(n), static_shapes=False, symbolic_context=context, source=source
    )
    return vector, mode


def graph_with_an_unknown_size():
    """x of [2 n] -> exp(view(x, [2, n])): n is not a size of an input."""
    half, mode = open_vector(6)
    graph, aten = fx.Graph(), torch.ops.aten
    with mode:
        twice = torch.cat([half, half])
        x = graph.placeholder("x")
        x.meta["val"] = twice
        size = graph.call_function(aten.sym_size.int, (x, 0))
        size.meta["val"] = twice.shape[0]
        n = graph.call_function(operator.floordiv, (size, 2))
        n.meta["val"] = twice.shape[0] // 2
        rows = graph.call_function(aten.view.default, (x, [2, n]))
        rows.meta["val"] = twice.view(2, half.shape[0])
        result = graph.call_function(aten.exp.default, (rows,))
        result.meta["val"] = rows.meta["val"].exp()
        graph.output((result,))
    return fx.GraphModule({}, graph)


def test_a_program_that_cannot_be_called_falls_back():
    x = torch.randn(8)
    run = compile_graph(graph_with_an_unknown_size(), "inference", _options.read({}))
    close(run([x])[0], x.view(2, 4).exp())
    fallbacks = relay.torch.report().fallbacks
    assert [f.operator for f in fallbacks] == ["aten.view.default", "aten.exp.default"]
    assert all("E0505" in f.reason for f in fallbacks)
    with pytest.raises(relay.UserError, match="E0505"):
        compile_graph(graph_with_an_unknown_size(), "inference", _options.read(STRICT))


def test_a_graph_with_a_size_that_is_not_expressible_falls_back():
    vector, mode = open_vector(4)
    graph = fx.Graph()
    with mode:
        x = graph.placeholder("x")
        x.meta["val"] = vector.new_ones(2 ** vector.shape[0])
        result = graph.call_function(torch.ops.aten.exp.default, (x,))
        result.meta["val"] = x.meta["val"].exp()
        graph.output((result,))
    run = compile_graph(fx.GraphModule({}, graph), "inference", _options.read({}))
    close(run([torch.ones(8)])[0], torch.ones(8).exp())
    (fallback,) = relay.torch.report().fallbacks
    assert "E0505" in fallback.reason


def test_fallback_in_training_gives_gradients_and_runs_once():
    model = nn.Linear(4, 4)
    twin = copy.deepcopy(model)

    def step(m, x):
        return with_singular_values(m(x)).sum()

    fast = compiled(step)
    x = torch.randn(4, 4)
    fast(model, x).backward()
    step(twin, x).backward()
    close(model.weight.grad, twin.weight.grad, 1e-3)
    counted = [f for g in relay.torch.report().graphs for f in g.fallbacks]
    assert sum("linalg_svd" in f.operator for f in counted) == 1


def test_random_numbers_are_those_of_eager_mode():
    def draw(x):
        return torch.rand(5) * x + torch.rand(5)

    torch.manual_seed(9)
    want = draw(torch.ones(5))
    torch.manual_seed(9)
    close(compiled(draw)(torch.ones(5)), want)


def test_random_numbers_are_pytorchs_without_fallback_too():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.4), nn.Linear(8, 2))
    twin = copy.deepcopy(model)
    x = torch.randn(4, 8)
    torch.manual_seed(9)
    twin(x).square().sum().backward()
    torch.manual_seed(9)
    compiled(model, options=STRICT)(x).square().sum().backward()
    for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
        close(mine.grad, other.grad)
    assert all("random numbers" in f.reason for f in relay.torch.report().fallbacks)
    assert relay.torch.report().fallbacks


# ---- Memory -------------------------------------------------------------------------------------


def test_attention_is_pytorchs_only_if_it_drops_weights():
    q, k, v = (torch.randn(2, 2, 5, 8) for _ in range(3))
    attention = nn.functional.scaled_dot_product_attention
    fast = compiled(lambda q, k, v: attention(q, k, v, is_causal=True))
    close(fast(q, k, v), attention(q, k, v, is_causal=True))
    assert relay.torch.report().fallbacks == []

    def dropping(q, k, v):
        return attention(q, k, v, dropout_p=0.5) + 1

    torch.manual_seed(7)
    got = compiled(dropping)(q, k, v)
    torch.manual_seed(7)
    close(got, dropping(q, k, v))
    assert relay.torch.report().fallbacks != []


def test_results_are_in_memory_of_their_own():
    fast = compiled(lambda x: (x.clone(), x + 0, x.T.contiguous().T))
    x = torch.randn(3, 4)
    kept = x.clone()
    for result in fast(x):
        result.zero_()
        close(x, kept)


def test_what_is_replaced_is_written_in_place():
    def update(x, y):
        x.mul_(2).add_(y)
        return y + 1

    fast = compiled(update, options=STRICT)
    for _ in range(2):
        x, y = torch.randn(3, 4), torch.randn(3, 4)
        want, version = x * 2 + y, x._version
        close(fast(x, y), y + 1)
        close(x, want)
        assert x._version > version
    (graph,) = relay.torch.report().graphs
    assert graph.donated == 1


def test_arguments_that_a_program_cannot_write_into_are_written_behind_it():
    def update(x, y):
        x.mul_(2).add_(y)

    fast = compiled(update, options=STRICT)
    fast(torch.ones(8), torch.ones(8))
    (graph,) = relay.torch.report().graphs
    assert graph.donated == 1
    # Between two elements, so that the program reads a copy.
    x = torch.frombuffer(bytearray(64), dtype=torch.float32, offset=1, count=8)
    x.fill_(1)
    fast(x, torch.ones(8))
    close(x, torch.full((8,), 3.0))
    both = torch.ones(8)
    fast(both, both)
    close(both, torch.full((8,), 4.0))


def test_what_is_read_elsewhere_is_not_written_in_place():
    def exchange(x, y):
        old = x.clone()
        x.copy_(y)
        y.copy_(old)
        return x.sum()

    fast = compiled(exchange)
    for _ in range(2):
        x, y = torch.randn(3, 4), torch.randn(3, 4)
        a, b = x.clone(), y.clone()
        close(fast(x, y), b.sum())
        close(x, b)
        close(y, a)


def test_views_of_inputs_are_views():
    fast = compiled(lambda x: (x.T, x[1], x + 1))
    x = torch.randn(3, 4)
    turned, row, _ = fast(x)
    row.zero_()
    assert x[1].abs().sum() == 0 and turned[:, 1].abs().sum() == 0


def test_results_that_share_memory_in_eager_mode_share_it():
    def views(x, kept):
        y, z, u, v = x * 2, x + 1, x - 1, torch.view_as_complex(x.reshape(4, 3, 2) * 3)
        kept.copy_(u)
        return y[1:], y[:, ::2], *z.chunk(2, 1), z.t(), u[:2], u.diagonal(), v.real, (x * x).t()

    x, kept, other = torch.randn(4, 6), torch.zeros(4, 6), torch.zeros(4, 6)
    with torch.no_grad():
        got, want = compiled(views, options=STRICT)(x, kept), views(x, other)
    for results in got, want:
        for number, result in enumerate(results):
            result.mul_(number + 2)
    close(kept, other)
    for a, b in zip(got, want, strict=True):
        close(a, b)
        assert a.stride() == b.stride()
    # A view that shares its memory with no result is computed as such.
    (graph,) = relay.torch.report().graphs
    assert graph.programs == 1


def test_inputs_that_are_changed_in_place():
    def change(x, y):
        x.mul_(2)
        y[1:] = x[1:]
        return x.sum()

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    other_x, other_y = x.clone(), y.clone()
    close(compiled(change)(x, y), change(other_x, other_y))
    close(x, other_x)
    close(y, other_y)


@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.transpose(1, 3),
        lambda x: x[:, ::2],
        lambda x: x[:1].expand(2, -1, -1, -1),
    ],
    ids=["channels_last", "transposed", "strided", "expanded"],
)
def test_memory_layouts_are_those_of_eager_mode(arrange):
    def change(x):
        return torch.relu(x) * 2, x.permute(0, 2, 3, 1) + 1

    x = arrange(torch.randn(2, 4, 6, 4))
    for got, want in zip(compiled(change, options=STRICT)(x), change(x), strict=True):
        close(got, want)
        assert got.stride() == want.stride()


def test_inputs_and_results_are_not_copied():
    code = """
import resource, torch
fast = torch.compile(lambda x: x.sum(0), backend="relay", options={"fallback": False})
x, y = torch.ones(2, 1 << 25), torch.ones(2, 1 << 12)
torch._dynamo.mark_dynamic(x, 1), torch._dynamo.mark_dynamic(y, 1)
fast(y), torch.ones(1 << 25)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = fast(x)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
assert result[-1] == 2 and grown < 192, grown  # the result is 128 MiB, the argument 256
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- Options ------------------------------------------------------------------------------------


def test_frozen_parameters_are_constants():
    model = Perceptron().eval()
    fast = compiled(model, options={"freeze": True, "fallback": False})
    x = torch.randn(8, 16)
    with torch.no_grad():
        want = model(x)
        close(fast(x), want)
        model.layers[0].weight.zero_()
        close(fast(x), want)
        torch._dynamo.reset()
        fast = compiled(model, options=STRICT)
        close(fast(x), model(x))
        model.layers[0].weight.data.fill_(0.5)
        close(fast(x), model(x))


def test_freeze_of_what_is_differentiated_is_refused():
    fast = compiled(Perceptron(), options={"freeze": True})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"E0913[\s\S]*no_grad"):
        fast(torch.randn(8, 16))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"options": {"falback": False}}, "no option 'falback'; did you mean 'fallback'"),
        ({"options": {"prepack": ["w"]}}, "takes no option 'prepack'"),
        ({"options": {"fallback": 1}}, "'fallback' is True or False"),
        ({"options": {"memory": 2}}, "from 0 to 1"),
        ({"options": {"opt_level": 9}}, "opt_level"),
        ({"options": {"target": "z80"}}, "there is no target 'z80'"),
        ({"mode": "max-autotune"}, "no mode 'max-autotune'"),
    ],
)
def test_wrong_options_are_refused(how, said):
    fast = compiled(lambda x: x + 1, **how)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"E0[479]\d\d") as raised:
        fast(torch.ones(2))
    assert said in str(raised.value)


def test_options_reach_the_compiler():
    fast = compiled(lambda x: x * 3, options={"target": "x86-64-v2", "opt_level": 1, **STRICT})
    close(fast(torch.ones(4)), torch.full((4,), 3.0))


def test_programs_have_as_many_threads_as_pytorch():
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            assert _options.read({}).build["num_threads"] == threads
            assert _options.read({"num_threads": 2}).build["num_threads"] == 2
    finally:
        torch.set_num_threads(before)


# ---- The cache ----------------------------------------------------------------------------------


def step_of_training():
    """The number of kernels from the cache, of those that were compiled, and the gradients."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.LayerNorm(3))
    compiled(model)(torch.randn(2, 4)).square().sum().backward()
    graphs = relay.torch.report().graphs
    return [
        sum(g.cached for g in graphs),
        sum(g.compiled for g in graphs),
        [p.grad.double().sum().item().hex() for p in model.parameters()],
    ]


def test_a_second_process_takes_kernels_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    cached, made, gradients = step_of_training()
    assert made > 0
    code = "import json, test_torch_compile as t; print(json.dumps(t.step_of_training()))"
    second = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert json.loads(second.stdout) == [cached + made, 0, gradients]


# ---- Around it ----------------------------------------------------------------------------------


def test_kernels_run_on_the_threads_of_pytorchs_openmp():
    library = str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")
    openmp = "ATen parallel backend: OpenMP" in torch.__config__.parallel_info()
    assert _core.share_openmp_of(library) == openmp
    assert not _core.share_openmp_of("libof_no_process.so")
    # More and fewer threads than PyTorch has, and in another thread, which has an OpenMP team of its own.
    model, x = nn.Linear(256, 256), torch.randn(256, 256)
    expected = model(x)
    for threads in (1, 2, 3):
        run = compiled(model, options={"num_threads": threads})
        close(run(x), expected)
        with ThreadPoolExecutor(1) as other:
            close(other.submit(run, x).result(), expected)
        torch._dynamo.reset()


def test_a_forked_child_does_not_wait_for_the_threads_of_its_parent():
    code = """
import os, numpy as np, relay, torch, relay.torch
torch.set_num_threads(2)
x = torch.randn(512, 512)
x @ x
source = "def @main(%x: Tensor[(512, 512), float32]) { nn.matmul(%x, %x) }"
run = relay.build(relay.parse('#[version = "0.0.5"]' + source), num_threads=2)
given = x.numpy()
here = np.asarray(run(given))
child = os.fork()
if child == 0:
    same = np.array_equal(np.asarray(run(given)), here)
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "0\n"


def test_relay_is_imported_without_pytorch():
    code = "import sys, relay; assert 'relay' in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_back_end_is_found_by_name():
    assert "relay" in torch.compiler.list_backends()


def test_autocast_and_inference_mode():
    model = Perceptron().eval()
    fast = compiled(model, options=STRICT)
    x = torch.randn(8, 16)
    with torch.inference_mode():
        close(fast(x), model(x))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        close(fast(x), model(x), 3e-2)


def test_graph_breaks_are_pytorchs():
    def broken(x):
        y = torch.relu(x) + 1
        torch._dynamo.graph_break()
        return y * 2

    x = torch.randn(5)
    close(compiled(broken, options=STRICT)(x), broken(x))
    assert len(relay.torch.report().graphs) == 2


def test_tensors_on_other_devices_are_left_to_pytorch_or_refused():
    x = torch.ones(2, device="meta")
    assert compiled(lambda x: x + 1)(x).device.type == "meta"
    assert "meta" in relay.torch.report().fallbacks[0].reason
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="device meta"):
        compiled(lambda x: x + 1, options=STRICT)(x)


def test_branches_on_values_break_graphs_and_are_pytorchs_error_in_one_graph():
    def choose(x):
        y = torch.relu(x) + 1
        return y * 2 if y.sum() > 100 else y - 1

    x = torch.randn(5)
    close(compiled(choose, options=STRICT)(x), choose(x))
    assert len(relay.torch.report().graphs) == 2
    torch._dynamo.reset()
    line = choose.__code__.co_firstlineno + 2
    with pytest.raises(torch._dynamo.exc.Unsupported, match=rf"branching[\s\S]*line {line}"):
        compiled(choose, fullgraph=True)(x)


@pytest.mark.filterwarnings("ignore")
def test_quantised_tensors_fall_back_or_are_refused():
    def f(x):
        return torch.quantize_per_tensor(x * 2, 0.1, 3, torch.quint8).dequantize() + 1

    x = torch.randn(4, 4)
    close(compiled(f)(x), f(x))
    assert any("quantize" in b.operator for b in relay.torch.report().fallbacks)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"E0501[\s\S]*quantize"):
        compiled(f, options=STRICT)(x)


@pytest.mark.filterwarnings("ignore")
def test_sparse_tensors_are_left_out_of_graphs_by_pytorch():
    def f(x):
        return (x * 2).to_sparse()

    x = torch.eye(4)
    close(compiled(f, options=STRICT)(x).to_dense(), f(x).to_dense())
    close(compiled(lambda x: x * 2, options=STRICT)(f(x)).to_dense(), x * 4)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="sparse"):
        compiled(f, fullgraph=True)(x)


@pytest.mark.parametrize("freeze", [False, True])
def test_parameters_that_are_resized_or_moved_are_compiled_again(freeze):
    model = nn.Linear(4, 4)
    fast = compiled(model, options=STRICT | {"freeze": freeze})
    x = torch.randn(3, 4)
    with torch.no_grad():
        close(fast(x), model(x))
        model.weight, model.bias = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(2))
        close(fast(x), model(x))
        assert fast(x).shape == (3, 2)
        model.to("meta")
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"E0501[\s\S]*device"):
            fast(x.to("meta"))


# ---- The format ---------------------------------------------------------------------------------


class Mixed(nn.Module):
    """Operators with each kind of argument and result."""

    def forward(self, x, index):
        a, b = x.split(2, dim=1)
        values, places = torch.topk(a, 2)
        picked = x[index, :2]
        c = torch.cat([a, b, picked], 0).to(torch.float64)
        d = torch.clamp(c, min=-0.5).sum(dim=[0], keepdim=True)
        return values, places, d, torch.full((2,), float("inf")), x.new_zeros(3, dtype=torch.bool)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", [*MODELS, "mixed"])
def test_graphs_are_written_as_torch_export_writes_them(name, dynamic):
    from torch._export.serde.serialize import serialize

    from relay.torch import _regions, _schema

    if name == "mixed":
        model, given = Mixed(), (torch.randn(3, 4), torch.tensor([0, 2]))
    else:
        make, inputs = MODELS[name]
        model, given = make().eval(), inputs()
    sizes = None
    if dynamic:
        batch = torch.export.Dim.AUTO
        sizes = tuple({0: batch} for _ in given)
    program = torch.export.export(model, given, dynamic_shapes=sizes).run_decompositions()
    want = json.loads(serialize(program).exported_program)["graph_module"]["graph"]

    module = program.graph_module
    nodes = _regions.operators(module.graph)
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    (output,) = [n for n in module.graph.nodes if n.op == "output"]
    written = _schema.write(nodes, inputs, list(output.args[0]), module)
    got = written.program["graph_module"]["graph"]

    numbers = want["sym_int_values"].keys()
    tensor_nodes = [
        n for n in want["nodes"] if n["name"] not in numbers and "_assert" not in n["target"]
    ]
    assert got["inputs"] == want["inputs"] and got["outputs"] == want["outputs"]
    mine_nodes = [n for n in got["nodes"] if n["name"] not in numbers]
    assert len(mine_nodes) == len(tensor_nodes)
    for mine, theirs in zip(mine_nodes, tensor_nodes, strict=True):
        for part in ("target", "inputs", "outputs", "name"):
            assert mine[part] == theirs[part], part
    assert got["tensor_values"].keys() == want["tensor_values"].keys()
    for value, mine in got["tensor_values"].items():
        theirs = want["tensor_values"][value]
        assert mine["dtype"] == theirs["dtype"] and mine["device"] == theirs["device"]
        for m, t in zip(mine["sizes"], theirs["sizes"], strict=True):
            assert ("as_int" in m) == ("as_int" in t) and m.get("as_int") == t.get("as_int")


def grouped_reference(x, w, ends):
    """Rows of groups multiplied by the matrices of the groups; 0 behind the last group."""
    out = x.new_zeros(x.shape[0], w.shape[2])
    begin = 0
    for i, end in enumerate(ends.tolist()):
        out[begin:end] = x[begin:end] @ w[i]
        begin = end
    return out


ENDS = ([3, 3, 7, 10], [0, 0, 0, 10], [10, 10, 10, 10], [1, 2, 3, 4])


@pytest.mark.parametrize("turned", (False, True))
def test_grouped_products_of_rows(turned):
    fast = compiled(lambda x, w, e: torch._grouped_mm(x, w, offs=e), options=STRICT)
    w = torch.randn(4, 24, 16).transpose(1, 2) if turned else torch.randn(4, 16, 24)
    x, w = torch.randn(10, 16).bfloat16(), w.bfloat16()
    for ends in map(torch.tensor, ENDS):
        count = int(ends[-1])  # PyTorch leaves the rows behind open
        close(fast(x, w, ends.int())[:count], grouped_reference(x, w, ends)[:count], 0.05)


def test_groups_that_end_behind_the_last_row():
    fast = compiled(lambda x, w, e: torch._grouped_mm(x, w, offs=e), options=STRICT)
    x, w = torch.randn(16, 64).bfloat16(), torch.randn(3, 64, 32).bfloat16()
    ends = torch.tensor([4, 8, 20])
    close(fast(x, w, ends.int()), grouped_reference(x, w, ends), 0.05)


def test_gradients_of_grouped_products_of_rows():
    fast = compiled(lambda x, w, e: torch._grouped_mm(x, w, offs=e), options=STRICT)
    for ends in map(torch.tensor, ENDS[:3]):
        x, w = torch.randn(10, 16).bfloat16(), torch.randn(4, 16, 24).bfloat16()
        pairs = [[t.clone().requires_grad_() for t in (x, w)] for _ in range(2)]
        slope = torch.randn(10, 24).bfloat16()
        fast(*pairs[0], ends.int()).backward(slope)
        grouped_reference(*pairs[1], ends).backward(slope)
        for mine, other in zip(*pairs, strict=True):
            close(mine.grad, other.grad, 0.05)


def test_grouped_products_of_columns_and_symbolic_rows():
    ends = torch.tensor([3, 3, 7, 16], dtype=torch.int32)
    a, b = torch.randn(4, 24, 16).bfloat16(), torch.randn(16, 16).bfloat16()
    fast = compiled(lambda a, b, e: torch._grouped_mm(a, b, offs=e), options=STRICT)
    close(fast(a, b, ends), grouped_reference(b.T, a.transpose(1, 2), ends).T, 0.05)
    torch._dynamo.reset()
    fast = compiled(lambda x, w, e: torch._grouped_mm(x, w, offs=e), options=STRICT, dynamic=True)
    w = torch.randn(4, 16, 24).bfloat16()
    torch._dynamo.mark_static(w)
    for rows in (10, 40, 2):
        x = torch.randn(rows, 16).bfloat16()
        sizes = (torch.tensor([0.1, 0.1, 0.5, 1.0]) * rows).int()
        torch._dynamo.mark_static(sizes)
        close(fast(x, w, sizes), grouped_reference(x, w, sizes), 0.05)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
@pytest.mark.parametrize("turned", (False, True))
def test_grouped_products_read_no_row_of_another_group(expert_product, turned, dtype):
    def product(x, w, ends):
        return expert_product.grouped_mm_fallback(x, w.transpose(1, 2) if turned else w, ends)

    fast = compiled(product, options=STRICT)
    w = torch.randn((3, 160, 64) if turned else (3, 64, 160)).to(dtype)
    for ends in map(torch.tensor, ([1, 20, 21], [0, 0, 40], [40, 40, 40], [0, 1, 1])):
        x = torch.randn(40, 64).to(dtype)
        x[int(ends[0]) : int(ends[1])] = float("nan")
        got = fast(x, w, ends)
        want = grouped_reference(x, w.transpose(1, 2) if turned else w, ends)
        count = int(ends[-1])
        assert torch.equal(got.isnan(), want.isnan()), ends
        close(got[:count].nan_to_num(), want[:count].nan_to_num(), 0.05)


@pytest.fixture
def expert_product():
    """The operators of transformers, which are of the same name and signature, while it is not imported."""
    if hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        yield torch.ops.transformers
        return
    library = torch.library.Library("transformers", "DEF")
    library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
    library.define(
        "grouped_mm_fallback_backward(Tensor input, Tensor weight, Tensor offs, Tensor grad_output)"
        " -> (Tensor, Tensor)"
    )
    name = "transformers::grouped_mm_fallback"
    torch.library.register_fake(
        name, lambda x, w, e: x.new_empty(x.shape[0], w.shape[2]), lib=library
    )
    torch.library.register_fake(
        f"{name}_backward",
        lambda x, w, e, g: (torch.empty_like(x), torch.empty_like(w)),
        lib=library,
    )
    yield torch.ops.transformers
    library._destroy()


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_products_by_the_weights_of_experts(expert_product, dtype):
    def steps(x, w, ends, g):
        made = expert_product.grouped_mm_fallback(x, w, ends)
        return made, *expert_product.grouped_mm_fallback_backward(x, w, ends, g)

    fast = compiled(steps, options=STRICT)
    for ends in map(torch.tensor, ENDS):
        x, w = torch.randn(10, 16, dtype=dtype), torch.randn(4, 16, 24, dtype=dtype)
        x.requires_grad_(), w.requires_grad_()
        g = torch.randn(10, 24, dtype=dtype)
        want = grouped_reference(x, w, ends)
        want.backward(g)
        with torch.no_grad():
            close(fast(x, w, ends, g), (want, x.grad, w.grad))
