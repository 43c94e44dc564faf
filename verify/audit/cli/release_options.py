"""Options of a release and its canaries, which ``canaryproof audit`` and ``canaryproof canaries`` share."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from canaryproof.verify.audit.cli.options import number_of, one_line
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
    from canaryproof.verify.audit.files.stored_release import StoredRelease

INDEPENDENT = "independent"
directions_option = click.option(
    "--directions",
    type=click.Choice([INDEPENDENT, "orthonormal"]),
    default=INDEPENDENT,
    show_default=True,
    help="Whether the canaries' directions are independent or orthonormal.",
)

canary_norm_option = click.option(
    "--canary-norm",
    type=number_of(NumberRange("be positive and at most 1e30", 1e-30, 1e30)),
    default=1.0,
    show_default=True,
    help="Norm of a canary in the file's unit.",
)
only_option = click.option(
    "--only", multiple=True, metavar="PATTERN", help="Tensors to take, by name; may be repeated."
)
skip_option = click.option("--skip", multiple=True, metavar="PATTERN", help="Tensors to leave out; may be repeated.")


def make_canaries(directions: str, seed: int, count: int, dim: int) -> "ReleaseCanaries":
    """Make the canaries of a seed."""
    # Load compiled kernels.
    from canaryproof.kernels.canaries import Canaries
    from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries

    return (Canaries if directions == INDEPENDENT else OrthonormalCanaries)(seed, count, dim)


def order_of(release: "StoredRelease") -> str:
    """Describe the order of a checkpoint's coordinates, and which tensors are left out."""
    tensors, left = release.tensors, release.left_out
    names = tensors[0].name if len(tensors) == 1 else f"{tensors[0].name} to {tensors[-1].name}"
    text = f"Order     {_number_of(len(tensors))} by name, {one_line(names)}"
    if left:
        text += f"\nLeft out  {_number_of(len(left))}, {one_line(', '.join(left[:3]))}{', …' if len(left) > 3 else ''}"
    return text


def _number_of(tensors: int) -> str:
    return f"{tensors:,} tensor" if tensors == 1 else f"{tensors:,} tensors"


@contextlib.contextmanager
def show_progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress over equal steps."""
    # Loads rich's bars, which an audit of scores does without.
    from canaryproof.verify.audit.cli.progress import progress

    done = 0
    with progress("canaryproof", equal_parts=True) as advance:

        def steps(more: int) -> None:
            nonlocal done
            done += more
            advance(description, done, total)

        yield steps
