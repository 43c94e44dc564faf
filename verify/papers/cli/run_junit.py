"""A run's checks as cases of a JUnit file."""

from collections.abc import Sequence

from canaryproof.verify.audit.cli.junit import JUnitCase
from canaryproof.verify.papers.check.results import Run, Verdict


def cases(run: Run, changes: Sequence[str], budget: str) -> dict[str, list[JUnitCase]]:
    """Return a case for each check of a run, which fails where the run does: in the same checks.

    Parameters
    ----------
    run
        The run.
    changes
        Lines on verdicts that are not the expected ones; each begins with a check's id.
    budget
        Why the levels of the tests are too large together; empty if they are not.
    """
    changed = {line.partition(": ")[0]: line.partition(": ")[2] for line in changes}
    suites: dict[str, list[JUnitCase]] = {}
    for result in run.results:
        failure = f"{result.verdict}: {result.finding}" if result.failed else changed.pop(result.id, "")
        skipped = result.finding if result.verdict is Verdict.NEEDS_DATA and not failure else ""
        text = f"{result.verdict}: {result.statement}\n{result.finding}"
        suites.setdefault(result.suite, []).append(JUnitCase(result.id, text, failure, skipped))
    run_cases = [JUnitCase(name, line, line) for name, line in changed.items()]
    run_cases.append(JUnitCase("levels of the tests", budget or "within the budget of false alarms", budget))
    return suites | {"run": run_cases}
