"""The row of a page: its file and its chapter in the report, and how its text and pictures are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from canaryproof.verify.papers.check.results import Result, Run


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
