"""Which checks catch a fault, and how often they cry without one."""

import math
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from itertools import chain

import numpy as np

from canaryproof.verify.audit.engine.executors import Executor
from canaryproof.verify.papers.check.results import Context, Design, Effort, Outcome, Subject, Verdict
from canaryproof.verify.papers.suites.catalogue import SUITES
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
    """What the checks said of a fault, one after the other until one noticed it.

    Attributes
    ----------
    fault
        Its name.
    caught_by
        The first check that says something else with it than without; empty if none does.
    said
        What this check says.
    silent
        Those before it that called the faulty function and did not notice.
    untouched
        Those before it that did not call the function.
    seconds
        How much CPU time they took.
    """

    fault: str
    caught_by: str
    said: str
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


def answer(name: str, level: Effort, seed: int, fault: str = "", longest: float = math.inf) -> Answer:
    """Judge a check.

    Parameters
    ----------
    name
        Its id, or the name of a test. It and the fault are named because functions cannot be sent to another process.
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
            outcome = _judge(name, context)
            said, design = str(outcome.verdict), outcome.design
        except Exception as error:
            said = type(error).__name__
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, previous)
    return Answer(said, time.perf_counter() - start, calls.count, bool(context.asked), design)


def _judge(name: str, context: Context) -> Outcome:
    module, _, function = name.partition(":")
    if not function:
        return CHECKS[name].judge(context)
    getattr(import_module(module), function)()
    return Outcome(Verdict.CONFIRMED, "the test passes", {})


def _interrupt(*_: object) -> None:
    raise TimeoutError


def checks_of(fault: Fault) -> list[str]:
    """Return the checks that call a fault's function, in the order of the fault's patterns, and the tests."""
    tests = [name for name in fault.checks if ":" in name]
    found = (name for pattern in fault.checks for name in CHECKS if fnmatchcase(name, pattern))
    return list(dict.fromkeys([*found, *tests]))


@cache
def usual(name: str, level: Effort, seed: int) -> Answer:
    """Return what a check says without a fault."""
    return answer(name, level, seed)


def trial(name: str, level: Effort, seed: int) -> Trial:
    """Judge the checks of a fault until one notices it.

    Parameters
    ----------
    name
        The fault.
    level, seed
        What the checks may depend on.
    """
    began = time.process_time()
    silent, untouched, caught = [], [], ("", "")
    for check in checks_of(FAULTS[name]):
        without = usual(check, level, seed)
        found = answer(check, level, seed, name, max(_SHORTEST, _PATIENCE * without.seconds))
        if not found.calls:
            untouched.append(check)
        elif found.said == without.said:
            silent.append(check)
        else:
            caught = check, found.said
            break
    return Trial(name, *caught, tuple(silent), tuple(untouched), time.process_time() - began)


def trials(faults: Iterable[str], level: Effort, seed: int, executor: Executor) -> Iterator[Trial]:
    """Give the trial of each fault as soon as it is decided."""
    # What the same check is to notice is judged by one process, where its answer without a fault is known.
    groups: dict[str, list[str]] = {}
    for name in faults:
        groups.setdefault(checks_of(FAULTS[name])[0], []).append(name)
    tasks = ((i, (names, level, seed)) for i, names in enumerate(groups.values()))
    with closing(executor.results("tests.faults.trial:group", tasks)) as done:
        for _, found in done:
            yield from found


def group(names: Sequence[str], level: Effort, seed: int) -> list[Trial]:
    """Judge the checks of some faults."""
    return [trial(name, level, seed) for name in names]


def alarms(level: Effort, seeds: int, executor: Executor) -> tuple[dict[str, Design | None], list[Alarm]]:
    """Judge all checks that use randomness at many seeds, without a fault.

    Parameters
    ----------
    level
        How much work they do.
    seeds
        How many seeds: 0, 1, ….
    executor
        What judges them.

    Returns
    -------
    The checks with their tests, None for those that look for exceptions with random inputs; and the alarms.
    """

    def answers(pairs: list[tuple[str, int]]) -> dict[tuple[str, int], Answer]:
        tasks = ((i, (name, level, seed)) for i, (name, seed) in enumerate(pairs))
        return {pairs[i]: found for i, found in executor.results("tests.faults.trial:answer", tasks)}

    first = {name: found for (name, _), found in answers([(name, 0) for name in CHECKS]).items()}
    tried = {name: first[name].design for name in CHECKS if first[name].random or first[name].design}
    later = answers([(name, seed) for name in tried for seed in range(1, seeds)])
    said = {(name, 0): first[name].said for name in tried} | {pair: found.said for pair, found in later.items()}
    usual = {
        name: Verdict.CONFIRMED if CHECKS[name].subject is Subject.IMPLEMENTATION else first[name].said
        for name in tried
    }
    cried = [Alarm(name, seed, said[name, seed], tried[name]) for name, seed in sorted(said)]
    return tried, [alarm for alarm in cried if alarm.said != usual[alarm.id]]
