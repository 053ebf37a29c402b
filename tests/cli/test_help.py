"""The help of every command is plain: whole sentences, none cut off, names instead of types; examples; completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from mixmem.cli.commands import app
from mixmem.cli.examples import EXAMPLES

MAIN = get_command(app)
GROUPS = [[name] for name, command in MAIN.commands.items() if hasattr(command, "commands")]
COMMANDS = [[name] for name in MAIN.commands]
COMMANDS += [[group, name] for (group,) in GROUPS for name in MAIN.commands[group].commands]


def help_of(words: list[str]) -> str:
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=lambda words: " ".join(words) or "mixmem")
def test_help_is_plain(words):
    text = " ".join(help_of(words).split())
    assert not re.search(r"[.\]] (What|Of) ", text)
    assert "range>" not in text


@pytest.mark.parametrize("words", [[], *GROUPS], ids=lambda words: " ".join(words) or "mixmem")
def test_no_command_is_described_by_half_a_sentence(words):
    assert help_of(words).endswith(".\n")
    assert "..." not in help_of(words).partition("Commands:")[2]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_lines_that_the_command_takes(name):
    """Options that examples name are options of the command, and help shows every line as it is."""
    command = get_command(app).commands[name]
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
