"""Suite ``gaussian``: Algorithm 1, its estimators and the printed simulations of the Gaussian mechanism."""

from canaryproof.verify.suites import auditing, estimation, inference, samplers, streams, tables

CHECKS = (
    *tables.CHECKS,
    *samplers.CHECKS,
    *estimation.CHECKS,
    *streams.CHECKS,
    *inference.CHECKS,
    *auditing.CHECKS,
)
