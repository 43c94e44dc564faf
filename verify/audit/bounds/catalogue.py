"""The catalogue of lower bounds by name, and ``lower_bounds``, which computes them.

For example:

>>> import canaryproof as cp
>>> print(cp.bounds.METHODS["one-run"].assumptions[0])
a fair coin of its own for each inclusion
"""

from canaryproof.kernels.refusals import check_type
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.bounds import (
    any_dependence,
    bayesian,
    fixed_sequence,
    gaussian,
    one_run,
    printed,
    thresholds,
)
from canaryproof.verify.audit.bounds.lower_bound import Coverage, LowerBound, Method, ScoreSample
from canaryproof.verify.audit.bounds.lower_bound import cosine_null as cosine_null
from canaryproof.verify.audit.bounds.lower_bound import prepare as prepare

# All that the suites measure, and those of them that can be asked for: the default's own tests are sharper than two.
MEASURED: dict[str, Method] = {
    method.name: method
    for module in (fixed_sequence, thresholds, any_dependence, gaussian, one_run, bayesian, printed)
    for method in module.METHODS
}
METHODS: dict[str, Method] = {
    name: method for name, method in MEASURED.items() if name not in ("fixed-threshold", "bonferroni")
}
# This bound assumes nothing but independent scores, and has power against every shape of their distribution.
DEFAULT = "fixed-sequence"
# Where each canary has a coin of its own, this one's coverage is proven, and it comes first.
DEFAULT_WITH_COINS = "one-run"
# Bounds that are shown unless others are asked for: the default, and three with one more assumption.
_SHOWN = (DEFAULT, "normal-scores", DEFAULT_WITH_COINS, "one-run-gaussian")
# Bounds that are proven however scores depend on each other, and mostly smaller: they are shown last. The first is for
# δ = 0 alone.
ANY_DEPENDENCE = ("pure-dp", "largest-score")

_ORDER = (Coverage.PROVEN, Coverage.ASYMPTOTIC, Coverage.HEURISTIC)


def lower_bounds(
    scores: ScoreSample, delta: float, confidence: float = 0.95, names: tuple[str, ...] = ()
) -> tuple[LowerBound, ...]:
    """Compute the bounds of one audit, proven ones first; by default those for any dependence last.

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
    ValueError
        If there is no bound of a name, a named method does not serve these scores, or δ or α is outside its domain.
    """
    check_type("scores", scores, ScoreSample, "what canaryproof.bounds.prepare returns")
    delta = rules.DELTA_OR_ZERO.number("delta", delta)
    confidence = rules.SHARE.number("confidence", confidence)
    names = rules.bounds(names, METHODS, "names")
    shown = (*_SHOWN, *ANY_DEPENDENCE[delta > 0.0 :])
    chosen = [METHODS[name] for name in names] or [METHODS[name] for name in shown if METHODS[name].can_use(scores)]
    bounds = [method.bound(scores, delta, 1.0 - confidence) for method in dict.fromkeys(chosen)]
    return tuple(
        sorted(bounds, key=lambda each: (not names and each.method in ANY_DEPENDENCE, _ORDER.index(each.coverage)))
    )
