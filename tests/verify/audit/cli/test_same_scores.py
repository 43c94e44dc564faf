"""One file through audit and review: the same finding on its input, the same bounds, the same words for coverage."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.command_line import main

RNG = np.random.default_rng(6)
MEMBERS, OTHERS = RNG.normal(1.2, 1.0, 150), RNG.normal(0.0, 1.0, 150)
# Kind and scores: those of a leak, raw losses, rows that were copied, certain guesses, whole numbers.
SCORES = {
    "leak": ("any", MEMBERS, OTHERS),
    "losses": ("any", -MEMBERS, -OTHERS),
    "copies": ("any", np.r_[MEMBERS, MEMBERS], np.r_[OTHERS, OTHERS]),
    "certain": ("any", np.where(MEMBERS > 2.0, np.inf, MEMBERS), OTHERS),
    "whole": ("any", np.rint(1e4 * MEMBERS).astype(np.int64), np.rint(1e4 * OTHERS).astype(np.int64)),
    "cosines": ("cosine", MEMBERS / 10.0, OTHERS / 10.0),
    "negative cosines": ("cosine", -MEMBERS / 10.0, -OTHERS / 10.0),
}
PAIRS = ["observed/unobserved", "in_canary_scores/out_canary_scores", "in/out", "train/test", "member/nonmember"]
PAIRS += ["members/nonmembers", "loss_train/loss_test", "train_loss/test_loss"]
FORMS = [
    *(f"{pair}.csv" for pair in PAIRS),
    "score/member.csv",
    "loss/took part.csv",
    "two.csv",
    "two.npy",
    "saved.json",
]
FORMS += ["in/out.npz", "observed/unobserved.npz", "score/member.json", "train/test.json"]
FORMS += ["score/member.parquet", "in/out.parquet", "observed/unobserved.parquet"]
# Each form and each kind of scores comes among the first ones.
CASES = [(form, "leak") for form in FORMS] + [("two.npy", name) for name in SCORES if name != "leak"]
FIRST = len(CASES)
CASES += [(form, name) for form in FORMS for name in SCORES if (form, name) not in CASES]


def write(form, kind, observed, unobserved):
    """Write scores in a form, and return the arguments that read them again."""
    names, _, suffix = form.rpartition(".")
    path = f"s.{suffix}"
    if names == "saved":
        Scores(observed, unobserved, kind=kind).save(path)
        return [path]
    if names == "two":
        for name, group in ((path, observed), (f"o.{suffix}", unobserved)):
            np.save(name, group) if suffix == "npy" else np.savetxt(name, group, fmt="%.17g")
        return [path, "--unobserved", f"o.{suffix}"]
    pair = names.split("/")
    if pair[1] in ("member", "took part"):
        columns = {pair[0]: np.r_[observed, unobserved], pair[1]: np.repeat([1, 0], [len(observed), len(unobserved)])}
    else:
        columns = dict(zip(pair, (observed, unobserved), strict=True))
    if suffix == "npz":
        np.savez(path, **columns)
    elif suffix == "json":
        # It has no infinity.
        lists = {name: np.minimum(values, 1e308).tolist() for name, values in columns.items()}
        Path(path).write_text(json.dumps(lists))
    else:
        frame = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    return [path, "--score", pair[0], "--member", pair[1]] if pair[1] == "took part" else [path]


def both(*arguments):
    """Return what audit and review say of a file."""
    documents = []
    for command, reported in (("audit", "--claim"), ("review", "--epsilon")):
        result = CliRunner().invoke(main, [command, *arguments, "--delta", "1e-5", reported, "1", "--json"])
        assert (result.exit_code, result.stderr) == (0, "")
        documents.append(json.loads(result.stdout))
    return documents


def condition_of(bound):
    return ", if the trade-off curve is Gaussian" if "Gaussian trade-off curve" in bound["assumes"] else ""


@pytest.mark.parametrize(
    ("form", "name"), [pytest.param(*case, marks=[pytest.mark.deep] * (i >= FIRST)) for i, case in enumerate(CASES)]
)
def test_audit_and_review_say_the_same_of_a_file(form, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if form.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="reads .parquet")
    kind, observed, unobserved = SCORES[name]
    usual = "cosine" if "observed" in form or form.startswith("two") else "any"
    said = [] if kind == usual or form == "saved.json" else ["--kind", kind]
    audited, reviewed = both(*write(form, kind, observed, unobserved), *said)
    assert (audited["kind"], audited["count"], audited["null_count"]) == (kind, len(observed), len(unobserved))
    assert reviewed["canaries"] == f"{len(observed)} members against {len(unobserved)} others"
    finding = audited["findings"][0]
    assert (finding["question"], finding["status"] == "failed") == ("input", name in WRONG)
    assert sorted(
        (bound["name"], bound["epsilon"], bound["cap"], bound["basis"]) for bound in reviewed["bounds"]
    ) == sorted(
        (
            bound["name"],
            bound["low"],
            bound["cap"],
            f"{bound['coverage']}{condition_of(bound)}; needs {bound['assumes'].replace(', ', ' and ')}",
        )
        for bound in audited["bounds"]
        if bound["kind"] == "lower bound"
    )
    assert [f"{warning['message']} {warning['what_to_do']}" for warning in audited["warnings"]] == [
        *filter(None, [reviewed["withheld"]]),
        *reviewed["others"],
    ]
    if name in WRONG:
        assert (reviewed["opinion"], reviewed["bounds"], audited["decision"]["status"]) == ("not judged", [], 4)
        assert WRONG[name] in reviewed["withheld"]
        assert finding["do"] in reviewed["withheld"]


WRONG = {"losses": "Negate", "copies": "Give each score once", "negative cosines": "Check the sign"}


@pytest.mark.parametrize("inclusion", ["fixed", "coin", "independent"])
@pytest.mark.parametrize("name", [name for name, (kind, *_) in SCORES.items() if kind == "any"])
def test_scores_of_anything_are_called_what_they_are(name, inclusion, tmp_path, monkeypatch):
    """Losses have no canaries, cosines or dimension."""
    monkeypatch.chdir(tmp_path)
    file = write("in/out.csv", *SCORES[name])
    for command in (("audit", "--claim", "1", "--details"), ("audit", "--claim", "0.1"), ("review", "--epsilon", "2")):
        result = CliRunner().invoke(main, [*command, *file, "--delta", "1e-5", "--inclusion", inclusion])
        assert (result.exit_code, result.stderr) == (0, "")
        text = result.stdout.lower().replace("canaryproof", "")
        assert [word for word in ("canar", "cosine", "dimension", "plan ") if word in text] == []


def rates(observed, unobserved, thresholds):
    counts = np.array([[(group >= each).sum() for each in thresholds] for group in (observed, unobserved)])
    return pd.DataFrame({"tpr": counts[0] / len(observed), "fpr": counts[1] / len(unobserved)}), counts


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("form", ["matrix", "matrices", "rates"])
def test_counts_at_thresholds_are_the_scores_that_they_are_of(form, suffix, tmp_path, monkeypatch):
    """A table of thresholds gives what scores give that are rounded down to these thresholds."""
    monkeypatch.chdir(tmp_path)
    thresholds = [0.9] if form == "matrix" else np.linspace(-1.0, 3.0, 9)
    table, (hits, alarms) = rates(MEMBERS, OTHERS, thresholds)
    table = table.assign(members=150, others=150)
    if form != "rates":
        table = pd.DataFrame({"tp": hits, "fn": 150 - hits, "fp": alarms, "tn": 150 - alarms})
    file = f"t.{suffix}"
    # The order of lines says nothing.
    shuffled = table.sample(frac=1.0, random_state=0)
    shuffled.to_csv(file, index=False) if suffix == "csv" else shuffled.to_json(
        file, orient="records", double_precision=15
    )
    audited, reviewed = both(file)
    rounded = [np.searchsorted(np.sort(thresholds), group, side="right") for group in (MEMBERS, OTHERS)]
    np.savez("s.npz", observed=rounded[0], unobserved=rounded[1])
    same_audit, same_review = both("s.npz", "--kind", "any")
    assert audited["bounds"] == same_audit["bounds"]
    assert {**reviewed, "form": ""} == {**same_review, "form": ""}
    assert any(bound["low"] > 0.0 for bound in audited["bounds"])


ROC = "fpr,tpr,members,others\n"
REFUSED = {
    ROC + "0,0.5,10,10\n0.1,0.4,10,10\n": "line 3: must have at least 5 members above its threshold, as many as line 2",
    ROC + "0.25,0.5,10,10\n": "line 2: fpr: must be a share of 10, and 0.25 is none",
    ROC + "0.1,0.5,1000,1000\n": "line 2: tpr: must have more digits, as 0.5 may be 450 to 550 of 1,000",
    ROC + "0.1,0.5,10,10\n0.1,0.5,11,10\n": "members: must have one number in all lines",
    "fpr,tpr\n0.1,0.5\n": "must have columns members and others, the numbers that the rates are of",
    "tp,fp,fn,tn\n5,1,5,9\n5,1,5,8\n": "line 3: must be of as many members and others as the first line",
    "tp,fp,fn,tn\n5,-1,5,9\n": "line 2: fp: must be a whole number from 0 to 10000000, not -1.0",
    "tp,fp,fn,tn\n": "must have at least one line",
    "m,r,v\n10,5,4\n": 'has no scores, and "canaryproof review" says what its counts of guesses show',
}


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_counts_are_refused_in_one_line(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    for command in ("audit", "review") if text[0] != "m" else ("audit",):
        result = CliRunner().invoke(main, [command, str(tmp_path / "t.csv"), "--delta", "1e-5"])
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert f"t.csv: {REFUSED[text]}" in result.stderr


def test_records_that_stand_in_the_data_several_times_are_reviewed_and_hold_no_claim(tmp_path):
    canaries = [{"included": i < 4, "repetitions": 16, "scores": {"headline_score": float(i)}} for i in range(8)]
    (tmp_path / "memaudit-report.json").write_text(json.dumps({"per_canary": canaries}))
    result = CliRunner().invoke(main, ["audit", str(tmp_path / "memaudit-report.json"), "--delta", "1e-5"])
    assert result.exit_code == 2
    assert "has canaries that are up to 16 times in the data, and a claim is about one record" in result.stderr
