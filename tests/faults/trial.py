"""Which checks catch a fault, and how often they cry without one."""

import math
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

import numpy as np

from canaryproof.verify.check.results import Context, Design, Level, Subject, Verdict
from canaryproof.verify.suites.catalogue import SUITES
from tests.faults import FAULTS
from tests.faults.fault import Calls, Fault, forget, seeded

CHECKS = {check.id: check for check in chain.from_iterable(SUITES.values())}

# A check that a fault keeps from ending has noticed it: one that takes so many times as long as without the fault. No
# time is so short that a busy machine could not be the reason.
_PATIENCE = 20.0
_SHORTEST = 30.0


@dataclass(frozen=True)
class Answer:
    """What a check says.

    Attributes
    ----------
    said
        Its verdict, or the name of the error that it ends in: to a user both are answers.
    seconds
        How long it took.
    calls
        How often it called the faulty function.
    random
        Whether it asked for randomness.
    design
        Its test, if its verdict depends on chance.
    """

    said: str
    seconds: float
    calls: int
    random: bool
    design: Design | None


@dataclass(frozen=True)
class Trial:
    """What the checks said of a fault.

    Attributes
    ----------
    fault
        The fault.
    caught_by
        Checks that say something else with it than without, and what.
    silent
        Those that called the faulty function and did not notice.
    untouched
        Those that did not call it.
    seconds
        How long they took, one after the other.
    """

    fault: Fault
    caught_by: dict[str, str]
    silent: tuple[str, ...]
    untouched: tuple[str, ...]
    seconds: float


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
    design
        Its test; None if it looks for an exception with random inputs, and found one.
    """

    id: str
    seed: int
    said: str
    design: Design | None


@dataclass(frozen=True)
class _Watched(Context):
    """A context that notices whether a check asks it for randomness."""

    asked: list[str] = field(default_factory=list)

    def key(self, purpose: str) -> np.random.SeedSequence:
        self.asked.append(purpose)
        return super().key(purpose)


# Calls a function with each of the tuples of arguments, here or elsewhere, and returns the answers in this order.
Each = Callable[[Callable[..., Answer], Sequence[tuple[Any, ...]]], list[Answer]]


def in_turn(function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]) -> list[Answer]:
    """Call a function with each of the tuples of arguments."""
    return [function(*each) for each in arguments]


def answer(name: str, level: Level, seed: int, fault: str = "", longest: float = math.inf) -> Answer:
    """Judge a check.

    Parameters
    ----------
    name
        Its id. It and the fault are named because functions cannot be sent to another process.
    level, seed
        What it may depend on.
    fault
        Name of a fault that is in meanwhile, none if empty.
    longest
        Seconds after which it is interrupted, with a ``TimeoutError``.
    """
    context = _Watched(level, seed)
    design = None
    forget()
    start = time.perf_counter()
    with seeded(FAULTS[fault]) if fault else nullcontext(Calls()) as calls, warnings.catch_warnings():
        # What a fault overflows is part of it.
        warnings.simplefilter("ignore")
        previous = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, longest if math.isfinite(longest) else 0.0)
        try:
            outcome = CHECKS[name].judge(context)
            said, design = str(outcome.verdict), outcome.design
        except Exception as error:
            said = type(error).__name__
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, previous)
    return Answer(said, time.perf_counter() - start, calls.count, bool(context.asked), design)


def _interrupt(*_: object) -> None:
    raise TimeoutError


def checks_of(fault: Fault) -> list[str]:
    """Return the checks that call a fault's function."""
    return [name for name in CHECKS if any(fnmatchcase(name, pattern) for pattern in fault.checks)]


def trials(faults: Iterable[str], level: Level, seed: int, each: Each = in_turn) -> list[Trial]:
    """Judge the checks of faults, first without a fault and then with each.

    Parameters
    ----------
    faults
        Names of the faults.
    level, seed
        What the checks may depend on.
    each
        How to judge many checks.

    Returns
    -------
    A trial a fault.
    """
    pairs = [(fault, check) for fault in faults for check in checks_of(FAULTS[fault])]
    needed = list(dict.fromkeys(check for _, check in pairs))
    usual = dict(zip(needed, each(answer, [(check, level, seed) for check in needed]), strict=True))
    limits = {check: max(_SHORTEST, _PATIENCE * found.seconds) for check, found in usual.items()}
    arguments = [(check, level, seed, fault, limits[check]) for fault, check in pairs]
    found = dict(zip(pairs, each(answer, arguments), strict=True))
    return [
        _trial(FAULTS[name], {check: found[fault, check] for fault, check in pairs if fault == name}, usual)
        for name in faults
    ]


def _trial(fault: Fault, found: dict[str, Answer], usual: dict[str, Answer]) -> Trial:
    called = {check: answer for check, answer in found.items() if answer.calls}
    caught = {check: answer.said for check, answer in called.items() if answer.said != usual[check].said}
    return Trial(
        fault,
        caught,
        tuple(check for check in called if check not in caught),
        tuple(check for check in found if check not in called),
        math.fsum(answer.seconds for answer in found.values()),
    )


def alarms(level: Level, seeds: int, each: Each = in_turn) -> tuple[dict[str, Design | None], list[Alarm]]:
    """Judge all checks that use randomness at many seeds, without a fault.

    Parameters
    ----------
    level
        How much work they do.
    seeds
        How many seeds: 0, 1, ….
    each
        How to judge many checks.

    Returns
    -------
    The checks with their tests, None for those that look for exceptions with random inputs; and the alarms.
    """
    first = dict(zip(CHECKS, each(answer, [(name, level, 0) for name in CHECKS]), strict=True))
    tried = {name: found.design for name, found in first.items() if found.random or found.design}
    pairs = [(name, seed) for name in tried for seed in range(1, seeds)]
    later = each(answer, [(name, level, seed) for name, seed in pairs])
    said = {(name, 0): first[name].said for name in tried}
    said |= {pair: found.said for pair, found in zip(pairs, later, strict=True)}
    usual = {
        name: Verdict.CONFIRMED if CHECKS[name].subject is Subject.IMPLEMENTATION else first[name].said
        for name in tried
    }
    cried = [Alarm(name, seed, said[name, seed], tried[name]) for name, seed in sorted(said)]
    return tried, [alarm for alarm in cried if alarm.said != usual[alarm.id]]
