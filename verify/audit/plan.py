"""The plan of an audit: how many canaries see which fault, what they cost, and what no number of them sees."""

import math
import re
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.misuse import visible_trace
from canaryproof.verify.audit.rules import Rule
from canaryproof.verify.blindspots.alarms import SMALLEST_DIM, alarm_probability
from canaryproof.verify.blindspots.mechanisms import MECHANISMS, Claim, Mechanism
from canaryproof.verify.check.declared_tests import POWER

if TYPE_CHECKING:
    import pandas as pd

# More canaries than anybody makes.
MOST = 10**7
INDEPENDENT, ORTHONORMAL = "independent", "orthonormal"
# Beyond it, orthonormal canaries take more memory than many machines have: 40 bytes a dimension.
_LARGEST_TRANSFORM = 10**8
# Residuals that a probability is averaged over, as in an audit's own predictions.
_RESIDUALS = 40
# A plan's canaries see noise so short that ε is so many times the claimed one.
_WORTH_SEEING = 2.0
_WIDTH = 80
_DIM = Rule(f"be a whole number from {SMALLEST_DIM:,} to 1e12", SMALLEST_DIM, 10**12, whole=True)
_ROUNDS = Rule("be a whole number from 1 to 1e9", 1, 10**9, whole=True)
# The atlas's faults, in the few words that a line has, and what their number is.
_LABELS = {
    "less-noise": "noise, share of the claimed",
    "dilution": "half the noise, data/noise",
    "no-noise-on-a-share": "share of d without noise",
    "half-noise-on-a-share": "share of d with half the noise",
    "low-rank": "noise in a subspace, share of d",
    "unclipped": "a client's norm, in clip norms",
    "memorised": "an example's trace, in clip norms",
    "released-outright": "probability that data are released",
    "few-states": "bits of the noise generator's state",
    "coarse-noise": "bits of a coordinate's noise",
}


@dataclass(frozen=True)
class PlannedFault:
    """A fault of the atlas, and how many canaries see it.

    Attributes
    ----------
    name, title, parameter
        The fault, what is wrong, and what its parameter is.
    value
        Its parameter.
    epsilon
        True ε, above the claimed one.
    count
        Number of the plan's canaries from which on an audit raises an alarm with probability 90%; None if no number up
        to 10,000,000, or of orthonormal ones up to half of the dimension, does.
    orthonormal_only
        Whether orthonormal canaries see it and no number of independent ones does.
    """

    name: str
    title: str
    parameter: str
    value: float
    epsilon: float
    count: int | None
    orthonormal_only: bool


@dataclass(frozen=True)
class AuditPlan:
    """What an audit will see, and what it costs.

    Attributes
    ----------
    noise_multiplier, rounds, dim, delta
        As asked.
    claim
        Claimed ε, above which an alarm is raised.
    release_noise
        Standard deviation of the noise in the released vector, in units of the canary norm: σ√T for T rounds.
    release_epsilon
        ε of that noise for a client who takes part in one round.
    directions
        ``orthonormal`` if such canaries see a fault that no number of independent ones does, else ``independent``.
    seeing
        Number of canaries that sees noise so short that ε is twice the claimed one, with probability 90%; None if no
        number up to 10,000,000 does.
    short_noise
        That noise, as a share of the claimed deviation.
    present
        Number of canaries that shows, with probability 90%, if they are not in the release (``misuse``).
    count
        Number of canaries of the plan, the larger of both.
    noise_share
        Variance that the canaries add to the released vector, as a share of the noise's: k/(σ²Td).
    seconds
        Time to make all canaries once and to score them once, from some that were measured on this machine.
    faults
        The atlas's faults whose ε is above the claimed one.
    """

    noise_multiplier: float
    rounds: int
    dim: int
    delta: float
    claim: float
    release_noise: float
    release_epsilon: float
    directions: str
    seeing: int | None
    short_noise: float
    present: int
    count: int
    noise_share: float
    seconds: float
    faults: tuple[PlannedFault, ...]

    def commands(self) -> tuple[str, ...]:
        """Return the lines that carry the plan out, those of Python in a training loop."""
        option, kind = "", "Canaries"
        if self.directions == ORTHONORMAL:
            option, kind = f" --directions {ORTHONORMAL}", "OrthonormalCanaries"
        audit = (
            f"canaryproof audit release.npy --canaries {self.count} --canary-seed 7{option} --delta {self.delta:g} "
            f"--noise-multiplier {self.release_noise:.6g} --claim {self.claim:.6g}"
        )
        if self.rounds == 1:
            made = f"canaryproof canaries --seed 7 --count {self.count} --dim {self.dim}{option} --out canaries.npy"
            return made, audit
        return (
            f"canaries = {kind}(seed=7, count={self.count}, dim={self.dim})",
            f"total += clip_norm * canaries.sum(np.arange(t, {self.count}, {self.rounds}))",
            'np.save("release.npy", (final - initial) / canary_norm)',
            audit,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the faults as dictionaries."""
        return [asdict(fault) for fault in self.faults]

    def to_frame(self) -> "pd.DataFrame":
        """Return the faults as a table, a row each."""
        # It takes a second to load.
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        several = f", the sum of {self.rounds:,} rounds," if self.rounds > 1 else ""
        yield from _wrapped(
            f"Claimed: ε = {self.claim:.3g} at δ = {self.delta:g}. The release{several} has noise of "
            f"{self.release_noise:.4g} canary norms in {self.dim:,} dimensions: ε = {self.release_epsilon:.3g} for a "
            "client who takes part once."
        )
        yield ""
        kind = f"{self.directions} " if self.directions == ORTHONORMAL else ""
        yield f"Take {self.count:,} {kind}canaries. With probability {100.0 * POWER:g}%,"
        yield f"  {self.present:,} show it if they are not in the release;"
        seeing = "no number" if self.seeing is None else f"{self.seeing:,}"
        short = f"{self.short_noise:.2g} of the claimed noise"
        yield f"  {seeing} see {short}, which is ε = {_WORTH_SEEING * self.claim:.3g}."
        instead = self.noise_multiplier * math.sqrt(1.0 + self.noise_share)
        yield from _wrapped(
            f"Accuracy: they add {self.noise_share:.2g} to the noise's variance, k/(σ²Td), as would a noise multiplier "
            f"of {instead:.7g} instead of {self.noise_multiplier:g}.",
            others="  ",
        )
        yield f"Time: {_span(self.seconds)} to make them and score the release (part measured here)."
        yield ""
        yield from self._table()
        yield ""
        yield "Lines that carry it out" + ("; t is the number of the round:" if self.rounds > 1 else ":")
        for line in self.commands():
            parts = _wrapped(re.sub(r"(--\S+) ", "\\1\0", line), width=_WIDTH - 6)
            yield "  " + " \\\n    ".join(parts)

    def _table(self) -> Iterator[str]:
        """Lay out the faults: those that some number of canaries sees, and those that none does."""
        seen: list[tuple[str, list[PlannedFault]]] = []
        unseen: list[tuple[str, list[PlannedFault]]] = []
        for name, group in groupby(self.faults, key=lambda fault: fault.name):
            faults = list(group)
            (seen if any(fault.count for fault in faults) else unseen).append((_LABELS[name], faults))
        if seen:
            yield f"Canaries that see a fault with probability {100.0 * POWER:g}%, – if no number does:"
        width = max((len(label) for label, _ in seen), default=0)
        for label, faults in seen:
            cells = [
                f"{fault.value:g}:\0{f'{fault.count:,}' if fault.count else '–'}{'*' * fault.orthonormal_only}"
                for fault in faults
            ]
            yield from _row(label, width, cells)
        if self.directions == ORTHONORMAL:
            yield "  * no number of independent canaries sees it"
        if unseen:
            yield "What no number of canaries sees:"
        width = max((len(label) for label, _ in unseen), default=0)
        for label, faults in unseen:
            yield from _row(label, width, [f"{fault.value:g}" for fault in faults])


def _wrapped(text: str, first: str = "", others: str = "", width: int = _WIDTH) -> list[str]:
    """Break lines where there are blanks; a NUL is a blank at which none is broken."""
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace("\0", " ") for line in lines]


def _row(label: str, width: int, cells: list[str]) -> list[str]:
    return _wrapped(", ".join(cells), f"  {label:<{width}} ", " " * (width + 3))


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} s"


def plan(
    noise_multiplier: float, dim: float, rounds: float = 1, delta: float = 1e-6, claim: float | None = None
) -> AuditPlan:
    """Plan an audit of a released vector before the run.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of a round's noise, in clip norms, 0.01 ≤ σ ≤ 1e6.
    dim
        Dimension d of the release, 1,000 ≤ d ≤ 1e12.
    rounds
        Number T of rounds, whose sum is released. Each canary takes part in one, with the clip norm.
    delta
        Target δ in (0, 1).
    claim
        Claimed ε; that of the noise in the release if None.

    Returns
    -------
    The plan.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the noise alone has a larger ε than claimed.

    Notes
    -----
    Probabilities of an alarm are those of a t-test on cosines with the released vector (``alarms``): of the default
    estimator's lower end above the claimed ε, at 95% confidence and to leading order in k/d. Of orthonormal canaries,
    all other directions are the null.
    """
    noise_multiplier = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
    dim, rounds = int(_DIM.number("dim", dim)), int(_ROUNDS.number("rounds", rounds))
    delta = rules.DELTA.number("delta", delta)
    claim = None if claim is None else rules.CLAIM.number("claim", claim)
    released = Claim(noise_multiplier * math.sqrt(rounds), delta, dim)
    claimed = released.epsilon if claim is None else claim
    if not max(released.epsilon, rules.CLAIM.low) <= claimed:
        raise ValueError(
            f"claim: must be at least {max(released.epsilon, rules.CLAIM.low):.4g}, not {claimed:.4g}; for a client "
            f"who takes part once this noise has ε = {released.epsilon:.4g}"
        )
    limit = 1.0 / _noise(claimed, delta)
    short = _noise(_WORTH_SEEING * claimed, delta) / released.noise_multiplier
    faults = tuple(_faults(released, claimed, limit, INDEPENDENT))
    directions = INDEPENDENT
    if dim <= _LARGEST_TRANSFORM:
        others = _faults(released, claimed, limit, ORTHONORMAL)
        marked = tuple(
            replace(other, orthonormal_only=other.count is not None and one.count is None)
            for one, other in zip(faults, others, strict=True)
        )
        if any(fault.orthonormal_only for fault in marked):
            directions, faults = ORTHONORMAL, marked
    seeing, present = _count(MECHANISMS["less-noise"], short, released, limit, directions), _present(released)
    count = max(seeing or 0, present)
    return AuditPlan(
        noise_multiplier=noise_multiplier,
        rounds=rounds,
        dim=dim,
        delta=delta,
        claim=claimed,
        release_noise=released.noise_multiplier,
        release_epsilon=released.epsilon,
        directions=directions,
        seeing=seeing,
        short_noise=short,
        present=present,
        count=count,
        noise_share=count / (released.noise_multiplier**2 * dim),
        seconds=_seconds(count * dim) if directions == INDEPENDENT else _transform_seconds(dim, rounds),
        faults=faults,
    )


def _present(released: Claim) -> int:
    """Return the number of canaries whose trace is noticed to be missing: k·(trace)² must reach a constant."""
    # The trace is 1/√(σ² + k/d).
    constant = visible_trace(1) ** 2
    return max(2, math.ceil(constant * released.noise_multiplier**2 / (1.0 - constant / released.dim)))


def _noise(epsilon: float, delta: float) -> float:
    return float(gaussian_mechanism.noise_multiplier(epsilon, delta))


def _faults(released: Claim, claimed: float, limit: float, directions: str) -> Iterator[PlannedFault]:
    for mechanism in MECHANISMS.values():
        several = any(mechanism.weights(value).shape[1] > 1 for value in mechanism.values)
        if mechanism.scores is not None or several:
            continue
        for value in mechanism.values:
            truth = mechanism.truth(value, released).high
            if truth > claimed * (1.0 + 1e-9):
                count = _count(mechanism, value, released, limit, directions)
                yield PlannedFault(mechanism.name, mechanism.title, mechanism.parameter, value, truth, count, False)


def _count(mechanism: Mechanism, value: float, released: Claim, limit: float, directions: str) -> int | None:
    """Return the smallest number of canaries that raises an alarm with probability ``POWER``."""
    orthonormal = directions == ORTHONORMAL
    # All other directions are unobserved; more canaries than half of them see less.
    most = min(MOST, released.dim // 2) if orthonormal else MOST

    def alarm(count: int) -> float:
        # The same residuals each time, so that it changes with the number alone.
        rng = np.random.default_rng(0)
        others = released.dim - count if orthonormal else None
        return alarm_probability(
            mechanism, value, released, count, rng, others, _RESIDUALS, limit, orthonormal=orthonormal
        )

    few, many = 1, 2
    # Independent canaries are noise to each other, so that more of them may see less.
    while alarm(many) < POWER:
        few, many = many, min(2 * many, most)
        if few >= many:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if alarm(middle) >= POWER else (middle, many)
    return many


# Coordinates of the canaries that are measured.
_MEASURED = 2**22


def _seconds(coordinates: float) -> float:
    """Return how long it takes to make and to score canaries of so many coordinates together."""
    dim = 2**18
    canaries = Canaries(0, _MEASURED // dim, dim)
    # Compiles, or loads what is compiled.
    canaries.cosines(canaries.sum())
    began = time.perf_counter()
    again = Canaries(1, canaries.count, dim)
    again.cosines(again.sum())
    return (time.perf_counter() - began) * coordinates / _MEASURED


def _transform_seconds(dim: int, rounds: int) -> float:
    """Return how long it takes to sum orthonormal canaries in each round, and to score the release."""
    measured = min(dim, 2**18)
    canaries = OrthonormalCanaries(0, 1, measured)
    canaries.scores(canaries.sum())
    began = time.perf_counter()
    for _ in range(3):
        canaries.sum()
    return (time.perf_counter() - began) / 3.0 * (rounds + 1) * dim * math.log(dim) / (measured * math.log(measured))
