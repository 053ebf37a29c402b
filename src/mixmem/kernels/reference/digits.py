"""Slow forms of :mod:`mixmem.kernels.digits`."""

from __future__ import annotations


def whole_numbers(text, out):
    """Split and convert; the first byte that is no digit and parts no numbers ends it."""
    raw = bytes(text)
    bad = next((at for at, byte in enumerate(raw) if byte not in b"0123456789 \t\r\n:"), -1)
    read = raw if bad < 0 else raw[:bad]
    whole = read.replace(b":", b" ").split()
    if bad >= 0 and read[-1:].isdigit():
        whole = whole[:-1]  # not ended before the bad byte
    out[: len(whole)] = [int(part) for part in whole]
    return len(whole), bad
