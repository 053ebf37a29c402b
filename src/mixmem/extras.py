"""Libraries that come with an extra only."""

from __future__ import annotations

import importlib
from types import ModuleType

from mixmem.errors import InputError


def needs(module: str, what: str, extra: str) -> ModuleType:
    """Return a library that comes with an extra, or say how to get it.

    >>> needs("json", "JSON", "nothing").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f'{what} takes the library {module}, which is not installed; pip install "mixmem[{extra}]"'
        ) from error
