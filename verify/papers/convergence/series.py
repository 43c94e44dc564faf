"""A quantity along d or k as a series, with the slope of its logarithm and the interval of that."""

import math
from collections.abc import Sequence

import numpy as np
from statsmodels.regression.linear_model import OLS, WLS
from statsmodels.tools.tools import add_constant

from canaryproof.verify.papers.records.evidence import Series

_CONFIDENCE = 0.95


def _slope(x: Sequence[float], y: Sequence[float], errors: Sequence[float] | None) -> tuple[float, tuple[float, float]]:
    """Fit log y to log x: slope and interval, from the points' own errors or from their scatter."""
    design = add_constant(np.log(x))
    if errors is None:
        fit = OLS(np.log(y), design).fit()
    else:
        weights = (np.asarray(y) / np.asarray(errors)) ** 2
        fit = WLS(np.log(y), design, weights=weights).fit(cov_type="fixed scale")
    low, high = fit.conf_int(1.0 - _CONFIDENCE)[1]
    return float(fit.params[1]), (float(low), float(high))


def curve(
    title: str,
    axis: str,
    quantity: str,
    x: Sequence[float],
    proven_slope: float,
    *,
    exact: Sequence[float] | None = None,
    exact_label: str = "exact",
    bound: Sequence[float] | None = None,
    bound_label: str = "",
    simulated: Sequence[float] | None = None,
    standard_error: Sequence[float] | None = None,
    slope_of: str = "simulated",
    fitted_to: tuple[float, float] = (0.0, math.inf),
    note: str = "",
) -> Series:
    """Return the curve that a report draws of one quantity.

    The slope is fitted to the points in the range ``fitted_to``, where the proven one is meant to hold. Of simulated
    points, only those count whose exact value is more than 3 errors from 0.
    """
    inside = [i for i, u in enumerate(x) if fitted_to[0] <= u <= fitted_to[1]]
    if slope_of == "simulated" and exact is not None and simulated is not None and standard_error is not None:
        seen = [i for i in inside if exact[i] > 3.0 * standard_error[i]]
        values, errors = (list(map(part.__getitem__, seen)) for part in (simulated, standard_error))
        slope, interval = _slope([x[i] for i in seen], values, errors)
    else:
        fitted = (bound if slope_of == "bound" else exact) or ()
        slope, interval = _slope([x[i] for i in inside], [fitted[i] for i in inside], None)
    if len(inside) < len(x):
        note = f"The slope is fitted to {axis} from {x[inside[0]]:,} to {x[inside[-1]]:,}. {note}".rstrip()
    if slope_of != "simulated":
        note = f"{note} The fitted points are exact: the interval measures how far they depart from a line.".lstrip()
    return Series(
        title=title,
        axis=axis,
        quantity=quantity,
        x=tuple(x),
        exact=None if exact is None else tuple(exact),
        exact_label=exact_label,
        bound=None if bound is None else tuple(bound),
        bound_label=bound_label,
        simulated=None if simulated is None else tuple(simulated),
        standard_error=None if standard_error is None else tuple(standard_error),
        fitted_slope=slope,
        slope_interval=interval,
        slope_of=slope_of,
        confidence=_CONFIDENCE,
        proven_slope=proven_slope,
        note=note,
    )
