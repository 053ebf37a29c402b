"""Progress of runs that take minutes where no terminal shows bars: a line now and then, with an estimate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mixmem.progress import LineProgress


class PacedProgress(LineProgress):
    """At most one line in ``every`` seconds: the share done, the time taken and the time left."""

    every = 60.0

    @contextmanager
    def shown(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Say how far the stage is, whenever something was done and the last line is old enough."""
        began = last = time.perf_counter()
        done = 0

        def step(more: int) -> None:
            nonlocal done, last
            done += more
            now = time.perf_counter()
            if total and done < total and now - last >= self.every:
                last = now
                left = (now - began) * (total - done) / max(done, 1)
                self.say(f"{name}: {done / total:.0%}, {clock(now - began)} so far, about {clock(left)} left")

        yield step
        self.say(f"{name}: done in {clock(time.perf_counter() - began)}")


class EveryStep(PacedProgress):
    """A line after every unit of work (``--verbose``)."""

    every = 0.0


def clock(seconds: float) -> str:
    """A time for reading.

    >>> clock(3.4), clock(200), clock(7300)
    ('3 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
