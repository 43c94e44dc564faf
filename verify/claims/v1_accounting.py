"""Judges of privacy accounting that the first version and the submission share: noise, caps, what noise alone gives."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from scipy import stats

from canaryproof.kernels.certified import binomial
from canaryproof.kernels.certified import gaussian_mechanism as certified_mechanism
from canaryproof.verify.claims import accounting, sampled_rdp
from canaryproof.verify.claims.judging import found
from canaryproof.verify.claims.v1_judging import (
    CANARIES,
    LEVEL,
    ROUNDS,
    STACKOVERFLOW_DELTA,
    agrees,
    holds,
    middle,
    printed,
)
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.results import Context, Outcome, Verdict

Accounting = Callable[[float], float]


def accountings(
    delta: float, rounds: int, sampling: float = 1.0, participations: int = 1, *, losses: bool = True
) -> dict[str, Accounting]:
    """Return what an "analytical ε" could have meant, as functions of the noise multiplier.

    Parameters
    ----------
    delta
        Target δ.
    rounds
        Rounds of training.
    sampling
        Share of the records in a round; 1 leaves Poisson sampling out.
    participations
        Rounds in which one record takes part.
    losses
        Whether to account for Poisson sampling by privacy loss distributions too, which takes seconds.

    Returns
    -------
    ε of the noise multiplier, by name of the reading.
    """
    readings: dict[str, Accounting] = {}
    for count, where in {1: "one round", participations: f"{participations} rounds", rounds: "every round"}.items():
        name = "one round" if count == 1 else where
        readings[f"exact Gaussian, {name}"] = partial(lambda n, s: accounting.gaussian(s, delta, n), count)
        readings[f"exact Gaussian, {name}, replacing a record"] = partial(
            lambda n, s: accounting.gaussian(0.5 * s, delta, n), count
        )
        readings[f"tail of the privacy loss, {name}"] = partial(lambda n, s: accounting.loss_tail(s, delta, n), count)
        for conversion in ("improved", "classical"):
            readings[f"RDP {conversion}, {name}"] = partial(
                lambda n, c, s: accounting.rdp(s, delta, n, conversion=c), count, conversion
            )
    if sampling < 1.0:
        where = f"Poisson sampling at {sampling:.3g}"
        for conversion in ("improved", "classical"):
            readings[f"RDP {conversion}, {where}"] = partial(
                lambda c, s: accounting.rdp(s, delta, rounds, sampling, conversion=c), conversion
            )
        readings[f"RDP improved, signed series, {where}"] = lambda s: sampled_rdp.rdp(s, delta, rounds, sampling)
        if losses:
            readings[f"PLD, {where}"] = lambda s: accounting.pld(s, delta, rounds, sampling)
    return readings


def calibrated(
    multiplier: str, epsilon: str, readings: Mapping[str, Accounting], delta: float, stated: frozenset[str]
) -> Outcome:
    """Judge a printed ε under every reading, within the rounding of the noise multiplier and of an ε with decimals.

    Parameters
    ----------
    multiplier, epsilon
        The noise multiplier and ε, as printed; a whole ε is taken as the goal of a calibration, met to 0.1%.
    readings
        ε as decreasing functions of the noise multiplier, by name.
    delta
        δ of the exact ε that the finding gives.
    stated
        Names of the readings that the text states; another one that holds qualifies the claim.
    """
    sigma = float(multiplier)
    # A whole number is no rounded result but what the noise was calibrated to, by a search that ends near it.
    goal = float(middle(epsilon))
    low, high = (float(end) for end in printed(epsilon)) if "." in epsilon else (goal * 0.999, goal * 1.001)
    least, greatest = (float(end) for end in printed(multiplier))
    values = {name: reading(sigma) for name, reading in readings.items()}
    # Rounding the multiplier moves ε by some percent at most: what is far off needs no second look.
    close = [name for name, value in values.items() if 0.9 < value / goal < 1.1]
    holding = [name for name in close if readings[name](greatest) <= high and readings[name](least) >= low]
    right = [name for name in holding if name in stated]
    verdict = Verdict.CONFIRMED if right else Verdict.QUALIFIED if holding else Verdict.REFUTED
    exact = certified_mechanism.epsilon(delta, sigma)
    nearest = min(values, key=lambda name: abs(values[name] / goal - 1))
    named = right or holding
    finding = (
        f"holds under: {'; '.join(f'{name} ({values[name]:.6g})' for name in named)}"
        if named
        else f"under none of {len(values)} readings; the nearest is {nearest} with {values[nearest]:.6g}"
    ) + f"; one round is exactly in [{exact.lo:.8g}, {exact.hi:.8g}]"
    return found(verdict, finding, delta=delta, readings=values, holding=holding)


def cap(bounds: Sequence[str], delta: float) -> Outcome:
    """Judge that printed 95% lower bounds can be reached with 1000 canaries, and say with which limits.

    With every canary recognised and no false positive the bound is log((1 − δ)/u), with u the upper limit of the
    probability of a miss after 0 of 1000.

    Parameters
    ----------
    bounds
        Printed bounds.
    delta
        Target δ.
    """
    limits = {
        "Jeffreys": binomial.upper(0, CANARIES, 0.95, "jeffreys"),
        "Jeffreys, two-sided": binomial.upper(0, CANARIES, 0.975, "jeffreys"),
        "Clopper-Pearson": binomial.upper(0, CANARIES, 0.95, "clopper-pearson"),
    }
    caps = {name: float((((1 - delta) / limit.ball).log()).mid()) for name, limit in limits.items()}
    # Where the false positives are bounded too, by none of 1000.
    both = float((((1 - delta - limits["Jeffreys"].ball) / limits["Jeffreys"].ball).log()).mid())
    largest = max(bounds, key=float)
    reached = [name for name, value in caps.items() if printed(largest)[0] <= value]
    finding = (
        f"the largest, {largest}, is within reach of {', '.join(reached) or 'no limit'}; caps "
        + ", ".join(f"{name} {value:.4f}" for name, value in caps.items())
        + f", Jeffreys for false positives too {both:.4f}"
        + ("" if agrees(both, largest) or agrees(caps["Jeffreys"], largest) else ", neither of which prints so")
    )
    return found(holds("Jeffreys" in reached), finding, caps=caps, both=both, largest=largest)


def noise_alone(rows: Sequence[tuple[str, str]], context: Context) -> Outcome:
    """Judge estimates from the final model by what noise of equal size in all rounds would give, and nothing else.

    The null hypothesis: the cosines of 1000 canaries, each in one of the rounds, are independent N(m, 1) in the null's
    units, m = 1/(σ√T). Other clients' updates and a clip norm that changes are left out, so that an estimate which
    agrees only qualifies, and one which doesn't decides nothing.

    Parameters
    ----------
    rows
        Printed noise multiplier and estimate.
    context
        Level and seed of the run.
    """
    runs = context.pick(2000, 20000)
    # One key for both documents: equal noise gives equal draws.
    scores, listed = [], []
    for sigma, estimate in rows:
        rng = np.random.default_rng(context.key(f"claims/noise-alone/{sigma}"))
        means = 1.0 / (float(sigma) * math.sqrt(ROUNDS)) + rng.standard_normal(runs) / math.sqrt(CANARIES)
        ratios = np.sqrt(rng.chisquare(CANARIES - 1, runs) / CANARIES)
        sample = estimators.both_directions(STACKOVERFLOW_DELTA, means, ratios)
        scores.append((float(estimate) - float(sample.mean())) / float(sample.std(ddof=1)))
        listed.append(f"{sample.mean():.2f} ± {sample.std(ddof=1):.2f} (printed {estimate})")
    limit = float(stats.norm.isf(0.5 * LEVEL / len(rows)))
    agree = all(abs(score) < limit for score in scores)
    finding = f"if noise, the same in all rounds, is all there is, the estimates are {', '.join(listed)}"
    # Power: a true mean farther away than the limit, in deviations, is found in half the cases.
    verdict = Verdict.QUALIFIED if agree else Verdict.INCONCLUSIVE
    return found(verdict, finding, scores=scores, level=LEVEL, visible=limit, runs=runs)
