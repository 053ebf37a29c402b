"""Work on the chunks of a table that is not held at once: here one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from mixmem.errors import InputError

KEPT_PART = 4
"""Codes are kept in memory between passes if they take no more than one of so many parts of it."""

Work = Callable[..., Any]
"""What is computed of a chunk, by its number, and by the partitions that hold it where ``work.needs(number)`` names
some."""


@dataclass(frozen=True)
class Partitions:
    """A table in partitions on other machines: what stands for each here, their numbers of rows, and how to have a
    function of one computed where it is, ``ask(function, part, *arguments)``."""

    parts: list[Any]
    lengths: list[int]
    ask: Callable[..., Any]


class Engine(Protocol):
    """Who runs what is computed of chunks. ``local``: this process, whose disk and memory it can use."""

    local: bool

    def total(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Any:
        """Return the sum of work(0), …, work(count - 1), which add up in any order; ``done(1)`` after each.

        ``name`` is what a person sees of it.
        """

    def each(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Iterator[Any]:
        """Yield work(0), …, work(count - 1) in order."""

    def keep(self, name: str, work: Work, count: int, size: int) -> list[Any] | None:
        """Have work(0), …, work(count - 1) kept where they are computed; return what stands for each here.

        None if nothing is kept, as they would take too much memory with ``size`` bytes in all.
        """

    def partitions(self, X: Any) -> Partitions | None:
        """Return the partitions of a table that the engine holds; None if it holds no such table."""


class Local:
    """This process: one chunk at a time, whose work threads share."""

    local = True

    def total(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Any:
        """Return the sum of work(0), …, work(count - 1)."""
        found = None
        for part in self.each(name, work, count, done):
            found = part if found is None else found + part
        return found

    def each(self, name: str, work: Work, count: int, done: Callable[[int], None]) -> Iterator[Any]:
        """Yield work(0), …, work(count - 1)."""
        for number in range(count):
            yield work(number, *needs_of(work, number))
            done(1)

    def keep(self, name: str, work: Work, count: int, size: int) -> list[Any] | None:
        """Return None: who works here keeps things by a store of its own."""
        return None

    def partitions(self, X: Any) -> Partitions | None:
        """Return None: nothing is held elsewhere. A Dask collection without its client is refused."""
        if hasattr(X, "__dask_graph__"):
            raise InputError("a Dask collection needs a client of its cluster; give it: fit(X, engine=client)")
        return None


def needs_of(work: Work, number: int) -> tuple[Any, ...]:
    """Return the partitions that a chunk's work is to be given."""
    needs: Callable[[int], tuple[Any, ...]] | None = getattr(work, "needs", None)
    return () if needs is None else needs(number)
