"""Suite ``gaussian``: Algorithm 1, its estimators and the printed simulations of the Gaussian mechanism."""

from canaryproof.verify.suites import auditing, estimation, inference, samplers, stream_quality, streams, tables

CHECKS = (
    *tables.CHECKS,
    *samplers.CHECKS,
    *estimation.CHECKS,
    *streams.CHECKS,
    *stream_quality.CHECKS,
    *inference.CHECKS,
    *auditing.CHECKS,
)
