"""What a bound is: its value, and what it takes to believe it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from canaryproof.verify.bounds.scores import Inclusion, Scores, check_levels

Array = NDArray[np.float64]
# Value and threshold of each audit, of scores at δ and α; the threshold is NaN where the value is 0 or there is none.
Compute = Callable[[Scores, float, float], tuple[Array, Array]]


class Coverage(StrEnum):
    """What is known of the probability that a bound lies above the truth."""

    PROVEN = "proven"  # at most α for these inputs, by a proof, under the assumptions that are named
    ASYMPTOTIC = "asymptotic"  # at most α in the limit in which the scores are independent
    HEURISTIC = "heuristic"  # no proof covers these inputs


class Kind(StrEnum):
    """What a number is said to be."""

    LOWER_BOUND = "lower bound"
    POSTERIOR = "posterior interval"


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
        The value at perfect separation with as many scores, at these α and δ.
    upper
        Upper end of a posterior interval; None for a lower bound.
    """

    value: float
    confidence: float
    method: str
    kind: Kind
    threshold: float | None
    assumptions: tuple[str, ...]
    coverage: Coverage
    cap: float
    upper: float | None = None


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
    kind
        What its value is.
    printed
        Whether it is as in print, for reproduction.
    upper
        Upper ends of posterior intervals.
    needs
        What the scores must have: ``unobserved`` scores, an exact ``null``, or either if empty.
    """

    name: str
    source: str
    compute: Compute
    assumptions: tuple[str, ...]
    coverage: Callable[[Scores], Coverage]
    kind: Kind = Kind.LOWER_BOUND
    printed: bool = False
    upper: Compute | None = None
    needs: str = ""

    def serves(self, scores: Scores) -> bool:
        """Whether the scores have what the method needs."""
        return not self.needs or (scores.null is None) == (self.needs == "unobserved")

    def values(self, scores: Scores, delta: float, alpha: float) -> tuple[Array, Array]:
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
        if not self.serves(scores):
            raise ValueError(f"{self.name} needs {'an exact null' if self.needs == 'null' else 'unobserved scores'}")
        return self.compute(scores, delta, alpha)

    def bound(self, scores: Scores, delta: float, alpha: float) -> LowerBound:
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
            float(self.values(scores.separated, delta, alpha)[0][0]),
            None if self.upper is None else float(self.upper(scores, delta, alpha)[0][0]),
        )


def if_independent(scores: Scores) -> Coverage:
    """Say what a proof for independent scores is worth."""
    return Coverage.PROVEN if scores.independent else Coverage.ASYMPTOTIC


def if_coins(scores: Scores) -> Coverage:
    """Say what a proof for canaries that are included by fair coins is worth."""
    return Coverage.PROVEN if scores.inclusion is Inclusion.COIN else Coverage.HEURISTIC


def never(_: Scores) -> Coverage:
    """Say that there is no proof."""
    return Coverage.HEURISTIC
