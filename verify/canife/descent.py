"""The design's descent for dense networks, compiled: each step's gradient written out, in float32.

A step takes microseconds, of which a compiled JAX program spends most between its operations. Here clients are visited
in blocks that stay in cache: a block's inner products, and what they add to the gradient, are computed together.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels._canary_stream import _wide_vectors
from canaryproof.kernels._compiled import njit
from canaryproof.verify.canife.design import Designer, DesignOptions, Sample, Variables
from canaryproof.verify.canife.factored import FactoredState, FactoredUpdates

Vector = NDArray[np.float32]

# Examples of clients in a block, unless one client has more.
_BLOCK = 256
# Sums may be taken in any order, so that the compiler vectorises; infinite numbers and NaN keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
# Adam's constants, as optax has them.
_FIRST, _SECOND, _TINY = np.float32(0.9), np.float32(0.999), np.float32(1e-8)


class DenseDesigner(Designer):
    """Designs canaries for a dense network, whose updates are ``FactoredUpdates``."""

    updates: FactoredUpdates

    def __init__(self, updates: FactoredUpdates, settings: DesignOptions | None = None) -> None:
        super().__init__(updates, settings)
        # Nothing of it is JAX's to compile.
        self._descend = self._compiled

    def _compiled(
        self, state: FactoredState, start: Variables, label: ArrayLike, excluded: int, _: object
    ) -> tuple[Sample, float, float, float]:
        """Return the sample at the end, the initial loss, the loss and the norm, as ``Designer`` does."""
        settings, soft = self.settings, start.logits is not None
        network = np.array([np.shape(layer.kernel) for layer in state.layers])
        weights = [np.ascontiguousarray(part, np.float32).ravel() for layer in state.layers for part in layer]
        clients, each = _blocks(state, excluded)
        point = np.concatenate([np.ravel(start.input), np.ravel(label if start.logits is None else start.logits)])
        point = point.astype(np.float32)
        losses = descend(
            network,
            np.concatenate(weights),
            clients,
            each,
            len(state.clients[0].inputs),
            point,
            soft,
            settings.loss == "covariance",
            self.updates.rate,
            self._least_norm,
            settings.rate,
            settings.steps,
        )
        width = network[0, 0]
        label = soft_label(point[width:]) if soft else point[width:]
        return Sample(jnp.asarray(point[:width].reshape(start.input.shape)), jnp.asarray(label)), *losses


def _blocks(state: FactoredState, excluded: int) -> tuple[NDArray[np.float32], int]:
    """Lay clients' factors out in blocks of whole clients, shape (blocks, factors, rows), and count a client's rows.

    The factors of a row, an example, are inputs and gradients of outputs, layer by layer; one who is excluded has none.
    """
    parts = [np.asarray(part, np.float32) for factors in state.clients for part in factors]
    count, each = parts[0].shape[:2]
    rows = np.concatenate([part.reshape(count * each, -1) for part in parts], axis=1)
    if excluded >= 0:
        rows[excluded * each : (excluded + 1) * each] = 0.0
    height = max(1, _BLOCK // each) * each
    padded = np.zeros((-(-len(rows) // height) * height, rows.shape[1]), np.float32)
    padded[: len(rows)] = rows
    return np.ascontiguousarray(padded.reshape(-1, height, rows.shape[1]).transpose(0, 2, 1)), each


def soft_label(logits: Vector) -> Vector:
    """Return the probabilities of logits."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


@njit(fastmath=_FAST)
def _add_rows(rows: Any, begin: int, weights: Any, total: Any) -> None:
    """Add weighted rows from one on to a total, four at a time, so that it is read and written less often."""
    _wide_vectors()
    count = len(weights)
    whole = count - count % 4
    # Rows one by one: numba takes a part of the rows for an array with gaps, and does not vectorise.
    for i in range(0, whole, 4):
        a, b, c, d = rows[begin + i], rows[begin + i + 1], rows[begin + i + 2], rows[begin + i + 3]
        v, w, x, y = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for r in range(len(total)):
            total[r] += v * a[r] + w * b[r] + x * c[r] + y * d[r]
    for i in range(whole, count):
        a, v = rows[begin + i], weights[i]
        for r in range(len(total)):
            total[r] += v * a[r]


@njit(fastmath=_FAST)
def _add_products(rows: Any, begin: int, vector: Any, total: Any) -> None:
    """Add the product of each row, from one on, with a vector."""
    _wide_vectors()
    for i in range(len(total)):
        row, found = rows[begin + i], np.float32(0.0)
        for r in range(len(vector)):
            found += row[r] * vector[r]
        total[i] += found


@njit(fastmath=_FAST)
def _square(vector: Any) -> Any:
    found = np.float32(0.0)
    for value in vector:
        found += value * value
    return found


@njit(fastmath=_FAST)
def _softmax(logits: Any, found: Any) -> None:
    largest = logits.max()
    total = np.float32(0.0)
    for j in range(len(logits)):
        found[j] = math.exp(logits[j] - largest)
        total += found[j]
    for j in range(len(logits)):
        found[j] /= total


@njit(fastmath=_FAST)
def _through_softmax(probabilities: Any, slopes: Any, sign: Any, found: Any) -> None:
    """Write the derivatives by logits, of those by probabilities times a sign."""
    mean = np.float32(0.0)
    for j in range(len(probabilities)):
        mean += probabilities[j] * slopes[j]
    for j in range(len(probabilities)):
        found[j] = sign * probabilities[j] * (slopes[j] - mean)


@njit(fastmath=_FAST)
def _cut(gradients: Any, signals: Any) -> None:
    """Set gradients to 0 where a ReLU has."""
    for i in range(len(signals)):
        if signals[i] <= np.float32(0.0):
            gradients[i] = np.float32(0.0)


@njit(fastmath=_FAST)
def _with_clients(network: Any, block: Any, values: Any, products: Any) -> Any:
    """Write 1 + ⟨a, a'⟩ and ⟨g, g'⟩ of each layer with each row of a block; return the sum of their products."""
    total, begin = np.float32(0.0), 0
    for k in range(len(network)):
        for side in range(2):
            end = begin + network[k, side]
            products[k, side] = np.float32(1 - side)
            _add_rows(block, begin, values[begin:end], products[k, side])
            begin = end
        one, other = products[k, 0], products[k, 1]
        for r in range(len(one)):
            total += one[r] * other[r]
    return total


@njit(fastmath=_FAST)
def _slope(
    network: Any,
    weights: Any,
    clients: Any,
    each: int,
    count: int,
    point: Any,
    soft: bool,
    covariance: bool,
    update_rate: Any,
    least_norm: Any,
    values: Any,
    slopes: Any,
    products: Any,
    gradient: Any,
) -> Any:
    """Return loss and norm at a point, and write the gradient.

    ``values`` gets the point's own factors, in the order of a client's, and ``slopes`` the loss's derivatives by them.
    """
    zero, one, two = np.float32(0.0), np.float32(1.0), np.float32(2.0)
    layers, width = len(network), network[0, 0]
    classes = network[layers - 1, 1]
    probabilities, label = np.empty(classes, np.float32), np.empty(classes, np.float32)
    # Signals forwards, and the last layer's gradient.
    values[:width] = point[:width]
    at = begin = 0
    for k in range(layers):
        inputs, outputs = network[k]
        last = k == layers - 1
        kernel = weights[begin : begin + inputs * outputs].reshape(inputs, outputs)
        begin += inputs * outputs
        after = at + inputs if last else at + inputs + outputs
        signal = values[after : after + outputs]
        signal[:] = weights[begin : begin + outputs]
        begin += outputs
        _add_rows(kernel, 0, values[at : at + inputs], signal)
        if last:
            _softmax(signal, probabilities)
            if soft:
                _softmax(point[width:], label)
            else:
                label[:] = point[width:]
            for j in range(classes):
                signal[j] = probabilities[j] - label[j]
        else:
            for j in range(outputs):
                signal[j] = max(signal[j], zero)
        at = after
    # Gradients of outputs backwards; ``at`` is where the last layer's stands, and ``begin`` where its kernel ends.
    squared = zero
    for k in range(layers - 1, -1, -1):
        inputs, outputs = network[k]
        gradients, signals = values[at : at + outputs], values[at - inputs : at]
        squared += (one + _square(signals)) * _square(gradients)
        begin -= (inputs + 1) * outputs
        if k > 0:
            below = values[at - inputs - network[k - 1, 1] : at - inputs]
            below[:] = zero
            _add_products(weights[begin : begin + inputs * outputs].reshape(inputs, outputs), 0, gradients, below)
            _cut(below, signals)
            at -= inputs + network[k - 1, 1]
    # The hinge.
    norm = update_rate * math.sqrt(squared)
    short = max(least_norm - norm, zero)
    loss = short * short
    pull = -two * short * update_rate * update_rate / norm if norm > zero else zero
    at = 0
    for k in range(layers):
        inputs, outputs = network[k]
        signals, gradients = values[at : at + inputs], values[at + inputs : at + inputs + outputs]
        by_signal, by_gradient = pull * _square(gradients), pull * (one + _square(signals))
        for i in range(inputs):
            slopes[at + i] = by_signal * signals[i]
        for j in range(outputs):
            slopes[at + inputs + j] = by_gradient * gradients[j]
        at += inputs + outputs
    # The products with clients.
    weight, total = two * update_rate * update_rate, zero
    if not covariance:
        for b in range(len(clients)):
            total += _with_clients(network, clients[b], values, products)
        total /= np.float32(count)
        loss += (update_rate * total) ** 2
        total *= weight / np.float32(count)
    sums = np.empty(clients.shape[2], np.float32)
    for b in range(len(clients)):
        _with_clients(network, clients[b], values, products)
        if covariance:
            sums[:] = zero
            for k in range(layers):
                left, right = products[k, 0], products[k, 1]
                for r in range(len(sums)):
                    sums[r] += left[r] * right[r]
            if each > 1:
                for start in range(0, len(sums), each):
                    sums[start : start + each] = sums[start : start + each].sum()
            loss += update_rate * update_rate * _square(sums) / np.float32(each)
            for r in range(len(sums)):
                sums[r] *= weight
        else:
            sums[:] = total
        at = 0
        for k in range(layers):
            for side in range(2):
                end = at + network[k, side]
                other = products[k, 1 - side]
                for r in range(len(sums)):
                    other[r] *= sums[r]
                _add_products(clients[b], at, other, slopes[at:end])
                at = end
    # Back through the gradients of outputs, and then through the signals.
    at = begin = 0
    for k in range(layers):
        inputs, outputs = network[k]
        if k > 0:
            above = slopes[at - network[k - 1, 1] : at]
            _cut(above, values[at : at + inputs])
            kernel = weights[begin : begin + inputs * outputs].reshape(inputs, outputs)
            _add_rows(kernel, 0, above, slopes[at + inputs : at + inputs + outputs])
        at += inputs + outputs
        begin += (inputs + 1) * outputs
    by_top = slopes[at - classes : at]
    if soft:
        _through_softmax(label, by_top, -one, gradient[width:])
    _through_softmax(probabilities, by_top, one, by_top)
    at -= classes
    for k in range(layers - 1, -1, -1):
        inputs, outputs = network[k]
        begin -= (inputs + 1) * outputs
        kernel = weights[begin : begin + inputs * outputs].reshape(inputs, outputs)
        below = slopes[at - inputs : at]
        _add_products(kernel, 0, slopes[at : at + outputs], below)
        if k > 0:
            _cut(below, values[at - inputs : at])
            # The signal's slope takes the place of the one by the gradient below, which is done with.
            slopes[at - inputs - network[k - 1, 1] : at - inputs] = below
            at -= inputs + network[k - 1, 1]
        else:
            gradient[:width] = below
    return loss, norm


@njit(cache=True, nogil=True, fastmath=_FAST)
def descend(
    network: Any,
    weights: Any,
    clients: Any,
    each: int,
    count: int,
    point: Any,
    soft: bool,
    covariance: bool,
    update_rate: float,
    least_norm: float,
    rate: float,
    steps: int,
) -> Any:
    """Move a point, pixels and logits or label, by Adam; return the loss at the start, at the end, and the norm.

    ``network`` has the layers' inputs and outputs, shape (layers, 2), ``weights`` kernel and bias of one after another.
    """
    values, slopes = np.empty(clients.shape[1], np.float32), np.empty(clients.shape[1], np.float32)
    gradient, products = np.zeros_like(point), np.empty((len(network), 2, clients.shape[2]), np.float32)
    first, second = np.zeros_like(point), np.zeros_like(point)
    one, begun = np.float32(1.0), np.float32(0.0)
    first_left = second_left = one
    for step in range(steps + 1):
        loss, norm = _slope(
            network,
            weights,
            clients,
            each,
            count,
            point,
            soft,
            covariance,
            np.float32(update_rate),
            np.float32(least_norm),
            values,
            slopes,
            products,
            gradient,
        )
        if step == 0:
            begun = loss
        if step < steps:
            first_left *= _FIRST
            second_left *= _SECOND
            for i in range(len(point)):
                first[i] = _FIRST * first[i] + (one - _FIRST) * gradient[i]
                second[i] = _SECOND * second[i] + (one - _SECOND) * gradient[i] * gradient[i]
                size = np.sqrt(second[i] / (one - second_left)) + _TINY
                point[i] -= np.float32(rate) * (first[i] / (one - first_left)) / size
    return begun, loss, norm
