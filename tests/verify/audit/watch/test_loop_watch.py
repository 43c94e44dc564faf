"""A watch over functions: honest trainings in JAX stay as they were, and faults of each function fail its question."""

import os
import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import canaryproof as cp

jax = pytest.importorskip("jax", reason="needs jax")
from jax.flatten_util import ravel_pytree  # noqa: E402

from tests.verify.audit.watch.cells import DECIDED_ELSEWHERE  # noqa: E402

jnp = jax.numpy

MEMBERS, DIM, RATE, STEPS = 300, 300, 0.2, 17


def rows_of(params, x, y):
    return jax.vmap(lambda a, b: jax.grad(lambda w: (a @ w["w"] + w["b"] - b) ** 2)(params))(x, y)


def clip(rows, real, norm=1.0):
    squares = sum(jnp.square(leaf).reshape(len(leaf), -1).sum(axis=1) for leaf in jax.tree.leaves(rows))
    factors = jnp.where(real, 1.0 / jnp.maximum(jnp.sqrt(squares) / norm, 1.0), 0.0)
    return jax.tree.map(lambda leaf: jnp.tensordot(factors, leaf, 1), rows)


def honest(params, x, y, *, is_padding_example):
    return clip(rows_of(params, x, y), ~is_padding_example)


def without_mean(params, x, y, *, is_padding_example):
    """A model that mixes examples."""
    real = ~is_padding_example[:, None]
    return honest(params, x - jnp.where(real, x, 0.0).mean(axis=0), y, is_padding_example=is_padding_example)


def with_neighbour(params, x, y, *, is_padding_example):
    """A loss that mixes examples."""
    rows = rows_of(params, x, y)
    return clip(jax.tree.map(lambda leaf: leaf + jnp.roll(leaf, 1, axis=0), rows), ~is_padding_example)


def to_11(params, x, y, *, is_padding_example):
    return clip(rows_of(params, x, y), ~is_padding_example, 1.1)


def mean_clipped(params, x, y, *, is_padding_example):
    rows, count = rows_of(params, x, y), jnp.maximum((~is_padding_example).sum(), 1)
    mean = jax.tree.map(lambda leaf: jnp.tensordot(jnp.where(is_padding_example, 0.0, 1.0), leaf, 1) / count, rows)
    return jax.tree.map(lambda leaf: leaf * count, clip(jax.tree.map(lambda leaf: leaf[None], mean), jnp.array([True])))


def gaussian(share=1.0):
    def update(sums, key):
        key, *keys = jax.random.split(key, 1 + len(jax.tree.leaves(sums)))
        keys = jax.tree.unflatten(jax.tree.structure(sums), keys)
        return jax.tree.map(lambda leaf, each: leaf + share * jax.random.normal(each, leaf.shape), sums, keys), key

    return SimpleNamespace(update=update)


def train(
    total=honest,
    privatizer=None,
    watched=True,
    draw=None,
    seed=0,
    steps=STEPS,
    copies=False,
    by_drawn=False,
    state=None,
    ahead=0,
    matrix=None,
    noise_multiplier=1.0,
    compiled=jax.jit,
    put=lambda each: each,
    padded_to=128,
    **options,
):
    """Train a linear model in plain JAX, and return its parameters and the watch."""
    rng = np.random.default_rng(seed)
    x = np.float32(rng.normal(size=(MEMBERS, DIM - 1)))
    y = np.float32(rng.normal(size=MEMBERS))
    params = {"b": jnp.zeros(()), "w": jnp.zeros(DIM - 1)}
    privatizer = gaussian() if privatizer is None else privatizer
    batches = (np.flatnonzero(rng.random(MEMBERS) < RATE) if draw is None else draw(t) for t in range(steps + ahead))
    total, watch = compiled(total), None
    if watched:
        watch = cp.watch(delta=1e-5, members=MEMBERS, rate=RATE, **options)
        total = watch.gradients(total, clip_norm=1.0)
        privatizer = watch.noise(privatizer, matrix=matrix, noise_multiplier=noise_multiplier)
        batches = watch.batches(batches)
    state = jax.random.key(seed) if state is None else state
    held = [next(batches) for _ in range(ahead)]
    for batch in batches:
        held.append(batch)
        drawn = held.pop(0)
        size = padded_to or len(drawn)
        padded = np.append(drawn, np.full(size - len(drawn), drawn[0] if copies else -1))
        padding = {"is_padding_example": put((np.arange(size) >= len(drawn)) & (not copies))} if padded_to else {}
        sums = total(params, put(x[padded]), put(y[padded]), **padding)
        noised, state = privatizer.update(sums, state)
        divisor = len(drawn) if by_drawn else RATE * MEMBERS
        params = jax.tree.map(lambda p, g, divisor=divisor: p - 0.1 / divisor * g, params, noised)
    return params, watch


def failed(watch):
    return [finding.question.value for finding in watch.close().findings if finding.status == "failed"]


def test_an_honest_training_passes_and_its_parameters_are_those_without_a_watch():
    params, watch = train()
    without, _ = train(watched=False)
    assert all(map(np.array_equal, jax.tree.leaves(params), jax.tree.leaves(without)))
    answer = watch.close()
    assert answer.decision.outcome == "PASSED", str(answer)
    assert "alone, 10 examples have the same gradients" in answer.finding("clipping").because
    # The layers have the parameters' names.
    assert list(watch._layers.items()) == [("['b']", 1), ("['w']", DIM - 1)]


def test_a_part_that_is_not_looked_at_is_said():
    """Examples are looked at one by one; the divisor shows where parameters move along the release often enough."""
    watch = train()[1]
    assert "not looked at" not in watch.answer().finding("clipping").because
    assert "; not looked at: what moves the parameters besides the releases" in watch.answer().finding("leak").because
    parts = [each.because for each in train(steps=3)[1]._record().observations]
    assert parts == ["what the noised sum is divided by", "what moves the parameters besides the releases"]


@pytest.mark.parametrize("total", [without_mean, with_neighbour, to_11, mean_clipped], ids=lambda each: each.__name__)
def test_gradients_that_are_not_clipped_one_by_one_fail_the_clipping(total):
    _, watch = train(total, steps=2)
    assert failed(watch) == ["clipping"]


def fixed(t):
    size = int(RATE * MEMBERS)
    return np.arange(size) + size * (t % int(1 / RATE))


FAULTS = {
    "half of the noise": ({"privatizer": gaussian(0.5)}, ["noise", "leak"]),
    "fixed batches": ({"draw": fixed}, ["sampling"]),
    "copies that count": ({"copies": True}, ["clipping"]),
    "divided by the number drawn": ({"by_drawn": True}, ["clipping"]),
    "noise that is not counted": ({"noise_multiplier": 2.0}, ["noise", "leak"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_fail_their_question(name):
    options, questions = FAULTS[name]
    _, watch = train(**options)
    assert failed(watch) == questions
    if name == "divided by the number drawn":
        assert "is divided by the number that was drawn" in watch.answer().finding("clipping").because
    if name == "copies that count":
        assert "times in the batch, left out" in watch.answer().finding("clipping").because


def test_batches_may_be_drawn_ahead_of_their_steps():
    _, watch = train(ahead=3)
    assert watch.close().decision.outcome == "PASSED"


def test_a_member_that_is_replaced_changes_a_sum_by_two_clip_norms():
    claim = cp.accounting.poisson(8.0, rate=RATE, rounds=STEPS, neighbours="replace")
    _, watch = train(claim=claim, privatizer=gaussian(8.0), noise_multiplier=None, steps=4)
    worst = watch._record().clipping.worst
    assert 1.0 < worst.change <= worst.limit < 2.01
    assert "clipping" not in failed(watch)


def test_batches_of_a_fixed_size_have_a_member_in_anothers_place(tmp_path):
    claim = cp.accounting.fixed_batches(8.0, batch=60, records=MEMBERS, rounds=STEPS, neighbours="replace")
    _, watch = train(claim=claim, privatizer=gaussian(8.0), noise_multiplier=8.0, draw=fixed, steps=2)
    assert 1.0 < watch._record().clipping.worst.limit / 2.0 < 1.01
    watch.save(tmp_path / "watch.json")


def correlated(inverse):
    """Return a privatizer whose noise is the inverse of a matrix times independent noise."""

    def update(sums, state):
        step, key = state
        flat, shape = ravel_pytree(sums)
        noise = sum(
            inverse[step, s] * jax.random.normal(jax.random.fold_in(key, s), flat.shape) for s in range(step + 1)
        )
        return shape(flat + noise), (step + 1, key)

    return SimpleNamespace(update=update)


# The matrix C of correlated noise.
MATRIX = np.tril(0.5 ** np.subtract.outer(np.arange(STEPS), np.arange(STEPS)).clip(0))


def test_correlated_noise_is_looked_at_with_its_matrix_alone():
    privatizer, state = correlated(np.linalg.inv(MATRIX)), (0, jax.random.key(3))
    _, watch = train(privatizer=privatizer, state=state, matrix=MATRIX)
    assert watch.close().finding("noise").status == "as claimed", str(watch.answer())
    _, watch = train(privatizer=correlated(0.5 * np.linalg.inv(MATRIX)), state=state, matrix=MATRIX)
    assert "noise" in failed(watch)
    _, watch = train(privatizer=privatizer, state=state)
    finding = watch.close().finding("noise")
    assert (finding.status, failed(watch)) == ("cannot say", [])
    assert "may be correlated" in finding.because
    with pytest.raises(ValueError, match="matrix: must be lower triangular"):
        watch.noise(privatizer, matrix=np.ones((2, 2)))


def unpadded(params, x, y):
    return clip(rows_of(params, x, y), jnp.ones(len(x), bool))


@cache
def of_jax_privacy():
    """Return jax_privacy's gradients of the same loss, and its noise."""
    given = pytest.importorskip("jax_privacy", reason="needs jax_privacy")

    def loss(params, x, y):
        return jnp.square(x @ params["w"] + params["b"] - y).mean()

    return given.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2)), given.noise_addition.gaussian_privatizer


def train_cell(name, seed=0):
    """Train as a row of the page's tables says, and return the watch."""
    claim = cp.accounting.poisson(1.0, rate=RATE, rounds=STEPS)
    options = {"claim": claim, "noise_multiplier": None}
    if name == "functions that are not compiled":
        options["compiled"] = lambda each: each
    if name == "batches without padding":
        options |= {"total": unpadded, "padded_to": None}
    if name == "batches that are drawn ahead":
        options["ahead"] = 3
    if name == "correlated noise, with its matrix":
        options |= {"matrix": MATRIX, "privatizer": correlated(np.linalg.inv(MATRIX))}
        options["state"] = (0, jax.random.key(seed))
    if name == "a claim about replacing a member":
        options["claim"] = cp.accounting.poisson(8.0, rate=RATE, rounds=STEPS, neighbours="replace")
        options["privatizer"] = gaussian(8.0)
    if name == "`clipped_grad` and `gaussian_privatizer`":
        total, privatizer = of_jax_privacy()
        privatizer = privatizer(stddev=1.0, prng_key=seed)
        options |= {"total": total, "privatizer": privatizer, "state": privatizer.init({"b": 0.0, "w": 0.0})}
    return train(seed=seed, **options)[1]


@pytest.mark.filterwarnings("ignore:optax")
@pytest.mark.parametrize("name", DECIDED_ELSEWHERE["jax_privacy"])
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(20), marks=pytest.mark.deep)], ids=["one", "twenty"])
def test_honest_trainings_of_a_kind_are_passed(name, seeds):
    for seed in seeds:
        watch = train_cell(name, seed)
        assert (watch.close().decision.outcome, failed(watch)) == ("PASSED", []), (seed, str(watch.answer()))


# The number of devices is decided before JAX is imported.
ON_TWO_DEVICES = """
import jax, numpy as np
from tests.verify.audit.watch import test_loop_watch as t

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))

def put(each):
    return jax.device_put(each, rows)

assert len(put(np.zeros(128)).addressable_shards) == 2
params, watch = t.train(put=put)
without, _ = t.train(put=put, watched=False)
assert all(map(np.array_equal, *map(jax.tree.leaves, (params, without))))
print(watch.close().decision.outcome, t.failed(t.train(t.without_mean, put=put)[1]))
"""


@pytest.mark.deep
def test_rows_may_be_on_several_devices():
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    seen = subprocess.run(
        [sys.executable, "-c", ON_TWO_DEVICES], check=False, env=environment, capture_output=True, text=True
    )
    assert seen.stdout == "PASSED ['clipping']\n", seen.stderr


def test_donated_arguments_are_not_used_again():
    """A buffer that was given away is an error where it is read, so that a shadow run needs copies."""
    watch, padding = cp.watch(delta=1e-5), jnp.arange(8) > 5
    given = jax.jit(honest, donate_argnums=0)
    params, x, y = {"b": jnp.zeros(()), "w": jnp.zeros(5)}, jnp.ones((8, 5)), jnp.ones(8)
    sums = watch.gradients(given, clip_norm=1.0)(params, x, y, is_padding_example=padding)
    assert params["w"].is_deleted()
    donated = jax.jit(gaussian().update, donate_argnums=0)
    watch.noise(SimpleNamespace(update=donated), noise_multiplier=1.0).update(sums, jax.random.key(0))
    assert sums["w"].is_deleted()
    assert (watch.steps, watch._record().clipping.trials, failed(watch)) == (1, 4, [])


@pytest.mark.filterwarnings("ignore:optax")
@pytest.mark.parametrize("compiled", [lambda each: each, jax.jit], ids=["as it is", "compiled"])
def test_clipped_grad_says_its_clip_norm(compiled):
    clipped_grad = pytest.importorskip("jax_privacy", reason="needs jax_privacy").clipped_grad
    given = compiled(clipped_grad(lambda params, x: jnp.vdot(x, params), l2_clip_norm=0.5))
    watch = cp.watch(delta=1e-5)
    watch.gradients(given)(jnp.zeros(3), jnp.ones((4, 3)), is_padding_example=jnp.arange(4) > 2)
    assert watch._clip_norm == 0.5
    assert watch.answer().finding("clipping").status == "as claimed"


def test_functions_inside_a_compiled_step_are_not_looked_at():
    watch = cp.watch(delta=1e-5, members=MEMBERS, rate=RATE)
    total, privatizer = watch.gradients(honest, clip_norm=1.0), watch.noise(gaussian())

    @jax.jit
    def step(params, x, y, key):
        sums = total(params, x, y, is_padding_example=jnp.zeros(len(x), bool))
        return privatizer.update(sums, key)

    params = {"b": jnp.zeros(()), "w": jnp.zeros(3)}
    step(params, jnp.ones((4, 3)), jnp.ones(4), jax.random.key(0))
    answer = watch.close()
    assert answer.decision.outcome == "CANNOT SAY"
    assert "inside of a compiled function" in answer.finding("clipping").because


def test_a_key_among_the_arguments_needs_padding():
    """Random numbers may depend on how many rows there are."""

    def dropped(params, x, y, key):
        kept = jax.random.bernoulli(key, 0.5, x.shape)
        return clip(rows_of(params, x * kept, y), jnp.ones(len(x), bool))

    def with_padding(params, x, y, key, *, is_padding_example):
        kept = jax.random.bernoulli(key, 0.5, x.shape)
        return clip(rows_of(params, x * kept, y), ~is_padding_example)

    params, x, y = {"b": jnp.zeros(()), "w": jnp.zeros(5)}, jnp.ones((8, 5)), jnp.ones(8)
    watch = cp.watch(delta=1e-5)
    watch.gradients(dropped, clip_norm=1.0)(params, x, y, jax.random.key(0))
    assert watch.answer().finding("clipping").status == "cannot say"
    watch = cp.watch(delta=1e-5)
    padding = jnp.arange(8) > 5
    watch.gradients(with_padding, clip_norm=1.0)(params, x, y, jax.random.key(0), is_padding_example=padding)
    assert watch.answer().finding("clipping").status == "as claimed"


def test_what_is_refused_is_said_in_a_line():
    watch = cp.watch(delta=1e-5)
    with pytest.raises(ValueError, match="clip_norm: must be given, as the function does not say it"):
        watch.gradients(honest)
    with pytest.raises(ValueError, match="batches: must be lists of members' numbers"):
        next(watch.batches([[0.5]]))
    with pytest.raises(ValueError, match="without, with_it: must be vectors of one length"):
        watch.take_shadow("a member", [0.0], [0.0, 1.0], 1.0)
