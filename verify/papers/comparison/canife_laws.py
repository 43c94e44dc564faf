"""Random canaries and CANIFE in a training of one's own size, drawn from the laws of their scores.

No network is trained. A release is the sum of the canaries in it and noise, so that the scores of random canaries
have exact laws at any size. CANIFE's scores are Gaussian given its canary's length and what the clients of a round add
to them; both are those of the canaries that a real training had (``measured_designs.json``).
"""

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels.arrays import Array
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.accounting import accountant
from canaryproof.verify.audit.answer.inputs import epsilon_at
from canaryproof.verify.audit.bounds.catalogue import METHODS
from canaryproof.verify.audit.bounds.lower_bound import prepare
from canaryproof.verify.audit.canaries.round_scores import BLOCK
from canaryproof.verify.audit.estimators.epsilon_estimators import fitted_estimate
from canaryproof.verify.audit.estimators.moments import from_two_groups
from canaryproof.verify.audit.files.json_records import Count, NonEmpty, read
from canaryproof.verify.audit.files.reading import parsed_json
from canaryproof.verify.audit.rules import NumberRange
from canaryproof.verify.papers.accounting.sampled_gaussian import least_epsilon
from canaryproof.verify.papers.canife import measure
from canaryproof.verify.papers.check.results import Context, Effort
from canaryproof.verify.papers.comparison.canife_designs import PRINTED, REDESIGNED
from canaryproof.verify.papers.records.benchmark_record import BenchmarkRecord
from canaryproof.verify.papers.records.canife_comparison import CanifeComparison
from canaryproof.verify.papers.records.canife_outcomes import (
    ALGORITHM_3,
    ALGORITHM_3_BOUND,
    AS_USED,
    CANIFE_PRINTED,
    CANIFE_REDESIGNED,
    EQUAL_CANARIES,
    EQUAL_SECONDS,
    KNOWN_ROUNDS,
    ComparedOutcome,
)
from canaryproof.verify.papers.records.training_record import largest_finite

# Section 5.4 of Andrew et al. (arXiv 2302.03098): one epoch of MNIST's size at batch 128, of a network with one hidden
# layer of 128; CANIFE's scores of a round are those of its Section 4, the rounds between its audits too.
DIM, CANARIES, ROUNDS, NOISE_MULTIPLIER, DELTA = 101_770, 1000, 469, 0.2, 1e-5
SCORES, EVERY = 100, 100
# The largest finite ε̂ of a round with so many scores, which has one error. No error would be infinite, and has this.
ROUND_CAP = largest_finite(SCORES // 2, SCORES // 2, 1.0 / SCORES)
BOUND = "fixed-sequence"
_CANARIES = NumberRange("be a whole number from 10 to 1e5", 10, 10**5, whole=True)
_ROUNDS = NumberRange("be a whole number from 1 to 1e5", 1, 10**5, whole=True)
_DIM = NumberRange("be a whole number from 1,000 to 1e9", 1000, 10**9, whole=True)
_SEED = NumberRange("be a whole number from 0 to 2⁶⁴ − 1", 0, 2**64 - 1, whole=True)
# Trainings that are drawn: the scores of Algorithm 3 take longest. More audits than these make CANIFE's mean no other.
_TRAININGS, _FEWER_TRAININGS, _MOST_AUDITS = 200, 40, 1000
_CONFIDENCE = 0.95
# Quantiles of trainings.
_REACH = (0.025, 0.5, 0.975)
# Noise multipliers that are nearer than this share are interpolated between.
_NEAR = 0.03


@dataclass(frozen=True)
class MeasuredCanary:
    """A canary that CANIFE designed: squared length ‖u‖², the deviation that clients give a score, and its cost."""

    shift: float
    clients: float
    seconds: float


@dataclass(frozen=True)
class MeasuredDesigns:
    """Canaries of both designs in one training's rounds, and what random ones cost on the same machine.

    Lengths are in clip norms. ``scoring`` is in seconds for each random canary, pass and coordinate; a pass scores a
    block of rounds. It includes a share of adding canaries to their rounds.
    """

    data: str
    dim: Count
    scoring: float
    printed: NonEmpty[MeasuredCanary]
    redesigned: NonEmpty[MeasuredCanary]


def measured_designs(record: BenchmarkRecord) -> MeasuredDesigns:
    """Return the designs that trainings measured, as the package ships them."""
    scenario, setting = record.scenarios[0], record.setting
    assert scenario.runs is not None

    def of(design: str) -> tuple[MeasuredCanary, ...]:
        audits = [audit for run in scenario.runs or () for audit in run.canife[design]]
        return tuple(MeasuredCanary(audit.law.shift, audit.law.clients, audit.seconds) for audit in audits)

    scored = 2.0 * setting.canaries * _passes(setting.rounds) * setting.dim
    return MeasuredDesigns(
        record.data.name.partition(",")[0], setting.dim, scenario.seconds.oneshot / scored, of(PRINTED), of(REDESIGNED)
    )


def _passes(rounds: int) -> int:
    """Return how often Algorithm 3 makes each canary to score it in so many rounds."""
    return -(-rounds // BLOCK)


@cache
def shipped_designs() -> MeasuredDesigns:
    """Read the designs of the published benchmark."""
    text = resources.files(__package__).joinpath("measured_designs.json").read_bytes()
    return read(MeasuredDesigns, parsed_json(text))


@dataclass(frozen=True)
class TrainingLaws:
    """One epoch of a training in which a client takes part in each round with probability 1/rounds.

    Nothing is in a release but canaries and noise: an attacker who knows the others' updates has taken them out.
    """

    dim: int
    canaries: int
    rounds: int
    noise_multiplier: float
    delta: float
    seed: int

    @property
    def rate(self) -> float:
        """The sampling rate."""
        return 1.0 / self.rounds

    def epsilon(self, noise_multiplier: float) -> float:
        """Return the analytical ε of the training with this noise."""
        claim = accountant.poisson(self.noise_multiplier, rate=self.rate, rounds=self.rounds)
        return epsilon_at(noise_multiplier, claim, self.delta)

    def noise_draws(self, canaries: int) -> Array:
        """Draw the noise multiplier that so many canaries at known rounds measure, of each training."""
        rng = self.rng(f"known rounds/{canaries}")
        return np.array([self.noise_of_traces(*self.traces(canaries, rng)) for _ in range(_TRAININGS)])

    def traces(self, canaries: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the cosine of each round's release with the sum of the canaries in it, and that sum's length.

        Canaries at known rounds are orthonormal.
        """
        taking_part = rng.binomial(canaries, self.rate, self.rounds)
        lengths = np.sqrt(taking_part[taking_part > 0])
        along = lengths + self.noise_multiplier * rng.standard_normal(lengths.size)
        across = self.noise_multiplier**2 * rng.chisquare(self.dim - 1, lengths.size)
        return along / np.sqrt(along**2 + across), lengths

    def noise_of_traces(self, cosines: Array, lengths: Array) -> float:
        """Return the noise multiplier that traces show, infinite if they show none.

        It is the estimate of ``RoundTraces`` to order 1/d: t is nearly normal around length/σ. That one takes a fifth
        of a second a training.
        """
        t = cosines * np.sqrt((self.dim - 1.0) / (1.0 - cosines**2))
        distance = float(lengths @ t) * (1.0 - 0.75 / self.dim)
        return float(lengths @ lengths) / distance if distance > 0.0 else math.inf

    def largest_cosines(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw Algorithm 3's scores of canaries that are sampled like clients, and of as many unobserved ones."""
        taking_part = rng.binomial(self.rounds, self.rate, self.canaries)
        unobserved = self._largest_null(np.full(self.canaries, self.rounds), rng)
        best = self._largest_null(self.rounds - taking_part, rng)
        owner = np.repeat(np.arange(self.canaries), taking_part)
        others = rng.binomial(self.canaries - 1, self.rate, owner.size)
        # Others in the round have random directions, whose sum is noise to this canary.
        variance = self.noise_multiplier**2 + others / self.dim
        along = 1.0 + np.sqrt(variance) * rng.standard_normal(owner.size)
        across = variance * rng.chisquare(self.dim - 1, owner.size)
        np.maximum.at(best, owner, along / np.sqrt(along**2 + across))
        return best, unobserved

    def _largest_null(self, rounds: NDArray[np.int64], rng: np.random.Generator) -> Array:
        """Draw the largest of so many cosines with rounds that a canary had no part in; −1 of none."""
        log_share = np.log(rng.random(rounds.size)) / np.maximum(rounds, 1)
        t = stats.t.isf(-np.expm1(log_share), self.dim - 1)
        return np.asarray(np.where(rounds > 0, t / np.sqrt(t**2 + self.dim - 1.0), -1.0))

    def canife(self, canaries: Sequence[MeasuredCanary], audits: int, design: str) -> Array:
        """Draw CANIFE's ε̂ of trainings with so many audited rounds, each by one of these canaries."""
        rng = self.rng(f"CANIFE {design}/{audits}")
        served = self.served(audits)
        deltas = measure.Deltas.as_printed(SCORES, self.delta)
        trainings = []
        for _ in range(max(5, min(_TRAININGS, 2 * _MOST_AUDITS // audits))):
            chosen = rng.integers(len(canaries), size=audits)
            epsilons = [self._round_epsilon(canaries[i], deltas.scores, rng) for i in chosen]
            trainings.append(measure.training_epsilon(epsilons, served, self.rate, deltas))
        return np.array(trainings)

    def _round_epsilon(self, canary: MeasuredCanary, delta: float, rng: np.random.Generator) -> float:
        deviation = math.hypot(self.noise_multiplier * math.sqrt(canary.shift), canary.clients)
        seen, unseen = deviation * rng.standard_normal((2, SCORES // 2))
        return measure.round_epsilon(seen + canary.shift, unseen, delta, zero_counts="capped").epsilon

    def cap(self, audits: int) -> float:
        """Return CANIFE's ε̂ of a training in which no audit has an error of either kind."""
        deltas = measure.Deltas.as_printed(SCORES, self.delta)
        return measure.training_epsilon([ROUND_CAP] * audits, self.served(audits), self.rate, deltas)

    def served(self, audits: int) -> list[int]:
        """Return the rounds that each of so many audits, evenly spaced, stands for."""
        every = self.rounds // audits
        return measure.rounds_served([every * (i + 1) for i in range(audits)], self.rounds)

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the generator of one purpose."""
        return np.random.default_rng(Context(Effort.QUICK, self.seed).key(f"CANIFE against random canaries/{purpose}"))


class _Curve:
    """ε by the noise multiplier, which takes an accountant seconds, so that near values are interpolated."""

    def __init__(self, laws: TrainingLaws) -> None:
        self._laws = laws
        self._known: list[tuple[float, float]] = []

    def __call__(self, noise_multiplier: float) -> float:
        """Return ε at a noise multiplier, by at most 1e-4 of itself off."""
        i = bisect.bisect(self._known, (noise_multiplier,))
        neighbours = self._known[max(0, i - 1) : i + 1]
        if len(neighbours) == 2 and neighbours[1][0] < (1.0 + _NEAR) * neighbours[0][0] and neighbours[1][1] > 0.0:
            sigmas, epsilons = np.log(neighbours).T
            return math.exp(float(np.interp(math.log(noise_multiplier), sigmas, epsilons)))
        exact = self._laws.epsilon(noise_multiplier)
        if 0.0 < exact < math.inf:
            bisect.insort(self._known, (noise_multiplier, exact))
        return exact


def checked_laws(
    dim: object = DIM,
    canaries: object = CANARIES,
    epsilon: object = None,
    rounds: object = ROUNDS,
    delta: object = DELTA,
    seed: object = 0,
) -> TrainingLaws:
    """Return the arguments of ``benchmark_canife``, which names them in its errors, as a training."""
    dimension, count = int(_DIM.number("dim", dim)), int(_CANARIES.number("canaries", canaries))
    if count > dimension:
        raise ValueError(f"canaries: must be at most dim, {dimension:,}, as those of a round are orthonormal")
    number, probability = int(_ROUNDS.number("rounds", rounds)), float(rules.DELTA.number("delta", delta))
    seed = int(_SEED.number("seed", seed))
    noise = NOISE_MULTIPLIER
    if epsilon is not None:
        target = rules.CLAIM.number("epsilon", epsilon)
        noise = noise_of(target, probability, number)
    return TrainingLaws(dimension, count, number, noise, probability, seed)


def noise_of(epsilon: float, delta: float, rounds: int) -> float:
    """Return the noise multiplier at which one epoch of so many rounds has its ε."""
    return accountant.noise_multiplier(epsilon, delta, rate=1.0 / rounds, rounds=rounds)


def compare(laws: TrainingLaws, advance: Callable[[str], object] = lambda _: None) -> CanifeComparison:
    """Compare the methods in a training; ``advance`` takes the name of each method that is done."""
    advance("accounting")
    curve = _Curve(laws)
    analytical = curve(laws.noise_multiplier)
    designs = shipped_designs()
    outcomes = []
    for outcome in _outcomes(laws, designs, curve):
        outcomes.append(outcome)
        advance(outcome.name)
    return CanifeComparison(
        version=version("canaryproof"),
        trained=0,
        data=designs.data,
        dim=laws.dim,
        canaries=laws.canaries,
        rounds=laws.rounds,
        noise_multiplier=laws.noise_multiplier,
        epsilon=analytical,
        delta=laws.delta,
        scores=SCORES,
        round_cap=ROUND_CAP,
        floor=least_epsilon(laws.delta),
        seed=laws.seed,
        outcomes=tuple(outcomes),
    )


def _outcomes(laws: TrainingLaws, designs: MeasuredDesigns, curve: _Curve) -> Iterator[ComparedOutcome]:
    audits = min(max(1, laws.rounds // EVERY), _MOST_AUDITS)
    most = min(laws.canaries, laws.rounds, _MOST_AUDITS)
    yield _known_rounds(laws, designs, curve, AS_USED, laws.canaries)
    yield from _algorithm_3(laws, designs)
    printed = _canife(laws, designs, AS_USED, audits)
    yield from printed
    yield _known_rounds(laws, designs, curve, EQUAL_CANARIES, audits)
    if most > audits:
        yield from _canife(laws, designs, EQUAL_CANARIES, most)
    # As many random canaries as can be scored while CANIFE designs its own.
    affordable = printed[0].seconds / (designs.scoring * laws.dim)
    digits = 1 - math.floor(math.log10(affordable))
    yield _known_rounds(laws, designs, curve, EQUAL_SECONDS, min(laws.dim, int(round(affordable, digits))))


def _known_rounds(
    laws: TrainingLaws, designs: MeasuredDesigns, curve: _Curve, budget: str, canaries: int
) -> ComparedOutcome:
    noise = np.quantile(laws.noise_draws(canaries), _REACH, method="inverted_cdf")
    # Ends first: what lies between near ones is interpolated.
    high, low, middle = (curve(float(noise[i])) for i in (0, 2, 1))
    # Each canary is expected in one round. A pass for that one alone would take less than a whole block's.
    seconds = designs.scoring * laws.dim * canaries
    return ComparedOutcome(budget, KNOWN_ROUNDS, "estimate", middle, low, high, math.inf, canaries, 1.0, seconds)


def _algorithm_3(laws: TrainingLaws, designs: MeasuredDesigns) -> Iterator[ComparedOutcome]:
    rng = laws.rng("Algorithm 3")
    estimates, bounds, cap = [], [], math.inf
    for _ in range(_FEWER_TRAININGS):
        scores = laws.largest_cosines(rng)
        estimates.append(float(fitted_estimate(from_two_groups(*scores), laws.delta).epsilon))
        bound = METHODS[BOUND].bound(prepare(*scores), laws.delta, 1.0 - _CONFIDENCE)
        bounds.append(bound.value)
        cap = bound.cap
    # Observed and unobserved canaries are scored in every round.
    seconds = 2.0 * designs.scoring * laws.dim * laws.canaries * _passes(laws.rounds)
    for name, kind, values, most in (
        (ALGORITHM_3, "estimate", estimates, math.inf),
        (ALGORITHM_3_BOUND, "lower bound", bounds, cap),
    ):
        low, middle, high = np.quantile(values, _REACH)
        yield ComparedOutcome(AS_USED, name, kind, middle, low, high, most, laws.canaries, 1.0, seconds)


def _canife(laws: TrainingLaws, designs: MeasuredDesigns, budget: str, audits: int) -> list[ComparedOutcome]:
    outcomes = []
    for name, canaries in ((CANIFE_PRINTED, designs.printed), (CANIFE_REDESIGNED, designs.redesigned)):
        low, middle, high = np.quantile(laws.canife(canaries, audits, name), _REACH)
        trainings = 1.0 + audits * SCORES / laws.rounds
        # One design in twenty had to wait for the machine.
        each = float(np.median([canary.seconds for canary in canaries]))
        seconds = audits * each * laws.dim / designs.dim
        cap = laws.cap(audits)
        outcomes.append(ComparedOutcome(budget, name, "estimate", middle, low, high, cap, audits, trainings, seconds))
    return outcomes


@set_module("canaryproof")
def benchmark_canife(
    dim: float = DIM,
    canaries: float = CANARIES,
    *,
    epsilon: float | None = None,
    rounds: float = ROUNDS,
    delta: float = DELTA,
    seed: int = 0,
) -> CanifeComparison:
    """Compare CANIFE with random canaries in a training of your size, at equal numbers of canaries and seconds.

    Parameters
    ----------
    dim
        Dimension d of the model, from 1,000 to 1e9.
    canaries
        Number of random canaries, from 10 to 1e5 and at most ``dim``.
    epsilon
        Analytical ε of the training, 0.001 to 10,000; without it the noise multiplier is the paper's 0.2.
    rounds
        Rounds T of one epoch, from 1 to 1e5: a client takes part in each with probability 1/T.
    delta
        Target δ in (0, 1).
    seed
        Seed of all randomness.

    Returns
    -------
    The comparison: printed, it begins with its answer.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    Nothing is trained. Scores of random canaries are drawn from their laws in a training whose releases hold canaries
    and noise; other people's data, which the attacker is taken to know, are left out. CANIFE's canaries are those that
    it designed in five trainings on Fashion-MNIST, and their scores have the lengths and the spread measured there. The
    seconds are from the same trainings, in proportion to ``dim``. Where rounds are known, they are an upper limit: each
    random canary is counted with a pass that scores a block of 32 rounds.

    Examples
    --------
    >>> import canaryproof as cp
    >>> found = cp.benchmark_canife(dim=1e5, canaries=500, epsilon=5.0, rounds=1)
    >>> print(round(found.outcomes[3].cap, 2))
    3.9
    """
    return compare(checked_laws(dim, canaries, epsilon, rounds, delta, seed))
