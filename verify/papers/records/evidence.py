"""Evidence that pages show: what their checks return as records, and how a page finds them in a run.

Fields have the order in which ``results.json`` has them. An evidence may have other fields, which no page reads.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, TypeVar

from canaryproof.kernels import binomial
from canaryproof.kernels.public import set_module
from canaryproof.verify.audit.files.json_records import Count, NonEmpty, OmittedIfNone, plain, read
from canaryproof.verify.audit.rules import number, one_of, refusal
from canaryproof.verify.papers.check.results import Result, Run

_T = TypeVar("_T")
Interval = tuple[float, float]
# A rate with its limits, and quartiles.
Rate = tuple[float, float, float]
# The limits of rates of alarms have this confidence.
ALARM_CONFIDENCE = 0.999


def rate_of(events: int, runs: int, confidence: float) -> Rate:
    """Return the rate of events among some runs, with its limits."""
    low, high = binomial.interval(events, runs, confidence)
    return events / runs, float(low), float(high)


def is_of(result: Result, kind: type[object]) -> bool:
    """Whether a result's evidence has all fields of a kind."""
    required = {field.name for field in fields(kind) if field.default is MISSING}  # type: ignore[arg-type]
    return required <= result.evidence.keys()


def records(run: Run, kind: type[_T], prefix: str = "") -> dict[str, _T]:
    """Return the evidence of a kind by what follows the prefix in its check's id.

    A ValueError of one line names a field that breaks a rule.
    """
    shown = {}
    for result in run.results:
        if result.id.startswith(prefix) and is_of(result, kind):
            try:
                shown[result.id.removeprefix(prefix)] = read(kind, plain(result.evidence))
            except ValueError as error:
                raise ValueError(f"{result.id}: {error}") from None
    return shown


# Pages ``accuracy`` and ``proofs``.


@dataclass(frozen=True)
class WorstCase:
    """The largest error that a search found in a range of inputs, in ulps and of its budget."""

    judged: Count
    ulps: float
    budget: float
    share_of_budget: float
    arguments: Mapping[str, float]
    value: float
    enclosure: Interval


@dataclass(frozen=True)
class WorstCaseInPractice(WorstCase):
    """The same in practice, and the bound that is proven there, in ulps."""

    # Runs of older versions lack it.
    proven: float | None = None


@dataclass(frozen=True)
class KernelErrors:
    """The largest errors of a kernel that a search found."""

    practice: WorstCaseInPractice
    whole: WorstCase


@dataclass(frozen=True)
class EnclosuresCompared:
    """Enclosures compared with multiprecision twins."""

    compared: Count
    undecided: Count
    missed: tuple[str, ...]
    wide: Count
    digits: Count


@dataclass(frozen=True)
class SweepErrors:
    """Errors of several methods along a sweep of one argument, by method in ulps, and the largest of each."""

    title: str
    axis: str
    points: NonEmpty[float]
    ulps: Mapping[str, tuple[float, ...]]
    worst: Mapping[str, float]


@dataclass(frozen=True)
class ProofLine:
    """A line of a proof, and the place of its displayed formula."""

    kind: str
    display: str | None = None


# Page ``convergence``.


def _positive(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < math.inf:
        return float(value)
    raise refusal("a positive number", value)


@set_module("canaryproof.typing")
@dataclass(frozen=True, kw_only=True)
class Series:
    """A quantity along d or k, what is proven of it and what was simulated."""

    title: str
    axis: Annotated[str, one_of("d", "k")]
    quantity: str  # what the ordinate is
    x: NonEmpty[Annotated[float, _positive]]
    # Ordinates: exact values, a proven bound, means of simulations and their standard errors.
    exact: tuple[float, ...] | None
    # Meaning of the exact values if they are exact for something else, such as a leading term.
    exact_label: str = "exact"
    bound: tuple[float, ...] | None
    bound_label: str
    simulated: tuple[float, ...] | None
    standard_error: tuple[float, ...] | None
    # Slope in logarithms of what ``slope_of`` names, with an interval of that confidence, and the theorem's.
    fitted_slope: float
    slope_interval: Interval
    slope_of: Annotated[str, one_of("exact", "bound", "simulated")]
    confidence: Annotated[float, number(0.0, 1.0)]
    proven_slope: float
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse ordinates that are not as many as the abscissae."""
        for name in ("exact", "bound", "simulated", "standard_error"):
            ordinates = getattr(self, name)
            if ordinates is not None and len(ordinates) != len(self.x):
                raise ValueError(f"{name}: must have as many numbers as x, {len(self.x)}, not {len(ordinates)}")


@dataclass(frozen=True)
class ConvergenceMeasured:
    """The series of a check of convergence."""

    convergence: NonEmpty[Series]


# Pages ``pitfalls`` and ``bounds``.


@dataclass(frozen=True, kw_only=True)
class CoverageRow:
    """How often a bound is above the true ε on audits of one mechanism."""

    method: OmittedIfNone[str] = None
    nominal: OmittedIfNone[float] = None  # rate that is promised
    mechanism: str
    epsilon: float  # for which the mechanism is made
    count: Count
    null: str
    delta: float
    truth: float
    runs: Count
    above: Count
    mean: float

    @property
    def rate(self) -> float:
        """How often a bound is above the truth."""
        return self.above / self.runs

    @property
    def interval(self) -> Interval:
        """The rate's 95% interval."""
        return rate_of(self.above, self.runs, 0.95)[1:]


@dataclass(frozen=True)
class BoundCoverage:
    """How often a bound is above the true ε, where it may be so at a rate α; ``visible`` is the least rate noticed."""

    alpha: float
    level: float
    visible: float
    cells: tuple[CoverageRow, ...]


@dataclass(frozen=True)
class NominalCoverage:
    """The same for all methods at several nominal rates."""

    level: float
    levels: tuple[CoverageRow, ...]


@dataclass(frozen=True)
class MeanBounds:
    """Mean bounds by method, and their standard errors, on audits of one mechanism."""

    mechanism: str
    epsilon: float
    count: Count
    null: str
    delta: float
    by_method: Mapping[str, float]
    errors: Mapping[str, float]


@dataclass(frozen=True)
class DefaultBound:
    """Means of all bounds, by method the shares of the largest and the default's leads, and values at separation."""

    level: float
    means: tuple[MeanBounds, ...]
    shares: Mapping[str, float]
    caps: tuple[Mapping[str, Any], ...]  # the method, and by number of scores its largest value
    leads: Mapping[str, float]
    errors: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class ShapeBounds:
    """Mean bounds for scores of one shape, and the default's share of the largest mean."""

    shape: str
    null: str
    count: Count
    delta: float
    runs: Count
    means: Mapping[str, float]
    error: float  # of the default's mean
    share: float
    share_error: float
    # Means of bounds that need a Gaussian trade-off curve.
    of_a_curve: Mapping[str, float]

    @property
    def best(self) -> str:
        """The method of the largest mean."""
        return max(self.means, key=self.means.__getitem__)


@dataclass(frozen=True)
class GridOfShapes:
    """The default bound for scores of many shapes; cells are useful where the largest mean is at least so large."""

    level: float
    alpha: float
    share: float
    least: float
    useful: float
    cells: tuple[ShapeBounds, ...]


# Page ``estimators``.


@dataclass(frozen=True)
class PrintedEstimate:
    """Mean and deviation of an estimate over so many simulations, as printed."""

    mean: float
    deviation: float
    runs: Count


@dataclass(frozen=True)
class SimulatedEstimate:
    """Mean and deviation of a reading of the estimate, and whether the printed ones may be of it."""

    mean: float
    mean_certified: Interval
    deviation: float
    p_value: float


@dataclass(frozen=True)
class SimulatedCell:
    """A cell of a printed table of simulations, and the same simulated."""

    dim: Count
    count: Count
    epsilon: float
    delta: float
    noise_multiplier: float
    runs: Count
    printed: PrintedEstimate
    level: float
    power_against: Mapping[str, float]
    readings: Mapping[str, SimulatedEstimate]


@dataclass(frozen=True)
class EstimatorMeasures:
    """Errors of an estimator over many runs, and how often its interval covers the truth, or is above it."""

    runs: Count
    bias: float
    deviation: float
    root_mean_square_error: float
    coverage: float
    below: float
    width: float


@dataclass(frozen=True)
class EqualVariancesCell:
    """Estimators at one number of canaries and one ε."""

    count: Count
    epsilon: float
    runs: Count
    estimators: Mapping[str, EstimatorMeasures]


@dataclass(frozen=True)
class EqualVariances:
    """Estimators where the variances agree."""

    dim: Count
    runs: Count
    delta: float
    level: float
    cells: tuple[EqualVariancesCell, ...]


@dataclass(frozen=True)
class UnequalVariancesCell:
    """Estimators at one distance and one ratio of deviations."""

    distance: float
    ratio: float
    epsilon: float
    epsilon_certified: Interval
    runs: Count
    estimators: Mapping[str, EstimatorMeasures]


@dataclass(frozen=True)
class UnequalVariances:
    """Estimators where the variances differ."""

    count: Count
    runs: Count
    delta: float
    level: float
    cells: tuple[UnequalVariancesCell, ...]


@dataclass(frozen=True)
class DefaultEstimatorCell:
    """Root mean square errors of three estimators at one distance and one ratio of deviations."""

    distance: float
    ratio: float
    epsilon: float
    epsilon_certified: Interval
    pinned: float
    fitted: float
    adaptive: float


@dataclass(frozen=True)
class DefaultEstimator:
    """Root mean square errors of three estimators, and by how many standard errors the default's is larger."""

    runs: Count
    count: Count
    delta: float
    cells: NonEmpty[DefaultEstimatorCell]
    largest_excess: float


@dataclass(frozen=True)
class FittedBiasCell:
    """Bias of ``fitted`` at equal variances: simulated, by quadrature, and its leading term."""

    delta: float
    epsilon: float
    count: Count
    bias: float
    standard_error: float
    by_quadrature: float
    leading_term: float


@dataclass(frozen=True)
class FittedBias:
    """Bias of ``fitted`` at equal variances."""

    runs: Count
    cells: tuple[FittedBiasCell, ...]
    exact_over_leading_at_one_million: tuple[float, ...]


@dataclass(frozen=True)
class SweepRow:
    """Estimates of one case of a sweep, and what is expected."""

    case: str
    dim: Count
    count: Count
    epsilon: float
    noise_multiplier: float
    data_norm: float
    pinned_mean: float
    pinned_deviation: float
    fitted_mean: float
    distance_mean: float
    distance_standard_error: float
    distance_predicted: float
    epsilon_predicted: float
    epsilon_certified: Interval


@dataclass(frozen=True)
class EstimatorSweep:
    """Estimates along the number of canaries, or with data in the release; each run has so many noises."""

    runs: Count
    noises: Count
    rows: tuple[SweepRow, ...]


# Page ``blindspots``.


@dataclass(frozen=True)
class MethodAlarms:
    """Quartiles of a method's ε̂ over some audits, its median lower limit, and how often it raises an alarm."""

    epsilon: Rate
    low: float
    alarms: Count
    runs: Count

    @property
    def rate(self) -> Rate:
        """How often the method raises an alarm, with limits."""
        return rate_of(self.alarms, self.runs, ALARM_CONFIDENCE)


@dataclass(frozen=True)
class AtlasCell:
    """A mechanism at one value of its parameter, audited with so many canaries.

    ``truth`` and ``unlimited`` are ranges: of the true ε, and of ε̂ of canaries without number.
    """

    value: float
    count: Count
    exact: bool
    truth: Interval
    distance: float
    runs: Count
    rate: Rate
    predicted: float
    unlimited: Interval
    canife: float | None
    methods: Mapping[str, MethodAlarms]


@dataclass(frozen=True)
class DiagnosticAlarms:
    """How often a test of the residual raises an alarm, and its median p-value."""

    p_value: float
    alarms: Count
    rate: Rate


@dataclass(frozen=True)
class Diagnosis:
    """Tests of a mechanism's residual at one value, and the rate of alarms predicted of confined canaries."""

    value: float
    tests: Mapping[str, DiagnosticAlarms]
    confined: float | None


@dataclass(frozen=True)
class StatedPrivacy:
    """The ε at δ that every mechanism of the atlas claims, and the noise that would give it."""

    epsilon: float
    delta: float
    noise_multiplier: float


@dataclass(frozen=True)
class MechanismAtlas:
    """A mechanism of the atlas: what it claims, why that is not so, and what every method sees."""

    title: str
    parameter: str
    claimed: StatedPrivacy
    dim: Count
    reason: str
    leading_order: tuple[Count, ...]
    margin: float
    cells: NonEmpty[AtlasCell]
    diagnosed: tuple[Diagnosis, ...]


# Page ``instruments``.


@dataclass(frozen=True)
class InstrumentSight:
    """In how many trainings with a fault an instrument noticed it, after so many rounds."""

    rounds: Count
    noticed: Count
    runs: Count


@dataclass(frozen=True)
class FaultInspected:
    """A fault, the instrument that is to see it, and what each instrument saw."""

    title: str
    sees: str
    reason: str
    sights: Mapping[str, tuple[InstrumentSight, ...]]


@dataclass(frozen=True)
class InstrumentsMeasured:
    """The claim of every simulated training, and what instruments see of each fault."""

    members: Count
    dim: Count
    rate: float
    noise_multiplier: float
    seen: float
    faults: Mapping[str, FaultInspected]
