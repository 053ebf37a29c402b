"""The method of moments: sums over rows, anchors, factorization of blocks, matching, sweeps."""
