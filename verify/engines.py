"""Where a command computes: the option ``--engine``, and what it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from canaryproof.verify.cluster import Cluster

_DASK = "dask"

engine_option = click.option(
    "--engine",
    "engine_name",
    default="local",
    show_default=True,
    help="local, dask for a cluster on this machine, or dask://HOST:PORT for the one of a scheduler.",
)


class EngineError(click.ClickException):
    """An engine that cannot go on."""


@dataclass(frozen=True)
class Lost:
    """In place of the result of a task that was given up.

    Attributes
    ----------
    reason
        Why.
    """

    reason: str


def cluster(name: str, limit: float | None = None) -> "Cluster | None":
    """Return the cluster that an engine's name stands for.

    Parameters
    ----------
    name
        ``local``; ``dask`` for a cluster on this machine; ``dask://host:port`` for the one whose scheduler is there.
    limit
        Seconds that a check may take; None for no limit.

    Returns
    -------
    The cluster; None for ``local``.

    Raises
    ------
    UsageError
        If there is no such engine, or what it needs is not installed.
    """
    if name == "local":
        return None
    if name != _DASK and not name.startswith(f"{_DASK}://"):
        raise click.UsageError(f"--engine: must be local, dask or dask://HOST:PORT, not {name!r}")
    if find_spec("distributed") is None:
        raise click.UsageError("--engine: dask needs pip install canaryproof[distributed]")
    from canaryproof.verify.cluster import Cluster
    from canaryproof.verify.simulation import threads

    address = name.removeprefix(_DASK).removeprefix("://")
    return Cluster(address if "://" in address or not address else f"tcp://{address}", threads(), limit)


def given_again(begun: Mapping[int, int], names: Sequence[str]) -> dict[str, int]:
    """Tell on stderr, and return, how often the tasks were given to a worker that were so more than once."""
    again = {names[i]: times for i, times in sorted(begun.items()) if times > 1}
    for name, times in again.items():
        click.echo(f"given to {times} workers, as some were lost: {name}", err=True)
    return again
