from dataclasses import replace

import pytest

from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.suites import numerics

CONTEXT = Context(Level.QUICK, 5)


@pytest.mark.parametrize("sweep", numerics.SWEEPS, ids=lambda sweep: sweep.name)
def test_our_kernels_keep_their_budget(sweep, quick_run):
    result = quick_run.results[f"numerics.comparison.{sweep.name}"]
    assert result.verdict is Verdict.CONFIRMED
    # The others are computed too, and none of them is a copy of ours.
    worst = result.evidence["worst"]
    assert all(error > worst[numerics.OURS] for name, error in worst.items() if name != numerics.OURS)


def test_an_error_of_ours_is_found_and_one_of_others_is_not_ours():
    sweep = numerics.SWEEPS[2]
    wrong = lambda *arguments: (1.0 + 1e-14) * sweep.methods[numerics.OURS](*arguments)  # noqa: E731
    assert (
        numerics.judge_sweep(replace(sweep, methods={**sweep.methods, numerics.OURS: wrong}), CONTEXT).verdict
        is Verdict.REFUTED
    )
    assert (
        numerics.judge_sweep(replace(sweep, methods={**sweep.methods, "plain formula": wrong}), CONTEXT).verdict
        is Verdict.CONFIRMED
    )


def test_the_plain_formula_is_the_curve_where_it_can_be():
    # Far from equal deviations and from the tails, it is right to many digits.
    for delta, distance, ratio in ((1e-3, 1.0, 1.3), (1e-3, 1.0, 0.8), (1e-4, 0.5, 1.0)):
        exact = numerics.SWEEPS[5].certified(delta, distance, ratio).lo
        assert numerics._plain_epsilon(delta, distance, ratio) == pytest.approx(exact, rel=1e-9)
