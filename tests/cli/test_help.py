"""The help of every command is plain: whole sentences, none cut off, names instead of types."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mixmem.cli.commands import app

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
