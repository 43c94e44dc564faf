"""The scores of one run's canaries, checked: what an audit takes."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.verify.bounds.lower_bound import Inclusion
from canaryproof.verify.check import rules
from canaryproof.verify.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.files.reading import ScoreKind, checked_scores, floats


class Score(StrEnum):
    """A canary's score over rounds, by what the attacker knows of them."""

    LARGEST = "largest"  # nothing
    LIKELIHOOD = "likelihood"  # the law by which they were drawn
    KNOWN_ROUNDS = "known rounds"  # the rounds


@dataclass(frozen=True, eq=False)
class RoundsRecord:
    """A training loop's record of the rounds that its scores are of.

    Attributes
    ----------
    score
        Score that was taken.
    traces
        Traces that measure the noise; None if no canary could be measured.
    participations
        Largest number of rounds in which an observed canary took part.
    left_out
        Observed canaries without a round, which have no score of known rounds.
    rounds, missing
        Rounds that were taken, and rounds that were planned and not taken.
    skipped
        Rounds whose delta was zero.
    """

    score: Score
    traces: RoundTraces | None
    participations: int
    left_out: int
    rounds: int
    missing: int
    skipped: int


@dataclass(frozen=True, init=False, eq=False)
class Scores:
    """Scores of one run's canaries, higher where a canary left a trace.

    Parameters
    ----------
    observed
        Scores of canaries that took part, shape (k,), k ≥ 2, floating-point: a list, a numpy or JAX array, a pandas
        series.
    unobserved
        Scores of canaries that did not take part, shape (k₀,), k₀ ≥ 2. They may be left out for cosines.
    dim
        Dimension d of the released vector, 2 ≤ d ≤ 1e12, for cosines. It is needed without unobserved ones.
    inclusion
        ``"fixed"`` if the canaries that take part were chosen in advance, ``"coin"`` if each by a fair coin of its own.
    kind
        ``"cosine"`` for cosines with one released vector, or their maxima over rounds; ``"any"`` for any other real
        scores, such as logits or negated losses.
    record
        What the training loop recorded, if ``CanaryClients`` made the scores.

    Attributes
    ----------
    observed, unobserved
        As given, in float64; they cannot be written to.
    dim, inclusion, kind, record
        As given.

    Raises
    ------
    ValueError
        If an argument breaks a rule: its name, the place and the rule are named.
    """

    observed: NDArray[np.float64]
    unobserved: NDArray[np.float64] | None
    dim: int | None
    inclusion: Inclusion
    kind: ScoreKind
    record: RoundsRecord | None

    def __init__(
        self,
        observed: ArrayLike,
        unobserved: ArrayLike | None = None,
        dim: float | None = None,
        inclusion: str = "fixed",
        kind: str = "cosine",
        record: RoundsRecord | None = None,
    ) -> None:
        chosen = ScoreKind(rules.choice("kind", kind, ScoreKind))
        dimension = None if dim is None else int(rules.DIM.number("dim", dim))
        if chosen is ScoreKind.ANY and dimension is not None:
            raise ValueError("dim: is for cosines; scores of any kind have none")
        fields = {
            "observed": _checked("observed", observed, chosen),
            "unobserved": None if unobserved is None else _checked("unobserved", unobserved, chosen),
            "dim": dimension,
            "inclusion": Inclusion(rules.choice("inclusion", inclusion, Inclusion)),
            "kind": chosen,
            "record": record,
        }
        if unobserved is None and chosen is ScoreKind.ANY:
            raise ValueError("unobserved: is needed for scores of any kind, as only cosines have a known null")
        if unobserved is None and dimension is None:
            raise ValueError("dim: is needed, as there are no unobserved cosines")
        # A frozen class refuses assignments, and each field differs in type from its argument.
        vars(self).update(fields)

    def __repr__(self) -> str:
        parts = [f"{len(self.observed):,} observed"]
        parts += [] if self.unobserved is None else [f"{len(self.unobserved):,} unobserved"]
        parts += [] if self.dim is None else [f"dim={self.dim:,}"]
        return f"Scores({', '.join(parts)}, inclusion='{self.inclusion}', kind='{self.kind}')"


def _checked(name: str, values: ArrayLike, kind: ScoreKind) -> NDArray[np.float64]:
    try:
        given = floats(values)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    # A copy, so that nobody changes what has been checked. A long double may become infinite, which a rule refuses.
    with np.errstate(over="ignore"):
        scores = checked_scores(name, given.astype(np.float64), kind)
    scores.flags.writeable = False
    return scores
