"""CANIFE for a model of one's own: the design against exact derivatives, of each library, and the audit's measures."""

import math
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats

import canaryproof as cp
from canaryproof.verify.papers.accounting.sampled_gaussian import composed_epsilon, noise_of_round
from canaryproof.verify.papers.canife import own_model
from canaryproof.verify.papers.canife.measure import round_epsilon

DIM, C = 12, 0.7
RNG = np.random.default_rng(3)
PARAMS, START = RNG.normal(size=(2, DIM))
MOCK = RNG.normal(size=(5, DIM))
MOCK *= C / np.linalg.norm(MOCK, axis=1, keepdims=True)
CLAIM = cp.accounting.poisson(1.0, rate=0.01, rounds=1000)


def gradients(params, sample):
    """Of the loss exp(⟨θ, z⟩/4), in any library."""
    slope = 2.718281828459045 ** (params @ sample / 4.0) / 4.0
    return slope * sample, slope * params


def exact(steps, rate, least):
    """The same design by the derivative written out: ∂g/∂z = slope·(I + z θᵀ/4)."""
    z, first, second = START, 0.0, 0.0
    for t in range(1, steps + 1):
        g = gradients(PARAMS, z)[0]
        norm = np.linalg.norm(g)
        v = 2.0 * MOCK.T @ (MOCK @ g) - 2.0 * max(least - norm, 0.0) * g / norm
        slope = math.exp(PARAMS @ z / 4.0) / 4.0
        change = slope * (v + PARAMS * (z @ v) / 4.0)
        first, second = 0.9 * first + 0.1 * change, 0.999 * second + 0.001 * change**2
        z = z - rate * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    return z


@pytest.mark.parametrize("least_norm", [0.1, 20.0])
def test_the_design_is_that_of_exact_derivatives(least_norm):
    options = {"clip_norm": C, "steps": 9, "rate": 0.05, "least_norm": least_norm}
    canary = cp.design_canary(gradients, PARAMS, MOCK, START, **options)
    np.testing.assert_allclose(canary.sample, exact(9, 0.05, C * least_norm), atol=1e-6)
    vector = gradients(PARAMS, canary.sample)[0]
    norm = np.linalg.norm(vector)
    assert canary.norm == pytest.approx(norm, rel=1e-12)
    assert canary.loss == pytest.approx(np.sum((MOCK @ vector) ** 2) + max(C * least_norm - norm, 0.0) ** 2, rel=1e-12)
    np.testing.assert_allclose(canary.update, -vector * min(1.0, C / norm), rtol=1e-12)
    assert canary.health == 1.0 - canary.loss / canary.initial_loss


def arrays_of(library):
    if find_spec(library) is None:
        pytest.skip(f"needs {library}")
    if library == "torch":
        import torch

        return torch.tensor, torch.Tensor
    import jax

    return jax.numpy.asarray, jax.Array


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_arrays_stay_those_of_their_library(library):
    of, kind = arrays_of(library)
    params, mock, start = (of(part.astype(np.float32)) for part in (PARAMS, MOCK, START))

    def checked(params, sample):
        assert isinstance(params, kind)
        assert isinstance(sample, kind)
        return gradients(params, sample)

    canary = cp.design_canary(checked, params, mock, start, clip_norm=C, steps=3, rate=0.05)
    assert isinstance(canary.sample, kind)
    # float32 leaves half of its digits to a difference.
    np.testing.assert_allclose(np.asarray(canary.sample), exact(3, 0.05, C), atol=2e-3)


def test_a_canary_is_as_orthogonal_to_other_canaries_as_to_clients():
    first = cp.design_canary(gradients, PARAMS, MOCK, START, clip_norm=C, steps=1500, rate=0.02)
    others = np.vstack([MOCK, first.update])
    second = cp.design_canary(gradients, PARAMS, others, START[::-1], clip_norm=C, steps=1500, rate=0.02)
    assert [one.is_poor for one in (first, second)] == [False, False]
    assert np.abs(others @ second.update).max() < 0.05 * C**2


def test_a_sample_without_a_gradient_stays_and_is_poor():
    canary = cp.design_canary(lambda _, z: (np.zeros(DIM), 0.0 * z), PARAMS, MOCK, START, clip_norm=C, steps=3)
    assert canary.is_poor
    assert canary.loss == pytest.approx(C**2, rel=1e-12)
    np.testing.assert_array_equal(canary.sample, START)
    assert canary.score(MOCK[0]) == 0.0


def test_the_canarys_client_may_send_another_update():
    canary = cp.design_canary(gradients, PARAMS, MOCK, START, clip_norm=C, steps=1, update=lambda _: MOCK[1] / 2)
    np.testing.assert_array_equal(canary.update, MOCK[1] / 2)
    assert canary.score(MOCK[1]) == pytest.approx(C, rel=1e-12)


WORDS, LENGTH = 6, 4
EMBEDDING = RNG.normal(size=(LENGTH * WORDS, DIM))
LOGITS = RNG.normal(size=(LENGTH, WORDS))


def text_gradients(params, weights, table=EMBEDDING):
    """Of the loss ⟨θ, z⟩²/2 of a text's embedding z, in the library of the table."""
    z = weights.reshape(-1) @ table
    product = params @ z
    return product * z, product * (table @ params).reshape(LENGTH, WORDS)


def loss_of(text, updates=MOCK, least=C):
    vector = text_gradients(PARAMS, text)[0]
    return np.sum((updates @ vector) ** 2) + max(least - np.linalg.norm(vector), 0.0) ** 2


def test_a_canary_of_tokens_is_a_text_with_its_own_loss():
    canary = cp.design_canary(text_gradients, PARAMS, MOCK, LOGITS, clip_norm=C, steps=300, rate=0.1, tokens=True)
    assert canary.sample.shape == LOGITS.shape
    np.testing.assert_array_equal(np.sort(canary.sample, axis=1)[:, -2:], [[0.0, 1.0]] * LENGTH)
    assert canary.loss == pytest.approx(loss_of(canary.sample), rel=1e-12)
    vector = text_gradients(PARAMS, canary.sample)[0]
    np.testing.assert_allclose(canary.update, -vector * min(1.0, C / np.linalg.norm(vector)), rtol=1e-12)


def test_a_design_of_tokens_finds_the_best_text_where_words_count_alone():
    """The gradient is orthogonal to all clients, and as long as the words' values add up to; draws are of a seed."""
    values, direction = RNG.random((LENGTH, WORDS)), np.linalg.svd(MOCK)[2][-1]

    def valued(params, weights):
        return (weights * values).sum() * direction, values * (params @ direction)

    # One of 1,296 texts is the best, which 32 random ones hold with a probability of 2.5%.
    options = {"clip_norm": C, "steps": 200, "rate": 0.1, "least_norm": 100.0, "tokens": True}
    found = [cp.design_canary(valued, PARAMS, MOCK, 0.0 * LOGITS, **options, seed=seed) for seed in (0, 0, 1)]
    for canary in found:
        np.testing.assert_array_equal(canary.sample.argmax(axis=1), values.argmax(axis=1))
    assert found[0].initial_loss == found[1].initial_loss != found[2].initial_loss


def test_the_derivative_by_logits_is_that_of_the_weights_drawn():
    """One step of Adam moves each logit by the rate, down the loss of the same draw."""
    gumbel = np.random.default_rng(7).gumbel(size=LOGITS.shape)

    def relaxed(logits):
        weights = np.exp(logits + gumbel)
        return loss_of(weights / weights.sum(axis=1, keepdims=True))

    text = own_model._Text.begin(LOGITS, 7)
    model = own_model._Model(text_gradients, PARAMS, DIM)
    weights = text.draw_weights(text.logits)
    slope = text.through(model.derivative(weights, model.loss(weights, MOCK, C).slope))
    for place in np.ndindex(LOGITS.shape):
        step = np.zeros_like(LOGITS)
        step[place] = 1e-6
        difference = (relaxed(LOGITS + step) - relaxed(LOGITS - step)) / 2e-6
        assert slope[place] == pytest.approx(difference, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_texts_are_arrays_of_their_library(library):
    of, kind = arrays_of(library)
    params, mock, start = (of(part.astype(np.float32)) for part in (PARAMS, MOCK, LOGITS))

    def checked(params, weights):
        assert isinstance(weights, kind)
        return text_gradients(params, weights, of(EMBEDDING.astype(np.float32)))

    canary = cp.design_canary(checked, params, mock, start, clip_norm=C, steps=2, tokens=True)
    assert isinstance(canary.sample, kind)
    assert canary.sample.dtype == start.dtype
    assert canary.loss == pytest.approx(loss_of(np.asarray(canary.sample)), rel=1e-4)


def test_texts_designed_by_torchs_own_derivatives_are_those_of_exact_ones():
    torch = pytest.importorskip("torch")
    table = torch.tensor(EMBEDDING)

    def by_autograd(params, weights):
        params, weights = (part.detach().requires_grad_() for part in (params, weights))
        loss = 0.5 * (params @ (weights.reshape(-1) @ table)) ** 2
        return torch.autograd.grad(loss, (params, weights))

    options = {"clip_norm": C, "steps": 100, "rate": 0.1, "tokens": True, "seed": 5}
    found = cp.design_canary(by_autograd, *map(torch.tensor, (PARAMS, MOCK, LOGITS)), **options)
    expected = cp.design_canary(text_gradients, PARAMS, MOCK, LOGITS, **options)
    np.testing.assert_array_equal(found.sample.numpy(), expected.sample)
    np.testing.assert_allclose(found.update, expected.update, rtol=1e-9)
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    assert found.initial_loss == pytest.approx(expected.initial_loss, rel=1e-9)


REFUSED = [
    ({"gradients": lambda p, z: (p[:3], z)}, r"gradients: by the parameters must have the shape \(12,\), not \(3,\)"),
    ({"gradients": lambda p, z: (p, z[:3])}, r"gradients: by the sample must have the shape \(12,\), not \(3,\)"),
    ({"gradients": lambda p, z: (p * math.nan, z)}, "gradients: by the parameters must be finite"),
    ({"gradients": lambda p, z: (p, z * math.nan)}, "gradients: by the sample must be finite"),
    ({"params": PARAMS[None]}, "params: must have one axis"),
    ({"params": PARAMS.astype(np.float16)}, "params: must be of at least float32"),
    ({"updates": MOCK[0]}, r"updates: must have the shape \(clients, 12\), not \(12,\)"),
    ({"updates": 3 * MOCK}, "updates: must be clipped to the clip norm 0.7; one has the length 2.1"),
    ({"updates": math.nan * MOCK}, "updates: must be clipped"),
    ({"update": lambda _: 2 * MOCK[0]}, "update: must be clipped to the clip norm 0.7"),
    ({"update": lambda _: MOCK}, r"update: must have the shape \(12,\)"),
    ({"clip_norm": 0.0}, "clip_norm: must be above 0"),
    ({"steps": 0}, "steps: must be a whole number"),
    ({"rate": math.inf}, "rate: must be above 0"),
    ({"least_norm": -1.0}, "least_norm: must be above 0"),
    ({"tokens": True, "start": np.ones((DIM, 1))}, "start: of tokens must have a column for each word"),
    ({"tokens": True, "seed": -1}, "seed: must be a whole number from 0"),
]


@pytest.mark.parametrize(("change", "rule"), REFUSED)
def test_designs_that_are_refused(change, rule):
    given = {"gradients": gradients, "params": PARAMS, "updates": MOCK, "start": START, "clip_norm": C, "steps": 2}
    with pytest.raises(ValueError, match=rule):
        cp.design_canary(**given | change)


def trials(number, sigma, seed):
    """Scores of a canary that is orthogonal to all clients."""
    rng = np.random.default_rng(seed)
    inserted = rng.random(number) < 0.5
    return inserted + sigma * rng.normal(size=number), inserted


def test_the_four_measures_are_those_of_the_paper():
    scores, inserted = trials(300, 1.0, 0)
    rounds = np.repeat([100, 400, 700], 100)
    found = cp.audit_canife(scores, inserted, claim=CLAIM, delta=1e-5, rounds=rounds)
    assert (found.claimed_round, found.claimed) == (
        composed_epsilon([1.0], [1], 1.0, 1e-5),
        composed_epsilon([1.0], [1000], 0.01, 1e-5),
    )
    each = [
        round_epsilon(one[took], one[~took], 0.01, zero_counts="capped")
        for one, took in zip(scores.reshape(3, 100), inserted.reshape(3, 100), strict=True)
    ]
    assert [one.epsilon for one in found.rounds] == [one.epsilon for one in each]
    # The first audit serves the rounds before it, too.
    assert [(one.round, one.serves) for one in found.rounds] == [(100, 399), (400, 300), (700, 301)]
    sigmas = [noise_of_round(one.epsilon, 1e-5) for one in each]
    assert [one.noise_multiplier for one in found.rounds] == sigmas
    assert found.estimate == composed_epsilon(sigmas, [399, 300, 301], 0.01, 1e-5)
    assert 0.0 < found.estimate < found.cap < found.claimed


def test_the_decision_is_on_a_round():
    scores, inserted = trials(1000, 0.4, 1)
    found = cp.audit_canife(scores, inserted, claim=CLAIM, delta=1e-5)
    same = cp.audit(
        cp.Scores(scores[inserted], scores[~inserted], kind="any", inclusion="coin"),
        1e-5,
        claim=cp.accounting.gaussian(1.0),
    )
    assert (found.decision, found.findings) == (same.decision, same.findings)
    assert found.decision.outcome == "NOT PASSED"
    assert str(found).startswith(str(same))
    assert found.to_dict()["rounds"][0]["scores"] == 1000


def test_scores_of_several_canaries_are_one_audit_of_their_round():
    scores, inserted = trials(400, 1.0, 2)
    flat = cp.audit_canife(scores, inserted, claim=CLAIM, delta=1e-5)
    square = cp.audit_canife(scores.reshape(100, 4), inserted.reshape(100, 4), claim=CLAIM, delta=1e-5)
    assert (square.rounds, square.estimate) == (flat.rounds, flat.estimate)


def test_a_training_of_all_rounds_is_composed_without_sampling():
    claim = cp.accounting.gaussian(1.0, participations=20, rounds=20)
    found = cp.audit_canife(*trials(100, 1.0, 3), claim=claim, delta=1e-5)
    assert found.claimed == composed_epsilon([1.0], [20], 1.0, 1e-5)


def test_scores_of_a_release_have_the_law_of_the_mechanism():
    """Orthogonal to all clients, a canary's score is N(coin·C, σ²) in units of its own length; level 1e-6."""
    canary = cp.design_canary(gradients, PARAMS, MOCK, START, clip_norm=C, steps=1500, rate=0.02)
    rng, sigma = np.random.default_rng(5), 0.5
    sums = np.array([MOCK[rng.random(5) < 0.5].sum(axis=0) for _ in range(500)])
    scores = np.array([canary.score(one + canary.update) for one in sums + sigma * rng.normal(size=sums.shape)])
    assert stats.kstest((scores - np.linalg.norm(canary.update)) / sigma, "norm").pvalue > 1e-6
    with pytest.raises(ValueError, match=r"release: must have the shape \(12,\)"):
        canary.score(np.ones(3))


SCORES, INSERTED = trials(20, 1.0, 4)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"claim": 3.0}, "claim: must be a claim of canaryproof.accounting"),
        ({"claim": cp.accounting.epsilon_delta(3.0, 1e-5)}, "claim: must be Poisson sampling, or each round"),
        ({"claim": cp.accounting.gaussian(1.0, participations=1, rounds=9)}, "claim: must be Poisson sampling"),
        ({"claim": cp.accounting.poisson(1.0, rate=0.1, rounds=9, neighbours="replace")}, "claim: must be Poisson"),
        ({"delta": 0.0}, "delta: must lie strictly"),
        ({"inserted": INSERTED[:3]}, "inserted: must be True or False for each score"),
        ({"inserted": INSERTED.astype(int)}, "inserted: must be True or False for each score"),
        ({"inserted": np.arange(20) < 10, "rounds": np.repeat([1, 2], 10)}, "the audit of round 1 needs scores"),
        ({"rounds": [1, 2]}, "rounds: must be a whole number for each trial"),
        ({"rounds": np.full(20, 1.5)}, "rounds: must be a whole number for each trial"),
        ({"rounds": np.full(20, 1001)}, "audited rounds must rise, from 1 to 1000"),
    ],
)
def test_audits_that_are_refused(change, rule):
    given = {"scores": SCORES, "inserted": INSERTED, "claim": CLAIM, "delta": 1e-5}
    with pytest.raises(ValueError, match=rule):
        cp.audit_canife(**given | change)
