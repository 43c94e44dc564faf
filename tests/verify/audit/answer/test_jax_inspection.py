from importlib.util import find_spec

import numpy as np
import pytest

from canaryproof import JaxInspection

jax = pytest.importorskip("jax", reason="needs jax")
jnp = jax.numpy
ravel_pytree = pytest.importorskip("jax.flatten_util").ravel_pytree

MEMBERS, RATE, CLIP_NORM, NOISE = 100, 0.2, 0.5, 1.5
PARAMS = {"w": jnp.zeros((20, 3)) + 0.1, "b": jnp.zeros(3)}


def loss(params, x, y):
    # Gradients are about as long as the clip norm, so that canaries alone are long.
    return 0.01 * jnp.square(x @ params["w"] + params["b"] - y).sum(axis=1).mean()


def by_jax(function, params, x, y, numbers, *, is_padding_example):
    """Clip gradients of examples with JAX alone."""
    each = jax.vmap(jax.grad(function), (None, 0, 0, 0))(params, x[:, None], y[:, None], numbers[:, None])
    rows = jax.vmap(lambda tree: ravel_pytree(tree)[0])(each)
    weights = jnp.minimum(1.0, CLIP_NORM / jnp.linalg.norm(rows, axis=1)) * ~is_padding_example
    return ravel_pytree(params)[1](weights @ rows)


def unclipped(function, params, x, y, numbers, *, is_padding_example):
    rows = jax.vmap(jax.grad(function), (None, 0, 0, 0))(params, x[:, None], y[:, None], numbers)
    return jax.tree.map(lambda leaf: jnp.tensordot(jnp.float32(~is_padding_example), leaf, 1), rows)


def by_jax_privacy(function, params, *batch, is_padding_example):
    from jax_privacy import clipped_grad

    summed = clipped_grad(function, l2_clip_norm=CLIP_NORM, batch_argnums=(1, 2, 3))
    return summed(params, *batch, is_padding_example=is_padding_example)


def inspected(summed, rounds=12, weight=1.0):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(MEMBERS + 10, 20)).astype(np.float32), rng.normal(size=(MEMBERS + 10, 3)).astype(np.float32)
    inspection = JaxInspection(
        loss, PARAMS, members=MEMBERS, noise_multiplier=NOISE, clip_norm=CLIP_NORM, rate=RATE, seed=1
    )
    step = jax.jit(lambda params, *batch: summed(inspection.loss, params, *batch[:-1], is_padding_example=batch[-1]))
    params, back = PARAMS, ravel_pytree(PARAMS)[1]
    for _ in range(rounds):
        drawn = np.flatnonzero(rng.random(MEMBERS + 10) < RATE)
        numbers = np.append(drawn, np.full(64 - len(drawn), -1))
        batch = x[numbers], y[numbers], numbers
        noise = NOISE * CLIP_NORM * rng.normal(size=63).astype(np.float32)
        total = jax.tree.map(jnp.add, step(params, *batch, numbers < 0), back(noise))
        released = jax.tree.map(lambda leaf: weight * leaf / (RATE * (MEMBERS + 10)), total)
        inspection.take(released, params, *batch)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, released)
    return inspection


def entry(inspection):
    observed = next(test.observed for test in inspection.tests() if test.name == "clipping")
    return float(observed.split()[-3])


@pytest.mark.deep
def test_an_honest_training_is_not_refuted_and_an_unclipped_one_is():
    honest, broken = inspected(by_jax), inspected(unclipped)
    assert not honest.has_failed
    assert entry(honest) == pytest.approx(1.0, abs=0.9)
    assert "clipping" in {test.name for test in broken.tests() if test.has_failed}
    assert 9.0 < entry(broken) < 11.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_spec("jax_privacy") is None, reason="needs the extra 'jax-privacy'")
def test_jax_privacy_clips_canaries():
    honest = inspected(by_jax_privacy)
    assert not honest.has_failed
    assert entry(honest) == pytest.approx(1.0, abs=0.9)
    assert inspected(by_jax_privacy, weight=0.5).has_failed


def test_a_canary_is_the_gradient_of_its_loss_and_others_keep_theirs():
    inspection = JaxInspection(loss, PARAMS, members=5, noise_multiplier=1.0, clip_norm=2.0, divisor=1.0)
    x, y = np.ones((2, 20), np.float32), np.ones((2, 3), np.float32)

    @jax.jit
    def gradients(*batch):
        trees = jax.grad(inspection.loss)(PARAMS, *batch), jax.grad(loss)(PARAMS, *batch[:2])
        return [ravel_pytree(tree)[0] for tree in trees]

    canary, _ = gradients(x, y, np.array([6, 6]))
    assert np.asarray(canary) == pytest.approx(-inspection.update(6))
    with_numbers, alone = gradients(x, y, np.array([-1, 4]))
    assert np.asarray(with_numbers) == pytest.approx(np.asarray(alone))


def test_a_step_is_taken_with_what_the_others_add_to_it(monkeypatch):
    taken = []
    inspection = JaxInspection(loss, PARAMS, members=5, noise_multiplier=1.0, clip_norm=0.02, divisor=4.0)
    monkeypatch.setattr(inspection, "add", lambda *given: taken.append([np.asarray(each) for each in given]))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 20)).astype(np.float32), rng.normal(size=(5, 3)).astype(np.float32)
    # Two members, a canary and padding.
    numbers = np.array([3, 6, 0, -1, -1])
    released = jax.tree.map(jnp.ones_like, PARAMS)
    inspection.take(released, PARAMS, x, y, numbers)
    rows = [ravel_pytree(jax.grad(loss)(PARAMS, x[i : i + 1], y[i : i + 1]))[0] for i in (0, 2)]
    lengths = [float(jnp.linalg.norm(row)) for row in rows]
    assert min(lengths) > 0.02
    others = sum(0.02 / length * np.asarray(row) for row, length in zip(rows, lengths, strict=True))
    ((release, drawn, known),) = taken
    assert release.tolist() == [-1.0] * 63
    assert drawn.tolist() == [3, 6, 0]
    assert known == pytest.approx(-others / 4.0, abs=1e-7)
