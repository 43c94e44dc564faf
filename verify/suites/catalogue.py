"""All suites by name."""

from canaryproof.verify import claims
from canaryproof.verify.suites import gaussian, numerics, paths, theorems

SUITES = {
    "numerics": (*numerics.CHECKS, *paths.CHECKS),
    "gaussian": gaussian.CHECKS,
    "theorems": theorems.CHECKS,
    "claims": claims.CHECKS,
}
