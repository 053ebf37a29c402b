"""Slow forms of :mod:`mixmem.kernels.streams`: splitmix64 in Python's whole numbers, cut to 64 bits."""

from __future__ import annotations

import math

_LARGEST = 2**64 - 1


def mixed_bits(state):
    """Return the 64 random bits that belong to a state of the splitmix64 generator."""
    z = int(state)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _LARGEST
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _LARGEST
    return z ^ (z >> 31)


def mixed(state):
    """Return the next state and 64 random bits of the splitmix64 generator."""
    state = (int(state) + 0x9E3779B97F4A7C15) & _LARGEST
    return state, mixed_bits(state)


def unit(bits):
    """Return a number in [0, 1) from the upper 53 of 64 random bits."""
    return (int(bits) >> 11) / 2**53


def stream(seed, step, row):
    """Return the state at which a row's stream of a step starts."""
    start = (int(step) * 0xD1342543DE82EF95 + int(row)) & _LARGEST
    return mixed(int(seed) ^ start)[1]


def log_gamma_draw(state, shape):
    """Return the next state and the logarithm of a draw from Gamma(shape, 1), by Marsaglia and Tsang's rejection.

    A shape below one: a draw of Gamma(shape + 1) times u^(1 / shape). Otherwise d (1 + z / sqrt(9 d))^3, with
    d = shape - 1/3 and z normal (after Box and Muller), is accepted with the probability that makes it a gamma draw.
    """
    if shape < 1.0:
        state, bits = mixed(state)
        boost = math.log(max(unit(bits), 1e-300)) / shape
        state, value = log_gamma_draw(state, shape + 1.0)
        return state, boost + value
    d = shape - 1.0 / 3.0
    while True:
        state, radius_bits = mixed(state)
        state, angle_bits = mixed(state)
        state, accept_bits = mixed(state)
        z = math.sqrt(-2.0 * math.log(1.0 - unit(radius_bits))) * math.cos(2.0 * math.pi * unit(angle_bits))
        v = (1.0 + z / math.sqrt(9.0 * d)) ** 3
        if v > 0.0 and math.log(1.0 - unit(accept_bits)) < z * z / 2 + d * (1.0 - v + math.log(v)):
            return state, math.log(d * v)
