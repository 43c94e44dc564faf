"""Rules for rows of lower bounds and estimates that Andrew et al. measured, and for quantiles of estimates."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy import stats

from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.scores import cosine_null, prepare
from canaryproof.verify.claims import measured
from canaryproof.verify.claims.final_printed import Row, half_unit
from canaryproof.verify.claims.finished import Attack, Cell, Experiment
from canaryproof.verify.claims.measured import ALPHA, ENOUGH, Part
from canaryproof.verify.oneshot import estimators, moments
from canaryproof.verify.results import Outcome, Verdict

# Confidence of printed lower bounds.
_BOUND_ALPHA = 0.05
# Fifty experiments are printed; quantiles of fewer of ours decide little.
_EXPERIMENTS, _FEWEST = 50, 20

Reading = Mapping[str, str]
AS_PRINTED: Reading = {"attack": "final", "estimator": "fitted"}
# The first version's estimator, and an attacker who knows the public initial model.
OTHERS: Mapping[str, Reading] = {
    "with the variance of the null": {"attack": "final", "estimator": "pinned"},
    "from the change of the model": {"attack": "change", "estimator": "fitted"},
}
STACKOVERFLOW = {"as printed": AS_PRINTED, **OTHERS}
# Clients take part in each epoch of EMNIST, and canaries "exactly as real users do".
EMNIST = {
    f"{name}{how}": {**reading, "canaries__participation": participation}
    for participation, how in (("clients", ""), ("periods", ", each canary once"))
    for name, reading in STACKOVERFLOW.items()
}


@lru_cache(maxsize=64)
def simulated(attack: Attack, dim: int, delta: float, draws: int) -> dict[str, tuple[float, float]]:
    """Return the range of estimates and bounds of further experiments like one of ours.

    Parameters
    ----------
    attack
        What was measured.
    dim, delta
        Of the model; δ.
    draws
        Number of experiments.

    Returns
    -------
    Ends by the names of ``Attack``'s fields.
    """
    rng = measured.generator(repr(attack))
    # Our own error, and then the other experiment's.
    centre = attack.distance + attack.distance_error * rng.standard_normal((draws, 1))
    spread = attack.ratio * np.exp(attack.ratio_error / attack.ratio * rng.standard_normal((draws, 1)))
    observed = centre + spread * rng.standard_normal((draws, attack.observed))
    if attack.unobserved is None:
        observed /= math.sqrt(dim)
        found = moments.from_dimension(observed, dim)
        scores = prepare(observed, None, cosine_null(dim))
    else:
        unobserved = rng.standard_normal((draws, attack.unobserved))
        found = moments.from_unobserved(observed, unobserved)
        scores = prepare(observed, unobserved)
    values = {
        "fitted": estimators.both_directions(delta, found.distance, found.ratio),
        "pinned": estimators.pinned_epsilon(delta, estimators.pinned_distance(found)),
        "bound": METHODS["andrew"].compute(scores, delta, _BOUND_ALPHA)[0],
    }
    return {name: (float(np.min(drawn)), float(np.max(drawn))) for name, drawn in values.items()}


def row(printed: Row, readings: Mapping[str, Reading], experiment: Experiment) -> Outcome | None:
    """Judge a row of lower bounds and estimates from all rounds and from the final model.

    Parameters
    ----------
    printed
        The row.
    readings
        Ways to read it: attack and estimator of the final model's numbers, and settings of cells.
    experiment
        What was measured.

    Returns
    -------
    The verdict; None if a cell is missing.
    """
    alpha = ALPHA / 4

    def judged(name: str, text: str, cell: Cell, attack: str, field: str) -> Part:
        found = [repetition.attacks[attack] for repetition in cell.repetitions]
        values = [float(getattr(one, field)) for one in found]
        usable = all(map(math.isfinite, values))
        if usable and len(values) >= ENOUGH:
            logarithmic = attack == "all" and field != "bound" and min(values) > 0.0
            interval = measured.student(values, alpha, logarithmic=logarithmic)
            return measured.number(name, text, values, interval, telling=field != "bound")
        if not usable:
            return measured.number(name, text, values, None)
        draws = math.ceil(2.0 / alpha) - 1
        ends = [simulated(one, cell.dim, cell.settings["audit.delta"], draws)[field] for one in found]
        # What any of them says, which is wider than what all say together.
        interval = min(low for low, _ in ends), max(high for _, high in ends)
        return measured.number(name, text, values, interval, telling=field != "bound")

    parts = {}
    for name, reading in readings.items():
        swept = {field: value for field, value in reading.items() if "__" in field}
        found = measured.cells(experiment, training__noise_multiplier=printed.noise, **swept)
        if len(found) != 1 or not all(one.attacks for one in found[0].repetitions):
            return None
        cell, attack, estimator = found[0], reading["attack"], reading["estimator"]
        parts[name] = [
            judged("lower bound, all rounds,", printed.lower_all, cell, "all", "bound"),
            judged("estimate, all rounds,", printed.estimate_all, cell, "all", "fitted"),
            judged("lower bound, final model,", printed.lower_final, cell, attack, "bound"),
            judged("estimate, final model,", printed.estimate_final, cell, attack, estimator),
        ]
    return measured.readings(parts, experiment)


def quantiles(noise: str, runs: int, count: int, printed: Sequence[str], experiment: Experiment) -> Outcome | None:
    """Judge quantiles of fifty experiments by the ranks that they have among ours, which are beta-binomial.

    Parameters
    ----------
    noise, runs, count
        The row: noise multiplier, runs, canaries a run.
    printed
        Quantiles 0.1, 0.3, 0.5, 0.7 and 0.9.
    experiment
        What was measured.
    """
    found = measured.cells(experiment, training__noise_multiplier=noise, canaries__runs=runs, canaries__count=count)
    if len(found) != 1:
        return None

    def judged(attack: str, estimator: str) -> list[Part]:
        ours = np.sort([float(getattr(one.attacks[attack], estimator)) for one in found[0].repetitions])
        if len(ours) < _FEWEST:
            return [Part(Verdict.INCONCLUSIVE, f"only {len(ours)} experiments of {_EXPERIMENTS}")]
        return [
            _quantile(share, text, ours, ALPHA / len(printed))
            for share, text in zip((0.1, 0.3, 0.5, 0.7, 0.9), printed, strict=True)
        ]

    parts = {name: judged(one["attack"], one["estimator"]) for name, one in STACKOVERFLOW.items()}
    return measured.readings(parts, experiment)


def _quantile(share: float, text: str, ours: measured.Array, alpha: float) -> Part:
    # A printed quantile lies between two order statistics of its fifty.
    lower = math.floor(share * (_EXPERIMENTS - 1)) + 1
    margin, count = float(half_unit(text)), len(ours)
    least = int(np.sum(ours < float(text) - margin))
    most = int(np.sum(ours <= float(text) + margin))
    few = stats.betabinom.cdf(most, count, lower, _EXPERIMENTS + 1 - lower)
    many = stats.betabinom.sf(least - 1, count, lower + 1, _EXPERIMENTS - lower)
    p_value = 2.0 * float(min(few, many))
    median = float(np.quantile(ours, share))
    listed = f"quantile {share} {text}, measured {median:.3g} (p = {min(1.0, p_value):.2g})"
    if p_value >= alpha:
        return Part(Verdict.CONFIRMED, listed)
    near = median > 0.0 and 1.0 / measured.NEAR <= float(text) / median <= measured.NEAR
    return Part(Verdict.QUALIFIED if near else Verdict.REFUTED, listed)
