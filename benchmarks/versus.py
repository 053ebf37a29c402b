"""Two checkouts of the package against each other: CPU seconds of the same work, in turns, on one machine.

``python -m benchmarks.versus OTHER [--runs 9]``: OTHER is another checkout with its own ``.venv``. Each case runs in a
process of its own, first in the one checkout, then in the other, again and again; shown are the medians and the median
of the ratios (this checkout / the other). Machines are shared and noisy: a ratio of neighbours says more than seconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]

WARM = "from mixmem import GDLM, simulate_gdlm, rmse, align_components; import numpy as np, resource, time; "
CLOCK = (
    "use = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2]); "
    "small = simulate_gdlm(300, 100, 3, random_state=0); "
)
CASES = {
    "wide, k = 8": CLOCK + "GDLM(3, alpha0=0.3, random_state=0, refine=None).fit(small.codes); "
    "t = simulate_gdlm(1000, 1000, 8, random_state=0).encoded; a = use(); "
    "[GDLM(8, alpha0=0.8, refine=None, random_state=s).fit(t) for s in range(5)]; print(use() - a)",
    "wide, 100 partitions": CLOCK
    + "GDLM(3, alpha0=0.3, random_state=0, refine=None, n_partitions=10, sweeps=0).fit(small.codes); "
    "t = simulate_gdlm(1000, 1000, 8, random_state=0).encoded; a = use(); "
    "[GDLM(8, alpha0=0.8, refine=None, n_partitions=100, sweeps=0, random_state=s).fit(t) for s in range(3)]; "
    "print(use() - a)",
    "large, 200,000 x 100": CLOCK + "GDLM(5, alpha0=0.5, refine=None, random_state=0).fit(small.codes); "
    "t = simulate_gdlm(200_000, 100, 5, random_state=0).encoded; a = use(); "
    "GDLM(5, alpha0=0.5, refine=None, random_state=0).fit(t); print(use() - a)",
    "authors' shape, 2,000 x 1,000": CLOCK + "GDLM(3, alpha0=0.3, random_state=0, refine=None).fit(small.codes); "
    "t = simulate_gdlm(2000, 1000, 5, n_levels=3, alpha=0.7, noise=0.05, random_state=0).codes; a = use(); "
    "m = GDLM(5, alpha0=3.5, refine=None, random_state=0).fit(t); m.transform(t); print(use() - a)",
    "authors' shape, em": CLOCK + "GDLM(3, alpha0=0.3, random_state=0, refine='em').fit(small.codes); "
    "t = simulate_gdlm(2000, 300, 5, n_levels=3, alpha=0.7, noise=0.05, random_state=0).codes; a = use(); "
    "m = GDLM(5, alpha0=3.5, refine='em', random_state=0).fit(t); m.transform(t); print(use() - a)",
    "default fit, 3,000 x 30": CLOCK + "GDLM(3, random_state=0).fit(small.codes[:, :12]); "
    "t = simulate_gdlm(3000, 30, 4, random_state=0).encoded; a = use(); "
    "GDLM(4, random_state=0).fit(t); print(use() - a)",
}
"""Programs that print the CPU seconds of their work, without imports and compilation."""


def python(checkout: Path) -> str:
    """Return the checkout's own interpreter."""
    return str(checkout / ".venv" / "bin" / "python")


def cost(checkout: Path, program: str) -> float:
    """Return what a program prints last."""
    done = subprocess.run(
        [python(checkout), "-c", WARM + program], capture_output=True, text=True, check=True, cwd=checkout
    )
    return float(done.stdout.split()[-1])


def cost_of_command(checkout: Path, table: Path) -> float:
    """Return the CPU seconds of ``mixmem fit`` from start to end."""
    program = (
        "import resource, subprocess, sys; "
        f"subprocess.run([sys.executable, '-m', 'mixmem', 'fit', {str(table)!r}, '-k', '4', '--seed', '0', '--quiet', "
        f"'--out', {str(table.parent / 'out')!r}], check=True); "
        "print(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))"
    )
    done = subprocess.run([python(checkout), "-c", program], capture_output=True, text=True, check=True, cwd=checkout)
    return float(done.stdout.split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versus", description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout, with its own .venv")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--only", help="run the cases whose name holds this text")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        draw = f"simulate_gdlm(2000, 30, 4, random_state=0).frame.to_csv({str(table)!r}, index=False); print(0)"
        cost(HERE, draw)
        runs = {name: (lambda where, program=program: cost(where, program)) for name, program in CASES.items()}
        runs["whole command, 2,000 x 30"] = lambda where: cost_of_command(where, table)
        print(f"{'case':<32}{'other s':>10}{'this s':>10}{'ratio':>8}   all ratios")
        for name, run in runs.items():
            if chosen.only and chosen.only not in name:
                continue
            for checkout in (chosen.other, HERE):
                run(checkout)  # compile, and warm the disk
            pairs = [(run(chosen.other), run(HERE)) for _ in range(chosen.runs)]
            ratios = sorted(mine / theirs for theirs, mine in pairs)
            theirs, mine = (statistics.median(side) for side in zip(*pairs, strict=True))
            shown = " ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"{name:<32}{theirs:>10.3f}{mine:>10.3f}{statistics.median(ratios):>8.3f}   {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
