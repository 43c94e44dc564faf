"""What each method says of scores. It raises an alarm where its lower end is above the claimed ε."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np

from canaryproof.verify.blindspots.mechanism import Array
from canaryproof.verify.bounds.catalogue import METHODS
from canaryproof.verify.bounds.lower_bound import Kind, Method
from canaryproof.verify.bounds.one_run import METHODS as ONE_RUN
from canaryproof.verify.bounds.scores import ExactNull, Inclusion, Scores, cosine_null, prepare
from canaryproof.verify.late import late
from canaryproof.verify.oneshot import estimators
from canaryproof.verify.oneshot.estimators import Estimate
from canaryproof.verify.oneshot.moments import Moments

ALPHA = 0.05
# Method's name, what it says of each run, and its lower end at confidence 1 − α.
Said = tuple[str, Array, Array]

ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    name: late(estimators, name) for name in ("adaptive", "pinned", "fitted", "threshold")
}
_COINS = {method.name for method in ONE_RUN}
BOUNDS = {
    name: method
    for name, method in METHODS.items()
    if not method.printed and method.kind is Kind.LOWER_BOUND and name not in _COINS
}
COIN_BOUNDS = {name: METHODS[name] for name in sorted(_COINS)}
CANIFE = "canife"
# One null object for one law, as what belongs to it is remembered.
_null: Callable[[float], ExactNull] = cache(cosine_null)


def default_low(moments: Moments, delta: float) -> Array:
    """Return the lower end of ``adaptive`` alone, which is that of ``pinned`` where variances are not told apart."""
    low = estimators.pinned(moments, delta, 1.0 - 2.0 * ALPHA).low
    differ = estimators.variance_p_value(moments) < estimators.TEST_LEVEL
    if differ.any():
        few = Moments(moments.distance[differ], moments.ratio[differ], moments.count, moments.null_count)
        low[differ] = ESTIMATORS["adaptive"](few, delta, 1.0 - 2.0 * ALPHA).low
    return low


def estimates(moments: Moments, delta: float) -> Iterator[Said]:
    """Estimate ε of runs from their moments."""
    for name, estimator in ESTIMATORS.items():
        found = estimator(moments, delta, 1.0 - 2.0 * ALPHA)
        yield name, found.epsilon, found.low


def bounds(observed: Array, unobserved: Array | None, dim: int, delta: float) -> Iterator[Said]:
    """Bound ε of runs of fixed inclusion from below, by cosines' exact null unless there are unobserved scores."""
    null = _null(dim) if unobserved is None else None
    yield from _values(prepare(observed, unobserved, null), delta, BOUNDS)


def coin_bounds(observed: Array, unobserved: Array, delta: float) -> Iterator[Said]:
    """Bound ε of a run whose canaries each took part by a fair coin from below; shapes (k,) and (k₀,)."""
    yield from _values(prepare(observed, unobserved, inclusion=Inclusion.COIN), delta, COIN_BOUNDS)


def _values(scores: Scores, delta: float, methods: Mapping[str, Method]) -> Iterator[Said]:
    for name, method in methods.items():
        if method.serves(scores):
            values, _ = method.values(scores, delta, ALPHA)
            yield name, values, values


def canife(deviation: float, trials: int, runs: int, rng: np.random.Generator) -> Said:
    """Draw CANIFE's trials of a round, half with its canary, and measure them as printed with its upper cap.

    Maddock et al. (arXiv 2210.02912), Section 3.4, with δ = 1/n; the lower end is by its Clopper–Pearson limits.
    """
    # It takes a second to load, which an audit, that has no trials, is spared.
    from canaryproof.verify.canife.measure import round_epsilon

    half = trials // 2
    found = [
        round_epsilon(
            1.0 + deviation * rng.standard_normal(half),
            deviation * rng.standard_normal(trials - half),
            1.0 / trials,
            alpha=2.0 * ALPHA,
            zero_counts="capped",
        )
        for _ in range(runs)
    ]
    return CANIFE, np.array([one.epsilon for one in found]), np.array([one.lower for one in found])
