"""A few rounds of a training, looked at with all instruments: its noise, its clipping, its unit and its sampling.

Ten canaries go the whole way. Each is a member of the training with an update of ten clip norms. The training's own
sampler draws it, and the training's own clipping clips it. What is released then says what the claim says, or not.
The study measures it; users have a watch, which needs no canaries.
"""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from canaryproof.kernels.arrays import Array, floating, precision
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.instruments import LEVEL, MEMBERS, InstrumentTest, ResidualTests, SamplingTests
from canaryproof.verify.audit.answer.replay import Replay, replay
from canaryproof.verify.audit.answer.text import shown_p_value

# Canaries of an inspection, and the norm of their updates in clip norms.
_CANARIES, _LONG = 10, 10.0
# Standard errors by which a two-sided test at the level is off where it rejects with 90%.
_TWO_SIDED = float(special.ndtri(1.0 - 0.5 * LEVEL) + special.ndtri(0.9))
_POSITIVE = rules.NumberRange("be positive and finite", 0.0, math.inf, open=True)
_UNSEEN = (
    "the last bits of the noise and the time that a step takes",
    "a generator whose next numbers can be predicted",
    "what happens before the updates are handed over, such as data that are read twice",
    "the accountant: compare its ε with canaryproof.accounting",
)


class Inspection:
    """A record of some rounds of a training, and the tests of its claim.

    Parameters
    ----------
    members
        Number of members n of the training, without the canaries.
    dim
        Number of coordinates d of an update.
    noise_multiplier
        Claimed standard deviation of a round's noise on each coordinate, in clip norms.
    clip_norm
        Claimed most that a member's update enters with.
    rate
        Claimed probability with which a member takes part in a round; None where rounds are not drawn by Poisson
        sampling, so that the record of who took part is not tested.
    divisor
        What the noised sum is divided by; by default the expected number of members of a round, ``rate`` times all.
        1 where the sum itself is released.
    layers
        Sizes of the parts that are tested one by one, as for ``ResidualTests``.
    seed
        Seed of the canaries.

    Attributes
    ----------
    members, canaries, population
        Numbers of members, of canaries and of both. Canaries are the members n, n + 1, …
    divisor
        What the noised sum is divided by.
    rounds
        Number of rounds added so far.
    replays
        Replays so far.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Canaries are ten clip norms long. An honest training clips them to one. Independence of the canaries from the
    others' updates is not needed, since ``add`` takes the others out.
    """

    canaries = _CANARIES

    def __init__(
        self,
        *,
        members: int,
        dim: int,
        noise_multiplier: float,
        clip_norm: float,
        rate: float | None = None,
        divisor: float | None = None,
        layers: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self._residuals = ResidualTests(noise_multiplier, dim, layers)
        self.members = int(MEMBERS.number("members", members))
        self.population = self.members + self.canaries
        # Without a claim on the sampling a record of it checks the members' numbers alone.
        self._sampling = SamplingTests(0.5 if rate is None else rate, self.population)
        self._sampled = rate is not None
        self.clip_norm = _POSITIVE.number("clip_norm", clip_norm)
        if divisor is None and rate is None:
            raise ValueError("divisor: must be given where the rate is not")
        expected = self._sampling.rate * self.population
        self.divisor = expected if divisor is None else _POSITIVE.number("divisor", divisor)
        self._sensitivity = self.clip_norm / self.divisor
        self._canaries = Canaries(seed, self.canaries, self._residuals.dim)
        # Sums over rounds, S the sum of a round's canaries: ⟨S, y⟩, ‖S‖² and ‖y‖² of y = noise and canaries.
        self._product = self._canary_square = self._square = 0.0
        # A round has ⟨K, r⟩ and ‖K‖ here, where K is the others' sum and r is the residual.
        self._others: list[tuple[float, float]] = []
        self.replays: list[Replay] = []

    @property
    def rounds(self) -> int:
        """Number of rounds added so far."""
        return self._sampling.rounds

    def update(self, member: int) -> NDArray[np.float32]:
        """Return the update of a canary, ten clip norms long, which the training is to clip.

        Parameters
        ----------
        member
            Its number, from ``members`` on.

        Returns
        -------
        The update, shape (dim,).

        Raises
        ------
        ValueError
            If there is no such canary.
        """
        if not self.members <= member < self.population:
            raise ValueError(f"member: canaries are the members {self.members} to {self.population - 1}, not {member}")
        direction = self._canaries.vector(int(member) - self.members).astype(np.float64)
        return np.asarray(_LONG * self.clip_norm * direction, dtype=np.float32)

    def clipped_sum(self, updates: ArrayLike) -> Array:
        """Return the sum of updates, each clipped to the clip norm, apart from the training's own clipping.

        Parameters
        ----------
        updates
            Updates of members, shape (n, dim).

        Returns
        -------
        Their sum, shape (dim,).

        Raises
        ------
        ValueError
            If the shape is another.
        """
        rows = np.asarray(updates, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self._residuals.dim:
            raise ValueError(f"updates: must be of the shape (n, {self._residuals.dim}), not {rows.shape}")
        lengths = np.maximum(np.linalg.norm(rows, axis=1), self.clip_norm)
        return np.asarray((self.clip_norm / lengths) @ rows)

    def add(self, release: ArrayLike, drawn: ArrayLike, known: ArrayLike, resolution: float | None = None) -> None:
        """Take a round.

        Parameters
        ----------
        release
            What the round releases: the noised sum over the divisor, shape (dim,).
        drawn
            Numbers of all members who took part, the canaries' too.
        known
            Part of the release that the other members' clipped updates make up, in the same unit and shape.
        resolution
            Rounding error of a coordinate of the release, in its unit. By default that of its number format. A
            difference of two models has that of the models.

        Raises
        ------
        ValueError
            If an argument is not finite, of another shape or out of its range. Nothing has changed then.
        """
        given, others = (self._check(*pair) for pair in (("release", release), ("known", known)))
        numbers = np.asarray(drawn)
        self._sampling.add(numbers)
        total = self._canaries.sum(numbers[numbers >= self.members].astype(np.int64) - self.members)
        left = (given - others) / self._sensitivity
        self._product += float(total @ left)
        self._canary_square += float(total @ total)
        self._square += float(left @ left)
        residual, others = left - total, others / self._sensitivity
        self._others.append((float(others @ residual), float(np.linalg.norm(others))))
        if resolution is None:
            resolution = precision(release) * float(np.abs(given).max())
        self._residuals.add(residual, resolution / self._sensitivity)

    def replay(
        self, step: Callable[[Any], Any], members: Sequence[Any] | NDArray[Any], neighbours: str = "add-or-remove"
    ) -> None:
        """Run a step of the training twice, as ``canaryproof.replay`` does, against this claim.

        Parameters
        ----------
        step, members, neighbours
            As for ``canaryproof.replay``.

        Raises
        ------
        ValueError
            As ``canaryproof.replay`` does.
        """
        sensitivity = self._sensitivity * (2.0 if neighbours == "replace" else 1.0)
        self.replays.append(replay(step, members, sensitivity, neighbours=neighbours))

    def tests(self) -> tuple[InstrumentTest, ...]:
        """Return all tests of the rounds so far.

        Returns
        -------
        The tests, each at level 1e-6; none before the first round.
        """
        if not self.rounds:
            return ()
        return (*self._entries(), *self._residuals.tests(), *(self._sampling.tests() if self._sampled else ()))

    @property
    def has_failed(self) -> bool:
        """Whether an instrument refutes the claim."""
        return any(test.has_failed for test in self.tests()) or any(case.has_failed for case in self.replays)

    def __str__(self) -> str:
        tests = self.tests()
        wrong = [test for test in tests if test.has_failed]
        number = len(tests) + len(self.replays)
        looked = f"{self.rounds} rounds, {self.canaries} canaries"
        broken = len(wrong) + sum(case.has_failed for case in self.replays)
        answer = (
            f"The claim is refuted by {broken} of {number} tests"
            if broken
            else f"None of {number} tests refutes the claim"
        )
        answer = f"{answer} ({looked})."
        lines = [answer if number else "No round was looked at so far."]
        if self.rounds:
            behaves = f"The training behaves as if its noise multiplier were {self._residuals.measured_deviation:.5g}"
            lines.append(f"{behaves}; claimed {self._residuals.noise_multiplier:.5g}.")
        lines += [f"- {test.name}: {test.observed} ({shown_p_value(test.p_value or 0.0, '1e-300')})" for test in wrong]
        lines += [
            f"- replay: {' '.join(str(case).splitlines()[: 2 if case.has_failed else 1])}" for case in self.replays
        ]
        lines += ["", "What was looked at, and the smallest fault that is noticed with 90%:"]
        lines += [f"- {test.name}{': ' + test.notices if test.notices else ''}" for test in tests]
        lines += [*(["- replay: one member, beside whole and small batches"] if self.replays else []), ""]
        lines += ["What no instrument here sees:", *(f"- {fault}" for fault in _UNSEEN)]
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)

    def _check(self, name: str, values: ArrayLike) -> Array:
        try:
            vector = floating(values)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if vector.shape != (self._residuals.dim,):
            raise ValueError(f"{name}: must be numbers of the shape ({self._residuals.dim},), not {vector.shape}")
        if not np.isfinite(vector).all():
            raise ValueError(f"{name}: must be finite")
        return vector.astype(np.float64)

    def _entries(self) -> Iterator[InstrumentTest]:
        """Test that canary and other examples enter the release with weight 1, at an unknown noise deviation."""
        numbers = self.rounds * self._residuals.dim
        if self._canary_square:
            weight = self._product / self._canary_square
            deviation = math.sqrt(max(self._square - weight * self._product, 0.0) / (numbers - 1))
            error = max(deviation / math.sqrt(self._canary_square), np.finfo(float).tiny)
            yield InstrumentTest(
                "clipping",
                f"A canary of {_LONG:g} clip norms enters with {weight:.3g} clip norms.",
                2.0 * float(special.stdtr(numbers - 1, -abs(weight - 1.0) / error)),
                f"an entry that is wrong by {error * _TWO_SIDED:.2g} clip norms",
            )
        else:
            yield InstrumentTest("clipping", "No canary was drawn.", None, "")
        products, lengths = np.asarray([pair for pair in self._others if pair[1] > 0.0]).reshape(-1, 2).T
        if len(lengths):
            errors = products / lengths
            together = float(errors @ errors)
            left = max(self._residuals.measured_deviation**2 * numbers - together, np.finfo(float).tiny) / (
                numbers - len(errors)
            )
            worst = int(np.argmax(np.abs(errors)))
            yield InstrumentTest(
                "divisor",
                f"In some round the others' updates enter with weight {1.0 + errors[worst] / lengths[worst]:.4g}.",
                float(special.fdtrc(len(errors), numbers - len(errors), together / len(errors) / left)),
                f"a weight that is wrong by {math.sqrt(left) * _TWO_SIDED / lengths.max():.2g} in one round",
            )
