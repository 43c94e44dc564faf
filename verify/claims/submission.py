"""Claims of the anonymous submission of Andrew et al.

Its Section 3, proofs and Appendix B are the final version's, lines of the suite of theorems; so are its Table 1
(``suites.tables``) and what Table 4's caption says of Anderson's critical values.
"""

from canaryproof.verify.claims import (
    submission_appendices,
    submission_emnist,
    submission_stackoverflow,
    submission_versions,
)
from canaryproof.verify.results import Check

CHECKS: tuple[Check, ...] = (
    *submission_stackoverflow.CHECKS,
    *submission_emnist.CHECKS,
    *submission_appendices.CHECKS,
    *submission_versions.CHECKS,
)
