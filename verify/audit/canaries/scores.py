"""The scores of one run's canaries: the input of an audit, checked."""

import copy
import json
import os
from dataclasses import dataclass, field, fields, make_dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_path, short_repr
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import NEIGHBOURS
from canaryproof.verify.audit.bounds.lower_bound import Inclusion
from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
from canaryproof.verify.audit.files import json_records
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.json_records import Count, OmittedIfNone
from canaryproof.verify.audit.files.reading import ScoreKind, checked_scores, floats, read_json
from canaryproof.verify.audit.files.writing import replace_file


@set_module("canaryproof.typing")
class Score(StrEnum):
    """A canary's score over rounds, by what the attacker knows of them."""

    LARGEST = "largest"  # nothing
    LIKELIHOOD = "likelihood"  # the law by which they were drawn
    KNOWN_ROUNDS = "known rounds"  # the rounds


@set_module("canaryproof.typing")
@dataclass(frozen=True, eq=False)
class RoundsRecord:
    """A training loop's record of the rounds that its scores are of.

    Attributes
    ----------
    score
        Score that was taken.
    participations
        Largest number of rounds in which an observed canary took part.
    left_out
        Observed canaries without a round, which have no score of known rounds.
    rounds, missing
        Rounds that were taken, and rounds that were planned and not taken.
    skipped
        Rounds whose delta was zero.
    traces
        Traces that measure the noise; None if no canary could be measured.
    counts
        Number of rounds of each observed canary that has a score of known rounds, in their order, shape (k,).
    carry_over
        How far observed canaries' cosines are off after their first round, in standard errors, at most. It is near 0
        unless later rounds depend on canaries; above by momentum, say, below where others' updates undo them.
    members, taken
        Number of observed canaries, and of rounds in which they took part, all together; None where they were not
        recorded.
    all_traces
        Traces of all canaries of each round, those that came back too; None where ``traces`` are.
    correlation, pairs
        Mean cosine of successive deltas without their canaries, and the number of pairs; None without a pair.
    kurtosis
        Least kurtosis of a delta's coordinates without canaries, 3 of Gaussian noise; None if none was taken.
    noise_multiplier
        Noise multiplier of a round that the training loop was given; None where it was not.
    rate
        Rate at which the schedule draws clients and canaries by Poisson sampling; None of other schedules.
    """

    score: Score
    participations: Count
    left_out: Count
    rounds: Count
    missing: Count
    skipped: Count
    traces: RoundTraces | None
    counts: OmittedIfNone[NDArray[np.int64]] = None
    carry_over: float = 0.0
    members: OmittedIfNone[Count] = None
    taken: OmittedIfNone[Count] = None
    all_traces: OmittedIfNone[RoundTraces] = None
    correlation: OmittedIfNone[float] = None
    pairs: OmittedIfNone[Count] = None
    kurtosis: OmittedIfNone[float] = None
    noise_multiplier: OmittedIfNone[float] = None
    rate: OmittedIfNone[float] = None


@set_module("canaryproof")
@dataclass(frozen=True, init=False, eq=False)
class Scores:
    """Scores of one run's canaries, higher where a canary left a trace.

    Parameters
    ----------
    observed
        Scores of canaries that took part, shape (k,), k ≥ 2: a list, a numpy or JAX array, a pandas series. Cosines are
        floating-point; other scores may be whole numbers.
    unobserved
        Scores of canaries that did not take part, shape (k₀,), k₀ ≥ 2. They may be left out for cosines.
    dim
        Dimension d of the released vector, 2 ≤ d ≤ 1e12, for cosines. It is needed without unobserved ones.
    inclusion
        ``"fixed"`` if the canaries that take part were chosen in advance, ``"coin"`` if each by a fair coin of its own,
        ``"independent"`` if each score is of a training of its own.
    kind
        ``"cosine"`` for cosines with one released vector, or their maxima over rounds; ``"any"`` for any other real
        scores, such as logits or negated losses.
    record
        What the training loop recorded, if ``CanaryClients`` made the scores.
    neighbours
        ``"add-or-remove"``, or ``"replace"`` if canaries that did not take part were added with the other sign, as
        replacing a record moves a sum by two clip norms. Both groups' laws are then estimated.
    inserted
        Number of independent canaries in the released vector, which are noise to each other's cosines with it; 1 where
        all others were taken out of each score. None if it is not known.

    Attributes
    ----------
    observed, unobserved
        As given, in float64; they cannot be written to. Of scores that are infinite, or beyond 1e100, they are the
        ranks among all, ties at their mean: the bounds take nothing but the order.
    dim, inclusion, kind, record, neighbours, inserted
        As given.
    ranked
        Whether ranks take the place of the scores.

    Raises
    ------
    ValueError
        If an argument breaks a rule: its name, the place and the rule are named.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> losses = np.random.default_rng(0).normal([[2.0], [2.6]], 0.5, (2, 500))
    >>> scores = cp.Scores(-losses[0], -losses[1], kind="any", inclusion="coin")
    >>> print(f"{cp.audit(scores, delta=1e-5).bound.low:.2f}")
    2.01
    """

    # In the order of their file.
    kind: ScoreKind
    inclusion: Inclusion
    neighbours: str
    dim: Count | None
    ranked: bool
    record: RoundsRecord | None
    observed: NDArray[np.float64]
    unobserved: NDArray[np.float64] | None
    inserted: OmittedIfNone[Count] = None

    def __init__(
        self,
        observed: ArrayLike,
        unobserved: ArrayLike | None = None,
        dim: float | None = None,
        inclusion: str = "fixed",
        kind: str = "cosine",
        record: RoundsRecord | None = None,
        neighbours: str = "add-or-remove",
        inserted: float | None = None,
    ) -> None:
        chosen = ScoreKind(rules.choice("kind", kind, ScoreKind))
        dimension = None if dim is None else int(rules.DIM.number("dim", dim))
        if chosen is ScoreKind.ANY and dimension is not None:
            raise ValueError("dim: is for cosines; scores of any kind have none")
        seen = _check("observed", observed, chosen)
        unseen = None if unobserved is None else _check("unobserved", unobserved, chosen)
        ranked = unseen is not None and bool(max(np.abs(seen).max(), np.abs(unseen).max()) > _LARGEST)
        if unseen is not None and ranked:
            seen, unseen = _rank(seen, unseen)
        values = {
            "observed": seen,
            "unobserved": unseen,
            "dim": dimension,
            "inclusion": Inclusion(rules.choice("inclusion", inclusion, Inclusion)),
            "kind": chosen,
            "record": record,
            "neighbours": rules.choice("neighbours", neighbours, NEIGHBOURS),
            "ranked": ranked,
            "inserted": None if inserted is None else int(rules.INSERTED.number("inserted", inserted)),
        }
        counts = None if record is None else record.counts
        if counts is not None and not (counts.shape == seen.shape and (counts > 0).all()):
            raise ValueError("record.counts: must be a positive number for each observed score")
        for name in ("carry_over", "correlation", "kurtosis") if record is not None else ():
            value = getattr(record, name)
            if value is not None and not np.isfinite(value):
                raise ValueError(f"record.{name}: must be finite, not {value!r}")
        if inserted is not None and chosen is ScoreKind.ANY:
            raise ValueError("inserted: is for cosines, which canaries of one release crowd")
        if unobserved is None and neighbours == "replace":
            raise ValueError("unobserved: is needed where canaries replace others, as no law is known then")
        if unobserved is None and chosen is ScoreKind.ANY:
            raise ValueError("unobserved: is needed for scores of any kind, as only cosines have a known null")
        if unobserved is None and dimension is None:
            raise ValueError("dim: is needed, as there are no unobserved cosines")
        # A frozen class refuses assignments, and each field differs in type from its argument.
        vars(self).update(values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scores with their record to a file that ``canaryproof audit`` reads.

        Parameters
        ----------
        path
            File to write or replace, whose name ends in ``.json``.

        Raises
        ------
        OSError
            If it cannot be written.
        ValueError
            If its name ends in another way.
        """
        target = checked_path("path", path)
        if target.suffix.lower() != ".json":
            raise ValueError(f"path: must end in .json, not {target.name!r}")
        document = json_records.to_document(_ScoresFile(_FORMAT, **vars(self)))
        with replace_file(target) as file:
            file.write(json.dumps(document, allow_nan=False).encode())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Scores":
        """Read the scores that ``save`` wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        The scores, with their record.

        Raises
        ------
        InputError
            If the file cannot be read or breaks a rule.
        """
        return of_document(path, read_json(checked_path("path", path)))

    def by_rank(self) -> "Scores":
        """Return these scores by their ranks among all of both kinds, as infinite ones are."""
        if self.unobserved is None:
            return self
        ranked = copy.copy(self)
        seen, unseen = _rank(self.observed, self.unobserved)
        vars(ranked).update(observed=seen, unobserved=unseen, ranked=True)
        return ranked

    def __repr__(self) -> str:
        parts = [f"{len(self.observed):,} observed"]
        parts += [] if self.unobserved is None else [f"{len(self.unobserved):,} unobserved"]
        parts += [] if self.dim is None else [f"dim={self.dim:,}"]
        return f"Scores({', '.join(parts)}, inclusion='{self.inclusion}', kind='{self.kind}')"


# A file of scores: the name and version of the form, and the fields of ``Scores``.
_FORMAT = "canaryproof scores 1"
_ScoresFile = make_dataclass(
    "_ScoresFile", [("format", str), *((each.name, each.type, field(default=each.default)) for each in fields(Scores))]
)


def of_document(path: str | os.PathLike[str], document: object) -> Scores:
    """Return the scores in a document that ``Scores.save`` wrote; an ``InputError`` names its file."""
    try:
        saved: Any = json_records.read(_ScoresFile, document)
        if saved.format != _FORMAT:
            raise ValueError(f"format: must be {_FORMAT!r}, not {short_repr(saved.format)}")
        given = saved.inclusion, saved.kind, saved.record, saved.neighbours, saved.inserted
        scores = Scores(saved.observed, saved.unobserved, saved.dim, *given)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    # Ranks are no longer infinite.
    vars(scores).update(ranked=saved.ranked)
    return scores


# Squares of larger scores overflow.
_LARGEST = 1e100


def _rank(observed: NDArray[np.float64], unobserved: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the ranks of scores among all of both kinds."""
    # scipy.stats takes a second to load, and few scores need it.
    from scipy.stats import rankdata

    groups = np.split(rankdata(np.concatenate([observed, unobserved])), [len(observed)])
    for group in groups:
        group.flags.writeable = False
    return groups


def scores_of_release(
    observed: NDArray[np.float64], unobserved: NDArray[np.float64] | None = None, dim: int | None = None
) -> Scores:
    """Return the cosines that an audit has computed from a release, all equal if there is no noise in it."""
    scores = Scores(np.array([0.0, 1.0]), dim=dim or 2, inserted=None if dim is None else 1)
    for values in (observed, unobserved):
        if values is not None:
            values.flags.writeable = False
    vars(scores).update(observed=observed, unobserved=unobserved, dim=dim)
    return scores


def _check(name: str, values: ArrayLike, kind: ScoreKind) -> NDArray[np.float64]:
    try:
        given = floats(values, whole=kind is ScoreKind.ANY)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    # A copy, so that nobody changes what has been checked. A long double may become infinite, which a rule refuses.
    with np.errstate(over="ignore"):
        scores = checked_scores(name, given.astype(np.float64), kind)
    scores.flags.writeable = False
    return scores
