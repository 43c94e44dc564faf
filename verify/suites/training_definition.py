"""Training against a second road: Algorithms 2 and 3 in plain numpy, and the accounting by formulas of its own."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from canaryproof.verify.accounting.training import Members, analytical_epsilon, noise_without_counts
from canaryproof.verify.canaries import participation as schedules
from canaryproof.verify.canaries.participation import Participation
from canaryproof.verify.canaries.round_scores import AnyCanaries
from canaryproof.verify.canaries.seeds import Purpose, generator
from canaryproof.verify.check.results import Context, Outcome, Verdict
from canaryproof.verify.training.clipping import AdaptiveClip, Clip, FixedClip
from canaryproof.verify.training.configuration import Settings
from canaryproof.verify.training.noise import Correlated, Factor, Independent, Noise, SquareRoot, Tree
from canaryproof.verify.training.outcome import ALL, CHANGE, FINAL, CanaryScores

Array = NDArray[np.float64]

# Uniform cohorts, two local steps, adaptive clipping and momentum; the clip norm is far from 1.
_CHANGES: dict[str, dict[str, Any]] = {
    "model": {"hidden": 64},
    "training": {
        "participation": "uniform",
        "epochs": None,
        "rounds": 8,
        "cohort": 20,
        "local_epochs": 2,
        "one_round_epsilon": None,
        "noise_multiplier": 0.2,
        "clip_norm": 0.3,
        "clip_quantile": 0.5,
        "momentum": 0.5,
    },
    "canaries": {"count": 40, "presentations": 2},
}
# What float32 may differ by after so few rounds, relative to what there is; of a score, to the null's deviation.
_TOLERANCE = 1e-3
_DELTA = 1e-5
# Its Rényi bound holds for all mechanisms and is not sharp for the Gaussian one.
_COARSE = "a sample without replacement"


def algorithms(context: Context) -> Outcome:
    """Judge that a training's deltas, model and scores are those of Algorithms 2 and 3 in plain numpy."""
    # Trains with JAX, without which a ledger is listed.
    from canaryproof.verify.suites import training_runs

    chosen, root = training_runs.settings(**_CHANGES), context.key("training/algorithms")
    trainer, canary_clients = training_runs.made(chosen, root)
    deltas: list[Array] = []
    trainer.run(on_round=lambda done: deltas.append(done.delta.astype(float)))
    scores = CanaryScores.of(trainer, canary_clients)

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
        "deltas": max(_off(one, other) for one, other in zip(deltas, expected, strict=True)),
        "model": _off(trainer.theta - trainer.initial, plain.theta - plain.initial),
    }
    for attack, cosines in wanted.items():
        pairs = (scores.observed[attack], cosines[observed]), (scores.unobserved[attack], cosines[~observed])
        difference = max(float(np.abs(found - right).max()) for found, right in pairs)
        off[f"scores, {attack}"] = difference * math.sqrt(vectors.shape[1])
    worst = max(off, key=off.__getitem__)
    finding = f"{len(deltas)} rounds; the largest difference is {off[worst]:.1g} ({worst}), allowed is {_TOLERANCE:g}"
    return Outcome(Verdict.CONFIRMED if off[worst] <= _TOLERANCE else Verdict.REFUTED, finding, {"off": off})


class _Plain:
    """DP-FedAvg of a two-layer network in plain numpy and float64, from the same initial model."""

    def __init__(self, chosen: Settings, initial: Array, root: np.random.SeedSequence) -> None:
        # Loads scikit-learn, which is optional.
        from canaryproof.verify.training.data import digits

        self._chosen, self._root, self._data = chosen, root, digits.load(chosen.data.examples_per_client, 0)
        self.initial, self.theta = initial, initial.copy()
        width, inputs, classes = chosen.model.hidden, self._data.inputs[0].size, self._data.classes
        assert width is not None
        # As vectors, a layer's bias comes before its matrix.
        self._shapes = ((width,), (inputs, width), (classes,), (width, classes))

    def run(self, participation: Participation, canaries: AnyCanaries) -> list[Array]:
        """Train, and return each round's delta."""
        training = self._chosen.training
        clip_norm, velocity, deltas = training.clip_norm, np.zeros_like(self.theta), []
        count_noise = training.cohort / 20.0
        assert training.noise_multiplier is not None
        assert training.clip_quantile is not None
        sigma = (training.noise_multiplier**-2 - (2.0 * count_noise) ** -2) ** -0.5
        for t in range(participation.rounds):
            updates = [self._update(i) for i in participation.clients(t)]
            norms = np.array([np.linalg.norm(update) for update in updates])
            total = np.zeros_like(self.theta)
            for update, norm in zip(updates, norms, strict=True):
                total += update * min(1.0, clip_norm / norm)
            members = participation.canaries(t)
            for j in members:
                total += clip_norm * _direction(canaries.vector(j).astype(float))
            total += sigma * clip_norm * generator(self._root, Purpose.NOISE, t).standard_normal(len(self.theta))
            number = len(updates) + len(members)
            deltas.append(total / number)
            velocity = training.momentum * velocity + deltas[-1]
            self.theta = self.theta + training.server_rate * velocity
            unclipped = np.count_nonzero(norms <= clip_norm) + len(members)
            counted = unclipped + count_noise * generator(self._root, Purpose.COUNTS, t).standard_normal()
            clip_norm *= math.exp(-training.clip_rate * (counted / number - training.clip_quantile))
        return deltas

    def _update(self, client: int) -> Array:
        chosen, theta = self._chosen, self.theta.copy()
        there = slice(*self._data.starts[client : client + 2])
        inputs, labels = self._data.inputs[there], self._data.labels[there]
        x, y = inputs.reshape(len(inputs), -1).astype(float), np.eye(self._data.classes)[labels]
        for _ in range(chosen.training.local_epochs):
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


def _off(found: NDArray[np.floating], right: Array) -> float:
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


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
            places, values = factor.row(t)
            inverse[t, places] = values
        columns = np.linalg.inv(inverse).T
        moved = max(float(np.linalg.norm(columns[list(some)].sum(axis=0))) for some in taken)
        cases[name] = (Correlated(factor, sigma, 0), scheduled, fixed, "canaries", _gaussian(moved / sigma))
    rows: list[dict[str, Any]] = []
    for name, (noise, participation, clip, members, truth) in cases.items():
        found = analytical_epsilon(noise, _DELTA, participation, clip, members).epsilon
        rows.append({"case": name, "epsilon": found, "truth": truth})
    wrong = []
    for row in rows:
        low, high = 1.0 - 1e-6, 2.0 if row["case"] == _COARSE else 1.01
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
    first, second = ((1.0 - rate) * null + rate * stats.norm.pdf(x, place) for place in (mu, -replaced * mu))

    def curve(epsilon: float) -> float:
        gaps = (np.maximum(one - math.exp(epsilon) * other, 0.0) for one, other in ((first, second), (second, first)))
        return max(float(np.trapezoid(gap, x)) for gap in gaps)

    return _root(curve)


def _root(curve: Callable[[float], float]) -> float:
    return float(optimize.brentq(lambda e: curve(e) - _DELTA, 0.0, 200.0, xtol=1e-10))
