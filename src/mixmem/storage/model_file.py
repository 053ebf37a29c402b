"""Model files: a safetensors file of arrays, and one JSON text that says what they are. Nothing in it can run code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.errors import InputError
from mixmem.storage.atomic import write_atomically
from mixmem.storage.provenance import provenance

METADATA_KEY = "mixmem"


@dataclass(frozen=True)
class FileKind:
    """What a file holds: the name and version of its format, and in words what it is, who writes it, and how to have it
    anew."""

    name: str
    version: int
    what: str
    writer: str
    anew: str


MODEL = FileKind("mixmem-model", 2, "a model file", "`mixmem fit` or `model.save` wrote", "fit the model again")


def save_model(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any], kind: FileKind = MODEL
) -> None:
    """Write arrays and a header that JSON can hold, and the versions that made them; an older file stays until the new
    one is whole."""
    from safetensors.numpy import save

    document = {"format": kind.name, "format_version": kind.version, "written": provenance(), "header": header}
    # safetensors writes memory as it lies, so the arrays have to lie in C order and little-endian.
    plain = {name: _little_endian(np.asarray(array, order="C")) for name, array in arrays.items()}
    content = save(plain, metadata={METADATA_KEY: json.dumps(document, sort_keys=True)})
    with write_atomically(path) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | os.PathLike[str], kind: FileKind = MODEL) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the header that `save_model` wrote."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    _refuse_foreign(path, kind)
    try:
        with safe_open(path, framework="numpy") as file:
            document = _document(path, file.metadata(), kind)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise InputError(
            f"{path} is damaged or cut short ({error}); expected {kind.what}, whole: copy it again, or {kind.anew}"
        ) from error
    return arrays, document["header"]


def _refuse_foreign(path: Path, kind: FileKind) -> None:
    """Refuse what is no safetensors file at all: one begins with a length and a JSON object."""
    if path.is_dir():
        such = f" such as {path / 'model.mixmem'}" if kind is MODEL else ""
        raise InputError(f"{path} is a folder; expected {kind.what}{such}")
    try:
        with path.open("rb") as file:
            head = file.read(9)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the name and the folder") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read (permission denied); check its permissions") from error
    if not head:
        raise InputError(f"{path} is empty; expected {kind.what}: copy it or {kind.anew}")
    # The length of the header fits three bytes or so; text in its place gives an absurd number.
    if len(head) < 9 or head[8:] != b"{" or int.from_bytes(head[:8], "little") > 1 << 40:
        raise InputError(f"{path} is not {kind.what}; expected what {kind.writer}")


def _document(path: Path, metadata: dict[str, str] | None, kind: FileKind) -> dict[str, Any]:
    try:
        document = json.loads((metadata or {})[METADATA_KEY])
        found, version = document["format"], document["format_version"]
        header = document["header"]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} is a safetensors file that mixmem did not write; expected what {kind.writer}"
        ) from error
    if found != kind.name:
        raise InputError(f"{path} has the format {found!r}; expected {kind.name!r}, which {kind.writer}")
    if not isinstance(version, int) or not isinstance(header, dict):
        raise InputError(f"{path} has a damaged header; copy it again, or {kind.anew}")
    if version > kind.version:
        raise InputError(
            f"{path} has format version {version}, written by a newer mixmem; this one reads up to "
            f"{kind.version}: upgrade with pip install -U mixmem"
        )
    return document


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
