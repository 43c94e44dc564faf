import json
import math
from dataclasses import replace
from types import SimpleNamespace

import made_results
import numpy as np
import pytest
from made_results import figure, judge, rising
from scipy import optimize, stats

from canaryproof.proofs_check import anderson_darling
from canaryproof.verify.check.results import Verdict
from canaryproof.verify.claims import andrew_rules, experiment_results, prediction
from canaryproof.verify.claims.transcripts import QUANTILES, Row

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, NEEDS_DATA = Verdict


def row_document(truth, seed, repetitions):
    """The experiment of Table 3 with the truth's estimates in all cells, and a row printed of another draw."""
    rng = np.random.default_rng(seed)
    shift = made_results.distance(truth)

    def attacks():
        return {
            "all": made_results.attack(rng, 8.0, 1.3, unobserved=1000),
            "final": made_results.attack(rng, shift),
            "change": made_results.attack(rng, shift),
        }

    made = made_results.document("final_table3", lambda *_: ([made_results.run()], attacks()), repetitions)
    return made, attacks()


def printed_row(attacks, factor=1.0):
    every, final_ = attacks["all"], attacks["final"]
    numbers = [
        every["bounds"]["andrew"]["value"],
        every["estimates"]["fitted"]["epsilon"],
        final_["bounds"]["andrew"]["value"],
        final_["estimates"]["fitted"]["epsilon"],
    ]
    return Row("0.0496", "300", *(f"{factor * number:.4g}" for number in numbers))


@pytest.mark.parametrize("repetitions", [pytest.param(1, marks=pytest.mark.deep), 8])
def test_a_row_that_is_another_draw_is_confirmed_and_a_distant_one_refuted(tmp_path, repetitions):
    made, other = row_document(6.0, 5, repetitions)
    made_results.write(tmp_path, made)
    experiment = experiment_results.read(tmp_path).experiments["final_table3"]
    readings = {"as printed": andrew_rules.AS_PRINTED}
    outcome = andrew_rules.row(printed_row(other), readings, experiment)
    assert outcome.verdict is CONFIRMED, outcome.finding
    # What the paper does not state is always told.
    assert "training.batch_size 16" in outcome.finding
    far = replace(printed_row(other), estimate_all=str(3 * float(printed_row(other).estimate_all)))
    assert andrew_rules.row(far, readings, experiment).verdict is REFUTED
    near = replace(printed_row(other), estimate_all=f"{1.8 * float(printed_row(other).estimate_all):.4g}")
    assert andrew_rules.row(near, readings, experiment).verdict in (QUALIFIED, REFUTED)


def test_a_row_that_only_another_reading_has_is_qualified(tmp_path):
    made, other = row_document(6.0, 5, 1)
    rng = np.random.default_rng(1)
    for cell in made["cells"]:
        for result in cell["results"]:
            result["audits"]["final"]["exact"] = made_results.attack(rng, made_results.distance(2.0))
    made_results.write(tmp_path, made)
    experiment = experiment_results.read(tmp_path).experiments["final_table3"]
    outcome = andrew_rules.row(printed_row(other), andrew_rules.STACKOVERFLOW, experiment)
    assert outcome.verdict is QUALIFIED
    assert outcome.finding.startswith("only from the change of the model")


@pytest.mark.deep
def test_figures_rise_and_separate(tmp_path):
    for name in ("final_figure2", "v1_figure2", "final_figure4", "submission_figure2"):
        figure(tmp_path, name)
    for claim in ("final.figure1", "final.figure2", "final.figure3", "final.figure4"):
        assert judge(f"{claim}.measured", tmp_path).verdict is CONFIRMED
    for claim in ("v1.figure1", "v1.figure2", "submission.figure1", "submission.figure2", "submission.figure3"):
        assert judge(f"{claim}.measured", tmp_path).verdict is CONFIRMED
    for claim in (
        "final.table6.row1.measured",
        "final.table6.row4.measured",
        "v1.table4.row2",
        "submission.table4.row2",
    ):
        assert judge(claim, tmp_path).verdict is CONFIRMED, claim


def test_figures_that_fall_are_refuted(tmp_path):
    figure(tmp_path, "final_figure2", factor=-1.0)
    for claim in ("final.figure1.measured", "final.figure2.measured"):
        assert judge(claim, tmp_path).verdict is REFUTED


def test_cosines_that_are_not_normal_refute_andersons_statistics(tmp_path):
    figure(tmp_path, "final_figure2")
    file = tmp_path / "final_figure2" / "results.json"
    made = json.loads(file.read_text())
    for cell in made["cells"]:
        cell["results"][0]["audits"]["final"]["exact"]["normality"]["statistic"] = 5.0
    file.write_text(json.dumps(made))
    assert judge("final.table6.row1.measured", tmp_path).verdict is REFUTED


def accuracies(folder, name, without, with_):
    by_noise = dict(zip((0.0, 0.0644, 0.1023, 0.1836, 0.2344), zip(without, with_, strict=True), strict=True))

    def repetition(cell, _):
        base, share = by_noise.get(cell.settings.training.noise_multiplier, (0.253, 0.253))
        return [made_results.run(share, base)], None

    made_results.write(folder, made_results.document(name, repetition))


def test_accuracies(tmp_path):
    printed = [0.253, 0.240, 0.231, 0.215, 0.206]
    accuracies(
        tmp_path, "v1_table3", printed, [share - 0.03 * (i == 1) - 0.1 * (i == 2) for i, share in enumerate(printed)]
    )
    found = [judge(f"v1.table2.row{i}", tmp_path).verdict for i in range(1, 6)]
    assert found == [CONFIRMED, QUALIFIED, REFUTED, CONFIRMED, CONFIRMED]


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [(0.0, CONFIRMED), (0.008, INCONCLUSIVE), (0.03, REFUTED)],
)
def test_what_canaries_cost(tmp_path, loss, verdict):
    repetition = lambda *_: ([made_results.run(0.253 - loss, 0.253)], None)  # noqa: E731
    made_results.write(tmp_path, made_results.document("final_table3", repetition))
    for claim in ("final.section5.1.accuracy", "submission.section5.accuracy", "review.accuracy.decrease"):
        assert judge(claim, tmp_path).verdict is verdict
    # Its other claims need canaries' audits.
    assert judge("final.table3.row1.measured", tmp_path).verdict is NEEDS_DATA


def test_quantiles_of_fifty_experiments():
    # The law of printed quantiles is that of ours: the median of p-values' least must not be small.
    rng = np.random.default_rng(2)
    verdicts = {1.0: 0, 1.3: 0}
    for _ in range(200):
        ours, theirs = (np.sort(rng.normal(2.0, 0.33, 50)) for _ in range(2))
        for factor in verdicts:
            parts = [
                andrew_rules._quantile(q, f"{factor * np.quantile(theirs, q):.2f}", ours, 0.002) for q in QUANTILES
            ]
            verdicts[factor] += prediction.worst(parts) is CONFIRMED
    assert verdicts[1.0] >= 190
    assert verdicts[1.3] <= 20


@pytest.mark.parametrize(("share", "rank"), [(0.1, 5), (0.5, 25), (0.9, 45)])
def test_a_quantile_of_fifty_lies_between_two_of_its_order_statistics(share, rank):
    """In a random order of fifty and forty, ours before the fiftieths' order statistic are negative hypergeometric."""
    # 21 of ours are below 20.45, and as many below 20.55.
    first, second = (stats.nhypergeom(90, 40, below) for below in (rank, rank + 1))
    p_value = 2.0 * min(first.cdf(21), second.sf(20))
    part = andrew_rules._quantile(share, "20.5", np.arange(40.0), 0.002)
    assert f"(p = {min(1.0, p_value):.2g})" in part.text


def test_too_few_experiments_have_no_quantiles(tmp_path):
    rng = np.random.default_rng(0)

    def repetition(cell, _):
        return [made_results.run()] * cell.settings.canaries.runs, rising(cell, rng)

    made_results.write(tmp_path, made_results.document("final_table5", repetition, 2))
    assert judge("final.table5.row1.measured", tmp_path).verdict is INCONCLUSIVE
    assert judge("submission.table6.row4", tmp_path).verdict is INCONCLUSIVE


@pytest.mark.parametrize("repetitions", [1, 9])
def test_the_error_of_a_cost_is_that_of_two_independent_samples(tmp_path, repetitions):
    repetition = lambda *_: ([made_results.run(0.2, 0.25)], None)  # noqa: E731
    made_results.write(tmp_path, made_results.document("final_table3", repetition, repetitions))
    # All repetitions together have so many examples.
    examples = repetitions * made_results.TEST_EXAMPLES
    share = stats.binom(examples, 0.25).std() / examples
    expected = f"+5.000 percentage points of 25.00% (± {100.0 * share * 2**0.5:.2g} at most)"
    assert expected in judge("final.section5.1.accuracy", tmp_path).finding


def repeated(*pairs):
    """A cell with repetitions that have such distances and errors."""
    audits = [SimpleNamespace(distance=value, distance_error=error) for value, error in pairs]
    return SimpleNamespace(results=[SimpleNamespace(audit={"final": audit}.__getitem__) for audit in audits])


def test_the_error_of_a_mean_over_repetitions_is_that_of_independent_ones():
    assert andrew_rules._distance(repeated((1.0, 0.25))) == (1.0, 0.25)
    assert andrew_rules._distance(repeated((1.0, 0.03), (2.0, 0.04))) == (1.5, pytest.approx(0.025))
    assert andrew_rules._distance(repeated(*[(1.0, 0.3)] * 9)) == (1.0, pytest.approx(0.1))


@pytest.mark.parametrize(
    ("step", "separates", "rises"),
    [(15.2, CONFIRMED, CONFIRMED), (14.5, INCONCLUSIVE, CONFIRMED), (13.9, INCONCLUSIVE, INCONCLUSIVE)],
)
def test_a_step_is_held_against_the_errors_of_both_ends(tmp_path, monkeypatch, step, separates, rises):
    # Errors of 3 and 4 make one of 5. Steps of a figure share 1%: four of one part of two, and four alone.
    assert 14.5 < 5 * stats.norm.isf(0.01 / 2 / 4) < 15.2
    assert 13.9 < 5 * stats.norm.isf(0.01 / 4) < 14.5

    def distance(cell):
        times, noise = cell.settings["canaries.presentations"], cell.settings["training.noise_multiplier"]
        return step * math.log2(times) / 3.0 - 1000.0 * noise, 4.0 if times == 8 else 3.0

    monkeypatch.setattr(andrew_rules, "_distance", distance)
    figure(tmp_path, "final_figure2")
    assert judge("final.figure1.measured", tmp_path).verdict is separates
    assert judge("final.figure2.measured", tmp_path).verdict is rises


@pytest.mark.parametrize(
    ("printed", "measured", "repetitions", "verdict"),
    [
        (0.5, 0.0013, 1, CONFIRMED),
        (0.5, 0.0012, 1, REFUTED),
        (0.0013, 0.5, 1, CONFIRMED),
        (0.0012, 0.5, 1, QUALIFIED),
        (0.5, 0.0007, 2, CONFIRMED),
        (0.5, 0.0006, 2, REFUTED),
    ],
)
def test_printed_and_measured_statistics_share_the_level(
    tmp_path, monkeypatch, printed, measured, repetitions, verdict
):
    # Four statistics of either kind share 1%: 0.00125 each, of as many repetitions as there are.
    law = anderson_darling.limit_law(True)
    one, other = (optimize.brentq(lambda x, p=p: law.sf(x) - p, 0.1, 5.0) for p in (printed, measured))
    audits = [SimpleNamespace(normality=SimpleNamespace(statistic=other))] * repetitions
    monkeypatch.setattr(andrew_rules, "_final", lambda _: audits)
    figure(tmp_path, "final_figure2")
    experiment = experiment_results.read(tmp_path).experiments["final_figure2"]
    texts = [f"{one:.6f}", "0.3", "0.3", "0.3"]
    assert andrew_rules.anderson("0.0496", andrew_rules.TIMES, texts, experiment).verdict is verdict


def test_quantiles_of_a_row_share_the_level():
    audits = [
        SimpleNamespace(estimates=dict.fromkeys(("fitted", "pinned"), SimpleNamespace(epsilon=100.0 + value)))
        for value in range(40)
    ]
    results = [SimpleNamespace(audit=lambda _, audit=audit: audit) for audit in audits]
    settings = {"training.noise_multiplier": 0.1, "canaries.runs": 1, "canaries.count": 1000}
    cells = (SimpleNamespace(settings=settings, results=results),)
    experiment = experiment_results.FinishedExperiment("x", "full", "folder", (), cells)
    right = [f"{100.0 + 39 * q:.1f}" for q in QUANTILES]

    def judged(text):
        """The median's p-value, by the negative hypergeometric law, and the verdict of the row."""
        below = math.ceil(float(text) - 100.0 - 0.05), math.floor(float(text) - 100.0 + 0.05) + 1
        first, second = (stats.nhypergeom(90, 40, rank) for rank in (25, 26))
        p_value = 2.0 * min(first.cdf(below[1]), second.sf(below[0] - 1))
        return p_value, andrew_rules.quantiles(
            "0.1", 1, 1000, [*right[:2], text, *right[3:]], experiment
        ).verdict is CONFIRMED

    found = [judged(f"{100.5 + value:.1f}") for value in range(39)]
    # Five share 1%.
    assert any(0.002 < p_value < 0.01 for p_value, _ in found)
    assert all(confirmed == (p_value >= 0.002) for p_value, confirmed in found)
