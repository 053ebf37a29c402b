"""Measurements run by hand: ``python -m benchmarks [name ...]`` or ``make bench``. Tests never assert wall time."""
