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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from scipy import stats

import canaryproof as cp
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
            delta = clients.total(number, 1.0) + others + share * self.noise * rng.normal(size=self.dim)
            clients.add(delta, round=number, **({"known": others} if self.known else {}))
            model += delta / self.rounds
        # Where nobody's rounds are drawn, all of them are known.
        scores = clients.scores("known rounds" if in_epochs or self.rate == 1.0 else "likelihood")
        return cp.audit(scores, delta=DELTA, confidence=self.confidence, claim=self.claim)

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


def cells() -> Iterator[Cell]:
    """Yield all settings: documented sizes, crowded releases with data of all kinds in turn, and rounds."""
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


def measure(cell: Cell) -> dict[str, Any]:
    """Audit trainings of a setting, and count the misses of each promise."""
    begun = time.process_time()
    audits = [cell.audit(1.0, key) for key in range(cell.audits)]
    shown = [row for audit in audits if (row := _interval(cell, audit)) is not None]
    shares = [audit.noticed_share for audit in audits if audit.noticed_share is not None]
    bounds = [audit.bound for audit in audits if audit.bound is not None]
    true, claimed = cell.epsilon, float(cell.claim.epsilon(DELTA))
    outcomes = [str(audit.decision.outcome) for audit in audits]
    promises = {
        "interval": Promise(sum(not row.low <= true <= row.high for row in shown), len(shown), 1.0 - cell.confidence),
        "bound": Promise(sum(row.low > claimed for row in bounds), len(bounds), 1.0 - cell.confidence),
        "looks wrong": Promise(sum(_failed(audit, "input") for audit in audits), len(audits), _LOOKS_WRONG),
        "not passed": Promise(outcomes.count("NOT PASSED"), len(audits), 1.0 - cell.confidence),
    }
    if shares:
        share = float(np.median(shares))
        faulty = [cell.audit(share, 10_000 + key) for key in range(cell.audits)]
        missed = sum(not _is_noticed(audit) for audit in faulty)
        promises["not noticed"] = Promise(missed, len(faulty), _MISSED)
    return {
        "cell": asdict(cell),
        "epsilon": true,
        "share": float(np.median(shares)) if shares else None,
        "withheld": len(audits) - len(shown),
        "audits": len(audits),
        "seconds": time.process_time() - begun,
        "kinds": sorted({warning.kind for audit in audits for warning in audit.warnings}),
        "promises": {name: asdict(promise) for name, promise in promises.items()},
    }


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
    """Add up the misses of each promise with the same allowed probability, in all cells."""
    sums: dict[tuple[str, float], Promise] = {}
    for row in rows:
        for name, counts in row["promises"].items():
            one = Promise(**counts)
            last = sums.get(key := (name, round(one.allowed, 9)), Promise(0, 0, one.allowed))
            sums[key] = Promise(last.misses + one.misses, last.tries + one.tries, one.allowed)
    return sums


def broken(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was not kept, a line each."""
    tests = [(f"{name}: {_line(row)}", Promise(**c)) for row in rows for name, c in row["promises"].items()]
    tests += [(f"{name}: all cells: {promise}", promise) for (name, _), promise in together(rows).items()]
    return [line for line, promise in tests if promise.p_value < LEVEL / len(tests)]


@click.command("coverage")
@click.option("--part", type=click.IntRange(0, 1), help="Run every other cell, from this one on, for two processes.")
@click.option("--publish", is_flag=True, help="Run nothing; write the page of all cells that are done.")
def main(part: int | None, publish: bool) -> None:
    """Measure what audits promise in all settings, and go on where an earlier run ended."""
    done = _kept()
    for cell in () if publish else list(cells())[part :: 1 if part is None else 2]:
        if json.dumps(asdict(cell)) not in done:
            row = measure(cell)
            _KEPT.parent.mkdir(exist_ok=True)
            with _KEPT.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            click.echo(_line(row))
    if publish:
        rows = [done[key] for cell in cells() if (key := json.dumps(asdict(cell))) in done]
        (_PUBLISHED / "coverage.md").write_text(render(rows), encoding="utf-8")
        if wrong := broken(rows):
            raise SystemExit("\n".join(["Not kept:", *wrong]))


def _kept() -> dict[str, dict[str, Any]]:
    lines = _KEPT.read_text().splitlines() if _KEPT.exists() else []
    return {json.dumps(row["cell"]): row for row in map(json.loads, lines)}


def _line(row: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{name} {_count(counts)}" for name, counts in row["promises"].items())
    return f"{Cell(**row['cell'])}: ε {row['epsilon']:.3g}, withheld {row['withheld']}, {counts}, share {row['share']}"


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Make the page."""
    wrong, whole = broken(rows), sum(1 for _ in cells())
    finding = f"{len(wrong)} promises were not kept: {'; '.join(wrong)}" if wrong else "Every promise was kept"
    about = (
        "`make coverage`. In each setting, 10 to 30 honest trainings are audited, and as many with the share of the "
        "noise that an audit of this setting says it would notice. *Interval*: it misses ε for an attacker who does "
        "not know the others' data, whose length is given beside the noise's. *Bound*: it is above the claimed ε. "
        "*Looks wrong*: the input failed. *Not passed*: the decision. *Not noticed*: nothing failed at the printed "
        f"share. All tests together have the level {LEVEL:g}, each the same part of it: of a setting with 10 audits "
        "only promises that are broken mostly are noticed, of all settings together small differences."
    )
    sections = [_sums(rows), *(_settings(title, rows) for title in ("Releases", "Rounds", "Scores"))]
    withheld = sum(bool(row["withheld"]) for row in rows)
    minutes = sum(row["seconds"] for row in rows) / 60.0
    text = (
        f"{finding}: {len(rows)} of {whole} settings have been run, in {minutes:.0f} minutes of a processor's time. "
        f"In {withheld} an estimate was withheld."
    )
    return page("Coverage", text, [about], sections, environment_line(environment()))


def _sums(rows: Sequence[Mapping[str, Any]]) -> Section:
    table = [
        (name, f"{allowed:.2g}", str(p.misses), str(p.tries), f"{p.misses / max(1, p.tries):.2g}", f"{p.p_value:.2g}")
        for (name, allowed), p in sorted(together(rows).items())
    ]
    return Section("All settings together", ("miss", "allowed", "misses", "audits", "share", "p"), tuple(table), "")


def _settings(title: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    table, kind = [], _KINDS[title]
    for row in rows:
        cell = Cell(**row["cell"])
        if title == ("Scores" if cell.scores else "Rounds" if cell.rounds else "Releases"):
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


_KINDS = {"Releases": ("directions",), "Rounds": ("rounds", "data"), "Scores": ("scores", "unobserved")}
_NAMES = ("interval", "bound", "looks wrong", "not passed", "not noticed")


if __name__ == "__main__":
    main()
