"""A watch over a loop of one's own whose parts are functions, as those of JAX and jax_privacy are.

Nothing can be hooked there, so the functions are wrapped: what makes the clipped sum, what adds the noise, and what
draws the members. The whole gradient function is called again without an example, with that example alone, and with one
more, so that a model and a loss that mix examples are seen, too.

Nothing here imports JAX before a function of it is called.
"""

import copy
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from canaryproof.kernels.arrays import Array, Ints, on_host, precision, two_norm
from canaryproof.kernels.public import set_module
from canaryproof.kernels.refusals import short_repr, shorten
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.watch.shadow_members import change_and_limit
from canaryproof.verify.audit.watch.watch_record import Observation, ShadowTrial, is_replaced
from canaryproof.verify.audit.watch.watching import Watch

# The name by which jax_privacy's functions take which rows of a batch are none.
_PADDING = "is_padding_example"
# Floating-point inputs of an example that is far from the others are so many times as large.
_FAR = 1000.0
# Another batch: its member, how its sum compares with that of the batch, and the arguments that make it.
_Other = tuple[str, str, tuple[Any, ...], dict[str, Any]]
# An example may add to the sum what it adds alone, but for so much of the clip norm.
_ALONE = 1e-3
# Parameters that move along the release have this cosine with it, or a larger one. Then the ratios of both lengths are
# compared with the numbers that were drawn, in so many steps: these vary by so much, and products of both by so little.
_ALONG, _RATIOS, _VARIES, _CONSTANT = 0.999, 4, 1e-2, 1e-3
_CLIP_NORM = rules.NumberRange("be positive and finite", 0.0, np.inf, open=True)


@set_module("canaryproof.typing")
class LoopWatch(Watch):
    """A watch over a loop of one's own. ``canaryproof.watch`` makes one.

    The loop hands its steps over by ``step``, or lets the watch wrap its functions: ``gradients``, ``noise`` and
    ``batches``. Then a step is taken whenever noise is added.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Batches that were drawn and belong to no step yet.
        self._drawn: deque[Ints] = deque()
        # The step that is being taken has a clipped sum, its rows, and the clip norm.
        self._total: NDArray[Any] | None = None
        self._rows: int | None = 0
        self._clip_norm: float | None = None
        # Residuals of correlated noise, which the rows of a matrix make independent again.
        self._correlated: list[Array] = []
        # Parameters at the last step, its release and how many were drawn; and the ratios of moves to releases.
        self._params: NDArray[Any] | None = None
        self._before: tuple[NDArray[Any], NDArray[Any], int] | None = None
        self._ratios: deque[tuple[float, int]] = deque(maxlen=64)

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield batches of members' numbers as they are, and take who was drawn.

        Parameters
        ----------
        batches
            Numbers of the members of each step, arrays from 0 on. Negative numbers are padding.

        Yields
        ------
        Each batch. It may be drawn before the step that it belongs to, as a loader does that is ahead.

        Raises
        ------
        ValueError
            If a batch is no list of members' numbers.
        """
        for batch in batches:
            numbers = np.asarray(batch)
            if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
                raise ValueError(f"batches: must be lists of members' numbers, not {short_repr(batch)}")
            self._drawn.append(numbers[numbers >= 0].astype(np.int64))
            yield batch

    def gradients(self, clipped_gradients: Callable[..., Any], clip_norm: float | None = None) -> Callable[..., Any]:
        """Return the function that makes the clipped sum, which the watch calls again in the steps 1, 2, 4, ….

        Parameters
        ----------
        clipped_gradients
            A function of the parameters and of arrays with a row for each example, such as
            ``jax_privacy.clipped_grad`` returns, compiled or not. It adds no noise.
        clip_norm
            Most that an example's gradient enters with. By default what ``clipped_grad`` says of itself.

        Returns
        -------
        A function that returns what ``clipped_gradients`` does.

        Raises
        ------
        ValueError
            If the clip norm is not known, or out of its range, or JAX is not imported.
        """
        _refuse_without_jax("gradients")
        inner = getattr(clipped_gradients, "__wrapped__", clipped_gradients)
        bound = getattr(inner, "l2_norm_bound", None) if clip_norm is None else clip_norm
        if bound is None:
            raise ValueError("clip_norm: must be given, as the function does not say it")
        clip = _CLIP_NORM.number("clip_norm", bound)
        has_aux = bool(getattr(inner, "has_aux", False))

        def sum_of(output: Any) -> Any:
            return output[0] if has_aux else output

        def look_and_call(*args: Any, **kwargs: Any) -> Any:
            if self._closed or _is_traced([args, kwargs]):
                if not self._closed:
                    self._note_tracers()
                return clipped_gradients(*args, **kwargs)
            self._has_clipping = True
            self._note_move(args[0])
            if self._layers is None and self._residuals is None:
                self._layers = _sizes(args[0])
            batch = _Batch(args, kwargs)
            # Arguments may be donated to the call. A shadow run has copies.
            trials = self._shadow_runs(lambda *each, **named: sum_of(clipped_gradients(*each, **named)), batch)
            output = clipped_gradients(*args, **kwargs)
            total = _vector(sum_of(output))
            if trials is not None:
                self._judge(trials, total, clip)
            self._total = total if self._total is None else self._total + total
            self._rows = None if self._rows is None or batch.real is None else self._rows + len(batch.real)
            self._clip_norm = clip
            return output

        return look_and_call

    def noise(self, privatizer: Any, *, matrix: ArrayLike | None = None, noise_multiplier: float | None = None) -> Any:
        """Return a privatizer whose ``update`` hands the step over that it adds noise to.

        Parameters
        ----------
        privatizer
            Whatever has a method ``update(sums, state)`` that returns the noised sums and the next state, such as a
            privatizer of jax_privacy.
        matrix
            The matrix C of noise that is correlated by a matrix factorisation, lower triangular, shape (steps, steps):
            the noise of all steps is C⁻¹ times independent noise. The watch then keeps the noise of all steps.
        noise_multiplier
            Standard deviation of the independent noise in clip norms; the claim's by default.

        Returns
        -------
        A copy of the privatizer.

        Raises
        ------
        ValueError
            If the matrix is not lower triangular, or JAX is not imported.
        """
        _refuse_without_jax("noise")
        strategy = None if matrix is None else np.asarray(matrix, dtype=np.float64)
        if strategy is not None and (strategy.ndim != 2 or not np.array_equal(strategy, np.tril(strategy))):
            raise ValueError("matrix: must be lower triangular")
        update = privatizer.update

        def update_and_look(sums: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            noised, after = update(sums, state, *args, **kwargs)
            if self._closed or _is_traced([noised]):
                if not self._closed:
                    self._note_tracers()
                return noised, after
            if strategy is None and not _is_of_keys(after):
                because = (
                    "the noise's state holds more than a key, so that the noise of several steps may be correlated"
                )
                self._observe(
                    Question.NOISE, Status.CANNOT_SAY, "correlated", because, "Give its matrix to watch.noise."
                )
                self._take_functions_step(_vector(noised), None, noise_multiplier, has_noise=False)
            else:
                self._take_functions_step(_vector(noised), strategy, noise_multiplier)
            return noised, after

        if hasattr(privatizer, "_replace"):
            return privatizer._replace(update=update_and_look)
        changed = copy.copy(privatizer)
        changed.update = update_and_look
        return changed

    def _open_parts(self) -> Iterator[Observation]:
        yield from super()._open_parts()
        if not self._clipping.alone:
            do = "In JAX let watch.gradients wrap your function; else try cp.replay with your step."
            yield self._part(Question.CLIPPING, "whether a model or a loss mixes examples", do)
        # A loop that hands over what it releases has said the divisor.
        if self._params is not None and len(self._ratios) < _RATIOS:
            yield self._part(Question.CLIPPING, "what the noised sum is divided by", _FIXED_DIVISOR)
        yield self._part(Question.LEAK, "what moves the parameters besides the releases")

    # These take a step.

    def _take_functions_step(
        self, noised: NDArray[Any], matrix: Array | None, noise: float | None, *, has_noise: bool = True
    ) -> None:
        """Take the step whose noise was added."""
        drawn, total, clip = self._members_of_step(), self._total, self._clip_norm
        if total is None:
            because = f"no gradients were seen before the noise of step {self.steps + 1}"
            self._observe(Question.NOISE, Status.CANNOT_SAY, "sum", because, "Wrap what makes the clipped sum.")
        if drawn is not None and self._rows is not None and total is not None and self._rows != len(drawn):
            because = f"{len(drawn):,} members were drawn in step {self.steps + 1}, which has {self._rows:,} gradients"
            self._observe(Question.SAMPLING, Status.CANNOT_SAY, "mismatch", because, "Check how batches are drawn.")
        if total is not None and clip is not None and self._params is not None and drawn is not None:
            self._before = self._params, noised, len(drawn)
        release = noised if total is not None and has_noise else None
        if release is not None and total is not None and matrix is not None:
            release = self._independent_noise(release - total, matrix) + total
        self._total, self._rows, self._clip_norm = None, 0, None
        self.step(release=release, total=total, drawn=drawn, noise_multiplier=noise, clip_norm=clip)

    def _members_of_step(self) -> Ints | None:
        """Return the oldest members that were drawn and have as many rows as the step."""
        for skipped, numbers in enumerate(self._drawn):
            if self._rows is None or len(numbers) == self._rows:
                for _ in range(skipped):
                    self._drawn.popleft()
                if skipped:
                    because = f"members were drawn before step {self.steps + 1} for whom no step was taken"
                    self._observe(Question.SAMPLING, Status.CANNOT_SAY, "skipped", because)
                return self._drawn.popleft()
        return self._drawn.popleft() if self._drawn else None

    def _independent_noise(self, residual: Array, matrix: Array) -> Array:
        """Return the independent noise of a step, by the matrix and the noise of the steps before it."""
        self._correlated.append(residual)
        number = len(self._correlated) - 1
        if number >= len(matrix):
            because = f"step {self.steps + 1} is beyond the {len(matrix):,} rows of the matrix"
            self._observe(Question.NOISE, Status.CANNOT_SAY, "matrix", because)
            return residual
        return np.asarray(sum(weight * each for weight, each in zip(matrix[number], self._correlated, strict=False)))

    def _note_tracers(self) -> None:
        because = "what the watch wraps was called inside of a compiled function, where there are no numbers"
        do = "Wrap the compiled function, as in watch.gradients(jax.jit(…))."
        for question in (Question.NOISE, Question.CLIPPING):
            self._observe(question, Status.CANNOT_SAY, "traced", because, do)

    # These look at the parameters.

    def _note_move(self, params: Any) -> None:
        """Compare how far the parameters moved, for their release, with how many were drawn."""
        now = _vector(params)
        if self._before is not None and self._before[0].shape == now.shape == self._before[1].shape:
            before, release, count = self._before
            move = now.astype(np.float64) - before
            lengths = two_norm(move) * two_norm(release)
            product = float(move @ release)
            if count and abs(product) > _ALONG * lengths > 0.0:
                self._ratios.append((abs(product) / two_norm(release) ** 2, count))
                self._check_ratios()
        self._before, self._params = None, now

    def _check_ratios(self) -> None:
        ratios, counts = (np.asarray(each, dtype=np.float64) for each in zip(*self._ratios, strict=True))
        if len(ratios) < _RATIOS or np.ptp(ratios) < _VARIES * ratios.mean():
            return
        products = ratios * counts
        if np.ptp(counts) and np.ptp(products) < _CONSTANT * products.mean():
            because = (
                f"the noised sum of step {self.steps} is divided by the number that was drawn, {int(counts[-1]):,}"
            )
            self._observe(Question.CLIPPING, Status.FAILED, "divisor", because, _FIXED_DIVISOR)

    # These call the gradients again.

    def _shadow_runs(
        self, clipped_sum: Callable[..., Any], batch: "_Batch"
    ) -> list[tuple[str, str, NDArray[Any]]] | None:
        """Return sums of other batches: what they are, how each compares with the batch's own sum, and the sum."""
        if not self.is_shadow_due:
            return None
        others = list(batch.others(self.steps + 1, exchanges=is_replaced(self.claim)))
        # An example that is twice in the data has a row each.
        if self._drawn and batch.real is not None and len(batch.real) > len(self._drawn[0]):
            others += batch.copies_of_one()
        if not others and (batch.real is None or len(batch.real)):
            because = f"in step {self.steps + 1} the gradients could not be taken of another batch"
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "shadow", because)
        try:
            return [(name, kind, _vector(clipped_sum(*args, **kwargs))) for name, kind, args, kwargs in others]
        except Exception as error:
            # The training's own code may refuse batches that it never had; its training goes on.
            because = f"the gradients could not be taken of another batch: {type(error).__name__}: {error}"
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "shadow", shorten(because, 200))
            return None

    def _judge(self, runs: Sequence[tuple[str, str, NDArray[Any]]], total: NDArray[Any], clip: float) -> None:
        """Judge sums of other batches: each is that of the batch without a member, with one more, or of one alone."""
        trials: list[ShadowTrial] = []
        without: dict[str, NDArray[Any]] = {}
        for name, kind, sums in runs:
            if kind == "alone":
                self._check_alone(name, without.get(name), sums, total, clip)
                continue
            without[name] = sums
            change, limit = change_and_limit(total, sums, clip, precision(total), is_replaced=is_replaced(self.claim))
            # A far example may have no finite gradient.
            if kind == "far" and not np.isfinite(change):
                continue
            trials.append(ShadowTrial(f"{name}{_KINDS[kind]}", self.steps + 1, change, limit))
        self._note_trials(trials)

    def _check_alone(
        self, name: str, without: NDArray[Any] | None, alone: NDArray[Any], total: NDArray[Any], clip: float
    ) -> None:
        """Check that an example adds what it adds alone."""
        if without is None:
            return
        apart = two_norm(total.astype(np.float64) - without - alone) / clip
        rounding = precision(total) * (1.0 + (two_norm(total) + two_norm(without)) / clip)
        if not apart <= _ALONE + rounding:
            because = (
                f"{name} adds another gradient to the clipped sum than alone: they are {apart:.2g} clip norms apart "
                f"(step {self.steps + 1})"
            )
            do = "Take out of the model and the loss what mixes examples, or of the sum what depends on their number."
            self._observe(Question.CLIPPING, Status.FAILED, "alone", because, do)
        else:
            self._count_alone()


_FIXED_DIVISOR = "Divide by the expected batch size: the number that was drawn is private."
# How a member's trial is called.
_KINDS = {"without": ", left out", "more": ", again", "far": ", a thousand times as large", "copies": ""}


class _Batch:
    """The arguments of a call for gradients, and other batches made of them."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        given = kwargs.get(_PADDING)
        self._params = args[0]
        self._others = tuple(args[1:]), {name: each for name, each in kwargs.items() if name != _PADDING}
        self._padding = None if given is None else np.array(on_host(given), dtype=bool)
        self._leaves = sys.modules["jax"].tree.leaves(self._others)
        rows = {each.shape[0] for each in self._leaves if getattr(each, "ndim", 0) and not _is_key(each)}
        self._size = len(self._padding) if self._padding is not None else rows.pop() if len(rows) == 1 else None
        # Rows of examples; None if it is not known which arguments have them.
        self.real: Ints | None = None
        if self._size is not None:
            padding = np.zeros(self._size, dtype=bool) if self._padding is None else self._padding
            self.real = np.flatnonzero(~padding)
        # Rows cannot be taken out where random numbers may depend on how many there are.
        self._is_fixed = any(map(_is_key, self._leaves))

    def others(self, step: int, *, exchanges: bool) -> Iterator[_Other]:
        """Yield batches without an example, of it alone, and with one more; or with one in another's place."""
        if self.real is None or not len(self.real):
            return
        first, other = int(self.real[0]), int(self.real[step % len(self.real)])
        name = f"the example of row {other + 1}"
        if exchanges:
            for kind, factor in _MORE:
                yield name, kind, *self._with_rows(partial(_with_member, row=other, factor=factor, slot=first))
            return
        if self._is_fixed and self._padding is None:
            return
        for row in dict.fromkeys((first, other)):
            yield f"the example of row {row + 1}", "without", *self._only(self.real[self.real != row])
            yield f"the example of row {row + 1}", "alone", *self._only(np.array([row]))
        free = np.zeros(0, np.int64) if self._padding is None else np.flatnonzero(self._padding)
        if self._is_fixed and not len(free):
            return
        slot, padding = (int(free[0]) if len(free) else None), self._padding
        if padding is not None:
            padding = np.append(padding, False) if slot is None else padding & (np.arange(len(padding)) != slot)
        for kind, factor in _MORE:
            yield (
                name,
                kind,
                *self._with_rows(partial(_with_member, row=other, factor=factor, slot=slot), padding),
            )

    def copies_of_one(self) -> Iterator[_Other]:
        """Yield the batch without the example that it has most often, where more rows count than were drawn."""
        assert self.real is not None
        leaves = [on_host(each).reshape(len(each), -1) for each in self._leaves if self._has_rows(each)]
        rows = np.concatenate(leaves, axis=1)[self.real]
        _, groups, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        often = int(np.argmax(counts))
        if counts[often] > 1:
            name = f"an example that is {counts[often]} times in the batch, left out"
            yield name, "copies", *self._only(self.real[groups.reshape(-1) != often])

    def _has_rows(self, leaf: Any) -> bool:
        return bool(getattr(leaf, "ndim", 0)) and leaf.shape[0] == self._size and not _is_key(leaf)

    def _with_rows(
        self, change: Callable[[Any], Any], padding: NDArray[Any] | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments whose arrays with rows are changed, and all others copied."""
        tree = sys.modules["jax"].tree
        args, kwargs = tree.map(lambda leaf: change(leaf) if self._has_rows(leaf) else _copy_of(leaf), self._others)
        padding = self._padding if padding is None else padding
        kwargs = kwargs if padding is None else kwargs | {_PADDING: sys.modules["jax"].numpy.asarray(padding)}
        return (tree.map(_copy_of, self._params), *args), kwargs

    def _only(self, rows: Ints) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the batch of some of its rows; where others are marked as padding, they hold what padding does."""
        if self._padding is None:
            return self._with_rows(lambda leaf: leaf[rows])
        padding = np.ones(len(self._padding), dtype=bool)
        padding[rows] = False
        free = np.flatnonzero(self._padding)
        filler = int(free[0] if len(free) else rows[0] if len(rows) else 0)
        held = np.where(padding & ~self._padding, filler, np.arange(len(padding)))
        return self._with_rows(lambda leaf: leaf[held], padding)


def _with_member(leaf: Any, row: int, factor: float, slot: int | None) -> Any:
    """Return rows with one of them once more, its numbers so many times as large, in a row's place or at the end."""
    jnp = sys.modules["jax"].numpy
    member = jnp.asarray(leaf[row] * factor if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf[row], leaf.dtype)
    rows = jnp.asarray(leaf)
    return jnp.concatenate([rows, member[None]]) if slot is None else rows.at[slot].set(member)


# An example once more, and one that is far from the others.
_MORE = (("more", 1.0), ("far", _FAR))


def _is_key(leaf: Any) -> bool:
    """Tell whether an array is a key for random numbers, of either kind."""
    name = str(getattr(leaf, "dtype", ""))
    return name.startswith("key<") or (name == "uint32" and getattr(leaf, "shape", ()) == (2,))


def _is_of_keys(state: Any) -> bool:
    """Tell whether a state holds nothing but keys."""
    return all(map(_is_key, sys.modules["jax"].tree.leaves(state)))


def _refuse_without_jax(name: str) -> None:
    if "jax" not in sys.modules:
        raise ValueError(f"{name}: wraps functions of JAX, which is not imported; hand each step over by watch.step")


def _is_traced(given: Any) -> bool:
    jax = sys.modules["jax"]
    return any(isinstance(each, jax.core.Tracer) for each in jax.tree.leaves(given))


def _copy_of(leaf: Any) -> Any:
    return leaf.copy() if hasattr(leaf, "copy") and hasattr(leaf, "dtype") else leaf


def _sizes(params: Any) -> dict[str, int] | None:
    """Return the sizes of the parameters by their names."""
    tree_util = sys.modules["jax"].tree_util
    leaves, _ = tree_util.tree_flatten_with_path(params)
    return {tree_util.keystr(path) or "parameters": int(np.size(leaf)) for path, leaf in leaves}


def _vector(tree: Any) -> NDArray[Any]:
    """Return the numbers of all arrays one after the other, on the host, in a format of 32 bits or more.

    It is a copy, as the arrays may be donated to the next call.
    """
    leaves = [np.asarray(on_host(each)) for each in sys.modules["jax"].tree.leaves(tree)]
    parts = [each.astype(np.float32) if each.dtype.itemsize < 4 else each for each in leaves]
    return np.concatenate([each.reshape(-1) for each in parts]) if len(parts) > 1 else parts[0].reshape(-1).copy()
