"""Training computed again: Algorithms 2 and 3 in plain numpy, laws of participation and noise, accounting."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special, stats

from canaryproof.kernels.arrays import Array
from canaryproof.verify.audit.accounting.sampling import Members
from canaryproof.verify.audit.canaries import participation as schedules
from canaryproof.verify.audit.canaries.participation import Participation
from canaryproof.verify.audit.canaries.round_scores import AnyCanaries
from canaryproof.verify.audit.canaries.seeds import Purpose, generator
from canaryproof.verify.audit.levels import LEVEL, POWER
from canaryproof.verify.papers.accounting import sampled_gaussian
from canaryproof.verify.papers.accounting.training import analytical_epsilon, noise_without_counts
from canaryproof.verify.papers.check.power import least_share
from canaryproof.verify.papers.check.results import Context, Design, Outcome, Verdict
from canaryproof.verify.papers.training.canary_scores import ALL, CHANGE, FINAL, CanaryScores
from canaryproof.verify.papers.training.clipping import AdaptiveClip, Clip, FixedClip
from canaryproof.verify.papers.training.configuration import Settings
from canaryproof.verify.papers.training.noise import Correlated, Factor, Independent, Noise, SquareRoot, Tree

# Uniform cohorts, an epoch of two batches whose last one is short, adaptive clipping and momentum; and Poisson samples
# in few rounds with Adam. The clip norm and the count's noise are far from 1.
_COMMON: dict[str, Any] = {"one_round_epsilon": None, "noise_multiplier": 0.2, "clip_norm": 0.3, "epochs": None}
_CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "adaptive clipping and momentum": {
        "data": {"examples_per_client": 5},
        "model": {"hidden": 64},
        "training": {
            **_COMMON,
            "participation": "uniform",
            "rounds": 8,
            "cohort": 30,
            "local_epochs": 2,
            "batch_size": 3,
            "clip_quantile": 0.5,
            "momentum": 0.5,
        },
        "canaries": {"count": 40, "presentations": 2},
    },
    "adam": {
        "model": {"hidden": 64},
        "training": {
            **_COMMON,
            "participation": "bernoulli",
            "rounds": 2,
            "cohort": 20,
            "server": "adam",
            "server_rate": 0.05,
        },
        "canaries": {"count": 40, "presentations": 1},
    },
}
# FedAdam's β₁, β₂ and τ (Reddi et al., arXiv 2003.00295, as Flower 1.43 has them).
_FIRST, _SECOND, _ADAPTIVITY = 0.9, 0.99, 1e-3
# The difference that float32 may make after so few rounds. It is relative; of a score, to the null's deviation.
_TOLERANCE = 1e-3
_DELTA = 1e-5
# Its Rényi bound holds for all mechanisms and is not sharp for the Gaussian one.
_COARSE = "a sample without replacement"


def algorithms(context: Context) -> Outcome:
    """Judge that a training's deltas, model and scores are those of Algorithms 2 and 3 in plain numpy."""
    off = {
        f"{part}, {name}": value
        for name, changes in _CHANGES.items()
        for part, value in _differences(changes, context.key(f"training/algorithms/{name}")).items()
    }
    worst = max(off, key=off.__getitem__)
    finding = (
        f"{len(_CHANGES)} trainings; the largest difference is {off[worst]:.1g} ({worst}), allowed is {_TOLERANCE:g}"
    )
    return Outcome(Verdict.CONFIRMED if off[worst] <= _TOLERANCE else Verdict.REFUTED, finding, {"off": off})


def _differences(changes: dict[str, dict[str, Any]], root: np.random.SeedSequence) -> dict[str, float]:
    """Train both ways, and compare."""
    # Trains with JAX, without which a ledger is listed.
    from canaryproof.verify.papers.suites import training_runs

    chosen = training_runs.settings(**changes)
    trainer = training_runs.made(chosen, root)
    canary_clients = trainer.canary_clients
    assert canary_clients is not None
    deltas: list[Array] = []
    trainer.run(on_round=lambda done: deltas.append(done.delta.astype(float)))
    scores = CanaryScores.of(trainer)

    plain = _Plain(chosen, trainer.initial.astype(float), root)
    expected = plain.run(canary_clients.participation, canary_clients.canaries)
    vectors = np.stack([canary_clients.canaries.vector(j) for j in range(2 * chosen.random_canaries.count)]).astype(
        float
    )
    observed = canary_clients.participation.included
    wanted = {
        ALL: np.max([vectors @ _direction(delta) for delta in expected], axis=0),
        FINAL: vectors @ _direction(plain.theta),
        CHANGE: vectors @ _direction(plain.theta - plain.initial),
    }
    off = {
        "deltas": max(_off(delta, plain_delta) for delta, plain_delta in zip(deltas, expected, strict=True)),
        "model": _off(trainer.theta - trainer.initial, plain.theta - plain.initial),
    }
    for attack, cosines in wanted.items():
        pairs = (scores.observed[attack], cosines[observed]), (scores.unobserved[attack], cosines[~observed])
        difference = max(float(np.abs(score - right).max()) for score, right in pairs)
        off[f"scores of {attack}"] = difference * math.sqrt(vectors.shape[1])
    return off


class _Plain:
    """DP-FedAvg of a two-layer network in plain numpy and float64, from the same initial model."""

    def __init__(self, chosen: Settings, initial: Array, root: np.random.SeedSequence) -> None:
        # Loads scikit-learn, which is optional.
        from canaryproof.verify.papers.training.data import digits

        self._chosen, self._root, self._data = chosen, root, digits.load(chosen.data.examples_per_client, 0)
        self.initial, self.theta = initial, initial.copy()
        width, inputs, classes = chosen.model.hidden, self._data.inputs[0].size, self._data.classes
        assert width is not None
        # As vectors, a layer's bias comes before its matrix.
        self._shapes = ((width,), (inputs, width), (classes,), (width, classes))

    def run(self, schedule: Participation, canaries: AnyCanaries) -> list[Array]:
        """Train, and return each round's delta."""
        training = self._chosen.training
        clip_norm, deltas = training.clip_norm, []
        first, second = np.zeros_like(self.theta), np.zeros_like(self.theta)
        count_noise = training.cohort / 20.0
        assert training.noise_multiplier is not None
        sigma = training.noise_multiplier
        if training.clip_quantile is not None:
            sigma = (sigma**-2 - (2.0 * count_noise) ** -2) ** -0.5
        for t in range(schedule.rounds):
            updates = [self._update(i) for i in schedule.clients(t)]
            norms = np.array([np.linalg.norm(update) for update in updates])
            total = np.zeros_like(self.theta)
            for update, norm in zip(updates, norms, strict=True):
                total += update * min(1.0, clip_norm / norm)
            members = schedule.canaries(t)
            for j in members:
                total += clip_norm * _direction(canaries.vector(j).astype(float))
            total += sigma * clip_norm * generator(self._root, Purpose.NOISE, t).standard_normal(len(self.theta))
            number = len(updates) + len(members)
            deltas.append(total / number)
            if training.server == "adam":
                first = _FIRST * first + (1.0 - _FIRST) * deltas[-1]
                second = _SECOND * second + (1.0 - _SECOND) * deltas[-1] ** 2
                unbiased = first / (1.0 - _FIRST ** (t + 1)), second / (1.0 - _SECOND ** (t + 1))
                self.theta = self.theta + training.server_rate * unbiased[0] / (np.sqrt(unbiased[1]) + _ADAPTIVITY)
            else:
                first = training.momentum * first + deltas[-1]
                self.theta = self.theta + training.server_rate * first
            if training.clip_quantile is None:
                continue
            unclipped = np.count_nonzero(norms <= clip_norm) + len(members)
            counted = unclipped + count_noise * generator(self._root, Purpose.COUNTS, t).standard_normal()
            clip_norm *= math.exp(-training.clip_rate * (counted / number - training.clip_quantile))
        return deltas

    def _update(self, client: int) -> Array:
        chosen, theta = self._chosen, self.theta.copy()
        there = slice(*self._data.starts[client : client + 2])
        inputs, labels = self._data.inputs[there], self._data.labels[there]
        flat, one_hot = inputs.reshape(len(inputs), -1).astype(float), np.eye(self._data.classes)[labels]
        size = chosen.training.batch_size
        for start in [*range(0, len(inputs), size)] * chosen.training.local_epochs:
            x, y = flat[start : start + size], one_hot[start : start + size]
            ends = np.cumsum([math.prod(shape) for shape in self._shapes])[:-1]
            parts = np.split(theta, ends)
            bias, kernel, out_bias, out = (part.reshape(s) for part, s in zip(parts, self._shapes, strict=True))
            hidden = np.maximum(x @ kernel + bias, 0.0)
            odds = np.exp(hidden @ out + out_bias)
            error = (odds / odds.sum(axis=1, keepdims=True) - y) / len(y)
            back = (error @ out.T) * (hidden > 0.0)
            gradient = back.sum(axis=0), x.T @ back, error.sum(axis=0), hidden.T @ error
            theta -= chosen.training.client_rate * np.concatenate([part.ravel() for part in gradient])
        change: Array = theta - self.theta
        return change


def _direction(vector: Array) -> Array:
    direction: Array = vector / np.linalg.norm(vector)
    return direction


def _off(value: NDArray[np.floating], right: Array) -> float:
    return float(np.linalg.norm(value - right) / np.linalg.norm(right))


# Few clients, so that a cohort that lacks one is seen; many rounds.
_CLIENTS, _ROUNDS = 6, 6000
_RATE, _COHORT, _PERIODS, _LAST, _MEAN = 0.3, 2, 3, 5, 0.7


def participation(context: Context) -> Outcome:
    """Judge that clients and canaries take part as often as they should, and independently, by exact binomial tests."""
    key = context.key("training/participation")
    schedules_of = {
        "bernoulli": schedules.bernoulli(_CLIENTS, _RATE, _ROUNDS, key, schedules.Insertion(_ROUNDS)),
        "uniform": schedules.uniform(_CLIENTS, _COHORT, _ROUNDS, key),
        "shuffled": schedules.shuffled_epochs(_CLIENTS, _COHORT, _ROUNDS // _PERIODS, key),
        "periods": schedules.uniform(
            0, 0, _PERIODS * _LAST, key, schedules.Insertion(_ROUNDS, _ROUNDS, schedules.Presentations(_PERIODS))
        ),
        "last rounds": schedules.uniform(
            0, 0, 2 * _LAST, key, schedules.Insertion(_ROUNDS, _ROUNDS, schedules.LastRounds(_LAST, _MEAN))
        ),
    }
    clients = {
        name: np.array([np.isin(np.arange(_CLIENTS), members) for members in schedules_of[name].client_rounds])
        for name in ("bernoulli", "uniform", "shuffled")
    }
    first, last = (clients["bernoulli"][:, position] for position in (0, -1))
    drawn = clients["uniform"]
    pair = _COHORT * (_COHORT - 1) / (_CLIENTS * (_CLIENTS - 1))
    canaries = {
        name: np.array([np.isin(np.arange(_ROUNDS), members) for members in schedules_of[name].canary_rounds])
        for name in ("periods", "last rounds")
    }
    coins = schedules_of["bernoulli"]
    most = stats.binom.ppf(0.5, _CLIENTS, _RATE)
    # Counted events, and the probability of each.
    counted: dict[str, tuple[NDArray[np.bool_], float]] = {
        "a Poisson sample's clients": (clients["bernoulli"], _RATE),
        "large Poisson samples": (
            clients["bernoulli"].sum(axis=1) > most,
            float(stats.binom.sf(most, _CLIENTS, _RATE)),
        ),
        "two clients of a Poisson sample": (first & last, _RATE**2),
        "one client in two rounds": (first[::2] & first[1::2], _RATE**2),
        "a uniform cohort's first client": (drawn[:, 0], _COHORT / _CLIENTS),
        "two clients of a uniform cohort": (drawn[:, 0] & drawn[:, -1], pair),
        "one client in two cohorts": (drawn[::2, 0] & drawn[1::2, 0], (_COHORT / _CLIENTS) ** 2),
        "first in a shuffled epoch": (clients["shuffled"][::_PERIODS, 0], 1.0 / _PERIODS),
        "included by a coin": (coins.included, 0.5),
        "a canary in the first round of its period": (canaries["periods"][0], 1.0 / _LAST),
        "a canary that never takes part": (canaries["last rounds"].sum(axis=0) == 0, math.exp(-_MEAN)),
        "a canary in the last round": (
            canaries["last rounds"][-1],
            float(stats.poisson.expect(lambda n: np.minimum(n, _LAST) / _LAST, (_MEAN,))),
        ),
    }
    p_values = {
        name: float(stats.binomtest(int(taken.sum()), taken.size, share).pvalue)
        for name, (taken, share) in counted.items()
    }
    sums = {
        "a uniform cohort has its size": (drawn.sum(axis=1) == _COHORT).all(),
        "each client once an epoch": (clients["shuffled"].reshape(-1, _PERIODS, _CLIENTS).sum(axis=1) == 1).all(),
        "each canary once a period": (canaries["periods"].reshape(_PERIODS, _LAST, -1).sum(axis=1) == 1).all(),
        "nobody before the last rounds": not canaries["last rounds"][:_LAST].any(),
        "only included canaries": all(coins.included[members].all() for members in coins.canary_rounds),
    }
    wrong = [name for name, holds in sums.items() if not holds]
    least = min(p_values, key=p_values.__getitem__)
    each = LEVEL / len(p_values)
    if p_values[least] <= each:
        wrong.append(least)
    critical = int(stats.binom.isf(0.5 * each, _ROUNDS, 0.5)) + 1
    share = least_share(lambda p: float(stats.binom.sf(critical - 1, _ROUNDS, p)), POWER)
    design = Design(
        "clients and canaries take part with the probabilities that are said, independently in each round",
        LEVEL,
        f"a canary is included with probability {share:.2f} for 0.5",
        POWER,
        _ROUNDS,
    )
    finding = f"the smallest of {len(p_values)} p-values is {p_values[least]:.2g} ({least}); {len(sums)} sums are exact"
    if wrong:
        finding = f"not so: {', '.join(wrong)}; the smallest p-value is {p_values[least]:.1g}"
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"p_values": p_values}, design)


def noise(context: Context) -> Outcome:
    """Judge that noise over rounds has the covariance that its factorisation says, by whitening it.

    The factorisations are computed anew. The square root of the matrix of prefix sums is computed as such, its band by
    binomial coefficients, and the tree's nodes by the binary digits of a round's number.
    """
    rounds, dim, sigma, clip_norm = 7, context.pick(20_000, 200_000), 0.7, 0.3
    prefix = np.tril(np.ones((rounds, rounds)))
    root = np.real(linalg.sqrtm(prefix))
    banded = np.zeros((rounds, rounds))
    for back in range(3):
        banded += (-1.0) ** back * special.binom(0.5, back) * np.eye(rounds, k=-back)
    nodes = np.zeros((rounds, rounds))
    for n in range(1, rounds + 1):
        end = n
        # The nodes of the sum of rounds 1 to n end where its binary digits, read from the left, have been added up.
        while end:
            nodes[n - 1, end - 1] = 1.0
            end &= end - 1
    cases: dict[str, tuple[Noise, NDArray[np.floating]]] = {
        "independent": (Independent(sigma, context.key("training/noise")), np.eye(rounds)),
        "square root": (
            Correlated(SquareRoot(rounds), sigma, context.key("training/noise/root")),
            np.linalg.inv(root),
        ),
        "banded": (Correlated(SquareRoot(rounds, 3), sigma, context.key("training/noise/banded")), banded),
        "tree": (Correlated(Tree(rounds), sigma, context.key("training/noise/tree")), np.linalg.solve(prefix, nodes)),
    }
    p_values: dict[str, float] = {}
    for name, (sampled, inverse) in cases.items():
        made = np.stack([sampled.sample(t, dim, clip_norm) for t in range(rounds)])
        white = np.linalg.solve(inverse, made) / (sigma * clip_norm)
        squares = white @ white.T
        for t in range(rounds):
            below = float(stats.chi2.cdf(squares[t, t], dim))
            p_values[f"{name}, round {t}"] = 2.0 * min(below, 1.0 - below)
            for other in range(t):
                # The correlation of independent normal vectors has the law of a uniform direction's coordinate.
                cosine = squares[t, other] / math.sqrt(squares[t, t] * squares[other, other])
                p_values[f"{name}, rounds {other} and {t}"] = float(special.betaincc(0.5, 0.5 * (dim - 1.0), cosine**2))
    least = min(p_values, key=p_values.__getitem__)
    each = LEVEL / len(p_values)
    factor = float(stats.chi2.isf(0.5 * each, dim) / stats.chi2.isf(POWER, dim)) ** 0.5
    design = Design(
        "noise of several rounds is normal with the covariance of its factorisation",
        LEVEL,
        f"the deviation of a round's noise is {factor:.3f} times what it should be",
        POWER,
        dim,
    )
    finding = f"the smallest of {len(p_values)} p-values is {p_values[least]:.2g} ({least})"
    holds = p_values[least] > each
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, {"p_values": p_values}, design)


def accounting(_: Context) -> Outcome:
    """Judge analytical values of ε by formulas of their own: none is below the truth, nor far above.

    Without replacement the truth is that of one pair of neighbours, all whose other updates are zero.
    """
    sigma, count_noise, rounds = 0.8, 2.0, 8
    fixed = FixedClip(1.0)
    adaptive = AdaptiveClip(1.0, 0.5, 0.2, count_noise, 0)
    twice = schedules.Insertion(10, 10, schedules.Presentations(2))
    scheduled = schedules.uniform(0, 0, rounds, 0, twice)
    taken = {tuple(t for t in range(rounds) if j in scheduled.canary_rounds[t]) for j in range(10)}
    single = schedules.bernoulli(100, 0.1, 1, 0)
    cohorts = schedules.uniform(100, 50, 1, 0)
    cases: dict[str, tuple[Noise, Participation, Clip, Members, float]] = {
        "two of eight rounds": (Independent(sigma, 0), scheduled, fixed, "canaries", _gaussian(math.sqrt(2.0) / sigma)),
        "with adaptive clipping": (
            Independent(noise_without_counts(sigma, count_noise), 0),
            scheduled,
            adaptive,
            "canaries",
            _gaussian(math.sqrt(2.0) / sigma),
        ),
        "a Poisson sample": (Independent(sigma, 0), single, fixed, "clients", _sampled(1.0 / sigma, 0.1, 0.0)),
        _COARSE: (
            Independent(4.0 * sigma, 0),
            cohorts,
            fixed,
            "clients",
            _sampled(0.25 / sigma, 0.5, 1.0),
        ),
    }
    factors: dict[str, Factor] = {"tree": Tree(rounds), "square root": SquareRoot(rounds)}
    for name, factor in factors.items():
        inverse = np.zeros((rounds, rounds))
        for t in range(rounds):
            nonzero, values = factor.row(t)
            inverse[t, nonzero] = values
        columns = np.linalg.inv(inverse).T
        moved = max(float(np.linalg.norm(columns[list(some)].sum(axis=0))) for some in taken)
        cases[name] = (Correlated(factor, sigma, 0), scheduled, fixed, "canaries", _gaussian(moved / sigma))
    rows: list[dict[str, Any]] = []
    for name, (sampled, scheme, clip, members, truth) in cases.items():
        epsilon = analytical_epsilon(sampled, _DELTA, scheme, clip, members).epsilon
        rows.append({"case": name, "epsilon": epsilon, "truth": truth})
    # Opacus' orders, from little noise, where the best one is near 1, to much, where it is the last one.
    orders = np.concatenate([np.arange(11, 110) / 10.0, np.arange(12.0, 64.0)])
    for multiplier in (0.05, 0.3, 1.0, 4.0, 12.0, 60.0):
        divergences = rounds * orders / (2.0 * multiplier**2)
        conversion = np.log1p(-1.0 / orders) - np.log(_DELTA * orders) / (orders - 1.0)
        truth = float(np.min(divergences + conversion))
        epsilon = sampled_gaussian.rdp(multiplier, _DELTA, rounds)
        rows.append({"case": f"Opacus' orders at σ = {multiplier:g}", "epsilon": epsilon, "truth": truth})
    wrong = []
    for row in rows:
        exact = 1.0 + 1e-9 if row["case"].startswith("Opacus") else 1.01
        low, high = 1.0 - 1e-6, 2.0 if row["case"] == _COARSE else exact
        if not low * row["truth"] <= row["epsilon"] <= high * row["truth"]:
            wrong.append(row["case"])
    finding = f"{len(rows) - len(wrong)} of {len(rows)} values are as they should be"
    if wrong:
        finding += f"; not {', '.join(wrong)}"
    return Outcome(Verdict.REFUTED if wrong else Verdict.CONFIRMED, finding, {"rows": rows})


def _gaussian(mu: float) -> float:
    """ε at which two unit normal laws at distance μ have hockey-stick divergence δ."""
    return _root(lambda e: stats.norm.sf(e / mu - mu / 2.0) - math.exp(e) * stats.norm.sf(e / mu + mu / 2.0))


def _sampled(mu: float, rate: float, replaced: float) -> float:
    """ε of one round of sampling at a rate, by quadrature: a member moves a sum by μ, and one in its place by −μ."""
    x = np.linspace(-12.0 - mu, 12.0 + mu, 400_001)
    null = stats.norm.pdf(x)
    first, second = ((1.0 - rate) * null + rate * stats.norm.pdf(x, centre) for centre in (mu, -replaced * mu))

    def curve(epsilon: float) -> float:
        gaps = (
            np.maximum(larger - math.exp(epsilon) * smaller, 0.0)
            for larger, smaller in ((first, second), (second, first))
        )
        return max(float(np.trapezoid(gap, x)) for gap in gaps)

    return _root(curve)


def _root(curve: Callable[[float], float]) -> float:
    return float(optimize.brentq(lambda e: curve(e) - _DELTA, 0.0, 200.0, xtol=1e-10))
