"""Judges of privacy accounting that the first version and the submission share: noise, and what noise alone gives."""

import math
from collections.abc import Callable, Sequence

from canaryproof.kernels.certified import gaussian_mechanism as certified_mechanism
from canaryproof.verify.claims import accounting, estimate_law
from canaryproof.verify.claims.final_printed import Row
from canaryproof.verify.claims.judging import LEVEL, found
from canaryproof.verify.claims.v1_judging import CANARIES, middle, printed
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Design, Outcome, Verdict

# ε by name of the reading, as functions of the noise multiplier.
Readings = Callable[[float], dict[str, float]]


def sampled(noise_multiplier: float, delta: float, rounds: int, sampling: float) -> dict[str, float]:
    """Return ε by Rényi accounting with Poisson sampling, by name of the reading, which tells the rate.

    Parameters
    ----------
    noise_multiplier, delta, rounds, sampling
        As for ``accounting.rdp``.
    """
    values = accounting.sampled_readings(noise_multiplier, delta, rounds, sampling)
    return {f"{name} at {sampling:.3g}": value for name, value in values.items()}


def calibrated(multiplier: str, epsilon: str, readings: Readings, delta: float, stated: frozenset[str]) -> Outcome:
    """Judge a printed ε under every reading, within the rounding of the noise multiplier and of an ε with decimals.

    Parameters
    ----------
    multiplier, epsilon
        The noise multiplier and ε, as printed; a whole ε is taken as the goal of a calibration, met to 0.1%.
    readings
        ε by name of the reading, as decreasing functions of the noise multiplier.
    delta
        δ of the exact ε that the finding gives.
    stated
        Names of the readings that the text states; another one that holds qualifies the claim.
    """
    sigma = float(multiplier)
    # A whole number is no rounded result but what the noise was calibrated to, by a search that ends near it.
    goal = float(middle(epsilon))
    low, high = (float(end) for end in printed(epsilon)) if "." in epsilon else (goal * 0.999, goal * 1.001)
    values, most, fewest = (readings(float(s)) for s in (sigma, *printed(multiplier)))
    holding = [name for name in values if fewest[name] <= high and most[name] >= low]
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


def noise_mean(noise_multiplier: float, rounds: int, presentations: int = 1) -> float:
    """Return the mean of the final model's cosines, in the null's units, if it is but canaries and noise of one size.

    The cosines are then independent N(m, 1), m = p/(σ√T), but for O(k/d).

    Parameters
    ----------
    noise_multiplier
        σ of one round over the clip norm.
    rounds, presentations
        T, and the rounds p in which a canary takes part.
    """
    return presentations / (noise_multiplier * math.sqrt(rounds))


def noise_alone(rows: Sequence[Row], delta: float, rounds: int) -> Outcome:
    """Judge estimates from the final model by what noise of equal size in all rounds would give, and nothing else.

    Each canary is in one round. Other clients' updates and a clip norm that changes are left out, so that an estimate
    which agrees only qualifies, and one which doesn't decides nothing.

    Parameters
    ----------
    rows
        Printed rows with noise.
    delta, rounds
        δ and the rounds of training.
    """
    means = [noise_mean(float(row.noise), rounds) for row in rows]
    p_values, listed = [], []
    for row, mean in zip(rows, means, strict=True):
        low, middle, high = (estimate_law.quantile(estimate_law.fitted, q, mean, delta) for q in (0.05, 0.5, 0.95))
        below = estimate_law.fitted(float(row.estimate_final), mean, delta)
        p_values.append(float(estimate_law.two_sided(below)[0, 0]))
        listed.append(f"{low:.2f} to {high:.2f} (median {middle:.2f}, printed {row.estimate_final})")
    joint = min(1.0, len(rows) * min(p_values))
    finding = (
        f"if noise, the same in all rounds, is all there is and each canary takes part once, 90% of estimates are "
        f"{', '.join(listed)}"
    )
    shares = [mean / estimate_law.noticed(mean, delta, LEVEL / len(rows)) for mean in means]
    design = Design(
        "the printed estimates are by fitted from 1,000 independent normal cosines each, as noise alone gives them",
        LEVEL,
        f"in one row the noise is {min(shares):.0%} of what is said",
        POWER,
        CANARIES,
    )
    verdict = Verdict.QUALIFIED if joint >= LEVEL else Verdict.INCONCLUSIVE
    return found(verdict, finding, design, p_value=joint, p_values=p_values, level=LEVEL)
