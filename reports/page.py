"""The row of a page: its file and its chapter in the report, and how its text and pictures are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from canaryproof.verify.papers.check.results import SUITE_NAMES, Result, Run


def ages(run: Run, suite: str = "") -> list[tuple[str, str]]:
    """Return the dates and versions of published results, or of a suite's, the oldest first."""
    return sorted({(r.origin.date, r.origin.version) for r in run.results if r.origin and suite in ("", r.suite)})


def provenance(run: Run, suite: str = "") -> str:
    """Say which command made a run's results, or those of a suite, and when they were published.

    Published results need not be of one run: then the oldest and the newest are named.
    """
    known = ages(run, suite)
    versions = " and ".join(dict.fromkeys(version for _, version in known)) or run.version
    suites = [suite] if suite else list(dict.fromkeys(result.suite for result in run.results))
    # Published results are of all suites, though a page may have those of some.
    named = suites if suite or not (known or set(suites) == set(SUITE_NAMES)) else []
    command = " ".join(["canaryproof verify", *named, f"--level {run.level} --seed {run.seed}"])
    made = f"canaryproof {versions}, `{command}`"
    if not known:
        return made
    (oldest, first), (newest, last) = known[0], known[-1]
    if len(known) == 1:
        return f"{made}, {oldest}"
    return f"{made}, in several runs: the oldest result is of {oldest} ({first}), the newest of {newest} ({last})"


@dataclass(frozen=True)
class Page:
    """A page of a run, where the run has numbers for it: ``text`` returns "" where it has none."""

    chapter: str  # in addresses
    label: str  # in the navigation
    title: str
    text: Callable[[Run], str]
    # Markdown file, and what the summary says of it; a page without one is in the report alone.
    file: str = ""
    about: str = ""
    # The chapter's text where it is not the file's.
    shortened: Callable[[Run], str] | None = None
    # Pictures by file name, and a pattern of all such names.
    figures: Callable[[Run], Mapping[str, Figure]] = lambda _: {}
    pictures: tuple[str, ...] = ()
    # Name of the picture that shows a result, or "".
    picture_of: Callable[[Result], str] = lambda _: ""
    # Captions of the pictures that the summary shows.
    captions: Mapping[str, str] = field(default_factory=dict)
