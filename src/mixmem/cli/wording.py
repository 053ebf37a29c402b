"""Messages of the package as someone at a shell reads them: options in place of Python's parameters."""

from __future__ import annotations

import re

_ALIKE = (
    "alpha0 sweeps solver matching block_start max_rounds tol refine contamination memberships missing handle_unknown "
    "memory_limit passes scratch"
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _ALIKE.split()} | {
    "n_components": "-k",
    "variables": "--kind",
    "n_partitions": "--partitions",
    "n_restarts": "--restarts",
    "random_state": "--seed",
    "n_jobs": "--jobs",
}
"""What is typed for each parameter."""
_NAMES = "|".join(OPTIONS)
_GIVEN = re.compile(rf"\b({_NAMES})=(None|'[^' ]*'|[\w.+-]*\w)")
_BOTH = re.compile(r"\b\w+=\S* \((--[^)]*)\)")
"""A parameter with its option in brackets."""
_ALLOWED = re.compile(rf"^({_NAMES}) must be (.*)$", re.DOTALL)


def as_typed(text: str) -> str:
    """Return a message with options as they are typed.

    >>> as_typed("n_components=70 is more than the 62 rows; expected refine=None")
    '-k 70 is more than the 62 rows; expected --refine none'
    >>> as_typed("memory_limit must be None or a number of bytes, such as '2GB'; got 'much'")
    '--memory-limit must be a number of bytes, such as 2GB; got much'
    >>> as_typed("give clean=True (--clean) to take them for the same")
    'give --clean to take them for the same'
    """
    if found := _ALLOWED.match(text):
        words = re.sub(r"\bNone or ", "", found[2]).replace("None", "none").replace("'", "")
        return f"{OPTIONS[found[1]]} must be {words}"
    text = _BOTH.sub(r"\1", text)
    return _GIVEN.sub(lambda given: f"{OPTIONS[given[1]]} {given[2].strip(chr(39)).replace('None', 'none')}", text)
