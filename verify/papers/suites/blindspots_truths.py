"""The atlas's truths and scores a second time: dense matrices, integrals, and canaries in coordinates.

Noise that is normal is written down in coordinates, as a matrix times independent normal numbers. The worst client is
found by singular values, and δ(ε) by integrating one density less e^ε times another.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from canaryproof.kernels import exact_law
from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.blindspots import mechanisms
from canaryproof.verify.audit.blindspots.mechanisms import MECHANISMS, AtlasClaim, single
from canaryproof.verify.audit.blindspots.ranges import leading
from canaryproof.verify.audit.levels import PART_LEVEL, POWER
from canaryproof.verify.papers.check.power import visible_distance
from canaryproof.verify.papers.check.results import Check, Context, Design, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites import atlas

Delta = Callable[[float], float]
Curve = Callable[[Any], Any]
# Noise as a matrix, and of each kind of client what its vector of norm 1 becomes in the release.
Setting = tuple[Array, list[Array]]

_DELTA = 1e-5
_SIGMAS = (0.5, 2.0)
_DIM = 12
_ROUNDS = 10
# Tolerance of ε, relative, or absolute below 1; the integrals are good to a little less.
_TOLERANCE = 1e-11
# Numbers below this count as 0, in matrices of ordinary numbers.
_NOTHING = 1e-9
_LARGEST = 1e6
# Beyond it, in deviations, there is nothing of a normal law that counts here.
_REACH = 14.0
# Bits up to which all values of coarse noise are looked at, by level.
_ENUMERATED = (16, 24)
_FEW_BITS = 8
_TRIES = 200
# Gauss and Legendre's rule, for pieces on which neither a density of deviation 1 nor its loss changes by much.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Laplace laws end here, and a quantile has so many steps.
_FAR = 60.0
_GRID = 1000


def _excess(log_density: Curve, loss: Curve, ends: Sequence[float]) -> Delta:
    """Return δ(ε) by integrating max(0, p − e^ε·q), by log p and log(p/q), which may have kinks at the ends only."""

    def integrand(x: Array, epsilon: float) -> Array:
        return np.asarray(np.exp(log_density(x)) * np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss(x), 1.0))))

    def delta(epsilon: float) -> float:
        # Where the loss passes ε there is a kink as well.
        points = [
            optimize.brentq(lambda x: float(loss(x)) - epsilon, low, high, xtol=1e-14)
            for low, high in pairwise(ends)
            if (float(loss(low)) - epsilon) * (float(loss(high)) - epsilon) < 0.0
        ]
        pieces = [
            np.linspace(low, high, math.ceil(max(high - low, 0.2 * abs(loss(high) - loss(low)))) + 1)
            for low, high in pairwise(sorted([*ends, *points]))
        ]
        half = np.concatenate([0.5 * np.diff(piece) for piece in pieces])
        middle = np.concatenate([0.5 * (piece[1:] + piece[:-1]) for piece in pieces])
        values = integrand(middle[:, np.newaxis] + half[:, np.newaxis] * _NODES, epsilon)
        return math.fsum((values @ _WEIGHTS) * half)

    return delta


def _least(delta: Callable[[float], float], target: float) -> float:
    """Return the least ε with δ(ε) at most the target, infinite if there is none up to the largest."""
    if delta(0.0) <= target:
        return 0.0
    high = 1.0
    while delta(high) >= target:
        high *= 4.0
        if high > _LARGEST:
            return math.inf
    return float(optimize.brentq(lambda epsilon: delta(epsilon) - target, 0.0, high, xtol=1e-13))


def _normals(distance: float) -> Delta:
    """Return δ(ε) of N(m, 1) from N(0, 1)."""
    constant = 0.5 * math.log(2.0 * math.pi)
    edges = sorted({-_REACH, 0.0, 0.5 * distance, distance, distance + _REACH})
    return _excess(lambda x: -0.5 * (x - distance) ** 2 - constant, lambda x: distance * (x - 0.5 * distance), edges)


def _worst(noise: Array, clients: list[Array]) -> float:
    """Return the largest distance, in deviations, by which a client's vector moves the release; infinite if exactly."""
    axes, lengths, _ = np.linalg.svd(noise)
    lengths = np.append(lengths, np.zeros(len(axes) - len(lengths)))
    there = lengths > _NOTHING
    moved = [axes.T @ client for client in clients]
    if any(np.abs(matrix[~there]).max(initial=0.0) > _NOTHING for matrix in moved):
        return math.inf
    return max(float(np.linalg.norm(matrix[there] / lengths[there, np.newaxis], 2)) for matrix in moved)


def _turn(dim: int) -> Array:
    return np.asarray(stats.ortho_group.rvs(dim, random_state=12))


def _diagonal(claim: AtlasClaim, factors: Array) -> Setting:
    """Noise of given deviations on orthogonal axes, none of them a coordinate's."""
    return claim.noise_multiplier * _turn(len(factors)) * factors, [np.eye(len(factors))]


def _even(factor: float, reach: float, claim: AtlasClaim) -> Setting:
    """Noise of a multiple of the claimed deviation, and clients of some norm."""
    noise, (client,) = _diagonal(claim, np.full(_DIM, factor))
    return noise, [reach * client]


def _share(factor: float, value: float, claim: AtlasClaim) -> Setting:
    return _diagonal(claim, np.where(np.arange(_DIM) < math.ceil(value * _DIM), factor, 1.0))


def _low_rank(value: float, claim: AtlasClaim) -> Setting:
    rank = math.ceil(value * _DIM)
    return claim.noise_multiplier / math.sqrt(value) * _turn(_DIM)[:, :rank], [np.eye(_DIM)]


def _blocks(rounds: Array, dim: int) -> Array:
    """Return what does the same in each of the dimensions."""
    return np.asarray(np.kron(rounds, np.eye(dim)), dtype=np.float64)


def _clients(rounds: int, dim: int) -> list[Array]:
    """Return the clients of each round, where all rounds are released."""
    return [_blocks(np.eye(rounds)[:, [each]], dim) for each in range(rounds)]


def _reused(value: float, claim: AtlasClaim) -> Setting:
    rounds, dim = int(value), 2
    return claim.noise_multiplier * _blocks(np.ones((rounds, 1)), dim), _clients(rounds, dim)


def _autoregression(value: float, claim: AtlasClaim) -> Setting:
    """Each round's noise is made of the one before and new noise."""
    factor = np.zeros((_ROUNDS, _ROUNDS))
    factor[0, 0] = 1.0
    for each in range(1, _ROUNDS):
        factor[each] = value * factor[each - 1]
        factor[each, each] = math.sqrt(1.0 - value**2)
    return claim.noise_multiplier * _blocks(factor, 2), _clients(_ROUNDS, 2)


def _counted(value: float, claim: AtlasClaim) -> Setting:
    """Release the sum and the number of clients, with noise on turned axes; a client adds (1, 0) and 1."""
    known = math.isfinite(value)
    turn = _turn(3)
    deviations = np.array([claim.noise_multiplier, claim.noise_multiplier, value if known else 1.0])
    return turn * deviations, [turn @ np.array([[1.0], [0.0], [float(known)]])]


def _fixed_batches(value: float, claim: AtlasClaim) -> Setting:
    rounds, dim = int(value), 2
    deviation = mechanisms.sampled_share(value) * claim.noise_multiplier
    return deviation * _blocks(np.eye(rounds), dim), _clients(rounds, dim)


def _low_rank_rounds(value: float, claim: AtlasClaim) -> Setting:
    noise, _ = _low_rank(value, claim)
    return np.asarray(np.kron(np.eye(_ROUNDS), noise), dtype=np.float64), _clients(_ROUNDS, _DIM)


def _final(value: float, claim: AtlasClaim) -> Setting:
    """Iterate: the model shrinks, and then takes up a round's client and noise."""
    noise, clients = np.zeros((2, 0)), list[Array]()
    for _ in range(_ROUNDS):
        noise = np.hstack([value * noise, claim.noise_multiplier * np.eye(2)])
        clients = [*(value * client for client in clients), np.eye(2)]
    return noise, clients


_MATRICES: dict[str, Callable[[float, AtlasClaim], Setting]] = {
    "less-noise": lambda value, claim: _even(value, 1.0, claim),
    "dilution": lambda _value, claim: _even(0.5, 1.0, claim),
    "no-noise-on-a-share": partial(_share, 0.0),
    "half-noise-on-a-share": partial(_share, 0.5),
    "low-rank": _low_rank,
    "unclipped": lambda value, claim: _even(1.0, value, claim),
    "memorised": lambda value, claim: _even(1.0, 1.0 + value, claim),
    "other-canaries": lambda _value, claim: _even(1.0, 1.0, claim),
    "reused-noise": _reused,
    "correlated-noise": _autoregression,
    "low-rank-rounds": _low_rank_rounds,
    "fixed-batches": _fixed_batches,
    "normalised-after-noise": _counted,
    "final-iterate": _final,
}


def _by_normals(distance: float, claim: AtlasClaim) -> float:
    return math.inf if math.isinf(distance) else _least(_normals(distance), claim.delta)


def _outright(value: float, claim: AtlasClaim) -> float:
    """Integrate over the release and sum over what else is seen: a client's data, other data, or nothing."""
    usual = _normals(1.0 / claim.noise_multiplier)
    return _least(lambda epsilon: math.fsum([value, (1.0 - value) * usual(epsilon)]), claim.delta)


def _few_states(value: float, claim: AtlasClaim, rng: np.random.Generator) -> float | None:
    """Try all states of a generator, and see whether they tell with certainty that a client was there or was not."""
    if value > _FEW_BITS:
        return None
    states = [np.random.default_rng(state).standard_normal(3) for state in range(2 ** int(value))]
    noise = claim.noise_multiplier * np.array(states)
    drawn = noise[rng.integers(0, len(noise), _TRIES)]

    def known(releases: Array) -> NDArray[np.bool_]:
        gaps = np.abs(releases[:, np.newaxis] - noise).max(axis=2)
        return np.asarray((gaps < _NOTHING).any(axis=1))

    known_exactly = known(drawn).all() and not known(drawn + np.array([1.0, 0.0, 0.0])).any()
    return math.inf if known_exactly else 0.0


def _coarse(value: float, claim: AtlasClaim, most: int) -> float | None:
    """Look at all values of a coordinate's noise, and what single precision makes of them with a client's 1."""
    if value > most:
        return None
    size = 2 ** int(value)
    quantiles = special.ndtri((np.arange(size) + 0.5) / size).astype(np.float32)
    without = np.float32(claim.noise_multiplier) * quantiles
    revealed = float((~np.isin(np.float32(1.0) + without, without)).mean())
    return math.inf if revealed > claim.delta else 0.0


def _laplace(share: float, claim: AtlasClaim) -> float:
    """Integrate for the client with a single coordinate, and see that two coordinates tell less."""
    shift = (claim.epsilon - 2.0 * math.log1p(-claim.delta)) / share
    edges = (-_FAR, 0.0, shift, shift + _FAR)
    delta = _excess(
        lambda x: -np.abs(x - shift) - math.log(2.0), lambda x: np.clip(2.0 * x - shift, -shift, shift), edges
    )
    epsilon = max(0.75 * shift, shift - 4.0)
    if any(_shared(part, shift, epsilon) >= delta(epsilon) for part in (0.5, 0.8, 0.95)):
        return math.nan
    return _least(delta, claim.delta)


def _shared(part: float, shift: float, epsilon: float) -> float:
    """Return δ(ε) of two coordinates with Laplace noise that share a shift, on a grid of the noise's quantiles."""
    noise = np.asarray(stats.laplace.ppf((np.arange(_GRID) + 0.5) / _GRID))
    first, second = (np.abs(noise + s) - np.abs(noise) for s in (part * shift, (1.0 - part) * shift))
    return float(np.maximum(0.0, -np.expm1(epsilon - np.add.outer(first, second))).mean())


def _computed(name: str, value: float, claim: AtlasClaim, context: Context) -> float | None:
    """Return ε by the second way, None where there are too many values to enumerate."""
    match name:
        case "released-outright":
            return _outright(value, claim)
        case "few-states" | "coarse-noise" if math.isinf(value):
            return _by_normals(1.0 / claim.noise_multiplier, claim)
        case "few-states":
            return _few_states(value, claim, np.random.default_rng(context.key(f"blindspots/{name}/{value}")))
        case "coarse-noise":
            return _coarse(value, claim, context.pick(*_ENUMERATED))
        case "laplace":
            return _laplace(value, claim)
        case "laplace-spread":
            return _laplace(0.5, claim)
    return _by_normals(_worst(*_MATRICES[name](value, claim)), claim)


def _agree(low: float, high: float, value: float) -> bool:
    if math.isinf(low):
        return value == low
    slack = _TOLERANCE * max(1.0, high)
    return low - slack <= value <= high + slack


def _judge(name: str, context: Context) -> Outcome:
    mechanism = MECHANISMS[name]
    # Few enough states to try them all.
    values = (*mechanism.values, float(_FEW_BITS)) if name == "few-states" else mechanism.values
    rows: list[dict[str, Any]] = []
    for sigma in _SIGMAS:
        claim = AtlasClaim(sigma, _DELTA, 10**6)
        for value in values:
            computed, truth = _computed(name, value, claim, context), mechanism.truth(value, claim)
            if computed is not None:
                row = {"sigma": sigma, "value": value, "truth": [truth.low, truth.high], "found": computed}
                rows.append({**row, "agree": _agree(truth.low, truth.high, computed)})
    wrong = [row for row in rows if not row["agree"]]
    gaps = [abs(row["found"] / row["truth"][1] - 1.0) for row in rows if 0.0 < row["truth"][1] < math.inf]
    infinite = sum(math.isinf(row["found"]) for row in rows)
    finding = (
        f"{len(rows) - len(wrong)} of {len(rows)} agree, {infinite} infinite, others to {max(gaps, default=0):.1e}"
    )
    if wrong:
        finding += f"; at {wrong[0]['value']:g} with σ = {wrong[0]['sigma']:g}: {wrong[0]['found']:.6g}"
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"rows": rows})


# Scores as the atlas draws them and scores of canaries in coordinates: one law, whatever else the noise is.


Draw = Callable[[int, np.random.Generator], Array]

# Where scores are drawn to leading order, distances of distribution functions that are granted.
_MARGIN = 0.02
_SIGMA = 0.5
# Settings of single releases in coordinates: one has more canaries than dimensions, and one has data.
_SETTINGS = ((40, 60, 0.0), (100, 10, 12.0))
_SCORES_DIM, _COUNT = 300, 20
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
    level = PART_LEVEL / len(distances)
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
        {"runs": runs, "level": PART_LEVEL, "allowed": critical, "distances": distances},
        Design(null, PART_LEVEL, alternative, POWER, runs),
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
    examples = []
    for _ in range(runs):
        releases = noise(rng)
        rounds, dim = releases.shape
        canaries = _canaries(2 * count, dim, rng)
        for each in range(rounds):
            releases[each] += canaries[:count][each::rounds].sum(axis=0)
        examples.append((canaries @ (releases / np.linalg.norm(releases, axis=1, keepdims=True)).T).max(axis=1))
    return np.array(examples)


def _of(name: str, value: float) -> Draw:
    """Return scores as the atlas draws them."""
    mechanism = MECHANISMS[name]
    claim = AtlasClaim(_SIGMA, 1e-5, _SCORES_DIM)

    def draw(runs: int, rng: np.random.Generator) -> Array:
        residual = mechanism.residual(value, claim, runs, rng)
        return np.concatenate(atlas.exact(residual, mechanism.weights(value), _COUNT, _COUNT, rng), axis=1)

    return draw


def _autoregressive_noise(value: float, rounds: int, rng: np.random.Generator) -> Array:
    rows = rng.standard_normal((rounds, _SCORES_DIM))
    for each in range(1, rounds):
        rows[each] = value * rows[each - 1] + math.sqrt(1.0 - value**2) * rows[each]
    return _SIGMA * rows


def _in_a_subspace(rounds: int, rng: np.random.Generator) -> Array:
    """Draw noise on the first coordinates alone."""
    rows, rank = np.zeros((rounds, _SCORES_DIM)), round(_SHARE * _SCORES_DIM)
    rows[:, :rank] = _SIGMA / math.sqrt(_SHARE) * rng.standard_normal((rounds, rank))
    return rows


def _anywhere(rng: np.random.Generator) -> Array:
    """Draw a uniform direction with the length of noise in a subspace."""
    return np.asarray(np.linalg.norm(_in_a_subspace(1, rng)) * _canaries(1, _SCORES_DIM, rng))


def _single(dim: int, count: int, data_norm: float, context: Context) -> Outcome:
    def kernel(runs: int, rng: np.random.Generator) -> Array:
        return exact_law.cosines(count, dim, _SIGMA, rng, data_norm, runs)

    def drawn(runs: int, rng: np.random.Generator) -> Array:
        squares = _SIGMA**2 * rng.noncentral_chisquare(dim, (data_norm / _SIGMA) ** 2, (runs, 1))
        return atlas.exact(single((dim,), squares), np.ones((1, 1)), count, 0, rng)[0]

    return _compare({"kernel": kernel, "atlas": drawn}, context, context.pick(2000, 20_000, 500))


def _subspace(context: Context) -> Outcome:
    laws: dict[str, Draw] = {
        "in a subspace": partial(_in_coordinates, partial(_in_a_subspace, 1), _COUNT),
        "anywhere": partial(_in_coordinates, _anywhere, _COUNT),
        "atlas": _of("low-rank", _SHARE),
    }
    return _compare(laws, context, context.pick(2000, 20_000, 500))


def _several(name: str, value: float, noise: Callable[[np.random.Generator], Array], context: Context) -> Outcome:
    laws: dict[str, Draw] = {"in coordinates": partial(_in_coordinates, noise, _COUNT), "atlas": _of(name, value)}
    return _compare(laws, context, context.pick(2000, 20_000, 500))


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

    def drawn(runs: int, rng: np.random.Generator) -> Array:
        claim = AtlasClaim(_SIGMA, 1e-5, _SCORES_DIM)
        return _cosines(MECHANISMS["low-rank-rounds"].residual(_SHARE, claim, runs, rng).gram)

    return _compare({"in coordinates": coordinates, "atlas": drawn}, context, context.pick(2000, 20_000, 500))


def _coarse_scores(bits: int, context: Context) -> Outcome:
    def noise(rng: np.random.Generator) -> Array:
        return mechanisms.coarse_release(np.zeros(_SCORES_DIM), bits, _SIGMA, rng, 1).astype(np.float64)

    laws: dict[str, Draw] = {
        "in coordinates": partial(_in_coordinates, noise, _COUNT),
        "atlas": _of("coarse-noise", bits),
    }
    return _compare(laws, context, context.pick(2000, 20_000, 500), _MARGIN)


def _leading(context: Context) -> Outcome:
    """Compare the quick draw with the exact one, where canaries are few for the dimensions and releases are several."""
    mechanism, claim = MECHANISMS["correlated-noise"], AtlasClaim(_SIGMA, 1e-5, 10_000)

    def scores(draw: Callable[..., tuple[Array, Array]], runs: int, rng: np.random.Generator) -> Array:
        residual = mechanism.residual(0.5, claim, runs, rng)
        return math.sqrt(claim.dim) * np.concatenate(draw(residual, mechanism.weights(0.5), 50, 50, rng), axis=1)

    laws: dict[str, Draw] = {"exact": partial(scores, atlas.exact), "leading": partial(scores, leading)}
    return _compare(laws, context, context.pick(2000, 20_000, 500), _MARGIN)


def _laplace_scores(spread: int, context: Context) -> Outcome:
    dim = 2000

    def coordinates(runs: int, rng: np.random.Generator) -> Array:
        rows = []
        for _ in range(runs):
            canaries = np.zeros((2 * _COUNT, dim))
            for canary in canaries:
                sizes, signs = rng.standard_exponential(spread), rng.integers(0, 2, spread, dtype=np.int8)
                coordinates_used = rng.choice(dim, spread, replace=False) if spread < dim else slice(None)
                canary[coordinates_used] = (2 * signs - 1) * (sizes / sizes.sum())
            release = canaries[:_COUNT].sum(axis=0) + rng.laplace(scale=_SIGMA, size=dim)
            rows.append(canaries @ release / np.linalg.norm(canaries, axis=1))
        return np.array(rows)

    def drawn(runs: int, rng: np.random.Generator) -> Array:
        return np.concatenate(mechanisms.laplace_scores(spread, _SIGMA, dim, _COUNT, runs, rng), axis=1)

    return _compare({"in coordinates": coordinates, "atlas": drawn}, context, context.pick(1000, 4000, 300), _MARGIN)


def _check(name: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"blindspots.scores.{name}", Subject.IMPLEMENTATION, "verify.audit.blindspots", statement, judge)


CHECKS: tuple[Check, ...] = (
    *(
        Check(
            f"blindspots.truth.{name}",
            Subject.IMPLEMENTATION,
            "verify.audit.blindspots",
            f"the truth for {mechanism.title} is what another road finds, at every {mechanism.parameter}",
            partial(_judge, name),
        )
        for name, mechanism in MECHANISMS.items()
    ),
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
        partial(
            _several,
            "reused-noise",
            2.0,
            lambda rng: np.repeat(_autoregressive_noise(0.0, 1, rng), 2, axis=0),
        ),
    ),
    _check(
        "correlated-noise",
        "scores of rounds with correlated noise are as in coordinates",
        partial(_several, "correlated-noise", 0.9, partial(_autoregressive_noise, 0.9, 10)),
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
            partial(_coarse_scores, bits),
        )
        for bits in (4, 24)
    ),
    _check("leading", f"scores drawn to leading order have the exact law at d = 10,000, to {_MARGIN:g}", _leading),
    *(
        _check(
            f"laplace.m{spread}",
            f"scores of canaries on the ℓ₁ sphere of {spread} coordinates are as in coordinates, to {_MARGIN:g}",
            partial(_laplace_scores, spread),
        )
        for spread in (1, 30, 2000)
    ),
)
