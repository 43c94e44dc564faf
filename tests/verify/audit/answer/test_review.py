"""A second opinion is right on honest and on dishonest results of other tools."""

import dataclasses
import json
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from canaryproof.kernels import binomial
from canaryproof.verify.audit.answer import review as module
from canaryproof.verify.audit.answer.review import Choice, Opinion, Review, ReviewedBound, review
from canaryproof.verify.audit.answer.run_audit import audit
from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu
from canaryproof.verify.audit.bounds.lower_bound import GAUSSIAN_CURVE, Inclusion
from canaryproof.verify.audit.bounds.one_run import FAIR_COINS, gaussian_bound
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.command_line import main
from tests.printed import numbers

_DELTA = 1e-5


def leaking(count=500, shift=0.8):
    rng = np.random.default_rng(1)
    return rng.normal(shift, 1.0, count), rng.normal(0.0, 1.0, count)


def lucky():
    """Scores of 300 members and 300 others in turn, but for the highest, which are eight members'."""
    members = np.r_[np.ones(8), np.arange(592) % 2]
    return pd.DataFrame({"score": np.arange(600.0, 0.0, -1.0), "member": members.astype(int)})


def labelled(observed, unobserved, **columns):
    members = np.r_[np.ones(len(observed)), np.zeros(len(unobserved))].astype(int)
    return pd.DataFrame({"score": np.r_[observed, unobserved], "member": members} | columns)


def memaudit(repetitions):
    observed, unobserved = leaking(100, 2.0)
    canaries = [
        {"included": included, "repetitions": times, "scores": {"headline_score": float(value)}}
        for included, values in ((True, observed), (False, unobserved))
        for value, times in zip(values, np.resize(repetitions, len(values)).tolist(), strict=True)
    ]
    return {"schema_version": "1.2.0", "membership": {"n_members": 100}, "per_canary": canaries}


# Ten files as users of other tools keep them: how each is written, what is asked of it, the opinion, and its reason.
OBSERVED, UNOBSERVED = leaking()
FILES = {
    "honest scores": (
        lambda path: labelled(OBSERVED, UNOBSERVED, epsilon=1.0).to_csv(path, index=False),
        {"inclusion": "coin"},
        (Opinion.SUPPORTED, "the proven bound is 1.37"),
    ),
    "threshold chosen": (
        lambda path: lucky().to_csv(path, index=False),
        {"epsilon": 0.26},
        (Opinion.UNSUPPORTED, "choosing the threshold on the same scores"),
    ),
    "direction chosen": (
        lambda path: (
            pd.DataFrame({"in_canary_scores": -lucky().score[lucky().member == 1], "out_canary_scores": -lucky().score})
            .assign(out_canary_scores=lambda frame: frame.out_canary_scores.where(lucky().member == 0))
            .to_csv(path, index=False)
        ),
        {"epsilon": 0.26},
        (Opinion.UNSUPPORTED, "choosing the threshold and the direction on the same scores"),
    ),
    "number of guesses chosen": (
        lambda path: (
            pd.DataFrame({"m": 1000, "r": [10, 20, 50, 100, 200], "v": [9, 15, 30, 56, 105]})
            .assign(eps=[0.42, 0.0, 0.0, 0.0, 0.0])
            .to_csv(path, index=False)
        ),
        {},
        (Opinion.UNSUPPORTED, "choosing the number of guesses on the same scores"),
    ),
    "cap of Clopper–Pearson": (
        lambda path: labelled(OBSERVED + 30.0, UNOBSERVED, eps=5.11).to_csv(path, index=False),
        {},
        (Opinion.AT_ITS_CAP, "is its cap (Clopper–Pearson)"),
    ),
    "PrivacyGuard at its cut": (
        lambda path: path.write_text(json.dumps({"eps": 6.2146, "data_size": {"train_size": 500, "test_size": 800}})),
        {},
        (Opinion.AT_ITS_CAP, "log of the number of scores"),
    ),
    "more than so many canaries give": (
        lambda path: labelled(OBSERVED, UNOBSERVED).to_csv(path, index=False),
        {"epsilon": 20.0},
        (Opinion.IMPOSSIBLE, "at most 5.8"),
    ),
    "more than without a Gaussian curve": (
        lambda path: labelled(OBSERVED + 1.2, UNOBSERVED).to_csv(path, index=False),
        {"epsilon": 8.0},
        (Opinion.CONDITIONAL, "the trade-off curve is Gaussian (gaussian-dp)"),
    ),
    "guesses of PrivacyGuard": (
        lambda path: path.write_text(json.dumps({"m": 1000, "c": 170, "c_cap": 200, "eps": 2.0, "delta": _DELTA})),
        {"tried": 1, "delta": None},
        (Opinion.CONDITIONAL, "the trade-off curve is Gaussian (one-run-gaussian)"),
    ),
    "guesses, number declared or not": (
        lambda path: path.write_text(json.dumps([{"num_canaries": 1000, "num_guesses": 100, "correct_guesses": 80}])),
        {"epsilon": 0.9},
        (Opinion.CONDITIONAL, "the number of guesses was declared before the scores were seen"),
    ),
    "memaudit": (
        lambda path: path.write_text(json.dumps(memaudit([1, 4, 16]))),
        {},
        (Opinion.NOT_JUDGED, "No ε is reported"),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_ten_files_of_other_tools_get_the_right_opinion(name, tmp_path):
    write, asked, (opinion, reason) = FILES[name]
    path = tmp_path / "result.csv"
    write(path)
    if path.read_text(encoding="utf-8").startswith(("{", "[")):
        path = path.rename(tmp_path / "result.json")
    reviewed = review(path, **{"delta": _DELTA} | asked)
    assert reviewed.opinion is opinion
    assert reason in reviewed.answer


def test_a_bound_below_the_cap_of_another_method_is_no_cap():
    # 4.90 is also what two-sided Clopper–Pearson limits give at most; here the proven bound is larger and is no cap.
    rng = np.random.default_rng(0)
    observed = np.r_[rng.normal(40.0, 1.0, 499), 0.0]
    reviewed = review(labelled(observed, UNOBSERVED), delta=_DELTA, epsilon=4.90, inclusion="independent")
    assert reviewed.opinion is Opinion.SUPPORTED


@pytest.mark.parametrize("inclusion", list(Inclusion))
def test_the_coverage_of_a_bound_is_what_an_audit_says(inclusion):
    reviewed = review(labelled(OBSERVED, UNOBSERVED), delta=_DELTA, epsilon=0.1, inclusion=inclusion)
    audited = audit(Scores(OBSERVED, UNOBSERVED, kind="any", inclusion=inclusion), _DELTA)
    there = {row.name: (row.basis, pytest.approx(row.low)) for row in audited.bounds if row.kind == "lower bound"}
    here = {bound.name: (bound.basis.partition(";")[0], bound.epsilon) for bound in reviewed.bounds}
    assert here == there
    # A bound of no known coverage supports nothing by itself.
    assert (reviewed.opinion is Opinion.CONDITIONAL) == (inclusion is Inclusion.FIXED)
    assert ("No bound is proven" in reviewed.answer) == (inclusion is Inclusion.FIXED)


def test_each_line_is_judged_at_its_own_delta_and_what_differs_is_said():
    counts = {"m": [1000] * 4, "r": [10, 100] * 2, "v": [9, 90] * 2}
    found = review(pd.DataFrame(counts | {"eps": [1.0, 2.0, 1.5, 3.0], "delta": [1e-5, 1e-5, 1e-6, 1e-6]}))
    assert (found.opinion, found.delta, found.reported) == (Opinion.UNSUPPORTED, 1e-6, 3.0)
    assert found.canaries == "2 numbers of guesses on 1,000 canaries"
    (other,) = found.others
    assert other.startswith("The reported ε = 2 is supported only if the ")
    assert other.endswith("at δ = 1e-05.")
    assert other in " ".join(str(found).split())
    asked = review(pd.DataFrame(counts | {"eps": 2.0, "delta": 1e-5}), delta=1e-7, epsilon=1.0)
    assert (asked.delta, asked.reported) == (1e-7, 1.0)
    assert asked.others == (
        "delta = 1e-07 was given, and the source has 1e-05",
        "epsilon = 1 was given, and the source has 2",
    )


def test_a_bound_that_is_not_the_first_had_to_be_chosen_before():
    found = review(labelled(OBSERVED + 2.0, UNOBSERVED), delta=_DELTA, epsilon=4.35, inclusion="coin")
    first, second = found.bounds[:2]
    assert first.epsilon < 4.35 < second.epsilon
    assert found.opinion == Opinion.CONDITIONAL
    condition = "the bound was chosen before the scores were seen (fixed-sequence)"
    assert f"is supported only if {condition}." in found.answer


def test_conditions_are_clauses_of_the_answer():
    found = review(labelled(OBSERVED, UNOBSERVED), delta=_DELTA, epsilon=1.0)
    assert found.opinion == Opinion.CONDITIONAL
    assert " is supported only if scores do not depend on each other (fixed-sequence). " in found.answer
    # What bounds of scores assume has a clause each.
    shown = {part for bound in found.bounds for part in bound.condition.split(", ")}
    assert shown == {"independent scores", FAIR_COINS, GAUSSIAN_CURVE} < set(module._CLAUSES)
    counts = review(pd.DataFrame({"m": [1000], "r": [100], "v": [99]}), delta=1e-5, epsilon=2.0)
    assert {part for bound in counts.bounds if bound.condition for part in bound.condition.split(", ")} <= {
        *module._CLAUSES, "the number of guesses was declared before the scores were seen"
    }  # fmt: skip


def test_coins_that_the_numbers_refute_prove_nothing():
    table = labelled(np.linspace(10.0, 12.0, 1000), np.linspace(0.0, 2.0, 50))
    found = review(table, delta=_DELTA, epsilon=3.0, inclusion="coin")
    audited = audit(
        Scores(np.linspace(10.0, 12.0, 1000), np.linspace(0.0, 2.0, 50), kind="any", inclusion="coin"), _DELTA
    )
    (warning,) = (each for each in audited.warnings if each.kind == "coin")
    assert any(warning.message in other for other in found.others)
    assert {bound.basis.partition(",")[0].partition(";")[0] for bound in found.bounds} == {"heuristic"}
    assert found.opinion == Opinion.CONDITIONAL


def test_bounds_are_those_of_an_audit():
    import canaryproof as cp

    audited = cp.audit(cp.Scores(OBSERVED, UNOBSERVED, kind="any", inclusion="coin"), delta=_DELTA)
    reviewed = review(labelled(OBSERVED, UNOBSERVED), delta=_DELTA, inclusion="coin")
    assert audited.bound is not None
    assert reviewed.bounds[0].epsilon == audited.bound.epsilon


def test_counts_give_clopper_and_pearsons_limit_without_a_delta():
    reviewed = review(pd.DataFrame({"m": [200], "r": [100], "v": [80]}), delta=0.0, tried=1)
    rate = float(binomial.lower(80, 100, 0.95))
    assert reviewed.bounds[0].epsilon == pytest.approx(math.log(rate / (1.0 - rate)), rel=1e-6)


def test_a_threshold_that_was_chosen_on_tied_scores_takes_none_of_them_apart():
    """Clopper and Pearson's limits of both rates at the one threshold of a confusion matrix, by scipy."""
    tp, fp, fn, tn = 120, 30, 380, 470
    found = review(pd.DataFrame({"tp": [tp], "fp": [fp], "fn": [fn], "tn": [tn]}), delta=0.0)
    hit, quiet = (stats.beta.ppf(0.05, right, wrong + 1) for right, wrong in ((tp, fn), (tn, fp)))
    alarm, miss = (stats.beta.ppf(0.95, wrong + 1, right) for right, wrong in ((tn, fp), (tp, fn)))
    expected = max(math.log(hit / alarm), math.log(quiet / miss))
    assert found.choices[0].epsilon == pytest.approx(expected, rel=1e-9)


def test_more_numbers_that_were_tried_cost_more():
    counts = pd.DataFrame({"m": [1000], "r": [100], "v": [80]})
    bounds = [review(counts, delta=_DELTA, tried=tried).bounds[0].epsilon for tried in (1, 10, 100, 1000)]
    assert bounds == sorted(bounds, reverse=True)
    assert review(counts, delta=_DELTA).bounds[0].epsilon == bounds[-1]


def test_bounds_of_one_of_six_scores_have_a_sixth_of_the_level_each():
    scores = labelled(OBSERVED + 0.8, UNOBSERVED)
    asked = {"delta": _DELTA, "epsilon": 0.9, "inclusion": "coin"}
    one, six, unknown = (review(scores, **asked, tried=tried) for tried in (1, 6, None))
    paid = audit(Scores(OBSERVED + 0.8, UNOBSERVED, kind="any", inclusion="coin"), _DELTA, 1.0 - 0.05 / 6.0)
    assert {bound.name: bound.epsilon for bound in six.bounds} == {row.name: row.low for row in paid.bounds}
    for bound, cheap in zip(six.bounds, one.bounds, strict=True):
        assert (bound.epsilon < cheap.epsilon, bound.cap < cheap.cap) == (True, True)
        assert bound.basis == f"{cheap.basis}, and pays for one of 6 scores"
    # Without it, nothing is paid for, and the review says that it does not know.
    assert unknown.bounds == one.bounds
    assert [line for line in unknown.unknown if "were tried on these records" in line]
    assert not [line for line in (*one.unknown, *six.unknown) if "were tried on these records" in line]
    # What another tool printed may be a cap at all of the level.
    assert six.caps == one.caps


def test_each_choice_breaks_its_level_without_any_leak():
    shares = {choice.name: choice.false_share for choice in review(lucky(), delta=_DELTA).choices}
    assert shares["the threshold and the direction"] > shares["the threshold"] > 0.05
    assert shares["the number of guesses"] > 0.05


@pytest.mark.parametrize(
    "source",
    [labelled(OBSERVED, UNOBSERVED), pd.DataFrame({"m": [1000], "r": [100], "v": [56]})],
    ids=["scores", "counts"],
)
def test_what_some_method_could_give_is_not_impossible(source):
    caps = sorted(review(source, delta=_DELTA).caps.values())
    between = [0.5 * (low + high) for low, high in pairwise(caps) if high > 1.05 * low]
    assert between
    for reported in between:
        assert review(source, delta=_DELTA, epsilon=reported).opinion is Opinion.UNSUPPORTED
    assert review(source, delta=_DELTA, epsilon=1.02 * caps[-1]).opinion is Opinion.IMPOSSIBLE


def test_infinite_scores_count_by_their_rank():
    observed = np.where(OBSERVED > 1.0, np.inf, OBSERVED)
    largest = np.where(OBSERVED > 1.0, 1e6, OBSERVED)
    infinite, finite = (review(labelled(each, UNOBSERVED), delta=_DELTA) for each in (observed, largest))
    assert infinite == finite


def test_repeated_canaries_are_said_to_be_a_group(tmp_path):
    path = tmp_path / "memaudit-report.json"
    path.write_text(json.dumps(memaudit([1, 4, 16])))
    assert "16 equal records together" in str(review(path, delta=_DELTA)).replace("\n            ", " ")
    path.write_text(json.dumps(memaudit([1])))
    assert "records together" not in str(review(path, delta=_DELTA))


WRONG = {
    "a,b\n1,2\n": "must have columns score and member",
    "score,member\n1,2\n": "member, line 2: must be 1 or true",
    "score,member\n1,1\n2,1\n": "unobserved: is needed for scores of any kind",
    "0.01\n0.02\n": "unobserved: is needed for a review; without it, only audit reads cosines",
    "m,r,v\n10,20,5\n": "line 2: r: must be at most m = 10, not 20",
    "m,r,v\n10,5,6\n": "line 2: v: must be a whole number from 0 to r = 5, not 6",
    "m,r,v\n": "must have at least one line of counts",
    "observed,unobserved\n1,x\n2,y\n": "unobserved, line 2: must be a number",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_gets_one_line(text, tmp_path):
    path = tmp_path / "wrong.csv"
    path.write_text(text, encoding="utf-8")
    shown = CliRunner().invoke(main, ["review", str(path), "--delta", "1e-5"])
    assert shown.exit_code == 2
    assert WRONG[text] in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_a_parquet_file_gives_what_its_frame_gives(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "scores.parquet"
    frame = labelled(OBSERVED, UNOBSERVED, epsilon=1.0)
    frame.assign(member=frame.member.astype(bool)).to_parquet(path)
    assert review(path, delta=_DELTA) == review(frame, delta=_DELTA)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match=r"^[^\n]*scores\.parquet: is no table that can be read[^\n]*$"):
        review(path, delta=_DELTA)


def test_json_has_what_python_has(tmp_path):
    path = tmp_path / "scores.csv"
    labelled(OBSERVED, UNOBSERVED).to_csv(path, index=False)
    shown = CliRunner().invoke(main, ["review", str(path), "--delta", "0", "--epsilon", "1", "--json"])
    assert json.loads(shown.stdout) == review(path, delta=0.0, epsilon=1.0).to_dict()


def made_up(opinion, reported):
    """A review of which no two figures are equal."""
    return Review(
        form="some",
        canaries="some",
        opinion=opinion,
        reported=reported,
        delta=2e-5,
        confidence=0.82,
        bounds=(
            ReviewedBound("first", 1.2349, 4.567, "proven"),
            ReviewedBound("second", 2.3459, 5.678, "proven", "a condition"),
        ),
        caps={"one": 6.7899, "another": 7.8909},
        choices=(Choice("the threshold", 3.4569, 0.34), Choice("the number", 2.9879, None)),
        unknown=("some",),
    )


VALID = "The proven bound is 1.23 at δ = 2e-05."
ANSWERS = {
    (Opinion.NOT_JUDGED, None): f"{VALID} No ε is reported that could be judged.",
    (Opinion.NOT_JUDGED, 5.555): f"The reported ε = 5.555 cannot be judged from sizes alone. {VALID}",
    (
        Opinion.AT_ITS_CAP,
        6.79,
    ): "The reported ε = 6.79 is its cap (one): it says how many records there were, and would "
    f"be the same for any larger leak. {VALID}",
    (Opinion.SUPPORTED, 1.111): "The reported ε = 1.111 is supported: the proven bound is 1.23 with 82% confidence at "
    "δ = 2e-05.",
    (Opinion.CONDITIONAL, 2.222): f"The reported ε = 2.222 is supported only if a condition (second). {VALID}",
    (Opinion.IMPOSSIBLE, 9.876): "The reported ε = 9.876 is impossible as a lower bound with 82% confidence, unless "
    "the trade-off curve is Gaussian or the law of scores without a leak is known: so many records give at most 7.89 "
    f"otherwise, whatever leaks. {VALID}",
    (Opinion.UNSUPPORTED, 3.333): "The reported ε = 3.333 is not supported: choosing the threshold on the same "
    f"scores reaches it. {VALID}",
    (Opinion.UNSUPPORTED, 4.444): "The reported ε = 4.444 is not supported: no choice made on the scores explains it "
    f"either. {VALID}",
}


@pytest.mark.parametrize(("opinion", "reported"), ANSWERS)
def test_a_review_says_its_opinion_and_what_it_rests_on(opinion, reported):
    reviewed = made_up(opinion, reported)
    assert reviewed.answer == ANSWERS[opinion, reported]
    assert " ".join(str(reviewed).split()) == (
        f"{reviewed.answer} Reviewed some: some, at δ = 2e-05 "
        "Bound first ≥ 1.23 at 82%, cap 4.56, proven second ≥ 2.34 at 82%, cap 5.67, proven; and a condition "
        "Caps so many records give at most 6.78 (one), 7.89 (another) "
        "Choice the threshold chosen on these scores would print ε ≥ 3.45; without any leak it prints ε > 0 in 34% of "
        "audits, where 18% may the number chosen on these scores would print ε ≥ 2.98 Unknown some"
    )


def test_without_a_bound_or_a_report_there_is_nothing_to_say():
    reviewed = dataclasses.replace(made_up(Opinion.NOT_JUDGED, None), bounds=())
    assert reviewed.answer == "No ε is reported, and no scores are given."


@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_a_report_within_half_a_percent_of_a_cap_is_the_cap(shift):
    observed, unobserved = OBSERVED[:40] + shift, UNOBSERVED[:40]
    caps = review(labelled(observed, unobserved), delta=_DELTA).caps
    cap = caps["two-sided Clopper–Pearson"]
    for factor, at_cap in ((0.9951, True), (1.0049, True), (1.0051, False), (0.9949, False)):
        opinion = review(labelled(observed, unobserved), delta=_DELTA, epsilon=factor * cap).opinion
        assert (opinion is Opinion.AT_ITS_CAP) == at_cap


def test_each_bound_of_counts_pays_for_the_numbers_that_were_tried():
    """ε and μ of right guesses at the share of α that is left to each number of guesses."""
    canaries, guesses, right = 300, 60, 50
    counts = pd.DataFrame({"m": [canaries], "r": [guesses], "v": [right]})
    for tried, shares in ((1, (1.0, 1.0)), (7, (7.0, 7.0)), (None, (300.0, 1.0, 1.0))):
        bounds = review(counts, delta=0.0, tried=tried).bounds
        names = (
            ("one-run", "one-run, declared", "one-run-gaussian") if tried is None else ("one-run", "one-run-gaussian")
        )
        assert tuple(bound.name for bound in bounds) == names
        for bound, numbers_of in zip(bounds[:-1], shares[:-1], strict=True):
            for epsilon, hits in ((bound.epsilon, right), (bound.cap, guesses)):
                rate = float(stats.beta.ppf(0.05 / numbers_of, hits, guesses - hits + 1))
                assert epsilon == pytest.approx(max(0.0, math.log(rate / (1.0 - rate))), rel=1e-6)
        gaussian = review(counts, delta=_DELTA, tried=tried).bounds[-1]
        for epsilon, hits in ((gaussian.epsilon, right), (gaussian.cap, guesses)):
            mu = gaussian_bound(canaries, guesses, hits, 0.05 / shares[-1])
            # μ is found to 1e-9.
            assert epsilon == pytest.approx(float(epsilon_of_mu(np.array([mu]), _DELTA)[0]), rel=1e-8)


def test_of_very_many_scores_no_share_of_false_alarms_is_simulated(monkeypatch):
    monkeypatch.setattr(module, "_MOST_SCORES", 400 * 100)
    for count, simulated in ((50, True), (51, False)):
        choices = review(labelled(np.arange(count), np.arange(50) + 0.5), delta=_DELTA).choices
        assert [choice.false_share is not None for choice in choices] == [simulated] * 3


def test_numbers_of_guesses_are_tried_as_published_scripts_do():
    ways = module._ways(100)
    numbers_of = sorted({sum(way) for way in ways if 0 in way})
    # A tenth more each time, up to all; as many high ones as low ones, or one kind alone.
    assert numbers_of[:11] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert numbers_of[-1] == 100
    assert all(one < other <= max(1.1 * one, one + 1.0) + 1.0 for one, other in pairwise(numbers_of))
    alone = {(n, 0) for n in numbers_of} | {(0, n) for n in numbers_of}
    assert set(ways) == alone | {(n // 2, n // 2) for n in numbers_of if n > 1}
    assert len(ways) == len(set(ways))


@pytest.mark.parametrize("alpha", [0.05, 0.002])
def test_the_least_number_of_right_guesses_rejects_that_nothing_leaks(alpha):
    # At δ = 0 each guess is right with probability 1/2 if nothing leaks.
    for guesses in (5, 30):
        least = next((n for n in range(guesses + 1) if stats.binom.sf(n - 1, guesses, 0.5) <= alpha), guesses + 1)
        assert module._least_right(40, guesses, 0.0, alpha) == least


def test_a_review_counts_what_it_was_given():
    counts = pd.DataFrame({"m": [1234], "r": [321], "v": [234]})
    several = pd.DataFrame({"m": 1234, "r": [321, 21], "v": [234, 12]})
    assert review(labelled(OBSERVED[:400], UNOBSERVED[:300]), delta=_DELTA).canaries == "400 members against 300 others"
    one, more = (review(given, delta=_DELTA) for given in (counts, several))
    assert one.canaries == "234 right of 321 guesses on 1,234 canaries"
    assert numbers(one.bounds[0].basis)[-1] == "1234"
    assert more.canaries == "2 numbers of guesses on 1,234 canaries"
    assert numbers(more.bounds[0].basis)[-1] == "2"
    assert "7 numbers" in review(counts, delta=_DELTA, tried=7).bounds[0].basis
