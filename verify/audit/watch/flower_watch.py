"""A watch over a training by Flower: it takes what the server's strategy sends, receives and releases.

Clipping and noise are both inside of the strategy. A shadow run calls a copy of the strategy with a client's reply
exchanged, in the state that numpy's generator has, so that both runs have the same noise and differ by the client.

Nothing here imports Flower before a strategy runs.
"""

import copy
import math
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from canaryproof.kernels.arrays import Array, precision, two_norm
from canaryproof.kernels.refusals import shorten
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import Claim
from canaryproof.verify.audit.answer.findings import Question, Status
from canaryproof.verify.audit.canaries.shapes import flatten, split
from canaryproof.verify.audit.watch.shadow_members import change_and_limit
from canaryproof.verify.audit.watch.watch_record import ShadowTrial, is_replaced
from canaryproof.verify.audit.watch.watching import Watch

_CLIP_NORM = rules.NumberRange("be positive and finite", 0.0, math.inf, open=True)
# Lengths of a shadow client's update, in clip norms, and that of the one whose place it takes.
_NEAR, _FAR, _SMALL = 10.0, 1e6, 1e-6
# Share of the clip norm that may be lost by the rounding of a model.
_HIDDEN = 0.1
# A reply may be longer than the clip norm by so much of it, where clients clip.
_LONGER = 1e-3


class FlowerWatch(Watch):
    """A watch over a training by Flower. ``canaryproof.watch(strategy, …)`` makes one.

    Parameters
    ----------
    strategy
        A strategy with ``configure_train`` and ``aggregate_train``, such as one of Flower's wrappers for differential
        privacy with fixed clipping.
    delta, claim, members, rate
        As for ``Watch``. The number of members is by default that of the nodes.
    clip_norm, divisor
        Most that a client's update enters with, and what the noised sum is divided by; of Flower's wrappers they are
        known. A server's learning rate divides the divisor.

    Raises
    ------
    ValueError
        If an argument is out of its range, or is not known, or the strategy is watched already.
    """

    def __init__(
        self,
        strategy: Any,
        *,
        delta: float,
        claim: Claim | float | None = None,
        members: int | None = None,
        rate: float | None = None,
        clip_norm: float | None = None,
        divisor: float | None = None,
    ) -> None:
        if hasattr(strategy, "canaryproof_watch"):
            raise ValueError("strategy: is watched already; close that watch first")
        name = type(strategy).__name__
        if hasattr(strategy, "target_clipped_quantile"):
            raise ValueError(f"strategy: {name} is not watched, as it also releases a noised count")
        divides = getattr(strategy, "num_sampled_clients", None) if divisor is None else divisor
        bound = getattr(strategy, "clipping_norm", None) if clip_norm is None else clip_norm
        if divides is None or bound is None:
            raise ValueError(f"{'clip_norm' if bound is None else 'divisor'}: must be given, as {name} does not say it")
        super().__init__(delta=delta, claim=claim, members=members, rate=rate, divisor=float(divides))
        self._strategy, self._clip_norm = strategy, _CLIP_NORM.number("clip_norm", bound)
        self._clients_clip = "ClientSide" in name
        self._numbers: dict[int, int] = {}
        self._before: list[Any] = []
        # The arrays that the last round released.
        self._released: list[Any] | None = None
        strategy.canaryproof_watch = self
        self.at_close(lambda: vars(strategy).pop("canaryproof_watch", None))
        self._is_own = not {"configure_train", "aggregate_train"} & set(vars(strategy))
        self._configure = self.patch(strategy, "configure_train", self._configure_and_look)
        self._aggregate = self.patch(strategy, "aggregate_train", self._aggregate_and_look)

    def _configure_and_look(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Any:
        """Replace the strategy's ``configure_train``, which is called once a round."""
        nodes = sorted(grid.get_node_ids())
        for node in nodes:
            self._numbers.setdefault(node, len(self._numbers))
        self._before, released = arrays.to_numpy_ndarrays(), self._released
        if released is not None and not all(map(np.array_equal, self._before, released)):
            because = f"round {self.steps + 1} does not begin with what the round before released"
            self._observe(Question.LEAK, Status.CANNOT_SAY, "moved", because, "Check that no data moves the model.")
        if self._layers is None:
            self._layers = {str(name): math.prod(array.shape) for name, array in arrays.items()}
        if self._members is None:
            self._members = len(nodes)
        return self._configure(server_round, arrays, config, grid)

    def _aggregate_and_look(self, server_round: int, replies: Iterable[Any]) -> Any:
        """Replace the strategy's ``aggregate_train``, which is called once a round."""
        received = list(replies)
        answered = [reply for reply in received if not reply.has_error()]
        before = flatten(self._before).astype(np.float64)
        total, lengths = np.zeros_like(before), []
        for reply in answered:
            update = _update(reply, before)
            lengths.append(two_norm(update) / self._clip_norm)
            total += update * min(1.0, 1.0 / max(lengths[-1], np.finfo(float).tiny))
        self._look_at_clipping(server_round, received, answered, before)
        released, metrics = self._aggregate(server_round, received)
        if released is None:
            because = f"round {self.steps + 1} released nothing, which depends on who answered"
            self._observe(Question.LEAK, Status.CANNOT_SAY, "nothing", because)
            return released, metrics
        self._released = released.to_numpy_ndarrays()
        after = flatten(self._released)
        self._note_lengths(np.asarray(lengths))
        if self._clients_clip:
            self._check_replies(lengths)
        drawn = np.array([self._numbers[reply.metadata.src_node_id] for reply in answered], np.int64)
        # The models' own rounding is in their difference.
        rounding = precision(after) * float(np.abs(before).max() + np.abs(after).max()) * self.divisor / self._clip_norm
        residual = ((after - before) * self.divisor - total) / self._clip_norm
        noise = self.claim.noise_multiplier if self.claim else getattr(self._strategy, "noise_multiplier", None)
        worst = self._clipping.worst
        if worst is not None and worst.is_excessive:
            because = (
                "what enters the sum is not what a client may enter with, so that the noise cannot be told from it"
            )
            self._observe(Question.NOISE, Status.CANNOT_SAY, "sum", because, "Mend the clipping first.")
        else:
            self._take_residual(residual, rounding, noise)
        self._count_step(noise, drawn, None)
        return released, metrics

    def _check_replies(self, lengths: list[float]) -> None:
        """Check that clients have clipped, of which nothing else is seen at the server."""
        if max(lengths, default=0.0) > 1.0 + _LONGER:
            because = f"a client's update of round {self.steps + 1} is {max(lengths):.4g} clip norms long"
            self._observe(Question.CLIPPING, Status.FAILED, "long", because, "Check the clients' clipping.")
        because = "clients clip their updates, of which the server sees the lengths alone"
        self._observe(Question.CLIPPING, Status.CANNOT_SAY, "clients", because, "Clip on the server's side.")

    # Shadow runs.

    def _look_at_clipping(self, server_round: int, received: list[Any], answered: list[Any], before: Array) -> None:
        """Run a copy of the strategy with one client's reply exchanged."""
        self._has_clipping = True
        # Flower's wrappers divide by the number of those who answered, and their noise is for those who were asked.
        counts_more = len(answered) < getattr(self._strategy, "num_sampled_clients", 0)
        if self._clients_clip or not answered or not (self.is_shadow_due or counts_more):
            return
        try:
            with _generators_put_back():
                self._note_trials(list(self._shadow_trials(server_round, received, answered, before)))
        except Exception as error:
            # A strategy may hold what cannot be copied, or refuse replies that it never had.
            because = f"the strategy could not be run with another client: {type(error).__name__}: {error}"
            self._observe(Question.CLIPPING, Status.CANNOT_SAY, "shadow", shorten(because, 200))

    def _shadow_trials(
        self, server_round: int, received: list[Any], answered: list[Any], before: Array
    ) -> Iterator[ShadowTrial]:
        sizes = np.array([array.size for array in self._before], np.int64)
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(88, self.steps)))
        exchanged = answered[self.steps % len(answered)]
        direction = rng.normal(size=len(before))
        direction /= two_norm(direction)
        even = rng.choice([-1.0, 1.0], size=len(before)) / np.sqrt(np.repeat(sizes, sizes) * len(sizes))

        def release(update: Array) -> Array:
            replies = [self._reply(each, update if each is exchanged else None) for each in received]
            with _generators_put_back():
                arrays, _ = self._copy().aggregate_train(server_round, replies)
            return np.asarray(flatten(arrays.to_numpy_ndarrays()) * self.divisor)

        clip = self._clip_norm
        # A number that is squared in the models' format must not be infinite there.
        largest = min(float(np.finfo(array.dtype).max) for array in self._before)
        far = min(_FAR * clip, max(0.1 * math.sqrt(largest), 2.0 * clip))
        without = release(_SMALL * clip * direction)
        if not np.array_equal(without, release(_SMALL * clip * direction)):
            raise ValueError("two runs with the same replies differ")
        members = {
            "an update of 10 clip norms in a random direction": _NEAR * clip * direction,
            f"an update of {far / clip:,.0f} clip norms, even over the arrays": far * even,
            "the client's own update": _update(exchanged, before),
            "the update of another client": _update(answered[self.steps % len(answered) - 1], before),
        }
        # Models in single precision round what is added to them.
        spacing = precision(self._before[0]) * float(np.abs(without).max(initial=0.0)) * len(before) ** 0.5 / clip
        if spacing > _HIDDEN:
            raise ValueError("the rounding of a model hides what one client changes")
        for name, update in members.items():
            change, limit = change_and_limit(without, release(update), clip, 0.0, is_replaced=is_replaced(self.claim))
            yield ShadowTrial(f"{name}, for an update of next to nothing", self.steps + 1, change, limit + spacing)

    def _copy(self) -> Any:
        """Return a copy of the strategy, without the watch."""
        if not self._is_own:
            raise TypeError("its methods were replaced by others before")
        strategy = self._strategy
        fields = {name: each for name, each in vars(strategy).items() if name not in _PATCHED}
        copied = object.__new__(type(strategy))
        vars(copied).update(copy.deepcopy(fields))
        return copied

    def _reply(self, reply: Any, update: Array | None) -> Any:
        """Return a reply that a strategy may change, with another update."""
        # Flower is an optional library.
        from flwr.app import Array as FlowerArray
        from flwr.app import ArrayRecord, RecordDict

        if reply.has_error():
            return reply
        records = dict(reply.content.items())
        if update is not None:
            (name,) = reply.content.array_records
            arrays = [
                (old + new).astype(old.dtype)
                for old, new in zip(self._before, split(update, self._before), strict=True)
            ]
            records[name] = ArrayRecord(dict(zip(records[name], map(FlowerArray, arrays), strict=True)))
        copied = copy.copy(reply)
        copied.content = RecordDict(records)
        return copied


_PATCHED = ("configure_train", "aggregate_train", "canaryproof_watch")


def _update(reply: Any, before: Array) -> Array:
    (record,) = reply.content.array_records.values()
    return np.asarray(flatten(record.to_numpy_ndarrays()).astype(np.float64) - before)


@contextmanager
def _generators_put_back() -> Iterator[None]:
    """Put the global generators of numpy, Python and torch back."""
    torch = sys.modules.get("torch")
    held = np.random.get_state(), random.getstate(), None if torch is None else torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(held[0])  # noqa: NPY002
        random.setstate(held[1])
        if torch is not None:
            torch.set_rng_state(held[2])
