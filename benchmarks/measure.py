"""What a call costs: seconds, CPU seconds and memory, in this process or in one of its own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixmem.progress import Progress

STATUS = Path("/proc/self/status")
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Cost:
    """Wall and CPU seconds (all threads and child processes), and bytes of memory at the highest."""

    wall: float
    cpu: float
    peak: int


def cost_of(call: Callable[[], Any]) -> tuple[Cost, Any]:
    """What a call costs, and what it returns; ``peak`` is what it holds beyond what the process held before."""
    held = memory("VmRSS")
    began, busy = time.perf_counter(), _cpu()
    result = call()
    return Cost(time.perf_counter() - began, _cpu() - busy, max(0, memory("VmHWM") - held)), result


def best_of(repeats: int, call: Callable[[], Any]) -> tuple[Cost, Any]:
    """The least wall and the least CPU seconds of several runs, the most memory, and what the last one returned."""
    runs = [cost_of(call) for _ in range(repeats)]
    costs = [cost for cost, _ in runs]
    least = Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs), max(cost.peak for cost in costs))
    return least, runs[-1][1]


class CpuClock(Progress):
    """Times stages by CPU seconds, which other work on the machine hardly moves: for ``mixmem.progress.showing``."""

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        began = _cpu()
        yield lambda _: None
        self.seconds[name] = self.seconds.get(name, 0.0) + _cpu() - began


def memory(name: str) -> int:
    """Bytes of this process: "VmRSS" now, "VmHWM" at the highest since it was started.

    The kernel's per-process figure is preferred: ``ru_maxrss`` also holds what the parent had when it started us.
    """
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def cost_of_command(command: Sequence[str]) -> Cost:
    """What a command costs from start to end; it must succeed. Its peak is at least the caller's own."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def in_process(function: Callable[..., Any], *arguments: Any, limit: int | None = None) -> Any:
    """function(*arguments) in a new process; TimeoutError after ``limit`` CPU seconds, EOFError if it fails."""
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_send, args=(sender, limit, function, arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            raise TimeoutError from None
        raise
    finally:
        process.join()


def _send(sender: Any, limit: int | None, function: Callable[..., Any], arguments: tuple) -> None:
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    sender.send(function(*arguments))


def _cpu() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
