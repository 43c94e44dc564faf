"""Suite ``gaussian``: Algorithm 1, its estimators and the printed simulations of the Gaussian mechanism."""

from canaryproof.verify.suites import estimation, samplers, tables

CHECKS = (*tables.CHECKS, *samplers.CHECKS, *estimation.CHECKS)
