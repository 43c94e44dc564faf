import math

import pytest

from canaryproof.verify.comparison.canife_methods import spread


def test_infinite_numbers_are_counted():
    assert spread([1.0, math.inf]) == {"mean": math.inf, "deviation": math.inf, "infinite": 1}
    assert spread([1.0, 3.0]) == {"mean": 2.0, "deviation": pytest.approx(math.sqrt(2.0)), "infinite": 0}
    assert math.isnan(spread([1.0])["deviation"])
