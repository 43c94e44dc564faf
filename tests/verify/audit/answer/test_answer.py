"""No two sentences of one answer contradict each other, whatever was audited."""

import html
import json
import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.accounting.accountant import Neighbours
from canaryproof.verify.audit.answer import judgement, page, picture, report
from canaryproof.verify.audit.answer.findings import Question
from canaryproof.verify.audit.answer.model_card import model_card
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release
from canaryproof.verify.audit.answer.text import details, estimate_digits, to_report
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.cli import junit
from canaryproof.verify.audit.markup.digits import percent, round_down
from tests.verify.audit.answer.test_to_report import parsed

DELTAS, CLAIMS = (0.0, 1e-6, 1e-6, 1e-5, 1e-3, 0.05), (None, 0.1, 1.0, 3.0, 8.0, 40.0, 2000.0)
NAMED = (("bayesian",), ("jagielski", "band"), ("gaussian-dp", "fixed-sequence"))
# So many audits share sizes, δ and claim, which determine the tables of their power: those take most of the time.
SHARED = 10


def noise(rng: np.random.Generator) -> float:
    return float(rng.choice([0.1, 0.5, 1.0, 1.54, 4.0, 30.0]))


def asked(sizes: np.random.Generator) -> dict[str, Any]:
    claim = CLAIMS[sizes.integers(len(CLAIMS))]
    return {
        "delta": float(sizes.choice(DELTAS)),
        "claim": claim,
        "confidence": float(sizes.choice([0.8, 0.95, 0.999])),
        "force": bool(sizes.random() < 0.1),
        "bounds": NAMED[sizes.integers(len(NAMED))] if sizes.random() < 0.2 else (),
    }


def inclusion_of(sizes: np.random.Generator) -> str:
    return str(sizes.choice(["fixed", "coin", "independent"], p=[0.45, 0.45, 0.1]))


def neighbours_of(sizes: np.random.Generator) -> Neighbours:
    return "replace" if sizes.random() < 0.1 else "add-or-remove"


def of_cosines(sizes: np.random.Generator, rng: np.random.Generator) -> Audit:
    count, null_count = (int(x) for x in sizes.choice([2, 7, 30, 100, 400], 2))
    dim, rounds = int(sizes.choice([1000, 10**6])), int(sizes.choice([1, 1, 1, 5]))
    closed, inclusion, neighbours = sizes.random() < 0.4, inclusion_of(sizes), neighbours_of(sizes)
    known, claimed, options = sizes.random() < 0.7, noise(sizes) if sizes.random() < 0.3 else None, asked(sizes)
    trace = rng.choice([-1.0, 0.0, 1.0, 1.0, 1.0]) * rng.binomial(3, rng.choice([0.3, 1.0]), count) / 3.0 / noise(rng)
    observed = rng.normal(size=(count, rounds))
    observed[:, 0] += trace
    unobserved = rng.normal(size=(null_count, rounds)).max(axis=1)
    if not closed and neighbours == "replace":
        unobserved -= trace.mean()
    scores = Scores(
        np.clip(observed.max(axis=1) / math.sqrt(dim), -1.0, 1.0),
        None if closed else np.clip(unobserved / math.sqrt(dim), -1.0, 1.0),
        dim if closed or known else None,
        "fixed" if closed else inclusion,
        neighbours="add-or-remove" if closed else neighbours,
    )
    return audit(scores, **options, noise_multiplier=claimed if options["delta"] else None)


def of_any_kind(sizes: np.random.Generator, rng: np.random.Generator) -> Audit:
    count, null_count = (int(x) for x in sizes.choice([2, 8, 40, 200, 800], 2))
    inclusion, neighbours, options = inclusion_of(sizes), neighbours_of(sizes), asked(sizes)
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
    scale = rng.choice([1e-300, 1e-30, 1.0, 1.0, 1.0, 1e30, 1e300])
    observed[0] = np.inf if rng.random() < 0.05 else 0.0
    scores = Scores(scale * observed, scale * unobserved, kind="any", inclusion=inclusion, neighbours=neighbours)
    return audit(scores, **options)


def of_a_release(sizes: np.random.Generator, rng: np.random.Generator) -> Audit:
    count, dim, kind = int(sizes.choice([5, 50, 300])), 4096, (Canaries, OrthonormalCanaries)[sizes.integers(2)]
    claimed, neighbours, options = noise(sizes), neighbours_of(sizes), asked(sizes)
    stated = sizes.random() < 0.7 and options["delta"] > 0.0
    canaries, sigma = kind(int(sizes.integers(100)), count, dim), claimed / float(rng.choice([0.5, 1.0, 1.0, 2.0]))
    release = sigma * rng.normal(size=dim) + rng.choice([0.0, 0.5, 1.0, 1.0, 1.0]) * canaries.sum()
    release += rng.choice([0.0, 0.0, 100.0]) * rng.normal(size=dim) / math.sqrt(dim)
    other = kind(101, count, dim) if rng.random() < 0.15 else canaries
    multiplier = claimed if stated else None
    release *= rng.choice([1.0, 1.0, 0.01])
    return audit_release(release, other, **options, noise_multiplier=multiplier, neighbours=neighbours)


def of_rounds(sizes: np.random.Generator, rng: np.random.Generator) -> Audit:
    claimed, score = float(sizes.choice([0.3, 1.0, 3.0])), str(sizes.choice(["known rounds", "largest", "likelihood"]))
    which, options = int(sizes.integers(3)), asked(sizes)
    dim, rounds, seed = 2000, 6, int(rng.integers(2**32))
    schedule = bernoulli(0, 0.3, rounds, seed, Insertion(160, observed=80))
    sigma = claimed / float(rng.choice([0.5, 1.0, 1.0, 2.0]))
    clients = CanaryClients(Canaries(seed, 160, dim), schedule, noise_multiplier=sigma)
    deltas = (sigma + rng.choice([0.0, 50.0]) / math.sqrt(dim)) * rng.normal(size=(rounds, dim))
    taken = int(rng.choice([2, 5, rounds, rounds, rounds]))
    for t in range(taken):
        deltas[t] += clients.total(t, 1.0)
        deltas[t] *= rng.random() < 0.97
        clients.add(deltas[t], t)
    exact = score == "known rounds" and rng.random() < 0.5 and taken == rounds and deltas.any(axis=1).all()
    scores = clients.scores(score, gram=deltas @ deltas.T if exact else None)
    assert scores.record is not None
    options["claim"] = (
        accountant.gaussian(claimed, participations=scores.record.participations)
        if which == 0 and options["delta"]
        else accountant.epsilon_delta(4.0, options["delta"])
        if which == 1 and options["delta"]
        else accountant.poisson(claimed, rate=float(sizes.choice([0.1, 0.3, 0.5])), rounds=int(sizes.choice([3, 6, 9])))
        if which == 2 and options["delta"] and score != "known rounds"
        else None
    )
    options["notice"] = float(sizes.choice([0.2, 0.5, 0.8]))
    options["ask"] = [(), (), ("leak",), ("input", "noise")][sizes.integers(4)]
    return audit(scores, **options)


def headed(result: Audit) -> str:
    """Return what stands above the findings, in one line."""
    return " ".join(str(result).partition("\n\n")[0].split())


def contradictions(result: Audit) -> Iterator[str]:
    """Yield each pair of statements of one answer that cannot both be true."""
    summary, full = (" ".join(text.split()) for text in (str(result), details(result)))
    answer, document = headed(result), json.loads(result.to_json())
    bound, estimate, decision = result.bound, result.estimate, result.decision
    status = {finding.question: finding.status for finding in result.findings}
    both = summary + full

    def unless(truth: bool, statement: str) -> Iterator[str]:
        if not truth:
            yield statement

    yield from unless(document["answer"].split() == answer.split(), "the answer of JSON is another one")
    written = [(each["question"], each["status"], each["because"]) for each in document["findings"]]
    here = [(finding.question, finding.status, finding.because) for finding in result.findings]
    yield from unless(written == here, "the findings of JSON are others")
    outcome = None if document["decision"] is None else document["decision"]["outcome"]
    yield from unless(outcome == (None if decision is None else decision.outcome), "JSON has another decision")
    for finding in result.findings:
        shown = finding.because if finding.status != "not looked at" or result.claim is None else f"({finding.because}"
        yield from unless(shown in summary, f"the text does not state the finding on {finding.question}")
    # The table of rules, spelled out once more.
    failed = {question for question, answered in status.items() if answered == "failed"}
    yield from unless(len(status) == len(result.findings), "a question has two findings")
    if decision is not None:
        open_question = any(status[question] != "as claimed" for question in decision.asked)
        expected = 4 if "input" in failed else 1 if failed else 3 if open_question else 0
        yield from unless(decision.status == expected, "another rule of the decision applies")
        starts = summary.startswith((f"{decision.outcome}:", f"{decision.outcome} ("))
        yield from unless(starts, "the decision does not come first")
    yield from unless((decision is None) == (result.claim is None and "input" not in failed), "a decision on nothing")
    yield from unless(result.withheld <= ("input" in failed), "numbers are withheld of a sound input")
    if result.withheld:
        yield from unless(not result.estimates and not result.bounds, "withheld numbers are shown")
        yield from unless("at least" not in answer and "estimate" not in answer, "withheld numbers are in the answer")
        yield from unless(set(status.values()) <= {"failed", "not looked at"}, "something is judged of a wrong input")
        return
    reported = parsed(to_report(result))
    yield from unless(
        reported[0].startswith("The audit says nothing") == ("input" in failed), "a wrong input is reported"
    )
    leak = result.finding("leak")
    if "input" in failed and not result.request.force:
        return
    if bound is not None:
        shown = f"at least {round_down(bound.low)}" if bound.low else "no lower bound on ε above 0"
        yield from unless(shown in leak.because, "the finding has another bound")
        level = percent(1.0 - result.level)
        heuristic = bound.coverage == "heuristic"
        words = "heuristic: unproven, so that it fails no claim" if heuristic else f"{level} confidence"
        # Near its cap, this follows.
        shown = f"{words})" in leak.because or f"{words}; so many scores give at most " in leak.because
        yield from unless(shown or not bound.low, "the finding's confidence is another one")
        above = result.claim is not None and bound.low > result.claim
        p_value = result.claim_p_value
        exceeded = above and not heuristic if p_value is None else p_value <= result.level
        yield from unless((leak.status == "failed") == exceeded, "a bound above the claim, or its curve, decides")
        proven_bound = result.proven_bound
        above = above or (proven_bound is not None and result.claim is not None and proven_bound.low > result.claim)
        yield from unless(not (above and leak.status == "as claimed"), "as claimed below a bound")
        yield from unless(bound.low <= bound.cap, "a bound is above its cap")
    proven = [row for row in result.bounds if row.coverage == "proven"]
    coin = any(warning.kind == "coin" for warning in result.warnings)
    yield from unless(not (coin and any("coin" in row.assumes for row in proven)), "refuted coins prove a bound")
    if estimate is None:
        yield from unless("estimate " not in leak.because, "an estimate that means nothing is in the finding")
    else:
        yield from unless(estimate.low <= estimate.epsilon <= estimate.high, "an estimate is outside its interval")
    mechanism = result.mechanism
    if mechanism is not None and mechanism.claimed is not None and mechanism.p_value is not None:
        rejected = mechanism.p_value < result.noise_level
        yield from unless(rejected <= (status[Question.NOISE] == "failed"), "a rejected mechanism does not decide")
    if leak.status == "as claimed":
        yield from unless(result.has_trace, "as claimed where nothing is seen")
        yield from unless(estimate is None or estimate.low <= result.claim, "as claimed below the whole interval")
        noticed = result.noticed_share
        yield from unless(noticed is not None and noticed >= result.request.notice, "as claimed without power")
        if noticed is not None:
            yield from unless(f"{math.floor(100.0 * noticed)}% of the " in leak.noticed, "another share")
            spots = result.blind_spots
            for part in () if spots is None else spots.noticed:
                if part.mechanism == "less-noise" and result.claim == pytest.approx(spots.epsilon):
                    yield from unless(part.high == pytest.approx(noticed, rel=0.05), "the list has another share")
    if status[Question.ACCOUNTING] == "as claimed":
        recorded = result.recorded
        yield from unless(recorded is not None, "an accounting of nothing is as claimed")
        if recorded is not None and result.claim is not None:
            epsilon = recorded.epsilon(result.delta)
            limit = result.claim + max(0.01 * result.claim, 1e-3)
            yield from unless(epsilon <= limit * (1.0 + 1e-9), "the recorded mechanism has a larger ε")
    guess, order = "The estimate is a best guess" in full, "The bound takes nothing but" in full
    yield from unless(guess == (estimate is not None), "an estimate has another meaning")
    yield from unless(order <= (bound is not None), "a missing bound has a meaning")
    enough = re.search(r"Some ([\d,]+) canaries.* would notice half of the noise", full)
    if enough is not None and "of either kind" not in enough[0] and result.noticed_share is not None:
        more = int(enough[1].replace(",", "")) > result.count
        yield from unless(not (more and result.noticed_share >= 0.5), "more canaries are asked for than suffice")
    for share in re.findall(r"If only (\d+)% of the ", both):
        yield from unless(
            int(share) == math.floor(100.0 * (result.noticed_share or 0.0)), "a share differs from the record"
        )


def card_contradictions(result: Audit) -> Iterator[str]:
    """Yield what the JSON or the model card says otherwise than the audit's own estimate and bound."""
    document = json.loads(result.to_json())
    for name, row in (("estimate", result.estimate), ("bound", result.bound)):
        named = document[name] or {"name": None, "version": None}
        stated = [
            each
            for each in document[f"{name}s"]
            if (each["name"], each["version"]) == (named["name"], named["version"])
        ]
        numbers = () if row is None else (row.epsilon, row.low, row.high, row.cap)
        here = [None if math.isinf(number) else number for number in numbers]
        there = [each[key] for each in stated for key in ("epsilon", "low", "high", "cap")]
        if (document[name] is None) != (row is None) or there != here:
            yield f"JSON names another {name}"
    if bool(document["no_estimate"]) != (result.estimate is None):
        yield "JSON has a reason for an estimate, or none for no estimate"
    lines = [line[2:-2].split(" | ") for line in model_card(result).splitlines() if line.startswith("| ")]
    card = {fact: known for fact, known, _ in lines}
    outcome = "none, as nothing is claimed" if result.decision is None else str(result.decision.outcome)
    if card["decision"] != outcome:
        yield "the card has another decision"
    for finding in result.findings:
        if not card[str(finding.question)].replace("\\", "").startswith(f"{finding.status}: "):
            yield f"the card has another finding on {finding.question}"
    estimate, bound = "none: ", "none"
    if result.estimate is not None:
        value, _, low, high = (digits.replace("inf", "∞") for digits in estimate_digits(result.estimate))
        interval = f"({percent(result.confidence)}: {low} to {high}; `{result.estimate.name}`)"
        estimate = f"ε̂ = {value} at δ = {result.delta:g} {interval}"
    if result.bound is not None:
        low = round_down(result.bound.low)
        bound = f"ε ≥ {low} at δ = {result.delta:g} (`{result.bound.name}`, {result.bound.coverage}"
        bound += ", if the trade-off curve is Gaussian" if "Gaussian trade-off" in result.bound.assumes else ""
        bound += "" if math.isinf(result.bound.cap) else f", at most {round_down(result.bound.cap)} from so many"
    if not card["estimate"].startswith(estimate):
        yield "the card has another estimate"
    if not card["lower bound"].startswith(bound):
        yield "the card has another bound"


def drawn_contradictions(result: Audit) -> Iterator[str]:
    """Yield what the picture or the page says otherwise than the answer."""
    figure, answer = picture.draw(result), headed(result)
    legend = figure.axes[1].get_legend()
    labels = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    shown = [label for label in labels if " ≥ " in label]
    if figure.get_suptitle() != answer:
        yield "the picture has another answer"
    bound = [] if result.bound is None else [f"{result.bound.name} ≥ {round_down(result.bound.low)}"]
    if shown != bound:
        yield "the picture has another bound"
    if any(label.startswith("estimate") for label in labels) != (result.estimate is not None):
        yield "the picture has another estimate"
    if any(label.startswith("claimed") for label in labels) != (result.claim is not None):
        yield "the picture has another claim"
    document = report.record(result, report.ReportHeading("audit.html"))
    page_of_html = html.unescape(re.sub(r"<[^>]*>", " ", page.html(result, document)))
    page_words = " ".join(page_of_html.split())
    if answer not in page_words:
        yield "the page has another answer"
    level = f"{result.input_level:g}{result.input_condition}"
    honest = f"No sign of misuse: an honest audit is warned by chance with a probability of at most {level}."
    if (honest in page_words) != (not result.warnings):
        yield "the page has other signs of misuse"
    for finding in result.findings:
        if f"{finding.question} {finding.status} {finding.because}" not in page_words:
            yield f"the page has another finding on {finding.question}"
    if ("Nothing was claimed" in page_words) != (result.claim is None):
        yield "the page has another claim"
    title = "nothing claimed" if result.decision is None else result.decision.outcome.lower()
    if f"Privacy audit: {title} " not in page_words.partition(answer)[0]:
        yield "the page's title is of another decision"
    failing = {case.name for case in junit.of_audit(result)["audit"] if case.failure}
    if bool(failing) != (result.decision is not None and result.decision.status > 0):
        yield "JUnit has another decision"
    for share in re.findall(r"(\d+)% of the claimed noise or less would have been noticed", page_words):
        if int(share) != math.floor(100.0 * (result.noticed_share or 0.0)):
            yield "the page has another share"


KINDS = (of_cosines, of_any_kind, of_a_release, of_rounds)


@cache
def random_audit(kind: int, run: int) -> Audit:
    return KINDS[kind](np.random.default_rng([run // SHARED, kind, 0]), np.random.default_rng([run, kind, 1]))


def check(firsts: tuple[int, ...], runs: int, drawn: int) -> None:
    """Check some runs of each kind from its first on, and the picture and the page of each so many-th."""
    for run in range(runs):
        for kind, first in enumerate(firsts):
            result = random_audit(kind, first + run)
            pairs = [*contradictions(result), *card_contradictions(result)]
            pairs += drawn_contradictions(result) if (firsts[0] + run) % drawn == 0 else ()
            assert pairs == [], (KINDS[kind].__name__, first + run, str(result))


# Two hundred audits; the deep test has 10,000. These were chosen for their sizes alone, which need small tables.
CHOSEN = ((30, 30, 30, 30), (60, 60, 60, 100), (70, 70, 70, 70), (80, 80, 80, 80), (130, 130, 130, 130))


@pytest.mark.parametrize("firsts", CHOSEN, ids=lambda firsts: str(firsts[0]))
def test_no_answer_contradicts_itself(firsts: tuple[int, ...]) -> None:
    # Pictures and pages take most of the time.
    check(firsts, SHARED, drawn=30)


def test_random_audits_are_of_all_decisions_and_have_an_estimate_or_none() -> None:
    # Of those above, which are made already, three fifths are enough. Few of them pass.
    chosen = [(kind, first) for firsts in CHOSEN[:3] for kind, first in enumerate(firsts)]
    results = [random_audit(kind, first + run) for kind, first in chosen for run in range(SHARED)]
    assert {result.estimate is not None for result in results} == {True, False}
    assert len({None if result.decision is None else result.decision.status for result in results}) >= 4


@pytest.mark.deep
@pytest.mark.timeout(5400)
def test_no_answer_of_ten_thousand_contradicts_itself() -> None:
    check((100, 100, 100, 100), 2500, drawn=25)


def test_a_contradiction_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = Scores(np.random.default_rng(0).normal(0.7, 1.0, 300) / 1e3, dim=10**6)
    assert list(contradictions(audit(scores, 1e-6, claim=3.0))) == []
    monkeypatch.setattr(judgement, "round_down", lambda value, _=3: f"{value + 0.3:.2g}")
    assert "the finding has another bound" in list(contradictions(audit(scores, 1e-6, claim=3.0)))
