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
from canaryproof.verify.papers.check.results import Verdict
from canaryproof.verify.papers.claims import andrew_rules, experiment_results, prediction
from canaryproof.verify.papers.claims.transcripts import QUANTILES, Row

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


@pytest.mark.parametrize("statistic", [5.0, 1e4])
def test_cosines_that_are_not_normal_refute_andersons_statistics(tmp_path, statistic):
    figure(tmp_path, "final_figure2")
    file = tmp_path / "final_figure2" / "results.json"
    made = json.loads(file.read_text())
    for cell in made["cells"]:
        cell["results"][0]["audits"]["final"]["exact"]["normality"]["statistic"] = statistic
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


# Made-up cells: audits are nothing but the numbers that a rule reads.


def audit(fitted=1.0, pinned=1.0, bound=0.5, statistic=0.3, distance=0.0, error=1.0):
    return SimpleNamespace(
        estimates={"fitted": SimpleNamespace(epsilon=fitted), "pinned": SimpleNamespace(epsilon=pinned)},
        bounds={"andrew": SimpleNamespace(value=bound)},
        normality=None if statistic is None else SimpleNamespace(statistic=statistic),
        distance=distance,
        distance_error=error,
    )


def plain_cell(audits=(), runs=(), test_examples=10_000, **settings):
    """A cell whose repetitions have these audits by attack, and whose trainings are these."""
    return SimpleNamespace(
        settings={name.replace("__", "."): value for name, value in settings.items()},
        results=[SimpleNamespace(audits=one, audit=one.__getitem__) for one in audits],
        runs=lambda: iter(runs),
        test_examples=test_examples,
        dim=100,
    )


def plain_experiment(*cells):
    return experiment_results.FinishedExperiment("x", "full", "folder", (), cells)


def accuracies_of(*pairs):
    return [SimpleNamespace(accuracy_without=before, accuracy=after) for before, after in pairs]


def students(values, alpha):
    """Interval of a further draw, by Student's law."""
    reach = stats.t.ppf(1.0 - alpha / 2, len(values) - 1) * stats.tstd(values) * math.sqrt(1.0 + 1.0 / len(values))
    return f"({np.mean(values) - reach:.3g} to {np.mean(values) + reach:.3g})"


def test_each_number_of_a_row_is_held_against_the_interval_of_its_own_cosines():
    rng = np.random.default_rng(8)
    # Deviations of a twentieth, and means that tell the columns apart.
    means = {"bound all": 3.0, "fitted all": 40.0, "bound final": 0.6, "fitted final": 1.1, "pinned change": 1.4}
    drawn = {name: mean * (1.0 + 0.05 * rng.standard_normal(8)) for name, mean in means.items()}
    audits = [
        {
            "all": audit(drawn["fitted all"][i], bound=drawn["bound all"][i]),
            "final": audit(drawn["fitted final"][i], bound=drawn["bound final"][i]),
            "change": audit(pinned=drawn["pinned change"][i], bound=drawn["bound final"][i]),
        }
        for i in range(8)
    ]
    found = andrew_rules.row(
        Row("0.1", "30", "3.0", "40", "0.6", "1.1"),
        {"as printed": {"attack": "final", "estimator": "fitted"}},
        plain_experiment(plain_cell(audits, training__noise_multiplier=0.1)),
    )
    # Four numbers share 1%. Estimates from all rounds have errors in proportion to them.
    low, high = (
        math.exp(float(end))
        for end in stats.t(
            7, np.log(drawn["fitted all"]).mean(), stats.tstd(np.log(drawn["fitted all"])) * 1.125**0.5
        ).interval(0.9975)
    )
    expected = [
        f"lower bound, all rounds, 3.0, measured {prediction.shown(drawn['bound all'])} "
        f"{students(drawn['bound all'], 0.0025)}: confirmed",
        f"estimate, all rounds, 40, measured {prediction.shown(drawn['fitted all'])} ({low:.3g} to {high:.3g}): "
        "confirmed",
        f"lower bound, final model, 0.6, measured {prediction.shown(drawn['bound final'])} "
        f"{students(drawn['bound final'], 0.0025)}: confirmed",
        f"estimate, final model, 1.1, measured {prediction.shown(drawn['fitted final'])} "
        f"{students(drawn['fitted final'], 0.0025)}: confirmed",
    ]
    assert found.finding.startswith("; ".join(expected))
    assert found.verdict is CONFIRMED
    pinned = andrew_rules.row(
        Row("0.1", "30", "3.0", "40", "0.6", "1.4"),
        {"as printed": {"attack": "change", "estimator": "pinned", "canaries__participation": "clients"}},
        plain_experiment(
            plain_cell(audits, training__noise_multiplier=0.1, canaries__participation="clients"),
            plain_cell(audits, training__noise_multiplier=0.1, canaries__participation="periods"),
        ),
    )
    assert f"estimate, final model, 1.4, measured {prediction.shown(drawn['pinned change'])} " in pinned.finding


def test_of_few_repetitions_the_widest_range_of_simulated_experiments_counts(monkeypatch):
    asked = []

    def simulated(one, dim, delta, draws):
        asked.append((dim, delta, draws))
        low = one.bounds["andrew"].value
        return dict.fromkeys(("fitted", "pinned", "bound"), (low, low + 1.0))

    monkeypatch.setattr(andrew_rules, "simulated", simulated)
    audits = [dict.fromkeys(("all", "final", "change"), audit(2.0, 2.0, bound)) for bound in (1.3, 1.1, 1.2)]
    found = andrew_rules.row(
        Row("0.1", "30", "2.2", "1.2", "2.0", "2.0"),
        {"as printed": andrew_rules.AS_PRINTED},
        plain_experiment(plain_cell(audits, training__noise_multiplier=0.1, audit__delta=1e-6)),
    )
    # Four numbers share 1%: 0.25% each. The range of 799 draws misses another one with probability 2/800.
    assert set(asked) == {(100, 1e-6, 799)}
    assert found.finding.count("(1.1 to 2.3)") == 4
    assert found.verdict is CONFIRMED


def test_a_row_with_an_infinite_estimate_has_no_interval():
    audits = [{"all": audit(math.nan), "final": audit(), "change": audit()}] * 8
    found = andrew_rules.row(
        Row("0.1", "30", "0.5", "2.0", "0.5", "1.0"),
        {"as printed": andrew_rules.AS_PRINTED},
        plain_experiment(plain_cell(audits, training__noise_multiplier=0.1)),
    )
    assert found.verdict is INCONCLUSIVE


@pytest.mark.parametrize(
    ("printed", "shares", "verdict", "text"),
    [
        ("25.0", [0.2605], CONFIRMED, "it 25.0%, measured 26.05%"),
        ("25.0", [0.2395], CONFIRMED, "it 25.0%, measured 23.95%"),
        ("25.0", [0.2607], QUALIFIED, "it 25.0%, measured 26.07%, 1 percentage points away"),
        ("25.0", [0.28], QUALIFIED, "it 25.0%, measured 28%, 3 percentage points away"),
        ("25.0", [0.2207], QUALIFIED, "it 25.0%, measured 22.07%, 2.9 percentage points away"),
        ("25.0", [0.2807], REFUTED, "it 25.0%, measured 28.07%, 3 percentage points away"),
        # Student's interval of three whose deviation is 0.2 reaches 2.3 around 26.45, and 3.4 for one of 0.3.
        ("25.0", [0.2625, 0.2645, 0.2665], CONFIRMED, "it 25.0%, measured 26.25, 26.45, 26.65%"),
        (
            "25.0",
            [0.2615, 0.2645, 0.2675],
            QUALIFIED,
            "it 25.0%, measured 26.15, 26.45, 26.75%, 1.4 percentage points away",
        ),
        ("25.0", [0.2625, 0.2665], QUALIFIED, "it 25.0%, measured 26.25, 26.65%, 1.4 percentage points away"),
    ],
)
def test_an_accuracy(printed, shares, verdict, text):
    assert stats.t.isf(0.005, 2) * 0.2 * math.sqrt(4 / 3) < 3.0 < stats.t.isf(0.005, 2) * 0.3 * math.sqrt(4 / 3)
    assert andrew_rules.accuracy("it", printed, shares, 0.01) == prediction.Part(verdict, text)


def test_two_accuracies_of_a_row_share_the_level():
    # Three with a deviation of 0.15 and a mean of 24: at 0.5% their interval holds 22.0, and at 1% it does not.
    reach = [stats.t.isf(alpha / 2, 2) * 0.15 * math.sqrt(4 / 3) for alpha in (0.01, 0.005)]
    assert reach[0] < 2.0 < reach[1] < 3.0
    around = (0.2385, 0.24, 0.2415)

    def judged(without, with_):
        cell = plain_cell(runs=accuracies_of(*zip(without, with_, strict=True)), training__noise_multiplier=0.1)
        return andrew_rules.accuracies("0.1", "22.0", "30.0", plain_experiment(cell)).finding

    # Each is held against its own.
    first, second = judged(around, [0.30] * 3).split("; ")[:2]
    assert first == "accuracy without canaries 22.0%, measured 23.85, 24, 24.15%: confirmed"
    assert second == "with them 30.0%, measured 30, 30, 30%: confirmed"
    assert "with them 30.0%, measured 31.85, 32, 32.15%: confirmed" in judged(
        [0.22] * 3, [share + 0.08 for share in around]
    )


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [(-0.01, CONFIRMED), (0.00037, CONFIRMED), (0.00038, INCONCLUSIVE), (0.0174, INCONCLUSIVE), (0.0178, REFUTED)],
)
def test_a_cost_is_refuted_beyond_its_error_at_a_share_of_the_level(lost, verdict):
    # Of 25%, what prints as 0.1% are less than 0.0375 points; errors of a difference are 0.61 points at most, and each
    # of four cells has a quarter of 1%.
    clear = 0.000375 + stats.norm.isf(0.0025) * math.sqrt(2 * 0.25 * 0.75 / 10_000)
    assert 0.0174 < clear < 0.0178
    cells = [
        plain_cell(runs=accuracies_of((0.25, 0.25 - loss)), training__noise_multiplier=0.1)
        for loss in (0.0, 0.0, 0.0, lost)
    ]
    assert andrew_rules.cost(plain_experiment(*cells)).verdict is verdict
    cells[2] = plain_cell(runs=accuracies_of((None, 0.25)), training__noise_multiplier=0.1)
    assert andrew_rules.cost(plain_experiment(*cells)) is None


def presentations(estimates, bound=0.5, noise=0.1, distances=(0.0, 9.0)):
    """Cells with these estimates from the final model for one and two presentations."""
    return [
        plain_cell(
            [{"final": audit(value, bound=bound, distance=distance, error=0.1)}],
            training__noise_multiplier=noise,
            canaries__presentations=count,
        )
        for count, value, distance in zip((1, 2), estimates, distances, strict=True)
    ]


@pytest.mark.parametrize(
    ("estimates", "distances", "verdict", "text"),
    [
        ((1.0, 2.01), (0.0, 9.0), CONFIRMED, "at noise 0.1 ε̂ from 1 to 2.01; 0 lower bounds are above their estimates"),
        ((1.0, 2.0), (0.0, 9.0), CONFIRMED, "at noise 0.1 ε̂ from 1 to 2; 0 lower bounds are above their estimates"),
        ((1.0, 1.99), (0.0, 9.0), QUALIFIED, "at noise 0.1 ε̂ from 1 to 1.99; 0 lower bounds are above their estimates"),
        ((0.4, 0.6), (0.0, 9.0), QUALIFIED, "at noise 0.1 ε̂ from 0.4 to 0.6; 1 lower bounds are above their estimates"),
        ((0.0, 0.4), (0.0, 9.0), CONFIRMED, "at noise 0.1 ε̂ from 0 to 0.4; 2 lower bounds are above their estimates"),
        ((1.0, 3.0), (0.0, 0.1), INCONCLUSIVE, "at noise 0.1 ε̂ from 1 to 3; 0 lower bounds are above their estimates"),
        ((1.0, 3.0), (9.0, 0.0), REFUTED, "at noise 0.1 ε̂ from 1 to 3; 0 lower bounds are above their estimates"),
    ],
)
def test_an_estimate_that_rises_sharply_doubles(estimates, distances, verdict, text):
    found = andrew_rules.rises(("0.1",), (1, 2), plain_experiment(*presentations(estimates, distances=distances)))
    assert (found.verdict, found.finding) == (verdict, f"{text}: {verdict}; not stated, and ours: ")
    assert andrew_rules.rises(("0.2",), (1, 2), plain_experiment(*presentations(estimates))) is None


@pytest.mark.parametrize(
    ("quiet", "loud", "verdicts"),
    [
        ((5.0, 9.0), (1.0, 4.0), ("confirmed", "confirmed")),
        ((5.0, 9.0), (6.0, 9.5), ("confirmed", "refuted")),
        ((9.0, 5.0), (4.0, 1.0), ("refuted", "confirmed")),
    ],
)
def test_cosines_separate_with_presentations_and_against_noise(quiet, loud, verdicts):
    cells = [
        cell
        for noise, distances in ((0.1, quiet), (0.2, loud))
        for cell in presentations((1.0, 1.0), noise=noise, distances=distances)
    ]
    found = andrew_rules.separates(("0.1", "0.2"), (1, 2), plain_experiment(*cells))
    parts = found.finding.split("; ")
    assert parts[0].startswith("separation from 1 to 2 presentations ")
    assert parts[1].startswith("separation from noise 0.2 to 0.1 ")
    assert tuple(part.rpartition(": ")[2] for part in parts[:2]) == verdicts
    grid = {
        f"{noise}, {n}": value
        for noise, row in (("0.1", quiet), ("0.2", loud))
        for n, value in zip((1, 2), row, strict=True)
    }
    assert found.evidence["distances"] == grid


def test_two_data_sets_are_alike_where_each_rises_and_separates():
    def made(name, estimates, distances=(0.0, 9.0)):
        # Less noise separates more.
        cells = [
            *presentations(estimates, noise=0.1, distances=[value + 2.0 for value in distances]),
            *presentations(estimates, noise=0.2, distances=distances),
        ]
        return replace(plain_experiment(*cells), name=name)

    noises = (("0.1", "0.2"), ("0.1", "0.2"))
    assert andrew_rules.TIMES == (1, 2, 4, 8)
    first, second, flat = made("one", (1.0, 3.0)), made("two", (1.0, 3.0)), made("flat", (1.0, 1.5))

    def judged(cosines, *experiments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(andrew_rules, "TIMES", (1, 2))
            return andrew_rules.alike(noises, cosines, *experiments)

    both = judged(True, first, second)
    assert both.verdict is CONFIRMED
    # Rises and separations of either.
    assert [
        both.finding.count(name) for name in ("one: at noise", "one: separation", "two: at", "two: separation")
    ] == [1] * 4
    assert judged(False, first, second).finding.count("separation") == 0
    assert judged(True, first, flat).verdict is QUALIFIED
    assert judged(False, first, made("down", (1.0, 3.0), (9.0, 0.0))).verdict is REFUTED
    assert judged(True, first, replace(second, cells=second.cells[:3])) is None


@pytest.mark.parametrize(("count", "decides"), [(19, False), (20, True)])
def test_twenty_experiments_have_quantiles(count, decides):
    audits = [dict.fromkeys(("final", "change"), audit(float(i), float(i))) for i in range(count)]
    cell = plain_cell(audits, training__noise_multiplier=0.1, canaries__runs=1, canaries__count=1000)
    texts = [f"{(count - 1) * q:.1f}" for q in QUANTILES]
    found = andrew_rules.quantiles("0.1", 1, 1000, texts, plain_experiment(cell))
    assert (found.verdict is CONFIRMED) is decides
    assert ("only 19 experiments of 50" in found.finding) is not decides
    assert andrew_rules.quantiles("0.1", 10, 1000, texts, plain_experiment(cell)) is None


def test_what_is_said_of_a_quantile_outside():
    near, far = (andrew_rules._quantile(0.5, text, np.arange(100.0, 140.0), 0.002) for text in ("200", "250"))
    assert (
        near == prediction.Part(QUALIFIED, "quantile 0.5 200, measured 120 (p = 4.1e-13)") or near.verdict is QUALIFIED
    )
    assert near.text.startswith("quantile 0.5 200, measured 120 (p = ")
    assert far.verdict is REFUTED
    below, off = (andrew_rules._quantile(0.5, text, np.arange(100.0, 140.0), 0.002) for text in ("60", "59"))
    assert (below.verdict, off.verdict) == (QUALIFIED, REFUTED)


def test_a_statistic_that_is_missing_decides_nothing():
    cell = plain_cell([{"final": audit(statistic=None)}], training__noise_multiplier=0.1, canaries__presentations=1)
    found = andrew_rules.anderson("0.1", (1,), ("0.3",), plain_experiment(cell))
    assert (found.verdict, found.finding.partition(":")[0]) == (INCONCLUSIVE, "1 presentations have no statistic")
    assert andrew_rules.anderson("0.1", (2,), ("0.3",), plain_experiment(cell)) is None


def test_the_finding_on_statistics_has_both_p_values():
    law = anderson_darling.limit_law(True)
    audits = [{"final": audit(statistic=value)} for value in (0.4, 0.6)]
    cell = plain_cell(audits, training__noise_multiplier=0.1, canaries__presentations=1)
    found = andrew_rules.anderson("0.1", (1,), ("0.5",), plain_experiment(cell))
    assert found.finding.startswith(
        f"1 presentations 0.5 (p = {law.sf(0.5):.2g}), measured 0.4, 0.6 (p = {2.0 * law.sf(0.6):.2g}): confirmed"
    )
