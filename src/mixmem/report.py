"""What a fit says of itself, as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixmem.estimate import Estimate
from mixmem.match import Guarantee, Matching
from mixmem.plan import Plan
from mixmem.select import Alpha0


def fit_report(
    plan: Plan,
    estimate: Estimate,
    alpha0: Alpha0 | None,
    *,
    n_rows: int,
    seed: np.random.SeedSequence,
    seconds: dict[str, float],
) -> dict[str, Any]:
    """Plan, alpha0, blocks, matching guarantees, sweeps and timings, in plain numbers, texts and lists.

    This is ``model.report_`` and stands in ``fit.json``. Infinite numbers become None.
    """
    blocks, swept = estimate.blocks, estimate.swept
    names = np.asarray(plan.schema.names, dtype=object)
    matched = [block.matching for block in blocks if block.matching is not None]
    return {
        "rows": n_rows,
        "variables": plan.schema.n_variables,
        "theta_rows": plan.schema.n_rows,
        "converged": swept.converged if swept is not None else all(block.converged for block in blocks),
        "plan": {
            "anchors": [names[mode].tolist() for mode in plan.anchors],
            "partitions": len(plan.partitions),
            "text": str(plan),
        },
        "alpha0": {
            "value": estimate.concentration.alpha0,
            "estimated": alpha0 is not None,
            "standard_error_of_log": None if alpha0 is None else _finite(alpha0.standard_error),
            "at_bound": alpha0 is not None and alpha0.at_bound,
            "tried": [] if alpha0 is None else [list(point) for point in alpha0.tried],
            "discrepancy": estimate.concentration.discrepancy,
        },
        "blocks": {
            "count": len(blocks),
            "negative_fraction": float(np.mean([block.negative_fraction for block in blocks])),
            "converged": sum(block.converged for block in blocks),
            "each": [
                {
                    "shape": list(block.shape),
                    "negative_fraction": block.negative_fraction,
                    "relative_residual": block.relative_residual,
                    "sweeps": block.n_sweeps,
                    "converged": block.converged,
                    "reason": block.reason,
                }
                for block in blocks
            ],
        },
        "matching": {
            "blocks": len(matched),
            "guaranteed": sum(match.guaranteed for match in matched),
            "assigned": sum(match.assigned for match in matched),
            "each": [_matching(match) for match in matched],
            "anchors_kept": _matching(estimate.anchors_kept),
        },
        "sweeps": None
        if swept is None
        else {
            "count": len(swept.changes),
            "groups": swept.n_groups,
            "changes": list(swept.changes),
            "converged": swept.converged,
            "reason": swept.reason,
        },
        "seed": seed.entropy,
        "seconds": dict(seconds),
    }


def _matching(match: Matching) -> dict[str, Any]:
    return {
        "method": match.method,
        "permutation": match.permutation.tolist(),
        "assigned": match.assigned,
        "guaranteed": match.guaranteed,
        "conditions": [_guarantee(match.angle), _guarantee(match.procrustes)],
    }


def _guarantee(condition: Guarantee) -> dict[str, Any]:
    return {"theorem": condition.theorem, "holds": condition.holds, "margin": _finite(condition.margin)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
