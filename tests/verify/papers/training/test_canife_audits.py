from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import plain
import pytest

pytest.importorskip("jax", reason="training needs the extra 'federated'")

import tiny
from jax.flatten_util import ravel_pytree

from canaryproof.verify.papers.canife.factored import FactoredUpdates
from canaryproof.verify.papers.canife.general import GeneralUpdates, LocalTraining
from canaryproof.verify.papers.canife.options import AS_PRINTED
from canaryproof.verify.papers.training import canife_audits, networks
from canaryproof.verify.papers.training.canife_audits import Auditor, Designing, audited_rounds, compiled, pool, starts
from canaryproof.verify.papers.training.clients import chunk_of, clipped_updates
from canaryproof.verify.papers.training.clipping import FixedClip
from canaryproof.verify.papers.training.configuration import CanifePlan, Federated, Network, read
from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.noise import Independent
from canaryproof.verify.papers.training.trainer import Training

SETTINGS = replace(
    read("presentations", "quick").cells[0].settings,
    model=Network(name="small_cnn", hidden=4),
    training=Federated(
        participation="bernoulli",
        cohort=5,
        rounds=3,
        client_rate=0.5,
        batch_size=4,
        server_rate=1.0,
        clip_norm=0.2,
        noise_multiplier=0.0,
    ),
    canaries=None,
    canife=CanifePlan(steps=3, scores=20, pool=30, rate=0.01),
)
SETTINGS = replace(SETTINGS, data=replace(SETTINGS.data, examples_per_client=4))
# Any model but one of dense layers by name takes the general way.
DATA, MODEL, PARAMS = tiny.federation([4] * 40), tiny.MODEL, tiny.init(1)
TRAINING = Training(
    clip=FixedClip(0.2), noise=Independent(0.0, 0), client_rate=0.5, batch_size=4, examples_per_client=4
)


@pytest.fixture(scope="module")
def auditor():
    return Auditor(compiled(Designing.of(SETTINGS), DATA, MODEL), SETTINGS, DATA, MODEL, TRAINING, 7)


def flat(params):
    return np.asarray(ravel_pytree(params)[0])


def held_out(sizes):
    labels = np.arange(sum(sizes), dtype=np.int32)
    inputs = labels[:, None].astype(np.float32)
    starts = np.cumsum([0, *sizes])
    return Federation("made", inputs[:1], labels[:1], np.arange(2), inputs, labels, 99, test_starts=starts)


def test_mock_clients_are_held_out_ones_until_they_have_so_many_examples():
    data = held_out([3, 1, 5, 2, 4])
    chosen = set()
    for seed in range(20):
        inputs, labels, mask = pool(data, 6, 3, np.random.default_rng(seed))
        assert (inputs[..., 0] == labels).all()
        counts = mask.sum(axis=1).astype(int)
        # Each has its first examples, at most three, and without the last one there are too few.
        firsts = [int(row[0]) for row in labels]
        assert [min(3, [3, 1, 5, 2, 4][[0, 3, 4, 9, 11].index(first)]) for first in firsts] == counts.tolist()
        assert counts.sum() >= 6 > counts[:-1].sum()
        chosen.add(tuple(firsts))
    assert len(chosen) > 10
    with pytest.raises(ValueError, match=r"^canife.pool: must be at most 12, as mock clients have no more examples$"):
        pool(data, 13, 3, np.random.default_rng(0))


def test_where_nobody_knows_whose_they_are_held_out_examples_are_dealt_out():
    data = replace(held_out([11]), test_starts=None)
    _, labels, mask = pool(data, 6, 4, np.random.default_rng(0))
    assert mask.shape == (2, 4)
    assert mask.all()
    assert len(np.unique(labels)) == 8
    assert pool(data, 5, 1, np.random.default_rng(0))[2].shape == (5, 1)


@pytest.mark.parametrize("batch_size", [2, 20])
def test_clipped_updates_are_those_of_plain_numpy(batch_size):
    federation, theta = tiny.federation([4, 1, 3]), flat(tiny.init(3))
    function = clipped_updates(tiny.MODEL, 2, batch_size)
    found = function(theta, *federation.cohort([0, 1, 2], 4), np.float32(0.3), np.float32(0.1))
    expected = [
        plain.clip(plain.update(theta.astype(float), *tiny.examples(federation, i, 4), 0.3, 2, batch_size), 0.1)
        for i in range(3)
    ]
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_scores_are_those_of_rounds_line_by_line(auditor):
    theta = flat(PARAMS)
    canary = np.random.default_rng(2).normal(size=(1, MODEL.dim)).astype(np.float32)
    (found,) = auditor._scores(theta, canary, [np.random.default_rng(3)])
    again, sizes = np.random.default_rng(3), []
    whole = GeneralUpdates(MODEL.loss, 0.2, LocalTraining(0.5))
    for score, inserted in zip(found.values[:, 0], found.inserted[:, 0], strict=True):
        cohort = auditor._cohort(again)
        updates = np.asarray(whole.prepare(PARAMS, *DATA.cohort(cohort, 4)).updates, dtype=float)
        aggregate = updates.sum(axis=0) + inserted * canary[0]
        assert score == pytest.approx(float(canary[0] @ aggregate), rel=1e-4, abs=1e-3)
        sizes.append(len(cohort))
    assert found.inserted.sum() == 10
    # Poisson samples differ in size.
    assert len(set(sizes)) > 1


def test_noise_is_that_of_a_round(auditor):
    noisy = replace(auditor, training=replace(TRAINING, noise=Independent(3.0, 0)), settings=with_plan(scores=2000))
    canary = np.zeros((1, MODEL.dim), np.float32)
    canary[0, 0] = 0.1
    (scores,) = noisy._scores(flat(PARAMS), canary, [np.random.default_rng(3)])
    # Clients' part is at most the cohort's number of clip norms times the canary's; that of noise is 3 · 0.2 · 0.1.
    assert scores.values.std() == pytest.approx(0.06, rel=0.1)


def with_plan(**changes):
    return replace(SETTINGS, canife=replace(SETTINGS.canife, **changes))


def test_an_audit_depends_on_its_round_and_seed_alone(auditor):
    one, again, later = (replace(auditor.audit(PARAMS, rounds), seconds={}) for rounds in (2, 2, 3))
    assert one == again
    assert one.loss != later.loss
    assert one.scores != later.scores
    assert replace(auditor, seed=8).audit(PARAMS, 2).loss != one.loss
    # Each attack has a canary and trials of its own; the first has what it has alone.
    two = replace(auditor, settings=with_plan(audits=2)).audit(PARAMS, 2)
    assert two.loss[0] == one.loss[0] != two.loss[1]
    assert np.shape(two.scores) == np.shape(two.inserted) == (2, 20)
    assert one.accuracy == float(MODEL.accuracy(PARAMS, DATA.test_inputs, DATA.test_labels))


def test_designs_know_how_mock_clients_train(auditor):
    inputs, labels, mask = examples = auditor._pool(0)
    assert mask.shape == (8, 4)
    found = auditor._state(flat(PARAMS), PARAMS, examples).updates
    expected = GeneralUpdates(MODEL.loss, 0.2, LocalTraining(0.5)).prepare(PARAMS, inputs, labels, mask).updates
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.ctypes.data % 64 == 0
    assert chunk_of(MODEL, DATA, 8, 4) == 8


def test_a_canary_whose_update_is_not_finite_never_shows(auditor, monkeypatch):
    monkeypatch.setattr(GeneralUpdates, "canary_updates", lambda *_: np.full((1, MODEL.dim), np.nan, np.float32))
    assert not np.any(auditor.audit(PARAMS, 1).scores)


def test_designs_begin_as_the_plan_says():
    examples = pool(DATA, 30, 4, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    noise = starts("noise", DATA, examples)(rng)
    assert noise.input.shape == (2, 3, 1)
    drawn = np.array([starts("noise", DATA, examples)(rng).input for _ in range(50)])
    assert 0.0 <= drawn.min() < 0.1 < 0.9 < drawn.max() <= 1.0
    sample = starts("sample", DATA, examples)(rng)
    assert (sample.input == examples[0][sample.client, 0]).all()


@pytest.mark.parametrize("every_token", [True, False])
def test_designs_of_texts_begin_as_the_plan_says(every_token):
    rng = np.random.default_rng(1)
    texts = rng.integers(0, 9, (5, 2, 6)).astype(np.int32)
    labels = rng.integers(0, 4, (5, 2, 6) if every_token else (5, 2)).astype(np.int32)
    data = SimpleNamespace(classes=4, vocabulary=9)
    random, sample = (starts(start, data, (texts, labels, np.ones((5, 2)))) for start in ("noise", "sample"))
    assert random(rng).input.shape == (6, 9)
    assert random(rng).client == -1
    start = sample(rng)
    assert (start.input.argmax(axis=1) == texts[start.client, 0]).all()
    if every_token:
        assert (start.logits == labels[start.client, 0]).all()
        drawn = np.array([random(rng).logits for _ in range(50)])
        assert set(np.unique(drawn)) == set(range(4))
    else:
        assert start.logits.argmax() == labels[start.client, 0]
        assert random(rng).logits.shape == (4,)


def test_mock_clients_that_do_not_fit_into_memory_are_refused(auditor, monkeypatch):
    monkeypatch.setattr(canife_audits.os, "sysconf", lambda _: 10)
    with pytest.raises(ValueError, match=r"^canife.pool: 8 mock clients' updates take 0.0 GB, and this machine has 0"):
        replace(auditor)


def test_designs_are_by_default_as_the_paper_prints_them():
    found = Designing.of(replace(SETTINGS, canife=CanifePlan()))
    assert found.settings == AS_PRINTED
    assert (found.local, found.clip_norm, found.one_step) == (LocalTraining(0.5), 0.2, True)
    assert found.designed == LocalTraining(1.0, 1)
    assert Designing.of(replace(SETTINGS, canife=CanifePlan(vector="update"))).designed == found.local
    assert not Designing.of(replace(SETTINGS, training=replace(SETTINGS.training, batch_size=3))).one_step


@pytest.mark.parametrize(("examples", "factored"), [(4, True), (3, False)])
def test_dense_layers_have_the_road_of_factors_where_clients_make_one_step(examples, factored):
    settings = replace(
        SETTINGS,
        model=Network(name="two_layer", hidden=4),
        training=replace(SETTINGS.training, batch_size=examples),
    )
    chosen = compiled(Designing.of(settings), DATA, networks.model("two_layer", DATA, 4))
    assert isinstance(chosen.designer.updates, FactoredUpdates) == factored


def test_audited_rounds():
    assert audited_rounds(None, 9) == []
    assert audited_rounds(CanifePlan(), 9) == [9]
    assert audited_rounds(CanifePlan(every=4), 9) == [4, 8]
    assert audited_rounds(CanifePlan(every=10), 9) == []
