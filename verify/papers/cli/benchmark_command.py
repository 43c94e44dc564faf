"""Command ``canaryproof benchmark canife``: CANIFE against random canaries, by laws of scores or in trainings."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

from canaryproof.verify.audit.cli.options import EngineLost, FilePath, cluster, engine_option, overwrite_option
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.engine.executors import EngineError
from canaryproof.verify.audit.files.errors import InputError, OutputError, extra
from canaryproof.verify.audit.files.json_records import to_document
from canaryproof.verify.papers.records.canife_comparison import from_trainings
from canaryproof.verify.papers.records.output_files import check_files, write_files
from canaryproof.verify.papers.records.report_input import CANIFE

_EXTRA = ("jax", "flax", "optax")


@click.group("benchmark")
def benchmark_command() -> None:
    """Measure this package and others on this machine."""


@benchmark_command.command("canife")
@click.option("--dim", type=float, metavar="D", help="Dimension of the model; 101770 by default.")
@click.option("--canaries", type=float, metavar="K", help="Number of random canaries; 1000 by default.")
@click.option("--epsilon", type=float, help="Analytical epsilon; by default that of noise multiplier 0.2.")
@click.option("--rounds", type=float, metavar="T", help="Rounds of the one epoch; 469 by default.")
@click.option("--delta", type=float, help="Target delta; 1e-5 by default.")
@click.option("--seed", type=int, help="Seed of all randomness; 0 by default.")
@click.option(
    "--data",
    type=FilePath(),
    help="Train networks instead: on the IDX files of MNIST or the like in a folder, or on scikit-learn's digits.",
    metavar="FOLDER|digits",
)
@click.option("--repeat", type=click.IntRange(1, 1000), help="Trainings of each scenario: 3, or 10 at the full level.")
@click.option(
    "--level",
    type=click.Choice(["quick", "full"]),
    help="Quick by default. On MNIST two or ten minutes on two cores; full also shuffles an epoch and tries rates.",
)
@click.option("--out", type=FilePath(), help="Folder for the page, its picture and its numbers.")
@overwrite_option
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def canife_command(
    dim: float | None,
    canaries: float | None,
    epsilon: float | None,
    rounds: float | None,
    delta: float | None,
    seed: int | None,
    data: Path | None,
    repeat: int | None,
    level: str | None,
    out: Path | None,
    overwrite: bool,
    engine_name: str,
    as_json: bool,
) -> None:
    """Compare CANIFE with random canaries: what each finds of epsilon, its cap and its costs.

    By default nothing is trained. Scores are drawn from their laws, in a training of the size that the options say,
    and CANIFE's canaries are those that were designed on Fashion-MNIST, as printed and by a redesign of this package.
    Methods are compared at their own sizes, with equal numbers of canaries, and with equal seconds. It takes less than
    a minute.

    With --data, networks are trained, in the setting of Section 5.4 of arXiv:2302.03098, and audited by CANIFE, by
    Algorithms 2 and 3, and by lower bounds. This needs the extra "federated".
    """
    setting = {
        "dim": dim, "canaries": canaries, "epsilon": epsilon, "rounds": rounds, "delta": delta, "seed": seed
    }  # fmt: skip
    given = {name: value for name, value in setting.items() if value is not None}
    if data is None:
        for name, value in (("repeat", repeat), ("level", level), ("engine", engine_name != "local" or None)):
            if value is not None:
                raise InputError(f"--{name}: needs --data, as nothing is trained without it")
        _by_laws(given, out, overwrite, as_json)
    else:
        for name in given:
            raise InputError(f"--{name}: must not be given with --data, whose setting is the paper's")
        folder = None if str(data) == "digits" else data
        _by_trainings(folder, repeat, level or "quick", out, overwrite, engine_name, as_json)


def _by_laws(given: Mapping[str, float], out: Path | None, overwrite: bool, as_json: bool) -> None:
    # Load compiled kernels, which a mistake in the options does not wait for.
    from canaryproof.verify.papers.comparison import canife_laws

    try:
        laws = canife_laws.checked_laws(**given)
    except ValueError as error:
        name, _, rule = str(error).partition(":")
        raise InputError(f"--{name}:{rule}") from error
    if out is not None:
        # Loads matplotlib.
        from canaryproof.reports import canife_comparison

        prepare(out, canife_comparison.FILES, overwrite=overwrite)
    with progress("canaryproof benchmark canife", equal_parts=False) as advance:
        comparison = canife_laws.compare(laws, lambda part: advance(part, 0, 0))
    document = (
        json.dumps(comparison.to_json(), ensure_ascii=False, indent=1, allow_nan=False) if as_json else str(comparison)
    )
    click.echo(document)
    if out is not None:
        write(canife_comparison.files(comparison), out)


def _by_trainings(
    data: Path | None,
    repeat: int | None,
    level: str,
    out: Path | None,
    overwrite: bool,
    engine_name: str,
    as_json: bool,
) -> None:
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        raise InputError(f"--data: training networks needs {', '.join(missing)}: {extra('federated')}")
    workers = cluster(engine_name)
    if out is not None:
        prepare(out, (CANIFE, "canife.md"), overwrite=overwrite)
    # Its trainings need JAX.
    from canaryproof.verify.papers.accounting.sampled_gaussian import least_epsilon
    from canaryproof.verify.papers.claims.canife import rules as canife_rules
    from canaryproof.verify.papers.comparison import canife as benchmark

    federation, setting, fashion = benchmark.read(data)
    try:
        with progress("canaryproof benchmark canife", equal_parts=False) as advance:
            record = benchmark.measure(
                federation,
                setting,
                level,
                repeat,
                lambda part: advance(f"training: {part}", 0, 0),
                cluster=workers,
                data=data,
            )
    except EngineError as error:
        raise EngineLost(str(error)) from error
    record = canife_rules.with_printed(record, fashion)
    text = json.dumps(to_document(record), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    click.echo(text.rstrip() if as_json else from_trainings(record, least_epsilon(setting.delta)))
    if out is not None:
        # Loads matplotlib.
        from canaryproof.reports import canife

        pages = {CANIFE: text, **canife.render(record)}
        write({name: page.encode() for name, page in pages.items()}, out)
    elif not as_json:
        click.echo("All designs, bounds and costs are on the page, which --out DIR writes.")


def prepare(folder: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Make a folder: minutes of measuring are not to be lost to one that cannot be written to."""
    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        check_files(names, folder)
    for name in names:
        if not overwrite and (folder / name).exists():
            raise InputError(f"{folder / name}: must not exist already, unless with --overwrite")


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files by their names."""
    with _named(folder, OutputError):
        write_files(files, folder)


@contextmanager
def _named(folder: Path, kind: type[InputError] = InputError) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise kind(f"{error.filename or folder}: {error.strerror or error}") from error
