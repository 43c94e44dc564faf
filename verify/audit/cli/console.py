"""rich's console: its own codes reach the terminal, and those of a text that is shown do not."""

import sys
from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.segment import Segment

from canaryproof.verify.audit.rules import printable


class Console(rich.console.Console):
    """A console on stdout or stderr."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream: IO[str] = sys.stderr if stderr else sys.stdout
        super().__init__(file=getattr(stream, "raw", stream))

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Render what is shown, in printable characters."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
