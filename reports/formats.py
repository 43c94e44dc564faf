"""The formats of a report, and the files of each.

``md`` is Markdown with SVG pictures and ``results.json``; ``html`` is ``report.html`` with what papers may take from it
(see ``exports``); ``json`` is ``results.json`` with its schema; ``pdf`` is ``report.html`` printed. Without a format
there are the Markdown pages and ``report.html``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files as resources

from canaryproof.reports import canife
from canaryproof.reports.chapters import chapters
from canaryproof.reports.exports import PATTERNS, exports
from canaryproof.reports.folder import PAGES, RESULTS, as_written, figures_of, markdown_of
from canaryproof.reports.html import html
from canaryproof.reports.material import Material
from canaryproof.reports.pdf import pdf
from tests.benchmarks import performance

HTML = "report.html"


class Format(StrEnum):
    """What a report is made as."""

    HTML = "html"
    MD = "md"
    JSON = "json"
    PDF = "pdf"


@dataclass(frozen=True)
class Report:
    """A report's files.

    Attributes
    ----------
    files
        Contents by name.
    patterns
        What else such a report may have, and another run's need not.
    main
        The file that people open.
    """

    files: Mapping[str, bytes]
    patterns: tuple[str, ...]
    main: str


def report(material: Material, form: Format | None = None) -> Report:
    """Make a report.

    Parameters
    ----------
    material
        A run and its companions.
    form
        The format.

    Returns
    -------
    Its files.

    Raises
    ------
    OSError
        If it cannot be printed.
    """
    results, run = as_written(material.run)
    if form is Format.JSON:
        schema = (resources("canaryproof.reports") / "schema.json").read_bytes()
        return Report({RESULTS: results.encode(), "results.schema.json": schema}, (), RESULTS)
    material = replace(material, run=run)
    figures = figures_of(run)
    if form is Format.MD:
        pages = {**markdown_of(run, results, figures), **_companions(material)}
        return Report(pages, PAGES, "summary.md")
    made = chapters(material, figures)
    page = html(material, made)
    if form is Format.PDF:
        return Report({"report.pdf": pdf(page)}, (), "report.pdf")
    if form is Format.HTML:
        return Report({HTML: page.encode(), **exports(run, made)}, PATTERNS, HTML)
    return Report({**markdown_of(run, results, figures), HTML: page.encode()}, PAGES, HTML)


def _companions(material: Material) -> dict[str, bytes]:
    """Make what goes along with the pages: what made the run, and the pages of benchmarks that were left beside it."""
    pages: dict[str, str] = {}
    if material.environment:
        pages["environment.json"] = json.dumps(material.environment, ensure_ascii=False, indent=1) + "\n"
    if material.canife is not None:
        pages |= canife.render(material.canife)
    if material.performance is not None:
        pages |= performance.render(material.performance)
    return {name: text.encode() for name, text in pages.items()}
