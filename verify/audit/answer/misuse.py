"""Tests of misuse: an audit's scores are compared with what they are said to be.

Each test that withholds or accuses has a null hypothesis that holds in every honest audit of one noisy sum or of rounds
for all ε. One of them is wrong with probability ``LEVEL`` at most, the sum of their levels. Half of it belongs to the
test of the trace, which needs it most; the others share the rest evenly. Scores of any kind, such as losses, are the
exception: nobody knows in which direction they lie, and who brings them the wrong way round would see no leak. For
those one test is wrong with probability ``DIRECTION_LEVEL`` at most. Long data, few scores, a large δ, zeros and hardly
any noise are pointed out wherever they are, in honest audits too.

The decisions depend on what is known.

- A released vector ρ determines the trace that its canaries must have left. A canary of norm 1 has the mean cosine
  1/‖ρ‖, whatever noise and data are in ρ. So a missing trace is noticed, and so is a trace of another size.
- Scores and a claimed noise multiplier σ give an upper limit of that trace, 1/(σ√d), as data dilute it. Scores without
  any trace may be due to canaries that are not there, or to data.
- Scores alone do not say that canaries are missing: scores without a trace are also those of a mechanism with ε near 0.

A cosine's law in R^d has lighter tails than N(0, 1/d): all its moments are at most those. So p-values of means, which
are the normal law's, are too large rather than too small.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from canaryproof.kernels import gaussian_mechanism, null_cosine
from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.answer.shape import (
    FITS,
    fit,
    missing_below,
    missing_share,
    partial_trace_text,
    some_missing,
    two_clusters,
    valley,
)
from canaryproof.verify.audit.canaries.scores import RoundsRecord
from canaryproof.verify.audit.levels import EPSILON, LEVEL, POWER
from canaryproof.verify.audit.markup.digits import number, plus_minus, round_up

# Largest number of an audit's tests without that of the trace. No audit has both a release's
# norm, with two tests, and a record of rounds, with one.
_OTHERS = 20
TRACE_LEVEL, EACH_LEVEL = 0.5 * LEVEL, 0.5 * LEVEL / _OTHERS
# The level of all tests together where nobody knows the direction of scores. Who negates scores because an audit asks
# for it has audited twice: this is added to the level of the second audit.
DIRECTION_LEVEL = 1e-4


@set_module("canaryproof.typing")
class Withheld(StrEnum):
    """Numbers of an audit that mean nothing because of a warning, and are therefore withheld."""

    NOTHING = "nothing"
    ESTIMATE = "estimate"  # scores have another shape than ε̂ assumes; lower bounds assume none
    ALL = "all"  # scores are not what they are said to be


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class MisuseWarning:
    """A warning that an audit's input looks wrong.

    Attributes
    ----------
    kind
        Name of the misuse.
    message
        What was found.
    what_to_do
        What the user should check or change.
    p_value
        Probability of such scores in an honest audit, at most; None where arithmetic decides and not chance.
    withholds
        Numbers that mean nothing, so that they are shown on demand only.
    """

    kind: str
    message: str
    what_to_do: str
    p_value: float | None
    withholds: Withheld


@dataclass(frozen=True)
class _Facts:
    """The input of an audit, with its scores sorted."""

    observed: Array
    unobserved: Array | None
    cosines: bool  # Whether scores are cosines with a release, or the largest of several
    dim: int | None
    inclusion: str
    noise_multiplier: float | None
    release_norm: float | None
    residual_norm: float | None
    zeros: int  # Number of the release's coordinates that are exactly zero
    release_dim: int
    smallest: float = math.inf  # Smallest absolute value of the others
    near: int = 0  # Number of coordinates that are hardly larger
    is_sum: bool = True  # Whether the release is one noisy sum, and not a difference of models
    has_direction: bool = True  # Whether it is known that a canary's trace raises its score
    crowd: float = 0.0  # Other canaries' share in the variance of a release without them

    @property
    def groups(self) -> list[tuple[str, Array]]:
        """Scores by name."""
        unobserved = [] if self.unobserved is None else [("unobserved", self.unobserved)]
        return [("observed", self.observed), *unobserved]

    @property
    def count(self) -> int:
        return len(self.observed)

    @property
    def null_count(self) -> int:
        return 0 if self.unobserved is None else len(self.unobserved)

    @cached_property
    def scale(self) -> float | None:
        """Standard deviation of a cosine with one release under the null; None where it is not known."""
        if not self.cosines:
            return None
        if self.dim is not None:
            return 1.0 / math.sqrt(self.dim)
        return (
            float(np.sqrt((self.unobserved**2).mean()))
            if self.unobserved is not None and self.is_single_release
            else None
        )

    @cached_property
    def quartiles(self) -> float:
        """Interquartile range of the null; of all scores where a few unobserved ones are rounded to one value."""
        if self.unobserved is not None and (width := _interquartile(self.unobserved)):
            return width
        if self.dim is not None:
            return QUARTILES / math.sqrt(self.dim)
        return _interquartile(np.concatenate([scores for _, scores in self.groups]))

    @cached_property
    def is_single_release(self) -> bool:
        """Whether scores are cosines with one release: no unobserved ones, or these are no largest of two or more."""
        if not self.cosines or self.unobserved is None or self.release_norm is not None:
            return self.cosines
        # The larger of two independent normal variables has the mean 1/√π and the variance 1 − 1/π.
        mean = float(self.unobserved.mean())
        if self.dim is not None:
            excess = 1.0 / math.sqrt(math.pi) - math.sqrt(self.dim) * mean
        else:
            excess = 1.0 / math.sqrt(math.pi - 1.0) - mean / float(self.unobserved.std())
        return float(special.ndtr(-math.sqrt(self.null_count) * excess)) < EACH_LEVEL

    @cached_property
    def coordinate_deviation(self) -> float:
        """Deviation of a release's coordinates without its canaries, in canary norms; infinite without a release."""
        if self.release_norm is None:
            return math.inf
        if self.dim is None or self.residual_norm is None:
            return self.release_norm * (self.scale or 0.0)
        return self.residual_norm / math.sqrt(self.dim)

    @cached_property
    def deviations(self) -> Array:
        """Observed scores in the null's standard deviations; of a release's independent canaries without their own."""
        if self.residual_norm is not None and self.dim is not None:
            return math.sqrt(self.dim) / self.residual_norm * products_with_rest(self.observed, self.residual_norm)
        return self.observed / (self.scale or math.nan)

    @property
    def trace(self) -> float:
        """Mean of the observed scores in the null's standard deviations."""
        return float(self.deviations.mean())

    @property
    def trace_variance(self) -> float:
        """Variance of the estimated trace."""
        unknown_scale = 0.5 * self.trace**2 / self.null_count if self.dim is None else 0.0
        return 1.0 / self.count + unknown_scale


def misuse(
    observed: ArrayLike,
    unobserved: ArrayLike | None = None,
    dim: int | None = None,
    *,
    kind: str = "cosine",
    inclusion: str = "fixed",
    delta: float = 1e-6,
    confidence: float = 0.95,
    noise_multiplier: float | None = None,
    release_norm: float | None = None,
    residual_norm: float | None = None,
    crowd: float = 0.0,
    zeros: int = 0,
    smallest: float = math.inf,
    near: int = 0,
    release_dim: int | None = None,
    record: RoundsRecord | None = None,
    inserted: int | None = None,
    is_sum: bool = True,
) -> tuple[MisuseWarning, ...]:
    """Return warnings about an audit's input.

    Parameters
    ----------
    observed
        Scores of canaries that took part, finite, shape (k,), k ≥ 2.
    unobserved
        Scores of canaries that did not, shape (k₀,), k₀ ≥ 2; if None, the null is N(0, 1/d).
    dim
        Dimension d of the released vector, if known.
    kind
        ``cosine``, also for the largest cosine over several rounds; or ``any``.
    inclusion, delta, confidence
        Of the audit.
    noise_multiplier
        Claimed standard deviation of the noise in the release, in units of the canary norm.
    release_norm, residual_norm, crowd, zeros, smallest, near, release_dim
        Norm of the released vector in the same units, if the scores are its, the norm without all canaries (by default
        as if all were orthogonal), the canaries' share in the variance that is left, the number of its coordinates that
        are exactly zero, the smallest absolute value of the others, the number of those that are hardly larger, and of
        all of them. Without that it is ``dim``, or else the number of scores. With ``dim``, each score is the cosine
        with the release less all other canaries.
    record
        What a training loop recorded, if the scores are its.
    inserted
        Number of canaries that are noise to each other, as of ``Scores``.
    is_sum
        Whether the release is one noisy sum, which is no shorter than its noise. A difference of models may be, and its
        canaries may have other weights than 1.

    Returns
    -------
    Warnings, those first that withhold most.
    """
    seen = np.sort(np.asarray(observed, dtype=np.float64))
    unseen = None if unobserved is None else np.sort(np.asarray(unobserved, dtype=np.float64))
    if release_dim is None:
        release_dim = dim or len(seen) + (0 if unseen is None else len(unseen))
    if release_norm is not None and residual_norm is None:
        residual_norm = math.sqrt(max(release_norm**2 - len(seen), 0.0)) or release_norm
    facts = _Facts(
        seen,
        unseen,
        kind == "cosine",
        dim,
        inclusion,
        noise_multiplier,
        release_norm,
        residual_norm,
        zeros,
        release_dim,
        smallest,
        near,
        is_sum,
        kind == "cosine" or record is not None,
        crowd,
    )
    warnings: list[MisuseWarning] = [*_large_delta(facts, delta), *_too_few(facts, delta, confidence), *_coin(facts)]
    warnings += [] if record is None else _rounds(record)
    warnings += _zeros(facts)
    # Each test presupposes the null hypotheses of those before it.
    for judge in (_bare, _outside, _repetition_warnings, _order, _null_law, _spread, _valleys, _trace):
        warnings += [_of_a_release(warning, facts) for warning in judge(facts)]
        if any(warning.withholds is not Withheld.NOTHING for warning in warnings):
            break
    else:
        warnings += _crowd(facts, inserted) if record is None else []
    return tuple(sorted(warnings, key=lambda warning: list(Withheld)[::-1].index(warning.withholds)))


# Signs of weights other than 1, which canaries have in an honest difference of models.
WEIGHED = frozenset(("absent", "missing", "wide", "clusters", "units"))


def _of_a_release(warning: MisuseWarning, facts: _Facts) -> MisuseWarning:
    """Name what changes the weights of canaries in an honest difference of models, first if the release is one."""
    if warning.kind not in WEIGHED or facts.release_norm is None:
        return warning
    what_to_do = (
        f"{warning.what_to_do} If it is the change of a model, audit it with --difference."
        if facts.is_sum
        else f"Audit the rounds if weight decay or momentum weighs them differently. If not: {warning.what_to_do}"
    )
    return replace(warning, what_to_do=what_to_do)


def _crowd(facts: _Facts, inserted: int | None) -> Iterator[MisuseWarning]:
    """Warn of cosines of so many canaries in one release that the noise they are to each other hides the rest."""
    if not facts.is_single_release or facts.dim is None:
        return
    if facts.residual_norm is not None:
        # A released vector's other canaries are taken out of each score, almost: neither the measured noise nor the
        # scores' variance may be wrong by more than a tenth of a standard error.
        if facts.crowd > 0.1 * math.sqrt(2.0 / max(facts.count, facts.dim)):
            yield MisuseWarning(
                "crowded",
                f"Canaries of {facts.dim:,} coordinates are taken out of the release with the norm √d for their own. "
                f"What that leaves is {number(100.0 * facts.crowd, 2)}% of the variance that is measured.",
                "Audit fewer canaries, or with more noise.",
                None,
                withholds=Withheld.ESTIMATE,
            )
        return
    if facts.inclusion == "independent":
        return
    number_of_others = (facts.count if inserted is None else inserted) - 1
    # The other canaries' share of the release's squared length.
    share = min(number_of_others * max(facts.trace, 0.0) ** 2 / facts.dim, 1.0)
    if facts.noise_multiplier is not None and inserted is None:
        share = number_of_others / (facts.noise_multiplier**2 * facts.dim + number_of_others)
    limit = CROWD if inserted is None else STATED_CROWD
    if share <= limit / (1.0 + limit):
        return
    audited = "Audit the released vector, which takes the others out of each score"
    yield MisuseWarning(
        "crowded",
        f"Independent canaries are noise to each other: {number_of_others:,} others in {facts.dim:,} dimensions would "
        f"be {number(100.0 * share, 2)}% of the variance that these cosines measure.",
        f"{audited}, or say how many canaries the release has (inserted)." if inserted is None else f"{audited}.",
        None,
        withholds=Withheld.ESTIMATE,
    )


# Variance of canaries, as a multiple of all other noise's, from which on ε̂ is withheld: it would be too low by some
# 2.5% where their number is not known, and has too large an error where it is.
CROWD, STATED_CROWD = 0.05, 3.0


def _zeros(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of coordinates without noise: any noise of a density, rounded to single precision, leaves hardly a zero.

    Noise on a grid leaves about as many zeros as values one step above, from a deviation of two steps on. Of a coarser
    grid nobody can tell.
    """
    if facts.zeros <= max(_FEW_ZEROS, _FEW_ZEROS * 1e-3 * facts.release_dim):
        return
    neighbour = 0.5 * facts.near
    # Without the zeros that the grid does not explain.
    noisy = facts.release_dim - facts.zeros + neighbour
    steps = (facts.release_norm or 0.0) / math.sqrt(noisy) / facts.smallest if facts.near else math.inf
    if steps < _FEWEST_STEPS:
        yield MisuseWarning(
            "coarse-grid",
            f"{facts.zeros:,} of {facts.release_dim:,} coordinates of the release are exactly zero, and the noise is "
            f"about {number(steps, 2)} steps of their grid, zeros that such a grid leaves counted in: without the "
            "noise's law nobody can say whether more zeros lack noise.",
            "Check that noise is added to all coordinates, or round to a finer grid.",
            None,
            withholds=Withheld.NOTHING,
        )
    elif facts.zeros > 1.5 * neighbour + 5.0 * math.sqrt(neighbour):
        yield MisuseWarning(
            "zeros",
            f"{facts.zeros:,} of {facts.release_dim:,} coordinates of the release are exactly zero, more than Gaussian "
            "noise leaves.",
            "Check that noise is added to all coordinates. Leave out those that are not trained, as frozen layers.",
            None,
            withholds=Withheld.NOTHING,
        )


# Deviations of noise on a grid, in its steps, from which on zero is hardly more frequent than its neighbours.
_FEWEST_STEPS = 2.0
# A few coordinates, or as many in a thousand, may be zero in half precision.
_FEW_ZEROS = 2


def _rounds(record: RoundsRecord) -> Iterator[MisuseWarning]:
    if record.missing:
        yield MisuseWarning(
            "missing-rounds",
            f"{record.rounds:,} of {record.rounds + record.missing:,} planned rounds were taken: canaries took part "
            "less often than the claim says.",
            "Audit the finished training, or claim for the rounds that were taken.",
            None,
            withholds=Withheld.NOTHING,
        )
    if record.skipped:
        yield MisuseWarning(
            "skipped-rounds",
            f"{record.skipped:,} of {record.rounds:,} rounds had a delta of zero and were not scored.",
            "Check that each round hands over its delta.",
            None,
            withholds=Withheld.NOTHING,
        )
    yield from _likeness(record)
    if is_carried_over(record):
        above, why = ("above", "A delta with momentum holds earlier rounds.")
        if record.carry_over < 0.0:
            above, why = ("below", "Others' updates may undo canaries, as a model that has learnt them does.")
        yield MisuseWarning(
            "carry-over",
            "Later rounds depend on canaries: after a canary's first round its cosines are "
            f"{abs(record.carry_over):.1f} standard errors {above} those without it.",
            f"Hand over what each round adds, by itself. {why} First rounds, which measure the noise, stay valid.",
            carry_over_p_value(record),
            withholds=Withheld.NOTHING,
        )


# A record's three tests share the level of one.
_ROUNDS_LEVEL = EACH_LEVEL / 3.0
# Correlation of successive deltas from which on what a round adds alone has less than 95% of their variance.
_CORRELATED = math.sqrt(0.05)
# Kurtosis below which coordinates are not normal noise with data of less than half of the variance.
_EVEN = 2.5


def carry_over_p_value(record: RoundsRecord) -> float:
    """Return the p-value of canaries that leave nothing in later rounds."""
    # The statistic is its own sum over its own spread, of which this is Hoeffding's tail.
    return min(1.0, 2.0 * math.exp(-0.5 * record.carry_over**2))


def is_carried_over(record: RoundsRecord) -> bool:
    """Tell whether later rounds depend on canaries."""
    return carry_over_p_value(record) < _ROUNDS_LEVEL


def _likeness(record: RoundsRecord) -> Iterator[MisuseWarning]:
    """Warn of deltas that are like the one before, or whose coordinates are like each other: no plain noisy sums."""
    dim = 0 if record.traces is None else record.traces.dim
    if record.correlation is not None and record.pairs and dim and abs(record.correlation) > _CORRELATED:
        p_value = 2.0 * float(special.ndtr(-abs(record.correlation) * math.sqrt(dim * record.pairs)))
        if p_value < _ROUNDS_LEVEL:
            yield MisuseWarning(
                "correlated-rounds",
                f"Successive deltas have a correlation of {number(record.correlation, 2)} without their canaries: an "
                "attacker who subtracts a share of one from the next sees more than a round shows by itself.",
                "Hand over what each round adds by itself, before momentum or Adam. If others' data are what rounds "
                "share, take them out (known=).",
                p_value,
                withholds=Withheld.ESTIMATE,
            )
    if record.kurtosis is not None and dim and record.kurtosis < _EVEN:
        p_value = float(special.ndtr((record.kurtosis - 3.0) / math.sqrt(24.0 / dim))) * max(record.rounds, 1)
        if p_value < _ROUNDS_LEVEL:
            yield MisuseWarning(
                "even-coordinates",
                "The coordinates of a delta are more alike in size than Gaussian noise leaves them: their kurtosis is "
                f"{number(record.kurtosis, 2)}, not 3.",
                "Hand over the noisy sum, before it is divided by a running scale (Adam, RMSProp), clipped or rounded.",
                p_value,
                withholds=Withheld.ESTIMATE,
            )


def _bare(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of a release with hardly any noise, which all other tests of its scores presuppose."""
    least = max(_LEAST_NOISE, 0.0 if facts.dim is None else _LEAST_ALONG / facts.dim)
    if facts.coordinate_deviation >= least:
        return
    yield MisuseWarning(
        "bare",
        f"Without its canaries, a coordinate of the release has a deviation of {number(facts.coordinate_deviation, 2)} "
        f"canary norms. Below {number(least, 2)}, scores do not show how much noise there is.",
        "Check that noise is added, and that the release is in canary norms.",
        None,
        withholds=Withheld.ESTIMATE,
    )
    yield from _length(facts, facts.release_dim)


# Deviation of noise below which it may be rounding in single precision.
_LEAST_NOISE = 1e-5
# A canary's cosine with itself and noise rises with its product with the noise, to this many of the product's
# deviations below 0, if σd is at least this.
_LEAST_ALONG = 4.0


def _outside(facts: _Facts) -> Iterator[MisuseWarning]:
    if facts.cosines and any(max(-scores[0], scores[-1]) > 1.0 for _, scores in facts.groups):
        yield MisuseWarning(
            "not-cosines",
            "A score lies outside [−1, 1]: these are no cosines.",
            "Divide each inner product by both norms, or audit them as scores of any kind beside unobserved ones.",
            None,
            withholds=Withheld.ALL,
        )


# Repeated scores.


def _resolution(scores: Array) -> Array:
    """Return the spacing of representable values at each score: of the shortest floats, or of printed digits."""
    mantissa, exponent = np.frexp(scores)
    bits = next((bits for bits in range(1, _FLOAT32) if _is_whole(mantissa, bits)), _FLOAT32)
    step: Array = np.ldexp(1.0, exponent - bits)
    # Smaller scores have no float nine digits below them.
    printed = np.abs(scores) > 1e-290
    magnitude = np.abs(scores[printed])
    # Mostly the first piece already has all its digits, which spares the work on millions of others.
    pieces = [magnitude[first : first + _PIECE] for first in range(0, len(magnitude), _PIECE)]
    for digits in range(10) if pieces else ():
        for unit in (_decimals, _significant):
            if (digits or unit is _decimals) and all(_is_printed(piece, unit(piece, digits)) for piece in pieces):
                step[printed] = np.maximum(step[printed], unit(magnitude, digits))
                return step
    return step


def _rounding(scores: Array) -> float:
    """Return the most that rounding may have lowered the standard deviation of scores."""
    return 0.5 * math.sqrt(float((_resolution(scores) ** 2).mean()))


def _is_whole(mantissa: Array, bits: int) -> bool:
    """Tell whether this number of bits holds every mantissa; usually the first few settle it."""
    for piece in (mantissa[:_PIECE], mantissa):
        scaled = np.ldexp(piece, bits)
        if not np.array_equal(scaled, np.rint(scaled)):
            return False
    return True


# Bits of a mantissa in single precision, to which some programs round.
_FLOAT32 = 24
_PIECE = 2**16


def _decimals(magnitude: Array, digits: int) -> Array:
    return np.full(len(magnitude), 10.0**-digits)


def _significant(magnitude: Array, digits: int) -> Array:
    return np.asarray(10.0 ** (np.floor(np.log10(magnitude)) - digits + 1))


def _is_printed(magnitude: Array, unit: Array) -> bool:
    """Whether all scores are multiples of the unit of their last digit."""
    multiples = magnitude / unit
    return bool(np.all(np.abs(multiples - np.round(multiples)) <= 1e-9 * multiples))


def _repetition_warnings(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of scores that are equal more often than chance and rounding explain.

    Null hypothesis: scores of one kind are independent with one law, rounded to the digits that they have. A cosine's
    law has a density, at most that of the null. Its number of repeated scores is then no larger than a Poisson variable
    (negative association). Other scores may have any law, discrete ones too (``_pairs_p_value``), and where they take
    many values, neighbouring ones are about as frequent (``_copies_p_value``). An audit computes a release's cosines
    itself, once each; with little noise they are all near 1.
    """
    if facts.release_norm is not None:
        return
    values, counts = np.unique(
        _in_single_precision(np.concatenate([scores for _, scores in facts.groups])), return_inverse=True
    )
    copies = [np.bincount(part, minlength=len(values)) for part in np.split(counts, [facts.count]) if len(part)]
    smallest = 1.0
    for (name, scores), repeats in zip(facts.groups, copies, strict=True):
        again = len(scores) - int(np.count_nonzero(repeats))
        if facts.cosines:
            p_value = _excess(again, coincidences(scores, 0.5 * len(scores), facts.quartiles))
        else:
            once, twice, thrice = (int(np.count_nonzero(repeats == n)) for n in (1, 2, 3))
            p_value = _pairs_p_value(twice, (once, thrice), 1.5, len(scores))
        smallest = min(smallest, p_value)
        if p_value < EACH_LEVEL:
            yield MisuseWarning(
                "repeated",
                f"{again:,} of {len(scores):,} {name} scores are repetitions of others.",
                "Give each score once: one that is counted twice makes intervals too narrow.",
                p_value,
                withholds=Withheld.ALL,
            )
    if facts.unobserved is None:
        return
    seen, unseen = copies
    if facts.cosines:
        shared = int(np.count_nonzero((seen > 0) & (seen <= _TWICE) & (unseen > 0) & (unseen <= _TWICE)))
        p_value = _excess(shared, coincidences(facts.observed, facts.null_count, facts.quartiles))
    else:
        shared, *alone = (int(np.count_nonzero((seen == n) & (unseen == m))) for n, m in ((1, 1), (2, 0), (0, 2)))
        p_value = _pairs_p_value(shared, alone, 4.0, facts.count + facts.null_count)
    if p_value < EACH_LEVEL:
        yield MisuseWarning(
            "shared",
            f"{shared:,} of {facts.count:,} observed scores are among the unobserved ones too.",
            "Give each score to one of the two: observed if its record took part, unobserved if not.",
            p_value,
            withholds=Withheld.ALL,
        )
        return
    if facts.cosines or smallest < EACH_LEVEL:
        return
    p_value = _copies_p_value(facts.observed, facts.unobserved)
    if p_value < EACH_LEVEL:
        total = facts.count + facts.null_count
        again = total - len(values)
        yield MisuseWarning(
            "repeated",
            f"{again:,} of {total:,} scores are equal to others, and hardly any differ by the last digit alone.",
            "Give each record's score once: more rows of one record are no more records. Average them if they are of "
            "several queries or seeds.",
            p_value,
            withholds=Withheld.ALL,
        )


def find_repetitions(observed: Array, unobserved: Array) -> tuple[MisuseWarning, ...]:
    """Return warnings that scores of any kind are copies of others."""
    return tuple(_repetition_warnings(_facts_of_any_kind(observed, unobserved)))


def find_wrong_order(observed: Array, unobserved: Array) -> tuple[MisuseWarning, ...]:
    """Return warnings that scores of any kind are lower where a canary took part, as losses are."""
    return tuple(_order(_facts_of_any_kind(observed, unobserved)))


def _facts_of_any_kind(observed: Array, unobserved: Array) -> _Facts:
    seen, unseen = np.sort(observed), np.sort(unobserved)
    return _Facts(seen, unseen, False, None, "fixed", None, None, None, 0, len(seen) + len(unseen))


def can_hide_copies(observed: Array, unobserved: Array, *, ranked: bool) -> bool:
    """Tell whether a tenth of all rows repeat others, so that nobody can tell copies from ties.

    They may repeat too few values, or values of an uneven law, such as a tree's. Of ranks nobody can tell: they are as
    far from each other as ties make them.
    """
    total = len(observed) + len(unobserved)
    different, again, pairs = _recurring(np.concatenate([observed, unobserved]))
    hidden = ranked or again + pairs <= 2 * _FEW_VALUES or _are_uneven_ties(observed, unobserved, again, pairs)
    return 10 * (total - different) > total and hidden


def _are_uneven_ties(observed: Array, unobserved: Array, again: int, pairs: int) -> bool:
    """Tell whether recurring values are those of an uneven law: too often in both groups for copies of a record.

    A record's copies all took part, or none did. Of two equal scores of one law without a leak, one is in each group
    with probability 2ab/(a + b)², a and b being the groups' sizes; a quarter of that is asked for. On an even grid
    there are more neighbours than values in both groups.
    """
    both = len(np.intersect1d(_in_single_precision(observed), _in_single_precision(unobserved)))
    a, b = len(observed), len(unobserved)
    return 2 * pairs < both and 2 * both * (a + b) ** 2 >= again * a * b


def _copies_p_value(observed: Array, unobserved: Array) -> float:
    """Return the p-value of how many values come more than once, against how many have a value one step above.

    Labels play no part, so that a leak makes no difference. A score's step is that of its number format: a digit, a bit
    or a grid's. Where a law changes little from one value to the next, and Poisson numbers of scores have the mean λ
    there, a value comes twice with probability 1 − (1 + λ)exp(−λ), which is at most (1 − exp(−λ))², that of two
    neighbours. The null hypothesis is that there are no more of the first than of the second. Copies of rows are equal,
    and few are a step apart. Where many values are in both groups, nothing is said. However common a value is, such as
    0 or 1 at a limit, it counts once.
    """
    different, again, pairs = _recurring(np.concatenate([observed, unobserved]))
    if different <= _FEW_VALUES or not again or _are_uneven_ties(observed, unobserved, again, pairs):
        return 1.0
    return float(special.bdtrc(again - 1, again + pairs, 0.5))


def _recurring(scores: Array) -> tuple[int, int, int]:
    """Return how many values there are, how many come more than once, and how many have a value one step above."""
    pooled = np.sort(scores)
    _, firsts, counts = np.unique(_in_single_precision(pooled), return_index=True, return_counts=True)
    again = int(np.count_nonzero(counts > 1))
    if len(counts) <= _FEW_VALUES:
        return len(counts), again, 0
    values, gaps = pooled[firsts], np.diff(pooled[firsts])
    step = _resolution(pooled)[firsts]
    multiples = (values - values[0]) / gaps.min()
    if np.all(np.abs(multiples - np.rint(multiples)) <= 1e-6 * np.maximum(multiples, 1.0)):
        step = np.maximum(step, gaps.min())
    # Another scale of a grid, as logarithms of probabilities in half precision, has gaps like their neighbours.
    alike = np.abs(np.diff(gaps)) <= _ALIKE * gaps[1:]
    next_to = (gaps <= 1.5 * np.maximum(step[1:], step[:-1])) | np.append(alike, False) | np.append(False, alike)
    return len(counts), again, int(np.count_nonzero(next_to))


# The limit that an audit states then.
HIDDEN_COPIES = "whether rows are copies: each counts as a record of its own, and equal scores may be ties"
# Up to so many different values, nobody can tell copies from ties.
_FEW_VALUES = 20
# Relative difference up to which two gaps are alike.
_ALIKE = 0.005


def _pairs_p_value(pairs: int, others: Sequence[int], factor: float, total: int) -> float:
    """Return the p-value of the number of paired values, for independent scores of any distribution.

    With Poisson numbers of scores, let E₁, E₂ and E₃ be the mean numbers of values that come once, twice and thrice.
    They obey E₂² ≤ 1.5·E₁·E₃ (Cauchy and Schwarz). Pairs in both groups, in one and in the other obey
    E₁₁² ≤ 4·E₂₀·E₀₂. Each number is a sum of independent
    indicators, with tails below Poisson's (Hoeffding 1956). Given the true total, probabilities are at most 1.1·√(2π)
    times the square root of the total times as large; two groups have two totals, and the product of both factors.
    """
    given = 1.1 * math.sqrt(2.0 * math.pi * total)
    given *= given if factor > 2.0 else 1.0

    def is_rejected(log_level: float) -> bool:
        share = math.exp(log_level) / (3.0 * given)
        limits = [float(special.gammainccinv(count + 1.0, share)) for count in others]
        return float(special.pdtrc(pairs - 1, math.sqrt(factor * limits[0] * limits[1]))) < share

    low, high = math.log(1e-100), 0.0
    if not pairs or not is_rejected(high):
        return 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_rejected(middle) else (middle, high)
    return math.exp(high)


def _in_single_precision(scores: Array) -> Array:
    """Round to float32's digits, at any scale."""
    mantissa, exponent = np.frexp(scores)
    return np.asarray(np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent))


# Up to this many copies, a score is a repetition and not a tie.
_TWICE = 2


def _excess(count: int, expected: float) -> float:
    """Return the probability that a Poisson variable is at least a count."""
    return float(special.pdtrc(count - 1, expected)) if count else 1.0


def coincidences(scores: Array, others: float, quartiles: float) -> float:
    """Bound the expected number of scores that are rounded to the value of one of the others.

    A cosine's density is at most that of the null, which is below one in the null's interquartile range.
    """
    return float(_resolution(scores).sum()) * others / quartiles if quartiles > 0.0 else 0.0


def _interquartile(scores: Array) -> float:
    low, high = np.quantile(scores, (0.25, 0.75))
    return float(high - low)


# Interquartile range of N(0, 1).
QUARTILES = 1.3489795


# The order of observed and unobserved scores.

# Up to so large a share of equal scores the normal law serves the rank sum of groups of any sizes.
_FEW_TIES = 0.1


def below_p_value(observed: Array, unobserved: Array) -> float:
    """Return the p-value of observed scores that lie below unobserved ones, exact where many scores are equal.

    Without ties the rank sum is bounded, so that the normal law's tail is the heavier one far out. With many it is not:
    of 2,020 labels of which three are 1, one is among 20 by a chance of 3%. Then scores above a cut are counted, which
    halves all scores as well as ties let it: given how many they are, this is a hypergeometric count.
    """
    # It loads for long, and few audits need it.
    from scipy import stats

    values, counts = np.unique(np.concatenate([observed, unobserved]), return_counts=True)
    size = len(observed) + len(unobserved)
    if counts.max() <= _FEW_TIES * size:
        return float(stats.mannwhitneyu(observed, unobserved, alternative="less", method="asymptotic")[1])
    if len(values) == 1:
        return 1.0
    above = size - np.cumsum(counts)[:-1]
    cut = int(np.argmin(np.abs(above - size / 2)))
    return float(stats.hypergeom.cdf(np.count_nonzero(observed > values[cut]), size, above[cut], len(observed)))


def _order(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of observed scores below the null, and of observed cosines below 0.

    Null hypotheses: observed scores follow the null, or a law above it. They do where ε = 0, and a trace raises them.
    Then the mean of cosines is at least 0, also that of the largest over rounds, whose variance is at most 1/d.
    """
    if facts.cosines:
        mean, count = float(facts.observed.mean()), facts.count
        if facts.dim is not None:
            below = -mean * math.sqrt(facts.dim * count)
            p_value = float(special.ndtr(-below))
        else:
            below = -mean / (float(facts.observed.std()) + _rounding(facts.observed)) * math.sqrt(count - 1)
            p_value = float(special.stdtr(count - 1, -below))
        if p_value < EACH_LEVEL:
            yield _sign_warning(f"The observed cosines' mean is {below:.1f} standard errors below 0.", p_value)
            return
    if facts.unobserved is None:
        return
    p_value = below_p_value(facts.observed, facts.unobserved)
    if p_value >= (EACH_LEVEL if facts.has_direction else DIRECTION_LEVEL - LEVEL):
        return
    seen, unseen = float(facts.observed.mean()), float(facts.unobserved.mean())
    if not facts.cosines:
        yield MisuseWarning(
            "order",
            "The observed scores lie below the unobserved ones. Taking part should only raise a score.",
            "Swap observed and unobserved if they are the wrong way round. Negate the scores if taking part "
            "lowers them, as it does losses.",
            p_value,
            withholds=Withheld.ALL,
        )
    elif seen < 0.0 and abs(seen) > abs(unseen):
        yield _sign_warning("The observed cosines lie below the unobserved ones, and below 0.", p_value)
    else:
        yield MisuseWarning(
            "swapped",
            "The unobserved cosines lie above the observed ones: it is they that have the trace of canaries.",
            "Swap observed and unobserved.",
            p_value,
            withholds=Withheld.ALL,
        )


def _sign_warning(message: str, p_value: float) -> MisuseWarning:
    return MisuseWarning(
        "sign",
        message,
        "Check the sign: canaries must have been added and not subtracted. The change of a model by its training has "
        "this sign, a gradient the other. Scores that are no cosines are audited as scores of any kind.",
        p_value,
        withholds=Withheld.ALL,
    )


# The laws of scores.


def _null_law(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of unobserved cosines that are neither of one release nor the largest over rounds.

    Null hypothesis: they are the largest of T ≥ 1 cosines. Then their law is nowhere below the null's, its variance is
    at most 1/d (Poincaré's inequality) and its second moment at least that. If the vectors are unrelated, it is F^T.
    """
    if facts.unobserved is None or facts.dim is None or not facts.cosines:
        return
    count, dim, z = facts.null_count, facts.dim, math.sqrt(facts.dim) * facts.unobserved
    probability = null_cosine.cdf(facts.unobserved, dim)
    p_value = min(
        float(special.smirnov(count, max(0.0, (np.arange(1.0, count + 1.0) / count - np.sort(probability)).max()))),
        float(special.ndtr(math.sqrt(count) * z.mean())),
        float(special.chdtrc(count - 1, count * z.var())),
        float(special.chdtr(count, (z**2).sum())),
    )
    if p_value < EACH_LEVEL:
        yield MisuseWarning(
            "null-law",
            f"The unobserved scores are no cosines in {facts.dim:,} dimensions: {_moments_text(z)}.",
            "Check the dimension, that scores are cosines, and that canaries are uniform on all coordinates.",
            p_value,
            withholds=Withheld.ALL,
        )
        return
    exceedance = _log_exceedance(facts.unobserved, dim)
    log_rounds = max(0.0, math.log(count) - float(special.logsumexp(exceedance)))

    def normal(exceedance: Array) -> Array:
        with np.errstate(over="ignore"):
            law = np.exp(-np.exp(log_rounds + exceedance))
        return np.asarray(special.ndtri(np.clip(law, 1e-300, 1.0 - 1e-16)))

    step = 0.5 * _resolution(facts.unobserved)
    above, below = np.minimum(facts.unobserved + step, 1.0), np.maximum(facts.unobserved - step, -1.0)
    widths = normal(_log_exceedance(above, dim)) - normal(_log_exceedance(below, dim))
    p_value = _normal_p_value(normal(exceedance), math.sqrt(float((widths**2).mean())))
    if p_value < EACH_LEVEL:
        yield MisuseWarning(
            "null-law",
            f"The unobserved scores are neither single cosines in {facts.dim:,} dimensions nor the largest of some: "
            f"{_moments_text(z)}.",
            "Expected if they are the largest over rounds that resemble each other. Else check the dimension, and that "
            "none of these canaries took part.",
            p_value,
            withholds=Withheld.NOTHING,
        )


def _log_exceedance(scores: Array, dim: int) -> Array:
    """Return log(−log F) of cosines, also where F rounds to 1 and −log F is the probability of a larger cosine."""
    minus_log = -null_cosine.logcdf(scores, dim)
    with np.errstate(divide="ignore"):
        result = np.log(minus_log)
    rounded = ~(minus_log > 0.0)
    result[rounded] = null_cosine.logsf(scores[rounded], dim)
    return result


def _moments_text(z: Array) -> str:
    return f"in the null's deviations, their mean is {number(z.mean(), 2)} and their deviation {number(z.std(), 2)}"


def _normal_p_value(z: Array, rounding: float) -> float:
    """Return the smallest p-value of three tests that values in increasing order are normal with variance 1."""
    deviation = float(z.std())
    return min(
        fit(special.ndtr(z - z.mean())),
        float(special.chdtr(len(z) - 1, len(z) * (deviation + rounding) ** 2)),
        float(special.chdtrc(len(z) - 1, len(z) * deviation**2)),
    )


def _spread(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of observed cosines of one release with less than the null's variance, or of another law than normal.

    Null hypothesis: traces only add to the variance. Where a release was given, all its canaries have one weight, and
    cosines are normal with the null's variance; scores alone may be of canaries that took part unequally (``shape``).
    Where the scale is that of k₀ unobserved cosines, the test of the variance is Fisher's, and that of the shape
    compares the two samples.
    """
    if facts.scale is None or not facts.is_single_release:
        return
    z = facts.deviations
    ratio = float(z.std())
    # Scores that are rounded to one value have a deviation of 0.
    least, most = ratio**2, (ratio + _rounding(facts.observed) / facts.scale) ** 2
    if facts.dim is not None:
        freedom = facts.count - 1
        narrow, wide = special.chdtr(freedom, facts.count * most), special.chdtrc(freedom, facts.count * least)
        # Fitting the mean makes the p-value larger. The distance bounds that of a cosine's law from the normal one.
        shape = fit(special.ndtr(z - z.mean()), _NORMAL_DISTANCE / (facts.dim - 1))
    else:
        # It loads for long, and few audits need it.
        from scipy import stats

        unobserved = np.asarray(facts.unobserved) / facts.scale
        freedoms, factor = (facts.count - 1, facts.null_count), facts.count / (facts.count - 1)
        narrow, wide = special.fdtr(*freedoms, factor * most), special.fdtrc(*freedoms, factor * least)
        shape = float(stats.ks_2samp(z - z.mean(), unobserved - unobserved.mean(), method="asymp").pvalue)
    p_value = float(min(narrow, wide, shape) if facts.release_norm is not None else narrow)
    if p_value >= EACH_LEVEL:
        return
    if narrow < EACH_LEVEL:
        yield MisuseWarning(
            "narrow",
            f"The observed scores' deviation is {number(ratio, 2)} times the null's.",
            "Check the dimension, and that scores are cosines. Largest cosines over rounds need unobserved ones beside "
            "them.",
            p_value,
            withholds=Withheld.ALL,
        )
        return
    if facts.release_norm is None:
        return
    fits = {"missing": fit(some_missing(z)), "wide": fit(special.ndtr((z - z.mean()) / ratio))}
    best = max(fits, key=lambda name: fits[name])
    # The law of two clusters has one more parameter, and nearly always fits better.
    if fits[best] < FITS < fit(two_clusters(z)):
        best = "clusters"
    if best == "missing":
        share = 100.0 * missing_share(z)[0]
        yield _fewer(f"It is as if {number(share, 2)}% of the canaries left a trace and the others none.", p_value)
    elif best == "clusters":
        yield _cluster_warning("observed", p_value)
    else:
        yield MisuseWarning(
            "wide",
            f"The observed scores' deviation is {number(ratio, 2)} times the null's.",
            "Check that all canaries took part, equally often and with one norm.",
            p_value,
            withholds=Withheld.ESTIMATE,
        )


# Kolmogorov's distance between √d times a cosine and N(0, 1) is at most this over d − 1 (proofs_check.normal_distance).
_NORMAL_DISTANCE = 0.138


def _fewer(message: str, p_value: float) -> MisuseWarning:
    return MisuseWarning(
        "missing",
        message,
        "Check the number of canaries that took part, and give the scores of these alone as observed.",
        p_value,
        withholds=Withheld.ESTIMATE,
    )


def _cluster_warning(name: str, p_value: float) -> MisuseWarning:
    return MisuseWarning(
        "clusters",
        f"The {name} scores form two clusters.",
        "Audit each release alone, or take each canary's largest cosine over all rounds; do not mix rounds or layers.",
        p_value,
        withholds=Withheld.ESTIMATE,
    )


def _valleys(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of scores with two modes in one release, where all canaries have one weight."""
    if facts.release_norm is None:
        return
    for name, scores in facts.groups:
        p_value, where = valley(scores)
        if p_value < EACH_LEVEL:
            yield _valley(facts, name, where, p_value)


def _valley(facts: _Facts, name: str, where: float, p_value: float) -> MisuseWarning:
    """Name the cause of a valley: two clusters, or missing canaries, which score like unobserved ones."""
    if name == "observed" and facts.unobserved is not None:
        share = missing_below(facts.observed, facts.unobserved, where)
        if share is not None:
            return _fewer(partial_trace_text(share), p_value)
    return _cluster_warning(name, p_value)


# The trace that canaries leave, and the release's length.


def _trace(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of a trace that differs from the one by the release's norm, or is below the one by the claimed noise."""
    if facts.scale is None:
        return
    if facts.release_norm is not None:
        yield from _release(facts, facts.release_dim, facts.release_norm, facts.scale)
        return
    if facts.noise_multiplier is None:
        return
    expected = 1.0 / math.sqrt(facts.noise_multiplier**2 + facts.count * facts.scale**2)
    p_value = float(special.ndtr((facts.trace - expected) / math.sqrt(facts.trace_variance)))
    if p_value >= TRACE_LEVEL:
        return
    message = f"{_trace_text(facts)}; the claimed noise alone would leave {number(expected)}."
    if _has_trace(facts):
        yield MisuseWarning(
            "weak-trace",
            f"The canaries' trace is {message}",
            "Data dilute it, or there is more noise than claimed, or canaries are missing. An audit of the released "
            "vector says which.",
            p_value,
            withholds=Withheld.NOTHING,
        )
    else:
        yield MisuseWarning(
            "no-trace",
            f"The canaries are hardly there: their trace is {message}",
            "Either they are not in this release (wrong seed, order of the coordinates, or file), or data are much "
            "longer than the noise. An audit of the released vector says which.",
            p_value,
            withholds=Withheld.ESTIMATE,
        )


def _has_trace(facts: _Facts) -> bool:
    return float(special.ndtr(-facts.trace * math.sqrt(facts.count))) < FITS


def _trace_text(facts: _Facts) -> str:
    error = math.sqrt(facts.trace_variance)
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{facts.trace:.{digits}f} ± {error:.{digits}f} deviations of the null"


def _release(facts: _Facts, dim: int, norm: float, scale: float) -> Iterator[MisuseWarning]:
    """Compare the trace of canaries of norm 1 with the one by the release's norm, and the norm with the claim.

    Null hypotheses: all canaries are in the release with the same weight 1; its noise is the claimed one, and there are
    no data. Without its canaries, the squared norm is at least σ²χ²_d in law whatever the data, and this without any.
    """
    expected = 1.0 / ((norm if facts.dim is None else facts.residual_norm or norm) * scale)
    p_value = trace_p_value((facts.trace - expected) * math.sqrt(facts.count), facts.null_count)
    length = list(_length(facts, dim))
    if p_value >= TRACE_LEVEL:
        yield from length
        return
    weight, error = facts.trace / expected, 1.0 / (math.sqrt(facts.count) * expected)
    if not _has_trace(facts):
        yield MisuseWarning(
            "absent",
            f"The canaries are {'not' if facts.is_sum else 'hardly'} in this release: their trace is "
            f"{_trace_text(facts)}, and in a release of this norm it would be {number(expected)}.",
            "Check the canary seed, the order of the coordinates, the file, and that the release is in units of the "
            "canary norm.",
            p_value,
            withholds=Withheld.ALL,
        )
        yield from length
        return
    message = f"The canaries' trace in this release is that of vectors of norm {plus_minus(weight, error)}, not 1."
    if length and facts.noise_multiplier is not None:
        ratio = norm / math.hypot(facts.noise_multiplier * math.sqrt(dim), math.sqrt(facts.count))
        if abs(weight - ratio) <= 4.0 * error:
            message = f"{message} The release is {number(ratio)} times as long as claimed, too."
            yield _other_units(facts, message, weight, p_value)
            return
    yield from length
    if weight < 1.0:
        # With missing canaries, scores are a mixture of known variance.
        excess = weight * (1.0 - weight) * expected**2
        distinct = excess > 7.0 * math.sqrt(2.0 / facts.count)
        mixed = float(facts.observed.var()) / scale**2 > 1.0 + 0.5 * excess
        if (distinct and mixed) or (not distinct and facts.noise_multiplier is not None and not length):
            yield _fewer(f"{message} It is as if {number(100.0 * weight, 2)}% of the canaries were there.", p_value)
            return
        if not distinct:
            yield _fewer(f"{message} Either canaries are missing, or the release is in other units.", p_value)
            return
    yield _other_units(facts, message, weight, p_value)


def products_with_rest(cosines: Array, residual_norm: float) -> Array:
    """Return 1 + ⟨c, x⟩ from the cosine of a canary c with x + c, for a rest x of this norm."""
    slopes = cosines / np.sqrt(np.maximum(1.0 - cosines**2, 1e-300))
    squares = 1.0 + slopes**2
    # A larger cosine has a larger product; rounding may leave less than nothing below the root.
    return np.asarray(1.0 + (slopes * np.sqrt(np.maximum(squares * residual_norm**2 - 1.0, 0.0)) - 1.0) / squares)


def trace_p_value(statistic: float, null_count: int) -> float:
    """Return the p-value of a trace in standard errors, by Student's law where the scale is that of other scores."""
    below = -abs(statistic)
    return 2.0 * float(special.stdtr(null_count, below) if null_count else special.ndtr(below))


def _other_units(facts: _Facts, message: str, weight: float, p_value: float) -> MisuseWarning:
    # Independent canaries were taken out of each other's scores with the norm 1. What that leaves of them is noise.
    left = 0.0 if facts.dim is None else facts.count * ((weight - 1.0) / (facts.residual_norm or math.inf)) ** 2
    crowded = left > CROWD
    return MisuseWarning(
        "units",
        message,
        f"Find out why. If the release is in another unit, divide it by the clip norm itself, not by {number(weight)}, "
        "which the trace only estimates, or state the canaries' norm. Canaries that entered with another norm, or "
        "several times, are a fault of the training or of its audit.",
        p_value,
        withholds=Withheld.ESTIMATE if crowded else Withheld.NOTHING,
    )


# Ratios of the release's norm to the claimed one that are reported; smaller differences may be rounding of the claim.
SHORT, LONG = 0.98, 1.1


def _length(facts: _Facts, dim: int) -> Iterator[MisuseWarning]:
    """Warn of a norm without the canaries that differs from that of the claimed noise."""
    if facts.noise_multiplier is None or facts.residual_norm is None:
        return
    ratio = facts.residual_norm / (facts.noise_multiplier * math.sqrt(dim))
    p_short, p_long = (float(tail(dim, dim * ratio**2)) for tail in (special.chdtr, special.chdtrc))
    if facts.is_sum and p_short < EACH_LEVEL and ratio < SHORT:
        most = largest_noise(ratio * facts.noise_multiplier * math.sqrt(dim), dim)
        yield MisuseWarning(
            "less-noise",
            f"Without its canaries, the release is {ratio:.3g} times as long as the claimed noise: its noise "
            f"multiplier is at most {round_up(most, 3)}, not {facts.noise_multiplier:.4g}.",
            "Check the claimed multiplier, and that it and the release are in units of the canary norm. If they are, "
            "noise is missing.",
            p_short,
            withholds=Withheld.NOTHING,
        )
    elif p_long < EACH_LEVEL and ratio > LONG:
        yield MisuseWarning(
            "dilution",
            f"Without its canaries, the release is {number(ratio)} times as long as the claimed noise. Canaries see "
            f"data as noise: their trace is {1.0 / ratio:.2g} of what the claimed noise alone would leave.",
            "Do not read a low ε̂ as evidence of the claimed noise. Audit a release with less data, or each round; "
            "check the claimed multiplier.",
            p_long,
            withholds=Withheld.NOTHING,
        )


def largest_noise(norm: float, dim: int) -> float:
    """Return the largest noise multiplier that leaves so short a sum with more than a test's probability."""
    return norm / math.sqrt(float(special.chdtri(dim, 1.0 - EACH_LEVEL)))


# The numbers of scores.


def _coin(facts: _Facts) -> Iterator[MisuseWarning]:
    """Warn of numbers of scores that fair coins do not give."""
    fewer, both = min(facts.count, facts.null_count), facts.count + facts.null_count
    if facts.inclusion != "coin" or facts.unobserved is None:
        return
    p_value = min(1.0, 2.0 * float(special.bdtr(fewer, both, 0.5)))
    if p_value < EACH_LEVEL:
        yield MisuseWarning(
            "coin",
            f"{facts.count:,} observed and {facts.null_count:,} unobserved scores are not what fair coins decided.",
            "Bounds that rest on coins are labelled heuristic. Say that inclusion is fixed, unless each canary's was "
            "decided by a fair coin of its own.",
            p_value,
            withholds=Withheld.NOTHING,
        )


def _large_delta(facts: _Facts, delta: float) -> Iterator[MisuseWarning]:
    """Warn of a δ that lets a mechanism publish a canary: one of k at random is (0, 1/k)-private."""
    if delta > 1.0 / facts.count:
        yield MisuseWarning(
            "large-delta",
            f"δ = {delta!r} is more than 1/{facts.count:,}: to publish one of these canaries at random has ε = 0.",
            "Take a δ far below one in the number of people.",
            None,
            withholds=Withheld.NOTHING,
        )


def _too_few(facts: _Facts, delta: float, confidence: float) -> Iterator[MisuseWarning]:
    """Warn of too few scores to distinguish the claimed ε, or ε = 3 if that is more, from 0."""
    # At δ = 0 no Gaussian has ε = 3.
    if not delta:
        return
    least = 1.0 / float(gaussian_mechanism.noise_multiplier(EPSILON, delta))
    signal = least if facts.noise_multiplier is None else max(least, 1.0 / facts.noise_multiplier)
    if _reach(facts.count, facts.null_count, confidence) <= signal:
        return
    enough = 2
    while _reach(enough, enough if facts.null_count else 0, confidence) > signal:
        enough += max(1, enough // 50)
    both = " of either kind" if facts.null_count else ""
    yield MisuseWarning(
        "too-few",
        f"There are too few scores for {100.0 * confidence:.10g}% confidence: even ε = 3 could not be told from 0.",
        f"Take at least {enough:,} scores{both}, or a lower confidence.",
        None,
        withholds=Withheld.NOTHING,
    )


def _reach(count: int, null_count: int, confidence: float) -> float:
    """Return the excess over the null's mean, in its deviations, at which a mean is significantly above it."""
    freedom = min(count, null_count or count) - 1
    unobserved = 1.0 / null_count if null_count else 0.0
    return -float(special.stdtrit(freedom, 1.0 - confidence)) * math.sqrt(1.0 / (count - 1) + unobserved)


def visible_norm(error: float, null_count: int = 0) -> float:
    """Return the error of a norm with this standard error that is noticed, by the trace in a release."""
    return (float(special.ndtri(POWER)) + critical_trace(TRACE_LEVEL, null_count)) * error


def critical_trace(level: float, null_count: int) -> float:
    """Return the trace in standard errors whose p-value is a level, as of ``trace_p_value``."""
    below = 0.5 * level
    return -float(special.stdtrit(null_count, below) if null_count else special.ndtri(below))


def visible_trace(count: int) -> float:
    """Return the error of a trace that is noticed, in the null's deviations."""
    return float(special.ndtri(POWER) - special.ndtri(0.5 * TRACE_LEVEL)) / math.sqrt(count)
