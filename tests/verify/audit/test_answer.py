"""No two sentences of one answer contradict each other, whatever was audited."""

import json
import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.accounting import accountant
from canaryproof.verify.audit import audit as module
from canaryproof.verify.audit.audit import Audit, audit, audit_release
from canaryproof.verify.audit.text import details, percent, rounded_down
from canaryproof.verify.canaries.canary_clients import CanaryClients
from canaryproof.verify.canaries.participation import Insertion, bernoulli
from canaryproof.verify.canaries.scores import Scores

DELTAS, CLAIMS = (1e-6, 1e-5, 1e-3, 0.05), (None, 0.1, 1.0, 3.0, 8.0, 40.0, 2000.0)


def noise(rng: np.random.Generator) -> float:
    return float(rng.choice([0.1, 0.5, 1.0, 1.54, 4.0, 30.0]))


def of_cosines(rng: np.random.Generator) -> Audit:
    count, null_count = (int(x) for x in rng.choice([2, 7, 30, 100, 400], 2))
    dim, rounds = int(rng.choice([1000, 10**6])), int(rng.choice([1, 1, 1, 5]))
    trace = rng.choice([-1.0, 0.0, 1.0, 1.0, 1.0]) * rng.binomial(3, rng.choice([0.3, 1.0]), count) / 3.0 / noise(rng)
    observed = rng.normal(size=(count, rounds))
    observed[:, 0] += trace
    unobserved = rng.normal(size=(null_count, rounds)).max(axis=1) / math.sqrt(dim)
    closed = rng.random() < 0.4
    scores = Scores(
        np.clip(observed.max(axis=1) / math.sqrt(dim), -1.0, 1.0),
        None if closed else unobserved,
        dim if closed or rng.random() < 0.7 else None,
        "fixed" if closed else str(rng.choice(["fixed", "coin"])),
    )
    claimed = noise(rng) if rng.random() < 0.3 else None
    return audit(scores, **asked(rng), noise_multiplier=claimed)


def of_any_kind(rng: np.random.Generator) -> Audit:
    count, null_count = (int(x) for x in rng.choice([2, 8, 40, 200, 800], 2))
    draw = {
        "normal": rng.standard_normal,
        "exponential": rng.standard_exponential,
        "few": lambda size: rng.integers(0, 3, size).astype(float),
        "heavy": lambda size: rng.standard_t(2.0, size),
    }[str(rng.choice(["normal", "exponential", "few", "heavy"]))]
    observed = draw(count) + rng.choice([0.0, 0.0, 0.5, 3.0, 100.0])
    unobserved = draw(null_count)
    # Scores that are all equal are refused.
    observed[:2], unobserved[:2] = (0.0, 1.0), (0.0, 1.0)
    scores = Scores(observed, unobserved, kind="any", inclusion=str(rng.choice(["fixed", "coin"])))
    return audit(scores, **asked(rng))


def of_a_release(rng: np.random.Generator) -> Audit:
    count, dim, kind = int(rng.choice([5, 50, 300])), 4096, (Canaries, OrthonormalCanaries)[rng.integers(2)]
    canaries, sigma = kind(int(rng.integers(100)), count, dim), noise(rng)
    release = sigma * rng.normal(size=dim) + rng.choice([0.0, 0.5, 1.0, 1.0, 1.0]) * canaries.sum()
    release += rng.choice([0.0, 0.0, 100.0]) * rng.normal(size=dim) / math.sqrt(dim)
    other = kind(101, count, dim) if rng.random() < 0.15 else canaries
    claimed = float(rng.choice([0.5, 1.0, 1.0, 2.0])) * sigma if rng.random() < 0.7 else None
    return audit_release(release * rng.choice([1.0, 1.0, 0.01]), other, **asked(rng), noise_multiplier=claimed)


@cache
def trained(sigma: float, seed: int, data: float) -> tuple[CanaryClients, np.ndarray]:
    dim, rounds, rng = 2000, 6, np.random.default_rng(seed)
    schedule = bernoulli(0, 0.3, rounds, seed, Insertion(160, observed=80))
    clients = CanaryClients(Canaries(seed, 160, dim), schedule, noise_multiplier=sigma)
    deltas = (sigma + data / math.sqrt(dim)) * rng.normal(size=(rounds, dim))
    for t in range(rounds):
        deltas[t] += clients.total(t, 1.0)
        clients.add(deltas[t], t)
    return clients, deltas


def of_rounds(rng: np.random.Generator) -> Audit:
    sigma = float(rng.choice([0.3, 1.0, 3.0]))
    clients, deltas = trained(sigma, int(rng.integers(4)), float(rng.choice([0.0, 50.0])))
    score = str(rng.choice(["known rounds", "largest", "likelihood"]))
    exact = score == "known rounds" and rng.random() < 0.5
    scores = clients.scores(score, gram=deltas @ deltas.T if exact else None)
    options = asked(rng)
    claimed = float(rng.choice([0.5, 1.0, 1.0, 2.0])) * sigma
    assert scores.record is not None
    options["claim"] = [
        accountant.gaussian(claimed, participations=scores.record.participations),
        accountant.stated(4.0, options["delta"]),
        None,
    ][rng.integers(3)]
    return audit(scores, **options)


def asked(rng: np.random.Generator) -> dict:
    claim = CLAIMS[rng.integers(len(CLAIMS))]
    return {"delta": float(rng.choice(DELTAS)), "claim": claim, "confidence": float(rng.choice([0.8, 0.95, 0.999]))}


def contradictions(result: Audit) -> Iterator[str]:
    """Yield each pair of statements of one answer that cannot both be true."""
    summary, full = (" ".join(text.split()) for text in (str(result), details(result)))
    answer, document = summary.split("Audited")[0], json.loads(result.to_json())
    bound, estimate, verdict = result.bound, result.estimate, result.verdict
    both = summary + full

    def unless(truth: bool, statement: str) -> Iterator[str]:
        if not truth:
            yield statement

    yield from unless(document["answer"].split() == answer.split(), "the answer of JSON is another one")
    yield from unless(document["verdict"] == verdict, "the verdict of JSON is another one")
    yield from unless(("no sign of misuse" in summary) == (not result.warnings), "misuse is denied beside warnings")
    if result.withheld:
        yield from unless(not result.estimates and not result.bounds, "withheld numbers are shown")
        yield from unless("at least" not in answer and "ε̂ =" not in answer, "withheld numbers are in the answer")
        return
    if bound is not None:
        shown = f"at least {rounded_down(bound.low, 2)}" if bound.low else "no lower bound above 0"
        yield from unless(shown in answer.lower() or shown in answer, "the bound's line differs from the answer")
        yield from unless((bound.low > 0.0) <= ("Nothing of the canaries" not in both), "nothing seen beside a bound")
        level = percent(1.0 - result.level)
        yield from unless(f"{level} confidence" in answer or not bound.low, "the answer's confidence is another one")
        yield from unless(f"at {level}, {bound.basis}" in summary, "the bound's confidence is another one")
        if result.claim is not None and bound.low > result.claim:
            yield from unless(verdict == "exceeded", "a bound above the claim does not decide")
        yield from unless(bound.low <= bound.cap, "a bound is above its cap")
    proven = [row for row in result.bounds if row.coverage == "proven"]
    coin = any(warning.kind == "coin" for warning in result.warnings)
    yield from unless(not (coin and any("coin" in row.assumes for row in proven)), "refuted coins prove a bound")
    if estimate is None:
        yield from unless("ε̂ =" not in answer, "an estimate that means nothing is in the answer")
    else:
        yield from unless(estimate.low <= estimate.epsilon <= estimate.high, "an estimate is outside its interval")
    mechanism = result.mechanism
    if mechanism is not None and mechanism.claimed is not None and mechanism.p_value is not None:
        rejected = mechanism.p_value < result.level
        yield from unless(not rejected or verdict in {"refuted", "exceeded"}, "a rejected mechanism does not decide")
        yield from unless(verdict != "refuted" or rejected, "a mechanism is refuted that no test rejects")
    if verdict == "consistent":
        yield from unless(estimate is None or estimate.low <= result.claim, "consistent below the whole interval")
        yield from unless("nothing of the canaries" not in both.lower(), "consistent where nothing is seen")
        noticed = result.noticed
        if noticed is not None:
            yield from unless(f"{math.floor(100.0 * noticed)}% of the claimed noise" in answer, "another share")
            spots = result.blind_spots
            for part in () if spots is None else spots.noticed:
                if part.mechanism == "less-noise" and result.claim == pytest.approx(spots.epsilon):
                    yield from unless(part.high == pytest.approx(noticed, rel=0.05), "the list has another share")
    if verdict == "nothing seen":
        yield from unless("At least" not in answer, "a bound beside nothing seen")
    if "Take more canaries" in summary:
        yield from unless(verdict in {"at its cap", "not decided"}, "more canaries are asked for without need")
    yield from unless(verdict is None or result.claim is not None, "a verdict without a claim")


KINDS = (of_cosines, of_any_kind, of_a_release, of_rounds)


def check(first: int, runs: int) -> None:
    for run in range(first, first + runs):
        for kind in KINDS:
            rng = np.random.default_rng([run, KINDS.index(kind)])
            result = kind(rng)
            assert list(contradictions(result)) == [], (kind.__name__, run, str(result))


def test_no_answer_contradicts_itself() -> None:
    check(0, 1)


@pytest.mark.deep
def test_no_answer_of_ten_thousand_contradicts_itself() -> None:
    check(100, 2500)


def test_a_contradiction_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    result = audit(Scores(np.random.default_rng(0).normal(0.7, 1.0, 300) / 1e3, dim=10**6), 1e-6, claim=3.0)
    assert list(contradictions(result)) == []
    monkeypatch.setattr(module.text, "rounded_down", lambda value, _=3: f"{value + 0.3:.2g}")
    assert "the bound's line differs from the answer" in list(contradictions(result))
