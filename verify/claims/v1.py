"""Claims of the first version of Andrew et al. (arXiv 2302.03098v1).

Its Table 1 is the final version's Table 2 (``suites.tables``); its Section 3 and what its captions say of Anderson's
test are lines of the suite of theorems.
"""

from canaryproof.verify.claims import v1_estimators, v1_setting, v1_tables
from canaryproof.verify.results import Check

CHECKS: tuple[Check, ...] = (*v1_estimators.CHECKS, *v1_setting.CHECKS, *v1_tables.CHECKS)
