"""Mock clients of a design by CANIFE (Maddock et al., arXiv 2210.02912), and where designs begin."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.canife.design import Start, Starts, noise, pool_samples
from canaryproof.verify.canife.text import random_tokens, text_of
from canaryproof.verify.federated.data.federation import FederatedData, Federation

# Inputs, labels and mask as ``Federation.cohort`` has them.
Examples = tuple[NDArray[Any], NDArray[np.int32], NDArray[np.float32]]


def pool(data: FederatedData, samples: int, most: int, rng: np.random.Generator) -> Examples:
    """Make mock clients of held-out examples.

    Parameters
    ----------
    data
        Whose examples.
    samples
        Examples that they have at least, all together.
    most
        Examples of a mock client at most.
    rng
        Source of randomness.

    Returns
    -------
    Their examples as ``Federation.cohort`` has them.

    Raises
    ------
    ValueError
        If there are not so many held-out examples.
    """
    inputs, labels, starts = data.test_inputs, data.test_labels, data.test_starts
    if starts is None:
        order, starts = rng.permutation(len(labels)), np.arange(0, len(labels) + 1, min(most, len(labels)))
        inputs, labels = inputs[order], labels[order]
    sizes = np.minimum(np.diff(starts), most)
    clients = rng.permutation(np.flatnonzero(sizes))
    sums = np.cumsum(sizes[clients])
    if samples > sums[-1]:
        raise ValueError(f"canife.pool: must be at most {sums[-1]}, as mock clients have no more examples")
    chosen = clients[: np.searchsorted(sums, samples) + 1]
    held_out = Federation("held out", inputs, labels, starts, inputs[:0], labels[:0], data.classes)
    return held_out.cohort(chosen, int(sizes[chosen].max()))


def starts(start: str, data: FederatedData, examples: Examples) -> Starts:
    """Choose where designs begin: by default with the paper's uniform pixels, or with random tokens.

    Parameters
    ----------
    start
        ``noise`` or ``sample``.
    data
        Whose examples.
    examples
        The mock clients'.

    Returns
    -------
    What draws a start. Of a text whose every token has a label, labels stay: random ones, or the sample's own.
    """
    inputs, labels, _ = examples
    classes, vocabulary = data.classes, data.vocabulary
    sample = pool_samples(inputs, labels, classes)
    if vocabulary is None:
        return sample if start == "sample" else noise(inputs.shape[2:], classes, "uniform")
    length, every_token = inputs.shape[2], labels.ndim == 3

    def random_text(rng: np.random.Generator) -> Start:
        label = np.asarray(rng.integers(classes, size=length)) if every_token else classes
        return random_tokens(length, vocabulary, label)(rng)

    def sample_text(rng: np.random.Generator) -> Start:
        image = sample(rng)
        own = labels[image.client, 0] if every_token else image.logits
        return text_of(inputs[image.client, 0], vocabulary, classes)(rng)._replace(logits=own, client=image.client)

    return sample_text if start == "sample" else random_text
