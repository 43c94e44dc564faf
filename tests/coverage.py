"""Whether intervals, bounds, shares and decisions keep what they promise, where users are: ``make coverage``.

Each cell is a setting, in which honest trainings are audited, and then trainings with the share of the noise that the
audit says it would notice. A promise is kept unless its misses are too many for chance: all tests, of each cell and of
all cells together, have the level 1e-3 in sum. Cells that are done are kept in a file, and not run again while their
settings are the same.
"""

import json
import math
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from scipy import stats

import canaryproof as cp
from canaryproof.verify.audit.answer.result import SIDE
from canaryproof.verify.audit.markup.markdown import Section, environment_line, page
from tests.benchmarks.kernels import environment

DELTA = 1e-5
LEVEL = 1e-3
# Share of honest audits whose input looks wrong, and of faults of the printed size that are not noticed, at most.
_LOOKS_WRONG, _MISSED = 1e-6, 0.1
# Coordinates that all canaries of a release may have, which decides on the number of audits.
_MOST_COORDINATES = 2e7
_KEPT = Path("build/coverage.jsonl")
_PUBLISHED = Path("reports/published")

Data = Literal["none", "dense", "one coordinate", "constant", "alternating", "heavy-tailed", "descent"]
_DATA: tuple[Data, ...] = ("dense", "one coordinate", "constant", "alternating", "heavy-tailed")


@dataclass(frozen=True)
class Cell:
    """A setting: others' data are so many times as long as the noise, in each of the rounds; a release has none.

    Of scores in a file, ``nulls`` are those of canaries that did not take part. They are cosines, or losses, whose
    law an audit does not know. Rounds are drawn by coins, or each canary is in one round of an epoch.
    """

    dim: int
    canaries: int
    noise: float
    data: Data = "none"
    length: float = 0.0
    kind: Literal["independent", "orthonormal"] = "independent"
    confidence: float = 0.95
    rounds: int = 0
    rate: float = 1.0
    known: bool = False
    documented: bool = False
    schedule: Literal["coins", "epochs"] = "coins"
    scores: Literal["", "cosines", "losses"] = ""
    nulls: int = 0

    @property
    def crowd(self) -> float:
        """Variance of a score by other canaries, in that by noise."""
        return self.canaries * self.rate / (self.noise**2 * self.dim)

    @property
    def audits(self) -> int:
        """Number of honest audits, and of others with less noise."""
        if self.scores:
            return 30
        return max(10, min(30, int(_MOST_COORDINATES / (self.dim * self.canaries * max(1, self.rounds) * self.rate))))

    @property
    def claim(self) -> Any:
        """What the training claims, which is true."""
        if not self.rounds:
            return cp.accounting.gaussian(self.noise)
        if self.schedule == "epochs":
            return cp.accounting.gaussian(self.noise, participations=self._epochs)
        return cp.accounting.poisson(self.noise, rate=self.rate, rounds=self.rounds)

    @property
    def _epochs(self) -> int:
        return round(self.rate * self.rounds)

    @property
    def epsilon(self) -> float:
        """ε for an attacker who does not know others' data, which are noise to them unless they are known."""
        data = 0.0 if self.known else self.length
        return float(self.claim.with_noise_multiplier(self.noise * math.hypot(1.0, data)).epsilon(DELTA))

    def measured(self) -> dict[str, Any]:
        """Count the misses of each promise, in honest trainings and in some with the share that is printed."""
        audits = [self.audit(1.0, key) for key in range(self.audits)]
        shown = [row for audit in audits if (row := _interval(self, audit)) is not None]
        shares = [audit.noticed_share for audit in audits if audit.noticed_share is not None]
        true, share = self.epsilon, float(np.median(shares)) if shares else None
        missed = [not row.low <= true <= row.high for row in shown]
        promises = {"interval": Promise(sum(missed), len(shown), 1.0 - self.confidence), **self._of_honest(audits)}
        if share is not None:
            faulty = [self.audit(share, 10_000 + key) for key in range(self.audits)]
            promises["not noticed"] = Promise(sum(not _is_noticed(audit) for audit in faulty), len(faulty), _MISSED)
        return {
            "epsilon": true,
            "share": share,
            "withheld": len(audits) - len(shown),
            "audits": len(audits),
            "kinds": sorted({warning.kind for audit in audits for warning in audit.warnings}),
            "promises": promises,
        }

    def _of_honest(self, audits: Sequence[Any]) -> dict[str, "Promise"]:
        """Return the promises of honest audits, but for the interval."""
        claimed = float(self.claim.epsilon(DELTA))
        bounds = [audit.bound for audit in audits if audit.bound is not None]
        outcomes = [str(audit.decision.outcome) for audit in audits]
        alpha = 1.0 - self.confidence
        return {
            "bound": Promise(sum(row.low > claimed for row in bounds), len(bounds), alpha),
            "looks wrong": Promise(sum(_failed(audit, "input") for audit in audits), len(audits), _LOOKS_WRONG),
            "not passed": Promise(outcomes.count("NOT PASSED"), len(audits), alpha),
        }

    def audit(self, share: float, key: int) -> Any:
        """Audit a training with a share of the noise that is claimed."""
        # Settings have draws of their own, so that their misses can be added up.
        rng = np.random.default_rng([key, zlib.crc32(json.dumps(asdict(self)).encode())])
        seed = int(rng.integers(2**31))
        if self.scores:
            return self._audit_of_scores(share, rng)
        if self.rounds:
            return self._audit_of_rounds(share, seed, rng)
        made = cp.Canaries if self.kind == "independent" else cp.OrthonormalCanaries
        canaries = made(seed=seed, count=self.canaries, dim=self.dim)
        release = np.asarray(canaries.sum()) + self._others(rng) + share * self.noise * rng.normal(size=self.dim)
        return cp.audit_release(release, canaries, delta=DELTA, confidence=self.confidence, noise_multiplier=self.noise)

    def _audit_of_rounds(self, share: float, seed: int, rng: np.random.Generator) -> Any:
        in_epochs = self.schedule == "epochs"
        inserted = cp.Insertion(self.canaries + (self.canaries if in_epochs else 20), observed=self.canaries)
        if in_epochs:
            cohort = round(self.canaries * self.rate)
            drawn = cp.shuffled_epochs(self.canaries, cohort, self._epochs, seed=seed, canaries=inserted)
        else:
            drawn = cp.bernoulli(0, self.rate, rounds=self.rounds, seed=seed, canaries=inserted)
        canaries = cp.Canaries(seed=seed, count=inserted.count, dim=self.dim)
        clients = cp.CanaryClients(canaries, drawn, **({} if in_epochs else {"noise_multiplier": self.noise}))
        model = np.zeros(self.dim)
        for number in range(self.rounds):
            others = self._others(rng, model)
            delta = clients.total(number, 1.0) + others + share * self._noises[number] * rng.normal(size=self.dim)
            clients.add(delta, round=number, **({"known": others} if self.known else {}))
            model += delta / self.rounds
        # Where nobody's rounds are drawn, all of them are known.
        scores = clients.scores("known rounds" if in_epochs or self.rate == 1.0 else "likelihood")
        return cp.audit(scores, delta=DELTA, confidence=self.confidence, claim=self.claim)

    @property
    def _noises(self) -> np.ndarray:
        """Noise of each round."""
        return np.full(self.rounds, self.noise)

    def _audit_of_scores(self, share: float, rng: np.random.Generator) -> Any:
        if self.scores == "losses":
            observed = rng.normal(1.0 / (share * self.noise), 1.0, self.canaries)
            scores = cp.Scores(observed, rng.normal(size=self.nulls), kind="any")
        else:
            cosines = cp.exact_law.cosines(self.canaries, self.dim, share * self.noise, rng)
            scores = cp.Scores(cosines, dim=self.dim, inserted=self.canaries)
        return cp.audit(scores, delta=DELTA, confidence=self.confidence, claim=self.claim.epsilon(DELTA))

    def _others(self, rng: np.random.Generator, model: np.ndarray | float = 0.0) -> np.ndarray:
        match self.data:
            case "descent":
                # Towards the point with all coordinates 1, and so against canaries of earlier rounds.
                others = 1.0 - np.ones(self.dim) * model
            case "dense":
                others = rng.normal(size=self.dim)
            case "one coordinate":
                others = np.eye(1, self.dim, int(rng.integers(self.dim)))[0]
            case "alternating":
                others = np.where(np.arange(self.dim) % 2, 1.0, -1.0)
            case "heavy-tailed":
                others = rng.standard_cauchy(self.dim)
            case "none" | "constant":
                others = np.ones(self.dim)
        return np.asarray(others * (self.length * self.noise * math.sqrt(self.dim) / np.linalg.norm(others)))


@dataclass(frozen=True)
class Uneven(Cell):
    """Rounds that differ in their noise, by a course of so many times the least, which is ``noise``.

    What is claimed is the least noise for all rounds, or each round's own.
    """

    course: Literal["falling", "rising", "alternating", "first", "last"] = "falling"
    most: float = 1.0
    own: bool = False

    @property
    def claim(self) -> Any:
        """The least noise in all rounds, or the noise of each."""
        return self._composed if self.own else super().claim

    @property
    def epsilon(self) -> float:
        """ε of the noise of each round; where a canary is in one round of each epoch, that of the least noise."""
        return float((super().claim if self.schedule == "epochs" else self._composed).epsilon(DELTA))

    @property
    def _composed(self) -> Any:
        import dp_accounting as dp

        rounds = [dp.GaussianDpEvent(noise) for noise in self._noises]
        return cp.accounting.from_event(
            dp.ComposedDpEvent(
                [dp.PoissonSampledDpEvent(self.rate, each) if self.rate < 1.0 else each for each in rounds]
            )
        )

    def measured(self) -> dict[str, Any]:
        """Count the misses of honest trainings; a printed interval is of equal noise, and has to say so."""
        audits = [self.audit(1.0, key) for key in range(self.audits)]
        shown = [row for audit in audits if (row := audit.estimate) is not None]
        unsaid = sum(not row.condition for row in shown)
        return {
            "epsilon": self.epsilon,
            "withheld": len(audits) - len(shown),
            "missed": sum(not row.low <= self.epsilon <= row.high for row in shown),
            "audits": len(audits),
            "promises": {"unsaid": Promise(unsaid, len(shown), _LOOKS_WRONG), **self._of_honest(audits)},
        }

    @property
    def _noises(self) -> np.ndarray:
        number, last = np.arange(self.rounds), self.rounds - 1
        more = {
            "falling": 1.0 - number / last,
            "rising": number / last,
            "alternating": number % 2,
            "first": number > 0,
            "last": number < last,
        }
        return np.asarray(self.noise * self.most ** more[self.course].astype(np.float64))


@dataclass(frozen=True)
class PValues(Cell):
    """Honest trainings, or records of a self-test, whose p-values are counted, each test's by themselves."""

    of: Literal["audit", "residuals", "members", "coins"] = "audit"

    @property
    def audits(self) -> int:
        """Number of records."""
        return 400 if self.of in ("residuals", "members") else 100

    def measured(self) -> dict[str, Any]:
        """Count how often each p-value is small."""
        found: dict[str, list[float]] = {}
        for key in range(self.audits):
            for name, p_value in self._p_values(key):
                found.setdefault(name, []).append(p_value)
        promises = {
            f"{name}, p at most {level:g}": Promise(sum(value <= level for value in values), len(values), level)
            for name, values in found.items()
            for level in _LEVELS
        }
        return {"audits": self.audits, "promises": promises}

    def _p_values(self, key: int) -> Iterator[tuple[str, float]]:
        rng = np.random.default_rng([key, zlib.crc32(json.dumps(asdict(self)).encode())])
        match self.of:
            case "audit":
                yield from _p_values_of(self.audit(1.0, key))
            case "residuals":
                layers = [self.dim // 4, self.dim - self.dim // 4]
                residuals = cp.ResidualTests(self.noise, self.dim, layers, tolerance=0.0)
                for _ in range(self.rounds):
                    residuals.add(self.noise * rng.normal(size=self.dim))
                yield from _of_tests(residuals.tests())
            case "members":
                members = cp.SamplingTests(rate=self.rate, members=self.canaries)
                for _ in range(self.rounds):
                    members.add(np.flatnonzero(rng.random(self.canaries) < self.rate))
                yield from _of_tests(members.tests(notices=False))
            case "coins":
                member = rng.random(self.canaries) < 0.5
                scores = rng.normal(size=self.canaries) + member / self.noise
                inserted = cp.Scores(scores[member], scores[~member], kind="any", inclusion="coin")
                audit = cp.audit(inserted, delta=DELTA, claim=self.claim)
                if audit.claim_p_value is not None:
                    yield "claim, by coins", audit.claim_p_value


_LEVELS = (0.5, 0.1, 0.01)


def _of_tests(tests: Sequence[Any]) -> Iterator[tuple[str, float]]:
    yield from ((test.name, test.p_value) for test in tests if test.p_value is not None)


def _p_values_of(audit: Any) -> Iterator[tuple[str, float]]:
    """Yield the p-values that an audit prints, each with its name."""
    mechanism = audit.mechanism
    if mechanism is not None:
        yield "noise", mechanism.p_value
        if (spread := mechanism.measured.spread_p_value) is not None:
            yield "equal noise in rounds", spread
        if mechanism.traces.rounds > 1:
            yield "noise, returning canaries", mechanism.all_p_value
            if (independence := mechanism.all_traces.independence_p_value(mechanism.measured.value)) is not None:
                yield "independent rounds", independence
    if audit.trace_test is not None:
        yield "norm of the canaries", audit.trace_test[2]
    if audit.null_law is not None:
        yield "null law", audit.null_law.p_value
    if audit.scores.record is None:
        yield "equal variances", audit.variance_p_value
        if audit.normality is not None:
            yield "normal scores", audit.normality.p_value
    elif (sampling := audit.sampling_test) is not None:
        yield "rate", sampling.p_value


@dataclass(frozen=True)
class Planned:
    """A plan, which is carried out with the numbers of canaries that it prints.

    Without a rate and participations it is of one noisy sum of all rounds. Else the rounds are scored; others' clipped
    sum has a norm in each, and is handed over where it is known. A difference of models has weight decay.
    """

    noise: float
    dim: int
    rounds: int = 1
    rate: float | None = None
    participations: int | None = None
    data_norm: float = 0.0
    known: bool = False
    difference: bool = False

    @property
    def is_of_rounds(self) -> bool:
        """Whether the plan is one of scored rounds."""
        return self.rate is not None or self.participations is not None

    def measured(self) -> dict[str, Any]:
        """Count what the planned canaries miss: the shares of the noise, missing canaries, and honest decisions."""
        plan = self._plan()
        promises = {}
        for share, count in self._lines(plan):
            missed = sum(not self._is_seen(plan, share, count, key) for key in range(self._audits(count)))
            promises[f"not noticed as planned: share {share:.3g}, {count:,} canaries"] = Promise(
                missed, self._audits(count), _MISSED
            )
        if not self.is_of_rounds:
            absent = [self._release(plan, 1.0, plan.present, key, 0.0) for key in range(self._audits(plan.present))]
            missed = sum(not _failed(audit, "input") for audit in absent)
            promises[f"absence not noticed as planned: {plan.present:,} canaries"] = Promise(
                missed, len(absent), _MISSED
            )
        audits = [self._honest(plan, 10_000 + key) for key in range(self._audits(plan.count))]
        outcomes = [str(audit.decision.outcome) for audit in audits]
        if plan.deciding is not None and self._is_as_planned(plan):
            promises["not decided as planned"] = Promise(outcomes.count("CANNOT SAY"), len(outcomes), _MISSED)
        promises["not passed"] = Promise(outcomes.count("NOT PASSED"), len(outcomes), 0.05)
        promises["looks wrong"] = Promise(sum(_failed(audit, "input") for audit in audits), len(audits), _LOOKS_WRONG)
        return {"count": plan.count, "promises": promises}

    def _plan(self) -> Any:
        if not self.is_of_rounds:
            return cp.plan(self.noise, self.dim, self.rounds, delta=DELTA)
        return cp.plan_rounds(
            self.noise,
            self.dim,
            self.rounds,
            rate=self.rate,
            participations=self.participations,
            delta=DELTA,
            data_norm=self.data_norm,
        )

    def _is_as_planned(self, plan: Any) -> bool:
        """Tell whether others' data are known where the plan's lines hand them over, and only there."""
        return not self.is_of_rounds or self.known == plan.known

    def _lines(self, plan: Any) -> Iterator[tuple[float, int]]:
        """Yield the shares of the noise that are printed with a number of canaries, but for numbers that take long."""
        if not self.is_of_rounds:
            lines = [(fault.value, fault.count) for fault in plan.faults if fault.name == "less-noise"]
        else:
            lines = [(row.share, row.count_of_known if self.known else row.count) for row in plan.shares]
        if self._is_as_planned(plan):
            lines += [(plan.short_noise, plan.seeing), (plan.notice, plan.deciding)]
        for share, count in dict.fromkeys(lines):
            if count is not None and self._coordinates(count) <= 2.0 * _MOST_COORDINATES:
                yield share, count

    def _coordinates(self, count: int) -> float:
        rounds = self.participations or (1.0 if self.rate is None else self.rate * self.rounds)
        return float(count * self.dim * rounds)

    def _audits(self, count: int) -> int:
        return int(max(10, min(30, 10 * _MOST_COORDINATES / self._coordinates(count))))

    def _is_seen(self, plan: Any, share: float, count: int, key: int) -> bool:
        """Tell whether so many canaries notice a share of the noise: in rounds, by the test of the claimed noise."""
        if not self.is_of_rounds:
            return _is_noticed(self._release(plan, share, count, key))
        level = 0.5 * (1.0 - SIDE) * (1.0 - plan.confidence)
        return bool(self._rounds(share, count, key).traces.p_value(self.noise) < level)

    def _honest(self, plan: Any, key: int) -> Any:
        if not self.is_of_rounds:
            return self._release(plan, 1.0, plan.count, key)
        scores = self._rounds(1.0, plan.count, key).scores("likelihood" if self.rate else "known rounds")
        return cp.audit(scores, delta=DELTA, claim=plan.mechanism)

    def _random(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([*key, zlib.crc32(json.dumps(asdict(self)).encode())])

    def _release(self, plan: Any, share: float, count: int, key: int, weight: float = 1.0) -> Any:
        """Audit a release with a share of the noise, and canaries with a weight."""
        rng = self._random(key, count, round(1e6 * share))
        canaries = cp.Canaries(seed=int(rng.integers(2**31)), count=count, dim=self.dim)
        release = weight * canaries.sum() + share * plan.release_noise * rng.normal(size=self.dim)
        return cp.audit_release(release, canaries, delta=DELTA, claim=plan.claim, noise_multiplier=plan.release_noise)

    def _rounds(self, share: float, count: int, key: int) -> cp.CanaryClients:
        """Train with a share of the noise, and with so many canaries that take part."""
        rng = self._random(key, count, round(1e6 * share))
        seed, taken = int(rng.integers(2**31)), self.participations
        if self.rate is not None:
            inserted = cp.Insertion(2 * count, observed=count)
            drawn = cp.bernoulli(0, self.rate, self.rounds, seed=seed, canaries=inserted)
        else:
            table = np.tile(np.arange(self.rounds) < taken, (2 * count, 1))
            drawn = cp.fixed_schedule(rng.permuted(table, axis=1).T, np.arange(2 * count) < count)
        canaries = cp.Canaries(seed=seed, count=2 * count, dim=self.dim)
        clients = cp.CanaryClients(canaries, drawn, **({} if self.rate is None else {"noise_multiplier": self.noise}))
        model = np.zeros(self.dim)
        for number in range(self.rounds):
            others = rng.normal(size=self.dim)
            others *= self.data_norm / np.linalg.norm(others)
            others -= 0.01 * self.difference * model
            delta = clients.total(number, 1.0) + others + share * self.noise * rng.normal(size=self.dim)
            clients.add(delta, round=number, **({"known": others} if self.known else {}))
            model += delta
        return clients


Setting = Cell | Planned
_CLASSES = (Cell, Uneven, PValues, Planned)


def settings() -> Iterator[Setting]:
    """Yield all settings: those of ``cells``, data that are longer than the noise of rounds, and other classes."""
    yield from cells()
    yield from _long_data()
    yield from _uneven()
    yield from _tested()
    yield from _plans()


def _long_data() -> Iterator[Cell]:
    """Yield rounds of others' data that are longer than the noise, of all kinds."""
    for turn, data in enumerate((*_DATA, "descent")):
        for length in (3.0, 10.0):
            known = (turn + (length > 3.0)) % 2 == 1
            if turn % 2:
                yield Cell(2000, 300, 0.7, data, length, "independent", 0.95, 20, 0.05, known, schedule="epochs")
            else:
                yield Cell(2000, 300, 1.0, data, length, "independent", 0.95, 20, 0.2, known)


def _uneven() -> Iterator[Uneven]:
    """Yield rounds whose noise differs, honestly: no round has less than is claimed."""
    for turn, course in enumerate(("falling", "rising", "alternating", "first", "last")):
        for most in (1.1, 1.5, 4.0):
            known, own = (turn + (most > 1.2)) % 2 == 1, turn % 2 == 1
            yield Uneven(2000, 200, 0.7, rounds=20, rate=0.1, known=known, course=course, most=most, own=own)
            yield Uneven(
                2000, 200, 1.0, rounds=20, rate=0.05, known=not known, schedule="epochs", course=course, most=most
            )


def _tested() -> Iterator[PValues]:
    """Yield settings whose p-values are counted by themselves."""
    for kind, (dim, count, noise, length) in zip(
        ("independent", "orthonormal") * 3,
        (
            (1000, 20, 1.0, 0.0),
            (1000, 990, 1.0, 0.0),
            (2000, 2000, 0.7, 0.0),
            (1000, 500, 1.0, 0.3),
            (1000, 300, 2.0, 3.0),
            (100, 90, 1.0, 0.0),
        ),
        strict=True,
    ):
        yield PValues(dim, count, noise, "dense" if length else "none", length, kind)
    yield PValues(1000, 60, 1.0, rounds=10, rate=0.1, schedule="epochs")
    yield PValues(1000, 60, 1.0, rounds=20, rate=0.3)
    yield PValues(1000, 60, 1.0, rounds=20, rate=0.3, known=True)
    yield PValues(1000, 60, 1.0, "constant", 0.5, rounds=20, rate=0.3)
    yield PValues(500, 200, 0.5, rounds=10, rate=1.0)
    yield PValues(1000, 40, 1.0, scores="cosines")
    yield PValues(1, 40, 1.0, scores="losses", nulls=40)
    yield PValues(1, 2000, 1.0, scores="losses", nulls=50)
    yield PValues(1, 100, 1.0, of="coins")
    yield PValues(2000, 1, 1.0, rounds=1, of="residuals")
    yield PValues(200, 1, 0.1, rounds=20, of="residuals")
    yield PValues(1, 5, 1.0, rounds=4, rate=0.5, of="members")
    yield PValues(1, 50, 1.0, rounds=10, rate=0.02, of="members")
    yield PValues(1, 2000, 1.0, rounds=40, rate=0.1, of="members")


def _plans() -> Iterator[Planned]:
    """Yield plans of one noisy sum, of rounds that are drawn or scheduled, of known data, and of a difference."""
    for noise, dim, rounds in ((0.2, 20_000, 1), (1.0, 1000, 1), (1.54, 100_000, 1), (5.0, 2000, 1), (1.0, 1000, 20)):
        yield Planned(noise, dim, rounds)
    for noise, dim, rounds, rate in (
        (1.0, 1000, 10, 0.5),
        (1.0, 2000, 20, 0.5),
        (1.0, 1000, 50, 0.2),
        (0.5, 1000, 50, 0.1),
        (1.0, 1000, 20, 1.0),
        (0.3, 2000, 1, 1.0),
        (1.0, 1000, 300, 0.01),
    ):
        for known in (False, True):
            yield Planned(noise, dim, rounds, rate=rate, data_norm=10.0 * known, known=known)
    for noise, dim, rounds, taken in ((1.0, 1000, 20, 5), (1.0, 1000, 64, 8), (0.3, 2000, 20, 4), (0.7, 2000, 10, 1)):
        for known in (False, True):
            yield Planned(noise, dim, rounds, participations=taken, data_norm=10.0 * known, known=known)
    yield Planned(1.0, 20_000, 20, participations=1, data_norm=80.0)
    yield Planned(0.7, 2000, 10, participations=1, data_norm=20.0)
    for known in (False, True):
        yield Planned(0.7, 2000, 20, participations=1, difference=True, known=known)


def cells() -> Iterator[Cell]:
    """Yield documented sizes, crowded releases with data of all kinds in turn, and rounds."""
    yield from (
        Cell(dim, 1000, 0.2, kind=kind, documented=True)
        for dim in (7840, 20_000, 100_000)
        for kind in ("independent", "orthonormal")
    )
    # Sizes of the README, of the guides on releases, orthonormal canaries and plans, and of rounds in a loop.
    yield Cell(100_000, 1000, 1.54, documented=True)
    yield Cell(20_000, 1000, 1.54, documented=True)
    yield Cell(10_000, 300, 1.54, documented=True)
    yield Cell(40_000, 5000, 1.54, kind="orthonormal", documented=True)
    yield Cell(20_000, 400, 1.0, rounds=20, rate=0.05, schedule="epochs", documented=True)
    yield from _scores()
    yield from _trainings()
    lengths, confidences = (0.0, 0.1, 0.3, 1.0, 10.0), (0.95, 0.5, 0.9999)
    turn = 0
    for crowd in (0.001, 0.01, 0.1, 0.3, 1.0, 3.0):
        for dim in (100, 1000, 10_000, 100_000, 10**6):
            for kind in ("independent", "orthonormal"):
                count = int(min(max(20, crowd * dim), 0.4 * dim, 1000, 1e8 / dim))
                length = lengths[turn % 5]
                data = _DATA[turn // 3 % 5] if length else "none"
                noise = math.sqrt(count / (crowd * dim))
                if 0.02 <= noise <= 30.0:
                    yield Cell(dim, count, noise, data, length, kind, confidences[turn % 7 % 3])
                turn += 1
    for rate, rounds in ((1.0, 1), (0.5, 10), (0.5, 20), (0.1, 60), (0.02, 300), (1.0, 10)):
        for crowd in (0.01, 0.1, 0.5):
            for known in (False, True):
                length = lengths[turn % 4]
                data = _DATA[turn % 5] if length else "none"
                noise = min(4.0, max(0.3, math.sqrt(100 * rate / (crowd * 2000))))
                yield Cell(
                    2000,
                    int(crowd * noise**2 * 2000 / rate),
                    noise,
                    data,
                    length,
                    rounds=rounds,
                    rate=rate,
                    known=known,
                )
                turn += 1


def _scores() -> Iterator[Cell]:
    """Yield settings of scores in a file."""
    confidences = (0.95, 0.5, 0.9999)
    for turn, (count, nulls) in enumerate(((10, 1000), (50, 50), (200, 200), (1000, 20), (1000, 1000), (10_000, 1000))):
        for noise in (0.3, 1.0, 3.0):
            yield Cell(1, count, noise, confidence=confidences[turn % 3], scores="losses", nulls=nulls)
    for turn, (dim, count) in enumerate(((1000, 20), (1000, 300), (10_000, 1000), (10**6, 1000))):
        for noise in (0.3, 1.0, 3.0):
            yield Cell(dim, count, noise, confidence=confidences[turn % 3], scores="cosines")


def _trainings() -> Iterator[Cell]:
    """Yield settings of epochs, of others' data that undo canaries, of rare rounds, and of other confidences."""
    for turn, (rounds, rate) in enumerate(((10, 0.1), (20, 0.1), (10, 0.5))):
        for known in (False, True):
            confidence = (0.95, 0.5, 0.9999)[turn]
            for data, length in (("none", 0.0), ("constant", 0.3), ("descent", 0.3)):
                yield Cell(
                    2000, 100, 0.7, data, length, "independent", confidence, rounds, rate, known, schedule="epochs"
                )
    yield Cell(2000, 300, 1.0, "descent", 0.3, "independent", 0.95, 20, 0.5)
    for known in (False, True):
        yield Cell(2000, 300, 1.0, "descent", 0.3, "independent", 0.5, 20, 0.5, known)
        yield Cell(2000, 300, 1.0, "none", 0.0, "independent", 0.9999, 20, 0.5, known)
    yield Cell(2000, 2000, 0.3, "none", 0.0, "independent", 0.95, 300, 0.001, True)


@dataclass(frozen=True)
class Promise:
    """Misses of so many tries, of which each may be one with a probability."""

    misses: int
    tries: int
    allowed: float

    @property
    def p_value(self) -> float:
        """Probability of so many misses if each has at most the allowed probability."""
        return float(stats.binom.sf(self.misses - 1, self.tries, self.allowed))


def measure(setting: "Setting") -> dict[str, Any]:
    """Audit trainings of a setting, and count the misses of each promise."""
    begun = time.process_time()
    found = setting.measured()
    promises = {name: asdict(promise) for name, promise in found.pop("promises").items()}
    return {"cell": asdict(setting), **found, "seconds": time.process_time() - begun, "promises": promises}


def _interval(cell: Cell, audit: Any) -> Any:
    """Return the estimate; of losses it is in the details."""
    if cell.scores == "losses":
        return next((row for row in audit.estimates if row.name == "adaptive"), None)
    return audit.estimate


def _is_noticed(audit: Any) -> bool:
    """Tell whether less noise than claimed is seen; a heuristic bound above the claim fails no question."""
    above = audit.bound is not None and audit.bound.low > audit.claim
    return bool(above or _failed(audit, "noise", "leak", "accounting"))


def _failed(audit: Any, *questions: str) -> bool:
    """Tell whether an audit's finding on any of these questions failed."""
    return any(audit.finding(question).status == "failed" for question in questions)


def together(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, float], Promise]:
    """Add up the misses of each promise with the same allowed probability, in all cells; a colon ends its name."""
    sums: dict[tuple[str, float], Promise] = {}
    for row in rows:
        for name, counts in row["promises"].items():
            one = Promise(**counts)
            key = name.partition(":")[0], round(one.allowed, 9)
            last = sums.get(key, Promise(0, 0, one.allowed))
            sums[key] = Promise(last.misses + one.misses, last.tries + one.tries, one.allowed)
    return sums


def broken(rows: Sequence[Mapping[str, Any]], level: float = LEVEL) -> list[str]:
    """Return what was not kept, a line each, by tests that have a level together."""
    tests = [(f"{name}: {_line(row)}", Promise(**c)) for row in rows for name, c in row["promises"].items()]
    tests += [(f"{name}: all cells: {promise}", promise) for (name, _), promise in together(rows).items()]
    return [line for line, promise in tests if promise.p_value < level / len(tests)]


@click.command("coverage")
@click.option("--part", type=click.IntRange(0, 1), help="Run every other cell, from this one on, for two processes.")
@click.option("--publish", is_flag=True, help="Run nothing; write the page of all cells that are done.")
def main(part: int | None, publish: bool) -> None:
    """Measure what audits promise in all settings, and go on where an earlier run ended."""
    done = _kept()
    for setting in () if publish else list(settings())[part :: 1 if part is None else 2]:
        if json.dumps(asdict(setting)) not in done:
            row = measure(setting)
            _KEPT.parent.mkdir(exist_ok=True)
            with _KEPT.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            click.echo(_line(row))
    if publish:
        rows = [done[key] for setting in settings() if (key := json.dumps(asdict(setting))) in done]
        (_PUBLISHED / "coverage.md").write_text(render(rows), encoding="utf-8")
        if wrong := broken(rows):
            raise SystemExit("\n".join(["Not kept:", *wrong]))


def _kept() -> dict[str, dict[str, Any]]:
    lines = _KEPT.read_text().splitlines() if _KEPT.exists() else []
    return {json.dumps(row["cell"]): row for row in map(json.loads, lines)}


def _line(row: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{name} {_count(counts)}" for name, counts in row["promises"].items())
    return f"{_setting(row)}: {counts}, share {row.get('share')}"


def _setting(row: Mapping[str, Any]) -> Setting:
    """Make the setting of a row, whose fields say of which class it is."""
    (kind,) = (each for each in _CLASSES if {field.name for field in fields(each)} == set(row["cell"]))
    return kind(**row["cell"])


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Make the page."""
    wrong, whole = broken(rows), sum(1 for _ in settings())
    finding = f"{len(wrong)} promises were not kept: {'; '.join(wrong)}" if wrong else "Every promise was kept"
    about = (
        "`make coverage`. In each setting, 10 to 30 honest trainings are audited, and as many with the share of the "
        "noise that an audit of this setting says it would notice. *Interval*: it misses ε for an attacker who does "
        "not know the others' data, whose length is given beside the noise's. *Bound*: it is above the claimed ε. "
        "*Looks wrong*: the input failed. *Not passed*: the decision. *Not noticed*: nothing failed at the printed "
        f"share. All tests together have the level {LEVEL:g}, each the same part of it: of a setting with 10 audits "
        "only promises that are broken mostly are noticed, of all settings together small differences."
    )
    others = (
        "*Uneven noise*: no round has less noise than is claimed, and an interval has to say that it takes rounds for "
        "equal; how many of those miss ε is counted, and promised by nobody. *Tests*: how often an honest record has a "
        "p-value of at most a level. *Plans*: the canaries that a plan prints for a share of the noise do not notice "
        "it, or not that all of them are absent, or leave an honest training undecided."
    )
    sections = [
        _sums(rows),
        *(_settings(title, rows) for title in ("Releases", "Rounds", "Scores")),
        _uneven_rounds(rows),
        _tests_alone(rows),
        _carried_out(rows),
    ]
    minutes = sum(row["seconds"] for row in rows) / 60.0
    text = (
        f"{finding}: {len(rows)} of {whole} settings have been run, in {minutes:.0f} minutes of a processor's time; "
        f"two processors may take two hours. {_withheld(rows)}"
    )
    return page("Coverage", text, [about, others], sections, environment_line(environment()))


def _withheld(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say how many estimates were withheld, and whether any were at the sizes of pages."""
    of_estimates = [row for row in rows if "withheld" in row]
    withheld, audits = (sum(row[name] for row in of_estimates) for name in ("withheld", "audits"))
    most = sum(2 * row["withheld"] >= row["audits"] for row in of_estimates)
    documented = sum(row["withheld"] for row in of_estimates if row["cell"].get("documented"))
    return (
        f"An estimate was withheld in {withheld:,} of {audits:,} honest audits, {documented or 'none'} of them of a "
        f"size that the docs use. In {most} of {len(of_estimates)} settings that was half of the audits or more."
    )


def _sums(rows: Sequence[Mapping[str, Any]]) -> Section:
    table = [
        (name, f"{allowed:.2g}", str(p.misses), str(p.tries), f"{p.misses / max(1, p.tries):.2g}", f"{p.p_value:.2g}")
        for (name, allowed), p in sorted(together(rows).items())
    ]
    return Section("All settings together", ("miss", "allowed", "misses", "audits", "share", "p"), tuple(table), "")


def _settings(title: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    table, kind = [], _KINDS[title]
    for row in rows:
        cell = _setting(row)
        if type(cell) is Cell and title == ("Scores" if cell.scores else "Rounds" if cell.rounds else "Releases"):
            rounds = f"{cell.rounds} at {cell.rate:g}" + (", in epochs" if cell.schedule == "epochs" else "")
            own = {
                "rounds": rounds,
                "data": "known" if cell.known else "",
                "directions": cell.kind,
                "scores": cell.scores,
                "unobserved": f"{cell.nulls:,}" if cell.nulls else "–",
            }
            others = f"{cell.length:g} {cell.data}" if cell.length else "none"
            dim, crowd = ("–", "–") if cell.scores == "losses" else (f"{cell.dim:,}", f"{cell.crowd:.2g}")
            size = (dim, f"{cell.canaries:,}", f"{cell.noise:.3g}", crowd, *(own[name] for name in kind), others)
            counts = (_count(row["promises"].get(name)) for name in _NAMES)
            share = "–" if row["share"] is None else f"{row['share']:.3f}"
            table.append((*size, f"{cell.confidence:g}", f"{row['epsilon']:.3g}", str(row["withheld"]), *counts, share))
    header = ("d", "k", "noise", "crowd", *kind, "others", "confidence", "ε", "withheld", *_NAMES, "share")
    note = "Crowd: a score's variance by other canaries, in that by the noise. –: nothing was printed, with the reason."
    return Section(title, header, tuple(table), note)


def _count(counts: Mapping[str, Any] | None) -> str:
    return "–" if counts is None or not counts["tries"] else f"{counts['misses']}/{counts['tries']}"


def _uneven_rounds(rows: Sequence[Mapping[str, Any]]) -> Section:
    names = ("unsaid", "bound", "looks wrong", "not passed")
    table = []
    for row in rows:
        if isinstance(setting := _setting(row), Uneven):
            course = f"{setting.course}, up to {setting.most:g} times"
            rounds = f"{setting.rounds} at {setting.rate:g}" + (", in epochs" if setting.schedule == "epochs" else "")
            claim = "each round's own" if setting.own else "the least"
            counts = (_count(row["promises"][name]) for name in names)
            size = (f"{setting.noise:g}", course, rounds, claim, "known" if setting.known else "")
            table.append((*size, f"{row['epsilon']:.3g}", str(row["withheld"]), str(row["missed"]), *counts))
    header = ("least noise", "course", "rounds", "claim", "data", "ε", "withheld", "intervals that miss ε", *names)
    return Section("Uneven noise", header, tuple(table), "200 canaries, d = 2,000, 30 honest trainings each.")


def _tests_alone(rows: Sequence[Mapping[str, Any]]) -> Section:
    table = []
    for row in rows:
        if isinstance(setting := _setting(row), PValues):
            names = dict.fromkeys(name.partition(", p at")[0] for name in row["promises"])
            for name in names:
                counts = (_count(row["promises"][f"{name}, p at most {level:g}"]) for level in _LEVELS)
                table.append((_record(setting), name, *counts))
    header = ("record", "test", *(f"p at most {level:g}" for level in _LEVELS))
    return Section("Tests", header, tuple(table), "")


def _record(setting: PValues) -> str:
    """Describe the record in which p-values are counted."""
    size = f"d = {setting.dim:,}, noise {setting.noise:g}"
    rounds = f"{setting.rounds} rounds at {setting.rate:g}"
    match setting.of:
        case "residuals":
            return f"residuals of {setting.rounds} rounds, {size}"
        case "members":
            return f"{setting.canaries:,} members, {rounds}"
        case "coins":
            return f"losses of {setting.canaries:,} records, by coins"
    data = f", others {setting.length:g} {setting.data}" if setting.length else ""
    if setting.scores:
        return f"{setting.scores} of {setting.canaries:,}, {setting.nulls:,} unobserved"
    if setting.rounds:
        return f"{rounds}, {setting.canaries:,} canaries, {size}{data}{', known' if setting.known else ''}"
    return f"release, {setting.canaries:,} {setting.kind} canaries, {size}{data}"


def _carried_out(rows: Sequence[Mapping[str, Any]]) -> Section:
    table = []
    for row in rows:
        if isinstance(setting := _setting(row), Planned):
            how = "one noisy sum" if setting.rate is None else f"rate {setting.rate:g}"
            how = f"participations: {setting.participations}" if setting.participations else how
            how = f"difference, {how}" if setting.difference else how
            others = "known" if setting.known else f"norm {setting.data_norm:g}" if setting.data_norm else "none"
            size = (f"{setting.noise:g}", f"{setting.dim:,}", str(setting.rounds), how, others)
            table += [(*size, name.replace(": ", ", "), _count(counts)) for name, counts in row["promises"].items()]
    return Section("Plans", ("noise", "d", "rounds", "plan", "others", "miss", "audits"), tuple(table), "")


_KINDS = {"Releases": ("directions",), "Rounds": ("rounds", "data"), "Scores": ("scores", "unobserved")}
_NAMES = ("interval", "bound", "looks wrong", "not passed", "not noticed")


if __name__ == "__main__":
    main()
