"""What the first version says of its estimator and of its lower bound."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.kernels import binomial as limits
from canaryproof.kernels.certified import gaussian_mechanism
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.claims.v1_judging import CANARIES, LEVEL, STACKOVERFLOW_DELTA, V1, fixed, holds
from canaryproof.verify.oneshot.threshold_attack import threshold_epsilon
from canaryproof.verify.results import Check, Context, Outcome, Verdict

_Array = NDArray[np.float64]


def judge_estimator() -> Outcome:
    """Judge that the largest of the two logarithms over all thresholds is the ε of a Gaussian mechanism."""
    delta, rows = 1e-6, []
    for epsilon in (1.0, 3.0, 10.0):
        sigma = gaussian_mechanism.noise_multiplier(epsilon, delta).lo
        attack = float(threshold_epsilon(delta, 1.0 / sigma, 1.0))
        exact = gaussian_mechanism.epsilon(delta, sigma)
        # The attack's kernel is good to some ulps of ε or 1e-15, and 1/σ is rounded once.
        rows.append((attack, exact.hi, abs(attack - exact.hi) <= 1e-12 * epsilon))
    agree = all(row[2] for row in rows)
    return found(
        holds(agree),
        f"at δ = 1e-6 the best threshold's ε is {', '.join(f'{row[0]:.14g}' for row in rows)}, the mechanism's "
        f"{', '.join(f'{row[1]:.14g}' for row in rows)}",
        rows=rows,
    )


def judge_advantage(context: Context) -> Outcome:
    """Judge that fitting mean and deviation to the canaries raises the estimate, for independent Gaussian cosines."""
    runs, rows = context.pick(400, 4000), []
    rng = np.random.default_rng(context.key("v1.section4.advantage"))
    for epsilon in (1.0, 3.0, 10.0):
        distance = 1.0 / gaussian_mechanism.noise_multiplier(epsilon, STACKOVERFLOW_DELTA).lo
        means = distance + rng.standard_normal(runs) / math.sqrt(CANARIES)
        ratios = np.sqrt(rng.chisquare(CANARIES - 1, runs) / CANARIES)
        excess = threshold_epsilon(STACKOVERFLOW_DELTA, means, ratios) - epsilon
        mean, error = float(excess.mean()), float(excess.std(ddof=1) / math.sqrt(runs))
        p_value = float(stats.t.sf(mean / error, runs - 1))
        rows.append({"epsilon": epsilon, "excess": mean, "error": error, "p_value": p_value})
    visible = [float(stats.t.isf(LEVEL / 3, runs - 1)) * row["error"] for row in rows]
    verdict = Verdict.CONFIRMED if all(row["p_value"] < LEVEL / 3 for row in rows) else Verdict.INCONCLUSIVE
    listed = ", ".join(f"{row['excess']:+.3f} ± {row['error']:.3f} at ε = {row['epsilon']:g}" for row in rows)
    # Power: an excess of this size is found in half the cases.
    return found(verdict, f"mean excess with {CANARIES} canaries {listed}", rows=rows, level=LEVEL, visible=visible)


def judge_threshold_choice(context: Context) -> Outcome:
    """Judge that a threshold chosen on the reported sample raises the 95% lower bound."""
    runs, epsilon = context.pick(200, 2000), 3.0
    rng = np.random.default_rng(context.key("v1.footnote5"))
    distance = 1.0 / gaussian_mechanism.noise_multiplier(epsilon, STACKOVERFLOW_DELTA).lo
    misses = limits.upper(np.arange(CANARIES + 1), CANARIES, 0.95, "jeffreys")

    def bound(thresholds: _Array, missed: NDArray[np.int_]) -> _Array:
        hidden = np.maximum(special.ndtr(thresholds) - STACKOVERFLOW_DELTA, 1e-300) / misses[missed]
        shown = np.maximum(1 - STACKOVERFLOW_DELTA - misses[missed], 1e-300)
        best: _Array = np.maximum(np.log(hidden), np.log(shown) - special.log_ndtr(-thresholds))
        return best

    gains, above, ranks = [], 0, np.arange(CANARIES)
    for _ in range(runs):
        first, second = (np.sort(distance + rng.standard_normal(CANARIES)) for _ in range(2))
        # Between two canaries the misses are as many, and at the upper one the false positives are fewest.
        chosen = first[[np.argmax(bound(first, ranks))]]
        best = float(bound(second, ranks).max())
        gains.append(best - float(bound(chosen, np.searchsorted(second, chosen))[0]))
        above += best > epsilon
    gain, error = float(np.mean(gains)), float(np.std(gains, ddof=1) / math.sqrt(runs))
    p_value = float(stats.t.sf(gain / error, runs - 1))
    return found(
        Verdict.CONFIRMED if p_value < LEVEL else Verdict.INCONCLUSIVE,
        f"at ε = 3 the bound rises by {gain:.3f} ± {error:.3f} in the mean over one with a threshold from another run, "
        f"and lies above the true ε in {above} of {runs} runs",
        gain=gain,
        error=error,
        above=above,
        runs=runs,
        level=LEVEL,
        visible=float(stats.t.isf(LEVEL, runs - 1)) * error,
    )


CHECKS: tuple[Check, ...] = (
    fixed(
        "v1.section2.estimator",
        f"{V1}, Section 2",
        "the larger of the two logarithms of false positive and false negative rates estimates ε",
        judge_estimator,
    ),
    claim(
        "v1.section4.advantage",
        f"{V1}, Section 4",
        "an adversary who sees the mean and deviation before choosing the threshold has slightly higher estimates",
        judge_advantage,
    ),
    claim(
        "v1.footnote5",
        f"{V1}, footnote 5",
        "choosing the threshold on the same sample makes the lower bound somewhat higher than otherwise",
        judge_threshold_choice,
    ),
)
