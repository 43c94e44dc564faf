"""Command ``canaryproof canaries``: canaries for one's own mechanism, in a file of their own or in a release."""

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from canaryproof.verify.audit.cli.options import (
    SEED,
    FilePath,
    check_output,
    number_of,
    one_line,
    overwrite_option,
)
from canaryproof.verify.audit.cli.release_options import (
    INDEPENDENT,
    canary_norm_option,
    directions_option,
    make_canaries,
    only_option,
    order_of,
    show_progress,
    skip_option,
)
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.writing import write_output
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    from canaryproof.verify.audit.files.stored_release import StoredRelease


@click.command("canaries")
@click.option("--seed", type=SEED, required=True, help="Seed, to be given to the audit as --canary-seed.")
@click.option(
    "--count",
    type=number_of(NumberRange("be a whole number from 1 to 2^32", 1, 2**32, whole=True)),
    required=True,
    help="Number of canaries, the rows.",
)
@click.option(
    "--dim",
    type=number_of(NumberRange("be a whole number from 2 to 2^40", 2, 2**40, whole=True)),
    help="Dimension, the columns.",
)
@directions_option
@click.option(
    "--add",
    type=FilePath(),
    metavar="FILE",
    help="Write FILE, a .npy or a checkpoint, with the sum of all canaries added to it.",
)
@canary_norm_option
@only_option
@skip_option
@click.option("--out", type=FilePath(), required=True, help="The file to write.")
@overwrite_option
def canaries_command(
    seed: int,
    count: int,
    dim: int | None,
    directions: str,
    add: Path | None,
    canary_norm: float,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    out: Path,
    overwrite: bool,
) -> None:
    """Write canaries for your own mechanism.

    They are random unit vectors, uniform ones if their directions are independent. The file is a float32 .npy array of
    shape (count, dim), a canary a row. With --add they are inserted instead: OUT has the tensors of FILE, and those
    that --only and --skip choose have the sum of the canaries added, in float32 or float64. Coordinates stand in the
    order of the tensors' names.
    """
    if add is not None:
        if dim is not None:
            raise InputError("--dim: must not be given with --add, as the file says it")
        from canaryproof.verify.audit.files.stored_release import open_release

        release = open_release(add, only, skip, canary_norm=canary_norm)
        _insert(add, release, seed, count, directions, out, overwrite=overwrite)
        return
    if dim is None:
        raise InputError("--dim: must be given, or --add")
    for option, asked_for in (("--canary-norm", canary_norm != 1.0), ("--only", only), ("--skip", skip)):
        if asked_for:
            raise InputError(f"{option}: must be given with --add alone")
    if directions != INDEPENDENT and count > dim:
        raise InputError(f"--count: must be at most --dim, as no more than {dim:,} directions are orthogonal")
    check_output(out, (".npy",), 4 * count * dim, overwrite=overwrite)
    write_output(out, lambda file: _write_canaries(file, directions, seed, count, dim), overwrite=overwrite)
    option = "" if directions == INDEPENDENT else f" --directions {directions}"
    click.echo(
        f"Wrote {count} canaries of dimension {dim} to {one_line(str(out))}; audit a release with:\n"
        f"  canaryproof audit RELEASE.npy --canaries {count} --canary-seed SEED{option} --delta DELTA"
    )


def _insert(
    file: Path, release: "StoredRelease", seed: int, count: int, directions: str, out: Path, *, overwrite: bool
) -> None:
    """Write a file with all canaries added to it."""
    from canaryproof.verify.audit.files.stored_release import write_sum, written_size

    suffix = ".npy" if file.suffix.lower() == ".npy" else ".safetensors"
    if directions != INDEPENDENT and count > release.dim:
        raise InputError(f"--count: must be at most {release.dim:,}, as no more directions are orthogonal")
    check_output(out, (suffix,), written_size(file, release), overwrite=overwrite)
    # Loads compiled kernels.
    from canaryproof.kernels.slices import blocks

    parts = blocks(release.dim)
    try:
        canaries = make_canaries(directions, seed, count, release.dim)
    except ValueError as error:
        raise InputError(f"--count: {error}") from error
    with show_progress("adding canaries", len(parts)) as advance:
        made, values = slice(0, 0), np.zeros(0)

        def sum_slice(start: int, stop: int) -> Any:
            nonlocal made, values
            pieces = []
            while start < stop:
                if start >= made.stop:
                    made = next(part for part in parts if part.start <= start < part.stop)
                    values = canaries.sum(coordinates=made)
                    values *= release.canary_norm
                    advance(1)
                end = min(stop, made.stop)
                pieces.append(values[start - made.start : end - made.start])
                start = end
            return np.concatenate(pieces)

        write_output(out, lambda target: write_sum(target, file, release, sum_slice), overwrite=overwrite)
    options = "" if directions == INDEPENDENT else f" --directions {directions}"
    options += "" if release.canary_norm == 1.0 else f" --canary-norm {release.canary_norm!r}"
    click.echo(
        f"Added {count} canaries to {release.dim:,} coordinates and wrote {one_line(str(out))}; audit a release with:\n"
        f"  canaryproof audit RELEASE{suffix} --canaries {count} --canary-seed SEED{options} --delta DELTA"
    )
    if release.tensors[0].name:
        click.echo(order_of(release))


def _write_canaries(file: IO[bytes], directions: str, seed: int, count: int, dim: int) -> None:
    with show_progress("making canaries", count) as advance:
        header = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
        np.lib.format.write_array_header_1_0(file, header)
        canaries = make_canaries(directions, seed, count, dim)
        for j in range(count):
            if directions == INDEPENDENT:
                # A new object each time, as it remembers the norms of the canaries that it has made.
                canaries = make_canaries(directions, seed, count, dim)
            file.write(canaries.vector(j).astype("<f4", copy=False).data)
            advance(1)
