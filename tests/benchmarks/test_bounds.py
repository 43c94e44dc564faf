"""``pytest tests/benchmarks/test_bounds.py --benchmark-enable``: what a thousand bounds of a thousand scores cost."""

import numpy as np
import pytest

from canaryproof.verify.audit.bounds.fixed_sequence import fixed_sequence
from canaryproof.verify.audit.bounds.lower_bound import normal_null, prepare


@pytest.mark.parametrize("kind", ["exact", "unobserved"])
def test_a_thousand_bounds_of_a_thousand_scores(benchmark, kind):
    rng = np.random.default_rng(4)
    seen, unseen = 1.0 + rng.normal(size=(1000, 1000)), rng.normal(size=(1000, 1000))
    scores = prepare(seen, null=normal_null()) if kind == "exact" else prepare(seen, unseen)
    values, _ = benchmark(fixed_sequence, scores, 1e-6, 0.05)
    assert values.shape == (1000,)
    assert (values > 0.0).all()
