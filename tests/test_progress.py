"""Progress of calls from Python: silent in a log, a line on a terminal of what takes long."""

from __future__ import annotations

import io

from mixmem import progress
from mixmem.models import _announced
from mixmem.models._announced import announced
from mixmem.progress import BarProgress, LineProgress, PatientProgress, Progress, in_python, showing


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown_on(monkeypatch, screen):
    """Let a screen be standard error; pytest sets its own before a test begins."""
    monkeypatch.setattr(progress.sys, "stderr", screen)
    return screen


def test_only_terminals_are_shown_progress(monkeypatch):
    shown_on(monkeypatch, Terminal())
    assert type(in_python(False)) is PatientProgress
    assert type(in_python(True)) is LineProgress
    with showing(BarProgress):  # the command line has its own
        assert type(in_python(False)) is BarProgress
    shown_on(monkeypatch, io.StringIO())
    assert type(in_python(False)) is Progress


def test_a_long_stage_has_an_estimate_and_a_short_one_is_silent(monkeypatch):
    terminal = shown_on(monkeypatch, Terminal())
    clock = iter([0.0, 0.0, 1.0, 4.0, 4.2, 8.0, 8.0] + [9.0] * 9)
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    found = PatientProgress()
    with found.stage("gibbs", 100) as step:
        step(10)
        assert terminal.getvalue() == ""
        step(10)
        assert terminal.getvalue() == "\r\x1b[Kmixmem: gibbs 20%, at most 16 s left"
        step(0)
        step(70)
    assert "gibbs 90%, at most 1 s left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_compiling_is_announced_on_a_terminal(monkeypatch):
    terminal = shown_on(monkeypatch, Terminal())
    monkeypatch.setattr(_announced, "compiled", lambda: False)
    announced(Progress())
    assert terminal.getvalue() == ""
    announced(PatientProgress())
    assert terminal.getvalue() == "mixmem: compiling kernels for this machine, once (about 20 s)\n"
