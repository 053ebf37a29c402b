"""Run benchmarks by name, all of them by default, and write each one's table to ``benchmarks/results/NAME.csv``."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from benchmarks import (
    accuracy,
    authors,
    block_starts,
    bounds,
    choose_k,
    cluster,
    concentration,
    coverage,
    crowd,
    crowd_settings,
    crowd_shapes,
    crowd_speed,
    crowd_use,
    demonstration,
    growth,
    large,
    likelihood,
    memberships,
    missing,
    mixed,
    noise,
    ordinal,
    page,
    parts,
    peers,
    popgen,
    refined,
    scale,
    solvers,
    starts,
    structure,
    structure_limit,
    survey,
    sweeps,
    topics,
    wide,
)

BENCHMARKS = {
    "accuracy": accuracy.run,
    "wide": wide.run,
    "authors": authors.run,
    "demonstration": demonstration.run,
    "solvers": solvers.run,
    "block_starts": block_starts.run,
    "choose_k": choose_k.run,
    "structure": structure.run,
    "structure_limit": structure_limit.run,
    "survey": survey.run,
    "sweeps": sweeps.run,
    "starts": starts.run,
    "refined": refined.run,
    "scale": scale.run,
    "cluster": cluster.run,
    "parts": parts.run,
    "coverage": coverage.run,
    "concentration": concentration.run,
    "page": page.run,
    "peers": peers.run,
    "growth": growth.run,
    "large": large.run,
    "likelihood": likelihood.run,
    "memberships": memberships.run,
    "missing": missing.run,
    "mixed": mixed.run,
    "noise": noise.run,
    "ordinal": ordinal.run,
    "popgen": popgen.run,
    "bounds": bounds.run,
    "topics": topics.run,
    "crowd": crowd.run,
    "crowd_settings": crowd_settings.run,
    "crowd_shapes": crowd_shapes.run,
    "crowd_speed": crowd_speed.run,
    "crowd_use": crowd_use.run,
}
FIGURES = {"peers": peers.plot, "page": page.plot}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and cells")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write the figures of benchmarks that have one there")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    RESULTS.mkdir(exist_ok=True)
    for name in chosen.names or BENCHMARKS:
        print(f"\n{name}: {(sys.modules[f'benchmarks.{name}'].__doc__ or '').splitlines()[0]}", flush=True)
        rows = []
        for row in BENCHMARKS[name](quick=chosen.quick):
            if not rows:
                print("  ".join(f"{key:>12}" for key in row))
            print(
                "  ".join(f"{value:>12.4g}" if isinstance(value, float) else f"{value:>12}" for value in row.values()),
                flush=True,
            )
            rows.append(row)
        if rows:
            with (RESULTS / f"{name}.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=rows[0])
                writer.writeheader()
                writer.writerows(rows)
        if rows and chosen.plot and name in FIGURES:
            FIGURES[name](rows, chosen.plot / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
