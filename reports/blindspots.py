"""The page of the blind-spot atlas: what each method sees of mechanisms whose ε is known."""

import math
from collections.abc import Mapping

from matplotlib.figure import Figure

from canaryproof.reports import blindspots_pictures
from canaryproof.reports.blindspots_sight import (
    BESIDE,
    COUNT,
    SEEN,
    Evidence,
    Sight,
    Verdict,
    atlas,
    audits_by,
    beside,
    harmless,
    label,
    methods_of,
    rows_at,
    share,
    sight,
    worst,
)
from canaryproof.reports.section import Section, page
from canaryproof.verify.results import Run

MATRIX = "blindspots-matrix.svg"
_ABOUT = """\
canaryproof {version}, `canaryproof verify blindspots --level {level} --seed {seed}`. Each mechanism claims ε =
{epsilon:g} at δ = {delta:g} (noise multiplier {sigma:.4g}, d = {dim:,}), and does something else, mostly more so from
the left to the right. A method raises an alarm if its 95% lower limit is above what is claimed. All of it is one
setting: at others the same faults are seen from other values on, which `canaryproof audit` says for yours."""
_READING = """\
In the matrix, {count:,} canaries meet each mechanism where its ε is largest. A method *sees it* if it raises an alarm
in at least {seen:.0%} of audits; else it *cannot see it in principle* if ever more canaries in ever more dimensions
would not make ε̂ exceed the claim by more than {margin:.0%}, and *misses it* if they would. The number is the share of
audits with an alarm. Honest mechanisms have false alarms only. Right of the line stands what looks beside the cosines:
tests of the residual's norm, of its norms on parts that are known, and of rounds against each other, at level 5%, for
data that are short; and canaries that are confined to the part which is broken, as foretold."""
_WHY = """\
One vector is released: turning the space turns canaries into canaries, so that nothing but the residual's norm reaches
their cosines. A fault that leaves ‖ρ‖ as it is leaves every estimate and every bound as it is, whatever the true ε
(`proofs_check/blind_spots.md`)."""
_LEADING = "Scores have exactly their joint law{exact}, and the leading order of it where k is {leading}."


def picture_name(mechanism: str) -> str:
    """Name the picture of a mechanism."""
    return f"blindspots-{mechanism}.svg"


def figures(run: Run) -> dict[str, Figure]:
    """Draw the matrix and a picture of each mechanism, by file name."""
    found = atlas(run)
    if not found:
        return {}
    columns, cells = _cells(found)
    drawn = {picture_name(name): blindspots_pictures.mechanism(one) for name, one in found.items()}
    return {MATRIX: blindspots_pictures.matrix(list(found), columns, cells), **drawn}


def blindspots(run: Run) -> str:
    """Render the page.

    Parameters
    ----------
    run
        A finished run of the suite ``blindspots``, or of some of its checks of the atlas.

    Returns
    -------
    Markdown text; nothing if none of them was run.
    """
    found = atlas(run)
    if not found:
        return ""
    first = next(iter(found.values()))
    claimed = first["claimed"]
    about = _ABOUT.format(
        version=run.version, level=run.level, seed=run.seed, epsilon=claimed["epsilon"], delta=claimed["delta"],
        sigma=claimed["noise_multiplier"], dim=first["dim"],
    )  # fmt: skip
    reading = _READING.format(count=COUNT, seen=SEEN, margin=first["margin"] - 1.0)
    columns, cells = _cells(found)
    sections = [_matrix(found, columns, cells), *(_mechanism(name, one) for name, one in found.items())]
    return page("What a low ε̂ does not mean: the blind-spot atlas", (about, _WHY, reading, _leading(first)), sections)


def _leading(found: Evidence) -> str:
    leading = found["leading_order"]
    exact = sorted({row["count"] for row in found["cells"]} - set(leading))
    of_exact = f" where k is {_listed(exact)}" if exact else ""
    return _LEADING.format(exact=of_exact, leading=_listed(leading)) if leading else ""


def _listed(counts: list[int]) -> str:
    return " or ".join(f"{count:,}" for count in counts)


def _cells(found: Mapping[str, Evidence]) -> tuple[list[str], dict[tuple[str, str], Sight | None]]:
    methods = methods_of(found)
    cells = {(name, method): sight(one, method) for name, one in found.items() for method in methods}
    cells |= {(name, test): beside(one, test) for name, one in found.items() for test in BESIDE}
    return [*methods, *BESIDE], cells


def _matrix(
    found: Mapping[str, Evidence], columns: list[str], cells: Mapping[tuple[str, str], Sight | None]
) -> Section:
    counts = {v: sum(one is not None and one.verdict is v for one in cells.values()) for v in Verdict}
    default = [one.verdict for (_, method), one in cells.items() if method == columns[0] and one is not None]
    alternative = (
        f"Matrix of {len(found)} mechanisms and {len(columns)} methods: of the cells, {counts[Verdict.SEES]} see what "
        f"is wrong, {counts[Verdict.MISSES]} miss it and {counts[Verdict.CANNOT]} cannot see it in principle; "
        f"{columns[0]} sees {default.count(Verdict.SEES)} of {sum(v is not Verdict.NOTHING for v in default)} faults"
    )
    rows = tuple(
        (f"`{name}`", _largest(one), *(_cell(cells[name, column]) for column in columns)) for name, one in found.items()
    )
    note = (
        "Of each cell: the verdict, the share of audits with an alarm, and the median ε̂, which is to be read beside "
        f"the largest ε. At the mechanisms' other values it stands below. Shares are of so many audits or more: "
        f"{_audits(found)}."
    )
    header = ("mechanism", "largest ε", *(f"`{BESIDE.get(column, column)}`" for column in columns))
    return Section("Who sees what", header, rows, note, MATRIX, alternative)


def _audits(found: Mapping[str, Evidence]) -> str:
    """Say of how many audits the shares of the matrix are."""
    names: dict[int, list[str]] = {}
    for method in methods_of(found):
        counts = [audits_by(row, method) for one in found.values() for row in rows_at(one) if method in row["methods"]]
        names.setdefault(min(counts), []).append(f"`{method}`")
    return "; ".join(f"{count:,} by {', '.join(named)}" for count, named in names.items())


def _largest(found: Evidence) -> str:
    rows = rows_at(found)
    return _number(rows[worst(rows)]["truth"][0])


def _cell(one: Sight | None) -> str:
    if one is None:
        return "–"
    epsilon = "" if one.epsilon is None else f"; ε̂ {_number(one.epsilon)}"
    return f"{one.verdict}: {share(one.rate)}{epsilon}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


_SHOWN = ("adaptive", "fixed-sequence", "normal-scores", "one-run-gaussian", "canife")


def _mechanism(name: str, found: Evidence) -> Section:
    rows = rows_at(found)
    others = sorted({row["count"] for row in found["cells"]})
    shown = [method for method in _SHOWN if any(method in row["methods"] for row in rows)]
    lines = []
    for row in rows:
        alarms = []
        for count in others:
            (cell,) = (one for one in rows_at(found, count) if one["value"] == row["value"])
            rate, low, high = cell["rate"]
            alarms.append(f"{share(rate)} [{share(low)}, {share(high)}]; {share(cell['predicted'])}")
        epsilons = [
            _number(row["methods"][method]["epsilon"][1]) if method in row["methods"] else "–" for method in shown
        ]
        lines.append((label(row["value"]), _number(row["truth"][1]), *epsilons, _number(row["unlimited"][0]), *alarms))
    header = (
        found["parameter"],
        "true ε",
        *(f"`{method}`" for method in shown),
        "unlimited canaries",
        *(f"alarms, k = {count:,}; foretold" for count in others),
    )
    note = (
        f"Median ε̂ and bounds at k = {COUNT:,}, then ε̂ of canaries without number, and how often `adaptive` raises an "
        f"alarm, with {0.999:.1%} limits, beside what is foretold without a canary. The truth where it is largest: "
        f"{found['reason']}."
    )
    alternative = f"ε̂ against the truth: {found['title']}; along {found['parameter']}; {_summary(found)}"
    title = f"`{name}`: {found['title']}"
    return Section(title, header, tuple(lines), note, picture_name(name), alternative)


def _summary(found: Evidence) -> str:
    one = sight(found, "adaptive")
    if one is None:
        return ""
    if harmless(found):
        return f"the truth is nowhere above what is claimed, and false alarms come in up to {share(one.rate)} of audits"
    epsilon = "" if one.epsilon is None else f" with ε̂ {_number(one.epsilon)}"
    return f"where the true ε is {_largest(found)}, adaptive {one.verdict}{epsilon} and alarms in {share(one.rate)}"
