"""The fast kernels with their enclosures, twins and domains: all that the suite ``numerics`` judges kernels by."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np

from canaryproof.kernels import binomial, gaussian_mechanism, null_cosine, two_gaussians
from canaryproof.kernels.certified import Enclosure
from canaryproof.kernels.certified import binomial as certified_binomial
from canaryproof.kernels.certified import gaussian_mechanism as certified_gaussian_mechanism
from canaryproof.kernels.certified import null_cosine as certified_null_cosine
from canaryproof.kernels.certified import two_gaussians as certified_two_gaussians
from canaryproof.kernels.certified.two_gaussians import Direction
from canaryproof.kernels.reference import binomial as reference_binomial
from canaryproof.kernels.reference import gaussian_mechanism as reference_gaussian_mechanism
from canaryproof.kernels.reference import null_cosine as reference_null_cosine
from canaryproof.kernels.reference import two_gaussians as reference_two_gaussians

Arguments = tuple[float, ...]


@dataclass(frozen=True)
class Target:
    """A fast kernel, its enclosure, and where it is used."""

    name: str  # Topic and function
    # kernel, certified, twin: functions of the same arguments; the twin also takes ``digits``.
    kernel: Callable[..., Any]
    certified: Callable[..., Enclosure]
    twin: Callable[..., mp.mpf]
    names: tuple[str, ...]  # Names of the arguments
    draw: Callable[[np.random.Generator], Arguments]  # Random arguments over the whole domain and its awkward corners
    inside: Callable[..., bool]  # Whether arguments lie in the domain
    # Whether arguments and the exact result lie in the domain of practice.
    practice: Callable[[Arguments, Enclosure], bool]
    seams: tuple[Arguments, ...] = ()  # Fixed arguments to begin with: branches, ends and near-cancellations
    # Whether the twin's plain formulas get by with the digits and the time that they have.
    twin_serves: Callable[..., bool] = lambda *_: True
    absolute: bool = False  # Whether an absolute error of 1e-15 is allowed below 0.1

    @property
    def topic(self) -> str:
        """Name of the kernel's module, with hyphens."""
        return self.name.partition(".")[0]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high))


def _mixed(rng: np.random.Generator, *draws: Callable[[], float]) -> float:
    return draws[rng.integers(len(draws))]()


def _dim(rng: np.random.Generator) -> float:
    exact = _log_uniform(rng, 2.0, 1e12)
    return exact if rng.random() < 0.2 else float(round(exact))


def _cosine_and_dim(rng: np.random.Generator) -> Arguments:
    dim = _dim(rng)
    deviations = _mixed(
        rng,
        lambda: rng.uniform(0.0, 4.0),
        lambda: rng.uniform(0.0, 40.0),
        lambda: _log_uniform(rng, 1e-9, 1.0),
        # The seam between the series and the continued fraction.
        lambda: 1.0 + rng.normal() * 1e-3,
    )
    cosine = abs(deviations) / math.sqrt(dim)
    if cosine >= 1.0 or rng.random() < 0.1:
        cosine = _mixed(rng, rng.random, lambda: 1.0 - _log_uniform(rng, 1e-16, 1.0))
    return (cosine if rng.random() < 0.5 else -cosine), dim


def _probability_and_dim(rng: np.random.Generator) -> Arguments:
    probability = _mixed(
        rng,
        lambda: _log_uniform(rng, 2.0**-1022, 0.5),
        rng.random,
        lambda: 0.5 + rng.choice([-1, 1]) * _log_uniform(rng, 1e-16, 0.4),
        lambda: 1.0 - _log_uniform(rng, 1e-16, 0.5),
        # The seam between the two ways.
        lambda: 0.17 * (1.0 + rng.normal() * 1e-3),
    )
    return min(max(probability, 2.0**-1022), 1.0 - 2.0**-53), _dim(rng)


def _delta(rng: np.random.Generator) -> float:
    return _mixed(
        rng,
        lambda: _log_uniform(rng, 2.0**-1022, 0.5),
        lambda: _log_uniform(rng, 1e-12, 0.5),
        rng.random,
        lambda: 1.0 - _log_uniform(rng, 2.0**-53, 0.5),
    )


def _epsilon(rng: np.random.Generator) -> float:
    return _mixed(
        rng,
        lambda: _log_uniform(rng, 1e-15, 1e28),
        lambda: _log_uniform(rng, 1e-3, 1e5),
        lambda: rng.uniform(0.0, 50.0),
        lambda: 0.0,
    )


def _noise(rng: np.random.Generator) -> float:
    return _mixed(rng, lambda: _log_uniform(rng, 1e-14, 1e50), lambda: _log_uniform(rng, 1e-3, 1e3))


def _pair(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Means and deviations: wide, near-equal or equal deviations, at any scale and place."""
    ratio = _mixed(
        rng,
        lambda: _log_uniform(rng, 1e-10, 1e10),
        lambda: _log_uniform(rng, 1e-3, 1e3),
        lambda: _log_uniform(rng, 0.5, 2.0),
        lambda: 1.0 + rng.choice([-1, 1]) * _log_uniform(rng, 2.0**-52, 0.1),
        lambda: 1.0,
    )
    distance = _mixed(
        rng,
        lambda: _log_uniform(rng, 1e-14, 1e14) * min(ratio, 1.0),
        lambda: _log_uniform(rng, 1e-3, 300.0),
        lambda: rng.uniform(0.0, 10.0),
        lambda: 0.0,
    )
    scale, mean = _log_uniform(rng, 1e-6, 1e6), rng.normal()
    if rng.random() < 0.5:
        scale, mean = 1.0, 0.0
    return float(scale * (mean + distance)), float(scale * ratio), float(scale * mean), scale


def _delta_and_pair(rng: np.random.Generator) -> Arguments:
    """δ anywhere, or next to that of ε = 0, where ε has just become positive."""
    pair = mu1, sigma1, mu2, sigma2 = _pair(rng)
    if rng.random() < 0.2 and _pair_inside(*pair):
        delta = math.exp(float(two_gaussians.log_delta(0.0, mu1, sigma1, mu2, sigma2)))
        return delta * (1.0 - _log_uniform(rng, 1e-16, 1e-3)), *pair
    return _delta(rng), *pair


def _cosine_inside(x: float, dim: float) -> bool:
    return -1.0 <= x <= 1.0 and 2.0 <= dim <= null_cosine.LARGEST_DIM


def _probability_inside(q: float, dim: float) -> bool:
    return 0.0 < q < 1.0 and 2.0 <= dim <= null_cosine.LARGEST_DIM


def _pair_inside(mu1: float, sigma1: float, mu2: float, sigma2: float) -> bool:
    if not (1e-300 < sigma1 < 1e300 and 1e-300 < sigma2 < 1e300 and abs(mu1) < 1e300 and abs(mu2) < 1e300):
        return False
    ratio, distance = sigma1 / sigma2, abs(mu1 - mu2)
    if mu1 != mu2 and distance < two_gaussians.SMALLEST_DISTANCE * max(sigma1, sigma2):
        return False
    largest = two_gaussians.LARGEST_RATIO
    return 1.0 / largest <= ratio <= largest and distance <= two_gaussians.LARGEST_DISTANCE * min(sigma1, sigma2)


def _delta_inside(delta: float) -> bool:
    return two_gaussians.SMALLEST_DELTA <= delta < 1.0


def _noise_inside(sigma: float) -> bool:
    return gaussian_mechanism.SMALLEST_NOISE <= sigma <= gaussian_mechanism.LARGEST_NOISE


def _practical_ratio(sigma1: float, sigma2: float) -> bool:
    return 0.5 <= sigma1 / sigma2 <= 2.0


def _practical_delta(delta: float) -> bool:
    return delta >= 1e-12


def _practical_epsilon(epsilon: float) -> bool:
    return 0.1 <= epsilon <= 50.0


_LOG_PRACTICAL_DELTA = math.log(1e-12)
_NEAR_EQUAL = tuple((1.3, 1.0 + gap, 1.0, 1.0) for gap in (2.0**-52, 1e-14, -1e-12, 1e-9, -1e-6, 1e-4))
_COSINES = tuple(
    (sign * x, dim)
    for sign in (1.0, -1.0)
    for x, dim in (
        (0.0, 2.0), (0.5, 2.0), (1.0 - 2.0**-53, 2.0), (0.3, 3.0), (0.999, 4.0), (0.25, 1000.0),
        (1.0 / math.sqrt(1000.0), 1000.0), (8.0 / math.sqrt(1000.0), 1000.0), (0.7, 1000.0), (1e-9, 1e12),
        (1e-6, 1e12), (3.7e-5, 1e12),
    )
)  # fmt: skip
_PROBABILITIES = tuple(
    (q, dim)
    for q in (1e-300, 0.169999, 0.170001, math.nextafter(0.5, 0.0), math.nextafter(0.5, 1.0))
    for dim in (2.0, 1000.0, 1e12)
)


def _null_cosine(name: str) -> Target:
    return Target(
        f"null-cosine.{name}", getattr(null_cosine, name), getattr(certified_null_cosine, name),
        getattr(reference_null_cosine, name), ("x", "dim"),
        _cosine_and_dim, _cosine_inside,
        lambda arguments, _: arguments[1] >= 100.0,
        _COSINES, absolute=name.startswith("log"),
    )  # fmt: skip


def _quantile(name: str) -> Target:
    return Target(
        f"null-cosine.{name}", getattr(null_cosine, name), getattr(certified_null_cosine, name),
        getattr(reference_null_cosine, name), ("q", "dim"),
        _probability_and_dim, _probability_inside,
        lambda arguments, _: arguments[1] >= 100.0 and 1e-12 <= arguments[0] <= 1.0 - 1e-12,
        _PROBABILITIES,
    )  # fmt: skip


_PAIR = ("mu1", "sigma1", "mu2", "sigma2")


def _twin_serves_pair(_: float, mu1: float, sigma1: float, mu2: float, sigma2: float) -> bool:
    return 1e-3 <= sigma1 / sigma2 <= 1e3 and abs(mu1 - mu2) <= 300.0 * min(sigma1, sigma2)


def _two_gaussians_epsilon(direction: Direction) -> Target:
    return Target(
        f"two-gaussians.epsilon.{direction}",
        partial(two_gaussians.epsilon, direction=direction),
        partial(certified_two_gaussians.epsilon, direction=direction),
        partial(reference_two_gaussians.epsilon, direction=direction),
        ("delta", *_PAIR),
        _delta_and_pair,
        lambda delta, *pair: _delta_inside(delta) and _pair_inside(*pair),
        lambda a, exact: _practical_delta(a[0]) and _practical_epsilon(exact.lo) and _practical_ratio(a[2], a[4]),
        (
            *((delta, *pair) for delta in (1e-6, 1e-300) for pair in _NEAR_EQUAL),
            (1e-6, 0.2, 3.0, 0.2, 3.0),
            # Next to δ(0), with all of Z ≤ 0 between neighbouring floats.
            (0.9999997374320605, -16.833570456779572, 331837849.8716361, -33.84640305676164, 18.355452744399727),
        ),
        _twin_serves_pair,
        absolute=True,
    )


# The certified limits take time as the root of the number of trials.
_MOST_TRIALS = 1e6
_MOST_TRIALS_OF_TWIN = 1e4


def _trials(rng: np.random.Generator) -> Arguments:
    trials = round(_log_uniform(rng, 1.0, _MOST_TRIALS))
    successes = _mixed(
        rng,
        lambda: float(rng.integers(0, trials + 1)),
        lambda: float(min(trials, int(rng.integers(0, 6)))),
        lambda: float(max(0, trials - int(rng.integers(0, 6)))),
    )
    confidence = _mixed(
        rng,
        lambda: 1.0 - _log_uniform(rng, 1e-15, 0.5),
        lambda: rng.uniform(0.01, 0.99),
        lambda: rng.choice([0.9, 0.95, 0.975, 0.99]),
    )
    return successes, float(trials), confidence


def _trials_inside(successes: float, trials: float, confidence: float) -> bool:
    whole = successes == math.floor(successes) and trials == math.floor(trials)
    return whole and 0 <= successes <= trials and 1 <= trials <= _MOST_TRIALS and 1e-100 <= confidence < 1.0


def _binomial(name: str, method: str) -> Target:
    limit, twin = getattr(certified_binomial, name), getattr(reference_binomial, name)
    return Target(
        f"binomial.{name}.{method}",
        partial(getattr(binomial, name), method=method),
        lambda successes, trials, confidence: limit(int(successes), int(trials), confidence, method),
        lambda successes, trials, confidence, digits: twin(
            int(successes), int(trials), confidence, method, digits=digits
        ),
        ("successes", "trials", "confidence"),
        _trials,
        _trials_inside,
        lambda a, _: a[1] >= 10.0 and 0.9 <= a[2] <= 1.0 - 1e-12,
        tuple((s, n, 0.95) for n in (1.0, 10.0, 1e6) for s in (0.0, 1.0, n - 1.0, n)),
        lambda _, trials, __: trials <= _MOST_TRIALS_OF_TWIN,
    )


def _twin_serves_mechanism(*arguments: float) -> bool:
    return all(x == 0.0 or 1e-12 <= x <= 1e5 for x in arguments)


TARGETS = (
    *(_null_cosine(name) for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")),
    *(_quantile(name) for name in ("ppf", "isf")),
    Target(
        "two-gaussians.log-delta.forward",
        partial(two_gaussians.log_delta, direction="forward"),
        partial(certified_two_gaussians.log_delta, direction="forward"),
        partial(reference_two_gaussians.log_delta, direction="forward"),
        ("epsilon", *_PAIR),
        lambda rng: (_epsilon(rng), *_pair(rng)),
        lambda epsilon, *pair: 0.0 <= epsilon <= two_gaussians.LARGEST_EPSILON and _pair_inside(*pair),
        lambda a, exact: exact.lo >= _LOG_PRACTICAL_DELTA and _practical_epsilon(a[0]) and _practical_ratio(a[2], a[4]),
        (*((epsilon, *pair) for epsilon in (0.0, 0.05, 3.0) for pair in _NEAR_EQUAL), (1.0, 0.2, 3.0, 0.2, 3.0)),
        _twin_serves_pair,
        absolute=True,
    ),
    _two_gaussians_epsilon("forward"),
    _two_gaussians_epsilon("both"),
    Target(
        "gaussian-mechanism.delta",
        gaussian_mechanism.delta,
        certified_gaussian_mechanism.delta,
        reference_gaussian_mechanism.delta,
        ("epsilon", "noise_multiplier"),
        lambda rng: (_epsilon(rng), _noise(rng)),
        lambda epsilon, sigma: 0.0 <= epsilon <= two_gaussians.LARGEST_EPSILON and _noise_inside(sigma),
        lambda a, exact: exact.lo >= 1e-12 and _practical_epsilon(a[0]),
        ((0.0, 1.0), (0.0, 1e9), (1e5, 0.0023), (1.0, 4.22)),
        _twin_serves_mechanism,
    ),
    Target(
        "gaussian-mechanism.log-delta",
        gaussian_mechanism.log_delta,
        certified_gaussian_mechanism.log_delta,
        reference_gaussian_mechanism.log_delta,
        ("epsilon", "noise_multiplier"),
        lambda rng: (_epsilon(rng), _noise(rng)),
        lambda epsilon, sigma: 0.0 <= epsilon <= two_gaussians.LARGEST_EPSILON and _noise_inside(sigma),
        lambda a, exact: exact.lo >= _LOG_PRACTICAL_DELTA and _practical_epsilon(a[0]),
        ((0.0, 1.0), (0.0, 1e9), (1e5, 0.0023), (1.0, 4.22)),
        _twin_serves_mechanism,
        absolute=True,
    ),
    Target(
        "gaussian-mechanism.epsilon",
        gaussian_mechanism.epsilon,
        certified_gaussian_mechanism.epsilon,
        reference_gaussian_mechanism.epsilon,
        ("delta", "noise_multiplier"),
        lambda rng: (_delta(rng), _noise(rng)),
        lambda delta, sigma: _delta_inside(delta) and _noise_inside(sigma),
        lambda a, exact: _practical_delta(a[0]) and _practical_epsilon(exact.lo),
        ((1e-6, 4.22), (1e-6, 1.54), (1e-6, 0.541), (0.5, 1.0)),
        _twin_serves_mechanism,
        absolute=True,
    ),
    Target(
        "gaussian-mechanism.noise-multiplier",
        gaussian_mechanism.noise_multiplier,
        certified_gaussian_mechanism.noise_multiplier,
        reference_gaussian_mechanism.noise_multiplier,
        ("epsilon", "delta"),
        lambda rng: (_epsilon(rng), _delta(rng)),
        lambda epsilon, delta: 0.0 <= epsilon <= two_gaussians.LARGEST_EPSILON and _delta_inside(delta),
        lambda a, _: _practical_delta(a[1]) and _practical_epsilon(a[0]),
        ((1.0, 1e-6), (0.0, 1e-6), (0.0, 1e-300), (1e5, 0.5)),
        _twin_serves_mechanism,
    ),
    *(_binomial(name, method) for method in ("clopper-pearson", "jeffreys") for name in ("lower", "upper")),
)
