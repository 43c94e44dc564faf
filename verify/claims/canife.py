"""Claims of CANIFE (Maddock et al., arXiv 2210.02912)."""

from canaryproof.verify.claims import canife_attack, canife_composition, canife_models

CHECKS = (
    *canife_attack.CHECKS,
    *canife_composition.CHECKS,
    *canife_models.CHECKS,
)
