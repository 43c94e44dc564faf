"""Makes the results.json of experiments that come with the package, from what is supposed to be true."""

import json
from dataclasses import asdict
from functools import cache

import numpy as np

from canaryproof.kernels.gaussian_mechanism import noise_multiplier
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import cosine_null, prepare
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import from_dimension, from_two_groups
from canaryproof.verify.audit.files.json_records import plain
from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.claims import CHECKS, experiment_results
from canaryproof.verify.papers.claims.needs_data import POPULATIONS
from canaryproof.verify.papers.training import configuration

DIM, TEST_EXAMPLES = 4_050_748, 10_000
NULLS = {"all": "unobserved", "final": "exact", "change": "exact"}


def attack(rng, distance, ratio=1.0, count=1000, unobserved=None, delta=8.2e-7):
    """What an audit says of cosines with this mean and deviation, in the null's deviations."""
    observed = distance + ratio * rng.standard_normal((1, count))
    if unobserved is None:
        observed /= np.sqrt(DIM)
        found, scores = from_dimension(observed, DIM), prepare(observed, None, cosine_null(DIM))
    else:
        null = rng.standard_normal((1, unobserved))
        found, scores = from_two_groups(observed, null), prepare(observed, null)
    estimate = {
        "fitted": epsilon_estimators.fitted_estimate(found, delta),
        "pinned": epsilon_estimators.pinned_estimate(found, delta),
    }
    return {
        "observed": count,
        "unobserved": unobserved,
        "distance": float(found.distance[0]),
        "distance_error": float(found.ratio[0] / np.sqrt(count)),
        "ratio": float(found.ratio[0]),
        "ratio_error": float(found.ratio[0] / np.sqrt(2 * count)),
        "variance_p_value": 0.5,
        "normality": {"statistic": float(rng.choice([0.2, 0.3, 0.4])), "p_value": 0.5},
        "null_law": None,
        "estimates": {
            name: {
                "epsilon": float(one.epsilon[0]),
                "standard_error": 0.1,
                "low": 0.0,
                "high": 9.0,
                "certified": [0, 9],
            }
            for name, one in estimate.items()
        },
        "bounds": {
            "andrew": {
                "value": float(METHODS["andrew"].compute(scores, delta, 0.05)[0][0]),
                "upper": None,
                "kind": "lower bound",
                "coverage": "heuristic",
                "cap": 9.0,
            }
        },
    }


def distance(epsilon, delta=8.2e-7):
    """Mean of the cosines of a mechanism with this ε."""
    return 1.0 / noise_multiplier(epsilon, delta)


def run(accuracy=0.25, without=0.25, canife=None):
    """One training."""
    facts = {"canary_seed": 1, "accuracy": accuracy, "accuracy_without": without, "warnings": []}
    return facts if canife is None else {**facts, "canife": canife}


def trials(health=0.99, accuracy=1.0, deviation=0.4, capped=3.88, separated=3.88):
    """An attack by CANIFE."""
    errors = {
        "lower": 0.0,
        "upper": 9.0,
        "threshold": 0.5,
        "false_alarms": 0,
        "missed": 0,
        "null_count": 50,
        "count": 50,
    }
    epsilons = {"capped": {"epsilon": capped, **errors}, "separated": {"epsilon": separated, **errors}}
    design = {"loss": 0.1, "norm": 1.0, "health": health, "attempts": 1, "healthy": True}
    return plain({"epsilon": epsilons, "canary": design, "accuracy": accuracy, "deviations": [deviation, deviation]})


def canife(rounds, attack, epsilon, accuracy=0.6):
    """CANIFE's part of a training: audits of these rounds, each of one attack that depends on the round."""
    composed = dict.fromkeys(("separated", "capped"), None if epsilon is None else plain([epsilon]))
    audits = [{"round": t, "model_accuracy": accuracy, "attacks": [attack(t)], "composed": composed} for t in rounds]
    return {"rounds": max(rounds, default=0), "audits": audits, "composed": composed}


def document(name, repetition, repetitions=1, size="full", noise_multiplier=0.1, clients=None):
    """All of an experiment: ``repetition(cell, i)`` gives the runs, and the attacks or None."""
    shipped = configuration.read(name, size)
    cells = []
    for cell in shipped.cells:
        results = []
        for i in range(repetitions):
            runs, attacks = repetition(cell, i)
            one = {"runs": runs}
            if attacks is not None:
                one["audits"] = {key: {NULLS[key]: value} for key, value in attacks.items()}
            results.append(one)
        given = cell.settings.training.noise_multiplier
        cells.append(
            plain(
                {
                    "swept": dict(cell.swept),
                    "settings": asdict(cell.settings),
                    "federation": POPULATIONS[name].federation,
                    "dim": DIM,
                    "rounds": 2048,
                    "clients": clients or POPULATIONS[name].clients,
                    "test_examples": TEST_EXAMPLES,
                    "noise_multiplier": noise_multiplier if given is None else given,
                    "analytical": {"epsilon": None, "relation": "", "rule": ""},
                    "results": results,
                }
            )
        )
    heading = {**asdict(shipped.heading), "repetitions": repetitions, "axes": shipped.axes}
    return {"name": name, "size": size, **heading, "cells": cells}


def write(folder, made):
    """Write it as ``canaryproof train`` does."""
    place = folder / made["name"]
    place.mkdir(parents=True)
    (place / "results.json").write_text(json.dumps(made, allow_nan=False))
    return place


def context(folder=None):
    """What a check is given: the experiments of a folder, or none."""
    return Context(Effort.QUICK, 0, None if folder is None else experiment_results.read(folder))


RULES = {check.id: check.judge for check in CHECKS}


def judge(claim, folder):
    """Judge a claim by the experiments of a folder."""
    return RULES[claim](context(folder))


def rising(cell, rng, factor=1.0):
    """Attacks that grow with presentations and shrink with noise, as in the figures."""
    times, noise = cell.settings.canaries.presentations, cell.settings.training.noise_multiplier
    shift = factor * 0.5 * times / (1.0 + 10.0 * noise)
    return {
        "all": attack(rng, 10.0, 1.5, unobserved=1000),
        "final": attack(rng, shift),
        "change": attack(rng, shift),
    }


@cache
def figure_document(name, factor, size):
    """All of the experiment of a figure, which takes a second."""
    rng = np.random.default_rng(7)
    return document(name, lambda cell, _: ([run()], rising(cell, rng, factor)), size=size)


def figure(folder, name, factor=1.0, size="full"):
    """Write the experiment of a figure."""
    write(folder, figure_document(name, factor, size))
