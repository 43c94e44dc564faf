"""CANIFE's own studies at small size, our promises on its measures, and CANIFE beside random canaries.

Checks train and design with JAX, which is loaded when one runs. The statements on the paper's own data sets are in
``verify.claims.canife_data``.
"""

from canaryproof.verify.suites import (
    canife_comparison,
    canife_design,
    canife_losses,
    canife_measures,
    canife_monitoring,
    canife_one_sample,
)

CHECKS = (
    *canife_one_sample.CHECKS,
    *canife_design.CHECKS,
    *canife_losses.CHECKS,
    *canife_monitoring.CHECKS,
    *canife_measures.CHECKS,
    *canife_comparison.CHECKS,
)
