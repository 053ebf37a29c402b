"""What a fit says of itself, as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixmem.moments.anchors import Plan
from mixmem.moments.estimate import Estimate
from mixmem.moments.matching import Guarantee, Matching
from mixmem.refinement.choose import Refined
from mixmem.refinement.gibbs import Posterior
from mixmem.selection.alpha0 import Alpha0


def fit_report(
    plan: Plan,
    estimate: Estimate,
    alpha0: Alpha0 | None,
    refined: Refined,
    *,
    n_rows: int,
    total: float,
    free_alpha0: bool,
    seed: np.random.SeedSequence,
    seconds: dict[str, float],
) -> dict[str, Any]:
    """Plan, alpha0, blocks, matching guarantees, sweeps and timings, in plain numbers, texts and lists.

    This is ``model.report_`` and stands in ``fit.json``. Infinite numbers become None. ``total`` is the rows' weight.
    """
    blocks, swept = estimate.blocks, estimate.swept
    names = np.asarray(plan.schema.names, dtype=object)
    converged, reason = _convergence(estimate, refined)
    matched = [block.matching for block in blocks if block.matching is not None]
    return {
        "rows": n_rows,
        "variables": plan.schema.n_variables,
        "theta_rows": plan.schema.n_rows,
        "converged": converged,
        "reason": reason,
        "advice": _ADVICE[refined.method],
        "plan": {
            "anchors": [names[mode].tolist() for mode in plan.anchors],
            "partitions": len(plan.partitions),
            "text": str(plan),
        },
        "alpha0": _alpha0(estimate, alpha0, refined, free_alpha0),
        "contamination": _contamination(refined),
        "refine": _refine(refined, total),
        "blocks": {
            "count": len(blocks),
            "negative_fraction": float(np.mean([block.negative_fraction for block in blocks])) if blocks else 0.0,
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


# what may help where a fit did not converge
_ADVICE = {
    None: "fewer components, more sweeps or more restarts may help",
    "gibbs": "the table may not tell so many components apart: try fewer",
    "em": "fewer components may help",
}


def _convergence(estimate: Estimate, refined: Refined) -> tuple[bool, str]:
    """Whether the last stage converged, and in what sense."""
    if refined.posterior is not None:
        found = refined.posterior
        return found.converged, (
            f"{found.n_chains} chains of {found.n_sweeps} sweeps after {found.n_warm}, "
            f"R-hat {np.median(found.rhat):.2f} (median), to {np.quantile(found.rhat, 0.95):.2f} in 95 % of theta, "
            f"median effective sample size {np.median(found.ess):.0f}"
        )
    if refined.maximum is not None:
        return refined.maximum.converged, refined.maximum.reason
    if estimate.swept is not None:
        return estimate.swept.converged, estimate.swept.reason
    if not estimate.blocks:
        return True, "rows split by their first direction: fewer than three variables have no third moments"
    return all(block.converged for block in estimate.blocks), estimate.blocks[-1].reason


def _alpha0(estimate: Estimate, chosen: Alpha0 | None, refined: Refined, free: bool) -> dict[str, Any]:
    """The value, whether it was estimated and how well it is determined: the standard error of its logarithm."""
    error = None if chosen is None else _finite(chosen.standard_error)
    if free and refined.posterior is not None:
        error = float(np.log(refined.posterior.alpha_draws.sum(axis=1)).std())
    return {
        "value": float(refined.alpha.sum()),
        "of_moments": estimate.concentration.alpha0,
        "estimated": free and (chosen is not None or refined.method is not None),
        "standard_error_of_log": error,
        "at_bound": chosen is not None and chosen.at_bound,
        "tried": [] if chosen is None else [list(point) for point in chosen.tried],
        "discrepancy": estimate.concentration.discrepancy,
    }


def _contamination(refined: Refined) -> dict[str, Any]:
    drawn = None if refined.posterior is None else refined.posterior.delta_draws
    error = 0.0 if drawn is None else float(drawn.std())
    return {"value": refined.delta, "estimated": error > 0.0, "standard_error": error}


def _refine(refined: Refined, total: float) -> dict[str, Any]:
    """The method and why, the likelihood before and after, and how the method fared."""
    return {
        "method": refined.method,
        "reason": refined.reason,
        "likelihood_before": None if refined.likelihood is None else refined.likelihood[0],
        "likelihood_after": None if refined.likelihood is None else refined.likelihood[1],
        "likelihood_rows": refined.n_scored,
        "gibbs": None if refined.posterior is None else _chains(refined.posterior),
        "em": None
        if refined.maximum is None
        else {
            "rounds": len(refined.maximum.history) - 1,
            "log_likelihood": refined.maximum.history[-1] * total,
            "likelihood_given_memberships": list(refined.maximum.history),
            "converged": refined.maximum.converged,
            "reason": refined.maximum.reason,
        },
    }


def _chains(found: Posterior) -> dict[str, Any]:
    return {
        "chains": found.n_chains,
        "warm_up": found.n_warm,
        "sweeps": found.n_sweeps,
        "converged": found.converged,
        "rhat": {"median": float(np.median(found.rhat)), "most": float(found.rhat.max())},
        "effective_sample_size": {"median": float(np.median(found.ess)), "least": float(found.ess.min())},
        "theta_prior": float(found.eta_draws.mean()),
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
