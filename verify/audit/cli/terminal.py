"""The streams of commands: no name, report or plan that is printed drives the terminal."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

from canaryproof.verify.audit.rules import printable


class PrintableStream:
    """A stream of text on which only printable characters and line ends arrive; ``raw`` is what it writes to."""

    def __init__(self, raw: IO[str]) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text."""
        self.raw.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Let all that is printed pass through such streams."""
    with (
        contextlib.redirect_stdout(PrintableStream(sys.stdout)),
        contextlib.redirect_stderr(PrintableStream(sys.stderr)),
    ):
        yield


@contextlib.contextmanager
def streams_of_user() -> Iterator[None]:
    """Let the user's own code print as it likes, on stderr: its prints are not the answer."""
    raw = getattr(sys.stderr, "raw", sys.stderr)
    with contextlib.redirect_stdout(raw), contextlib.redirect_stderr(raw):
        yield
