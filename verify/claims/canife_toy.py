"""CANIFE's toy setting, CIFAR10 with a sample a client: noise, deviations and what they separate (Section 4.1)."""

import math
from typing import Any

from scipy import stats

from canaryproof.kernels.certified import gaussian_mechanism as certified
from canaryproof.verify.claims.canife_numbers import (
    CAP,
    CODE_DELTA,
    PAPER,
    SCORES_DELTA,
    TRIALS,
    fixed,
    rounding,
)
from canaryproof.verify.claims.judging import LEVEL, claim, found
from canaryproof.verify.error_control import POWER, visible_spread
from canaryproof.verify.results import Context, Design, Outcome, Verdict
from canaryproof.verify.sampled_rdp import rdp

# Noise, and the mean standard deviations of the scores with it and without.
TOY_SIGMA, DEVIATION, NOISELESS = "0.423", "0.478", "0.006"
# 64 of CIFAR10's 50,000 images a round.
TOY_SAMPLING = 64 / 50_000
TOY_ROUNDS_AN_EPOCH = 782


def _judge_toy(_: Context) -> Outcome:
    sigma = float(TOY_SIGMA)
    exact = certified.epsilon(SCORES_DELTA, sigma)
    bound = rdp(sigma, CODE_DELTA)
    cap = float(rounding(CAP)[1])
    verdict = Verdict.QUALIFIED if exact.lo > cap else Verdict.CONFIRMED
    return found(
        verdict,
        f"only for standard deviations ({DEVIATION} against σ = {TOY_SIGMA}); ε̂ cannot match: at most {CAP} where one "
        f"round's exact ε is in [{exact.lo!r}, {exact.hi!r}] at δ = 1/n and {bound:.2f} by RDP at δ = 1e-5",
        exact=(exact.lo, exact.hi),
        one_round=bound,
    )


def judge_deviation(printed: float, sigma: float) -> Outcome:
    """Judge whether the mean deviation of two histograms of 50 scores is what noise alone makes it.

    Parameters
    ----------
    printed
        Mean of the two standard deviations.
    sigma
        Standard deviation of the noise.
    """
    degrees = TRIALS - 2
    statistic = degrees * (printed / sigma) ** 2
    p_value = min(1.0, 2.0 * min(stats.chi2.sf(statistic, degrees), stats.chi2.cdf(statistic, degrees)))
    rest = math.sqrt(max(printed**2 - sigma**2, 0.0))
    finding = (
        f"{printed / sigma - 1:+.1%} from σ; 2 × 50 scores of noise alone differ so much with p = {p_value:.3f}; "
        f"taken at its value, {rest:.3f} beside the noise, where without noise it was {NOISELESS}"
    )
    ratio = visible_spread(degrees + 1, LEVEL)
    null, alternative = "the printed deviation is of scores of noise alone", f"theirs is {ratio:.2g} times the noise's"
    design = Design(null, LEVEL, alternative, POWER, TRIALS)
    verdict = Verdict.CONFIRMED if p_value >= LEVEL else Verdict.REFUTED
    return found(verdict, finding, design, statistic=float(statistic), p_value=float(p_value), rest=rest)


def judge_toy_epsilon(printed: str) -> Outcome:
    """Judge the noise multiplier printed for ε = 25 in the toy setting by the epochs of training that it implies.

    Parameters
    ----------
    printed
        The noise multiplier.
    """
    rows: dict[str, Any] = {}
    for name, delta in {"δ = 1e-5": CODE_DELTA, "δ = 1/50000": 1 / 50_000}.items():
        # ε falls as σ grows: the whole epochs at which ε = 25 has a σ that prints so.
        low, high = (float(end) for end in rounding(printed))
        ends = [_epochs_to(25.0, sigma, delta) for sigma in (low, high)]
        rows[name] = {
            "epochs": list(range(math.ceil(min(ends)), math.floor(max(ends)) + 1)),
            "at_50_epochs": rdp(float(printed), delta, 50 * TOY_ROUNDS_AN_EPOCH, TOY_SAMPLING),
        }
    listed = "; ".join(
        f"{name}: {' or '.join(map(str, row['epochs'])) or 'no whole number of'} epochs ({row['at_50_epochs']:.2f} "
        "after 50)"
        for name, row in rows.items()
    )
    # Some number of epochs fits any σ; a round one is a reading that could have been meant.
    is_round = any(epoch % 10 == 0 for row in rows.values() for epoch in row["epochs"])
    return found(
        Verdict.QUALIFIED if is_round else Verdict.INCONCLUSIVE,
        f"rounds and δ are not printed; ε = 25 belongs to σ = {printed} after {listed}",
        readings=rows,
    )


def _epochs_to(epsilon: float, sigma: float, delta: float) -> float:
    """Epochs of the toy setting until ε, not whole."""
    least, most = 30, 80
    while most - least > 1:
        middle = (least + most) // 2
        reached = rdp(sigma, delta, middle * TOY_ROUNDS_AN_EPOCH, TOY_SAMPLING) >= epsilon
        least, most = (least, middle) if reached else (middle, most)
    at_least, at_most = (rdp(sigma, delta, k * TOY_ROUNDS_AN_EPOCH, TOY_SAMPLING) for k in (least, most))
    return least + (epsilon - at_least) / (at_most - at_least)


def judge_success(deviation: float) -> Outcome:
    """Judge that an attack succeeds completely by how well scores around 0 and ‖u_c‖² = C² = 1 can be told apart.

    Parameters
    ----------
    deviation
        Printed mean standard deviation of the scores.
    """
    rows = {
        f"{value:g}": float(stats.norm.cdf(0.5 / value)) for value in (deviation, float(TOY_SIGMA), float(DEVIATION))
    }
    right = rows[f"{deviation:g}"] ** TRIALS
    listed = ", ".join(f"{name} {accuracy:.3f}" for name, accuracy in rows.items())
    return found(
        Verdict.CONFIRMED if right >= 1.0 - 1e-6 else Verdict.REFUTED,
        f"the centres are {1.0 / deviation:.1f} standard deviations apart: all {TRIALS} trials are right with "
        f"probability {right:.6f} (accuracy at half the distance by standard deviation: {listed})",
        accuracies=rows,
        all_right=right,
    )


CHECKS = (
    claim(
        "canife.section4.1.success",
        PAPER + "Section 4.1, Figure 3a",
        f"Without noise the scores' mean standard deviation is {NOISELESS} and the attack succeeds completely",
        fixed(judge_success, float(NOISELESS)),
    ),
    claim(
        "canife.section4.1.epsilon",
        PAPER + "Section 4.1",
        f"ResNet18 on CIFAR10, 64 clients a round, has a final ε = 25 at σ = {TOY_SIGMA}",
        fixed(judge_toy_epsilon, TOY_SIGMA),
    ),
    claim(
        "canife.section4.1.deviation",
        PAPER + "Section 4.1, Figure 3b",
        f"The histograms' mean standard deviation {DEVIATION} is close to the noise's σ = {TOY_SIGMA}",
        fixed(judge_deviation, float(DEVIATION), float(TOY_SIGMA)),
    ),
    claim(
        "canife.section1.toy",
        PAPER + "Section 1",
        "In the toy setting the measure matches the guarantee tightly",
        _judge_toy,
    ),
)
