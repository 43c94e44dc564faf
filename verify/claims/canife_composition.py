"""CANIFE's composition: what per-round ε̂ add up to over a training, and how ε grows with rounds."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.certified import gaussian_mechanism as certified
from canaryproof.verify.claims.canife_accounting import one_round, trained
from canaryproof.verify.claims.canife_numbers import (
    CAP,
    CELEBA,
    CODE_DELTA,
    PAPER,
    SCORES_DELTA,
    SENT140,
    SHAKESPEARE,
    TASKS,
    TRAINED_EPSILON,
    Task,
    fixed,
    noise_for,
    rounding,
)
from canaryproof.verify.claims.canife_toy import TOY_ROUNDS_AN_EPOCH, TOY_SAMPLING, TOY_SIGMA
from canaryproof.verify.claims.judging import claim, found
from canaryproof.verify.results import Context, Outcome, Verdict
from canaryproof.verify.sampled_rdp import rdp


def _conversions(task: Task) -> Mapping[str, tuple[float, Callable[[float], float]]]:
    """List the readings of "convert ε̂ into σ̂, and compose": δ of the composition, and σ̂ of an ε̂."""

    def one_step(delta: float) -> Callable[[float], float]:
        return lambda epsilon: noise_for(epsilon, lambda sigma: rdp(sigma, delta), 0.4, 4.0)

    def block(delta: float) -> Callable[[float], float]:
        # The authors' code for figures: s sampled rounds together are to cost ε̂.
        return lambda epsilon: noise_for(epsilon, lambda sigma: rdp(sigma, delta, task.every, task.sampling), 0.3, 1.5)

    return {
        "one round by RDP, δ = 1e-5": (CODE_DELTA, one_step(CODE_DELTA)),
        "one round by RDP, δ = 1/n": (SCORES_DELTA, one_step(SCORES_DELTA)),
        "one round by RDP at δ = 1/n, composed at 1e-5": (CODE_DELTA, one_step(SCORES_DELTA)),
        "one round exactly at δ = 1/n, composed at 1e-5": (
            CODE_DELTA,
            lambda epsilon: float(gaussian_mechanism.noise_multiplier(epsilon, SCORES_DELTA)),
        ),
        f"{task.every} sampled rounds by RDP, δ = 1e-5 (the public code)": (CODE_DELTA, block(CODE_DELTA)),
    }


def judge_composed(task: Task, printed: str) -> Outcome:
    """Judge a printed ε̂ of a whole training by what per-round gaps of 4 and of 5 compose to.

    Parameters
    ----------
    task
        The training.
    printed
        The printed ε̂.
    """
    theory = one_round(task, CODE_DELTA)
    least, most = (float(end) for end in rounding(printed))
    rows: dict[str, tuple[float, float]] = {}
    for name, (delta, noise) in _conversions(task).items():
        low, high = (rdp(noise(theory / gap), delta, task.rounds, task.sampling) for gap in (5.0, 4.0))
        rows[name] = low, high
    hits = [name for name, (low, high) in rows.items() if low <= most and high >= least]
    listed = "; ".join(f"{name}: {low:.2f} to {high:.2f}" for name, (low, high) in rows.items())
    evidence: dict[str, Any] = {"one_round": theory, "readings": rows}
    as_printed = "one round by RDP, δ = 1e-5"
    if as_printed in hits:
        return found(Verdict.CONFIRMED, listed, **evidence)
    if hits:
        return found(Verdict.QUALIFIED, f"reached only with {' or with '.join(hits)} ({listed})", **evidence)
    return found(Verdict.REFUTED, f"no reading reaches {printed} ({listed})", **evidence)


def _judge_sampling(_: Context) -> Outcome:
    # The same leak a round, the largest that 100 trials can show, composed over each training.
    sigma = noise_for(float(CAP), lambda value: rdp(value, CODE_DELTA), 0.4, 4.0)
    composed = {task.name: rdp(sigma, CODE_DELTA, task.rounds, task.sampling) for task in TASKS}
    rates = {task.name: task.sampling for task in TASKS}
    smallest = min(rates, key=lambda name: rates[name]) == min(composed, key=lambda name: composed[name]) == "Sent140"
    listed = ", ".join(f"{name} {rates[name]:.5f}: {composed[name]:.2f}" for name in rates)
    return found(
        Verdict.CONFIRMED if smallest else Verdict.REFUTED,
        f"sampling rate, and what ε̂ = {CAP} in every round composes to (RDP, δ = 1e-5): {listed}",
        rates=rates,
        composed=composed,
    )


def judge_fewer_clients(cohorts: Sequence[int]) -> Outcome:
    """Judge that the final ε̂ falls with the clients a round, if every round shows the same leak.

    Parameters
    ----------
    cohorts
        Clients a round, falling.
    """
    sigma = noise_for(float(CAP), lambda value: rdp(value, CODE_DELTA), 0.4, 4.0)
    composed = {}
    for cohort in cohorts:
        rounds = CELEBA.epochs * -(-CELEBA.users // cohort)
        composed[cohort] = rdp(sigma, CODE_DELTA, rounds, cohort / CELEBA.users)
    falls = all(later < earlier for earlier, later in pairwise(composed.values()))
    listed = ", ".join(f"{cohort} clients {value:.2f}" for cohort, value in composed.items())
    return found(
        Verdict.CONFIRMED if falls else Verdict.REFUTED,
        f"by sampling alone: ε̂ = {CAP} in every round of {CELEBA.epochs} epochs composes to {listed} (RDP, δ = 1e-5)",
        composed={str(cohort): value for cohort, value in composed.items()},
    )


def _judge_basic(_: Context) -> Outcome:
    sigma = trained(SENT140, CODE_DELTA)
    summed = {task.name: task.rounds * one_round(task, CODE_DELTA) for task in TASKS}
    better = all(value > TRAINED_EPSILON for value in summed.values())
    listed = ", ".join(f"{name} {value:,.0f}" for name, value in summed.items())
    return found(
        Verdict.CONFIRMED if better else Verdict.REFUTED,
        f"rounds times one round's ε, instead of 50: {listed}",
        summed=summed,
        sent140_noise_multiplier=sigma,
    )


def _judge_root(_: Context) -> Outcome:
    # Four times the rounds: twice ε if it grows as their root, four times if in proportion.
    def growth(sigma: float, rounds: int, sampling: float) -> float:
        return rdp(sigma, CODE_DELTA, 4 * rounds, sampling) / rdp(sigma, CODE_DELTA, rounds, sampling)

    own = {task.name: growth(trained(task, CODE_DELTA), task.rounds // 4, task.sampling) for task in TASKS}
    rows = {
        "σ = 20, 100 rounds, no sampling": growth(20.0, 100, 1.0),
        **{f"{name}'s training to ε = 50": value for name, value in own.items()},
        "σ = 0.423, one epoch of the toy setting": growth(float(TOY_SIGMA), TOY_ROUNDS_AN_EPOCH, TOY_SAMPLING),
        "Sent140's σ, 100 rounds, no sampling": growth(trained(SENT140, CODE_DELTA), 100, 1.0),
    }
    near = [name for name, value in rows.items() if 1.6 <= value <= 2.5]
    verdict = Verdict.CONFIRMED if len(near) == len(rows) else Verdict.QUALIFIED if near else Verdict.REFUTED
    listed = "; ".join(f"{name}: {value:.2f}" for name, value in rows.items())
    return found(
        verdict,
        f"within a quarter of twice ε for four times the rounds only in a middle range: {listed}",
        growth=rows,
    )


def judge_no_privacy(accuracy: str, clients: int, parameters: int) -> Outcome:
    """Judge that a model trained at ε = 0 has learnt anything, by the noise that ε = 0 takes.

    Parameters
    ----------
    accuracy
        Printed accuracy, in per cent.
    clients
        Clients a round, each moving the sum by at most the clip norm.
    parameters
        Dimension of the model.
    """
    sigma = certified.noise_multiplier(0.0, CODE_DELTA)
    ratio = sigma.lo * math.sqrt(parameters) / clients
    verdict = Verdict.REFUTED if ratio > 1.0 else Verdict.INCONCLUSIVE
    return found(
        verdict,
        f"ε = 0 at δ = 1e-5 takes σ of at least {sigma.lo:,.0f} for one round alone: noise {ratio:,.0f} times as long "
        f"as the largest sum of updates; {accuracy}% is the accuracy without noise, ε = ∞",
        noise_multiplier=(sigma.lo, sigma.hi),
        noise_to_updates=ratio,
    )


CHECKS = (
    claim(
        "canife.section1.celeba",
        PAPER + "Section 1, contributions",
        "On CelebA ε̂ is about 6 for a model trained with ε = 50, the per-round gap being 4 to 5 times",
        fixed(judge_composed, CELEBA, "6"),
    ),
    claim(
        "canife.section4.2.sampling",
        PAPER + "Section 4.2",
        "Sent140 has the lowest ε̂ because its small sampling rate amplifies privacy",
        _judge_sampling,
    ),
    claim(
        "canife.appendixD.clients",
        PAPER + "Appendix D, Figure 8c",
        "The final ε̂ falls as the number of clients a round does",
        fixed(judge_fewer_clients, (100, 80, 60, 40, 20)),
    ),
    claim(
        "canife.appendixC1.basic",
        PAPER + "Appendix C.1",
        "Multiplying the per-round ε by the rounds is worse than composing by RDP with sampling",
        _judge_basic,
    ),
    claim(
        "canife.section2.1.root",
        PAPER + "Section 2.1",
        "The privacy budget grows roughly as the root of the number of iterations",
        _judge_root,
    ),
    claim(
        "canife.appendixB.sent140.epsilon0",
        PAPER + "Appendix B",
        "For ε = 0 the Sent140 model reaches a test accuracy of 64.8%",
        fixed(judge_no_privacy, "64.8", SENT140.cohort, 272_102),
    ),
    claim(
        "canife.appendixB.shakespeare.epsilon0",
        PAPER + "Appendix B",
        "For ε = 0 the Shakespeare model reaches a test accuracy of 44.4%",
        fixed(judge_no_privacy, "44.4", SHAKESPEARE.cohort, 819_920),
    ),
)
