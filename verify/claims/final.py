"""Claims of the final version of Andrew et al. (arXiv 2302.03098), in the order of its parts.

Table 2's cells and the proofs are judged by the suites ``gaussian`` and ``theorems``.
"""

from canaryproof.verify.claims import (
    final_all_rounds,
    final_bounds,
    final_data,
    final_figures,
    final_noise,
    final_quantiles,
    final_setup,
    final_tables,
    final_text,
)

CHECKS = (
    *final_text.CHECKS,
    *final_setup.CHECKS,
    *final_noise.CHECKS,
    *final_bounds.CHECKS,
    *final_all_rounds.CHECKS,
    *final_tables.CHECKS,
    *final_figures.CHECKS,
    *final_quantiles.CHECKS,
    *final_data.CHECKS,
)
