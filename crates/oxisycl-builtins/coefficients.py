#!/usr/bin/env python3
"""Prints the coefficients of the polynomials in `src/single`.

Each polynomial minimises the largest error that it causes in the function, relative to the function (Lawson's iteration on 401
Chebyshev points). Coefficients are rounded to `f32` one after the other, the first one first; those that are left are fitted again each time, so
that they make up for the rounding. Needs `mpmath`. `python3 minimax.py [NAME...]`
"""
import struct
import sys

import numpy
from mpmath import (mp, mpf, mpmathify, cos, sin, tan, exp, expm1, log, log1p, pi, sqrt, atan, asin, atanh, sinh, tanh, erf, erfc, loggamma)

mp.dps = 50


def f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def minimax(g, w, powers, z):
    """Coefficients c with sum(c[k] * z**powers[k]) near g(z), the error weighted with w(z); by Lawson's iteration."""
    basis = w[:, None] * z[:, None] ** numpy.array(powers)[None, :]
    scale = numpy.abs(basis).max(axis=0)
    emphasis = numpy.ones(len(z))
    best = None
    for _ in range(200):
        root = numpy.sqrt(emphasis)
        solution = numpy.linalg.lstsq(basis / scale * root[:, None], g * w * root, rcond=None)[0] / scale
        errors = numpy.abs(basis @ solution - g * w)
        if best is None or errors.max() < best[0]:
            best = (errors.max(), solution)
        emphasis *= errors + 1e-3 * errors.max()
        emphasis /= emphasis.sum()
    return best


def fit(name, g, w, degree, a, b, fixed=()):
    """Fits a polynomial of the given degree whose first coefficients may be given."""
    a, b = mpf(a), mpf(b)
    points = [(a + b) / 2 - (b - a) / 2 * cos(pi * k / 400) for k in range(401)]
    z = numpy.array([float(p) for p in points])
    exact = [g(p) for p in points]
    weights = numpy.array([float(w(p)) for p in points])
    known = [f32(c) for c in fixed]
    powers = list(range(degree + 1))
    ideal = None
    while len(known) < degree + 1:
        rest = [e - sum(c * p ** k for k, c in enumerate(known)) for e, p in zip(exact, points)]
        error, coefficients = minimax(numpy.array([float(r) for r in rest]), weights, powers[len(known):], z)
        ideal = ideal or error
        known.append(f32(coefficients[0]))
    final = max(abs((sum(c * p ** k for k, c in enumerate(known)) - e) * v) for p, e, v in zip(points, exact, weights))
    print(f"{name}: error 2^{float(log(final, 2)) if final else 0:.2f} (2^{numpy.log2(ideal):.2f} before rounding)")
    print("    " + ", ".join(shortest(c) for c in known))


def shortest(c):
    text = numpy.format_float_scientific(numpy.float32(float(c)), unique=True, trim="0")
    mantissa, exponent = text.split("e")
    number = f"{mantissa}e{int(exponent)}"
    return number[:-2] if number.endswith("e0") else number


def z_of(h, power):
    """A function of z = x * x."""
    return lambda z: h(sqrt(z))


def removable(h, at_zero):
    return lambda z: at_zero if z == 0 else h(z)


LN2 = log(mpf(2))
TINY = mpf(10) ** -30


def safe(h):
    """h, extended to 0 by a nearby value."""
    return lambda z: h(z if abs(z) > mpf(10) ** -12 else mpf(10) ** -12)


def erfcx(x):
    return erfc(x) * exp(x * x)


def stirling(x):
    return loggamma(x) - ((x - mpf(1) / 2) * log(x) - x + log(2 * pi) / 2)


A = mpf(3)


def erfc_argument(t):
    """x of t = (x - A) / (x + A)."""
    return A * (1 + t) / (1 - t)


ALL = {
    "exp": lambda: fit("exp: 1 + r + r^2 Q(r)", safe(lambda r: (exp(r) - 1 - r) / r ** 2), lambda r: r * r / exp(r), 4, -0.34668, 0.34668),
    "exp2": lambda: fit("exp2: 1 + r Q(r)", safe(lambda r: (mpf(2) ** r - 1) / r), lambda r: r / mpf(2) ** r, 5, -0.5001, 0.5001),
    "expm1": lambda: fit("expm1: r + r^2 Q(r)", safe(lambda r: (expm1(r) - r) / r ** 2), safe(lambda r: r * r / expm1(r)), 5, -0.34668, 0.34668),
    "log": lambda: fit("log: f - f^2 / 2 + f^3 P(f)", safe(lambda f: (log1p(f) - f + f * f / 2) / f ** 3), safe(lambda f: f ** 3 / log1p(f)), 7, -0.33334, 0.33334),
    "atanh": lambda: fit("pow: atanh(s) = s + s^3 P(s^2)", safe(lambda z: (atanh(sqrt(z)) / sqrt(z) - 1) / z), lambda z: z, 3, 0, 0.02945),
    "sin": lambda: fit("sin: r + r^3 P(r^2)", safe(lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z), lambda z: z, 3, 0, 0.617),
    "cos": lambda: fit("cos: 1 - z/2 + z^2 P(z)", safe(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2), lambda z: z * z / cos(sqrt(z)), 2, 0, 0.617),
    "tan": lambda: fit("tan: r + r^3 P(r^2)", safe(lambda z: (tan(sqrt(z)) / sqrt(z) - 1) / z), safe(lambda z: z * sqrt(z) / tan(sqrt(z))), 6, 0, 0.617),
    "sinpi": lambda: fit("sinpi: r pi + r^3 P(r^2)", safe(lambda z: (sin(pi * sqrt(z)) / sqrt(z) - pi) / z), safe(lambda z: z * sqrt(z) / sin(pi * sqrt(z))), 3, 0, 0.0625),
    "cospi": lambda: fit("cospi: 1 + z P(z)", safe(lambda z: (cos(pi * sqrt(z)) - 1) / z), lambda z: z / cos(pi * sqrt(z)), 3, 0, 0.0625),
    "asin": lambda: fit("asin: x + x^3 P(x^2)", safe(lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z), safe(lambda z: z * sqrt(z) / asin(sqrt(z))), 5, 0, 0.25),
    "atan": lambda: fit("atan: x + x^3 P(x^2)", safe(lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z), safe(lambda z: z * sqrt(z) / atan(sqrt(z))), 8, 0, 1),
    "sinh": lambda: fit("sinh: x + x^3 P(x^2)", safe(lambda z: (sinh(sqrt(z)) / sqrt(z) - 1) / z), safe(lambda z: z * sqrt(z) / sinh(sqrt(z))), 3, 0, 1),
    "tanh": lambda: fit("tanh: x + x^3 P(x^2)", safe(lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z), safe(lambda z: z * sqrt(z) / tanh(sqrt(z))), 5, 0, 0.36),
    "erf": lambda: fit("erf: x 2/sqrt(pi) + x^3 P(x^2)", safe(lambda z: (erf(sqrt(z)) / sqrt(z) - 2 / sqrt(pi)) / z), safe(lambda z: z * sqrt(z) / erf(sqrt(z))), 6, 0, 0.8465),
    "erf_tail": lambda: fit("erf: 1 - exp(-Q(x - 2))", lambda t: -log(erfc(t + 2)), lambda t: erfc(t + 2), 7, -1.081, 1.95),
    "erfcx": lambda: fit("erfc: (1 + 2 x) exp(x^2) erfc(x) = P((x - 3) / (x + 3))", lambda t: (1 + 2 * erfc_argument(t)) * erfcx(erfc_argument(t)), lambda t: 1 / ((1 + 2 * erfc_argument(t)) * erfcx(erfc_argument(t))), 9, (mpf("0.4") - A) / (mpf("0.4") + A), (mpf("10.1") - A) / (mpf("10.1") + A)),
    "stirling": lambda: fit("log gamma: Stirling's series P(1 / x^2) / x", safe(lambda z: stirling(1 / sqrt(z)) * 1 / sqrt(z)), lambda z: sqrt(z), 2, mpf(1) / 45 ** 2, mpf(1) / 16),
    "lgamma1": lambda: fit("log gamma(1 + t) = t P(t)", safe(lambda t: loggamma(1 + t) / t), safe(lambda t: t / loggamma(1 + t)), 11, -0.5, 0.5),
    "lgamma2": lambda: fit("log gamma(2 + t) = t P(t)", safe(lambda t: loggamma(2 + t) / t), safe(lambda t: t / loggamma(2 + t)), 11, -0.5, 1.0),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
