"""The core of a watch: it takes what passes by in each step of a training, by whatever adapter or loop hands it over.

It keeps counts and sums. Exact checks are made in each step. Statistical tests are made at looks, after the steps 1, 2,
4, … and at the end, so that their levels can be summed; each look costs as much as all those before it.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import Array, Ints, floating, is_of, precision, slices, two_norm
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import checked_path, short_repr, shorten
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.answer.instruments import (
    LEVEL,
    MEMBERS,
    InstrumentTest,
    ResidualTests,
    SamplingTests,
    each_once,
    least_wrong_rate,
    upper_limit,
)
from canaryproof.verify.audit.canaries.inserted_canaries import InsertedCanaries
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import replace_file
from canaryproof.verify.audit.watch.shadow_members import (
    ClippedParts,
    ClippedSum,
    Parts,
    change_and_limit,
    row_count,
    shadow_trials,
)
from canaryproof.verify.audit.watch.watch_answer import WatchAnswer, answer_of
from canaryproof.verify.audit.watch.watch_record import (
    SCHEMA,
    AttackerEstimate,
    ClippingRecord,
    LookTest,
    NoiseRecord,
    Observation,
    Phase,
    SamplingRecord,
    ShadowTrial,
    WatchRecord,
    is_replaced,
    most_participations,
    poisson_rate,
    read_record,
    to_file,
)

# The clipped sum is made again in every so many steps, and after a step in which it was apart.
_EVERY = 10
# A sum that is made again may be off by so much of the clip norm an example, and its format's rounding besides.
_APART = 1e-4
# A change by a shadow member is larger than another one if it is so many times as large.
_WORSE = 1.001
# A sum of n clipped gradients may exceed n clip norms by this share and its format's rounding.
_LONGER = 1e-3
_POSITIVE = rules.NumberRange("be positive and finite", 0.0, math.inf, open=True)
_NOT_NEGATIVE = rules.NumberRange("be finite and not negative", 0.0, math.nextafter(math.inf, 0.0))
_RATE = rules.NumberRange("lie in (0, 1]", math.ulp(0.0), 1.0)


@set_module("canaryproof.typing")
class Watch:
    """A watch over the steps of a training. ``canaryproof.watch`` makes one.

    Parameters
    ----------
    delta
        δ of the claim.
    claim
        What is claimed: a ``Claim``, an ε, or None for what the training is configured to do.
    members
        Number of members of the training; None if it is not known.
    rate
        Rate at which the sampler draws each member into a step; None if it is not known.
    divisor
        What the noised sum is divided by before it is released.
    layers
        Sizes of the parameters by their names; None if all are one part.

    Attributes
    ----------
    claim
        The claimed mechanism; None where an ε alone is claimed, which is about one member more or less, or nothing.
    steps
        Number of steps so far.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """

    def __init__(
        self,
        *,
        delta: float,
        claim: Claim | float | None = None,
        members: int | None = None,
        rate: float | None = None,
        divisor: float = 1.0,
        layers: dict[str, int] | None = None,
    ) -> None:
        self.delta = float(rules.DELTA.number("delta", delta))
        self.claim = claim if isinstance(claim, Claim) else None
        self._stated = None if claim is None or self.claim else rules.CLAIM.number("claim", claim)
        self._members = None if members is None else int(MEMBERS.number("members", members))
        self._rate = None if rate is None else _RATE.number("rate", rate)
        self.divisor = _POSITIVE.number("divisor", divisor)
        self._layers = layers
        self._neighbours = self.claim.neighbours if self.claim else "add-or-remove"
        # The claim's rate is tested, where it has one.
        claimed_rate = None if self.claim is None else poisson_rate(self.claim)
        self._claimed_rate = self._rate if claimed_rate is None else claimed_rate
        self.steps = 0
        self._looked = self._looks = self._tests = 0
        self._phases: dict[tuple[float, float | None], int] = {}
        self._residuals: ResidualTests | None = None
        self._shadow_dim: int | None = None
        self._sampling: SamplingTests | None = None
        self._sizes: list[int] = []
        self._most = self._largest = 0
        self._counts = np.zeros(0 if self._members is None else self._members, np.int64)
        self._noise_record: NoiseRecord | None = None
        self._sampling_record: SamplingRecord | None = None
        self._clipping = ClippingRecord(looks=0)
        self._results: dict[tuple[Question, str], LookTest] = {}
        self._observations: dict[tuple[Question, str], Observation] = {}
        self._was_apart = False
        # Whether the clipping was handed over in the step that is being taken.
        self._has_clipping = False
        self._closed = False
        self._closed_record: WatchRecord | None = None
        self._canaries: InsertedCanaries | None = None
        # The last look whose findings were asked for, and those that failed when they were: of each question the first.
        self._judged = 0
        self._alarms: dict[Question, Observation] = {}
        # The part of the training before a resume.
        self._earlier: WatchRecord | None = None
        self._undone_at_close: list[Callable[[], object]] = []

    def step(
        self,
        *,
        release: ArrayLike | None = None,
        total: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
        drawn: ArrayLike | None = None,
        noise_multiplier: float | None = None,
        clip_norm: float | None = None,
    ) -> None:
        """Take a step of the training.

        Whatever is not given leaves its question open: noise and leak need ``release``, ``total`` and ``clip_norm``,
        clipping needs ``gradients``, ``total`` and ``clip_norm``, and sampling needs ``drawn``.

        Parameters
        ----------
        release
            What the step releases: the noised sum over ``divisor``, shape (dim,).
        total
            Sum of the clipped gradients before the noise, shape (dim,).
        gradients
            The examples' gradients before they are clipped, shape (n, dim).
        drawn
            Numbers of the members who take part, from 0 on, shape (n,).
        noise_multiplier
            Standard deviation of the noise in clip norms, as the accountant counts it; the claim's by default.
        clip_norm
            Most that an example's gradient enters with.

        Raises
        ------
        ValueError
            If an argument is of another shape or out of its range, or the watch was closed. Nothing has changed then.
        """
        if self._closed:
            raise ValueError("step: the watch was closed")
        noise = self.claim.noise_multiplier if noise_multiplier is None and self.claim else noise_multiplier
        noise = None if noise is None else _NOT_NEGATIVE.number("noise_multiplier", noise)
        clip = None if clip_norm is None else _POSITIVE.number("clip_norm", clip_norm)
        given, sums = _vector("release", release), _vector("total", total)
        rows = None if gradients is None else _matrix(gradients)
        dims = {len(each) for each in (given, sums) if each is not None} | (
            {rows.shape[1]} if rows is not None else set()
        )
        dims |= self._dims()
        if len(dims) > 1:
            raise ValueError(f"release, total, gradients: must have one number of coordinates, not {sorted(dims)}")
        numbers = None if drawn is None else _numbers(drawn, self._members)
        if clip is not None and given is not None and sums is not None:
            unit = clip / self.divisor
            largest = max(float(given.max(initial=0.0)), -float(given.min(initial=0.0)))
            spacing = max(precision(release), precision(total)) * largest / unit
            residual = np.empty(len(given))
            for part in slices(len(given)):
                residual[part] = (given[part].astype(np.float64) - sums[part].astype(np.float64) / self.divisor) / unit
            self._take_residual(residual, spacing, noise)
        count = len(rows) if rows is not None else None if numbers is None else len(numbers)
        if clip is not None and sums is not None and count is not None:
            self._check_length(two_norm(sums), count, clip, precision(total))
            self._has_clipping |= rows is not None
            if rows is not None and self._is_due():
                self._compare_sums(rows, sums, clip, max(precision(total), precision(gradients)))
        self._count_step(noise, numbers, None if rows is None else len(rows))

    def clipping(self, clipped_sum: ClippedSum, clip_norm: float) -> ClippedSum:
        """Return the training's clipping, which is also run with shadow members in the steps 1, 2, 4, ….

        Parameters
        ----------
        clipped_sum
            Function of the examples' gradients, shape (n, dim), that returns the sum of the clipped ones, shape (dim,).
            It adds no noise, and draws no random numbers.
        clip_norm
            Most that an example's gradient enters with.

        Returns
        -------
        A function that returns what ``clipped_sum`` does.

        Raises
        ------
        ValueError
            If the clip norm is out of its range.
        """
        clip = _POSITIVE.number("clip_norm", clip_norm)

        def clip_and_run_shadows(gradients: Any) -> Any:
            self._has_clipping = True
            if self.is_shadow_due:
                rows = _matrix(gradients)
                chosen = rows[: row_count(len(rows), rows.shape[1], rows.itemsize)]
                sizes = [] if self._layers is None else list(self._layers.values())

                def clipped_parts(parts: Parts) -> Parts:
                    given = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
                    total = _vector("clipping", clipped_sum(_like(gradients, given)))
                    assert total is not None
                    return np.split(total, np.cumsum(sizes)[:-1])

                self._run_shadows(
                    clipped_parts, np.split(chosen, np.cumsum(sizes)[:-1], axis=1), clip, precision(gradients)
                )
            return clipped_sum(gradients)

        return clip_and_run_shadows

    @property
    def is_shadow_due(self) -> bool:
        """Whether the step that is being taken should be run with and without a member too, for ``take_shadow``."""
        return not self._closed and (self._has_look_ahead() or self._was_apart)

    def take_shadow(self, member: str, without: ArrayLike, with_it: ArrayLike, clip_norm: float) -> None:
        """Take two clipped sums that the training's own code made of one batch, without and with a member.

        A clipping that is a function of a matrix of gradients has an easier way: ``clipping``.

        Parameters
        ----------
        member
            What the member is, and where in the batch it stands.
        without, with_it
            The sums, shape (dim,), before any noise. Where the claim is about a member that is replaced, they are the
            sums with one and with the other, which may differ by two clip norms.
        clip_norm
            Most that an example's gradient enters with.

        Raises
        ------
        ValueError
            If an argument is of another shape or out of its range, or the watch was closed.
        """
        if self._closed:
            raise ValueError("take_shadow: the watch was closed")
        clip = _POSITIVE.number("clip_norm", clip_norm)
        before, after = (floating(each).astype(np.float64) for each in (without, with_it))
        if before.ndim != 1 or before.shape != after.shape:
            raise ValueError(f"without, with_it: must be vectors of one length, not {before.shape}, {after.shape}")
        rounding = precision(with_it)
        if len(dims := self._dims() | {len(before)}) > 1:
            raise ValueError(f"without, with_it: must be as long as a release, and have not {sorted(dims)} coordinates")
        change, limit = change_and_limit(before, after, clip, rounding, is_replaced=is_replaced(self.claim))
        self._shadow_dim = len(before)
        self._has_clipping = True
        self._note_trials([ShadowTrial(str(member), self.steps + 1, change, limit)])

    def _dims(self) -> set[int]:
        """Return how many coordinates a release has, if that is known."""
        known = self._shadow_dim, None if self._residuals is None else self._residuals.dim
        return {dim for dim in known if dim is not None}

    def at_close(self, undo: Callable[[], object]) -> None:
        """Call a function when the watch is closed, after those that are given later.

        Parameters
        ----------
        undo
            Takes away what an adapter has put into a training, such as a hook, or lets a function that stays pass
            its calls through.

        Raises
        ------
        ValueError
            If the watch was closed.
        """
        if self._closed:
            raise ValueError("at_close: the watch was closed")
        self._undone_at_close.append(undo)

    def patch(self, owner: Any, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Put a function in a method's place, until the watch is closed.

        Parameters
        ----------
        owner
            The object whose method it is. Others of its class keep theirs.
        name
            The method's name.
        method
            What is called instead. For the training it is to call what this returns, once; a shadow run calls it again.

        Returns
        -------
        The method so far. Whoever patches it after the watch did keeps their patch when the watch is closed, and calls
        of this one then pass through.

        Raises
        ------
        ValueError
            If there is no such method, its owner does not let it be exchanged, or the watch was closed.
        """
        if self._closed:
            raise ValueError("patch: the watch was closed")
        kind = owner if isinstance(owner, type) else type(owner)
        original = getattr(owner, name, None)
        if not callable(original) or not callable(method):
            wrong = method if callable(original) else original
            raise ValueError(
                f"patch: must put a function in a method's place, as {kind.__name__}.{name} is to be; "
                f"not {short_repr(wrong)}"
            )
        if kind is not owner and name.startswith("__") and name.endswith("__"):
            raise ValueError(
                f"patch: Python takes {name} from the class; patch {kind.__name__}, or exchange the object"
            )
        was_own = getattr(owner, "__dict__", {}).get(name)

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (original if self._closed else method)(*args, **kwargs)

        vars(call)[_PATCH] = self, was_own
        try:
            setattr(owner, name, call)
        except (AttributeError, TypeError) as error:
            because = f"patch: {kind.__name__} does not let {name} be exchanged; hand out a changed copy of the object"
            raise ValueError(because) from error

        def restore() -> None:
            if vars(owner).get(name) is not call:
                return
            before = was_own
            # A watch that was closed first has left its patch under this one.
            while (patch := getattr(before, "__dict__", {}).get(_PATCH)) and patch[0]._closed:
                before = patch[1]
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self.at_close(restore)
        inner: Callable[..., Any] = original
        return inner

    def answer(self) -> WatchAnswer:
        """Return the answer so far: the statistical tests of the last look, and the exact checks of all steps.

        Returns
        -------
        The answer: it prints as the decision and what it rests on.
        """
        return answer_of(self._record())

    def close(self) -> WatchAnswer:
        """Look once more, at the end, and take nothing from then on; what was patched is as it was.

        Returns
        -------
        The answer.

        Raises
        ------
        Exception
            What a function raised that ``at_close`` has taken, once all others were called. ``answer`` returns the
            answer all the same.
        """
        if not self._closed and self.steps > self._looked:
            self._look()
        if not self._closed:
            # An accountant that is asked later may have counted more steps.
            self._closed_record, self._closed = self._record(), True
        raised: list[Exception] = []
        while self._undone_at_close:
            try:
                self._undone_at_close.pop()()
            except Exception as error:
                raised.append(error)
        if raised:
            raise raised[0]
        return self.answer()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Look at the steps since the last look, and write what was recorded; ``canaryproof audit`` answers it again.

        A watch that goes on from the file has no other sight of these steps, so that saving is a look of its own.

        Parameters
        ----------
        path
            A file, ``watch.json``. It has counts and sums, and no example, gradient or list of members.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        if not self._closed and self.steps > self._looked:
            self._look()
        with replace_file(checked_path("path", path)) as file:
            file.write(to_file(self._record()))

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from what ``save`` wrote: steps, looks and tests so far stay, and count.

        The statistical tests are of either part by itself, and those of the first part stay with their results.

        Parameters
        ----------
        path
            The file of a watch with the same claim, taken before the first step.

        Raises
        ------
        InputError
            If it cannot be read, or is of another claim or release.
        ValueError
            If a step was taken already.
        """
        if self.steps:
            raise ValueError("resume: must be called before the first step")
        record = read_record(checked_path("path", path))
        same = (record.delta, record.claim, record.stated) == (self.delta, self.claim, self._stated)
        if not same:
            raise InputError(f"{path}: is of another claim than this watch has")
        self._earlier = record
        self.steps, self._looked, self._looks, self._tests = record.steps, record.looked, record.looks, record.tests
        self._phases = {(phase.noise_multiplier, phase.rate): phase.steps for phase in record.phases}
        self._noise_record, self._sampling_record, self._clipping = record.noise, record.sampling, record.clipping
        self._results = {(result.question, result.name): result for result in record.results}
        self._alarms = {alarm.question: alarm for alarm in record.alarms}
        for seen in record.observations:
            if seen.status is not Status.NOT_LOOKED_AT:
                self._observations[seen.question, f"{seen.status} before {seen.because}"] = seen
        if self.claim is not None and most_participations(self.claim, self.steps) is not None:
            because = "how often each member took part before the training went on is not known"
            self._observe(Question.SAMPLING, Status.CANNOT_SAY, "resumed", because)

    @property
    def canaries(self) -> InsertedCanaries | None:
        """The canaries that were inserted, with their scores; None without any."""
        return self._canaries

    @property
    def has_failed(self) -> bool:
        """Whether an exact check of any step has failed, or a finding at a look at which this was asked.

        It stays so, and the answer says it, whatever later steps show.
        """
        if self._judged != self._looks:
            # An ε takes longer than a step.
            self._judged = self._looks
            for finding in self.answer().findings:
                if finding.status is Status.FAILED:
                    alarm = Observation(finding.question, Status.FAILED, self._looked, finding.because, finding.do)
                    self._alarms.setdefault(finding.question, alarm)
        worst = self._clipping.worst
        return (
            bool(self._alarms)
            or any(seen.status is Status.FAILED for seen in self._observations.values())
            or (worst is not None and worst.is_excessive)
        )

    # transformers' Trainer calls these.

    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Go on from the checkpoint from which a training resumes."""
        if state.global_step:
            self.resume(Path(args.output_dir) / f"checkpoint-{state.global_step}" / _FILE)

    def on_step_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Stop the training where a check or a test has failed."""
        if self.has_failed:
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Write the record next to a checkpoint."""
        self.save(Path(args.output_dir) / f"checkpoint-{state.global_step}" / _FILE)

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:  # noqa: ARG002
        """Close the watch, and write its record into the folder of the training."""
        self.close()
        self.save(Path(args.output_dir) / _FILE)

    def __getattr__(self, name: str) -> Callable[..., None]:
        # A callback of Trainer has a method for each event, and newer versions have more events.
        if name.startswith("on_"):
            return _pass_over
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _record(self) -> WatchRecord:
        """Return what was recorded so far, or until the watch was closed."""
        if self._closed_record is not None:
            return self._closed_record
        phases = tuple(Phase(noise, rate, steps) for (noise, rate), steps in self._phases.items())
        sampling = self._sampling_record
        if sampling is not None:
            most, largest = max(sampling.most, self._most), max(sampling.largest, self._largest)
            sampling = replace(sampling, most=most, largest=largest)
        if sampling is not None and self._sampling is not None and self._members is not None:
            # A power takes longer than the tests of a look.
            before = None if self._earlier is None else self._earlier.sampling
            steps = sampling.steps - (0 if before is None else before.steps)
            share = least_wrong_rate(self._members, self._sampling.rate, steps, LEVEL) if steps else None
            shares = [each for each in (share, None if before is None else before.wrong_rate) if each is not None]
            # Where no rate is noticed, one that is as far off as can be is not.
            sampling = replace(sampling, wrong_rate=min(shares, default=math.inf))
        return WatchRecord(
            SCHEMA,
            version("canaryproof"),
            self.delta,
            self.claim,
            self._stated,
            self._accountant_epsilon(),
            self._neighbours,
            self.steps,
            self._looked,
            self._looks,
            self._tests,
            phases,
            self._noise_record,
            self._clipping,
            sampling,
            tuple(self._results.values()),
            (*self._observations.values(), *self._open_parts()),
            self._attackers(),
            tuple(self._alarms.values()),
        )

    # Adapters call these.

    def _accountant_epsilon(self) -> float | None:
        """Return ε of the training's own accountant, if there is one."""
        return None

    def _attackers(self) -> tuple[AttackerEstimate, ...]:
        """Return what attackers learn of canaries, if any were inserted."""
        return ()

    def _open_parts(self) -> Iterator[Observation]:
        """Yield the parts of questions that this watch does not look at, each with what would make it do so."""
        if not self._clipping.trials:
            do = "Hand the clipping over (watch.clipping)."
            yield self._part(Question.CLIPPING, "gradients unlike those that came", do)

    def _part(self, question: Question, because: str, do: str = "") -> Observation:
        return Observation(question, Status.NOT_LOOKED_AT, self.steps, because, do)

    def _observe(self, question: Question, status: Status, kind: str, because: str, do: str = "") -> None:
        """Keep the first observation of its kind."""
        self._observations.setdefault(
            (question, f"{status} {kind}"), Observation(question, status, self.steps + 1, because, do)
        )

    def _take_residual(self, residual: NDArray[Any], spacing: float, noise: float | None) -> None:
        """Take a step's noise, in clip norms; the array is written over."""
        if noise is None:
            self._observe(Question.NOISE, Status.CANNOT_SAY, "unclaimed", "no noise multiplier is claimed", _GIVE_NOISE)
            return
        if not noise:
            self._observe(
                Question.NOISE,
                Status.FAILED,
                "none",
                f"step {self.steps + 1} has a noise multiplier of 0",
                _CHECK_NOISE,
            )
            return
        if not all(np.isfinite(residual[part]).all() for part in slices(len(residual))):
            because = f"step {self.steps + 1} released numbers that are not finite"
            self._observe(Question.NOISE, Status.CANNOT_SAY, "infinite", because, "Find what was not finite.")
            return
        if self._residuals is None:
            if len(residual) < 2:
                because = "a release of one number does not show its noise"
                self._observe(Question.NOISE, Status.CANNOT_SAY, "one number", because)
                return
            sizes = None if self._layers is None else list(self._layers.values())
            self._residuals = ResidualTests(1.0, len(residual), sizes)
        residual /= noise
        self._residuals.add(residual, spacing / noise)

    def _is_due(self) -> bool:
        """Tell whether the clipped sum is made again in this step."""
        return self._was_apart or self.steps % _EVERY == 0

    def _has_look_ahead(self) -> bool:
        """Tell whether there is a look after the step that is being taken."""
        number = self.steps + 1
        return number & (number - 1) == 0

    def _check_length(self, length: float, count: int, clip: float, spacing: float) -> None:
        """Check that a sum is no longer than so many clipped gradients can be."""
        length /= clip
        if length > count * (1.0 + _LONGER + spacing) + spacing:
            long = f"{length:,.4g} clip norms long, though it has no gradient"
            if count:
                long = f"{length / count:,.4g} times as long as {count:,} clipped gradients can be"
            because = f"the clipped sum of step {self.steps + 1} is {long}"
            self._observe(Question.CLIPPING, Status.FAILED, "length", because, _CHECK_CLIPPING)

    def _compare_sums(self, rows: NDArray[Any], total: Array, clip: float, spacing: float) -> None:
        """Make the clipped sum again, and compare."""
        parts = [(rows[:, part], total[part]) for part in slices(len(total))]
        lengths = np.sqrt(sum(np.einsum("ij,ij->i", each, each, dtype=np.float64) for each, _ in parts))
        factors = (clip / np.maximum(lengths, clip)).astype(rows.dtype)
        apart = math.hypot(*(two_norm(factors @ each - of_total) for each, of_total in parts))
        apart /= clip * max(len(rows), 1)
        self._note_sum(lengths / clip, apart, spacing)

    def _note_sum(self, lengths: Array, apart: float, spacing: float) -> None:
        """Note a sum that was made again, with the lengths of gradients in clip norms."""
        seen = self._clipping
        self._was_apart = not apart <= _APART + spacing
        if self._was_apart:
            because = (
                f"the clipped sum of step {self.steps + 1} is not that of gradients whose longer ones are scaled "
                f"to the clip norm: it is {apart:.2g} clip norms an example apart"
            )
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "apart", because, _CHECK_CLIPPING)
        self._clipping = replace(seen, sums=seen.sums + 1, apart=max(seen.apart, apart))
        self._note_lengths(lengths)

    def _note_lengths(self, lengths: Array) -> None:
        """Note the lengths of gradients, in clip norms."""
        seen = self._clipping
        self._clipping = replace(
            seen,
            gradients=seen.gradients + len(lengths),
            long=seen.long + int(np.count_nonzero(lengths > 1.0)),
            longest=max(seen.longest, float(lengths.max(initial=0.0))),
        )

    def _run_shadows(
        self,
        clipped_sum: ClippedParts,
        rows: Parts,
        clip: float,
        spacing: float,
        largest: float | None = None,
    ) -> None:
        """Run a clipping with shadow members and some rows."""
        largest = min(float(np.finfo(part.dtype).max) for part in rows) if largest is None else largest
        trials = shadow_trials(
            clipped_sum,
            rows,
            clip,
            self.steps + 1,
            precision=spacing,
            largest=largest,
            is_replaced=is_replaced(self.claim),
        )
        try:
            self._note_trials(list(trials))
        except Exception as error:
            # The training's own code may refuse rows that it never had; its training goes on.
            because = f"the clipping could not be run with one member more: {type(error).__name__}: {error}"
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "shadow", shorten(because, 200))

    def _count_alone(self, count: int = 1) -> None:
        """Count examples whose gradients are those that they have alone."""
        self._clipping = replace(self._clipping, alone=self._clipping.alone + count)

    def _note_trials(self, trials: Sequence[ShadowTrial]) -> None:
        seen, worst = self._clipping, self._clipping.worst
        for trial in trials:
            # The first one is kept where others are equal but for rounding.
            if worst is None or trial.change / trial.limit > _WORSE * worst.change / worst.limit:
                worst = trial
        self._clipping = replace(seen, trials=seen.trials + len(trials), worst=worst)

    def _count_step(self, noise: float | None, numbers: Ints | None, rows: int | None) -> None:
        """Count a step, and look after the steps 1, 2, 4, …."""
        if numbers is not None:
            self._take_members(numbers)
            if rows is not None and rows != len(numbers):
                because = f"{len(numbers):,} members were drawn in step {self.steps + 1}, which has {rows:,} gradients"
                self._observe(Question.SAMPLING, Status.CANNOT_SAY, "mismatch", because, _CHECK_DRAWN)
        if noise is not None:
            phase = (noise, self._rate)
            self._phases[phase] = self._phases.get(phase, 0) + 1
        looks = self._has_look_ahead()
        # Where nobody was drawn, there is nothing to clip.
        if looks and (self._has_clipping or (numbers is not None and not len(numbers))):
            before = self._clipping.looks
            self._clipping = replace(self._clipping, looks=None if before is None else before + 1)
        self._has_clipping = False
        self.steps += 1
        if looks:
            self._look()

    def _take_members(self, numbers: Ints) -> None:
        """Take who was drawn."""
        once = each_once(numbers)
        if len(once) != len(numbers):
            because = f"{len(numbers) - len(once):,} members were drawn twice in step {self.steps + 1}"
            self._observe(Question.SAMPLING, Status.FAILED, "twice", because, _CHECK_DRAWN)
        if len(once) and (highest := int(once[-1])) >= len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(highest + 1 - len(self._counts), np.int64)])
        self._counts[once] += 1
        self._most = max(self._most, int(self._counts[once].max(initial=0)))
        self._largest = max(self._largest, len(numbers))
        self._sizes.append(len(numbers))
        if self._members is not None and self._claimed_rate is not None and self._claimed_rate < 1.0:
            if self._sampling is None:
                self._sampling = SamplingTests(self._claimed_rate, self._members)
            self._sampling.add(once)

    def _look(self) -> None:
        """Make the statistical tests of the steps so far."""
        self._looked, self._looks = self.steps, self._looks + 1
        if self._residuals is not None:
            self._take_tests(Question.NOISE, self._residuals.tests())
            earlier = None if self._earlier is None else self._earlier.noise
            self._noise_record = self._noise_so_far(self._residuals, earlier)
            # The limit of the measured noise, by which the leak is judged, is a test too.
            self._tests += 1
        if self._sampling is not None:
            self._take_tests(Question.SAMPLING, self._sampling.tests(notices=False))
        if self._sizes:
            now = SamplingRecord(
                len(self._sizes),
                self._members or len(self._counts),
                self._claimed_rate,
                float(np.mean(self._sizes)),
                self._most,
                self._largest,
                None,
            )
            before = None if self._earlier is None else self._earlier.sampling
            self._sampling_record = now if before is None else _join(before, now)

    def _take_tests(self, question: Question, tests: Sequence[InstrumentTest]) -> None:
        names = list(self._layers or ())
        for test in tests:
            self._tests += test.p_value is not None
            observed = test.observed
            if test.name == "noise by layer":
                for number, name in reversed(list(enumerate(names))):
                    observed = observed.replace(f"layer {number} ", f"{name} ")
            now = LookTest(question, self.steps, test.name, observed, test.p_value, test.notices)
            before = self._results.get((question, test.name))
            if before is None or not _p_value(before) < min(_p_value(now), LEVEL):
                self._results[question, test.name] = now

    @staticmethod
    def _noise_so_far(tests: ResidualTests, before: NoiseRecord | None) -> NoiseRecord:
        """Return the noise so far; what would be noticed is that of the better part, as each is tested by itself."""
        steps, square, noticed = tests.rounds, tests.rounds * tests.measured_deviation**2, tests.noticed_share
        if before is not None:
            steps, square = steps + before.steps, square + before.steps * before.share**2
            noticed = max(noticed, before.noticed)
        share = math.sqrt(square / steps)
        return NoiseRecord(steps, tests.dim, share, upper_limit(share, steps * tests.dim), noticed)


def _join(before: SamplingRecord, now: SamplingRecord) -> SamplingRecord:
    """Return the record of both parts of a training that was resumed; each is tested by itself."""
    steps = before.steps + now.steps
    mean = (before.steps * before.mean + now.steps * now.mean) / steps
    most, largest = max(before.most, now.most), max(before.largest, now.largest)
    return replace(now, steps=steps, mean=mean, most=most, largest=largest)


def _pass_over(*_: Any, **__: Any) -> None:
    """Do nothing at an event that does not matter here."""


def _p_value(result: LookTest) -> float:
    return 1.0 if result.p_value is None else result.p_value


# The record's name in a checkpoint of Trainer.
_FILE = "watch.json"
# The attribute of a patch with its watch, and what it has replaced.
_PATCH = "_canaryproof_patch"
_GIVE_NOISE = "Give noise_multiplier, or a claim that has one."
_CHECK_NOISE = "Check the noise multiplier and what adds the noise."
_CHECK_CLIPPING = "Check the clipping, before the gradients are summed."
_CHECK_DRAWN = "Check how batches are drawn."


def _vector(name: str, values: ArrayLike | None) -> NDArray[Any] | None:
    """Return a vector of numbers, which may be infinite; None if there is none."""
    if values is None:
        return None
    try:
        vector = floating(values)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if vector.ndim != 1:
        raise ValueError(f"{name}: must be a vector, not of the shape {vector.shape}")
    return vector


def _matrix(values: ArrayLike) -> NDArray[Any]:
    """Return gradients of examples, a row each."""
    try:
        rows = floating(values)
    except ValueError as error:
        raise ValueError(f"gradients: {error}") from error
    if rows.ndim != 2:
        raise ValueError(f"gradients: must be of the shape (n, dim), not {rows.shape}")
    return rows


def _like(given: Any, rows: NDArray[Any]) -> Any:
    """Return rows as an array of the library that what was given is of, on its device."""
    if is_of("torch", "Tensor", given):
        return sys.modules["torch"].from_numpy(rows).to(given.device)
    return sys.modules["jax"].numpy.asarray(rows) if is_of("jax", "Array", given) else rows


def _numbers(values: ArrayLike, members: int | None) -> Ints:
    """Return the numbers of members who were drawn."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(f"drawn: must be a list of members' numbers, not {short_repr(values)}")
    if numbers.size and (numbers.min() < 0 or (members is not None and numbers.max() >= members)):
        top = "" if members is None else f" and at most {members - 1}"
        raise ValueError(f"drawn: must be at least 0{top}")
    return numbers.astype(np.int64)
