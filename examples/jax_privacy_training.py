"""Private training in JAX with jax_privacy, audited by canaries: ``python examples/jax_privacy_training.py``.

It trains a small network on scikit-learn's digits. The lines that end in ``# audit`` are all that the audit adds to a
private training. Options:

- ``--correlated``: noise correlated by matrix factorisation, each example in one step;
- ``--no-data``: gradients of the data are zero. With independent noise every canary takes part in every step;
- ``--break FAULT``: breaks the privacy on purpose; ``broken_privacy.py`` makes a table of which fault is seen.

With correlated noise step t releases the increment y_t = g_t + (C⁻¹z)_t. ``WhitenedClients`` takes C, and scores
Σ_s C_ts y_s, whose noise z_t is independent. Cosines with the increments alone would measure more noise than the
claim's.
"""

import argparse
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax_privacy import batch_selection, clipped_grad, noise_addition
from jax_privacy.accounting import (
    DpParams,
    DpsgdTrainingAccountant,
    PldAccountantConfig,
    SingleReleaseTrainingAccountant,
)
from jax_privacy.matrix_factorization import toeplitz
from sklearn.datasets import load_digits

import canaryproof as cp
from canaryproof import Canaries, CanaryClients, Insertion, Scores, audit, bernoulli, flatten, split  # audit

CLIP_NORM, DELTA, RATE = 1.0, 1e-5, 0.5
HELD_OUT = 297
# Examples of a training without data, whose gradients are zero.
FEW = 400
FAULTS = {
    "noise-per-microbatch": "each of four micro-batches adds a quarter of the standard deviation, in all half of it",
    "batch-twice": "the noise is divided by the batch size twice: before it is added, and with the gradients",
    "clip-after-average": "the mean gradient is clipped, and not each example's",
    "fixed-batches": "batches are shuffled, where the accountant assumes Poisson sampling",
    "normalised-after-noise": "the noised sum is divided by the number of examples that were drawn",
    "reused-noise": "the noise generator gets the same seed in every step",
    "sensitivity-apart": "the noise is scaled by a sensitivity that is not the clip norm",
    "fixed-size": "batches of one size are drawn, where the accountant assumes Poisson sampling",
    "padding": "a batch is padded with copies of an example, which are summed like the others",
    "per-layer": "each layer is clipped to the whole clip norm, and the noise is that for one clip norm",
    "coarse-noise": "the noise has the precision of bfloat16",
    "accounted-steps": "the accountant counts half of the steps",
    "accounted-delta": "the accountant computes ε at a hundred times the claimed δ",
}


def digits(number=None):
    """Return scikit-learn's digits, 1,500 or a smaller number for training and the others for testing."""
    x, y = load_digits(return_X_y=True)
    x = np.float32(x / 16.0)
    return (x[HELD_OUT:][:number], y[HELD_OUT:][:number]), (x[:HELD_OUT], y[:HELD_OUT])


def first_parameters(key):
    """Draw the parameters of a network with one hidden layer."""
    one, two = jax.random.split(key)
    return {
        "hidden": {"weights": jax.random.normal(one, (64, 64)) / 8.0, "bias": jnp.zeros(64)},
        "out": {"weights": jax.random.normal(two, (64, 10)) / 8.0, "bias": jnp.zeros(10)},
    }


def logits(params, x):
    """Return the classes' scores."""
    hidden = jax.nn.relu(x @ params["hidden"]["weights"] + params["hidden"]["bias"])
    return hidden @ params["out"]["weights"] + params["out"]["bias"]


def loss(params, x, y):
    """Return the mean cross-entropy."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(params, x)), y[:, jnp.newaxis], axis=1).mean()


def gradients(fault, loss=loss, batch=(1, 2)):
    """Return what adds up clipped gradients of examples; or with a fault clips their mean, or each layer."""
    if fault == "per-layer":
        each = jax.vmap(
            jax.grad(lambda p, *example: loss(p, *(array[None] for array in example))), (None, *[0] * len(batch))
        )

        def clip_layers(params, *arrays, is_padding_example):
            def total(rows):
                norms = jnp.linalg.norm(rows.reshape(len(rows), -1), axis=1)
                factors = jnp.where(is_padding_example, 0.0, CLIP_NORM / jnp.maximum(norms, CLIP_NORM))
                return jnp.tensordot(factors, rows, 1)

            return jax.tree.map(total, each(params, *arrays))

        return jax.jit(clip_layers)
    if fault != "clip-after-average":
        return jax.jit(clipped_grad(loss, l2_clip_norm=CLIP_NORM, batch_argnums=batch))
    total = clipped_grad(loss, l2_clip_norm=jnp.inf, batch_argnums=batch)

    def clip_mean(params, *arrays, is_padding_example):
        summed, number = total(params, *arrays, is_padding_example=is_padding_example), (~is_padding_example).sum()
        norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(summed))) / jnp.maximum(number, 1)
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, CLIP_NORM / norm), summed)

    return jax.jit(clip_mean)


def coarse_noise(deviation, seed):
    """Return a privatizer whose noise has the precision of bfloat16."""

    def update(grads, key):
        key, *keys = jax.random.split(key, 1 + len(jax.tree.leaves(grads)))
        keys = jax.tree.unflatten(jax.tree.structure(grads), keys)
        noisy = jax.tree.map(lambda g, k: g + deviation * jax.random.normal(k, g.shape, jnp.bfloat16), grads, keys)
        return noisy, key

    return SimpleNamespace(init=lambda _: jax.random.key(seed), update=update)


def noise(noise_multiplier, batch, steps, correlated, fault, seed):
    """Return a privatizer of jax_privacy, and its matrix C, whose columns have norm 1."""
    shares = {"noise-per-microbatch": 0.5, "batch-twice": 1 / batch, "sensitivity-apart": 4.8e-5}
    deviation = noise_multiplier * CLIP_NORM * shares.get(fault, 1.0)
    if fault == "coarse-noise":
        return coarse_noise(deviation, seed), np.eye(steps)
    if not correlated:
        return noise_addition.gaussian_privatizer(stddev=deviation, prng_key=seed), np.eye(steps)
    strategy = toeplitz.optimal_max_error_strategy_coefs(steps)
    strategy /= jnp.linalg.norm(strategy)
    matrix = np.asarray(toeplitz.materialize_lower_triangular(strategy, steps))
    inverse = toeplitz.inverse_as_streaming_matrix(strategy, column_normalize_for_n=steps)
    privatizer = noise_addition.matrix_factorization_privatizer(inverse, stddev=deviation, prng_key=seed)
    return privatizer, matrix / np.linalg.norm(matrix, axis=0)


def analytical(noise_multiplier, steps, examples, batch, correlated, fault=None):
    """Return ε by jax_privacy's accountant, which has half of the steps or another δ by a fault; and our claim."""
    kind = SingleReleaseTrainingAccountant if correlated else DpsgdTrainingAccountant
    delta = 100 * DELTA if fault == "accounted-delta" else DELTA
    params = DpParams(noise_multipliers=noise_multiplier, num_samples=examples, delta=delta, batch_size=batch)
    counted = 1 if correlated else steps // 2 if fault == "accounted-steps" else steps
    theirs = kind(PldAccountantConfig()).compute_epsilon(counted, params)
    if correlated:
        return theirs, cp.accounting.gaussian(noise_multiplier)
    return theirs, cp.accounting.poisson(noise_multiplier, rate=batch / examples, rounds=steps)


def canary_clients(canaries, participation, found, shuffled):
    """Return the canary clients of a training; with correlated noise those who whiten it by its matrix."""
    if found.correlated:
        return cp.WhitenedClients(canaries, participation, found.matrix)
    return CanaryClients(canaries, participation, noise_multiplier=None if shuffled else found.noise)


def drawn(fault, number, batches, steps, seed):
    """Yield the examples of each step: by Poisson sampling, or with a fault in batches of one size."""
    rng, size = np.random.default_rng(seed), -(-number // batches)
    if fault == "fixed-batches":
        yield from (part for _ in range(steps // batches) for part in np.array_split(rng.permutation(number), batches))
    elif fault == "fixed-size":
        yield from (rng.permutation(number)[:size] for _ in range(steps))
    else:
        yield from batch_selection.CyclicPoissonSampling(size / number, steps).batch_iterator(number, rng=rng)


def train(
    data,
    *,
    noise_multiplier=2.0,
    batches=8,
    epochs=20,
    canaries=1000,
    correlated=False,
    no_data=False,
    fault=None,
    seed=0,
):
    """Train, and return the parameters with the analytical ε and the canaries."""
    x, y = data
    batch, steps = -(-len(x) // batches), batches * epochs
    found = SimpleNamespace(noise=noise_multiplier, steps=steps, correlated=correlated, released=[])
    found.epsilon, found.claim = analytical(noise_multiplier, steps, len(x), batch, correlated, fault)
    # Who knows how steps were drawn is the attacker of a claim that counts on it.
    found.score = "likelihood" if found.claim.attacker == "sampling" else "known rounds"
    if fault == "fixed-batches":
        found.score = "largest"
    params = initial = first_parameters(jax.random.key(seed))
    dim = found.dim = sum(leaf.size for leaf in jax.tree.leaves(params))
    summed = gradients(fault)
    privatizer, found.matrix = noise(noise_multiplier, batch, steps, correlated, fault, seed)
    state = privatizer.init(params)
    shuffled = correlated or fault == "fixed-batches"
    chosen = drawn("fixed-batches" if shuffled else fault, len(x), batches, steps, seed)
    participation = bernoulli(0, batch / len(x), steps, seed, Insertion(2 * canaries))  # audit
    if shuffled:
        # Who shuffles says so, and canaries take part once in each epoch, as examples do.
        participation = cp.shuffled_epochs(batches, 1, epochs, seed, Insertion(2 * canaries))
    found.canaries = canary_clients(Canaries(seed, 2 * canaries, dim), participation, found, shuffled)  # audit
    for t, indices in enumerate(chosen):
        padded = batch_selection.pad_to_multiple_of(indices, 64)
        padding = (padded < 0) & (fault != "padding")
        grads = others = summed(params, x[padded], y[padded], is_padding_example=padding | no_data)
        grads = jax.tree.map(jnp.subtract, grads, split(found.canaries.total(t, CLIP_NORM), grads))  # audit
        noisy, state = privatizer.update(grads, privatizer.init(params) if fault == "reused-noise" else state)
        found.canaries.add(-flatten(noisy), t, known=-flatten(others))  # audit
        number = max(1, len(indices)) if fault == "normalised-after-noise" else batch
        params = jax.tree.map(lambda p, g, number=number: p - RATE / number * g, params, noisy)
        # The adversary of differential privacy knows all other data.
        found.released.append(ravel_pytree(others)[0] - ravel_pytree(noisy)[0])
    found.params, found.change = params, np.asarray(ravel_pytree(params)[0] - ravel_pytree(initial)[0])
    return found


def audit_claim(found):
    """Audit what the attacker finds whom the claim holds against."""
    return audit(found.canaries.scores(found.score), DELTA, claim=found.claim)  # audit


def audit_known_rounds(found):
    """Audit what an attacker finds who knows a canary's steps, against the claim for him."""
    return audit(found.canaries.scores("known rounds"), DELTA, noise_multiplier=found.noise)


def audit_largest(found):
    """Audit what an attacker finds who knows nothing of a canary's steps."""
    return audit(Scores(*found.canaries.all_rounds(), inclusion="coin"), DELTA, claim=found.epsilon)


def audit_final(found):
    """Audit the final parameters: Algorithm 2."""
    observed = found.canaries.final(found.change)[0]
    return audit(Scores(observed, dim=found.dim, inserted=len(observed)), DELTA, claim=found.epsilon)


def audit_own_steps(found):
    """Audit the same by hand, for canaries of one step: Σ_s (CᵀC)_ts y_s along a canary of step t."""
    combined = found.matrix.T @ found.matrix @ np.array(found.released)
    made, members = found.canaries.canaries, found.canaries.participants
    observed = np.concatenate([made.cosines(combined[t])[members(t)] for t in range(found.steps)])
    return audit(Scores(observed, dim=found.dim), DELTA, claim=found.epsilon)


def no_data(canaries=300, *, correlated=False, **options):
    """Train without data; noise such that the canaries are little beside it."""
    setting = {"batches": 10, "epochs": 1} if correlated else {"batches": 1, "epochs": 10, "noise_multiplier": 3.0}
    found = train(digits(FEW)[0], canaries=canaries, correlated=correlated, no_data=True, **(setting | options))
    found.known_rounds, found.largest = audit_known_rounds(found), audit_largest(found)
    found.final = audit_own_steps(found) if correlated else audit_final(found)
    # Independent noise: the final parameters hold that of all steps, and a canary as often as it takes part.
    found.sigma = found.noise if correlated else found.noise / (found.claim.rate or 1.0) / found.steps**0.5
    return found


def small():
    """Train for two epochs."""
    return train(digits()[0], epochs=2, canaries=20)


def report(found, test):
    """Print the analytical ε of jax_privacy's accountant and of ours, and the audits."""
    x, y = test
    right = float(np.mean(np.asarray(logits(found.params, x)).argmax(axis=1) == y))
    print(f"{found.steps} steps; {found.claim}")
    print(f"{found.dim:,} parameters, accuracy {right:.3f}")
    print(f"analytical ε at δ = {DELTA:g}: jax_privacy {found.epsilon:.3f};")
    print(f"  canaryproof {found.claim.epsilon(DELTA):.3f}, {found.claim.basis(DELTA)}")
    alarm = found.canaries.evidence(found.noise).alarm()
    print("\nEvidence against the claimed noise:", "no alarm" if alarm is None else f"an alarm at step {alarm + 1}")
    print(f"\nFrom the noise of every step, by the score '{found.score}':", audit_claim(found), sep="\n")
    if found.score != "known rounds":
        print("\nFor an attacker who knows a canary's steps:", audit_known_rounds(found), sep="\n")
    print("\nAlgorithm 2, from the final parameters less the initial ones:", audit_final(found), sep="\n")


def main():
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--correlated", action="store_true", help="noise correlated by matrix factorisation")
    parser.add_argument("--no-data", action="store_true", help="zero gradients")
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="break the privacy on purpose")
    options = parser.parse_args()
    kind = {"correlated": options.correlated, "fault": options.fault}
    epochs = 1 if options.correlated else 20
    found = no_data(**kind) if options.no_data else train(digits()[0], epochs=epochs, **kind)
    report(found, digits()[1])


if __name__ == "__main__":
    main()
