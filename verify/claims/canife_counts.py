"""CANIFE's counts, times and percentages, compared with each other (Sections 4.1 to 4.3, Appendices B and C.3)."""

import math
from fractions import Fraction

from canaryproof.verify.claims.canife_numbers import CELEBA, SENT140, SHAKESPEARE, TASKS, Task, fixed, prints, rounding
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict

_PAPER = "Maddock et al., arXiv 2210.02912, "


def judge_rounds(task: Task) -> Outcome:
    """Judge rounds an epoch and in all by the clients and the epochs."""
    an_epoch = -(-task.users // task.cohort)
    total = an_epoch * task.epochs
    expected = float(Fraction(task.cohort, task.users) * total)
    holds = (an_epoch, total) == (task.epoch_rounds, task.rounds)
    return found(
        Verdict.CONFIRMED if holds else Verdict.REFUTED,
        f"⌈{task.users:,}/{task.cohort}⌉ = {an_epoch} rounds an epoch, {total:,} in {task.epochs} epochs; a client "
        f"takes part {expected:.2f} times in expectation",
        epoch_rounds=an_epoch,
        rounds=total,
        participations=expected,
    )


def judge_audits(task: Task) -> Outcome:
    """Judge a number of audits by the rule that makes one every so many rounds."""
    as_printed = task.rounds // task.every
    # The authors' code audits at round 1 and then every ``every`` rounds.
    with_first = 1 + (task.rounds - 1) // task.every
    finding = (
        f"Algorithm 2 (r mod s = 0 for r from 1) audits {as_printed} times; with one at the first round it is "
        f"{with_first}"
    )
    evidence = {"algorithm_2": as_printed, "with_first": with_first, "printed": task.audits}
    if task.audits == as_printed:
        return found(Verdict.CONFIRMED, finding, **evidence)
    if task.audits == with_first:
        return found(Verdict.QUALIFIED, finding, **evidence)
    others = ", ".join(f"{other.name} {1 + (other.rounds - 1) // other.every}" for other in TASKS if other is not task)
    return found(
        Verdict.REFUTED,
        f"{finding}, the rule that gives the others' numbers ({others}); {task.audits} would take one more at the end",
        **evidence,
    )


def judge_split(train: int, test: int, share: Fraction, published: int) -> Outcome:
    """Judge a split of users by a share to train on, and by the number of users that LEAF publishes.

    Parameters
    ----------
    train, test
        Printed numbers of users.
    share
        Share of the users to train on.
    published
        All users of the data set, as LEAF gives them.
    """
    total = train + test
    split = math.floor(share * total)
    finding = f"{train:,} + {test:,} = {total:,} users, {train / total:.4f} of them to train on; LEAF has {published:,}"
    evidence = {"total": total, "published": published, "split": split}
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
    evidence = {"iterations": (low, high), "total": (least, most)}
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


def _judge_epochs(_: Context) -> Outcome:
    rounds = {epochs: epochs * SHAKESPEARE.epoch_rounds for epochs in (15, 30)}
    fits = [epochs for epochs, total in rounds.items() if total == SHAKESPEARE.rounds]
    return found(
        Verdict.QUALIFIED if fits == [30] else Verdict.CONFIRMED,
        f"only for the run without privacy: {SHAKESPEARE.rounds} rounds are 30 epochs, as Appendix C.3 has it; 15 "
        f"would be {rounds[15]}",
        rounds={str(epochs): total for epochs, total in rounds.items()},
    )


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


def judge_pool(pool: int, users: int) -> Outcome:
    """Judge that a design pool of so many samples can come from so many users with one each."""
    verdict = Verdict.CONFIRMED if pool <= users else Verdict.REFUTED
    return found(verdict, f"{pool} of the {users:,} test users, each with a sample", share=pool / users)


def judge_range(least: float, most: float, gaps: dict[str, tuple[float, float]]) -> Outcome:
    """Judge that a range printed in one place holds the ranges printed in another."""
    holds = all(least <= low <= high <= most for low, high in gaps.values())
    listed = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in gaps.items())
    return found(Verdict.CONFIRMED if holds else Verdict.REFUTED, f"Section 4.2 has {listed}", gaps=gaps)


_SPLITS = (
    ("celeba", CELEBA.users, 935, Fraction(9, 10), 9_343),
    ("sent140", SENT140.users, 39_477, Fraction(6, 10), 660_120),
    ("shakespeare", SHAKESPEARE.users, 113, Fraction(9, 10), 1_129),
)
_TIMES = (("sent140", "Sent140", "0.06", "165"), ("celeba", "CelebA (ResNet18)", "0.23", "591"))
_ACCURACIES = (("sent140", "Sent140", "63.9", "64.8"), ("shakespeare", "Shakespeare", "44.8", "44.4"))

CHECKS = (
    claim(
        "canife.abstract.range",
        _PAPER + "abstract",
        "The per-round ε̂ is 4 to 5 times lower than the theoretical one, as in the text's 4.5 and 4 to 5",
        fixed(judge_range, 4.0, 5.0, {"Sent140": (4.5, 4.5), "CelebA": (4.0, 5.0), "Shakespeare": (4.0, 5.0)}),
    ),
    claim(
        "canife.section4.1.pool",
        _PAPER + "Section 4.1, Appendix B",
        "A design pool of 512 comes from CIFAR10's 10,000 test users",
        fixed(judge_pool, 512, 10_000),
    ),
    claim(
        "canife.section4.2.epochs",
        _PAPER + "Section 4.2",
        "On Sent140 the first 1,000 rounds are about two epochs",
        _judge_two_epochs,
    ),
    claim(
        "canife.section4.2.health",
        _PAPER + "Section 4.2",
        "Mean canary health on Sent140 is 0.970, and 0.990 without the first 1,000 rounds: a loss reduced by 99%",
        fixed(judge_health, "0.970", "0.990", 1000),
    ),
    *(
        claim(
            f"canife.section4.3.times.{id_}",
            _PAPER + "Section 4.3",
            f"{name}: {iteration} s a design iteration, {total} s for 2,500",
            fixed(judge_times, iteration, 2500, total),
        )
        for id_, name, iteration, total in _TIMES
    ),
    claim(
        "canife.section4.3.minutes",
        _PAPER + "Section 4.3",
        "Designing a canary takes at most 10 minutes on a CPU",
        _judge_minutes,
    ),
    *(
        claim(
            f"canife.appendixB.{id_}.users",
            _PAPER + "Appendix B",
            f"LEAF's standard split has {train:,} train users and {test:,} test users",
            fixed(judge_split, train, test, share, total),
        )
        for id_, train, test, share, total in _SPLITS
    ),
    *(
        claim(
            f"canife.section4.2.utility.{id_}",
            _PAPER + "Section 1; Section 4.2; Appendix B",
            f"Privacy costs utility: {name} has {private}% at ε = 50 and {free}% without",
            fixed(judge_utility, private, free),
        )
        for id_, name, private, free in _ACCURACIES
    ),
    claim(
        "canife.appendixB.shakespeare.epochs",
        _PAPER + "Appendix B",
        "The Shakespeare model is trained for 15 epochs (30 in Appendix C.3)",
        _judge_epochs,
    ),
    *(
        claim(
            f"canife.appendixC3.{task.id}.rounds",
            _PAPER + "Appendix C.3",
            f"{task.name}: {task.cohort} clients a round make {task.epoch_rounds} rounds an epoch, {task.rounds:,} in "
            f"{task.epochs} epochs",
            fixed(judge_rounds, task),
        )
        for task in TASKS
    ),
    *(
        claim(
            f"canife.appendixC3.{task.id}.audits",
            _PAPER + "Appendix C.3",
            f"{task.name}: an audit every {task.every} of {task.rounds:,} rounds makes {task.audits}",
            fixed(judge_audits, task),
        )
        for task in TASKS
    ),
)
