"""Claims of CANIFE (Maddock et al., arXiv 2210.02912)."""

from canaryproof.verify.claims import (
    canife_attack,
    canife_composition,
    canife_counts,
    canife_data,
    canife_gap,
    canife_limits,
    canife_models,
    canife_rates,
    canife_schedule,
    canife_toy,
)

CHECKS = (
    *canife_attack.CHECKS,
    *canife_rates.CHECKS,
    *canife_limits.CHECKS,
    *canife_toy.CHECKS,
    *canife_gap.CHECKS,
    *canife_composition.CHECKS,
    *canife_models.CHECKS,
    *canife_counts.CHECKS,
    *canife_schedule.CHECKS,
    *canife_data.CHECKS,
)
