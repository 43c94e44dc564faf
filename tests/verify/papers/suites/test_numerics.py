from dataclasses import replace

import mpmath as mp
import pytest

from canaryproof.kernels import two_gaussians
from canaryproof.kernels.certified import Enclosure
from canaryproof.verify.papers.check.results import Check, Context, Effort, Verdict
from canaryproof.verify.papers.suites import numerics
from canaryproof.verify.papers.suites.worst_case.table import read
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS

CONTEXT = Context(Effort.QUICK, 5)
BY_NAME = {target.name: target for target in TARGETS}


def judged(name, **changes):
    return numerics.judge_errors(replace(BY_NAME[name], **changes), read(), CONTEXT)


@pytest.mark.parametrize(
    "name",
    ["null-cosine.pdf", "two-gaussians.log-delta.forward", "gaussian-mechanism.epsilon", "binomial.lower.jeffreys"],
)
def test_kernels_keep_their_budget(name):
    outcome = judged(name)
    assert outcome.verdict is Verdict.CONFIRMED
    assert all(outcome.evidence[domain]["judged"] > 50 for domain in ("practice", "whole"))


def test_an_error_of_ten_ulps_in_practice_is_found():
    wrong = lambda *arguments: (1 + 10 * 2.0**-52) * two_gaussians.epsilon(*arguments)  # noqa: E731
    assert judged("two-gaussians.epsilon.both", kernel=wrong).verdict is Verdict.REFUTED


def test_an_error_at_one_seam_is_found():
    def wrong(epsilon, sigma):
        value = BY_NAME["gaussian-mechanism.delta"].kernel(epsilon, sigma)
        return 0.5 * value if epsilon == 0.0 and sigma == 1e9 else value

    assert judged("gaussian-mechanism.delta", kernel=wrong).verdict is Verdict.REFUTED


def test_one_direction_in_place_of_both_is_found():
    forward = lambda *arguments: two_gaussians.epsilon(*arguments, direction="forward")  # noqa: E731
    assert judged("two-gaussians.epsilon.both", kernel=forward).verdict is Verdict.REFUTED


def test_nan_is_an_error_and_not_a_pass():
    assert judged("null-cosine.pdf", kernel=lambda *_: float("nan")).verdict is Verdict.REFUTED


def judged_enclosures(name, **changes):
    return numerics.judge_enclosures([replace(BY_NAME[name], **changes)], CONTEXT)


@pytest.mark.parametrize("name", ["null-cosine.logsf", "two-gaussians.epsilon.forward", "gaussian-mechanism.delta"])
def test_enclosures_hold_their_twins(name):
    assert judged_enclosures(name).verdict is Verdict.CONFIRMED


def test_an_enclosure_beside_the_value_is_found():
    def shifted(*arguments):
        exact = BY_NAME["null-cosine.logsf"].certified(*arguments)
        up = exact.hi + abs(exact.hi) * 2.0**-52
        return Enclosure(up, up, exact.ball)

    assert judged_enclosures("null-cosine.logsf", certified=shifted).verdict is Verdict.REFUTED


def test_a_wide_enclosure_is_found():
    def wide(*arguments):
        exact = BY_NAME["null-cosine.logsf"].certified(*arguments)
        return Enclosure(exact.lo * (1.0 + 2.0**-50), exact.hi, exact.ball)

    assert judged_enclosures("null-cosine.logsf", certified=wide).verdict is Verdict.REFUTED


def test_a_twin_that_does_not_converge_decides_nothing():
    def lost(*_, **__):
        raise mp.mp.NoConvergence("no two precisions agree")

    outcome = judged_enclosures("null-cosine.logsf", twin=lost)
    # Nothing compared is nothing confirmed.
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.evidence["undecided"] == 3
    assert outcome.evidence["compared"] == 0


def test_as_many_inputs_are_compared_as_were_asked_for():
    assert all(judged_enclosures(name).evidence["compared"] == 3 for name in BY_NAME if "gauss" in name)


@pytest.mark.parametrize("sweep", numerics.SWEEPS, ids=lambda sweep: sweep.name)
def test_our_kernels_keep_their_budget(sweep, quick_run):
    result = quick_run.results[f"numerics.comparison.{sweep.name}"]
    assert result.verdict is Verdict.CONFIRMED
    # The others are computed too, and none of them is a copy of ours.
    worst = result.evidence["worst"]
    assert all(error > worst[numerics.PACKAGE] for name, error in worst.items() if name != numerics.PACKAGE)


def test_an_error_of_ours_is_found_and_one_of_others_is_not_ours():
    sweep = numerics.SWEEPS[2]
    wrong = lambda *arguments: (1.0 + 1e-14) * sweep.methods[numerics.PACKAGE](*arguments)  # noqa: E731
    assert (
        numerics.judge_sweep(replace(sweep, methods={**sweep.methods, numerics.PACKAGE: wrong}), CONTEXT).verdict
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


PATHS = [check for check in numerics.CHECKS if check.id.startswith("numerics.paths.")]


@pytest.mark.parametrize("check", PATHS[:4], ids=lambda check: check.id)
def test_it_is_confirmed(check: Check) -> None:
    outcome = check.judge(Context(Effort.QUICK, 3))
    assert outcome.verdict is Verdict.CONFIRMED, outcome.finding


def test_no_path_is_a_target_of_the_search() -> None:
    searched = {check.id for check in numerics.CHECKS}
    assert not {f"numerics.{target.name}" for target in numerics.PATHS} & searched
