"""Suites: lists of checks with their verdicts."""

from canaryproof.verify.suites import gaussian, numerics, theorems

SUITES = {"numerics": numerics.CHECKS, "gaussian": gaussian.CHECKS, "theorems": theorems.CHECKS}
