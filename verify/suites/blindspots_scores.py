"""Scores as the atlas draws them and scores of canaries in coordinates: one law, whatever else the noise is."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from canaryproof.kernels import exact_law
from canaryproof.verify.blindspots import finite_noise, laplace, view
from canaryproof.verify.blindspots.catalogue import MECHANISMS
from canaryproof.verify.blindspots.mechanism import Claim, single
from canaryproof.verify.error_control import POWER, visible_distance
from canaryproof.verify.results import Check, Context, Design, Outcome, Subject, Verdict

Array = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Array]

# Of each check: all its comparisons, Bonferroni.
LEVEL = 1e-7
# Where scores are drawn to leading order, distances of distribution functions that are granted.
_MARGIN = 0.02
_SIGMA = 0.5
# Of single releases in coordinates: one with more canaries than dimensions, and one with data.
_SETTINGS = ((40, 60, 0.0), (100, 10, 12.0))
_DIM, _COUNT = 300, 20
_SHARE = 0.1

_STATISTICS: dict[str, Callable[[Array], Array]] = {
    "first": lambda g: g[:, 0],
    "mean": lambda g: g.mean(axis=1),
    "mean square": lambda g: (g**2).mean(axis=1),
    "product of two": lambda g: g[:, 0] * g[:, 1],
    "largest": lambda g: g.max(axis=1),
}


def _compare(laws: Mapping[str, Draw], context: Context, runs: int, margin: float = 0.0) -> Outcome:
    """Compare the first law with all others, statistic by statistic, with as many runs of each."""
    drawn = {
        name: draw(runs, np.random.default_rng(context.key(f"blindspots/scores/{name}"))) for name, draw in laws.items()
    }
    first, *others = drawn
    distances = {
        f"{other}: {label}": float(stats.ks_2samp(statistic(drawn[first]), statistic(drawn[other])).statistic)
        for other in others
        for label, statistic in _STATISTICS.items()
    }
    level = LEVEL / len(distances)
    # Each sample's distribution function is that far from its law's with half of the probability (Dvoretzky, Kiefer,
    # Wolfowitz and Massart).
    critical = margin + 2.0 * math.sqrt(math.log(4.0 / level) / (2.0 * runs))
    label, largest = max(distances.items(), key=lambda item: item[1])
    holds = largest <= critical
    finding = f"largest of {len(distances)} distances {largest:.3f} ({label}), allowed {critical:.3f} ({runs:,} runs)"
    null = f"distribution functions differ by at most {margin:g}" if margin > 0.0 else "the laws are one"
    visible = margin + visible_distance(runs, level, samples=2)
    alternative = f"a statistic's distribution functions differ by {visible:.2g} somewhere"
    return Outcome(
        Verdict.CONFIRMED if holds else Verdict.REFUTED,
        finding,
        {"runs": runs, "level": LEVEL, "allowed": critical, "distances": distances},
        Design(null, LEVEL, alternative, POWER, runs),
    )


def _canaries(count: int, dim: int, rng: np.random.Generator) -> Array:
    rows = rng.standard_normal((count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _in_coordinates(
    noise: Callable[[np.random.Generator], Array], count: int, runs: int, rng: np.random.Generator
) -> Array:
    """Draw the largest cosines of canaries with the releases of all rounds; canaries take part in turns.

    ``noise`` draws what else is released, shape (rounds, d). Unobserved canaries, as many, come behind the observed.
    """
    found = []
    for _ in range(runs):
        releases = noise(rng)
        rounds, dim = releases.shape
        canaries = _canaries(2 * count, dim, rng)
        for each in range(rounds):
            releases[each] += canaries[:count][each::rounds].sum(axis=0)
        found.append((canaries @ (releases / np.linalg.norm(releases, axis=1, keepdims=True)).T).max(axis=1))
    return np.array(found)


def _of(name: str, value: float) -> Draw:
    """Return scores as the atlas draws them."""
    mechanism = MECHANISMS[name]
    claim = Claim(_SIGMA, 1e-5, _DIM)

    def draw(runs: int, rng: np.random.Generator) -> Array:
        residual = mechanism.residual(value, claim, runs, rng)
        return np.concatenate(view.exact(residual, mechanism.weights(value), _COUNT, _COUNT, rng), axis=1)

    return draw


def _autoregression(value: float, rounds: int, rng: np.random.Generator) -> Array:
    rows = rng.standard_normal((rounds, _DIM))
    for each in range(1, rounds):
        rows[each] = value * rows[each - 1] + math.sqrt(1.0 - value**2) * rows[each]
    return _SIGMA * rows


def _in_a_subspace(rounds: int, rng: np.random.Generator) -> Array:
    """Draw noise on the first coordinates alone."""
    rows, rank = np.zeros((rounds, _DIM)), round(_SHARE * _DIM)
    rows[:, :rank] = _SIGMA / math.sqrt(_SHARE) * rng.standard_normal((rounds, rank))
    return rows


def _anywhere(rng: np.random.Generator) -> Array:
    """Draw a uniform direction with the length of noise in a subspace."""
    return np.asarray(np.linalg.norm(_in_a_subspace(1, rng)) * _canaries(1, _DIM, rng))


def _single(dim: int, count: int, data_norm: float, context: Context) -> Outcome:
    def kernel(runs: int, rng: np.random.Generator) -> Array:
        return np.array([exact_law.cosines(count, dim, _SIGMA, rng, data_norm) for _ in range(runs)])

    def atlas(runs: int, rng: np.random.Generator) -> Array:
        squares = _SIGMA**2 * rng.noncentral_chisquare(dim, (data_norm / _SIGMA) ** 2, (runs, 1))
        return view.exact(single((dim,), squares), np.ones((1, 1)), count, 0, rng)[0]

    return _compare({"kernel": kernel, "atlas": atlas}, context, context.pick(2000, 20_000))


def _subspace(context: Context) -> Outcome:
    laws: dict[str, Draw] = {
        "in a subspace": partial(_in_coordinates, partial(_in_a_subspace, 1), _COUNT),
        "anywhere": partial(_in_coordinates, _anywhere, _COUNT),
        "atlas": _of("low-rank", _SHARE),
    }
    return _compare(laws, context, context.pick(2000, 20_000))


def _several(name: str, value: float, noise: Callable[[np.random.Generator], Array], context: Context) -> Outcome:
    laws: dict[str, Draw] = {"in coordinates": partial(_in_coordinates, noise, _COUNT), "atlas": _of(name, value)}
    return _compare(laws, context, context.pick(2000, 20_000))


def _cosines(grams: Array) -> Array:
    """Return cosines of the residuals of every two rounds, shape (runs, pairs)."""
    rows, columns = np.triu_indices(grams.shape[-1], 1)
    lengths = np.sqrt(np.diagonal(grams, axis1=1, axis2=2))
    return np.asarray(grams[:, rows, columns] / (lengths[:, rows] * lengths[:, columns]))


def _residuals(context: Context) -> Outcome:
    """Compare residuals of rounds, of whose rank their scores tell next to nothing."""

    def coordinates(runs: int, rng: np.random.Generator) -> Array:
        rows = np.array([_in_a_subspace(10, rng) for _ in range(runs)])
        return _cosines(rows @ rows.swapaxes(1, 2))

    def atlas(runs: int, rng: np.random.Generator) -> Array:
        claim = Claim(_SIGMA, 1e-5, _DIM)
        return _cosines(MECHANISMS["low-rank-rounds"].residual(_SHARE, claim, runs, rng).gram)

    return _compare({"in coordinates": coordinates, "atlas": atlas}, context, context.pick(2000, 20_000))


def _coarse(bits: int, context: Context) -> Outcome:
    def noise(rng: np.random.Generator) -> Array:
        return finite_noise.release(np.zeros(_DIM), bits, _SIGMA, rng, 1).astype(np.float64)

    laws: dict[str, Draw] = {
        "in coordinates": partial(_in_coordinates, noise, _COUNT),
        "atlas": _of("coarse-noise", bits),
    }
    return _compare(laws, context, context.pick(2000, 20_000), _MARGIN)


def _leading(context: Context) -> Outcome:
    """Compare the quick draw with the exact one, where canaries are few beside dimensions and releases are several."""
    mechanism, claim = MECHANISMS["correlated-noise"], Claim(_SIGMA, 1e-5, 10_000)

    def scores(draw: Callable[..., tuple[Array, Array]], runs: int, rng: np.random.Generator) -> Array:
        residual = mechanism.residual(0.5, claim, runs, rng)
        return math.sqrt(claim.dim) * np.concatenate(draw(residual, mechanism.weights(0.5), 50, 50, rng), axis=1)

    laws: dict[str, Draw] = {"exact": partial(scores, view.exact), "leading": partial(scores, view.leading)}
    return _compare(laws, context, context.pick(2000, 20_000), _MARGIN)


def _laplace(spread: int, context: Context) -> Outcome:
    dim = 2000

    def coordinates(runs: int, rng: np.random.Generator) -> Array:
        found = []
        for _ in range(runs):
            canaries = np.zeros((2 * _COUNT, dim))
            for canary in canaries:
                sizes = rng.laplace(size=spread)
                canary[rng.choice(dim, spread, replace=False)] = sizes / np.abs(sizes).sum()
            release = canaries[:_COUNT].sum(axis=0) + rng.laplace(scale=_SIGMA, size=dim)
            found.append(canaries @ release / np.linalg.norm(canaries, axis=1))
        return np.array(found)

    def atlas(runs: int, rng: np.random.Generator) -> Array:
        return np.concatenate(laplace.scores(spread, _SIGMA, dim, _COUNT, runs, rng), axis=1)

    return _compare({"in coordinates": coordinates, "atlas": atlas}, context, context.pick(1000, 4000), _MARGIN)


def _check(name: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"blindspots.scores.{name}", Subject.IMPLEMENTATION, "verify.blindspots", statement, judge)


CHECKS = (
    *(
        _check(
            f"single.d{dim}",
            f"scores drawn from a residual's norm have the law of Algorithm 1's cosines at d = {dim}, k = {count}, "
            f"‖Σxᵢ‖ = {data_norm:g}",
            partial(_single, dim, count, data_norm),
        )
        for dim, count, data_norm in _SETTINGS
    ),
    _check(
        "low-rank",
        "noise on a tenth of the coordinates alone and noise anywhere with the same norm give cosines of one law",
        _subspace,
    ),
    _check(
        "reused-noise",
        "scores of two rounds with the same noise are as in coordinates",
        partial(_several, "reused-noise", 2.0, lambda rng: np.repeat(_autoregression(0.0, 1, rng), 2, axis=0)),
    ),
    _check(
        "correlated-noise",
        "scores of rounds with correlated noise are as in coordinates",
        partial(_several, "correlated-noise", 0.9, partial(_autoregression, 0.9, 10)),
    ),
    _check(
        "low-rank-rounds",
        "scores of rounds with noise on a tenth of the coordinates are as in coordinates",
        partial(_several, "low-rank-rounds", _SHARE, partial(_in_a_subspace, 10)),
    ),
    _check(
        "residuals",
        "residuals of rounds with noise on a tenth of the coordinates have the cosines that they have in coordinates",
        _residuals,
    ),
    *(
        _check(
            f"coarse-noise.b{bits}",
            f"scores beside noise made of {bits}-bit uniforms in single precision are as drawn, to {_MARGIN:g}",
            partial(_coarse, bits),
        )
        for bits in (4, 24)
    ),
    _check("leading", f"scores drawn to leading order have the exact law at d = 10,000, to {_MARGIN:g}", _leading),
    *(
        _check(
            f"laplace.m{spread}",
            f"scores of canaries on the ℓ₁ sphere of {spread} coordinates are as in coordinates, to {_MARGIN:g}",
            partial(_laplace, spread),
        )
        for spread in (1, 30, 2000)
    ),
)
