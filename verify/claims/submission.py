"""Claims of the anonymous submission of Andrew et al.

Its Section 3, proofs and Appendix B are the final version's, lines of the suite of theorems; so is what Table 4's
caption says of Anderson's critical values.
"""

from canaryproof.verify.claims import (
    submission_appendices,
    submission_emnist,
    submission_stackoverflow,
    submission_versions,
    v1_gaussian,
)
from canaryproof.verify.claims.submission_printed import SUBMISSION, TABLE_1
from canaryproof.verify.claims.v1_judging import repeated
from canaryproof.verify.results import Check

_REPEATED = {
    "abstract.retrainings": ("abstract and Section 1", "final.abstract.retrainings"),
    "equation1": ("equation 1", "final.section2.equation1"),
    "section3.close": ("Section 3 and Table 1", "final.section3.close"),
    "section4.orthogonal": ("Section 4", "final.section4.orthogonal"),
    "section5.canary-share": ("Sections 1 and 5", "final.section5.1.canary-share"),
    "section5.parameters": ("Section 5", "final.section5.1.parameters"),
    "section5.rounds": ("Section 5 (where our copy has 34k)", "final.section5.1.epoch"),
    "section5.jeffreys": ("Section 5", "final.section5.1.jeffreys"),
    "section5.lower-bound": ("Section 5", "final.section5.1.confidence"),
    "footnote4": ("footnote 4", "final.section5.1.footnote5"),
    "footnote5": ("footnote 5", "final.section5.1.posterior"),
    "table2.row2.cap": ("Section 5 and Table 2", "final.table3.row2.cap"),
    "appendixD.data": ("Appendix D", "final.section5.2.1.size"),
    "appendixD.parameters": ("Appendix D", "final.section5.2.1.parameters"),
    "appendixH.epsilon": ("Appendix H", "final.section5.4.analytical"),
    "appendixH.settings": ("Appendix H", "final.section5.4.settings"),
    "appendixH.audits": ("Appendix H", "final.section5.4.audits"),
    "appendixH.closer": ("Appendix H", "final.section5.4.closer"),
    "table6.close": ("Appendix J and Table 6", "final.table5.close"),
    "appendixJ.canaries": ("Appendix J", "final.section5.3.canaries"),
    "appendixJ.models": ("Appendix J", "final.section5.3.trainings"),
    "appendixJ.orthogonal": ("Appendix J", "final.section5.3.orthogonal"),
}
# The final version's Table 5 is Table 6 here.
_QUANTILES = {f"table6.row{row}.spread": f"final.table5.row{row}.spread" for row in range(1, 5)}

CHECKS: tuple[Check, ...] = (
    *(
        repeated(f"submission.{place}", f"{SUBMISSION}, {source}", original)
        for place, (source, original) in _REPEATED.items()
    ),
    *(repeated(f"submission.{place}", f"{SUBMISSION}, Table 6", original) for place, original in _QUANTILES.items()),
    *v1_gaussian.checks("submission", SUBMISSION, TABLE_1, "fitted"),
    *submission_stackoverflow.CHECKS,
    *submission_emnist.CHECKS,
    *submission_appendices.CHECKS,
    *submission_versions.CHECKS,
)
