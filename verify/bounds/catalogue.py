"""All bounds by name, the best first."""

from canaryproof.verify.bounds import band, bayesian, declared, fixed_sequence, gaussian, one_run, printed
from canaryproof.verify.bounds.lower_bound import Coverage, LowerBound, Method
from canaryproof.verify.bounds.scores import Scores

METHODS: dict[str, Method] = {
    method.name: method
    for module in (fixed_sequence, band, declared, gaussian, one_run, bayesian, printed)
    for method in module.METHODS
}
# Where it serves; the sharpest that needs nothing but independent scores.
DEFAULT = "fixed-sequence"

_ORDER = (Coverage.PROVEN, Coverage.ASYMPTOTIC, Coverage.HEURISTIC)


def lower_bounds(
    scores: Scores, delta: float, confidence: float = 0.95, names: tuple[str, ...] = ()
) -> tuple[LowerBound, ...]:
    """Compute bounds of one audit, those first whose coverage is proven.

    Parameters
    ----------
    scores
        The scores of one audit.
    delta
        δ in [0, 1).
    confidence
        1 − α, in (0, 1).
    names
        Names in the catalogue; by default all that serve these scores.

    Returns
    -------
    The bounds.

    Raises
    ------
    ValueError
        If there is no such name, a named method does not serve these scores, or δ or α is outside its domain.
    """
    for name in names:
        if name not in METHODS:
            raise ValueError(f"there is no bound {name!r}; there are {', '.join(METHODS)}")
    chosen = [METHODS[name] for name in names] or [m for m in METHODS.values() if m.serves(scores)]
    found = [method.bound(scores, delta, 1.0 - confidence) for method in dict.fromkeys(chosen)]
    return tuple(sorted(found, key=lambda bound: _ORDER.index(bound.coverage)))
