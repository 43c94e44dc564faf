"""Public classes and functions are ``canaryproof``'s: so they say, and so a pickle has them."""

import importlib
import inspect
import pickle
import pkgutil
import re
from dataclasses import fields, is_dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pytest

import canaryproof as cp
from canaryproof import kernels, testing, typing
from canaryproof.verify import audit
from canaryproof.verify.papers import records
from canaryproof.verify.papers.canife import own_model

RELEASE = np.random.default_rng(1).normal(0, 1.54, 2_000)
CANARIES = cp.Canaries(seed=7, count=100, dim=2_000)


def training():
    """Canary clients after a training of 20 rounds, whose scores have a record."""
    insertion = cp.Insertion(200, 100)
    participation = cp.bernoulli(clients=50, rate=0.2, rounds=20, seed=7, canaries=insertion)
    clients = cp.CanaryClients(cp.Canaries(seed=7, count=200, dim=2_000), participation, noise_multiplier=1.0)
    rng = np.random.default_rng(2)
    for t in range(participation.rounds):
        clients.add(clients.total(t, 1.0) + rng.normal(0, 1.0, 2_000), round=t)
    return clients


def used(found):
    """An audit whose every property has been asked for."""
    assert str(found)
    assert found.details()
    assert found.estimate.enclosure
    return found


def stored(path):
    np.save(path / "release.npy", RELEASE)
    return cp.open_release(path / "release.npy")


MADE = {
    "Audit": lambda _: used(
        cp.audit_release(CANARIES.sum(np.arange(100)) + RELEASE, CANARIES, 1e-6, noise_multiplier=1.54)
    ),
    "Audit of a training": lambda _: used(cp.audit(training().scores("known rounds"), 1e-6)),
    "Audit of a file": lambda path: cp.audit_release(stored(path), CANARIES, 1e-6),
    "Canaries": lambda _: CANARIES,
    "Claim": lambda _: cp.accounting.poisson(1.0, rate=1 / 8, rounds=64),
    "Evidence": lambda _: training().evidence(1.0),
    "LowerBound": lambda _: cp.bounds.lower_bounds(cp.bounds.prepare(RELEASE[:100], RELEASE[100:200]), 1e-6),
    "OrthonormalCanaries": lambda _: cp.OrthonormalCanaries(seed=7, count=100, dim=2_000),
    "Participation": lambda _: training().participation,
    "ReleaseSums": lambda _: cp.release_sums(RELEASE, CANARIES),
    "Replay": lambda _: cp.replay(
        lambda members: np.clip(members, -1, 1).sum(axis=0), np.ones((3, 2)), sensitivity=2.0
    ),
    "Review": lambda _: cp.review(pd.DataFrame({"m": [1000], "r": [100], "v": [100]}), delta=1e-5),
    "RoundTraces": lambda _: training().traces,
    "Scores": lambda _: training().scores("largest"),
    "StoredRelease": stored,
    "TradeOffCurve": lambda _: cp.audit(cp.Scores(RELEASE[:100] / 50, dim=2_000), 1e-6).curve(),
    "benchmark_canife": lambda _: cp.benchmark_canife(1e4, 20, epsilon=3.0, rounds=1),
    "convergence": lambda _: cp.convergence(1e4, 20, epsilon=3.0, estimator="pinned", replicates=100),
    "plan": lambda _: cp.plan(1.0, 10**5),
    "plan_rounds": lambda _: cp.plan_rounds(1.0, 10**5, 20, rate=0.1),
}


@pytest.mark.parametrize("name", MADE)
def test_a_pickle_names_public_modules_alone(name, tmp_path):
    """So that it can be read when the code has moved."""
    made = MADE[name](tmp_path)
    pickled = pickle.dumps(made)
    assert b"canaryproof" in pickled
    assert not re.search(rb"canaryproof\.(?!typing)", pickled)
    again = pickle.loads(pickled)
    assert type(again) is type(made)
    assert str(again) == str(made)
    if isinstance(made, cp.Audit):
        assert again.to_json() == made.to_json()


@pytest.mark.parametrize("module", [cp, testing, typing], ids=lambda module: module.__name__)
def test_public_classes_and_functions_say_of_which_module_they_are(module):
    there = {name: getattr(module, name) for name in module.__all__ if name != "__version__"}
    others = {name: each.__module__ for name, each in there.items() if not inspect.ismodule(each)}
    assert set(others.values()) == {module.__name__}


def annotations(public):
    """Annotations of what a call returns, or an object has."""
    if not inspect.isclass(public):
        yield inspect.signature(public).return_annotation
        return
    if is_dataclass(public):
        yield from (field.type for field in fields(public))
    for name in dir(public):
        member = inspect.getattr_static(public, name)
        function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
        function = function.func if isinstance(function, cached_property) else function
        if not name.startswith("_") and inspect.isfunction(function):
            yield inspect.signature(function).return_annotation


def test_classes_of_what_public_calls_return_are_public():
    """And those of what such an object has."""
    modules = [
        importlib.import_module(found.name)
        for room in (kernels, audit, records)
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    ]
    modules.append(own_model)
    classes = {name: each for module in modules for name, each in vars(module).items() if inspect.isclass(each)}
    waiting = [getattr(cp, name) for name in cp.__all__ if name != "__version__"]
    waiting += [
        cp.accounting.gaussian,
        cp.bounds.lower_bounds,
        cp.bounds.cosine_null,
        cp.bounds.prepare,
        cp.bounds.Method,
    ]
    waiting += [cp.certified.gaussian_mechanism.epsilon]
    seen = set()
    while waiting:
        public = waiting.pop()
        if public in seen or inspect.ismodule(public):
            continue
        seen.add(public)
        if inspect.isclass(public):
            assert public.__module__ in ("canaryproof", "canaryproof.typing"), public
        words = re.findall(r"\w+", " ".join(map(inspect.formatannotation, annotations(public))))
        waiting += (each for word in words if (each := classes.get(word)) and each.__module__.startswith("canaryproof"))
    assert {name for name in typing.__all__ if getattr(typing, name) not in seen} == set()
