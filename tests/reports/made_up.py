"""Runs of made-up results, for the tests of the report."""

from canaryproof.reports.html import html
from canaryproof.reports.pages import chapters, figures_of
from canaryproof.verify.papers.check.results import Design, Effort, Result, Run, Subject, Verdict
from canaryproof.verify.papers.records.report_input import Material

HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'> & \"quoted\" 'too'"
SERIES = {
    "title": "a distance",
    "axis": "d",
    "quantity": "distance",
    "x": [100, 1000, 10000],
    "exact": [0.01, 0.001, 0.0001],
    "bound": [0.02, 0.002, 0.0002],
    "bound_label": "2/d",
    "simulated": [0.011, 0.0011, 0.00011],
    "standard_error": [0.001, 0.0001, 0.00001],
    "fitted_slope": -1.0,
    "slope_interval": [-1.1, -0.9],
    "slope_of": "exact",
    "confidence": 0.95,
    "proven_slope": -1.0,
}
DESIGN = Design("nothing to find", 1e-7, "something", 0.95, 1000)


def claim(name, verdict=Verdict.CONFIRMED, suite="claims", statement="", design=None, **evidence):
    """A result of a document's statement, or of ours if its name says so."""
    subject = Subject.IMPLEMENTATION if name.startswith("ours.") else Subject.DOCUMENT
    words = statement or f"the statement of {name}, by `code`"
    return Result(name, suite, subject, f"place of {name}", words, verdict, f"found of {name}", evidence, design)


def page_of(*results, **companions):
    """The HTML of a report on some results."""
    run = Run("0", Effort.QUICK, 0, results)
    material = Material(run, **companions)
    return html(material, chapters(material, figures_of(run)))


def results():
    """One of each: documents, suites, verdicts, tests, tables, a picture."""
    rows = [{"d": 10**i, "enclosure": [1.0, 1.0000000000000002], "ε": 1.5 * i} for i in range(1, 6)]
    return (
        claim("final.table2", Verdict.QUALIFIED, "algorithm1", design=DESIGN, rows=rows),
        claim("final.footnote", Verdict.REFUTED, "theorems", "Theorem 3.3 holds for n = o(d)", kind="false"),
        claim("final.line", Verdict.REFUTED, "theorems", kind="wrong term"),
        claim("final.tight", Verdict.REFUTED, "claims", "the estimate of ε is tight"),
        claim("v1.rate", Verdict.INCONCLUSIVE, design=DESIGN, share=0.25, ends=[0.2, 0.3]),
        claim("canife.figure8", Verdict.NEEDS_DATA, data="CelebA", command="canaryproof verify claims --data DIR"),
        claim("canife.cap", text=HOSTILE, values=list(range(100))),
        claim("ours.rate", suite="theorems", convergence=[SERIES]),
    )


def legend_of(figure):
    """The marks in a picture's legend, by what they say."""
    (legend,) = figure.legends
    return {text.get_text(): mark for text, mark in zip(legend.texts, legend.legend_handles, strict=True)}
