import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.papers.training.data import digits


def test_every_client_has_its_lot():
    federation = digits.load(40, seed=3)
    assert federation.clients == 37
    np.testing.assert_array_equal(np.diff(federation.starts), 40)
    assert federation.inputs.shape == (37 * 40, 8, 8, 1)
    assert (federation.inputs.dtype, federation.labels.dtype) == (np.float32, np.int32)
    assert (federation.inputs.min(), federation.inputs.max()) == (0.0, 1.0)
    assert (federation.classes, federation.vocabulary) == (10, None)


def test_images_keep_their_labels():
    federation = digits.load(1500, seed=3)
    pixels, labels = load_digits(return_X_y=True)
    np.testing.assert_array_equal(federation.test_inputs.reshape(-1, 64) * 16, pixels[1500:])
    np.testing.assert_array_equal(federation.test_labels, labels[1500:])

    def rows(inputs, labels):
        return sorted(map(tuple, np.column_stack([inputs, labels])))

    assert rows(federation.inputs.reshape(-1, 64) * 16, federation.labels) == rows(pixels[:1500], labels[:1500])


def test_lots_beyond_the_data_are_refused():
    with pytest.raises(InputError, match=r"^digits: examples_per_client must be between 1 and 1500, not 1501$"):
        digits.load(1501, seed=0)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError) as caught:
        digits.load(10, seed=0)
    assert caught.value.message == "digits: needs scikit-learn, of the extra federated"
