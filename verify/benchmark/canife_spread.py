"""Mean and deviation of a method's numbers over trainings."""

import math
from collections.abc import Sequence

import numpy as np


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean and deviation; infinite if a value is, and then how many are.

    Parameters
    ----------
    values
        One number a training.
    """
    array = np.array(values)
    if not np.isfinite(array).all():
        return {"mean": math.inf, "deviation": math.inf, "infinite": int(np.isinf(array).sum())}
    deviation = float(array.std(ddof=1)) if len(array) > 1 else math.nan
    return {"mean": float(array.mean()), "deviation": deviation, "infinite": 0}
