"""CANIFE beside random canaries in the same trainings: who notices a broken assumption, and what the cap makes.

A method notices a fault if its number rises by more than a quarter over that of trainings with the same seeds and
without the fault; it is blind to it if the number rises or falls by less. In between nothing is claimed. Statements of
ours were written after pilots with other seeds: pairs of fault and method that these left open, or showed with too
little power to be seen with any seed, have none, and stand in the evidence. ``canife_scenarios`` has the trainings,
which need JAX; it is loaded when a check runs.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.claims import accounting
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.suites.canife_canaries import disturbance, orthogonality, share_of_cap
from canaryproof.verify.suites.ratios import FACTOR, FALLS, RISES, UNMOVED, Ratio, capped_ratio, ratio, visible
from canaryproof.verify.suites.training_tests import LEVEL

if TYPE_CHECKING:
    from canaryproof.verify.suites.canife_scenarios import Numbers

# Of the methods, the one whose numbers have a limit that they hardly leave.
_CAPPED = "canife"

# What each fault does, and who could see it at all.
_PRINCIPLES = {
    "shuffled": "A round's scores are the same however its cohort was drawn; only what canaries do over rounds differs",
    "reused": "Two rounds' deltas differ without noise, and so hide nothing from who sees both; cosines with each have "
    "the law they should have, but their maxima spread more, and the noise of the model's change grows as the rounds",
    "halved": "Half of each delta is in the clear; a random canary's cosine weighs all coordinates alike and has 1/√2 "
    "of the noise",
    "unclipped": "A canary's update has the clip norm whatever the server does to others, so that no such canary shows "
    "what an unclipped client gives away",
}


def _ratios(without: "Numbers", with_fault: "Numbers") -> dict[str, Ratio]:
    found = {name: ratio(values, with_fault.values[name]) for name, values in without.values.items()}
    return {**found, _CAPPED: capped_ratio(without.rounds.ravel(), with_fault.rounds.ravel())}


def _design(method: str, expected: str, runs: int, audits: int) -> Design:
    if method == _CAPPED:
        # Limits of a mean that is the cap itself, on both sides.
        least = (0.25 * LEVEL) ** (1.0 / audits)
        assert least > 1.0 / FACTOR
        null = f"ε̂ of a round is on average below {1.0 / FACTOR:.0%} of its cap, with the fault or without"
        return Design(null, LEVEL, "every audit's ε̂ is its cap", 1.0, audits)
    # Of an unmoved number two limits must be right of it and left of it.
    power = 1.0 - 0.5 * (1.0 - POWER) if expected == UNMOVED else POWER
    effect = visible(runs, power)
    if expected == UNMOVED:
        null = f"its geometric mean changes by a factor of {FACTOR:g} or more"
        alternative = f"it does not change, and a pair's ratio deviates by {math.log(FACTOR) / effect:.2g} in logarithm"
        return Design(null, LEVEL, alternative, POWER, runs)
    null = f"its geometric mean {'rises' if expected == RISES else 'falls'} by a factor of less than {FACTOR:g}"
    return Design(null, LEVEL, f"the factor's logarithm is {effect:.2g} deviations of a pair's beyond", POWER, runs)


def _judge(
    fault: str, method: str, expected: str, verdicts: Mapping[str, Verdict], context: Context, reading: str = ""
) -> Outcome:
    """Judge what a fault does to a method's number."""
    from canaryproof.verify.suites import canife_scenarios

    runs = context.pick(24, 60)
    without, with_fault = canife_scenarios.pairs(context, fault, runs)
    ratios = _ratios(without, with_fault)
    found = ratios[method]
    verdict = verdicts.get(found.moves, Verdict.INCONCLUSIVE)
    means = {name: (_mean(without, name), _mean(with_fault, name)) for name in ratios}
    before, after = means[method]
    share = " as a share of its cap" if method == _CAPPED else ""
    finding = (
        f"{_NAMES[method]} has ε̂{share} {before:.4g} without the fault, {after:.4g} with it, a factor of "
        f"{found.value:.3g}, within [{found.low:.3g}, {found.high:.3g}]. {_PRINCIPLES[fault]}{reading}"
    )
    evidence = {
        "runs": runs,
        "moves": found.moves,
        "methods": {
            name: {"means": list(means[name]), "factor": one.value, "limits": [one.low, one.high]}
            for name, one in ratios.items()
        },
    }
    return Outcome(verdict, finding, evidence, _design(method, expected, runs, without.rounds.size))


def _not_followed(fault: str, context: Context) -> Outcome:
    """Judge that CANIFE's number stays where it was though the ε that it estimates does not."""
    from canaryproof.verify.suites.canife_scenarios import SETTING, rounds

    sigma, delta = SETTING.noise_multiplier, SETTING.delta
    before = accounting.pld(sigma, delta, rounds(), 1.0 / rounds())
    # Of one round that is known to the attacker; the other faults leave something without noise.
    after = float(gaussian_mechanism.epsilon(delta, sigma)) if fault == "shuffled" else math.inf
    found = _judge(fault, _CAPPED, UNMOVED, _decided(UNMOVED), context)
    moves = max(before / after, after / before) > FACTOR
    verdict = found.verdict if moves else Verdict.REFUTED
    said = f"; the analytical ε is {before:.4g} without the fault and {after:.4g} with it"
    return replace(found, verdict=verdict, finding=found.finding + said)


def _mean(numbers: "Numbers", method: str) -> float:
    return float((numbers.rounds if method == _CAPPED else numbers.values[method]).mean())


def _decided(expected: str, otherwise: Verdict = Verdict.REFUTED) -> dict[str, Verdict]:
    """Verdicts by what is certain of a number; where nothing is, there is none."""
    return {moves: Verdict.CONFIRMED if moves == expected else otherwise for moves in (RISES, FALLS, UNMOVED)}


_FINAL, _REVIEW = "final version (arXiv 2302.03098)", "reviews, answers of the authors"
_NAMES = {
    "canife": "CANIFE as printed, of a round at 100 scores and so of the training",
    "canife-law": "CANIFE of a round at unlimited scores",
    "algorithm-3": "Algorithm 3 (`fitted`, all rounds)",
    "algorithm-3-pinned": "Algorithm 3 (`pinned`, all rounds)",
    "final": "Algorithm 2 (`pinned`, final model)",
    "change": "Algorithm 2 (`pinned`, the model's change)",
    "change-fitted": "Algorithm 2 (`fitted`, the model's change)",
    "bound": "the plain lower bound (`fixed-threshold`, all rounds)",
}
_FAULTS = {
    "shuffled": "rounds are a shuffled epoch and no Poisson samples",
    "reused": "all rounds have the first one's noise",
    "halved": "every second coordinate has no noise",
    "unclipped": "one client in a hundred is not clipped",
}
_SAYS = {
    RISES: "notices that {}: its ε̂ rises by more than a quarter",
    FALLS: "says less where {}: its ε̂ falls by more than a fifth",
    UNMOVED: "is blind where {}: its ε̂ rises by less than a quarter and falls by less than a fifth",
}
_OURS = (
    ("shuffled", "algorithm-3-pinned", RISES),
    ("shuffled", "change", UNMOVED),
    ("shuffled", "canife-law", UNMOVED),
    ("reused", "algorithm-3", FALLS),
    ("reused", "bound", UNMOVED),
    ("reused", "canife-law", RISES),
    ("halved", "algorithm-3", RISES),
    ("halved", "bound", UNMOVED),
    ("halved", "canife-law", RISES),
    *(("unclipped", method, UNMOVED) for method in _NAMES),
)
# The final version names these assumptions of CANIFE's composition, and then what an estimate of its own detects.
# Where canaries leave hardly a trace, `pinned` is 0 now and then and has no logarithm.
_DETECTS = (("shuffled", "final"), ("reused", "change-fitted"), ("halved", "final"))
_LITERALLY = "; higher is what the sentence promises only of faults that bring the model nearer to canaries"


CHECKS = (
    *(
        Check(
            f"final.section5.4.canife.{fault}",
            Subject.DOCUMENT,
            f"{_FINAL}, Section 5.4",
            f"CANIFE's estimate is wrong where {_FAULTS[fault]}: it does not follow",
            partial(_not_followed, fault),
        )
        for fault in ("shuffled", "reused", "halved")
    ),
    *(
        Check(
            f"final.section5.4.detects.{fault}",
            Subject.DOCUMENT,
            f"{_FINAL}, Section 5.4",
            f"where {_FAULTS[fault]}, random canaries show it by a higher ε̂ of the final model",
            partial(_judge, fault, method, RISES, _decided(RISES, Verdict.QUALIFIED), reading=_LITERALLY),
        )
        for fault, method in _DETECTS
    ),
    Check(
        "review.canife.orthogonal",
        Subject.DOCUMENT,
        f"{_REVIEW} to ZyjW and zCeQ",
        "CANIFE's crafted canaries are farther from orthogonal to the updates of clients than random ones",
        orthogonality,
    ),
    *(
        Check(
            f"comparison.{fault}.{method}",
            Subject.IMPLEMENTATION,
            "verify.benchmark.canife_run",
            f"{_NAMES[method]} {_SAYS[expected].format(_FAULTS[fault])}",
            partial(_judge, fault, method, expected, _decided(expected)),
        )
        for fault, method, expected in _OURS
    ),
    Check(
        "comparison.cap",
        Subject.IMPLEMENTATION,
        "verify.canife.measure",
        "at the setting of Section 5.4 and with perfect canaries, over 95% of the gap between CANIFE's ε̂ and what "
        "unlimited scores compose to is its cap, at 100 scores a round as at 1,000 and 10,000",
        share_of_cap,
    ),
    Check(
        "comparison.cohorts",
        Subject.IMPLEMENTATION,
        "verify.canife.attack",
        "cohorts raise the deviation of scores of CANIFE's canaries by less than 5% of the noise's",
        disturbance,
    ),
)
