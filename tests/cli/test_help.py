"""Help with examples, and completion of what is typed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
import typer

from mixmem.cli.commands import app
from mixmem.cli.examples import EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_lines_that_the_command_takes(name):
    """Options that examples name are options of the command, and help shows every line as it is."""
    command = typer.main.get_command(app).commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    for line in EXAMPLES[name].splitlines()[2:]:
        words = shlex.split(line.split("    ")[0])
        assert words[:2] == ["mixmem", name]
        assert {word for word in words if word.startswith("-") and not word[1:2].isdigit()} <= known
    shown = command.get_help(typer.Context(command, info_name=f"mixmem {name}"))
    assert all(line in shown for line in EXAMPLES[name].splitlines()[1:])


def test_a_shell_completes_commands():
    asked = {"_MIXMEM_COMPLETE": "complete_bash", "COMP_WORDS": "mixmem me", "COMP_CWORD": "1"}
    found = subprocess.run(
        [sys.executable, "-c", "import sys; from mixmem.cli import main; sys.exit(main())"],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout.split() == ["memberships"]
