"""Lower bounds on ε, and their input: the null hypothesis, and scores that are checked and sorted once.

Tables that bounds share are kept for further audits, within a size in bytes.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, is_dataclass
from enum import StrEnum
from functools import cached_property, partial
from threading import Lock
from typing import ParamSpec, TypeVar

import numpy as np
from cachetools import LRUCache, cached
from cachetools.keys import hashkey
from numpy.typing import ArrayLike
from scipy import special

from canaryproof.kernels import null_cosine
from canaryproof.kernels.arguments import checked_reals
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules

P = ParamSpec("P")
T = TypeVar("T")

_BELOW_ONE = math.nextafter(1.0, 0.0)


@set_module("canaryproof.typing")
class Inclusion(StrEnum):
    """The way in which the canaries that take part were chosen."""

    FIXED = "fixed"  # a fixed number, chosen in advance
    COIN = "coin"  # each by a fair coin of its own
    INDEPENDENT = "independent"  # each score is of a run of its own


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ExactNull:
    """The law of the score of a canary that did not take part.

    Attributes
    ----------
    name
        Its name.
    log_tail
        Log of P(score ≥ x), x itself included.
    quantile
        A score whose ``log_tail`` is about the given one. It need not be exact, as it only puts thresholds in place:
        validity rests on ``log_tail`` alone.
    atoms
        The values that a score can have, in increasing order; None if it can have any.
    is_conditional
        Whether it is the law given all else: the output and the other canaries. That of independent directions is.
    """

    name: str
    log_tail: Callable[[Array], Array]
    quantile: Callable[[Array], Array]
    atoms: Array | None = field(default=None, compare=False)
    is_conditional: bool = False


def normal_null(deviation: float = 1.0) -> ExactNull:
    """Return N(0, deviation²): the cosine's law in the limit, deviation 1/√d (Andrew et al., Theorem 3.2)."""
    return ExactNull(
        f"N(0, {deviation:g}²)",
        lambda x: special.log_ndtr(-x / deviation),
        lambda log_tail: -deviation * special.ndtri_exp(log_tail),
    )


def cosine_null(dim: float) -> ExactNull:
    """Return the exact law of a cosine in R^d (Andrew et al., arXiv 2302.03098, Theorem 3.1)."""
    dim = rules.DIM.number("dim", dim)

    def quantile(log_tail: Array) -> Array:
        # Raised to the tail's exponent (d − 1)/2, 1 − x² is as small as the normal tail at z.
        z = np.clip(-special.ndtri_exp(log_tail), -1e100, 1e100)
        return np.asarray(np.minimum(np.sign(z) * np.sqrt(-np.expm1(-z * z / (dim - 1.0))), _BELOW_ONE))

    # A cosine of 1 has been rounded. Both a mechanism of finite ε and the null can give it.
    return ExactNull(
        f"cosine in {dim:,} dimensions",
        lambda x: null_cosine.logsf(np.minimum(x, _BELOW_ONE), dim),
        quantile,
        is_conditional=True,
    )


# Rounding may make the sum of a discrete law's probabilities miss 1 by this much.
_PROBABILITY_ROUNDING = 1e-9


def discrete_null(values: ArrayLike, probabilities: ArrayLike) -> ExactNull:
    """Make the exact null of scores with finitely many values.

    Parameters
    ----------
    values
        The atoms, in increasing order: every value that a score can have, with canary or without, shape (n,), n ≥ 1.
    probabilities
        Their probabilities for a canary that did not take part, shape (n,). One that is 0 says that the value proves
        that the canary took part.

    Raises
    ------
    ValueError
        If values do not increase or are not finite, or the probabilities are not as many, negative, or do not sum to 1.
    """
    atoms, masses = np.asarray(values, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if atoms.ndim != 1 or not atoms.size or not np.all(np.isfinite(atoms)) or not np.all(np.diff(atoms) > 0.0):
        raise ValueError("values: the atoms must be finite and increase")
    if masses.shape != atoms.shape:
        raise ValueError(f"probabilities: there must be one for each of {atoms.size} values, not {masses.size}")
    if not (np.all(masses >= 0.0) and abs(math.fsum(masses) - 1.0) <= _PROBABILITY_ROUNDING):
        raise ValueError("probabilities: they must not be negative, and sum to 1")
    # Sums begin at the upper end, so that small probabilities there keep their digits.
    tails = np.cumsum(masses[::-1])[::-1]
    with np.errstate(divide="ignore"):
        log_tails = np.append(np.log(np.minimum(tails, 1.0)), -math.inf)
    # The lowest atom is no threshold, as every score reaches it; nor is one that no null score reaches.
    indices = np.flatnonzero(np.isfinite(log_tails[:-1]))[1:] if np.isfinite(log_tails[1]) else np.array([0])

    def quantile(log_tail: Array) -> Array:
        distance = np.abs(np.asarray(log_tail)[..., np.newaxis] - log_tails[indices])
        return np.asarray(atoms[indices][np.argmin(distance, axis=-1)])

    return ExactNull("a discrete law", lambda x: log_tails[np.searchsorted(atoms, x, side="left")], quantile, atoms)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ScoreSample:
    """Sample of scores of one or many audits of the same size; made by ``prepare``.

    Attributes
    ----------
    observed
        Scores of canaries that took part, each audit's in increasing order, shape (audits, k).
    unobserved
        The same of canaries that did not take part, shape (audits, k₀); None with an exact null.
    shuffled
        Puts observed and unobserved scores into an order that does not depend on them, where a bound asks for it.
    null
        The exact null; None with unobserved scores.
    inclusion
        How it was decided which canaries take part.
    independent
        Whether each score is of a run of its own.
    """

    observed: Array
    unobserved: Array | None
    shuffled: Callable[[], tuple[Array, Array | None]] = field(repr=False, compare=False)
    null: ExactNull | None
    inclusion: Inclusion
    independent: bool

    @property
    def count(self) -> int:
        """Number k of observed scores of an audit."""
        return int(self.observed.shape[1])

    @property
    def null_count(self) -> int:
        """Number k₀ of unobserved scores of an audit; 0 with an exact null."""
        return 0 if self.unobserved is None else int(self.unobserved.shape[1])

    @cached_property
    def log_tails(self) -> Array:
        """Log of the exact null's tail at each observed score; with millions of scores it is most of a bound's cost."""
        assert self.null is not None
        return self.null.log_tail(self.observed)

    @property
    def perfect_separation(self) -> "ScoreSample":
        """As many scores, perfectly separated from the null: the best that could be seen."""
        observed = np.arange(1.0, self.count + 1.0)[np.newaxis]
        unobserved = None if self.unobserved is None else -np.arange(1.0, self.null_count + 1.0)[np.newaxis, ::-1]
        null = None if self.null is None else ExactNull("nothing", lambda x: np.full(np.shape(x), -math.inf), np.exp)
        return ScoreSample(observed, unobserved, lambda: (observed, unobserved), null, self.inclusion, self.independent)


def prepare(
    observed: ArrayLike,
    unobserved: ArrayLike | None = None,
    null: ExactNull | None = None,
    *,
    inclusion: Inclusion | str = Inclusion.FIXED,
    independent: bool = False,
) -> ScoreSample:
    """Check scores and sort them.

    Parameters
    ----------
    observed
        Scores of canaries that took part, higher where they left a trace, shape (k,) or (audits, k).
    unobserved
        Scores of canaries that did not take part, shape (k₀,) or (audits, k₀).
    null
        The exact null instead.
    inclusion
        ``fixed``, ``coin``, or ``independent``, which says what the next argument says.
    independent
        Whether each score is of a run of its own; scores of one run depend on each other.

    Returns
    -------
    The scores.

    Raises
    ------
    ValueError
        If both or neither of unobserved scores and null are given, a score is not finite, there are none, or one is
        no atom of a discrete null.
    """
    if (unobserved is None) == (null is None):
        raise ValueError("either unobserved scores or an exact null must be given")
    seen = _check("observed", observed)
    unseen = None if unobserved is None else _check("unobserved", unobserved)
    if unseen is not None and len(unseen) != len(seen):
        raise ValueError(f"unobserved: there must be as many audits as for observed, {len(seen)}, not {len(unseen)}")
    if null is not None and null.atoms is not None and not np.all(known := np.isin(seen, null.atoms)):
        other = float(seen[~known][0])
        nearest = float(null.atoms[np.argmin(np.abs(null.atoms - other))])
        raise ValueError(f"observed: {other!r} is no atom of the null; the nearest is {nearest!r}")
    return ScoreSample(
        np.sort(seen, axis=1),
        None if unseen is None else np.sort(unseen, axis=1),
        lambda: (_shuffle(seen), None if unseen is None else _shuffle(unseen)),
        null,
        Inclusion(inclusion),
        independent or Inclusion(inclusion) is Inclusion.INDEPENDENT,
    )


def _check(name: str, scores: ArrayLike) -> Array:
    array = np.atleast_2d(checked_reals(f"{name}:", scores))
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name}: an audit must have at least one score, in one row")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: every score must be finite")
    return array


def _shuffle(scores: Array) -> Array:
    # A file may hold sorted scores, whose halves differ.
    return scores[:, np.random.default_rng(0).permutation(scores.shape[1])]


def check_levels(delta: float, alpha: float) -> None:
    """Refuse δ outside [0, 1) and α outside (0, 1).

    Raises
    ------
    ValueError
        If one of them is outside.
    """
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must lie in [0, 1), not {delta!r}")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie strictly between 0 and 1, not {alpha!r}")


def coverage_of_one_model(bound: "LowerBound", inclusion: Inclusion) -> "Coverage":
    """Return what is known of a bound's coverage where all scores are of one model, as losses are.

    Without coins such scores depend on each other in a way that no dimension makes vanish.
    """
    dependent = inclusion is Inclusion.FIXED and bound.coverage is Coverage.ASYMPTOTIC
    return Coverage.HEURISTIC if dependent else bound.coverage


# An assumption that scores cannot show.
GAUSSIAN_CURVE = "a Gaussian trade-off curve"

# Computes value and threshold of each audit from scores, δ and α. The threshold is NaN where the value is 0, or where
# no threshold belongs to the bound.
Compute = Callable[[ScoreSample, float, float], tuple[Array, Array]]


@set_module("canaryproof.typing")
class Coverage(StrEnum):
    """Knowledge about the probability that a bound exceeds the true ε."""

    PROVEN = "proven"  # at most α for these inputs, by a proof, under the assumptions that are named
    ASYMPTOTIC = "asymptotic"  # at most α in the limit in which the scores are independent
    HEURISTIC = "heuristic"  # no proof covers these inputs


@set_module("canaryproof.typing")
class BoundKind(StrEnum):
    """Interpretation of a reported number."""

    LOWER_BOUND = "lower bound"
    POSTERIOR = "posterior interval"


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class LowerBound:
    """A lower bound on ε.

    Attributes
    ----------
    value
        The bound, not negative.
    confidence
        1 − α.
    method
        Name in the catalogue.
    kind
        Lower bound, or lower end of a posterior interval.
    threshold
        Score from which on the attack that gives the value guesses "took part"; None if there is no such score.
    assumptions
        What the statement needs.
    coverage
        What is known of its coverage for these inputs.
    cap
        The largest value that as many scores can give, at these α and δ.
    upper
        Upper end of a posterior interval; None for a lower bound.
    """

    value: float
    confidence: float
    method: str
    kind: BoundKind
    threshold: float | None
    assumptions: tuple[str, ...]
    coverage: Coverage
    cap: float
    upper: float | None = None


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Method:
    """A way to bound ε from below.

    Attributes
    ----------
    name
        Name in the catalogue.
    source
        Where it is from.
    compute
        Its values, for all audits at once.
    assumptions
        What it needs beside what ``coverage`` says.
    coverage
        What is known of its coverage for the given scores.
    proof
        Sections of ``proofs_check/lower_bounds.md`` that prove its coverage, or say that nothing does.
    kind
        What its value is.
    printed
        Whether it is as in print, for reproduction.
    upper
        Upper ends of posterior intervals.
    needs
        What the scores must have: ``unobserved`` scores, an exact ``null``, or either if empty.
    version
        Number of the method's version, which a release that changes any of its values raises.
    """

    name: str
    source: str
    compute: Compute
    assumptions: tuple[str, ...]
    coverage: Callable[[ScoreSample], Coverage]
    proof: tuple[str, ...]
    kind: BoundKind = BoundKind.LOWER_BOUND
    printed: bool = False
    upper: Compute | None = None
    needs: str = ""
    version: int = 1

    def can_use(self, scores: ScoreSample) -> bool:
        """Whether the scores have what the method needs."""
        return not self.needs or (scores.null is None) == (self.needs == "unobserved")

    def values(self, scores: ScoreSample, delta: float, alpha: float) -> tuple[Array, Array]:
        """Compute the bound of every audit.

        Parameters
        ----------
        scores
            The scores.
        delta
            δ in [0, 1).
        alpha
            1 − confidence, in (0, 1).

        Returns
        -------
        Bounds and thresholds, shape (audits,); NaN where no threshold belongs to a bound.

        Raises
        ------
        ValueError
            If δ or α is outside its domain, or the method does not serve these scores.
        """
        check_levels(delta, alpha)
        if not self.can_use(scores):
            raise ValueError(f"{self.name} needs {'an exact null' if self.needs == 'null' else 'unobserved scores'}")
        return self.compute(scores, delta, alpha)

    def bound(self, scores: ScoreSample, delta: float, alpha: float) -> LowerBound:
        """Compute the bound of one audit; arguments and errors as for ``values``."""
        values, thresholds = self.values(scores, delta, alpha)
        if len(values) != 1:
            raise ValueError(f"there must be one audit, not {len(values)}")
        threshold = float(thresholds[0])
        return LowerBound(
            float(values[0]),
            1.0 - alpha,
            self.name,
            self.kind,
            None if math.isnan(threshold) else threshold,
            self.assumptions,
            self.coverage(scores),
            float(self.values(scores.perfect_separation, delta, alpha)[0][0]),
            None if self.upper is None else float(self.upper(scores, delta, alpha)[0][0]),
        )


def if_independent(scores: ScoreSample) -> Coverage:
    """Return the coverage that a proof for independent scores gives."""
    return Coverage.PROVEN if scores.independent else Coverage.ASYMPTOTIC


def if_coins(scores: ScoreSample) -> Coverage:
    """Return the coverage that a proof for canaries included by fair coins gives."""
    return Coverage.PROVEN if scores.inclusion is Inclusion.COIN else Coverage.HEURISTIC


def never(_: ScoreSample) -> Coverage:
    """Return the coverage of a bound without a proof."""
    return Coverage.HEURISTIC


# A table grows with the number of scores, so that a number of tables would limit nothing.
_TABLES_SIZE = 2**26
_OVERHEAD = 1024  # A key, and the objects around arrays


def _size(table: object) -> int:
    """Return the bytes of a table's arrays, and some for each object that holds them."""
    if isinstance(table, np.ndarray):
        return table.nbytes + _OVERHEAD
    if is_dataclass(table) and not isinstance(table, type):
        table = astuple(table)
    if isinstance(table, Iterable):
        return _OVERHEAD + sum(map(_size, table))
    return 0


TABLES: LRUCache[object, object] = LRUCache(_TABLES_SIZE, getsizeof=lambda table: _OVERHEAD + _size(table))
_TABLES_LOCK = Lock()


def cached_table(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the tables that a function has made, as long as all tables together take at most 64 MiB.

    A larger table is computed each time. Of the others the one that was used least recently goes first.
    """
    return cached(TABLES, key=partial(hashkey, function.__qualname__), lock=_TABLES_LOCK)(function)
