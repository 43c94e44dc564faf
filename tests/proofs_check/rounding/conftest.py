import pytest

from canaryproof.proofs_check.rounding import budgets, primitives


@pytest.fixture(scope="session")
def tables():
    """The tables as they are proven, once for the tests that compare or write them."""
    return primitives.written(), budgets.written()
