"""Command ``canaryproof verify``: run suites, print a verdict on every check, leave a run folder."""

import contextlib
import difflib
import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from canaryproof.verify.audit.cli import junit as junit_file
from canaryproof.verify.audit.cli.options import (
    INTERRUPTED,
    EngineLost,
    FilePath,
    cluster,
    engine_option,
    junit_option,
    one_line,
    overwrite_option,
    report_repetitions,
)
from canaryproof.verify.audit.cli.progress import progress
from canaryproof.verify.audit.engine.executors import EngineError, Executor, Local, threads
from canaryproof.verify.audit.files.errors import InputError, OutputError
from canaryproof.verify.papers.check.results import (
    Context,
    Effort,
    Run,
    Subject,
    Verdict,
    false_alarms,
    over_budget,
)
from canaryproof.verify.papers.cli import screen
from canaryproof.verify.papers.cli.run_junit import cases
from canaryproof.verify.papers.records.output_files import check_files, write_files
from canaryproof.verify.papers.records.report_input import ENVIRONMENT, RESULTS
from canaryproof.verify.papers.runs import expected
from canaryproof.verify.papers.runs.plan import Plan, load
from canaryproof.verify.papers.runs.run_file import RunFile
from canaryproof.verify.papers.runs.run_folder import unjudged
from canaryproof.verify.papers.runs.run_plan import run_plan
from canaryproof.verify.papers.suites.catalogue import lacking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUITES = "canaryproof.verify.papers.suites.catalogue:SUITES"
# The files that every run writes.
REPORT = "report.html"
_MADE = (RESULTS, ENVIRONMENT, "summary.md", REPORT)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        # False for NaN, and timers end at some centuries.
        if 0.0 < (value := float(text)) <= 1e9:
            return value
    raise click.BadParameter(f"must be a number above 0, at most 1e9, not {text[:40]!r}")


@click.command("verify")
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option(
    "--level",
    type=click.Choice([level.value for level in Effort]),
    default="quick",
    show_default=True,
    help="How much is drawn; smoke draws least, for this package's own tests.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all randomness.")
@click.option("--out", type=FilePath(file_okay=False), help="Folder to leave results in.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out that was stopped, given the same options.")
@overwrite_option
@click.option(
    "--data",
    type=FilePath(),
    metavar="DIR",
    help="Folder with finished experiments, which decide claims that need data.",
)
@engine_option
@click.option("--time-limit", "limit", type=_seconds, metavar="SECONDS", help="Seconds that a check may take.")
@junit_option
@click.option("--all", "every", is_flag=True, help="Print a line for each check too, as a pipe gets them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def verify_command(
    suites: tuple[str, ...],
    level: str,
    seed: int,
    out: Path | None,
    resume: bool,
    overwrite: bool,
    data: Path | None,
    engine_name: str,
    limit: float | None,
    junit: Path | None,
    every: bool,
    as_json: bool,
) -> None:
    """Check the numerics, the algorithms, the printed tables and the proofs.

    SUITE is numerics, algorithm1, estimators, audit, theorems, bounds, claims, orthonormal, blindspots, training or
    canife. By default all suites run, but the last two only if the extra federated is installed.

    The exit status is 1 if a check of this package fails, or if a verdict on a document's statement is not the expected
    one. A statement that is known to be refuted is a finding, not a failure. If printed numbers alone decide a
    statement, the sentence about it has to be the expected one, too. On a terminal you see a line for each suite, with
    the seconds after which it was done, and the most important findings. A pipe also gets a line for each check.

    With --data, finished experiments in folders of DIR decide the claims on what the papers measured. The commands
    "canaryproof train NAME --data FOLDER --size full" and "canaryproof benchmark canife --data FOLDER --level full", of
    Fashion-MNIST, make such folders. If a claim cannot be judged, it says which command would decide it.

    With --out, each result is kept in the folder's run.sqlite as soon as it is known, so that --resume can go on with
    an interrupted run. A check that raises an error is not kept. NUMBA_NUM_THREADS sets the number of processes, on
    which the results do not depend.
    """
    known = load(SUITES)
    for name in suites:
        if name not in known:
            raise InputError(f"SUITE: there is no suite {name!r}; {_nearest(name, known)}")
    measurements = None
    if data is not None:
        # Loads SciPy's distributions.
        from canaryproof.verify.papers.claims import experiment_results

        measurements = experiment_results.read(data)
    if resume and out is None:
        raise InputError("--resume: needs --out, the folder of the run to go on with")
    if junit is not None:
        junit_file.check(junit, overwrite=overwrite)
    if out is not None:
        # Before the work, so that a folder that cannot be written to costs no time.
        try:
            out.mkdir(parents=True, exist_ok=True)
            check_files(_MADE, out)
        except OSError as error:
            raise InputError(f"--out: {error.filename or out}: {error.strerror or error}") from None
    executor = cluster(engine_name, limit) or Local(threads(), limit)
    plan = Plan(SUITES, _chosen(suites, known), Context(Effort(level), seed, measurements))
    table, findings = expected.read(), expected.read_findings()
    made_by = plan.origin
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    unwritten: OutputError | None = None
    with (
        RunFile(
            out / "run.sqlite" if out else None,
            made_by,
            plan.checks,
            command=command,
            resume=resume,
            overwrite=overwrite,
        ) as file,
        _Artist() as artist,
    ):
        run, ended = _run(plan, file, executor, artist.begin if out else None)
        again = report_repetitions(executor.attempts, [name for _, name in plan.checks])
        if out is not None:
            notes = (
                {"given again": ", ".join(f"{name} ({times} times)" for name, times in again.items())} if again else {}
            )
            try:
                _write(run, out, {"command": command, **made_by, **notes}, artist.figures())
            except OutputError as error:
                # The verdicts are printed all the same.
                unwritten = error
        if unwritten is None:
            file.finish()
    changes = expected.changes(run, table, plan.suites, findings=findings, with_data=measurements is not None)
    if junit is not None:
        junit_file.write(junit, cases(run, changes, over_budget(run)))
    if as_json:
        click.echo(json.dumps(run.to_json(), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        _print(run, out, ended, every=every or not screen.is_terminal())
    _print_failures(run, changes, to_stderr=as_json)
    failed = bool(run.failures or changes or over_budget(run))
    if unwritten is not None and not failed:
        raise unwritten
    if unwritten is not None:
        click.echo(f"Error: {one_line(unwritten.message)}", err=True)
    sys.exit(1 if failed else 0)


def _nearest(name: str, known: Collection[str]) -> str:
    """Say which suite or command has nearly a name, or which suites there are."""
    if name == "convergence":
        return "canaryproof convergence reports how fast estimates converge, and the suite theorems checks it"
    near = difflib.get_close_matches(name, known, n=2)
    return f"near it: {', '.join(near)}" if near else f"there are {', '.join(known)}"


def _chosen(suites: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the suites that are asked for, or else all that can be judged here."""
    chosen = tuple(dict.fromkeys(suites or known))
    reasons = {name: reason for name in chosen if (reason := lacking(name))}
    for name, reason in reasons.items():
        if suites:
            raise InputError(f"SUITE: {name} {reason}")
        click.echo(f"skipped: suite {name} {reason}", err=True)
    return tuple(name for name in chosen if name not in reasons)


def _run(
    plan: Plan, file: RunFile, executor: Executor, draw: Callable[[Run], None] | None
) -> tuple[Run, dict[str, float]]:
    """Run a plan; return the run, and after how many seconds each suite was done."""
    begun, ended = time.monotonic(), dict[str, float]()

    def end(suite: Run) -> None:
        for name in {result.suite for result in suite.results}:
            ended[name] = time.monotonic() - begun
        if draw is not None:
            draw(suite)

    # Checks take from a millisecond to minutes, so that the time left is never known.
    with progress("canaryproof verify", equal_parts=False) as advance:
        try:
            run = run_plan(plan, file, executor, lambda done, total, current: advance(current, done, total), end)
        except EngineError as error:
            raise EngineLost(str(error)) from error
        except KeyboardInterrupt:
            if draw is None:
                raise
            click.echo("Interrupted; the same command with --resume goes on.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
    return run, ended


class _Artist:
    """Draws each suite's pictures in a thread while other suites are judged.

    All pictures take 23 of the 220 CPU seconds of a quick run. Drawn after it, they would use one core, and a run on
    two cores would take a tenth longer.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._suites: list[Future[dict[str, Figure]]] = []
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._thread.shutdown(cancel_futures=True)

    def begin(self, suite: Run) -> None:
        """Go on with a suite's pictures."""
        self._suites.append(self._thread.submit(self._drawn, suite))

    def figures(self) -> dict[str, "Figure"]:
        """Wait for all pictures."""
        return {name: figure for suite in self._suites for name, figure in suite.result().items()}

    def _drawn(self, suite: Run) -> dict[str, "Figure"]:
        # The reports need matplotlib, which takes a second to import.
        from canaryproof.reports.pages import figures_of
        from canaryproof.verify.audit.markup.figures import drawing

        figures = figures_of(suite)
        for figure in figures.values():
            # An interrupt waits for one picture at most.
            if not self._stopped:
                drawing(figure)
        return figures


def _write(run: Run, out: Path, environment: dict[str, str], figures: dict[str, "Figure"]) -> None:
    made_by = json.dumps(environment, ensure_ascii=False, indent=1) + "\n"
    # Loads matplotlib.
    from canaryproof.reports.formats import report
    from canaryproof.verify.papers.records.report_input import Material

    made = report(Material(run, environment, unjudged=unjudged(run)), figures=figures)
    try:
        write_files({**made.files, ENVIRONMENT: made_by.encode()}, out, made.patterns)
    except OSError as error:
        reason = f"{error.strerror or error}; all results are kept, and --resume writes them"
        raise OutputError(f"{error.filename or out}: {reason}") from error


def _print(run: Run, out: Path | None, ended: Mapping[str, float], *, every: bool) -> None:
    lines = screen.columns([(r.id, str(r.verdict), r.finding) for r in run.results]) if every and run.results else []
    click.echo("\n".join([*lines, *([""] if lines else []), *_summary(run, out, ended)]))


def _summary(run: Run, out: Path | None, ended: Mapping[str, float]) -> list[str]:
    """Return a line a suite, the findings that matter most, and where the report is."""
    # Loads the reports.
    from canaryproof.reports.claims import findings

    rows: list[tuple[str, ...]] = [("suite", "own checks", "hold", "statements", "refuted", "seconds")]
    for name in dict.fromkeys(result.suite for result in run.results):
        results = [result for result in run.results if result.suite == name]
        own = [result for result in results if result.subject is Subject.IMPLEMENTATION]
        stated = [result for result in results if result.subject is Subject.DOCUMENT]
        refuted = sum(result.verdict is Verdict.REFUTED for result in stated)
        held = len(own) - sum(result.failed for result in own)
        numbers = (len(own), held, len(stated), refuted, round(ended.get(name, 0.0)))
        rows.append((name, *(f"{number:,}" for number in numbers)))
    lines = [*screen.columns(rows, numbers=True), ""] if run.results else []
    counts = Counter(result.verdict for result in run.results if result.subject is Subject.DOCUMENT)
    own_checks = sum(result.subject is Subject.IMPLEMENTATION for result in run.results)
    parts = [f"{own_checks - len(run.failures)} of {own_checks} own checks hold"] if own_checks else []
    if counts:
        listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        parts.append(f"documents: {listed}")
    lines += [*screen.paragraph("; ".join(parts)), *screen.paragraph(false_alarms(run))]
    for result in findings(run):
        head = f"{result.id} is {result.verdict}"
        lines += [
            "",
            head,
            *screen.paragraph(result.statement, "  says  ", 2),
            *screen.paragraph(result.finding, "  true  ", 2),
        ]
    return lines if out is None else [*lines, "", f"Report: {out / REPORT}"]


def _print_failures(run: Run, changes: list[str], *, to_stderr: bool) -> None:
    failures = [("failed", f"{failure.id}: {failure.finding}") for failure in run.failures]
    if reason := over_budget(run):
        failures.append(("failed", reason))
    for kind, text in [*failures, *(("changed", change) for change in changes)]:
        click.echo(f"{kind} {text}", err=to_stderr)
