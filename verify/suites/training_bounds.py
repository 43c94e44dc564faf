"""Lower bounds from trainings whose ε is known: a check of training, accounting and bounds together."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import Coverage
from canaryproof.verify.bounds.scores import Scores, cosine_null, prepare
from canaryproof.verify.error_control import POWER
from canaryproof.verify.federated.outcome import ALL, CHANGE, CanaryScores
from canaryproof.verify.federated.settings import Settings
from canaryproof.verify.results import Context, Design, Outcome, Verdict
from canaryproof.verify.suites.training_tests import LEVEL, least_share

_ALPHA, _EPSILON, _DELTA = 0.05, 3.0, 1e-5
# As many dimensions as so few canaries need.
_SMALL = {"model": {"hidden": 64}}


def bounds(context: Context) -> Outcome:
    """Judge that lower bounds with some proof of coverage keep to it in trainings whose ε is known."""
    runs = context.pick(50, 400)
    rows: list[dict[str, Any]] = []
    for name, truth, audits in _cells(context, runs):
        for method in METHODS.values():
            if method.printed or not all(method.serves(one) for one in audits):
                continue
            if any(method.coverage(one) is Coverage.HEURISTIC for one in audits):
                continue
            values = np.concatenate([method.values(one, _DELTA, _ALPHA)[0] for one in audits])
            above = int(np.sum(values > truth))
            p_value = float(stats.binom.sf(above - 1, len(values), _ALPHA))
            rows.append(
                {"cell": name, "method": method.name, "truth": truth, "runs": len(values), "above": above}
                | {"mean": float(values.mean()), "p_value": p_value}
            )
    holds = all(row["p_value"] > LEVEL / len(rows) for row in rows)
    worst = max(rows, key=lambda row: row["above"] / row["runs"])
    sharpest = max(rows, key=lambda row: row["mean"] / row["truth"])
    fewest = min(row["runs"] for row in rows)
    least = int(stats.binom.isf(LEVEL / len(rows), fewest, _ALPHA)) + 1
    share = least_share(lambda p: float(stats.binom.sf(least - 1, fewest, p)), POWER)
    design = Design(
        f"every bound is above the analytical ε in at most {_ALPHA:.0%} of trainings",
        LEVEL,
        f"one is above in {share:.0%}",
        POWER,
        fewest,
    )
    finding = (
        f"of {len(rows)} kinds of bounds the worst is above in {worst['above']} of {worst['runs']} ({worst['method']}, "
        f"{worst['cell']}), the sharpest has mean {sharpest['mean']:.2f} where ε = {sharpest['truth']:.2f}"
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, {"rows": rows}, design)


def _cells(context: Context, runs: int) -> Iterator[tuple[str, float, list[Scores]]]:
    """Trainings by name, with their ε and the scores to bound it from."""
    from canaryproof.verify.suites import training_runs

    rounds = 4
    sigma = math.sqrt(rounds) * float(gaussian_mechanism.noise_multiplier(_EPSILON, _DELTA))
    truth = training_runs.noise_alone_epsilon(rounds, sigma, _DELTA)
    for inclusion in ("fixed", "coin"):
        chosen = training_runs.settings(**_SMALL, canaries={"count": 100, "inclusion": inclusion})
        roots = context.key(f"training/bounds/{inclusion}").spawn(runs)
        found = [training_runs.noise_alone(chosen, rounds, sigma, root) for root in roots]
        yield from _prepared(f"noise alone, {rounds} presentations, {inclusion}", truth, chosen, found)
    chosen = training_runs.settings(**_SMALL, training={"one_round_epsilon": _EPSILON}, audit={"delta": _DELTA})
    found = [training_runs.trained(chosen, root) for root in context.key("training/bounds/data").spawn(runs // 2)]
    yield from _prepared("digits, one presentation, fixed", _EPSILON, chosen, found)


def _prepared(
    name: str, truth: float, chosen: Settings, found: Sequence[CanaryScores]
) -> Iterator[tuple[str, float, list[Scores]]]:
    from canaryproof.verify.suites import training_runs

    inclusion = chosen.random_canaries.inclusion
    for attack in (ALL, CHANGE):
        unobserved = inclusion == "coin" or attack == ALL
        null = None if unobserved else cosine_null(training_runs.dimension(chosen))
        # One by one, as sizes differ where coins decide.
        audits = [
            prepare(one.observed[attack], one.unobserved[attack] if unobserved else None, null, inclusion=inclusion)
            for one in found
        ]
        yield f"{name}, {attack}", truth, audits
