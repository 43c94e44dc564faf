"""Sizes that the final version prints: clients, rounds, epochs, parameters, trainings, audits."""

from collections.abc import Mapping
from fractions import Fraction

from canaryproof.verify.claims.canife_numbers import TASKS, TRIALS
from canaryproof.verify.claims.final_printed import (
    CANARIES,
    EMNIST_COHORT,
    EMNIST_EPOCHS,
    EMNIST_ROUNDS,
    EMNIST_USERS,
    FASHION_BATCH,
    FASHION_EXAMPLES,
    STACKOVERFLOW_COHORT,
    STACKOVERFLOW_ROUNDS,
)
from canaryproof.verify.claims.final_text import DOCUMENT
from canaryproof.verify.claims.judging import claim, found, holds
from canaryproof.verify.results import Context, Outcome, Verdict

# TensorFlow Federated's documentation of its data sets; Cohen et al. (arXiv 1702.05373) for EMNIST by class; Caldas et
# al. (arXiv 1812.01097) for LEAF.
_STACKOVERFLOW_TRAINING_CLIENTS = 342_477
_EMNIST_VERSIONS = {
    "TFF, digits only": (3383, 341_873 + 40_832),
    "TFF, 62 classes": (3400, 671_585 + 77_483),
    "LEAF": (3550, 805_263),
}
_EMNIST_BY_CLASS = 814_255
# What CANIFE prints: the design pool of Figure 3a (CIFAR10) and the design iterations of the timings in Section 4.3.
_POOL, _ITERATIONS = 512, 2500


def _thousands(printed: int, value: float) -> bool:
    return abs(value - 1000 * printed) <= 500


def judge_epoch(clients: int = 341, rounds: int = STACKOVERFLOW_ROUNDS, cohort: int = STACKOVERFLOW_COHORT) -> Outcome:
    """Judge whether rounds × clients a round is one participation of each client, given in thousands."""
    places = rounds * cohort
    if _thousands(clients, places):
        verdict = Verdict.CONFIRMED
    else:
        verdict = Verdict.QUALIFIED if _thousands(clients, places - CANARIES) else Verdict.REFUTED
    finding = (
        f"{rounds} × {cohort} = {places:,} places, of which 1,000 canaries leave {places - CANARIES:,}: "
        "right if the canaries count among the clients of a round"
        f"; the data set has {_STACKOVERFLOW_TRAINING_CLIENTS:,} training clients"
    )
    return found(verdict, finding, places=places, without_canaries=places - CANARIES)


def judge_emnist_rounds(rounds: int = EMNIST_ROUNDS) -> Outcome:
    """Judge the number of rounds that the printed epochs and clients a round amount to."""
    exact = Fraction(EMNIST_USERS * EMNIST_EPOCHS, EMNIST_COHORT)
    readings = {
        "whole epochs, last round of each dropped if short": EMNIST_USERS // EMNIST_COHORT * EMNIST_EPOCHS,
        "all participations, last round dropped if short": int(exact),
        "all participations, last round kept": -int(-exact // 1),
        "whole epochs, last round of each kept": -(-EMNIST_USERS // EMNIST_COHORT) * EMNIST_EPOCHS,
    }
    rounded = round(exact, -2) == rounds
    verdict = Verdict.CONFIRMED if rounds in readings.values() else Verdict.QUALIFIED if rounded else Verdict.REFUTED
    finding = (
        f"as a round number: {EMNIST_EPOCHS} × {EMNIST_USERS} / {EMNIST_COHORT} = {float(exact):.1f} rounds "
        f"(by reading {', '.join(str(value) for value in readings.values())}); {rounds} rounds are "
        f"{float(EMNIST_EPOCHS * rounds / exact):.2f} epochs"
    )
    return found(verdict, finding, exact=float(exact), readings=readings)


def judge_emnist_size(users: int = EMNIST_USERS, thousands: int = 814) -> Outcome:
    """Judge the number of EMNIST's characters and writers against its public versions."""
    both = [n for n, (count, size) in _EMNIST_VERSIONS.items() if count == users and _thousands(thousands, size)]
    listed = "; ".join(f"{name} has {size:,} by {count:,}" for name, (count, size) in _EMNIST_VERSIONS.items())
    finding = f"{listed}; {_EMNIST_BY_CLASS:,} is all of EMNIST by class, more than each of these holds"
    return found(holds(bool(both)), finding, versions=_EMNIST_VERSIONS)


def lstm_parameters(vocabulary: int, embedding: int = 96, cells: int = 670, dense: int = 96) -> int:
    """Count the parameters of Reddi et al.'s word model: embedding, LSTM, two dense layers."""
    lstm = 4 * cells * (embedding + cells + 1)
    return vocabulary * embedding + lstm + (cells + 1) * dense + (dense + 1) * vocabulary


def cnn_parameters(classes: int) -> int:
    """Count the parameters of Reddi et al.'s CNN on 28 × 28: two 3 × 3 convolutions, pooling, two dense layers."""
    return (9 + 1) * 32 + (9 * 32 + 1) * 64 + (12 * 12 * 64 + 1) * 128 + (128 + 1) * classes


def judge_parameters(printed: str, counts: Mapping[str, int], stated: bool) -> Outcome:
    """Judge a number of parameters in millions, against those of a model that the text does or does not name."""
    low, high = (Fraction(printed) + Fraction(sign, 20) for sign in (-1, 1))
    fits = [name for name, count in counts.items() if low <= Fraction(count, 10**6) <= high]
    verdict = (Verdict.CONFIRMED if stated else Verdict.QUALIFIED) if fits else Verdict.REFUTED
    return found(verdict, ", ".join(f"{count:,} ({name})" for name, count in counts.items()), counts=counts)


def _judge_share(_: Context) -> Outcome:
    places = STACKOVERFLOW_ROUNDS * STACKOVERFLOW_COHORT
    shares = {"StackOverflow": CANARIES / places, "EMNIST": CANARIES / (EMNIST_ROUNDS * EMNIST_COHORT)}
    finding = (
        f"a canary that takes part once holds {shares['StackOverflow']:.2%} of all places on StackOverflow and "
        f"{shares['EMNIST']:.1%} on EMNIST, where there are {EMNIST_USERS / CANARIES:.1f} users a canary"
    )
    return found(holds(shares["StackOverflow"] < 0.01), finding, shares=shares)


def judge_trainings(runs: int = 10, settings: int = 2, repetitions: int = 50, printed: int = 1000) -> Outcome:
    """Judge the number of models trained for Table 5."""
    many, single = runs * settings * repetitions, settings * repetitions
    finding = f"{runs} × {settings} × {repetitions} = {many:,}, and {single} more in the rows of one run each"
    return found(holds(many == printed), finding, many=many, single=single)


def judge_canaries(models: int = 10, each: int = 100, total: int = CANARIES) -> Outcome:
    """Judge that models with so many canaries each, a tenth of one model's, have as many cosines together."""
    finding = f"{models} × {each} = {models * each:,}, and {total // each} times fewer a run"
    return found(holds(models * each == total and total == 10 * each), finding, total=models * each)


def judge_audits(every: int = 100, scores: int = 100) -> Outcome:
    """Judge that one epoch leaves room for audits at so many rounds' distance."""
    rounds = Fraction(FASHION_EXAMPLES, FASHION_BATCH)
    audits = int(rounds) // every
    finding = (
        f"an epoch of {FASHION_EXAMPLES:,} in batches of {FASHION_BATCH} has {float(rounds):.2f} rounds: {audits} "
        f"audits of {scores} scores, {audits + 1} with one at the start; CANIFE's estimate stands on {scores * audits} "
        f"to {scores * (audits + 1)} scores"
    )
    return found(holds(audits > 0), finding, rounds=float(rounds), audits=audits)


def judge_canife_settings(pool: int = 512, iterations: int = 2500, every: int = 100, scores: int = 100) -> Outcome:
    """Judge whether the settings of the comparison are those of CANIFE's experiments."""
    tasks = [task.name for task in TASKS if task.every == every]
    printed = pool == _POOL and iterations == _ITERATIONS and scores == TRIALS and bool(tasks)
    # CANIFE has no training with all four.
    verdict = Verdict.QUALIFIED if printed else Verdict.REFUTED
    others = ", ".join(f"{task.every} on {task.name}" for task in TASKS if task.every != every)
    finding = (
        f"only taken from several of its experiments: the pool from CIFAR10, {iterations:,} steps from its timings, "
        f"{scores} scores from all, audits every {every} rounds from {' and '.join(tasks) or 'none'} ({others})"
        if printed
        else f"CANIFE prints a pool of {_POOL}, {_ITERATIONS:,} steps, {TRIALS} scores, and audits every "
        f"{', '.join(str(task.every) for task in TASKS)} rounds"
    )
    return found(verdict, finding, tasks=tasks)


CHECKS = (
    claim(
        "final.section5.1.parameters",
        f"{DOCUMENT}, Section 5.1",
        "the word model of Reddi et al. has 4.1M parameters",
        lambda _: judge_parameters("4.1", {"10,000 words and four special tokens": lstm_parameters(10_004)}, True),
    ),
    claim(
        "final.section5.1.epoch",
        f"{DOCUMENT}, Section 5.1",
        "2048 rounds of 167 clients are one epoch in which each of 341k clients takes part exactly once",
        lambda _: judge_epoch(),
    ),
    claim(
        "final.section5.1.canary-share",
        f"{DOCUMENT}, Sections 1 and 5.1",
        "1k canaries are few beside a reasonable number of clients",
        _judge_share,
    ),
    claim(
        "final.section5.2.1.size",
        f"{DOCUMENT}, Section 5.2.1",
        "EMNIST holds 814k characters by 3,383 users",
        lambda _: judge_emnist_size(),
    ),
    claim(
        "final.section5.2.1.parameters",
        f"{DOCUMENT}, Section 5.2.1",
        "the CNN for EMNIST has 1.2M parameters",
        lambda _: judge_parameters(
            "1.2",
            {"Reddi et al., 62 classes": cnn_parameters(62), "Reddi et al., 10 classes": cnn_parameters(10)},
            False,
        ),
    ),
    claim(
        "final.section5.2.1.rounds",
        f"{DOCUMENT}, Section 5.2.1",
        "15 epochs over 3,383 users with 101 clients a round are 500 rounds",
        lambda _: judge_emnist_rounds(),
    ),
    claim(
        "final.section5.3.trainings",
        f"{DOCUMENT}, Section 5.3",
        "ten runs, two noise settings and fifty repetitions are 1000 trained models",
        lambda _: judge_trainings(),
    ),
    claim(
        "final.section5.3.canaries",
        f"{DOCUMENT}, Section 5.3 and Table 5",
        "ten models with one hundred canaries give 1000 cosines, an order of magnitude fewer canaries a run",
        lambda _: judge_canaries(),
    ),
    claim(
        "final.section5.4.audits",
        f"{DOCUMENT}, Section 5.4",
        "CANIFE audits every 100 rounds, with 100 scores each, in one epoch of batches of 128",
        lambda _: judge_audits(),
    ),
    claim(
        "final.section5.4.settings",
        f"{DOCUMENT}, Section 5.4",
        "a design pool of 512, 2500 optimisation steps, audits every 100 rounds with 100 scores follow CANIFE's own",
        lambda _: judge_canife_settings(),
    ),
)
