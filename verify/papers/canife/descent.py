"""The design's descent for dense networks, compiled: each step's gradient written out, in float32.

A step takes microseconds, of which a compiled JAX program spends most between its operations. Here clients are visited
in blocks that stay in cache: a block's inner products, and what they add to the gradient, are computed together.
Units that a ReLU has cut are left out of all products.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels._canary_stream import _wide_vectors
from canaryproof.kernels._compiled import njit
from canaryproof.kernels.arrays import Singles
from canaryproof.verify.papers.canife.design import Designer, Sample, Variables
from canaryproof.verify.papers.canife.factored import FactoredState, FactoredUpdates
from canaryproof.verify.papers.canife.options import CanaryOptions

# Examples of clients in a block, unless one client has more.
_BLOCK = 256
# Sums may be taken in any order, so that the compiler vectorises; infinite numbers and NaN keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
# Adam's constants, as optax has them.
_FIRST, _SECOND, _TINY = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
# Probabilities below are 0: gradients so far below Adam's last constant make no step, and their products are slow where
# they leave float32's normal numbers.
_LEAST = np.float32(1e-15)


class DenseDesigner(Designer):
    """Designs canaries for a dense network, whose updates are ``FactoredUpdates``."""

    updates: FactoredUpdates

    def __init__(self, updates: FactoredUpdates, settings: CanaryOptions | None = None) -> None:
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
            self.updates.design_rate,
            self._least_norm,
            settings.rate,
            settings.steps,
        )
        width = network[0, 0]
        label = soft_label(point[width:]) if soft else point[width:]
        return Sample(point[:width].reshape(start.input.shape), label), *losses


def _blocks(state: FactoredState, excluded: int) -> tuple[NDArray[np.float32], int]:
    """Lay clients' factors out in blocks of whole clients, shape (blocks, factors, rows), and count a client's rows.

    The factors of a row, an example, are inputs and gradients of outputs, layer by layer; one who is excluded has none.
    """
    parts = [np.asarray(part, np.float32) for factors in state.clients for part in factors]
    count, each = parts[0].shape[:2]
    rows = np.concatenate([part.reshape(count * each, -1) for part in parts], axis=1)
    if excluded >= 0:
        rows[excluded * each : (excluded + 1) * each] = 0.0
    height = min(max(1, _BLOCK // each), count) * each
    padded = np.zeros((-(-len(rows) // height) * height, rows.shape[1]), np.float32)
    padded[: len(rows)] = rows
    return np.ascontiguousarray(padded.reshape(-1, height, rows.shape[1]).transpose(0, 2, 1)), each


def soft_label(logits: Singles) -> Singles:
    """Return the probabilities of logits."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


# Whole arrays and places in them: a part taken out is counted as a reference, which takes as long as a short product.


@njit(error_model="numpy", fastmath=_FAST)
def _add_rows(
    rows: Any,
    start: Any,
    live: Any,
    first: int,
    end: int,
    weights: Any,
    weights_at: Any,
    total: Any,
    at: Any,
    count: Any,
) -> None:
    """Add weighted rows to a total of so many numbers, four at a time, so that it is read and written less often.

    The rows, which begin at ``start``, and their weights are those at the places ``live[first:end]``.
    """
    _wide_vectors()
    start, weights_at, at, count = np.uintp(start), np.uintp(weights_at), np.uintp(at), np.uintp(count)
    for i in range(first, end - 3, 4):
        a, b, c, d = live[i], live[i + 1], live[i + 2], live[i + 3]
        v, w, x, y = weights[weights_at + a], weights[weights_at + b], weights[weights_at + c], weights[weights_at + d]
        a, b, c, d = start + a * count, start + b * count, start + c * count, start + d * count
        for r in range(count):
            total[at + r] += v * rows[a + r] + w * rows[b + r] + x * rows[c + r] + y * rows[d + r]
    for i in range(end - (end - first) % 4, end):
        a, v = start + live[i] * count, weights[weights_at + live[i]]
        for r in range(count):
            total[at + r] += v * rows[a + r]


@njit(error_model="numpy", fastmath=_FAST)
def _add_products(
    rows: Any, start: Any, live: Any, first: int, end: int, vector: Any, vector_at: Any, count: Any, total: Any, at: Any
) -> None:
    """Add each row's product with a vector of so many numbers, four at a time; rows and places as for ``_add_rows``."""
    _wide_vectors()
    start, vector_at, at, count = np.uintp(start), np.uintp(vector_at), np.uintp(at), np.uintp(count)
    for i in range(first, end - 3, 4):
        a, b, c, d = live[i], live[i + 1], live[i + 2], live[i + 3]
        a, b, c, d = start + a * count, start + b * count, start + c * count, start + d * count
        v = w = x = y = np.float32(0.0)
        for r in range(count):
            each = vector[vector_at + r]
            v += rows[a + r] * each
            w += rows[b + r] * each
            x += rows[c + r] * each
            y += rows[d + r] * each
        total[at + live[i]] += v
        total[at + live[i + 1]] += w
        total[at + live[i + 2]] += x
        total[at + live[i + 3]] += y
    for i in range(end - (end - first) % 4, end):
        a, v = start + live[i] * count, np.float32(0.0)
        for r in range(count):
            v += rows[a + r] * vector[vector_at + r]
        total[at + live[i]] += v


@njit(error_model="numpy", fastmath=_FAST)
def _square(vector: Any, begin: int, end: int) -> Any:
    total = np.float32(0.0)
    for i in range(begin, end):
        total += vector[i] * vector[i]
    return total


@njit(error_model="numpy", fastmath=_FAST)
def _softmax(logits: Any, begin: int, probabilities: Any) -> None:
    largest = total = np.float32(0.0)
    for j in range(len(probabilities)):
        largest = logits[begin] if j == 0 else max(largest, logits[begin + j])
    for j in range(len(probabilities)):
        weight = np.float32(math.exp(logits[begin + j] - largest))
        probabilities[j] = weight if weight > _LEAST else np.float32(0.0)
        total += probabilities[j]
    for j in range(len(probabilities)):
        probabilities[j] /= total


@njit(error_model="numpy", fastmath=_FAST)
def _through_softmax(probabilities: Any, slopes: Any, at: int, sign: Any, slope: Any, slope_at: int) -> None:
    """Write the derivatives by logits, of those by probabilities times a sign."""
    mean = np.float32(0.0)
    for j in range(len(probabilities)):
        mean += probabilities[j] * slopes[at + j]
    for j in range(len(probabilities)):
        slope[slope_at + j] = sign * probabilities[j] * (slopes[at + j] - mean)


@njit(error_model="numpy", fastmath=_FAST)
def _with_clients(
    network: Any, clients: Any, start: int, live: Any, ends: Any, values: Any, products: Any, sums: Any
) -> None:
    """Write 1 + ⟨a, a'⟩ and ⟨g, g'⟩ of each layer with each row of a block, and the sums of their products."""
    _wide_vectors()
    height, at, flat = len(sums), 0, products.ravel()
    for k in range(len(network)):
        for side in range(2):
            for r in range(height):
                products[2 * k + side, r] = np.float32(1 - side)
            to, first, end = (2 * k + side) * height, ends[k + side], ends[k + side + 1]
            _add_rows(clients, start + at * height, live, first, end, values, at, flat, to, height)
            at += network[k, side]
        for r in range(height):
            product = products[2 * k, r] * products[2 * k + 1, r]
            sums[r] = product if k == 0 else sums[r] + product


@njit(error_model="numpy", fastmath=_FAST)
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
    live: Any,
    ends: Any,
    probabilities: Any,
    label: Any,
    products: Any,
    sums: Any,
    gradient: Any,
) -> Any:
    """Return loss and norm at a point, and write the gradient.

    ``values`` gets the point's own factors, in the order of a client's, and ``slopes`` the loss's derivatives by them.
    ``live`` gets the units that no ReLU cuts, from those of the input to those of the output. A unit that is cut is 0
    and has no slope.
    """
    zero, unit, two = np.float32(0.0), np.float32(1.0), np.float32(2.0)
    layers, width, classes = len(network), network[0, 0], len(label)
    # Signals forwards; where the last layer's gradient stands, ``top``, first its logits.
    for i in range(width):
        values[i], live[i] = point[i], i
    ends[1] = width
    at = begin = top = 0
    for k in range(layers):
        inputs, outputs = network[k, 0], network[k, 1]
        top = at + inputs
        after = top if k == layers - 1 else top + outputs
        for j in range(outputs):
            values[after + j] = weights[begin + inputs * outputs + j]
        _add_rows(weights, begin, live, ends[k], ends[k + 1], values, at, values, after, outputs)
        end = ends[k + 1]
        for j in range(outputs):
            if k < layers - 1:
                values[after + j] = max(values[after + j], zero)
            # Without a branch, which would be guessed wrong.
            live[end] = j
            end += k == layers - 1 or values[after + j] > zero
        ends[k + 2] = end
        at = after
        begin += (inputs + 1) * outputs
    _softmax(values, top, probabilities)
    if soft:
        _softmax(point, width, label)
    for j in range(classes):
        if not soft:
            label[j] = point[width + j]
        values[top + j] = probabilities[j] - label[j]
    # Gradients of outputs backwards, that of a layer at ``at``.
    squared, at = zero, top
    for k in range(layers - 1, -1, -1):
        inputs, outputs = network[k, 0], network[k, 1]
        begin -= (inputs + 1) * outputs
        squared += (unit + _square(values, at - inputs, at)) * _square(values, at, at + outputs)
        if k > 0:
            below = at - 2 * inputs
            for i in range(inputs):
                values[below + i] = zero
            _add_products(weights, begin, live, ends[k], ends[k + 1], values, at, outputs, values, below)
            at = below
    # The hinge.
    norm = update_rate * math.sqrt(squared)
    short = max(least_norm - norm, zero)
    loss = short * short
    pull = -two * short * update_rate * update_rate / norm if norm > zero else zero
    at = 0
    for k in range(layers):
        inputs, outputs = network[k, 0], network[k, 1]
        middle, end = at + inputs, at + inputs + outputs
        by_signal, by_gradient = pull * _square(values, middle, end), pull * (unit + _square(values, at, middle))
        for i in range(at, middle):
            slopes[i] = by_signal * values[i]
        for i in range(middle, end):
            slopes[i] = by_gradient * values[i]
        at = end
    # The products with clients.
    weight, mean, height, size = two * update_rate * update_rate, zero, len(sums), at * len(sums)
    if not covariance:
        for start in range(0, len(clients), size):
            _with_clients(network, clients, start, live, ends, values, products, sums)
            mean += sums.sum() / np.float32(count)
        loss += (update_rate * mean) ** 2
    for start in range(0, len(clients), size):
        _with_clients(network, clients, start, live, ends, values, products, sums)
        if covariance:
            if each > 1:
                for r in range(0, height, each):
                    sums[r : r + each] = sums[r : r + each].sum()
            loss += update_rate * update_rate * _square(sums, 0, height) / np.float32(each)
        else:
            sums[:] = mean / np.float32(count)
        at, flat = 0, products.ravel()
        for k in range(layers):
            for side in range(2):
                other = 2 * k + 1 - side
                for r in range(height):
                    products[other, r] *= weight * sums[r]
                first, end = ends[k + side], ends[k + side + 1]
                _add_products(clients, start + at * height, live, first, end, flat, other * height, height, slopes, at)
                at += network[k, side]
    # Back through the gradients of outputs, and then through the signals.
    at = begin = 0
    for k in range(layers):
        inputs, outputs = network[k, 0], network[k, 1]
        if k > 0:
            _add_rows(weights, begin, live, ends[k], ends[k + 1], slopes, at - inputs, slopes, at + inputs, outputs)
        at += inputs + outputs
        begin += (inputs + 1) * outputs
    if soft:
        _through_softmax(label, slopes, top, -unit, gradient, width)
    _through_softmax(probabilities, slopes, top, unit, slopes, top)
    above = top
    for k in range(layers - 1, -1, -1):
        inputs, outputs = network[k, 0], network[k, 1]
        begin -= (inputs + 1) * outputs
        at -= inputs + outputs
        _add_products(weights, begin, live, ends[k], ends[k + 1], slopes, above, outputs, slopes, at)
        above = at
    for i in range(width):
        gradient[i] = slopes[i]
    return loss, norm


@njit(error_model="numpy", fastmath=_FAST)
def _step(point: Any, gradient: Any, first: Any, second: Any, rate: Any, scale: Any) -> None:
    """Make a step of Adam: the rate and the scale have the corrections of the means' bias."""
    _wide_vectors()
    unit = np.float32(1.0)
    for i in range(len(point)):
        first[i] = _FIRST * first[i] + (unit - _FIRST) * gradient[i]
        second[i] = _SECOND * second[i] + (unit - _SECOND) * gradient[i] * gradient[i]
        point[i] -= rate * first[i] / (np.sqrt(second[i] * scale) + _TINY)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
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
    factors, height, classes = clients.shape[1], clients.shape[2], network[-1, 1]
    values, slopes, gradient = np.empty(factors, np.float32), np.empty(factors, np.float32), np.zeros_like(point)
    live, ends = np.empty(factors, np.uintp), np.zeros(len(network) + 2, np.int64)
    probabilities, label = np.empty(classes, np.float32), np.empty(classes, np.float32)
    products, sums = np.empty((2 * len(network), height), np.float32), np.empty(height, np.float32)
    first, second = np.zeros_like(point), np.zeros_like(point)
    flat = clients.ravel()
    unit, begun = np.float32(1.0), np.float32(0.0)
    first_left = second_left = unit
    for step in range(steps + 1):
        loss, norm = _slope(
            network,
            weights,
            flat,
            each,
            count,
            point,
            soft,
            covariance,
            np.float32(update_rate),
            np.float32(least_norm),
            values,
            slopes,
            live,
            ends,
            probabilities,
            label,
            products,
            sums,
            gradient,
        )
        if step == 0:
            begun = loss
        if step < steps:
            first_left *= _FIRST
            second_left *= _SECOND
            _step(point, gradient, first, second, np.float32(rate) / (unit - first_left), unit / (unit - second_left))
    return begun, loss, norm
