"""Tables of fewer draws, for what holds whatever their number."""

import pytest

from canaryproof.verify.audit.bounds import normal_ranks
from canaryproof.verify.audit.bounds.lower_bound import TABLES


@pytest.fixture(scope="module")
def few_draws():
    """Take 1,000 draws for the rank test of normal scores, where 20,000 would take the tests half a minute."""

    def forget():
        TABLES.clear()
        normal_ranks._rejected_mu.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal_ranks, "_DRAWS", 1000)
        forget()
        yield
    forget()
