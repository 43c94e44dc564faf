"""The audit of one run: estimates of ε, lower bounds, tests of what the estimates assume; and how it is printed."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from scipy import stats
from statsmodels.stats.diagnostic import normal_ad

from canaryproof.kernels import null_cosine
from canaryproof.kernels.certified import Enclosure, estimates
from canaryproof.verify.blindspots.alarms import BlindSpots, Range, blind_spots
from canaryproof.verify.bounds.catalogue import lower_bounds
from canaryproof.verify.bounds.lower_bound import LowerBound, cosine_null, prepare
from canaryproof.verify.estimators import estimators
from canaryproof.verify.estimators.estimators import Moments


def _enclose_pinned(moments: Moments, delta: float) -> Enclosure:
    return estimates.pinned(delta, float(estimators.pinned_distance(moments)))


def _enclose_fitted(moments: Moments, delta: float) -> Enclosure:
    return estimates.fitted(delta, float(moments.distance), float(moments.ratio))


def _enclose_adaptive(moments: Moments, delta: float) -> Enclosure:
    equal = estimators.variance_p_value(moments) >= estimators.TEST_LEVEL
    return _enclose_pinned(moments, delta) if equal else _enclose_fitted(moments, delta)


def _enclose_threshold(moments: Moments, delta: float) -> Enclosure:
    return estimates.threshold(delta, float(moments.distance), float(moments.ratio))


# Estimators with their enclosures and what each assumes, the default first.
_ESTIMATORS = (
    (
        "adaptive",
        estimators.adaptive,
        _enclose_adaptive,
        f"as pinned, unless the variances differ at level {estimators.TEST_LEVEL:g}; then as fitted (canaryproof)",
    ),
    (
        "pinned",
        estimators.pinned,
        _enclose_pinned,
        "canaries shift the mean and leave the variance (arXiv:2302.03098v1, Section 3)",
    ),
    (
        "fitted",
        estimators.fitted,
        _enclose_fitted,
        "normal scores of any mean and variance (arXiv:2302.03098, Section 3.2)",
    ),
    (
        "threshold",
        estimators.threshold,
        _enclose_threshold,
        "as fitted, for an attacker with one threshold (v1, Section 4)",
    ),
)
_NORM_ASSUMES = "the release is Gaussian noise and little else, in units of the canary norm (v1, footnote 2)"

# The estimators are finite and free of warnings within these bounds, in units of the null's standard deviation;
# cosines in any dimension keep to the upper one.
_SMALLEST_RATIO, _LARGEST_RATIO = 1e-6, 1e7
_SMALLEST_COORDINATE, _LARGEST_COORDINATE = 1e-12, 1e15
# Below, the p-value's formula has no basis.
_FEWEST_FOR_NORMALITY = 8
# Work between two reports of progress, about a tenth of a second.
_COORDINATES_AT_ONCE = 10**8


@dataclass(frozen=True)
class GoodnessOfFit:
    """A goodness-of-fit test."""

    statistic: float  # infinite where a tail probability underflows
    p_value: float  # 0 below the smallest that its formula serves


@dataclass(frozen=True)
class NamedEstimate:
    """An estimate of ε by one estimator.

    Attributes
    ----------
    name
        Estimator.
    assumes
        What it assumes, with the source.
    epsilon, standard_error, low, high
        As in ``estimators.Estimate``.
    certified
        Floats proven to lie on either side of the exact ε for the fitted parameters.
    """

    name: str
    assumes: str
    epsilon: float
    standard_error: float
    low: float
    high: float
    certified: tuple[float, float]


@dataclass(frozen=True)
class Audit:
    """What an audit finds; depends on nothing but its input.

    Attributes
    ----------
    count
        Number k of observed cosines.
    null_count
        Number of unobserved cosines that the null was fitted to; None for the closed-form null N(0, 1/d).
    dim
        Dimension d of the released vector, if known.
    delta, confidence
        As asked.
    standardised_mean
        (μ̂ − μ₀)/σ₀; √d·μ̂ for the closed-form null.
    deviation_ratio
        σ̂/σ₀; √d·σ̂ for the closed-form null.
    variance_p_value
        Two-sided p-value of equal variances of observed cosines and null.
    normality
        Anderson–Darling test that the observed cosines are normal; None for fewer than 8.
    null_law
        Kolmogorov–Smirnov test that the unobserved cosines follow the closed-form null law in R^d; None without
        unobserved cosines or without a dimension.
    estimates
        The estimates, the default first.
    inclusion
        How it was decided which canaries take part: ``fixed`` or ``coin``.
    bounds
        Lower bounds on ε and posterior intervals, those first whose coverage is proven.
    blind_spots
        What the default estimator would have noticed and what not; None where the dimension is not known or below
        1,000.
    """

    count: int
    null_count: int | None
    dim: int | None
    delta: float
    confidence: float
    standardised_mean: float
    deviation_ratio: float
    variance_p_value: float
    normality: GoodnessOfFit | None
    null_law: GoodnessOfFit | None
    estimates: tuple[NamedEstimate, ...]
    inclusion: str
    bounds: tuple[LowerBound, ...]
    blind_spots: BlindSpots | None

    @property
    def equal_variances(self) -> bool:
        """Whether the variances are not told apart, so that ``adaptive`` is ``pinned``."""
        return self.variance_p_value >= estimators.TEST_LEVEL

    @property
    def mean_error(self) -> float:
        """Standard error of ``standardised_mean``."""
        unobserved = 0.0 if self.null_count is None else 1.0 / self.null_count
        return math.sqrt(self.deviation_ratio**2 / self.count + unobserved)

    @property
    def ratio_error(self) -> float:
        """Standard error of ``deviation_ratio``."""
        unobserved = 0.0 if self.null_count is None else 0.5 / self.null_count
        return self.deviation_ratio * math.sqrt(0.5 / self.count + unobserved)


def audit_scores(
    observed: NDArray[np.float64],
    unobserved: NDArray[np.float64] | None,
    dim: int | None,
    delta: float,
    confidence: float = 0.95,
    inclusion: str = "fixed",
    bounds: tuple[str, ...] = (),
    noise_multiplier: float | None = None,
) -> Audit:
    """Audit the cosines of one run.

    Parameters
    ----------
    observed
        Cosines of canaries that took part, shape (k,), k ≥ 2, or their maxima over rounds.
    unobserved
        The same of canaries that did not take part: a Gaussian fitted to them is the null (Andrew et al., arXiv
        2302.03098, Algorithm 3). If None, N(0, 1/d) is.
    dim
        Dimension d of the released vector, 2 ≤ d ≤ 1e12; may be None beside unobserved cosines.
    delta
        Target δ in (0, 1).
    confidence
        Confidence of the intervals and bounds, in [1e-9, 1 − 1e-9].
    inclusion
        How it was decided which canaries take part: ``fixed``, or ``coin`` if by a fair coin for each.
    bounds
        Names of the bounds in ``bounds.catalogue``; by default a few that serve these cosines.
    noise_multiplier
        Claimed standard deviation of the noise, in units of the canary norm.

    Returns
    -------
    The audit.

    Raises
    ------
    ValueError
        If a named bound does not serve these cosines, both unobserved cosines and dimension are missing, or the
        cosines' mean or deviation is beyond any that a run produces.
    """
    moments = _moments(observed, unobserved, dim)
    null = cosine_null(dim) if unobserved is None and dim is not None else None
    # Of one run, so that they are not independent.
    scores = prepare(observed, unobserved, null, inclusion=inclusion)
    try:
        found = [
            _named(name, assumes, estimator(moments, delta, confidence), enclose(moments, delta))
            for name, estimator, enclose, assumes in _ESTIMATORS
        ]
    except ValueError as error:
        # A few cosines at a confidence near 1 leave an interval wider than any kernel's domain; or δ is subnormal.
        raise ValueError(f"observed: no estimate with this interval: {error}") from None
    return Audit(
        count=moments.count,
        null_count=None if unobserved is None else len(unobserved),
        dim=dim,
        delta=delta,
        confidence=confidence,
        standardised_mean=float(moments.distance),
        deviation_ratio=float(moments.ratio),
        variance_p_value=float(estimators.variance_p_value(moments)),
        normality=_normality(observed),
        null_law=None if unobserved is None or dim is None else _null_law(unobserved, dim),
        estimates=tuple(found),
        inclusion=inclusion,
        bounds=lower_bounds(scores, delta, confidence, bounds),
        blind_spots=blind_spots(
            dim, delta, moments.count, None if unobserved is None else len(unobserved), noise_multiplier
        ),
    )


def audit_release(
    release: NDArray[np.float32] | NDArray[np.float64],
    count: int,
    seed: int,
    delta: float,
    confidence: float = 0.95,
    advance: Callable[[int], None] = lambda _: None,
    bounds: tuple[str, ...] = (),
    noise_multiplier: float | None = None,
) -> Audit:
    """Audit a released vector, with the canaries made again from their seed.

    Parameters
    ----------
    release
        Released vector, finite and not zero, shape (d,); in units of the canary norm, which matters to ``norm`` only.
    count, seed
        Number and seed of the canaries that were added.
    delta, confidence
        As for ``audit_scores``.
    advance
        Called now and then with the number of canaries scored since the last call.
    bounds, noise_multiplier
        As for ``audit_scores``.

    Returns
    -------
    The audit, with the ``norm`` estimate last, and the release's dilution if the noise is given.

    Raises
    ------
    ValueError
        If count, seed or dimension is outside the domain of ``Canaries``, or the release's size or the cosines' mean
        or deviation is beyond any that a run produces.
    """
    # Loads the compiled stream, which scores do not need.
    from canaryproof.kernels.canaries import Canaries

    largest = max(abs(float(release.min())), abs(float(release.max())))
    if not _SMALLEST_COORDINATE <= largest <= _LARGEST_COORDINATE:
        raise ValueError(
            f"the release's largest coordinate must lie between {_SMALLEST_COORDINATE:g} and "
            f"{_LARGEST_COORDINATE:g} canary norms, not {largest:.3g}"
        )
    canaries = Canaries(seed, count, len(release))
    step = max(16, _COORDINATES_AT_ONCE // canaries.dim)
    pieces = []
    for start in range(0, count, step):
        indices = np.arange(start, min(start + step, count))
        pieces.append(canaries.cosines(release, indices))
        advance(len(indices))
    found = audit_scores(
        np.concatenate(pieces), None, canaries.dim, delta, confidence, bounds=bounds, noise_multiplier=noise_multiplier
    )
    spots = found.blind_spots
    if spots is not None and noise_multiplier is not None:
        # The norm estimator's distance is √d/‖ρ‖.
        square = (noise_multiplier * float(estimators.norm_distance(release))) ** -2
        spots = dataclasses.replace(spots, dilution=square - 1.0)
    enclosure = estimates.pinned(delta, float(estimators.norm_distance(release)))
    norm = _named("norm", _NORM_ASSUMES, estimators.norm(release, delta, confidence), enclosure)
    return dataclasses.replace(found, estimates=(*found.estimates, norm), blind_spots=spots)


def _moments(observed: NDArray[np.float64], unobserved: NDArray[np.float64] | None, dim: int | None) -> Moments:
    """Return the moments, unless no run produces them."""
    # A variance may underflow to 0; the bounds refuse what comes of it, NaN too.
    with np.errstate(all="ignore"):
        if unobserved is not None:
            moments = estimators.from_unobserved(observed, unobserved)
        elif dim is not None:
            moments = estimators.from_dimension(observed, dim)
        else:
            raise ValueError("without unobserved cosines the dimension is needed")
    distance, ratio = float(moments.distance), float(moments.ratio)
    if not _SMALLEST_RATIO <= ratio <= _LARGEST_RATIO:
        raise ValueError(
            f"observed: the standard deviation must be {_SMALLEST_RATIO:g} to {_LARGEST_RATIO:g} times the null's, "
            f"not {ratio:.3g} times"
        )
    if not abs(distance) <= _LARGEST_RATIO:
        raise ValueError(
            f"observed: the mean must lie within {_LARGEST_RATIO:g} of the null's standard deviations from the null's "
            f"mean, not {abs(distance):.3g} away"
        )
    return moments


def _named(name: str, assumes: str, estimate: estimators.Estimate, enclosure: Enclosure) -> NamedEstimate:
    return NamedEstimate(
        name,
        assumes,
        float(estimate.epsilon),
        float(estimate.standard_error),
        float(estimate.low),
        float(estimate.high),
        (enclosure.lo, enclosure.hi),
    )


def _normality(observed: NDArray[np.float64]) -> GoodnessOfFit | None:
    if len(observed) < _FEWEST_FOR_NORMALITY:
        return None
    # The logarithm of a far outlier's tail probability may be that of 0: the statistic is then infinite.
    with np.errstate(all="ignore"):
        statistic, p_value = normal_ad(observed)
    return GoodnessOfFit(float(statistic), float(p_value))


def _null_law(unobserved: NDArray[np.float64], dim: int) -> GoodnessOfFit:
    # Probability transform first: the closed-form law becomes the uniform.
    result = stats.kstest(null_cosine.cdf(unobserved, dim), "uniform")
    return GoodnessOfFit(float(result.statistic), float(result.pvalue))


# How an audit is printed.

# What stands for a symbol where the terminal cannot show it; pairs before their parts.
_PLAIN = (
    ("√d", "sqrt(d)"),
    ("ε̂", "epsilon"),
    ("μ̂", "mu"),
    ("σ̂", "sigma"),
    ("μ₀", "mu0"),
    ("σ₀", "sigma0"),
    ("‖Σx‖²", "|sum x|^2"),
    ("‖ρ‖²", "|rho|^2"),
    ("σ²d", "sigma^2 d"),
    ("σ", "sigma"),
    ("∞", "infinity"),
    ("ε", "epsilon"),
    ("δ", "delta"),
    ("α", "alpha"),
    ("·", "*"),
    ("–", "-"),
    ("±", "+/-"),
    ("−", "-"),
    ("≥", ">="),
    ("²", "^2"),
)


def print_audit(found: Audit) -> None:
    """Print an audit on stdout, in words that its encoding has."""
    console = Console(markup=False, emoji=False, highlight=False)
    say = _speaker(console.encoding)
    console.print(say(_heading(found)))
    console.print(_estimates_table(found, say))
    console.print(_listing([(estimate.name, estimate.assumes) for estimate in found.estimates], say))
    console.print()
    console.print(say("ε̂ of the fitted parameters, certified; the interval above says what the fit is worth:"))
    console.print(_listing([(estimate.name, _certified(*estimate.certified)) for estimate in found.estimates], say))
    console.print()
    console.print(bounds_table(found.bounds, found.confidence, say))
    console.print(_listing([(bound.method, f"needs {', '.join(bound.assumptions)}") for bound in found.bounds], say))
    console.print()
    console.print(_listing(_checks(found), say))
    _print_blind_spots(found, console, say)
    for sentence in (*_remarks(found), _meaning(found)):
        console.print()
        console.print(say(sentence))


def _print_blind_spots(found: Audit, console: Console, say: Callable[[str], str]) -> None:
    spots = found.blind_spots
    if spots is None:
        console.print()
        console.print("Which faults would have been noticed is foretold for a known dimension of at least 1,000 only.")
        return
    for heading, rows in zip(headings(spots), (noticed_rows(spots), unnoticed_rows(spots)), strict=True):
        console.print()
        console.print(say(heading))
        console.print(_listing(rows, say))
    for sentence in dilution_remarks(spots, release=_of_release(found)):
        console.print()
        console.print(say(sentence))


def _speaker(encoding: str) -> Callable[[str], str]:
    """Return what spells out symbols that the terminal cannot show."""

    def say(text: str) -> str:
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            for symbol, word in _PLAIN:
                text = text.replace(symbol, word)
        return text

    return say


def _heading(found: Audit) -> str:
    null = "N(0, 1/d)" if found.null_count is None else f"Gaussian fitted to {found.null_count:,} unobserved cosines"
    dim = "" if found.dim is None else f"d = {found.dim:,}, "
    return f"k = {found.count:,} observed cosines, {dim}δ = {found.delta!r}; null: {null}"


def _estimates_table(found: Audit, say: Callable[[str], str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", overflow="fold")
    for heading in ("ε̂", "standard error", f"{100.0 * found.confidence:.10g}% interval"):
        table.add_column(say(heading), justify="right", overflow="fold")
    for i, estimate in enumerate(found.estimates):
        error = estimate.standard_error
        value, low, high = (rounded(x, error) for x in (estimate.epsilon, estimate.low, estimate.high))
        cells = estimate.name, value, rounded(error, error), say(f"{low} – {high}")
        table.add_row(*cells, style="bold" if i == 0 else None)
    return table


def _certified(low: float, high: float) -> str:
    return f"in [{low!r}, {high!r}]"


def _listing(rows: Iterable[tuple[str, str]], say: Callable[[str], str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(say(cell) for cell in row))
    return table


def _checks(found: Audit) -> Iterator[tuple[str, str]]:
    closed = found.null_count is None
    mean, ratio = found.mean_error, found.ratio_error
    yield (
        f"standardised mean {'√d·μ̂' if closed else '(μ̂ − μ₀)/σ₀'}",
        f"{rounded(found.standardised_mean, mean)} ± {rounded(mean, mean)}",
    )
    yield (
        f"deviation ratio {'√d·σ̂' if closed else 'σ̂/σ₀'}",
        f"{rounded(found.deviation_ratio, ratio)} ± {rounded(ratio, ratio)}",
    )
    yield "equal variances", _p_value(found.variance_p_value, "1e-300")
    yield "observed are normal (Anderson–Darling)", _check_cell("A²", found.normality, "5e-31")
    if found.null_law is not None:
        yield "unobserved follow the null law (Kolmogorov–Smirnov)", _check_cell("D", found.null_law, "1e-300")
    if found.blind_spots is not None and found.blind_spots.dilution is not None:
        canaries = found.count / (found.blind_spots.noise_multiplier**2 * (found.dim or 1))
        dilution = f"{found.blind_spots.dilution:.3g}".replace("-", "−")
        yield "dilution ‖ρ‖²/(σ²d) − 1", f"{dilution}; canaries add {canaries:.2g}"


def _check_cell(symbol: str, check: GoodnessOfFit | None, smallest: str) -> str:
    if check is None:
        return "not tested: fewer than 8 values"
    return f"{symbol} = {check.statistic:.3g}, {_p_value(check.p_value, smallest)}"


def _p_value(p_value: float, smallest: str) -> str:
    return f"p = {p_value:.2g}" if p_value > 0.0 else f"p < {smallest}"


def _remarks(found: Audit) -> Iterator[str]:
    """Say what the numbers alone don't."""
    if found.equal_variances:
        yield "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
    else:
        yield "The variances differ, so that adaptive is fitted."
    if found.standardised_mean <= 0.0:
        mean = "positive" if found.null_count is None else "above the null's"
        yield f"The observed mean is not {mean}, so that pinned is 0: it sees no trace of the canaries."
    yield from coverage_remarks(found.bounds)
    if found.null_law is not None:
        yield (
            "A small p-value for the null law is expected where scores are maxima over rounds; for cosines with a "
            "single release it says that --dim is wrong or the unobserved canaries are not random."
        )


def _of_release(found: Audit) -> bool:
    return found.estimates[-1].name == "norm"


def _meaning(found: Audit) -> str:
    release = _of_release(found)
    seen = "this release" if release else "these cosines alone"
    meaning = (
        f"ε̂ is an estimate, neither an upper nor a lower bound on the mechanism's privacy loss, and its interval is "
        f"only as good as what its estimator assumes. It concerns an attacker who knows a random canary and looks at "
        f"{seen}: it averages over canaries, and a low value does not exclude other attacks. It needs canaries that "
        f"took part just as clients do."
    )
    scale = " The norm estimate takes the release to be in units of the canary norm; the others need no unit."
    return meaning + scale if release else meaning


# What is said of bounds whose coverage is of a kind.
_COVERAGE = {
    "proven": "A bound of proven coverage is above ε in at most the stated share of audits, if what it needs holds.",
    "asymptotic": (
        "A bound of asymptotic coverage is proven for independent scores. Those of one run depend on each other, ever "
        "less as the dimension grows."
    ),
    "heuristic": "No proof covers a heuristic bound: it may be above ε in any share of audits.",
}


def coverage_remarks(bounds: Iterable[LowerBound]) -> Iterator[str]:
    """Say what the table's words mean, for the kinds of coverage that there are."""
    yield "A cap is a bound's value at perfect separation of as many scores: it cannot be more, whatever leaks."
    for coverage in dict.fromkeys(bound.coverage for bound in bounds):
        yield _COVERAGE[coverage]


def bounds_table(bounds: Iterable[LowerBound], confidence: float, say: Callable[[str], str]) -> Table:
    """Lay out bounds, each with its kind and coverage; ``say`` spells out what the terminal cannot show."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("bound", overflow="fold")
    table.add_column(say(f"ε, {100.0 * confidence:.10g}%"), justify="right", overflow="fold")
    for heading in ("kind", "coverage", "cap"):
        table.add_column(heading, overflow="fold")
    for bound in bounds:
        # Down, as a bound rounded up would be none.
        value = _rounded_down(bound.value)
        shown = f"≥ {value}" if bound.upper is None else f"{value} – {bound.upper:.3g}"
        table.add_row(bound.method, say(shown), bound.kind, bound.coverage, _rounded_down(bound.cap))
    return table


def _rounded_down(value: float) -> str:
    """Print a number that is not negative with three significant digits."""
    if not value or not math.isfinite(value):
        return f"{value:.3g}"
    unit = Decimal(1).scaleb(Decimal(value).adjusted() - 2)
    return f"{Decimal(value).quantize(unit, rounding=ROUND_FLOOR):f}"


# From here on, what a release holds beside its noise is longer than that.
_SWAMPED = 1.0


def headings(found: BlindSpots) -> tuple[str, str]:
    """Introduce the list of what would have been noticed, and that of what would not."""
    claimed = f"a claim of ε = {found.epsilon:.3g} (noise multiplier {found.noise_multiplier:.4g})"
    whose = "" if found.given else "; --noise-multiplier says what yours is"
    return (
        f"Would have been noticed, by adaptive and with probability 90%, beside {claimed}{whose}:",
        "Would not have been noticed:",
    )


def noticed_rows(found: BlindSpots) -> list[tuple[str, str]]:
    """Say for which part of its parameter each fault would have been noticed."""
    return [(part.title, _part(part)) for part in found.noticed] or [("nothing of the atlas", "")]


def unnoticed_rows(found: BlindSpots) -> list[tuple[str, str]]:
    """Say for which part of its parameter each fault would not have been noticed, and what ε may be there."""
    return [(part.title, f"{_part(part)}; ε up to {_number(part.epsilon)}") for part in found.unnoticed]


def dilution_remarks(found: BlindSpots, release: bool) -> Iterator[str]:
    """Say what a release holds beside the claimed noise."""
    if not found.given:
        return
    if found.dilution is None:
        if not release:
            yield "How much data dilute the cosines, ‖ρ‖²/(σ²d) − 1, can be told from the released vector only."
    elif found.dilution > _SWAMPED:
        factor = 1.0 / math.sqrt(1.0 + found.dilution)
        yield (
            f"Warning: data swamp the statistic. The release is longer than its noise, and the canaries' mean is "
            f"{factor:.2g} of what that noise alone would leave: ε̂ is low whether or not the noise is what is claimed, "
            "and the lists above, which are for short data, are too favourable."
        )


def _part(part: Range) -> str:
    ends = _number(part.low) if part.low == part.high else f"{_number(part.low)} – {_number(part.high)}"
    return f"{part.parameter}: {ends}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


_ALL_DIGITS = 16  # of a float, after the first


def rounded(value: float, error: float) -> str:
    """Print a number with as many digits as leave two of its standard error, or three where that is 0."""
    if not (error > 0.0 and math.isfinite(value) and math.isfinite(error)):
        return f"{value:.3g}"
    decimals = 1 - _exponent(f"{error:.1e}")
    # Adding 0 makes a zero of what rounds to −0.
    near = round(value, decimals) + 0.0
    if decimals <= 6 and abs(near) < 1e6:
        return f"{near:.{max(0, decimals)}f}"
    digits = decimals + _exponent(f"{near:e}")
    return f"{near:.{min(max(0, digits), _ALL_DIGITS)}e}"


def _exponent(scientific: str) -> int:
    return int(scientific.partition("e")[2])
