"""The command line ``canaryproof``: its group, how commands fail, and the option ``--engine``.

Exit status 0 is success and 2 is bad input, which gets one line on stderr. An interrupt exits with 130, SIGTERM with
143, a lost engine with 3, and a closed pipe with 1. A command's module is loaded when the command runs.
"""

import _thread
import contextlib
import difflib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.files.errors import InputError, extra

if TYPE_CHECKING:
    from canaryproof.verify.engine.cluster import Cluster

INTERRUPTED = 130
_BAD_INPUT, _ENGINE_LOST, _TERMINATED = 2, 3, 143
_NO_MEMORY = "not enough memory"

# Where each command is, and the first sentence of its help.
_ROOM = "canaryproof.verify.cli"
COMMANDS = {
    "audit": (f"{_ROOM}.audit", "Estimate epsilon from one run, and bound it from below."),
    "benchmark": (f"{_ROOM}.benchmark", "Measure this package and others on this machine."),
    "canaries": (f"{_ROOM}.audit", "Write canaries for your own mechanism."),
    "check-report": (f"{_ROOM}.check_report", "Derive every number of an audit's report anew, and say which differ."),
    "claims": (f"{_ROOM}.claims", "List the documents' statements and the verdicts on them, or judge one."),
    "model-card": (f"{_ROOM}.model_card", "Write an audit's part of a model card."),
    "plan": (f"{_ROOM}.plan", "Plan an audit before the run."),
    "report": (f"{_ROOM}.report", "Write the reports of a run anew."),
    "review": (f"{_ROOM}.review", "Give a second opinion on another tool's audit."),
    "self-test": (f"{_ROOM}.self_test", "Look at some rounds of your own training with ten canaries."),
    "train": (f"{_ROOM}.train", "Train with canaries and differential privacy, and audit what is released."),
    "verify": (f"{_ROOM}.verify", "Check the numerics, the algorithms, the printed tables and the proofs."),
}


def one_line(text: str) -> str:
    """Escape what would break a line or drive a terminal, such as the control characters of a hostile file name."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class FilePath(click.Path):
    """A path that is not empty: the empty one would be the working folder."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: D102
        if not str(value):
            self.fail("must not be empty", param, ctx)
        return super().convert(value, param, ctx)


class _Group(click.Group):
    """A group whose commands fail in one line, and are interrupted quietly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _ = COMMANDS[cmd_name]
        # numpy, rich and whatever else a command loads take seconds, for which no other command waits.
        command: click.Command = getattr(import_module(module), f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            for name in difflib.get_close_matches(args[0], COMMANDS, n=1):
                raise click.UsageError(f"{error.message} Did you mean {name!r}?", ctx) from None
            raise

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
        with _insistent_interrupts(), _termination_interrupts() as terminations:
            status = _status(run)
            sys.exit(_TERMINATED if terminations and status == INTERRUPTED else status)


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


def _status(run: Callable[[], Any]) -> int:
    """Run a command, report what stops it, and return the exit status."""
    try:
        _check_environment()
        result = run()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.MissingParameter as error:
        # Named first, as it is the larger mistake.
        missing = _missing_file(error.ctx)
        if missing is not None:
            return _fail(f"{missing}: No such file or directory", _BAD_INPUT)
        return _fail_usage(error)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return _BAD_INPUT
    except click.UsageError as error:
        return _fail_usage(error)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except InputError as error:
        return _fail(error.message, _BAD_INPUT)
    except MemoryError:
        return _fail(_NO_MEMORY, _BAD_INPUT)
    except (ImportError, OSError) as error:
        # This is how the system's loader reports a lack of memory for a library; llvmlite raises another error then.
        if any("failed to map segment" in str(each) for each in (error, error.__context__)):
            return _fail(_NO_MEMORY, _BAD_INPUT)
        if isinstance(error, ImportError):
            raise
        # Most likely stdout on a full disk. What it still holds would fail again, loudly, when Python exits.
        _silence_stdout()
        return _fail(str(error), 1)
    except SystemError as error:
        # Python reports this where a library's C code had no memory and raised nothing.
        if not re.search("without (setting an )?exception", str(error)):
            raise
        return _fail(_NO_MEMORY, _BAD_INPUT)
    return result if isinstance(result, int) else 0


def _check_environment() -> None:
    """Refuse variables at which a library raises an error when it is loaded.

    numba warns of other numbers of threads. scipy loads a part of numpy that reads the time of sources.
    """
    with contextlib.suppress(ValueError):
        if int(os.environ.get("NUMBA_NUM_THREADS", "1")) < 1:
            raise InputError(f"NUMBA_NUM_THREADS: must be at least 1, not {os.environ['NUMBA_NUM_THREADS']}")
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is not None and not re.fullmatch(r"\d{1,11}", seconds, re.ASCII):
        raise InputError(f"SOURCE_DATE_EPOCH: must be a whole number of seconds, not {seconds!r}")


class EngineLost(click.ClickException):
    """An engine cannot go on; whether a check fails is not known."""

    exit_code = _ENGINE_LOST


def _missing_file(context: click.Context | None) -> Path | None:
    """Return the file that was given as an argument and does not exist."""
    if context is None:
        return None
    arguments = (parameter for parameter in context.command.params if isinstance(parameter, click.Argument))
    given = [context.params.get(str(argument.name)) for argument in arguments]
    return next((path for path in given if isinstance(path, Path) and not os.path.lexists(path)), None)


def _fail_usage(error: click.UsageError) -> int:
    where = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
    return _fail(" ".join(error.format_message().split()) + where, error.exit_code)


def _fail(message: str, status: int) -> int:
    click.echo(f"Error: {one_line(message)}", err=True)
    return status


def _silence_stdout() -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


junit_option = click.option(
    "--junit",
    type=FilePath(),
    metavar="FILE",
    help="Write the checks as a JUnit .xml file, which must not exist.",
)

_DASK = "dask"

engine_option = click.option(
    "--engine",
    "engine_name",
    default="local",
    show_default=True,
    help="local, dask for a cluster on this machine, or dask://HOST:PORT for the one of a scheduler.",
)


def cluster(name: str, limit: float | None = None) -> "Cluster | None":
    """Return the cluster that ``--engine`` names, None for ``local``; a check may take ``limit`` seconds."""
    if name == "local":
        return None
    scheme, _, location = name.partition("://")
    if scheme != _DASK or (name != _DASK and not location):
        raise InputError(f"--engine: must be local, dask or dask://HOST:PORT, not {name!r}")
    if find_spec("distributed") is None:
        raise InputError(f"--engine: dask needs {extra('distributed')}")
    # Loads dask, which is optional, and numba.
    from canaryproof.verify.engine.cluster import Cluster
    from canaryproof.verify.engine.executors import threads

    address = location if "://" in location or not location else f"tcp://{location}"
    if address and not address.startswith("tls://"):
        click.echo(f"Warning: --engine {name} is not tls://: whoever reaches it can run code as you.", err=True)
    return Cluster(address, threads(), limit)


def given_again(begun: Mapping[int, int], names: Sequence[str]) -> dict[str, int]:
    """Say on stderr, and return, how often each task was given to a worker, if more than once."""
    again = {names[i]: times for i, times in sorted(begun.items()) if times > 1}
    for name, times in again.items():
        click.echo(f"given to {times} workers, as some were lost: {name}", err=True)
    return again


_COMPLETION = """\b
To complete commands, options, bounds, claims and experiments with the Tab
key, put this line into ~/.bashrc:
eval "$(_CANARYPROOF_COMPLETE=bash_source canaryproof)"
With zsh or fish, say zsh_source or fish_source.
"""


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_COMPLETION,
)
@click.version_option(package_name="canaryproof", prog_name="canaryproof")
@click.pass_context
def main(context: click.Context) -> None:
    """Verify and apply canary-based one-shot estimates of privacy (arXiv:2302.03098)."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
