"""What the bounds refuse; what every bound refuses is in ``test_every_bound.py``."""

import math
from functools import partial

import numpy as np

from canaryproof.verify.audit.bounds.lower_bound import check_levels, discrete_null, normal_null, prepare
from tests.refusals import refusals

ATOMS = [0.0, 0.1, 0.3]
TABLE = {
    partial(prepare, observed=[1.0, 2.0], unobserved=[0.0]): [
        *(
            (field, value, f"{field}: {rule}")
            for field in ("observed", "unobserved")
            for value, rule in (
                ([], "an audit must have at least one score, in one row"),
                ([[[1.0]]], "an audit must have at least one score, in one row"),
                ([math.nan], "every score must be finite"),
                ([1.0, math.inf], "every score must be finite"),
            )
        ),
        ("unobserved", None, "either unobserved scores or an exact null must be given"),
        ("null", normal_null(), "either unobserved scores or an exact null must be given"),
        ("inclusion", "dice", "'dice' is not a valid Inclusion"),
    ],
    partial(prepare, observed=np.zeros((2, 4)), unobserved=np.zeros((2, 4))): [
        ("unobserved", np.zeros((3, 4)), "unobserved: there must be as many audits as for observed, 2, not 3"),
    ],
    # Above the highest atom by a rounding, it would prove that every ε is too small.
    partial(prepare, observed=[[0.0, 0.1], [0.3, 0.3]], null=discrete_null(ATOMS, [0.5, 0.25, 0.25])): [
        ("observed", [0.0, 0.1 + 0.2], "observed: 0.30000000000000004 is no atom of the null; the nearest is 0.3"),
    ],
    partial(discrete_null, values=[0.0, 1.0], probabilities=[0.5, 0.5]): [
        *(
            ("values", value, "values: the atoms must be finite and increase")
            for value in ([], [0.0, 0.0], [0.0, math.inf], [[0.0, 1.0]])
        ),
        ("probabilities", [1.0], "probabilities: there must be one for each of 2 values, not 1"),
        *(
            ("probabilities", value, "probabilities: they must not be negative, and sum to 1")
            for value in ([1.5, -0.5], [0.5, 0.4], [0.5, math.nan])
        ),
    ],
    partial(check_levels, delta=0.0, alpha=0.1): [
        *(("delta", value, "delta must lie in [0, 1), not ") for value in (-1e-9, 1.0, math.nan)),
        *(("alpha", value, "alpha must lie strictly between 0 and 1, not ") for value in (0.0, 1.0, math.nan)),
    ],
}


@refusals(TABLE)
def test_refusals(row):
    row.check()
