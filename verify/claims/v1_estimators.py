"""What the first version says of its estimator and of its lower bound."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.kernels import binomial as limits
from canaryproof.kernels.certified import gaussian_mechanism
from canaryproof.verify.claims.judging import LEVEL, claim, found
from canaryproof.verify.claims.v1_judging import CANARIES, STACKOVERFLOW_DELTA, V1
from canaryproof.verify.error_control import POWER, mean_p_value, visible_mean
from canaryproof.verify.oneshot.threshold_attack import threshold_epsilon
from canaryproof.verify.results import Check, Context, Design, Outcome, Verdict

_Array = NDArray[np.float64]
# What "slightly" is taken to allow, relatively, and at which ε.
_SLIGHTLY = 0.1
_EPSILONS = (1.0, 3.0, 10.0)


def judge_advantage(context: Context) -> Outcome:
    """Judge that fitting mean and deviation to the canaries raises the estimate, for independent Gaussian cosines."""
    runs = context.pick(400, 4000)
    rng = np.random.default_rng(context.key("v1.section4.advantage"))
    rows: list[dict[str, float]] = []
    # Above or below ε, and above or below what is slightly more, as far as the sample tells: 1, −1 or 0.
    higher: list[float] = []
    slightly: list[float] = []
    level = LEVEL / (2 * len(_EPSILONS))
    for epsilon in _EPSILONS:
        distance = 1.0 / gaussian_mechanism.noise_multiplier(epsilon, STACKOVERFLOW_DELTA).lo
        means = distance + rng.standard_normal(runs) / math.sqrt(CANARIES)
        ratios = np.sqrt(rng.chisquare(CANARIES - 1, runs) / CANARIES)
        estimates = threshold_epsilon(STACKOVERFLOW_DELTA, means, ratios)
        excess, error = float(estimates.mean()) - epsilon, float(estimates.std(ddof=1)) / math.sqrt(runs)
        rows.append({"epsilon": epsilon, "excess": excess, "error": error})
        for sides, allowed in ((higher, 0.0), (slightly, _SLIGHTLY * epsilon)):
            told = mean_p_value(estimates, epsilon + allowed) < level
            sides.append(float(np.sign(excess - allowed)) if told else 0.0)
    verdict = Verdict.INCONCLUSIVE
    if min(higher) < 0.0:
        verdict = Verdict.REFUTED
    elif min(higher) > 0.0 and max(slightly) > 0.0:
        verdict = Verdict.QUALIFIED
    elif min(higher) > 0.0 and max(slightly) < 0.0:
        verdict = Verdict.CONFIRMED
    listed = ", ".join(
        f"{row['excess']:+.3f} ± {row['error']:.3f} ({row['excess'] / row['epsilon']:+.0%}) at ε = {row['epsilon']:g}"
        for row in rows
    )
    finding = f"mean excess with {CANARIES} canaries {listed}"
    if verdict is Verdict.QUALIFIED:
        finding = f"higher, but slightly (by {_SLIGHTLY:.0%}) not everywhere: {finding}"
    design = Design(
        f"the mean estimate is above ε by less than {_SLIGHTLY:.0%} at each of {len(rows)} ε",
        LEVEL,
        f"at one ε it is above that by {visible_mean(runs, level):.2g} deviations of an estimate",
        POWER,
        runs,
    )
    return found(verdict, finding, design, rows=rows, level=LEVEL)


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
    # At the best of all thresholds no bound is lower: where it is not higher in the mean, no gain is above 0.
    visible = error * (float(stats.t.isf(LEVEL, runs - 1)) + float(stats.norm.ppf(POWER)))
    design = Design("the bound is not higher in the mean", LEVEL, f"it is by {visible:.2g}", POWER, runs)
    return found(
        Verdict.CONFIRMED if p_value < LEVEL else Verdict.INCONCLUSIVE,
        f"at ε = 3 the bound rises by {gain:.3f} ± {error:.3f} in the mean over one with a threshold from another run, "
        f"and lies above the true ε in {above} of {runs} runs",
        design,
        gain=gain,
        error=error,
        above=above,
        runs=runs,
        level=LEVEL,
    )


CHECKS: tuple[Check, ...] = (
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
