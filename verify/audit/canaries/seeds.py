"""Generators for the parts of a training, each a pure function of a seed, a purpose and a place."""

from enum import IntEnum, unique

import numpy as np

from canaryproof.kernels.refusals import checked_integer

Seed = int | np.random.SeedSequence


@unique
class Purpose(IntEnum):
    """Purposes of random numbers, so that one seed serves all of them."""

    CLIENTS = 0  # which clients take part
    CANARIES = 1  # which canaries take part
    COINS = 2  # which canaries are included at all
    NOISE = 3  # a row of the noise on the sums of updates
    COUNTS = 4  # a round's noise on the number of unclipped updates
    CANIFE = 5  # a round's audit by CANIFE; mock clients at index 0
    UNOBSERVED = 6  # in which rounds unobserved canaries would have taken part


def generator(seed: Seed, purpose: Purpose, index: int = 0) -> np.random.Generator:
    """Return a generator of its own for a purpose and an index, such as a round; equal calls return equal ones."""
    if isinstance(seed, np.random.SeedSequence):
        sequence = seed
    else:
        # None would make each call return another generator.
        sequence = np.random.SeedSequence(checked_integer("seed", seed, 0))
    # Not ``spawn``, which would change the sequence and so make the next call's children others.
    key = (*sequence.spawn_key, int(purpose), index)
    return np.random.default_rng(np.random.SeedSequence(sequence.entropy, spawn_key=key))
