"""The 1,797 images of handwritten digits, 8 × 8, that come with scikit-learn: the data of a user who has none."""

import numpy as np

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data.federation import Federation, equal_lots

_TRAINING = 1500


def load(examples_per_client: int, seed: int) -> Federation:
    """Deal the digits out to clients in equal lots; the last 297 images are held out, whatever the seed.

    The lots are of a shuffled order, so that all clients' examples have one law. What remains is left out.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise InputError("digits: needs scikit-learn, of the extra federated") from error
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 8, 8, 1)
    classes = labels.astype(np.int32)
    try:
        order, starts = equal_lots(_TRAINING, examples_per_client, seed)
    except ValueError as error:
        raise InputError(f"digits: {error}") from error
    return Federation(
        name="digits",
        inputs=images[order],
        labels=classes[order],
        starts=starts,
        test_inputs=images[_TRAINING:],
        test_labels=classes[_TRAINING:],
        classes=10,
    )
