"""Progress of a long command on stderr: a bar on a terminal, and elsewhere a line every 30 seconds."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from canaryproof.verify.audit.cli.console import Console

# Takes the current task's name, the amount done, and the total amount.
Advance = Callable[[str, int, int], None]

# Seconds after which a bar is shown, and between two lines.
_BAR_AFTER, _LINE_EVERY = 2.0, 25.0
# The time left is shown after this share of the parts and this many seconds.
_KNOWN_SHARE, _KNOWN_SECONDS = 0.1, 5.0


class _Done(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:,.0f} of {task.total:,.0f}" if task.total else "")


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        left = _remaining_time(task.elapsed or 0.0, int(task.completed), int(task.total or 0))
        return Text("" if left is None else f"{_clock(left)} left")


def _remaining_time(elapsed: float, done: int, total: int) -> float | None:
    """Return the time that is left, None as long as it cannot be known, or if what follows has no parts."""
    if elapsed < _KNOWN_SECONDS or total <= 0 or not _KNOWN_SHARE * total <= done < total:
        return None
    return elapsed * (total - done) / done


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


@contextmanager
def progress(command: str, *, equal_parts: bool) -> Iterator[Advance]:
    """Show the progress of a command.

    Parameters
    ----------
    command
        What stands before each line.
    equal_parts
        Whether all parts take about the same time, so that the time left can be known.

    Yields
    ------
    A function that takes what is being done, how much is done, and of how much.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, equal_parts=equal_parts) as advance:
            yield advance
    else:
        with _lines(command, equal_parts=equal_parts) as advance:
            yield advance


@contextmanager
def _bar(console: Console, *, equal_parts: bool) -> Iterator[Advance]:
    left = [_Left()] if equal_parts else []
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        _Done(),
        TimeElapsedColumn(),
        *left,
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=None)
    # A command that takes a moment shows no bar.
    start = threading.Timer(_BAR_AFTER, bar.start)
    start.daemon = True
    start.start()
    try:
        yield lambda words, done, total: bar.update(task, description=words, completed=done, total=total or None)
    finally:
        start.cancel()
        start.join()
        bar.stop()


@contextmanager
def _lines(command: str, *, equal_parts: bool) -> Iterator[Advance]:
    begun, ended = time.monotonic(), threading.Event()
    state: tuple[str, int, int] = "", 0, 0

    def advance(words: str, done: int, total: int) -> None:
        nonlocal state
        state = words, done, total

    def speak() -> None:
        while not ended.wait(_LINE_EVERY):
            words, done, total = state
            elapsed = time.monotonic() - begun
            left = _remaining_time(elapsed, done, total) if equal_parts else None
            parts = [f"{done:,} of {total:,}"] if total else []
            parts += [words] if words else []
            parts += [f"{_clock(elapsed)} so far"]
            parts += [] if left is None else [f"{_clock(left)} left"]
            click.echo(f"{command}: {', '.join(parts)}", err=True)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        ended.set()
        thread.join()
