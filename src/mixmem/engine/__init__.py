"""Who runs it: threads here, other machines later; kernels and stages do not know."""
