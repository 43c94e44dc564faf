"""The run of a plan's checks by any executor."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from importlib.metadata import version

from canaryproof.verify.audit.engine.executors import EngineError, Executor, Lost
from canaryproof.verify.papers.check.results import Result, Run
from canaryproof.verify.papers.runs.plan import Plan, unjudged
from canaryproof.verify.papers.runs.run_file import RunFile


def run_plan(
    plan: Plan,
    file: RunFile,
    executor: Executor,
    advance: Callable[[int, int, str], None],
    ended: Callable[[Run], None] | None = None,
) -> Run:
    """Judge the checks of a plan that a file has no results of.

    The file gets each result as soon as it is known, from this process alone. A check that could not be judged is in
    the run and not in the file. ``advance`` is called with the number of finished checks, the number of all checks, and
    the first unfinished one. ``ended`` gets each suite's part of the run as soon as that is done. An ``EngineError``
    says that the executor cannot go on.
    """
    checks = plan.checks
    file.check()
    results = file.results()
    pending = [i for i in range(len(checks)) if i not in results]
    # The first check without a result; all before it have one.
    first = 0
    missing = Counter(checks[i][0] for i in pending)
    parts: dict[str, Run] = {}

    def tell() -> None:
        nonlocal first
        while first in results:
            first += 1
        advance(len(results), len(checks), checks[first][1] if first < len(checks) else "")
        for suite in plan.suites:
            if suite not in parts and not missing[suite]:
                positions = [i for i in range(len(checks)) if checks[i][0] == suite]
                parts[suite] = _run(plan, [Result.from_json(json.loads(results[i])) for i in positions])
                if ended is not None:
                    ended(parts[suite])

    tell()
    try:
        # Whatever stops this loop stops the engine.
        tasks = ((i, (plan, *checks[i], executor.limit)) for i in pending)
        with closing(executor.results("canaryproof.verify.papers.runs.plan:judge", tasks, plan.kinds)) as answers:
            for i, answer in answers:
                lost = isinstance(answer, Lost)
                result, to_keep = (unjudged(plan, *checks[i], answer.reason), False) if lost else answer
                results[i] = result
                if to_keep:
                    file.add(i, result)
                missing[checks[i][0]] -= 1
                tell()
    except EngineError as error:
        raise EngineError(f"{error}; --resume goes on with a run in --out") from error
    return _run(plan, [result for suite in plan.suites for result in parts[suite].results])


def _run(plan: Plan, results: Iterable[Result]) -> Run:
    return Run(version("canaryproof"), plan.context.level, plan.context.seed, tuple(results))
