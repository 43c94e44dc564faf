import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.signal import correlate
from scipy.special import expit, log_softmax

from canaryproof.verify.federated.data import digits
from canaryproof.verify.federated.data.federation import Federation
from canaryproof.verify.federated.models import NAMES, model
from canaryproof.verify.oneshot.shapes import flatten

RNG = np.random.default_rng(8)


def of_images(height, width, classes, count=6):
    inputs = RNG.random((count, height, width, 1), dtype=np.float32)
    labels = RNG.integers(0, classes, count, dtype=np.int32)
    return Federation("images", inputs, labels, np.array([0, count]), inputs, labels, classes)


def of_text(length, vocabulary, classes=None, count=6):
    tokens = RNG.integers(0, vocabulary, (count, length + 1), dtype=np.int32)
    labels = tokens[:, 1:] if classes is None else RNG.integers(0, classes, count, dtype=np.int32)
    inputs, classes = tokens[:, :-1], classes or vocabulary
    return Federation("text", inputs, labels, np.array([0, count]), inputs, labels, classes, vocabulary)


@pytest.mark.parametrize(
    ("name", "federation", "dim"),
    [
        # By hand: 784 · 128 + 128 + 128 · 10 + 10.
        ("two_layer", of_images(28, 28, 10), 101_770),
        # As google-research/federated counts them; hand counts of layers add up to them too.
        ("small_cnn", of_images(28, 28, 62), 1_206_590),
        ("small_cnn", of_images(28, 28, 10), 1_199_882),
        ("char_lstm", of_text(5, 90), 820_522),
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
}


@pytest.fixture(scope="module", params=SMALL)
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


def plain_small_cnn(params, image):
    features = np.float64(image)
    for layer in (params["Dense_0"], params["Dense_1"]):
        kernel = np.float64(layer["kernel"]).reshape(3, 3, features.shape[2], -1)
        outputs = [correlate(features, kernel[..., i], mode="valid")[..., 0] for i in range(kernel.shape[3])]
        features = np.maximum(np.stack(outputs, axis=-1) + np.float64(layer["bias"]), 0)
    rows, columns = features.shape[0] // 2, features.shape[1] // 2
    pooled = [
        [features[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(0, 1)) for j in range(columns)] for i in range(rows)
    ]
    return dense(params["Dense_3"], np.maximum(dense(params["Dense_2"], np.ravel(pooled)), 0))


def plain_char_lstm(params, tokens):
    features = np.float64(params["Embed_0"]["embedding"])[tokens]
    for layer in (params["_Lstm_0"], params["_Lstm_1"]):
        hidden = len(layer["recurrent"])
        output, memory, outputs = np.zeros(hidden), np.zeros(hidden), []
        for feature in features:
            sums = dense(layer, feature) + output @ np.float64(layer["recurrent"])
            gates = dict(zip("ifgo", np.split(sums, 4), strict=True))
            memory = expit(gates["f"]) * memory + expit(gates["i"]) * np.tanh(gates["g"])
            output = expit(gates["o"]) * np.tanh(memory)
            outputs.append(output)
        features = np.array(outputs)
    return dense(params["Dense_0"], features)


PLAIN = {"two_layer": plain_two_layer, "small_cnn": plain_small_cnn, "char_lstm": plain_char_lstm}


def plain_logits(network, federation, params):
    logits = [PLAIN[network.name](params, example) for example in federation.inputs]
    last_only = federation.vocabulary is not None and federation.labels.ndim == 1
    return np.array([positions[-1] for positions in logits] if last_only else logits)


def test_loss_is_that_of_a_plain_computation(small):
    network, federation, loss_and_gradient, params = small
    logs = log_softmax(plain_logits(network, federation, params), axis=-1)
    entropies = -np.take_along_axis(logs, federation.labels[..., np.newaxis], axis=-1)
    entropies = entropies.reshape(len(entropies), -1).mean(axis=1)
    mask = np.float32([1, 1, 0, 1, 0, 1])
    loss, _ = loss_and_gradient(params, federation.inputs, federation.labels, mask)
    # Float32 rounds some hundred sums and products a logit.
    np.testing.assert_allclose(loss, entropies[mask > 0].mean(), rtol=1e-5)


def test_masked_examples_change_nothing(small):
    _, federation, loss_and_gradient, params = small
    mask = np.float32([1, 1, 0, 1, 0, 1])
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
        moved = shaped(flat + np.float32(scale * step) * direction)
        logs = log_softmax(plain_logits(network, federation, moved), axis=-1)
        return -np.take_along_axis(logs, federation.labels[..., np.newaxis], axis=-1).mean()

    # Of order step² beside the slope, but where a relu or a maximum turns.
    np.testing.assert_allclose((loss(1) - loss(-1)) / (2 * step), gradient @ direction, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("small", list(SMALL)[:3], indirect=True)
def test_clients_with_parameters_of_their_own(small):
    _, federation, loss_and_gradient, params = small
    several = [jax.tree.map(lambda leaf, scale=scale: np.float32(scale) * leaf, params) for scale in (1.0, 0.5)]
    examples = (federation.inputs, federation.labels, np.float32([1, 1, 0, 1, 0, 1]))
    batches = tuple(np.stack([array, array[::-1]]) for array in examples)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *several)
    losses, gradients = jax.vmap(loss_and_gradient)(stacked, *batches)
    for i, one in enumerate(several):
        loss, gradient = loss_and_gradient(one, *(array[i] for array in batches))
        np.testing.assert_allclose(losses[i], loss, rtol=1e-5)
        found = jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], gradients)
        np.testing.assert_allclose(flatten(found), flatten(gradient), rtol=1e-4, atol=1e-6)


def test_accuracy_counts_the_largest_logits(small):
    network, federation, _, params = small
    expected = np.mean(plain_logits(network, federation, params).argmax(axis=-1) == federation.labels)
    np.testing.assert_allclose(network.accuracy(params, federation.inputs, federation.labels), expected, rtol=1e-6)


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_accuracy_in_batches(count):
    federation = of_images(4, 3, 3, count)
    network = model("two_layer", federation, 5)
    params = network.init(0)
    expected = np.mean(plain_logits(network, federation, params).argmax(axis=-1) == federation.labels)
    np.testing.assert_allclose(network.accuracy(params, federation.inputs, federation.labels), expected, rtol=1e-6)


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
        ("resnet", of_images(6, 6, 2), None, "model must be one of two_layer, small_cnn, char_lstm, not 'resnet'"),
        ("two_layer", of_images(6, 6, 2), 0, "hidden must be at least 1, not 0"),
        ("two_layer", of_text(4, 6), None, "model two_layer takes images, and text is of text"),
        ("small_cnn", of_text(4, 6), None, "model small_cnn takes images, and text is of text"),
        ("small_cnn", of_images(5, 6, 2), None, "model small_cnn takes images of at least 6 × 6 pixels"),
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
    assert NAMES == ("two_layer", "small_cnn", "char_lstm")
