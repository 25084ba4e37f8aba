"""Complex tensors of PyTorch: pairs of reals in programs, complex tensors outside of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import relay

STRICT = {"fallback": False}


@pytest.fixture(autouse=True)
def from_the_beginning():
    torch._dynamo.reset()
    relay.torch.reset()
    torch.manual_seed(3)
    yield
    torch._dynamo.reset()


def close(got, want):
    torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5)


def same_as_eager(function, *arguments, **how):
    fast = torch.compile(function, backend="relay", options=STRICT, fullgraph=True, **how)
    close(fast(*arguments), function(*arguments))
    assert not relay.torch.report().graphs[0].fallbacks


def complexes(*shape):
    return torch.randn(*shape, dtype=torch.complex64)


def arithmetic(a, b):
    return a * b, a / b, a + 2 * b, a - b.conj(), (3 - 2j) * a, 1 / b, a**3


def parts(a, b):
    return a.real, b.imag, a.abs(), b.angle(), torch.view_as_real(a), torch.isnan(a), a == b


def functions(a, b):
    return a.exp(), b.log(), a.sqrt(), b.sin(), a.cos(), b.sinh(), a.cosh(), torch.sgn(b)


def moves(a, b):
    both = torch.cat([a, b.flip(0)]).t().contiguous()
    return (
        both[1:, ::2],
        both.sum(0),
        torch.where(a.real > 0, a, b),
        torch.stack([a, b], -1).mean(1),
        a.masked_fill(b.imag > 0, 1 + 2j),
        nn.functional.pad(a, (1, 2), value=1.5),
        torch.zeros_like(a) + torch.ones_like(b),
        b.to(torch.complex128),
    )


def products(a, b):
    return a @ b.mH, torch.outer(a[0], b[0].conj()), a.mT @ b


@pytest.mark.parametrize("function", [arithmetic, parts, functions, moves, products])
def test_operators_of_complex_tensors_are_eager_modes(function):
    same_as_eager(function, complexes(3, 4), complexes(3, 4))


def test_real_and_complex_operands_mix():
    def mixed(z, x, k):
        return z * x, x / z, z + k, torch.complex(x, x + 1), torch.polar(x.abs(), x)

    same_as_eager(mixed, complexes(3, 4), torch.randn(3, 4), torch.arange(4))


def test_numbers_that_the_graph_computes_are_real():
    def sizes(z):
        n = z.shape[0]
        return (
            z + n,
            z - 2 * n,
            torch.where(z.real > 0, z, n),
            nn.functional.pad(z, (1, 1), value=n),
        )

    for n in (3, 5, 7):
        same_as_eager(sizes, complexes(n, 2), dynamic=True)


def test_what_is_imaginary_is_true():
    def truth(z):
        return z.to(torch.bool), z.bool().sum()

    same_as_eager(truth, torch.tensor([0, 1j, 2, -0.0, complex("nan"), 1 + 1j]))


@pytest.mark.parametrize("kinds", [(64, 128), (128, 64), (64, 0), (0, 64)])
def test_numbers_are_compared_in_the_wider_precision(kinds):
    exact = torch.tensor([0.1, 0.5, 1 / 3], dtype=torch.float64)
    of = {64: exact.to(torch.complex64), 128: exact.to(torch.complex128), 0: exact}
    same_as_eager(lambda a, b: (a == b, a != b), *(of[k] for k in kinds))


def test_the_divisor_may_be_large_or_small():
    a, b = complexes(4), torch.tensor([1e25 + 1e25j, 1e-25 - 1e-25j, 3e30j, 2e-30 + 0j])
    fast = torch.compile(lambda x, y: x / y, backend="relay", options=STRICT)
    torch.testing.assert_close(fast(a, b), a / b, rtol=1e-5, atol=0)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms_are_eager_modes(norm):
    def transforms(x, z):
        f = torch.fft
        return (
            f.fft(z, norm=norm),
            f.ifft2(z, norm=norm),
            f.rfft(x, n=9, norm=norm),
            f.irfft(z, n=7, norm=norm),
            f.irfftn(z, norm=norm),
            f.hfft(z, norm=norm),
            f.ihfft(x, norm=norm),
            f.rfftn(x, norm=norm),
            f.fftshift(z),
        )

    same_as_eager(transforms, torch.randn(4, 6), complexes(4, 6))


def test_short_time_transforms_and_back():
    window = torch.hann_window(16)

    def there(x):
        return torch.stft(x, 16, 4, window=window, return_complex=True)

    same_as_eager(there, torch.randn(2, 64))


class Rotary(nn.Module):
    """Positions as turns of complex numbers, as in the first Llama."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(12.0), 100.0 ** -torch.linspace(0, 1, 4))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))
        self.project = nn.Linear(8, 8)

    def forward(self, x):
        pairs = torch.view_as_complex(self.project(x).unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.turns[: x.shape[1]]).flatten(-2)


def test_a_model_with_a_complex_buffer_has_eager_modes_gradients():
    model = Rotary()
    fast = torch.compile(model, backend="relay", options=STRICT)
    x = torch.randn(2, 5, 8)
    want = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    got = torch.autograd.grad(fast(x).square().sum(), list(model.parameters()))
    close(got, want)


def test_gradients_of_complex_parameters_are_eager_modes():
    z = complexes(3, 4).requires_grad_()

    def loss(z):
        spectrum = torch.fft.fft(z * (2 - 1j), norm="ortho")
        return (spectrum.abs() + spectrum.real).sum()

    fast = torch.compile(loss, backend="relay", options=STRICT)
    close(torch.autograd.grad(fast(z), z), torch.autograd.grad(loss(z), z))


def test_open_sizes_and_strides_of_complex_tensors():
    fast = torch.compile(
        lambda z: (z.t() * 2j, z.sum(0)), backend="relay", options=STRICT, dynamic=True
    )
    for n in (3, 5, 8):
        z = complexes(4, n).t() if n == 5 else complexes(n, 4)
        close(fast(z), (z.t() * 2j, z.sum(0)))
    assert len(relay.torch.report().graphs) <= 2


def test_arguments_that_are_conjugate_views():
    z = complexes(3, 4)
    same_as_eager(lambda a, b: (a * 2, b + 1), z.conj(), z.conj().imag)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_half_precision_and_double_precision():
    same_as_eager(lambda x: torch.fft.rfft(x).abs(), torch.randn(2, 8, dtype=torch.float64))
    torch._dynamo.reset()
    relay.torch.reset()
    x = torch.randn(4, dtype=torch.float16)
    fast = torch.compile(lambda x: torch.complex(x, x * 2) + x, backend="relay", options=STRICT)
    torch.testing.assert_close(
        fast(x).to(torch.complex64), (torch.complex(x, x * 2) + x).to(torch.complex64)
    )


def test_branches_of_complex_tensors():
    def chosen(p, z):
        return torch.cond(p, lambda z: z * 1j, lambda z: z.conj().clone(), (z,))

    fast = torch.compile(chosen, backend="relay", fullgraph=True)
    for p in (True, False):
        close(fast(torch.tensor(p), z := complexes(3)), chosen(torch.tensor(p), z))


def test_an_operator_without_a_rule_is_named():
    fast = torch.compile(lambda z: z.tanh(), backend="relay", options=STRICT)
    with pytest.raises(Exception, match=r"aten.tanh.default has no rule for complex numbers"):
        fast(complexes(3))
    torch._dynamo.reset()
    z = complexes(3)
    close(torch.compile(lambda z: z.tanh() * 2, backend="relay")(z), z.tanh() * 2)


# ---- Exported programs: inputs, weights and results are reals with a last axis of parts


def run_exported(program, *arguments):
    mod, _ = relay.frontend.from_exported_program(program)
    given = [torch.view_as_real(a) if a.is_complex() else a for a in arguments]
    return relay.build(mod)(*(a.numpy() for a in given))


def test_exported_programs_with_complex_inputs_and_weights(tmp_path):
    model, x = Rotary().eval(), torch.randn(2, 5, 8)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "rotary.pt2")
    got = run_exported(tmp_path / "rotary.pt2", x)
    close(torch.from_numpy(got), model(x).detach())

    class Product(nn.Module):
        def forward(self, a, b):
            return a * b

    a, b = complexes(3), complexes(3)
    got = run_exported(torch.export.export(Product(), (a, b)), a, b)
    close(torch.view_as_complex(torch.from_numpy(got)), a * b)


def test_writes_into_complex_tensors():
    class Writes(nn.Module):
        def forward(self, z):
            y = z.clone()
            y.mul_(2j)
            y[0] = 1
            return y

    z = complexes(3, 2)
    got = run_exported(torch.export.export(Writes(), (z,)), z)
    close(torch.view_as_complex(torch.from_numpy(got)), Writes()(z))


def test_the_first_power_is_a_tensor_of_its_own():
    class Writes(nn.Module):
        def forward(self, z):
            x = z * 2
            y = x**1
            x.mul_(2j)
            return y + x

    z = complexes(3)
    got = run_exported(torch.export.export(Writes(), (z,)), z)
    close(torch.view_as_complex(torch.from_numpy(got)), Writes()(z))


def test_a_write_into_the_imaginary_part_behind_a_view_as_reals_is_refused():
    class Writes(nn.Module):
        def forward(self, z):
            y = z * 2
            imaginary = y.imag
            pairs = torch.view_as_real(y)
            imaginary.add_(1)
            return pairs + 1

    z = complexes(3)
    program = torch.export.export(Writes(), (z,))
    with pytest.raises(relay.UserError, match="also read as reals"):
        run_exported(program, z)


def test_a_write_behind_a_view_as_reals_is_refused():
    class Writes(nn.Module):
        def forward(self, z):
            y = z * 2
            pairs = torch.view_as_real(y)
            y.mul_(2j)
            return pairs + 1

    z = complexes(3)
    program = torch.export.export(Writes(), (z,))
    with pytest.raises(relay.UserError, match="also read as reals"):
        run_exported(program, z)
