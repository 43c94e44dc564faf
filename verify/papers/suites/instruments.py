"""Instruments of an auditor, on simulated trainings with one fault each: what each one sees, and after how many rounds.

A training is a sum of clipped updates with noise, by Poisson sampling. Its members' updates do not change, since no
instrument looks at what the model learns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from canaryproof.kernels.arrays import Array, Ints, precision
from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.audit.accounting.accountant import Claim, poisson
from canaryproof.verify.audit.answer.instruments import InstrumentTest, ResidualTests, SamplingTests
from canaryproof.verify.audit.answer.replay import replay
from canaryproof.verify.audit.blindspots.fault_map import AUDITS, WATCH, fault_map
from canaryproof.verify.audit.canaries.canary_clients import CanaryClients
from canaryproof.verify.audit.canaries.participation import Insertion, bernoulli
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.audit.levels import LEVEL
from canaryproof.verify.audit.watch.entry import watch
from canaryproof.verify.papers.check.power import visible_share
from canaryproof.verify.papers.check.results import Check, Context, Effort, Outcome, Subject
from canaryproof.verify.papers.check.verdicts import conclude, holds, shares_hold
from canaryproof.verify.papers.records.evidence import FaultInspected, InstrumentSight, InstrumentsMeasured

# Each training claims this, with a clip norm of 1.
MEMBERS, DIM, RATE, NOISE_MULTIPLIER = 1000, 2048, 1 / 8, 1.0
LAYERS = (1024, 896, 128)
EXPECTED = RATE * MEMBERS
DELTA = 1e-5
# An instrument sees a fault after so many rounds if it does in this share of the trainings.
SEEN = 0.9
# Numbers of rounds after which the full level looks.
_ROUNDS = (1, 2, 4, 8, 16, 32)
# Instruments that take a record of each round.
_RECORDS = ("residual", "sampling record")
_SPLITS = np.cumsum(LAYERS)[:-1]

Vectors = Array


def _clipped(updates: Vectors, norm: float = 1.0) -> Vectors:
    lengths = np.linalg.norm(updates, axis=1, keepdims=True)
    return np.asarray(updates * np.minimum(1.0, norm / np.maximum(lengths, 1e-12)))


def _sum(updates: Vectors) -> Array:
    return np.asarray(_clipped(updates).sum(axis=0))


def _rng(seed: int, number: int, purpose: int) -> np.random.Generator:
    # A seed sequence that ends with 0 is the one without it, so that purposes begin at 1.
    return np.random.default_rng([seed, number, purpose])


def _drawn(number: int, seed: int) -> Ints:
    return np.flatnonzero(_rng(seed, number, 1).random(MEMBERS) < RATE)


def _noise(number: int, seed: int) -> Array:
    return NOISE_MULTIPLIER * _rng(seed, number, 2).normal(size=DIM)


def _claim(rounds: int) -> Claim:
    return poisson(NOISE_MULTIPLIER, rate=RATE, rounds=rounds)


@dataclass(frozen=True)
class SimulatedTraining:
    """A training with one fault of the map at most: how it draws, sums, makes noise and divides."""

    sees: str = ""  # The instrument that is to see its fault; empty if it has none
    rounds: int = 1  # After so many rounds
    # Who takes part and what the noise is, by the number of the round and the training's seed.
    drawn: Callable[[int, int], Ints] = _drawn
    noise: Callable[[int, int], Array] = _noise
    total: Callable[[Vectors], Array] = _sum
    # Factors of the noise and of the release, by the number of members who were drawn.
    scale: Callable[[int], float] = lambda _size: 1.0
    weight: Callable[[int], float] = lambda _size: 1.0
    # The claim of so many rounds.
    claim: Callable[[int], Claim | float] = _claim

    def release(self, updates: Vectors, noise: Array, joined: Array | float = 0.0) -> Array:
        """Return what a round releases of some updates, and of what has joined their clipped sum."""
        size = len(updates)
        total = joined + (self.total(updates) if size else np.zeros(DIM))
        return np.asarray(self.weight(size) * (total + self.scale(size) * noise) / EXPECTED)


def _fixed(number: int, seed: int) -> Ints:
    return np.asarray(_rng(seed, number, 1).choice(MEMBERS, round(EXPECTED), replace=False))


def _batch(epoch: Ints, number: int) -> Ints:
    size = round(EXPECTED)
    return epoch[number % 8 * size : (number % 8 + 1) * size]


def _shuffled(number: int, seed: int) -> Ints:
    return _batch(_rng(seed, number // 8, 1).permutation(MEMBERS), number)


def _in_turn(number: int, _seed: int) -> Ints:
    return _batch(np.arange(MEMBERS), number)


def _favoured(number: int, seed: int) -> Ints:
    rates = np.where(np.arange(MEMBERS) < MEMBERS // 10, 2.0 * RATE, 8.0 / 9.0 * RATE)
    return np.flatnonzero(_rng(seed, number, 1).random(MEMBERS) < rates)


def _mean_clipped(updates: Vectors) -> Array:
    return np.asarray(len(updates) * _clipped(updates.mean(axis=0)[np.newaxis])[0])


def _by_layer(updates: Vectors) -> Array:
    return np.concatenate([_sum(part) for part in np.split(updates, _SPLITS, axis=1)])


def _padded(updates: Vectors) -> Array:
    missing = max(0, 2 * round(EXPECTED) - len(updates))
    return _sum(np.concatenate([updates, np.repeat(updates[:1], missing, axis=0)]))


def _less(share: float) -> Callable[[int, int], Array]:
    return lambda number, seed: share * _noise(number, seed)


def _bare_layer(number: int, seed: int) -> Array:
    return np.asarray(_noise(number, seed) * np.repeat([1.0, 1.0, 0.0], LAYERS))


def _same(_number: int, seed: int) -> Array:
    return _noise(0, seed)


def _tiled(number: int, seed: int) -> Array:
    return np.tile(_noise(number, seed)[: DIM // 2], 2)


def _coarse(number: int, seed: int) -> Array:
    # Eight bits, the leading one with them, as bfloat16 has.
    mantissa, exponent = np.frexp(_noise(number, seed))
    return np.asarray(np.ldexp(np.round(mantissa * 256.0) / 256.0, exponent))


def _uniform(number: int, seed: int) -> Array:
    return np.asarray(np.sqrt(3.0) * NOISE_MULTIPLIER * _rng(seed, number, 2).uniform(-1.0, 1.0, DIM))


def _correlated(number: int, seed: int) -> Array:
    # The deviation is the claimed one.
    return np.asarray((_noise(number + 1, seed) - 0.5 * _noise(number, seed)) / np.sqrt(1.25))


HONEST = SimulatedTraining()
FAULTS: Mapping[str, SimulatedTraining] = {
    "less-noise": SimulatedTraining("residual", 1, noise=_less(0.8)),
    "noise-per-microbatch": SimulatedTraining("residual", 1, noise=_less(0.5)),
    "dropped-clients": SimulatedTraining("residual", 1, noise=_less(0.8**0.5)),
    "sensitivity-apart": SimulatedTraining("residual", 1, noise=_less(4.8e-5)),
    "batch-twice": SimulatedTraining("residual", 1, scale=lambda size: 1.0 / max(1, size)),
    "no-noise-on-a-share": SimulatedTraining("residual", 1, noise=_bare_layer),
    "reused-noise": SimulatedTraining("residual", 2, noise=_same),
    "tiled-noise": SimulatedTraining("residual", 1, noise=_tiled),
    "correlated-noise": SimulatedTraining("residual", 2, noise=_correlated),
    "coarse-noise": SimulatedTraining("residual", 1, noise=_coarse),
    "uniform-noise": SimulatedTraining("residual", 1, noise=_uniform),
    "clip-after-average": SimulatedTraining("replay", 1, total=_mean_clipped),
    "per-layer": SimulatedTraining("replay", 1, total=_by_layer),
    "nothing-clipped": SimulatedTraining("replay", 1, total=lambda updates: updates.sum(axis=0)),
    "padding": SimulatedTraining("replay", 1, total=_padded),
    "normalised-after-noise": SimulatedTraining("replay", 1, weight=lambda size: EXPECTED / max(1, size)),
    "half-batch": SimulatedTraining("replay", 1, weight=lambda _size: 2.0),
    "fixed-size": SimulatedTraining("sampling record", 8, drawn=_fixed),
    "fixed-batches": SimulatedTraining("sampling record", 4, drawn=_shuffled),
    "in-turn": SimulatedTraining("sampling record", 4, drawn=_in_turn),
    "favoured": SimulatedTraining("sampling record", 32, drawn=_favoured),
}


@cache
def _updates() -> Vectors:
    """Return the members' updates: some are longer than the clip norm, and they share a direction."""
    rng = np.random.default_rng(np.random.SeedSequence(58))
    lengths = rng.uniform(0.3, 2.0, (MEMBERS, 1))
    common = rng.normal(size=DIM)
    return np.asarray(lengths * (0.3 * common + rng.normal(size=(MEMBERS, DIM))) / np.sqrt(1.09 * DIM))


def _by_round(training: SimulatedTraining, rounds: int, seed: int) -> Iterator[tuple[ResidualTests, SamplingTests]]:
    """Run a training, and yield its records after each round."""
    residuals, sampling = ResidualTests(NOISE_MULTIPLIER, DIM, LAYERS), SamplingTests(RATE, MEMBERS)
    for t in range(rounds):
        drawn = training.drawn(t, seed)
        updates = _updates()[drawn]
        release = training.release(updates, training.noise(t, seed)).astype(np.float32)
        spacing = precision(release) * float(np.abs(release).max()) * EXPECTED
        residuals.add(release.astype(np.float64) * EXPECTED - _sum(updates), spacing)
        sampling.add(drawn)
        yield residuals, sampling


def smallest_p_values(training: SimulatedTraining, rounds: Sequence[int], seed: int) -> dict[int, dict[str, float]]:
    """Run a training, and return the smallest p-value of each record after some numbers of rounds."""
    p_values = {}
    for t, (residuals, sampling) in enumerate(_by_round(training, max(rounds), seed), start=1):
        if t in rounds:
            pair = _smallest(residuals.tests()), _smallest(sampling.tests())
            p_values[t] = dict(zip(_RECORDS, pair, strict=True))
    return p_values


def _smallest(tests: Sequence[InstrumentTest]) -> float:
    return min(1.0 if test.p_value is None else test.p_value for test in tests)


def round_of_failure(training: SimulatedTraining, rounds: int, seed: int) -> int | None:
    """Run a training under a watch, and return the round after which a finding failed; None if none did."""
    seen = watch(delta=DELTA, claim=training.claim(rounds), members=MEMBERS, divisor=EXPECTED, rate=RATE)
    clip = seen.clipping(training.total, 1.0)
    for t in range(rounds):
        drawn = training.drawn(t, seed)
        rows, size = _updates()[drawn], len(drawn)
        total = clip(rows) if size else np.zeros(DIM)
        noised = total + training.scale(size) * training.noise(t, seed)
        release = np.float32(training.weight(size) * noised / EXPECTED)
        seen.step(
            release=release, total=total, gradients=rows, drawn=drawn, clip_norm=1.0, noise_multiplier=NOISE_MULTIPLIER
        )
        if seen.has_failed:
            return t + 1
    return None


def audited(training: SimulatedTraining, count: int, rounds: Sequence[int], seed: int) -> dict[int, float]:
    """Run a training with an attacker's canaries, and return a p-value of its noise after some numbers of rounds.

    It is the inverse of the largest evidence so far, a p-value by Ville's inequality.
    """
    schedule = bernoulli(0, RATE, max(rounds), seed, Insertion(count, observed=count))
    clients = CanaryClients(Canaries(seed, count, DIM), schedule)
    for t in range(max(rounds)):
        updates = _updates()[training.drawn(t, seed)]
        release = training.release(updates, training.noise(t, seed), clients.total(t, 1.0))
        clients.add(release.astype(np.float32), t, known=_sum(updates) / EXPECTED)
    evidence = clients.evidence(NOISE_MULTIPLIER)
    return {t: float(np.exp(-evidence.log_values[evidence.rounds < t].max(initial=0.0))) for t in rounds}


def replayed(training: SimulatedTraining, seed: int) -> bool:
    """Tell whether a replay of one step sees the fault."""
    noise = training.noise(0, seed)
    batch = _updates()[:40]
    finite = {
        "10⁶ clip norms": 1e6 * noise / np.linalg.norm(noise),
        "a duplicate": batch[0],
        "10⁶ clip norms against the sum": -1e6 * batch.sum(axis=0),
    }
    return replay(lambda updates: training.release(updates, noise), batch, 1.0 / EXPECTED, extremes=finite).has_failed


def _seeds(context: Context, name: str, count: int) -> list[int]:
    return [int(seed) for seed in context.key(f"instruments/{name}").generate_state(count)]


def _visible(runs: int, share: float, tests: int) -> str:
    """Say by how much a share of runs is off that one of several tests finds to be too large."""
    return f"{visible_share(runs, share, 1, 2.0 * LEVEL / tests) - share:.2g}"


def sights(name: str, training: SimulatedTraining, context: Context) -> dict[str, tuple[InstrumentSight, ...]]:
    """Measure what each instrument sees of a fault; at the quick level the one that is to see it."""
    quick = context.level is not Effort.FULL
    seen: dict[str, tuple[InstrumentSight, ...]] = {}
    seeds = _seeds(context, name, context.pick(8, 20))
    rounds = [training.rounds] if quick else _ROUNDS
    if training.sees != "replay" or not quick:
        runs = [smallest_p_values(training, rounds, seed) for seed in seeds]
        for instrument in _RECORDS if not quick else [training.sees]:
            noticed = ((t, sum(run[t][instrument] <= LEVEL for run in runs)) for t in rounds)
            seen[instrument] = tuple(InstrumentSight(t, number, len(runs)) for t, number in noticed)
    if training.sees == "replay" or not quick:
        few = seeds[: context.pick(1, 3)]
        seen["replay"] = (InstrumentSight(1, sum(replayed(training, seed) for seed in few), len(few)),)
    if not quick:
        first = [round_of_failure(training, max(rounds), seed) for seed in seeds]
        noticed = ((t, sum(each is not None and each <= t for each in first)) for t in rounds)
        seen[WATCH] = tuple(InstrumentSight(t, number, len(seeds)) for t, number in noticed)
    for audit, count in () if quick else AUDITS.items():
        p_values = [audited(training, count, rounds, seed) for seed in seeds]
        noticed = ((t, sum(each[t] <= LEVEL for each in p_values)) for t in rounds)
        seen[audit] = tuple(InstrumentSight(t, number, len(seeds)) for t, number in noticed)
    return seen


def _power(context: Context) -> Outcome:
    """Judge whether each fault is seen after as many rounds as it is said to be."""
    faults = {
        name: FaultInspected(fault_map()[name].title, training.sees, "", sights(name, training, context))
        for name, training in FAULTS.items()
    }
    p_values, replays = {}, []
    for name, fault in faults.items():
        for sight in fault.sights.get(fault.sees, ()):
            if fault.sees == "replay":
                replays.append(sight.noticed == sight.runs)
            elif sight.rounds == FAULTS[name].rounds:
                p_values[name] = float(stats.binom.cdf(sight.noticed, sight.runs, SEEN))
    runs = context.pick(8, 20)
    visible = _visible(runs, 1.0 - SEEN, len(p_values))
    outcome = shares_hold(p_values, runs, f"each fault is seen in {SEEN:.0%} of trainings", visible)
    unseen = {
        each.name: FaultInspected(each.title, "", each.reason, {}) for each in fault_map().values() if each.reason
    }
    measured = InstrumentsMeasured(MEMBERS, DIM, RATE, NOISE_MULTIPLIER, SEEN, faults | unseen)
    finding = f"{outcome.finding}; {sum(replays)} of {len(replays)} faults of the step are seen by a replay"
    verdict = outcome.verdict if all(replays) else holds(False)
    return conclude(verdict, finding, outcome.design, **to_document(measured))


def _level(context: Context) -> Outcome:
    """Judge the tests' p-values in honest trainings: none refutes, and none is small too often."""
    runs, share = context.pick(40, 400, 12), 0.05
    small: dict[str, int] = {}
    refuted = 0
    for seed in _seeds(context, "honest", runs):
        *_, records = _by_round(HONEST, 6, seed)
        for test in (test for record in records for test in record.tests()):
            small[test.name] = small.get(test.name, 0) + (test.p_value is not None and test.p_value <= share)
            refuted += test.has_failed
    honest = replayed(HONEST, 0)
    watches = context.pick(1, 20)
    stopped = sum(round_of_failure(HONEST, 32, seed) is not None for seed in _seeds(context, "watched", watches))
    p_values = {name: float(stats.binom.sf(number - 1, runs, share)) for name, number in small.items()}
    visible = _visible(runs, share, len(p_values))
    outcome = shares_hold(p_values, runs, f"at most {share:.0%} of p-values are below {share}", visible)
    finding = (
        f"{outcome.finding}; {refuted} tests, {int(honest)} of 1 replay and {stopped} of {watches} watches refute an "
        "honest training"
    )
    verdict = outcome.verdict if not refuted and not honest and not stopped else holds(False)
    return conclude(verdict, finding, outcome.design, runs=runs, refuted=refuted, small=small)


CHECKS = (
    Check(
        "blindspots.instruments.level",
        Subject.IMPLEMENTATION,
        "verify.audit.answer.instruments",
        "no instrument refutes an honest training, and its p-values are not too small",
        _level,
    ),
    Check(
        "blindspots.instruments.power",
        Subject.IMPLEMENTATION,
        "verify.audit.watch.watching",
        f"each of {len(FAULTS)} faults of a training is seen by an instrument after the stated number of rounds",
        _power,
    ),
)
