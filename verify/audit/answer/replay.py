"""One step of a training, run twice: one member's effect on the release must not exceed the claimed sensitivity.

No statistics: both runs have the same noise, which cancels, and what is left is the member. Extreme members come first,
with the whole batch. Then Hypothesis draws batches, orders and members, and shrinks what breaks the claim.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from canaryproof.kernels.arrays import Array, is_floating, on_host, precision
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import check_type, short_repr
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.markup.digits import round_up

# Sums of many members round more often than their total does: a step may exceed its sensitivity by so much of it.
TOLERANCE = 1e-3
_EXAMPLES = 100
# Batches that are drawn besides the whole have at most so many members.
_MOST = 64
# A step raises these for a batch that it does not take: torch raises RuntimeError for an empty one.
_REFUSALS = (ArithmeticError, ValueError, LookupError, RuntimeError)
_NEIGHBOURS = ("add-or-remove", "replace")


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Replayed:
    """Two runs of a step that differ in one member.

    Attributes
    ----------
    member
        Name of the extreme member.
    batch
        Numbers of the other members, in their order.
    distance
        ‖with − without‖ of the two releases; nan if one of them is not finite.
    limit
        Claimed sensitivity, and what rounding may add to it.
    refusal
        What the step raised instead of a release; empty if it released.
    """

    member: str
    batch: tuple[int, ...]
    distance: float
    limit: float
    refusal: str = ""

    @property
    def is_excessive(self) -> bool:
        """Whether the member changes the release by more than the claim allows, or makes it not finite."""
        return not self.refusal and not self.distance <= self.limit


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class Replay:
    """The answer of a replay: how much one member changes in a step.

    Attributes
    ----------
    sensitivity
        As claimed.
    neighbours
        ``"add-or-remove"`` or ``"replace"``.
    cases
        Each extreme member beside the whole batch.
    smallest
        The smallest batch and member that exceed the claim, after shrinking; None if nothing does.
    """

    sensitivity: float
    neighbours: str
    cases: tuple[Replayed, ...] = field(repr=False)
    smallest: Replayed | None

    @property
    def has_failed(self) -> bool:
        """Whether a member changes the release by more than the claim allows."""
        return self.smallest is not None

    def __str__(self) -> str:
        released = [case for case in self.cases if not case.refusal]
        act = "Replacing a member" if self.neighbours == "replace" else "One member more"
        if self.smallest is None:
            largest = max((case.distance for case in released), default=0.0) / self.sensitivity
            answer = (
                f"{act} changes the release by at most {round_up(largest, 6)} of the claimed sensitivity in the cases "
                "below, and by no more than claimed, up to the tolerance, in the batches that were drawn."
            )
        else:
            change = self._change(self.smallest)
            batch = list(self.smallest.batch)
            others = f"and {len(batch)} other{'' if len(batch) == 1 else 's'} {short_repr(batch)}"
            company = others if batch else "alone"
            answer = f"Refuted: {act.lower()} {change}.\nSmallest batch: {self.smallest.member}, {company}"
        lines = [f"  {self._change(case)}: {case.member}" for case in released]
        refused = [f"  refused: {case.member} ({case.refusal})" for case in self.cases if case.refusal]
        return "\n".join([answer, "Beside the whole batch:", *lines, *refused])

    def _change(self, case: Replayed) -> str:
        if math.isnan(case.distance):
            return "makes a release that is not finite"
        return f"changes it by {case.distance / self.sensitivity:.6g} of the claim"


@set_module("canaryproof")
def replay(
    step: Callable[[Any], Any],
    members: Sequence[Any] | NDArray[Any],
    sensitivity: float,
    *,
    neighbours: str = "add-or-remove",
    extremes: Mapping[str, Any] | None = None,
    tolerance: float = TOLERANCE,
) -> Replay:
    """Run one step of a training with and without one member, and compare the releases.

    Parameters
    ----------
    step
        Function of a batch that returns the release, an array. It must set its generator back before it draws the
        noise: two calls with the same batch release the same. It gets a part of ``members`` with one more or another
        member: an array if they are an array, else a list.
    members
        A batch: an array of updates, gradients or examples, shape (n, ...), or a sequence of whatever the step takes.
    sensitivity
        Claimed most that one member changes, in the release's unit: clip norm over batch size, for a mean.
    neighbours
        ``"add-or-remove"``, or ``"replace"``, where the sensitivity is that of a replacement: twice a clip norm.
    extremes
        Extreme members by name. For an array the default is: 10⁶ times the longest in four directions, zero, not a
        number, infinity, and a duplicate. A sequence has no default.
    tolerance
        Share of the sensitivity that the rounding of sums may add. The rounding of the release is computed from its
        number format besides.

    Returns
    -------
    What was found. It prints as a few sentences.

    Raises
    ------
    ValueError
        If an argument is out of its range, the step does not repeat its noise, or its releases have no one shape.

    Notes
    -----
    The batch of the whole comes first. Then parts of it, in other orders, are drawn and shrunk by Hypothesis, with a
    fixed key. A step that raises an error for a member refuses it; that is reported, and is no fault. So may an empty
    batch be refused.

    Examples
    --------
    >>> import numpy as np
    >>> import canaryproof as cp
    >>> def step(updates):
    ...     norms = np.linalg.norm(updates, axis=1, keepdims=True)
    ...     # divides by those that are there
    ...     return (updates / np.maximum(norms, 1.0)).mean(axis=0)
    >>> updates = np.random.default_rng(0).normal(size=(20, 3))
    >>> cp.replay(step, updates, sensitivity=1 / 20).has_failed
    True
    """
    limit = rules.POSITIVE.number("sensitivity", sensitivity)
    rules.choice("neighbours", neighbours, _NEIGHBOURS)
    share = rules.PROBABILITY.number("tolerance", tolerance)
    check_type("step", step, Callable, "a function")
    check_type("members", members, Sized, "a sequence")
    if getattr(members, "ndim", 1) == 0 or len(members) < 1:
        raise ValueError("members: must hold at least one member")
    if extremes is not None:
        check_type("extremes", extremes, Mapping, "a mapping from names to members")
    chosen = _extremes(members) if extremes is None else dict(extremes)
    if not chosen:
        raise ValueError("extremes: must name at least one member")
    whole = tuple(range(len(members)))
    steps = _Steps(step, members, chosen, limit, share, neighbours)
    if not _are_same(*(steps.release(whole)[0] for _ in range(2))):
        raise ValueError(
            "step: must release the same when it is called twice; set its generator back before it draws the noise"
        )
    cases = tuple(steps.compare(name, whole) for name in chosen)
    broken = [case.member for case in cases if case.is_excessive]
    smallest = _smallest(steps, len(members), broken, cases)
    if neighbours == "add-or-remove" and (refusal := steps.refusal(())):
        cases += (Replayed("no member at all", (), math.nan, limit, refusal),)
    return Replay(limit, neighbours, cases, smallest)


@dataclass(frozen=True)
class _Steps:
    """A step with its batch and its claim."""

    step: Callable[[Any], Any]
    members: Any
    extremes: Mapping[str, Any]
    sensitivity: float
    tolerance: float
    neighbours: str

    def batch(self, numbers: Sequence[int], extra: Sequence[Any] = ()) -> Any:
        """Return some members and others after them."""
        if isinstance(self.members, np.ndarray):
            chosen = self.members[np.asarray(numbers, dtype=np.int64)]
            return np.concatenate([chosen, np.asarray(extra, chosen.dtype)]) if extra else chosen
        return [*(self.members[i] for i in numbers), *extra]

    def release(self, numbers: Sequence[int], extra: Sequence[Any] = ()) -> tuple[NDArray[Any], float]:
        """Return what the step releases of some members and others, and the precision of its number format."""
        with warnings.catch_warnings():
            # Extreme members overflow, as they should.
            warnings.simplefilter("ignore", RuntimeWarning)
            release = self.step(self.batch(numbers, extra))
        array = on_host(release)
        if array.dtype.kind == "V" and is_floating(array.dtype):
            array = array.astype(np.float64)
        if array.dtype.kind not in "fiu" or array.ndim != 1:
            raise ValueError(f"step: must return a vector of numbers, not {array.dtype} of shape {array.shape}")
        return array, precision(release) if array.dtype.kind == "f" else 0.0

    def refusal(self, numbers: Sequence[int]) -> str:
        """Return what the step raises for some members; empty if it releases."""
        try:
            self.release(numbers)
        except _REFUSALS as error:
            return _words(error)
        return ""

    def compare(self, name: str, numbers: tuple[int, ...]) -> Replayed:
        """Run a step with and without a member; in place of the first one, where it replaces."""
        rest = numbers[1:] if self.neighbours == "replace" else numbers
        try:
            without, _ = self.release(numbers)
            with_it, spacing = self.release(rest, [self.extremes[name]])
        except _REFUSALS as error:
            return Replayed(name, rest, math.nan, self.sensitivity, _words(error))
        if with_it.shape != without.shape:
            raise ValueError(f"step: must return vectors of one shape, not {without.shape} and {with_it.shape}")
        with np.errstate(all="ignore"):
            difference = with_it.astype(np.float64) - without.astype(np.float64)
            distance = float(np.linalg.norm(difference))
        finite = math.isfinite(distance)
        rounding = spacing * (_length(with_it) + _length(without)) if finite else 0.0
        allowed = self.sensitivity * (1.0 + self.tolerance) + rounding
        return Replayed(name, rest, distance if finite else math.nan, allowed)


def _smallest(steps: _Steps, count: int, broken: Sequence[str], cases: Sequence[Replayed]) -> Replayed | None:
    """Search batches and members that exceed the claim, and shrink the first one."""
    # Hypothesis takes a third of a second to load.
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample

    least = 1 if steps.neighbours == "replace" else 0
    names = st.sampled_from(broken or list(steps.extremes))
    # The first members of some order: the order shrinks towards the one given, and their number towards none.
    orders, sizes = st.permutations(range(min(count, _MOST))), st.integers(least, min(count, _MOST))
    batches = st.tuples(orders, sizes).map(lambda drawn: tuple(drawn[0][: drawn[1]]))
    options = settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        name, numbers = find(
            st.tuples(names, batches), lambda pair: steps.compare(*pair).is_excessive, settings=options
        )
    except NoSuchExample:
        return next((case for case in cases if case.is_excessive), None)
    return steps.compare(name, numbers)


def _extremes(members: Any) -> dict[str, NDArray[Any]]:
    """Return extreme members for a batch of updates or examples."""
    if not (isinstance(members, np.ndarray) and members.ndim > 1 and members.dtype.kind == "f"):
        raise ValueError("extremes: must be given, since the members are no array of floating-point numbers")
    values = members.reshape(len(members), -1).astype(np.float64)
    lengths = np.linalg.norm(values, axis=1)
    longest, axis = max(1.0, float(lengths.max())), np.zeros(values.shape[1])
    axis[0] = 1.0
    direction = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(58,))).normal(size=values.shape[1])
    # Numbers in half precision end before.
    factor = min(1e6, 0.99 * float(np.finfo(members.dtype).max) / longest)
    huge, times = factor * longest, "10⁶" if factor == 1e6 else f"{factor:,.0f}"
    made = {
        f"{times} times the longest, in a random direction": huge * _unit(direction),
        f"{times} times the longest, along the sum": huge * _unit(values.sum(axis=0)),
        f"{times} times the longest, against the sum": -huge * _unit(values.sum(axis=0)),
        f"{times} times the longest, in one coordinate": huge * axis,
        "zero": np.zeros(len(axis)),
        "not a number": np.full(len(axis), math.nan),
        "infinite in one coordinate": np.where(axis > 0.0, math.inf, 0.0),
        "a duplicate of the longest": values[int(np.argmax(lengths))],
    }
    return {name: value.reshape(members.shape[1:]).astype(members.dtype) for name, value in made.items()}


def _unit(vector: Array) -> Array:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length if length else vector)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _are_same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    return first.shape == second.shape and np.array_equal(first, second, equal_nan=True)


def _length(release: NDArray[Any]) -> float:
    return float(np.linalg.norm(release.astype(np.float64)))
