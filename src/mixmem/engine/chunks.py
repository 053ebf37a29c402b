"""Sums over the chunks of a table that is not held at once: here one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Work = Callable[[int], Any]
"""What is computed of a chunk, by its number: something that adds up with that of other chunks."""


class Engine(Protocol):
    """Who runs what is computed of chunks."""

    def total(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Any:
        """Return the sum of work(0), …, work(count - 1), which add up in any order; ``done(1)`` after each.

        ``name`` is what a person sees of it.
        """


class Local:
    """This process: one chunk at a time, whose work threads share."""

    def total(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Any:
        """Return the sum of work(0), …, work(count - 1)."""
        found = work(0)
        done(1)
        for number in range(1, count):
            found = found + work(number)
            done(1)
        return found
