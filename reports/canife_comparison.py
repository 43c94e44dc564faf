"""The page of ``canaryproof benchmark canife``: Markdown with its picture, HTML with it inline, CSV and JSON."""

import itertools
import json

from canaryproof.reports.html import chapter_body, environment
from canaryproof.reports.pages import Chapter
from canaryproof.verify.audit.markup.figures import svg
from canaryproof.verify.audit.markup.markdown import Section, page
from canaryproof.verify.papers.records.canife_comparison import CanifeComparison, meaning, table

NAME = "canife_comparison"
_PICTURE = f"{NAME}.svg"
# All files of a comparison, each of them written every time.
FILES = (*(f"{NAME}.{form}" for form in ("md", "html", "csv", "json")), _PICTURE)
_TITLE = "CANIFE against random canaries"


def markdown(comparison: CanifeComparison) -> str:
    """Render the comparison as Markdown, of which the answer comes first."""
    title, header, rows = table(comparison)
    named = tuple((outcome.budget, *row) for outcome, row in zip(comparison.outcomes, rows, strict=True))
    alternative = (
        "For each method the median of ε̂ and where 95 of 100 trainings are, on a logarithmic axis, with the method's "
        "cap as an upright bar, and a line at the analytical ε"
    )
    section = Section(title, ("budget", *header), named, meaning(comparison), _PICTURE, alternative)
    # The noise of an ε is found from above, so that a few digits of what it has are those that were asked for.
    command = (
        f"canaryproof benchmark canife --dim {comparison.dim} --canaries {comparison.canaries} "
        f"--epsilon {comparison.epsilon:.5g} --rounds {comparison.rounds} --delta {comparison.delta!r} "
        f"--seed {comparison.seed} --out RESULTS"
    )
    made = f"canaryproof {comparison.version}, `{command}`. `{NAME}.json` and `{NAME}.csv` have all digits."
    return page(_TITLE, comparison.answer(), (), (section,), f"## How it was made\n\n{made}")


def files(comparison: CanifeComparison) -> dict[str, bytes]:
    """Make all files of the comparison, by name."""
    text, picture = markdown(comparison), comparison.plot()
    styles: dict[str, str] = {}
    body = chapter_body(Chapter(NAME, "CANIFE", _TITLE, text, {_PICTURE: picture}), {}, styles, itertools.count())
    html = environment().get_template("page.html.jinja").render(
        title=_TITLE, body=body, styles=styles, version=comparison.version
    )  # fmt: skip
    made = {
        "md": text,
        "html": html,
        "csv": comparison.to_frame().to_csv(index=False),
        "json": json.dumps(comparison.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n",
    }
    return {f"{NAME}.{form}": contents.encode() for form, contents in made.items()} | {_PICTURE: svg(picture).encode()}
