"""CANIFE's trainings: rounds, epochs, clients a round and audits (Section 4, Appendices B and C)."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from scipy import stats

from canaryproof.verify.claims.canife_numbers import CELEBA, PAPER, SENT140, SHAKESPEARE, TASKS, Task, fixed
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Outcome, Verdict


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
    evidence: dict[str, Any] = {"algorithm_2": as_printed, "with_first": with_first, "printed": task.audits}
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


def judge_epochs(task: Task, epochs: int) -> Outcome:
    """Judge a number of epochs of Appendix B by the rounds of Appendix C.3.

    Parameters
    ----------
    task
        The training, as Appendix C.3 has it.
    epochs
        Printed number of epochs.
    """
    total = epochs * task.epoch_rounds
    evidence: dict[str, Any] = {"rounds": task.rounds, "rounds_of_these_epochs": total}
    if total == task.rounds:
        return found(Verdict.CONFIRMED, f"{total:,} rounds, as in Appendix C.3", **evidence)
    return found(
        Verdict.QUALIFIED,
        f"only for the run without privacy: Appendix C.3 has {task.rounds:,} rounds, which are {task.epochs} epochs; "
        f"{epochs} would be {total:,}",
        **evidence,
    )


def judge_clients(printed: int, tasks: Sequence[Task]) -> Outcome:
    """Judge a number of clients a round by those of Appendix C.3.

    Parameters
    ----------
    printed
        The number.
    tasks
        Trainings that it is printed for.
    """
    cohorts = {task.name: task.cohort for task in tasks}
    verdict = Verdict.CONFIRMED if set(cohorts.values()) == {printed} else Verdict.REFUTED
    listed = ", ".join(f"{name} {cohort}" for name, cohort in cohorts.items())
    return found(verdict, f"Appendix C.3 has {listed}", cohorts=cohorts)


def judge_poisson(tasks: Sequence[Task]) -> Outcome:
    """Judge that a round of Poisson sampling has the printed number of clients.

    Parameters
    ----------
    tasks
        The trainings.
    """
    rows = {task.name: float(stats.binom.pmf(task.cohort, task.users, task.sampling)) for task in tasks}
    listed = ", ".join(f"{name} {share:.3f}" for name, share in rows.items())
    return found(
        Verdict.CONFIRMED if all(share == 1.0 for share in rows.values()) else Verdict.QUALIFIED,
        f"only as the expected number: a round of Poisson sampling has exactly so many clients with probability "
        f"{listed}; rounds of a fixed size are another mechanism, that the accounting is not for",
        exactly=rows,
    )


def judge_covered(tasks: Sequence[Task]) -> Outcome:
    """Judge that Algorithm 2 gives each round an estimate of the noise.

    Parameters
    ----------
    tasks
        The trainings.
    """
    # The estimate of round r serves rounds r to r + s - 1, and the first audit is at r = s.
    missing = {task.name: min(task.every - 1, task.rounds) for task in tasks}
    listed = ", ".join(f"{name} {count}" for name, count in missing.items())
    return found(
        Verdict.QUALIFIED if any(missing.values()) else Verdict.CONFIRMED,
        f"only if an audit comes first, or if an estimate serves the rounds before it, as in the public code: with "
        f"audits at r mod s = 0 for r from 1 the rounds before the first have none ({listed})",
        missing=missing,
    )


CHECKS = (
    *(
        claim(
            f"canife.appendixB.{task.id}.epochs",
            PAPER + "Appendix B",
            f"The {task.name} model is trained for 15 epochs ({task.epochs} in Appendix C.3)",
            fixed(judge_epochs, task, 15),
        )
        for task in (SENT140, SHAKESPEARE)
    ),
    claim(
        "canife.figure4.clients",
        PAPER + "Figure 4",
        "The models of Figures 4a and 4b are trained with 100 clients a round",
        fixed(judge_clients, 100, (SENT140, CELEBA)),
    ),
    claim(
        "canife.section4.sampling",
        PAPER + "Section 4, setup; Appendix C.3",
        "Clients are sampled by Poisson sampling, and 100 (Shakespeare: 60) take part in each round",
        fixed(judge_poisson, TASKS),
    ),
    claim(
        "canife.algorithm2.rounds",
        PAPER + "Appendix C.2, Algorithm 2",
        "An estimate holds from its audit to the next, and all rounds are composed so",
        fixed(judge_covered, TASKS),
    ),
    *(
        claim(
            f"canife.appendixC3.{task.id}.rounds",
            PAPER + "Appendix C.3",
            f"{task.name}: {task.cohort} clients a round make {task.epoch_rounds} rounds an epoch, {task.rounds:,} in "
            f"{task.epochs} epochs",
            fixed(judge_rounds, task),
        )
        for task in TASKS
    ),
    *(
        claim(
            f"canife.appendixC3.{task.id}.audits",
            PAPER + "Appendix C.3",
            f"{task.name}: an audit every {task.every} of {task.rounds:,} rounds makes {task.audits}",
            fixed(judge_audits, task),
        )
        for task in TASKS
    ),
)
