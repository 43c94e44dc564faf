import json
import math
from dataclasses import replace
from pathlib import Path

import made_results
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canaryproof.verify.check.results import Context, Level, Verdict
from canaryproof.verify.claims import CHECKS, deciding, finished, measured, measured_andrew, measured_canife
from canaryproof.verify.claims.deciding import decided
from canaryproof.verify.claims.finished import (
    FinishedCell,
    FinishedExperiment,
    FinishedRound,
    FinishedTraining,
    Measurements,
    Repetition,
    Trials,
)
from canaryproof.verify.claims.printed import Canife, Row
from canaryproof.verify.engine import expected
from canaryproof.verify.files.reading import InputError

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, NEEDS_DATA = Verdict
TABLE = Path(expected.__file__).with_name("expected_verdicts.csv").read_text(encoding="utf-8")


def context(folder=None):
    return Context(Level.QUICK, 0, None if folder is None else finished.read(folder))


def judge(claim, folder):
    return decided(claim, "a data set", context(folder))


def rising(cell, rng, factor=1.0):
    """Attacks that grow with presentations and shrink with noise, as in the figures."""
    times, noise = cell.settings.canaries.presentations, cell.settings.training.noise_multiplier
    shift = factor * 0.5 * times / (1.0 + 10.0 * noise)
    return {
        "all": made_results.attack(rng, 10.0, 1.5, unobserved=1000),
        "final": made_results.attack(rng, shift),
        "change": made_results.attack(rng, shift),
    }


def figure(folder, name, factor=1.0, size="full"):
    rng = np.random.default_rng(7)
    made = made_results.document(name, lambda cell, _: ([made_results.run()], rising(cell, rng, factor)), size=size)
    made_results.write(folder, made)


WHOLE = json.dumps(
    made_results.document(
        "final_figure2", lambda cell, _: ([made_results.run()], rising(cell, np.random.default_rng(7)))
    )
)


def test_every_claim_that_needs_data_has_an_experiment_or_a_reason():
    needed = {name for (_, name), verdict in expected.read(TABLE).items() if verdict is NEEDS_DATA}
    known = deciding.DECISIONS.keys() | deciding.UNDECIDABLE.keys()
    assert needed <= known
    # This one is out of reach without any data; it is in the table should that change.
    assert known - needed == {"canife.section4.2.gap.sent140"}
    assert not deciding.DECISIONS.keys() & deciding.UNDECIDABLE.keys()


def test_every_experiment_comes_with_the_package():
    from canaryproof.verify.training import configuration

    named = {name for one in deciding.DECISIONS.values() for name in one.experiments}
    assert named - {deciding.BENCHMARK} <= set(configuration.names())


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check.id.startswith(("final.", "v1."))], ids=lambda check: check.id
)
def test_without_data_the_command_that_decides_is_named(check):
    if expected.read(TABLE)[("claims", check.id)] is not NEEDS_DATA:
        return
    outcome = check.judge(context())
    assert outcome.verdict is NEEDS_DATA
    assert "canaryproof verify claims --data DIR" in outcome.finding
    assert "--out DIR/" in outcome.finding


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


@pytest.mark.parametrize("repetitions", [1, 8])
def test_a_row_that_is_another_draw_is_confirmed_and_a_distant_one_refuted(tmp_path, repetitions):
    made, other = row_document(6.0, 5, repetitions)
    made_results.write(tmp_path, made)
    experiment = finished.read(tmp_path).experiments["final_table3"]
    readings = {"as printed": measured_andrew.AS_PRINTED}
    outcome = measured_andrew.row(printed_row(other), readings, experiment)
    assert outcome.verdict is CONFIRMED, outcome.finding
    # What the paper does not state is always told.
    assert "training.batch_size 16" in outcome.finding
    far = replace(printed_row(other), estimate_all=str(3 * float(printed_row(other).estimate_all)))
    assert measured_andrew.row(far, readings, experiment).verdict is REFUTED
    near = replace(printed_row(other), estimate_all=f"{1.8 * float(printed_row(other).estimate_all):.4g}")
    assert measured_andrew.row(near, readings, experiment).verdict in (QUALIFIED, REFUTED)


def test_a_row_that_only_another_reading_has_is_qualified(tmp_path):
    made, other = row_document(6.0, 5, 1)
    rng = np.random.default_rng(1)
    for cell in made["cells"]:
        for result in cell["results"]:
            result["audits"]["final"]["exact"] = made_results.attack(rng, made_results.distance(2.0))
    made_results.write(tmp_path, made)
    experiment = finished.read(tmp_path).experiments["final_table3"]
    outcome = measured_andrew.row(printed_row(other), measured_andrew.STACKOVERFLOW, experiment)
    assert outcome.verdict is QUALIFIED
    assert outcome.finding.startswith("only from the change of the model")


@pytest.mark.parametrize("logarithmic", [False, True])
def test_students_interval_misses_a_further_draw_as_often_as_it_says(logarithmic):
    rng = np.random.default_rng(11)
    draws = rng.normal(3.0, 0.2, (4000, 5))
    draws = np.exp(draws) if logarithmic else draws
    missed = 0
    for row in draws:
        low, high = measured.student(row[:4].tolist(), 0.05, logarithmic=logarithmic)
        missed += not low <= row[4] <= high
    # 200 are expected; 5 standard deviations.
    assert abs(missed - 200) < 5 * math.sqrt(190)


@pytest.mark.parametrize(
    ("printed", "values", "interval", "verdict"),
    [
        ("1.97", [1.9], (1.5, 2.4), CONFIRMED),
        ("2.44", [1.9], (1.5, 2.436), CONFIRMED),
        ("3.0", [1.9], (1.5, 2.4), QUALIFIED),
        ("5.0", [1.9], (1.5, 2.4), REFUTED),
        ("0.3", [0.5], (0.2, 0.9), INCONCLUSIVE),
        ("0.9", [0.5], (0.3, 1.1), INCONCLUSIVE),
        ("9.9", [0.5], (-0.1, 0.9), REFUTED),
        ("inf", [math.inf, math.inf], None, CONFIRMED),
        ("inf", [math.inf, 3.0], None, REFUTED),
        ("3.0", [math.inf], None, REFUTED),
        ("3.0", [math.nan], None, INCONCLUSIVE),
    ],
)
def test_a_printed_number(printed, values, interval, verdict):
    assert measured.number("ε", printed, values, interval).verdict is verdict


@pytest.mark.parametrize(
    ("heights", "verdict"),
    [((5.0, 6.0), CONFIRMED), ((5.0, 0.1), INCONCLUSIVE), ((5.0, -6.0), REFUTED)],
)
def test_an_order(heights, verdict):
    steps = [(str(i), height, 1.0) for i, height in enumerate(heights)]
    assert measured.order("it", steps, 0.01).verdict is verdict


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
    ("loss", "least", "none"),
    [(0.0, CONFIRMED, CONFIRMED), (0.008, INCONCLUSIVE, CONFIRMED), (0.03, REFUTED, REFUTED)],
)
def test_what_canaries_cost(tmp_path, loss, least, none):
    repetition = lambda *_: ([made_results.run(0.253 - loss, 0.253)], None)  # noqa: E731
    made_results.write(tmp_path, made_results.document("final_table3", repetition))
    assert judge("final.section5.1.accuracy", tmp_path).verdict is least
    assert judge("review.accuracy.measured", tmp_path).verdict is none
    # Its other claims need canaries' audits.
    assert judge("final.table3.row1.measured", tmp_path).verdict is NEEDS_DATA


def test_quantiles_of_fifty_experiments():
    # The law of printed quantiles is that of ours: the median of p-values' least must not be small.
    rng = np.random.default_rng(2)
    shares, verdicts = (0.1, 0.3, 0.5, 0.7, 0.9), {1.0: 0, 1.3: 0}
    for _ in range(200):
        ours, theirs = (np.sort(rng.normal(2.0, 0.33, 50)) for _ in range(2))
        for factor in verdicts:
            parts = [
                measured_andrew._quantile(q, f"{factor * np.quantile(theirs, q):.2f}", ours, 0.002) for q in shares
            ]
            verdicts[factor] += measured.worst(parts) is CONFIRMED
    assert verdicts[1.0] >= 190
    assert verdicts[1.3] <= 20


def test_too_few_experiments_have_no_quantiles(tmp_path):
    rng = np.random.default_rng(0)

    def repetition(cell, _):
        return [made_results.run()] * cell.settings.canaries.runs, rising(cell, rng)

    made_results.write(tmp_path, made_results.document("final_table5", repetition, 2))
    assert judge("final.table5.row1.measured", tmp_path).verdict is INCONCLUSIVE
    assert judge("submission.table6.row4", tmp_path).verdict is INCONCLUSIVE


def test_a_quick_size_decides_nothing_and_says_so(tmp_path):
    figure(tmp_path, "final_figure2", size="quick")
    outcome = judge("final.figure2.measured", tmp_path)
    assert outcome.verdict is NEEDS_DATA
    assert "final_figure2 is there at its quick size" in outcome.finding


@pytest.mark.parametrize(("field", "value"), [("clients", 24), ("clients", 10**6), ("federation", "mnist")])
def test_other_data_than_the_papers_decides_nothing_and_is_told(tmp_path, field, value):
    figure(tmp_path, "final_figure2")
    path = tmp_path / "final_figure2" / "results.json"
    made = json.loads(path.read_text())
    made["cells"][-1][field] = value
    path.write_text(json.dumps(made))
    outcome = judge("final.figure2.measured", tmp_path)
    assert outcome.verdict is NEEDS_DATA
    assert "final_figure2 is there on" in outcome.finding
    assert "the paper's on stackoverflow with 341,000" in outcome.finding


def test_what_tensorflow_federated_releases_is_the_papers_data():
    released = {"stackoverflow": (342_477,), "federated_emnist": (3_383, 3_400)}
    for population in deciding.POPULATIONS.values():
        for clients in released.get(population.federation, (population.clients,)):
            assert abs(clients / population.clients - 1) <= deciding.CLIENTS_MARGIN
    named = {name for one in deciding.DECISIONS.values() for name in one.experiments}
    assert deciding.POPULATIONS.keys() == named - {deciding.BENCHMARK}


def test_the_folder_may_be_that_of_the_experiment_itself(tmp_path):
    figure(tmp_path, "final_figure2")
    assert set(finished.read(tmp_path / "final_figure2").experiments) == {"final_figure2"}


def test_other_measurements_have_another_digest(tmp_path):
    for i in (1, 2):
        figure(tmp_path / str(i), "final_figure2", factor=float(i))
    first, second = (finished.read(tmp_path / str(i)) for i in (1, 2))
    assert first.digest != second.digest
    assert first.digest == finished.read(tmp_path / "1").digest


def damage(folder, change):
    file = folder / "final_figure2" / "results.json"
    made = json.loads(file.read_text())
    change(made)
    file.write_text(json.dumps(made))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("size"), "size: is missing"),
        (lambda d: d.update(size="huge"), "size: must be one of quick, full, not 'huge'"),
        (lambda d: d.update(cells=[]), "cells: must not be empty"),
        (lambda d: d["cells"][0].update(dim="4"), "cells[0].dim: must be a whole number, not '4'"),
        (lambda d: d["cells"][0].update(dim=True), "cells[0].dim: must be a whole number, not True"),
        (lambda d: d["cells"][0].update(results=[]), "cells[0].results: must not be empty"),
        (
            lambda d: d["cells"][1]["settings"]["training"].update(cohort=100),
            "cells[1].settings.training.cohort: must be 167 as in final_figure2, not 100",
        ),
        (
            lambda d: d["cells"][1]["settings"]["training"].update(batch_size="16"),
            "cells[1].settings.training.batch_size: must be a whole number from 1 to 100000, not '16'",
        ),
        (
            lambda d: d["cells"][1]["settings"]["audit"].pop("delta"),
            "cells[1].settings.audit.delta: is missing",
        ),
        (
            lambda d: d["cells"][0]["results"][0]["audits"]["final"]["exact"].update(distance=[1]),
            "cells[0].results[0].audits.final.exact.distance: must be a number, not [1]",
        ),
        (
            lambda d: d["cells"][0]["results"][0]["audits"]["final"]["exact"].update(distance=10**400),
            "cells[0].results[0].audits.final.exact.distance: must be finite, not " + "1" + 59 * "0",
        ),
        (
            lambda d: d["cells"][0]["results"][0]["audits"]["all"].pop("unobserved"),
            "cells[0].results[0].audits.all.unobserved: is missing",
        ),
    ],
)
def test_damaged_results_are_refused_in_one_line(tmp_path, change, message):
    figure(tmp_path, "final_figure2")
    damage(tmp_path, change)
    with pytest.raises(InputError) as error:
        finished.read(tmp_path)
    assert error.value.message == f"{tmp_path}/final_figure2/results.json: {message}"


def places(value, place=()):
    """Keys of all values in a document, of lists the first entry's."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


@given(data=st.data())
def test_any_change_is_read_or_refused_in_one_line(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    made = json.loads(WHOLE)
    *inner, last = data.draw(st.sampled_from(list(places(made))))
    value = made
    for key in inner:
        value = value[key]
    value[last] = data.draw(st.sampled_from([None, True, -1, 0, 0.5, "x", "inf", "nan", [], {}, [[]], 10**400]))
    made_results.write(folder, made | {"name": "final_figure2"})
    (folder / "final_figure2" / "results.json").write_text(json.dumps(made))
    try:
        given_ = context(folder)
    except InputError as error:
        message = error.message
    else:
        message = ""
    assert "\n" not in message
    assert len(message) < 1000
    if message:
        return
    for claim in ("final.figure1.measured", "final.figure2.measured", "final.table6.row1.measured"):
        assert decided(claim, "a data set", given_).verdict in list(Verdict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("{", "is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('{"name": NaN}', "is not JSON: NaN"),
        ("[" * 200_000, "is nested too deeply"),
    ],
)
def test_a_file_that_is_no_json_is_refused(tmp_path, text, message):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError) as error:
        finished.read(tmp_path)
    assert error.value.message == f"{tmp_path}/results.json: {message}"


def test_folders_that_hold_nothing_or_one_experiment_twice_are_refused(tmp_path):
    with pytest.raises(InputError, match="must be a folder"):
        finished.read(tmp_path / "none")
    with pytest.raises(InputError, match="must hold folders that canaryproof train"):
        finished.read(tmp_path)
    figure(tmp_path, "final_figure2")
    (tmp_path / "final_figure2").rename(tmp_path / "one")
    figure(tmp_path, "final_figure2")
    with pytest.raises(InputError, match="name: final_figure2 is in final_figure2 too"):
        finished.read(tmp_path)


# CANIFE's experiments, made without files.
def cell(settings, runs, noise_multiplier=0.5, clients=1000, swept=None):
    return FinishedCell(
        swept or {},
        settings,
        "data",
        10,
        100,
        clients,
        1000,
        noise_multiplier,
        tuple(Repetition((run,), {}) for run in runs),
    )


def training(attacks, accuracy=0.639, composed=5.0):
    audits = tuple(FinishedRound(t, accuracy, (attack,)) for t, attack in attacks)
    return FinishedTraining(accuracy, None, audits, composed)


def made(*cells_):
    return FinishedExperiment("canife", "full", "folder", (), tuple(cells_))


def epsilons(composed, accuracy=0.639):
    rng = np.random.default_rng(0)
    return made(
        *(
            cell(
                {"training.epsilon": float(e)}, [training([], accuracy, c * rng.uniform(0.99, 1.01)) for _ in range(5)]
            )
            for e, c in zip((10, 30, 50), composed, strict=True)
        )
    )


def test_estimates_far_below_the_final_epsilon():
    levels = ("10", "30", "50")
    assert measured_canife.far_below(levels, epsilons((2, 5, 8))).verdict is CONFIRMED
    assert measured_canife.far_below(levels, epsilons((8, 5, 8))).verdict is QUALIFIED
    assert measured_canife.far_below(levels, epsilons((20, 5, 8))).verdict is REFUTED
    assert measured_canife.model_accuracy("63.9", "50", epsilons((2, 5, 8))).verdict is CONFIRMED
    assert measured_canife.model_accuracy("63.9", "50", epsilons((2, 5, 8), 0.5)).verdict is REFUTED
    assert measured_canife.model_accuracy("63.9", "inf", epsilons((2, 5, 8))) is None


def attack(health=0.97, accuracy=0.9, deviation=0.4, epsilon=3.0, separated=None):
    return Trials(health, accuracy, deviation, epsilon, epsilon if separated is None else separated)


def monitored(values, seed=0, **options):
    rng = np.random.default_rng(seed)
    runs = [
        training(
            [
                (10 * (i + 1), attack(epsilon=value * rng.uniform(0.98, 1.02), **options))
                for i, value in enumerate(values)
            ]
        )
        for _ in range(5)
    ]
    return made(cell({"training.epsilon": 50.0, "training.cohort": 100}, runs))


def test_the_gap_of_a_round():
    theory = measured_canife.rdp(0.5, Canife.CODE_DELTA)
    for ratio, verdict in ((4.5, CONFIRMED), (8.0, QUALIFIED), (20.0, REFUTED)):
        found = measured_canife.gap("4", "5", monitored([theory / ratio] * 8))
        assert found.verdict is verdict


def test_estimates_that_settle_within_an_epoch():
    assert measured_canife.settles(monitored([1.0, *[3.0] * 9])).verdict is CONFIRMED
    assert measured_canife.settles(monitored(np.linspace(1, 10, 10))).verdict is REFUTED


def healthy(mean, seed):
    rng = np.random.default_rng(seed)
    return made(
        cell(
            {"training.epsilon": 50.0},
            [
                training([(2000 + t, attack(health=1 - (1 - mean) * rng.uniform(0.9, 1.1))) for t in range(9)])
                for _ in range(5)
            ],
        )
    )


def test_health():
    assert measured_canife.health((("0.970", 0),), healthy(0.97, 0)).verdict is CONFIRMED
    assert measured_canife.health((("0.970", 0),), healthy(0.80, 0)).verdict is REFUTED


def test_stable_final_estimates():
    tasks = {"sent140": epsilons((2, 5, 8)), "celeba": epsilons((3, 9, 15))}
    assert measured_canife.stable(tasks, "sent140").verdict is CONFIRMED
    assert measured_canife.stable(tasks, "celeba").verdict is REFUTED


def without_privacy(attacks, accuracies=None):
    audits = [FinishedRound(i, 0.5 if accuracies is None else accuracies[i], (one,)) for i, one in enumerate(attacks)]
    return made(
        cell({"training.cohort": 100}, [FinishedTraining(0.644, None, tuple(audits), None)], noise_multiplier=0.0)
    )


def test_without_privacy_estimates_are_at_their_bound():
    once = [attack(epsilon=3.89)] * 19 + [attack(epsilon=3.89, separated=math.inf)]
    assert measured_canife.at_its_bound(without_privacy(once)).verdict is CONFIRMED
    always = [attack(epsilon=3.89, separated=math.inf)] * 20
    assert measured_canife.at_its_bound(without_privacy(always)).verdict is QUALIFIED
    loose = [attack(epsilon=1.0 + i / 10) for i in range(20)]
    assert measured_canife.at_its_bound(without_privacy(loose)).verdict is REFUTED


def test_attacks_go_with_accuracy():
    rises = [attack(accuracy=0.5 + i / 40) for i in range(21)]
    models = np.linspace(0.5, 0.65, 21)
    assert measured_canife.goes_with_accuracy("model", ("inf",), without_privacy(rises, models)).verdict is CONFIRMED
    falls = without_privacy(rises[::-1], models)
    assert measured_canife.goes_with_accuracy("model", ("inf",), falls).verdict is REFUTED
    pairs = [attack(accuracy=0.5 + i / 40, epsilon=i / 5) for i in range(20)]
    assert measured_canife.goes_with_accuracy("epsilon", ("inf",), without_privacy(pairs)).verdict is CONFIRMED


def grid(settings, quantity):
    """One attack for each of some settings, whose values a function gives."""
    return made(
        *(
            cell(
                one,
                [training([(1, replace(attack(), **{name: f(one) for name, f in quantity.items()}))] * 5, 0.7)],
                0.0,
            )
            for one in settings
        )
    )


def test_deviations_of_histograms():
    settings = [
        {"training.cohort": c, "canife.pool": p, "training.noise_multiplier": 0.0}
        for c in (32, 64, 256)
        for p in (64, 512)
    ]
    rising_ = grid(settings, {"deviation": lambda one: 0.006 * one["training.cohort"] / 64})
    assert measured_canife.clients_and_pools(rising_).verdict is CONFIRMED
    assert measured_canife.deviation("0.006", "0", rising_).verdict is CONFIRMED
    assert measured_canife.deviation("0.009", "0", rising_).verdict is QUALIFIED
    assert measured_canife.deviation("0.060", "0", rising_).verdict is REFUTED
    assert measured_canife.reached("60", rising_).verdict is CONFIRMED
    assert measured_canife.reached("75", rising_).verdict is REFUTED
    falling = grid(settings, {"deviation": lambda one: 1.0 / one["training.cohort"]})
    assert measured_canife.clients_and_pools(falling).verdict is REFUTED


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, CONFIRMED), (1.6, QUALIFIED), (3.0, REFUTED)])
def test_starts_and_pools(factor, verdict):
    settings = [
        {"canife.steps": 2500, "canife.start": s, "canife.pool": p} for s in ("noise", "sample") for p in (32, 512)
    ]
    found = grid(settings, {"deviation": lambda one: factor if one["canife.start"] == "noise" else 1.0})
    assert measured_canife.start_and_pool(found).verdict is verdict


def test_steps_of_the_design():
    settings = [{"canife.steps": s, "canife.start": "noise", "canife.pool": 512} for s in (1000, 3000)]
    printed = ((1000, "0.95"), (3000, "1.00"))
    good = grid(settings, {"accuracy": lambda one: 0.95 if one["canife.steps"] == 1000 else 0.99})
    assert measured_canife.steps(printed, good).verdict is CONFIRMED
    assert measured_canife.steps(printed, grid(settings, {"accuracy": lambda _: 0.7})).verdict is REFUTED


def test_losses():
    settings = [{"canife.loss": loss, "canife.pool": p} for loss in ("covariance", "mean") for p in range(8)]
    better = {"covariance": 0.98, "mean": 0.8}
    spread = lambda one: better[one["canife.loss"]] + one["canife.pool"] / 1000  # noqa: E731
    assert measured_canife.losses(grid(settings, {"accuracy": spread})).verdict is CONFIRMED
    worse = lambda one: -spread(one)  # noqa: E731
    assert measured_canife.losses(grid(settings, {"accuracy": worse})).verdict is REFUTED


def test_clients_a_round():
    cells_ = [
        cell(
            {"training.cohort": c},
            [training([(1, attack(accuracy=0.98 - c / 4000 + i / 1e4))], composed=c / 20 + i) for i in range(5)],
        )
        for c in (25, 50, 100, 200)
    ]
    assert measured_canife.falls_with_clients("accuracy", made(*cells_)).verdict is CONFIRMED
    assert measured_canife.falls_with_clients("composed", made(*cells_)).verdict is CONFIRMED


def test_norm_constants():
    settings = [{"canife.norm_constant": c, "i": i} for c in (1.0, 10.0, 50.0, 100.0, 600.0, 1000.0) for i in range(4)]
    found = grid(
        settings,
        {
            "accuracy": lambda one: (0.98 if one["canife.norm_constant"] <= 50 else 0.6) + one["i"] / 100,
            "health": lambda one: (0.98 if one["canife.norm_constant"] <= 600 else 0.6) + one["i"] / 100,
        },
    )
    assert measured_canife.norm_constants(50, 600, found).verdict is CONFIRMED


def test_the_benchmarks_rows_decide_the_comparison_on_fashion_mnist():
    rows = [
        {
            "id": "final.section5.4.canife, submission.appendixH.canife",
            "method": "CANIFE as printed",
            "reading": "refuted",
            "verdict": "inconclusive",
            "finding": "the cap is 0.521",
        }
    ]
    seconds = {"training": 20.0, "oneshot": 1.0, "canife": 30.0}
    given = Context(Level.QUICK, 0, Measurements({}, tuple(rows), seconds, "digest"))
    assert decided("final.section5.4.canife", "Fashion-MNIST", given).verdict is INCONCLUSIVE
    assert decided("final.section5.4.cost", "Fashion-MNIST", given).verdict is CONFIRMED
    assert decided("submission.appendixH.cost", "Fashion-MNIST", given).verdict is CONFIRMED
    assert decided("review.canife.bound", "Fashion-MNIST", given).verdict is NEEDS_DATA


def test_what_needed_data_may_have_any_verdict_with_data():
    from canaryproof.verify.check.results import Result, Run, Subject

    run = Run("0", Level.QUICK, 0, (Result("a", "claims", Subject.DOCUMENT, "", "", REFUTED, "", {}),))
    assert len(expected.changes(run, {("claims", "a"): NEEDS_DATA}, ("claims",))) == 1
    assert expected.changes(run, {("claims", "a"): NEEDS_DATA}, ("claims",), with_data=True) == []
    assert len(expected.changes(run, {("claims", "a"): CONFIRMED}, ("claims",), with_data=True)) == 1
