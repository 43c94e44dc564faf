"""Command ``canaryproof audit``: the audit of a user's own run."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from canaryproof.verify.audit import rules
from canaryproof.verify.audit.answer.findings import Question
from canaryproof.verify.audit.cli.audit_inputs import COLUMNS, choose_input
from canaryproof.verify.audit.cli.options import (
    KIND,
    SEED,
    WHY_MISSING,
    FilePath,
    check_output,
    columns_options,
    engine_option,
    junit_option,
    number_of,
    overwrite_option,
    write_after_answer,
)
from canaryproof.verify.audit.cli.release_options import (
    canary_norm_option,
    directions_option,
    only_option,
    order_of,
    skip_option,
)
from canaryproof.verify.audit.cli.watch_file import answer_watch, is_watch
from canaryproof.verify.audit.files.errors import InputError
from canaryproof.verify.audit.files.reading import LARGEST_COUNT, ScoreKind
from canaryproof.verify.audit.files.writing import write_output
from canaryproof.verify.audit.rules import NumberRange

if TYPE_CHECKING:
    from canaryproof.verify.audit.answer.run_audit import Audit


_COUNT = number_of(NumberRange(f"be a whole number from 2 to {LARGEST_COUNT:g}", 2, LARGEST_COUNT, whole=True))
_PICTURES, _REPORTS = (".svg", ".png"), (".html", ".md", ".json")


def _bound_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a bound."""
    # Loads compiled kernels.
    from canaryproof.verify.audit.bounds.catalogue import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def _take_plan(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Let a plan's file give the options that the command line does not."""
    if path is not None:
        # Loads compiled kernels.
        from canaryproof.verify.audit.answer import plan_file

        context.default_map = plan_file.audit_options(path)
        if not context.default_map:
            context.meta[WHY_MISSING] = f"{path} gives none, as another version of canaryproof made it"
    return path


@click.command("audit")
@click.argument("file", type=FilePath())
@click.option(
    "--delta",
    type=number_of(rules.DELTA_OR_ZERO),
    help="Target delta of (epsilon, delta)-privacy.",
)
@click.option("--dim", type=number_of(rules.DIM), help="Dimension d of the released vector.")
@click.option(
    "--canaries",
    "count",
    type=_COUNT,
    help="FILE is the released vector, and this many canaries were added to it.",
)
@click.option("--canary-seed", "seed", type=SEED, help="Seed that the canaries were made from.")
@directions_option
@canary_norm_option
@only_option
@skip_option
@click.option("--base", type=FilePath(), help="Checkpoint that is subtracted from FILE: the model before training.")
@click.option(
    "--difference",
    is_flag=True,
    default=False,
    help="FILE is the difference of two models, as with --base: do not test its length.",
)
@click.option(
    "--state", type=FilePath(), help="File that keeps what was scored; the same command resumes from it if killed."
)
@engine_option
@click.option(
    "--claim",
    type=number_of(rules.CLAIM),
    help="Claimed epsilon, to be compared; by default that of --noise-multiplier, for one released vector or a record "
    "of rounds.",
)
@click.option(
    "--noise-multiplier",
    type=number_of(rules.NOISE_MULTIPLIER),
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
    type=number_of(rules.SHARE),
    default=0.5,
    show_default=True,
    help="Share of the claimed noise that must be noticed with probability 90% for leak and noise to be as claimed.",
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
    type=number_of(NumberRange("be above 0 and at most 1", 5e-324, 1.0)),
    help="Claimed Poisson sampling rate of a round.",
)
@click.option("--rounds", type=number_of(rules.ROUNDS), help="Claimed number of rounds; with --rate.")
@click.option(
    "--participations", type=number_of(rules.ROUNDS), help="Claimed number of rounds that a record takes part in."
)
@click.option(
    "--data-norm",
    type=number_of(NumberRange("lie between 0 and 1e15", 0.0, 1e15)),
    help="The most that others' data sum to in the released vector, in canary norms.",
)
@junit_option
@click.option(
    "--confidence",
    type=number_of(rules.CONFIDENCE),
    default=0.95,
    show_default=True,
    help="Confidence of the intervals and bounds.",
)
@click.option(
    "--tried",
    type=number_of(rules.TRIED),
    default=1,
    show_default=True,
    help="Number of scores that were tried on the same records, if FILE's were chosen of them.",
)
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="NAME",
    shell_complete=_bound_names,
    help="Lower bound to show, and to decide by in place of the default; may be repeated.",
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
    type=number_of(rules.INSERTED),
    help="Number of independent canaries in the release that FILE's cosines are of; 1 if others were taken out.",
)
@click.option("--details", is_flag=True, help="Print the estimates, bounds, tests and blind spots too.")
@click.option("--force", is_flag=True, help="Print estimates and bounds even where a warning makes them meaningless.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, which on one machine depends on the input alone."
)
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
    junit: Path | None,
    plot: Path | None,
    report: Path | None,
    plan: Path | None,
    fail_above_claim: bool,
    details: bool,
    as_json: bool,
    overwrite: bool,
    **options: Any,
) -> int:
    """Estimate epsilon from one run, and bound it from below.

    FILE holds scores of canaries, by default their cosines with the release. It is a one-dimensional .npy, or an .npz
    with the arrays "observed" and, optionally, "unobserved". Or it is a .csv with one number a line, or with a header
    naming these columns. Or it is a .csv or .parquet with a line for each canary, whose columns --score and --member
    name, by default score and member, or with a column for each kind, as in and out, or train and test. Or it is a
    .json that Scores.save of Python wrote; if it has the record of a training's rounds, their noise is measured. With
    --canaries and --canary-seed it is the release itself, and its canaries are made again as "canaryproof canaries"
    makes them. It is a one-dimensional .npy, or a checkpoint: a .safetensors, or the .safetensors.index.json of
    several, whose coordinates stand in the order of the tensors' names. It is read in pieces, so that it may be larger
    than memory. Cosines and releases are floating-point numbers; scores of another kind may be whole ones.

    A canary that took no part has scores of N(0, 1/d) for the estimates, or of a Gaussian fitted to the unobserved
    scores if there are any. For the lower bounds its scores have the cosine's exact law, or are the unobserved ones
    themselves.

    With --plan, options that are not given are those of the plan, and the seed is that of its secret, in the file
    next to it: "audit release.npy --plan plan.json" is the whole command.

    A .json that a watch of Python wrote is answered again: it says what is claimed, and the exit status is that of the
    decision. --junit and --report write it too. --claim, with the file's own --delta, holds an epsilon of yours against
    the record, whatever the training claimed.

    The decision comes first, then the findings that it rests on, and what to do; --details prints the rest. In
    continuous integration, --claim EPSILON --fail-above-claim passes a job only if every question that is asked is
    answered as claimed, and no other one failed. Leak and noise are as claimed only if the audit would have noticed
    that the share --notice of the noise was all there was.
    """
    if junit is not None:
        # This import loads a writer of XML, which an audit without the option does without; so below.
        from canaryproof.verify.audit.cli import junit as junit_file

        junit_file.check(junit, overwrite=overwrite)
    context = click.get_current_context()
    if report is not None:
        check_output(report, _REPORTS, 0, overwrite=overwrite)
    heading = _check_heading(report, options)
    if is_watch(file):
        pinned, delta = options["claim"], options["delta"]
        return answer_watch(context, file, junit, report, heading, pinned, delta, as_json=as_json, overwrite=overwrite)
    if options["delta"] is None:
        raise click.MissingParameter(
            ctx=context, param=next(each for each in context.command.params if each.name == "delta")
        )
    if plot is not None:
        check_output(plot, _PICTURES, 0, overwrite=overwrite)
    kind = choose_input(options)
    kind.check(context)
    result = kind.audit(file, options | {"plan": plan})
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

        columns = {name: options[name] for name in COLUMNS}
        audited = reports.file_record(file, columns, options["unobserved"])
        named = reports.ReportHeading(path.name, **heading)
        made = reports.render(result, reports.record(result, named, audited), path)
        write_output(path, lambda target: target.write(made), overwrite=overwrite)

    def write_junit(path: Path) -> None:
        from canaryproof.verify.audit.cli import junit as junit_file

        junit_file.write(path, junit_file.of_audit(result))

    return write_after_answer(status, ((junit, write_junit), (plot, draw), (report, write_report)))


def _check_heading(report: Path | None, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what the user says of a report; an ``InputError`` names the option that breaks a rule."""
    heading = {name: options[name] for name in ("title", "subject", "date")}
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
        click.echo(f"\n{order_of(result.request.stored)}")
    if details:
        click.echo()
        click.echo(text.details(result, *terminal))
