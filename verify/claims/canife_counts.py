"""CANIFE's counts, times and percentages, compared with each other (Sections 4.1 to 4.3, Appendix B)."""

import math
from fractions import Fraction
from typing import Any

from canaryproof.verify.claims.canife_numbers import CELEBA, PAPER, SENT140, SHAKESPEARE, fixed, prints, rounding
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict


def judge_split(train: int, test: int, share: Fraction, published: int, source: str) -> Outcome:
    """Judge a split of users by a share to train on, and by the number of users that the data set has.

    Parameters
    ----------
    train, test
        Printed numbers of users.
    share
        Share of the users to train on.
    published
        All users of the data set.
    source
        Who says so.
    """
    total = train + test
    split = math.floor(share * total)
    finding = (
        f"{train:,} + {test:,} = {total:,} users, {train / total:.4f} of them to train on; {source} has {published:,}"
    )
    evidence: dict[str, Any] = {"total": total, "published": published, "split": split}
    if split != train:
        return found(Verdict.REFUTED, f"{finding}; ⌊{float(share)} × {total:,}⌋ = {split:,}", **evidence)
    if total != published:
        whole = f"only as a sample of {total / published:.2%}, split {float(share):.0%} to {float(1 - share):.0%}"
        return found(Verdict.QUALIFIED, f"{whole}: {finding}", **evidence)
    return found(Verdict.CONFIRMED, finding, **evidence)


def judge_times(iteration: str, iterations: int, total: str) -> Outcome:
    """Judge a time in all by the time of an iteration, both in seconds and rounded.

    Parameters
    ----------
    iteration, total
        Printed times.
    iterations
        Number of iterations.
    """
    low, high = (float(end) * iterations for end in rounding(iteration))
    least, most = (float(end) for end in rounding(total))
    evidence: dict[str, Any] = {"iterations": (low, high), "total": (least, most)}
    finding = f"{iterations:,} iterations of {iteration} s are {low:.1f} to {high:.1f} s; {total} s are printed"
    if most < low:
        return found(Verdict.REFUTED, finding, **evidence)
    if least <= high:
        return found(Verdict.CONFIRMED, finding, **evidence)
    return found(
        Verdict.QUALIFIED,
        f"only if {least - high:.1f} to {most - low:.1f} s pass outside the iterations: {finding}",
        **evidence,
    )


def judge_health(all_mean: str, late_mean: str, late_rounds: int) -> Outcome:
    """Judge two mean healths by what the early audits would have had to be.

    Parameters
    ----------
    all_mean, late_mean
        Printed means over all audits and without the first 1,000 rounds.
    late_rounds
        Round before which audits are left out of the second.
    """
    early = 1 + (late_rounds - 1) // SENT140.every
    audits = 1 + (SENT140.rounds - 1) // SENT140.every
    ends = [
        (audits * float(total) - (audits - early) * float(late)) / early
        for total, late in zip(rounding(all_mean), reversed(rounding(late_mean)), strict=True)
    ]
    holds = ends[0] <= 1.0 and float(late_mean) <= 1.0
    return found(
        Verdict.CONFIRMED if holds else Verdict.REFUTED,
        f"the {early} early audits of {audits} would have a mean health of {ends[0]:.3f} to {ends[1]:.3f}, and a "
        f"health of {late_mean} is a loss reduced by {float(late_mean):.0%}",
        early_mean=ends,
        early=early,
    )


def judge_spread(mean: str, spread: str) -> Outcome:
    """Judge a printed mean ± standard deviation of healths over five runs; no health is above 1.

    Parameters
    ----------
    mean, spread
        The printed numbers.
    """
    shortfall = 1.0 - float(rounding(mean)[0])
    least = float(rounding(spread)[0])
    runs = 5
    audits = runs * (1 + (SENT140.rounds - 1) // SENT140.every)
    # Numbers of at most 1 are spread most where all that the mean lacks is in one of them.
    largest, of_audits = (math.sqrt(count) * shortfall for count in (runs, audits))
    evidence: dict[str, Any] = {"largest_of_runs": largest, "largest_of_audits": of_audits}
    finding = f"five numbers of at most 1 with a mean of {mean} have a standard deviation of at most {largest:.3f}"
    if least <= largest:
        return found(Verdict.CONFIRMED, f"possible: {finding}", **evidence)
    if least <= of_audits:
        return found(Verdict.QUALIFIED, f"only over the {audits} audits and not over the runs: {finding}", **evidence)
    return found(Verdict.REFUTED, finding, **evidence)


def judge_utility(private: str, free: str) -> Outcome:
    """Judge that privacy costs utility by two printed accuracies, in per cent."""
    difference = float(free) - float(private)
    finding = f"{private}% at ε = 50, {free}% without privacy: {difference:+.1f} points"
    if difference >= 0.0:
        return found(Verdict.CONFIRMED, finding, difference=difference)
    # No spread over runs is printed, and the two trainings may not be the same length.
    return found(
        Verdict.INCONCLUSIVE,
        f"{finding}, the other way round; 30 and 15 epochs are printed for them, and no spread over runs",
        difference=difference,
    )


def _judge_two_epochs(_: Context) -> Outcome:
    epochs = 1000 / SENT140.epoch_rounds
    return found(
        Verdict.CONFIRMED if prints(epochs, "2") else Verdict.REFUTED,
        f"1,000 rounds are {epochs:.2f} epochs of {SENT140.epoch_rounds} rounds",
        epochs=epochs,
    )


def _judge_minutes(_: Context) -> Outcome:
    slowest = float(rounding("591")[1]) / 60.0
    verdict = Verdict.CONFIRMED if slowest <= 10.0 else Verdict.REFUTED
    return found(verdict, f"the longest printed time, 591 s, is {slowest:.2f} minutes at most", minutes=slowest)


def judge_iterations(iteration: str, counts: tuple[int, ...], minutes: float) -> Outcome:
    """Judge that designs of several lengths take no more than a time.

    Parameters
    ----------
    iteration
        Printed time of an iteration, in seconds.
    counts
        Numbers of iterations.
    minutes
        The time.
    """
    least = {count: float(rounding(iteration)[0]) * count / 60.0 for count in counts}
    within = [f"{count:,}" for count, time in least.items() if time <= minutes]
    verdict = Verdict.CONFIRMED if len(within) == len(least) else Verdict.QUALIFIED if within else Verdict.REFUTED
    listed = ", ".join(f"{count:,} iterations at least {time:.2f}" for count, time in least.items())
    return found(
        verdict,
        f"within {minutes:g} minutes: {' and '.join(within) or 'none'} of {listed} minutes at {iteration} s each",
        minutes=least,
    )


def judge_pool(pool: int, users: int) -> Outcome:
    """Judge that a design pool of so many samples can come from so many users with one each."""
    verdict = Verdict.CONFIRMED if pool <= users else Verdict.REFUTED
    return found(verdict, f"{pool} of the {users:,} test users, each with a sample", share=pool / users)


def judge_range(least: float, most: float, gaps: dict[str, tuple[float, float]]) -> Outcome:
    """Judge that a range printed in one place holds the ranges printed in another."""
    holds = all(least <= low <= high <= most for low, high in gaps.values())
    listed = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in gaps.items())
    return found(Verdict.CONFIRMED if holds else Verdict.REFUTED, f"Section 4.2 has {listed}", gaps=gaps)


# LEAF's README (github.com/TalwalkarLab/leaf), of Shakespeare its present one: an earlier one has 2,288 users. The file
# names in the README of the authors' code say 15% of Sent140, split 6 to 4, and 9 to 1 for the other two.
# CIFAR10 after its home page (cs.toronto.edu/~kriz/cifar.html), an image a user.
_LEAF = "LEAF's README"
_SPLITS = (
    ("cifar10", "An IID split of CIFAR10", 50_000, 10_000, Fraction(5, 6), 60_000, "CIFAR10's home page"),
    ("celeba", "LEAF's standard split of CelebA", CELEBA.users, 935, Fraction(9, 10), 9_343, _LEAF),
    ("sent140", "LEAF's standard split of Sent140", SENT140.users, 39_477, Fraction(6, 10), 660_120, _LEAF),
    ("shakespeare", "LEAF's standard split of Shakespeare", SHAKESPEARE.users, 113, Fraction(9, 10), 1_129, _LEAF),
)
_TIMES = (("sent140", "Sent140", "0.06", "165"), ("celeba", "CelebA (ResNet18)", "0.23", "591"))
_HEALTHS = (("spread", "0.970", "0.098", ""), ("late-spread", "0.990", "0.01", " after the first 1,000 rounds"))
_ACCURACIES = (("sent140", "Sent140", "63.9", "64.8"), ("shakespeare", "Shakespeare", "44.8", "44.4"))

CHECKS = (
    claim(
        "canife.abstract.range",
        PAPER + "abstract",
        "The per-round ε̂ is 4 to 5 times lower than the theoretical one, as in the text's 4.5 and 4 to 5",
        fixed(judge_range, 4.0, 5.0, {"Sent140": (4.5, 4.5), "CelebA": (4.0, 5.0), "Shakespeare": (4.0, 5.0)}),
    ),
    claim(
        "canife.section4.1.pool",
        PAPER + "Section 4.1, Appendix B",
        "A design pool of 512 comes from CIFAR10's 10,000 test users",
        fixed(judge_pool, 512, 10_000),
    ),
    claim(
        "canife.section4.2.epochs",
        PAPER + "Section 4.2",
        "On Sent140 the first 1,000 rounds are about two epochs",
        _judge_two_epochs,
    ),
    claim(
        "canife.section4.2.health",
        PAPER + "Section 4.2",
        "Mean canary health on Sent140 is 0.970, and 0.990 without the first 1,000 rounds: a loss reduced by 99%",
        fixed(judge_health, "0.970", "0.990", 1000),
    ),
    *(
        claim(
            f"canife.section4.2.health.{id_}",
            PAPER + "Section 4.2",
            f"Canary health over five runs is {mean} ± {spread}{rounds}",
            fixed(judge_spread, mean, spread),
        )
        for id_, mean, spread, rounds in _HEALTHS
    ),
    *(
        claim(
            f"canife.section4.3.times.{id_}",
            PAPER + "Section 4.3",
            f"{name}: {iteration} s a design iteration, {total} s for 2,500",
            fixed(judge_times, iteration, 2500, total),
        )
        for id_, name, iteration, total in _TIMES
    ),
    claim(
        "canife.section4.3.minutes",
        PAPER + "Section 4.3",
        "Designing a canary takes at most 10 minutes on a CPU",
        _judge_minutes,
    ),
    claim(
        "canife.section4.3.few-thousand",
        PAPER + "Section 4.3, Figure 5b",
        "Near-optimal canaries take a few thousand iterations (2,500; 3,000 for almost 100%) and at most 10 minutes",
        fixed(judge_iterations, "0.23", (2500, 3000), 10.0),
    ),
    *(
        claim(
            f"canife.appendixB.{id_}.users",
            PAPER + "Appendix B",
            f"{name} has {train:,} train users and {test:,} test users",
            fixed(judge_split, train, test, share, total, source),
        )
        for id_, name, train, test, share, total, source in _SPLITS
    ),
    *(
        claim(
            f"canife.section4.2.utility.{id_}",
            PAPER + "Section 1; Section 4.2; Appendix B",
            f"Privacy costs utility: {name} has {private}% at ε = 50 and {free}% without",
            fixed(judge_utility, private, free),
        )
        for id_, name, private, free in _ACCURACIES
    ),
)
