"""Findings of a watch, and the decision: made of its record alone.

A finding is *as claimed* where the watch has the power to see otherwise, and nothing objects. ε is computed again from
what was recorded: the noise multiplier as the accountant reads it, the steps that were taken, and the sampler's own
rate. Sizes that were drawn take that rate's place only where the test of them failed, as those of an honest
training vary.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim, batch_size, from_event, gaussian, poisson
from canaryproof.verify.audit.answer.findings import Finding, Quantity, Question, Status
from canaryproof.verify.audit.answer.instruments import LEVEL
from canaryproof.verify.audit.markup.digits import number, round_up
from canaryproof.verify.audit.watch.watch_record import (
    LookTest,
    Phase,
    WatchRecord,
    is_replaced,
    most_participations,
    poisson_rate,
)

ASKED = (Question.NOISE, Question.CLIPPING, Question.SAMPLING, Question.ACCOUNTING, Question.LEAK)
# Share of the claimed noise that must be noticed, and error of a rate.
NOTICE, WRONG_RATE = 0.9, 0.2
# ε of another accountant may be smaller by so much of itself, and by so much: PRV's own error.
_RELATIVE, _ABSOLUTE = 0.01, 0.01
_ROUNDED = 1e-9
# Noise may fall short by the tolerance of its tests. Its upper limit is one more, of all parts of a training together.
_LEAST = 0.99
# A member that is longer than the clip norm enters with all of it. Where it takes another one's place, the sum may
# change by less, if both point the same way.
_CLIPPED = 0.5


def findings_of(record: WatchRecord, pinned: float | None = None) -> tuple[Finding, ...]:
    """Return the findings, one a question; ε is also held against one that somebody else than the training claims."""
    judge = _Judge(record, pinned)
    findings = (judge.noise(), judge.clipping(), judge.sampling(), judge.accounting(), judge.leak())
    return tuple(judge.with_open_parts(judge.with_alarm(finding)) for finding in findings)


@dataclass(frozen=True)
class _Judge:
    record: WatchRecord
    pinned: float | None = None

    # These look for exact checks and tests that failed.

    def _failure(self, question: Question, do: str) -> Finding | None:
        """Return the finding of an exact check that failed, or else of a test."""
        observed = self._observation(question, Status.FAILED)
        if observed is not None:
            return observed
        wrong = [result for result in self.record.results if result.question is question and _has_failed(result)]
        if not wrong:
            return None
        worst = _cause(wrong)
        others = len(wrong) - 1
        also = f" ({others} other test{'' if others == 1 else 's'} failed too)" if others else ""
        because = f"{_clause(worst.observed)}, in the {_steps(worst.step)} looked at{also}"
        numbers = tuple(Quantity(f"p-value of {result.name}", result.p_value) for result in wrong)
        return Finding(question, Status.FAILED, because, worst.noticed, do, numbers)

    def _observation(self, question: Question, status: Status) -> Finding | None:
        """Return the finding of the first observation with a status."""
        for seen in self.record.observations:
            if seen.question is question and seen.status is status:
                return Finding(question, status, seen.because, do=seen.do)
        return None

    def with_alarm(self, finding: Finding) -> Finding:
        """Return a finding that stays failed where it was when a training asked."""
        for alarm in self.record.alarms:
            if alarm.question is finding.question and finding.status is not Status.FAILED:
                because = f"{alarm.because} (at the look after {_steps(alarm.step)}, where it had failed)"
                return replace(finding, status=Status.FAILED, because=because, do=alarm.do)
        return finding

    def with_open_parts(self, finding: Finding) -> Finding:
        """Return a finding that says as well which part of its question was not looked at."""
        parts = [
            seen
            for seen in self.record.observations
            if (seen.question, seen.status) == (finding.question, Status.NOT_LOOKED_AT)
        ]
        if not parts or finding.status is not Status.AS_CLAIMED:
            return finding
        because = f"{finding.because}; not looked at: {', '.join(seen.because for seen in parts)}"
        return replace(finding, because=because, do=" ".join(dict.fromkeys(seen.do for seen in parts if seen.do)))

    def _partial(self, question: Question, steps: int, do: str) -> Finding | None:
        """Return the finding on a question on which not every step was handed over."""
        if steps >= self.record.looked:
            return None
        because = f"{steps:,} of {_steps(self.record.looked)} alone were handed over"
        return Finding(question, Status.CANNOT_SAY, because, do=do)

    # Noise.

    def noise(self) -> Finding:
        """Judge whether the noise is there that the accountant counts on."""
        failed = self._failure(Question.NOISE, _CHECK_NOISE)
        open_question = self._observation(Question.NOISE, Status.CANNOT_SAY)
        noise = self.record.noise
        if failed or open_question:
            return failed or open_question  # type: ignore[return-value]
        if noise is None:
            because = "no step's clipped sum and release were handed over"
            return Finding(Question.NOISE, Status.NOT_LOOKED_AT, because, do="Give release, total and clip_norm.")
        error = noise.share / math.sqrt(2.0 * noise.steps * noise.dim)
        where = f"{_steps(noise.steps)} of {noise.dim:,} numbers"
        words = f"{noise.share:.5g} ± {error:.1g} of the claimed deviation, in {where}"
        numbers = (
            Quantity("noise, measured", noise.share, "claimed deviations"),
            Quantity("steps", noise.steps),
            Quantity("coordinates", noise.dim),
        )
        noticed = f"{math.floor(100.0 * noise.noticed)}% of the claimed noise"
        if noise.high < _LEAST:
            because = f"{words}, and at most {round_up(noise.high, 4)} of it"
            return Finding(Question.NOISE, Status.FAILED, because, noticed, _CHECK_NOISE, numbers)
        partial = self._partial(Question.NOISE, noise.steps, "Give release, total and clip_norm in each step.")
        if partial is not None:
            return replace(partial, because=f"{partial.because}; {words}", numbers=numbers)
        if noise.noticed < NOTICE:
            because = f"{words}; noise of {100 * NOTICE:.0f}% of it would not be noticed"
            return Finding(Question.NOISE, Status.CANNOT_SAY, because, noticed, _MORE_STEPS, numbers)
        return Finding(Question.NOISE, Status.AS_CLAIMED, words, noticed, numbers=numbers)

    # Clipping.

    def clipping(self) -> Finding:
        """Judge whether every example was clipped."""
        seen, replaced = self.record.clipping, is_replaced(self.record.claim)
        act = "another member" if replaced else "one member more"
        worst = seen.worst
        numbers = (
            Quantity("runs with a shadow member", seen.trials),
            *(() if worst is None else (Quantity("largest change by one", _finite(worst.change), "clip norms"),)),
            Quantity("sums made again", seen.sums),
            Quantity("gradients longer than the clip norm", seen.long),
            Quantity("longest gradient", _finite(seen.longest), "clip norms"),
        )
        if worst is not None and worst.is_excessive:
            changes = (
                f"changes the clipped sum by {_norms(worst.change)}"
                if math.isfinite(worst.change)
                else "makes the clipped sum not finite"
            )
            most = "two" if replaced else "one"
            because = f"{act} {changes}, where {most} is the most (step {worst.step}; {worst.member})"
            return Finding(Question.CLIPPING, Status.FAILED, because, do=_CHECK_CLIPPING, numbers=numbers)
        for status in (Status.FAILED, Status.CANNOT_SAY):
            observed = self._observation(Question.CLIPPING, status)
            if observed is not None and worst is not None and status is Status.CANNOT_SAY:
                most = f"{act} changes it by at most {_norms(worst.change)} in {seen.trials} runs"
                return replace(observed, because=f"{observed.because}; {most}", numbers=numbers)
            if observed is not None:
                return observed
        if not seen.trials and not seen.sums:
            because = "neither the examples' gradients nor the clipping were handed over"
            return Finding(Question.CLIPPING, Status.NOT_LOOKED_AT, because, do="Give gradients, total and clip_norm.")
        words = []
        if seen.trials and worst is not None:
            runs = f"{seen.trials} runs of the clipping"
            words.append(f"{act} changes the clipped sum by at most {_norms(worst.change)} in {runs}")
        if seen.sums:
            long = f"{seen.long:,} of {seen.gradients:,} gradients were longer than the clip norm"
            words.append(f"the sum is the same when made again in {_steps(seen.sums)}, where {long}")
        if seen.alone:
            examples = "1 example has" if seen.alone == 1 else f"{seen.alone:,} examples have"
            words.append(f"alone, {examples} the same gradients")
        because = "; ".join(words)
        due = self.record.looked.bit_length()
        if seen.looks is None:
            of_file = "the file is of an earlier version, and does not say at which looks the clipping was handed over"
            because = f"{of_file}; {because}"
            return Finding(Question.CLIPPING, Status.CANNOT_SAY, because, do="Watch again.", numbers=numbers)
        if seen.looks < due:
            because = f"the clipping was handed over at {seen.looks} of {due} looks, and not at the others; {because}"
            do = "Hand the clipping over in each step."
            return Finding(Question.CLIPPING, Status.CANNOT_SAY, because, do=do, numbers=numbers)
        if worst is not None and worst.change < _CLIPPED:
            because += ": no member had to be clipped"
            do = "Run it with members that are longer than the clip norm, or watch steps with longer gradients."
            return Finding(Question.CLIPPING, Status.CANNOT_SAY, because, do=do, numbers=numbers)
        if worst is None and not seen.long:
            because += ", so that nothing had to be clipped"
            do = "Hand the clipping over (watch.clipping), or watch steps with longer gradients."
            return Finding(Question.CLIPPING, Status.CANNOT_SAY, because, do=do, numbers=numbers)
        noticed = ""
        if worst is not None:
            noticed = f"a member that changes the sum by {math.ceil(100.0 * worst.limit) / 100.0:g} clip norms"
        return Finding(Question.CLIPPING, Status.AS_CLAIMED, because, noticed, numbers=numbers)

    # Sampling.

    def sampling(self) -> Finding:
        """Judge whether members were drawn as claimed."""
        seen, claim = self.record.sampling, self.record.claim
        failed = self._failure(Question.SAMPLING, "Check the claimed rate, and how batches are drawn.")
        if failed:
            return failed
        if seen is None:
            observed = self._observation(Question.SAMPLING, Status.CANNOT_SAY)
            because = "no step's members were handed over"
            return observed or Finding(Question.SAMPLING, Status.NOT_LOOKED_AT, because, do="Give drawn, and members.")
        numbers = (
            Quantity("members of a step, in the mean", seen.mean),
            Quantity("rate", seen.rate),
            Quantity("members", seen.members),
            Quantity("steps of one member, at most", seen.most),
        )
        open_question = self._observation(Question.SAMPLING, Status.CANNOT_SAY)
        open_question = open_question or self._partial(Question.SAMPLING, seen.steps, "Give drawn in each step.")
        allowed = None if claim is None else most_participations(claim, self.record.steps)
        if allowed is not None:
            words = f"no member took part in more than {_steps(seen.most)}, claimed {allowed:,}"
            if seen.most > allowed:
                because = f"a member took part in {_steps(seen.most)}, claimed {allowed:,} at most"
                do = "Claim for as many participations as there were."
                return Finding(Question.SAMPLING, Status.FAILED, because, do=do, numbers=numbers)
            return open_question or Finding(Question.SAMPLING, Status.AS_CLAIMED, words, numbers=numbers)
        batch = None if claim is None else batch_size(claim)
        if batch is not None and seen.largest > batch:
            because = f"a step has {seen.largest:,} members, claimed {batch:,}"
            do = "Claim for batches as large as there were."
            return Finding(Question.SAMPLING, Status.FAILED, because, do=do, numbers=numbers)
        if open_question is not None:
            return open_question
        if batch is not None:
            because = f"a step has {seen.largest:,} members at most, claimed {batch:,}, but who they are is not tested"
            do = "Nothing, if they are drawn anew in each step, without replacement; a watch tests Poisson sampling."
            return Finding(Question.SAMPLING, Status.CANNOT_SAY, because, do=do, numbers=numbers)
        if seen.rate is None:
            because = "no rate is claimed, and the sampler's is not known"
            return Finding(Question.SAMPLING, Status.CANNOT_SAY, because, do="Claim a mechanism with its rate.")
        if seen.rate >= 1.0:
            because = "every member may take part in every step, so that nothing is counted on"
            return Finding(Question.SAMPLING, Status.AS_CLAIMED, because, numbers=numbers)
        if seen.wrong_rate is None:
            because = "how many members the training has was not said"
            return Finding(Question.SAMPLING, Status.CANNOT_SAY, because, do="Give members to the watch.")
        expected = seen.rate * seen.members
        words = (
            f"{seen.mean:.5g} members a step in the mean, claimed {expected:.5g}, in {_steps(seen.steps)} of "
            f"{seen.members:,} members"
        )
        wrong = f"a rate that is wrong by {number(100.0 * seen.wrong_rate, 2)}%"
        noticed = wrong if math.isfinite(seen.wrong_rate) else ""
        if seen.wrong_rate > WRONG_RATE:
            because = f"{words}; a rate that is wrong by {100 * WRONG_RATE:.0f}% would not be noticed"
            return Finding(Question.SAMPLING, Status.CANNOT_SAY, because, noticed, _MORE_STEPS, numbers)
        return Finding(Question.SAMPLING, Status.AS_CLAIMED, words, noticed, numbers=numbers)

    # Accounting.

    @cached_property
    def _rate(self) -> float | None:
        """The rate that members were drawn with: that of their numbers, if a test of these failed."""
        seen, record = self.record.sampling, self.record
        rates = [phase.rate for phase in record.phases if phase.rate is not None]
        claimed = None if record.claim is None else poisson_rate(record.claim)
        rate = rates[0] if rates else claimed
        failed = any(result.name == "batch size" and _has_failed(result) for result in record.results)
        if failed and seen is not None and rate is not None:
            return min(1.0, max(rate, seen.mean / seen.members))
        return rate

    @cached_property
    def _participations(self) -> int | None:
        """The most steps in which one member took part; by the claim where not all steps have a record of members."""
        record = self.record
        seen, claim = record.sampling, record.claim
        is_whole = seen is not None and seen.steps == record.looked
        is_whole = is_whole and self._observation(Question.SAMPLING, Status.CANNOT_SAY) is None
        claimed = None if claim is None else most_participations(claim, record.steps)
        counts = ([] if seen is None else [seen.most]) + ([] if is_whole or claimed is None else [claimed])
        return max(1, *counts) if is_whole or claimed is not None else None

    @property
    def _is_bound(self) -> bool:
        """Whether nothing says how members are drawn, so that ε is not that of the mechanism, and at most so large."""
        claim = self.record.claim
        known = claim is not None and (batch_size(claim) or most_participations(claim, self.record.steps))
        return self._rate is None and not known

    def _mechanism(self, factor: float) -> Claim | None:
        """Return the recorded steps with so much of their noise; None if the noise is next to nothing."""
        record, claim, rate = self.record, self.record.claim, self._rate
        phases = [Phase(phase.noise_multiplier * factor, rate, phase.steps) for phase in record.phases]
        if any(phase.noise_multiplier not in rules.NOISE_MULTIPLIER for phase in phases):
            return None
        if len(phases) > 1:
            return _composition(list(_events(phases)), record)
        ((sigma, steps),) = [(phase.noise_multiplier, phase.steps) for phase in phases]
        if rate is not None:
            return poisson(sigma, rate=rate, rounds=steps, neighbours=record.neighbours)
        if claim is not None and batch_size(claim) is not None:
            return claim.with_noise_multiplier(sigma).with_rounds(steps)
        taken = steps if self._participations is None else min(steps, self._participations)
        return gaussian(sigma, participations=taken, rounds=steps, neighbours=record.neighbours)

    def _epsilon(self, factor: float = 1.0) -> float:
        """Return ε of the steps so far, with so much of the recorded noise; infinite without noise."""
        mechanism = self._mechanism(factor)
        return math.inf if mechanism is None else mechanism.epsilon(self.record.delta)

    @cached_property
    def _numbers(self) -> tuple[tuple[str, float, float], ...]:
        """Numbers that ε is held against: the name, the number, and the largest ε that it allows."""
        record, delta = self.record, self.record.delta
        given, claimed = [], "claimed"
        if self.pinned is not None:
            given.append((claimed, self.pinned, _other(self.pinned)))
            claimed = "claimed by the record"
        if record.claim is not None:
            epsilon = record.claim.epsilon(delta)
            given.append((claimed, epsilon, epsilon * (1.0 + _ROUNDED)))
        if record.stated is not None:
            given.append((claimed, record.stated, _other(record.stated)))
        if record.accountant is not None:
            given.append(("by the accountant", record.accountant, _other(record.accountant)))
        return tuple(given)

    def accounting(self) -> Finding:
        """Judge whether the recorded mechanism has the claimed ε."""
        record = self.record
        if sum(phase.steps for phase in record.phases) != record.steps or not record.steps:
            because = "the noise multiplier of each step is not known" if record.steps else "no step was taken"
            return Finding(Question.ACCOUNTING, Status.NOT_LOOKED_AT, because, do="Give noise_multiplier, or a claim.")
        epsilon = self._epsilon()
        sigmas = sorted({phase.noise_multiplier for phase in record.phases})
        sigma = f"{sigmas[0]:.4g}" if len(sigmas) == 1 else f"{sigmas[0]:.4g} to {sigmas[-1]:.4g}"
        at = "" if self._rate is None else f", rate {self._rate:.4g}"
        taken = _steps(record.steps)
        claimed_steps = None if record.claim is None else record.claim.rounds
        if claimed_steps is not None and claimed_steps != record.steps:
            taken = f"{taken} ({claimed_steps:,} claimed)"
        words = f"ε = {number(epsilon, 4)} by noise multiplier {sigma}{at} and {taken}"
        against = "; ".join(f"{number(value, 4)} {name}" for name, value, _ in self._numbers) or "as configured"
        numbers = (
            Quantity("epsilon of what was recorded", _finite(epsilon), "nats"),
            *(Quantity(f"epsilon, {name}", _finite(value), "nats") for name, value, _ in self._numbers),
        )
        because = f"{words}; {against}"
        observed = self._observation(Question.ACCOUNTING, Status.CANNOT_SAY)
        if any(epsilon > most for _, _, most in self._numbers):
            do = "Compute the claim from the steps, the rate and the noise that were recorded, or fix the training."
            if self._is_bound:
                return Finding(
                    Question.ACCOUNTING, Status.CANNOT_SAY, _without_sampling(because), do=_GIVE_RATE, numbers=numbers
                )
            return Finding(Question.ACCOUNTING, Status.FAILED, because, do=do, numbers=numbers)
        return observed or Finding(Question.ACCOUNTING, Status.AS_CLAIMED, because, numbers=numbers)

    # The leak.

    def leak(self) -> Finding:
        """Judge whether one who knows all others' data learns more than the claim allows, by the noise measured."""
        finding = self._leak_by_noise()
        seen = self.record.attackers
        if not seen:
            return finding
        shown = (
            f"{number(each.epsilon)} ({number(each.low)} to {number(each.high)}) by {each.attacker}" for each in seen
        )
        because = f"{finding.because}; an attacker who sees less has ε̂ = {' and '.join(shown)}"
        numbers = tuple(Quantity(f"epsilon by {each.attacker}", _finite(each.epsilon), "nats") for each in seen)
        return replace(finding, because=because, numbers=finding.numbers + numbers)

    def _leak_by_noise(self) -> Finding:
        noise, record = self.record.noise, self.record
        observed = self._observation(Question.LEAK, Status.FAILED)
        if observed is not None:
            return observed
        if noise is None or not record.phases:
            return Finding(Question.LEAK, Status.NOT_LOOKED_AT, "the noise of no step was measured")
        # An exact claim is above ε at the lower limit of the noise in every honest training.
        least, estimate = self._epsilon(noise.high), self._epsilon(noise.share)
        given = self._numbers or (("as configured", self._epsilon(), _other(self._epsilon())),)
        against = "; ".join(f"{number(value, 4)} {name}" for name, value, _ in given)
        because = f"by the noise measured ε is {number(estimate)}, and at least {number(least)}; {against}"
        numbers = (
            Quantity("epsilon by the measured noise", _finite(estimate), "nats"),
            Quantity("epsilon by the noise's upper limit", _finite(least), "nats"),
        )
        if any(least > max(most, _other(value)) for _, value, most in given):
            do = "Check the noise, the rate and the number of steps."
            if self._is_bound:
                because = _without_sampling(because)
                return Finding(Question.LEAK, Status.CANNOT_SAY, because, do=_GIVE_RATE, numbers=numbers)
            return Finding(Question.LEAK, Status.FAILED, because, do=do, numbers=numbers)
        observed = self._observation(Question.LEAK, Status.CANNOT_SAY)
        return observed or Finding(Question.LEAK, Status.AS_CLAIMED, because, numbers=numbers)


def _events(phases: list[Phase]) -> Iterator[tuple[object, int]]:
    import dp_accounting

    for phase in phases:
        event: dp_accounting.DpEvent = dp_accounting.GaussianDpEvent(phase.noise_multiplier)
        if phase.rate is not None:
            event = dp_accounting.PoissonSampledDpEvent(phase.rate, event)
        yield event, phase.steps


def _composition(events: list[tuple[object, int]], record: WatchRecord) -> Claim:
    import dp_accounting

    parts = [dp_accounting.SelfComposedDpEvent(event, steps) for event, steps in events]
    return from_event(dp_accounting.ComposedDpEvent(parts), neighbours=record.neighbours)


def _has_failed(result: LookTest) -> bool:
    return result.p_value is not None and result.p_value <= LEVEL


# Tests in the order in which they name a cause: the first one that failed names it.
_ORDER = (
    *("noise", "noise by layer", "noise by round"),
    *("repeats between rounds", "span", "repeats within a round", "values"),
    *("batch size", "returns", "participations"),
)


def _cause(wrong: list[LookTest]) -> LookTest:
    named = [result for name in _ORDER for result in wrong if result.name == name]
    return (named or wrong)[0]


def _clause(sentence: str) -> str:
    first = sentence[:1] if sentence[1:2].isupper() else sentence[:1].lower()
    return first + sentence[1:].rstrip(".")


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


def _norms(count: float) -> str:
    shown = number(count, 4)
    return f"{shown} clip norm{'' if shown == '1' else 's'}"


def _other(epsilon: float) -> float:
    """Return the largest ε that another accountant's number allows."""
    return epsilon * (1.0 + _RELATIVE) + _ABSOLUTE


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _without_sampling(because: str) -> str:
    return f"{because}; how members are drawn is not known, and ε is that of members who are not drawn by chance"


_GIVE_RATE = "Give the rate to the watch, or claim a mechanism."
_MORE_STEPS = "Watch more steps."
_CHECK_NOISE = "Check the noise multiplier and what adds the noise."
_CHECK_CLIPPING = "Check the clipping, before the gradients are summed."
