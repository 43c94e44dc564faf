import math
from dataclasses import replace

import numpy as np
import pytest
import tiny

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.accounting.training import noise_without_counts
from canaryproof.verify.papers.training import assembly
from canaryproof.verify.papers.training.configuration import read
from canaryproof.verify.papers.training.noise import Correlated, Independent, SquareRoot, Tree

SETTINGS = read("presentations", "quick").cells[0].settings
ROOT = np.random.SeedSequence(1)


def changed(**tables):
    return replace(SETTINGS, **{name: replace(getattr(SETTINGS, name), **values) for name, values in tables.items()})


def test_every_training_has_seeds_of_its_own():
    places = [
        (seed, swept, repetition, run)
        for seed in (0, 1)
        for swept in ({}, {"a.b": 1}, {"a.b": 2.0}, {"a.b": math.inf})
        for repetition in (0, 1)
        for run in (0, 1)
    ]
    drawn = [assembly.seeds_of(*place) for place in places]
    for name in ("canaries", "model"):
        assert len({getattr(one, name) for one in drawn}) == len(places)
    assert len({tuple(one.training.generate_state(2)) for one in drawn}) == len(places)
    assert (
        assembly.seeds_of(0, {"a.b": 1, "c.d": 2}, 0, 0).model == assembly.seeds_of(0, {"c.d": 2, "a.b": 1}, 0, 0).model
    )


def test_directions_are_compared_with_the_same_seeds():
    drawn = [
        assembly.seeds_of(0, {"a.b": 1, "canaries.directions": name}, 0, 0) for name in ("independent", "orthonormal")
    ]
    assert len({(one.canaries, one.model, *one.training.generate_state(2).tolist()) for one in drawn}) == 1


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({"one_round_epsilon": math.inf}, 0.0),
        ({"one_round_epsilon": None, "noise_multiplier": 0.0}, 0.0),
        ({"one_round_epsilon": None, "noise_multiplier": 0.3}, 0.3),
        ({"one_round_epsilon": 30.0}, float(gaussian_mechanism.noise_multiplier(30.0, SETTINGS.audit.delta))),
    ],
)
def test_noise_multipliers(training, expected):
    assert assembly.noise_multiplier(changed(training=training), 750) == expected


def test_adaptive_clipping_has_its_share_of_the_noise():
    settings = changed(training={"clip_quantile": 0.5, "one_round_epsilon": None, "noise_multiplier": 1.0})
    clip, noise = assembly.clip_and_noise(settings, 750, 10, ROOT)
    assert clip.count_noise == settings.training.cohort / 20.0
    assert noise.noise_multiplier == noise_without_counts(1.0, clip.count_noise) > 1.0
    assert math.isinf(assembly.clip_and_noise(changed(), 750, 10, ROOT)[0].count_noise)


@pytest.mark.parametrize(("name", "factor"), [("tree", Tree(10)), ("square_root", SquareRoot(10))])
def test_correlated_noise_is_for_all_rounds(name, factor):
    noise = assembly.clip_and_noise(
        changed(training={"noise": name, "one_round_epsilon": None, "noise_multiplier": 1.0}), 750, 10, ROOT
    )[1]
    assert isinstance(noise, Correlated)
    assert noise.factor == factor
    assert isinstance(assembly.clip_and_noise(changed(), 750, 10, ROOT)[1], Independent)


@pytest.mark.parametrize(
    ("tables", "rounds", "clients", "canary_rounds"),
    [
        ({}, 20, {2}, {1}),
        ({"canaries": {"presentations": 4}}, 20, {2}, {4}),
        ({"canaries": {"participation": "clients"}}, 20, {2}, {2}),
        ({"canaries": {"participation": "last_rounds", "last_rounds": 3, "mean": 1.0}}, 20, {2}, {0, 1, 2, 3}),
        ({"training": {"participation": "uniform", "epochs": None, "rounds": 7}}, 7, set(range(8)), {1}),
        ({"training": {"participation": "bernoulli", "epochs": None, "rounds": 7}}, 7, set(range(8)), {1}),
    ],
)
def test_schedules(tables, rounds, clients, canary_rounds):
    settings = changed(**tables)
    with_canaries, without = (assembly.schedule(settings, 750, ROOT, with_canaries=there) for there in (True, False))
    assert with_canaries.rounds == without.rounds == rounds
    assert with_canaries.included.sum() == settings.canaries.count
    assert len(with_canaries.included) == 2 * settings.canaries.count
    assert len(without.included) == 0
    for t in range(rounds):
        assert (with_canaries.clients(t) == without.clients(t)).all()
    taken = np.bincount(np.concatenate([with_canaries.clients(t) for t in range(rounds)]), minlength=750)
    assert set(taken.tolist()) <= clients
    taken = np.bincount(
        np.concatenate([with_canaries.canaries(t) for t in range(rounds)]), minlength=settings.canaries.count
    )
    assert set(taken.tolist()) <= canary_rounds
    assert len(taken) == settings.canaries.count


def test_canaries_have_the_directions_of_the_plan():
    plan = SETTINGS.canaries
    assert assembly.canaries(plan, 7, 5000) == Canaries(7, 2 * plan.count, 5000)
    orthonormal = replace(plan, directions="orthonormal")
    assert assembly.canaries(orthonormal, 7, 5000) == OrthonormalCanaries(7, 5000, 5000)
    # By coins, only those for which one was tossed.
    coins = replace(orthonormal, inclusion="coin")
    assert assembly.canaries(coins, 7, 5000) == OrthonormalCanaries(7, 2 * plan.count, 5000)
    with pytest.raises(ValueError, match=r"^canaries.count: must be at most 20: no more than 41 directions"):
        assembly.canaries(replace(orthonormal, count=21), 7, 41)


@pytest.mark.parametrize(("inclusion", "others"), [("fixed", tiny.MODEL.dim - 20), ("coin", 20)])
def test_all_other_directions_of_orthonormal_canaries_are_unobserved(inclusion, others):
    settings = changed(canaries={"directions": "orthonormal", "inclusion": inclusion, "count": 20})
    trainer = assembly.trainer(settings, tiny.federation([2] * 80), tiny.MODEL, assembly.Seeds.of(ROOT))
    canary_clients = trainer.canary_clients
    canary_clients.add(np.random.default_rng(0).standard_normal(tiny.MODEL.dim))
    observed, unobserved = canary_clients.all_rounds()
    assert len(observed) + len(unobserved) == 20 + others
    assert (len(observed) == 20) == (inclusion == "fixed")


def test_every_format_is_read_by_its_own_reader(monkeypatch, tmp_path):
    names = ("idx", "leaf", "plays", "cifar10", "tff")
    for name in names:
        monkeypatch.setattr(getattr(assembly, name), "load", lambda *arguments, name=name: (name, *arguments))
    settings = SETTINGS.data
    read_by = {
        name: assembly.federation(replace(settings, format=name, length=9, side=32), tmp_path, 7) for name in names
    }
    assert read_by == {
        "idx": ("idx", tmp_path, 2, 7),
        "leaf": ("leaf", tmp_path, 9, 32),
        "plays": ("plays", tmp_path, 9),
        "cifar10": ("cifar10", tmp_path, 2, 7),
        "tff": ("tff", tmp_path, 9, 10_000),
    }
    with pytest.raises(InputError, match=r"--data: must be given, the folder with the files of data.format plays"):
        assembly.federation(replace(settings, format="plays"), None, 7)
