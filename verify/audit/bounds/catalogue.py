"""The catalogue of all bounds by name, the best first.

For example:

>>> import canaryproof as cp
>>> print(cp.bounds.METHODS["one-run"].assumptions[0])
every canary's inclusion a fair coin of its own
"""

from canaryproof.verify.audit.bounds import bayesian, fixed_sequence, gaussian, one_run, printed, thresholds
from canaryproof.verify.audit.bounds.lower_bound import Coverage, LowerBound, Method, ScoreSample
from canaryproof.verify.audit.bounds.lower_bound import cosine_null as cosine_null
from canaryproof.verify.audit.bounds.lower_bound import prepare as prepare

METHODS: dict[str, Method] = {
    method.name: method
    for module in (fixed_sequence, thresholds, gaussian, one_run, bayesian, printed)
    for method in module.METHODS
}
# This bound assumes nothing but independent scores, and has power against every shape of their distribution.
DEFAULT = "fixed-sequence"
# Where each canary has a coin of its own, this one's coverage is proven, and it comes first.
DEFAULT_WITH_COINS = "one-run"
# Bounds that are shown unless others are asked for: the default, and three with one more assumption.
_SHOWN = (DEFAULT, "normal-scores", DEFAULT_WITH_COINS, "one-run-gaussian")

_ORDER = (Coverage.PROVEN, Coverage.ASYMPTOTIC, Coverage.HEURISTIC)


def lower_bounds(
    scores: ScoreSample, delta: float, confidence: float = 0.95, names: tuple[str, ...] = ()
) -> tuple[LowerBound, ...]:
    """Compute the bounds of one audit, proven ones first.

    Parameters
    ----------
    scores
        The scores of one audit.
    delta
        δ in [0, 1).
    confidence
        1 − α, in (0, 1).
    names
        Names in the catalogue; by default a few that serve these scores.

    Returns
    -------
    The bounds.

    Raises
    ------
    KeyError
        If there is no bound of a name.
    ValueError
        If a named method does not serve these scores, or δ or α is outside its domain.
    """
    chosen = [METHODS[name] for name in names] or [METHODS[name] for name in _SHOWN if METHODS[name].can_use(scores)]
    bounds = [method.bound(scores, delta, 1.0 - confidence) for method in dict.fromkeys(chosen)]
    return tuple(sorted(bounds, key=lambda bound: _ORDER.index(bound.coverage)))
