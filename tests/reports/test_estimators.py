from canaryproof.reports import estimators
from canaryproof.verify.check.results import Level, Run
from tests.reports import made_up


def cell(ratio, pinned, fitted, adaptive):
    errors = {"pinned": pinned, "fitted": fitted, "adaptive": adaptive}
    return {"distance": 1.0, "ratio": ratio, "epsilon": 3.0, "epsilon_certified": [3.0, 3.1], **errors}


def test_the_chapter_says_how_far_each_estimator_is_from_the_best_at_the_worst():
    # Ratios to the smallest error of a cell: 1, 4, 2; then 6, 3, 1.
    cells = [cell(1.0, 0.5, 2.0, 1.0), cell(0.7, 1.2, 0.6, 0.2)]
    evidence = {"runs": 100, "count": 1000, "delta": 1e-6, "cells": cells, "largest_excess": 0.0}
    result = made_up.claim("estimators.default-estimator", suite="estimators", **evidence)
    words = estimators.text(Run("0", Level.QUICK, 0, (result,))).partition("\n")[0]
    assert "differ by up to 30%" in words
    assert words.endswith("`pinned` 6.0 times, `fitted` 4.0 times, `adaptive` 2.0 times.")
