"""Three samplers of Algorithm 1 compared: run literally, drawn from its exact law, and written in plain numpy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.verify.audit.estimators import algorithm_1
from canaryproof.verify.audit.levels import LEVEL, LOOKS, POWER, looks
from canaryproof.verify.papers.check.power import visible_distance
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict


@dataclass(frozen=True)
class SamplerCase:
    """A small case of Algorithm 1, with data vectors that are all equal to a multiple of the first axis."""

    dim: int
    count: int
    noise_multiplier: float
    data_norm: float


# One beyond a tile of the canary stream; one with more canaries than dimensions; one dominated by its data.
SETTINGS = (
    SamplerCase(5000, 12, 0.5, 0.0),
    SamplerCase(40, 60, 1.0, 0.0),
    SamplerCase(100, 10, 0.3, 12.0),
)


def _exact(setting: SamplerCase, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return exact_law.cosines(setting.count, setting.dim, setting.noise_multiplier, rng, setting.data_norm, runs)


def _literal(setting: SamplerCase, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    data = np.zeros((int(setting.data_norm), setting.dim))
    data[:, 0] = 1.0
    seeds = rng.integers(0, 2**63, runs)
    return np.array(
        [algorithm_1.cosines(setting.count, setting.dim, setting.noise_multiplier, int(seed), data) for seed in seeds]
    )


def _plain(setting: SamplerCase, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    rows = []
    for _ in range(runs):
        canaries = rng.standard_normal((setting.count, setting.dim))
        canaries /= np.linalg.norm(canaries, axis=1, keepdims=True)
        release = canaries.sum(axis=0) + setting.noise_multiplier * rng.standard_normal(setting.dim)
        release[0] += setting.data_norm
        rows.append(canaries @ release / np.linalg.norm(release))
    return np.array(rows)


_STATISTICS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "first cosine": lambda g: g[:, 0],
    "mean": lambda g: g.mean(axis=1),
    "mean square": lambda g: (g**2).mean(axis=1),
    "product of two": lambda g: g[:, 0] * g[:, 1],
}


_SAMPLERS = {"exact law": _exact, "literal": _literal, "plain numpy": _plain}


def _judge(setting: SamplerCase, context: Context) -> Outcome:
    most = context.pick(1000, 20000, 300)
    generators = {
        name: np.random.default_rng(context.key(f"samplers/{setting.dim}/{setting.count}/{name}")) for name in _SAMPLERS
    }
    samples = {name: np.empty((0, setting.count)) for name in _SAMPLERS}
    level = LEVEL / (LOOKS * 2 * len(_STATISTICS))
    holds = True
    p_values: dict[str, float] = {}
    for runs in looks(most):
        for name, draw in _SAMPLERS.items():
            more = draw(setting, runs - len(samples[name]), generators[name])
            samples[name] = np.concatenate([samples[name], more])
        p_values = _compared(samples)
        holds = min(p_values.values()) >= level
        if not holds:
            break
    visible = visible_distance(most, level, samples=2)
    finding = f"smallest of {len(p_values)} p-values {min(p_values.values()):.2g} after {runs:,} runs"
    evidence = {"runs": runs, "level": level, "p_values": p_values}
    design = Design(
        "the three have one law",
        LEVEL,
        f"a statistic's distribution functions differ by {visible:.2g} somewhere",
        POWER,
        most,
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


def _compared(samples: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {
        f"{other}: {label}": float(stats.ks_2samp(statistic(samples["exact law"]), statistic(samples[other])).pvalue)
        for other in ("literal", "plain numpy")
        for label, statistic in _STATISTICS.items()
    }


def _check(setting: SamplerCase) -> Check:
    return Check(
        f"algorithm1.samplers.d{setting.dim}",
        Subject.IMPLEMENTATION,
        "kernels.exact_law, kernels.canaries",
        f"Algorithm 1 literally, by its exact law and in plain numpy have one law at d = {setting.dim}, "
        f"k = {setting.count}, σ = {setting.noise_multiplier:g}, ‖Σxᵢ‖ = {setting.data_norm:g}",
        lambda context: _judge(setting, context),
    )


CHECKS = tuple(_check(setting) for setting in SETTINGS)
