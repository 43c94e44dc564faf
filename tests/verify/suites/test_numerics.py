from dataclasses import replace

import pytest

from canaryproof.kernels import two_gaussians
from canaryproof.verify.results import Context, Level, Verdict
from canaryproof.verify.suites import numerics
from canaryproof.verify.suites.numerics import COMPARISONS

CONTEXT = Context(Level.QUICK, 5)
BY_ID = {comparison.id: comparison for comparison in COMPARISONS}


def judged(name, **changes):
    return numerics._judge(replace(BY_ID[name], **changes), CONTEXT)


@pytest.mark.parametrize("name", ["null-cosine.pdf", "two-gaussians.log-delta", "gaussian-mechanism.epsilon"])
def test_kernels_keep_their_budget(name):
    assert judged(name).verdict is Verdict.CONFIRMED


def test_an_error_of_a_part_in_a_billion_is_found():
    wrong = lambda *arguments: (1 + 1e-9) * two_gaussians.log_delta(*arguments)  # noqa: E731
    assert judged("two-gaussians.log-delta", kernel=wrong).verdict is Verdict.REFUTED


def test_one_direction_in_place_of_both_is_found():
    forward = lambda *arguments: two_gaussians.epsilon(*arguments, direction="forward")  # noqa: E731
    assert judged("two-gaussians.epsilon", kernel=forward).verdict is Verdict.REFUTED


def test_nan_is_an_error_and_not_a_pass():
    assert judged("null-cosine.pdf", kernel=lambda *_: float("nan")).verdict is Verdict.REFUTED
