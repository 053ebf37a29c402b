"""How sure a fit is, one diagnostic after the other: what was found, what it means, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mixmem.output.payload import CLEAR
from mixmem.words import plain_number

State = Literal["good", "look", "plain"]

MUCH_NEGATIVE = 0.4
"""Share of negative moments from which noise is as large as what is to be found: half would be noise alone."""
MUCH_MISSED = 0.25
"""Relative difference of the moments' own alpha0 from the one they were taken at that deserves a look."""
MUCH_NOISE = 0.2
"""Share of cells drawn at random that deserves a look."""
MUCH_ALIKE = 100.0
"""Condition number of anchors from which components look alike there."""
AGREED = 1.1
"""Largest R-hat, in 95 % of theta, at which chains agree."""


@dataclass(frozen=True)
class Diagnostic:
    """One thing to know of a fit. ``state`` says whether it is good, deserves a look, or just is so."""

    name: str
    finding: str
    meaning: str
    advice: str
    state: State = "plain"


def diagnostics(document: Mapping[str, Any], memberships: np.ndarray) -> list[Diagnostic]:
    """Return all diagnostics of a fit, from what fit.json holds and its memberships (n, k)."""
    report = document["report"]
    return [
        *_convergence(report),
        *_refinement(report),
        *_chains(report),
        *_goodness(document),
        *_noise(report),
        *_concentration(report),
        *_clear(memberships),
        *_moments(report),
        *_likelihood(document),
    ]


def _convergence(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    done = bool(report["converged"])
    yield Diagnostic(
        "Convergence",
        f"{'Reached' if done else 'Not reached'}: {report['reason']}.",
        "A fit that has converged would not change if it went on.",
        "Nothing to do." if done else "Do not rely on the numbers yet: look with mixmem choose-k how many components "
        "the rows show, and fit fewer.",
        "good" if done else "look",
    )  # fmt: skip


def _refinement(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    refine, climbed = report["refine"], report["refine"].get("em")
    began = "moment" if report["start"].get("matching") is not None else "first"
    reason = f": {refine['reason']}" if refine["reason"] else ""
    if refine["method"] == "gibbs":
        finding = f"The {began} estimate was refined by sampling the posterior{reason}."
    elif refine["method"] == "integrated":
        rounds, corners = len(refine["integrated"]["changes"]), refine["integrated"].get("corners")
        ways = [f"{rounds} rounds of EM, memberships integrated out"] if rounds else []
        ways += ["moving all components together to where the rows are likeliest"] if corners is not None else []
        finding = f"The {began} estimate was refined by {' and by '.join(ways)}{reason}."
    elif refine["method"] == "em":
        finding = (
            f"The {began} estimate was taken to the maximum of the likelihood of components and memberships "
            f"together{reason}."
        )
        if climbed and climbed.get("log_likelihood") is not None:
            finding += (
                f" The log-likelihood of the table, given memberships, is {climbed['log_likelihood']:,.1f} after "
                f"{climbed['rounds']} rounds."
            )
    else:
        finding = f"None{reason}."
    if refine["method"] and refine["likelihood_before"] is not None:
        finding += (
            f" Mean log-likelihood of a row before {refine['likelihood_before']:.3f}, after "
            f"{refine['likelihood_after']:.3f}."
        )
    worse = bool(
        refine["method"]
        and refine["likelihood_before"] is not None
        and refine["likelihood_after"] < refine["likelihood_before"] - 0.01
    )
    yield Diagnostic(
        "Refinement",
        finding,
        "The moment estimate is a fast and good start; refinement uses all that the rows tell.",
        "The likelihood fell: fit again with --refine none and compare." if worse else
        "Nothing to do. Intervals need --refine gibbs." if refine["method"] != "gibbs" else
        "Nothing to do. Intervals of every number are in intervals.csv.",
        "look" if worse else "plain",
    )  # fmt: skip


def _chains(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    chains = report["refine"].get("gibbs")
    if not chains:
        return
    rhat = chains["rhat"]
    judged = rhat.get("in_95_percent", rhat["most"])
    size = chains.get("effective_sample_size", {}).get("all")
    finding = f"R-hat: median {rhat['median']:.2f}, at most {judged:.2f} in 95% of theta, largest {rhat['most']:.2f}"
    finding += f"; effective sample size {size:,.0f}." if size is not None else "."
    agreed = bool(chains.get("converged", judged <= AGREED))
    yield Diagnostic(
        "Chains",
        finding,
        "R-hat compares chains that began apart and is 1 when they agree; the effective sample size is how many "
        "independent draws they are worth.",
        "Nothing to do." if agreed else "The chains tell different stories: fit with another --seed and fewer "
        "components, and trust only what stays.",
        "good" if agreed else "look",
    )  # fmt: skip


def _goodness(document: Mapping[str, Any]) -> Iterator[Diagnostic]:
    found = document.get("goodness")
    if not found:
        return
    good = found["misfit"] <= 1.0
    yield Diagnostic(
        "Goodness of fit",
        str(found["summary"]),
        "The misfit is the root mean square difference between how often two answers occur together and what the "
        "components say, in standard errors.",
        "Nothing to do." if good else "Look at the pairs below: variables that ask the same thing twice may be joined "
        "or left out; many pairs call for more components.",
        "good" if good else "look",
    )  # fmt: skip


def _noise(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    noise, share = report["contamination"], f"{100 * report['contamination']['value']:.1f}% of the cells"
    if noise["estimated"]:
        finding = f"{share} (standard error {100 * noise['standard_error']:.1f}%) look as if drawn at random."
    elif noise["value"]:
        finding = f"{share} were taken to be drawn at random, as given."
    else:
        finding = "None was allowed for or found."
    yield Diagnostic(
        "Noise",
        finding,
        "The components are those of the other cells.",
        "Look for rows of careless answers, and for columns that were read wrongly." if noise["value"] > MUCH_NOISE else
        "Nothing to do." if noise["value"] or report["refine"].get("gibbs") else
        "If answers may be careless, fit with --refine gibbs: that estimates their share.",
        "look" if noise["value"] > MUCH_NOISE else "plain",
    )  # fmt: skip


def _concentration(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    alpha0, start, value = report["alpha0"], report["start"], report["alpha0"]["value"]
    finding = f"alpha0 = {plain_number(value)}, "
    if alpha0["estimated"]:
        finding += "estimated"
        if alpha0["standard_error_of_log"] is not None:
            finding += f" (to about {100 * alpha0['standard_error_of_log']:.0f}%)"
        sampled, curve = report["refine"].get("gibbs"), len(alpha0["tried"]) > 1
        finding += (
            ": by sampling" + (", from where the curve below peaks" if curve else "") if sampled
            else ": where a curve through the likelihoods below peaks" if curve
            else ": from the rows' memberships"
        )  # fmt: skip
    else:
        finding += "as given"
        if alpha0.get("checked"):
            finding += f"; estimated beside it: {plain_number(alpha0['checked'])}"
    bound = bool(alpha0["at_bound"])
    if bound:
        finding += (
            f"; this is the end of the range searched: {'rows look unmixed' if value < 1 else 'rows look alike'}, and "
            "the value itself says little"
        )
    finding += "."
    missed = start.get("discrepancy") if start.get("matching") is not None else None
    if missed is not None:
        finding += f" The moments' own alphas miss this sum by {100 * missed:+.1f}%; near 0 is good."
    far = missed is not None and abs(missed) > MUCH_MISSED
    yield Diagnostic(
        "Concentration",
        finding,
        "alpha0 says how mixed rows are: well below 1 most rows belong to one component, well above it to many.",
        "Give --alpha0 if you know it, or try another number of components." if bound or far else "Nothing to do.",
        "look" if bound or far else "plain",
    )


def _clear(memberships: np.ndarray) -> Iterator[Diagnostic]:
    if memberships.shape[1] < 2:
        return
    largest = memberships.max(axis=1)
    median = min(np.floor(100.0 * float(np.median(largest))) / 100.0, 0.99)
    yield Diagnostic(
        "Clear rows",
        f"{100 * (largest > CLEAR).mean():.0f}% of the rows have a clear component (a membership above {CLEAR}); half "
        f"of the rows have a largest membership of {median:.2f} or more.",
        "Mixed rows are no fault: the model lets a row belong to several components.",
        "Sort rows into one component each only if nearly all are clear; else use the memberships themselves.",
    )


def _moments(report: Mapping[str, Any]) -> Iterator[Diagnostic]:
    start = report["start"]
    if (matching := start.get("matching")) is None:  # only the moments tell of blocks and matching
        return
    negative = start["blocks"]["negative_fraction"]
    much = negative > MUCH_NEGATIVE
    yield Diagnostic(
        "Negative moments",
        f"{100 * negative:.0f}% of the corrected third moments are negative, which the model's own never are.",
        "They come from sampling noise, or from an alpha0 that is too large; one half would be noise alone.",
        "Little stands out from the noise: more rows, or fewer components, would help." if much else "Nothing to do.",
        "look" if much else "plain",
    )
    condition = (start.get("plan") or {}).get("condition")
    if condition:
        alike = max(condition) >= MUCH_ALIKE
        yield Diagnostic(
            "Anchors",
            f"Condition numbers of the three anchor matrices: {', '.join(plain_number(value) for value in condition)}.",
            "They are large where components look alike in the variables from which the estimate begins.",
            "Give other anchors, or fit fewer components." if alike else "Nothing to do.",
            "look" if alike else "plain",
        )
    yield _matching(matching)


def _matching(matching: Mapping[str, Any]) -> Diagnostic:
    kept = matching["anchors_kept"]
    in_order = kept["permutation"] == list(range(len(kept["permutation"])))
    if matching["blocks"]:
        known = [margin for each in matching["each"] if (margin := _margin(each)) is not None]
        finding = f"{matching['blocks']} blocks were matched"
        if matching.get("permuted"):
            finding += f", {matching['permuted']} of which had the components in another order"
        finding += (
            f"; the theorem's condition is met at the order found in {matching['guaranteed']} of {matching['blocks']}"
        )
        finding += f" (smallest margin {plain_number(min(known))})" if known else ""
        finding += f"; {matching['assigned']} needed an assignment." if matching["assigned"] else "."
    else:
        finding = "All variables came from one block, so there were no pieces to match."
    theorem = next(c["theorem"] for c in kept["conditions"] if _used(c, kept["method"]))
    finding += (
        f" In the end the anchors' components are {'those' if in_order else 'not in the order'} of the first block; "
        f"the condition of {theorem} {'is met there' if kept['guaranteed'] else 'is not met there'}"
    )
    margin = _margin(kept)
    finding += f" (margin {plain_number(margin)})." if margin is not None else "."
    return Diagnostic(
        "Matching",
        finding,
        "Pieces of the estimate are put together by their components; where the condition of a theorem is met, errors "
        "are too small to mix them up.",
        "Nothing to do." if in_order and kept["guaranteed"] else
        "Nothing to do: the order was kept although the condition is not met." if in_order else
        "Fit with another --seed and compare the components.",
        "plain" if in_order else "look",
    )  # fmt: skip


def _used(condition: Mapping[str, Any], method: str) -> bool:
    return ("Procrustes" in condition["theorem"]) == (method == "procrustes")


def _margin(match: Mapping[str, Any]) -> float | None:
    return next((c["margin"] for c in match["conditions"] if _used(c, match["method"])), None)


def _likelihood(document: Mapping[str, Any]) -> Iterator[Diagnostic]:
    found = document["log_likelihood"]
    whole, given = (
        "unknown" if value is None else f"{value:.3f}"
        for value in (found["mean_of_rows"], found["mean_of_rows_given_memberships"])
    )
    yield Diagnostic(
        "Likelihood",
        f"Mean log-likelihood of a row {whole}, given its memberships {given}.",
        "It says nothing by itself; of two fits of the same table the higher one describes the rows better.",
        "Compare numbers of components by rows that were not fitted: mixmem choose-k.",
    )
