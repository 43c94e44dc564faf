"""The plan of an audit: the number of canaries that sees each fault, its cost, and the faults that no number sees."""

import math
import re
import shlex
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.canaries import Canaries
from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting.accountant import NEIGHBOURS, Neighbours
from canaryproof.verify.audit.answer.designs import COINS, DesignBounds, coins_for, design_bounds
from canaryproof.verify.audit.answer.misuse import visible_trace
from canaryproof.verify.audit.answer.notice import MOST_SCORES, BoundTest, least_count, least_part, residuals
from canaryproof.verify.audit.answer.result import CONFIDENCE, NOTICE, SIDE
from canaryproof.verify.audit.blindspots.fault_map import detector_of, summary
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim, Mechanism
from canaryproof.verify.audit.blindspots.ranges import SMALLEST_DIM
from canaryproof.verify.audit.bounds.lower_bound import Inclusion
from canaryproof.verify.audit.estimators.noise_multiplier import power
from canaryproof.verify.audit.levels import POWER
from canaryproof.verify.audit.markup.digits import number, percent, round_down
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    import pandas as pd


# Largest number of canaries that is considered for a release.
MOST = 10**7
INDEPENDENT, ORTHONORMAL = "independent", "orthonormal"
# Orthonormal canaries take up to 20 bytes a dimension; in more dimensions plans take independent ones, which take none.
_LARGEST_TRANSFORM = 10**8
# A plan's canaries see noise so short that ε is this multiple of the claimed one.
_WORTH_SEEING = 2.0
_WIDTH = 80
# Begin of the printed lines of Python, and two names of a training in them.
IMPORTS = "import canaryproof as cp, numpy as np"
OF_A_ROUND = "; total is round t's clipped sum, delta what it adds"
_DIM = NumberRange(f"be a whole number from {SMALLEST_DIM:,} to 1e12", SMALLEST_DIM, 10**12, whole=True)
_ROUNDS = NumberRange("be a whole number from 1 to 1e9", 1, 10**9, whole=True)
# Short labels of the atlas's faults, with the meaning of their parameter.
_LABELS = {
    "less-noise": "noise, share of the claimed",
    "dilution": "half the noise, data/noise",
    "no-noise-on-a-share": "share of d without noise",
    "half-noise-on-a-share": "share of d with half the noise",
    "low-rank": "noise in a subspace, share of d",
    "unclipped": "a client's norm, in clip norms",
    "memorised": "an example's trace, in clip norms",
    "released-outright": "probability that data are released",
    "normalised-after-noise": "deviation of the divisor's noise",
    "few-states": "bits of the noise generator's state",
    "coarse-noise": "bits of a coordinate's noise",
}


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class PlannedFault:
    """A fault of the atlas, with the number of canaries that sees it.

    Attributes
    ----------
    name, title, parameter
        The fault, what is wrong, and what its parameter is.
    value
        Its parameter.
    epsilon
        True ε, above the claimed one.
    count
        Number of the plan's canaries from which on an audit notices it with probability 90%; None if no number up to
        10,000,000 does. Of all rounds it is up to 1,000,000, or a quarter of the dimension of orthonormal ones.
    """

    name: str
    title: str
    parameter: str
    value: float
    epsilon: float
    count: int | None


@set_module("canaryproof.typing")
@dataclass(frozen=True)
class AuditPlan:
    """The plan of an audit: the faults that it will see, and its cost.

    Attributes
    ----------
    noise_multiplier, rounds, dim, delta, all_rounds, neighbours, confidence, notice
        As asked.
    claim
        Claimed ε, above which an alarm is raised.
    release_noise
        Standard deviation of the noise in what is scored, in units of the canary norm: σ√T in the sum of T rounds, σ
        in each of them.
    release_epsilon
        ε of that noise for a client who takes part in one round, and these neighbours.
    directions
        ``orthonormal`` if all rounds are scored in at most 1e8 dimensions; else ``independent``.
    seeing
        Number of canaries that sees noise so short that ε is twice the claimed one, with probability 90%; None as for
        a fault.
    short_noise
        That noise, as a share of the claimed deviation.
    present
        Number of canaries that shows, with probability 90%, whether they are there. Of a release, it is noticed if
        they are not (``misuse``). Of all rounds, the lower bound is above 0 if they are; None as for a fault.
    deciding
        Number of canaries with which an honest audit decides on the leak with probability 90%: it notices the share of
        the noise that is asked for. Whether the canaries are there takes ``present``. None as for a fault.
    count
        Number of canaries of the plan that take part, the largest of these.
    total
        Number of all canaries. Of all rounds a fair coin decides on each whether it takes part, and with probability
        99% at least ``count`` do.
    designs
        Lower bounds of all rounds, of scores that leak as much as is claimed.
    noise_share
        Variance that the canaries add to the sum of all rounds, as a share of the noise's: k/(σ²Td), in the mean over
        coins.
    seconds
        Time to make all canaries and to score them, from some that were measured on this machine.
    faults
        The atlas's faults whose ε is above the claimed one.
    """

    noise_multiplier: float
    rounds: int
    dim: int
    delta: float
    all_rounds: bool
    neighbours: Neighbours
    claim: float
    release_noise: float
    release_epsilon: float
    directions: str
    seeing: int | None
    short_noise: float
    present: int | None
    deciding: int | None
    count: int
    noise_share: float
    seconds: float
    faults: tuple[PlannedFault, ...]
    total: int
    designs: DesignBounds | None = None
    confidence: float = CONFIDENCE
    notice: float = NOTICE

    def commands(self, seed: int | str = 7, file: str | None = None) -> tuple[str, ...]:
        """Return the lines of Python and of the shell that carry the plan out.

        Parameters
        ----------
        seed
            Seed of the canaries.
        file
            A file with this plan, which the audit is held against.

        Returns
        -------
        The lines.
        """
        option, kind = "", "Canaries"
        if self.directions == ORTHONORMAL:
            option, kind = f" --directions {ORTHONORMAL}", "OrthonormalCanaries"
        inserted = f"total += clip_norm * canaries.sum(np.arange(t, {self.count}, {self.rounds}))"
        asked = f"{f' --inclusion coin --dim {self.dim}' if self.all_rounds else ''} --delta {self.delta:g}"
        asked += f" --noise-multiplier {self.release_noise:.6g}"
        # The claim of a release's noise is computed from it. Of largest cosines nobody knows in how many rounds a
        # canary was, so that an audit wants the claim itself, and holds it against the noise.
        is_own = self.claim > self.release_epsilon * (1.0 + 1e-9)
        asked += f" --claim {self.claim:.6g}" if is_own or self.all_rounds else ""
        asked += " --neighbours replace" if self.neighbours == "replace" else ""
        asked += gate_options(self.confidence, self.notice)
        if file is not None:
            # The plan has all of them, and its secret has the seed.
            asked = f" --plan {shlex.quote(file)} --report audit.html"
        if self.all_rounds:
            return (
                IMPORTS,
                f"canaries = cp.{kind}(seed={seed}, count={self.total}, dim={self.dim})",
                "scores = cp.RoundScores(canaries)",
                f"coins = np.random.default_rng(9).integers(2, size={self.total}) == 1",
                f"total += clip_norm * canaries.sum(t + {self.rounds} * np.flatnonzero(coins[t::{self.rounds}]))",
                "scores.add(cp.flatten(delta), round=t)",
                "observed, unobserved = scores.maxima[coins], scores.maxima[~coins]",
                'np.savez("rounds.npz", observed=observed, unobserved=unobserved)',
                f"canaryproof audit rounds.npz{asked}",
            )
        made_from = f" --canaries {self.count} --canary-seed {seed}{option}"
        audit = f"canaryproof audit release.npy{asked if file else made_from + asked}"
        if self.rounds == 1:
            made = (
                f"canaryproof canaries --seed {seed} --count {self.count} --dim {self.dim}{option} --out canaries.npy"
            )
            return made, audit
        return (
            IMPORTS,
            f"canaries = cp.{kind}(seed={seed}, count={self.count}, dim={self.dim})",
            f"released = np.zeros({self.dim})",
            inserted,
            "released += cp.flatten(noisy) / clip_norm",
            'np.save("release.npy", released)',
            audit,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the faults as dictionaries."""
        return [asdict(fault) for fault in self.faults]

    def to_frame(self) -> "pd.DataFrame":
        """Return the faults as a table, a row each."""
        # Pandas takes a second to load.
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return self.text()

    def text(self, seed: int | str = 7, file: str | None = None) -> str:
        """Return the plan in words; seed and file are those of ``commands``."""
        return "\n".join(self._lines(seed, file))

    def _lines(self, seed: int | str, file: str | None) -> Iterator[str]:
        if self.all_rounds:
            scored = f"Each of {self.rounds:,} rounds, all of which the attacker sees,"
        else:
            scored = "The release, one noisy sum" + (f" of {self.rounds:,} rounds," if self.rounds > 1 else ",")
        neighbours = ", neighbours: replace" if self.neighbours == "replace" else ""
        yield from wrap(
            f"Claimed: ε = {number(self.claim)} at δ = {self.delta:g}{neighbours}. {scored} has noise of "
            f"{self.release_noise:.4g} canary norms in {self.dim:,} dimensions: ε = {number(self.release_epsilon)} for "
            "a client who takes part once."
        )
        if not self.all_rounds:
            yield "If it is the change of a model, plan it with --difference or cp.plan_rounds."
        yield ""
        kind = f"{self.directions} " if self.directions == ORTHONORMAL else ""
        decided = "" if self.designs is None else COINS
        yield from wrap(f"Take {self.total:,} {kind}canaries{decided}. With probability {100.0 * POWER:g}%,")
        there = "see that they are there (lower bound above 0)"
        missing = "notice that they are missing from the release"
        yield from wrap(f"{canaries_clause(self.present)} {there if self.all_rounds else missing};", "  ", "    ")
        # A share that is rounded up might not be noticed.
        share = round_down(100.0 * self.short_noise, 2)
        short = f"noise at {share}% of the claim (ε = {number(_WORTH_SEEING * self.claim)})"
        yield from wrap(f"{canaries_clause(self.seeing)} notice {short};", "  ", "    ")
        yield from wrap(decides_clause(self.deciding, self.notice), "  ", "    ")
        if self.designs is not None:
            yield from wrap(str(self.designs), others="  ")
        instead = self.noise_multiplier * math.sqrt(1.0 + self.noise_share)
        yield from wrap(
            f"Accuracy: they add {self.noise_share:.2g} to the noise's variance, k/(σ²Td), as would a noise multiplier "
            f"of {instead:.7g} instead of {self.noise_multiplier:g}.",
            others="  ",
        )
        scored = "score all rounds" if self.all_rounds else "score the release"
        yield f"Time: {_span(self.seconds)} to make them and {scored} (part measured here)."
        yield ""
        yield from self._table()
        yield ""
        meaning = OF_A_ROUND if self.all_rounds else "; total is round t's clipped sum, noisy that with noise"
        yield "Lines that carry it out" + (f"{meaning}:" if self.rounds > 1 else ":")
        for line in self.commands(seed, file):
            parts = wrap(re.sub(r"(--\S+) ", "\\1\0", line), width=_WIDTH - 6)
            yield "  " + " \\\n    ".join(parts)

    def _table(self) -> Iterator[str]:
        """Lay out the faults that some number of canaries sees, and those that no number sees."""
        seen: list[tuple[str, list[PlannedFault]]] = []
        unseen: list[tuple[str, list[PlannedFault]]] = []
        for name, group in groupby(self.faults, key=lambda fault: fault.name):
            faults = list(group)
            (seen if any(fault.count for fault in faults) else unseen).append((_LABELS[name], faults))
        if seen:
            yield f"Canaries that see a fault with probability {100.0 * POWER:g}%, – if no number does:"
        width = max((len(label) for label, _ in seen), default=0)
        for label, faults in seen:
            cells = [f"{fault.value:g}:\0{f'{fault.count:,}' if fault.count else '–'}" for fault in faults]
            yield from _row(label, width, cells)
        if unseen:
            yield "What no number of canaries sees; which instrument of a self-test does (where):"
        width = max((len(label) for label, _ in unseen), default=0)
        for label, faults in unseen:
            values = ", ".join(f"{fault.value:g}" for fault in faults)
            yield from _row(label, width, [f"{values}; {detector_of(faults[0].name)}"])
        yield from wrap(summary())


def wrap(text: str, first: str = "", others: str = "", width: int = _WIDTH) -> list[str]:
    """Break lines at blanks; a NUL is a non-breaking blank."""
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace("\0", " ") for line in lines]


def canaries_clause(count: int | None) -> str:
    """Say with how many canaries one would, or would not; a verb follows."""
    return "no number of canaries lets you" if count is None else f"{count:,} canaries: you would"


def decides_clause(count: int | None, notice: float, *, allows_for_data: bool = False) -> str:
    """Say with how many canaries an honest audit decides."""
    data = ", even with as much of others' data as the audit cannot rule out" if allows_for_data else ""
    return f"{canaries_clause(count)} notice noise at {percent(notice)} of the claim, as a gate asks{data}."


def gate_options(confidence: float, notice: float) -> str:
    """Return the options of an audit's line that are not its defaults."""
    options = "" if confidence == CONFIDENCE else f" --confidence {confidence:.10g}"
    return options if notice == NOTICE else f"{options} --notice {notice:g}"


def _row(label: str, width: int, cells: list[str]) -> list[str]:
    return wrap(", ".join(cells), f"  {label:<{width}} ", " " * (width + 3))


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"


@set_module("canaryproof")
def plan(
    noise_multiplier: float,
    dim: float,
    rounds: float = 1,
    delta: float = 1e-6,
    claim: float | None = None,
    all_rounds: bool = False,
    neighbours: Neighbours = "add-or-remove",
    *,
    confidence: float = CONFIDENCE,
    notice: float = NOTICE,
) -> AuditPlan:
    """Plan, before the run, an audit of one noisy sum, or of canaries' largest cosines.

    The change of a model is no such sum where weight decay or momentum weighs rounds differently: take ``plan_rounds``.

    Parameters
    ----------
    noise_multiplier
        Standard deviation σ of a round's noise, in clip norms, 0.01 ≤ σ ≤ 1e6.
    dim
        Dimension d of the release, 1,000 ≤ d ≤ 1e12.
    rounds
        Number T of rounds. Each canary takes part in one, with the clip norm.
    delta
        Target δ in (0, 1).
    claim
        Claimed ε; that of the noise in what is scored if None.
    all_rounds
        Whether the attacker sees each round (Algorithm 3), and not only the sum of all.
    neighbours
        Those of the claim: ``"add-or-remove"``, or ``"replace"``, which move the release up to twice as far. All rounds
        have the former alone, since a canary that is subtracted hardly ever has the largest cosine.
    confidence, notice
        Those of the audit: the confidence of its bounds, and the share of the claimed noise that must be noticed for
        the claim to pass.

    Returns
    -------
    The plan.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the noise alone has a larger ε than claimed.

    Notes
    -----
    Of a release, a fault is noticed if the test of the mechanism rejects noise of at least σ√T, at the confidence with
    half of α. Its statistic is the cosine of the release with the sum of all canaries.

    Of all rounds, scores are largest cosines, which have no such test. A fault is noticed if the lower bound
    ``one-run`` is above the claimed ε, from as many unobserved canaries (``notice.BoundTest``).

    Examples
    --------
    >>> import canaryproof as cp
    >>> cp.plan(noise_multiplier=1.54, dim=1e6, delta=1e-6).count
    95
    """
    noise_multiplier = rules.NOISE_MULTIPLIER.number("noise_multiplier", noise_multiplier)
    dim, rounds = int(_DIM.number("dim", dim)), int(_ROUNDS.number("rounds", rounds))
    delta = rules.DELTA.number("delta", delta)
    claim = None if claim is None else rules.CLAIM.number("claim", claim)
    confidence, notice = rules.CONFIDENCE.number("confidence", confidence), rules.SHARE.number("notice", notice)
    level = 1.0 - confidence
    distance = 2.0 if rules.choice("neighbours", neighbours, NEIGHBOURS) == "replace" else 1.0
    if all_rounds and neighbours == "replace":
        raise ValueError("neighbours: must be add-or-remove for all rounds, not replace")
    released = AtlasClaim(noise_multiplier * (1.0 if all_rounds else math.sqrt(rounds)), delta, dim)
    # Neighbours that are twice as far apart have the ε of half of the noise.
    private = replace(released, noise_multiplier=released.noise_multiplier / distance)
    claimed = private.epsilon if claim is None else claim
    if not max(private.epsilon, rules.CLAIM.low) <= claimed:
        raise ValueError(
            f"claim: must be at least {max(private.epsilon, rules.CLAIM.low):.4g}, not {claimed:.4g}; for a client "
            f"who takes part once this noise has ε = {private.epsilon:.4g}"
        )
    short = distance * _noise(_WORTH_SEEING * claimed, delta) / released.noise_multiplier
    if all_rounds:
        directions = ORTHONORMAL if dim <= _LARGEST_TRANSFORM else INDEPENDENT
        counts: _Counts = partial(
            _count_in_rounds, released=released, rounds=rounds, directions=directions, level=level
        )
        faults = tuple(_faults(private, claimed, partial(counts, above=claimed)))
        seeing = counts(MECHANISMS["less-noise"], short, above=claimed)
        present = counts(MECHANISMS["less-noise"], 1.0, above=0.0)
        deciding = counts(MECHANISMS["less-noise"], notice, above=claimed)
    else:
        see = partial(_count, released=released, level=0.5 * level)
        directions, faults = INDEPENDENT, tuple(_faults(private, claimed, see))
        if neighbours == "replace":
            # The number of clients is the same for both neighbours, so that the divisor says nothing.
            faults = tuple(fault for fault in faults if fault.name != "normalised-after-noise")
        seeing = see(MECHANISMS["less-noise"], short)
        # The audit's test of the length takes a part of the level, and others' data may be as much as it allows.
        least = math.sqrt(notice**2 + special.chdtri(dim, 1.0 - POWER) / special.chdtri(dim, POWER) - 1.0)
        deciding = see(MECHANISMS["less-noise"], least, level=0.5 * (1.0 - SIDE) * level) if least < 1.0 else None
        present = _present(released)
    count = total = max(seeing or 2, present or 2, deciding or 2)
    designs, members = None, float(count)
    if all_rounds:
        total, designs = coins_for(count), design_bounds(count, claimed, delta, confidence, rounds)
        members = 0.5 * total
    if directions == ORTHONORMAL:
        seconds = _transform_seconds(dim, 2 * rounds - 1 if all_rounds else rounds)
    else:
        seconds = _seconds(total * dim, rounds if all_rounds else 1)
    return AuditPlan(
        noise_multiplier=noise_multiplier,
        rounds=rounds,
        dim=dim,
        delta=delta,
        all_rounds=all_rounds,
        neighbours=neighbours,
        claim=claimed,
        release_noise=released.noise_multiplier,
        release_epsilon=private.epsilon,
        directions=directions,
        seeing=seeing,
        short_noise=short,
        present=present,
        deciding=deciding,
        count=count,
        noise_share=members / (noise_multiplier**2 * rounds * dim),
        seconds=seconds,
        faults=faults,
        total=total,
        designs=designs,
        confidence=confidence,
        notice=notice,
    )


def _present(released: AtlasClaim) -> int:
    """Return the number k of canaries that show a missing trace 1/σ: k/σ² must reach a constant."""
    return max(2, math.ceil(visible_trace(1) ** 2 * released.noise_multiplier**2))


def _noise(epsilon: float, delta: float) -> float:
    return float(gaussian_mechanism.noise_multiplier(epsilon, delta))


_Counts = Callable[..., int | None]


def _faults(private: AtlasClaim, claimed: float, counts: _Counts) -> Iterator[PlannedFault]:
    for mechanism in MECHANISMS.values():
        several = any(mechanism.weights(value).shape[1] > 1 for value in mechanism.values)
        if mechanism.scores is not None or several:
            continue
        for value in mechanism.values:
            truth = mechanism.truth(value, private).high
            if truth > claimed * (1.0 + 1e-9):
                count = counts(mechanism, value)
                yield PlannedFault(mechanism.name, mechanism.title, mechanism.parameter, value, truth, count)


# Plans of equal releases share counts.
@lru_cache(maxsize=1024)
def _count(mechanism: Mechanism, value: float, released: AtlasClaim, level: float) -> int | None:
    """Return the smallest number of canaries that notices a fault of a release with probability ``POWER``."""
    squares, weight = residuals(mechanism, value, released)
    with np.errstate(divide="ignore"):
        traces = weight * np.sqrt(released.dim / squares)

    def is_seen(count: int) -> bool:
        length = math.sqrt(count * least_part(2.0 * (1.0 - 1.0 / count) / released.dim))
        probabilities = power(traces, released.noise_multiplier, length, released.dim, level)
        return float(probabilities.mean()) >= POWER

    few, many = 1, 2
    while not is_seen(many):
        few, many = many, min(2 * many, MOST)
        if few >= many:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_seen(middle) else (middle, many)
    return many


@lru_cache(maxsize=1024)
def _count_in_rounds(
    mechanism: Mechanism, value: float, released: AtlasClaim, rounds: int, directions: str, level: float, above: float
) -> int | None:
    """Return the number of canaries, to 5%, whose lower bound is above ε with probability at least ``POWER``."""
    squares, weight = residuals(mechanism, value, released)

    def is_seen(count: int) -> bool:
        # Independent canaries of the same round are noise to each other.
        others = count / rounds * weight**2 if directions == INDEPENDENT else 0.0
        test = BoundTest(above, released.delta, level, count, count, rounds, Inclusion.COIN)
        return test.power(weight * np.sqrt(released.dim / (squares + others))) >= POWER

    return least_count(is_seen, MOST_SCORES if directions == INDEPENDENT else min(MOST_SCORES, released.dim // 4))


# Number of coordinates whose time is measured.
_MEASURED = 2**22


# Number of rounds that ``RoundScores`` scores at once.
_BLOCK = 32


def _seconds(coordinates: float, rounds: int) -> float:
    """Return the time to make canaries with a total number of coordinates, and to score them in all rounds."""
    dim = 2**18
    canaries = Canaries(0, _MEASURED // dim, dim)
    # The first call compiles the kernels, or loads them.
    canaries.cosines(canaries.sum())
    began = time.perf_counter()
    again = Canaries(1, canaries.count, dim)
    if rounds == 1:
        again.cosines(again.sum())
    else:
        again.block_cosines(np.ones((min(rounds, _BLOCK), dim), np.float32))
    blocks = math.ceil(rounds / _BLOCK)
    return (time.perf_counter() - began) * blocks * coordinates / _MEASURED


def _transform_seconds(dim: int, rounds: int) -> float:
    """Return the time to sum orthonormal canaries in each round, and to score them once."""
    # The measured dimension is a power of two exactly where the other one is.
    measured = dim >> max(dim.bit_length() - 18, 0) | (dim & (dim - 1) > 0)
    canaries = OrthonormalCanaries(0, 1, measured)
    canaries.scores(canaries.sum())
    began = time.perf_counter()
    for _ in range(3):
        canaries.sum()
    return (time.perf_counter() - began) / 3.0 * (rounds + 1) * dim * math.log(dim) / (measured * math.log(measured))
