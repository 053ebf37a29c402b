"""Random numbers inside kernels: a stream of splitmix64 for every row, so that no draw depends on who makes it."""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel

STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""From one state to the next."""


@kernel
def mixed_bits(state):
    """Return the 64 random bits that belong to a state of the splitmix64 generator."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def mixed(state):
    """Return the next state and 64 random bits of the splitmix64 generator."""
    state = state + STRIDE
    return state, mixed_bits(state)


@kernel
def unit(bits):
    """Return a number in [0, 1) from 64 random bits."""
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def stream(seed, step, row):
    """Return the state at which a row's stream of a step starts."""
    _, state = mixed(np.uint64(seed) ^ (np.uint64(step) * np.uint64(0xD1342543DE82EF95) + np.uint64(row)))
    return state


@kernel
def log_gamma_draw(state, shape):
    """Return the next state and the logarithm of a draw from Gamma(shape, 1), by Marsaglia and Tsang's rejection.

    The logarithm, since draws of small shapes are smaller than any number.
    """
    boost = 0.0
    if shape < 1.0:
        state, bits = mixed(state)
        boost = np.log(max(unit(bits), 1e-300)) / shape
        shape += 1.0
    third = shape - 1.0 / 3.0
    while True:
        state, bits = mixed(state)
        radius = np.sqrt(-2.0 * np.log(1.0 - unit(bits)))
        state, bits = mixed(state)
        normal = radius * np.cos(2.0 * np.pi * unit(bits))
        cube = (1.0 + normal / np.sqrt(9.0 * third)) ** 3
        state, bits = mixed(state)
        if cube > 0.0 and np.log(1.0 - unit(bits)) < 0.5 * normal * normal + third * (1.0 - cube + np.log(cube)):
            return state, boost + np.log(third * cube)
