"""Canaries and noise, coordinate by coordinate, against Philox in plain integers; their sums, cosines and quality."""

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from canaryproof.kernels import canaries as stream
from canaryproof.kernels import null_cosine
from canaryproof.verify.audit.canaries.seeds import Purpose, generator
from canaryproof.verify.audit.estimators import algorithm_1
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.check.power import visible_mean
from canaryproof.verify.papers.check.results import Check, Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites.stream_quality import quality

_MASK, _TILE, _RUN = 2**32 - 1, 4096, 1024
_CANARY, _NOISE = 0, 1
# The stated error of a quantile, with a float32's rounding when the vector is normalised.
_QUANTILE_ERROR = 4.6e-7 + 2.0**-23
_UNIT = 2.0**-53


def _philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox 4×32-10 (Salmon, Moraes, Dror and Shaw 2011) in plain integers."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    return c0, c1, c2, c3


def coordinate(seed: int, index: int, purpose: int, position: int) -> float:
    """Coordinate of a canary or of the noise before normalising, as ``kernels.canaries`` states it."""
    tile, inside = divmod(position, _TILE)
    run, rest = divmod(inside, _RUN)
    c = _RUN * tile + rest
    word = _philox((c & _MASK, c >> 32, index, purpose), (seed & _MASK, seed >> 32))[run]
    sign, tail = (1.0, word) if word < 2**31 else (-1.0, word ^ _MASK)
    return float(sign * special.ndtri((tail | 1) * 2.0**-32))


def _positions(rng: np.random.Generator, vector: NDArray[np.floating]) -> list[int]:
    """Coordinates on either side of a tile's and its runs' ends, the largest ones, and some at random."""
    dim = len(vector)
    edges = [position + step for position in range(0, dim, _RUN) for step in (-1, 0)]
    ends = dim - 1, int(vector.argmin()), int(vector.argmax())
    return [*(p for p in edges if 0 <= p < dim), *ends, *rng.integers(0, dim, 20).tolist()]


def _coordinates(context: Context) -> Outcome:
    rng = np.random.default_rng(context.key("streams/coordinates"))
    worst, norm_error, compared = 0.0, 0.0, 0
    for dim in (2, 40, 4097, 20_000):
        seed, count = int(rng.integers(0, 2**63)), int(rng.integers(3, 50))
        canaries = stream.Canaries(seed, count, dim)
        norms = canaries.norms()
        for index in (0, 1, count - 1):
            vector = canaries.vector(index).astype(np.float64)
            norm_error = max(norm_error, abs(float(np.linalg.norm(vector)) - 1.0))
            for position in _positions(rng, vector):
                exact = coordinate(seed, index, _CANARY, position)
                worst = max(worst, abs(vector[position] * norms[index] / exact - 1.0))
                compared += 1
        made = stream.noise(seed, dim)
        for position in _positions(rng, made):
            worst = max(worst, abs(float(made[position]) / coordinate(seed, 0, _NOISE, position) - 1.0))
            compared += 1
    holds = worst <= _QUANTILE_ERROR and norm_error <= 2.0**-23
    finding = f"largest relative error {worst:.1e} of {compared} coordinates; norms within {norm_error:.1e} of 1"
    evidence = {"compared": compared, "worst": worst, "allowed": _QUANTILE_ERROR, "norm_error": norm_error}
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence)


def _unnormalised(canaries: stream.Canaries) -> NDArray[np.longdouble]:
    """Return the vectors X_j: each is a weighted sum with one term, and float32."""
    norms = canaries.norms()
    rows = [canaries.sum([j], [norms[j]]).astype(np.float32) for j in range(canaries.count)]
    return np.array(rows, dtype=np.longdouble)


def _sums(context: Context) -> Outcome:
    rng = np.random.default_rng(context.key("streams/sums"))
    shares: dict[str, float] = {}
    for dim in (3, 1000, 10_000):
        canaries = stream.Canaries(int(rng.integers(0, 2**63)), 30, dim)
        vectors = _unnormalised(canaries)
        vectors /= np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        indices, weights = rng.integers(0, 30, 40), rng.normal(size=40)
        for label, values, chosen, factors in (
            ("sum", canaries.sum(), np.arange(30), np.ones(30)),
            ("weighted sum", canaries.sum(indices, weights), indices, weights),
        ):
            terms = factors[:, np.newaxis] * vectors[chosen]
            # The stated bound; extended precision adds next to nothing.
            allowed = (dim / 8192 + len(chosen) + 16) * _UNIT * np.abs(terms).sum(axis=0)
            share = float((np.abs(values - terms.sum(axis=0)) / allowed).max())
            shares[label] = max(shares.get(label, 0.0), share)
        for dtype in (np.float32, np.float64):
            block = rng.normal(size=(3, dim)).astype(dtype)
            wide = block.astype(np.longdouble)
            exact = wide @ vectors.T / np.sqrt((wide**2).sum(axis=1, keepdims=True))
            for label, values in (
                (f"cosines of {np.dtype(dtype)}", canaries.cosines(block)),
                ("cosines of one vector", canaries.cosines(block[0])[np.newaxis]),
                ("chosen cosines", canaries.cosines(block, indices)),
            ):
                expected = exact[:, indices] if label.startswith("chosen") else exact[: len(values)]
                share = float(np.abs(values - expected).max() / ((dim / 2048 + 40) * _UNIT))
                shares[label] = max(shares.get(label, 0.0), share)
    label, worst = max(shares.items(), key=lambda item: item[1])
    finding = f"largest error {worst:.2g} of its stated bound, that of {label}"
    return Outcome(Verdict.CONFIRMED if worst <= 1.0 else Verdict.REFUTED, finding, {"shares_of_bound": shares})


def _release(context: Context) -> Outcome:
    """Add up data, canaries and noise in extended precision."""
    rng = np.random.default_rng(context.key("streams/release"))
    worst = 0.0
    for dim, count, sigma in ((3, 5, 2.5), (5000, 12, 0.3)):
        seed = int(rng.integers(0, 2**63))
        data = rng.standard_normal((4, dim))
        data /= 2.0 * np.linalg.norm(data, axis=1, keepdims=True)
        canaries, drawn = stream.Canaries(seed, count, dim), stream.noise(seed, dim).astype(np.longdouble)
        vectors = _unnormalised(canaries)
        vectors /= np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        for given in (None, data):
            terms = np.vstack([vectors, sigma * drawn, *([] if given is None else [given])])
            exact, size = terms.sum(axis=0), np.abs(terms).sum(axis=0)
            values = algorithm_1.release(count, dim, sigma, seed, given)
            cosines = vectors @ exact / np.sqrt((exact**2).sum())
            gap = algorithm_1.cosines(count, dim, sigma, seed, given) - cosines
            worst = max(worst, float((np.abs(values - exact) / size).max()), float(np.abs(gap).max()))
    finding = f"largest error {worst:.1e}, of a coordinate's terms or of a cosine"
    return Outcome(Verdict.CONFIRMED if worst <= 2.0**-23 else Verdict.REFUTED, finding, {"worst": worst})


def _independence(context: Context) -> Outcome:
    rng = np.random.default_rng(context.key("streams/independence"))
    dim, count = 1000, context.pick(150, 400)
    canaries = stream.Canaries(int(rng.integers(0, 2**63)), count, dim)
    made = stream.noise(canaries.seed, 100_000)
    vectors = np.array([canaries.vector(j) for j in range(count)])
    pairs = canaries.cosines(np.vstack([vectors, stream.noise(canaries.seed, dim)]))[
        np.tril_indices(count + 1, -1, count)
    ]
    p_values = {
        # Every pair's cosine has the null law; Bonferroni over pairs.
        "largest cosine of two": min(1.0, 2.0 * len(pairs) * float(null_cosine.sf(np.abs(pairs).max(), dim))),
        # Pairs are independent two by two, so that this is their sum's variance: 2(d − 1)/(d + 2) each.
        "mean squared cosine": 2.0
        * float(
            stats.norm.sf(abs((dim * pairs**2 - 1.0).sum()) / np.sqrt(len(pairs) * 2.0 * (dim - 1.0) / (dim + 2.0)))
        ),
        "noise is normal": float(stats.kstest(made, "norm").pvalue),
    }
    label, smallest = min(p_values.items(), key=lambda item: item[1])
    holds = smallest >= LEVEL / len(p_values)
    finding = f"smallest of {len(p_values)} p-values {smallest:.2g} ({label}); {len(pairs):,} pairs"
    evidence = {"dim": dim, "count": count, "level": LEVEL, "p_values": p_values}
    # Squared cosines are off by this much on average, relative, where pairs are dependent enough to be noticed.
    visible = visible_mean(len(pairs), LEVEL / len(p_values)) * np.sqrt(2.0 * (dim - 1.0) / (dim + 2.0))
    design = Design(
        "canaries are independent uniform directions and the noise is independent standard normal numbers",
        LEVEL,
        f"cosines of two canaries have a variance {visible:.1%} too large",
        POWER,
        len(pairs),
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, evidence, design)


def _check(topic: str, statement: str, judge: Callable[[Context], Outcome]) -> Check:
    return Check(f"algorithm1.streams.{topic}", Subject.IMPLEMENTATION, "kernels.canaries", statement, judge)


def _purposes(context: Context) -> Outcome:
    """Compare the first words of the generators of all purposes, places and seeds."""
    seeds, numbers = [int(word) for word in context.key("streams/purposes").generate_state(3)], range(20)
    firsts = {}
    for seed in seeds:
        for purpose in Purpose.__members__.values():
            for number in numbers:
                words = generator(seed, purpose, number).bytes(16)
                firsts[seed, purpose.name, number] = (
                    words if words == generator(seed, purpose, number).bytes(16) else b""
                )
    several = len(seeds) * len(Purpose.__members__) * len(numbers)
    different = len(set(firsts.values()) - {b""})
    finding = f"{different} streams of {several}"
    evidence = {"streams": several, "different": different}
    return Outcome(Verdict.CONFIRMED if different == several else Verdict.REFUTED, finding, evidence)


# The law of coordinates, and their independence.


def _moments_agree(scan: quality.Scan) -> bool:
    """Whether the kernel's moments, by adding up all its values, are the exact ones within the quantiles' error."""
    allowed = ((1.0 + quality.QUANTILE_ERROR) ** (2 * k) - 1.0 for k in range(1, 5))
    exact = (quality.moment(2 * k) for k in range(1, 5))
    return all(
        abs(moment / right - 1.0) <= slack for moment, right, slack in zip(scan.moments, exact, allowed, strict=True)
    )


def _quality(context: Context) -> Outcome:
    exhaustive = context.level is Effort.FULL
    scan = quality.scan(1 if exhaustive else 1009)
    lawful = (
        scan.symmetric and scan.largest_error <= quality.QUANTILE_ERROR and (not exhaustive or _moments_agree(scan))
    )
    tested = quality.judge(context.pick(20_000_000, 10**9, 5_000_000), context.key("streams/quality"))
    label, smallest = tested.smallest
    visible = {order: quality.visible_moment(order, tested.coordinates, len(tested.p_values)) for order in (2, 4, 6, 8)}
    finding = (
        f"quantiles within {scan.largest_error:.2g} at {scan.words:,} words of a tail; smallest of "
        f"{len(tested.p_values)} p-values {smallest:.2g} ({label}) at {tested.coordinates:,} coordinates; moments "
        f"2, 4, 6, 8 seen to {', '.join(f'{deviation:.1e}' for deviation in visible.values())}"
    )
    evidence = {
        "scan": asdict(scan),
        "coordinates": tested.coordinates,
        "level": LEVEL,
        "p_values": tested.p_values,
        "linked": tested.linked,
        "visible": {str(order): deviation for order, deviation in visible.items()},
    }
    design = Design(
        "words are independent and uniform, and coordinates their quantiles",
        LEVEL,
        f"the eighth moment is off by {visible[8]:.1g}, relative",
        quality.POWER,
        tested.coordinates,
    )
    return Outcome(Verdict.CONFIRMED if lawful and tested.passed else Verdict.REFUTED, finding, evidence, design)


CHECKS: tuple[Check, ...] = (
    _check(
        "coordinates",
        "canaries and noise have the coordinates that the module states, by Philox in plain integers and scipy's "
        "quantiles, and canaries have norm 1",
        _coordinates,
    ),
    _check(
        "sums",
        "sums and cosines err by no more than the stated bounds, against extended precision",
        _sums,
    ),
    _check(
        "release",
        "Algorithm 1's release is the sum of data, canaries and σ times the noise, to the noise's rounding to float32, "
        "and its cosines are those with it",
        _release,
    ),
    _check(
        "independence",
        "canaries and noise of one seed are as independent as uniform directions are, and the noise is normal",
        _independence,
    ),
    Check(
        "algorithm1.streams.purposes",
        Subject.IMPLEMENTATION,
        "verify.audit.canaries.seeds",
        "each purpose, place and seed of a training has a stream of its own, which is the same each time",
        _purposes,
    ),
    Check(
        "algorithm1.streams.quality",
        Subject.IMPLEMENTATION,
        "kernels.canaries",
        "coordinates have the law of the normal in 2^31 values, to 4.6e-7 of each, and are independent along a canary, "
        "across canaries, seeds and noise: moments, tails, bins, bits and pairs, at level 1e-6 together",
        _quality,
    ),
)
