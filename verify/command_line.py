"""The command line ``canaryproof``, above both storeys: its commands by name, and how they fail.

A command ends with a decision: 0, or 1 where something fails, and for a gate 3 or 4. Or it ends without one: 2 is bad
input, which gets one line on stderr, 69 a lost engine, 70 a fault of this package, 74 output that cannot be written,
130 an interrupt and 143 SIGTERM. A reader that goes away changes no status. A command's module is loaded when it runs.
"""

import _thread
import contextlib
import difflib
import io
import itertools
import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import click

from canaryproof.kernels.successors import current_options
from canaryproof.verify.audit.cli.options import (
    BAD_INPUT,
    CRASHED,
    INTERRUPTED,
    TERMINATED,
    UNWRITTEN,
    WHY_MISSING,
    one_line,
)
from canaryproof.verify.audit.cli.terminal import printable_streams
from canaryproof.verify.audit.files.errors import InputError, OutputError

_NO_MEMORY = "not enough memory"

# The module of each command in ``canaryproof.verify``, and the first sentence of its help.
COMMANDS = {
    "audit": ("audit.cli.audit_command", "Estimate epsilon from one run, and bound it from below."),
    "benchmark": ("papers.cli.benchmark_command", "Measure this package and others on this machine."),
    "canaries": ("audit.cli.canaries_command", "Write canaries for your own mechanism."),
    "check-report": (
        "audit.cli.check_report_command",
        "Compute an audit's report again, and say which of its numbers differ.",
    ),
    "claims": (
        "papers.cli.claims_command",
        "List the documents' statements and the verdicts on them, or judge one or some of them.",
    ),
    "convergence": (
        "papers.cli.convergence_command",
        "Report how accurate the estimate is at your d and k, and how fast it converges.",
    ),
    "model-card": ("audit.cli.model_card_command", "Write an audit's part of a model card."),
    "plan": ("audit.cli.plan_command", "Plan an audit before the run."),
    "report": ("papers.cli.report_command", "Write the reports of a run anew."),
    "review": ("audit.cli.review_command", "Give a second opinion on another tool's audit."),
    "self-test": ("audit.cli.self_test_command", "Run some steps of your own training under a watch."),
    "train": ("papers.cli.train_command", "Train with canaries and differential privacy, and audit what is released."),
    "verify": ("papers.cli.verify_command", "Check the numerics, the algorithms, the printed tables and the proofs."),
    "warm-up": ("audit.cli.warm_up_command", "Compile what audits need, before the first one."),
}


class _Group(click.Group):
    """A group whose commands fail in one line, and are interrupted quietly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _ = COMMANDS[cmd_name]
        # numpy, rich and whatever else a command loads take seconds, for which no other command waits.
        loaded = import_module(f"canaryproof.verify.{module}")
        command: click.Command = getattr(loaded, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            for name in difflib.get_close_matches(args[0], COMMANDS, n=1):
                raise click.UsageError(f"{error.message} Did you mean {name!r}?", ctx) from None
            raise
        try:
            return name, command, current_options(f"canaryproof {name}", rest)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = formatter.width - 6 - max(map(len, COMMANDS))
        # As click does, of commands that are not loaded for it.
        rows = [
            (name, click.Command(name, help=text).get_short_help_str(width)) for name, (_, text) in COMMANDS.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **options: Any,
    ) -> Any:
        def run() -> Any:
            return super(_Group, self).main(args, prog_name, complete_var, standalone_mode=False, **options)

        if not standalone_mode:
            return run()
        for stream in (sys.stdout, sys.stderr):
            # A terminal without UTF-8 must not crash us over a Greek letter.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        words = list(sys.argv[1:] if args is None else args)
        with (
            _patient_output() as lost_output,
            printable_streams(),
            _log_shown(),
            _insistent_interrupts(),
            _termination_interrupts() as terminations,
        ):
            status = _status(run, lambda message: _report_to_junit(words, message))
            if (failure := lost_output()) is not None:
                # A decision that is no success stands.
                click.echo(f"Error: output: {failure.strerror or failure}", err=True)
                status = status or UNWRITTEN
            sys.exit(TERMINATED if terminations and status == INTERRUPTED else status)


class _PatientPipe(io.RawIOBase):
    """A stream that drops what cannot be written, so that the command ends as it would have, and keeps the reason.

    That a reader went away is none.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, data: Any, /) -> int | None:
        try:
            return self._raw.write(data)
        except BrokenPipeError:
            return len(data)
        except OSError as error:
            self.failure = error
            return len(data)


@contextlib.contextmanager
def _patient_output() -> Iterator[Callable[[], OSError | None]]:
    """Let the readers of stdout and stderr go away when they like, as ``| head -1`` does.

    Yields a function that says why stdout could not be written; None where it could.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_patient, before)
    stdout = sys.stdout
    raw = getattr(getattr(stdout, "buffer", None), "raw", None)

    def failure() -> OSError | None:
        if not isinstance(raw, _PatientPipe):
            return None
        stdout.flush()
        return raw.failure

    try:
        yield failure
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        sys.stdout, sys.stderr = before


def _patient(stream: TextIO | None) -> TextIO:
    # Closed, as by ">&-" in a shell.
    if stream is None:
        return io.StringIO()
    # Unbuffered, as PYTHONUNBUFFERED asks for, the stream stands on the file itself.
    binary = getattr(stream, "buffer", None)
    raw = getattr(binary, "raw", binary)
    # Windows has consoles of its own, and says otherwise that a pipe is closed.
    if sys.platform == "win32" or not isinstance(raw, io.FileIO):
        return stream
    stream.flush()
    buffer = io.BufferedWriter(_PatientPipe(raw))
    return io.TextIOWrapper(
        buffer, stream.encoding, stream.errors, line_buffering=raw.isatty(), write_through=stream is sys.stderr
    )


def _report_to_junit(words: Sequence[str], message: str) -> None:
    """Write to the file of ``--junit`` that nothing was judged, and why."""
    if words[:1] not in (["audit"], ["verify"]):
        return
    given = [word.partition("=")[2] for word in words if word.startswith("--junit=")]
    given += [value for option, value in itertools.pairwise(words) if option == "--junit"]
    # Loads a writer of XML.
    from canaryproof.verify.audit.cli import junit

    # The message may be that this file cannot be written, or must not be.
    with contextlib.suppress(InputError, ValueError):
        path = Path(given[-1] if given else "")
        junit.check(path, overwrite="--overwrite" in words)
        junit.write_error(path, words[0], message)


class _Spoken(logging.Handler):
    """Says what is logged on what stderr is then: a bar of progress gives way to a line, and stands below it."""

    def emit(self, record: logging.LogRecord) -> None:
        # click would look for the stream below the bar's own.
        sys.stderr.write(f"{self.format(record)}\n")


@contextlib.contextmanager
def _log_shown() -> Iterator[None]:
    """Show what the package logs on stderr."""
    logger, shown = logging.getLogger("canaryproof"), _Spoken()
    shown.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    before = logger.level
    logger.addHandler(shown)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(shown)
        logger.setLevel(before)


@contextlib.contextmanager
def _termination_interrupts() -> Iterator[list[int]]:
    """Let a request to end interrupt the command, as what it has begun is cleared up then; yield the requests."""
    requests: list[int] = []

    def interrupt(number: int, _: object) -> None:
        requests.append(number)
        raise KeyboardInterrupt

    # Threads have no signals of their own.
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield requests
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _insistent_interrupts() -> Iterator[None]:
    """Interrupt again where an interrupt was swallowed, as a run would then go on for minutes.

    LLVM calls back into Python while it loads or compiles a kernel, and what such a callback raises is printed and
    forgotten: an interrupt would be lost.
    """
    hook = sys.unraisablehook

    def insist(unraisable: Any) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            hook(unraisable)
            return
        timer = threading.Timer(0.01, _thread.interrupt_main)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = insist
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _status(run: Callable[[], Any], report: Callable[[str], None] = lambda _: None) -> int:
    """Run a command, say in a line on stderr what stops it, and to ``report``, and return the exit status."""
    try:
        _check_environment()
        result = run()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_INPUT
    except Exception as error:
        message, status = _explain(error)
        if status == CRASHED:
            traceback.print_exc()
        elif status == UNWRITTEN:
            # The rest in the buffer of stdout would fail again, loudly, when Python exits.
            _silence_stdout()
        click.echo(f"Error: {one_line(message)}", err=True)
        report(message)
        return status
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> tuple[str, int]:
    """Return the line and the exit status for what stopped a command."""
    match error:
        case click.MissingParameter() if (missing := _missing_file(error.ctx)) is not None:
            # Named first, as it is the larger mistake.
            return f"{missing}: No such file or directory", BAD_INPUT
        case click.UsageError():
            where = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
            why = error.ctx.meta.get(WHY_MISSING) if isinstance(error, click.MissingParameter) and error.ctx else None
            message = " ".join(error.format_message().split()) + (f" {why}" if why else "")
            return message + where, error.exit_code
        case click.ClickException():
            return error.format_message(), error.exit_code
        case InputError():
            return error.message, UNWRITTEN if isinstance(error, OutputError) else BAD_INPUT
        case MemoryError():
            return _NO_MEMORY, BAD_INPUT
        # This is how the system's loader reports a lack of memory for a library; llvmlite raises another error then.
        case ImportError() | OSError() if any(
            "failed to map segment" in str(each) for each in (error, error.__context__)
        ):
            return _NO_MEMORY, BAD_INPUT
        # Python reports this where a library's C code had no memory and raised nothing.
        case SystemError() if re.search("without (setting an )?exception", str(error)):
            return _NO_MEMORY, BAD_INPUT
        case OSError():
            # Most likely stdout on a full disk.
            return f"{error.filename or 'output'}: {error.strerror or error}", UNWRITTEN
    return f"a fault of canaryproof, and none of the input: {type(error).__name__}: {error}", CRASHED


def _check_environment() -> None:
    """Refuse variables at which a library raises an error when it is loaded.

    numba warns of other numbers of threads. scipy loads a part of numpy that reads the time of sources.
    """
    threads = 1
    with contextlib.suppress(ValueError):
        threads = int(os.environ.get("NUMBA_NUM_THREADS", "1"))
    if threads < 1:
        raise InputError(f"NUMBA_NUM_THREADS: must be at least 1, not {os.environ['NUMBA_NUM_THREADS']}")
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is not None and not re.fullmatch(r"\d{1,11}", seconds, re.ASCII):
        raise InputError(f"SOURCE_DATE_EPOCH: must be a whole number of seconds, not {seconds!r}")


def _missing_file(context: click.Context | None) -> Path | None:
    """Return the file that was given as an argument and does not exist."""
    if context is None:
        return None
    arguments = (parameter for parameter in context.command.params if isinstance(parameter, click.Argument))
    given = [context.params.get(str(argument.name)) for argument in arguments]
    return next((path for path in given if isinstance(path, Path) and not os.path.lexists(path)), None)


def _silence_stdout() -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_COMPLETION = """\b
To complete commands, options, bounds, claims and experiments with the Tab
key, put this line into ~/.bashrc:
eval "$(_CANARYPROOF_COMPLETE=bash_source canaryproof)"
With zsh or fish, say zsh_source or fish_source.
"""


def _print_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Print what a report of a bug should say: the versions of this package, Python, the platform and libraries."""
    if not asked:
        return
    from canaryproof.verify.audit.engine.provenance import library_versions, python_and_platform

    libraries = library_versions("federated", "flower", "jax-privacy", "opacus", "transformers", "parquet")
    versions = {**python_and_platform(), **dict(sorted(libraries.items()))}
    click.echo(f"canaryproof, version {versions.pop('canaryproof', version('canaryproof'))}")
    click.echo("\n".join(f"{name} {value}" for name, value in versions.items()))
    context.exit()


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_COMPLETION,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions of this package, Python, the platform and libraries, and exit.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Verify and apply canary-based one-shot estimates of privacy (arXiv:2302.03098)."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
