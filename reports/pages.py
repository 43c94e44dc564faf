"""A run's pages and pictures, as files of its folder and as chapters of its report."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from canaryproof.reports import (
    accuracy,
    blindspots,
    bounds,
    canife,
    claims,
    convergence,
    estimators,
    instruments,
    pitfalls,
    proofs,
    summary,
    training,
)
from canaryproof.reports.page import Page
from canaryproof.verify.audit.markup.figures import svg
from canaryproof.verify.audit.markup.markdown import without_tags
from canaryproof.verify.papers.check.results import Result, Run
from canaryproof.verify.papers.records.report_input import Material

RESULTS = "results.json"
# In the order in which they are read. Chapters on trainings come between the two groups.
_MEASURED = (convergence.PAGE, estimators.PAGE, pitfalls.PAGE, bounds.PAGE, blindspots.PAGE, instruments.PAGE)
_PROVEN = (accuracy.PAGE, proofs.PAGE)
_PAGES = (*_MEASURED, *_PROVEN)
# Files that one run's folder may hold besides the summary, and another's may lack.
FILES = (
    "claims-*.md",
    *(page.file for page in _PAGES if page.file),
    *(name for page in _PAGES for name in page.pictures),
)


def as_written(run: Run) -> tuple[str, Run]:
    """Return the text of ``results.json`` and the run as it reads back from there.

    All pages come from what the file says, so that they can be made from it again: numpy's floats print otherwise.
    """
    results = json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return results, Run.from_json(json.loads(results))


def render(run: Run) -> dict[str, bytes]:
    """Make all Markdown of a run: ``results.json``, ``summary.md``, and pages and pictures for which it has numbers."""
    results, run = as_written(run)
    return markdown_of(run, results, figures_of(run))


def markdown_of(run: Run, results: str, pictures: Mapping[str, Figure]) -> dict[str, bytes]:
    """Make the files of ``render`` from what ``as_written`` and ``figures_of`` returned."""
    pages = {page.file: made for page in _PAGES if page.file and (made := page.text(run))}
    about = {page.file: page.about for page in _PAGES if page.file in pages}
    captions = {name: words for page in _PAGES for name, words in page.captions.items() if name in pictures}
    files = {
        RESULTS: results,
        "summary.md": summary.text(run, dict(sorted(about.items())), dict(sorted(captions.items()))),
        **{claims.page_name(name): claims.text(run, name) for name in claims.documents(run)},
        **pages,
        **{name: svg(figure) for name, figure in pictures.items()},
    }
    return {name: (without_tags(text) if name.endswith(".md") else text).encode() for name, text in files.items()}


def figures_of(run: Run) -> dict[str, Figure]:
    """Draw the pictures for which a run has numbers, by file name."""
    return {name: figure for page in _PAGES for name, figure in page.figures(run).items()}


def pictures_of(result: Result) -> list[str]:
    """Return the names of the pictures that show a result."""
    return [name for page in _PAGES if (name := page.picture_of(result))]


@dataclass(frozen=True)
class Chapter:
    """A chapter: its name in addresses and in the navigation, and Markdown that names its pictures by file."""

    name: str
    label: str
    title: str
    text: str
    figures: Mapping[str, Figure]


def chapters(material: Material, figures: Mapping[str, Figure]) -> list[Chapter]:
    """Make all chapters for which there are numbers, in the order in which they are read."""
    return [chapter for chapter in _all(material, figures) if chapter.text]


def _all(material: Material, figures: Mapping[str, Figure]) -> Iterator[Chapter]:
    run = material.run

    def chapter(page: Page) -> Chapter:
        text = (page.shortened or page.text)(run)
        shown = {name: figure for name, figure in figures.items() if f"]({name})" in text}
        return Chapter(page.chapter, page.label, page.title, text, shown)

    yield from map(chapter, _MEASURED)
    if material.canife is not None:
        benchmark = material.canife
        yield Chapter("canife", "CANIFE", canife.TITLE, canife.text(benchmark), canife.figures(benchmark))
    for path, trained in material.trainings.items():
        folder = re.sub(r"\W+", "-", path)
        pictures = training.figures(trained.record)
        drawn = {f"{folder}-{name}": figure for name, figure in pictures.items()}
        text = training.text(trained.record, trained.timings)
        for name in pictures:
            text = text.replace(f"]({name})", f"]({folder}-{name})")
        title = f"Training: {trained.record.title or trained.record.name}"
        yield Chapter(f"training-{folder}", f"Training: {trained.record.name}", title, text, drawn)
    yield from map(chapter, _PROVEN)
