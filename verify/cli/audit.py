"""Commands ``canaryproof audit`` and ``canaryproof canaries``: the audit of a user's own run."""

import contextlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress

from canaryproof.verify.cli.command_line import one_line
from canaryproof.verify.files.reading import LARGEST_COUNT, InputError, read_release, read_scores

if TYPE_CHECKING:
    from canaryproof.verify.audit import Audit

_PROGRESS_AFTER = 2.0  # seconds


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


@click.command("audit")
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
        return
    # Loads scipy and compiled kernels, which a mistake in the options or the file does not wait for; so below.
    from canaryproof.verify.audit import print_audit

    print_audit(found)


@click.command("canaries")
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
