"""The claims ledger: every quantitative statement of the documents that can be decided, with its verdict.

Documents follow one another as listed, and within a document its parts; ``sentences`` has more of all
documents. The package's own findings are in ``cross_checks``. The suite ``algorithm1`` judges cells of simulated
tables, among them the final version's Table 2, and ``theorems`` judges the proofs.
"""

from canaryproof.verify.papers.claims import (
    canife,
    cross_checks,
    final_bounds,
    final_noise,
    final_setting,
    final_tables,
    review,
    sentences,
    submission,
    v1,
)

CHECKS = (
    *final_setting.CHECKS,
    *final_noise.CHECKS,
    *final_bounds.CHECKS,
    *final_tables.CHECKS,
    *v1.CHECKS,
    *submission.CHECKS,
    *review.CHECKS,
    *canife.CHECKS,
    *sentences.CHECKS,
    *cross_checks.CHECKS,
)
