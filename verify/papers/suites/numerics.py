"""Suite ``numerics``: the fast kernels against certified enclosures, these against the twins, and other libraries."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import mpmath as mp
import numpy as np
from flint import fmpq
from scipy import optimize, special, stats

from canaryproof.kernels import binomial, gaussian_mechanism, null_cosine, two_gaussians
from canaryproof.kernels.certified import Enclosure, at_precision
from canaryproof.kernels.certified import binomial as certified_binomial
from canaryproof.kernels.certified import gaussian_mechanism as certified_mechanism
from canaryproof.kernels.certified import null_cosine as certified_cosine
from canaryproof.kernels.certified import two_gaussians as certified_pair
from canaryproof.kernels.certified import two_gaussians as certified_two_gaussians
from canaryproof.kernels.certified._series import hypergeometric
from canaryproof.proofs_check.rounding import budgets
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.check.results import Check, Context, Outcome, Subject, Verdict
from canaryproof.verify.papers.records.evidence import (
    EnclosuresCompared,
    KernelErrors,
    SweepErrors,
    WorstCase,
    WorstCaseInPractice,
)
from canaryproof.verify.papers.suites.worst_case.search import BUDGETS, Case, Domain, error_bound, in_ulps, search
from canaryproof.verify.papers.suites.worst_case.table import WorstInput, read
from canaryproof.verify.papers.suites.worst_case.targets import TARGETS, Arguments, Target

# Kernels and the functions that a user would take instead: the same inputs and the same certified enclosures.


PACKAGE = "canaryproof"
_DELTA = 1e-6


@dataclass(frozen=True)
class Sweep:
    """One function along one line through its domain of practice."""

    name: str  # Topic and function
    title: str  # The function, with its fixed arguments.
    axis: str  # The moving argument.
    ends: tuple[float, float]  # First and last value of what moves; the points between are spaced by equal factors
    arguments: Callable[[float], tuple[float, ...]]  # Arguments at a point
    certified: Callable[..., Enclosure]  # Enclosure at these arguments
    methods: Mapping[str, Callable[..., Any]]  # Functions of these arguments, this package's first.


def _plain_delta(epsilon: float, distance: float, ratio: float) -> float:
    """δ of N(distance, ratio²) from N(0, 1) as Andrew et al. print it in Section 3.2."""
    if ratio == 1.0:
        u = epsilon / distance - 0.5 * distance
        return float(special.ndtr(-u) - math.exp(epsilon) * special.ndtr(-u - distance))
    # Roots of the privacy loss less ε, by the quadratic formula.
    a = 0.5 - 0.5 / ratio**2
    b, c = distance / ratio**2, -0.5 * distance**2 / ratio**2 - math.log(ratio) - epsilon
    square = b * b - 4.0 * a * c
    if square < 0.0:
        return 0.0 if a < 0.0 else 1.0 - math.exp(epsilon)
    root = math.sqrt(square)
    low, high = sorted(((-b - root) / (2.0 * a), (-b + root) / (2.0 * a)))
    first = special.ndtr((high - distance) / ratio) - special.ndtr((low - distance) / ratio)
    second = special.ndtr(high) - special.ndtr(low)
    if a > 0.0:
        first, second = 1.0 - first, 1.0 - second
    return float(first - math.exp(epsilon) * second)


def _root(function: Callable[[float], float], high: float) -> float:
    if function(1e-9) <= 0.0:
        return 0.0
    return float(optimize.brentq(function, 1e-9, high, xtol=1e-300, rtol=4.0 * np.finfo(float).eps, maxiter=500))


def _plain_epsilon(delta: float, distance: float, ratio: float) -> float:
    """Invert it by Brent's method, the larger of both directions."""
    return max(
        _root(lambda e: _plain_delta(e, distance, ratio) - delta, 200.0),
        _root(lambda e: _plain_delta(e, distance / ratio, 1.0 / ratio) - delta, 200.0) if ratio != 1.0 else 0.0,
    )


def _plain_log_density(x: float, dim: float) -> float:
    scale = special.gammaln(0.5 * dim) - special.gammaln(0.5 * (dim - 1.0)) - 0.5 * math.log(math.pi)
    return float(scale + 0.5 * (dim - 3.0) * math.log(1.0 - x * x))


# dp-accounting is imported when called: it takes a second, and only the comparison needs it.
def _their_delta(epsilon: float, sigma: float) -> Any:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    return GaussianPrivacyLoss(sigma).get_delta_for_epsilon(epsilon)


def _their_epsilon(delta: float, sigma: float) -> Any:
    from dp_accounting import get_epsilon_gaussian

    return get_epsilon_gaussian(sigma, delta)


def _their_noise_multiplier(epsilon: float, delta: float) -> Any:
    from dp_accounting import get_sigma_gaussian

    return get_sigma_gaussian(epsilon, delta)


SWEEPS = (
    Sweep(
        "null-cosine.sf", "P(cosine > 3/√d)", "d", (1e2, 1e12),
        lambda d: (3.0 / math.sqrt(round(d)), float(round(d))), certified_cosine.sf,
        {
            PACKAGE: null_cosine.sf,
            "scipy": lambda x, d: 0.5 * stats.beta.sf(x * x, 0.5, 0.5 * (d - 1.0)),
            "N(0, 1/d)": lambda x, d: stats.norm.sf(x * math.sqrt(d)),
        },
    ),
    Sweep(
        "null-cosine.logpdf", "log density at 3/√d", "d", (1e2, 1e12),
        lambda d: (3.0 / math.sqrt(round(d)), float(round(d))), certified_cosine.logpdf,
        {PACKAGE: null_cosine.logpdf, "plain formula": _plain_log_density},
    ),
    Sweep(
        "gaussian-mechanism.delta", "δ at ε = 1", "noise multiplier", (0.2, 7.0),
        lambda sigma: (1.0, sigma), certified_mechanism.delta,
        {
            PACKAGE: gaussian_mechanism.delta,
            "dp-accounting": _their_delta,
            "plain formula": lambda epsilon, sigma: _plain_delta(epsilon, 1.0 / sigma, 1.0),
        },
    ),
    Sweep(
        "gaussian-mechanism.epsilon", "ε at δ = 1e-6", "noise multiplier", (0.2, 40.0),
        lambda sigma: (_DELTA, sigma), certified_mechanism.epsilon,
        {
            PACKAGE: gaussian_mechanism.epsilon,
            "dp-accounting": _their_epsilon,
            "plain formula": lambda delta, sigma: _plain_epsilon(delta, 1.0 / sigma, 1.0),
        },
    ),
    Sweep(
        "gaussian-mechanism.noise-multiplier", "noise multiplier at δ = 1e-6", "ε", (0.1, 50.0),
        lambda epsilon: (epsilon, _DELTA), certified_mechanism.noise_multiplier,
        {
            PACKAGE: gaussian_mechanism.noise_multiplier,
            "dp-accounting": _their_noise_multiplier,
            "plain formula": lambda epsilon, delta: 1.0
            / _root(lambda m: delta - _plain_delta(epsilon, m, 1.0), 100.0),
        },
    ),
    Sweep(
        "two-gaussians.epsilon", "ε at δ = 1e-6, distance 0.2", "ratio of deviations − 1", (1e-15, 1.0),
        lambda gap: (_DELTA, 0.2, 1.0 + gap), lambda delta, m, s: certified_pair.epsilon(delta, m, s, 0, 1),
        {
            PACKAGE: lambda delta, m, s: two_gaussians.epsilon(delta, m, s, 0.0, 1.0),
            "plain formula": _plain_epsilon,
        },
    ),
    Sweep(
        "binomial.upper", "Clopper–Pearson 95% upper limit, 1 success", "trials", (10.0, 1e6),
        lambda n: (1.0, float(round(n))), lambda s, n: certified_binomial.upper(int(s), int(n)),
        {
            PACKAGE: binomial.upper,
            "scipy": lambda s, n: special.betaincinv(s + 1.0, n - s, 0.95),
        },
    ),
)  # fmt: skip


def judge_sweep(sweep: Sweep, context: Context) -> Outcome:
    """Measure the errors of all methods along a sweep; this package's must keep its budget."""
    points = np.geomspace(*sweep.ends, context.pick(12, 97)).tolist()
    errors: dict[str, list[float]] = {name: [] for name in sweep.methods}
    for point in points:
        arguments = sweep.arguments(point)
        exact = sweep.certified(*arguments)
        for name, method in sweep.methods.items():
            errors[name].append(_ulps(method, arguments, exact))
    worst = {name: max(values) for name, values in errors.items()}
    finding = f"{worst[PACKAGE]:.2g} ulps at most; " + ", ".join(
        f"{name} {'fails' if math.isinf(ulps) else f'{ulps:.2g}'}" for name, ulps in worst.items() if name != PACKAGE
    )
    ulps = {name: tuple(values) for name, values in errors.items()}
    evidence = SweepErrors(sweep.title, sweep.axis, tuple(points), ulps, worst)
    holds = worst[PACKAGE] <= BUDGETS[Domain.PRACTICE]
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, to_document(evidence))


def _ulps(method: Callable[..., Any], arguments: Sequence[float], exact: Enclosure) -> float:
    try:
        with np.errstate(all="ignore"):
            value = float(method(*arguments))
    except (ArithmeticError, ValueError):
        # No result at all: a root that is not bracketed, a square root of a negative number.
        return math.inf
    return in_ulps(error_bound(value, exact), exact)


# Public functions that no target of the search covers: both directions, the reverse one, and two-sided limits.


_BY_NAME = {target.name: target for target in TARGETS}


def _like(name: str, other: str, kernel: Callable[..., Any], certified: Callable[..., Enclosure]) -> Target:
    return dataclasses.replace(_BY_NAME[other], name=name, kernel=kernel, certified=certified)


def _direction(function: str, direction: str) -> Target:
    topic = f"two-gaussians.{function.replace('_', '-')}"
    return _like(
        f"{topic}.{direction}",
        f"{topic}.forward",
        partial(getattr(two_gaussians, function), direction=direction),
        partial(getattr(certified_two_gaussians, function), direction=direction),
    )


def _two_sided(end: int, name: str, method: str) -> Target:
    return _like(
        f"binomial.interval.{name}.{method}",
        f"binomial.{name}.{method}",
        lambda s, n, c: binomial.interval(s, n, c, method)[end],  # type: ignore[arg-type]
        lambda s, n, c: certified_binomial.interval(int(s), int(n), c, method)[end],  # type: ignore[arg-type]
    )


PATHS = (
    _direction("log_delta", "reverse"),
    _direction("log_delta", "both"),
    _direction("epsilon", "reverse"),
    *(
        _two_sided(end, name, method)
        for method in ("clopper-pearson", "jeffreys")
        for end, name in enumerate(("lower", "upper"))
    ),
)


def _judge(target: Target, context: Context) -> Outcome:
    return judge_errors(target, (), context)


def _check(target: Target) -> Check:
    floor = ", or by 1e-15 where it is below 0.1" if target.absolute else ""
    return Check(
        f"numerics.paths.{target.name}",
        Subject.IMPLEMENTATION,
        f"kernels.{target.name.partition('.')[0].replace('-', '_')}",
        f"differs from the exact result by at most {BUDGETS[Domain.PRACTICE]:g} ulps in practice and "
        f"{BUDGETS[Domain.WHOLE]:g} anywhere{floor}",
        partial(_judge, target),
    )


# Kernels against enclosures, and enclosures against twins.


# Decimal digits of the twins, two and a half times what a float holds.
_DIGITS = 40
_MOST_DRAWS = 10_000


def judge_errors(target: Target, known: Iterable[WorstInput], context: Context) -> Outcome:
    """Search for the worst error of a kernel, from the worst inputs known on."""
    rng = np.random.default_rng(context.key(f"numerics/{target.name}"))
    effort = context.pick(100, 3000, 25)
    starts = [row.arguments for row in known if row.function == target.name]
    practice, judged = search(target, Domain.PRACTICE, effort, rng, starts)
    # An input in the domain of practice lies in the whole domain too.
    whole, judged_anywhere = search(target, Domain.WHOLE, effort, rng, [*starts, practice.arguments])
    # In ulps; what no proof reaches is searched.
    proven = budgets.proven().get(target.name)
    evidence = KernelErrors(
        WorstCaseInPractice(**_fields(target, Domain.PRACTICE, practice, judged), proven=proven),
        WorstCase(**_fields(target, Domain.WHOLE, whole, judged_anywhere)),
    )
    holds = max(practice.share, whole.share) <= 1.0
    finding = (
        f"worst error found {practice.ulps:.2g} ulps in practice, {whole.ulps:.2g} anywhere, "
        f"at {_show(whole.arguments)}; {judged + judged_anywhere:,} inputs"
    )
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, to_document(evidence))


def _fields(target: Target, domain: Domain, case: Case, judged: int) -> dict[str, Any]:
    return {
        "judged": judged,
        "ulps": case.ulps,
        "budget": BUDGETS[domain],
        "share_of_budget": case.share,
        "arguments": dict(zip(target.names, case.arguments, strict=True)),
        "value": case.value,
        "enclosure": (case.enclosure.lo, case.enclosure.hi),
    }


def _show(arguments: Arguments) -> str:
    return "(" + ", ".join(f"{a:.6g}" for a in arguments) + ")"


def _holds(enclosure: Enclosure, exact: mp.mpf) -> bool:
    """Whether the ends contain the exact value, as far as the twin's digits tell."""
    if mp.isinf(exact):
        return bool(enclosure.lo == enclosure.hi == exact)
    with mp.workdps(_DIGITS):
        slack = abs(exact) * mp.mpf(10) ** (5 - _DIGITS)
        return bool(enclosure.lo - slack <= exact <= enclosure.hi + slack)


def judge_enclosures(targets: Iterable[Target], context: Context) -> Outcome:
    """Compare enclosures with multiprecision twins at random inputs, where the twins serve."""
    compared, undecided, missed, wide = 0, 0, [], 0
    for target in targets:
        rng = np.random.default_rng(context.key(f"numerics/enclosures/{target.name}"))
        draws = (target.draw(rng) for _ in range(_MOST_DRAWS))
        served = (draw for draw in draws if target.inside(*draw) and target.twin_serves(*draw))
        for arguments in islice(served, context.pick(3, 25, 1)):
            enclosure = target.certified(*arguments)
            wide += not enclosure.is_tight
            try:
                twin = target.twin(*arguments, digits=_DIGITS)
            except mp.mp.NoConvergence:
                # The plain formulas lose more digits at some extremes than the twins are ready to add.
                undecided += 1
                continue
            compared += 1
            if not _holds(enclosure, twin):
                missed.append(f"{target.name}{_show(arguments)}")
    finding = f"{compared} inputs: {len(missed)} outside, {wide} wider than 2 ulps"
    if undecided:
        finding += f"; at {undecided} more the twin does not converge"
    if missed:
        finding += f"; first {missed[0]}"
    evidence = to_document(EnclosuresCompared(compared, undecided, tuple(missed), wide, _DIGITS))
    if missed or wide:
        return Outcome(Verdict.REFUTED, finding, evidence)
    return Outcome(Verdict.CONFIRMED if compared else Verdict.INCONCLUSIVE, finding, evidence)


# Bits at which a series or fraction stops after a few terms, so that its remainder is most of the ball.
_FEW_BITS = (42, 46, 54, 70)
_TERMS = 10**6


def judge_remainders(context: Context) -> Outcome:
    """Judge that remainders of a series and of a continued fraction are enclosed, at few bits, by mpmath's values."""
    rng = np.random.default_rng(context.key("numerics/enclosures/remainders"))
    missed, widest = [], 0.0
    count = context.pick(40, 400)
    for number in range(count):
        prec = _FEW_BITS[number % len(_FEW_BITS)]
        dim, x = float(np.exp(rng.uniform(0.8, 7.0))), float(rng.uniform(0.01, 0.95))
        b, c, z = (fmpq(*float(value).as_integer_ratio()) for value in (0.5 * dim, 1.5, x * x))
        exact_x, exact_dim = (fmpq(*value.as_integer_ratio()) for value in (x, dim))
        series = at_precision(prec, partial(hypergeometric, b, c, z))
        fraction = at_precision(prec, partial(certified_cosine.tail_fraction, exact_x, exact_dim))
        with mp.workdps(_DIGITS):
            square = mp.mpf(x) ** 2
            values = {
                "series": (series, mp.hyp2f1(1, mp.mpf(dim) / 2, mp.mpf(1.5), mp.mpf(x * x), maxterms=_TERMS)),
                "fraction": (
                    fraction,
                    mp.hyp2f1(1, 0.5, (mp.mpf(dim) + 1) / 2, -(1 - square) / square, maxterms=_TERMS),
                ),
            }
            for name, (ball, value) in values.items():
                low, high = (mp.mpf(tuple(map(int, end.man_exp()))) for end in (ball.lower(), ball.upper()))
                slack = abs(value) * mp.mpf(10) ** (5 - _DIGITS)
                widest = max(widest, float((high - low) / abs(value)))
                if not low - slack <= value <= high + slack:
                    missed.append(f"{name} at ({x:.6g}, {dim:.6g}) with {prec} bits")
    bits = f"{_FEW_BITS[0]} to {_FEW_BITS[-1]} bits"
    finding = f"{2 * count} values at {bits}: {len(missed)} outside; the widest ball has {widest:.1g} of its value"
    if missed:
        finding += f"; first {missed[0]}"
    holds = not missed
    return Outcome(Verdict.CONFIRMED if holds else Verdict.REFUTED, finding, {"compared": 2 * count, "missed": missed})


def _error_check(target: Target) -> Check:
    # Directions and methods are bound by partials.
    kernel: Any = getattr(target.kernel, "func", target.kernel)
    floor = ", or by 1e-15 where it is below 0.1" if target.absolute else ""
    return Check(
        f"numerics.{target.name}",
        Subject.IMPLEMENTATION,
        f"{kernel.__module__.removeprefix('canaryproof.')}.{kernel.__name__}",
        f"differs from the exact result by at most {BUDGETS[Domain.PRACTICE]:g} ulps in practice and "
        f"{BUDGETS[Domain.WHOLE]:g} anywhere{floor}",
        lambda context: judge_errors(target, read(), context),
    )


def _enclosure_check(topic: str) -> Check:
    targets = [target for target in TARGETS if target.topic == topic]
    return Check(
        f"numerics.enclosures.{topic}",
        Subject.IMPLEMENTATION,
        f"kernels.certified.{topic.replace('-', '_')}",
        f"enclosures contain the {_DIGITS}-digit twin where that serves, and are at most 2 ulps wide",
        lambda context: judge_enclosures(targets, context),
    )


CHECKS: tuple[Check, ...] = (
    *map(_error_check, TARGETS),
    *map(_enclosure_check, dict.fromkeys(target.topic for target in TARGETS)),
    Check(
        "numerics.enclosures.remainders",
        Subject.IMPLEMENTATION,
        "kernels.certified",
        "series and continued fractions that stop after a few terms enclose their values",
        judge_remainders,
    ),
    *(
        Check(
            f"numerics.comparison.{sweep.name}",
            Subject.IMPLEMENTATION,
            f"kernels.{sweep.name.partition('.')[0].replace('-', '_')}",
            f"{sweep.title}: at most {BUDGETS[Domain.PRACTICE]:g} ulps off along the sweep, whatever others are",
            lambda context, sweep=sweep: judge_sweep(sweep, context),  # type: ignore[misc]
        )
        for sweep in SWEEPS
    ),
    *(map(_check, PATHS)),
)
