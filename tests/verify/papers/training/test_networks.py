from dataclasses import replace

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import expit, log_softmax

from canaryproof.verify.audit.canaries.shapes import flatten
from canaryproof.verify.papers.claims.canife import experiments as canife_experiments
from canaryproof.verify.papers.training.data import digits
from canaryproof.verify.papers.training.data.federation import Federation
from canaryproof.verify.papers.training.networks import NAMES, model

RNG = np.random.default_rng(8)


def of_images(height, width, classes, count=6, channels=1):
    inputs = RNG.random((count, height, width, channels), dtype=np.float32)
    labels = RNG.integers(0, classes, count, dtype=np.int32)
    return Federation("images", inputs, labels, np.array([0, count]), inputs, labels, classes)


def of_text(length, vocabulary, classes=None, count=6):
    tokens = RNG.integers(0, vocabulary, (count, length + 1), dtype=np.int32)
    labels = tokens[:, 1:] if classes is None else RNG.integers(0, classes, count, dtype=np.int32)
    inputs, classes = tokens[:, :-1], classes or vocabulary
    return Federation("text", inputs, labels, np.array([0, count]), inputs, labels, classes, vocabulary)


def with_gaps(federation):
    """Nothing is to be predicted at some places, and nowhere in the second text; two labels aren't scored."""
    labels = np.where(RNG.random(federation.labels.shape) < 0.3, -1, federation.labels)
    labels[1], labels[0, 0], labels[2, :2] = -1, 0, -1
    return replace(federation, labels=labels, test_labels=labels, unscored=(0, 3))


def with_vectors(federation, width):
    return replace(federation, vectors=RNG.normal(size=(federation.vocabulary, width)).astype(np.float32))


@pytest.mark.deep(every=3)
@pytest.mark.parametrize(
    ("name", "federation", "dim"),
    [
        # By hand: 784 · 128 + 128 + 128 · 10 + 10.
        ("two_layer", of_images(28, 28, 10), 101_770),
        # As google-research/federated counts them; hand counts of layers add up to them too.
        ("small_cnn", of_images(28, 28, 62), 1_206_590),
        ("small_cnn", of_images(28, 28, 10), 1_199_882),
        ("char_lstm", of_text(5, 90), 820_522),
        # Reddi et al.'s, 96 (V + 4 · 670) + 4 · 670 (670 + 1) + (670 + 1) 96 + (96 + 1) V; "4.1 million" in print.
        ("word_lstm", of_text(20, 10_004), 4_050_748),
        # Printed in CANIFE's Appendix B.
        ("four_layer_cnn", of_images(32, 32, 2, channels=3), 29_282),
        ("resnet18", of_images(32, 32, 2, channels=3), 11_177_538),
        ("sent140_lstm", of_text(25, 101, classes=2), 272_102),
        ("leaf_lstm", of_text(80, 80), 819_920),
        ("leaf_lstm", of_text(80, 80, classes=80), 819_920),
        # As the ledger counts other sizes.
        ("four_layer_cnn", of_images(84, 84, 2, channels=3), canife_experiments.four_layers(2, 84, 2, 1)),
        ("resnet18", of_images(84, 84, 10, channels=3), canife_experiments.resnet18(10)),
        ("sent140_lstm", with_vectors(of_text(25, 30, classes=2), 300), canife_experiments.sentiment(0, 300)),
        ("leaf_lstm", of_text(80, 47), canife_experiments.characters(47, 47)),
    ],
)
def test_dimensions(name, federation, dim):
    network = model(name, federation)
    assert (network.name, network.dim) == (name, dim)
    assert len(flatten(network.init(0))) == dim


# Small ones of every form, with one example in which the plain computations below can be followed.
SMALL = {
    "two_layer": (of_images(4, 3, 3), 5),
    # An odd number of rows is left after two convolutions, and the maximum leaves the last out.
    "small_cnn": (of_images(7, 8, 3), 5),
    "char_lstm": (of_text(4, 6), 5),
    "char_lstm of classes": (of_text(4, 6, classes=2), 5),
    # Odd numbers of rows and columns are left on the way.
    "four_layer_cnn": (of_images(9, 14, 3, channels=3), 4),
    # Groups of three channels, and no stage of a single pixel, which would be its own mean.
    "resnet18": (of_images(36, 40, 3, channels=2), 3),
    "word_lstm": (with_gaps(of_text(5, 6)), 5),
    "sent140_lstm": (with_vectors(of_text(4, 6, classes=2), 7), 5),
    "leaf_lstm": (of_text(4, 6), 5),
}


# To compile the largest takes as long as all others.
@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.deep if name == "resnet18" else ()) for name in SMALL]
)
def small(request):
    """A small model, its federation, the compiled gradients of its loss, and parameters none of which is 0."""
    federation, hidden = SMALL[request.param]
    network = model(request.param.partition(" ")[0], federation, hidden)
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda leaf: np.float32(rng.normal(0, 0.5, leaf.shape)), network.init(0))
    return network, federation, jax.jit(jax.value_and_grad(network.loss)), params


def dense(layer, inputs):
    return inputs @ np.float64(layer["kernel"]) + np.float64(layer["bias"])


def plain_two_layer(params, image):
    return dense(params["Dense_1"], np.maximum(dense(params["Dense_0"], image.ravel()), 0))


def convolved(kernel, image, padding, width=3, stride=1):
    image = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(image, (width, width), (0, 1))[::stride, ::stride]
    kernel = np.float64(kernel).reshape(width, width, image.shape[2], -1)
    return np.tensordot(windows, kernel, ((3, 4, 2), (0, 1, 2)))


def plain_small_cnn(params, image):
    features = np.float64(image)
    for layer in (params["Dense_0"], params["Dense_1"]):
        features = np.maximum(convolved(layer["kernel"], features, 0) + np.float64(layer["bias"]), 0)
    rows, columns = features.shape[0] // 2, features.shape[1] // 2
    pooled = [
        [features[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(0, 1)) for j in range(columns)] for i in range(rows)
    ]
    return dense(params["Dense_3"], np.maximum(dense(params["Dense_2"], np.ravel(pooled)), 0))


def normalised(layer, image, groups):
    """Normalise as PyTorch describes it, for one image."""
    parts = np.split(image, groups, axis=-1)
    parts = [(part - part.mean()) / np.sqrt(part.var() + 1e-5) for part in parts]
    return np.concatenate(parts, axis=-1) * np.float64(layer["scale"]) + np.float64(layer["bias"])


def largest(image, window, padding):
    image = np.pad(image, ((padding, padding), (padding, padding), (0, 0)), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(image, (window, window), (0, 1))[::2, ::2].max(axis=(-2, -1))


def plain_four_layer(params, image):
    features = np.float64(image)
    for i in range(4):
        layer = params[f"Dense_{i}"]
        features = convolved(layer["kernel"], features, 2) + np.float64(layer["bias"])
        features = largest(np.maximum(normalised(params["_GroupNorm_0"], features, features.shape[-1]), 0), 2, 0)
    return dense(params["Dense_4"], features.ravel())


def plain_resnet18(params, image):
    def layer(params, i, features, width, stride):
        features = convolved(params[f"_Convolution_{i}"]["Dense_0"]["kernel"], features, width // 2, width, stride)
        # 3, 6, 12 and 24 channels: 32 has these divisors in common with them.
        groups = {3: 1, 6: 2, 12: 4, 24: 8}[features.shape[-1]]
        return normalised(params[f"_GroupNorm_{i}"], features, groups)

    features = largest(np.maximum(layer(params, 0, np.float64(image), 7, 2), 0), 3, 1)
    for i in range(8):
        block, stride = params[f"_Residual_{i}"], 2 if i in (2, 4, 6) else 1
        inner = layer(block, 1, np.maximum(layer(block, 0, features, 3, stride), 0), 3, 1)
        features = np.maximum(inner + (features if stride == 1 else layer(block, 2, features, 1, 2)), 0)
    return dense(params["Dense_0"], features.mean(axis=(0, 1)))


def plain_text(params, tokens, vectors=None):
    """Recurrent layers one after another, and dense ones."""
    features = np.float64(params["Embed_0"]["embedding"] if vectors is None else vectors)[tokens]
    for layer in (params[name] for name in ("_Lstm_0", "_Lstm_1") if name in params):
        hidden = len(layer["recurrent"])
        output, memory, outputs = np.zeros(hidden), np.zeros(hidden), []
        for feature in features:
            sums = dense(layer, feature) + output @ np.float64(layer["recurrent"]) + layer.get("recurrent_bias", 0.0)
            gates = dict(zip("ifgo", np.split(sums, 4), strict=True))
            memory = expit(gates["f"]) * memory + expit(gates["i"]) * np.tanh(gates["g"])
            output = expit(gates["o"]) * np.tanh(memory)
            outputs.append(output)
        features = np.array(outputs)
    for layer in (params[name] for name in ("Dense_0", "Dense_1") if name in params):
        features = dense(layer, features)
    return features


PLAIN = {
    "two_layer": plain_two_layer,
    "small_cnn": plain_small_cnn,
    "four_layer_cnn": plain_four_layer,
    "resnet18": plain_resnet18,
}


def plain_logits(network, federation, params):
    if federation.vocabulary is None:
        return np.array([PLAIN[network.name](params, image) for image in federation.inputs])
    logits = np.array([plain_text(params, tokens, federation.vectors) for tokens in federation.inputs])
    return logits[:, -1] if federation.labels.ndim == 1 else logits


def plain_loss(network, federation, params, mask):
    """Mean over examples of the mean over labels that are to be predicted."""
    logits = plain_logits(network, federation, params)
    means = []
    for logs, labels in zip(log_softmax(logits, axis=-1), federation.labels, strict=True):
        rows, classes = logs.reshape(-1, logs.shape[-1]), np.ravel(labels)
        entropies = [-row[label] for row, label in zip(rows, classes, strict=True) if label >= 0]
        means.append(np.mean(entropies) if entropies else np.nan)
    return np.nanmean(np.array(means)[mask > 0])


MASK = np.float32([1, 1, 0, 1, 0, 1])


@pytest.mark.deep(beyond=4)
def test_loss_is_that_of_a_plain_computation(small):
    network, federation, loss_and_gradient, params = small
    loss, _ = loss_and_gradient(params, federation.inputs, federation.labels, MASK)
    # Float32 rounds some hundred sums and products a logit.
    np.testing.assert_allclose(loss, plain_loss(network, federation, params, MASK), rtol=1e-5)


def test_masked_examples_change_nothing(small):
    _, federation, loss_and_gradient, params = small
    mask = MASK
    loss, gradient = loss_and_gradient(params, federation.inputs, federation.labels, mask)
    inputs, labels = federation.inputs.copy(), federation.labels.copy()
    inputs[mask == 0], labels[mask == 0] = inputs[0], labels[0]
    assert not np.array_equal(inputs, federation.inputs)
    again, same = loss_and_gradient(params, inputs, labels, mask)
    assert loss == again
    np.testing.assert_allclose(flatten(gradient), flatten(same), rtol=1e-5, atol=1e-6)
    assert np.linalg.norm(flatten(gradient)) > 0.01
    loss, gradient = loss_and_gradient(params, federation.inputs, federation.labels, np.zeros(6, np.float32))
    assert loss == 0
    np.testing.assert_array_equal(flatten(gradient), 0)


@pytest.mark.deep(every=3)
def test_gradient_is_the_slope_of_the_loss(small):
    network, federation, loss_and_gradient, params = small
    mask = np.ones(6, np.float32)
    flat, shaped = ravel_pytree(params)
    rng = np.random.default_rng(2)
    gradient = flatten(loss_and_gradient(params, federation.inputs, federation.labels, mask)[1])
    direction = np.float32(rng.normal(size=network.dim))
    direction /= np.linalg.norm(direction)
    step = 2.0**-7

    def loss(scale):
        return plain_loss(network, federation, shaped(flat + np.float32(scale * step) * direction), mask)

    # Of order step² beside the slope, but where a relu or a maximum turns.
    np.testing.assert_allclose((loss(1) - loss(-1)) / (2 * step), gradient @ direction, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("small", list(SMALL)[:3], indirect=True)
def test_clients_with_parameters_of_their_own(small):
    _, federation, loss_and_gradient, params = small
    several = [jax.tree.map(lambda leaf, scale=scale: np.float32(scale) * leaf, params) for scale in (1.0, 0.5)]
    examples = (federation.inputs, federation.labels, MASK)
    batches = tuple(np.stack([array, array[::-1]]) for array in examples)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *several)
    losses, gradients = jax.vmap(loss_and_gradient)(stacked, *batches)
    for i, one in enumerate(several):
        loss, gradient = loss_and_gradient(one, *(array[i] for array in batches))
        np.testing.assert_allclose(losses[i], loss, rtol=1e-5)
        found = jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], gradients)
        np.testing.assert_allclose(flatten(found), flatten(gradient), rtol=1e-4, atol=1e-6)


# All but the network that takes longest to compile.
@pytest.mark.deep(every=3)
@pytest.mark.parametrize("small", [name for name in SMALL if name != "resnet18"], indirect=True)
def test_accuracy_counts_the_largest_logits(small):
    network, federation, _, params = small
    right = plain_logits(network, federation, params).argmax(axis=-1) == federation.labels
    scored = ~np.isin(federation.labels, (-1, *federation.unscored))
    assert scored.all() == (network.name != "word_lstm")
    expected = np.mean(right[scored])
    np.testing.assert_allclose(network.accuracy(params, federation.inputs, federation.labels), expected, rtol=1e-6)


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_accuracy_in_batches(count):
    federation = of_images(4, 3, 3, count)
    network = model("two_layer", federation, 5)
    params = network.init(0)
    expected = np.mean(plain_logits(network, federation, params).argmax(axis=-1) == federation.labels)
    np.testing.assert_allclose(network.accuracy(params, federation.inputs, federation.labels), expected, rtol=1e-6)


def test_two_biases_are_two_parameters_that_add_up(small):
    network, federation, loss_and_gradient, params = small
    if network.name not in ("sent140_lstm", "leaf_lstm"):
        assert "recurrent_bias" not in str(jax.tree.structure(params))
        return
    loss, gradient = loss_and_gradient(params, federation.inputs, federation.labels, MASK)
    moved = {**params, "_Lstm_1": dict(params["_Lstm_1"])}
    moved["_Lstm_1"]["recurrent_bias"] = params["_Lstm_1"]["recurrent_bias"] + params["_Lstm_1"]["bias"]
    moved["_Lstm_1"]["bias"] = np.zeros_like(params["_Lstm_1"]["bias"])
    np.testing.assert_allclose(loss_and_gradient(moved, federation.inputs, federation.labels, MASK)[0], loss, rtol=1e-6)
    for layer in ("_Lstm_0", "_Lstm_1"):
        assert np.linalg.norm(gradient[layer]["bias"]) > 1e-4
        np.testing.assert_array_equal(gradient[layer]["bias"], gradient[layer]["recurrent_bias"])


def test_no_label_is_scored():
    federation = of_images(4, 3, 3, 5)
    network = model("two_layer", replace(federation, unscored=(0, 1, 2)), 5)
    assert network.accuracy(network.init(0), federation.inputs, federation.labels) == 0.0


def test_parameters_stand_in_one_order(small):
    _, _, _, params = small
    np.testing.assert_array_equal(flatten(params), ravel_pytree(params)[0])


def test_initial_values_have_their_law_and_follow_the_seed():
    network = model("two_layer", of_images(28, 28, 10))
    params, again, other = (network.init(seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(flatten(params), flatten(again))
    assert not np.array_equal(flatten(params), flatten(other))
    np.testing.assert_array_equal(params["Dense_0"]["bias"], 0)
    values = np.sqrt(784) * np.asarray(params["Dense_0"]["kernel"], np.float64).ravel()
    # Sums of n = 100,352 squares of standard normal variables: each side beyond 5 deviations has probability < 4e-7.
    assert abs(np.sum(values**2) / len(values) - 1) < 5 * np.sqrt(2 / len(values))
    assert abs(values.mean()) < 5 / np.sqrt(len(values))


def test_normalisations_begin_with_scale_one():
    params = model("resnet18", of_images(9, 9, 2), 4).init(0)
    np.testing.assert_array_equal(params["_GroupNorm_0"]["scale"], 1)
    np.testing.assert_array_equal(params["_GroupNorm_0"]["bias"], 0)


def test_training_learns_digits():
    federation = digits.load(1500, seed=0)
    network = model("two_layer", federation)
    inputs, labels, mask = (array[0] for array in federation.cohort([0], 1500))

    @jax.jit
    def step(params):
        return jax.tree.map(
            lambda leaf, slope: leaf - 0.5 * slope, params, jax.grad(network.loss)(params, inputs, labels, mask)
        )

    params = network.init(0)
    before = network.accuracy(params, federation.test_inputs, federation.test_labels)
    for _ in range(100):
        params = step(params)
    # Chance is 0.1.
    assert before < 0.4
    assert network.accuracy(params, federation.test_inputs, federation.test_labels) > 0.7


@pytest.mark.parametrize(
    ("name", "federation", "hidden", "said"),
    [
        ("resnet", of_images(6, 6, 2), None, f"model must be one of {', '.join(NAMES)}, not 'resnet'"),
        ("two_layer", of_images(6, 6, 2), 0, "hidden must be at least 1, not 0"),
        ("two_layer", of_text(4, 6), None, "model two_layer takes images, and text is of text"),
        ("small_cnn", of_text(4, 6), None, "model small_cnn takes images, and text is of text"),
        ("small_cnn", of_images(5, 6, 2), None, "model small_cnn takes images of at least 6 × 6 pixels"),
        ("resnet18", of_text(4, 6), None, "model resnet18 takes images, and text is of text"),
        ("word_lstm", of_images(6, 6, 2), None, "model word_lstm takes text, and images is of images"),
        ("char_lstm", of_images(6, 6, 2), None, "model char_lstm takes text, and images is of images"),
    ],
)
def test_networks_refuse_other_examples(name, federation, hidden, said):
    with pytest.raises(ValueError, match=said):
        model(name, federation, hidden)


def test_the_smallest_image_of_a_convolution():
    federation = of_images(6, 6, 2)
    network = model("small_cnn", federation, 3)
    # 9 · 32 + 32, 288 · 64 + 64, 64 · 3 + 3, 3 · 2 + 2.
    assert network.dim == 320 + 18_496 + 195 + 8
