"""Checks that Algorithm 1 run literally, drawn from its exact law and written in plain numpy agree in distribution."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.verify.oneshot import algorithm_1
from canaryproof.verify.results import Check, Context, Outcome, Subject, Verdict

# Level of one comparison (four Kolmogorov–Smirnov tests, Bonferroni).
LEVEL = 1e-6


@dataclass(frozen=True)
class Setting:
    """A small case of Algorithm 1, with data vectors that are all equal to a multiple of the first axis."""

    dim: int
    count: int
    noise_multiplier: float
    data_norm: float


# One beyond a tile of the canary stream; one with more canaries than dimensions; one dominated by its data.
SETTINGS = (
    Setting(5000, 12, 0.5, 0.0),
    Setting(40, 60, 1.0, 0.0),
    Setting(100, 10, 0.3, 12.0),
)


def _exact(setting: Setting, runs: int, key: np.random.SeedSequence) -> NDArray[np.float64]:
    rng = np.random.default_rng(key)
    return np.array(
        [
            exact_law.cosines(setting.count, setting.dim, setting.noise_multiplier, rng, setting.data_norm)
            for _ in range(runs)
        ]
    )


def _literal(setting: Setting, runs: int, key: np.random.SeedSequence) -> NDArray[np.float64]:
    data = np.zeros((int(setting.data_norm), setting.dim))
    data[:, 0] = 1.0
    seeds = np.random.default_rng(key).integers(0, 2**63, runs)
    return np.array(
        [algorithm_1.cosines(setting.count, setting.dim, setting.noise_multiplier, int(seed), data) for seed in seeds]
    )


def _plain(setting: Setting, runs: int, key: np.random.SeedSequence) -> NDArray[np.float64]:
    rng = np.random.default_rng(key)
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


def _judge(setting: Setting, context: Context) -> Outcome:
    runs = context.pick(1000, 20000)
    name = f"samplers/{setting.dim}/{setting.count}"
    samples = {
        "exact law": _exact(setting, runs, context.key(f"{name}/exact")),
        "literal": _literal(setting, runs, context.key(f"{name}/literal")),
        "plain numpy": _plain(setting, runs, context.key(f"{name}/plain")),
    }
    p_values = {}
    for other in ("literal", "plain numpy"):
        for label, statistic in _STATISTICS.items():
            test = stats.ks_2samp(statistic(samples["exact law"]), statistic(samples[other]))
            p_values[f"{other}: {label}"] = float(test.pvalue)
    smallest = min(p_values.values())
    holds = smallest >= LEVEL / len(p_values)
    # The distance that two samples of this size exceed with probability LEVEL / 8: what the test can see.
    visible = float(np.sqrt(-np.log(0.5 * LEVEL / len(p_values)) / runs))
    return Outcome(
        Verdict.CONFIRMED if holds else Verdict.REFUTED,
        f"smallest of {len(p_values)} p-values {smallest:.2g}; distances from {visible:.2g} on are excluded",
        {"runs": runs, "level": LEVEL, "p_values": p_values, "visible_distance": visible},
    )


def _check(setting: Setting) -> Check:
    return Check(
        f"gaussian.samplers.d{setting.dim}",
        Subject.IMPLEMENTATION,
        "kernels.exact_law, kernels.canaries",
        f"Algorithm 1 literally, by its exact law and in plain numpy have one law at d = {setting.dim}, "
        f"k = {setting.count}, σ = {setting.noise_multiplier:g}, ‖Σxᵢ‖ = {setting.data_norm:g}",
        lambda context: _judge(setting, context),
    )


CHECKS = tuple(_check(setting) for setting in SETTINGS)
