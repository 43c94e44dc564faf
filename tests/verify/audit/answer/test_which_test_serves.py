"""The documents' table of tests by kinds of input: each test is tried on each kind, and no hole is without a reason."""

import copy
import dataclasses
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer import misuse
from canaryproof.verify.audit.answer.run_audit import Audit, audit, audit_release
from canaryproof.verify.audit.answer.text import checks
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.canaries.scores import Scores
from tests.statuses import ruling

PAGE = Path(__file__).parents[4] / "docs/how/audit.md"
DIM, COUNT, DELTA = 4096, 300, 1e-5
COLUMNS = ("cosines", "a release", "recorded rounds", "other scores")
# Results that each row of the table is about: findings, and kinds of warnings.
ROWS = {
    "lower bound above the claim": {"leak failed"},
    "less noise than claimed": {"noise failed"},
    "canaries are absent, or of another norm": {"absent", "no-trace", "weak-trace", "unseen"},
    "the release is shorter than its noise, or longer": {"units", "less-noise", "dilution", "bare"},
    "coordinates without noise": {"zeros", "coarse-grid"},
    "canaries are missing, or unequal": {"missing", "clusters"},
    "the null's law, or its variance": {"null-law", "narrow", "wide"},
    "a wrong sign, or swapped groups": {"sign", "swapped", "order"},
    "repeated scores, in a group or in both": {"repeated", "shared"},
    "scores outside [−1, 1]": {"not-cosines"},
    "canaries crowd each other": {"crowded"},
    "numbers that fair coins do not give": {"coin"},
    "rounds that are missing or skipped": {"missing-rounds", "skipped-rounds"},
    "later rounds depend on canaries, or deltas on each other": {"carry-over", "correlated-rounds", "even-coordinates"},
    "too few scores, or a large δ": {"too-few", "large-delta"},
}


@cache
def table() -> dict[str, tuple[str, ...]]:
    lines = PAGE.read_text().partition("## Which test serves which input")[2].partition("##")[0].splitlines()
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")]
    assert cells[0][1:] == COLUMNS
    return {row[0]: row[1:] for row in cells[2:]}


def results(audited: Audit) -> set[str]:
    unseen = {"unseen"} if "no trace is seen" in audited.finding("leak").because else set()
    findings = {f"{finding.question} {finding.status}" for finding in audited.findings}
    return {warning.kind for warning in audited.warnings} | findings | unseen


# Inputs of each kind, honest but for what the options say.


def cosines(
    trace: float = 0.7, *, width: float = 1.0, sign: float = 1.0, count: int = COUNT, null_count: int = COUNT, **options
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    observed = sign * (trace + rng.standard_normal(count)) / np.sqrt(DIM)
    unobserved = width * rng.standard_normal(null_count) / np.sqrt(DIM)
    if options.get("repeated"):
        observed[: count // 2] = observed[count // 2 :]
    return observed, unobserved


def of_cosines(claim: float = 3.0, delta: float = DELTA, scale: float = 1.0, inclusion: str = "fixed", **options):
    observed, unobserved = cosines(**options)
    return [audit(Scores(scale * observed, unobserved, DIM, inclusion), delta, claim=claim)]


def of_any_kind(claim: float = 3.0, delta: float = DELTA, inclusion: str = "fixed", **options):
    if options.get("sign", 1.0) < 0.0:
        options = {"trace": 0.7, "sign": -1.0}
    observed, unobserved = (np.exp(np.sqrt(DIM) * scores) for scores in cosines(**options))
    return [audit(Scores(observed, unobserved, kind="any", inclusion=inclusion), delta, claim=claim)]


def of_a_release(
    claim: float = 3.0,
    delta: float = DELTA,
    *,
    noise: float = 1.54,
    claimed: float = 1.54,
    present: float = 1.0,
    weights: float = 0.0,
    scale: float = 1.0,
    zeros: int = 0,
    count: int = COUNT,
) -> list[Audit]:
    audits = []
    for kind in (Canaries, OrthonormalCanaries):
        canaries, rng = kind(3, count, DIM), np.random.default_rng(2)
        release = noise * rng.standard_normal(DIM)
        release += canaries.sum(np.arange(round(present * count))) if present else 0.0
        for _ in range(8 if weights else 0):
            # Canaries become longer and shorter, at random.
            release += weights * (2.0 * canaries.sum(np.flatnonzero(rng.random(count) < 0.5)) - canaries.sum())
        release[:zeros] = 0.0
        audits.append(audit_release(scale * release, canaries, delta, claim=claim, noise_multiplier=claimed))
    return audits


@cache
def trained(
    *,
    noise: float = 1.0,
    sign: float = 1.0,
    rounds: int = 6,
    skipped: bool = False,
    absent: bool = False,
    momentum: float = 0.0,
    observed: int = 120,
    inclusion: str = "fixed",
):
    rng, dim, buffer = np.random.default_rng(4), 2000, np.zeros(2000)
    schedule = bernoulli(0, 0.5, 6, 5, Insertion(240, observed=observed))
    clients = CanaryClients(Canaries(5, 240, dim), dataclasses.replace(schedule, inclusion=inclusion))
    for t in range(rounds):
        total = clients.total(t, 1.0) * (0.0 if absent else 1.0)
        buffer = momentum * buffer + total + noise * rng.normal(size=dim)
        clients.add(sign * buffer * (0.0 if skipped and t == 2 else 1.0), t)
    return clients.scores("known rounds")


def of_rounds(claim: float | None = None, delta: float = DELTA, **options):
    scores = trained(**options)
    claimed = accountant.gaussian(1.0, participations=scores.record.participations) if claim is None else claim
    return [audit(scores, delta, claim=claimed)]


INPUTS = dict(zip(COLUMNS, (of_cosines, of_a_release, of_rounds, of_any_kind), strict=True))
# The fault of each row, by kind of input; an input that cannot have it is left out.
FAULTS: dict[str, dict[str, dict]] = {
    "lower bound above the claim": {
        "cosines": {"trace": 3.0, "claim": 1.0},
        "a release": {"noise": 0.4, "claim": 1.0, "claimed": 2.0},
        "recorded rounds": {"noise": 0.3, "claim": 1.0},
        "other scores": {"trace": 3.0, "claim": 1.0, "inclusion": "coin"},
    },
    "less noise than claimed": {"a release": {"noise": 0.77}, "recorded rounds": {"noise": 0.5}},
    "canaries are absent, or of another norm": {
        "cosines": {"trace": 0.0},
        "a release": {"present": 0.0},
        "recorded rounds": {"absent": True},
        "other scores": {"trace": 0.0},
    },
    "the release is shorter than its noise, or longer": {"a release": {"scale": 0.01}},
    "coordinates without noise": {"a release": {"zeros": 1000}},
    "canaries are missing, or unequal": {"a release": {"noise": 0.1, "claimed": 0.1, "present": 0.5}},
    "the null's law, or its variance": {
        "cosines": {"width": 1.6},
        "a release": {"noise": 0.3, "claimed": 0.3, "weights": 0.7},
    },
    "a wrong sign, or swapped groups": {
        "cosines": {"sign": -1.0},
        "a release": {"scale": -1.0, "noise": 0.5},
        "recorded rounds": {"sign": -1.0, "noise": 0.5},
        "other scores": {"sign": -1.0},
    },
    "repeated scores, in a group or in both": {"cosines": {"repeated": True}, "other scores": {"repeated": True}},
    "scores outside [−1, 1]": {"cosines": {"scale": 100.0}},
    "canaries crowd each other": {"cosines": {"trace": 1.5}},
    "numbers that fair coins do not give": {
        "cosines": {"null_count": 60, "inclusion": "coin"},
        "recorded rounds": {"observed": 60, "inclusion": "coin"},
        "other scores": {"null_count": 60, "inclusion": "coin"},
    },
    "rounds that are missing or skipped": {"recorded rounds": {"rounds": 4}},
    "later rounds depend on canaries, or deltas on each other": {"recorded rounds": {"momentum": 0.9, "noise": 0.3}},
    "too few scores, or a large δ": {
        "cosines": {"count": 5, "null_count": 5},
        "a release": {"delta": 0.3},
        "recorded rounds": {"delta": 0.3},
        "other scores": {"count": 5, "null_count": 5},
    },
}


def test_each_warning_has_a_row():
    source = Path(misuse.__file__).read_text()
    kinds = set(re.findall(r'MisuseWarning\(\s*"([a-z-]+)"', source))
    assert len(kinds) > 20
    assert kinds <= set().union(*ROWS.values())
    assert list(ROWS) == list(table())


@pytest.mark.parametrize("row", ROWS)
def test_a_cell_is_a_test_or_has_a_reason(row):
    for column, cell in zip(COLUMNS, table()[row], strict=True):
        fault = FAULTS[row].get(column)
        if cell == "refused":
            with pytest.raises(ValueError, match="must lie in"):
                INPUTS[column](**fault)
        elif cell.startswith("–"):
            assert len(cell) > 3, (row, column)
            assert fault is None, (row, column)
        else:
            assert cell.startswith(("yes", "only", "if")), (row, column)
            for audited in INPUTS[column](**fault):
                assert results(audited) & ROWS[row], (row, column, results(audited), str(audited))


@pytest.mark.parametrize("column", COLUMNS)
def test_an_honest_input_has_none_of_the_results(column: str) -> None:
    make: Callable[..., list[Audit]] = INPUTS[column]
    for audited in make(claim=40.0) if column == "other scores" else make():
        assert not audited.warnings
        assert not any(result.endswith("failed") for result in results(audited))
        assert "unseen" not in results(audited)


def test_skipped_rounds_are_warned_of():
    assert "skipped-rounds" in results(of_rounds(skipped=True)[0])


def test_later_rounds_that_depend_on_canaries_leave_the_decision():
    scores, record = copy.copy(trained()), trained().record
    for carried, printed, kinds in ((9.04, "9.0", ["carry-over"]), (-1.26, "−1.3", []), (-0.04, "0.0", [])):
        vars(scores).update(record=dataclasses.replace(record, carry_over=carried))
        found = audit(scores, DELTA, claim=accountant.gaussian(1.0, participations=record.participations))
        assert [warning.kind for warning in found.warnings] == kinds
        assert ruling(found) == "PASSED"
        line = next(text for name, text in checks(found) if name == "cosines after canaries' first rounds")
        assert line == f"{printed} standard errors above those without"
