"""A fitted crowd model as arrays and a header, for a model file, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from mixmem.errors import InputError
from mixmem.models.crowd.dependence import Dependence
from mixmem.models.crowd.fits import Fit
from mixmem.models.crowd.labels import Labels
from mixmem.models.crowd.minimax import Effects
from mixmem.models.crowd.voices import TableVoice, Voice, VoteVoice

KIND = "crowd"
_LABELS = ("starts", "workers", "labels")
_IDS = ("tasks", "worker_ids", "classes")
_FIT = ("posterior", "counts", "confusion", "errors", "typical", "prior")


def to_stored(labels: Labels, fit: Fit) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and header of a fit and the labels it was made from."""
    arrays = {f"labels.{name}": np.asarray(getattr(labels, name)) for name in _LABELS}
    arrays |= {f"fit.{name}": getattr(fit, name) for name in _FIT}
    header: dict[str, Any] = {
        "kind": KIND, "repeats": labels.repeats, "contradictions": labels.contradictions, "history": fit.history,
        "converged": fit.converged, "dependence": None if fit.dependence is None else asdict(fit.dependence),
        "voices": [], "further": sorted(fit.further), "ids": {},
    }  # fmt: skip
    for name in _IDS:
        ids = getattr(labels, name)
        if ids.dtype.kind in "iuf":
            arrays[f"ids.{name}"] = ids
        else:
            header["ids"][name] = _plain_ids(ids, name)
    for place, voice in enumerate(fit.voices):
        pull = voice.pull if isinstance(voice, VoteVoice) else None
        header["voices"].append({"share": voice.share, "pull": pull})
        first, second = (voice.tables, voice.prior) if isinstance(voice, TableVoice) else (voice.weights, voice.mean)
        arrays[f"voice.{place}.first"], arrays[f"voice.{place}.second"] = first, second
    arrays |= {f"further.{name}": np.asarray(value) for name, value in fit.further.items()}
    if fit.memberships is not None:
        arrays["fit.memberships"] = fit.memberships
    if fit.effects is not None:
        arrays["effects.sigma"], arrays["effects.tau"] = fit.effects.sigma, fit.effects.tau
    return arrays, header


def from_stored(arrays: dict[str, np.ndarray], header: dict[str, Any], path: Any) -> tuple[Labels, Fit]:
    """The labels and the fit that :func:`to_stored` was called with."""
    if header.get("kind") != KIND:
        raise InputError(f"{path} is no model of crowd labels; expected what `mixmem crowd` or DawidSkene.save wrote")
    try:
        ids: dict[str, Any] = {name: _read_ids(arrays, header["ids"], name) for name in _IDS}
        ids |= {name: arrays[f"labels.{name}"] for name in _LABELS}
        labels = Labels(**ids, repeats=header["repeats"], contradictions=header["contradictions"])
        fit = Fit(
            **{name: arrays[f"fit.{name}"] for name in _FIT},
            history=list(header["history"]),
            converged=header["converged"],
            voices=tuple(_voice(arrays, place, each) for place, each in enumerate(header["voices"])),
            memberships=arrays.get("fit.memberships"),
            effects=Effects(arrays["effects.sigma"], arrays["effects.tau"]) if "effects.sigma" in arrays else None,
            dependence=None if header["dependence"] is None else Dependence(**header["dependence"]),
            further={name: arrays[f"further.{name}"] for name in header["further"]},
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); expected a whole model file: copy or fit it again") from error
    return labels, fit


def _plain_ids(ids: np.ndarray, name: str) -> list[Any]:
    values = ids.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise InputError(
            f"the {name} are of type {type(values[0]).__name__}, which a model file cannot hold; use texts"
        )
    return values


def _read_ids(arrays: dict[str, np.ndarray], lists: dict[str, Any], name: str) -> np.ndarray:
    if name not in lists:
        return arrays[f"ids.{name}"]
    found = np.empty(len(lists[name]), dtype=object)
    found[:] = lists[name]
    return found


def _voice(arrays: dict[str, np.ndarray], place: int, header: dict[str, Any]) -> Voice:
    first, second = arrays[f"voice.{place}.first"], arrays[f"voice.{place}.second"]
    if header["pull"] is None:
        return TableVoice(header["share"], first, second)
    return VoteVoice(header["share"], first, second, header["pull"])
