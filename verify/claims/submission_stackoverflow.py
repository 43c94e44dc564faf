"""The submission's Section 5 and Table 2: the setting, noise, lower bounds and estimates on StackOverflow."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial

from canaryproof.kernels import two_gaussians
from canaryproof.verify.claims import accounting
from canaryproof.verify.claims.final_all_rounds import largest_cosine
from canaryproof.verify.claims.final_noise import calibrated_by_tail
from canaryproof.verify.claims.final_tables import judge_ballpark, near
from canaryproof.verify.claims.judging import found, holds
from canaryproof.verify.claims.submission_printed import SUBMISSION, TABLE_2, TABLE_3
from canaryproof.verify.claims.v1_accounting import calibrated, noise_alone, sampled
from canaryproof.verify.claims.v1_estimates import checks, judge_regime, judge_separation
from canaryproof.verify.claims.v1_judging import (
    CANARIES,
    COHORT,
    ROUNDS,
    STACKOVERFLOW,
    STACKOVERFLOW_DELTA,
    STACKOVERFLOW_USERS,
    agrees,
    belief,
    placed,
    proven,
)
from canaryproof.verify.claims.v1_printed import TABLE_2 as V1_TABLE_2
from canaryproof.verify.claims.v1_setting import judge_sizes
from canaryproof.verify.results import Check, Outcome, Verdict

# Our copy of the submission reads m = 34k, perhaps a slip of its conversion; both other versions have 341k.
_USERS = {"m = 34k": 34_000, "m = 341k": STACKOVERFLOW_USERS}


def judge_users(users: str = "34k", others: str = "341k") -> Outcome:
    """Judge the number of clients as our copy has it, and as the other versions do, against rounds × clients."""
    places = ROUNDS * COHORT
    fits = {text: any(agrees(Fraction(n), text) for n in (places, places - CANARIES)) for text in (users, others)}
    return found(
        Verdict.CONFIRMED if fits[users] else Verdict.QUALIFIED if fits[others] else Verdict.REFUTED,
        f"{ROUNDS} × {COHORT} = {places:,} places, {places - CANARIES:,} without the canaries, are one each for "
        f"{' and '.join(text for text in fits if fits[text]) or 'none'} of {users} and {others}; both other versions "
        f"print {others}",
        places=places,
    )


def judge_delta(sizes: Mapping[str, int] = _USERS) -> Outcome:
    """Judge δ = m^(−1.1) by the noise multipliers of Table 2: which m they were calibrated for.

    Parameters
    ----------
    sizes
        m by name, the one of our copy first.
    """
    rows = TABLE_2[1:]
    tail = {name: sum(calibrated_by_tail(row, m) for row in rows) for name, m in sizes.items()}
    classical = {
        name: [accounting.rdp(float(row.noise), m**-1.1, conversion="classical", orders="dense") for row in rows]
        for name, m in sizes.items()
    }
    whole = [name for name, count in tail.items() if count == len(rows)]
    verdict = Verdict.CONFIRMED if next(iter(sizes)) in whole else Verdict.QUALIFIED if whole else Verdict.REFUTED
    listed = "; ".join(
        f"δ = {m**-1.1:.3g} with {name} fits {tail[name]}, and by RDP's classical conversion the ε are "
        f"{', '.join(f'{value:.4g}' for value in classical[name])}"
        for name, m in sizes.items()
    )
    return found(
        verdict,
        f"of {len(rows)} noise multipliers, calibrated by the tail of the privacy loss, {listed}; the first version "
        "prints 8.20e-7",
        tail=tail,
        classical=classical,
    )


def judge_epsilon(multiplier: str, epsilon: str) -> Outcome:
    """Judge a printed analytical ε, said to be that of the Gaussian mechanism applied once.

    Parameters
    ----------
    multiplier, epsilon
        As printed.
    """

    def readings(noise_multiplier: float) -> dict[str, float]:
        values = {
            f"{name}, {users}": value
            for users, m in _USERS.items()
            for name, value in accounting.readings(noise_multiplier, m**-1.1, rounds=ROUNDS).items()
        }
        poisson = sampled(noise_multiplier, STACKOVERFLOW_DELTA, ROUNDS, 1 / ROUNDS)
        return values | {f"{name}, m = 341k": value for name, value in poisson.items()}

    stated = frozenset(f"exact Gaussian, one round, {users}" for users in _USERS)
    return calibrated(multiplier, epsilon, readings, STACKOVERFLOW_DELTA, stated)


def judge_accuracy() -> Outcome:
    """Judge the largest relative loss of accuracy against the accuracies that the first version prints."""
    relative = [float((Fraction(a) - Fraction(b)) / Fraction(a)) for _, _, a, b in V1_TABLE_2]
    points = max(Fraction(a) - Fraction(b) for _, _, a, b in V1_TABLE_2)
    as_stated = max(relative) <= 0.0015
    verdict = Verdict.CONFIRMED if as_stated else Verdict.QUALIFIED if points <= Fraction(1, 10) else Verdict.REFUTED
    return found(
        verdict,
        f"the first version's accuracies fall by {float(points):g} percentage points at most, which is "
        f"{100 * max(relative):.2f}% of the accuracy: it holds as percentage points, or where those figures lie at the "
        "edge of their rounding",
        relative=relative,
    )


def judge_clipping(estimate: str = TABLE_2[0].estimate_final) -> Outcome:
    """Judge what the estimate with clipping only allows."""
    _, tenth = proven(lambda: belief(estimate, Fraction(1, 10)), "1")
    agreed = estimate == "4.60" and tenth > 0.9
    return found(holds(agreed), f"ε = {estimate} takes a prior of 10% to {100 * tenth:.1f}%", belief=tenth)


def judge_maximum() -> Outcome:
    """Judge Algorithm 3 where its answer is known: Gaussian noise, and any number of canaries.

    With nothing but noise the scores of a round are N(0, 1), and N(1/σ, 1) in the canary's own; the algorithm fits
    Gaussians to their maxima over the rounds.
    """
    null_mean, null_deviation, _ = largest_cosine(ROUNDS, 0.0)
    exact, one_way, both = [], [], []
    for row in TABLE_2[1:]:
        sigma = float(row.noise)
        pair = (*largest_cosine(ROUNDS, 1.0 / sigma)[:2], null_mean, null_deviation)
        ways = [float(two_gaussians.epsilon(STACKOVERFLOW_DELTA, *pair, way)) for way in ("forward", "reverse")]
        exact.append(accounting.gaussian(sigma, STACKOVERFLOW_DELTA))
        one_way.append(min(ways))
        both.append(max(ways))
    stated = [near(value, truth) for value, truth in zip(both, exact, strict=True)]
    weaker = [near(value, truth) for value, truth in zip(one_way, exact, strict=True)]
    verdict = Verdict.CONFIRMED if all(stated) else Verdict.QUALIFIED if all(weaker) else Verdict.REFUTED
    listed = "; ".join(
        f"{larger:.4g} in both directions and {smaller:.3g} in one at {row.noise}, where the exact ε is {truth:.3g} "
        f"and {row.estimate_all} is printed"
        for larger, smaller, truth, row in zip(both, one_way, exact, TABLE_2[1:], strict=True)
    )
    finding = (
        f"with noise alone and unlimited canaries the algorithm gives {listed}: a maximum over {ROUNDS} rounds is not "
        f"normal (deviation {null_deviation:.3f}), and the fit's tail decides"
    )
    null = (null_mean, null_deviation)
    return found(verdict, finding, exact=exact, one_way=one_way, both=both, null=null)


_claim = placed("submission", SUBMISSION)

CHECKS: tuple[Check, ...] = (
    _claim(
        "section4.maximum",
        "Section 4, Algorithm 3",
        "where ε is known, with noise and canaries alone, the maximum over rounds gives estimates close to it",
        judge_maximum,
    ),
    _claim(
        "section4.moderate",
        "Section 4 and Tables 2 and 3",
        "under moderate noise the printed estimates from all iterates are close to the analytical ε",
        lambda: judge_ballpark((*TABLE_2[1:], *TABLE_3[1:])),
    ),
    _claim("section5.users", "Section 5", "each of m = 34k clients (as our copy reads) is in one round", judge_users),
    _claim("section5.delta", "Section 5", "δ = m^(−1.1), with m = 34k as our copy reads", judge_delta),
    *(
        _claim(
            f"table2.row{number}.epsilon",
            "Section 5, footnote 4 and Table 2",
            f"one application of the Gaussian mechanism at noise multiplier {row.noise} has ε = {row.analytical} at "
            "δ = m^(−1.1)",
            partial(judge_epsilon, row.noise, row.analytical),
        )
        for number, row in enumerate(TABLE_2, 1)
        if row.analytical != "inf"
    ),
    _claim(
        "section5.accuracy", "Section 5", "1,000 canaries cost 0.1% of the accuracy at most, relatively", judge_accuracy
    ),
    *checks(_claim, "submission.table2", f"{SUBMISSION}, Table 2", TABLE_2, STACKOVERFLOW_DELTA, ROUNDS, STACKOVERFLOW),
    _claim(
        "section5.separation",
        "Section 5",
        "at the lower noise multipliers the estimates from all iterates are much higher than the lower bounds",
        lambda: judge_separation(TABLE_2[:2]),
    ),
    _claim(
        "table2.ballpark",
        "Table 2's caption",
        "for moderate noise the estimate from all iterates is in the ballpark of the analytical ε",
        lambda: judge_ballpark(TABLE_2[1:]),
    ),
    _claim(
        "table2.noise-alone",
        "Table 2",
        "the final model's estimates with noise are 1.97, 1.18 and 0.569",
        partial(noise_alone, TABLE_2[1:], STACKOVERFLOW_DELTA, ROUNDS),
    ),
    _claim(
        "section5.clipping",
        "Section 5",
        "with clipping only the final model's estimate is 4.60, which protects hardly at all",
        judge_clipping,
    ),
    _claim(
        "section5.regime",
        "Section 5",
        "with a little noise the final model's ε is about 1",
        lambda: judge_regime(TABLE_2[1:]),
    ),
    _claim(
        "section6.sizes",
        "Section 6",
        "the experiments are of production size: millions of parameters, hundreds of thousands of clients",
        judge_sizes,
    ),
)
