"""What the report's page says, ready for its template: the only module between a run and the page."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from canaryproof.reports import rich_text
from canaryproof.reports.chapters import Chapter
from canaryproof.reports.claims import MEANINGS, RULE, TITLES, described, findings, in_passing
from canaryproof.reports.convergence import picture_name
from canaryproof.reports.inline_svg import inline
from canaryproof.reports.material import Material
from canaryproof.verify.check.results import FALSE_ALARM_BUDGET, Design, Result, Run, Subject, Verdict

# What people come for comes first.
_ORDER = (Verdict.REFUTED, Verdict.QUALIFIED, Verdict.INCONCLUSIVE, Verdict.CONFIRMED, Verdict.NEEDS_DATA)
_OURS = "ours"
# Characters of evidence on the whole page and of one claim: the page is to stay below 2 MB.
_ALL_ROOM, _MOST_ROOM, _LEAST_ROOM = 350_000, 1_200, 200
# The pictures that tell more of a claim than its numbers do, by what its id begins with.
_PICTURED = {
    "gaussian.default-estimator": "estimator-errors",
    "bounds.nominal": "coverage",
    "numerics.comparison.": "accuracy",
}


@dataclass(frozen=True)
class Claim:
    """A line of the ledger and what it opens to."""

    anchor: str
    id: str
    document: str
    suite: str
    verdict: str
    sign: str
    source: str
    statement: Markup
    finding: Markup
    design: Design | None
    level: str
    command: str
    picture: str
    evidence: Markup
    in_passing: bool


@dataclass(frozen=True)
class Group:
    """The claims of a document, what fails first."""

    key: str
    title: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Count:
    """How many statements have a verdict."""

    verdict: str
    sign: str
    number: int
    meaning: str


@dataclass(frozen=True)
class View:
    """All that the page says."""

    version: str
    level: str
    seed: int
    unfinished: str
    total: int
    counts: tuple[Count, ...]
    findings: tuple[Claim, ...]
    rule: str
    own: int
    failures: tuple[Claim, ...]
    groups: tuple[Group, ...]
    suites: tuple[str, ...]
    chapters: tuple[tuple[str, str, Markup], ...]
    tests: int
    levels: tuple[tuple[str, int, str], ...]
    false_alarm: str
    budget: str
    environment: Mapping[str, str]
    needs: tuple[tuple[str, int], ...]
    unjudged: tuple[tuple[str, int], ...]


def view(material: Material, made: Sequence[Chapter]) -> View:
    """Prepare all that the page says.

    Parameters
    ----------
    material
        A run and its companions.
    made
        The report's chapters.

    Returns
    -------
    The view.
    """
    run = material.run
    anchors = _anchors(run.results)
    pictures = {name.removesuffix(".svg") for chapter in made for name in chapter.figures}
    room = min(_MOST_ROOM, _ALL_ROOM // max(1, len(run.results)))
    claims = [_claim(run, i, anchor, pictures, room if room >= _LEAST_ROOM else 0) for i, anchor in enumerate(anchors)]
    by_result = dict(zip(map(id, run.results), claims, strict=True))
    documents = [result for result in run.results if result.subject is Subject.DOCUMENT]
    counts = Counter(result.verdict for result in documents)
    links = {f"claims-{key}.md": "#ledger" for key in TITLES} | {f"{name}.md": f"#{name}" for name in ("proofs",)}
    return View(
        version=run.version,
        level=str(run.level),
        seed=run.seed,
        unfinished=material.unfinished,
        total=len(documents),
        counts=tuple(Count(str(v), rich_text.SIGNS[v], counts[v], MEANINGS[v]) for v in Verdict),
        findings=tuple(by_result[id(result)] for result in findings(run)),
        rule=RULE,
        own=len(run.results) - len(documents),
        failures=tuple(by_result[id(result)] for result in run.failures),
        groups=tuple(_groups(claims)),
        suites=tuple(dict.fromkeys(result.suite for result in run.results)),
        chapters=tuple((chapter.name, chapter.title, _body(chapter, links)) for chapter in made),
        tests=len(run.designs),
        levels=_levels(run),
        false_alarm=f"{run.false_alarm_probability:.1g}",
        budget=f"{FALSE_ALARM_BUDGET:g}",
        environment=material.environment,
        needs=_needs(run),
        unjudged=tuple(material.unjudged.items()),
    )


def _anchors(results: Sequence[Result]) -> list[str]:
    """Name a place in the page for each result: its id, which no two may share and no blank may be in."""
    used: set[str] = set()
    anchors = []
    for result in results:
        name = "-".join(result.id.split()) or "claim"
        # The page's own places have no dot in them, and ids of claims all do.
        name = name if "." in name else f"claim.{name}"
        while name in used:
            name += "-again"
        used.add(name)
        anchors.append(name)
    return anchors


def _claim(run: Run, position: int, anchor: str, pictures: set[str], room: int) -> Claim:
    result = run.results[position]
    named = picture_name(result.id).removesuffix(".svg"), *(p for i, p in _PICTURED.items() if result.id.startswith(i))
    if "readings" in result.evidence and result.suite == "gaussian":
        named = (*named, "dimension-sweep")
    of_document = result.subject is Subject.DOCUMENT
    suite = ["verify", result.suite, "--level", str(run.level), "--seed", str(run.seed)]
    again = ["claims", result.id] if of_document else suite
    place = f"results[{position}].evidence"
    if room:
        evidence = rich_text.html(described(result.evidence, place, room), name="Evidence")
    else:
        evidence = Markup("<p>All evidence: <code>{}</code> in <code>results.json</code>.</p>").format(place)
    return Claim(
        anchor=anchor,
        id=result.id,
        document=result.id.partition(".")[0] if of_document else _OURS,
        suite=result.suite,
        verdict=str(result.verdict),
        sign=rich_text.SIGNS[result.verdict],
        source=result.source,
        statement=rich_text.line(result.statement),
        finding=rich_text.line(result.finding),
        design=result.design,
        level="" if result.design is None else f"{result.design.level:.1g}",
        command=shlex.join(["canaryproof", *again]),
        picture=next((name for name in named if name in pictures), ""),
        evidence=evidence,
        in_passing=in_passing(result),
    )


def _groups(claims: Sequence[Claim]) -> list[Group]:
    keys = dict.fromkeys(claim.document for claim in claims)
    known = [*TITLES, *(key for key in keys if key not in TITLES and key != _OURS), _OURS]
    titles = {**TITLES, _OURS: "This package's own checks"}
    order = [str(verdict) for verdict in _ORDER]

    def rank(claim: Claim) -> tuple[int, bool]:
        return order.index(claim.verdict), claim.in_passing

    return [
        Group(key, titles.get(key, key), tuple(sorted(mine, key=rank)))
        for key in known
        if (mine := [claim for claim in claims if claim.document == key])
    ]


def _body(chapter: Chapter, links: Mapping[str, str]) -> Markup:
    def draw(file: str, alternative: str) -> str:
        if file not in chapter.figures:
            return str(Markup("<em>{}</em>").format(alternative))
        name = f"picture-{file.removesuffix('.svg')}"
        picture = inline(chapter.figures[file], name, alternative)
        box = '<span class="picture" id="{}" role="group" tabindex="0" aria-label="Picture">{}</span>'
        # The picture's own title says the same to those who do not see it.
        caption = '<span class="caption" aria-hidden="true">{}</span>'
        return str(Markup(box + caption).format(name, picture, alternative))

    return rich_text.html(chapter.text, draw, links, name=chapter.title)


def _levels(run: Run) -> tuple[tuple[str, int, str], ...]:
    """Split the sum of the tests' levels over the suites."""
    found: dict[str, list[float]] = {}
    for result in run.results:
        if result.design is not None:
            found.setdefault(result.suite, []).append(result.design.level)
    return tuple((suite, len(levels), f"{sum(levels):.1g}") for suite, levels in found.items())


def _needs(run: Run) -> tuple[tuple[str, int], ...]:
    """Count the statements that only a data set decides, by data set."""
    waiting = [result for result in run.results if result.verdict is Verdict.NEEDS_DATA]
    return tuple(Counter(str(result.evidence.get("data", "not named")) for result in waiting).most_common())
