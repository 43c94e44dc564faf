"""Scores or a release in, an audit out."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels import null_cosine
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours, as_claim, gaussian, poisson
from canaryproof.verify.audit.answer import text
from canaryproof.verify.audit.answer.findings import RULES, Question, decide
from canaryproof.verify.audit.answer.judgement import judge
from canaryproof.verify.audit.answer.misuse import Withheld, is_carried_over, misuse, products_with_rest
from canaryproof.verify.audit.answer.recorded import (
    checked_rounds,
    recorded_mechanism,
    sampling_test,
)
from canaryproof.verify.audit.answer.result import (
    COMPOSED,
    COMPOSED_BOUND,
    ESTIMATE,
    NOTICE,
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
    prepare,
)
from canaryproof.verify.audit.canaries.scores import RoundsRecord, Score, Scores
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.estimators.moments import Moments, from_dimension, from_release, from_two_groups
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    import pandas as pd
    from dp_accounting import DpEvent
    from matplotlib.figure import Figure

    from canaryproof.verify.audit.answer.plan_comparison import Comparison
    from canaryproof.verify.audit.answer.release_sums import ReleaseSums, Scoring
    from canaryproof.verify.audit.answer.trade_off import TradeOffCurve
    from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
    from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces
    from canaryproof.verify.audit.files.stored_release import StoredRelease


@set_module("canaryproof")
@dataclass(frozen=True, repr=False)
class Audit(AuditResult):
    """An audit of one run; ``print`` shows it in at most 25 lines.

    Attributes
    ----------
    decision
        The decision on the claim: passed, not passed or cannot say; None if nothing is claimed.
    findings
        The answers that it is made of, one a question.
    estimate, bound
        The default estimate, and the best lower bound.
    estimates, bounds
        All of both, as rows.
    warnings, withheld
        What looks like a misuse, and whether the estimates are withheld for it.
    others
        See ``AuditResult``.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> observed = cp.exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0))
    >>> found = cp.audit(cp.Scores(observed, dim=10**6), delta=1e-6, claim=3.01)
    >>> print(f"{found.decision.outcome}: {found.estimate.epsilon:.2f}, at least {found.bound.low:.2f}")
    PASSED: 2.98, at least 1.23
    >>> len(found.to_frame())
    6
    """

    def __str__(self) -> str:
        return text.summary(self)

    def __repr__(self) -> str:
        return f"<Audit: {text.answer(self)}>"

    def details(self) -> str:
        """Return in words what ``print`` leaves out: all rows, tests and blind spots."""
        return text.details(self)

    def to_frame(self) -> "pd.DataFrame":
        """Return estimates and bounds as a table.

        Returns
        -------
        A pandas frame with the columns ``name``, ``version``, ``kind``, ``epsilon``, ``low``, ``high``, ``coverage``,
        ``cap`` and ``assumes``, a row each.
        """
        # Pandas takes half a second to load.
        import pandas as pd

        columns = [field.name for field in fields(AuditRow)]
        return pd.DataFrame([[getattr(row, name) for name in columns] for row in self._rows], columns=columns)

    def to_json(self) -> str:
        """Return the audit as a JSON document, equal for equal input; infinite numbers are null."""
        # This import loads what writes reports, which a summary does without; so below.
        from canaryproof.verify.audit.answer import report

        return report.dump(report.numbers(self))

    def plot(self) -> "Figure":
        """Draw the scores, the estimate with its interval, the best lower bound and the claim.

        Returns
        -------
        A matplotlib figure; ``figure.savefig("audit.svg")`` writes it.
        """
        # This import loads matplotlib.
        from canaryproof.verify.audit.answer import picture

        return picture.draw(self)

    def curve(self) -> "TradeOffCurve":
        """Return the trade-off curve: both rates of error at every threshold, with a band for all at once.

        Returns
        -------
        The curve, with true positive rates, advantage, and a lower limit of ε at every δ.

        Raises
        ------
        ValueError
            If the audit is withheld.
        """
        # This import loads the bounds' tables, which a summary does not need.
        from canaryproof.verify.audit.answer.trade_off import trade_off_curve

        return trade_off_curve(self)

    def compare_with_plan(self, plan: str | os.PathLike[str]) -> "Audit":
        """Hold the audit against a plan that was made before the run.

        Parameters
        ----------
        plan
            A file that ``canaryproof plan --out`` wrote; its file ``.secret.json`` must be next to it.

        Returns
        -------
        The audit with one finding more, whether it is as planned, and the decision with it.

        Raises
        ------
        InputError
            If a file cannot be read.
        """
        # This import loads plans, which most audits do without.
        from canaryproof.verify.audit.answer import plan_file

        return with_comparison(self, plan_file.compare_with_plan(self, Path(plan)))

    def report(
        self,
        path: str | os.PathLike[str],
        plan: str | os.PathLike[str] | None = None,
        *,
        title: str = "",
        subject: str = "",
        date: str = "",
    ) -> None:
        """Write a report that others can check by ``canaryproof check-report``.

        Parameters
        ----------
        path
            File to write or replace. ``.html`` is one page with pictures, without scripts, ``.md`` the same without
            pictures, ``.json`` the record of all numbers, which both others have at their end.
        plan
            A plan that ``canaryproof plan --out`` wrote before the run, to hold the audit against; its file
            ``.secret.json`` must be next to it.
        title, subject, date
            Your own title, what was audited, and when: printed at the top, each a line of at most 1,000 characters.

        Raises
        ------
        OSError
            If it cannot be written.
        ValueError
            If its name ends in another way, or a line is none.
        InputError
            If the plan cannot be read.
        """
        from canaryproof.verify.audit.answer import report

        held = self if plan is None else self.compare_with_plan(plan)
        report.write(held, Path(path), title=title, subject=subject, date=date)

    def _repr_html_(self) -> str:
        # This import loads matplotlib.
        from canaryproof.verify.audit.answer import page

        return page.fragment(self)

    @property
    def _rows(self) -> tuple[AuditRow, ...]:
        return (*self.estimates, *self.bounds)


@set_module("canaryproof")
def audit(
    scores: Scores,
    delta: float,
    confidence: float = 0.95,
    claim: "float | Claim | DpEvent | None" = None,
    noise_multiplier: float | None = None,
    bounds: Sequence[str] = (),
    force: bool = False,
    *,
    rate: float | None = None,
    rounds: int | None = None,
    participations: int | None = None,
    notice: float = NOTICE,
    ask: Sequence[str] = (),
) -> Audit:
    """Audit the scores of one run.

    Parameters
    ----------
    scores
        The scores of its canaries.
    delta
        Target δ of (ε, δ)-differential privacy, in [0, 1). At 0 there are bounds alone, as two Gaussians have no
        finite ε.
    confidence
        Confidence of the intervals and bounds, in [1e-9, 1 − 1e-9].
    claim
        What is claimed: ε at this δ, from 0.001 to 10,000, a claim of ``canaryproof.accounting``, or a
        ``dp_accounting.DpEvent``. By default it is that of the noise multiplier, where one vector is released (cosines
        without unobserved ones), or a training recorded its rounds.
    noise_multiplier
        Claimed standard deviation of the noise in the released vector, in units of the canary norm, from 0.01 to 1e6;
        in each round, for the scores of ``CanaryClients``. By default that of the claim.
    bounds
        Names in ``canaryproof.bounds.METHODS``; by default a few that serve these scores.
    force
        Whether to compute estimates and bounds even where a warning makes them meaningless.
    rate, rounds, participations
        For scores with a record: what else the claimed mechanism is, beside the noise multiplier. Either rounds were
        drawn by Poisson sampling at this rate, in so many rounds (by default those that were recorded), or a record
        takes part so often.
    notice
        Share of the claimed noise, in (0, 1), that must be noticed with probability 90% for the claim to pass.
    ask
        Questions that must be answered as claimed for the claim to pass, of ``canaryproof.typing.Question``; by default
        input and leak, and of scores with a record also sampling and accounting.

    Returns
    -------
    The audit. Of scores that are not cosines there is no test of the null law and no list of blind spots.

    Raises
    ------
    ValueError
        If an argument breaks a rule, a named bound does not serve these scores, the claim has no finite ε at ``delta``
        or does not hold against who has these scores, or the scores' mean or deviation is beyond any that a run
        produces.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> observed = cp.exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0))
    >>> found = cp.audit(cp.Scores(observed, dim=10**6), delta=1e-6, claim=3.01)
    >>> print(found.decision.outcome)
    PASSED
    """
    if not isinstance(scores, Scores):
        raise ValueError(f"scores: must be Scores, as made by Scores(observed, dim=...), not {type(scores).__name__}")
    names = rules.bounds(bounds, METHODS)
    traces = None if scores.record is None else scores.record.traces
    neighbours: Neighbours | None = "replace" if scores.neighbours == "replace" else None
    request = Request(
        *(claim, noise_multiplier, names, force, neighbours),
        rate=None if rate is None else _RATE.number("rate", rate),
        rounds=checked_rounds("rounds", rounds),
        participations=checked_rounds("participations", participations),
        notice=_SHARE.number("notice", notice),
        ask=_check_questions(ask),
    )
    if scores.record is None and (rate, rounds, participations) != (None, None, None):
        raise ValueError("rate, rounds and participations: are for scores with a record of rounds")
    return _audit(scores, delta, confidence, request, None, traces)


_SHARE = NumberRange("lie between 0 and 1", 0.0, 1.0, open=True)
_RATE = NumberRange("be above 0 and at most 1", math.ulp(0.0), 1.0)
_LENGTH = NumberRange("lie between 0 and 1e15", 0.0, 1e15)


def _check_questions(ask: Sequence[str]) -> tuple[Question, ...]:
    """Return the questions that a gate is to ask."""
    if isinstance(ask, str) or not isinstance(ask, Sequence):
        raise ValueError(f"ask: {rules.refusal('a sequence of questions', ask)}")
    # A plan that is given is always asked for.
    questions = [question for question in Question if question is not Question.PLAN]
    return tuple(Question(rules.choice("ask", question, questions)) for question in ask)


# The estimators are finite and free of warnings within these bounds, in units of the null's standard deviation;
# cosines in any dimension keep to the upper one.
_SMALLEST_RATIO, _LARGEST_RATIO = 1e-6, 1e7
_SMALLEST_COORDINATE, _LARGEST_COORDINATE = 1e-12, 1e15


@set_module("canaryproof")
def audit_release(
    release: "ArrayLike | StoredRelease | ReleaseSums",
    canaries: "ReleaseCanaries",
    delta: float,
    confidence: float = 0.95,
    claim: "float | Claim | DpEvent | None" = None,
    noise_multiplier: float | None = None,
    bounds: Sequence[str] = (),
    force: bool = False,
    neighbours: Neighbours | None = None,
    advance: Callable[[int], None] = lambda _: None,
    state: str | os.PathLike[str] | None = None,
    scoring: "Scoring | None" = None,
    *,
    data_norm: float | None = None,
    notice: float = NOTICE,
    ask: Sequence[str] = (),
) -> Audit:
    """Audit a released vector by the canaries that were added to it.

    Parameters
    ----------
    release
        Released vector in units of the canary norm, finite and not zero, floating-point, shape (d,). It may be
        memory-mapped, or in files (``open_release``), or the sums of its slices (``release_sums``). The unit matters to
        the estimate ``norm`` and to what is said of the noise.
    canaries
        The canaries, all of which took part. Beside ``OrthonormalCanaries`` other directions of their transform are
        scored too, all or at least 2²⁰: they are unobserved canaries, and the null is fitted to them.
    delta, confidence, claim, noise_multiplier, bounds, force
        As for ``audit``. With a noise multiplier the noise is tested by the sum of all canaries, which assumes that
        nothing else in the release depends on them. It is so in one round. In a model that was trained for several,
        others' updates may answer canaries: audit the rounds instead (``CanaryClients``).
    neighbours
        Those of the claim, ``"add-or-remove"`` by default. Canaries were only added: for ``"replace"`` the lower bound
        is valid and weak, and what is composed of the noise doubles the distance.
    advance
        Called now and then with the number of canaries scored since the last call, in one block of coordinates
        (``canaryproof.kernels.slices.blocks``).
    state
        File that keeps the sums after each block, for a release in files. A call that finds it resumes there.
    scoring
        How blocks are scored elsewhere: it is called with the name of a function and its tasks, pairs of a number and
        arguments, and gives pairs of a number and a result in any order. By default they are scored here.
    data_norm
        The most that others' data sum to in the release, in canary norms, if that is known: only then can the release
        show that the claimed noise is there.
    notice, ask
        As for ``audit``.

    Returns
    -------
    The audit, with the estimate ``norm`` last, and the release's dilution if the noise is given.

    Raises
    ------
    ValueError
        If an argument breaks a rule, or the release's size or the cosines' mean or deviation is beyond any that a run
        produces.
    InputError
        If a file of the release cannot be read, or ``state`` is of another one.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> canaries = cp.Canaries(seed=7, count=300, dim=10_000)
    >>> noise = np.random.default_rng(1).normal(0, 1.54, 10_000)
    >>> release = canaries.sum(np.arange(300)) + noise
    >>> found = cp.audit_release(release, canaries, delta=1e-6, noise_multiplier=1.54)
    >>> print(found.decision.outcome)
    PASSED
    """
    # These imports load compiled kernels, which an audit of scores does not need.
    from canaryproof.kernels.canaries import Canaries
    from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
    from canaryproof.verify.audit.answer import release_sums
    from canaryproof.verify.audit.files.stored_release import StoredRelease

    if not isinstance(canaries, Canaries | OrthonormalCanaries):
        raise ValueError(f"canaries: must be Canaries or OrthonormalCanaries, not {type(canaries).__name__}")
    names = rules.bounds(bounds, METHODS)
    scored = release_sums.scored_directions(canaries).count
    try:
        source = release if isinstance(release, release_sums.ReleaseSums) else release_sums.as_source(release)
        if source.dim != canaries.dim:
            raise ValueError(f"must have {canaries.dim:,} coordinates, as the canaries have, not {source.dim:,}")
        if isinstance(source, release_sums.ReleaseSums):
            sums = source
        else:
            sums = release_sums.all_sums(source, canaries, advance, scoring, None if state is None else Path(state))
        if len(sums.products.products) != scored:
            raise ValueError(f"must be sums of {scored:,} scores, not of {len(sums.products.products):,}")
        if sums.largest == 0.0:
            raise ValueError("the release must not be the zero vector")
    except InputError:
        raise
    except ValueError as error:
        raise ValueError(f"release: {error}") from error
    largest = sums.largest / sums.canary_norm
    if not _SMALLEST_COORDINATE <= largest <= _LARGEST_COORDINATE:
        raise ValueError(
            f"the release's largest coordinate must lie between {_SMALLEST_COORDINATE:g} and "
            f"{_LARGEST_COORDINATE:g} canary norms, not {largest:.3g}"
        )
    cosines, count = sums.cosines(), canaries.count
    if isinstance(canaries, OrthonormalCanaries):
        # Many canaries lengthen the release, so that the others' cosines are smaller than N(0, 1/d): none is given.
        scores = Scores(cosines[:count], cosines[count:])
    else:
        scores = Scores(cosines, dim=canaries.dim, inserted=1)
    traces = None
    if noise_multiplier is not None or getattr(claim, "noise_multiplier", None) is not None:
        traces = release_traces(*sums.trace(count), canaries.dim)
    stored = release if isinstance(release, StoredRelease) else None
    slices = (sums.slices, sums.canary_norm) if isinstance(release, release_sums.ReleaseSums) else None
    request = Request(
        *(claim, noise_multiplier, names, force, neighbours, canaries, sums.digest, stored, slices),
        data_norm=None if data_norm is None else _LENGTH.number("data_norm", data_norm),
        notice=_SHARE.number("notice", notice),
        ask=_check_questions(ask),
    )
    return _audit(scores, delta, confidence, request, sums, traces)


def release_traces(cosine: float, length: float, dim: int) -> "RoundTraces":
    """Return the trace of all canaries in one release: its cosine with their sum, and the sum's length."""
    # This import loads the law of traces, which an audit of scores does not need.
    from canaryproof.verify.audit.estimators.noise_multiplier import RoundTraces

    return RoundTraces(np.array([cosine]), np.array([length]), dim, residual=False, rounds=1)


def _audit(
    scores: Scores,
    delta: float,
    confidence: float,
    request: Request,
    release: "ReleaseSums | None",
    traces: "RoundTraces | None",
) -> Audit:
    claim, noise_multiplier, neighbours = request.claim, request.noise_multiplier, request.neighbours
    delta = rules.DELTA_OR_ZERO.number("delta", delta) and rules.DELTA.number("delta", delta)
    confidence = rules.CONFIDENCE.number("confidence", confidence)
    if not isinstance(request.force, bool):
        raise ValueError(f"force: must be True or False, not {request.force!r}")
    record = scores.record
    if delta == 0.0:
        pure = _pure_claim(claim, noise_multiplier)
        claimed, traces = None, None
    else:
        pure, claimed = None, None if claim is None else as_claim(claim, delta, neighbours)
        if claimed is not None and math.isinf(claimed.epsilon(delta)):
            raise ValueError(f"claim: must have a finite ε at δ = {delta:g}, and {claimed} has none")
    _check_mechanism(request, claimed)
    if noise_multiplier is not None:
        if scores.kind is ScoreKind.ANY and record is None:
            raise ValueError("noise_multiplier: is for cosines; give the claimed epsilon of other scores as claim")
        noise_multiplier = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
        if claimed is None and (release is not None or record is not None or scores.unobserved is None):
            taken = 1 if record is None else record.participations
            claimed = _configure(request, record) or gaussian(
                noise_multiplier, participations=taken, neighbours=neighbours or "add-or-remove"
            )
    elif claimed is not None and (record is not None or release is not None):
        noise_multiplier = claimed.noise_multiplier
    if record is not None and claimed is not None:
        _check_attacker(record, claimed, delta)
    configured = claimed
    if claimed is not None and claimed.statement is not None:
        configured = _configure(request, record, claimed.neighbours)
    mechanism = None
    if traces is not None:
        # Where later rounds depend on canaries, those that come back measure something else.
        all_traces = traces if record is None or is_carried_over(record) else record.all_traces or traces
        mechanism = MechanismTest(traces, all_traces.noise_multiplier(confidence), noise_multiplier, all_traces)
    try:
        moments = _moments(scores.observed, scores.unobserved, scores.dim)
    except ValueError:
        if scores.kind is not ScoreKind.ANY:
            raise
        # The order of other scores alone means something.
        scores = scores.by_rank()
        moments = _moments(scores.observed, scores.unobserved, scores.dim)
    release_norm = None if release is None else release.norm
    residual_norm = None if release is None else release.residual_norm(len(scores.observed))
    warnings = misuse(
        scores.observed,
        scores.unobserved,
        scores.dim,
        # Where canaries enter with either sign, no law of a cosine is known.
        kind=ScoreKind.ANY if scores.neighbours == "replace" else scores.kind,
        inclusion=scores.inclusion,
        delta=delta,
        confidence=confidence,
        noise_multiplier=noise_multiplier if record is None else None,
        release_norm=release_norm,
        residual_norm=residual_norm,
        zeros=0 if release is None else release.zeros,
        # In units of the canary norm, as the norm is.
        smallest=math.inf if release is None else release.smallest / release.canary_norm,
        near=0 if release is None else release.near,
        release_dim=None if release is None else release.dim,
        record=record,
        inserted=scores.inserted,
        is_sum=not request.is_difference,
    )
    meaningless = {Withheld.NOTHING} if request.force else {warning.withholds for warning in warnings}
    withheld = Withheld.ALL in meaningless
    result = Audit(
        scores=scores,
        request=request,
        delta=delta,
        confidence=confidence,
        claim=pure if claimed is None else claimed.epsilon(delta),
        claimed=claimed,
        configured=configured,
        recorded=configured,
        sampling_test=None,
        neighbours=scores.neighbours if claimed is None else claimed.neighbours,
        noise_multiplier=noise_multiplier,
        mechanism=mechanism,
        standardised_mean=float(moments.distance),
        deviation_ratio=float(moments.ratio),
        variance_p_value=float(epsilon_estimators.variance_p_value(moments)),
        normality=normality(scores.observed),
        shape=_shape(scores, release),
        null_law=_null_law(scores),
        release_norm=release_norm,
        residual_norm=residual_norm,
        warnings=warnings,
        withheld=withheld,
        estimates=(),
        bounds=(),
    )
    if record is not None:
        test = sampling_test(configured, record, result.side_level)
        sampled = test is not None and test.is_as_claimed(result.side_level, request.notice)
        mechanism_of_record = recorded_mechanism(configured, record, sampled=sampled)
        result = replace(result, sampling_test=test, recorded=mechanism_of_record)
    if withheld:
        return finish(result)
    # Coins that the numbers of scores refute prove no bound.
    inclusion = Inclusion.FIXED if any(warning.kind == "coin" for warning in warnings) else scores.inclusion
    estimates: tuple[EstimateRow, ...] = ()
    if Withheld.ESTIMATE not in meaningless and delta > 0.0 and not result.has_equal_scores:
        if scores.inserted is not None and scores.dim is not None:
            moments = from_release(_slopes(scores.observed, residual_norm), scores.dim, scores.inserted)
        residual = None if release is None or residual_norm is None else (residual_norm, release.dim)
        # Scores of a release without any noise have no finite moments.
        if math.isfinite(moments.distance) and math.isfinite(moments.ratio):
            estimates = _estimates(moments, residual, delta, confidence)
    composes = Withheld.ESTIMATE not in meaningless and not result.has_unequal_noise
    if record is not None and mechanism is not None and composes:
        composed = _compose(mechanism, record, result.recorded, delta)
        # It comes first where it is for the attacker who has these scores.
        first = record.score == _ATTACKERS["known rounds" if configured is None else configured.attacker]
        estimates = (composed, *estimates) if first else (*estimates, composed)
    bounds = _bounds(scores, inclusion, delta, 1.0 - result.level, request.bounds)
    if record is not None and not request.bounds and delta > 0.0:
        bounds = (
            *_bound_by_participations(scores, record, claimed, delta, result.level),
            *bounds,
            # A lower bound for an attacker who knows the rounds is none for the one of a claim that counts on sampling.
            *_composed_bound(
                mechanism, record, recorded_mechanism(configured, record, sampled=True), delta, result.level
            ),
        )
    return finish(replace(result, estimates=estimates, bounds=bounds))


def _configure(request: Request, record: RoundsRecord | None, neighbours: Neighbours | None = None) -> Claim | None:
    """Return the mechanism that the options state; None where they do not."""
    noise, relation = request.noise_multiplier, neighbours or request.neighbours or "add-or-remove"
    if noise is None:
        return None
    if record is None:
        return gaussian(noise, neighbours=relation)
    rounds = request.rounds or max(record.rounds + record.missing, 1)
    if request.rate is not None:
        return poisson(noise, rate=request.rate, rounds=rounds, neighbours=relation)
    taken = record.participations if request.participations is None else request.participations
    return gaussian(noise, participations=taken, rounds=max(rounds, taken), neighbours=relation)


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


def finish(result: Audit) -> Audit:
    """Judge an audit: its findings, and the decision."""
    findings = judge(result)
    if result.comparison is not None:
        findings = (*findings, result.comparison.finding)
    asked: tuple[Question, ...] = (Question.INPUT, Question.LEAK)
    if result.scores.record is not None:
        asked = (*asked, Question.SAMPLING, Question.ACCOUNTING)
    decision = decide(findings, result.request.ask or asked, _level_of(result), result.request.notice)
    if result.claim is None and decision.rule != RULES[0].name:
        return replace(result, findings=findings, decision=None)
    return replace(result, findings=findings, decision=decision)


def _level_of(result: Audit) -> float:
    """Return the level of all tests together, without the rounding of 1 − 0.95."""
    return float(f"{1.0 - result.confidence:.10g}")


def with_comparison(result: Audit, comparison: "Comparison | None") -> Audit:
    """Return an audit that is held against a plan, as one more finding."""
    return finish(replace(result, comparison=comparison))


def _pure_claim(claim: "float | Claim | DpEvent | None", noise_multiplier: float | None) -> float | None:
    """Return the claimed ε at δ = 0, where Gaussian noise has none."""
    if noise_multiplier is not None or not isinstance(claim, int | float | None):
        raise ValueError("delta: must be above 0 for a claim of Gaussian noise, which has no finite ε at 0")
    return None if claim is None else rules.CLAIM.number("claim", claim)


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
        assumes=f"Gaussian noise as measured, of {mechanism.traces.noise_source}, in rounds as recorded (canaryproof)",
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
    assumes = "Gaussian noise of one multiplier in all rounds, taken as recorded"
    # A bound proves nothing where the rounds refute its condition.
    coverage = Coverage.HEURISTIC if _is_no_single_gaussian(mechanism) else Coverage.PROVEN
    yield _uncapped_row(COMPOSED_BOUND, 3, epsilon, coverage, assumes)


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
        unknown = np.asarray(math.nan)
        return Moments(unknown, unknown, len(observed), math.inf if unobserved is None else len(unobserved))
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


def _slopes(cosines: NDArray[np.float64], residual_norm: float | None) -> NDArray[np.float64]:
    """Return canaries' components in units of what a release has without them, whose norm may be known."""
    if residual_norm:
        return products_with_rest(cosines, residual_norm) / residual_norm
    return np.asarray(cosines / np.sqrt(1.0 - cosines**2))


def _shape(scores: Scores, release: "ReleaseSums | None") -> ShapeTest:
    """Test the shape of scores; that of a release's cosines is known, as its canaries have one weight."""
    if release is not None:
        return ShapeTest(1.0, "")
    if _has_unequal_rounds(scores.record):
        return ShapeTest(0.0, "Canaries took part in unequal numbers of rounds.")
    scale = 1.0 / math.sqrt(scores.dim) if scores.kind is ScoreKind.COSINE and scores.dim is not None else None
    return shape(scores.observed, scores.unobserved, scale)


def _has_unequal_rounds(record: RoundsRecord | None) -> bool:
    """Tell whether observed canaries with a score of known rounds took part in unequal numbers of them."""
    return record is not None and record.counts is not None and bool(np.ptp(record.counts))


def _null_law(scores: Scores) -> GoodnessOfFit | None:
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
    # Losses of one model depend on each other in a way that no dimension makes vanish.
    dependent = scores.kind is ScoreKind.ANY and scores.record is None and inclusion is Inclusion.FIXED
    return tuple(_bound_row(bound, dependent=dependent) for bound in lower_bounds(sample, delta, confidence, names))


def _bound_row(bound: LowerBound, *, dependent: bool) -> AuditRow:
    limit = dependent and bound.coverage is Coverage.ASYMPTOTIC
    return AuditRow(
        name=bound.method,
        version=METHODS[bound.method].version,
        kind=str(bound.kind),
        epsilon=bound.value,
        low=bound.value,
        high=math.inf if bound.upper is None else bound.upper,
        coverage=str(Coverage.HEURISTIC if limit else bound.coverage),
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
        "canaries shift the mean and leave the variance (arXiv:2302.03098v1, Section 3)",
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


def _estimates(
    moments: Moments, residual: tuple[float, int] | None, delta: float, confidence: float
) -> tuple[EstimateRow, ...]:
    """Return all estimates from moments, and from the norm of a release without its canaries with the dimension."""
    try:
        rows = [
            _estimate_row(name, version, assumes, estimator(moments, delta, confidence), _fit(name, moments, delta))
            for name, version, estimator, assumes in _ESTIMATORS
        ]
    except ValueError as error:
        # With a few scores and a confidence near 1, the interval is wider than the kernels' domains.
        raise ValueError(f"observed: no estimate with this interval: {error}") from None
    if residual is not None:
        norm, dim = residual
        distance = math.sqrt(dim) / norm
        estimate = epsilon_estimators.norm_estimate_at(np.asarray(distance), dim, delta, confidence)
        rows.append(_estimate_row("norm", 2, _NORM_ASSUMES, estimate, ("pinned", (delta, distance))))
    return tuple(rows)


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
