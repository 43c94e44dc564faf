"""A second opinion on another tool's audit: what bounds of known coverage give from the same scores or counts.

A published ε can be all of its cap. Or it comes of a choice on the same scores: of the threshold, of the direction, or
of the number of guesses. Each choice is made here too, to show what it costs. The bounds pay for it.
"""

import json
import math
import textwrap
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from canaryproof.kernels.arrays import Array, Ints
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, checked_path
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.misuse import HIDDEN_COPIES
from canaryproof.verify.audit.answer.result import AuditRow
from canaryproof.verify.audit.answer.run_audit import Audit, audit
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu
from canaryproof.verify.audit.bounds.guesses import count_wrong, pooled_order
from canaryproof.verify.audit.bounds.lower_bound import (
    GAUSSIAN_CURVE,
    BoundKind,
    Coverage,
    Inclusion,
    ScoreSample,
    prepare,
)
from canaryproof.verify.audit.bounds.one_run import FAIR_COINS, gaussian_bound, p_value, steinke_bound
from canaryproof.verify.audit.bounds.thresholds import alarms, misses
from canaryproof.verify.audit.canaries.score_files import ONE_KIND, UNASKED, read_any_scores, scores_of
from canaryproof.verify.audit.canaries.scores import Scores
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.other_results import GuessCount, OtherResult, of_frame
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.markup.digits import number, percent, round_down
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 80
# A reported ε this close to a cap, relatively, is the cap.
_CLOSE = 0.005
# Audits of a mechanism that leaks nothing, and the most scores of all of them together.
_AUDITS, _MOST_SCORES = 400, 4_000_000
# Numbers of guesses that are tried, as published scripts do, have this ratio.
_RATIO = 1.1
_REPORTED = NumberRange("be a number from 0 to 10000", 0.0, 1e4)


@set_module("canaryproof.typing")
class Opinion(StrEnum):
    """The opinion on a reported ε; the first that applies."""

    AT_ITS_CAP = "at its cap"  # it says how many canaries there were
    SUPPORTED = "supported"  # a bound that is not heuristic, and needs no Gaussian curve, is as large
    CONDITIONAL = "supported under a condition"  # a bound with one more condition is as large
    IMPOSSIBLE = "impossible"  # none from so many canaries can be as large where neither curve nor null is known
    UNSUPPORTED = "not supported"  # none is as large
    NOT_JUDGED = "not judged"  # no ε is reported, or what would decide is missing


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class ReviewedBound:
    """A bound from the given scores or counts.

    Attributes
    ----------
    name
        Its name.
    epsilon
        Its value, rounded down when printed.
    cap
        Its value if the scores separated members from others perfectly.
    basis
        What is known of its coverage, and what it needs.
    condition
        What it needs that cannot be seen here and that others do not need; empty for a bound that stands alone.
    """

    name: str
    epsilon: float
    cap: float
    basis: str
    condition: str = ""


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Choice:
    """A choice that can be made after looking at the scores, and what it costs.

    Attributes
    ----------
    name
        What is chosen.
    epsilon
        Lower limit of ε that the choice gives on these scores if nothing pays for it.
    false_share
        Share of audits of a mechanism that leaks nothing in which it gives ε > 0; None if it is not computed.
    """

    name: str
    epsilon: float
    false_share: float | None


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Review:
    """A second opinion on an audit; ``print`` shows it.

    Attributes
    ----------
    form
        What was given.
    canaries
        Numbers of canaries, in words.
    opinion
        The opinion on the reported ε.
    reported
        Reported ε; None if there is none.
    delta, confidence
        δ and confidence of all bounds.
    bounds
        Bounds, the one that decides first.
    caps
        The largest ε that so many canaries can give, by method.
    choices
        Choices that can be made after looking at the scores.
    unknown
        What cannot be seen from what is given.
    withheld
        Why nothing is judged: what looks wrong with the scores, as ``audit`` says it; empty if nothing does.
    others
        Arguments that differ from the source, what else looks odd with the scores, and the opinions at its other δ.
    """

    form: str
    canaries: str
    opinion: Opinion
    reported: float | None
    delta: float
    confidence: float
    bounds: tuple[ReviewedBound, ...]
    caps: dict[str, float]
    choices: tuple[Choice, ...]
    unknown: tuple[str, ...]
    withheld: str = ""
    others: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as they are in JSON, which has no infinity: an infinite number is None."""
        document = asdict(self)
        document["bounds"] = [
            {name: None if value == math.inf else value for name, value in row.items()} for row in document["bounds"]
        ]
        return document | {name: list(document[name]) for name in ("choices", "unknown", "others")}

    def to_json(self) -> str:
        """Return all fields as one JSON document."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    @property
    def answer(self) -> str:
        """The opinion in one or two sentences."""
        return _answer(self)

    def __str__(self) -> str:
        blocks = [("Reviewed", f"{self.form}: {self.canaries}, at δ = {self.delta:g}")]
        blocks += [("Also", other) for other in self.others]
        blocks += [("Bound", _bound_line(bound, self.confidence)) for bound in self.bounds]
        caps = ", ".join(f"{round_down(cap)} ({name})" for name, cap in self.caps.items() if math.isfinite(cap))
        blocks += [("Caps", f"so many records give at most {caps}")] if caps else []
        blocks += [("Choice", _choice_line(choice, self.confidence)) for choice in self.choices]
        blocks += [("Unknown", line) for line in self.unknown]
        lines = textwrap.wrap(self.answer, WIDTH, break_on_hyphens=False)
        label_before = ""
        for label, text in blocks:
            lines += [""] * (not label_before) + _block("" if label == label_before else label, text)
            label_before = label
        return "\n".join(lines)


@set_module("canaryproof")
def review(
    source: "str | Path | pd.DataFrame",
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    confidence: float = 0.95,
    inclusion: str = "fixed",
    tried: int | None = None,
    score: str | None = None,
    member: str | None = None,
    id_column: str | None = None,
    kind: str | None = None,
    unobserved: str | Path | None = None,
) -> Review:
    """Give a second opinion on another tool's audit.

    Parameters
    ----------
    source
        A file of scores in any form that ``canaryproof audit`` reads, or a pandas DataFrame. It has a column of scores
        and one of labels, or a column for each kind of scores, or counts of a confusion matrix, or false and true
        positive rates. Or it has counts m, r and v of canaries, guesses and right guesses. memaudit's report and the
        sizes and ε of PrivacyGuard's ``AnalysisNodeOutput`` are read too.
    delta, epsilon
        δ, and the reported ε; by default those of the source. Where its lines have several δ, each ε is judged at its
        own, and the opinion is that on the smallest δ at which it is not supported.
    confidence
        1 − α.
    inclusion
        ``fixed``; ``coin`` if a fair coin of its own decided on each canary; ``independent`` if each score is of a
        training of its own.
    tried
        Numbers of guesses that were tried on the same scores; or scores that were tried on the same records, as those
        of several attacks, directions, seeds or epochs. It is 1 if the one that decides was declared before. Bounds pay
        for the choice, each by its share of α.
    score, member
        Names of the columns of scores and labels; by default the known ones.
    id_column
        Name of the column that says which canary a line is about, if one has several lines. It has one score then,
        their mean: rows of one canary are no new canaries.
    kind
        ``cosine`` or ``any``, as of ``Scores``. By default cosines under the names ``observed`` and ``unobserved``, and
        scores of any kind under all others.
    unobserved
        File with the scores of canaries that did not take part, if they are in one of their own.

    Returns
    -------
    The opinion.

    Raises
    ------
    InputError
        If a file cannot be read or breaks a rule.
    ValueError
        If an argument or a DataFrame breaks a rule, or no δ is given.

    Examples
    --------
    >>> import pandas as pd
    >>> import canaryproof as cp
    >>> counts = pd.DataFrame({"m": [1000], "r": [100], "v": [100]})
    >>> str(cp.review(counts, delta=1e-5, epsilon=3.49, tried=1).opinion)
    'at its cap'
    """
    columns = {"score": score, "member": member, "id_column": id_column}
    for name, column in columns.items():
        if column is not None:
            check_type(f"{name}:", column, str, "the name of a column")
    rules.CONFIDENCE.number("confidence", confidence)
    if tried is not None:
        tried = int(rules.TRIED.number("tried", tried))
    chosen = Inclusion(rules.choice("inclusion", inclusion, [each.value for each in Inclusion]))
    expected = None if kind is None else ScoreKind(rules.choice("kind", kind, ScoreKind))
    fields = UNASKED | {"kind": expected, "inclusion": str(chosen)}
    del fields["dim"]
    if isinstance(source, str | Path):
        second = None if unobserved is None else Path(unobserved)
        scores, result = read_any_scores(checked_path("source", source), fields, columns, second)
    elif hasattr(source, "columns"):
        result = of_frame(source, score, member, id_column, expected)
        scores = scores_of(result, fields)
    else:
        raise ValueError(f"source: must be a file's path or a pandas DataFrame, not {type(source).__name__}")
    if scores is not None and scores.unobserved is None:
        raise InputError(f"{source}: {ONE_KIND}")
    given = {"delta": delta, "epsilon": epsilon}
    differing = tuple(
        f"{name} = {value:g} was given, and the source has {', '.join(f'{each:g}' for each in own)}"
        for name, value in given.items()
        if isinstance(value, int | float) and (own := _of_source(result, name)) and value not in own
    )
    reviews = [
        _review_at(result, scores, at, reported, confidence, tried)
        for at, reported in _questions(result, delta, epsilon)
    ]
    first = min(reviews, key=lambda each: (each.opinion is Opinion.SUPPORTED, each.delta))
    return replace(first, others=(*differing, *first.others, *(_answer(each) for each in reviews if each is not first)))


def _of_source(result: OtherResult, name: str) -> list[float]:
    """Return the values of ε or δ that a source has."""
    values = [getattr(each, name) for each in result.reported]
    return list(dict.fromkeys(value for value in values if value is not None))


def _questions(result: OtherResult, delta: float | None, epsilon: float | None) -> list[tuple[float, float | None]]:
    """Return each δ at which something is to be judged, with the largest ε that is reported there."""
    deltas = _of_source(result, "delta")
    if delta is None and not deltas:
        raise ValueError("delta: must be given, as the source has none and ε means nothing without it")
    questions: list[tuple[float, float | None]] = []
    for value in deltas if delta is None else [delta]:
        at = rules.DELTA_OR_ZERO.number("delta", value)
        # A line without a δ is of the one that there is.
        own = [each for each in result.reported if each.delta in (None, at)] or result.reported
        reported = max((each.epsilon for each in own if each.epsilon is not None), default=None)
        reported = reported if epsilon is None else epsilon
        questions.append((at, None if reported is None else _REPORTED.number("epsilon", reported)))
    return questions


def _review_at(
    result: OtherResult,
    scores: Scores | None,
    at: float,
    reported: float | None,
    confidence: float,
    tried: int | None,
) -> Review:
    """Review a result at one δ."""
    level, withheld, warnings = 1.0 - confidence, "", tuple[str, ...]()
    if scores is not None:
        audited = audit(scores, at, confidence, tried=tried or 1)
        parts = _of_audit(audited, level, reported, tried)
        warnings = tuple(f"{warning.message} {warning.what_to_do}" for warning in audited.warnings)
        # The first is the one that withholds most.
        withheld, warnings = (warnings[0], warnings[1:]) if audited.withheld else ("", warnings)
    elif result.counts:
        parts = _of_counts(result.counts, at, level, tried)
    else:
        parts = _of_sizes(result, at, level)
    bounds, caps, choices, unknown = parts
    opinion = Opinion.NOT_JUDGED if withheld else _opinion(reported, bounds, caps)
    canaries = _canaries(result)
    return Review(
        result.form,
        canaries,
        opinion,
        reported,
        at,
        confidence,
        bounds,
        caps,
        choices,
        (*result.remarks, *unknown),
        withheld,
        warnings,
    )


_Parts = tuple[tuple[ReviewedBound, ...], dict[str, float], tuple[Choice, ...], tuple[str, ...]]
_COIN = "whether a fair coin of its own decided on each inclusion"
_ONE_KIND = (
    "whether members and others differ in membership alone: another source or date of the data makes a difference of "
    "scores that is no leak"
)
_SCORES_TRIED = (
    "how many scores, as of attacks, directions, seeds or epochs, were tried on these records; 1 if this one was "
    "declared (tried)"
)
_OTHER_ATTACKS = "what better scores would see: a low bound excludes no other attack"


def _canaries(result: OtherResult) -> str:
    if result.sizes is not None:
        return f"{result.sizes[0]:,} members against {result.sizes[1]:,} others"
    row = result.counts[0]
    if len(result.counts) == 1:
        return f"{row.right:,} right of {row.guesses:,} guesses on {row.canaries:,} canaries"
    return f"{len(result.counts):,} numbers of guesses on {row.canaries:,} canaries"


def _opinion(reported: float | None, bounds: tuple[ReviewedBound, ...], caps: dict[str, float]) -> Opinion:
    if reported is None:
        return Opinion.NOT_JUDGED
    reached = [bound for bound in bounds if reported <= bound.epsilon * (1.0 + _CLOSE)]
    supported = bool(reached) and reached[0] is bounds[0] and not reached[0].condition
    # A bound below its own cap that is as large says more than the number of canaries.
    if _near(reported, caps) is not None and not (supported and bounds[0].epsilon < bounds[0].cap * (1.0 - _CLOSE)):
        return Opinion.AT_ITS_CAP
    if supported:
        return Opinion.SUPPORTED
    if reached:
        return Opinion.CONDITIONAL
    if reported > max(caps.values()):
        return Opinion.IMPOSSIBLE
    return Opinion.UNSUPPORTED if bounds else Opinion.NOT_JUDGED


def _near(reported: float, caps: dict[str, float]) -> str | None:
    """Return the name of the cap that a reported ε is, if it is one."""
    return next((name for name, cap in caps.items() if cap > 0.0 and abs(reported - cap) <= _CLOSE * cap), None)


# Scores.


def _of_audit(audited: Audit, alpha: float, reported: float | None, tried: int | None) -> _Parts:
    """Lay out the bounds of an audit, and what else the same scores could have been made to say.

    The audit has the share of α that is left to one of the scores that were tried. A reported ε may be a cap at all of
    it.
    """
    if audited.withheld:
        return (), {}, (), (_ONE_KIND, _OTHER_ATTACKS)
    scores, delta = audited.scores, audited.delta
    unknown = [_ONE_KIND, "whether the threshold and the direction were chosen on other scores", _OTHER_ATTACKS]
    if tried is None:
        unknown.insert(1, _SCORES_TRIED)
    sample = prepare(scores.observed, scores.unobserved, inclusion=scores.inclusion)
    caps, rows = _caps(sample, delta, alpha), _bound_rows(audited)
    if reported is not None and reported > max(caps.values()):
        # Bounds above all caps need a Gaussian trade-off curve, and this one needs no coins.
        names = [*(row.name for row in rows), "gaussian-dp"]
        named = list(dict.fromkeys(names))
        rows = _bound_rows(audit(scores, delta, audited.confidence, bounds=named, tried=tried or 1))
    bounds = sorted((_review_bound(row, tried or 1) for row in rows), key=lambda bound: bool(bound.condition))
    if audited.can_hide_copies:
        unknown.insert(0, HIDDEN_COPIES)
    if scores.inclusion is not Inclusion.COIN:
        unknown.insert(0, f"{_COIN}: one-run is proven if so, which inclusion=coin says")
    return tuple(bounds), caps, _choices(sample, delta, alpha), tuple(unknown)


def _bound_rows(audited: Audit) -> list[AuditRow]:
    return [row for row in audited.bounds if row.kind == BoundKind.LOWER_BOUND]


def _review_bound(row: AuditRow, tried: int) -> ReviewedBound:
    condition = GAUSSIAN_CURVE if GAUSSIAN_CURVE in row.assumes else ""
    if row.coverage == Coverage.HEURISTIC:
        condition = row.assumes
    basis = f"{row.basis}; needs {row.assumes.replace(', ', ' and ')}"
    if tried > 1:
        basis += f", and pays for one of {tried:,} scores"
    return ReviewedBound(row.name, row.low, row.cap, basis, condition)


# The cap of one-run where no canary is left out, of either kind.
_ALL_GUESSED = "all records guessed"


def _caps(sample: ScoreSample, delta: float, alpha: float) -> dict[str, float]:
    """Return what perfect separation gives, by methods that assume nothing of the trade-off curve."""
    total = sample.count + sample.null_count
    names = {"fixed-sequence": "fixed-sequence", "Clopper–Pearson": "jagielski", "two-sided Clopper–Pearson": "canife"}
    caps = {
        shown: float(METHODS[name].values(sample.perfect_separation, delta, alpha)[0][0])
        for shown, name in names.items()
    }
    return caps | {_ALL_GUESSED: steinke_bound(total, total, total, delta, alpha)}


def _choices(sample: ScoreSample, delta: float, alpha: float) -> tuple[Choice, ...]:
    shares = _false_shares(sample.count, sample.null_count, delta, alpha)
    turned = _negate(sample)
    threshold, other = (float(_best_threshold(each, delta, alpha)[0]) for each in (sample, turned))
    values = {
        "the threshold": threshold,
        "the threshold and the direction": max(threshold, other),
        "the number of guesses": _best_number(sample, delta, alpha),
    }
    return tuple(Choice(name, value, shares.get(name)) for name, value in values.items())


def _negate(sample: ScoreSample) -> ScoreSample:
    assert sample.unobserved is not None
    return prepare(-sample.observed, -sample.unobserved, inclusion=sample.inclusion)


def _best_threshold(sample: ScoreSample, delta: float, alpha: float) -> Array:
    """Return the largest value at a threshold; equal scores are on one side of it, which ``jagielski`` separates."""
    assert sample.unobserved is not None
    if not np.intersect1d(sample.observed, sample.unobserved).size:
        return METHODS["jagielski"].values(sample, delta, alpha)[0]
    (observed,), (unobserved,) = sample.observed, sample.unobserved
    thresholds = np.unique(observed)
    hits = sample.count - np.searchsorted(observed, thresholds)
    false = sample.null_count - np.searchsorted(unobserved, thresholds)
    miss, alarm = misses(sample.count, delta, alpha), alarms(sample.null_count, delta, alpha)
    values = np.maximum(miss.log_rest[hits] - alarm.log_rate[false], alarm.log_rest[false] - miss.log_rate[hits])
    best: Array = np.maximum(values.max(keepdims=True), 0.0)
    return best


def _ways(total: int) -> list[tuple[int, int]]:
    """Return numbers of high and low guesses: as many of both, high ones alone, and low ones alone."""
    numbers = np.unique(np.rint(_RATIO ** np.arange(math.log(total) / math.log(_RATIO) + 1.0))).astype(int)
    numbers = np.minimum(numbers, total)
    both = [(n // 2, n // 2) for n in numbers.tolist() if n >= 2]
    return list(dict.fromkeys([*both, *((n, 0) for n in numbers.tolist()), *((0, n) for n in numbers.tolist())]))


def _best_number(sample: ScoreSample, delta: float, alpha: float) -> float:
    """Return the largest bound over numbers of guesses, each at full α."""
    assert sample.unobserved is not None
    total, before = sample.count + sample.null_count, pooled_order(sample.observed, sample.unobserved)[1]
    bounds = []
    for way in _ways(total):
        right = sum(way) - int(count_wrong(before, sample.null_count, way)[0])
        bounds.append(steinke_bound(total, sum(way), right, delta, alpha))
    return max(bounds)


@lru_cache(maxsize=16)
def _false_shares(count: int, null_count: int, delta: float, alpha: float) -> dict[str, float]:
    """Return the share of audits without any leak in which each choice gives ε > 0; none for very many scores."""
    total = count + null_count
    if _AUDITS * total > _MOST_SCORES:
        return {}
    scores = np.random.default_rng(0).normal(size=(_AUDITS, total))
    sample = prepare(scores[:, :count], scores[:, count:])
    threshold = _best_threshold(sample, delta, alpha) > 0.0
    direction = threshold | (_best_threshold(_negate(sample), delta, alpha) > 0.0)
    assert sample.unobserved is not None
    before: Ints = pooled_order(sample.observed, sample.unobserved)[1]
    guessed = np.zeros(_AUDITS, dtype=np.bool_)
    for way in _ways(total):
        guessed |= sum(way) - count_wrong(before, null_count, way) >= _least_right(total, sum(way), delta, alpha)
    named = {"the threshold": threshold, "the threshold and the direction": direction, "the number of guesses": guessed}
    return {name: float(each.mean()) for name, each in named.items()}


def _least_right(total: int, guesses: int, delta: float, alpha: float) -> int:
    """Return the least number of right guesses that rejects ε = 0, one more than all if none does."""
    low, high = 0, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if p_value(total, guesses, middle, 0.0, delta) <= alpha else (middle, high)
    return high


# Counts of guesses.


def _of_counts(counts: tuple[GuessCount, ...], delta: float, alpha: float, tried: int | None) -> _Parts:
    numbers = tried or (len(counts) if len(counts) > 1 else None)
    most = max(row.canaries for row in counts)
    share = 1.0 / (numbers or most)
    coins = "proven; needs a fair coin for each canary"
    basis = f"{coins}, and pays for {'any' if numbers is None else 'one of'} {numbers or most:,} numbers of guesses"
    if numbers == 1:
        basis = f"{coins}, and a number of guesses that was declared"
    bounds = [ReviewedBound("one-run", *_largest(counts, delta, share * alpha), basis)]
    if numbers is None:
        condition = "the number of guesses was declared before the scores were seen"
        bounds.append(ReviewedBound("one-run, declared", *_largest(counts, delta, alpha), coins, condition))
    curve = f"{GAUSSIAN_CURVE}, a declared number of guesses" if numbers is None else GAUSSIAN_CURVE
    level = alpha * (share if numbers else 1.0)
    bounds.append(ReviewedBound("one-run-gaussian", *_largest_gaussian(counts, delta, level), coins, curve))
    caps = {"all guesses right": bounds[0].cap, _ALL_GUESSED: steinke_bound(most, most, most, delta, alpha)}
    if numbers is None:
        caps["all guesses right, declared"] = bounds[1].cap
    choices = (Choice("the number of guesses", _largest(counts, delta, alpha)[0], None),) if numbers != 1 else ()
    unknown = [_COIN, "which canaries were guessed: other bounds need the scores", _OTHER_ATTACKS]
    if numbers is None:
        unknown.insert(0, "how many numbers of guesses were tried on the same scores; 1 if it was declared (tried)")
    return tuple(bounds), caps, choices, tuple(unknown)


def _largest(counts: tuple[GuessCount, ...], delta: float, alpha: float) -> tuple[float, float]:
    """Return the largest bound over the counts, and what it is if all guesses are right."""
    values = [steinke_bound(row.canaries, row.guesses, row.right, delta, alpha) for row in counts]
    return max(values), max(steinke_bound(row.canaries, row.guesses, row.guesses, delta, alpha) for row in counts)


def _largest_gaussian(counts: tuple[GuessCount, ...], delta: float, alpha: float) -> tuple[float, float]:
    measured, perfect = (
        max(gaussian_bound(row.canaries, row.guesses, right, alpha) for row, right in pairs)
        for pairs in ([(row, row.right) for row in counts], [(row, row.guesses) for row in counts])
    )
    values = epsilon_of_mu(np.array([measured, perfect]), delta)
    return float(values[0]), float(values[1])


# Sizes alone.


def _of_sizes(result: OtherResult, delta: float, alpha: float) -> _Parts:
    assert result.sizes is not None
    sample = prepare(np.arange(result.sizes[0]) + 0.0, -1.0 - np.arange(result.sizes[1]))
    # PrivacyGuard cuts its estimates at the logarithm of the number of scores that it resamples.
    caps = _caps(sample, delta, alpha) | {"PrivacyGuard's log of the number of scores": math.log(min(result.sizes))}
    unknown = "the scores, without which no bound can be computed: review them with their labels"
    return (), caps, (), (unknown, _ONE_KIND, _OTHER_ATTACKS)


# Text.

# Conditions of bounds as the answer says them.
_CLAUSES = {
    "independent scores": "scores do not depend on each other",
    FAIR_COINS: "a fair coin of its own decided on each inclusion",
    GAUSSIAN_CURVE: "the trade-off curve is Gaussian",
    "a declared number of guesses": "the number of guesses was declared before the scores were seen",
}


def _answer(reviewed: Review) -> str:
    at, reported = f"at δ = {reviewed.delta:g}", reviewed.reported
    headline = next((bound for bound in reviewed.bounds if not bound.condition), None)
    if reviewed.withheld:
        return f"Nothing is judged. {reviewed.withheld}"
    valid = "" if headline is None else f"The {_coverage(headline)} bound is {round_down(headline.epsilon)} {at}."
    if headline is None and reviewed.bounds:
        valid = f"No bound is proven {at}: nobody knows how the scores of one model depend on each other."
    if reported is None:
        return (
            f"{valid} No ε is reported that could be judged." if valid else "No ε is reported, and no scores are given."
        )
    subject = f"The reported ε = {number(reported) if reported >= 1000.0 else f'{reported:.4g}'}"
    match reviewed.opinion:
        case Opinion.AT_ITS_CAP:
            text = (
                f"{subject} is its cap ({_near(reported, reviewed.caps)}): it says how many records there were, and "
                f"would be the same for any larger leak."
            )
        case Opinion.SUPPORTED:
            assert headline is not None
            return (
                f"{subject} is supported: the {_coverage(headline)} bound is {round_down(headline.epsilon)} with "
                f"{percent(reviewed.confidence)} confidence {at}."
            )
        case Opinion.CONDITIONAL:
            bound = next(each for each in reviewed.bounds if reported <= each.epsilon * (1.0 + _CLOSE))
            condition = bound.condition or "the bound was chosen before the scores were seen"
            clauses = " and ".join(_CLAUSES.get(part, part) for part in condition.split(", "))
            text = f"{subject} is supported only if {clauses} ({bound.name})."
        case Opinion.IMPOSSIBLE:
            text = (
                f"{subject} is impossible as a lower bound with {percent(reviewed.confidence)} confidence, unless the "
                "trade-off curve is Gaussian or the law of scores without a leak is known: so many records give at "
                f"most {round_down(max(reviewed.caps.values()))} otherwise, whatever leaks."
            )
        case Opinion.UNSUPPORTED:
            choice = next((each for each in reviewed.choices if reported <= each.epsilon * (1.0 + _CLOSE)), None)
            why = (
                "no choice made on the scores explains it either."
                if choice is None
                else f"choosing {choice.name} on the same scores reaches it."
            )
            text = f"{subject} is not supported: {why}"
        case _:
            text = f"{subject} cannot be judged from sizes alone."
    return f"{text} {valid}".strip()


def _coverage(bound: ReviewedBound) -> str:
    return bound.basis.partition(";")[0]


def _bound_line(bound: ReviewedBound, confidence: float) -> str:
    condition = bound.condition.replace(", ", " and ")
    also = f"; and {condition}" if condition not in bound.basis else ""
    return (
        f"{bound.name} ≥ {round_down(bound.epsilon)} at {percent(confidence)}, cap {round_down(bound.cap)}, "
        f"{bound.basis}{also}"
    )


def _choice_line(choice: Choice, confidence: float) -> str:
    line = f"{choice.name} chosen on these scores would print ε ≥ {round_down(choice.epsilon)}"
    if choice.false_share is None:
        return line
    return (
        f"{line}; without any leak it prints ε > 0 in {choice.false_share:.0%} of audits, where "
        f"{percent(1.0 - confidence)} may"
    )


def _block(label: str, text: str) -> list[str]:
    # A name of a bound is never broken.
    return textwrap.wrap(text, WIDTH, initial_indent=f"{label:<10}", subsequent_indent=" " * 12, break_on_hyphens=False)
