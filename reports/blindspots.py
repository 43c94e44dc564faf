"""The page and the pictures of the blind-spot atlas: what each method sees of mechanisms whose ε is known."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter

from canaryproof.reports.page import Page, provenance
from canaryproof.verify.audit.blindspots.fault_map import COLUMNS, fault_map
from canaryproof.verify.audit.markup.digits import number
from canaryproof.verify.audit.markup.figures import BLACK, BLUE, GREEN, GREY, ORANGE, STYLE, mark_edge
from canaryproof.verify.audit.markup.markdown import Section, page
from canaryproof.verify.papers.check.results import Run
from canaryproof.verify.papers.records.evidence import AtlasCell, MechanismAtlas, records

# Canaries at which pictures and verdicts are.
COUNT = 1000
# A method sees what it raises an alarm of in so many audits.
SEEN = 0.9
# Tests of other things than cosines, and canaries confined to a part, by what they are called.
TESTS = {"norm": "norm", "part-norms": "part norms", "rounds": "rounds", "confined": "confined canaries"}


class Visibility(StrEnum):
    """Whether a method sees what is wrong."""

    SEES = "sees it"
    MISSES = "misses it"
    CANNOT = "cannot see it in principle"
    NOTHING = "nothing is wrong"


@dataclass(frozen=True)
class Sight:
    """The part of a fault that a method sees where the mechanism is most broken."""

    verdict: Visibility
    # Share of audits with an alarm; where nothing is wrong, the largest of any value: false ones.
    rate: float
    # Median ε̂; None for a test.
    epsilon: float | None


def atlas(run: Run) -> dict[str, MechanismAtlas]:
    """Return what a run measured of each mechanism, by name."""
    return records(run, MechanismAtlas, "blindspots.atlas.")


def rows_at(measured: MechanismAtlas, count: int = COUNT) -> list[AtlasCell]:
    """Return the cells with so many canaries, in the order of the parameter."""
    return [row for row in measured.cells if row.count == count]


def harmless(measured: MechanismAtlas) -> bool:
    """Whether the truth never exceeds what is claimed, to a few roundings."""
    return all(row.truth[0] <= measured.claimed.epsilon * (1.0 + 1e-9) for row in measured.cells)


def worst(rows: Sequence[AtlasCell]) -> int:
    """Return the place of the row with the largest truth, the last of several."""
    return max(range(len(rows)), key=lambda i: (rows[i].truth[0], i))


def sight(measured: MechanismAtlas, method: str) -> Sight | None:
    """Say what a method sees of a mechanism with 1,000 canaries; nothing if it does not apply.

    It cannot see it in principle if ε̂ in the limit of many canaries, or of CANIFE's trials, hardly exceeds the claim.
    """
    rows = [row for row in rows_at(measured) if method in row.methods]
    if not rows:
        return None

    def rate_of(row: AtlasCell) -> float:
        # The default has more audits than the other methods.
        return (row if method == "adaptive" else row.methods[method]).rate[0]

    if harmless(measured):
        row = max(rows, key=rate_of)
        return Sight(Visibility.NOTHING, rate_of(row), row.methods[method].epsilon[1])
    row = rows[worst(rows)]
    limit = row.canife if method == "canife" and row.canife is not None else row.unlimited[1]
    rate, epsilon = rate_of(row), row.methods[method].epsilon[1]
    if rate >= SEEN:
        return Sight(Visibility.SEES, rate, epsilon)
    unseen = limit <= measured.margin * measured.claimed.epsilon
    return Sight(Visibility.CANNOT if unseen else Visibility.MISSES, rate, epsilon)


def sight_of_test(measured: MechanismAtlas, test: str) -> Sight | None:
    """Say what one of ``TESTS`` sees of a mechanism; nothing if it does not apply."""
    index = worst(rows_at(measured))
    if index >= len(measured.diagnosed):
        return None
    rates = [
        row.confined if test == "confined" else row.tests[test].rate[0] if test in row.tests else None
        for row in measured.diagnosed
    ]
    known = [rate for rate in rates if rate is not None]
    if harmless(measured) and known:
        return Sight(Visibility.NOTHING, max(known), None)
    rate = rates[index]
    if rate is None and test == "confined" and known:
        rate = known[-1]
    if rate is None:
        return None
    return Sight(Visibility.SEES if rate >= SEEN else Visibility.MISSES, rate, None)


def audits_by(row: AtlasCell, method: str) -> int:
    """Return of how many audits a method's rate of alarms is: of the default there are more."""
    return (row if method == "adaptive" else row.methods[method]).runs


def methods_of(mechanisms: Mapping[str, MechanismAtlas]) -> list[str]:
    """Return the names of all methods, CANIFE last."""
    rows = (row for measured in mechanisms.values() for row in rows_at(measured))
    names = dict.fromkeys(name for row in rows for name in row.methods)
    return [*(name for name in names if name != "canife"), *(["canife"] if "canife" in names else [])]


def label(value: float) -> str:
    """Print a parameter."""
    return "∞" if math.isinf(value) else f"{value:,.6g}"


def share(rate: float) -> str:
    """Print a rate of alarms without decimals."""
    return f"{rate:.0%}"


# Colour and marker of what is drawn of a mechanism.
_DRAWN = {
    "canife": (GREY, "s"),
    "fixed-sequence": (GREEN, "^"),
    "normal-scores": (ORANGE, "D"),
    "adaptive": (BLUE, "o"),
}
# All pictures have these limits, so that they can be compared; larger values are drawn at the edge.
_LEAST, _MOST = 0.1, 200.0
# Between labels, as a ratio.
_APART = 1.75
_SIGNS = {
    Visibility.SEES: ("●", GREEN),
    Visibility.MISSES: ("○", ORANGE),
    Visibility.CANNOT: ("×", GREY),
    Visibility.NOTHING: ("", ""),
}
_TINT = 0.4


@mpl.rc_context(STYLE)
def mechanism(measured: MechanismAtlas) -> Figure:
    """Draw ε̂ of the main methods and the truth over a mechanism's parameter, of ``blindspots.atlas.*``."""
    rows = rows_at(measured)
    positions = range(len(rows))
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    axis = figure.subplots()
    claimed = measured.claimed.epsilon
    axis.plot([-0.45, len(rows) - 1], [claimed, claimed], color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    ends = [("truth", rows[-1].truth[0], BLACK), (f"claimed: {claimed:g}", claimed, GREY)]
    _truth(axis, [row.truth[0] for row in rows])
    for method, (colour, marker) in _DRAWN.items():
        shown = [(i, row.methods[method].epsilon) for i, row in enumerate(rows) if method in row.methods]
        if not shown:
            continue
        xs = [i for i, _ in shown]
        low, middle, high = ([_clipped(quartiles[j]) for _, quartiles in shown] for j in range(3))
        axis.plot(xs, middle, color=colour, marker=marker, markersize=4, linewidth=1.1, clip_on=False)
        axis.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0.0)
        ends.append((method, shown[-1][1][1], colour))
    _labels(axis, ends, len(rows) - 1)
    axis.set(
        yscale="log",
        ylim=(_LEAST, _MOST),
        xlim=(-0.45, len(rows) - 0.4),
        ylabel="ε, and ε̂: medians,\nbands from quartile to quartile",
    )
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks(list(positions), [label(row.value) for row in rows])
    axis.set_xlabel(measured.parameter)
    mark_edge(axis.yaxis, _LEAST, f"≤ {_LEAST:g}")
    return figure


def _clipped(value: float) -> float:
    return min(max(value, _LEAST), _MOST)


def _truth(axis: Axes, values: Sequence[float]) -> None:
    """Draw the truth, with arrows where it leaves the picture."""
    axis.plot(range(len(values)), [_clipped(v) for v in values], color=BLACK, linewidth=1.6, clip_on=False)
    for position, value in enumerate(values):
        if value > _MOST:
            top = "∞" if math.isinf(value) else f"{value:,.0f}"
            axis.annotate(
                top, (position, _MOST), (0, 10), textcoords="offset points", ha="center", va="bottom",
                arrowprops={"arrowstyle": "<-", "color": BLACK, "shrinkA": 0, "shrinkB": 0}, annotation_clip=False,
            )  # fmt: skip
        else:
            axis.plot(position, _clipped(value), "_", color=BLACK, markersize=9, markeredgewidth=1.6, clip_on=False)


def _labels(axis: Axes, ends: Sequence[tuple[str, float, str]], last: int) -> None:
    """Name the lines at their ends, apart from each other."""
    heights: list[float] = []
    for _, value, _ in (ordered := sorted(ends, key=lambda end: _clipped(end[1]))):
        height = _clipped(value)
        heights.append(max(height, heights[-1] * _APART) if heights else height)
    # A label that is pushed beyond the top pushes back.
    for i in range(len(heights) - 1, -1, -1):
        heights[i] = min(heights[i], _MOST / _APART ** (len(heights) - 1 - i))
    for (name, value, colour), height in zip(ordered, heights, strict=True):
        axis.annotate(
            name, (last, _clipped(value)), (last + 0.12, height), color=colour, fontsize=8.0, va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5}, annotation_clip=False,
        )  # fmt: skip


@mpl.rc_context(STYLE)
def matrix(names: Sequence[str], methods: Sequence[str], cells: Mapping[tuple[str, str], Sight | None]) -> Figure:
    """Draw who sees what: a row for each mechanism, a column for each method, those of ``TESTS`` last."""
    figure = Figure(figsize=(1.9 + 0.5 * len(methods), 1.5 + 0.27 * len(names)), layout="constrained")
    axis = figure.subplots()
    used = set()
    for row, name in enumerate(names):
        for column, method in enumerate(methods):
            cell = cells[name, method]
            if cell is None:
                axis.text(column, row, "–", ha="center", va="center", fontsize=7.0)
                continue
            used.add(cell.verdict)
            sign, colour = _SIGNS[cell.verdict]
            if colour:
                box = Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, facecolor=colour, alpha=_TINT, linewidth=0.0)
                axis.add_patch(box).set_clip_on(False)
            axis.text(column, row, f"{sign} {share(cell.rate)}".strip(), ha="center", va="center", fontsize=7.0)
    columns = sum(method not in TESTS for method in methods)
    axis.axvline(columns - 0.5, color=GREY, linewidth=0.8)
    axis.set(xlim=(-0.5, len(methods) - 0.5), ylim=(len(names) - 0.5, -0.5))
    axis.set_xticks(
        range(len(methods)), [TESTS.get(m, m) for m in methods], rotation=40, ha="left", rotation_mode="anchor"
    )
    axis.set_yticks(range(len(names)), names)
    axis.xaxis.tick_top()
    axis.tick_params(length=0, labelsize=8.0)
    axis.spines[:].set_visible(False)
    handles: list[Artist] = [
        Rectangle((0, 0), 1, 1, facecolor=_SIGNS[v][1], alpha=_TINT, label=f"{_SIGNS[v][0]} {v}")
        for v in (Visibility.SEES, Visibility.MISSES, Visibility.CANNOT)
        if v in used
    ]
    if Visibility.NOTHING in used:
        words = "nothing is wrong: false alarms"
        handles.append(Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=GREY, linewidth=0.5, label=words))
    if None in cells.values():
        handles.append(Line2D([], [], linestyle="", marker="_", color=BLACK, label="does not apply"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


MATRIX = "blindspots-matrix.svg"
_TITLE = "What a low ε̂ does not mean: the blind-spot atlas"
_ABOUT = """\
{provenance}. Each mechanism claims ε =
{epsilon:g} at δ = {delta:g} (noise multiplier {sigma:.4g}, d = {dim:,}), and does something else, mostly more so from
the left to the right. A method raises an alarm if its 95% lower limit is above what is claimed. All of it is one
setting. In others the same faults are seen from other values on, which `canaryproof audit` prints for yours."""
_READING = """\
In the matrix, {count:,} canaries meet each mechanism where its ε is largest. A method *sees it* if it raises an alarm
in at least {seen:.0%} of audits; else it *cannot see it in principle* if ever more canaries in ever more dimensions
would not make ε̂ exceed the claim by more than {margin:.0%}, and *misses it* if they would. The number is the share of
audits with an alarm. Honest mechanisms have false alarms only. The columns right of the line use more than the cosines:
tests at level 5% of the residual's norm, of its norms on known parts, and of rounds against each other, for data that
are short; and canaries that are confined to the broken part, with the predicted rate."""
_WHY = """\
Random canaries are rotation-invariant, so only the residual's norm affects their cosines with one released vector. A
fault that leaves ‖ρ‖ unchanged leaves every estimate and every bound unchanged, whatever the true ε
(`proofs_check/blind_spots.md`)."""
_MAPPED = """\
A cell has the number of rounds, or of replayed steps, after which the column notices the fault in nine of ten simulated
trainings, each test at level 1e-6. A *watch* takes every step of a training, and *residual*, *sampling record* and
*replay* look at one thing each. The *audits* are an attacker's at known rounds. The documentation's map of faults has
these rows and others."""
_LEADING = "Scores have exactly their joint law{exact}, and the leading order of it where k is {leading}."


def picture_name(name: str) -> str:
    """Name the picture of a mechanism."""
    return f"blindspots-{name}.svg"


def figures(run: Run) -> dict[str, Figure]:
    """Draw the matrix and a picture of each mechanism, by file name."""
    mechanisms = atlas(run)
    if not mechanisms:
        return {}
    columns, cells = _cells(mechanisms)
    drawn = {picture_name(name): mechanism(measured) for name, measured in mechanisms.items()}
    return {MATRIX: matrix(list(mechanisms), columns, cells), **drawn}


def text(run: Run) -> str:
    """Render the page of a run of the suite ``blindspots``; nothing if no check of the atlas was run."""
    mechanisms = atlas(run)
    if not mechanisms:
        return ""
    first = next(iter(mechanisms.values()))
    claimed = first.claimed
    about = _ABOUT.format(
        provenance=provenance(run, "blindspots"), epsilon=claimed.epsilon, delta=claimed.delta,
        sigma=claimed.noise_multiplier, dim=first.dim,
    )  # fmt: skip
    reading = _READING.format(count=COUNT, seen=SEEN, margin=first.margin - 1.0)
    columns, cells = _cells(mechanisms)
    mapped = [name for name in mechanisms if name in fault_map()]
    sections = [_matrix(mechanisms, columns, cells), *([_instruments(mapped)] if mapped else [])]
    sections += [_mechanism(*pair) for pair in mechanisms.items()]
    return page(_TITLE, _headline(columns[0], cells, mapped), (reading, about, _WHY, _leading(first)), sections)


def _headline(default: str, cells: Mapping[tuple[str, str], Sight | None], mapped: Sequence[str]) -> str:
    """Say what the default estimator sees, and what the instruments of a self-test do."""
    of = Counter(cell.verdict for (_, method), cell in cells.items() if method == default and cell is not None)
    faults = of.total() - of[Visibility.NOTHING]
    return (
        f"With {COUNT:,} canaries the default estimator sees {of[Visibility.SEES]} of {faults} faults, misses "
        f"{of[Visibility.MISSES]} and cannot see {of[Visibility.CANNOT]} in principle. An auditor's instruments notice "
        f"{sum(fault_map()[name].instrument is not None for name in mapped)} of {len(mapped)} in the map of faults."
    )


def _leading(measured: MechanismAtlas) -> str:
    leading = measured.leading_order
    exact = sorted({row.count for row in measured.cells} - set(leading))
    of_exact = f" where k is {_listed(exact)}" if exact else ""
    return _LEADING.format(exact=of_exact, leading=_listed(leading)) if leading else ""


def _listed(counts: Sequence[int]) -> str:
    return " or ".join(f"{count:,}" for count in counts)


def _cells(mechanisms: Mapping[str, MechanismAtlas]) -> tuple[list[str], dict[tuple[str, str], Sight | None]]:
    methods = methods_of(mechanisms)
    cells = {(name, method): sight(measured, method) for name, measured in mechanisms.items() for method in methods}
    cells |= {(name, test): sight_of_test(measured, test) for name, measured in mechanisms.items() for test in TESTS}
    return [*methods, *TESTS], cells


def _instruments(names: Sequence[str]) -> Section:
    """Return the rows of the map of faults that mechanisms have."""
    faults = [fault_map()[name] for name in names]
    rows = tuple(
        (f"`{fault.name}`: {fault.title}", *(str(fault.rounds.get(column, "–")) for column in COLUMNS), fault.reason)
        for fault in faults
    )
    return Section("Which instrument notices it", ("fault", *COLUMNS, "why nothing does"), rows, _MAPPED)


def _matrix(
    mechanisms: Mapping[str, MechanismAtlas], columns: list[str], cells: Mapping[tuple[str, str], Sight | None]
) -> Section:
    sees, misses, cannot = (
        sum(cell is not None and cell.verdict is v for cell in cells.values())
        for v in (Visibility.SEES, Visibility.MISSES, Visibility.CANNOT)
    )
    default = [cell.verdict for (_, method), cell in cells.items() if method == columns[0] and cell is not None]
    faults = len(default) - default.count(Visibility.NOTHING)
    alternative = (
        f"Matrix of {len(mechanisms)} mechanisms and {len(columns)} methods: of the cells, {sees} see what "
        f"is wrong, {misses} miss it and {cannot} cannot see it in principle; "
        f"{columns[0]} sees {default.count(Visibility.SEES)} of {faults} faults"
    )
    signs = ", ".join(f"{sign} {verdict}" for verdict, (sign, _) in _SIGNS.items() if sign)
    rows = tuple(
        (f"`{name}`", _largest(measured), *(_cell(cells[name, column]) for column in columns))
        for name, measured in mechanisms.items()
    )
    note = (
        f"Of each cell: {signs}; the share of audits with an alarm, and the median ε̂, to be compared with "
        f"the largest ε. At the mechanisms' other values it stands below. Shares are of so many audits or more: "
        f"{_audits(mechanisms)}."
    )
    header = ("mechanism", "largest ε", *(f"`{TESTS.get(column, column)}`" for column in columns))
    return Section("Who sees what", header, rows, note, MATRIX, alternative)


def _audits(mechanisms: Mapping[str, MechanismAtlas]) -> str:
    """Say of how many audits the shares of the matrix are."""
    names: dict[int, list[str]] = {}
    for method in methods_of(mechanisms):
        rows = (row for measured in mechanisms.values() for row in rows_at(measured))
        counts = [audits_by(row, method) for row in rows if method in row.methods]
        names.setdefault(min(counts), []).append(f"`{method}`")
    return "; ".join(f"{count:,} by {', '.join(named)}" for count, named in names.items())


def _largest(measured: MechanismAtlas) -> str:
    rows = rows_at(measured)
    return number(rows[worst(rows)].truth[0])


def _cell(cell: Sight | None) -> str:
    if cell is None:
        return "–"
    epsilon = "" if cell.epsilon is None else f"; {number(cell.epsilon)}"
    return f"{_SIGNS[cell.verdict][0]} {share(cell.rate)}{epsilon}".strip()


_SHOWN = ("adaptive", "fixed-sequence", "normal-scores", "one-run-gaussian", "canife")


def _mechanism(name: str, measured: MechanismAtlas) -> Section:
    rows = rows_at(measured)
    others = sorted({row.count for row in measured.cells})
    shown = [method for method in _SHOWN if any(method in row.methods for row in rows)]
    lines = []
    for row in rows:
        alarms = []
        for count in others:
            (cell,) = (other for other in rows_at(measured, count) if other.value == row.value)
            rate, low, high = cell.rate
            alarms.append(f"{share(rate)} [{share(low)}, {share(high)}]; {share(cell.predicted)}")
        epsilons = [number(row.methods[method].epsilon[1]) if method in row.methods else "–" for method in shown]
        lines.append((label(row.value), number(row.truth[1]), *epsilons, number(row.unlimited[0]), *alarms))
    header = (
        measured.parameter,
        "true ε",
        *(f"`{method}`" for method in shown),
        "unlimited canaries",
        *(f"alarms, k = {count:,}; predicted" for count in others),
    )
    note = (
        f"Median ε̂ and bounds at k = {COUNT:,}, then ε̂ of canaries without number, and how often `adaptive` raises an "
        f"alarm, with {0.999:.1%} limits, and the rate predicted without a canary. The truth where it is largest: "
        f"{measured.reason}."
    )
    alternative = f"ε̂ against the truth: {measured.title}; along {measured.parameter}; {_summary(measured)}"
    title = f"`{name}`: {measured.title}"
    return Section(title, header, tuple(lines), note, picture_name(name), alternative)


def _summary(measured: MechanismAtlas) -> str:
    cell = sight(measured, "adaptive")
    if cell is None:
        return ""
    if harmless(measured):
        alarms = share(cell.rate)
        return f"the truth is nowhere above what is claimed, and false alarms come in up to {alarms} of audits"
    epsilon = "" if cell.epsilon is None else f" with ε̂ {number(cell.epsilon)}"
    truth, alarms = _largest(measured), share(cell.rate)
    return f"where the true ε is {truth}, adaptive {cell.verdict}{epsilon} and alarms in {alarms}"


PAGE = Page(
    "blindspots",
    "Blind spots",
    _TITLE,
    text,
    file="blindspots.md",
    about="mechanisms whose ε is known, and which of their faults each method sees",
    figures=figures,
    pictures=(picture_name("*"),),
)
