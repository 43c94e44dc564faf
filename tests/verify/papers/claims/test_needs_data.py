import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_results import RULES, figure, judge

from canaryproof.verify.papers.check.results import Context, Effort, Outcome, Verdict
from canaryproof.verify.papers.claims import CHECKS, needs_data
from canaryproof.verify.papers.claims.experiment_results import FinishedMeasurements
from canaryproof.verify.papers.claims.needs_data import NeedsData
from canaryproof.verify.papers.claims.transcripts import Row
from canaryproof.verify.papers.records.benchmark_record import (
    BenchmarkRecord,
    PrintedReading,
    PrintedRecord,
    SecondsRecord,
    SpreadRecord,
)
from canaryproof.verify.papers.records.report_input import read_record
from canaryproof.verify.papers.runs import expected

CONFIRMED, QUALIFIED, REFUTED, INCONCLUSIVE, NEEDS_DATA = Verdict


DECIDED = {check.id: check.judge for check in CHECKS if isinstance(check.judge, NeedsData)}
PUBLISHED = Path(__file__).parents[4] / "reports" / "published"
# No command makes the version that a promise is of.
PROMISES = [check.id for check in CHECKS if check.id.startswith("review.promise.")]
TABLE = Path(expected.__file__).with_name("expected_verdicts.csv").read_text(encoding="utf-8")


def test_every_claim_that_needs_data_has_an_experiment_or_a_reason():
    needed = {name for (_, name), verdict in expected.read(TABLE).items() if verdict is NEEDS_DATA}
    assert "final.table3.row4.measured" in needed
    assert needed == DECIDED.keys() | {
        "canife.section4.hours",
        "canife.section4.3.gpu",
        "canife.figure8.a.sizes",
        "canife.figure9.enough",
    } | set(PROMISES)
    for name in needed - DECIDED.keys() - set(PROMISES):
        assert "no training here decides it: " in judge(name, None).finding


def test_every_experiment_comes_with_the_package():
    from canaryproof.verify.papers.training import configuration

    named = {name for rule in DECIDED.values() for name in rule.experiments}
    assert named - {needs_data.BENCHMARK} <= set(configuration.names())


def test_without_data_the_command_that_decides_is_named(quick_run):
    table = expected.read(TABLE)
    names = [check.id for check in CHECKS if check.id.startswith(("final.", "v1."))]
    results = [quick_run.results[name] for name in names if table[("claims", name)] is NEEDS_DATA]
    assert len(results) > 30
    assert [result.id for result in results if result.verdict is not NEEDS_DATA] == []
    for words in ("canaryproof verify claims --data DIR", "--out DIR/"):
        assert [result.id for result in results if words not in result.finding] == []


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
    for population in needs_data.POPULATIONS.values():
        for clients in released.get(population.federation, (population.clients,)):
            assert abs(clients / population.clients - 1) <= needs_data.CLIENTS_MARGIN
    named = {name for rule in DECIDED.values() for name in rule.experiments}
    assert needs_data.POPULATIONS.keys() == named - {needs_data.BENCHMARK}


def test_the_benchmarks_rows_decide_the_comparison_on_fashion_mnist():
    row = PrintedReading(
        "final.section5.4.canife, submission.appendixH.canife",
        "0.879 ± 0.124",
        "Poisson samples",
        "CANIFE as printed",
        SpreadRecord(0.521, 0.002, 0),
        REFUTED,
        INCONCLUSIVE,
        "the cap is 0.521",
    )
    seconds = SecondsRecord(training=20.0, oneshot=1.0, canife={"as printed": 30.0})
    record = read_record(BenchmarkRecord, PUBLISHED / "canife.json")
    scenario = replace(record.scenarios[0], seconds=seconds)
    record = replace(record, scenarios=(scenario,), printed=PrintedRecord(True, 1e-5, (row,)))
    given = Context(Effort.QUICK, 0, FinishedMeasurements({}, record, "digest"))
    assert RULES["final.section5.4.canife"](given).verdict is INCONCLUSIVE
    assert RULES["review.canife.bound"](given).verdict is NEEDS_DATA


def test_what_needed_data_may_have_any_verdict_with_data():
    from canaryproof.verify.papers.check.results import Result, Run, Subject

    run = Run("0", Effort.QUICK, 0, (Result("a", "claims", Subject.DOCUMENT, "", "", REFUTED, "", {}),))
    assert len(expected.changes(run, {("claims", "a"): NEEDS_DATA}, ("claims",))) == 1
    assert expected.changes(run, {("claims", "a"): NEEDS_DATA}, ("claims",), with_data=True) == []
    assert len(expected.changes(run, {("claims", "a"): CONFIRMED}, ("claims",), with_data=True)) == 1


@pytest.mark.parametrize(("share", "other"), [(0.97, True), (0.99, False), (1.01, False), (1.03, True)])
def test_data_of_another_size_are_other_data(share, other):
    wanted = needs_data.POPULATIONS["final_table3"]
    cell = SimpleNamespace(federation=wanted.federation, clients=round(share * wanted.clients))
    there = SimpleNamespace(experiments={"final_table3": SimpleNamespace(cells=[cell])})
    assert bool(needs_data.other_data(there, "final_table3")) is other


def numbers(argument):
    """Printed numbers that a rule is given, in order; a row's analytical ε is none that it judges."""
    if isinstance(argument, Row):
        argument = (argument.noise, *(getattr(argument, name) for name in argument.__dataclass_fields__ if "_" in name))
    if isinstance(argument, tuple | list):
        return [number for one in argument for number in numbers(one)]
    return [str(argument)] if re.fullmatch(r"[\d.]+", str(argument)) else []


JUDGED = {
    name: (rule.judge.func.__name__, numbers(rule.judge.args))
    for name, rule in DECIDED.items()
    if isinstance(rule.judge, partial)
}
# Rules whose numbers stand in the statement in the order in which the rule has them, and in another.
ORDERED = ("row", "quantiles", "anderson", "accuracies", "gap", "far_below", "norm_constants", "reached")
REVERSED = ("model_accuracy", "histogram_deviation")


@pytest.mark.parametrize("name", [name for name, (rule, _) in JUDGED.items() if rule in ORDERED + REVERSED])
def test_a_rule_is_given_the_numbers_of_its_statement(name):
    rule, given = JUDGED[name]
    statement = {check.id: check.statement for check in CHECKS}[name].replace(",", "")
    printed = iter(re.findall(r"\d+(?:\.\d+)?", statement))
    # "Without noise", or without privacy.
    given = [number for number in given if (rule, number) != ("histogram_deviation", "0")]
    # A gap of which one number is printed has it as both ends.
    given = list(dict.fromkeys(given)) if rule == "gap" else given
    for number in given if rule in ORDERED else given[::-1]:
        # Where the first version cuts a noise multiplier, the rule has all digits.
        assert any(number == one or (len(one) > 4 and number.startswith(one)) for one in printed), number
    assert len(given) >= 1


def full(*names):
    """Finished experiments of these names, in full, on the paper's data."""
    made = {}
    for name in names:
        wanted = needs_data.POPULATIONS[name]
        cell = SimpleNamespace(federation=wanted.federation, clients=wanted.clients)
        made[name] = SimpleNamespace(size="full", cells=[cell])
    return made


def judged(rule, experiments, benchmark=None):
    return rule(Context(Effort.QUICK, 0, FinishedMeasurements(experiments, benchmark, "digest")))


def test_a_rule_of_two_experiments_takes_both_in_its_order():
    names = ("final_figure2", "final_figure4")
    rule = NeedsData("data", names, lambda *given: Outcome(CONFIRMED, f"{len(given)}", {"given": given}))
    both = full(*names[::-1])
    found = judged(rule, both)
    assert (found.verdict, found.finding) == (CONFIRMED, "2")
    assert found.evidence["given"] == (both[names[0]], both[names[1]])
    for missing in names:
        one = {name: value for name, value in both.items() if name != missing}
        assert judged(rule, one).verdict is NEEDS_DATA
        quick = both | {missing: SimpleNamespace(size="quick", cells=both[missing].cells)}
        finding = judged(rule, quick).finding
        assert finding == (
            f"needs data; {missing} is there at its quick size, which decides nothing; "
            "`canaryproof train final_figure2 --data FOLDER --size full --out DIR/final_figure2` and "
            "`canaryproof train final_figure4 --data FOLDER --size full --out DIR/final_figure4`, then "
            "`canaryproof verify claims --data DIR`, decide it"
        )
    other = both | {names[1]: full(names[0])[names[0]]}
    assert judged(rule, other).finding.startswith(
        "needs data; final_figure4 is there on stackoverflow with 341,000 clients, and the paper's on federated_emnist "
        "with 3,383; `canaryproof train final_figure2"
    )


def test_what_is_known_before_stands_beside_what_data_say():
    known = Outcome(NEEDS_DATA, "known; ", {"before": 1, "both": 2})
    rule = NeedsData(
        "data", ("final_table3",), lambda _: Outcome(CONFIRMED, "measured", {"both": 3, "after": 4}), lambda: known
    )
    found = judged(rule, full("final_table3"))
    assert (found.verdict, found.finding) == (CONFIRMED, "known; measured")
    assert found.evidence == {"before": 1, "both": 3, "after": 4}
    without = rule(Context(Effort.QUICK, 0))
    assert without.finding.startswith("known; needs data; `canaryproof train final_table3 ")
    assert (without.evidence["before"], without.evidence["data"]) == (1, "data")
    # What is decided without data needs none.
    decided = replace(rule, before=lambda: Outcome(REFUTED, "out of reach", {}))
    assert judged(decided, full("final_table3")).finding == "out of reach"


def test_a_cell_that_is_missing_is_told():
    rule = NeedsData("data", ("final_table3",), lambda _: None)
    assert judged(rule, full("final_table3")).finding.startswith(
        "needs data; what is there lacks a cell or its canaries; `canaryproof train final_table3 "
    )
    benchmark = NeedsData("data", (needs_data.BENCHMARK,), lambda record: Outcome(CONFIRMED, record, {}))
    assert judged(benchmark, {}, "the record").finding == "the record"
    assert judged(benchmark, {}).finding == (
        "needs data; `canaryproof benchmark canife --data FOLDER --level full --out DIR/canife`, then "
        "`canaryproof verify claims --data DIR`, decide it"
    )


STACKOVERFLOW, EMNIST = ("0", "0.0496", "0.0986", "0.2317"), ("0.0", "0.0487", "0.0958", "0.2207")


@pytest.mark.parametrize(
    ("name", "rule", "noises", "times"),
    [
        ("final.figure1", "separates", STACKOVERFLOW, (1, 2, 4, 8)),
        ("final.figure2", "rises", STACKOVERFLOW, (1, 2, 4, 8)),
        ("final.figure3", "separates", EMNIST, (1, 2, 4, 8)),
        ("final.figure4", "rises", EMNIST, (1, 2, 4, 8)),
        ("submission.figure1", "separates", STACKOVERFLOW, (1, 2, 4, 8)),
        ("submission.figure2", "rises", ("0.16", "0.18", "0.195"), (1, 2, 4, 8)),
        ("submission.figure3", "rises", STACKOVERFLOW, (1, 2, 4, 8)),
        ("v1.figure1", "separates", ("0", "0.1023", "0.2344"), (1, 2, 3, 5, 10)),
        ("v1.figure2", "rises", ("0", "0.1023", "0.2344"), (1, 2, 3, 5, 10)),
    ],
)
def test_figures_are_judged_at_the_noise_of_their_tables(name, rule, noises, times):
    judge = DECIDED[f"{name}.measured"].judge
    assert (judge.func.__name__, *judge.args) == (rule, noises, times)


@pytest.mark.parametrize(
    ("name", "noises", "cosines"),
    [
        ("final.section5.2.1.repetitions", (STACKOVERFLOW, EMNIST), True),
        ("submission.appendixD.repetitions", (STACKOVERFLOW, ("0.16", "0.18", "0.195")), False),
    ],
)
def test_repetitions_are_alike_at_the_noise_of_both(name, noises, cosines):
    # The submission's Figure 2 has no cosines.
    assert DECIDED[name].judge.args == (noises, cosines)


def test_rows_are_read_in_as_many_ways_as_their_text_leaves_open():
    as_printed = {"attack": "final", "estimator": "fitted"}
    pinned, change = {"attack": "final", "estimator": "pinned"}, {"attack": "change", "estimator": "fitted"}
    for name, rule in DECIDED.items():
        if isinstance(rule.judge, partial) and rule.judge.func.__name__ == "row":
            readings = list(rule.judge.args[1].values())
            swept = [reading.get("canaries__participation") for reading in readings]
            plain = [{key: value for key, value in one.items() if "__" not in key} for one in readings]
            if rule.experiments[0] in ("final_table4", "submission_table3"):
                assert plain == [as_printed, pinned, change] * 2, name
                # As real users do, in each epoch; or else once.
                assert swept == ["clients"] * 3 + ["periods"] * 3
            else:
                assert plain == [as_printed, pinned, change], name
                assert swept == [None] * 3
