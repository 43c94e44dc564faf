"""The report's chapters: the pages of a run and of what lies beside it, in the order in which they are read."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from canaryproof.reports import canife, training
from canaryproof.reports.estimators import estimators
from canaryproof.reports.folder import pages_of
from canaryproof.reports.material import Material
from canaryproof.reports.proofs import overview
from canaryproof.reports.summary import SHOWN, designs
from tests.benchmarks import performance

_ESTIMATORS = ("dimension-sweep.svg", "estimator-errors.svg")


@dataclass(frozen=True)
class Chapter:
    """A chapter.

    Attributes
    ----------
    name
        Its name in addresses and file names.
    title
        Its title.
    text
        Markdown, perhaps with a title of its own; pictures are named by file.
    figures
        The pictures that the text names, by file name.
    """

    name: str
    title: str
    text: str
    figures: Mapping[str, Figure]


def chapters(material: Material, figures: Mapping[str, Figure]) -> list[Chapter]:
    """Make all chapters for which there are numbers.

    Parameters
    ----------
    material
        A run and its companions.
    figures
        What ``figures_of`` drew of the run.

    Returns
    -------
    The chapters.
    """
    return [chapter for chapter in _all(material, figures) if chapter.text]


def _all(material: Material, figures: Mapping[str, Figure]) -> Iterator[Chapter]:
    run = material.run
    pages = pages_of(run)
    page = {
        "convergence.md": ("convergence", "Convergence: Theorems 3.1 to 3.3"),
        "pitfalls.md": ("bounds", "Lower bounds and their coverage"),
        "blindspots.md": ("blindspots", "What a low ε̂ does not mean: the blind-spot atlas"),
        "accuracy.md": ("accuracy", "Accuracy of the kernels"),
    }

    def of_page(file: str) -> Chapter:
        text = pages.get(file, "")
        return Chapter(*page[file], text, {name: figure for name, figure in figures.items() if f"]({name})" in text})

    yield of_page("convergence.md")
    shown = {name: figures[name] for name in _ESTIMATORS if name in figures}
    parts = [*(f"![{SHOWN[name]}]({name})" for name in shown), *estimators(run)]
    yield Chapter("estimators", "Estimators: error, bias, deviation", "\n\n".join(parts), shown)
    yield of_page("pitfalls.md")
    yield of_page("blindspots.md")
    if material.canife is not None:
        found = material.canife
        yield Chapter("canife", "CANIFE beside Algorithms 2 and 3", canife.text(found), canife.figures(found))
    for place, kept in material.trainings.items():
        folder = re.sub(r"\W+", "-", place)
        figures_of = training.figures(kept.document)
        drawn = {f"{folder}-{name}": figure for name, figure in figures_of.items()}
        text = training.text(kept.document, kept.timings)
        for name in figures_of:
            text = text.replace(f"]({name})", f"]({folder}-{name})")
        title = f"Training: {kept.document['title'] or kept.document['name']}"
        yield Chapter(f"training-{folder}", title, text, drawn)
    if material.performance is not None:
        measured = material.performance
        yield Chapter("cost", "Cost against d and k", performance.text(measured), performance.figures(measured))
    yield of_page("accuracy.md")
    lines = "\n\n".join(overview(run)) if any(result.is_line for result in run.results) else ""
    yield Chapter("proofs", "The proofs, line by line", lines, {})
    yield Chapter("chance", "What depends on chance", "\n\n".join(designs(run)), {})
