"""Command ``canaryproof train``: an experiment in federated training, and what its canaries tell."""

import errno
import json
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from canaryproof.verify.audit.cli.options import (
    INTERRUPTED,
    EngineLost,
    FilePath,
    cluster,
    engine_option,
    one_line,
    report_repetitions,
)
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.engine.executors import EngineError
from canaryproof.verify.audit.engine.provenance import code_and_machine
from canaryproof.verify.audit.files.errors import InputError, OutputError, extra
from canaryproof.verify.audit.files.json_records import plain, to_document
from canaryproof.verify.audit.files.reading import read_json
from canaryproof.verify.audit.files.writing import lock_folder, replace_file
from canaryproof.verify.papers.cli import screen
from canaryproof.verify.papers.records.output_files import write_files
from canaryproof.verify.papers.records.report_input import RESULTS, TIMINGS
from canaryproof.verify.papers.records.training_record import ExperimentRecord, Timings
from canaryproof.verify.papers.training.configuration import SIZES, Configuration, names, read

if TYPE_CHECKING:
    from canaryproof.verify.papers.training.cost import Cost

_EXTRA = ("jax", "flax", "optax")
_BEGUN = "experiment.json"


def _experiments(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of an experiment, or of a file if there is none."""
    experiments = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return experiments or [CompletionItem(incomplete, type="file")]


@click.command("train", epilog=f"Experiments that come with the package:\n\n{', '.join(names())}.")
@click.argument("config", shell_complete=_experiments)
@click.option("--out", type=FilePath(), help="Folder for all results; must not exist, unless with --resume.")
@click.option("--resume", is_flag=True, help="Go on with the experiment in --out that was stopped.")
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default="quick",
    show_default=True,
    help="quick experiments take minutes; of the full ones --estimate says how long they take.",
)
@click.option("--data", type=FilePath(), help="Folder of the data, for experiments that need one.")
@click.option("--estimate", is_flag=True, help="Print what it will cost and end; no --out needed.")
@engine_option
def train_command(
    config: str, out: Path | None, resume: bool, size: str, data: Path | None, estimate: bool, engine_name: str
) -> None:
    """Train with canaries and differential privacy, and audit what is released.

    CONFIG is the name of an experiment that comes with the package, or a TOML file. Algorithms 2 and 3 of
    arXiv:2302.03098 audit the same training. With a table [canife] in the file, CANIFE (arXiv:2210.02912) audits it as
    well, or instead. The folder --out gets results.md with pictures, results.json, and the scores of each training's
    canaries, which "canaryproof audit" reads.

    If the experiment takes more than about a minute, it first measures some pieces, and prints on stderr what the whole
    will cost.

    With --resume, a stopped experiment goes on and ends with the same results.json. A training is saved after the round
    in which half a minute has passed, and each audit by CANIFE when it is done: what came later is done again. With
    --engine dask, a training that was not done begins anew.
    """
    configuration = read(config, size)
    missing = [name for name in _EXTRA if find_spec(name) is None]
    if missing:
        raise InputError(f"train: needs {', '.join(missing)}: {extra('federated')}")
    workers = cluster(engine_name)
    # Before the data is read and JAX is loaded, which take seconds.
    if out is not None:
        _check_folder(out, resume)
    elif not estimate:
        raise click.UsageError("Missing option '--out'.")
    from canaryproof.reports import training
    from canaryproof.verify.papers.training.experiment import Experiment

    experiment = Experiment(configuration, data)
    if estimate or out is None:
        cost = experiment.cost(out or Path())
        _say_cost(cost)
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        with lock_folder(out):
            _begin(out, configuration, experiment.examples())
            # The cost is None, or has no seconds, where a training takes about a minute.
            if (cost := experiment.cost(out)) is not None and cost.seconds is not None:
                _say_cost(cost)
            with progress("canaryproof train", equal_parts=True) as advance:
                record, timings = experiment.run(out, advance, workers)
            # The page has a command that finds a file in a folder, too.
            record = replace(record, name=config)
            _print(record)
            documents = {RESULTS: _json(to_document(record)), TIMINGS: _json(to_document(Timings(tuple(timings))))}
            files = {**documents, **training.render(record)}
            write_files({name: text.encode() for name, text in files.items()}, out)
            click.echo(f"Results: {one_line(str(out))}")
    except OSError as error:
        # A folder or file of --out that is of another kind is as it was given.
        broken = InputError if error.errno in {errno.EINVAL, errno.ENOTDIR} else OutputError
        raise broken(f"{error.filename or out}: {error.strerror or error}{_resumes(out)}") from error
    except EngineError as error:
        raise EngineLost(f"{error}{_resumes(out)}") from error
    except KeyboardInterrupt:
        click.echo("Interrupted; the same command with --resume goes on.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    if workers is not None:
        report_repetitions(workers.attempts, experiment.names)


def _say_cost(cost: "Cost | None") -> None:
    lines: tuple[str, ...] = ("all trainings are done",) if cost is None else cost.lines()
    if screen.is_terminal():
        lines = tuple(line for each in lines for line in screen.paragraph(each))
    click.echo("\n".join(lines), err=True)


def _resumes(out: Path) -> str:
    """Say that an experiment goes on, if it has begun."""
    return "; what is done is kept, and --resume goes on" if (out / _BEGUN).is_file() else ""


def _check_folder(out: Path, resume: bool) -> None:
    try:
        if out.exists() and not resume:
            raise InputError(f"{out}: must not exist already; --resume goes on with the experiment in it")
        # Hidden files are what a start that was stopped at once has left.
        if out.exists() and not (out / _BEGUN).exists() and any(path.name[0] != "." for path in out.iterdir()):
            raise InputError(f"{out}: must be the folder of an experiment, with {_BEGUN} in it")
    except OSError as error:
        raise InputError(f"{out}: {error.strerror or error}") from error


def _begin(out: Path, configuration: Configuration, examples: list[str]) -> None:
    """Write down what is run by what, or make sure that it is the same as before."""
    parts = {"configuration": plain(asdict(configuration)), "data": {"data": examples}, "made by": code_and_machine()}
    made_by = json.loads(_json(parts))
    file = out / _BEGUN
    if not file.exists():
        with replace_file(file) as target:
            target.write(_json(made_by).encode())
        return
    before = read_json(file)
    if before == made_by:
        return
    other = [name for part in made_by for name in made_by[part] if _part(before, part, name) != made_by[part][name]]
    raise InputError(f"{out}: --resume: was begun with another {', '.join(other)}")


def _part(document: Any, part: str, name: str) -> Any:
    try:
        return document[part][name]
    except (KeyError, TypeError):
        return None


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _print(document: ExperimentRecord) -> None:
    """Print what to be warned of and the tables with their notes: on a terminal what fits one screen."""
    from canaryproof.reports import training

    lines = [line for each in training.warnings(document) for line in screen.paragraph(f"warning: {each}")]
    for section in training.first_sections(document):
        lines += [""] if lines else []
        lines += [*screen.narrow_table(section.title, section.header, section.rows), *screen.paragraph(section.note)]
    if screen.is_terminal():
        # The line with the folder of the results is the last one.
        lines = screen.fit(lines, "results.md has all", screen.MOST_LINES - 1)
    click.echo("\n".join(lines))
