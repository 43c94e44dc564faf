"""The page of ``canaryproof convergence``: Markdown with pictures, HTML with pictures inline, CSV and JSON."""

import itertools
import json
import math
from collections.abc import Iterator

from matplotlib.figure import Figure

from canaryproof.reports.convergence import picture, points_table
from canaryproof.reports.html import chapter_body, environment
from canaryproof.reports.pages import Chapter
from canaryproof.verify.audit.markup.digits import interval, number, percent, plus_minus
from canaryproof.verify.audit.markup.figures import svg
from canaryproof.verify.audit.markup.markdown import Section, page, table
from canaryproof.verify.papers.records.convergence_record import ConvergenceSetting
from canaryproof.verify.papers.records.convergence_report import MEANING, ConvergenceReport, tables

NAME = "convergence_report"
_ACCURACY, _ORDERS = f"{NAME}-accuracy.svg", f"{NAME}-orders.svg"
# All files of a report, each of them written every time.
FILES = (*(f"{NAME}.{form}" for form in ("md", "html", "csv", "json")), _ACCURACY, _ORDERS)
_TITLE = "Convergence: how near ε̂ is to ε"
_NOTES = (
    "Within: the share of ε by which 95 of 100 runs are off at most. Covers: how often the 95% interval has ε in it. "
    "RMSE is the root mean square error; what √k times it tends to for k → ∞ and k³ = o(d²) follows from Theorem 3.3 "
    "(`proofs_check.consistency`). The runs are of Algorithm 1 and drawn from the exact joint law of their cosines.",
    "The least k, and the d from which on it holds, rounded up to two digits; a dash where there is none. They are "
    "predicted by the limit law of a run's moments, with the moments' exact means: the curves of the picture, which "
    "the measured points lie on.",
    "Distance: the certified total variation distance of √d times a canary's cosine from N(0, 1), if the canary took "
    "no part, and what is proven of it for all d. Tail: by how much the exact tail beyond the score at which the "
    "privacy loss is ε differs from the normal one. Correlation: of two canaries' inner products with the release. "
    "d moves ε̂: by how much the canaries' own length in the release displaces it. Orthonormal: what orthonormal "
    "canaries do to the error of `pinned`, to leading order, if all others are unobserved.",
    "A theorem's slope holds in the limit. At finite d and k lower orders bend the points, and an estimator that tests "
    "the variance first, or has a kink, falls faster or slower. The interval is of chance where points are simulated; "
    "where they are exact it measures how far they are from a line.",
)


def markdown(report: ConvergenceReport) -> str:
    """Render the report as Markdown, of which the answer comes first."""
    pictures = (_ACCURACY, "", "", _ORDERS)
    alternatives = (
        "Error that 95 of 100 runs do not exceed, as a share of ε: left against the number of canaries, right against "
        "the dimension; predicted curves with the measured points, and lines at the accuracies",
        "",
        "",
        "On logarithmic axes, the quantities that the theorems bound against d or k, with the theorem's leading terms",
    )
    sections = [
        Section(title, tuple(header), tuple(map(tuple, rows)), note, name, alternative)
        for (title, header, rows), note, name, alternative in zip(
            tables(report), _NOTES, pictures, alternatives, strict=True
        )
    ]
    return page(_TITLE, report.answer(), (MEANING,), sections, "\n\n".join(_details(report)))


def _table_2(report: ConvergenceReport) -> Iterator[str]:
    """Compare the estimates with the paper's, where it prints some for these settings."""
    settings = [setting for setting in report.settings if setting.printed is not None]
    if settings:
        names = [f"here by {each.estimator}" for each in settings[0].estimators]
        yield "## Table 2 of the paper"
        yield table(("ε", "printed, of 50 runs", *names), map(_printed_row, settings))
        yield "Mean and standard deviation of ε̂. The printed ones are those of `pinned`, the first version's estimator."


def _printed_row(setting: ConvergenceSetting) -> list[str]:
    mean, deviation = setting.printed or (0.0, 0.0)
    own = [plus_minus(setting.epsilon + each.bias, each.deviation) for each in setting.estimators]
    return [number(setting.epsilon), f"{mean:g} ± {deviation:g}", *own]


def _details(report: ConvergenceReport) -> Iterator[str]:
    yield from _table_2(report)
    yield "## Distances from normal, certified"
    yield table(
        ("d", "total variation", "proven at most", "Kolmogorov", "proven at most"),
        [
            (
                f"{law.dim:,}",
                interval(law.total_variation),
                f"{law.total_variation_bound:.6g}",
                interval(law.kolmogorov),
                f"{law.kolmogorov_bound:.6g}",
            )
            for law in report.distances
        ],
    )
    for row in report.orders:
        yield f"## Points: {row.title}"
        yield points_table(row)
    yield "## How it was made"
    yield (
        f"canaryproof {report.version}, `{_command(report)}`: {report.replicates:,} runs for each d and k, so that a "
        f"coverage near 95% is right to about ± {percent(round(2.0 * math.sqrt(0.05 * 0.95 / report.replicates), 4))}. "
        f"`{NAME}.json` has all numbers, `{NAME}.csv` those of the estimators."
    )


def _command(report: ConvergenceReport) -> str:
    """Return the command that makes the report again."""
    asked: dict[str, list[float | str]] = {
        "dim": [setting.dim for setting in report.settings],
        "canaries": [setting.count for setting in report.settings],
        "epsilon": [setting.epsilon for setting in report.settings],
        "estimator": [errors.estimator for errors in report.settings[0].estimators],
    }
    options = [f"--{name} {value}" for name, values in asked.items() for value in dict.fromkeys(values)]
    options += [f"--delta {report.delta!r}", f"--replicates {report.replicates}", f"--seed {report.seed}"]
    return " ".join(["canaryproof convergence", *options, "--out RESULTS"])


def figures(report: ConvergenceReport) -> dict[str, Figure]:
    """Draw the pictures of the page, by file name."""
    return {_ACCURACY: report.plot(), _ORDERS: picture(report.quantities)}


def files(report: ConvergenceReport) -> dict[str, bytes]:
    """Make all files of the report, by name."""
    text, drawn = markdown(report), figures(report)
    styles: dict[str, str] = {}
    body = chapter_body(Chapter(NAME, "Convergence", _TITLE, text, drawn), {}, styles, itertools.count())
    html = environment().get_template("page.html.jinja").render(
        title=_TITLE, body=body, styles=styles, version=report.version
    )  # fmt: skip
    made = {
        "md": text,
        "html": html,
        "csv": report.to_frame().to_csv(index=False),
        "json": json.dumps(report.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n",
    }
    pictures = {name: svg(figure).encode() for name, figure in drawn.items()}
    return {f"{NAME}.{form}": contents.encode() for form, contents in made.items()} | pictures
