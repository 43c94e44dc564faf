"""Findings of an audit: for each kind of input, which questions it can answer, and how.

Scores answer about their input, the accounting of the claim and the leak; a release also about its noise; scores with a
record of rounds about the noise of a training and how its rounds were drawn. A finding is *as claimed* where the audit
has the power to see otherwise, and no test objects.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy import special

from canaryproof.verify.audit.answer.findings import Finding, Quantity, Question, Status
from canaryproof.verify.audit.answer.misuse import (
    EACH_LEVEL,
    WEIGHED,
    Withheld,
    largest_noise,
    visible_norm,
)
from canaryproof.verify.audit.answer.recorded import has_larger_rate, holds, least_noise_share, mechanism_text
from canaryproof.verify.audit.bounds.lower_bound import Coverage
from canaryproof.verify.audit.files.reading import ScoreKind
from canaryproof.verify.audit.markup.digits import number, percent, plus_minus, round_down, round_to_error, round_up

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.misuse import MisuseWarning
    from canaryproof.verify.audit.answer.result import AuditResult

# Where every warning of ``misuse`` counts. These say that the input is not what it is said to be, …
WRONG_INPUT = frozenset(
    (
        *("not-cosines", "repeated", "shared", "order", "swapped", "sign", "narrow", "absent"),
        *("missing", "clusters", "wide", "units"),
    )
)
# … these that it may not be, …
DOUBTFUL_INPUT = frozenset(
    ("no-trace", "weak-trace", "null-law", "crowded", "bare", "zeros", "coarse-grid", "skipped-rounds")
)
# … this is the finding on noise, and these leave the tests their meaning and their power, which is computed.
NOISE_WARNINGS = frozenset(("less-noise", "dilution"))
NOTES = frozenset(
    (
        *("large-delta", "too-few", "coin", "carry-over", "missing-rounds"),
        *("correlated-rounds", "even-coordinates"),
    )
)

# Error of canaries' norm that may go unseen, half of it less some errors, and directions that make sure of it.
_MISSING_NORM, _ENOUGH_DIRECTIONS = 0.4, 60
# A trace is seen from this number of its standard errors on.
_SEEN = 3.0


def judge(result: "AuditResult") -> tuple[Finding, ...]:
    """Return the findings of an audit, one a question but for its plan."""
    judge_of = _RoundsJudge if result.scores.record is not None else _ScoresJudge
    judge_of = _ReleaseJudge if result.release_norm is not None else judge_of
    each = judge_of(result)
    first = each.input()
    rest = (each.noise, each.clipping, each.sampling, each.accounting, each.leak)
    if first.status is Status.FAILED and not result.request.force:
        # Nothing else is judged.
        unjudged = "the input is not what it is said to be"
        return (first, *(Finding(question, Status.NOT_LOOKED_AT, unjudged) for question in list(Question)[1:6]))
    return (first, *(find() for find in rest))


@dataclass(frozen=True)
class _ScoresJudge:
    """The judge of scores without a record."""

    result: "AuditResult"

    # The input.

    def input(self) -> Finding:
        """Judge whether the input is what it is said to be."""
        # Weight decay and momentum give the canaries of an honest difference of models other weights.
        weighed = WEIGHED if self.result.request.is_difference else frozenset()
        for warning in self.result.warnings:
            # Some warnings say that numbers mean nothing, or only that they may not.
            wrong = warning.kind in WRONG_INPUT or warning.withholds is Withheld.ALL
            if wrong and warning.kind not in weighed:
                return _of_warning(Question.INPUT, Status.FAILED, warning)
        for warning in self.result.warnings:
            if warning.kind in DOUBTFUL_INPUT | weighed:
                return _of_warning(Question.INPUT, Status.CANNOT_SAY, warning)
        return self._sound_input()

    def _sound_input(self) -> Finding:
        result = self.result
        noun = "cosines" if result.scores.kind is ScoreKind.COSINE else "scores"
        share = f"at most {result.input_level:g} of honest audits look wrong{result.input_condition}"
        because = f"nothing looks wrong with the {result.count:,} {noun} ({share})"
        return Finding(Question.INPUT, Status.AS_CLAIMED, because)

    # The mechanism.

    def noise(self) -> Finding:
        """Judge whether the claimed noise is there."""
        return Finding(
            Question.NOISE,
            Status.NOT_LOOKED_AT,
            "scores alone do not show it",
        )

    def clipping(self) -> Finding:
        """Judge whether every record was clipped."""
        shown = "the canaries do" if self.result.has_canaries else "scores alone do"
        return Finding(Question.CLIPPING, Status.NOT_LOOKED_AT, f"{shown} not show it; watching the training does")

    def sampling(self) -> Finding:
        """Judge whether rounds were drawn as claimed."""
        return Finding(Question.SAMPLING, Status.NOT_LOOKED_AT, "no rounds were recorded")

    def accounting(self) -> Finding:
        """Judge whether the recorded mechanism has the claimed ε."""
        result, mechanism = self.result, self.result.recorded
        if result.claim is None:
            return Finding(Question.ACCOUNTING, Status.NOT_LOOKED_AT, "nothing is claimed")
        if mechanism is None or not result.delta:
            return self._without_mechanism()
        epsilon = mechanism.epsilon(result.delta)
        # Nobody knows which accountant a bare number is of, however it is spelled.
        exact = result.claimed is not None and result.claimed.statement is None
        verdict = holds(mechanism, result.claim, result.delta, exact=exact)
        numbers = (Quantity("epsilon of the mechanism", _finite(epsilon), "nats"), _claim_quantity(result))
        of = mechanism_text(mechanism)
        words = f"ε = {number(epsilon)} follows from {of}"
        if verdict is None:
            reached = number(mechanism.attained_epsilon(result.delta))
            because = f"records reach ε = {reached} and at most {number(epsilon)} is proven, of {of}"
            return Finding(Question.ACCOUNTING, Status.CANNOT_SAY, because, numbers=numbers)
        if verdict:
            return Finding(Question.ACCOUNTING, Status.AS_CLAIMED, words, numbers=numbers)
        if self._has_open_mechanism:
            because = f"{words}; claimed {number(result.claim)}, which may count on sampling that is not stated"
            return Finding(Question.ACCOUNTING, Status.NOT_LOOKED_AT, because, do=f"Give {self._options}.")
        return Finding(
            Question.ACCOUNTING,
            Status.FAILED,
            f"{words}; claimed {number(result.claim)}",
            do=self._check_accounting,
            numbers=numbers,
        )

    _check_accounting = "Claim the ε that follows from the noise, or check the noise multiplier behind the claim."

    @property
    def _has_open_mechanism(self) -> bool:
        """Whether a mechanism was not stated in full, so that a larger ε says nothing."""
        return False

    def _without_mechanism(self) -> Finding:
        because = "the claim is an ε alone, without the noise behind it"
        return Finding(Question.ACCOUNTING, Status.NOT_LOOKED_AT, because, do=f"Give {self._options}.")

    _options = "the noise multiplier (--noise-multiplier)"

    # The leak.

    def leak(self) -> Finding:
        """Judge whether this attacker learns more than the claim allows."""
        result, claim = self.result, self.result.claim
        bound, estimate = result.bound, result.estimate
        if result.withheld and claim is not None:
            return Finding(Question.LEAK, Status.CANNOT_SAY, "no ε is stated for such an input")
        because = _leak_text(result)
        numbers = [
            *((Quantity("lower bound", bound.low, "nats"),) if bound is not None else ()),
            *((Quantity("estimate", _finite(estimate.epsilon), "nats"),) if estimate is not None else ()),
            *((_claim_quantity(result),) if claim is not None else ()),
        ]
        if claim is None:
            return Finding(Question.LEAK, Status.NOT_LOOKED_AT, because, numbers=tuple(numbers))
        share = result.noticed_share
        numbers.append(Quantity("share of the claimed noise that would have been noticed", share))
        noticed, do = _noise_share_text(result, share), ""
        p_value = result.claim_p_value
        if p_value is None:
            refuted = bound is not None and bound.low > claim and bound.coverage != Coverage.HEURISTIC
        else:
            refuted = p_value <= result.level
            numbers.append(Quantity("p-value of the claim", p_value))
        if refuted:
            do = "Check whether there was less noise, or less clipping, than claimed."
            return Finding(Question.LEAK, Status.FAILED, because, noticed, do, tuple(numbers))
        status = Status.CANNOT_SAY
        if bound is None:
            do = "Ask for a bound of known coverage: the default is one."
        elif bound.low > claim and p_value is not None:
            because = f"{because}; the bound is above the claim, but only the test of its curve decides"
            do = _more_scores(result)
        elif bound.low > claim:
            do = _COINS
        elif result.proven_bound is not None and result.proven_bound.low > claim:
            because = f"{because}; a proven bound is above the claim, but only the default bound decides"
            do = _more_scores(result)
        elif result.doubted_rounds:
            because = f"{because}; {result.doubted_rounds}"
            do = _WATCH_ROUNDS
        elif not result.has_trace:
            because = f"no trace is seen; {because}"
            do = _unseen_text(result)
        elif (share or 0.0) < result.request.notice:
            because = f"{because}; {_weak_text(result)}"
            do = _more_power(result)
        elif estimate is not None and estimate.low > claim:
            because = f"{because}; its interval is above the claim, but only the bound decides"
            do = _more_scores(result)
        elif bound.coverage == Coverage.HEURISTIC:
            do = _COINS
        else:
            status = Status.AS_CLAIMED
        return Finding(Question.LEAK, status, because, noticed, do, tuple(numbers))


class _ReleaseJudge(_ScoresJudge):
    """The judge of a released vector."""

    def _sound_input(self) -> Finding:
        result = self.result
        if result.trace_test is None:
            return super()._sound_input()
        norm, error, p_value = result.trace_test
        seen = f"norm {plus_minus(norm, error)}"
        numbers = (Quantity("norm of the canaries", norm, "canary norms"), Quantity("its standard error", error))
        noticed = f"canaries of a norm that is off by {visible_norm(error, result.null_count or 0):.2g}"
        if result.has_other_trace:
            because = f"the trace in this release is that of canaries of {seen}, not 1 (p = {p_value:.2g})"
            do = "Check how many canaries took part, and that the release is in units of the canary norm."
            return Finding(Question.INPUT, Status.CANNOT_SAY, because, noticed, do, numbers)
        if norm < _SEEN * error:
            because = f"the canaries' trace does not tell whether they are in this release ({seen})"
            do = "Take more canaries, and check the canary seed, the order of the coordinates and the file."
            return Finding(Question.INPUT, Status.CANNOT_SAY, because, noticed, do, numbers)
        few = result.null_count is not None and result.null_count < _ENOUGH_DIRECTIONS
        if few and result.unseen_norm >= _MISSING_NORM:
            because = (
                f"only {result.null_count:,} directions without a canary are left to compare with: canaries of half "
                "the norm, or half as many, might look the same"
            )
            do = f"Leave {_ENOUGH_DIRECTIONS} directions or more without a canary."
            return Finding(Question.INPUT, Status.CANNOT_SAY, because, noticed, do, numbers)
        because = f"the {result.count:,} canaries are in it, with norm {_norm_interval(norm, error)}, where 1 is right"
        return Finding(Question.INPUT, Status.AS_CLAIMED, because, noticed, numbers=numbers)

    def noise(self) -> Finding:
        """Judge whether the claimed noise is there, by the release's length and the canaries' trace."""
        result, claimed, residual = self.result, self.result.noise_multiplier, self.result.residual_norm
        if claimed is None or residual is None or result.mechanism is None:
            return Finding(
                Question.NOISE, Status.NOT_LOOKED_AT, "no noise multiplier is claimed", do=f"Give {self._options}."
            )
        dim = result.mechanism.traces.dim
        length, most = residual / math.sqrt(dim) / claimed, largest_noise(residual, dim)
        numbers = (Quantity("noise multiplier, at most", most), Quantity("noise multiplier, claimed", claimed))
        whole = not result.request.is_difference
        noticed = _noise_share_text(result, least_noise_share(claimed, dim, 0.0, EACH_LEVEL)) if whole else ""
        # A gate may have a smaller level than that of warnings.
        warning = _find(result, "less-noise")
        if whole and warning is not None and (warning.p_value or 0.0) < result.side_level:
            because = (
                f"without its canaries, the release is {length:.3g} times as long as its claimed noise, so that its "
                f"noise multiplier is at most {round_up(most, 3)}, claimed {claimed:.4g}"
            )
            do = (
                "Check that release and multiplier are in canary norms. Audit the change of a model, which weight "
                "decay shrinks, with --difference. Else noise is missing."
            )
            quantity = Quantity("p-value of the length", warning.p_value)
            return Finding(Question.NOISE, Status.FAILED, because, noticed, do, (*numbers, quantity))
        if result.is_refuted:
            return _refuted_noise(result, numbers)
        if result.request.data_norm is None or not whole:
            alone = " a difference of models may be shorter, and" if not whole else ""
            long = f"without its canaries, the release is {number(length)} times as long as its claimed noise"
            because = f"{long}, but{alone} others' data could stand in for missing noise"
            do = "" if not whole else "State the most that others' data can sum to (--data-norm), or audit the rounds."
            return Finding(Question.NOISE, Status.CANNOT_SAY, because, noticed, do, numbers)
        data = result.request.data_norm
        share = least_noise_share(claimed, dim, data, EACH_LEVEL)
        enough = share >= result.request.notice
        because = f"the release is not shorter than the claimed noise allows, with data of norm {number(data)} at most"
        do = "" if enough else "Audit a release with less data, or each round."
        status = Status.AS_CLAIMED if enough else Status.CANNOT_SAY
        return Finding(Question.NOISE, status, because, _noise_share_text(result, share), do, numbers)

    def sampling(self) -> Finding:
        """Say that one release has no rounds."""
        return Finding(Question.SAMPLING, Status.NOT_LOOKED_AT, "one release has no rounds")


class _RoundsJudge(_ScoresJudge):
    """The judge of scores with a record of rounds."""

    def noise(self) -> Finding:
        """Judge whether the claimed noise is in each round, by the canaries' trace."""
        result, mechanism = self.result, self.result.mechanism
        if mechanism is None or mechanism.claimed is None:
            because = "no round could be measured" if mechanism is None else "no noise multiplier is claimed"
            if mechanism is not None and result.has_no_common_noise:
                because = "the claimed rounds have no noise of one multiplier, which the canaries could be held against"
                return Finding(Question.NOISE, Status.CANNOT_SAY, because, do="Claim the least noise for all rounds.")
            return Finding(Question.NOISE, Status.NOT_LOOKED_AT, because, do=f"Give {self._options}.")
        measured, claimed = mechanism.measured, mechanism.claimed
        numbers = (
            Quantity("noise multiplier, measured", _finite(measured.value)),
            Quantity("noise multiplier, claimed", claimed),
            Quantity("p-value of the claimed noise", mechanism.p_value),
        )
        if result.is_refuted:
            return _refuted_noise(result, numbers)
        value, low, high = (
            round_to_error(each, measured.standard_error) for each in (measured.value, measured.low, measured.high)
        )
        share = mechanism.noticed_share(result.noise_level)
        words = (
            f"noise multiplier measured in {mechanism.rounds_text} as {value} ({low} to {high}), claimed {claimed:.4g}"
        )
        if mechanism.unmeasured_rounds:
            words = f"{words}; the noise of the others is not measured"
        if doubt := result.doubted_rounds:
            return Finding(Question.NOISE, Status.CANNOT_SAY, f"{words}; {doubt}", "", _WATCH_ROUNDS, numbers)
        if not mechanism.traces.residual:
            because = f"{words}; others' data are measured with it, and could stand in for missing noise"
            return Finding(Question.NOISE, Status.CANNOT_SAY, because, "", _WATCH_ROUNDS, numbers)
        if result.is_masked:
            share = math.sqrt(max(0.0, share**2 - result.masking_variance))
            because = (
                f"{words}; more noise than claimed was added, or others' data are left, or canaries are shorter than "
                "the clip norm, which would have hidden missing noise"
            )
            noticed = _noise_share_text(result, share)
            return Finding(Question.NOISE, Status.CANNOT_SAY, because, noticed, _MORE_NOISE, numbers)
        status = Status.AS_CLAIMED if share >= result.request.notice else Status.CANNOT_SAY
        do = "" if status is Status.AS_CLAIMED else "Take more canaries a round."
        return Finding(Question.NOISE, status, words, _noise_share_text(result, share), do, numbers)

    def sampling(self) -> Finding:
        """Judge whether canaries took part no more often than the claim says."""
        result, record, configured = self.result, self.result.scores.record, self.result.configured
        assert record is not None
        sampling = None if configured is None else configured.sampling
        is_stated, asked = not self._has_open_mechanism, result.request
        if configured is None or sampling is None or not (is_stated or asked.claim is None):
            because = "the claim does not say how rounds were drawn"
            return Finding(Question.SAMPLING, Status.NOT_LOOKED_AT, because, do=f"Give {self._options}.")
        most = Quantity("participations of a canary, at most", record.participations)
        if sampling.rate is None:
            claimed = configured.epochs or configured.participations or 0
            numbers = (most, Quantity("participations, claimed", claimed))
            words = f"no canary took part more than {_times(record.participations)}"
            words += ", which is taken as claimed" if not is_stated else f", claimed {_times(claimed)}"
            if record.participations <= claimed:
                return Finding(Question.SAMPLING, Status.AS_CLAIMED, words, numbers=numbers)
            because = f"a canary took part {_times(record.participations)}, claimed {_times(claimed)} at most"
            do = "Claim for as many participations as there were."
            return Finding(Question.SAMPLING, Status.FAILED, because, do=do, numbers=numbers)
        if has_larger_rate(record, sampling):
            drawn, claimed_rate = number(record.rate or 0.0), number(float(sampling.rate))
            because = f"the schedule draws a canary at rate {drawn}, claimed {claimed_rate}"
            return Finding(Question.SAMPLING, Status.FAILED, because, do=_CHECK_RATE, numbers=(most,))
        test = result.sampling_test
        if test is None:
            return Finding(Question.SAMPLING, Status.CANNOT_SAY, "the record does not say how often canaries took part")
        expected = test.members * test.rounds * test.rate
        tested = (
            most,
            Quantity("participations of all canaries", test.taken),
            Quantity("participations of all canaries, expected", expected),
            Quantity("p-value of the claimed rate", test.p_value),
        )
        words = (
            f"{test.members:,} canaries took part {test.taken:,} times in {test.rounds:,} rounds, where rate "
            f"{number(test.rate)} gives {number(expected)}"
        )
        noticed = "" if math.isinf(test.noticed_rate) else f"a rate of {number(test.noticed_rate)}"
        if test.p_value < result.side_level:
            return Finding(Question.SAMPLING, Status.FAILED, words, noticed, _CHECK_RATE, tested)
        if not test.has_power(result.request.notice):
            do = "Take more canaries: so few participations do not show the rate."
            return Finding(Question.SAMPLING, Status.CANNOT_SAY, words, noticed, do, tested)
        return Finding(Question.SAMPLING, Status.AS_CLAIMED, words, noticed, numbers=tested)

    _check_accounting = "Compute the claim from the rounds and the sampling that were recorded, or fix the training."
    _options = "the mechanism (--noise-multiplier with --rate and --rounds, or with --participations)"

    @property
    def _has_open_mechanism(self) -> bool:
        # Known rounds have the larger ε, and neither options nor the record state the sampling.
        asked, configured = self.result.request, self.result.configured
        claimed = None if asked.claim is None else self.result.claimed
        if configured is None or (claimed is not None and claimed.statement is None):
            return False
        return asked.participations is None and configured.rate is None


# Words that findings share.

_COINS = "In the next run let a fair coin decide for each record whether it takes part: then the bound is proven."
_CHECK_RATE = "Check the rate that the claim was computed from, and how batches are drawn."
_MORE_NOISE = (
    "Check that each canary has the clip norm, and that known= is the whole of the others' part. If they are right, "
    "claim the noise that was added."
)
_WATCH_ROUNDS = "Hand over the others' updates (known=), or watch the rounds with a self-test."


def _more_scores(result: "AuditResult") -> str:
    if result.has_canaries:
        return "Take more canaries in the next run: canaryproof plan says how many."
    # No number of scores decides by a bound that is unproven.
    is_proven = result.bound is None or result.bound.coverage != Coverage.HEURISTIC
    return "Take more scores of either kind in the next run." if is_proven else _COINS


def _of_warning(question: Question, status: Status, warning: "MisuseWarning") -> Finding:
    numbers = () if warning.p_value is None else (Quantity("p-value", warning.p_value),)
    return Finding(question, status, clause(warning.message), do=warning.what_to_do, numbers=numbers)


def clause(message: str) -> str:
    """Return a sentence as a clause."""
    first = message[:1] if message[1:2].isupper() else message[:1].lower()
    return first + message[1:].rstrip(".")


def _find(result: "AuditResult", kind: str) -> "MisuseWarning | None":
    return next((warning for warning in result.warnings if warning.kind == kind), None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _claim_quantity(result: "AuditResult") -> Quantity:
    return Quantity("epsilon, claimed", result.claim, "nats")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _refuted_noise(result: "AuditResult", numbers: tuple[Quantity, ...]) -> Finding:
    """Return the finding that the canaries' trace is larger than the claimed noise lets it be."""
    mechanism = result.mechanism
    assert mechanism is not None
    assert mechanism.claimed is not None
    measured = mechanism.measured
    value, low, high = (
        round_to_error(each, measured.standard_error) for each in (measured.value, measured.low, measured.high)
    )
    claimed = f"claimed {mechanism.claimed:.4g}"
    because = f"the canaries' trace is that of a noise multiplier of {value} ({low} to {high}), {claimed}"
    do = "Check the claimed multiplier and its unit, the clip norm; if they are right, noise is missing."
    noticed = _noise_share_text(result, mechanism.noticed_share(result.noise_level))
    return Finding(Question.NOISE, Status.FAILED, because, noticed, do, numbers)


def _norm_interval(norm: float, error: float) -> str:
    """Write the canaries' norm with its 95% interval; a norm is never below 0."""
    half = float(special.ndtri(0.975)) * error
    value, low, high = (round_to_error(each, error) for each in (norm, max(norm - half, 0.0), norm + half))
    return f"{value} (95%: {low} to {high})"


def _noise_share_text(result: "AuditResult", share: float | None) -> str:
    noise = "the claimed noise" if result.noise_multiplier is not None else "the noise that such an ε needs"
    # A share that is rounded up might not have been noticed.
    return f"{math.floor(100.0 * share)}% of {noise}" if share else ""


# A bound above this share of its cap says how many scores there were, more than what leaks.
_NEAR_CAP = 0.9


def _leak_text(result: "AuditResult") -> str:
    """State the bound, the claim and the estimate."""
    bound, estimate = result.bound, result.estimate
    if bound is None:
        parts = ["no lower bound of known coverage"]
    elif bound.low == 0.0:
        parts = ["no lower bound on ε above 0"]
    else:
        about = "" if bound.coverage == Coverage.PROVEN else "about "
        at = f"{about}{percent(1.0 - result.level)} confidence"
        at = "heuristic: unproven, so that it fails no claim" if bound.coverage == Coverage.HEURISTIC else at
        is_weak = result.claim is not None and bound.cap <= result.claim  # which names the cap
        if bound.low > _NEAR_CAP * bound.cap and not is_weak:
            at += f"; so many scores give at most {round_down(bound.cap)}"
        parts = [f"ε is at least {round_down(bound.low)} ({at}){bound.condition}"]
    if result.claim is not None:
        parts[0] += f", claimed {number(result.claim)}"
    proven = result.proven_bound
    # One that is far below the default's helps nobody here, and is in the table of details.
    if bound is not None and proven is not None and 0.0 < 0.5 * bound.low <= proven.low:
        parts.append(f"at least {round_down(proven.low)} proven, whatever the scores' dependence")
    if estimate is not None:
        value, low, high = (
            round_to_error(each, estimate.standard_error) for each in (estimate.epsilon, estimate.low, estimate.high)
        )
        parts.append(f"estimate {value} ({percent(result.confidence)}: {low} to {high}){estimate.condition}")
    elif withholding := next(
        (each for each in result.warnings if each.kind in NOTES and each.withholds is Withheld.ESTIMATE), None
    ):
        parts.append(f"no estimate, as {clause(withholding.message)}")
    elif result.is_contradicted:
        parts.append("no estimate, as the bound is above its interval")
    elif result.has_no_common_noise and result.mechanism is not None:
        parts.append("no estimate, as the claimed rounds have no Gaussian noise of one multiplier")
    if (p_value := result.claim_p_value) is not None:
        so_many = "so many coins are guessed right with a probability of at most"
        if p_value <= result.level:
            parts.insert(0, f"the claim is refuted: under it, {so_many} {round_up(p_value)}")
        else:
            parts.append(f"under the claim, {so_many} {round_up(p_value)}")
    if bound is not None and result.can_hide_copies:
        parts.append("each row counts as a record of its own, as equal scores may be ties or copies")
    return "; ".join(parts)


def _weak_text(result: "AuditResult") -> str:
    """Say why too little would have been noticed."""
    if result.is_masked:
        return "more than the claimed noise is seen, which would have hidden missing noise"
    bound, share = result.bound, result.noticed_share
    if bound is not None and result.claim is not None and bound.cap <= result.claim:
        return f"from so few scores this bound cannot be above {round_down(bound.cap)}"
    if share is None:
        return "how much missing noise it would have noticed is not known"
    left = f"{math.floor(100.0 * share)}% of it is left"
    asked = percent(result.request.notice)
    return f"missing noise would be noticed only where at most {left}; the gate asks that {asked} be noticed"


def _more_power(result: "AuditResult") -> str:
    if result.is_masked:
        if result.scores.record is not None:
            is_known = result.mechanism is not None and result.mechanism.traces.residual
            return _MORE_NOISE if is_known else _WATCH_ROUNDS
        return "Take others' data out of what is audited, or audit each round."
    return _more_scores(result)


def _unseen_text(result: "AuditResult") -> str:
    """Say what it may mean that nothing of the canaries is seen."""
    # Scores alone do not decide whether canaries are missing (see ``misuse``).
    if result.has_equal_means:
        return "Check whether each group was standardised alone: their means are equal to nine digits."
    if result.scores.kind is not ScoreKind.COSINE:
        return "Check who took part: ε may be near 0, or other data hide the trace, or the observed took no part."
    decides = "" if result.release_norm is not None else " An audit of the released vector decides it."
    why = "ε may be near 0, data may hide canaries, or they are not there"
    return f"Check seed, order of coordinates and file: {why}.{decides}"
