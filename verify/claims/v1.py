"""Claims of the first version of Andrew et al. (arXiv 2302.03098v1).

Its Section 3 and what a caption says of Anderson's critical values are lines of the suite of theorems.
"""

from canaryproof.verify.claims import v1_estimators, v1_gaussian, v1_setting, v1_tables
from canaryproof.verify.claims.v1_judging import V1, repeated
from canaryproof.verify.results import Check

_REPEATED = {
    "abstract.retrainings": ("abstract and Section 1", "final.abstract.retrainings"),
    "section2.estimator": ("Section 2", "final.section2.equation1"),
    "section3.close": ("Section 3 and Table 1", "final.section3.close"),
    "section4.orthogonal": ("Sections 1 and 4", "final.section5.3.orthogonal"),
    "section5.parameters": ("Section 5", "final.section5.1.parameters"),
    "section5.rounds": ("Section 5", "final.section5.1.epoch"),
    "section5.jeffreys": ("Section 5", "final.section5.1.jeffreys"),
    "section5.lower-bound": ("Section 5", "final.section5.1.confidence"),
}

CHECKS: tuple[Check, ...] = (
    *(repeated(f"v1.{place}", f"{V1}, {source}", original) for place, (source, original) in _REPEATED.items()),
    *v1_gaussian.CHECKS,
    *v1_estimators.CHECKS,
    *v1_setting.CHECKS,
    *v1_tables.CHECKS,
)
