"""Seeded faults: mistakes that the suites must catch, because a suite is worth the faults that it finds."""

from itertools import chain

from tests.faults import (
    audits,
    blindspots,
    bounds,
    canife,
    estimators,
    figures,
    instruments,
    kernels,
    noise_multiplier,
    orthonormal,
    proofs,
    roads,
    samplers,
    streams,
    training,
)
from tests.faults.fault import Fault, seeded

__all__ = ["FAULTS", "Fault", "seeded"]

_CATALOGUE = (
    kernels,
    roads,
    samplers,
    streams,
    estimators,
    audits,
    noise_multiplier,
    bounds,
    blindspots,
    instruments,
    proofs,
    training,
    canife,
    orthonormal,
    figures,
)

FAULTS = {fault.name: fault for fault in chain.from_iterable(module.FAULTS for module in _CATALOGUE)}
