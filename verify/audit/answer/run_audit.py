"""Scores or a release in, an audit out."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim, Neighbours
from canaryproof.verify.audit.answer import text
from canaryproof.verify.audit.answer.findings import RULES, Question, decide
from canaryproof.verify.audit.answer.inputs import ScoresInput, null_law, read_input
from canaryproof.verify.audit.answer.judgement import judge
from canaryproof.verify.audit.answer.misuse import Withheld
from canaryproof.verify.audit.answer.recorded import checked_rounds
from canaryproof.verify.audit.answer.result import NOTICE, AuditResult, AuditRow, EstimateRow, Request
from canaryproof.verify.audit.answer.shape import normality
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import Inclusion
from canaryproof.verify.audit.canaries.scores import Scores, scores_of_release
from canaryproof.verify.audit.estimators import epsilon_estimators
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    import pandas as pd
    from dp_accounting import DpEvent
    from matplotlib.figure import Figure

    from canaryproof.verify.audit.answer.plan_comparison import Comparison
    from canaryproof.verify.audit.answer.release_sums import ReleaseSums, Scoring
    from canaryproof.verify.audit.answer.trade_off import TradeOffCurve
    from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
    from canaryproof.verify.audit.files.stored_release import StoredRelease


@set_module("canaryproof")
@dataclass(frozen=True, repr=False)
class Audit(AuditResult):
    """An audit of one run; ``print`` shows it in some 25 lines.

    Attributes
    ----------
    decision
        The decision on the claim: passed, not passed or cannot say; None if nothing is claimed.
    findings
        The answers that it is made of, one a question.
    estimate, bound
        The default estimate, and the lower bound that is held against a claim. Either may be None.
    estimates, bounds
        All of both, as rows.
    warnings, withheld
        What looks like a misuse, and whether the estimates are withheld for it.
    others
        Further numbers and tests, which ``details()`` prints.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> observed = cp.exact_law.cosines(1000, 10**6, 1.54, np.random.default_rng(0))
    >>> found = cp.audit(cp.Scores(observed, dim=10**6), delta=1e-6, claim=3.01)
    >>> estimate, bound = found.estimate.epsilon, found.bound.low
    >>> print(f"{found.decision.outcome}: {estimate:.2f}, at least {bound:.2f}")
    PASSED: 2.98, at least 1.23
    >>> len(found.to_frame())
    7
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
        """Return the audit as JSON, on one machine the same for the same input; infinite numbers are null."""
        # This import loads what writes reports, which a summary does without; so below.
        from canaryproof.verify.audit.answer import report
        from canaryproof.verify.audit.files import json_records

        return json_records.dump(report.numbers(self))

    def plot(self) -> "Figure":
        """Draw the scores, the estimate with its interval, the lower bound and the claim.

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
    tried: int = 1,
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
        Claimed standard deviation of the noise, in units of the canary norm, from 0.01 to 1e6: of a released vector,
        the noise in it; of recorded rounds, as in the scores of ``CanaryClients``, a round's. By default that of the
        claim.
    bounds
        Names in ``canaryproof.bounds.METHODS``; by default a few that serve these scores. Of those that
        you name, the first one that is not heuristic, proven ones before others, is held against the claim.
    force
        Whether to compute estimates and bounds even where a warning makes them meaningless.
    rate, rounds, participations
        For scores with a record: what else the claimed mechanism is, beside the noise multiplier. Either rounds were
        drawn by Poisson sampling at this rate, in so many rounds (by default those that were recorded), or a record
        takes part so often.
    notice
        Share of the claimed noise, in (0, 1), that must be noticed with probability 90% for leak and noise to be as
        claimed.
    ask
        Questions that must be answered as claimed for the claim to pass, of ``canaryproof.typing.Question``; by default
        input and leak, and of scores with a record also sampling and accounting.
    tried
        Number of scores that were tried on the same records, as of several attacks, directions, seeds or epochs, if
        these were chosen of them; 1 if they were declared before. Levels and intervals pay for all of them.

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
    neighbours: Neighbours | None = "replace" if scores.neighbours == "replace" else None
    request = Request(
        *(claim, noise_multiplier, names, force, neighbours),
        rate=None if rate is None else _RATE.number("rate", rate),
        rounds=checked_rounds("rounds", rounds),
        participations=checked_rounds("participations", participations),
        notice=rules.SHARE.number("notice", notice),
        ask=_check_questions(ask),
        tried=int(rules.TRIED.number("tried", tried)),
    )
    if scores.record is None and (rate, rounds, participations) != (None, None, None):
        raise ValueError("rate, rounds and participations: are for scores with a record of rounds")
    return _audit(read_input(scores, delta, confidence, request))


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
_SMALLEST_COORDINATE, _LARGEST_COORDINATE = 1e-12, 1e15
# As many independent canaries are scored before all, where there are more; this look adds nothing to a level.
_FIRST, _MANY, _SURELY = 1_000, 20_000, 1e-12


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
    difference: bool = False,
    notice: float = NOTICE,
    ask: Sequence[str] = (),
    tried: int = 1,
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
        scored too, all or at least 2²⁰: they are unobserved canaries, and the null is fitted to them. Of more than
        20,000 ``Canaries`` the first thousand are scored beforehand, unless the release is given by its sums. If these
        are not in it, the answer is theirs, unless ``force``.
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
    difference
        Whether the release is the difference of two models, as one that was opened with a base is anyhow. Weight decay
        makes it shorter than the noise that went into it, and its canaries too, so that its length is not tested.
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
    if canaries.count < 2:
        raise ValueError("canaries: an audit needs at least 2")
    names = rules.bounds(bounds, METHODS)
    is_scored = isinstance(release, release_sums.ReleaseSums)
    if isinstance(canaries, Canaries) and canaries.count > _MANY and not force and not is_scored:
        # A wrong seed is seen in a second, and a million scores take minutes.
        few = Canaries(canaries.seed, _FIRST, canaries.dim)
        first = audit_release(
            *(release, few, delta, confidence, claim, noise_multiplier, names),
            neighbours=neighbours,
            data_norm=data_norm,
            difference=difference,
            notice=notice,
            ask=ask,
            tried=tried,
        )
        absent = next((warning.p_value for warning in first.warnings if warning.kind == "absent"), None)
        if absent is not None and absent < _SURELY:
            return first
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
        scores = scores_of_release(cosines[:count], cosines[count:])
    else:
        scores = scores_of_release(cosines, dim=canaries.dim)
    stored = release if isinstance(release, StoredRelease) else None
    slices = (sums.slices, sums.canary_norm) if isinstance(release, release_sums.ReleaseSums) else None
    request = Request(
        *(claim, noise_multiplier, names, force, neighbours, canaries, sums.digest, stored, slices),
        data_norm=None if data_norm is None else _LENGTH.number("data_norm", data_norm),
        difference=difference,
        notice=rules.SHARE.number("notice", notice),
        ask=_check_questions(ask),
        tried=int(rules.TRIED.number("tried", tried)),
    )
    return _audit(read_input(scores, delta, confidence, request, sums))


def _audit(given: ScoresInput) -> Audit:
    """Audit an input of any kind."""
    request, delta = given.request, given.delta
    pure = _pure_claim(request.claim, request.noise_multiplier) if delta == 0.0 else None
    claimed = given.claim()
    noise_multiplier = given.noise_multiplier(claimed)
    # A bare number says nothing of its mechanism, which options may state.
    is_number = claimed is not None and claimed.statement is not None
    configured = given.mechanism(claimed.neighbours) if claimed is not None and is_number else claimed
    mechanism = given.mechanism_test(noise_multiplier)
    given, moments = given.moments()
    warnings, scores = given.warnings(noise_multiplier), given.scores
    meaningless = {Withheld.NOTHING} if request.force else {warning.withholds for warning in warnings}
    withheld = Withheld.ALL in meaningless
    result = Audit(
        scores=scores,
        request=request,
        delta=delta,
        confidence=given.confidence,
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
        shape=given.shape(),
        null_law=null_law(scores),
        release_norm=given.release_norm,
        residual_norm=given.residual_norm,
        warnings=warnings,
        withheld=withheld,
        estimates=(),
        bounds=(),
    )
    test, recorded = given.sampling(result)
    result = replace(result, sampling_test=test, recorded=recorded)
    if withheld:
        return finish(result)
    estimates: tuple[EstimateRow, ...] = ()
    if Withheld.ESTIMATE not in meaningless and delta > 0.0:
        estimates = given.estimates(result, moments)
    # Coins that the numbers of scores refute prove no bound.
    inclusion = Inclusion.FIXED if any(warning.kind == "coin" for warning in warnings) else scores.inclusion
    return finish(replace(result, estimates=estimates, bounds=given.bounds(result, inclusion)))


def finish(result: Audit) -> Audit:
    """Judge an audit: its findings, and the decision."""
    findings = judge(result)
    if result.comparison is not None:
        findings = (*findings, result.comparison.finding)
    asked = result.request.ask or result.usual_questions
    decision = decide(findings, asked, _level_of(result), result.request.notice)
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
