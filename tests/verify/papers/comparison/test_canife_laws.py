"""CANIFE against random canaries by the laws of their scores: numbers by second ways, and the published trainings."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from canaryproof.kernels import gaussian_mechanism
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.files.json_records import read, to_document
from canaryproof.verify.papers.comparison import canife, canife_laws
from canaryproof.verify.papers.comparison.canife_laws import TrainingLaws
from canaryproof.verify.papers.comparison.canife_methods import composed, largest_round
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.canife_comparison import CanifeComparison, from_trainings
from canaryproof.verify.papers.records.canife_outcomes import (
    ALGORITHM_3,
    ALGORITHM_3_BOUND,
    CANIFE_PRINTED,
    CANIFE_REDESIGNED,
    EQUAL_CANARIES,
    EQUAL_SECONDS,
    KNOWN_ROUNDS,
)
from canaryproof.verify.papers.records.report_input import CANIFE, read_record

PAPER = TrainingLaws(101_770, 1000, 469, 0.2, 1e-5, 0)


@pytest.fixture(scope="module")
def published():
    return read_record(BenchmarkRecord, Path("reports/published") / CANIFE)


@pytest.fixture(scope="module")
def small():
    """One round of known noise, whose accounting is a formula."""
    return canife_laws.benchmark_canife(1e5, 100, epsilon=5.0, rounds=1)


def test_the_shipped_designs_are_the_published_ones(published):
    assert canife_laws.measured_designs(published) == canife_laws.shipped_designs()


def test_one_audit_at_its_cap_makes_most_of_the_composed_estimate():
    """As the page on the benchmark says: the few audits that succeed weigh most."""
    plan = canife.PRINTED.sizes(60_000, dim=1)
    assert len(plan.audited) == 4
    assert f"{composed((largest_round(100), 0.0, 0.0, 0.0), plan, 1e-5):.3f}" == "0.499"
    assert f"{composed((0.0, 0.0, 0.0, largest_round(100)), plan, 1e-5):.3f}" == "0.488"


def test_the_paper_s_setting_has_the_numbers_of_the_published_trainings(published):
    """Means of five trainings lie within five standard errors of those of the laws."""
    designs = canife_laws.shipped_designs()
    by_name = {method.name: method for method in published.scenarios[0].methods}
    for name, canaries in ((CANIFE_PRINTED, designs.printed), (CANIFE_REDESIGNED, designs.redesigned)):
        drawn, measured = PAPER.canife(canaries, 4, name), by_name[name]
        spread = drawn.std(ddof=1) / math.sqrt(len(measured.values))
        assert measured.epsilon.mean == pytest.approx(drawn.mean(), abs=5.0 * spread + 1e-3)
        # The trainings' rate is 128/60,000, and not 1/469.
        assert PAPER.cap(4) == pytest.approx(measured.cap, rel=1e-3)
    noise = PAPER.noise_draws(1000)
    for run in published.scenarios[0].runs:
        assert abs(run.known_rounds["data known"].noise_multiplier / noise.mean() - 1.0) < 5.0 * noise.std() / 0.2
    rng = np.random.default_rng(1)
    groups = [canife_laws.from_two_groups(*PAPER.largest_cosines(rng)) for _ in range(20)]
    drawn = [canife_laws.fitted_estimate(group, 1e-5).epsilon for group in groups]
    # Others' data, which the laws leave out, hide canaries a little.
    measured = by_name["Algorithm 3, all rounds"].epsilon.mean
    assert measured == pytest.approx(np.mean(drawn), abs=5.0 * np.std(drawn) / math.sqrt(5.0))


@pytest.mark.parametrize(
    ("dim", "canaries", "rounds", "noise"), [(1000, 50, 10, 0.2), (101_770, 1000, 30, 0.5), (2000, 300, 1, 1.5)]
)
def test_measured_noise_is_that_of_the_library_s_estimate(dim, canaries, rounds, noise):
    laws = TrainingLaws(dim, canaries, rounds, noise, 1e-5, 0)
    cosines, lengths = laws.traces(canaries, np.random.default_rng(3))
    found = RoundTraces(cosines, lengths, dim, True, rounds).noise_multiplier()
    assert laws.noise_of_traces(cosines, lengths) == pytest.approx(found.value, abs=0.02 * found.standard_error)
    assert math.isinf(laws.noise_of_traces(np.empty(0), np.empty(0)))


def test_largest_cosines_are_those_of_literal_rounds():
    """Another generator, all coordinates: two-sample tests of both kinds of scores at a level of 1e-6."""
    dim, canaries, rounds, noise = 1000, 40, 5, 0.1
    laws = TrainingLaws(dim, canaries, rounds, noise, 1e-5, 0)
    rng = np.random.Generator(np.random.MT19937(5))
    literal, drawn = [], []
    for _ in range(25):
        directions = rng.standard_normal((2 * canaries, dim))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        taking_part = rng.random((rounds, canaries)) < 1.0 / rounds
        releases = taking_part @ directions[:canaries] + noise * rng.standard_normal((rounds, dim))
        cosines = directions @ releases.T / np.linalg.norm(releases, axis=1)
        literal.append(cosines.max(axis=1).reshape(2, canaries))
        drawn.append(np.stack(laws.largest_cosines(rng)))
    for kind in range(2):
        one, other = (np.concatenate([each[kind] for each in several]) for several in (literal, drawn))
        assert stats.ks_2samp(one, other).pvalue > 1e-6


def test_rounds_of_canife_are_those_of_gaussians():
    """The cap is the formula's, and an ideal canary's share of audits at the cap is that of its law."""
    assert math.log(0.99 * 50) == canife_laws.ROUND_CAP
    laws = TrainingLaws(1000, 10, 1, 0.2, 1e-5, 0)
    ideal = canife_laws.MeasuredCanary(1.0, 0.0, 1.0)
    rng = np.random.default_rng(2)
    found = np.array([laws._round_epsilon(ideal, 0.01, rng) for _ in range(400)])
    seen, unseen = np.sort(rng.normal(1.0, 0.2, (20_000, 50))), np.sort(rng.normal(0.0, 0.2, (20_000, 50)))
    # At most one error: the one kind's last but one, and the other's last, are apart.
    share = float(((seen[:, 1] > unseen[:, -1]) | (seen[:, 0] > unseen[:, -2])).mean())
    assert 0.1 < share < 0.99
    at_cap = int((found >= canife_laws.ROUND_CAP * (1.0 - 1e-9)).sum())
    assert stats.binomtest(at_cap, len(found), share).pvalue > 1e-6


def test_epsilon_between_near_noise_multipliers_is_interpolated():
    curve = canife_laws._Curve(TrainingLaws(1000, 10, 1, 1.0, 1e-5, 0))
    for noise in (0.3, 0.308, 3.0, 3.08, 0.304, 3.04, math.inf, 1e9, 1e-9):
        exact = math.inf if noise < 1e-2 else float(gaussian_mechanism.epsilon(1e-5, noise)) if noise < 1e6 else 0.0
        assert curve(noise) == pytest.approx(exact, rel=1e-4)


def test_the_answer_is_first_and_the_first_screen_is_short(small):
    lines = str(small).splitlines()
    assert lines[0].startswith("The analytical ε of 1 round is 5 at δ = 1e-05. 100 canaries at random")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 81  # an accent, which takes no column
    assert {each.budget for each in small.outcomes} == {"as used", EQUAL_CANARIES, EQUAL_SECONDS}
    assert small.find(KNOWN_ROUNDS).low < 5.0 < small.find(KNOWN_ROUNDS).high
    for outcome in small.outcomes:
        assert outcome.low <= outcome.epsilon <= outcome.high <= outcome.cap * (1.0 + 1e-9)
    printed = small.find(CANIFE_PRINTED)
    assert (printed.canaries, printed.trainings) == (1, 101.0)
    # Scored for as long as CANIFE's canary is designed.
    assert small.find(KNOWN_ROUNDS, EQUAL_SECONDS).seconds == pytest.approx(printed.seconds, rel=0.05)


def test_a_comparison_is_read_as_it_was_written(small):
    assert read(CanifeComparison, to_document(small)) == small
    frame = small.to_frame()
    assert frame["name"].tolist()[:3] == [KNOWN_ROUNDS, ALGORITHM_3, ALGORITHM_3_BOUND]
    assert small.to_json()["answer"] == small.answer()
    assert canife_laws.benchmark_canife(1e5, 100, epsilon=5.0, rounds=1) == small


def test_trainings_have_the_same_words(published):
    found = from_trainings(published, 0.103)
    assert len(str(found).splitlines()) <= 40
    assert "all trainings" in str(found)
    assert "5 trainings on Fashion-MNIST." in " ".join(str(found).split())
    by_name = {method.name: method for method in published.scenarios[0].methods}
    assert found.find(CANIFE_PRINTED).cap == by_name["CANIFE as printed"].cap
    assert len(found.outcomes) == 5


REFUSED = [
    ({"dim": 999}, "dim: must be a whole number from 1,000 to 1e9, not 999"),
    ({"canaries": 9}, "canaries: must be a whole number from 10 to 1e5, not 9"),
    ({"dim": 1000, "canaries": 1001}, "canaries: must be at most dim, 1,000, as those of a round are orthonormal"),
    ({"epsilon": 0.0}, "epsilon: must lie between 0.001 and 10000, not 0.0"),
    ({"rounds": 0}, "rounds: must be a whole number from 1 to 1e5, not 0"),
    ({"delta": 0.0}, "delta: must lie strictly between 0 and 1"),
    ({"seed": -1}, "seed: must be a whole number from 0"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_is_out_of_range_is_refused_in_a_line(options, message):
    with pytest.raises(ValueError, match="^" + message):
        canife_laws.benchmark_canife(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.01}, "finite estimates cannot exceed 3.9, whatever leaks: from 100 scores of a round, half"),
        ({"epsilon": 0.01}, "its Rényi accounting has no ε between 0 and 0.103 at δ = 1e-05."),
        ({"epsilon": 100.0}, "the canary, the largest finite ε̂ is 3.9. 1 canary at random"),
        (
            {"epsilon": 3.0, "delta": 1e-300},
            "finite estimates are 0, whatever leaks: from 100 scores of a round, half",
        ),
        ({"epsilon": 3.0, "delta": 1e-300}, "and its Rényi accounting has no ε between 0 and 11.1 at δ = 1e-300."),
    ],
)
def test_extremes_have_an_answer(options, words):
    found = canife_laws.benchmark_canife(1000, 10, rounds=1, **options)
    assert found.answer().startswith("The analytical ε of 1 round is")
    assert words in found.answer()
    assert found.epsilon == pytest.approx(options["epsilon"], rel=1e-3)
    to_document(found)
