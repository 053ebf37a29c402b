"""Model files: a safetensors file of arrays, and one JSON text that says what they are. Nothing in it can run code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.errors import InputError
from mixmem.storage.atomic import write_atomically

FORMAT = "mixmem-model"
FORMAT_VERSION = 2
METADATA_KEY = "mixmem"


def save_model(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a header that JSON can hold; an older file stays until the new one is whole."""
    from safetensors.numpy import save

    document = {"format": FORMAT, "format_version": FORMAT_VERSION, "header": header}
    # safetensors writes memory as it lies, so the arrays have to lie in C order and little-endian.
    plain = {name: _little_endian(np.asarray(array, order="C")) for name, array in arrays.items()}
    content = save(plain, metadata={METADATA_KEY: json.dumps(document, sort_keys=True)})
    with write_atomically(path) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the header that `save_model` wrote."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    _refuse_foreign(path)
    try:
        with safe_open(path, framework="numpy") as file:
            document = _document(path, file.metadata())
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise InputError(
            f"{path} is damaged or cut short ({error}); expected a whole model file: copy or fit it again"
        ) from error
    return arrays, document["header"]


def _refuse_foreign(path: Path) -> None:
    """Refuse what is no safetensors file at all: one begins with a length and a JSON object."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected a model file such as {path / 'model.mixmem'}")
    try:
        with path.open("rb") as file:
            head = file.read(9)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the name and the folder") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read (permission denied); check its permissions") from error
    if not head:
        raise InputError(f"{path} is empty; expected a model file: copy it or fit the model again")
    # The length of the header fits three bytes or so; text in its place gives an absurd number.
    if len(head) < 9 or head[8:] != b"{" or int.from_bytes(head[:8], "little") > 1 << 40:
        raise InputError(f"{path} is not a model file; expected what `mixmem fit` or `model.save` wrote")


def _document(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    try:
        document = json.loads((metadata or {})[METADATA_KEY])
        found, version = document["format"], document["format_version"]
        header = document["header"]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} is a safetensors file that mixmem did not write; expected what `mixmem fit` or `model.save` wrote"
        ) from error
    if found != FORMAT:
        raise InputError(f"{path} has the format {found!r}; expected {FORMAT!r}")
    if not isinstance(version, int) or not isinstance(header, dict):
        raise InputError(f"{path} has a damaged header; copy or fit the model again")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {version}, written by a newer mixmem; this one reads up to "
            f"{FORMAT_VERSION}: upgrade with pip install -U mixmem"
        )
    return document


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
