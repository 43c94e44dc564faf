"""CANIFE where every client has one example (Sections 3.2 and 4.1, Appendix D), measured.

What the paper shows on a ResNet18 and CIFAR10 with one attack is judged on small networks and digits with hundreds.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from canaryproof.verify.canife.attack import Mechanism
from canaryproof.verify.claims.canife_toy import DEVIATION, TOY_SIGMA
from canaryproof.verify.error_control import POWER
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.suites.canife_judging import (
    PAPER,
    above,
    below,
    judged,
    ratio,
    share_above,
    share_below,
    spoken,
    visible,
    visible_share,
)
from canaryproof.verify.suites.training_tests import LEVEL

if TYPE_CHECKING:
    from canaryproof.verify.suites.canife_studies import Sample

_PURPOSE = "canife/one-sample"
_SIGMA = float(TOY_SIGMA)
_COHORTS = (16, 64, 256)
_CROWDS = (*_COHORTS, 1024)
# Without noise, and at the printed one; all checks here attack the same canaries.
_ROUNDS = tuple(Mechanism(cohort, 0.0) for cohort in _COHORTS) + tuple(Mechanism(each, _SIGMA) for each in _CROWDS)
_QUIET, _NOISY = slice(0, 3), slice(3, 7)
_POOLS = (16, 64, 256)
_SHARE = 0.7
# A fall of the accuracy by this much over 64 times as many clients is not slow.
_FALL = 0.05


def success(context: Context) -> Outcome:
    """Judge that without noise an attack errs in no trial, by the share of attacks that do not."""
    found = _found(context)
    right = found.accuracy[:, 1] == 1.0
    size, hits = len(right), int(right.sum())
    for_it, against_it = share_above(hits, size, _SHARE), share_below(hits, size, _SHARE)
    deviation = found.deviation[:, 1]
    design = Design(
        f"at most {_SHARE:.0%} of attacks with 64 clients and no noise are right in all of 100 trials",
        LEVEL,
        f"{visible_share(size, _SHARE, 1):.2%} of them are",
        POWER,
        size,
    )
    finding = (
        f"{hits} of {size} attacks err in no trial; mean standard deviation of the scores {spoken(deviation)}, printed "
        "0.006 with two times the pool"
    )
    evidence = {"deviation": deviation.tolist(), "accuracy": found.accuracy[:, 1].tolist(), "p": [for_it, against_it]}
    return Outcome(judged([for_it], [against_it]), finding, evidence, design)


def close_to_noise(context: Context) -> Outcome:
    """Judge that scores have the noise's deviation or little more: as near as the paper's own is."""
    values = _found(context).deviation[:, _NOISY][:, 1] / _SIGMA
    margin = float(DEVIATION) / _SIGMA
    for_it = [below(values, margin), above(values, 1.0 / margin)]
    against_it = [above(values, margin), below(values, 1.0 / margin)]
    spread = np.sqrt(0.5 / 98)
    design = Design(
        f"the mean deviation of scores is {margin - 1.0:.1%} or more from the noise's, as the printed one is",
        LEVEL,
        f"it is the noise's, with a deviation of {spread:.3f}, as 100 Gaussian scores have, so that the margin is "
        f"{(1.0 - 1.0 / margin) / spread:.2g} deviations; {visible(len(values), 2):.2g} are noticed",
        POWER,
        len(values),
    )
    finding = (
        f"at σ = {TOY_SIGMA} and 64 clients the scores' deviation is {spoken(values)} of the noise's in {len(values)} "
        f"attacks; the paper's one attack has {margin:.3f}"
    )
    return Outcome(judged(for_it, against_it), finding, {"ratio": values.tolist(), "p": [*for_it, *against_it]}, design)


def clients(context: Context) -> Outcome:
    """Judge that more clients a round widen the scores, by paired tests of neighbours."""
    found = _found(context).deviation[:, _QUIET]
    rises = [np.log(more / fewer) for fewer, more in pairwise(found.T)]
    for_it, against_it = [above(rise) for rise in rises], [below(rise) for rise in rises]
    design = Design(
        "four times as many clients a round do not widen the scores",
        LEVEL,
        f"each time the mean logarithm of the deviation rises by {visible(len(found), 2):.2g} standard deviations",
        POWER,
        len(found),
    )
    listed = ", ".join(f"{count}: {spoken(column)}" for count, column in zip(_COHORTS, found.T, strict=True))
    finding = f"deviation without noise by clients a round {listed}; the larger p-value is {max(for_it):.1g}"
    evidence = {"deviation": found.T.tolist(), "p": [*for_it, *against_it]}
    return Outcome(judged(for_it, against_it), finding, evidence, design)


def pool(context: Context) -> Outcome:
    """Judge that a larger pool narrows the scores, the less the larger it is."""
    from canaryproof.verify.suites import canife_studies as studies

    # Pilots with other seeds had 0.4 to 1 standard deviation of a pair between the first fall and the second. A first
    # size of 80 pairs, too few for that, had not decided at seed 0.
    size = context.pick(200, 600)
    columns = [
        studies.sample(context, _PURPOSE, studies.Plan(studies.AUDIT, pool=count), size).deviation[:, 0]
        for count in _POOLS
    ]
    falls = [np.log(one / other) for one, other in pairwise(columns)]
    for_it = [above(falls[0]), above(falls[0] - falls[1])]
    against_it = [below(falls[0]), below(falls[0] - falls[1])]
    design = Design(
        "four times the pool does not narrow the scores, or does so as much again where the pool was four times as "
        "large",
        LEVEL,
        f"both differ by {visible(size, 2):.2g} standard deviations of a pair's logarithms",
        POWER,
        size,
    )
    listed = ", ".join(f"{count}: {spoken(column)}" for count, column in zip(_POOLS, columns, strict=True))
    last = above(falls[1])
    finding = (
        f"deviation by pool {listed}; the first fourfold pool makes it {ratio(columns[1], columns[0]):.2f} times as "
        f"large, the second {ratio(columns[2], columns[1]):.2f} times (p = {last:.1g} that this is no fall)"
    )
    evidence = {"deviation": dict(zip(map(str, _POOLS), (c.tolist() for c in columns), strict=True))}
    return Outcome(judged(for_it, against_it), finding, {**evidence, "p": [*for_it, *against_it, last]}, design)


def slowly(context: Context) -> Outcome:
    """Judge that the accuracy falls with clients a round, and slowly, by the law of the scores at the printed noise."""
    found = _found(context)
    accuracies = stats.norm.cdf(0.5 * found.shift[:, _NOISY] / found.law[:, _NOISY])
    fall = accuracies[:, 0] - accuracies[:, -1]
    for_it, against_it = [above(fall), below(fall, _FALL)], [below(fall), above(fall, _FALL)]
    design = Design(
        f"the accuracy does not fall from {_CROWDS[0]} clients a round to {_CROWDS[-1]}, or by {_FALL:.0%} or more",
        LEVEL,
        f"the mean fall is {visible(len(fall), 2):.2g} standard deviations from both",
        POWER,
        len(fall),
    )
    means = ", ".join(
        f"{each:.4f} ({counted:.3f})"
        for each, counted in zip(accuracies.mean(axis=0), found.accuracy[:, _NOISY].mean(axis=0), strict=True)
    )
    finding = (
        f"mean accuracy with {', '.join(map(str, _CROWDS))} clients a round at σ = {TOY_SIGMA}: {means}, by the law of "
        "the scores (counted in 100 trials at the best threshold)"
    )
    return Outcome(judged(for_it, against_it), finding, {"fall": fall.tolist(), "p": [*for_it, *against_it]}, design)


def separated(context: Context) -> Outcome:
    """Judge our promise on scores in the rounds of ``benchmark canife``: their separation and their deviation."""
    from canaryproof.verify.suites import canife_studies as studies

    size, sigma = context.pick(60, 400), 0.2
    plan = studies.Plan(studies.DEFAULT, rounds=(Mechanism(16, sigma),))
    found = studies.sample(context, "canife/separated", plan, size)
    distance, deviation = found.separation[:, 0], found.deviation[:, 0] / sigma
    wrong = max(above(distance, 0.95), below(distance, 1.05), above(deviation, 0.85), below(deviation, 1.15))
    spreads = sigma / 5.0, np.sqrt(0.5 / 98)
    design = Design(
        "the mean separation is 0.05 or more from 1, or the mean deviation 15% or more from the noise's",
        LEVEL,
        f"they are 1 and the noise's, and margins {0.05 / spreads[0]:.2g} and {0.15 / spreads[1]:.2g} standard "
        f"deviations of an audit's; {visible(size, 4):.2g} are noticed",
        POWER,
        size,
    )
    finding = (
        f"{size} audits of 100 scores at σ = {sigma:g}: separation {spoken(distance)}, deviation {spoken(deviation)} "
        f"of the noise's (p = {wrong:.1g} for a mean outside the margins)"
    )
    evidence = {"separation": distance.tolist(), "deviation": deviation.tolist(), "p": wrong}
    verdict = Verdict.CONFIRMED if wrong <= LEVEL else Verdict.REFUTED
    return Outcome(verdict, finding, evidence, design)


def _found(context: Context) -> "Sample":
    from canaryproof.verify.suites import canife_studies as studies

    return studies.sample(context, _PURPOSE, studies.Plan(studies.AUDIT, rounds=_ROUNDS), context.pick(80, 500))


CHECKS = (
    Check(
        "canife.study.success",
        Subject.DOCUMENT,
        PAPER + "Section 4.1, Figure 3a",
        "with 64 clients a round and no noise the attack succeeds completely",
        success,
    ),
    Check(
        "canife.study.noise",
        Subject.DOCUMENT,
        PAPER + "Section 4.1, Figure 3b",
        f"at σ = {TOY_SIGMA} and 64 clients a round the scores' standard deviation is close to σ",
        close_to_noise,
    ),
    Check(
        "canife.study.clients",
        Subject.DOCUMENT,
        PAPER + "Section 4.1, Figure 3c",
        "the fewer clients take part in a round, the tighter is the attack",
        clients,
    ),
    Check(
        "canife.study.pool",
        Subject.DOCUMENT,
        PAPER + "Section 4.1, Figure 3c",
        "a larger design pool makes the scores' deviation smaller, with diminishing effect",
        pool,
    ),
    Check(
        "canife.study.clients-accuracy",
        Subject.DOCUMENT,
        PAPER + "Appendix D, Figure 8b",
        "the attack's accuracy falls slowly as the clients of a round become more",
        slowly,
    ),
    Check(
        "canife.scores",
        Subject.IMPLEMENTATION,
        "verify.canife",
        "scores of a round with and without a canary of the default settings are 1.0 ± 0.05 apart, and their deviation "
        "is within 15% of the noise's",
        separated,
    ),
)
