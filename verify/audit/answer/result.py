"""The result of an audit: rows of estimates and bounds, tests of their assumptions, warnings, the claim's verdict."""

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.findings import Decision, Finding, Question, Status
from canaryproof.verify.audit.answer.misuse import (
    DIRECTION_LEVEL,
    MisuseWarning,
    can_hide_copies,
    critical_trace,
    products_with_rest,
    trace_p_value,
)
from canaryproof.verify.audit.answer.shape import LEVEL as SHAPE_LEVEL
from canaryproof.verify.audit.answer.shape import GoodnessOfFit, ShapeTest, has_many_ties
from canaryproof.verify.audit.bounds.catalogue import ANY_DEPENDENCE, DEFAULT, DEFAULT_WITH_COINS
from canaryproof.verify.audit.bounds.lower_bound import GAUSSIAN_CURVE, BoundKind, Coverage, Inclusion
from canaryproof.verify.audit.canaries.scores import Score, Scores
from canaryproof.verify.audit.estimators.epsilon_estimators import TEST_LEVEL
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.levels import EPSILON, LEVEL, POWER

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours
    from canaryproof.verify.audit.answer.notice import BoundTest, Deciding
    from canaryproof.verify.audit.answer.plan_comparison import Comparison
    from canaryproof.verify.audit.answer.recorded import SamplingTest
    from canaryproof.verify.audit.blindspots.ranges import BlindSpots
    from canaryproof.verify.audit.bounds.participations import Crowd
    from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
    from canaryproof.verify.audit.estimators.noise_multiplier import NoiseMultiplier, RoundTraces
    from canaryproof.verify.audit.files.stored_release import StoredRelease

# Share of the claimed noise that a gate asks to be noticed, unless another one is given.
NOTICE = 0.5
# The confidence of an audit, unless another one is given.
CONFIDENCE = 0.95
ESTIMATE = "estimate"
# Estimate of the measured noise, composed by accounting, and the lower bound of its upper limit.
COMPOSED, COMPOSED_BOUND = "composed", "composed-bound"
# The assumption of both on a training of several rounds.
EQUAL_ROUNDS = "of one multiplier in all rounds"
# Lower bound that holds each canary against the claim at its own number of rounds.
PARTICIPATIONS = "participations"


def condition_of(assumes: str) -> str:
    """Return what scores may not show of a row's assumptions, as the end of a sentence."""
    if EQUAL_ROUNDS in assumes:
        return ", if all rounds have equal noise"
    return ", if the trade-off curve is Gaussian" if GAUSSIAN_CURVE in assumes else ""


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class AuditRow:
    """An estimate of ε, or a bound on it.

    Attributes
    ----------
    name
        Estimator, or bound in the catalogue.
    version
        Number of the method's version; a release that changes any of the method's numbers raises it.
    kind
        ``estimate``, ``lower bound`` or ``posterior interval``.
    epsilon
        The estimate; of the others the lower end.
    low, high
        Ends of the interval; a lower bound has no upper end, which is then infinite.
    coverage
        What is known of how often the interval holds the truth: ``proven``, ``asymptotic`` or ``heuristic``.
    cap
        The largest value that so many scores can give; infinite if there is none.
    assumes
        What it rests on, with the source.
    """

    name: str
    version: int
    kind: str
    epsilon: float
    low: float
    high: float
    coverage: str
    cap: float
    assumes: str

    @property
    def condition(self) -> str:
        """The assumption that scores may not show, as the end of a sentence; empty if there is none."""
        return condition_of(self.assumes)

    @property
    def basis(self) -> str:
        """Coverage and condition together, as in ``asymptotic, if the trade-off curve is Gaussian``."""
        return self.coverage + self.condition


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class EstimateRow(AuditRow):
    """An estimate of ε.

    Attributes
    ----------
    standard_error
        Its standard error.
    fit
        Which estimate of ``kernels.certified.estimates`` encloses ε, and its arguments; None where none does.
    others
        As of ``AuditRow``.
    """

    standard_error: float
    fit: tuple[str, tuple[float, ...]] | None = field(repr=False, compare=False)

    @cached_property
    def enclosure(self) -> tuple[float, float]:
        """Floats proven to lie on either side of the exact ε for the fitted parameters; 0 and ∞ where none are."""
        if self.fit is None:
            return 0.0, math.inf
        # This import loads interval arithmetic, which a summary does not need.
        from canaryproof.kernels.certified import estimates

        name, arguments = self.fit
        enclosure = getattr(estimates, f"{name}_epsilon")(*arguments)
        return enclosure.lo, enclosure.hi


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class MechanismTest:
    """The noise multiplier that a training's canaries measure, and the test that it is at least the claimed one.

    Attributes
    ----------
    traces
        What the test of the claimed noise rests on: of each round the canaries that others' updates cannot answer yet.
    measured
        The noise multiplier that all canaries measure, at the audit's confidence.
    claimed
        Claimed noise multiplier; None if none was claimed.
    all_traces
        What ``measured`` rests on: also the canaries that come back.
    """

    traces: "RoundTraces" = field(repr=False, compare=False)
    measured: "NoiseMultiplier"
    claimed: float | None
    all_traces: "RoundTraces" = field(repr=False, compare=False)

    @property
    def rounds_text(self) -> str:
        """The number of measured rounds, and of all if there were more."""
        count = len(self.all_traces.cosines)
        if self.unmeasured_rounds:
            return f"{count:,} of {self.all_traces.rounds:,} rounds"
        return "1 round" if count == 1 else f"{count:,} rounds"

    @property
    def unmeasured_rounds(self) -> int:
        """Number of rounds in which no canary took part, so that their noise is not measured."""
        return self.all_traces.rounds - len(self.all_traces.cosines)

    @cached_property
    def all_p_value(self) -> float | None:
        """The same of all canaries, if others' updates don't answer those that come back."""
        return None if self.claimed is None else self.all_traces.p_value(self.claimed)

    @cached_property
    def p_value(self) -> float | None:
        """P-value of noise of at least the claimed multiplier; None without a claim."""
        return None if self.claimed is None else self.traces.p_value(self.claimed)

    def noticed_share(self, level: float, probability: float = POWER) -> float:
        """Return the largest share of the claimed noise that a test of this level rejects with a probability."""
        if self.claimed is None:
            return 0.0
        # This import loads the law of traces, which an audit without them does not need.
        from canaryproof.verify.audit.estimators.noise_multiplier import noticed_share

        return noticed_share(self.claimed, self.traces.lengths, self.traces.dim, level, probability=probability)


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Request:
    """The call that made an audit: together with its input it repeats the audit.

    Attributes
    ----------
    claim, noise_multiplier, bounds, force, neighbours, rate, rounds, participations, data_norm, difference, notice, ask
        As given to ``audit`` or ``audit_release``; neighbours are None where they are those of the scores or the claim.
    tried
        Number of scores or releases of which this one was chosen.
    canaries
        The canaries of a release; None where scores were given.
    release
        SHA-256 of the release's coordinates in little-endian order, in hexadecimal; from 2²⁷ coordinates on of those of
        its blocks, one after another. None where scores were given.
    stored
        The release's files with the order of its coordinates; None where there were none.
    slices
        Numbers of coordinates of the slices whose sums were given, with the norm of a canary; None of a whole release.
    """

    claim: "float | Claim | DpEvent | None"
    noise_multiplier: float | None
    bounds: tuple[str, ...]
    force: bool
    neighbours: "Neighbours | None" = None
    canaries: "ReleaseCanaries | None" = None
    release: str | None = None
    stored: "StoredRelease | None" = None
    slices: tuple[tuple[int, ...], float] | None = None
    rate: float | None = None
    rounds: int | None = None
    participations: int | None = None
    data_norm: float | None = None
    difference: bool = False
    notice: float = NOTICE
    ask: tuple[Question, ...] = ()
    tried: int = 1

    @property
    def is_difference(self) -> bool:
        """Whether the release is a difference of two models, which is no single noisy sum."""
        return self.difference or (self.stored is not None and self.stored.base_path is not None)


# A trace is taken to be seen from this number of standard errors on.
_SEEN = 3.0
# Level of the tests that rounds have equal noise, and none less than claimed, which leave the claim undecided.
_DOUBT = 1e-3
# A gate does not pass where canaries leave another trace than the release's norm says, at this level.
_OTHER_TRACE = 1e-4
# Number of scores from which on a look at 1% sees Laplace's tails, or Student's with three degrees.
_SHOW_TAILS = 100
# With fewer dimensions, bounds of 10⁴ to 10⁶ scores of noise whose length is at its lower 2.5% point exceed ε: at σ = 1
# and δ = 10⁻⁵, those of 10⁶ scores in 20 dimensions are 4.7 for 4.4.
FEWEST_DIMENSIONS = 50
# Share of a test's level that the record's participations, or the length of a release, take from the test of the noise.
SIDE = 0.01


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit, which depends on nothing but its input.

    Attributes
    ----------
    scores, request
        The scores that were audited, and the call.
    delta, confidence, claim, noise_multiplier
        As asked; a claim that was not given is that of the noise multiplier, where one vector is released or a training
        recorded its rounds.
    claimed
        What is claimed: an ε, or a mechanism; None at δ = 0, or if nothing is claimed.
    configured, recorded
        The mechanism that the claim or the options state, and that mechanism in the rounds that were recorded; None
        where none is stated. Without a record they are the same.
    sampling_test
        Test that canaries took part no more often than claimed; None where either is not known.
    neighbours
        Those of the claim, and of the scores if nothing is claimed: ``add-or-remove`` or ``replace``.
    mechanism
        The measured noise, and the test of the claimed one; None for scores without a record of rounds.
    standardised_mean
        (μ̂ − μ₀)/σ₀; √d·μ̂ for the closed-form null N(0, 1/d). It is NaN if all scores of one kind are equal, as the
        next two are.
    deviation_ratio
        σ̂/σ₀; √d·σ̂ for the closed-form null.
    variance_p_value
        Two-sided p-value of equal variances of observed scores and null.
    normality
        Anderson–Darling test that the observed scores are normal; None for fewer than 8.
    shape
        Test that scores have the shape that the estimators but ``norm`` assume.
    null_law
        Kolmogorov–Smirnov test that the unobserved cosines follow the closed-form null law in R^d; None without
        unobserved cosines or without a dimension.
    release_norm, residual_norm
        Norm of the released vector, with and without all canaries, in units of the canary norm; None where scores were
        given.
    warnings
        What looks like a misuse.
    withheld
        Whether a warning takes the meaning of all numbers, so that there are neither estimates nor bounds.
    estimates
        The estimates, the default first.
    bounds
        Lower bounds on ε and posterior intervals, those first whose coverage is proven. Before them is the bound by
        participations, where canaries took part in unequal numbers of rounds; after them that of the measured noise.
    findings
        The answers to the questions that an audit asks, one each.
    decision
        The decision on the claim; None without a claim, unless the input is wrong.
    comparison
        The comparison with a plan; None if it was held against none.
    """

    scores: Scores = field(repr=False, compare=False)
    request: Request = field(repr=False, compare=False)
    delta: float
    confidence: float
    claim: float | None
    claimed: "Claim | None" = field(repr=False, compare=False)
    configured: "Claim | None" = field(repr=False, compare=False)
    recorded: "Claim | None" = field(repr=False, compare=False)
    sampling_test: "SamplingTest | None"
    neighbours: str
    noise_multiplier: float | None
    mechanism: MechanismTest | None
    standardised_mean: float
    deviation_ratio: float
    variance_p_value: float
    normality: GoodnessOfFit | None
    shape: ShapeTest
    null_law: GoodnessOfFit | None
    release_norm: float | None
    residual_norm: float | None
    warnings: tuple[MisuseWarning, ...]
    withheld: bool
    estimates: tuple[EstimateRow, ...]
    bounds: tuple[AuditRow, ...]
    findings: tuple[Finding, ...] = ()
    decision: Decision | None = None
    comparison: "Comparison | None" = None

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone: a pickle leaves out what is computed from them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def count(self) -> int:
        """Number k of observed scores."""
        return len(self.scores.observed)

    @property
    def null_count(self) -> int | None:
        """Number of unobserved scores that the null was fitted to; None for the closed-form null N(0, 1/d)."""
        return None if self.scores.unobserved is None else len(self.scores.unobserved)

    @property
    def dim(self) -> int | None:
        """Dimension d of the released vector, if known."""
        return self.scores.dim

    @property
    def estimate(self) -> EstimateRow | None:
        """The default estimate; None if it is withheld, or means nothing for these scores.

        The estimators take scores for normal. So there is none where the scores' shape is another one, and none of the
        largest cosines over rounds, whose shape few of them do not show. There is none of scores that are no cosines: a
        rising function of them would do as well, and give another estimate.
        """
        if not self.estimates:
            return None
        first, record = self.estimates[0], self.scores.record
        is_largest = record is not None and record.score is Score.LARGEST and record.rounds > 1
        is_normal = self.scores.kind is ScoreKind.COSINE and not self.shape.reason and not is_largest
        means = first.name == COMPOSED or is_normal
        assumes_wrong = self.is_contradicted or self.has_unequal_noise or self.has_no_common_noise
        return first if means and not assumes_wrong else None

    @property
    def is_contradicted(self) -> bool:
        """Whether a lower bound is above the interval of the default estimate, whose assumption is then wrong."""
        bound = self.bound
        if bound is None or bound.coverage == Coverage.HEURISTIC or not self.estimates:
            return False
        return bound.low > self.estimates[0].high

    @property
    def bound(self) -> AuditRow | None:
        """The best lower bound; None if there is none of proven or asymptotic coverage.

        It is the first of ``bounds``, chosen before the scores are seen: the largest of several would not keep its
        confidence. Of losses of one model whose members were fixed it is the default bound, whose coverage is
        heuristic.
        """
        serving = (Coverage.PROVEN, Coverage.ASYMPTOTIC)
        rows = [row for row in self.bounds if row.kind == BoundKind.LOWER_BOUND]
        known = next((row for row in rows if row.coverage in serving), None)
        return next((row for row in rows if row.name == DEFAULT), None) if known is None else known

    @property
    def proven_bound(self) -> AuditRow | None:
        """The bound that is proven however scores depend on each other, where the best one is not."""
        if self.bound is None or self.bound.coverage == Coverage.PROVEN:
            return None
        rows = {row.name: row for row in self.bounds if row.coverage == Coverage.PROVEN}
        return next((rows[name] for name in ANY_DEPENDENCE if name in rows), None)

    @property
    def level(self) -> float:
        """Level of each test that may decide: those of all that were tried have together what the confidence leaves."""
        sampling = None if self.scores.record is None or self.configured is None else self.configured.sampling
        is_drawn = sampling is not None and sampling.rate is not None
        has_noise = self.mechanism is not None and self.mechanism.claimed is not None
        tests = 2.0 if has_noise or is_drawn else 1.0
        return (1.0 - self.confidence) / (tests * self.request.tried)

    @property
    def usual_questions(self) -> tuple[Question, ...]:
        """The questions that a gate asks unless it is given others."""
        of_record = () if self.scores.record is None else (Question.SAMPLING, Question.ACCOUNTING)
        return (Question.INPUT, Question.LEAK, *of_record)

    @property
    def has_unknown_direction(self) -> bool:
        """Whether nobody knows if a canary raises or lowers these scores, such as losses."""
        scores = self.scores
        return scores.kind is ScoreKind.ANY and scores.unobserved is not None and scores.record is None

    @property
    def input_level(self) -> float:
        """The most of honest audits whose input looks wrong by chance."""
        return DIRECTION_LEVEL if self.has_unknown_direction else LEVEL

    @property
    def input_condition(self) -> str:
        """The condition of ``input_level``, to append: near-duplicates of chosen members turn the order over, too."""
        is_fixed = self.has_unknown_direction and self.scores.inclusion is Inclusion.FIXED
        return ", if scores are independent" if is_fixed else ""

    @property
    def side_level(self) -> float:
        """Level of the test of the record's participations, and of that of a release's length."""
        return SIDE * self.level

    @property
    def noise_level(self) -> float:
        """Level of the test of the noise by the canaries' trace, without ``side_level``."""
        return self.level - self.side_level

    def finding(self, question: str) -> Finding:
        """Return the finding on a question, such as ``"leak"``.

        Parameters
        ----------
        question
            One of ``Question``.

        Returns
        -------
        The finding.

        Raises
        ------
        ValueError
            If it is no question, or this audit has no finding on it.
        """
        for finding in self.findings:
            if finding.question == question:
                return finding
        names = ", ".join(each.question for each in self.findings)
        raise ValueError(f"question: {rules.refusal(f'one of {names}', question)}")

    @property
    def has_other_trace(self) -> bool:
        """Whether canaries leave another trace in a release than canaries of norm 1, at level 1e-4."""
        return self.trace_test is not None and self.trace_test[2] < _OTHER_TRACE

    @property
    def unseen_norm(self) -> float:
        """Largest error of the canaries' norm that leaves no other trace in a release; infinite without one."""
        if self.trace_test is None:
            return math.inf
        return critical_trace(_OTHER_TRACE, self.null_count or 0) * self.trace_test[1]

    @property
    def trace_test(self) -> tuple[float, float, float] | None:
        """Norm that canaries have by their trace in a release, its error and the p-value of norm 1; else None.

        Noise and data of any length leave it at 1. Missing canaries lower it.
        """
        if self.release_norm is None:
            return None
        null, seen = self.scores.unobserved, self.scores.observed
        if null is not None:
            norm, scale = self.release_norm * float(seen.mean()), self.release_norm * math.sqrt((null**2).mean())
        elif self.residual_norm:
            norm = float(products_with_rest(seen, self.residual_norm).mean())
            scale = self.residual_norm / math.sqrt(self.dim or 1)
        else:
            return None
        error = scale / math.sqrt(self.count)
        return norm, error, trace_p_value((norm - 1.0) / error, self.null_count or 0)

    @property
    def is_refuted(self) -> bool:
        """Whether there is less noise than claimed, at ``noise_level``."""
        p_value = None if self.mechanism is None else self.mechanism.p_value
        return p_value is not None and p_value < self.noise_level

    @property
    def has_unequal_noise(self) -> bool:
        """Whether rounds differ in their noise, so that no one multiplier describes them."""
        p_value = None if self.mechanism is None else self.mechanism.measured.spread_p_value
        return p_value is not None and p_value < _DOUBT

    @property
    def has_no_common_noise(self) -> bool:
        """Whether the claimed rounds have no Gaussian noise of one multiplier, of which an estimate is composed."""
        mechanism = self.configured
        return mechanism is not None and mechanism.event is not None and mechanism.noise_multiplier is None

    @property
    def doubted_rounds(self) -> str:
        """Why the noise of some rounds doesn't speak for all, as a clause; empty if nothing says so."""
        mechanism = self.mechanism
        if mechanism is None or self.is_refuted:
            return ""
        if mechanism.all_p_value is not None and mechanism.all_p_value < _DOUBT:
            return (
                "rounds in which canaries come back show less noise than claimed, unless others' updates follow those "
                f"canaries (p = {max(mechanism.all_p_value, 1e-300):.2g})"
            )
        if self.has_unequal_noise:
            shown = f"p = {max(mechanism.measured.spread_p_value or 0.0, 1e-300):.2g}"
            return f"rounds differ in their noise ({shown}), so that no one multiplier is that of all"
        return ""

    @property
    def has_trace(self) -> bool:
        """Whether the canaries leave a trace: in a lower bound, in the measured noise, or in their mean score."""
        bound = self.bound
        if bound is not None and bound.coverage != Coverage.HEURISTIC and bound.low > 0.0:
            return True
        if self.mechanism is not None:
            return bool(self.mechanism.traces.trace_p_value < special.ndtr(-_SEEN))
        return self.standardised_mean >= _SEEN * self.mean_error

    @cached_property
    def noticed_share(self) -> float | None:
        """Largest share of the claimed noise that this audit notices with probability 90%; None if none is known.

        At δ = 0 none is.

        It is that of the tests that decide: the default lower bound, and the test of the claimed noise if there is one.
        Less noise is noticed too. Without a claimed multiplier the noise is that of a Gaussian mechanism of the claim.
        What may mask the claimed noise (``masking_variance``) would mask less noise too. None where rounds are in
        doubt (``doubted_rounds``).
        """
        if self.claim is None or not self.delta or self.doubted_rounds:
            return None
        shares = [0.0 if self.mechanism is None else self.mechanism.noticed_share(self.noise_level)]
        if self._has_default_bound:
            noise = self.claimed_noise(self.claim)
            # Independent canaries of one release that are in each other's scores lengthen it, as more noise would.
            others = self.count if self.scores.inserted is None else self.scores.inserted - 1
            crowding = 0.0 if self.dim is None or self.scores.record is not None else others / self.dim
            whole = math.sqrt(noise**2 + crowding)
            share = self.bound_test(self.claim).noticed_share(whole)
            # Where the whole noise is noticed, rounding may make more of it.
            shares.append(min(1.0, math.sqrt(max(0.0, ((share or 0.0) * whole) ** 2 - crowding)) / noise))
        if (crowd := self._crowd(self.claim)) is not None and self.dim is not None:
            shares.append(crowd[0].noticed_share(crowd[1], self.dim, self.level))
        return math.sqrt(max(0.0, max(shares) ** 2 - self.masking_variance)) or None

    def bound_test(self, epsilon: float) -> "BoundTest":
        """Return the default bound as a test of an ε, or the test of the claim's curve, from scores such as these."""
        # This import loads tables of the bounds, which an audit without a claim does not need.
        from canaryproof.verify.audit.answer.notice import BoundTest

        counts = self.count, self.null_count
        curve = self.claimed if self.has_curve_test and epsilon == self.claim else None
        return BoundTest(epsilon, self.delta, self.level, *counts, self.rounds_per_score, self.bound_inclusion, curve)

    @property
    def has_curve_test(self) -> bool:
        """Whether the claim's own trade-off curve is tested: it states a mechanism, and coins decide on it."""
        coins = self.bound is not None and self.bound.name == DEFAULT_WITH_COINS
        return coins and self.claimed is not None and self.claimed.statement is None

    @cached_property
    def claim_p_value(self) -> float | None:
        """p-value of the claimed mechanism, by its own trade-off curve; None where that is not tested."""
        if not self.has_curve_test:
            return None
        # These imports load tables of the bounds, which an audit without a claim does not need.
        from canaryproof.verify.audit.bounds.lower_bound import prepare
        from canaryproof.verify.audit.bounds.one_run import curve_of, curve_p_value

        assert self.claimed is not None
        scores = prepare(self.scores.observed, self.scores.unobserved, inclusion=Inclusion.COIN)
        return curve_p_value(scores, curve_of(self.claimed.tradeoff))

    @property
    def is_refuted_by_curve_alone(self) -> bool:
        """Whether the claimed mechanism is refuted by its curve, and no other test contradicts the claim."""
        failed = [finding.question for finding in self.findings if finding.status is Status.FAILED]
        exceeds = self.bound is not None and self.claim is not None and self.bound.low > self.claim
        return self.has_curve_test and failed == [Question.LEAK] and not exceeds

    @cached_property
    def rounds_per_score(self) -> float:
        """Number of rounds over which each score is a maximum; estimated from unobserved cosines if unrecorded."""
        # This import loads tables of the bounds, which an audit without a claim does not need.
        from canaryproof.verify.audit.answer import notice

        record, unobserved = self.scores.record, self.scores.unobserved
        if record is not None:
            return record.rounds if record.score == Score.LARGEST else 1
        plain = self.scores.kind is ScoreKind.COSINE and self.neighbours == "add-or-remove"
        return notice.rounds_per_score(unobserved) if plain and unobserved is not None else 1

    @property
    def masking_variance(self) -> float:
        """The most variance that could mask missing noise, in units of the claimed noise's, at confidence 90%.

        Where less noise was added, others' data of this length would still be there. A released vector limits them by
        its norm, and a training's rounds by the measured noise. Where others' data were taken out it is 0, unless more
        than the claimed noise is left: canaries that are shorter than the clip norm look the same.
        """
        mechanism = self.mechanism
        if mechanism is None or mechanism.claimed is None:
            return 0.0
        if self.residual_norm is None:
            if mechanism.traces.residual and not self.is_masked:
                return 0.0
            most = mechanism.all_traces.largest_noise(1.0 - POWER) ** 2
        else:
            most = self.residual_norm**2 / float(special.chdtri(mechanism.traces.dim, POWER))
        return max(0.0, most / mechanism.claimed**2 - 1.0)

    @property
    def has_canaries(self) -> bool:
        """Whether the scores are known to be of canaries: cosines, or of recorded rounds; others may be of anything."""
        return self.scores.kind is ScoreKind.COSINE or self.scores.record is not None

    @property
    def is_masked(self) -> bool:
        """Whether more than the claimed noise is seen: at half of α of rounds with others' data, else at level 1e-4."""
        mechanism = self.mechanism
        if mechanism is None or mechanism.claimed is None or mechanism.p_value is None:
            return False
        if self.residual_norm is None:
            if mechanism.traces.residual:
                return mechanism.p_value > 1.0 - _OTHER_TRACE
            return mechanism.measured.low > mechanism.claimed
        return float(special.chdtrc(mechanism.traces.dim, (self.residual_norm / mechanism.claimed) ** 2)) < _OTHER_TRACE

    def _crowd(self, epsilon: float) -> "tuple[Crowd, float] | None":
        """Return the canaries of the bound by participations, and the claimed noise of a round; else None."""
        record, claimed = self.scores.record, self.claimed
        if not self._has_participations_bound or record is None or record.counts is None or claimed is None:
            return None
        # This import loads compiled kernels.
        from canaryproof.verify.audit.bounds.participations import Crowd

        noise = math.sqrt(claimed.participations or 0) * gaussian_mechanism.noise_multiplier(epsilon, self.delta)
        return Crowd.of(record.counts, record.rounds), float(noise)

    def claimed_noise(self, epsilon: float) -> float:
        """Return the claimed noise that separates the groups of scores.

        Parameters
        ----------
        epsilon
            Claimed ε, positive.

        Returns
        -------
        The noise multiplier that was stated for one release, or else that of a Gaussian mechanism of this ε; in units
        of the distance that these scores measure.
        """
        halved = self.scores.neighbours == "replace"
        # A round's noise is not that of the claim, which is for several.
        if self.noise_multiplier is not None and self.scores.record is None:
            return 0.5 * self.noise_multiplier if halved else self.noise_multiplier
        # Canaries that are only added move the sum half as far as the claim's neighbours do.
        doubled = self.neighbours == "replace" and not halved
        return (2.0 if doubled else 1.0) * float(gaussian_mechanism.noise_multiplier(epsilon, self.delta))

    @cached_property
    def _has_default_bound(self) -> bool:
        """Whether the deciding bound is a default one, whose power is known for scores without many ties."""
        groups = (self.scores.observed, self.scores.unobserved)
        tied = any(has_many_ties(scores) for scores in groups if scores is not None)
        return self.bound is not None and self.bound.name in (DEFAULT, DEFAULT_WITH_COINS) and not tied

    @property
    def bound_inclusion(self) -> Inclusion:
        """Inclusion assumed by the deciding bound: coins, unless an exact null is known or counts refute coins."""
        coins = self.bound is not None and self.bound.name == DEFAULT_WITH_COINS
        return Inclusion.COIN if coins else Inclusion.FIXED

    @property
    def _has_participations_bound(self) -> bool:
        """Whether the bound that decides holds each canary against the claim at its own number of rounds."""
        return self.bound is not None and self.bound.name == PARTICIPATIONS

    @property
    def has_equal_variances(self) -> bool:
        """Whether the test does not reject equal variances, so that ``adaptive`` is ``pinned``."""
        return self.variance_p_value >= TEST_LEVEL

    @property
    def is_not_normal(self) -> bool:
        """Whether scores of an unknown law look otherwise than normal, at 1%, so that no estimate's interval holds."""
        is_unknown = self.scores.kind is ScoreKind.ANY and self.scores.record is None
        return is_unknown and self.shape.p_value < SHAPE_LEVEL

    @property
    def can_hide_a_tail(self) -> bool:
        """Whether scores of an unknown law are too few for a look to see a heavy tail."""
        is_unknown = self.scores.kind is ScoreKind.ANY and self.scores.record is None
        return is_unknown and min(self.count, self.null_count or self.count) < _SHOW_TAILS

    @property
    def has_equal_scores(self) -> bool:
        """Whether all scores of one kind are equal, so that no Gaussian fits."""
        return math.isnan(self.standardised_mean)

    @property
    def can_hide_copies(self) -> bool:
        """Whether rows of scores other than cosines may be copies of others, which would not be seen."""
        unobserved = self.scores.unobserved
        if self.scores.kind is not ScoreKind.ANY or unobserved is None:
            return False
        return can_hide_copies(self.scores.observed, unobserved, ranked=self.scores.ranked)

    @property
    def has_equal_means(self) -> bool:
        """Whether both groups of scores have one mean, to nine digits of their deviation."""
        observed, unobserved = self.scores.observed, self.scores.unobserved
        if unobserved is None:
            return False
        return abs(float(observed.mean()) - float(unobserved.mean())) < 1e-9 * float(unobserved.std())

    @property
    def mean_error(self) -> float:
        """Standard error of ``standardised_mean``."""
        unobserved = 0.0 if self.null_count is None else 1.0 / self.null_count
        return math.sqrt(self.deviation_ratio**2 / self.count + unobserved)

    @property
    def ratio_error(self) -> float:
        """Standard error of ``deviation_ratio``."""
        unobserved = 0.0 if self.null_count is None else 0.5 / self.null_count
        return self.deviation_ratio * math.sqrt(0.5 / self.count + unobserved)

    @property
    def dilution(self) -> float | None:
        """‖x‖²/(σ²d) − 1 of a release x without its canaries, its excess over the claimed noise; None if not known."""
        if self.residual_norm is None or self.noise_multiplier is None or self.dim is None:
            return None
        return self.residual_norm**2 / (self.noise_multiplier**2 * self.dim) - 1.0

    @cached_property
    def blind_spots(self) -> "BlindSpots | None":
        """Faults of the atlas that the tests which decide would have noticed, and others.

        None where d is unknown or below 1,000, and of scores whose tests have no known power, as the largest over
        rounds. The faults are those of a mechanism with the claimed noise, or with the noise of the claimed ε; of ε = 3
        if nothing is claimed.
        """
        # This import loads the atlas, which a summary does not need.
        from canaryproof.verify.audit.answer.notice import blind_spots

        given = self.noise_multiplier is not None or self.claim is not None
        return None if self._deciding is None else blind_spots(self._deciding, given=given)

    @property
    def has_blind_spots(self) -> bool:
        """Whether ``blind_spots`` has lists; making them takes most of a second."""
        return self._deciding is not None and self._deciding.has_blind_spots

    @cached_property
    def _deciding(self) -> "Deciding | None":
        """Return the tests that decide on the claim; None where the atlas has no faults for these scores."""
        # These imports load the atlas, which a summary without a claim does not need.
        from canaryproof.verify.audit.answer.notice import Deciding
        from canaryproof.verify.audit.blindspots.mechanisms import AtlasClaim

        # A release without a dimension was scored along all its directions.
        released = self.release_norm is not None
        dim = self.count + (self.null_count or 0) if released and self.dim is None else self.dim
        if dim is None or not self.delta or self.scores.neighbours == "replace":
            return None
        if self.scores.record is None and self.rounds_per_score > 1:
            return None
        epsilon = EPSILON if self.claim is None else self.claim
        noise = self.noise_multiplier or self.claimed_noise(epsilon)
        lengths = None
        if self.mechanism is not None and self.mechanism.claimed is not None:
            lengths = tuple(self.mechanism.traces.lengths.tolist())
        return Deciding(
            claim=AtlasClaim(noise, self.delta, dim),
            bound=self.bound_test(epsilon),
            by_bound=self._has_default_bound and self.scores.record is None,
            lengths=lengths,
            alone=released,
            crowd=self._crowd(epsilon),
            hides=self.masking_variance,
        )
