"""The convergence page: how fast what the theorems bound goes to zero, beside what is proven."""

import math
import re
from collections.abc import Sequence

from canaryproof.reports.markdown import plus_minus, rounded, table
from canaryproof.reports.series import Series, series_of
from canaryproof.verify.check.results import Result, Run

_ABOUT = """\
canaryproof {version}, `canaryproof verify --level {level} --seed {seed}`. A slope is that of the logarithm of the
quantity against the logarithm of d or k: −1/2 says that it falls as the inverse square root. What is proven of slopes
holds in the limit; at finite d and k lower orders bend them, so that verdicts rest on the points and not on slopes.
Exact values and bounds are rounded to six digits here; `results.json` has all. A ± is one standard error here, two in
the pictures."""


def picture_name(identifier: str) -> str:
    """Name the picture that belongs to a result."""
    # Results may be read from a file, and none may lead out of the folder.
    return "convergence-" + re.sub(r"[^A-Za-z0-9_]+", "-", identifier) + ".svg"


def convergence(run: Run) -> str:
    """Render the convergence page.

    Parameters
    ----------
    run
        A finished run.

    Returns
    -------
    Markdown text.
    """
    parts = ["# Convergence", _ABOUT.format(version=run.version, level=run.level, seed=run.seed)]
    for result in run.results:
        if series := series_of(result):
            parts += _chapter(result, series)
    return "\n\n".join(parts) + "\n"


def _chapter(result: Result, series: Sequence[Series]) -> list[str]:
    parts = [
        f"## {result.statement[:1].upper()}{result.statement[1:]}",
        f"`{result.id}`, {result.source}",
        f"**{result.verdict}**: {result.finding}",
        f"![{_alternative(series)}]({picture_name(result.id)})",
    ]
    for row in series:
        parts += [f"### {row.title}", _values(row), _slope(row)]
        parts += [text for text in (_omitted(row), row.note) if text]
    return parts


def _alternative(series: Sequence[Series]) -> str:
    """Say in words what the picture shows."""
    panels = []
    for row in series:
        shown = {row.exact_label: row.exact, "proven bound": row.bound, "simulated": row.simulated}
        names = ", ".join(name for name, values in shown.items() if values is not None)
        span = f"{row.axis} from {_place(min(row.x))} to {_place(max(row.x))}"
        panels.append(f"{row.title}, against {span} ({names})")
    # A bracket would end the text.
    return ("On logarithmic axes: " + "; ".join(panels)).replace("[", "(").replace("]", ")")


def _place(x: float) -> str:
    return f"{x:g}" if float(f"{x:g}") == x else f"{x:,}"


def _values(row: Series) -> str:
    columns = [(row.axis, [_place(x) for x in row.x])]
    if row.exact is not None:
        columns.append((row.exact_label, [_digits(value) for value in row.exact]))
    if row.bound is not None:
        columns.append((row.bound_label or "bound", [_digits(value) for value in row.bound]))
    if row.simulated is not None:
        errors = row.standard_error or [0.0] * len(row.x)
        rows = zip(row.simulated, errors, strict=True)
        columns.append(("simulated", [plus_minus(y, e) if e else _digits(y) for y, e in rows]))
    header, cells = zip(*columns, strict=True)
    return table(header, zip(*cells, strict=True))


def _digits(value: float) -> str:
    return f"{value:.6g}"


def _slope(row: Series) -> str:
    low, high = row.slope_interval
    # As many digits as the interval's width earns.
    slope, low_end, high_end = (rounded(value, (high - low) / 4.0) for value in (row.fitted_slope, low, high))
    fitted_to = {"exact": row.exact_label, "bound": row.bound_label or "bound", "simulated": "simulated"}[row.slope_of]
    return (
        f"Fitted slope ({fitted_to}) {slope} [{low_end}, {high_end}] ({100.0 * row.confidence:.10g}%), "
        f"proven in the limit {_digits(row.proven_slope)}."
    )


def _omitted(row: Series) -> str:
    """Say which values the picture leaves out."""
    counts = {
        name: sum(not 0.0 < value < math.inf for value in values or ())
        for name, values in ((row.exact_label, row.exact), ("bound", row.bound), ("simulated", row.simulated))
    }
    named = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if not named:
        return ""
    return f"Not in the picture, as logarithmic axes show finite values above 0 only: {named}."
