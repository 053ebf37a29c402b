"""Checks of the checks: what a test suite that passes cannot say of itself."""
