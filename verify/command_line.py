"""The command line ``canaryproof``: its group, and the commands ``audit`` and ``canaries``.

Exit status 0 is success and 2 is bad input, which gets one line on stderr; an interrupt exits with 130, and a closed
pipe with 1. The modules that compute are imported when a command runs: compiled kernels and scipy take seconds to load,
and a misspelt option should not wait for them.
"""

import _thread
import contextlib
import io
import json
import math
import os
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress
from rich.table import Table

from canaryproof.verify.blindspots_table import dilution_remarks, headings, noticed_rows, unnoticed_rows
from canaryproof.verify.bounds_table import bounds_table, coverage_remarks
from canaryproof.verify.input_files import LARGEST_COUNT, InputError, read_release, read_scores

if TYPE_CHECKING:
    from canaryproof.verify.audit import Audit, Check

INTERRUPTED = 130
_PROGRESS_AFTER = 2.0  # seconds
_ALL_DIGITS = 16  # of a float, after the first


def one_line(text: str) -> str:
    """Escape what would break a line or drive a terminal, such as the control characters of a hostile file name."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class _Group(click.Group):
    """A group whose commands fail in one line, and are interrupted quietly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "benchmark", "claims", "report", "train", "verify"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "benchmark":
            from canaryproof.verify.benchmark_command import benchmark_command

            return benchmark_command
        if cmd_name == "claims":
            from canaryproof.verify.claims_command import claims_command

            return claims_command
        if cmd_name == "report":
            from canaryproof.verify.report_command import report_command

            return report_command
        if cmd_name == "train":
            from canaryproof.verify.train_command import train_command

            return train_command
        if cmd_name == "verify":
            # With it come all suites and their kernels, a second's import during which an interrupt would be loud.
            from canaryproof.verify.verify_command import verify_command

            return verify_command
        return super().get_command(ctx, cmd_name)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(_Group, self).main(args, prog_name, complete_var, standalone_mode=False, **extra)

        if not standalone_mode:
            return run()
        for stream in (sys.stdout, sys.stderr):
            # A terminal without UTF-8 must not crash us over a Greek letter.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with _insistent_interrupts():
            sys.exit(_status(run))


@contextlib.contextmanager
def _insistent_interrupts() -> Iterator[None]:
    """Interrupt again where an interrupt was swallowed.

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
        result = run()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.UsageError as error:
        where = f" (see '{error.ctx.command_path} --help')" if error.ctx else ""
        return _fail(" ".join(error.format_message().split()) + where, error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except MemoryError:
        return _fail("not enough memory", InputError.exit_code)
    except OSError as error:
        # Most likely stdout on a full disk. What it still holds would fail again, loudly, when Python exits.
        _silence_stdout()
        return _fail(str(error), 1)
    return result if isinstance(result, int) else 0


def _fail(message: str, status: int) -> int:
    click.echo(f"Error: {one_line(message)}", err=True)
    return status


def _silence_stdout() -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _whole_number(low: int, high: int, rule: str) -> Callable[[str], int]:
    """Return a converter to a whole number in a range; 1e6 is one too."""

    def integer(text: str) -> int:
        with contextlib.suppress(InvalidOperation):
            number = Decimal(text)
            # The range comes first: 1e999999999 is whole, and too long to be made an int.
            if number.is_finite() and low <= number <= high and number == number.to_integral_value():
                return int(number)
        raise click.BadParameter(f"must be a whole number {rule}, not {_quoted(text)}")

    return integer


def _fraction(margin: float = 0.0) -> Callable[[str], float]:
    """Return a converter to a float strictly between 0 and 1, at least a margin away from both."""
    rule = f"strictly between 0 and 1, at least {margin:g} away from either" if margin else "strictly between 0 and 1"

    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            value = float(text)
            if 0.0 < value < 1.0 and margin <= value <= 1.0 - margin:
                return value
        raise click.BadParameter(f"must lie {rule}, not {_quoted(text)}")

    return number


def _positive(low: float, high: float) -> Callable[[str], float]:
    """Return a converter to a float in a range."""

    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            value = float(text)
            if low <= value <= high:
                return value
        raise click.BadParameter(f"must lie between {low:g} and {high:g}, not {_quoted(text)}")

    return number


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


_SEED = _whole_number(0, 2**64 - 1, "from 0 to 2^64 - 1")


@click.group(cls=_Group, invoke_without_command=True)
@click.version_option(package_name="canaryproof", prog_name="canaryproof")
@click.pass_context
def main(context: click.Context) -> None:
    """Verify and apply canary-based one-shot estimates of privacy (arXiv:2302.03098)."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command("audit")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--delta", type=_fraction(), required=True, help="Target delta of (epsilon, delta)-privacy.")
@click.option("--dim", type=_whole_number(2, 10**12, "from 2 to 1e12"), help="Dimension d of the released vector.")
@click.option(
    "--canaries",
    "count",
    type=_whole_number(2, LARGEST_COUNT, f"from 2 to {LARGEST_COUNT:g}"),
    help="FILE is the released vector, and this many canaries were added to it.",
)
@click.option("--canary-seed", "seed", type=_SEED, help="Seed that the canaries were made from.")
@click.option(
    "--confidence",
    type=_fraction(1e-9),
    default=0.95,
    show_default=True,
    help="Confidence of the intervals and bounds.",
)
@click.option("--bound", "bounds", multiple=True, metavar="NAME", help="Lower bound to show; may be repeated.")
@click.option(
    "--inclusion",
    type=click.Choice(["fixed", "coin"]),
    default="fixed",
    show_default=True,
    help="Whether the observed canaries were chosen in advance, or each by a fair coin.",
)
@click.option(
    "--noise-multiplier",
    type=_positive(0.01, 1e6),
    help="Claimed standard deviation of the noise in the release, in units of the canary norm; that of epsilon = 3 "
    "unless given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, equal for equal input.")
def audit_command(
    file: Path,
    delta: float,
    dim: int | None,
    count: int | None,
    seed: int | None,
    confidence: float,
    bounds: tuple[str, ...],
    inclusion: str,
    noise_multiplier: float | None,
    as_json: bool,
) -> None:
    """Estimate epsilon from one run, and bound it from below.

    FILE holds cosines between canaries and the release: a one-dimensional .npy; an .npz with the arrays "observed" and,
    optionally, "unobserved"; or a .csv with one number a line, or with a header naming these columns. With --canaries
    and --canary-seed it is the release itself, a one-dimensional .npy in units of the canary norm, and its canaries are
    made again as "canaryproof canaries" makes them. All values are floating-point.

    The null hypothesis is N(0, 1/d), or a Gaussian fitted to the unobserved cosines if there are any. The lower bounds
    need no Gaussian: their null is the cosine's exact law, or the unobserved cosines themselves.

    Below stands which faults the default estimator would have noticed beside the claimed noise, and which not.
    """
    if count is None and seed is None:
        if dim is None and file.suffix.lower() == ".npy":
            raise InputError(f"{file}: cosines need --dim; a released vector needs --canaries and --canary-seed")
        found = _audit_scores(file, dim, delta, confidence, inclusion, bounds, noise_multiplier)
    elif count is None or seed is None:
        raise InputError("--canaries and --canary-seed: must be given together")
    elif dim is not None:
        raise InputError("--dim: must not be given with --canaries, as a released vector has its own length")
    else:
        found = _audit_release(file, count, seed, delta, confidence, bounds, noise_multiplier)
    if as_json:
        click.echo(json.dumps(_finite(asdict(found)), indent=2, allow_nan=False))
    else:
        _print_audit(found)


@main.command("canaries")
@click.option("--seed", type=_SEED, required=True, help="Seed, to be given to the audit as --canary-seed.")
@click.option(
    "--count", type=_whole_number(1, 2**32, "from 1 to 2^32"), required=True, help="Number of canaries, the rows."
)
@click.option("--dim", type=_whole_number(2, 2**40, "from 2 to 2^40"), required=True, help="Dimension, the columns.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The .npy file to write; must not exist.")
def canaries_command(seed: int, count: int, dim: int, out: Path) -> None:
    """Write canaries for your own mechanism.

    They are uniform unit vectors; the file is a float32 array of shape (count, dim), a canary a row.
    """
    _check_output(out, 4 * count * dim)
    try:
        _write_canaries(out, seed, count, dim)
    except OSError as error:
        raise InputError(f"{out}: {error.strerror or error}") from error
    click.echo(
        f"Wrote {count} canaries of dimension {dim} to {one_line(str(out))}; audit a release with: "
        f"canaryproof audit RELEASE.npy --canaries {count} --canary-seed {seed} --delta DELTA"
    )


def _audit_scores(
    file: Path,
    dim: int | None,
    delta: float,
    confidence: float,
    inclusion: str,
    bounds: tuple[str, ...],
    noise_multiplier: float | None,
) -> "Audit":
    scores = read_scores(file)
    if scores.unobserved is None and dim is None:
        raise InputError(f"{file}: has no unobserved cosines, so that --dim is needed")
    from canaryproof.verify.audit import audit_scores

    _check_bounds(bounds)
    try:
        return audit_scores(
            scores.observed, scores.unobserved, dim, delta, confidence, inclusion, bounds, noise_multiplier
        )
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def _check_bounds(bounds: tuple[str, ...]) -> None:
    from canaryproof.verify.bounds.catalogue import METHODS

    for name in bounds:
        if name not in METHODS:
            raise InputError(f"--bound: there is no bound {_quoted(name)}; there are {', '.join(METHODS)}")


def _audit_release(
    file: Path,
    count: int,
    seed: int,
    delta: float,
    confidence: float,
    bounds: tuple[str, ...],
    noise_multiplier: float | None,
) -> "Audit":
    release = read_release(file)
    from canaryproof.verify.audit import audit_release

    _check_bounds(bounds)
    try:
        with _progress("scoring canaries", count) as advance:
            return audit_release(release, count, seed, delta, confidence, advance, bounds, noise_multiplier)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


@contextlib.contextmanager
def _progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr, if that is a terminal, once the work has taken a while."""
    console = Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(description, total=total)
    begun = time.monotonic()

    def advance(steps: int) -> None:
        bar.advance(task, steps)
        if time.monotonic() - begun > _PROGRESS_AFTER:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()


def _check_output(out: Path, size: int) -> None:
    try:
        if out.suffix != ".npy":
            raise InputError(f"{out}: the file's name must end in .npy")
        if os.path.lexists(out):
            raise InputError(f"{out}: must not exist already")
        free = shutil.disk_usage(out.parent).free
    except OSError as error:
        raise InputError(f"{out}: {error.strerror or error}") from error
    if size > free:
        raise InputError(f"{out}: needs {decimal(size)}, and the disk has {decimal(free)} free")


def _write_canaries(out: Path, seed: int, count: int, dim: int) -> None:
    from canaryproof.kernels.canaries import Canaries

    partial = out.with_name(f".canaryproof-{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as file, _progress("making canaries", count) as advance:
            header = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
            np.lib.format.write_array_header_1_0(file, header)
            for j in range(count):
                # A new object each time, as it remembers the norms of the canaries that it has made.
                file.write(Canaries(seed, count, dim).vector(j).astype("<f4", copy=False).data)
                advance(1)
        _rename_new(partial, out)
    finally:
        partial.unlink(missing_ok=True)


def _rename_new(partial: Path, out: Path) -> None:
    """Rename a file, without replacing one that has come into being meanwhile."""
    try:
        os.link(partial, out)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no links.
        if os.path.lexists(out):
            raise FileExistsError(f"{out}: exists by now") from None
        partial.rename(out)


def _finite(value: Any) -> Any:
    """Replace infinities, which JSON cannot say, by null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# What stands for a symbol where the terminal cannot show it; pairs before their parts.
_PLAIN = (
    ("√d", "sqrt(d)"),
    ("ε̂", "epsilon"),
    ("μ̂", "mu"),
    ("σ̂", "sigma"),
    ("μ₀", "mu0"),
    ("σ₀", "sigma0"),
    ("‖Σx‖²", "|sum x|^2"),
    ("‖ρ‖²", "|rho|^2"),
    ("σ²d", "sigma^2 d"),
    ("σ", "sigma"),
    ("∞", "infinity"),
    ("ε", "epsilon"),
    ("δ", "delta"),
    ("α", "alpha"),
    ("·", "*"),
    ("–", "-"),
    ("±", "+/-"),
    ("−", "-"),
    ("≥", ">="),
    ("²", "^2"),
)


def _print_audit(found: "Audit") -> None:
    console = Console(markup=False, emoji=False, highlight=False)
    say = _speaker(console.encoding)
    console.print(say(_heading(found)))
    console.print(_estimates_table(found, say))
    console.print(_listing([(estimate.name, estimate.assumes) for estimate in found.estimates], say))
    console.print()
    console.print(say("ε̂ of the fitted parameters, certified; the interval above says what the fit is worth:"))
    console.print(_listing([(estimate.name, _certified(*estimate.certified)) for estimate in found.estimates], say))
    console.print()
    console.print(bounds_table(found.bounds, found.confidence, say))
    console.print(_listing([(bound.method, f"needs {', '.join(bound.assumptions)}") for bound in found.bounds], say))
    console.print()
    console.print(_listing(_checks(found), say))
    _print_blind_spots(found, console, say)
    for sentence in (*_remarks(found), _meaning(found)):
        console.print()
        console.print(say(sentence))


def _print_blind_spots(found: "Audit", console: Console, say: Callable[[str], str]) -> None:
    spots = found.blind_spots
    if spots is None:
        console.print()
        console.print(say("What would have been noticed depends on the dimension: --dim of at least 1,000 tells."))
        return
    for heading, rows in zip(headings(spots), (noticed_rows(spots), unnoticed_rows(spots)), strict=True):
        console.print()
        console.print(say(heading))
        console.print(_listing(rows, say))
    for sentence in dilution_remarks(spots, release=_of_release(found)):
        console.print()
        console.print(say(sentence))


def _speaker(encoding: str) -> Callable[[str], str]:
    """Return what spells out symbols that the terminal cannot show."""

    def say(text: str) -> str:
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            for symbol, word in _PLAIN:
                text = text.replace(symbol, word)
        return text

    return say


def _heading(found: "Audit") -> str:
    null = "N(0, 1/d)" if found.null_count is None else f"Gaussian fitted to {found.null_count:,} unobserved cosines"
    dim = "" if found.dim is None else f"d = {found.dim:,}, "
    return f"k = {found.count:,} observed cosines, {dim}δ = {found.delta!r}; null: {null}"


def _estimates_table(found: "Audit", say: Callable[[str], str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("estimator", overflow="fold")
    for heading in ("ε̂", "standard error", f"{100.0 * found.confidence:.10g}% interval"):
        table.add_column(say(heading), justify="right", overflow="fold")
    for i, estimate in enumerate(found.estimates):
        error = estimate.standard_error
        value, low, high = (rounded(x, error) for x in (estimate.epsilon, estimate.low, estimate.high))
        cells = estimate.name, value, rounded(error, error), say(f"{low} – {high}")
        table.add_row(*cells, style="bold" if i == 0 else None)
    return table


def _certified(low: float, high: float) -> str:
    return f"in [{low!r}, {high!r}]"


def _listing(rows: Iterable[tuple[str, str]], say: Callable[[str], str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(say(cell) for cell in row))
    return table


def _checks(found: "Audit") -> Iterator[tuple[str, str]]:
    closed = found.null_count is None
    mean, ratio = found.mean_error, found.ratio_error
    yield (
        f"standardised mean {'√d·μ̂' if closed else '(μ̂ − μ₀)/σ₀'}",
        f"{rounded(found.standardised_mean, mean)} ± {rounded(mean, mean)}",
    )
    yield (
        f"deviation ratio {'√d·σ̂' if closed else 'σ̂/σ₀'}",
        f"{rounded(found.deviation_ratio, ratio)} ± {rounded(ratio, ratio)}",
    )
    yield "equal variances", _p_value(found.variance_p_value, "1e-300")
    yield "observed are normal (Anderson–Darling)", _check_cell("A²", found.normality, "5e-31")
    if found.null_law is not None:
        yield "unobserved follow the null law (Kolmogorov–Smirnov)", _check_cell("D", found.null_law, "1e-300")
    if found.blind_spots is not None and found.blind_spots.dilution is not None:
        canaries = found.count / (found.blind_spots.noise_multiplier**2 * (found.dim or 1))
        yield "dilution ‖ρ‖²/(σ²d) − 1", f"{found.blind_spots.dilution:.3g}, of which canaries {canaries:.2g}"


def _check_cell(symbol: str, check: "Check | None", smallest: str) -> str:
    if check is None:
        return "not tested: fewer than 8 values"
    return f"{symbol} = {check.statistic:.3g}, {_p_value(check.p_value, smallest)}"


def _p_value(p_value: float, smallest: str) -> str:
    return f"p = {p_value:.2g}" if p_value > 0.0 else f"p < {smallest}"


def _remarks(found: "Audit") -> Iterator[str]:
    """Say what the numbers alone don't."""
    if found.equal_variances:
        yield "The variances are not told apart, so that adaptive is pinned, with the upper end of fitted."
    else:
        yield "The variances differ, so that adaptive is fitted."
    if found.standardised_mean <= 0.0:
        mean = "positive" if found.null_count is None else "above the null's"
        yield f"The observed mean is not {mean}, so that pinned is 0: it sees no trace of the canaries."
    yield from coverage_remarks(found.bounds)
    if found.null_law is not None:
        yield (
            "A small p-value for the null law is expected where scores are maxima over rounds; for cosines with a "
            "single release it says that --dim is wrong or the unobserved canaries are not random."
        )


def _of_release(found: "Audit") -> bool:
    return found.estimates[-1].name == "norm"


def _meaning(found: "Audit") -> str:
    release = _of_release(found)
    seen = "this release" if release else "these cosines alone"
    meaning = (
        f"ε̂ is an estimate, neither an upper nor a lower bound on the mechanism's privacy loss, and its interval is "
        f"only as good as what its estimator assumes. It concerns an attacker who knows a random canary and looks at "
        f"{seen}: it averages over canaries, and a low value does not exclude other attacks. It needs canaries that "
        f"took part just as clients do."
    )
    scale = " The norm estimate takes the release to be in units of the canary norm; the others need no unit."
    return meaning + scale if release else meaning


def rounded(value: float, error: float) -> str:
    """Print a number with as many digits as leave two of its standard error.

    Parameters
    ----------
    value
        Number to print.
    error
        Its standard error; where it is 0, the number is printed with three significant digits.

    Returns
    -------
    The digits.
    """
    if not (error > 0.0 and math.isfinite(value) and math.isfinite(error)):
        return f"{value:.3g}"
    decimals = 1 - _exponent(f"{error:.1e}")
    # Adding 0 makes a zero of what rounds to −0.
    near = round(value, decimals) + 0.0
    if decimals <= 6 and abs(near) < 1e6:
        return f"{near:.{max(0, decimals)}f}"
    digits = decimals + _exponent(f"{near:e}")
    return f"{near:.{min(max(0, digits), _ALL_DIGITS)}e}"


def _exponent(scientific: str) -> int:
    return int(scientific.partition("e")[2])
