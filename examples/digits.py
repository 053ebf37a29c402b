"""Handwritten digits: a picture belongs partly to several strokes, which are the components of its pixels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from mixmem import GDLM

K = 8


def main(folder: Path) -> None:
    """Fit the digits of scikit-learn, pixels as dark or not, and draw the components."""
    digits = load_digits()
    dark = (digits.data > 7).astype(int)
    used = np.flatnonzero((dark.mean(axis=0) > 0.02) & (dark.mean(axis=0) < 0.98))
    model = GDLM(K, alpha0=2.0, refine=None, random_state=0).fit(dark[:, used])
    theta = model.theta_[model.theta_["level"] == "1"].filter(like="component_").to_numpy()

    figure = Figure(figsize=(1.5 * K, 2.2), dpi=120, layout="constrained")
    for h, axes in enumerate(figure.subplots(1, K)):
        picture = np.zeros(64)
        picture[used] = theta[:, h]
        axes.imshow(picture.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
        axes.set_axis_off()
        shares = [model.memberships_[digits.target == digit, h].mean() for digit in range(10)]
        most = np.argsort(shares)[::-1][:3]
        axes.set_title(f"{h + 1}: in {', '.join(map(str, most))}", fontsize=9)
        print(f"component {h + 1}: most in the digits {', '.join(f'{digit} ({shares[digit]:.2f})' for digit in most)}")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "digits.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
