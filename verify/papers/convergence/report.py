"""The convergence report: its parts, which a run file keeps one by one, and what is made of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from canaryproof.kernels import gaussian_mechanism
from canaryproof.kernels.public import set_module
from canaryproof.proofs_check import consistency
from canaryproof.verify.audit import rules
from canaryproof.verify.audit.engine.provenance import code_and_machine
from canaryproof.verify.audit.estimators import simulation
from canaryproof.verify.audit.estimators.moments import Moments
from canaryproof.verify.audit.files.json_records import plain, read, to_document
from canaryproof.verify.audit.rules import NumberRange
from canaryproof.verify.papers.check.results import Context, Effort, Result, Subject, Verdict
from canaryproof.verify.papers.convergence import law, orders
from canaryproof.verify.papers.convergence.accuracy import (
    RunModel,
    fewest_canaries,
    least_dimension,
)
from canaryproof.verify.papers.convergence.errors import ESTIMATORS, limit_constant, measure
from canaryproof.verify.papers.records.convergence_record import (
    ConvergenceSetting,
    EstimatorErrors,
    NeededSize,
    NormalDistances,
)
from canaryproof.verify.papers.records.convergence_report import ConvergenceReport
from canaryproof.verify.papers.records.evidence import Series
from canaryproof.verify.papers.runs.run_file import RunFile

# The setting of Table 2 of Andrew et al. (arXiv 2302.03098).
DIM, COUNT, EPSILONS, DELTA = 10**6, 1000, (1.0, 3.0, 10.0), 1e-6
REPLICATES = 2000
_SUITE = "convergence"
_COUNT = NumberRange("be a whole number from 2 to 1e7, as one cosine has no variance", 2, 10**7, whole=True)
_REPLICATES = NumberRange("be a whole number from 100 to 1e7", 100, 10**7, whole=True)
_SEED = NumberRange("be a whole number from 0 to 2⁶⁴ − 1", 0, 2**64 - 1, whole=True)
_ACCURACIES = (0.2, 0.1, 0.05)
# Sizes at which the picture has the error, as multiples of the asked ones.
_MULTIPLES = np.geomspace(1.0 / 32.0, 32.0, 21)
# The displacement needs fewer runs, as nearly all chance is taken off it.
_FEWER = 4


@dataclass(frozen=True)
class ConvergenceRequest:
    """The arguments of a report, each in its range."""

    dims: tuple[int, ...]
    counts: tuple[int, ...]
    epsilons: tuple[float, ...]
    noise_multipliers: tuple[float, ...]
    delta: float
    estimators: tuple[str, ...]
    replicates: int
    seed: int

    def key(self, purpose: str) -> np.random.SeedSequence:
        """Return the root of all randomness of one purpose."""
        return Context(Effort.QUICK, self.seed).key(f"convergence report/{purpose}")

    @property
    def origin(self) -> dict[str, str]:
        """Everything that results depend on, by its name."""
        return {name: " ".join(map(repr, np.atleast_1d(value).tolist())) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class MeasuredErrors:
    """Errors of the estimators at one d and k, for each ε."""

    by_epsilon: tuple[tuple[EstimatorErrors, ...], ...]


@dataclass(frozen=True)
class PredictedErrors:
    """Errors of the first estimator at other k and d than those of a setting, and what accuracies need."""

    needed: tuple[NeededSize, ...]
    by_count: tuple[tuple[float, float], ...]
    by_dim: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Orders:
    """Quantities along d or k."""

    series: tuple[Series, ...]


@dataclass(frozen=True)
class ReportPart:
    """A part of a report: its name, the kind of its record, and the function that makes that."""

    name: str
    kind: type
    make: Callable[[], Any]


def checked_request(
    dim: object,
    canaries: object,
    epsilon: object,
    noise_multiplier: object,
    delta: object,
    estimator: object,
    replicates: object,
    seed: object,
) -> ConvergenceRequest:
    """Return the arguments of ``convergence``, which names them in its errors, as a request."""
    probability = rules.DELTA.number("delta", delta)
    if epsilon is not None and noise_multiplier is not None:
        raise ValueError("noise_multiplier: must not be given with epsilon")
    if noise_multiplier is not None:
        sigmas = tuple(rules.NOISE_MULTIPLIER.number("noise_multiplier", each) for each in _several(noise_multiplier))
        epsilons = tuple(float(gaussian_mechanism.epsilon(probability, sigma)) for sigma in sigmas)
        for sigma, value in zip(sigmas, epsilons, strict=True):
            if value not in rules.CLAIM:
                raise ValueError(
                    f"noise_multiplier: must leave an epsilon from 0.001 to 10000 at delta {probability:g}, "
                    f"not {value:.3g} of {sigma:g}"
                )
    else:
        given = EPSILONS if epsilon is None else _several(epsilon)
        epsilons = tuple(rules.CLAIM.number("epsilon", each) for each in given)
        sigmas = tuple(float(gaussian_mechanism.noise_multiplier(each, probability)) for each in epsilons)
    return ConvergenceRequest(
        tuple(int(rules.DIM.number("dim", each)) for each in _several(dim)),
        tuple(int(_COUNT.number("canaries", each)) for each in _several(canaries)),
        epsilons,
        sigmas,
        probability,
        tuple(rules.choice("estimator", each, ESTIMATORS) for each in _several(estimator)),
        int(_REPLICATES.number("replicates", replicates)),
        int(_SEED.number("seed", seed)),
    )


def _several(value: object) -> tuple[Any, ...]:
    """Return a value, or values, each once."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    return tuple(dict.fromkeys(value))


def parts(request: ConvergenceRequest) -> tuple[ReportPart, ...]:
    """Return the parts of a report, in the order in which they are made."""
    return tuple(_parts(request))


def _parts(request: ConvergenceRequest) -> Iterator[ReportPart]:
    for dim in request.dims:
        yield ReportPart(f"distances, d = {dim:,}", NormalDistances, partial(law.distances, dim))
    for dim in request.dims:
        for count in request.counts:
            yield ReportPart(
                f"runs, d = {dim:,}, k = {count:,}", MeasuredErrors, partial(_measured_errors, request, dim, count)
            )
    for dim in request.dims:
        for count in request.counts:
            for i, epsilon in enumerate(request.epsilons):
                name = f"sizes, d = {dim:,}, k = {count:,}, ε = {epsilon!r}"
                yield ReportPart(name, PredictedErrors, partial(_predicted_errors, request, dim, count, i))
    dim, count = request.dims[0], request.counts[0]
    yield ReportPart(f"orders in d, k = {count:,}", Orders, partial(_orders_in_d, request, dim, count))
    yield ReportPart(f"orders in k, d = {dim:,}", Orders, partial(_orders_in_k, request, dim, count))


def _measured_errors(request: ConvergenceRequest, dim: int, count: int) -> MeasuredErrors:
    moments = _simulated_moments(request, dim, count, request.replicates)
    rows = []
    for i, (epsilon, sigma) in enumerate(zip(request.epsilons, request.noise_multipliers, strict=True)):
        drawn = moments.of((slice(None), i))
        several = []
        for name in request.estimators:
            estimate = ESTIMATORS[name](drawn, request.delta)
            measures = measure([estimate], epsilon)
            several.append(
                EstimatorErrors(
                    **asdict(measures),
                    estimator=name,
                    within=float(np.quantile(np.abs(estimate.epsilon / epsilon - 1.0), 0.95)),
                    constant=measures.root_mean_square_error * count**0.5,
                    limit_constant=limit_constant(name, request.delta, sigma),
                )
            )
        rows.append(tuple(several))
    return MeasuredErrors(tuple(rows))


def _simulated_moments(request: ConvergenceRequest, dim: int, count: int, runs: int) -> Moments:
    """Simulate runs, with the noise of each ε and the same canaries."""
    key = request.key(f"runs/{dim}/{count}")
    return simulation.simulate(runs, count, dim, np.array(request.noise_multipliers), key)


def _predicted_errors(request: ConvergenceRequest, dim: int, count: int, i: int) -> PredictedErrors:
    model = RunModel(request.estimators[0], request.delta, request.epsilons[i], request.noise_multipliers[i])
    error = model.cached_error()
    needed = tuple(
        NeededSize(
            accuracy,
            fewest_canaries(accuracy, lambda k: error(dim, k)),
            least_dimension(accuracy, lambda d: error(d, count)),
            law.fewest_orthonormal(accuracy * request.epsilons[i], dim, request.noise_multipliers[i], request.delta),
        )
        for accuracy in _ACCURACIES
    )
    counts, dims = (
        sorted({min(max(2, round(multiple * size)), most) for multiple in _MULTIPLES})
        for size, most in ((count, 10**9), (dim, 10**12))
    )
    return PredictedErrors(
        needed, tuple((float(k), error(dim, k)) for k in counts), tuple((float(d), error(d, count)) for d in dims)
    )


def _orders_in_d(request: ConvergenceRequest, dim: int, count: int) -> Orders:
    pairs = list(zip(request.epsilons, request.noise_multipliers, strict=True))
    dims = orders.dims_about(dim)
    series = orders.normal_law(dims)
    for epsilon, sigma in pairs:
        series += orders.tail(dims, epsilon, sigma)
    for epsilon, sigma in pairs:
        key = request.key(f"displacement/{count}/{epsilon}")
        series += orders.displacement(count, epsilon, sigma, max(50, request.replicates // _FEWER), key)
    return Orders(tuple(series))


def _orders_in_k(request: ConvergenceRequest, dim: int, count: int) -> Orders:
    # More canaries than asked have fewer runs, so that each number takes at most as long as the asked one.
    moments = [
        _simulated_moments(request, dim, each, request.replicates // max(1, each // count))
        for each in orders.counts_about(count)
    ]
    series = []
    for i, (epsilon, sigma) in enumerate(zip(request.epsilons, request.noise_multipliers, strict=True)):
        drawn = [each.of((slice(None), i)) for each in moments]
        series += orders.estimate(request.estimators[0], request.delta, epsilon, sigma, dim, drawn)
    return Orders(tuple(series))


def run_file(
    request: ConvergenceRequest,
    path: Path | None = None,
    *,
    command: str = "",
    resume: bool = False,
    overwrite: bool = False,
) -> RunFile:
    """Open the file that keeps the parts of a report; in memory without a path."""
    origin = {} if path is None else {"version": version("canaryproof"), **request.origin, **code_and_machine()}
    checks = [(_SUITE, part.name) for part in parts(request)]
    return RunFile(path, origin, checks, command=command, resume=resume, overwrite=overwrite)


def make_report(
    request: ConvergenceRequest, file: RunFile, advance: Callable[[str, int, int], None] = lambda *_: None
) -> ConvergenceReport:
    """Make the parts of a report that a file lacks, which keeps each at once, and the report of all of them.

    ``advance`` is called with the name of the part that comes next, how many are made, and how many there are.
    """
    every = parts(request)
    made: dict[str, Any] = {}
    file.check()
    results = file.results()
    for i, part in enumerate(every):
        advance(part.name, i, len(every))
        if i not in results:
            evidence = to_document(part.make())
            result = Result(part.name, _SUITE, Subject.IMPLEMENTATION, "", "", Verdict.CONFIRMED, "", evidence)
            results[i] = json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False)
            file.add(i, results[i])
        # New parts are read back as well, so that a report that goes on has the same bytes.
        made[part.name] = read(part.kind, plain(Result.from_json(json.loads(results[i])).evidence))
    file.finish()
    return _assembled_report(request, made)


def _assembled_report(request: ConvergenceRequest, made: Mapping[str, Any]) -> ConvergenceReport:
    """Return the report that the records of all parts, by their names, are of."""
    settings = []
    for dim in request.dims:
        for count in request.counts:
            measured = made[f"runs, d = {dim:,}, k = {count:,}"].by_epsilon
            for i, epsilon in enumerate(request.epsilons):
                predicted = made[f"sizes, d = {dim:,}, k = {count:,}, ε = {epsilon!r}"]
                settings.append(_setting(request, dim, count, i, measured[i], predicted))
    return ConvergenceReport(
        version("canaryproof"),
        request.delta,
        request.replicates,
        request.seed,
        tuple(made[f"distances, d = {dim:,}"] for dim in request.dims),
        tuple(settings),
        tuple(each for part in made.values() if isinstance(part, Orders) for each in part.series),
    )


def _setting(
    request: ConvergenceRequest,
    dim: int,
    count: int,
    i: int,
    estimators: tuple[EstimatorErrors, ...],
    predicted: PredictedErrors,
) -> ConvergenceSetting:
    epsilon, sigma = request.epsilons[i], request.noise_multipliers[i]
    slope = consistency.slopes(request.delta, 1.0 / sigma).mean
    score = law.threshold(sigma, epsilon)
    return ConvergenceSetting(
        dim=dim,
        count=count,
        epsilon=epsilon,
        noise_multiplier=sigma,
        threshold=score,
        tail_error=law.tail_error(score, dim),
        correlation=law.correlation(dim, count, sigma),
        displaced_epsilon=law.displaced_epsilon(dim, count, sigma, request.delta),
        best_count=consistency.best_count(dim, sigma),
        independent_error=slope * float(np.hypot(count**-0.5, consistency.shift(dim, count, sigma))),
        orthonormal_error=slope * law.orthonormal_deviation(dim, count, 1.0 / sigma) if count < dim else None,
        estimators=estimators,
        needed=predicted.needed,
        by_count=predicted.by_count,
        by_dim=predicted.by_dim,
        printed=_table_2(dim, count, epsilon, request.delta),
    )


def _table_2(dim: int, count: int, epsilon: float, delta: float) -> tuple[float, float] | None:
    if (dim, count, delta) != (DIM, COUNT, DELTA):
        return None
    # The room of the claims loads all of them.
    from canaryproof.verify.papers.claims.transcripts import Final

    rows = ((float(mean), float(deviation)) for printed, mean, deviation in Final.TABLE_2 if float(printed) == epsilon)
    return next(rows, None)


@set_module("canaryproof")
def convergence(
    dim: float | Iterable[float] = DIM,
    canaries: float | Iterable[float] = COUNT,
    *,
    epsilon: float | Iterable[float] | None = None,
    noise_multiplier: float | Iterable[float] | None = None,
    delta: float = DELTA,
    estimator: str | Iterable[str] = tuple(ESTIMATORS),
    replicates: int = REPLICATES,
    seed: int = 0,
) -> ConvergenceReport:
    """Measure how far Algorithm 1 is from its limits at some d, k and ε, and how fast it gets there.

    Parameters
    ----------
    dim, canaries
        Dimensions d, 2 ≤ d ≤ 1e12, and numbers k ≥ 2 of canaries, one of each or several; the paper's by default.
    epsilon
        One ε or several, 0.001 to 10,000; the paper's 1, 3 and 10 if neither this nor the noise is given.
    noise_multiplier
        Standard deviations σ of the noise, 0.01 to 1e6, instead of ε.
    delta
        Target δ in (0, 1).
    estimator
        One estimator of ε or several: adaptive, fitted, pinned, threshold. The answer is about the first.
    replicates
        Number of runs that are drawn for each d and k, at least 100.
    seed
        Seed of all randomness.

    Returns
    -------
    The report: printed, it begins with its answer.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    Distances of cosines from normal are certified enclosures. Runs are drawn from the exact joint law of their cosines,
    whatever d is. What other k and d would give is by the limit law of a run's moments, with their exact means.

    Examples
    --------
    >>> import canaryproof as cp
    >>> report = cp.convergence(
    ...     dim=1e5, canaries=300, epsilon=2.0, estimator="pinned", replicates=100
    ... )
    >>> report.settings[0].needed[0].canaries
    576
    """
    request = checked_request(dim, canaries, epsilon, noise_multiplier, delta, estimator, replicates, seed)
    with run_file(request) as file:
        return make_report(request, file)
