"""Rows of numbers added four at a time, as whole vector registers hold them.

Compilers take the short loops over components one number after the other, or look first whether lanes are worth it;
here lanes are asked for. Every number is added by itself, so bits are those of the plain loop.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 4
"""Numbers that are added at once; rows are padded to a multiple."""

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def add_lanes(out, a, values, i, at):
        """Add values[i] to out[a], numbers at to at + LANES."""
        out[a, at : at + LANES] += values[i, at : at + LANES]

    def add_four(out, i, table, a, b, c, d, at):
        """Add rows a, b, c and d of a table to out[i], numbers at to at + LANES."""
        some = slice(at, at + LANES)
        out[i, some] += (table[a, some] + table[b, some]) + (table[c, some] + table[d, some])

else:

    def _lanes_at(context, builder, array_type, array, row, at):
        """Return the place of LANES numbers of a row of a contiguous array of two dimensions."""
        found = context.make_array(array_type)(context, builder, array)
        width = cgutils.unpack_tuple(builder, found.shape, 2)[1]
        place = builder.gep(found.data, [builder.add(builder.mul(row, width), at)])
        lanes = ir.VectorType(context.get_value_type(array_type.dtype), LANES)
        return builder.bitcast(place, lanes.as_pointer())

    def _load(builder, place):
        return builder.load(place, align=np.dtype(float).itemsize)

    def _add_at(builder, place, lanes):
        builder.store(builder.fadd(_load(builder, place), lanes), place, align=np.dtype(float).itemsize)

    @intrinsic
    def add_lanes(typing_context, out, a, values, i, at):
        """Add values[i] to out[a], numbers at to at + LANES."""

        def generate(context, builder, signature, arguments):
            to, row, come, own, first = arguments
            lanes = _load(builder, _lanes_at(context, builder, signature.args[2], come, own, first))
            _add_at(builder, _lanes_at(context, builder, signature.args[0], to, row, first), lanes)
            return context.get_dummy_value()

        return types.void(out, types.intp, values, types.intp, types.intp), generate

    @intrinsic
    def add_four(typing_context, out, i, table, a, b, c, d, at):
        """Add rows a, b, c and d of a table to out[i], numbers at to at + LANES."""

        def generate(context, builder, signature, arguments):
            to, row, come, *four, first = arguments
            p, q, r, s = (
                _load(builder, _lanes_at(context, builder, signature.args[2], come, one, first)) for one in four
            )
            lanes = builder.fadd(builder.fadd(p, q), builder.fadd(r, s))
            _add_at(builder, _lanes_at(context, builder, signature.args[0], to, row, first), lanes)
            return context.get_dummy_value()

        return types.void(out, types.intp, table, *[types.intp] * 5), generate
