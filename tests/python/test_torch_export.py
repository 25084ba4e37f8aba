"""Programs that torch.export writes, compared with PyTorch.

They run from a file, in a process that cannot import PyTorch.
"""

import importlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from command_line import RELAY

import relay as rl

torch = pytest.importorskip("torch")
nn = torch.nn

# Runs an archive in a process that cannot import PyTorch.
RUN = """
import sys
sys.modules["torch"] = None
import numpy as np, relay
mod, _ = relay.frontend.from_exported_program(sys.argv[1])
xs = np.load(sys.argv[2])
out = relay.build(mod)(*(xs[k] for k in sorted(xs)))
out = out if isinstance(out, tuple) else (out,)
np.savez(sys.argv[3], **{f"y{i:02}": np.asarray(y) for i, y in enumerate(out)})
"""


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class InvertedResidual(nn.Module):
    """A block of MobileNet v3: expansion, depthwise convolution, squeeze and excitation."""

    def __init__(self, c=8, e=24):
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(c, e, 1, bias=False), nn.BatchNorm2d(e), nn.Hardswish()
        )
        self.depth = nn.Sequential(
            nn.Conv2d(e, e, 5, 1, 2, groups=e, bias=False), nn.BatchNorm2d(e), nn.ReLU6()
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(e, 6, 1),
            nn.SiLU(),
            nn.Conv2d(6, e, 1),
            nn.Hardsigmoid(),
        )
        self.project = nn.Sequential(nn.Conv2d(e, c, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * self.squeeze(y))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 4)
        )

    def forward(self, x):
        return torch.softmax(self.layers(x), -1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.position = nn.Parameter(torch.randn(20, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 50, bias=False)

    def forward(self, ids):
        x = self.embedding(ids) + self.position[: ids.shape[1]]
        return self.head(self.layers(x))


class Decoder(nn.Module):
    """Causal attention with rotary places, RMS norm and a gated perceptron, as Llama has them."""

    def __init__(self, size=16, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, size // heads
        self.embedding = nn.Embedding(40, size)
        self.norm = nn.RMSNorm(size)
        self.q = nn.Linear(size, size, bias=False)
        self.kv = nn.Linear(size, 2 * groups * self.head, bias=False)
        self.out = nn.Linear(size, size, bias=False)
        self.gate, self.up = nn.Linear(size, 24, bias=False), nn.Linear(size, 24, bias=False)
        self.down = nn.Linear(24, size, bias=False)
        frequency = 1 / 100 ** (torch.arange(0, self.head, 2).float() / self.head)
        self.register_buffer("frequency", frequency)

    def rotated(self, x):
        places = torch.arange(x.shape[2], device=x.device).float()
        angles = torch.outer(places, self.frequency)
        angles = torch.cat([angles, angles], -1)
        a, b = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()

    def forward(self, ids):
        x = self.embedding(ids)
        n, t, _ = x.shape
        y = self.norm(x)
        q = self.q(y).view(n, t, self.heads, self.head).transpose(1, 2)
        k, v = self.kv(y).view(n, t, 2, self.groups, self.head).unbind(2)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(
            self.rotated(q), self.rotated(k), v, is_causal=True, enable_gqa=True
        )
        x = x + self.out(y.transpose(1, 2).reshape(n, t, -1))
        return x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.fc(y[:, -1]), h, c


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 8)

    def forward(self, x):
        return self.gru(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, 2, 1)
        self.mid = nn.Sequential(nn.GroupNorm(2, 6), nn.SiLU(), nn.Conv2d(6, 6, 3, 1, 1))
        self.up = nn.ConvTranspose2d(6, 6, 2, 2)
        self.out = nn.Conv2d(9, 3, 1)

    def forward(self, x):
        y = self.up(self.mid(self.down(x)))
        y = nn.functional.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([x, y], 1))


class Writer(nn.Module):
    """Writes into parts, as code of users does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, 0] = x[:, 1] * 2
        y[1:, 1:] += x[:-1, 1:]
        y[y > 1] = 1.0
        y.transpose(0, 1)[2].mul_(3)
        self.seen.add_(y.sum(0))
        return y, self.seen * 2


class Positions(nn.Module):
    """Reads and writes parts whose positions are values of a tensor."""

    def forward(self, x, at):
        i, n = at[0].item(), at[1].item()
        torch._check(i >= 0)
        torch._check(i <= 2)
        torch._check(n >= 2)
        torch._check(n <= 5)
        y = x.clone()
        y.narrow(0, i, 3).mul_(2)
        y.select(0, i)[1:] = 7
        y.select(1, i).add_(x.select(0, i).sum())
        return y, x[:n].sum(0), x[i : i + 2], x.narrow(1, i, 3), x[n - 2 : -1].sum(0)


class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a.sin() + 1, lambda a: a.cos() * 2, (x,))


class Recurrence(nn.Module):
    """A scan over lines, with a weight that all steps read."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3) / 3)

    def forward(self, x):
        def step(state, line):
            state = torch.tanh(state @ self.w + line)
            return state, state * 2

        last, lines = torch._higher_order_ops.scan(step, torch.zeros(3), x)
        return last, lines


class Lines(nn.Module):
    """A function of every line of two tensors."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4))

    def forward(self, x, y):
        return torch._higher_order_ops.map(
            lambda pair, w: (pair[0] @ w).relu() + pair[1].sum(), (x, y), self.w
        )


def image(*shape):
    return torch.randn(*shape)


def ids(*shape):
    return torch.randint(0, 40, shape)


BATCH = torch.export.Dim("batch", min=2, max=64)
LENGTH = torch.export.Dim("length", min=2, max=20)

# The model, its example, the sizes that are open, and a second example.
MODELS = {
    "resnet": (ResNet, (image(2, 3, 32, 32),), {0: BATCH}, (image(5, 3, 32, 32),)),
    "mobilenet": (InvertedResidual, (image(2, 8, 9, 9),), {0: BATCH}, (image(3, 8, 9, 9),)),
    "mlp": (Mlp, (image(3, 12),), {0: BATCH}, (image(7, 12),)),
    "encoder": (Encoder, (ids(2, 6),), {0: BATCH, 1: LENGTH}, (ids(3, 11),)),
    "decoder": (Decoder, (ids(2, 6),), {0: BATCH, 1: LENGTH}, (ids(3, 9),)),
    "lstm": (Lstm, (image(2, 5, 6),), None, None),
    "gru": (Gru, (image(5, 2, 6),), None, None),
    "unet": (UNet, (image(2, 3, 16, 16),), None, None),
    "writer": (Writer, (image(3, 3),), None, None),
    "positions": (
        Positions,
        (image(6, 5), torch.tensor([1, 4])),
        None,
        (image(6, 5), torch.tensor([2, 2])),
    ),
    "choice": (Choice, (image(4),), None, None),
    "recurrence": (Recurrence, (image(5, 3),), None, None),
    "lines": (Lines, (image(5, 3), image(5, 2)), None, None),
}


def results(model, args):
    with torch.no_grad():
        out = model(*args)
    flat, _ = torch.utils._pytree.tree_flatten(out)
    return [y.numpy() for y in flat]


def exported(name):
    make, args, open_sizes, second = MODELS[name]
    torch.manual_seed(1)
    model = make().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
    dynamic = None if open_sizes is None else (open_sizes,)
    return (
        model,
        torch.export.export(model, args, dynamic_shapes=dynamic),
        [args, *([second] if second else [])],
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_program_computes_what_eager_mode_does(name, tmp_path):
    model, program, examples = exported(name)
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    for args in examples:
        np.savez(tmp_path / "in.npz", **{f"x{i}": a.numpy() for i, a in enumerate(args)})
        want = results(model if name != "writer" else MODELS[name][0](), args)
        subprocess.run(
            [sys.executable, "-c", RUN, path, tmp_path / "in.npz", tmp_path / "out.npz"], check=True
        )
        got = np.load(tmp_path / "out.npz")
        for i, y in enumerate(want):
            np.testing.assert_allclose(got[f"y{i:02}"], y, rtol=2e-4, atol=2e-5)


class Branching(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        if y.sum() > 3:
            return y
        return -y


class Counting(nn.Module):
    def forward(self, x):
        for _ in range(int(x.sum())):
            x = x + 1
        return x


def test_a_module_becomes_a_program_in_one_call():
    model, _, ((x,), (y,)) = exported("mlp")
    run = rl.compile(model, (x,), dynamic_shapes=({0: BATCH},))
    for given in (x, y):
        np.testing.assert_allclose(
            run(given.numpy()), results(model, (given,))[0], rtol=1e-4, atol=1e-5
        )
    with pytest.raises(rl.ArgumentError, match=r"E0913.*torch.nn.Module"):
        rl.compile(lambda x: x, (x,))


@pytest.mark.parametrize("module", [Branching, Counting])
def test_python_that_branches_on_values_is_refused_with_its_line(module):
    with pytest.raises(rl.UserError) as refused:
        rl.compile(module(), (torch.ones(3),))
    text = str(refused.value)
    assert refused.value.code == "E0914" and "torch.cond" in text
    line = module.forward.__code__.co_firstlineno
    assert 'test_torch_export.py", line ' in text and "in forward" in text
    assert line < int(text.split('.py", line ')[1].split(",")[0]) < line + 4


class ThroughSparse(nn.Module):
    def forward(self, x):
        return (x * 2).to_sparse().to_dense()


class Nesting(nn.Module):
    def forward(self, x):
        return torch.nested.as_nested_tensor([x, x[:2]]).to_padded_tensor(0.0)


class Quantising(nn.Module):
    def forward(self, x):
        return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).dequantize()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("code", "module", "example"),
    [
        ("E0501", ThroughSparse(), torch.eye(3)),
        ("E0914", Nesting(), torch.eye(3)),
        ("E0914", Quantising(), torch.eye(3)),
        ("E0914", nn.ReLU(), torch.eye(3).to_sparse()),
        ("E0914", nn.ReLU(), torch.nested.nested_tensor([torch.eye(3)], layout=torch.jagged)),
        ("E0914", nn.ReLU(), torch.quantize_per_tensor(torch.eye(3), 0.1, 3, torch.quint8)),
    ],
)
def test_layouts_that_are_not_dense_are_refused(code, module, example):
    with pytest.raises(rl.UserError) as refused:
        rl.compile(module, (example,))
    assert refused.value.code == code
    with pytest.raises(rl.UserError, match=r"E0504[\s\S]*not strided"):
        rl.frontend.from_exported_program(
            torch.export.export(nn.ReLU(), (torch.eye(3).to_sparse(),), strict=False)
        )


def test_sizes_that_an_export_cannot_leave_open_are_refused():
    def refused(shape, sizes):
        with pytest.raises(rl.UserError, match="E0914") as error:
            rl.compile(nn.Linear(3, 2), (torch.ones(shape),), dynamic_shapes=(sizes,))
        return str(error.value)

    assert "batch = 3" in refused((2, 3), {1: BATCH})
    assert "not in range [4," in refused((2, 3), {0: torch.export.Dim("batch", min=4)})
    for open_size in BATCH, torch.export.Dim.DYNAMIC:
        assert "open sizes are 2 or more" in refused((1, 3), {0: open_size})
        # The size of 1 is not one that is left open.
        assert "open sizes are 2 or more" not in refused((1, 2, 3), {2: open_size})


def test_a_torchscript_program_is_refused_with_what_reads_it():
    with pytest.raises(rl.UserError, match=r"E0914[\s\S]*from_pytorch"):
        rl.compile(torch.jit.script(nn.ReLU()), (torch.ones(3),))


def test_errors_of_the_module_itself_are_its_own():
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("this module fails")

    with pytest.raises(ValueError, match="this module fails"):
        rl.compile(Failing(), (torch.ones(3),))


# What a machine without PyTorch has: Relay and NumPy, as the wheel installs them.
DEPLOYED = """
import importlib.util, sys
import numpy as np, relay
assert importlib.util.find_spec("torch") is None
x = np.load("x.npy")
mod, _ = relay.frontend.from_exported_program("net.pt2", params="tuned.pt")
np.save("y.npy", relay.build(mod)(x))
np.save("z.npy", relay.runtime.load_module("net.so")(x))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A virtual environment with Relay and NumPy and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    backend = importlib.import_module("nanobind_backend")
    for package in (Path(p.__file__).parent for p in (rl, np, backend)):
        for part in package.parent.glob(f"{package.name}*"):
            if part.is_dir():
                shutil.copytree(part, site / part.name, symlinks=True)
    shutil.copy(RELAY, folder / "bin" / "relay")
    return folder / "bin"


@pytest.mark.slow
def test_an_environment_without_pytorch_compiles_and_runs(bare, tmp_path):
    model, program, (_, (x,)) = exported("encoder")
    torch.export.save(program, tmp_path / "net.pt2")
    for p in model.parameters():
        p.data += 0.01 * torch.randn_like(p)
    torch.save(model.state_dict(), tmp_path / "tuned.pt")
    np.save(tmp_path / "x.npy", x.numpy())
    (want,) = results(model, (x,))

    def run(*command):
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run([bare / command[0], *command[1:]], check=True, cwd=tmp_path, env=environment)

    run("relay", "check", "net.pt2")
    tuned = ("--params", "tuned.pt")
    run("relay", "compile", "net.pt2", *tuned, "-o", "net.so")
    (name,) = [slot.name for slot in rl.runtime.load_module(tmp_path / "net.so").input_info()]
    run("relay", "run", "net.pt2", *tuned, "--input", f"{name}=x.npy", "--output", "out")
    run("python", "-c", DEPLOYED)
    made = [*(tmp_path / "out").glob("*.npy"), tmp_path / "y.npy", tmp_path / "z.npy"]
    assert len(made) == 3
    for y in made:
        np.testing.assert_allclose(np.load(y), want, rtol=2e-4, atol=2e-5)


def test_a_program_in_memory_is_imported():
    model, program, ((x,), _) = exported("mlp")
    mod, params = rl.frontend.from_exported_program(program, freeze_params=False)
    assert len(params) == 6
    got = rl.build(mod, params=params)(x.numpy())
    np.testing.assert_allclose(got, results(model, (x,))[0], rtol=1e-4, atol=1e-5)


def test_decomposed_programs_are_imported_too(tmp_path):
    for name in ("resnet", "encoder", "unet"):
        model, program, (args, *_) = exported(name)
        program = program.run_decompositions()
        mod, _ = rl.frontend.from_exported_program(program)
        got = rl.build(mod)(*(a.numpy() for a in args))
        np.testing.assert_allclose(got, results(model, args)[0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_a_program_keeps_the_sizes_that_it_was_exported_with(kept, tmp_path):
    sizes = ({0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC},)
    model = nn.Conv2d(3, 4, 3)
    program = torch.export.export(model, (torch.randn(5, 3, 9, 8),), dynamic_shapes=sizes)
    if kept == "in a file":
        torch.export.save(program, tmp_path / "model.pt2")
        mod, _ = rl.frontend.from_exported_program(tmp_path / "model.pt2")
    else:
        mod, _ = rl.frontend.from_exported_program(program.run_decompositions())
    typical = dict(mod["main"].attrs["typical_sizes"])
    names = [v.name_hint for v in mod["main"].type_params]
    assert typical == dict(zip(names, (5, 9), strict=True))


def test_a_size_outside_of_its_exported_range_is_an_error():
    model = nn.Linear(3, 2)
    batch = torch.export.Dim("batch", min=4, max=64)
    program = torch.export.export(model, (torch.randn(5, 3),), dynamic_shapes=({0: batch},))
    mod, _ = rl.frontend.from_exported_program(program)
    run = rl.build(mod)
    for good in (4, 64):
        assert run(np.zeros((good, 3), np.float32)).shape == (good, 2)
    for bad in (3, 65):
        with pytest.raises(rl.RelayError) as raised:
            run(np.zeros((bad, 3), np.float32))
        assert raised.value.code.startswith("E06")
        assert "4..64" in str(raised.value)
