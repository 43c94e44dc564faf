"""Kinds of input, and how each is audited: scores alone, a release, scores with a record of rounds.

Each kind says what mechanism its options state, what is measured of it, and which estimates and bounds there are;
``judgement`` says which questions that answers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels import null_cosine
from canaryproof.kernels.refusals import short_repr
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours, as_claim, gaussian, poisson
from canaryproof.verify.audit.answer.misuse import MisuseWarning, is_carried_over, misuse, products_with_rest
from canaryproof.verify.audit.answer.recorded import apply_noise, apply_record, recorded_mechanism, sampling_test
from canaryproof.verify.audit.answer.result import (
    COMPOSED,
    COMPOSED_BOUND,
    EQUAL_ROUNDS,
    ESTIMATE,
    FEWEST_DIMENSIONS,
    PARTICIPATIONS,
    AuditResult,
    AuditRow,
    EstimateRow,
    MechanismTest,
    Request,
)
from canaryproof.verify.audit.answer.shape import GoodnessOfFit, ShapeTest, normality, shape
from canaryproof.verify.audit.bounds.catalogue import METHODS, lower_bounds
from canaryproof.verify.audit.bounds.lower_bound import (
    GAUSSIAN_CURVE,
    BoundKind,
    Coverage,
    Inclusion,
    LowerBound,
    cosine_null,
    coverage_of_one_model,
    prepare,
)
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, from_dimension, from_release, from_two_groups
from canaryproof.verify.audit.files.reading import ScoreKind

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.recorded import SamplingTest
    from canaryproof.verify.audit.answer.release_sums import ReleaseSums
    from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces

_SMALLEST_RATIO, _LARGEST_RATIO = 1e-6, 1e7


@dataclass(frozen=True)
class ScoresInput:
    """Scores without a record, and the call that asks for their audit."""

    scores: Scores
    delta: float
    confidence: float
    request: Request

    # Whether the noise of a claimed mechanism can be held against what is measured.
    shows_noise: ClassVar[bool] = False

    @property
    def covering(self) -> float:
        """Confidence of an interval that, with those of all else that was tried, has the asked confidence."""
        tried = self.request.tried
        return self.confidence if tried == 1 else 1.0 - (1.0 - self.confidence) / tried

    @property
    def release_norm(self) -> float | None:
        """Norm of the released vector in canary norms; None where scores were given."""
        return None

    @property
    def residual_norm(self) -> float | None:
        """That norm without the canaries."""
        return None

    def claim(self) -> Claim | None:
        """Return the mechanism that is claimed; where no claim is given, the one that the options state."""
        request, claimed = self.request, None
        if request.claim is not None and self.delta > 0.0:
            claimed = as_claim(request.claim, self.delta, request.neighbours)
            if math.isinf(claimed.epsilon(self.delta)):
                raise ValueError(f"claim: must have a finite ε at δ = {self.delta:g}, and {claimed} has none")
        _check_mechanism(request, claimed)
        self.noise_multiplier(claimed)
        return self.default_claim() if claimed is None and self.delta > 0.0 else claimed

    def default_claim(self) -> Claim | None:
        """Return what is claimed where no claim is given; with unobserved scores that is nothing."""
        return self.mechanism() if self.scores.unobserved is None else None

    def mechanism(self, neighbours: Neighbours | None = None) -> Claim | None:
        """Return the mechanism that the options state; None where they do not."""
        noise, relation = self.request.noise_multiplier, neighbours or self.request.neighbours or "add-or-remove"
        return None if noise is None else gaussian(noise, neighbours=relation)

    def noise_multiplier(self, claimed: Claim | None) -> float | None:
        """Return the noise multiplier that was given, or else that of the claim, where it can be looked at."""
        noise = self.request.noise_multiplier
        if noise is None:
            return claimed.noise_multiplier if claimed is not None and self.shows_noise else None
        if self.scores.kind is ScoreKind.ANY and not self.shows_noise:
            raise ValueError("noise_multiplier: is for cosines; give the claimed epsilon of other scores as claim")
        return rules.NOISE_MULTIPLIER.number("noise_multiplier", noise)

    def mechanism_test(self, noise_multiplier: float | None) -> MechanismTest | None:  # noqa: ARG002
        """Return the noise that was measured; scores alone have none."""
        return None

    def moments(self) -> tuple["ScoresInput", Moments]:
        """Return the scores' moments, with the scores; only their order where no run produces such moments."""
        try:
            return self, _moments(self.scores.observed, self.scores.unobserved, self.scores.dim)
        except ValueError:
            if self.scores.kind is not ScoreKind.ANY:
                raise
        # The order of other scores alone means something.
        ranks = self.scores.by_rank()
        return replace(self, scores=ranks), _moments(ranks.observed, ranks.unobserved, ranks.dim)

    def warnings(self, noise_multiplier: float | None) -> tuple[MisuseWarning, ...]:
        """Return what is wrong with the input."""
        scores = self.scores
        return misuse(
            scores.observed,
            scores.unobserved,
            scores.dim,
            # Where canaries enter with either sign, no law of a cosine is known.
            kind=ScoreKind.ANY if scores.neighbours == "replace" else scores.kind,
            inclusion=scores.inclusion,
            delta=self.delta,
            confidence=self.confidence,
            inserted=scores.inserted,
            is_sum=not self.request.is_difference,
            **self.facts(noise_multiplier),
        )

    def facts(self, noise_multiplier: float | None) -> dict[str, Any]:
        """Return what else is known of the input, by the names of ``misuse``."""
        return {"noise_multiplier": noise_multiplier}

    def shape(self) -> ShapeTest:
        """Test the shape of the scores."""
        scores = self.scores
        scale = 1.0 / math.sqrt(scores.dim) if scores.kind is ScoreKind.COSINE and scores.dim is not None else None
        return shape(scores.observed, scores.unobserved, scale)

    def sampling(self, result: AuditResult) -> tuple["SamplingTest | None", Claim | None]:
        """Return the test of how rounds were drawn, and the mechanism in the rounds that were recorded."""
        # All noise in a released vector is no less than that of a round.
        return None, apply_noise(result.configured, result.noise_multiplier)

    def estimates(self, result: AuditResult, moments: Moments) -> tuple[EstimateRow, ...]:
        """Return all estimates of ε."""
        scores = self.scores
        if result.has_equal_scores or (result.is_not_normal and not self.request.force):
            return ()
        if scores.inserted is not None and scores.dim is not None:
            moments = from_release(_slopes(scores.observed, result.residual_norm), scores.dim, scores.inserted)
        # Scores of a release without any noise have no finite moments.
        if not math.isfinite(moments.distance) or not math.isfinite(moments.ratio):
            return ()
        return _estimates(moments, self.delta, self.covering)

    def bounds(self, result: AuditResult, inclusion: Inclusion) -> tuple[AuditRow, ...]:
        """Return the lower bounds of ε that were asked for, or else a few that serve the scores."""
        return _bounds(self.scores, inclusion, self.delta, 1.0 - result.level, self.request.bounds)


@dataclass(frozen=True)
class _ReleaseInput(ScoresInput):
    """A released vector: the cosines of its canaries, and the sums that they were computed from."""

    sums: "ReleaseSums"
    shows_noise: ClassVar[bool] = True

    @property
    def release_norm(self) -> float:
        return self.sums.norm

    @property
    def residual_norm(self) -> float | None:
        return self.sums.residual_norm(len(self.scores.observed))

    def default_claim(self) -> Claim | None:
        return self.mechanism()

    def moments(self) -> tuple[ScoresInput, Moments]:
        try:
            return super().moments()
        except ValueError:
            # Without noise there are none: an observed cosine is 1, or an unobserved one 0, but for rounding.
            return self, _without_moments(self.scores.observed, self.scores.unobserved)

    def mechanism_test(self, noise_multiplier: float | None) -> MechanismTest | None:
        if self.delta == 0.0 or noise_multiplier is None:
            return None
        traces = release_traces(*self.sums.trace(len(self.scores.observed)), self.sums.dim)
        return MechanismTest(traces, traces.noise_multiplier(self.covering), noise_multiplier, traces)

    def facts(self, noise_multiplier: float | None) -> dict[str, Any]:
        sums = self.sums
        return {
            "noise_multiplier": noise_multiplier,
            "release_norm": self.release_norm,
            "residual_norm": self.residual_norm,
            "crowd": sums.crowd(len(self.scores.observed)),
            "zeros": sums.zeros,
            # In units of the canary norm, as the norm is.
            "smallest": sums.smallest / sums.canary_norm,
            "near": sums.near,
            "release_dim": sums.dim,
        }

    def shape(self) -> ShapeTest:
        # The shape of a release's cosines is known, as its canaries have one weight.
        return ShapeTest(1.0, "")

    def estimates(self, result: AuditResult, moments: Moments) -> tuple[EstimateRow, ...]:
        rows, norm = super().estimates(result, moments), result.residual_norm
        return (*rows, _norm_estimate(norm, self.sums.dim, self.delta, self.covering)) if rows and norm else rows


@dataclass(frozen=True)
class _RoundsInput(ScoresInput):
    """Scores with the record of a training's rounds, whose noise is measured."""

    shows_noise: ClassVar[bool] = True

    @property
    def record(self) -> RoundsRecord:
        assert self.scores.record is not None
        return self.scores.record

    def claim(self) -> Claim | None:
        claimed = super().claim()
        if claimed is not None:
            _check_attacker(self.record, claimed, self.delta)
        return claimed

    def default_claim(self) -> Claim | None:
        return self.mechanism()

    def mechanism(self, neighbours: Neighbours | None = None) -> Claim | None:
        request, record = self.request, self.record
        relation = neighbours or request.neighbours or "add-or-remove"
        # The noise that a loop was given stands for the option of a claim, and claims nothing by itself.
        noise = request.noise_multiplier or (record.noise_multiplier if request.claim is not None else None)
        if noise is None:
            return None
        rounds, rate = request.rounds or max(record.rounds + record.missing, 1), self.rate
        if rate is not None:
            return poisson(noise, rate=rate, rounds=rounds, neighbours=relation)
        taken = record.participations if request.participations is None else request.participations
        return gaussian(noise, participations=taken, rounds=max(rounds, taken), neighbours=relation)

    @property
    def rate(self) -> float | None:
        """Claimed rate; where options state no sampling, that of the record, unless the attacker knows the rounds."""
        request, record = self.request, self.record
        if request.rate is not None or request.participations is not None or record.score == Score.KNOWN_ROUNDS:
            return request.rate
        return record.rate

    def noise_multiplier(self, claimed: Claim | None) -> float | None:
        if claimed is not None and claimed.event is not None and claimed.noise_multiplier is None:
            # A loop's own multiplier, or one that is given, is not that of the claim.
            if self.request.noise_multiplier is not None:
                raise ValueError("noise_multiplier: must not be given with a claim whose rounds have no common one")
            return None
        noise = super().noise_multiplier(claimed)
        return self.record.noise_multiplier if noise is None and claimed is not None else noise

    def mechanism_test(self, noise_multiplier: float | None) -> MechanismTest | None:
        record, traces = self.record, self.record.traces
        if self.delta == 0.0 or traces is None:
            return None
        # Where later rounds depend on canaries, those that come back measure something else.
        all_traces = traces if is_carried_over(record) else record.all_traces or traces
        measured = all_traces.noise_multiplier(self.covering)
        if all_traces is not traces:
            # A few rounds that depend on them do not show, so that the interval is also that of new canaries alone.
            measured = measured.spanning(traces.noise_multiplier(self.covering))
        return MechanismTest(traces, measured, noise_multiplier, all_traces)

    def facts(self, noise_multiplier: float | None) -> dict[str, Any]:  # noqa: ARG002
        # The noise is that of a round, which the scores do not show.
        return {"record": self.record}

    def shape(self) -> ShapeTest:
        if _has_unequal_rounds(self.record):
            return ShapeTest(0.0, "Canaries took part in unequal numbers of rounds.")
        return super().shape()

    def sampling(self, result: AuditResult) -> tuple["SamplingTest | None", Claim | None]:
        record, level = self.record, result.side_level
        stated = apply_noise(result.configured, result.noise_multiplier)
        test, drawn = sampling_test(result.configured, record, level), apply_record(stated, record)
        # The rounds of a record with a larger rate than claimed are held against that one.
        again = test if drawn == result.configured else sampling_test(drawn, record, level)
        sampled = again is not None and again.is_as_claimed(level, self.request.notice)
        return test, recorded_mechanism(drawn, record, sampled=sampled)

    def estimates(self, result: AuditResult, moments: Moments) -> tuple[EstimateRow, ...]:
        rows, configured = super().estimates(result, moments), result.configured
        if result.mechanism is None or result.has_unequal_noise or result.has_no_common_noise:
            return rows
        composed = _compose(result.mechanism, self.record, result.recorded, self.delta)
        # It comes first where it is for the attacker who has these scores.
        first = self.record.score == _ATTACKERS["known rounds" if configured is None else configured.attacker]
        return (composed, *rows) if first else (*rows, composed)

    def bounds(self, result: AuditResult, inclusion: Inclusion) -> tuple[AuditRow, ...]:
        rows, delta, level = super().bounds(result, inclusion), self.delta, result.level
        if self.request.bounds or delta == 0.0:
            return rows
        # A lower bound for an attacker who knows the rounds is none for the one of a claim that counts on sampling.
        sampled = recorded_mechanism(result.configured, self.record, sampled=True)
        return (
            *_bound_by_participations(self.scores, self.record, result.claimed, delta, level),
            *rows,
            *_composed_bound(result.mechanism, self.record, sampled, delta, level),
        )


def read_input(
    scores: Scores, delta: float, confidence: float, request: Request, sums: "ReleaseSums | None" = None
) -> ScoresInput:
    """Return what is audited by its kind: a release has the sums that its scores were computed from."""
    delta = rules.DELTA_OR_ZERO.number("delta", delta) and rules.DELTA.number("delta", delta)
    confidence = rules.CONFIDENCE.number("confidence", confidence)
    if not isinstance(request.force, bool):
        raise ValueError(f"force: must be True or False, not {short_repr(request.force)}")
    if sums is not None:
        return _ReleaseInput(scores, delta, confidence, request, sums)
    kind = ScoresInput if scores.record is None else _RoundsInput
    return kind(scores, delta, confidence, request)


def _check_mechanism(request: Request, claimed: Claim | None) -> None:
    """Refuse options that state a mechanism in part, twice, or next to a claim that says its own."""
    given = [name for name in ("rate", "rounds", "participations") if getattr(request, name) is not None]
    if not given:
        return
    if request.noise_multiplier is None:
        raise ValueError(f"{given[0]}: needs noise_multiplier")
    if claimed is not None and claimed.statement is None:
        raise ValueError(f"{given[0]}: must not be given with a claim that says its mechanism")
    if request.rate is not None and request.participations is not None:
        raise ValueError("participations: must not be given with rate, at which rounds are drawn")
    if request.rounds is not None and request.rate is None:
        raise ValueError("rounds: needs rate, at which they are drawn")


def release_traces(cosine: float, length: float, dim: int) -> "RoundTraces":
    """Return the trace of all canaries in one release: its cosine with their sum, and the sum's length."""
    # This import loads the law of traces, which an audit of scores does not need.
    from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces

    return RoundTraces(np.array([cosine]), np.array([length]), dim, residual=False, rounds=1)


def _check_attacker(record: RoundsRecord, claim: Claim, delta: float) -> None:
    """Refuse a claim that is not about the attacker who has these scores."""
    if record.score is not Score.KNOWN_ROUNDS or claim.attacker == "unstated":
        return
    taken = record.participations
    if claim.attacker == "sampling":
        instead = ""
        if claim.noise_multiplier is not None and claim.rounds is not None:
            epsilon = claim.with_known_rounds(min(taken, claim.rounds)).epsilon(delta)
            instead = (
                f": claim.with_known_rounds({taken}), whose ε is {epsilon:.4g}, does; or take the score 'likelihood'"
            )
        raise ValueError(
            "claim: counts on rounds that the attacker does not know, and does not hold against scores of known rounds"
            + instead
        )


# The score of the attacker whom a claim holds against.
_ATTACKERS = {"known rounds": Score.KNOWN_ROUNDS, "sampling": Score.LIKELIHOOD, "unstated": Score.KNOWN_ROUNDS}


def epsilon_at(noise_multiplier: float, claim: Claim, delta: float) -> float:
    """Return ε of a claim's rounds with another noise multiplier, ∞ or 0 where that is out of an accounting's range."""
    if not rules.NOISE_MULTIPLIER.low <= noise_multiplier <= rules.NOISE_MULTIPLIER.high:
        return math.inf if noise_multiplier < 1.0 else 0.0
    return claim.with_noise_multiplier(noise_multiplier).epsilon(delta)


def _compose(mechanism: MechanismTest, record: RoundsRecord, claim: Claim | None, delta: float) -> EstimateRow:
    """Compose the measured noise over the recorded rounds, amplified by sampling where that is as claimed."""
    measured, claim = mechanism.measured, _composable(record, claim)
    epsilon = partial(epsilon_at, claim=claim, delta=delta)
    value, low, high = (epsilon(each) for each in (measured.value, measured.high, measured.low))
    error = measured.standard_error
    above = epsilon(max(measured.value - error, 0.0))
    step = above - epsilon(measured.value + error) if max(above, error) < math.inf else math.inf
    fit: tuple[str, tuple[float, ...]] | None = None
    source = mechanism.traces.noise_source
    if claim.participations is not None and 0.0 < value < math.inf:
        distance = math.sqrt(claim.participations) / measured.value * (2.0 if claim.neighbours == "replace" else 1.0)
        fit = "pinned", (delta, distance)
    return EstimateRow(
        name=COMPOSED,
        version=3,
        kind=ESTIMATE,
        epsilon=value,
        low=low,
        high=high,
        coverage=str(Coverage.ASYMPTOTIC),
        cap=math.inf,
        assumes=f"{_gaussian_noise(record)}, as measured, of {source}, taken as recorded (canaryproof)",
        standard_error=0.5 * step,
        fit=fit,
    )


def _composed_bound(
    mechanism: MechanismTest | None, record: RoundsRecord, claim: Claim | None, delta: float, level: float
) -> Iterator[AuditRow]:
    """Yield ε of the upper limit of the measured noise, over the recorded rounds."""
    if mechanism is None:
        return
    claim = _composable(record, claim)
    limit, epsilon = mechanism.traces.largest_noise(level), 0.0
    if limit <= rules.NOISE_MULTIPLIER.high:
        # Below its range an accounting has no value, and the bound is that of the end of the range. What records reach
        # is a lower bound, which the upper one of an accountant is not.
        least = claim.with_noise_multiplier(max(limit, rules.NOISE_MULTIPLIER.low))
        epsilon = least.attained_epsilon(delta)
    assumes = f"{_gaussian_noise(record)}, taken as recorded"
    # A bound proves nothing where the rounds refute its condition.
    coverage = Coverage.HEURISTIC if _is_no_single_gaussian(mechanism) else Coverage.PROVEN
    yield _uncapped_row(COMPOSED_BOUND, 3, epsilon, coverage, assumes)


def _gaussian_noise(record: RoundsRecord) -> str:
    return f"Gaussian noise {EQUAL_ROUNDS}" if record.rounds > 1 else "Gaussian noise"


def _composable(record: RoundsRecord, recorded: Claim | None) -> Claim:
    """Return the recorded mechanism if it has one noise multiplier, or else known rounds of one."""
    if recorded is not None and recorded.noise_multiplier is not None:
        return recorded
    relation: Neighbours = "add-or-remove" if recorded is None else recorded.neighbours
    return gaussian(1.0, participations=record.participations, neighbours=relation)


# Level of each test of the rounds' noise at which it is not taken for one Gaussian of one multiplier.
_ONE_GAUSSIAN = 0.01


def _is_no_single_gaussian(mechanism: MechanismTest) -> bool:
    """Tell whether rounds differ in their noise, depend on each other, or are not normal."""
    traces, value = mechanism.all_traces, mechanism.measured.value
    p_values = [mechanism.measured.spread_p_value]
    if 0.0 < value < math.inf:
        fit = normality(traces.z_scores(value))
        p_values += [traces.independence_p_value(value), None if fit is None else fit.p_value]
    return any(p_value is not None and p_value < _ONE_GAUSSIAN for p_value in p_values)


def _bound_by_participations(
    scores: Scores, record: RoundsRecord, claim: Claim | None, delta: float, level: float
) -> Iterator[AuditRow]:
    """Yield the bound that holds each canary against the claim at its own number of rounds, where they differ."""
    counts = record.counts
    if counts is None or not _has_unequal_rounds(record) or scores.dim is None or scores.unobserved is not None:
        return
    if claim is not None and claim.participations is None:
        return
    # This import loads compiled kernels, which most audits do not need.
    from canaryproof.verify.audit.bounds import participations
    from canaryproof.verify.audit.bounds.gaussian import epsilon_of_mu

    limit = participations.largest_noise(cosine_null(scores.dim).log_tail(scores.observed), counts, level)
    taken = record.participations if claim is None else claim.participations
    assert taken is not None
    epsilon = float(epsilon_of_mu(np.array([math.sqrt(taken) / limit]), delta)[0])
    assumes = f"independent scores, {GAUSSIAN_CURVE} of one noise multiplier at each canary's own rounds"
    yield _uncapped_row(PARTICIPATIONS, 1, epsilon, Coverage.ASYMPTOTIC, assumes)


def _uncapped_row(name: str, version: int, epsilon: float, coverage: Coverage, assumes: str) -> AuditRow:
    """Return the row of a lower bound that has no cap."""
    kind, at = str(BoundKind.LOWER_BOUND), str(coverage)
    return AuditRow(name, version, kind, epsilon, epsilon, math.inf, coverage=at, cap=math.inf, assumes=assumes)


def _moments(observed: NDArray[np.float64], unobserved: NDArray[np.float64] | None, dim: int | None) -> Moments:
    """Return the moments, unless no run produces them; NaN if all scores of one kind are equal."""
    groups = [observed] if unobserved is None else [observed, unobserved]
    if any(scores.min() == scores.max() for scores in groups) and all(np.isfinite(scores).all() for scores in groups):
        return _without_moments(observed, unobserved)
    # A variance may underflow to 0; the checks below refuse the result, NaN too.
    with np.errstate(all="ignore"):
        if unobserved is not None:
            moments = from_two_groups(observed, unobserved)
        else:
            moments = from_dimension(observed, dim or 0)
    distance, ratio = float(moments.distance), float(moments.ratio)
    if not _SMALLEST_RATIO <= ratio <= _LARGEST_RATIO:
        raise ValueError(
            f"observed: the standard deviation must be {_SMALLEST_RATIO:g} to {_LARGEST_RATIO:g} times the null's, "
            f"not {ratio:.3g} times"
        )
    if not abs(distance) <= _LARGEST_RATIO:
        raise ValueError(
            f"observed: the mean must lie within {_LARGEST_RATIO:g} of the null's standard deviations from the null's "
            f"mean, not {abs(distance):.3g} away"
        )
    return moments


def _without_moments(observed: NDArray[np.float64], unobserved: NDArray[np.float64] | None) -> Moments:
    unknown = np.asarray(math.nan)
    return Moments(unknown, unknown, len(observed), math.inf if unobserved is None else len(unobserved))


def _slopes(cosines: NDArray[np.float64], residual_norm: float | None) -> NDArray[np.float64]:
    """Return canaries' components in units of what a release has without them, whose norm may be known."""
    if residual_norm:
        return products_with_rest(cosines, residual_norm) / residual_norm
    return np.asarray(cosines / np.sqrt(1.0 - cosines**2))


def _has_unequal_rounds(record: RoundsRecord | None) -> bool:
    """Tell whether observed canaries with a score of known rounds took part in unequal numbers of them."""
    return record is not None and record.counts is not None and bool(np.ptp(record.counts))


def null_law(scores: Scores) -> GoodnessOfFit | None:
    """Test that unobserved cosines follow their law in R^d; None where there are none, or they entered negated."""
    if scores.unobserved is None or scores.dim is None or scores.neighbours == "replace":
        return None
    # It loads for long, and few audits need it.
    from scipy import stats

    # The probability transform turns the closed-form law into the uniform.
    result = stats.kstest(null_cosine.cdf(scores.unobserved, scores.dim), "uniform")
    return GoodnessOfFit(float(result.statistic), float(result.pvalue))


def _bounds(
    scores: Scores, inclusion: Inclusion, delta: float, confidence: float, names: tuple[str, ...]
) -> tuple[AuditRow, ...]:
    null = cosine_null(scores.dim) if scores.unobserved is None and scores.dim is not None else None
    # Scores of one run are not independent.
    sample = prepare(scores.observed, scores.unobserved, null, inclusion=inclusion)
    # Losses of one model depend on each other in a way that no dimension makes vanish; cosines of one release by the
    # length of its noise, which few dimensions leave to chance.
    few = scores.dim is not None and scores.dim < FEWEST_DIMENSIONS
    one_model = scores.record is None and (scores.kind is ScoreKind.ANY or few)
    return tuple(
        _bound_row(bound, coverage_of_one_model(bound, inclusion) if one_model else bound.coverage)
        for bound in lower_bounds(sample, delta, confidence, names)
    )


def _bound_row(bound: LowerBound, coverage: Coverage) -> AuditRow:
    return AuditRow(
        name=bound.method,
        version=METHODS[bound.method].version,
        kind=str(bound.kind),
        epsilon=bound.value,
        low=bound.value,
        high=math.inf if bound.upper is None else bound.upper,
        coverage=str(coverage),
        cap=bound.cap,
        assumes=", ".join(bound.assumptions),
    )


def _fit(name: str, moments: Moments, delta: float) -> tuple[str, tuple[float, ...]]:
    """Return what encloses the named estimate, and its parameters."""
    if name == "adaptive":
        name = "pinned" if epsilon_estimators.variance_p_value(moments) >= epsilon_estimators.TEST_LEVEL else "fitted"
    if name == "pinned":
        return name, (delta, float(epsilon_estimators.pinned_distance(moments)))
    return name, (delta, float(moments.distance), float(moments.ratio))


# Estimators with their versions and what each assumes, the default first.
_ESTIMATORS = (
    (
        "adaptive",
        2,
        epsilon_estimators.adaptive_estimate,
        f"as pinned, unless the variances differ at level {epsilon_estimators.TEST_LEVEL:g}; then as fitted"
        " (canaryproof)",
    ),
    (
        "pinned",
        2,
        epsilon_estimators.pinned_estimate,
        "taking part shifts the mean and leaves the variance (arXiv:2302.03098v1, Section 3)",
    ),
    (
        "fitted",
        2,
        epsilon_estimators.fitted_estimate,
        "normal scores of any mean and variance (arXiv:2302.03098, Section 3.2)",
    ),
    (
        "threshold",
        2,
        epsilon_estimators.threshold_estimate,
        "as fitted, for an attacker with one threshold (v1, Section 4)",
    ),
)
_NORM_ASSUMES = (
    "the release without its canaries is Gaussian noise and little else, in units of the canary norm (v1, footnote 2)"
)


def _estimates(moments: Moments, delta: float, confidence: float) -> tuple[EstimateRow, ...]:
    """Return all estimates from moments."""
    try:
        return tuple(
            _estimate_row(name, version, assumes, estimator(moments, delta, confidence), _fit(name, moments, delta))
            for name, version, estimator, assumes in _ESTIMATORS
        )
    except ValueError as error:
        # With a few scores and a confidence near 1, the interval is wider than the kernels' domains.
        raise ValueError(f"observed: no estimate with this interval: {error}") from None


def _norm_estimate(norm: float, dim: int, delta: float, confidence: float) -> EstimateRow:
    """Return the estimate from the norm of a release without its canaries."""
    distance = math.sqrt(dim) / norm
    estimate = epsilon_estimators.norm_estimate_at(np.asarray(distance), dim, delta, confidence)
    return _estimate_row("norm", 2, _NORM_ASSUMES, estimate, ("pinned", (delta, distance)))


def _estimate_row(
    name: str,
    version: int,
    assumes: str,
    estimate: epsilon_estimators.Estimate,
    fit: tuple[str, tuple[float, ...]],
) -> EstimateRow:
    return EstimateRow(
        name=name,
        version=version,
        kind=ESTIMATE,
        epsilon=float(estimate.epsilon),
        low=float(estimate.low),
        high=float(estimate.high),
        # Scores of one run are normal and independent in the limit only.
        coverage=str(Coverage.ASYMPTOTIC),
        cap=math.inf,
        assumes=assumes,
        standard_error=float(estimate.standard_error),
        fit=fit,
    )
