"""Commands ``canaryproof audit`` and ``canaryproof canaries``: the audit of a user's own run."""

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource
from rich.filesize import decimal

from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.findings import Question
from canaryproof.verify.audit.cli.options import (
    KIND,
    EngineLost,
    FilePath,
    cluster,
    columns_options,
    engine_option,
    junit_option,
    one_line,
    overwrite_option,
    write_after_answer,
)
from canaryproof.verify.audit.cli.watch_file import answer_watch, is_watch
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import LARGEST_COUNT, ScoreKind
from canaryproof.verify.audit.files.writing import write_output
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.release_sums import Scoring
    from canaryproof.verify.audit.answer.run_audit import Audit
    from canaryproof.verify.audit.canaries.round_scores import ReleaseCanaries
    from canaryproof.verify.audit.canaries.scores import Scores
    from canaryproof.verify.audit.files.stored_release import StoredRelease


def _number(rule: NumberRange) -> Callable[[str], float]:
    """Return a converter to a number that keeps a rule; 1e6 is a whole one too."""

    def number(text: str) -> float:
        with contextlib.suppress(InvalidOperation, ValueError):
            value = Decimal(text) if rule.whole else float(text)
            if value in rule:
                return int(value) if rule.whole else float(value)
        raise click.BadParameter(rule.objection(text))

    if rule.whole:
        number.__name__ = "integer"
    return number


SEED = _number(NumberRange("be a whole number from 0 to 2^64 - 1", 0, 2**64 - 1, whole=True))
_COUNT = _number(NumberRange(f"be a whole number from 2 to {LARGEST_COUNT:g}", 2, LARGEST_COUNT, whole=True))
_PICTURES, _REPORTS = (".svg", ".png"), (".html", ".md", ".json")


def _bound_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a bound."""
    # Loads compiled kernels.
    from canaryproof.verify.audit.bounds.catalogue import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


_INDEPENDENT = "independent"
_DIRECTIONS = click.option(
    "--directions",
    type=click.Choice([_INDEPENDENT, "orthonormal"]),
    default=_INDEPENDENT,
    show_default=True,
    help="Whether the canaries' directions are independent or orthonormal.",
)

_CANARY_NORM = click.option(
    "--canary-norm",
    type=_number(NumberRange("be positive and at most 1e30", 1e-30, 1e30)),
    default=1.0,
    show_default=True,
    help="Norm of a canary in the file's unit.",
)
_ONLY = click.option("--only", multiple=True, metavar="PATTERN", help="Tensors to take, by name; may be repeated.")
_SKIP = click.option("--skip", multiple=True, metavar="PATTERN", help="Tensors to leave out; may be repeated.")


def _take_plan(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Let a plan's file give the options that the command line does not."""
    if path is not None:
        # Loads compiled kernels.
        from canaryproof.verify.audit.answer import plan_file

        context.default_map = plan_file.audit_options(path)
    return path


@click.command("audit")
@click.argument("file", type=FilePath())
@click.option(
    "--delta",
    type=_number(rules.DELTA_OR_ZERO),
    help="Target delta of (epsilon, delta)-privacy.",
)
@click.option("--dim", type=_number(rules.DIM), help="Dimension d of the released vector.")
@click.option(
    "--canaries",
    "count",
    type=_COUNT,
    help="FILE is the released vector, and this many canaries were added to it.",
)
@click.option("--canary-seed", "seed", type=SEED, help="Seed that the canaries were made from.")
@_DIRECTIONS
@_CANARY_NORM
@_ONLY
@_SKIP
@click.option("--base", type=FilePath(), help="Checkpoint that is subtracted from FILE: the model before training.")
@click.option(
    "--state", type=FilePath(), help="File that keeps what was scored; the same command resumes from it if killed."
)
@engine_option
@click.option(
    "--claim",
    type=_number(rules.CLAIM),
    help="Claimed epsilon, to be compared; by default that of --noise-multiplier, for one released vector or a record "
    "of rounds.",
)
@click.option(
    "--noise-multiplier",
    type=_number(rules.NOISE_MULTIPLIER),
    help="Claimed standard deviation of the noise, in units of the canary norm: of a released vector, the noise in it; "
    "of recorded rounds, a round's.",
)
@click.option(
    "--fail-above-claim",
    is_flag=True,
    help="Be a gate: exit with 1 if the claim is not passed, 3 if nobody can say, 4 if the input is wrong.",
)
@click.option(
    "--notice",
    type=_number(rules.SHARE),
    default=0.5,
    show_default=True,
    help="Share of the claimed noise that must be noticed with probability 90% for the claim to pass.",
)
@click.option(
    "--ask",
    multiple=True,
    type=click.Choice([question.value for question in Question if question is not Question.PLAN]),
    help="Question that must be answered as claimed; may be repeated. By default input and leak, and of scores with a "
    "record also sampling and accounting.",
)
@click.option(
    "--rate",
    type=_number(NumberRange("be above 0 and at most 1", 5e-324, 1.0)),
    help="Claimed Poisson sampling rate of a round.",
)
@click.option("--rounds", type=_number(rules.ROUNDS), help="Claimed number of rounds; with --rate.")
@click.option(
    "--participations", type=_number(rules.ROUNDS), help="Claimed number of rounds that a record takes part in."
)
@click.option(
    "--data-norm",
    type=_number(NumberRange("lie between 0 and 1e15", 0.0, 1e15)),
    help="The most that others' data sum to in the released vector, in canary norms.",
)
@junit_option
@click.option(
    "--confidence",
    type=_number(rules.CONFIDENCE),
    default=0.95,
    show_default=True,
    help="Confidence of the intervals and bounds.",
)
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="NAME",
    shell_complete=_bound_names,
    help="Lower bound to show; may be repeated.",
)
@click.option(
    "--inclusion",
    type=click.Choice(["fixed", "coin", "independent"]),
    default="fixed",
    show_default=True,
    help="Whether the observed canaries were chosen in advance, each by a fair coin, or are of a training each.",
)
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in ScoreKind]),
    help=KIND,
)
@columns_options
@click.option(
    "--neighbours",
    type=click.Choice(["add-or-remove", "replace"]),
    default="add-or-remove",
    show_default=True,
    help="Those of the claim. With replace, canaries in the column unobserved entered with the other sign.",
)
@click.option(
    "--inserted",
    type=_number(rules.INSERTED),
    help="Number of independent canaries in the release that FILE's cosines are of; 1 if others were taken out.",
)
@click.option("--details", is_flag=True, help="Print all estimates, bounds, tests and blind spots too.")
@click.option("--force", is_flag=True, help="Print estimates even where a warning makes them meaningless.")
@click.option("--json", "as_json", is_flag=True, help="Print all as one JSON document, equal for equal input.")
@click.option(
    "--plot",
    type=FilePath(),
    metavar="FILE",
    help="Draw scores, estimate and claim in a .svg or .png file.",
)
@click.option(
    "--report",
    type=FilePath(),
    metavar="FILE",
    help="Write a report, .html, .md or .json, which others can check.",
)
@click.option("--title", default="", help="Title of the report.")
@click.option("--subject", default="", help="What was audited, as the report says it.")
@click.option("--date", default="", help="Date of the report, in words of your own.")
@click.option(
    "--plan",
    type=FilePath(),
    metavar="FILE",
    is_eager=True,
    callback=_take_plan,
    help='Hold the audit against what "plan --out" wrote, which gives the options that are not given here.',
)
@overwrite_option
def audit_command(
    file: Path,
    count: int | None,
    seed: int | None,
    directions: str,
    canary_norm: float,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    base: Path | None,
    state: Path | None,
    engine_name: str,
    dim: int | None,
    kind: str | None,
    unobserved: Path | None,
    inclusion: str,
    neighbours: str,
    inserted: int | None,
    score: str | None,
    member: str | None,
    id_column: str | None,
    fail_above_claim: bool,
    rate: float | None,
    rounds: int | None,
    participations: int | None,
    data_norm: float | None,
    junit: Path | None,
    details: bool,
    as_json: bool,
    plot: Path | None,
    report: Path | None,
    title: str,
    subject: str,
    date: str,
    plan: Path | None,
    overwrite: bool,
    **asked: Any,
) -> int:
    """Estimate epsilon from one run, and bound it from below.

    FILE holds scores of canaries, by default their cosines with the release. It is a one-dimensional .npy, or an .npz
    with the arrays "observed" and, optionally, "unobserved". Or it is a .csv with one number a line, or with a header
    naming these columns. Or it is a .csv or .parquet with a line for each canary, whose columns --score and --member
    name, by default score and member, or with a column for each kind, as in and out, or train and test. Or it is a
    .json that Scores.save of Python wrote, with the record of a training's rounds, whose noise is then measured. With
    --canaries and --canary-seed it is the release itself, and its canaries are made again as "canaryproof canaries"
    makes them. It is a one-dimensional .npy, or a checkpoint: a .safetensors, or the .safetensors.index.json of
    several, whose coordinates stand in the order of the tensors' names. It is read in pieces, so that it may be larger
    than memory. All values are floating-point.

    The null hypothesis is N(0, 1/d), or a Gaussian fitted to the unobserved scores if there are any. The lower bounds
    need no Gaussian: their null is the cosine's exact law, or the unobserved scores themselves.

    With --plan, options that are not given are those of the plan, and the seed is that of its secret, in the file
    next to it: "audit release.npy --plan plan.json" is the whole command.

    A .json that a watch of Python wrote is answered again: it says what is claimed, and the exit status is that of the
    decision.

    The decision comes first, then the findings that it rests on, and what to do; --details prints the rest. In
    continuous integration, --claim EPSILON --fail-above-claim passes a job only where every question that is asked is
    answered as claimed, and a share of its noise, --notice, would have been noticed.
    """
    if junit is not None:
        # This import loads a writer of XML, which an audit without the option does without; so below.
        from canaryproof.verify.audit.cli import junit as junit_file

        junit_file.check(junit, overwrite=overwrite)
    context = click.get_current_context()
    if is_watch(file):
        return answer_watch(context, file, junit, as_json=as_json)
    if asked["delta"] is None:
        raise click.MissingParameter(
            ctx=context, param=next(each for each in context.command.params if each.name == "delta")
        )
    if plot is not None:
        check_output(plot, _PICTURES, 0, overwrite=overwrite)
    if report is not None:
        check_output(report, _REPORTS, 0, overwrite=overwrite)
    heading = _check_heading(report, title=title, subject=subject, date=date)
    if score is not None and count is not None:
        raise InputError("--score: must not be given with --canaries, as a released vector has no columns")
    columns = {"score": score, "member": member, "id_column": id_column}
    of_release = {
        "--canary-norm": canary_norm != 1.0,
        "--only": bool(only),
        "--skip": bool(skip),
        "--base": base is not None,
        "--state": state is not None,
        "--engine": engine_name != "local",
    }
    if count is None and seed is None:
        for option, asked_for in of_release.items():
            if asked_for:
                raise InputError(f"{option}: must be given with --canaries and --canary-seed alone")
        if directions != _INDEPENDENT:
            raise InputError("--directions: must be given with --canaries and --canary-seed alone")
        given = {"kind": kind, "dim": dim, "inclusion": inclusion, "neighbours": neighbours, "inserted": inserted}
        if data_norm is not None:
            raise InputError("--data-norm: must be given with --canaries and --canary-seed alone")
        mechanism: dict[str, Any] = {"rate": rate, "rounds": rounds, "participations": participations}
        scores = read_scores(file, given, columns, unobserved)
        if scores.record is None and any(value is not None for value in mechanism.values()):
            of_plan = [name for name in mechanism if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP]
            why = f"{plan} is a plan of rounds" if of_plan else "--rate, --rounds and --participations are of rounds"
            raise InputError(f"{file}: must have a record of rounds, as Scores.save of Python writes it, because {why}")
        result = _audit_scores(file, scores, **asked, **mechanism)
    elif count is None or seed is None:
        raise InputError("--canaries and --canary-seed: must be given together")
    elif dim is not None:
        raise InputError("--dim: must not be given with --canaries, as a released vector has its own length")
    elif unobserved is not None:
        raise InputError("--unobserved: must not be given with --canaries, as the scores are those of a release")
    elif kind not in (None, ScoreKind.COSINE):
        raise InputError("--kind: must not be given with --canaries, as the scores of a released vector are cosines")
    elif inserted is not None:
        raise InputError("--inserted: must not be given with --canaries, as others are taken out of each score")
    elif (rate, rounds, participations) != (None, None, None):
        raise InputError("--rate, --rounds and --participations: are for scores with a record of rounds")
    else:
        # Audits of scores do without; so below.
        from canaryproof.verify.audit.files.stored_release import open_release

        release = open_release(file, only, skip, base, canary_norm)
        asked |= {"state": state, "neighbours": neighbours, "data_norm": data_norm}
        result = _audit_release(file, release, count, seed, directions, engine_name, **asked)
    if fail_above_claim and result.claim is None:
        raise InputError("--fail-above-claim: needs --claim, or --noise-multiplier of one released vector or a record")
    if plan is not None:
        result = result.compare_with_plan(plan)
    # Whatever becomes of the printing and of the files, the decision stands.
    status = result.decision.status if fail_above_claim and result.decision is not None else 0
    _print(result, details=details, as_json=as_json)

    def draw(path: Path) -> None:
        # Loads matplotlib.
        from canaryproof.verify.audit.answer import picture

        drawn = picture.data(result, path.suffix[1:].lower())
        write_output(path, lambda target: target.write(drawn), overwrite=overwrite)

    def write_report(path: Path) -> None:
        from canaryproof.verify.audit.answer import report as reports

        named, audited = reports.ReportHeading(path.name, **heading), reports.file_record(file, columns, unobserved)
        made = reports.render(result, reports.record(result, named, audited), path)
        write_output(path, lambda target: target.write(made), overwrite=overwrite)

    def write_junit(path: Path) -> None:
        from canaryproof.verify.audit.cli import junit as junit_file

        junit_file.write(path, junit_file.of_audit(result))

    return write_after_answer(status, ((junit, write_junit), (plot, draw), (report, write_report)))


def _check_heading(report: Path | None, **heading: str) -> dict[str, str]:
    """Return what the user says of a report; an ``InputError`` names the option that breaks a rule."""
    for name, words in heading.items():
        if words and report is None:
            raise InputError(f"--{name}: must be given with --report")
        try:
            rules.line(words)
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from error
    return heading


def _print(result: "Audit", *, details: bool, as_json: bool) -> None:
    if as_json:
        click.echo(result.to_json())
        return
    # Loads scipy and compiled kernels, which a mistake in the options or the file does not wait for; so below.
    from canaryproof.verify.audit.answer import text

    terminal = shutil.get_terminal_size().columns, getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.summary(result, *terminal, shell=True))
    if result.request.stored is not None and result.request.stored.tensors[0].name:
        click.echo(f"\n{_order(result.request.stored)}")
    if details:
        click.echo()
        click.echo(text.details(result, *terminal))


def _order(release: "StoredRelease") -> str:
    """Describe the order of a checkpoint's coordinates, and which tensors are left out."""
    tensors, left = release.tensors, release.left_out
    names = tensors[0].name if len(tensors) == 1 else f"{tensors[0].name} to {tensors[-1].name}"
    text = f"Order     {_number_of(len(tensors))} by name, {one_line(names)}"
    if left:
        text += f"\nLeft out  {_number_of(len(left))}, {one_line(', '.join(left[:3]))}{', …' if len(left) > 3 else ''}"
    return text


def _number_of(tensors: int) -> str:
    return f"{tensors:,} tensor" if tensors == 1 else f"{tensors:,} tensors"


@click.command("canaries")
@click.option("--seed", type=SEED, required=True, help="Seed, to be given to the audit as --canary-seed.")
@click.option(
    "--count",
    type=_number(NumberRange("be a whole number from 1 to 2^32", 1, 2**32, whole=True)),
    required=True,
    help="Number of canaries, the rows.",
)
@click.option(
    "--dim",
    type=_number(NumberRange("be a whole number from 2 to 2^40", 2, 2**40, whole=True)),
    help="Dimension, the columns.",
)
@_DIRECTIONS
@click.option(
    "--add",
    type=FilePath(),
    metavar="FILE",
    help="Write FILE, a .npy or a checkpoint, with the sum of all canaries added to it.",
)
@_CANARY_NORM
@_ONLY
@_SKIP
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

    They are uniform unit vectors; the file is a float32 .npy array of shape (count, dim), a canary a row. With --add
    they are inserted instead: OUT has the tensors of FILE, and those that --only and --skip choose have the sum of the
    canaries added, in float32 or float64. Coordinates stand in the order of the tensors' names.
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
    if directions != _INDEPENDENT and count > dim:
        raise InputError(f"--count: must be at most --dim, as no more than {dim:,} directions are orthogonal")
    check_output(out, (".npy",), 4 * count * dim, overwrite=overwrite)
    write_output(out, lambda file: _write_canaries(file, directions, seed, count, dim), overwrite=overwrite)
    option = "" if directions == _INDEPENDENT else f" --directions {directions}"
    click.echo(
        f"Wrote {count} canaries of dimension {dim} to {one_line(str(out))}; audit a release with: "
        f"canaryproof audit RELEASE.npy --canaries {count} --canary-seed SEED{option} --delta DELTA"
    )


def _audit_scores(file: Path, scores: "Scores", bounds: tuple[str, ...], **asked: Any) -> "Audit":
    from canaryproof.verify.audit.answer.run_audit import audit

    _check_bounds(bounds)
    try:
        return audit(scores, bounds=bounds, **asked)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error


def read_scores(
    file: Path, given: Mapping[str, Any], columns: Mapping[str, str | None], unobserved: Path | None
) -> "Scores":
    """Read scores of any form; what is given is by names of ``score_files``."""
    npy = file.suffix.lower() == ".npy" and unobserved is None
    if npy and given["dim"] is None and given["kind"] != ScoreKind.ANY:
        raise InputError(f"{file}: cosines need --dim; a released vector needs --canaries and --canary-seed")
    # Loads compiled kernels.
    from canaryproof.verify.audit.canaries.score_files import read_any_scores

    try:
        scores, result = read_any_scores(file, given, columns, unobserved)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"--{error}") from error
    if scores is None:
        raise InputError(f'{file}: has no scores, and "canaryproof review" says what its {result.form} show')
    if result.repetitions > 1:
        raise InputError(
            f"{file}: has canaries that are up to {result.repetitions} times in the data, and a claim is about one "
            f'record: "canaryproof review" says what so many together show'
        )
    return scores


def _insert(
    file: Path, release: "StoredRelease", seed: int, count: int, directions: str, out: Path, *, overwrite: bool
) -> None:
    """Write a file with all canaries added to it."""
    from canaryproof.verify.audit.files.stored_release import write_sum, written_size

    suffix = ".npy" if file.suffix.lower() == ".npy" else ".safetensors"
    if directions != _INDEPENDENT and count > release.dim:
        raise InputError(f"--count: must be at most {release.dim:,}, as no more directions are orthogonal")
    check_output(out, (suffix,), written_size(file, release), overwrite=overwrite)
    # Loads compiled kernels.
    from canaryproof.kernels.slices import blocks

    parts = blocks(release.dim)
    try:
        canaries = _canaries(directions, seed, count, release.dim)
    except ValueError as error:
        raise InputError(f"--count: {error}") from error
    with _progress("adding canaries", len(parts)) as advance:
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
    options = "" if directions == _INDEPENDENT else f" --directions {directions}"
    options += "" if release.canary_norm == 1.0 else f" --canary-norm {release.canary_norm!r}"
    click.echo(
        f"Added {count} canaries to {release.dim:,} coordinates and wrote {one_line(str(out))}; audit a release with: "
        f"canaryproof audit RELEASE{suffix} --canaries {count} --canary-seed SEED{options} --delta DELTA"
    )
    if release.tensors[0].name:
        click.echo(_order(release))


def _audit_release(
    file: Path,
    release: "StoredRelease",
    count: int,
    seed: int,
    directions: str,
    engine_name: str,
    bounds: tuple[str, ...],
    **asked: Any,
) -> "Audit":
    workers = cluster(engine_name)
    from canaryproof.kernels.slices import blocks
    from canaryproof.verify.audit.answer.run_audit import audit_release

    _check_bounds(bounds)
    scoring = None if workers is None else _executor_scoring(workers.results)
    try:
        with _progress("scoring canaries", count * len(blocks(release.dim))) as advance:
            canaries = _canaries(directions, seed, count, release.dim)
            return audit_release(release, canaries, bounds=bounds, advance=advance, scoring=scoring, **asked)
    except InputError:
        raise
    except ValueError as error:
        reason = str(error).removeprefix("release: ")
        raise InputError(f"{file}: {reason}") from error


def _executor_scoring(results: Callable[..., Any]) -> "Scoring":
    """Send blocks to an executor."""
    # Loads numba.
    from canaryproof.verify.audit.engine.executors import EngineError, Lost

    def scoring(function: str, tasks: Any) -> Iterator[tuple[int, Any]]:
        try:
            with contextlib.closing(results(function, tasks)) as answers:
                for number, answer in answers:
                    if isinstance(answer, Lost):
                        raise EngineLost(f"block {number} of the release was given up: {answer.reason}")
                    yield number, answer
        except EngineError as error:
            raise EngineLost(str(error)) from error

    return scoring


def _check_bounds(names: tuple[str, ...]) -> None:
    from canaryproof.verify.audit.bounds.catalogue import METHODS

    try:
        rules.bounds(names, METHODS, "--bound")
    except ValueError as error:
        raise InputError(str(error)) from error


@contextlib.contextmanager
def _progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
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


def check_output(out: Path, suffixes: tuple[str, ...], size: int, *, overwrite: bool) -> None:
    """Refuse a file that exists and is not to be replaced, that has another suffix, or for which there is no room."""
    try:
        if out.suffix.lower() not in suffixes:
            raise InputError(f"{out}: the file's name must end in {' or '.join(suffixes)}")
        if os.path.lexists(out) and not (overwrite and (out.is_file() or out.is_symlink())):
            raise InputError(f"{out}: must not exist already, unless with --overwrite")
        # A disk also has room where a file stands in place of the folder.
        if out.parent.exists() and not out.parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        free = shutil.disk_usage(out.parent).free
    except OSError as error:
        raise InputError(f"{out}: {error.strerror or error}") from error
    if size > free:
        raise InputError(f"{out}: needs {decimal(size)}, and the disk has {decimal(free)} free")


def _canaries(directions: str, seed: int, count: int, dim: int) -> "ReleaseCanaries":
    from canaryproof.kernels.canaries import Canaries
    from canaryproof.kernels.orthonormal_canaries import OrthonormalCanaries

    return (Canaries if directions == _INDEPENDENT else OrthonormalCanaries)(seed, count, dim)


def _write_canaries(file: IO[bytes], directions: str, seed: int, count: int, dim: int) -> None:
    with _progress("making canaries", count) as advance:
        header = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
        np.lib.format.write_array_header_1_0(file, header)
        canaries = _canaries(directions, seed, count, dim)
        for j in range(count):
            if directions == _INDEPENDENT:
                # A new object each time, as it remembers the norms of the canaries that it has made.
                canaries = _canaries(directions, seed, count, dim)
            file.write(canaries.vector(j).astype("<f4", copy=False).data)
            advance(1)
