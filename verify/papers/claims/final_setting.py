"""Claims of the final version on its setting: introduction, Equation (1), footnote 6, conclusion, printed sizes."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

from flint import arb, fmpq

from canaryproof.kernels.certified import at_precision, binomial, gaussian_mechanism, null_cosine
from canaryproof.kernels.threshold_attack import threshold_epsilon
from canaryproof.verify.papers.check.documents import FINAL
from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import Printed, agreement, conclude, fixed, holds, number, prints, proven
from canaryproof.verify.papers.claims.transcripts import Canife, Final, FirstVersion

_THOUSANDS = (1000, 10_000)
# Pairs (δ, noise multiplier), from little privacy to much.
_MECHANISMS = ((1e-6, 0.2), (1e-6, 0.541), (1e-6, 4.22), (1e-5, 1.0), (1e-3, 10.0))
_USERS = {"StackOverflow": Final.STACKOVERFLOW_CLIENTS, "EMNIST": Final.EMNIST_USERS}
# "Orthogonal" is a cosine no larger; "with high probability" all but this.
_COSINE, _RARE = 0.01, 1e-6
# Dates from which the "existence" of SHA-3 may count, by NIST's public announcements.
_SHA_3 = {
    "submission of Keccak, October 2008": date(2008, 10, 31),
    "NIST's choice, October 2012": date(2012, 10, 2),
    "FIPS 202, August 2015": date(2015, 8, 5),
}
_WRITTEN = date(2023, 9, 28)  # the last access date in the references


def largest_bound(runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Enclose the largest ε that Equation (1) gives at δ = 0 with Clopper–Pearson limits, half of the runs a side."""
    limit = binomial.upper(0, runs // 2, confidence)
    return math.log1p(-limit.hi) - math.log(limit.hi), math.log1p(-limit.lo) - math.log(limit.lo)


def _judge_retrainings() -> Outcome:
    reach = {runs: largest_bound(runs)[0] for runs in (100, *_THOUSANDS, 100_000)}
    low, high = (reach[runs] for runs in _THOUSANDS)
    both = [largest_bound(runs, 0.975)[0] for runs in _THOUSANDS]
    # Retrainings by which the faultless attack certifies ε: (1 - limit)^(n/2) = 0.05.
    needed = {e: 2 * math.ceil(math.log(0.05) / math.log1p(-1.0 / (1.0 + math.exp(e)))) for e in (1, 3, 5, 7, 10)}
    listed = ", ".join(f"{models:,} for ε = {e}" for e, models in needed.items())
    finding = (
        f"only read as what a lower bound takes whose limits of FPR and FNR are of 95% each: at best, 1,000 to 10,000 "
        f"models certify ε from {low:.2f} to {high:.2f}, or {both[0]:.2f} to {both[1]:.2f} if both limits hold "
        f"together with 95%; needed are {listed}"
    )
    typical = needed[5] <= _THOUSANDS[1] and needed[7] >= _THOUSANDS[0]
    return conclude(holds(False, typical), finding, reach=reach, needed=needed)


def _judge_equation_1() -> Outcome:
    rows: list[dict[str, Any]] = []
    for delta, sigma in _MECHANISMS:
        best = float(threshold_epsilon(delta, 1.0 / sigma, 1.0))
        exact = gaussian_mechanism.epsilon(delta, sigma)
        rows.append(
            {"delta": delta, "noise_multiplier": sigma, "epsilon": (exact.lo, exact.hi), "best threshold": best}
        )
    worst = max(abs(row["best threshold"] / row["epsilon"][0] - 1.0) for row in rows)
    finding = (
        f"for the Gaussian mechanism its largest value over all thresholds is the exact ε to {agreement(worst)} in "
        f"{len(rows)} cases: no threshold exceeds it and one attains it"
    )
    return conclude(holds(worst < 1e-11), finding, rows=rows)


def _not_orthogonal(pairs: Mapping[str, int], parameters: Mapping[str, int]) -> dict[str, float]:
    """Bound the probability that any of so many pairs has a cosine that is not small, by model (union bound)."""
    return {name: 2 * pairs[name] * null_cosine.sf(_COSINE, dim).hi for name, dim in parameters.items()}


def judge_orthogonal(parameters: Mapping[str, int] = Final.PARAMETERS) -> Outcome:
    """Judge that 1,000 random canaries are nearly orthogonal to one another at the models' dimensions."""
    pairs = Final.CANARIES * (Final.CANARIES - 1) // 2
    bounds = _not_orthogonal(dict.fromkeys(parameters, pairs), parameters)
    finding = (
        f"any of {pairs:,} pairs of 1,000 canaries has |cosine| > {_COSINE} with probability at most "
        f"{max(bounds.values()):.0e} (union bound, d = {min(parameters.values()):,})"
    )
    return conclude(holds(max(bounds.values()) < _RARE), finding, bounds=bounds)


def judge_orthogonal_to_clients(parameters: Mapping[str, int] = Final.PARAMETERS) -> Outcome:
    """Judge that random canaries are nearly orthogonal to all clients' updates, one of each client."""
    bounds = _not_orthogonal({name: Final.CANARIES * _USERS[name] for name in parameters}, parameters)
    listed = ", ".join(f"{bound:.0e} on {name}" for name, bound in bounds.items())
    finding = (
        f"only for updates that do not depend on the canaries, as before their first round: some cosine exceeds "
        f"{_COSINE} with probability at most {listed}. Later updates depend on parameters that hold the canaries"
    )
    return conclude(holds(False, max(bounds.values()) < _RARE), finding, bounds=bounds)


def belief(epsilon: str, prior: Fraction) -> arb:
    """Return the largest posterior belief that pure ε-DP allows from a prior, as a ball at flint's precision."""
    exact = Fraction(epsilon)
    odds = fmpq(prior.numerator, prior.denominator) / fmpq((1 - prior).numerator, (1 - prior).denominator)
    likely = odds * arb(fmpq(exact.numerator, exact.denominator)).exp()
    return likely / (1 + likely)


_EQUIVALENT = (
    ". This goes by the table's entries: Section 2 says of Steinke et al., too, that they use what is equivalent to "
    "controlling noise and minibatch, and the table has them before Jagielski et al. 2023, who do not"
)
# An auditor who may do the first may do the second as well.
_INCLUDES = {"client update": "client sample"}


def _demands(controls: Sequence[str], receives: Sequence[str]) -> set[str]:
    """List all that an auditor must be able to do; one who serves either model needs the final one alone."""
    all_iterates = {"all iterates"} if "final" not in receives else set()
    return {*controls, *(_INCLUDES[control] for control in controls if control in _INCLUDES), *all_iterates}


def judge_assumptions(
    table: Mapping[str, Sequence[tuple[str, Sequence[str], Sequence[str]]]] = Final.TABLE_1, against: str = ""
) -> Outcome:
    """Judge that methods stand from least to most strict assumptions, in pairs of which one assumes all the other does.

    Pairs of which each assumes what the other does not have no such order. ``against`` is what the text says elsewhere.
    """
    wrong, open_ = [], []
    for rows in table.values():
        for (method, *first), (later, *second) in combinations(rows, 2):
            less, more = _demands(*first), _demands(*second)
            if more < less:
                wrong.append(f"{method} before {later}")
            elif not less <= more:
                open_.append(f"{method} and {later}")
    verdict = holds(not wrong and not open_, not wrong)
    finding = f"in the wrong order {', '.join(wrong) or 'none'}; without an order {', '.join(open_) or 'none'}"
    if verdict is Verdict.QUALIFIED:
        finding = f"only if control of noise and minibatches counts for more than all else: {finding}{against}"
    return conclude(verdict, finding, wrong=wrong, without_order=open_)


def judge_clipping(estimate: str) -> Outcome:
    """Judge that an estimate with clipping only still allows near certainty: 90% from a prior of a tenth."""
    _, even = proven(lambda: belief(estimate, Fraction(1, 2)), "1")
    _, tenth = proven(lambda: belief(estimate, Fraction(1, 10)), "1")
    finding = f"ε = {estimate} takes even odds to {100 * even:.1f}% and a prior of 10% to {100 * tenth:.1f}%"
    return conclude(holds(tenth > 0.9), finding, even=even, tenth=tenth)


def judge_posterior(printed: str, epsilon: str = "5", prior: str = "0.1") -> Outcome:
    """Judge the largest belief that an attacker may reach from a prior under ε-DP."""
    after = at_precision(128, lambda: belief(epsilon, Fraction(prior)))
    low, high = float(after.lower()), float(after.upper())
    finding = f"e^{epsilon}·{prior}/(e^{epsilon}·{prior} + 1 − {prior}) lies in [{low:.6f}, {high:.6f}]"
    judged = number(printed, {f"e^{epsilon}-fold odds from a prior of {prior}": (low, high)})
    return conclude(judged.verdict, finding, posterior=(low, high), **judged.evidence)


def judge_scale(
    problems: Mapping[str, tuple[int, int]],
    losses: Mapping[str, Fraction],
    stated: str = "",
    most: Fraction = Fraction(1, 10),
) -> Outcome:
    """Judge a method on problems (clients, parameters) of a size that is said to be natural, which no table defines.

    ``losses`` are printed losses of accuracy by 1,000 canaries, ``stated`` is what the document itself says of them,
    and ``most`` the largest that is no significant one.
    """
    large = [name for name, (clients, parameters) in problems.items() if clients >= 10**5 and parameters >= 10**6]
    listed = ", ".join(f"{float(loss):g} percentage points in {source}" for source, loss in losses.items())
    source = f"by what Section 5 says, {stated}, and by printed accuracies" if stated else "by printed accuracies"
    finding = (
        f"only on {' and '.join(large) or 'none'}, and {source}: 1,000 canaries cost at most {listed}. No document "
        "says which estimates are reasonable"
    )
    plain = {source: float(loss) for source, loss in losses.items()}
    return conclude(holds(False, large and max(losses.values()) <= most), finding, large=large, losses=plain)


# The first version alone prints accuracies without and with 1,000 canaries; losses are in percentage points.
PRINTED_LOSSES = {
    "the first version's Table 2": max(Fraction(row[2]) - Fraction(row[3]) for row in FirstVersion.TABLE_2),
}
STATED_LOSS = "a relative decrease of 0.1% at most"
PROBLEMS = {
    "StackOverflow": (Final.STACKOVERFLOW_CLIENTS, Final.PARAMETERS["StackOverflow"]),
    "EMNIST": (Final.EMNIST_USERS, Final.PARAMETERS["EMNIST"]),
}
SCALE = (
    "For natural production-sized problems, of millions of parameters and hundreds of thousands of clients, the method "
    "gives reasonable estimates in one training without {}degrading the model's utility"
)


def _judge_sha_3(printed: str) -> Outcome:
    years = {name: (_WRITTEN - start).days / 365.2425 for name, start in _SHA_3.items()}
    # The text does not say from when it counts.
    judged = number(printed, years, stated=())
    listed = ", ".join(f"{value:.1f} years since {name}" for name, value in years.items())
    return conclude(judged.verdict, f"only counted from {judged.reading}: {listed}", years=years, **judged.evidence)


# Sizes: clients, rounds, epochs, parameters, trainings, audits.

# TensorFlow Federated's documentation of its data sets, for StackOverflow of the training split; Cohen et al. (arXiv
# 1702.05373) for EMNIST by class; Caldas et al. (arXiv 1812.01097) for LEAF.
STACKOVERFLOW_TRAINING_CLIENTS = 342_477
_EMNIST_VERSIONS = {
    "TFF, digits only": (3383, 341_873 + 40_832),
    "TFF, 62 classes": (3400, 671_585 + 77_483),
    "LEAF": (3550, 805_263),
}
_EMNIST_BY_CLASS = 814_255


def judge_epoch(printed: str, misprint: str = "") -> Outcome:
    """Judge whether rounds × clients a round is one participation of each of the printed clients.

    ``misprint`` is what a copy has in place of the number that is judged.
    """
    rounds, cohort = Final.STACKOVERFLOW_ROUNDS, Final.STACKOVERFLOW_COHORT
    participations = rounds * cohort
    left = participations - Final.CANARIES
    judged = number(
        printed, {"all places": Fraction(participations), "without canaries": Fraction(participations - 1000)}
    )
    verdict = Verdict.QUALIFIED if misprint and judged.verdict is Verdict.CONFIRMED else judged.verdict
    conditions = [
        *([f"{misprint} is a misprint of {printed}"] if misprint else []),
        *(
            [f"either the canaries count among the clients of a round or {cohort} is a rounded number"]
            if judged.verdict is Verdict.QUALIFIED
            else []
        ),
    ]
    only = f"only if {' and '.join(conditions)}: " if verdict is Verdict.QUALIFIED else ""
    finding = (
        f"{only}{rounds} × {cohort} = {participations:,} places, of which 1,000 canaries leave {left:,}"
        f"; the data set has {STACKOVERFLOW_TRAINING_CLIENTS:,} training clients"
    )
    return conclude(verdict, finding, places=participations, without_canaries=left, **judged.evidence)


def judge_emnist_rounds(printed: str) -> Outcome:
    """Judge the number of rounds that the printed epochs and clients a round amount to."""
    exact = Fraction(Final.EMNIST_USERS * Final.EMNIST_EPOCHS, Final.EMNIST_COHORT)
    readings = {
        "whole epochs, last round of each dropped if short": Final.EMNIST_USERS
        // Final.EMNIST_COHORT
        * Final.EMNIST_EPOCHS,
        "all participations, last round dropped if short": int(exact),
        "all participations, last round kept": -int(-exact // 1),
        "whole epochs, last round of each kept": -(-Final.EMNIST_USERS // Final.EMNIST_COHORT) * Final.EMNIST_EPOCHS,
    }
    # The text leaves open how a short last round counts.
    counts = {"all participations": exact, **{name: Fraction(n) for name, n in readings.items()}}
    judged = number(printed, counts, stated=counts)
    only = "only as " if judged.verdict is Verdict.QUALIFIED else ""
    finding = (
        f"{only}{judged.reading}: {Final.EMNIST_EPOCHS} × {Final.EMNIST_USERS} / {Final.EMNIST_COHORT} = "
        f"{float(exact):.1f} rounds "
        f"(by reading {', '.join(str(value) for value in readings.values())}); {printed} rounds are "
        f"{float(Final.EMNIST_EPOCHS * int(printed) / exact):.2f} epochs"
    )
    return conclude(judged.verdict, finding, exact=float(exact), readings=readings, **judged.evidence)


def judge_emnist_size(printed: str, users: int = Final.EMNIST_USERS) -> Outcome:
    """Judge the number of EMNIST's characters and writers against its public versions."""
    both = [n for n, (count, size) in _EMNIST_VERSIONS.items() if count == users and prints(size, printed)]
    listed = "; ".join(f"{name} has {size:,} by {count:,}" for name, (count, size) in _EMNIST_VERSIONS.items())
    finding = f"{listed}; {_EMNIST_BY_CLASS:,} is all of EMNIST by class, more than each of these holds"
    return conclude(holds(bool(both)), finding, versions=_EMNIST_VERSIONS)


def lstm_parameters(vocabulary: int, embedding: int = 96, cells: int = 670, dense: int = 96) -> int:
    """Count the parameters of Reddi et al.'s word model: embedding, LSTM, two dense layers."""
    lstm = 4 * cells * (embedding + cells + 1)
    return vocabulary * embedding + lstm + (cells + 1) * dense + (dense + 1) * vocabulary


def cnn_parameters(classes: int) -> int:
    """Count the parameters of Reddi et al.'s CNN on 28 × 28: two 3 × 3 convolutions, pooling, two dense layers."""
    return (9 + 1) * 32 + (9 * 32 + 1) * 64 + (12 * 12 * 64 + 1) * 128 + (128 + 1) * classes


def judge_parameters(counts: Mapping[str, int], printed: str) -> Outcome:
    """Judge a number of parameters in millions, against those of the model that the text names or may mean."""
    millions = {name: Fraction(count, 10**6) for name, count in counts.items()}
    # A number that comes out for every model needs no reading.
    whatever = all(prints(value, printed) for value in millions.values())
    judged = number(printed, millions, stated=millions if whatever else ())
    listed = ", ".join(f"{count:,} ({name})" for name, count in counts.items())
    return conclude(judged.verdict, listed, counts=counts, **judged.evidence)


def judge_trainings(printed: str, runs: int = 10, settings: int = 2, repetitions: int = 50) -> Outcome:
    """Judge the number of models trained for Table 5."""
    many, single = runs * settings * repetitions, settings * repetitions
    finding = f"{runs} × {settings} × {repetitions} = {many:,}, and {single} more in the rows of one run each"
    return conclude(holds(many == int(printed)), finding, many=many, single=single)


def judge_canaries(printed: str, models: int = 10, each: int = 100) -> Outcome:
    """Judge that models with so many canaries each, a tenth of one model's, have as many cosines together."""
    total = int(printed)
    finding = f"{models} × {each} = {models * each:,}, and {total // each} times fewer a run"
    return conclude(holds(models * each == total and total == 10 * each), finding, total=models * each)


def judge_audits(every: int = 100, scores: int = 100) -> Outcome:
    """Judge that one epoch leaves room for audits at so many rounds' distance."""
    rounds = Fraction(Final.FASHION_EXAMPLES, Final.FASHION_BATCH)
    audits = int(rounds) // every
    finding = (
        f"an epoch of {Final.FASHION_EXAMPLES:,} in batches of {Final.FASHION_BATCH} has {float(rounds):.2f} "
        f"rounds: {audits} "
        f"audits of {scores} scores, {audits + 1} with one at the start; CANIFE's estimate stands on {scores * audits} "
        f"to {scores * (audits + 1)} scores"
    )
    return conclude(holds(audits > 0), finding, rounds=float(rounds), audits=audits)


def judge_canife_settings(pool: int = 512, iterations: int = 2500, every: int = 100, scores: int = 100) -> Outcome:
    """Judge whether each setting of the comparison is that of some experiment of CANIFE's."""
    tasks = [task.name for task in Canife.TASKS if task.every == every]
    printed = pool == Canife.POOL and iterations == Canife.ITERATIONS and scores == Canife.TRIALS and bool(tasks)
    verdict = holds(printed)
    others = ", ".join(f"{task.every} on {task.name}" for task in Canife.TASKS if task.every != every)
    finding = (
        f"each is of one of its experiments, and no training has all four: the pool from CIFAR10, {iterations:,} steps "
        f"from its timings, {scores} scores from all, audits every {every} rounds from {' and '.join(tasks) or 'none'} "
        f"({others})"
        if printed
        else f"CANIFE prints a pool of {Canife.POOL}, {Canife.ITERATIONS:,} steps, {Canife.TRIALS} scores, and "
        "audits every "
        f"{', '.join(str(task.every) for task in Canife.TASKS)} rounds"
    )
    return conclude(verdict, finding, tasks=tasks)


CHECKS = (
    FINAL.claim(
        "abstract.retrainings",
        "abstract and Section 1",
        "Existing techniques usually have weaknesses, one of which is to retrain the model many times, typically "
        "thousands, for reliable estimates of ε",
        fixed(_judge_retrainings),
    ),
    FINAL.claim(
        "section2.equation1",
        "Section 2, Equation (1)",
        "The estimate ε̂ = max{log((1 − δ − FPR)/FNR), log((1 − δ − FNR)/FPR)} turns error rates into ε",
        fixed(_judge_equation_1),
    ),
    FINAL.claim(
        "table1.order",
        "Table 1's caption",
        "Within each category of Table 1 methods are ordered from least to most strict assumptions",
        fixed(judge_assumptions, Final.TABLE_1, _EQUIVALENT),
    ),
    FINAL.claim(
        "section5.3.orthogonal",
        "Sections 1, 4 and 5.3",
        "In the limit of high dimension, random canaries are essentially orthogonal to one another",
        fixed(judge_orthogonal),
    ),
    FINAL.claim(
        "section4.orthogonal",
        "Section 4",
        "Random canaries are nearly orthogonal to all true client updates where d is large beside the clients",
        fixed(judge_orthogonal_to_clients),
    ),
    FINAL.claim(
        "section5.1.posterior",
        "footnote 6",
        "At ε = 5 an attacker can go from a suspicion of 10% to a certainty of 94%",
        Printed("0.94", judge_posterior),
    ),
    FINAL.claim(
        "section5.1.clipping",
        "Section 5.1",
        f"With clipping only the final model's estimate is {Final.TABLE_3[0].estimate_final}, a quite high leakage",
        fixed(judge_clipping, Final.TABLE_3[0].estimate_final),
    ),
    FINAL.claim(
        "section6.scale",
        "Section 6",
        SCALE.format("significantly "),
        fixed(judge_scale, PROBLEMS, PRINTED_LOSSES, STATED_LOSS),
    ),
    FINAL.claim("section6.sha3", "Section 6", "SHA-3 has stood for 11 years", Printed("11", _judge_sha_3)),
    FINAL.claim(
        "section5.1.parameters",
        "Section 5.1",
        "The word model of Reddi et al. has 4.1M parameters",
        Printed("4.1", partial(judge_parameters, {"10,000 words and four special tokens": lstm_parameters(10_004)})),
    ),
    FINAL.claim(
        "section5.1.epoch",
        "Section 5.1",
        "The 2048 rounds of 167 clients are one epoch in which each of 341k clients takes part exactly once",
        Printed("341k", judge_epoch),
    ),
    FINAL.claim(
        "section5.2.1.size",
        "Section 5.2.1",
        "EMNIST holds 814k characters by 3,383 users",
        Printed("814k", judge_emnist_size),
    ),
    FINAL.claim(
        "section5.2.1.parameters",
        "Section 5.2.1",
        "The CNN for EMNIST has 1.2M parameters",
        Printed(
            "1.2",
            partial(
                judge_parameters,
                {"Reddi et al., 62 classes": cnn_parameters(62), "Reddi et al., 10 classes": cnn_parameters(10)},
            ),
        ),
    ),
    FINAL.claim(
        "section5.2.1.rounds",
        "Section 5.2.1",
        "The 15 epochs over 3,383 users with 101 clients a round are 500 rounds",
        Printed(f"{Final.EMNIST_ROUNDS}", judge_emnist_rounds),
    ),
    FINAL.claim(
        "section5.3.trainings",
        "Section 5.3",
        "Ten runs, two noise settings and fifty repetitions are 1000 trained models",
        Printed("1000", judge_trainings),
    ),
    FINAL.claim(
        "section5.3.canaries",
        "Section 5.3 and Table 5",
        "Ten models with one hundred canaries give 1000 cosines, an order of magnitude fewer canaries a run",
        Printed(f"{Final.CANARIES}", judge_canaries),
    ),
    FINAL.claim(
        "section5.4.audits",
        "Section 5.4",
        "CANIFE audits every 100 rounds, with 100 scores each, in one epoch of batches of 128",
        fixed(judge_audits),
    ),
    FINAL.claim(
        "section5.4.settings",
        "Section 5.4",
        "A design pool of 512, 2500 optimisation steps, audits every 100 rounds with 100 scores follow experiments of "
        "CANIFE's",
        fixed(judge_canife_settings),
    ),
)
