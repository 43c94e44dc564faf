"""Claims of the final version of Andrew et al. (arXiv 2302.03098), in the order of its parts.

Table 2's cells and the proofs are judged by the suites ``gaussian`` and ``theorems``.
"""

from canaryproof.verify.claims import final_bounds, final_noise, final_setting, final_tables

CHECKS = (
    *final_setting.CHECKS,
    *final_noise.CHECKS,
    *final_bounds.CHECKS,
    *final_tables.CHECKS,
)
