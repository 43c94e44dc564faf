"""Claims of CANIFE (Maddock et al., arXiv 2210.02912)."""

from canaryproof.verify.claims import (
    canife_composition,
    canife_counts,
    canife_data,
    canife_models,
    canife_privacy,
    canife_rates,
)

CHECKS = (
    *canife_rates.CHECKS,
    *canife_privacy.CHECKS,
    *canife_composition.CHECKS,
    *canife_models.CHECKS,
    *canife_counts.CHECKS,
    *canife_data.CHECKS,
)
