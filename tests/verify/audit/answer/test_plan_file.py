import dataclasses
import hashlib
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import canaryproof as cp
from canaryproof.verify.audit.answer import plan_file
from canaryproof.verify.audit.answer.designs import DesignBounds
from canaryproof.verify.audit.answer.findings import RULES_VERSION
from canaryproof.verify.audit.answer.plan import plan
from canaryproof.verify.audit.answer.rounds_plan import plan_rounds
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError

SCHEMA = json.loads(Path(plan_file.__file__).with_name("plan_schema.json").read_text())
SECRET = plan_file.Secret(5, "00ff")
DIM = 1000
# Plans of each kind, of few canaries.
PLANS = {
    "release": lambda: plan(1.0, DIM, delta=1e-4),
    "replace": lambda: plan(1.0, DIM, delta=1e-4, neighbours="replace"),
    "sum": lambda: plan(1.0, DIM, rounds=4, delta=1e-4, claim=3.0),
    "all rounds": lambda: plan(1.0, DIM, rounds=2, delta=1e-4, all_rounds=True),
    "known rounds": lambda: plan_rounds(1.0, DIM, 4, participations=1, delta=1e-4),
    "two rounds": lambda: plan_rounds(1.0, DIM, 4, participations=2, delta=1e-4),
    "likelihood": lambda: plan_rounds(1.0, DIM, 4, rate=0.5, delta=1e-4),
    "known data": lambda: plan_rounds(1.0, DIM, 4, participations=1, delta=1e-4, data_norm=1e6),
}


def written(planned, folder):
    public, secret = plan_file.file_contents(planned, SECRET, {"count": planned.count})
    path = folder / "plan.json"
    path.write_bytes(public)
    plan_file.secret_path(path).write_bytes(secret)
    return path


def carried_out(planned):
    """Carry the lines of a plan out, with its noise; return the audit."""
    names = {"clip_norm": 1.0}
    lines, rng = planned.commands(SECRET.seed), np.random.default_rng(0)
    if isinstance(planned, type(PLANS["release"]())) and not planned.all_rounds:
        canaries = cp.Canaries(SECRET.seed, planned.count, DIM)
        release = canaries.sum(np.arange(planned.count)) + planned.release_noise * rng.normal(size=DIM)
        claim = cp.accounting.epsilon_delta(planned.claim, planned.delta, neighbours=planned.neighbours)
        asked = {"noise_multiplier": planned.release_noise, "neighbours": planned.neighbours}
        return cp.audit_release(release, canaries, planned.delta, claim=claim, **asked)
    begin = next(i for i, line in enumerate(lines) if line.startswith("total += "))
    exec("\n".join(lines[:begin]), names)
    for t in range(4 if hasattr(planned, "mechanism") else planned.rounds):
        names |= {"t": t, "total": np.zeros(DIM), "others": np.zeros(DIM)}
        exec(lines[begin], names)
        names["delta"] = names["total"] + rng.normal(size=DIM)
        exec(lines[begin + 1], names)
    exec(lines[begin + 2], names)
    if "observed" in names:
        scores = cp.Scores(names["observed"], names["unobserved"], dim=DIM, inclusion="coin")
        return cp.audit(scores, planned.delta, claim=planned.claim)
    return eval(lines[-1].removeprefix("print(").removesuffix(")"), names)


SLOW = ("likelihood", "all rounds")


@pytest.mark.deep(beyond=2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.deep) if name in SLOW else name for name in PLANS]
)
def test_a_plan_whose_own_lines_are_carried_out_is_kept(name, tmp_path):
    planned = PLANS[name]()
    path = written(planned, tmp_path)
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    result = carried_out(planned).compare_with_plan(path)
    comparison = result.comparison
    assert comparison.differences == ()
    assert result.finding("plan").status == comparison.status == "as claimed"
    # Of a release everything is known.
    assert (comparison.unknown == ()) == (name in ("release", "replace", "sum"))
    assert comparison.secret == SECRET


def trained(planned, decay):
    """Train with weight decay by the lines of a plan of a sum; return that sum, and the change of the model."""
    names = {"clip_norm": 2.0}
    *before, inserted, added, _, _ = planned.commands(SECRET.seed)
    exec("\n".join(before), names)
    rng, model = np.random.default_rng(0), np.zeros(DIM)
    for t in range(planned.rounds):
        names |= {"t": t, "total": np.zeros(DIM)}
        exec(inserted, names)
        names["noisy"] = names["total"] + 2.0 * planned.noise_multiplier * rng.normal(size=DIM)
        exec(added, names)
        model = (1.0 - decay) * model - 0.1 * names["noisy"]
    return names["canaries"], names["released"], model / (-0.1 * 2.0)


@pytest.mark.parametrize(("rounds", "decay"), [(50, 0.05), (200, 0.01)])
def test_weight_decay_is_never_taken_for_missing_noise(rounds, decay):
    planned = plan(0.2, DIM, rounds=rounds, delta=1e-4)
    canaries, released, change = trained(planned, decay)
    whole, shrunk, mistaken = (
        cp.audit_release(vector, canaries, 1e-4, noise_multiplier=planned.release_noise, difference=difference)
        for vector, difference in ((released, False), (change, True), (change, False))
    )
    assert whole.decision.outcome == "PASSED"
    assert whole.warnings == ()
    assert shrunk.decision.outcome == "CANNOT SAY"
    assert "less-noise" not in [warning.kind for warning in shrunk.warnings]
    assert shrunk.finding("noise").status != "failed"
    assert {warning.kind for warning in mistaken.warnings} & {"less-noise", "units"}
    for warning in shrunk.warnings:
        assert warning.what_to_do.startswith("Audit the rounds if weight decay or momentum")


# What an auditor may change after the run, with the part that is named.
CHANGES = {
    "seed of the canaries": lambda release: cp.audit_release(*other(release, 6), 1e-4, noise_multiplier=1.0),
    "number of canaries": lambda release: cp.audit_release(*other(release, 5, 30), 1e-4, noise_multiplier=1.0),
    "directions": lambda release: cp.audit_release(
        release, cp.OrthonormalCanaries(5, PLANNED.count, DIM), 1e-4, noise_multiplier=1.0
    ),
    "δ": lambda release: cp.audit_release(*other(release), 1e-3, claim=PLANNED.claim, noise_multiplier=1.0),
    "confidence": lambda release: cp.audit_release(*other(release), 1e-4, 0.9, noise_multiplier=1.0),
    "claimed ε": lambda release: cp.audit_release(*other(release), 1e-4, claim=9.0, noise_multiplier=1.0),
    "noise multiplier": lambda release: cp.audit_release(
        *other(release), 1e-4, claim=PLANNED.claim, noise_multiplier=0.9
    ),
    "neighbours": lambda release: cp.audit_release(
        *other(release), 1e-4, claim=PLANNED.claim, noise_multiplier=1.0, neighbours="replace"
    ),
    "lower bounds": lambda release: cp.audit_release(*other(release), 1e-4, noise_multiplier=1.0, bounds=["andrew"]),
    "force": lambda release: cp.audit_release(*other(release), 1e-4, noise_multiplier=1.0, force=True),
    "share of the noise to be noticed": lambda release: cp.audit_release(
        *other(release), 1e-4, noise_multiplier=1.0, notice=0.01
    ),
    "questions that are asked": lambda release: cp.audit_release(
        *other(release), 1e-4, noise_multiplier=1.0, ask=["input"]
    ),
    "difference of models": lambda release: cp.audit_release(
        *other(release), 1e-4, noise_multiplier=1.0, difference=True
    ),
    "subject": lambda release: cp.audit(
        cp.Scores(other(release)[1].cosines(release), dim=DIM), 1e-4, claim=PLANNED.claim
    ),
}
PLANNED = PLANS["release"]()


def other(release, seed=5, count=None):
    return release, cp.Canaries(seed, count or PLANNED.count, DIM)


@pytest.mark.deep(every=3)
@pytest.mark.parametrize("name", CHANGES)
def test_what_an_auditor_changes_after_the_run_is_named(name, tmp_path):
    canaries = cp.Canaries(5, PLANNED.count, DIM)
    release = canaries.sum(np.arange(PLANNED.count)) + np.random.default_rng(0).normal(size=DIM)
    result = CHANGES[name](release).compare_with_plan(written(PLANNED, tmp_path))
    assert name in [each.name for each in result.comparison.differences]
    assert name in result.comparison.answer
    assert name in result.finding("plan").because
    assert result.finding("plan").status == "failed"
    assert result.decision.outcome != "PASSED"


def test_who_asks_for_more_than_usual_departs_from_no_plan(tmp_path):
    canaries = cp.Canaries(5, PLANNED.count, DIM)
    release = canaries.sum(np.arange(PLANNED.count)) + np.random.default_rng(0).normal(size=DIM)
    asked = cp.audit_release(release, canaries, 1e-4, noise_multiplier=1.0, ask=["leak", "noise", "input"])
    result = asked.compare_with_plan(written(PLANNED, tmp_path))
    assert result.comparison.differences == ()
    assert result.decision.asked == ("input", "noise", "leak")


def recorded(count=None, inclusion="coin", dim=DIM, **changes):
    """Audit scores of known rounds as the plan of two rounds has them, five canaries of which were never drawn."""
    rng, planned = np.random.default_rng(0), KNOWN_ROUNDS
    residual = changes.pop("residual", planned.known)
    traces = RoundTraces(np.full(4, 0.3), np.full(4, 10.0), dim, residual=residual, rounds=4)
    record = RoundsRecord(
        Score.KNOWN_ROUNDS, participations=2, left_out=5, rounds=4, missing=0, skipped=0, traces=traces
    )
    observed = rng.normal(1.0, 1.0, planned.count - 5)
    unobserved = rng.normal(size=(count or planned.total) - planned.count)
    record = dataclasses.replace(record, **changes)
    scores = cp.Scores(observed, unobserved, kind="any", inclusion=inclusion, record=record)
    return cp.audit(scores, 1e-4, claim=planned.mechanism)


KNOWN_ROUNDS = PLANS["two rounds"]()
# What a training loop may have done otherwise, with the parts that are named.
RECORDED = [
    ({}, []),
    ({"count": KNOWN_ROUNDS.total + 1}, ["number of canaries"]),
    ({"left_out": 6}, ["number of canaries"]),
    ({"inclusion": "fixed"}, ["number of canaries", "number of unobserved canaries", "inclusion"]),
    ({"dim": DIM + 1}, ["dimension"]),
    ({"rounds": 5}, ["rounds"]),
    ({"participations": 1}, ["participations"]),
    ({"residual": not KNOWN_ROUNDS.known}, ["knowledge of others' updates"]),
    ({"score": Score.LARGEST}, ["score"]),
]


@pytest.mark.parametrize(("changes", "named"), RECORDED)
def test_what_a_training_did_otherwise_is_named_and_nothing_else(changes, named, tmp_path):
    comparison = plan_file.compare_with_plan(recorded(**changes), written(KNOWN_ROUNDS, tmp_path))
    assert [each.name for each in comparison.differences] == named


def test_another_secret_than_the_plans_is_named(tmp_path):
    path = written(PLANNED, tmp_path)
    result = carried_out(PLANNED)
    for secret in (plan_file.Secret(5, "00fe"), plan_file.Secret(4, "00ff")):
        names = [each.name for each in plan_file.compare_with_plan(result, path, secret).differences]
        assert "commitment to the seed" in names


def test_a_file_that_is_no_plan_or_no_secret_is_refused_by_its_name(tmp_path):
    path, result = written(PLANNED, tmp_path), carried_out(PLANNED)
    plan_file.secret_path(path).write_text('{"seed": 5}')
    with pytest.raises(InputError, match=r"plan\.secret\.json: nonce"):
        plan_file.compare_with_plan(result, path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"schema": "canaryproof audit report 2.0.0"}))
    with pytest.raises(InputError, match=r"plan\.json: schema: must begin with 'canaryproof audit plan ', not"):
        plan_file.compare_with_plan(result, path)


def test_departures_are_shown_as_they_are_asked_for():
    shown = {(): "the default", ("band", "andrew"): "band, andrew", None: "none", 0.123456789: "0.123457", 7: "7"}
    assert {value: plan_file._show(value) for value in shown} == shown


def test_another_rule_than_the_packages_is_named(tmp_path):
    path = written(PLANNED, tmp_path)
    document = json.loads(path.read_text())
    document["decided"]["rules"] += 1
    document["bound"]["version"] += 1
    path.write_text(json.dumps(document))
    differences = plan_file.compare_with_plan(carried_out(PLANNED), path).differences
    assert [each.name for each in differences] == ["version of the rules", "default lower bound"]
    name, version = document["bound"]["name"], document["bound"]["version"]
    assert differences[1].planned == f"{name}, version {version}"
    assert differences[1].audited == f"{name}, version {version - 1}"


@pytest.mark.parametrize("made_by", ["0.2.9", "1.3.0", "0.30.0", "none"])
def test_a_plan_of_another_minor_version_is_held_to_its_seed_alone(made_by, tmp_path):
    path, result = written(PLANNED, tmp_path), carried_out(PLANNED)
    document = json.loads(path.read_text()) | {"schema": "canaryproof audit plan 9.0.0", "version": made_by}
    del document["decided"], document["bound"]
    path.write_text(json.dumps(document))
    held = result.compare_with_plan(path)
    assert held.finding("plan").status == "cannot say"
    assert f" by canaryproof {made_by}, " in held.finding("plan").because
    assert (held.decision.outcome == "PASSED", held.comparison.differences) == (False, ())
    other = plan_file.compare_with_plan(result, path, plan_file.Secret(4, "00ff"))
    assert (other.status, [each.name for each in other.differences]) == (
        "failed",
        ["commitment to the seed", "seed of the canaries"],
    )


def test_a_plan_of_another_release_of_this_minor_version_is_held_against_the_audit(tmp_path):
    path, result = written(PLANNED, tmp_path), carried_out(PLANNED)
    here = json.loads(path.read_text())["version"].split(".")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": f"{here[0]}.{here[1]}.99"}))
    assert plan_file.compare_with_plan(result, path).status == "as claimed"


def test_a_report_of_python_is_held_against_a_plan(tmp_path):
    path = written(PLANNED, tmp_path)
    scores = cp.Scores(np.linspace(-1.0, 1.0, 30), np.linspace(-1.0, 1.0, 30), kind="any")
    cp.audit(scores, 1e-4).report(tmp_path / "report.json", plan=path)
    document = json.loads((tmp_path / "report.json").read_text())
    assert (document["plan"]["status"], document["plan"]["differences"][0]["name"]) == ("failed", "subject")
    comparison = json_records.read(plan_file.Comparison, document["plan"])
    assert dataclasses.asdict(comparison)["secret"] == {"seed": 5, "nonce": "00ff"}


@pytest.mark.parametrize(("factor", "named"), [(1.0 + 0.99e-5, []), (1.0 + 1.01e-5, ["claimed ε"])])
def test_numbers_that_are_equal_to_five_digits_are_as_planned(factor, named, tmp_path):
    path, result = written(PLANNED, tmp_path), carried_out(PLANNED)
    result = dataclasses.replace(result, claim=factor * PLANNED.claim)
    comparison = plan_file.compare_with_plan(result, path)
    assert [each.name for each in comparison.differences] == named
    shown = f"claimed ε: {PLANNED.claim:.6g} planned, {result.claim:.6g} audited" if named else "as planned"
    assert comparison.finding.because == shown


def test_the_commitment_is_the_digest_of_nonce_and_seed(tmp_path):
    path = written(PLANS["release"](), tmp_path)
    expected = hashlib.sha256(b"00ff:5").hexdigest()
    assert json.loads(path.read_text())["seed_sha256"] == expected


SUM = dataclasses.replace(PLANNED, noise_multiplier=1.5, rounds=4, release_noise=3.0, total=23, claim=3.25)
COINS = DesignBounds(0.5, 0.25)
EACH = dataclasses.replace(SUM, all_rounds=True, release_noise=1.5, directions="orthonormal", designs=COINS)
ONCE, TWICE, DRAWN = (
    dataclasses.replace(KNOWN_ROUNDS, mechanism=mechanism, total=23, claim=3.25, designs=designs)
    for mechanism, designs in (
        (cp.accounting.gaussian(1.5, participations=1, rounds=4), None),
        (cp.accounting.gaussian(1.5, participations=2, rounds=4, neighbours="replace"), COINS),
        (cp.accounting.poisson(1.5, rate=0.5, rounds=4), COINS),
    )
)
RELEASE = {
    "subject": "release",
    "score": "cosine with the release",
    "noise_multiplier": 3.0,
    "difference": False,
    "kind": "cosine",
}
LARGEST = {
    "subject": "scores",
    "score": "largest",
    "inclusion": "coin",
    "noise_multiplier": 1.5,
    "directions": "orthonormal",
    "rounds": 4,
    "participations": 1,
    "kind": "cosine",
}
ROUNDS = {
    "subject": "scores",
    "score": "known rounds",
    "inclusion": "coin",
    "noise_multiplier": 1.5,
    "rounds": 4,
    "others_known": False,
    "kind": "any",
}


@pytest.mark.parametrize(
    ("planned", "decided"),
    [
        (SUM, RELEASE),
        (dataclasses.replace(SUM, neighbours="replace"), RELEASE | {"neighbours": "replace"}),
        (EACH, LARGEST),
        (ONCE, ROUNDS | {"inclusion": "fixed", "participations": 1, "kind": "cosine"}),
        (TWICE, ROUNDS | {"participations": 2, "neighbours": "replace"}),
        (
            dataclasses.replace(TWICE, known=True),
            ROUNDS | {"participations": 2, "neighbours": "replace"} | {"others_known": True},
        ),
        (DRAWN, ROUNDS | {"score": "likelihood"}),
    ],
)
def test_a_plan_decides_what_its_audit_is_held_against(planned, decided, tmp_path):
    found = json.loads(written(planned, tmp_path).read_text())["decided"]
    always = {"count": 23, "dim": DIM, "delta": 1e-4, "confidence": 0.95, "claim": 3.25, "neighbours": "add-or-remove"}
    names = ("null_count", "noise_multiplier", "rounds", "participations", "others_known", "difference")
    left_open = dict.fromkeys(names)
    options = {
        "directions": "independent",
        "inclusion": "fixed",
        "bounds": [],
        "force": False,
        "notice": 0.5,
        "ask": [],
    }
    options |= {"rules": RULES_VERSION}
    assert found == always | left_open | options | decided
