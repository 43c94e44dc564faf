import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.claims import v1, v1_accounting, v1_estimators, v1_judging, v1_printed, v1_setting, v1_tables
from canaryproof.verify.results import Context, Level, Outcome, Subject, Verdict

QUICK = Context(Level.QUICK, 0)
NOT_CONFIRMED = {
    "v1.section5.rounds": Verdict.QUALIFIED,
    "v1.section5.users": Verdict.QUALIFIED,
    "v1.section5.quotient": Verdict.REFUTED,
    "v1.section5.rate": Verdict.REFUTED,
    "v1.section5.3.epochs": Verdict.QUALIFIED,
    "v1.section6.confidence": Verdict.QUALIFIED,
    **{f"v1.table2.row{n}.epsilon": Verdict.QUALIFIED for n in (2, 3, 4, 5)},
    **{f"v1.table{t}.row{n}": Verdict.NEEDS_DATA for t, rows in ((2, 5), (3, 5), (4, 3)) for n in range(1, rows + 1)},
    "v1.table3.final": Verdict.QUALIFIED,
    "v1.table3.noise-alone": Verdict.QUALIFIED,
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {check.id: check.judge(QUICK) for check in v1.CHECKS}


def test_ids_are_unique_and_all_are_statements_of_the_document() -> None:
    ids = [check.id for check in v1.CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("v1.") for name in ids)
    assert {check.subject for check in v1.CHECKS} == {Subject.DOCUMENT}


def test_expected_verdicts(outcomes: dict[str, Outcome]) -> None:
    assert {name: o.verdict for name, o in outcomes.items() if o.verdict is not Verdict.CONFIRMED} == NOT_CONFIRMED


def test_another_seed_changes_no_verdict(outcomes: dict[str, Outcome]) -> None:
    for name in ("v1.section4.advantage", "v1.footnote5", "v1.table3.noise-alone"):
        check = next(check for check in v1.CHECKS if check.id == name)
        assert check.judge(Context(Level.QUICK, 7)).verdict is outcomes[name].verdict


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [
        (partial(v1_setting.judge_parameters, "4.2"), Verdict.REFUTED),
        (partial(v1_setting.judge_rounds, cohort=168), Verdict.REFUTED),
        (partial(v1_setting.judge_rounds, users="342k"), Verdict.CONFIRMED),
        (partial(v1_setting.judge_users, "342k"), Verdict.CONFIRMED),
        (partial(v1_setting.judge_users, "340k"), Verdict.REFUTED),
        (partial(v1_setting.judge_delta, "8.21e-7"), Verdict.REFUTED),
        (partial(v1_setting.judge_quotient, "0.082"), Verdict.CONFIRMED),
        (partial(v1_setting.judge_rate, "4.90e-4"), Verdict.CONFIRMED),
        (partial(v1_setting.judge_epochs, epochs=(1, 2, 4)), Verdict.CONFIRMED),
        (partial(v1_setting.judge_confidence, "0.994"), Verdict.REFUTED),
        (partial(v1_setting.judge_census, "19.7"), Verdict.REFUTED),
        (partial(v1_tables.judge_epsilon, "0.1836", "105"), Verdict.REFUTED),
        (partial(v1_tables.judge_clipping, "5.50"), Verdict.REFUTED),
        (partial(v1_judging.decreasing, {"a": [3.0, 2.0, 2.0]}), Verdict.REFUTED),
        (partial(v1_judging.below, [(1.0, 2.0), (3.0, 2.9)]), Verdict.REFUTED),
        (partial(v1_accounting.cap, ["6.27"], 1e-6), Verdict.REFUTED),
        (partial(v1_accounting.noise_alone, [("0.1836", "4.0")], QUICK), Verdict.INCONCLUSIVE),
    ],
)
def test_another_number_changes_the_verdict(judge: partial[Outcome], verdict: Verdict) -> None:
    assert judge().verdict is verdict


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.0644", Fraction(6435, 100_000), Fraction(6445, 100_000)),
        ("100k", Fraction(99_500), Fraction(100_500)),
        ("8.20e-7", Fraction(8195, 10**10), Fraction(8205, 10**10)),
        ("50", Fraction(99, 2), Fraction(101, 2)),
    ],
)
def test_a_printed_number_is_an_interval(text: str, low: Fraction, high: Fraction) -> None:
    assert v1_judging.printed(text) == (low, high)
    assert v1_judging.middle(text) == (low + high) / 2


def test_the_word_model_by_layers() -> None:
    # Counted by hand, layer by layer: embedding, LSTM, dense, logits.
    assert v1_setting.recurrent_parameters() == 960_384 + 2_055_560 + 64_416 + 970_388


def test_the_caps_by_scipy() -> None:
    outcome = v1_accounting.cap(["6.24"], 1e-6)
    assert outcome.evidence["caps"]["Jeffreys"] == pytest.approx(-math.log(stats.beta.ppf(0.95, 0.5, 1000.5)), abs=1e-5)
    assert outcome.evidence["caps"]["Clopper-Pearson"] == pytest.approx(-math.log(1 - 0.05**1e-3), abs=1e-5)


def test_poisson_sampling_lies_between_its_own_counts() -> None:
    # The participations are Poisson with mean 1, nearly: nine or more have probability 1.1e-6, eight or more 1.0e-5.
    # Hence PLD's ε at δ = 8.2e-7 is about that of nine known rounds, and RDP's 100,000 is slack.
    delta, sigma = v1_judging.STACKOVERFLOW_DELTA, 0.0644
    assert stats.poisson.sf(8, 1.0) == pytest.approx(1.1e-6, rel=0.05)
    loss = v1_accounting.accountings(delta, 2048, 1 / 2048)["PLD, Poisson sampling at 0.000488"](sigma)
    assert gaussian_mechanism.epsilon(1e-4, sigma / 7**0.5) < loss < gaussian_mechanism.epsilon(delta, sigma / 10**0.5)


def test_noise_alone_by_simulating_rounds() -> None:
    # 400 models, each a sum of 2048 rounds' noise and one canary: its cosine, in the null's units, has mean 1/(σ√T).
    rng, sigma, rounds, dim = np.random.default_rng(5), 0.2344, 2048, 5000
    model = sigma * math.sqrt(rounds) * rng.standard_normal((400, dim))
    model[:, 0] += 1.0
    scores = math.sqrt(dim) * model[:, 0] / np.linalg.norm(model, axis=1)
    assert scores.mean() == pytest.approx(1 / (sigma * math.sqrt(rounds)), abs=5 / math.sqrt(400))


def test_printed_tables_have_their_shape() -> None:
    assert [len(row) for row in v1_printed.TABLE_4.values()] == [len(v1_printed.REPETITIONS)] * 3
    assert len(v1_printed.TABLE_2) == len(v1_printed.TABLE_3) == 5


def test_the_estimator_is_judged_with_the_exact_mechanism() -> None:
    rows = v1_estimators.judge_estimator().evidence["rows"]
    assert [round(row[1], 9) for row in rows] == [1.0, 3.0, 10.0]
