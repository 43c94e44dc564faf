"""A model card's section has the facts of an audit's record, and says of each what is not known."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
from canaryproof.verify.audit.answer import model_card as model_card_module
from canaryproof.verify.audit.answer import report
from canaryproof.verify.audit.answer.findings import Question
from canaryproof.verify.audit.answer.result import EQUAL_ROUNDS
from canaryproof.verify.audit.bounds.lower_bound import GAUSSIAN_CURVE
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.markup.digits import round_down
from canaryproof.verify.audit.markup.markdown import literal
from canaryproof.verify.command_line import main
from tests.printed import numbers


@pytest.fixture(scope="module")
def audited():
    observed = cp.exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0))
    return cp.audit(cp.Scores(observed, dim=10**6), delta=1e-6, claim=3.01)


def rows(card):
    lines = [line[2:-2].split(" | ") for line in card.splitlines() if line.startswith("| ")][1:]
    found = {fact: (known, unknown) for fact, known, unknown in lines}
    # No two rows have one name.
    assert len(found) == len(lines)
    return found


def test_every_question_has_what_its_answer_leaves_unknown():
    assert list(model_card_module._UNKNOWN) == list(Question)


def test_facts_are_those_of_the_audit(audited):
    facts = rows(cp.model_card(audited))
    assert facts["claim"][0] == "ε = 3.01 at δ = 1e-06, neighbours: add-or-remove"
    assert facts["decision"][0] == audited.decision.outcome
    for finding in audited.findings:
        assert facts[finding.question][0] == f"{finding.status}: {literal(finding.because)}"
    assert f"ε ≥ {round_down(audited.bound.low)} at δ = 1e-06" in facts["lower bound"][0]
    assert f"{int(100 * audited.noticed_share)}%" in facts["would have been noticed"][0]
    assert all(unknown for _, unknown in facts.values())


def test_a_withheld_audit_has_no_numbers():
    noise = np.random.default_rng(1).normal(0.0, 1.54, 20_000)
    canaries = cp.Canaries(seed=7, count=1000, dim=20_000)
    audited_noise = cp.audit_release(noise, canaries, delta=1e-6, noise_multiplier=1.54)
    assert audited_noise.withheld
    facts = rows(cp.model_card(audited_noise))
    assert facts["estimate"][0] == f"none: {audited_noise.warnings[0].message}"
    assert facts["lower bound"][0] == "none"
    assert facts["signs of misuse"][0] != "none"


def test_scores_without_a_claim_or_a_dimension_are_served():
    losses = np.random.default_rng(0).normal([[2.0], [2.6]], 0.5, (2, 500))
    card = cp.model_card(cp.audit(cp.Scores(-losses[0], -losses[1], kind="any", inclusion="coin"), delta=1e-5))
    assert "canar" not in card
    facts = rows(card)
    assert facts["claim"][0] == "none"
    assert "each by a fair coin of its own" in facts["records"][0]
    assert "from so many records" in facts["lower bound"][0]


@pytest.mark.parametrize("suffix", report.SUFFIXES)
def test_a_report_in_every_form_gives_the_same(audited, tmp_path, suffix):
    path = tmp_path / f"audit{suffix}"
    audited.report(path)
    assert CliRunner().invoke(main, ["model-card", str(path)]).stdout == cp.model_card(audited)


@pytest.mark.parametrize("document", ["3", "[]", "{}", '{"audit": 1}', "broken"])
def test_another_file_gets_one_line(document, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(document, encoding="utf-8")
    with pytest.raises(InputError, match=r"^[^\n]*other\.json: [^\n]*$"):
        cp.model_card(path)


def test_what_is_no_report_is_refused(audited, tmp_path):
    path = tmp_path / "audit.json"
    path.write_text(audited.to_json(), encoding="utf-8")
    with pytest.raises(InputError, match=r"audit\.json: schema: is missing"):
        cp.model_card(path)
    for source in (None, 3, {"audit": json.loads(audited.to_json())}, b"audit.json"):
        with pytest.raises(ValueError, match=r"^source: must be an audit, or the path of its report, not "):
            cp.model_card(source)


def test_a_report_that_was_changed_or_that_another_version_made_gets_no_card(audited, tmp_path):
    path = tmp_path / "audit.json"
    audited.report(path)
    whole = path.read_text()
    path.write_text(whole.replace("nothing", "Nothing", 1))
    with pytest.raises(InputError, match=r"audit\.json: was changed after it was written\. "):
        cp.model_card(path)
    document = json.loads(whole)
    path.write_text(report.dump(report.seal(document | {"versions": {"canaryproof": "0.2.0"}})) + "\n")
    with pytest.raises(InputError, match=r"audit\.json: The report was made by canaryproof 0\.2\.0, "):
        cp.model_card(path)


def changed_records(record):
    """Yield records with one value changed, at any depth, and the value."""
    for key, value in record.items() if isinstance(record, dict) else enumerate(record):
        for other in (None, "x", [], [1], {}, -5, 7, 1e308, 10**400, True, "\x1b[2J", "a\nb", "x" * 2000):
            if type(other) is not type(value) or other != value:
                yield {**record, key: other} if isinstance(record, dict) else [*record[:key], other, *record[key + 1 :]]
        if isinstance(value, dict | list):
            for inner in changed_records(value):
                yield {**record, key: inner} if isinstance(record, dict) else [*record[:key], inner, *record[key + 1 :]]


def test_no_value_of_a_careful_forger_leaves_a_traceback_or_another_line(audited):
    record = {name: value for name, value in report.numbers(audited).items() if name in FIELDS}
    record["findings"], record["bounds"] = record["findings"][:2], record["bounds"][:1]
    record["bound"] = {"name": record["bounds"][0]["name"]}
    lines = len(cp.model_card(audited).splitlines())
    for changed in changed_records(record):
        try:
            card = model_card_module._card("audit", changed)
        except InputError as error:
            card = str(error)
        assert all(map(str.isprintable, card.splitlines()))
        assert len(card.splitlines()) <= lines


FIELDS = {field.name for field in dataclasses.fields(model_card_module._CardRecord)}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", -5),
        ("delta", -3),
        ("confidence", 7),
        ("claim", -2),
        ("noticed", 99.0),
        ("noticed", 1e308),
        ("inclusion", "certified"),
        ("decision", {"outcome": "CERTIFIED"}),
        ("findings", [{"question": "leak", "status": "proven", "because": "x"}]),
        ("answer", "x" * 1001),
        ("answer", "a\n# Certified"),
        ("kind", "\x1b[32m"),
        ("bound", {"name": "none"}),
        ("count", 10**400),
    ],
)
def test_a_record_that_no_audit_has_is_refused(audited, field, value):
    with pytest.raises(InputError, match=r"^audit: "):
        model_card_module._card("audit", report.numbers(audited) | {field: value})


def test_markdown_and_html_of_a_report_are_words(audited):
    hostile = "# <b>Certified</b> | [x](http://y) `z` *w*"
    findings = [{"question": "leak", "status": "as claimed", "because": hostile}]
    card = model_card_module._card("audit", report.numbers(audited) | {"answer": hostile, "findings": findings})
    escaped = r"\# \<b\>Certified\</b\> {} \[x\](http://y) \`z\` \*w\*"
    assert card.splitlines()[2] == escaped.format("|")
    assert rows(card.replace(r"\|", "BAR"))["leak"][0] == f"as claimed: {escaped.format('BAR')}"


def test_a_field_that_is_missing_is_named(audited):
    document = report.numbers(audited)
    for field in FIELDS:
        record = {name: value for name, value in document.items() if name != field}
        with pytest.raises(InputError, match=f"^audit: {field}: is missing"):
            model_card_module._card("audit", record)


# A row that the record does not name.
OTHER = {
    "name": "other",
    "epsilon": 1.0,
    "low": 1.0,
    "high": 1.0,
    "standard_error": 1.0,
    "cap": 1.0,
    "coverage": "",
    "assumes": "",
}


def test_each_figure_is_the_records():
    """No two figures of this record are equal."""
    row = {"coverage": "asymptotic", "name": "another", "assumes": GAUSSIAN_CURVE}
    value = {"epsilon": 2.24, "low": 1.73, "high": 2.65, "name": "some", "standard_error": 0.31}
    record = {
        "answer": "",
        "decision": {"outcome": "PASSED"},
        "findings": [{"question": "leak", "status": "as claimed", "because": "none is seen", "do": "Nothing."}],
        "claim": 4.3216,
        "delta": 2e-5,
        "confidence": 0.82,
        "neighbours": "replace",
        "count": 1234,
        "null_count": 2345,
        "dim": 34_567,
        "kind": "cosine",
        "inclusion": "fixed",
        "mechanism": {"claimed": 1.7543, "value": 1.41, "low": 1.21, "high": None, "standard_error": 0.143},
        "noticed": 0.479,
        "warnings": [],
        "estimate": {"name": "some", "version": 7},
        "no_estimate": None,
        "bound": {"name": "another", "version": 8},
        "estimates": [OTHER, value | {"assumes": EQUAL_ROUNDS}],
        "bounds": [OTHER, row | {"low": 1.6189, "cap": 5.559}],
    }
    facts = rows(model_card_module._card("audit", record))
    assert {fact: known for fact, (known, _) in facts.items()} == {
        "claim": "ε = 4.322 at δ = 2e-05, neighbours: replace",
        "decision": "PASSED",
        "leak": "as claimed: none is seen",
        "estimate": "ε̂ = 2.24 at δ = 2e-05 (82%: 1.73 to 2.65; `some`), if all rounds have equal noise",
        "lower bound": "ε ≥ 1.61 at δ = 2e-05 (`another`, asymptotic, if the trade-off curve is Gaussian, at most 5.55 "
        "from so many canaries)",
        "canaries": "1,234 took part against 2,345 that did not, in 34,567 dimensions; chosen in advance; "
        "scores: cosine",
        "measured noise": "noise multiplier 1.41 (1.21 to ∞); claimed 1.754",
        "would have been noticed": "noise at 47% of the claim or less, with probability 90%",
        "signs of misuse": "none",
        **dict.fromkeys(
            ("training data and whose they are", "purpose and release of the model", "other attacks"),
            "not part of an audit",
        ),
    }
    less = record | {
        "decision": None,
        "findings": [],
        "claim": None,
        "null_count": None,
        "dim": None,
        "inclusion": "independent",
        "mechanism": record["mechanism"] | {"claimed": None},
        "noticed": None,
        "warnings": [{"kind": "one"}, {"kind": "two"}],
        "estimate": None,
        "no_estimate": "for a reason",
        "bounds": [row | {"low": None, "cap": None}],
    }
    known = {fact: known for fact, (known, _) in rows(model_card_module._card("audit", less)).items()}
    assert list(known.values())[:8] == [
        "none",
        "none, as nothing is claimed",
        "none: for a reason",
        "ε ≥ ∞ at δ = 2e-05 (`another`, asymptotic, if the trade-off curve is Gaussian)",
        "1,234 took part; each in a training of its own; scores: cosine",
        "noise multiplier 1.41 (1.21 to ∞)",
        "not computed",
        "one; two",
    ]
    nothing = rows(model_card_module._card("audit", less | {"mechanism": None, "bound": None}))
    assert (nothing["measured noise"][0], nothing["lower bound"][0]) == ("not measured", "none")
    figures = {fact: numbers(known) for fact, (known, _) in facts.items()}
    assert figures["claim"] == ["4.322", "2e-05"]
    assert figures["estimate"] == ["2.24", "2e-05", "82", "1.73", "2.65"]
    assert figures["lower bound"] == ["1.61", "2e-05", "5.55"]
    assert figures["canaries"] == ["1234", "2345", "34567"]
    assert figures["measured noise"] == ["1.41", "1.21", "1.754"]
    assert figures["would have been noticed"] == ["47", "90"]
