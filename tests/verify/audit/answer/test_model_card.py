"""A model card's section has the facts of an audit's record, and says of each what is not known."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import canaryproof as cp
from canaryproof.verify.audit.answer import model_card as model_card_module
from canaryproof.verify.audit.answer.findings import Question
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.markup.digits import round_down
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
        assert facts[finding.question][0] == f"{finding.status}: {finding.because}"
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
    facts = rows(cp.model_card(cp.audit(cp.Scores(-losses[0], -losses[1], kind="any", inclusion="coin"), delta=1e-5)))
    assert facts["claim"][0] == "none"
    assert "each by a fair coin of its own" in facts["canaries"][0]
    assert "from so many canaries" in facts["lower bound"][0]


def test_a_file_and_a_report_give_the_same(audited, tmp_path):
    path = tmp_path / "audit.json"
    path.write_text(audited.to_json(), encoding="utf-8")
    assert CliRunner().invoke(main, ["model-card", str(path)]).stdout == cp.model_card(audited)
    assert cp.model_card({"audit": json.loads(audited.to_json())}) == cp.model_card(audited)


@pytest.mark.parametrize("document", ["3", "[]", "{}", '{"audit": 1}', "broken"])
def test_another_file_gets_one_line(document, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(document, encoding="utf-8")
    with pytest.raises(InputError, match=r"^[^\n]*other\.json: [^\n]*$"):
        cp.model_card(path)


def test_damaged_fields_get_one_line(audited, tmp_path):
    path = tmp_path / "damaged.json"
    document = json.loads(audited.to_json())
    for field in document:
        for damage in (None, "x", [], [1], {}, -1):
            path.write_text(json.dumps(document | {field: damage}), encoding="utf-8")
            shown = CliRunner().invoke(main, ["model-card", str(path)])
            assert shown.exit_code in (0, 2)
            assert shown.stderr.count("\n") == (shown.exit_code == 2)


def test_a_field_that_is_missing_is_named(audited):
    document = json.loads(audited.to_json())
    for field in ("answer", "kind", "inclusion", "estimate", "bounds"):
        record = {name: value for name, value in document.items() if name != field}
        with pytest.raises(
            InputError, match=f"^audit: must be what this version's .* prints; it has no field {field}$"
        ):
            cp.model_card(record)


# A row that the record does not name.
OTHER = {"name": "other"}


def test_each_figure_is_the_records():
    """No two figures of this record are equal."""
    row = {"coverage": "asymptotic", "name": "another"}
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
        "estimates": [OTHER, {"epsilon": 2.24, "low": 1.73, "high": 2.65, "name": "some", "standard_error": 0.31}],
        "bounds": [OTHER, row | {"low": 1.6189, "cap": 5.559}],
    }
    facts = rows(cp.model_card(record))
    assert {fact: known for fact, (known, _) in facts.items()} == {
        "claim": "ε = 4.322 at δ = 2e-05, neighbours: replace",
        "decision": "PASSED",
        "leak": "as claimed: none is seen",
        "estimate": "ε̂ = 2.24 at δ = 2e-05 (82%: 1.73 to 2.65; `some`)",
        "lower bound": "ε ≥ 1.61 at δ = 2e-05 (`another`, asymptotic, at most 5.55 from so many canaries)",
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
    known = {fact: known for fact, (known, _) in rows(cp.model_card(less)).items()}
    assert list(known.values())[:8] == [
        "none",
        "none, as nothing is claimed",
        "none: for a reason",
        "ε ≥ ∞ at δ = 2e-05 (`another`, asymptotic)",
        "1,234 took part; each in a training of its own; scores: cosine",
        "noise multiplier 1.41 (1.21 to ∞)",
        "not computed",
        "one; two",
    ]
    nothing = rows(cp.model_card(less | {"mechanism": None, "bound": None}))
    assert (nothing["measured noise"][0], nothing["lower bound"][0]) == ("not measured", "none")
    figures = {fact: numbers(known) for fact, (known, _) in facts.items()}
    assert figures["claim"] == ["4.322", "2e-05"]
    assert figures["estimate"] == ["2.24", "2e-05", "82", "1.73", "2.65"]
    assert figures["lower bound"] == ["1.61", "2e-05", "5.55"]
    assert figures["canaries"] == ["1234", "2345", "34567"]
    assert figures["measured noise"] == ["1.41", "1.21", "1.754"]
    assert figures["would have been noticed"] == ["47", "90"]
