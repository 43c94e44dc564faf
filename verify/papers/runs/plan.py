"""The plan of a run, and the judgement of one of its checks in any process.

A check is found by its suite and id, as functions cannot be sent. A check that raises is a failure of the run.
"""

import faulthandler
import json
import os
import pkgutil
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from canaryproof.verify.audit.engine.provenance import code_and_machine
from canaryproof.verify.papers.check.results import Check, Context, Result, Subject, Verdict, perform

# The JSON of a check's result, and whether it is to be kept: one that could not be judged is tried again.
Answer = tuple[str, bool]


@dataclass(frozen=True)
class Plan:
    """Suites to be judged, each once, at a level and a seed."""

    source: str  # where the suites are: ``module:name`` of a mapping from names to sequences of checks
    suites: tuple[str, ...]
    context: Context
    # Ids of the checks that are judged of them; all by default.
    names: frozenset[str] | None = None

    @property
    def checks(self) -> tuple[tuple[str, str], ...]:
        """Suite and id of each check, in order."""
        return _order(self.source, self.suites, self.names)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Suite of each check, and the name of what it shares with others, in order."""
        return [(suite, _checks(self.source, suite)[name].shared_key) for suite, name in self.checks]

    @property
    def origin(self) -> dict[str, str]:
        """The options, code, versions and machine that results depend on, by name; equal origins give equal bytes."""
        measurements = self.context.measurements
        return {
            "version": version("canaryproof"),
            "level": str(self.context.level),
            "seed": str(self.context.seed),
            "suites": " ".join(self.suites),
            **({} if measurements is None else {"measurements": measurements.digest}),
            **code_and_machine(),
        }


@cache
def _order(source: str, suites: tuple[str, ...], names: frozenset[str] | None) -> tuple[tuple[str, str], ...]:
    known = load(source)
    return tuple((suite, check.id) for suite in suites for check in known[suite] if names is None or check.id in names)


def load(source: str) -> Mapping[str, Sequence[Check]]:
    """Return the suites that stand at a place, such as ``canaryproof.verify.papers.suites.catalogue:SUITES``."""
    suites: Mapping[str, Sequence[Check]] = pkgutil.resolve_name(source)
    return suites


@cache
def _checks(source: str, suite: str) -> dict[str, Check]:
    return {check.id: check for check in load(source)[suite]}


def judge(plan: Plan, suite: str, name: str, limit: float | None) -> Answer:
    """Judge a check of a plan; after ``limit`` seconds this process ends at once, whatever it does.

    No other suites are imported.
    """
    check = _checks(plan.source, suite)[name]
    try:
        with _time_limit(limit):
            return _json(perform(suite, check, plan.context)), True
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return unjudged(plan, suite, name, f"{text} ({Path(frame.filename).name}, line {frame.lineno})"), False


def unjudged(plan: Plan, suite: str, name: str, reason: str) -> str:
    """Return the JSON of a result for a check that has none: it is this package's failure, whoever states it."""
    check = _checks(plan.source, suite)[name]
    result = Result(
        check.id,
        suite,
        Subject.IMPLEMENTATION,
        check.source,
        check.statement,
        Verdict.INCONCLUSIVE,
        f"could not be judged: {reason}",
        {},
    )
    return _json(result)


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    # A thread of its own ends the process, also where compiled code does not let go of it.
    with Path(os.devnull).open("w") as nowhere:
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def _json(result: Result) -> str:
    return json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False)
