"""Which checks catch a fault, and how often they cry without one."""

import signal
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from canaryproof.verify.faults.fault import Fault, seeded
from canaryproof.verify.results import Check, Context, Level, Subject, Verdict

# Seconds, far more than any check takes. One that a fault keeps from ending has noticed it too.
_LONGEST = {Level.QUICK: 120, Level.FULL: 3600}


@dataclass(frozen=True)
class Trial:
    """What the checks said of a fault.

    Attributes
    ----------
    fault
        The fault.
    caught_by
        Ids of the checks that say something else with it than without, and what: a verdict, or the name of an error.
    silent
        Ids of those that did not notice.
    seconds
        How long they took.
    """

    fault: Fault
    caught_by: Mapping[str, str]
    silent: tuple[str, ...]
    seconds: float


def _said(check: Check, context: Context, longest: int = 0) -> str:
    """Return a check's verdict, or the error that it ends in: to a user both are answers."""
    # A fault may break anything, and make a search for a root go on for hours.
    previous = signal.signal(signal.SIGALRM, _interrupt)
    signal.alarm(longest)
    try:
        return check.judge(context).verdict
    except Exception as error:
        return type(error).__name__
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _interrupt(*_: object) -> None:
    raise TimeoutError


class Trials:
    """Trials of faults; what the checks say without a fault is found out once.

    Parameters
    ----------
    checks
        All checks, by id.
    context
        Level and seed.
    """

    def __init__(self, checks: Mapping[str, Check], context: Context) -> None:
        self._checks, self._context = checks, context
        self._usual: dict[str, str] = {}

    def chosen(self, fault: Fault) -> list[Check]:
        """Return the checks that touch a fault's function."""
        return [
            check for name, check in self._checks.items() if any(fnmatchcase(name, pattern) for pattern in fault.checks)
        ]

    def run(self, fault: Fault) -> Trial:
        """Judge the checks of a fault with the fault in."""
        start = time.perf_counter()
        chosen = self.chosen(fault)
        with seeded(fault), warnings.catch_warnings():
            # What a fault overflows is part of it.
            warnings.simplefilter("ignore")
            said = {check.id: _said(check, self._context, _LONGEST[self._context.level]) for check in chosen}
        caught = {
            check.id: said[check.id] for check in chosen if said[check.id] != self._without(check, said[check.id])
        }
        silent = tuple(name for name in said if name not in caught)
        return Trial(fault, caught, silent, time.perf_counter() - start)

    def _without(self, check: Check, said: str) -> str:
        # A check of ours that confirms has not noticed, whatever it says without the fault.
        if check.subject is Subject.IMPLEMENTATION and said == Verdict.CONFIRMED:
            return said
        if check.id not in self._usual:
            self._usual[check.id] = _said(check, self._context)
        return self._usual[check.id]


@dataclass(frozen=True)
class _Watched(Context):
    """A context that notices whether a check asks it for randomness."""

    asked: list[str] = field(default_factory=list)

    def key(self, purpose: str) -> np.random.SeedSequence:
        self.asked.append(purpose)
        return super().key(purpose)


@dataclass(frozen=True)
class Alarm:
    """A verdict that depends on the seed.

    Attributes
    ----------
    id
        The check.
    seed
        A seed at which it says something else than at seed 0, or at which a check of ours does not confirm.
    said
        What it says there.
    """

    id: str
    seed: int
    said: str


def stochastic(checks: Iterable[Check], level: Level, longest: float) -> list[Check]:
    """Return the checks that use randomness and take no longer than so many seconds."""
    found = []
    for check in checks:
        # Twice, because the first time may compile.
        for _ in range(2):
            context, start = _Watched(level, 0), time.perf_counter()
            _said(check, context)
            if not context.asked or time.perf_counter() - start <= longest:
                break
        else:
            continue
        if context.asked:
            found.append(check)
    return found


def alarms(check: Check, level: Level, seeds: Sequence[int]) -> list[Alarm]:
    """Judge a check at many seeds, without a fault."""
    said = [_said(check, Context(level, seed)) for seed in seeds]
    usual = Verdict.CONFIRMED if check.subject is Subject.IMPLEMENTATION else said[0]
    return [Alarm(check.id, seed, verdict) for seed, verdict in zip(seeds, said, strict=True) if verdict != usual]
