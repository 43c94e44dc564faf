"""What random canaries see of mechanisms whose ε is known, and what the documents say of it."""

from canaryproof.verify.suites import (
    blindspots_atlas,
    blindspots_claims,
    blindspots_diagnostics,
    blindspots_scores,
    blindspots_truths,
)

CHECKS = (
    *blindspots_truths.CHECKS,
    *blindspots_scores.CHECKS,
    *blindspots_diagnostics.CHECKS,
    *blindspots_atlas.CHECKS,
    *blindspots_claims.CHECKS,
)
