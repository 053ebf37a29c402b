"""Whole numbers out of bytes of text."""

from __future__ import annotations

from mixmem.kernels._numba import kernel

NEWLINE, BLANK, TAB, RETURN, COLON, ZERO, NINE = 10, 32, 9, 13, 58, 48, 57


@kernel
def whole_numbers(text, out):
    """Set out to the whole numbers in text (bytes as uint8), parted by blanks, tabs, colons or line ends.

    Returns how many there are, and the place of the first byte that is none of these, or -1. out must be long enough:
    half of the bytes and one more.
    """
    count, value, inside = 0, 0, False
    for at in range(text.shape[0]):
        byte = text[at]
        if ZERO <= byte <= NINE:
            value = 10 * value + (byte - ZERO)
            inside = True
        elif byte in (NEWLINE, BLANK, TAB, RETURN, COLON):
            if inside:
                out[count] = value
                count += 1
                value, inside = 0, False
        else:
            return count, at
    if inside:
        out[count] = value
        count += 1
    return count, -1
