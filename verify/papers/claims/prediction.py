"""The comparison of measured numbers with printed ones.

**A printed number** is a draw of an experiment. The user's results are others of the same experiment, if the paper is
right and settings that it does not state do not matter. A prediction interval holds a further draw with probability
1 − α, where all printed numbers of a claim share α = 1%:

- of eight repetitions or more by Student's law, on the logarithms of estimates from all rounds, whose errors are in
  proportion to them (of three it reaches 20 deviations);
- of fewer by the range of ⌈2/α⌉ − 1 simulated experiments with normal cosines. Their mean and deviation differ from
  the measured ones by the errors of these.

A printed number, allowing for its rounding, is *confirmed* inside the interval. Outside it is *qualified* within a
factor of 2 of the measured median, and else *refuted*. It is *inconclusive* inside an interval that reaches twice the
median, or half of it: one draw of such a law shows too little. It is also inconclusive if a measured number is not
finite. Printed lower bounds often have so wide a law. They are let pass, as the estimates in the same row decide.

**An order** ("rises with presentations") is confirmed if every step that it names is seen at 1%, all steps together. It
is refuted if one step is seen to go the other way, and inconclusive otherwise.

A claim of several parts is refuted, inconclusive, qualified or confirmed as the first of these that a part is. If the
text can be read in several ways, the first reading is its own, and another one that is confirmed *qualifies* the claim.
Settings that the paper does not state are the package's, and a mismatch may be due to them: the finding lists them.
"""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from canaryproof.verify.papers.check.results import Outcome, Verdict
from canaryproof.verify.papers.check.verdicts import conclude, holds, rounding
from canaryproof.verify.papers.claims.experiment_results import FinishedExperiment
from canaryproof.verify.papers.records.training_record import CellRecord

# The error probability of all parts of a claim together.
ALPHA = 0.01
# Within this factor a number is qualified; an interval that reaches so far from the measured ones decides nothing.
NEAR = 2.0
# Repetitions from which Student's law is taken: of few numbers, and of one in ten thousand.
FEW, ENOUGH = 3, 8
_WORST = (Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.QUALIFIED, Verdict.CONFIRMED)


@dataclass(frozen=True)
class Part:
    """The verdict on one number or one order of a claim."""

    verdict: Verdict
    text: str


def worst(parts: Iterable[Part]) -> Verdict:
    """Return the verdict of a claim from those of its parts."""
    verdicts = {part.verdict for part in parts}
    return next(verdict for verdict in _WORST if verdict in verdicts)


def student(values: Sequence[float], alpha: float, *, logarithmic: bool = False) -> tuple[float, float]:
    """Return the interval that holds a further draw with probability 1 − alpha."""
    draws = np.log(values) if logarithmic else np.asarray(values)
    count = len(draws)
    reach = stats.t.isf(0.5 * alpha, count - 1) * draws.std(ddof=1) * math.sqrt(1.0 + 1.0 / count)
    ends = (float(draws.mean() - reach), float(draws.mean() + reach))
    return (math.exp(ends[0]), math.exp(ends[1])) if logarithmic else ends


def number(
    name: str, printed: str, values: Sequence[float], interval: tuple[float, float] | None, *, telling: bool = True
) -> Part:
    """Judge a printed number by measured ones."""
    measured = np.asarray(values, dtype=float)
    listed = f"{name} {printed}, measured {shown(values)}"
    if printed == "inf" or np.isposinf(measured).any():
        agreed = printed == "inf" and bool(np.isposinf(measured).all())
        return Part(holds(agreed), listed)
    if not np.isfinite(measured).all() or interval is None:
        return Part(Verdict.INCONCLUSIVE, f"{listed}, which decides nothing")
    value, (least, most), (low, high) = float(printed), rounding(printed), interval
    listed += f" ({low:.3g} to {high:.3g})"
    middle = float(np.median(measured))
    if most >= low and least <= high:
        wide = low <= middle / NEAR or high >= middle * NEAR
        return (
            Part(Verdict.INCONCLUSIVE, f"{listed}, too wide") if wide and telling else Part(Verdict.CONFIRMED, listed)
        )
    ratio = value / middle if middle > 0.0 and value > 0.0 else math.inf
    near = 1.0 / NEAR <= ratio <= NEAR
    return Part(Verdict.QUALIFIED if near else Verdict.REFUTED, f"{listed}, a factor of {ratio:.2g}")


def order(name: str, steps: Sequence[tuple[str, float, float]], alpha: float) -> Part:
    """Judge that steps are all upward."""
    critical = stats.norm.isf(alpha / len(steps))
    seen = [label for label, height, error in steps if height > critical * error]
    reversed_ = [label for label, height, error in steps if height < -critical * error]
    if reversed_:
        return Part(Verdict.REFUTED, f"{name} falls at {', '.join(reversed_)}")
    if len(seen) == len(steps):
        return Part(Verdict.CONFIRMED, f"{name} rises in all {len(steps)}")
    missing = [label for label, *_ in steps if label not in seen]
    return Part(Verdict.INCONCLUSIVE, f"{name} rises in {len(seen)} of {len(steps)}; not seen: {', '.join(missing)}")


def readings(judged: Mapping[str, Sequence[Part]], experiment: FinishedExperiment, **evidence: Any) -> Outcome:
    """Put readings of a claim together, the text's own first."""
    verdicts = {name: worst(parts) for name, parts in judged.items()}
    first, *others = verdicts
    verdict, chosen = verdicts[first], first
    if verdict is not Verdict.CONFIRMED and (
        others := [name for name in others if verdicts[name] is Verdict.CONFIRMED]
    ):
        verdict, chosen = Verdict.QUALIFIED, others[0]
    listed = "; ".join(f"{part.text}: {part.verdict}" for part in judged[chosen])
    if chosen != first:
        listed = f"only {chosen} ({listed}); {first}: {'; '.join(part.text for part in judged[first])}"
    rest = {name: str(judged_as) for name, judged_as in verdicts.items()}
    return conclude(verdict, f"{listed}; {not_stated(experiment)}", readings=rest, folder=experiment.folder, **evidence)


def not_stated(experiment: FinishedExperiment) -> str:
    """List what the source of an experiment does not state, with the values that it had."""
    listed = []
    for field in experiment.unstated:
        values = list(dict.fromkeys(repr(cell.settings.get(field)) for cell in experiment.cells))
        listed.append(f"{field} {', '.join(values)}")
    return f"not stated, and ours: {'; '.join(listed)}"


def cells(experiment: FinishedExperiment, **swept: Any) -> list[CellRecord]:
    """Return the cells whose settings are such: fields with ``__`` for the dot, numbers as printed."""
    return [
        cell
        for cell in experiment.cells
        if all(_equal(cell.settings.get(name.replace("__", ".")), value) for name, value in swept.items())
    ]


def only_cell(experiment: FinishedExperiment, **swept: Any) -> CellRecord | None:
    """Return the one cell of such settings; None if there are none or several."""
    matching = cells(experiment, **swept)
    return matching[0] if len(matching) == 1 else None


def _equal(value: Any, wanted: Any) -> bool:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return math.isclose(value, float(wanted), rel_tol=1e-9) if numeric else value == str(wanted)


def generator(*names: str) -> np.random.Generator:
    """Return randomness of its own for a simulation, the same in every run."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def shown(values: Sequence[float]) -> str:
    """List a few numbers, or sum up many."""
    if len(values) <= FEW:
        return ", ".join(f"{value:.4g}" for value in values)
    return f"{np.mean(values):.4g} ± {np.std(values, ddof=1):.2g} in {len(values)}"
