"""Some thirty answers, of all kinds of input and all decisions, as texts that a person has read.

If you changed a sentence of an answer, run ``python -m tests.verify.audit.answer.test_golden_answers``, read the diff
of ``golden_answers/``, and commit it with your change.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli, fixed_schedule, shuffled_epochs
from canaryproof.verify.audit.canaries.scores import Scores

FOLDER = Path(__file__).with_name("golden_answers")
COUNT, DIM, NOISE, DELTA = 300, 3000, 1.54, 1e-6
CANARIES = Canaries(7, COUNT, DIM)


@cache
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the canaries' sum, the noise, and others' data of norm 1."""
    rng = np.random.default_rng(1)
    noise, data = NOISE * rng.normal(size=DIM), rng.normal(size=DIM)
    return CANARIES.sum(), noise, data / np.linalg.norm(data)


def release(canaries: float = 1.0, noise: float = 1.0, data: float = 0.0, unit: float = 1.0, **options: Any) -> Audit:
    """Audit a release of so many times the canaries and the noise, with data of a norm."""
    total, drawn_noise, other = drawn()
    options = {"noise_multiplier": NOISE} | options
    return audit_release(
        unit * (canaries * total + noise * drawn_noise + data * other), CANARIES, options.pop("delta", DELTA), **options
    )


def of_a_share_of_coordinates() -> Audit:
    total, noise, _ = drawn()
    kept = np.arange(DIM) >= DIM // 3
    return audit_release(total + kept * noise, CANARIES, DELTA, noise_multiplier=NOISE)


def of_half_of_the_canaries() -> Audit:
    _, noise, _ = drawn()
    return audit_release(CANARIES.sum(np.arange(COUNT // 2)) + noise, CANARIES, DELTA, noise_multiplier=NOISE)


def cosines(trace: float, **options: Any) -> Audit:
    observed = (trace + np.random.default_rng(2).normal(size=COUNT)) / 1000.0
    return audit(Scores(observed, dim=10**6), options.pop("delta", DELTA), **options)


def losses(shift: float, inclusion: str, sign: float = 1.0, **options: Any) -> Audit:
    rng = np.random.default_rng(3)
    observed, unobserved = rng.normal(shift, 1.0, 500), rng.normal(size=500)
    scores = Scores(sign * observed, sign * unobserved, kind="any", inclusion=inclusion)
    return audit(scores, options.pop("delta", 1e-5), **options)


@cache
def training(noise: float, known: bool = False, rounds: int = 16, planned: int = 16) -> CanaryClients:
    """Train on noise and canaries alone, whose rounds are drawn at a rate of 1/4."""
    schedule = bernoulli(0, 0.25, planned, 5, Insertion(400, observed=200))
    clients, rng = CanaryClients(Canaries(5, 400, 2000), schedule, noise_multiplier=1.0), np.random.default_rng(5)
    for t in range(rounds):
        clients.add(clients.total(t, 1.0) + noise * rng.normal(size=2000), t, known=np.zeros(2000) if known else None)
    return clients


@cache
def once() -> CanaryClients:
    """Train on noise and canaries that take part once."""
    clients = CanaryClients(Canaries(6, 400, 2000), shuffled_epochs(8, 1, 1, 6, Insertion(400, observed=200)))
    rng = np.random.default_rng(6)
    for t in range(8):
        clients.add(clients.total(t, 1.0) + rng.normal(size=2000), t)
    return clients


def in_part() -> Audit:
    """Audit a training whose noise ends with the rounds that have canaries."""
    schedule = fixed_schedule(np.arange(8)[:, np.newaxis] == np.arange(404) % 4, np.arange(404) < 400)
    clients, rng = CanaryClients(Canaries(6, 404, 2000), schedule), np.random.default_rng(6)
    for t in range(8):
        clients.add(clients.total(t, 1.0) + (1.0 if t < 4 else 0.1) * rng.normal(size=2000), t)
    return audit(clients.scores("known rounds"), 1e-5, claim=accountant.gaussian(1.0))


SAMPLED = accountant.poisson(1.0, rate=0.25, rounds=16)


def sampled(claim: Any, noise: float = 1.0, score: str = "likelihood", **options: Any) -> Audit:
    known = options.pop("known", False)
    return audit(training(noise, known).scores(score), 1e-5, claim=claim, **options)


ANSWERS: dict[str, Callable[[], Audit]] = {
    "release_passed": release,
    "release_passed_with_its_noise": lambda: release(data_norm=10.0),
    "release_half_of_the_noise": lambda: release(noise=0.5),
    "release_four_fifths_of_the_noise": lambda: release(noise=0.8),
    "release_without_noise_on_a_third": of_a_share_of_coordinates,
    "release_no_canaries": lambda: release(canaries=0.0),
    "release_doubled_canaries": lambda: release(canaries=2.0),
    "release_half_of_the_canaries": of_half_of_the_canaries,
    "release_flipped": lambda: release(canaries=-1.0),
    "release_in_other_units": lambda: release(unit=7.0),
    "release_much_data": lambda: release(data=400.0),
    "release_larger_claim_of_its_noise": lambda: release(claim=2.0),
    "release_bare_claim": lambda: release(claim=3.1, noise_multiplier=None),
    "release_nothing_claimed": lambda: release(noise_multiplier=None),
    "release_noise_asked_for": lambda: release(ask=("input", "noise", "leak")),
    "cosines_passed": lambda: cosines(0.65, claim=3.0, notice=0.4),
    "cosines_too_few": lambda: cosines(0.65, claim=3.0),
    "cosines_exceeded": lambda: cosines(2.5, claim=3.0),
    "cosines_claim_beyond_reach": lambda: cosines(0.65, claim=200.0),
    "cosines_sign": lambda: cosines(-0.65, claim=3.0),
    "cosines_nothing_seen": lambda: cosines(0.0, claim=3.0),
    "losses_by_coins": lambda: losses(0.4, "coin", claim=4.0),
    "losses_by_coins_exceeded": lambda: losses(2.0, "coin", claim=1.0),
    "losses_fixed": lambda: losses(2.0, "fixed", claim=1.0),
    "losses_not_negated": lambda: losses(2.0, "coin", sign=-1.0, claim=1.0),
    "rounds_passed": lambda: sampled(SAMPLED),
    "rounds_wrong_rate": lambda: sampled(accountant.poisson(1.0, rate=0.125, rounds=16)),
    "rounds_fewer_claimed": lambda: sampled(accountant.poisson(1.0, rate=0.25, rounds=4)),
    "rounds_bare_claim": lambda: sampled(6.0),
    "rounds_bare_claim_alone": lambda: audit(once().scores("largest"), 1e-5, claim=6.0),
    "rounds_half_of_the_noise": lambda: sampled(SAMPLED, noise=0.5),
    "rounds_noise_known": lambda: sampled(SAMPLED, known=True),
    "rounds_measured_in_part": in_part,
    "rounds_once": lambda: audit(once().scores("known rounds"), 1e-5, claim=accountant.gaussian(1.0)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_the_one_that_was_read(name: str) -> None:
    assert f"{ANSWERS[name]()}\n" == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_all_decisions_are_among_them_and_no_file_is_left_over() -> None:
    files = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert set(files) == set(ANSWERS)
    decisions = Counter(text.partition(":")[0].partition(" (")[0] for text in files.values())
    assert min(decisions[outcome] for outcome in ("PASSED", "NOT PASSED", "CANNOT SAY")) >= 5
    assert max(len(line) for text in files.values() for line in text.splitlines()) <= 80


def write() -> None:
    """Write all answers anew."""
    for path in FOLDER.iterdir():
        path.unlink()
    for name, make in ANSWERS.items():
        (FOLDER / f"{name}.txt").write_text(f"{make()}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write())
