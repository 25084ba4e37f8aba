#!/usr/bin/env python3
"""Writes src/frontend/torch/special_tables.h: Chebyshev series of special functions, fitted with mpmath.

    python tools/special_tables.py > src/frontend/torch/special_tables.h

Each series is of a smooth factor of a function on an interval, which t from -1 to 1 runs through:
special.cc says how t follows from the argument and how the function follows from the factor. A series ends
where the coefficients fall below 2e-17 of the greatest one.
"""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

mp.dps = 50
NODES = 96
Function = Callable[[mpf], mpf]


def series(f: Function) -> list[mpf]:
    """The coefficients of f(t) = c[0] T_0(t) + c[1] T_1(t) + ..., by interpolation."""
    angles = [mp.pi * (k + mpf(1) / 2) / NODES for k in range(NODES)]
    values = [f(mp.cos(a)) for a in angles]
    out = [
        2 * mp.fsum(v * mp.cos(n * a) for v, a in zip(values, angles, strict=True)) / NODES
        for n in range(NODES)
    ]
    out[0] /= 2
    bound = max(abs(c) for c in out) * mpf("2e-17")
    while abs(out[-1]) < bound:
        out.pop()
    return out


def on(low: float, high: float, f: Function) -> Function:
    """f over [low, high] as a function of t."""
    a, b = mpf(low), mpf(high)
    return lambda t: f((a + b) / 2 + (b - a) / 2 * t)


def phase(order: int, part: str) -> Function:
    """Of u = (8 / x)^2: Hankel's amplitudes of J and Y, P and Q * x / 8."""

    def f(u: mpf) -> mpf:
        x = 8 / mp.sqrt(u)
        angle = x - (2 * order + 1) * mp.pi / 4
        c, s = mp.cos(angle), mp.sin(angle)
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        scale = mp.sqrt(mp.pi * x / 2)
        return scale * (j * c + y * s) if part == "p" else scale * (y * c - j * s) * x / 8

    return f


AIRY_LEAST, AIRY_GREATEST = mpf(-4), mpf(2)


def zeta_of(x: mpf) -> mpf:
    return mpf(2) / 3 * x ** (mpf(3) / 2)


def airy_phase(part: str) -> Function:
    """Of u = (zeta(4) / zeta)^2: the amplitudes of Ai below -4, Q divided by sqrt(u)."""
    least = zeta_of(-AIRY_LEAST)

    def f(u: mpf) -> mpf:
        zeta = least / mp.sqrt(u)
        x = (zeta * 3 / 2) ** (mpf(2) / 3)
        angle = zeta - mp.pi / 4
        c, s = mp.cos(angle), mp.sin(angle)
        scale = mp.sqrt(mp.pi) * x ** (mpf(1) / 4)
        ai, bi = scale * mp.airyai(-x), scale * mp.airybi(-x)
        return ai * c - bi * s if part == "p" else (ai * s + bi * c) / mp.sqrt(u)

    return f


def airy_tail(z: mpf) -> mpf:
    """Of z = zeta(2) / zeta: the factor of the decay of Ai above 2."""
    zeta = zeta_of(AIRY_GREATEST) / z
    x = (zeta * 3 / 2) ** (mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * x ** (mpf(1) / 4) * mp.exp(zeta) * mp.airyai(x)


def erfcx(t: mpf) -> mpf:
    """Of t = (x - 3.75) / (x + 3.75): (1 + 2 x) exp(x^2) erfc(x)."""
    x = mpf("3.75") * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def normal_quantile(log_p: mpf, guess: mpf) -> mpf:
    """The x below 0 at which the logarithm of the normal distribution is log_p."""
    return mp.findroot(lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) - log_p, guess)


def quantile_centre(u: mpf) -> mpf:
    """Of u = w^2 with w = p - 1/2: the quantile over w."""
    if u <= 0:
        return mp.sqrt(2 * mp.pi)
    w = mp.sqrt(u)
    return -normal_quantile(mp.log(mpf(1) / 2 - w), -w * mpf("2.5")) / w


def quantile_tail(z: mpf) -> mpf:
    """Of z = 1 / s with s = sqrt(-2 log p): (s - log(s) / s - |quantile|) s."""
    s = 1 / z
    near = s - mp.log(s) / s
    return (near + normal_quantile(-s * s / 2, -near + 1 / s)) * s


def decayed(order: int, name: str) -> Function:
    def f(z: mpf) -> mpf:
        x = 8 / z if name == "i" else 2 / z
        if name == "i":
            return mp.exp(-x) * mp.sqrt(x) * mp.besseli(order, x)
        return mp.exp(x) * mp.sqrt(x) * mp.besselk(order, x)

    return f


def tables() -> dict[str, tuple[str, list[mpf]]]:
    two_over_pi = 2 / mp.pi
    e2 = mpf(1) / 2 - mp.exp(-2)

    def of_root(f: Function) -> Function:
        return lambda u: f(mp.sqrt(u))

    return {
        "kI0Small": (
            "exp(-x) I0(x), x in [0, 8]",
            series(on(0, 8, lambda x: mp.exp(-x) * mp.besseli(0, x))),
        ),
        "kI0Large": ("exp(-x) sqrt(x) I0(x), 8 / x in (0, 1]", series(on(0, 1, decayed(0, "i")))),
        "kI1Small": (
            "exp(-x) I1(x) / x, x in [0, 8]",
            series(on(0, 8, lambda x: mp.exp(-x) * mp.besseli(1, x) / x)),
        ),
        "kI1Large": ("exp(-x) sqrt(x) I1(x), 8 / x in (0, 1]", series(on(0, 1, decayed(1, "i")))),
        "kK0Small": (
            "K0(x) + log(x / 2) I0(x), x^2 in [0, 4]",
            series(
                on(0, 4, of_root(lambda x: mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)))
            ),
        ),
        "kK0Large": ("exp(x) sqrt(x) K0(x), 2 / x in (0, 1]", series(on(0, 1, decayed(0, "k")))),
        "kK1Small": (
            "x (K1(x) - log(x / 2) I1(x)), x^2 in [0, 4]",
            series(
                on(
                    0,
                    4,
                    of_root(lambda x: x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x))),
                )
            ),
        ),
        "kK1Large": ("exp(x) sqrt(x) K1(x), 2 / x in (0, 1]", series(on(0, 1, decayed(1, "k")))),
        "kJ0Small": (
            "J0(x), x^2 in [0, 64]",
            series(on(0, 64, of_root(lambda x: mp.besselj(0, x)))),
        ),
        "kJ1Small": (
            "J1(x) / x, x^2 in [0, 64]",
            series(on(0, 64, of_root(lambda x: mp.besselj(1, x) / x))),
        ),
        "kY0Small": (
            "Y0(x) - 2 / pi log(x) J0(x), x^2 in [0, 64]",
            series(
                on(
                    0,
                    64,
                    of_root(
                        lambda x: mp.bessely(0, x) - two_over_pi * mp.log(x) * mp.besselj(0, x)
                    ),
                )
            ),
        ),
        "kY1Small": (
            "(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x, x^2 in [0, 64]",
            series(
                on(
                    0,
                    64,
                    of_root(
                        lambda x: (
                            (
                                mp.bessely(1, x)
                                - two_over_pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)
                            )
                            / x
                        )
                    ),
                )
            ),
        ),
        "kP0": ("P of order 0, (8 / x)^2 in (0, 1]", series(on(0, 1, phase(0, "p")))),
        "kQ0": ("Q x / 8 of order 0, (8 / x)^2 in (0, 1]", series(on(0, 1, phase(0, "q")))),
        "kP1": ("P of order 1, (8 / x)^2 in (0, 1]", series(on(0, 1, phase(1, "p")))),
        "kQ1": ("Q x / 8 of order 1, (8 / x)^2 in (0, 1]", series(on(0, 1, phase(1, "q")))),
        "kErfcx": ("(1 + 2 x) exp(x^2) erfc(x), t = (x - 3.75) / (x + 3.75)", series(erfcx)),
        "kAiryMiddle": ("Ai(x), x in [-4, 2]", series(on(-4, 2, mp.airyai))),
        "kAiryTail": (
            "2 sqrt(pi) x^(1/4) exp(zeta) Ai(x), zeta(2) / zeta in (0, 1]",
            series(on(0, 1, airy_tail)),
        ),
        "kAiryP": (
            "P of Ai below -4, (zeta(4) / zeta)^2 in (0, 1]",
            series(on(0, 1, airy_phase("p"))),
        ),
        "kAiryQ": ("Q zeta / zeta(4) of Ai below -4", series(on(0, 1, airy_phase("q")))),
        "kQuantileCentre": (
            "ndtri(1/2 + w) / w, w^2 in [0, (1/2 - exp(-2))^2]",
            series(on(0, e2 * e2, quantile_centre)),
        ),
        "kQuantileTail": (
            "(s - log(s) / s - |x|) s, 1 / s in [1/8, 1/2]",
            series(on(0.125, 0.5, quantile_tail)),
        ),
        "kQuantileFar": (
            "the same, 1 / s in [1/64, 1/8]",
            series(on(1 / 64, 0.125, quantile_tail)),
        ),
    }


def main() -> None:
    print(
        "// Chebyshev series that special.cc sums; written by tools/special_tables.py.\n#pragma once\n"
    )
    print("namespace relay::frontend::torch::special_tables {\n")
    for name, (what, coefficients) in tables().items():
        numbers = ", ".join(mp.nstr(c, 18, strip_zeros=False) for c in coefficients)
        print(f"// {what}\ninline constexpr double {name}[] = {{{numbers}}};")
    print("\n}  // namespace relay::frontend::torch::special_tables")


if __name__ == "__main__":
    main()
