"""CANIFE's canaries in themselves: what the number of scores caps, and how near to orthogonal they are to clients."""

import math
from typing import Any

import numpy as np

from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Context, Design, Outcome, Verdict
from canaryproof.verify.suites.ratios import mean_limits, ratio, visible
from canaryproof.verify.suites.training_tests import LEVEL

# Training images of MNIST and of Fashion-MNIST.
_EXAMPLES = 60_000
# Of the gap, what the cap makes; and the most that cohorts may make of the deviation of scores.
_SHARE, _LITTLE = 0.95, 1.05


def share_of_cap(context: Context) -> Outcome:
    """Judge how much of CANIFE's gap its cap makes where its canaries are perfect, at several numbers of scores."""
    from canaryproof.verify.benchmark.canife import PRINTED
    from canaryproof.verify.benchmark.canife_methods import Plan, composed, largest_round
    from canaryproof.verify.canife.measure import composed_epsilon, round_epsilon

    rounds = -(-_EXAMPLES // PRINTED.batch)
    audited = tuple(range(PRINTED.every, rounds + 1, PRINTED.every))
    sigma, delta = PRINTED.noise_multiplier, PRINTED.delta
    # No part of CANIFE's composition depends on the last two.
    plan = Plan(audited, rounds, PRINTED.batch / _EXAMPLES, sigma, delta, dim=1, canaries=1)
    limit = composed_epsilon([sigma], [rounds], plan.sampling, delta)
    repetitions = context.pick(24, 200)

    def training(trials: int, rng: np.random.Generator) -> float:
        half, found = trials // 2, []
        for _ in audited:
            observed, unobserved = 1.0 + sigma * rng.standard_normal(half), sigma * rng.standard_normal(trials - half)
            found.append(round_epsilon(observed, unobserved, 1.0 / trials, zero_counts="capped").epsilon)
        return composed(tuple(found), plan, delta)

    rows: list[dict[str, Any]] = []
    for trials in PRINTED.trials:
        rng = np.random.default_rng(context.key(f"canife-comparison/cap/{trials}"))
        cap = composed((largest_round(trials),) * len(audited), plan, delta)
        values = np.array([training(trials, rng) for _ in range(repetitions)])
        # Equal numbers differ by rounding at most.
        limits = mean_limits(np.minimum(values / cap, 1.0), 0.5 * LEVEL / len(PRINTED.trials))
        mean = float(values.mean())
        share, *between = ((limit - cap) / (limit - value) for value in (mean, *(cap * end for end in limits)))
        rows.append({"trials": trials, "cap": cap, "mean": mean, "share": share, "limits": between})
    least = min(row["limits"][0] for row in rows)
    verdict = _verdict(least > _SHARE, min(row["limits"][1] for row in rows) < _SHARE)
    text = "; ".join(
        f"{row['trials']:,} scores: {row['mean']:.4g} of at most {row['cap']:.4g}, {row['share']:.3%} of the gap"
        for row in rows
    )
    closed = (rows[-1]["mean"] - rows[0]["mean"]) / (limit - rows[0]["mean"])
    finding = (
        f"unlimited scores compose to {limit:.4g}; {text}, at least {least:.2%}; a hundred times as many scores close "
        f"{closed:.1%} of the gap"
    )
    design = Design(
        f"at some number of scores, less than {_SHARE:.0%} of the mean gap is the cap's",
        LEVEL,
        "every audit's ε̂ is its cap",
        1.0,
        repetitions,
    )
    return Outcome(verdict, finding, {"unlimited": limit, "rows": rows}, design)


def orthogonality(context: Context) -> Outcome:
    """Judge whose canaries are nearer to orthogonal to the updates of the training's clients."""
    from canaryproof.verify.suites import canife_scenarios

    runs = context.pick(24, 60)
    numbers, _ = canife_scenarios.pairs(context, "poisson", runs)
    random = canife_scenarios.dimension() ** -0.5
    crafted = np.sqrt((numbers.cosines**2).mean(axis=1))
    found = ratio(np.full(runs, random), crafted)
    verdict = _verdict(found.low > 1.0, found.high < 1.0)
    finding = (
        f"root mean square of the cosine with a client's update: {np.exp(np.log(crafted).mean()):.4g} of crafted "
        f"canaries, {random:.4g} = 1/√d of random ones, a factor of {found.value:.3g}, within [{found.low:.3g}, "
        f"{found.high:.3g}]"
    )
    design = Design(
        "crafted and random canaries have the same root mean square",
        LEVEL,
        f"its logarithm differs by {visible(runs, POWER):.2g} deviations of a training's",
        POWER,
        runs,
    )
    return Outcome(verdict, finding, {"runs": runs, "crafted": crafted.tolist(), "random": random}, design)


def disturbance(context: Context) -> Outcome:
    """Judge that what a cohort's updates add to the deviation of CANIFE's scores is little beside the noise."""
    from canaryproof.verify.suites import canife_scenarios

    runs = context.pick(24, 60)
    numbers, _ = canife_scenarios.pairs(context, "poisson", runs)
    deviations = numbers.deviations.mean(axis=1)
    found = ratio(np.ones(runs), deviations)
    verdict = _verdict(found.high < _LITTLE, found.low > _LITTLE)
    finding = (
        f"deviation of scores over cohorts and noise, in that of the noise: {found.value:.4f}, within "
        f"[{found.low:.4f}, {found.high:.4f}]"
    )
    design = Design(
        f"the deviation is {_LITTLE:g} or more of the noise's",
        LEVEL,
        f"it is the noise's, and a training's deviates by {math.log(_LITTLE) / visible(runs, POWER):.2g} in logarithm",
        POWER,
        runs,
    )
    return Outcome(verdict, finding, {"runs": runs, "deviations": deviations.tolist()}, design)


def _verdict(holds: bool, fails: bool) -> Verdict:
    return Verdict.CONFIRMED if holds else Verdict.REFUTED if fails else Verdict.INCONCLUSIVE
