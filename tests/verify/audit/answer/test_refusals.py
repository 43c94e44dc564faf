"""What audits, plans, reviews, replays and tests refuse."""

import math
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import canaryproof as cp
from canaryproof.verify.audit.answer.notice import BoundTest
from canaryproof.verify.audit.answer.plan import plan
from canaryproof.verify.audit.answer.release_sums import release_sums
from canaryproof.verify.audit.answer.review import review
from canaryproof.verify.audit.answer.rounds_plan import plan_rounds
from canaryproof.verify.audit.answer.run_audit import audit, audit_release
from canaryproof.verify.audit.bounds.lower_bound import Inclusion
from tests.refusals import refusals

RNG = np.random.default_rng(0)
DIM, DELTA = 1000, 1e-6
SEEN, UNSEEN = RNG.normal(size=(2, 40)) / math.sqrt(DIM)
CANARIES = cp.Canaries(7, 20, 50)
RELEASE = RNG.normal(size=50)
RANGE = "must lie between 0.01 and 1e+06, not"
CONFIDENCE = "confidence: must lie strictly between 0 and 1, at least 1e-09 away from either, not"
UPDATES = RNG.normal(size=(5, 4)) * 0.1
VECTOR = np.ones(50)


# Audits.


def cosines(observed=SEEN, unobserved=None, claim=None, noise_multiplier=None, kind="cosine", bounds=()):
    scores = cp.Scores(observed, unobserved, DIM if kind == "cosine" else None, kind=kind)
    audit(scores, DELTA, claim=claim, noise_multiplier=noise_multiplier, bounds=bounds)


def reported(name="report.json"):
    with tempfile.TemporaryDirectory() as folder:
        audit(cp.Scores(SEEN, dim=DIM), DELTA).report(Path(folder) / name)


def curve(false_positive_rate=0.5, delta=DELTA):
    made = audit(cp.Scores(SEEN, UNSEEN), DELTA).curve()
    made.true_positive_rate(false_positive_rate)
    made.epsilon(delta)


# Reviews.

TABLE_OF_SCORES = pd.DataFrame({"score": [*SEEN, *UNSEEN], "member": [1] * 40 + [0] * 40})


def reviewed(document='{"m": 100, "r": 50, "v": 40}'):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "other.json").write_text(document, encoding="utf-8")
        review(Path(folder) / "other.json", delta=DELTA)


# Tests of a training's parts.


def residual(vector=RELEASE, resolution=None, layers=None, tolerance=0.0):
    tests = cp.ResidualTests(1.0, 50, layers=layers, tolerance=tolerance)
    tests.add(vector, **({} if resolution is None else {"resolution": resolution}))
    assert tests.rounds == 1


def sampling(rate=0.5, drawn=(1, 2)):
    cp.SamplingTests(rate, 10).add(list(drawn))


def noticed(null_count=None, rounds=1, inclusion=Inclusion.FIXED):
    BoundTest(1.0, DELTA, 0.05, 10, null_count, rounds, inclusion).noticed_share(1.0)


TABLE = {
    partial(audit, scores=cp.Scores(SEEN, dim=DIM), delta=DELTA): [
        ("scores", SEEN, "scores: must be Scores, as made by Scores(observed, dim=...), not ndarray"),
        ("delta", 1e-320, "delta: must lie strictly between 0 and 1, and be at least 2.23e-308, not 1e-320"),
        ("delta", "1e-6", "delta: must lie in [0, 1), not '1e-6'"),
        *(("confidence", bad, f"{CONFIDENCE} {bad}") for bad in (95, math.nan, True)),
        ("claim", 0, "claim: must lie between 0.001 and 10000, not 0"),
        (
            "claim",
            cp.accounting.epsilon_delta(3.0, 1e-5),
            "claim: must have a finite ε at δ = 1e-06, and ε = 3 at δ = 1e-05 (neighbours: add-or-remove) has none",
        ),
        ("noise_multiplier", math.inf, f"noise_multiplier: {RANGE} inf"),
        ("bounds", "band", "bounds: must be a list of names, not the string 'band'"),
        ("bounds", 3, "bounds: must be a list of names, not 3"),
        ("bounds", ["bnd"], "bounds: there is no bound 'bnd'; there are "),
        ("bounds", ["one-run"], "one-run needs unobserved scores"),
        ("force", "False", "force: must be True or False, not 'False'"),
    ],
    partial(cosines, unobserved=UNSEEN, kind="any"): [
        ("noise_multiplier", 1.0, "noise_multiplier: is for cosines"),
        ("observed", np.ma.masked_array(SEEN, SEEN > 0.0), "observed: must have no masked values: leave them out"),
    ],
    partial(audit, scores=cp.Scores(SEEN, dim=DIM), delta=DELTA, noise_multiplier=1.0): [
        ("delta", 0.0, "delta: must be above 0 for a claim of Gaussian noise"),
    ],
    partial(audit, scores=cp.Scores(SEEN, dim=DIM), delta=DELTA, claim=cp.accounting.gaussian(1.0)): [
        ("delta", 0.0, "delta: must be above 0 for a claim of Gaussian noise"),
        (
            "scores",
            cp.Scores(SEEN, UNSEEN, neighbours="replace"),
            "neighbours: must be add-or-remove, as in the claim, not replace",
        ),
    ],
    cosines: [
        ("observed", [0.5, 0.5 + 1e-12], "observed: the standard deviation must be 1e-06 to 1e+07 times the null's"),
    ],
    partial(cosines, observed=np.array([0.5, -0.5]), unobserved=np.array([0.0, 0.5])): [
        ("unobserved", np.array([0.0, 5e-324]), "observed: the standard deviation must be 1e-06 to 1e+07 times"),
    ],
    partial(cosines, observed=np.array([0.5, 0.5 + 1e-9]), unobserved=np.array([0.5, 0.5 + 1e-9])): [
        ("unobserved", np.array([0.0, 1e-9]), "observed: the mean must lie within"),
    ],
    partial(audit_release, release=RELEASE, canaries=CANARIES, delta=DELTA): [
        ("release", RELEASE[:2], "release: must have 50 coordinates, as the canaries have, not 2"),
        ("release", np.arange(50), "release: values must be floating-point, not int64"),
        ("release", np.append(RELEASE[1:], math.nan), "release: release[49]: must be finite, not nan"),
        ("release", RELEASE[np.newaxis], "release: the array must have one axis, not 2"),
        ("release", np.zeros(50), "release: the release must not be the zero vector"),
        *(("release", scale * RELEASE, "largest coordinate must lie between") for scale in (1e-14, 1e16)),
        ("release", release_sums(RELEASE[:30], CANARIES, 10), "must have 50 coordinates, as the canaries have, not 30"),
        ("canaries", cp.Canaries(7, 1, 50), "canaries: an audit needs at least 2"),
        *(
            ("canaries", bad, f"canaries: must be Canaries or OrthonormalCanaries, not {kind}")
            for bad, kind in ((None, "NoneType"), ("canaries", "str"), (cp.Canaries, "type"))
        ),
    ],
    partial(audit_release, release=release_sums(RELEASE, CANARIES), canaries=CANARIES, delta=DELTA): [
        ("canaries", cp.Canaries(7, 19, 50), "must be sums of 19 scores, not of 20"),
    ],
    reported: [("name", "report.pdf", "path: must end in .html, .md or .json, not 'report.pdf'")],
    curve: [
        ("false_positive_rate", 1.5, "false_positive_rate: must lie between 0 and 1"),
        ("delta", 1.0, "delta: must lie in"),
    ],
    noticed: [
        ("rounds", 2, "null_count: must be given"),
        ("inclusion", Inclusion.COIN, "null_count: must be given"),
    ],
    partial(plan, noise_multiplier=1.54, dim=100_000): [
        *(("noise_multiplier", bad, "noise_multiplier: must ") for bad in (math.nan, 0.0)),
        *(("dim", bad, "dim: must ") for bad in (999, 1e5 + 0.5, math.inf)),
        *(("rounds", bad, "rounds: must ") for bad in (0, 1.5)),
        ("delta", 1.0, "delta: must "),
        *(("claim", bad, "claim: must ") for bad in (0.1, math.nan)),
        ("rounds", 10**9, "claim: must "),
        ("neighbours", "swap", "neighbours: must be"),
    ],
    partial(plan, noise_multiplier=1.54, dim=1000, rounds=4, claim=20.0, all_rounds=True): [
        ("neighbours", "replace", "neighbours: must be add-or-remove for all rounds, not replace"),
        ("claim", 3.0, "claim: must be at least 3.0"),
    ],
    partial(plan_rounds, noise_multiplier=1.0, dim=10_000, rounds=10, delta=1e-5): [
        ("noise_multiplier", 1e6, "claim: must be at least 0.001, not 0; this noise has ε = 0"),
        ("participations", 11, "participations: must be a whole number from 1 to 10"),
        ("claim", 1.0, "claim: must be at least 4.377, not 1; this noise has ε = 4.377"),
        ("data_norm", -1.0, "data_norm: must be a number from 0 to 1e12"),
    ],
    partial(plan_rounds, noise_multiplier=1.0, dim=10_000, rounds=10, delta=1e-5, rate=1.0): [
        ("participations", 2, "participations: must be left out where a rate is given"),
        ("rate", 1.5, "rate: must lie above 0 and be at most 1"),
        ("rate", 1e-7, "delta: must be below 1e-06, the probability that a client takes part at all"),
    ],
    partial(review, source=TABLE_OF_SCORES, delta=DELTA): [
        ("delta", None, "delta: must be given"),
        *(
            ("source", bad, "source: must be a file's path or a pandas DataFrame, not ")
            for bad in (None, object, 3, ["scores.csv"])
        ),
    ],
    reviewed: [
        ("document", document, "other.json: ")
        for document in (
            "3",
            "{}",
            "[]",
            "[1, 2]",
            '{"per_canary": [3]}',
            '{"data_size": {"train_size": -1}}',
            '{"m": {"a": 1}}',
            "{",
        )
    ],
    partial(cp.replay, step=lambda updates: updates.sum(axis=0), members=UPDATES, sensitivity=1.0): [
        ("sensitivity", 0.0, "sensitivity: must be positive and finite"),
        ("neighbours", "both", "neighbours: must be one of add-or-remove, replace"),
        ("members", UPDATES[:0], "members: must hold at least one member"),
        *(("members", bad, "extremes: must be given") for bad in (["a"], UPDATES[0], np.ones((3, 2), int))),
        ("extremes", {}, "extremes: must name at least one member"),
        (
            "step",
            lambda _: np.random.default_rng().normal(size=3),
            "step: must release the same when it is called twice",
        ),
        ("step", lambda _: np.zeros((2, 2)), "step: must return a vector of numbers"),
        ("step", lambda updates: np.zeros(len(updates)), "step: must return vectors of one shape"),
    ],
    residual: [
        ("vector", np.zeros(3), "residual: must be numbers of shape"),
        ("vector", np.full(50, math.nan), "residual: must be finite"),
        ("vector", RELEASE.astype(complex), "residual: must be floating-point numbers, not complex128"),
        ("resolution", -1.0, "resolution: must be finite and not negative"),
        ("layers", [25, 24], "layers: must sum to dim = 50, not to 49"),
        ("tolerance", 0.6, "tolerance: must lie between 0 and"),
    ],
    sampling: [
        ("rate", 1.0, "rate: must lie strictly between 0 and 1"),
        ("drawn", (10,), "drawn: must lie between 0 and 9"),
        ("drawn", (0.5,), "drawn: must be a one-dimensional array of integers, not 1-d float64"),
    ],
}


@refusals(TABLE)
def test_refusals(row):
    row.check()
